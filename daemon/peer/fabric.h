/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Carries frames between daemons: libfabric's reliable datagrams, connections made on demand. What a frame
 * says, and its sender, is frame.h's matter: any program that reaches the address may make bytes
 * appear here.
 *
 * Frames to one peer arrive whole, once and in order as long as the connection lasts (over providers other
 * than `tcp` a short frame may overtake long ones). When it breaks, those under way are lost without a word
 * to either side, later ones travel on a new connection: a sender that needs an answer asks again. A network that
 * swallows packets for a time breaks nothing: what was sent meanwhile arrives late, over TCP as much as that
 * time again after it is back (it tries ever less often, at last every two minutes).
 *
 * From any thread, but not after a fork. No function waits for the network. */

#include <stddef.h>
#include <stdint.h>

struct fabric;

#define FABRIC_FRAME_MAX 65536
#define FABRIC_ADDRESS_MAX 128
#define FABRIC_PEERS_MAX 4096
/* What may wait for one peer, copies of the caller's frames, is bounded by number and by memory. */
#define FABRIC_QUEUE_FRAMES 1024
#define FABRIC_QUEUE_BYTES (1u << 20)
/* Buffers for what is received, FABRIC_FRAME_MAX each. When all hold frames that were not released yet,
 * nothing more is read from the network and the senders' queues fill. */
#define FABRIC_BUFFERS 64
/* How long frames wait for a connection to be made before they are given up. */
#define FABRIC_CONNECT_SECONDS 5

/* Opens our end of it.
 *
 * `setting` is PROVIDER[:WHERE], NULL or empty for `tcp`: a provider of libfabric's, and the address or the
 * interface (or else the name of the provider's domain) to bind to. Without WHERE, `tcp` takes connections at every
 * address of this host, IPv4 and IPv6; at the loopback's only if there is no other. All members of a session have one
 * provider and one release of libfabric.
 *
 * `ring` is called from a thread of the fabric, without a lock held: when frames were received (then take
 * them until fabric_next says 0), when a peer that had answered -EAGAIN has room again, and when the fabric
 * is broken.
 *
 * Takes some 0.3 s the first time in a process, because of what libraries that Debian's libfabric is linked
 * with do when they are loaded (fabric.c); it may be called in a thread of its own, but no other may read or
 * write the environment meanwhile. Later calls take about a millisecond.
 *
 * 0; -EINVAL: a setting that is not one; -ELIBACC: no libfabric here; -ENODEV: it has no such provider, or
 * none at that address; or another -errno. */
int fabric_open(struct fabric **, const char *setting, void (*ring)(void *context), void *context);
/* Ends it; what was sent and is not yet with the kernel is dropped. No ring afterwards. Takes NULL. Frames
 * that fabric_next handed out are gone, too. */
void fabric_close(struct fabric *);

/* What is to be given to the others' fabric_peer_add, over IP a list of `struct address` (addresses.h): at which addresses
 * others may reach us. *size is the room at `bytes`, then what was used. FABRIC_ADDRESS_MAX is enough. 0 or -ENOBUFS. */
int fabric_address(struct fabric *, uint8_t *bytes, size_t *size);

/* Makes a peer known: its number (0 and up), which is that of an earlier, removed one sometimes. Nothing is
 * sent, nobody need be there. -EINVAL: no address of this provider's, or none of a family that ours reaches; -ENOSPC:
 * FABRIC_PEERS_MAX of them; or another -errno. A peer need not be known for us to receive from it. */
int fabric_peer_add(struct fabric *, const uint8_t *bytes, size_t size);
/* The fabric turns to the next of its addresses where no connection is made, unless it was told to keep the one in use; and
 * when it is told to turn, for a connection that leads to somebody else or that nothing comes back from. */
void fabric_peer_turn(struct fabric *, int peer);
void fabric_peer_keep(struct fabric *, int peer);
/* Forgets a peer, and drops what waits for it (counted as failed). What the kernel has is out of reach, and
 * with `tcp` a connection outlives this: a peer whose address is added again has it back. 0; -ENOENT: there
 * is none of that number. */
int fabric_peer_remove(struct fabric *, int peer);

/* Copies a frame and sends it as soon as it can. 0; -EAGAIN: too much waits for this peer already, ring is
 * called when that has changed; -EMSGSIZE: empty or longer than FABRIC_FRAME_MAX; -ENOENT: no such peer;
 * -ENOMEM; -EIO: the fabric is broken. That the peer is not there shows in the counters alone; the next send
 * tries again. */
int fabric_send(struct fabric *, int peer, const uint8_t *bytes, size_t size);

/* The next frame that was received, to be given back with fabric_release soon: 1; 0: there is none; -EIO: the
 * fabric is broken. */
int fabric_next(struct fabric *, const uint8_t **bytes, size_t *size);
void fabric_release(struct fabric *, const uint8_t *bytes);
/* To be called now and then while anything is waited for: wakes the fabric's thread again, if it missed that. */
void fabric_nudge(struct fabric *);

struct fabric_counts {
    uint64_t sent;     /* handed to the network; whether they arrived, nobody says */
    uint64_t received; /* frames */
    uint64_t failed;   /* not sent: nobody there, the connection broke, the peer was removed */
    uint64_t dropped;  /* received, but longer than a frame may be, or cut off by a connection that broke */
};

void fabric_counts(struct fabric *, struct fabric_counts *);
