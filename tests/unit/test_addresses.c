/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "peer/addresses.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "10.0.0.1" or "fd00::1", port 258. */
static struct address address_named(const char *text)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(258)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(258)};
    struct address address;
    const void *from = inet_pton(AF_INET, text, &four.sin_addr) == 1 ? (void *)&four : (void *)&six;
    if (from == &six)
        cr_assert_eq(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    cr_assert_eq(address_of_socket(&address, from), 0);
    return address;
}

static struct own_address own_named(const char *text, unsigned prefix)
{
    struct own_address own = {.prefix = prefix};
    const struct address named = address_named(text);
    memcpy(own.ip, named.ip, sizeof own.ip);
    return own;
}

Test(addresses, sockets_and_back)
{
    struct sockaddr_storage socket;
    struct address back;
    const struct address four = address_named("10.1.2.3"), six = address_named("fd00::7");
    cr_assert(four.port[0] == 1 && four.port[1] == 2);
    cr_assert_eq(address_to_socket(&four, AF_INET, &socket), sizeof(struct sockaddr_in));
    cr_assert_eq(address_of_socket(&back, (struct sockaddr *)&socket), 0);
    cr_assert_eq(memcmp(&back, &four, sizeof four), 0);
    cr_assert_eq(address_to_socket(&four, AF_INET6, &socket), sizeof(struct sockaddr_in6), "as an IPv4-mapped one");
    cr_assert_eq(address_of_socket(&back, (struct sockaddr *)&socket), 0);
    cr_assert_eq(memcmp(&back, &four, sizeof four), 0);
    cr_assert_eq(address_to_socket(&six, AF_INET, &socket), 0, "no IPv4 socket reaches it");
    cr_assert_eq(address_to_socket(&six, AF_INET6, &socket), sizeof(struct sockaddr_in6));
    cr_assert_eq(address_to_socket(&four, AF_UNIX, &socket), 0);
    struct sockaddr local = {.sa_family = AF_UNIX};
    cr_assert_eq(address_of_socket(&back, &local), -EAFNOSUPPORT);
}

Test(addresses, this_hosts_are_found_and_the_loopback_is_last)
{
    struct own_address own[ADDRESSES_OWN_MAX];
    int count = addresses_find_own(own, NULL);
    cr_assert(count > 0 && count <= ADDRESSES_OWN_MAX);
    for (int i = 1; i < count; i++)
        cr_assert_leq(own[i].rank, own[i - 1].rank);
    cr_assert_eq(addresses_find_own(own, "no-such-if"), 0);
    count = addresses_find_own(own, "lo");
    cr_assert_gt(count, 0);
    for (int i = 0; i < count; i++)
        cr_assert_not(own_address_is_reachable(&own[i]));
}

static void assert_published(const char *bound, const char *expected)
{
    struct own_address own[] = {own_named("10.77.0.2", 96 + 20), own_named("fd00:5::2", 61), own_named("127.0.0.1", 104)};
    struct address all[ADDRESSES_MAX];
    struct sockaddr_storage socket;
    char text[ADDRESSES_TEXT_MAX];
    const struct address at = address_named(bound);
    for (unsigned i = 0; i < 3; i++)
        own[i].rank = 2 - i;
    if (address_to_socket(&at, AF_INET, &socket) == 0)
        address_to_socket(&at, AF_INET6, &socket);
    size_t count = addresses_to_publish(all, (struct sockaddr *)&socket, own, 3);
    addresses_text((const uint8_t *)all, count * sizeof *all, text);
    cr_assert_str_eq(text, expected);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(memcmp(all[i].port, at.port, 2), 0);
}

Test(addresses, what_is_published)
{
    assert_published("::", "10.77.0.2, fd00:5::2");
    assert_published("0.0.0.0", "10.77.0.2");
    assert_published("10.9.9.9", "10.9.9.9");
    assert_published("fd00::9", "fd00::9");
    assert_published("127.0.0.1", "127.0.0.1");
}

static void assert_order(const char *const *given, const char *const *expected, size_t count)
{
    const struct own_address own[] = {own_named("192.168.7.15", 96 + 24), own_named("10.77.0.2", 96 + 20),
                                      own_named("fd00:5::2", 61)};
    struct address all[ADDRESSES_MAX];
    char text[ADDRESSES_TEXT_MAX], wanted[ADDRESSES_TEXT_MAX] = "";
    for (size_t i = 0; i < count; i++) {
        all[i] = address_named(given[i]);
        sprintf(wanted + strlen(wanted), "%s%s", i > 0 ? ", " : "", expected[i]);
    }
    addresses_sort(all, count, own, sizeof own / sizeof *own);
    addresses_text((const uint8_t *)all, count * sizeof *all, text);
    cr_assert_str_eq(text, wanted);
}

Test(addresses, those_of_a_shared_network_are_tried_first_and_ones_own_last)
{
    static const char *const given[] = {"192.168.7.15", "10.1.1.1",   "fd00:5:0:7::1",
                                        "10.77.15.1",   "10.77.16.1", "fd00:5:0:8::1"};
    static const char *const sorted[] = {"fd00:5:0:7::1", "10.77.15.1",    "10.1.1.1",
                                         "10.77.16.1",    "fd00:5:0:8::1", "192.168.7.15"};
    assert_order(given, sorted, 6);
    assert_order(given, given, 1);
    assert_order(NULL, NULL, 0);
}

Test(addresses, what_is_no_list_has_no_text)
{
    uint8_t bytes[200] = {1};
    char text[ADDRESSES_TEXT_MAX] = "x";
    addresses_text(bytes, 17, text);
    cr_assert_str_empty(text);
    addresses_text(bytes, 0, text);
    cr_assert_str_empty(text);
    memset(bytes, 0xff, sizeof bytes);
    addresses_text(bytes, 198, text);
    cr_assert_eq(strlen(text), ADDRESSES_MAX * 39 + (ADDRESSES_MAX - 1) * 2, "the longest there are");
}
