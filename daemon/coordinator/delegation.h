/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A directory that one node alone uses is wholly at home with its daemon, whatever the shards of its names: nothing in it
 * takes a message to another node. Its coordinator delegates it to the first daemon that loads it, and recalls it before
 * another one may use it; then its names are read from the file system, and go to the homes that their shards say.
 *
 * A directory is delegated once. Each delegation has a number, the directory's version (coordinator.h). There is none once a
 * member has left the session, be it one that crashed: whose processes are at work where, a coordinator that came later would
 * not know. RPC.md says how it goes. */

#include "home/home.h"
#include "coordinator/coordinator.h"

/* What its coordinator does. */

/* May it be delegated to the daemon that asks? `names`: how many there are. */
bool delegation_may_be(const struct shuntd *, const struct home_dir *, const struct coordinator_request *, size_t names);
/* Another daemon wants to use it: its request waits until the delegation is returned. 0 or a fatal -errno. */
int delegation_recall(struct shuntd *, struct home_dir *, struct coordinator_request *);
/* RETURN: it is. */
int delegation_returned(struct shuntd *, struct coordinator_request *);
/* A member is gone, and what it had. */
int delegation_member_gone(struct shuntd *, uint16_t member);
/* It is nobody's. */
void delegation_forget(struct home_coordinator *);
/* ... and is to be loaded before it is used again. */
void delegation_lose(struct home_coordinator *);

/* What the daemon does whose it is. */

/* Its coordinator has answered LOAD, which it was asked in that epoch: are all its names here? If not, it is given back; then,
 * or if it is about to be, LOAD is to be asked again: -EAGAIN. 0, or a fatal -errno. */
int delegation_accept(struct shuntd *, struct home_dir *, const struct message *answer, uint32_t epoch);
/* That member, its coordinator, wants it back. */
int delegation_recalled(struct shuntd *, uint16_t member, struct dirid, uint64_t number);
/* No name of it is held any more, as it seemed. */
int delegation_continue(struct shuntd *, struct dirid);
/* It is given back when nothing is under way there, and is to be at home with all daemons. 0 or a fatal -errno. */
int delegation_give_up(struct shuntd *, struct home_dir *);
/* This daemon is about to leave: all are given back, each when nothing is under way there. 0 or a fatal -errno. */
int delegation_leave(struct shuntd *);
bool delegation_has_any(struct shuntd *);
