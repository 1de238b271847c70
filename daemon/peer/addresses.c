/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "peer/addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

enum own_rank { OWN_LOOPBACK, OWN_LINK_LOCAL, OWN_IPV6, OWN_IPV4 };

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool address_is_ipv4(const uint8_t ip[16])
{
    return memcmp(ip, mapped, sizeof mapped) == 0;
}

static int addresses_ip_of(uint8_t ip[16], const struct sockaddr *from)
{
    if (from->sa_family == AF_INET) {
        memcpy(ip, mapped, sizeof mapped);
        memcpy(ip + sizeof mapped, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        memcpy(ip, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
    } else {
        return -EAFNOSUPPORT;
    }
    return 0;
}

int address_of_socket(struct address *to, const struct sockaddr *from)
{
    in_port_t port = from->sa_family == AF_INET ? ((const struct sockaddr_in *)(const void *)from)->sin_port
                                                : ((const struct sockaddr_in6 *)(const void *)from)->sin6_port;
    memcpy(to->port, &port, sizeof to->port);
    return addresses_ip_of(to->ip, from);
}

socklen_t address_to_socket(const struct address *from, int family, struct sockaddr_storage *to)
{
    memset(to, 0, sizeof *to);
    if (family == AF_INET && address_is_ipv4(from->ip)) {
        struct sockaddr_in *four = (struct sockaddr_in *)(void *)to;
        four->sin_family = AF_INET;
        memcpy(&four->sin_addr, from->ip + sizeof mapped, 4);
        memcpy(&four->sin_port, from->port, sizeof from->port);
        return sizeof *four;
    }
    if (family != AF_INET6)
        return 0;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)to;
    six->sin6_family = AF_INET6;
    memcpy(&six->sin6_addr, from->ip, sizeof from->ip);
    memcpy(&six->sin6_port, from->port, sizeof from->port);
    return sizeof *six;
}

/* --- this host's --- */

static bool addresses_is_wanted(const struct ifaddrs *one, const char *interface)
{
    if (one->ifa_addr == NULL || one->ifa_netmask == NULL || !(one->ifa_flags & IFF_UP))
        return false;
    if (interface != NULL && strcmp(one->ifa_name, interface) != 0)
        return false;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)one->ifa_addr;
    return one->ifa_addr->sa_family == AF_INET ||
           (one->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

static enum own_rank addresses_rank_of(const struct ifaddrs *one, const uint8_t *ip)
{
    if (one->ifa_flags & IFF_LOOPBACK)
        return OWN_LOOPBACK;
    if (!address_is_ipv4(ip))
        return OWN_IPV6;
    return ip[12] == 169 && ip[13] == 254 ? OWN_LINK_LOCAL : OWN_IPV4;
}

/* The set bits of a mask; those before an IPv4 one are set. */
static unsigned addresses_prefix_of(const struct sockaddr *mask)
{
    uint8_t bytes[16];
    unsigned bits = 0;
    if (addresses_ip_of(bytes, mask) != 0)
        return 128;
    if (mask->sa_family == AF_INET)
        memset(bytes, 0xff, sizeof mapped);
    for (size_t i = 0; i < sizeof bytes; i++)
        bits += (unsigned)__builtin_popcount(bytes[i]);
    return bits;
}

/* Behind all that are as likely. */
static void addresses_insert(struct own_address *to, int count, const struct own_address *one)
{
    int at = count;
    for (; at > 0 && to[at - 1].rank < one->rank; at--)
        to[at] = to[at - 1];
    to[at] = *one;
}

int addresses_find_own(struct own_address *to, const char *interface)
{
    struct ifaddrs *all;
    int count = 0;
    if (getifaddrs(&all) != 0)
        return -errno;
    for (const struct ifaddrs *one = all; one != NULL && count < ADDRESSES_OWN_MAX; one = one->ifa_next) {
        struct own_address own;
        if (!addresses_is_wanted(one, interface) || addresses_ip_of(own.ip, one->ifa_addr) != 0)
            continue;
        own.prefix = addresses_prefix_of(one->ifa_netmask);
        own.rank = addresses_rank_of(one, own.ip);
        addresses_insert(to, count++, &own);
    }
    freeifaddrs(all);
    return count;
}

bool own_address_is_reachable(const struct own_address *own)
{
    return own->rank != OWN_LOOPBACK;
}

static bool addresses_is_any(const uint8_t *ip)
{
    static const uint8_t any_ipv6[16];
    return memcmp(ip, any_ipv6, sizeof any_ipv6) == 0 || (address_is_ipv4(ip) && memcmp(ip + sizeof mapped, any_ipv6, 4) == 0);
}

size_t addresses_to_publish(struct address to[ADDRESSES_MAX], const struct sockaddr *bound, const struct own_address *own,
                            size_t own_count)
{
    struct sockaddr_storage unused;
    struct address one;
    size_t count = 0;
    if (address_of_socket(&one, bound) != 0)
        return 0;
    bool any = addresses_is_any(one.ip);
    if (!any)
        to[count++] = one;
    for (size_t i = 0; any && i < own_count && count < ADDRESSES_MAX; i++) {
        memcpy(one.ip, own[i].ip, sizeof one.ip);
        if (own_address_is_reachable(&own[i]) && address_to_socket(&one, bound->sa_family, &unused) > 0)
            to[count++] = one;
    }
    return count;
}

/* --- the order to try another's in --- */

static bool addresses_shares_network(const uint8_t *ip, const struct own_address *own)
{
    unsigned whole = own->prefix / 8, rest = own->prefix % 8;
    if (memcmp(ip, own->ip, whole) != 0)
        return false;
    return rest == 0 || (ip[whole] ^ own->ip[whole]) >> (8 - rest) == 0;
}

/* 0: tried first. */
static unsigned addresses_distance(const struct address *one, const struct own_address *own, size_t count)
{
    unsigned distance = 1;
    for (size_t i = 0; i < count; i++) {
        if (memcmp(one->ip, own[i].ip, sizeof one->ip) == 0)
            return 2;
        if (addresses_shares_network(one->ip, &own[i]))
            distance = 0;
    }
    return distance;
}

void addresses_sort(struct address *addresses, size_t count, const struct own_address *own, size_t own_count)
{
    for (size_t i = 1; i < count; i++) {
        const struct address one = addresses[i];
        unsigned distance = addresses_distance(&one, own, own_count);
        size_t at = i;
        for (; at > 0 && addresses_distance(&addresses[at - 1], own, own_count) > distance; at--)
            addresses[at] = addresses[at - 1];
        addresses[at] = one;
    }
}

/* --- for messages --- */

void address_text(const uint8_t ip[16], char to[ADDRESS_TEXT_MAX])
{
    if (address_is_ipv4(ip))
        inet_ntop(AF_INET, ip + sizeof mapped, to, ADDRESS_TEXT_MAX);
    else
        inet_ntop(AF_INET6, ip, to, ADDRESS_TEXT_MAX);
}

void addresses_text(const uint8_t *bytes, size_t size, char to[ADDRESSES_TEXT_MAX])
{
    size_t count = size % sizeof(struct address) == 0 ? size / sizeof(struct address) : 0;
    to[0] = '\0';
    for (size_t i = 0; i < count && i < ADDRESSES_MAX; i++) {
        if (i > 0)
            strcat(to, ", ");
        address_text(bytes + i * sizeof(struct address), to + strlen(to));
    }
}
