/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The other daemons of the session: items go to a member and come from it, each once and in order, as long as
 * both live. What was sent is kept until the other side says that it has it, and sent again if that takes
 * long: the fabric may lose a frame with a connection, and a notice that is lost would leave a name held for
 * ever.
 *
 * Main's thread only, or the thread that serves in its turn (main.c). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peer/frame.h"

struct peers;

struct peers_counts {
    uint64_t frames_sent, frames_received;
    uint64_t bytes_sent; /* of frames_sent, headers included */
    uint64_t sent_again; /* frames */
    uint64_t dropped;    /* frames that are malformed, not authentic, of another epoch or version, or came twice */
};

int peers_create(struct peers **);
/* Takes NULL. */
void peers_destroy(struct peers *);
/* Opens the fabric, which takes a while: it may be done in a thread of its own, from which `ring` is called
 * at the end. Until then nobody can be added and nothing comes. 0 or -errno, as fabric_open. */
int peers_open(struct peers *, const char *setting, void (*ring)(void *), void *context);
bool peers_is_open(const struct peers *);
/* Where others reach this daemon, once it is open: as fabric_address. */
int peers_address(const struct peers *, uint8_t *to, size_t *size);

/* This daemon, in which epoch. */
void peers_set_self(struct peers *, const struct frame_self *);
/* A member, as the session tells it; known ones are left as they are. 0 or -errno. */
int peers_add(struct peers *, uint16_t member, uint64_t instance, const uint8_t *address, size_t size);
/* It is no member any more. */
void peers_remove(struct peers *, uint16_t member);
bool peers_knows(const struct peers *, uint16_t member);

/* Has it not acknowledged something that was sent to it so long (ns) ago? */
bool peers_is_silent(const struct peers *, uint16_t member, uint64_t since);
/* Has it acknowledged something within so long (ns)? A member that is sent nothing is not silent, and has not acknowledged. */
bool peers_has_heard(const struct peers *, uint16_t member, uint64_t within);

/* An item for a member, copied; it travels with the next flush. 0, -EHOSTUNREACH: no such member, -ENOMEM. */
int peers_put(struct peers *, uint16_t member, const struct frame_item *);
/* One that nobody waits for: it travels with the next frame that goes there anyway, or half a second later, or once
 * peers_urge is called for it, or for all. In order with the others. */
int peers_put_late(struct peers *, uint16_t member, const struct frame_item *);
void peers_urge(struct peers *, uint16_t member);
void peers_urge_all(struct peers *);
/* Is so much on its way to one of them that nothing more is to be begun until some of it has arrived? */
bool peers_are_congested(const struct peers *);
/* Has it everything that was put for it? True of one that is not known. */
bool peers_is_idle(const struct peers *, uint16_t member);
/* In which frame what was put for it last travels, and has it that one? True of one that is not known. */
uint64_t peers_frame(const struct peers *, uint16_t member);
bool peers_has_got(const struct peers *, uint16_t member, uint64_t frame);
/* At the end of a batch: what was put goes out, what was put late if it is time, what came is acknowledged, what is overdue
 * goes out again. */
void peers_flush(struct peers *);
/* Somebody waits until all is acknowledged, or no longer: what comes is acknowledged without waiting for
 * company. */
void peers_hasten(struct peers *, bool hastens);
/* Does anything wait for time to pass (an acknowledgement)? */
bool peers_wait(const struct peers *);

/* The next item: 1, its bytes are good until the next call; 0: none; PEERS_NEWER: the session has a newer
 * epoch than peers_set_self was told, or may have one (somebody does not acknowledge): look at it and call
 * again. */
#define PEERS_NEWER 2
int peers_next(struct peers *, uint16_t *member, struct frame_item *);

const struct peers_counts *peers_counts(const struct peers *);
