/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a shard holds goes from its old home to the new one (homes.h). The old one sends directories, names and their claims,
 * forgets them, and says that this was all. Until then the new one answers no request about that shard. Requests that
 * come to an old home are sent to the new one, by the daemon that asks or, where no answer is wanted, by the old home itself.
 */

#include "home/home.h"
#include "peer/peers.h"
#include "shuntd.h"

/* What is to go from here goes, unless it concerns a directory that somebody is at work on as a whole: then it is called
 * again. 0 or a fatal -errno. */
int migration_hand_over(struct shuntd *);
/* A part of what a shard holds. 0 or a fatal -errno. */
int migration_receive(struct shuntd *, uint16_t member, const struct frame_item *);
/* From that member all has come. 0 or a fatal -errno. */
int migration_arrived(struct shuntd *, uint16_t from);
/* Tells a name's home that a process of this node holds it; and a member that this was all. 0 or a fatal -errno. */
int migration_send_claim(struct shuntd *, const struct operation *);
int migration_send_end(struct shuntd *, uint16_t member);
/* Tells a member what is known of a directory. 0 or a fatal -errno. */
int migration_send_record(struct shuntd *, const struct home_dir *, uint16_t member);
