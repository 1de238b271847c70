/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The session as this daemon sees it: it reads epochs, knows the members and their branches, joins and leaves. */

#include "peer/peers.h"
#include "shuntd.h"

/* What the rooms above do for membership. 0 or a fatal -errno. */
struct membership_handlers {
    int (*settle_member)(struct shuntd *, uint16_t member); /* a member is gone: what its processes had begun is settled */
    int (*resume_lists)(struct shuntd *);                   /* the homes are known again: listings go on */
};

/* Does anything here wait for another daemon? */
bool session_view_waits(const struct shuntd *);

/* Says to a home that this daemon has joined, and waits for its word, at most `deadline` ns. 0 or -ETIMEDOUT or
 * another -errno. */
int session_view_join(struct shuntd *, uint64_t deadline);

/* shuntd->session is in force: members and homes are those that it says. The fabric is open. 0 or -errno. */
int session_view_adopt(struct shuntd *);
/* Looks whether a newer epoch is in force. 0 or a fatal -errno. */
int session_view_refresh(struct shuntd *);
/* Takes what is in force, whatever shuntd->session says. */
int session_view_reread(struct shuntd *);
/* How an epoch was written, or `what` was not (homes.c writes some, too): said once. -ESTALE says nothing. */
void session_view_note_write(struct shuntd *, int code, const char *what);
/* One could not be written: it is too early to try again. */
bool session_view_waits_to_write(const struct shuntd *);
/* This daemon is no member any more: the others hear of it at once. */
void session_view_leave(struct shuntd *);
/* Once the fabric is open, the session is told where this daemon is reached; till then nobody can join. 0 or
 * a fatal -errno. */
int session_view_publish_address(struct shuntd *);
/* Items of kind RPC_HELLO and RPC_WELCOME. 0 or a fatal -errno. */
int session_view_take_hello(struct shuntd *, uint16_t member, const struct frame_item *);
int session_view_take_welcome(struct shuntd *, uint16_t member, const struct frame_item *);
