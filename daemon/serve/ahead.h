/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Names that are reserved before anybody asks for them.
 *
 * A process that makes ckpt.0001, ckpt.0002, ckpt.0003, ckpt.0004 will make ckpt.0005. Where another daemon is home of
 * that, its daemon reserves it meanwhile: of several names in one frame, and when their maker asks, he is answered here. So
 * such a create waits for no network, as a file that is read in order is read ahead.
 *
 * To its home this is a name that is reserved and not made yet (FLIGHT_AHEAD here), and each rule about those holds: it is
 * pending in the index, so it is nowhere told to be there, nor to be absent without a look; who asks for it waits for its
 * end, and the home tells so (NEWS_AWAITED), on which it is given back, unless its maker has asked by then. It is also given
 * back where another process of this node asks for it; where its file would go elsewhere by now; when its maker has not
 * asked for a tick; and when this daemon ends. What is given back was never made: nothing is to be looked for on disk. And
 * whose names were foreseen wrongly has to make more of them in a row the next time. */

#include "home/home.h"
#include "listen/listen.h"
#include "shuntd.h"

int ahead_create(struct ahead **);
void ahead_destroy(struct ahead *);

/* A process of this node was told that it may make that name: what it will make next, if that can be foreseen, and goes to a
 * branch, is reserved. 0 or a fatal -errno. */
int ahead_follow(struct shuntd *, const struct flight *made);
/* Nothing that is only reserved ahead stands in the way of a request but for RESERVE, which asks for itself. 0 or a fatal
 * -errno. */
int ahead_make_way(struct shuntd *, const struct message *);
/* It is given back. 0 or a fatal -errno. */
int ahead_give_back(struct shuntd *, struct flight *);
/* With each tick: those that nobody has asked for since the last one are given back; all, when this daemon is to end. 0
 * or a fatal -errno. */
int ahead_tick(struct shuntd *);
