/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The channel between daemons, at both of its ends: what they ask each other. RPC.md lists the
 * items. */

#include "peer/peers.h"
#include "home/home.h"

enum rpc_kind {
    RPC_HOME_REQUEST = 1,   /* to the home of a name: a question, by that operation */
    RPC_HOME_REPLY,         /* ... its answer */
    RPC_COORDINATOR,        /* to the home of a directory (coordinator.h); an id of 0 wants no answer */
    RPC_COORDINATOR_ANSWER, /* ... its answer */
    RPC_COLLECTIVE,         /* a collective (collective.h): to so many members, of which the receiver is the first */
    RPC_COLLECTIVE_ANSWER,  /* ... what they say together */
    RPC_LISTED,             /* to a home: a name of a directory that is being loaded */
    RPC_NOTIFY,             /* what wants no answer: NODES, VISITED, IDLE, TIMES, AWAITED, RECALL */
    RPC_MIGRATE,            /* to the next home: a part of what a shard holds (migration.h) */
    RPC_HELLO,              /* the sender has joined, says it to a home; or it waits for the receiver */
    RPC_WELCOME,            /* ... it knows, and whether the file system holds up anything there */
    RPC_KINDS
};

/* Asks another daemon, or tells it the end of a name, which travels with other things if nobody waits for it. 0 or a fatal
 * -errno. */
int rpc_home_request(struct shuntd *, uint16_t member, const struct name_question *);
int rpc_home_release(struct shuntd *, uint16_t member, const struct name_question *, bool awaited);
int rpc_message(struct shuntd *, uint16_t member, enum rpc_kind, uint64_t id, const struct message *);
/* A name of a directory that is being loaded, by the load of that number. */
int rpc_name(struct shuntd *, uint16_t member, struct dirid, uint64_t number, const char *name, size_t length,
             const struct record_entry *);
/* An entry for another daemon, with its branch by its name; and one of another's, whose branch gets a number here: 0,
 * -EBADMSG or a fatal -errno. */
struct message_entry rpc_put_entry(const struct shuntd *, const struct record_entry *);
int rpc_take_entry(struct shuntd *, const struct message_entry *, struct record_entry *);
/* The member that has that branch, 0: nobody. */
uint16_t rpc_member_of(const struct shuntd *, uint16_t branch);

/* Something for a member to acknowledge, and to answer. 0 or -ENOMEM. */
int rpc_greet(struct shuntd *, uint16_t member);
/* The answer; `stalled`: as remote_stall_told. 0 or -ENOMEM. */
int rpc_welcome(struct shuntd *, uint16_t member, uint64_t stalled);
/* What is to be done with a member. 0 or a fatal -errno. */
typedef int rpc_each_member(struct shuntd *, uint16_t member);
/* As it is: to this daemon itself goes what waits for something that is on its way here. `late`: with the next frame that goes
 * there anyway. */
int rpc_put(struct shuntd *, uint16_t member, const struct frame_item *, bool late);
/* The number of a branch here, which it is given if it has none. > 0 or -errno. */
int rpc_branch_number(struct shuntd *, const char *branch);
