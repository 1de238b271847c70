/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Requests to the home of a name, which is this daemon or another one: both are asked in the same way, and the operation goes
 * on when the answer is there. */

#include "home/home.h"
#include "peer/peers.h"
#include "rpc/peer_rpc.h"
#include "shuntd.h"

/* What the rooms above do when an operation changes its state. 0 or a fatal -errno. */
struct home_rpc_handlers {
    int (*thaw)(struct shuntd *, struct dirid);                /* an operation ends that has frozen that directory */
    int (*granted)(struct shuntd *, const struct operation *); /* a home has given what was prefetched */
    void (*ends)(struct shuntd *, struct operation *);
};

/* Asks the home of an operation's name; `then` goes on with the answer, at once or later. 0 or a fatal -errno. Where
 * the directory is not known there any more, or the name has another home now, the request is told so, or begun
 * again, and `then` is not called. */
int home_rpc_request(struct shuntd *, struct operation *, enum name_op, unsigned flags, const struct record_entry *,
                     operation_next *then);
/* Its home is to know that a process has asked for what was predicted. 0 or a fatal -errno. */
int home_rpc_requested(struct shuntd *, const struct operation *);
/* `each` with the home that is asked, or this daemon, for each operation that waits for it and had begun by *last; *last is the
 * last operation then. 0 or what `each` answers. */
int home_rpc_each_asked(struct shuntd *, uint64_t *last, rpc_each_member *each);
/* What was asked of daemons that are no members any more is asked again. 0 or a fatal -errno. */
int home_rpc_repeat(struct shuntd *);
/* The name is as before, and the operation, which goes on, asks for it again. 0 or a fatal -errno. */
int home_rpc_let_go(struct shuntd *, struct operation *);
/* Ends an operation whose name is from now on that (NULL: nothing), if it holds it. */
int home_rpc_end(struct shuntd *, struct operation *, const struct record_entry *);
/* Ends it, and its partner: all is as before. */
int home_rpc_abort(struct shuntd *, struct operation *);
/* The same, and its request is served again from the start. */
int home_rpc_restart(struct shuntd *, struct operation *);

/* Questions that waited at this home have their answers now. 0 or a fatal -errno. */
int home_rpc_answer_waiting(struct shuntd *);
/* Items of other daemons: RPC_HOME_REQUEST, RPC_HOME_REPLY. 0 or a fatal -errno. */
int home_rpc_take_request(struct shuntd *, uint16_t member, const struct frame_item *);
int home_rpc_take_reply(struct shuntd *, uint16_t member, const struct frame_item *);
