/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The addresses at which a host is reached over IP: which of its own a daemon publishes, and in which order another tries them.
 *
 * A host has several networks: that of the compute nodes, one for management, a container runtime's bridge, which has the same
 * address on every host. Which of them two hosts share, neither can know beforehand. */

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* As it is published, in network byte order; IPv4 as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). */
struct address {
    uint8_t ip[16];
    uint8_t port[2];
};

/* What a member of a session has room for (FABRIC_ADDRESS_MAX). */
#define ADDRESSES_MAX 7
/* Of one host. */
#define ADDRESSES_OWN_MAX 32
#define ADDRESS_TEXT_MAX INET6_ADDRSTRLEN
#define ADDRESSES_TEXT_MAX (ADDRESSES_MAX * (ADDRESS_TEXT_MAX + 1))

struct own_address {
    uint8_t ip[16];
    unsigned prefix; /* bits of `ip` that name its network */
    unsigned rank;   /* how likely others reach it, as addresses_find_own orders them */
};

/* Those of this host's interfaces that are up, or of the one that is named (NULL: all), the likeliest first: IPv4, IPv6,
 * link-local IPv4, loopback. Link-local IPv6 is left out: it is of use with an interface's number only. Returns how many, at
 * most ADDRESSES_OWN_MAX, or -errno. */
int addresses_find_own(struct own_address *, const char *interface);

/* Is it another than the loopback's? */
bool own_address_is_reachable(const struct own_address *);

/* What a daemon publishes whose socket is bound there: that address, or if it is that of all interfaces, those of this host
 * that the socket has the family for. Returns how many. */
size_t addresses_to_publish(struct address to[ADDRESSES_MAX], const struct sockaddr *bound, const struct own_address *,
                            size_t own_count);

/* Sorts another daemon's addresses as they are to be tried: those in a network of this host, the others, those that are this
 * host's own, too; among equals as they were. */
void addresses_sort(struct address *, size_t count, const struct own_address *, size_t own_count);

/* From a socket's address: 0 or -EAFNOSUPPORT. */
int address_of_socket(struct address *, const struct sockaddr *);
/* To one of this family: its size; 0: a family that cannot reach it. */
socklen_t address_to_socket(const struct address *, int family, struct sockaddr_storage *);

bool address_is_ipv4(const uint8_t ip[16]);
void address_text(const uint8_t ip[16], char to[ADDRESS_TEXT_MAX]);
/* "10.1.0.3, fd00::3" for messages, from what a member published; "" if these are no such addresses. */
void addresses_text(const uint8_t *bytes, size_t size, char to[ADDRESSES_TEXT_MAX]);
