/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What travels between the daemons of a session: sealed with the session's key, dated with its epoch, counted
 * against replay. FRAME.md says what the bytes are.
 *
 * Pure: no I/O, no allocation, no state but the caller's; nothing that was received is trusted before it is
 * authenticated, and no length in it afterwards either. From any thread. */

#include <stddef.h>
#include <stdint.h>

#define FRAME_VERSION 4
#define FRAME_KEY 32
#define FRAME_HEADER 80
#define FRAME_MAX 65536 /* with its header */
#define FRAME_PAYLOAD_MAX (FRAME_MAX - FRAME_HEADER)

/* An answer of frame_open besides 0 and -errno: all is well, but its epoch is newer than ours. */
#define FRAME_NEWER 1

/* This daemon. An instance is a random number, not 0, that a daemon draws when it starts, and that the others
 * learn from the session as they learn its address: frames of, and to, the daemon that had this member's
 * number before are not ours. */
struct frame_self {
    uint64_t session;
    uint64_t epoch;
    uint64_t instance;
    uint16_t member;
    uint8_t key[FRAME_KEY];
};

struct frame {
    uint64_t epoch;
    uint64_t sender_instance;
    uint64_t receiver_instance;
    uint64_t sequence; /* 1, 2, 3 ... from this instance to that member; of one without items 0 */
    uint64_t received; /* the sequence of the last frame of the receiver's that was taken */
    uint16_t sender;
    uint16_t receiver;
    uint32_t size; /* of the payload; 0 is fine */
    const uint8_t *payload;
};

/* Once in a process, before its threads: chooses the quickest hash for this processor. All else works without
 * it. 0 or -ENOSYS. */
int frame_start(void);

/* Writes a frame: `self` says session, epoch, sender, its instance and the key, `frame` all else. The payload
 * may lie where it will travel, at `to` + FRAME_HEADER, and is not copied then. The size written, or
 * -EMSGSIZE if the payload is longer than FRAME_PAYLOAD_MAX or does not fit in `room`. */
int frame_seal(uint8_t *to, size_t room, const struct frame *, const struct frame_self *);

/* Reads one; the payload points into `bytes`. In this order:
 *   -EBADMSG       shorter than a header, longer than FRAME_MAX, no frame at all
 *   -EPROTO        another version
 *   -EBADMSG       not as long
 *   -ESTALE        another session
 *   -EHOSTUNREACH  for another member, or for another instance of this one
 *   -EACCES        not authentic
 *   -ESTALE        of an older epoch
 * or 0, or FRAME_NEWER: authentic, the session must be looked at again before it is acted on. With an error
 * all fields are zero. Nothing is said about replay: the caller takes the next of each sender's sequence, no other. */
int frame_open(struct frame *, const uint8_t *bytes, size_t size, const struct frame_self *);

/* Many messages travel in one frame: its payload is a list of items (pack.h). What the fields mean is the caller's. */
struct frame_item {
    uint64_t client;
    uint32_t qp;
    uint16_t kind;
    uint16_t flags;
    uint32_t size;
    const uint8_t *bytes;
};

#define FRAME_ITEM_HEADER 25 /* bytes that travel for an item besides its own, at most */
#define FRAME_ITEM_MAX (FRAME_PAYLOAD_MAX - FRAME_ITEM_HEADER)
