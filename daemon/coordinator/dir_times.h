/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The times of a directory that has names in mirrors. A daemon whose node changes it tells the directory's
 * coordinator, now and then, which tells the daemons whose processes use it, now and then: they see a change within
 * two pauses, without a message on the way of a create or of a stat. When it goes quiet, the daemon that changed it gives
 * the trunk the time of the last change, and tells that, too.
 *
 * Each word says all that is known (home_times): a receiver keeps the later, so it matters neither
 * in which order word arrives nor on which channel. Once somebody sets times (SETTLE), the coordinator begins a new
 * round on all daemons: word of an older one is passed over. */

#include "peer/peers.h"
#include "rpc/collective.h"
#include "shuntd.h"

struct home_dir;
struct message;
struct message_times;

#define TIMES_PAUSE (CLOCK_SECOND / 4)
/* A directory without changes for so long is given its times: other nodes see that as its change time, which
 * is to be right by a second. */
#define TIMES_QUIET (3 * CLOCK_SECOND / 4)

/* Within a batch: tells and writes what is due. 0 or a fatal -errno. */
int dir_times_step(struct shuntd *);
/* When something is to be told or written: monotonic, UINT64_MAX: never. */
uint64_t dir_times_due(struct shuntd *);
/* What another daemon told: 0 or a fatal -errno. */
int dir_times_take(struct shuntd *, uint16_t member, struct dirid, const struct message_times *);
/* To a member whose processes use the directory from now on. */
int dir_times_tell(struct shuntd *, const struct home_dir *, uint16_t member);
/* As other daemons are told them: all but `stood`. */
struct message_times dir_times_of(const struct home_dir *);

/* Begins to write them to the trunk. */
int dir_times_write(struct shuntd *, struct home_dir *);
/* The end: all of them, without jobs. */
void dir_times_write_all(struct shuntd *);
/* An item of kind RPC_NOTIFY, of type TIMES: a daemon that is about to coordinate the directory hears of it once it does. */
int dir_times_take_item(struct shuntd *, uint16_t member, const struct frame_item *, const struct message *);
collective_part dir_times_part_settle;
