/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The road between daemons, at both of its ends. A daemon that is not home of the names hands its clients'
 * messages on to the one that is, and its answers back: to the home, a peer is one more client of the front
 * door. RELAY.md lists the items. */

#include "peer/peers.h"
#include "serve/serve.h"

enum relay_kind {
    RELAY_REQUEST = 1, /* to the home: a client's message, in its own bytes; request or notice */
    RELAY_ANSWER,      /* from the home, to that lane of that client */
    RELAY_ENDED,       /* to the home: the client has ended, what it began is to be settled */
    RELAY_GAVE_UP,     /* to the home: the client does not wait for the answer with that tag any more */
    RELAY_HELLO,       /* to the home: who sends this has joined */
    RELAY_WELCOME,     /* from the home: it is served */
    RELAY_LEAVE,       /* to the home: no client is left, or will be */
    RELAY_BYE,         /* from the home: all that they began is settled */
    RELAY_MAKE,        /* from the home: a leaf of your mirror is to be made */
    RELAY_MADE,        /* to the home: how that went */
};

struct relay;

int relay_create(struct relay **);
/* Takes NULL. */
void relay_destroy(struct relay *);

/* Is another daemon home of the names? */
static inline bool relay_is_needed(const struct shuntd *shuntd)
{
    return shuntd->home_member != shuntd->me.number;
}
/* May it be handed on? Not what concerns a daemon's own node. */
static inline bool relay_may_be(uint16_t type)
{
    return type != MESSAGE_STATUS && type != MESSAGE_RETIRE && type != MESSAGE_ANSWER;
}
/* Hands a message on: 0, or a fatal -errno. */
int relay_request(struct shuntd *, const struct listen_request *);
/* A client of this node has ended. */
int relay_ended(struct shuntd *, pid_t client, uint64_t serial);
/* Looks for requests whose senders stopped waiting. */
int relay_given_up(struct shuntd *);
/* Is so much on its way to the home that no message is to be taken until some of it has arrived? */
bool relay_is_congested(const struct shuntd *);
/* Are there requests that wait for the home? */
bool relay_waits(const struct shuntd *);

/* Serves what other daemons sent: 0, or a fatal -errno. */
int relay_items(struct shuntd *);
/* The answer to a client of another node, encoded. */
int relay_answer(struct shuntd *, uint64_t client, uint32_t lane, const uint8_t *bytes, size_t size);

/* Is this daemon home of names for others that live? Looks at the session. */
bool relay_is_asked(struct shuntd *);
/* RELAY_MAKE and RELAY_MADE: 0 or a fatal -errno. */
int relay_make_leaf(struct shuntd *, uint16_t branch, uint32_t leaf, const struct message *);
int relay_leaf_made(struct shuntd *, uint32_t leaf, const struct message *);

/* Says to the home that this daemon has joined, or leaves, and waits for its word, at most `deadline` ns. 0
 * or -ETIMEDOUT or another -errno. */
int relay_join(struct shuntd *, uint64_t deadline);
int relay_leave(struct shuntd *, uint64_t deadline);

/* shuntd->session is in force: who is a member now, who is home. The fabric is open. Within a transaction. 0
 * or -errno. */
int relay_adopt(struct shuntd *);
/* Once the fabric is open, the session is told where this daemon is reached; till then nobody can join. 0 or
 * a fatal -errno. */
int relay_tell_address(struct shuntd *);
