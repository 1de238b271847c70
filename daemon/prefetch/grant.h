/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Names that were asked for ahead (ahead.h) are offered to the process that is to ask for them, in its lane (request/channel.h):
 * it takes an offer, makes or removes the file and says so there, without a question and without waking anybody.
 *
 * To this daemon an offer that was taken is a RESERVE or REMOVE that was answered at that very moment, and one that is done a
 * CONFIRM or GONE that lies in the ring: it is seen when the lane is looked at, and before anybody decides about that name.
 * What is only offered is taken back before anything happens with its flight; then it is a flight like others that are
 * `ahead`. So each rule about flights holds, if nothing is done with one that is offered before it was settled here:
 *
 * - serve() settles the names of each request;
 * - who is told that an end is awaited (NEWS_AWAITED) settles that flight, and so does who begins to give back (ahead.c);
 * - a process that ends has its offers settled before what it left is (serve_settle_client);
 * - before the times of a directory are set or asked for, all offers are seen: what was taken changed them when it was taken;
 *   and so before a status is told, a PING is answered, and this daemon ends;
 * - where births are to go elsewhere from now on, what is offered there is taken back.
 *
 * The functions answer 0 or a fatal -errno unless they say otherwise. */

#include "home/home.h"
#include "shuntd.h"

int offer_create(struct offers **);
void offer_destroy(struct offers *);

/* Offers what was foreseen of `client`, on whose lane it is, and is held. False: there is no room. */
bool offer_make(struct shuntd *, struct flight *, uint64_t client);
/* Is anything offered, or at work on what was? */
bool offer_is_any(const struct shuntd *);
/* What is in the way of the next offer in a lane; NULL: nothing. */
struct flight *offer_in_the_way(const struct shuntd *, uint32_t lane);
/* True: nobody has taken it, and nobody can any more; it is offered to nobody. */
bool offer_take_back(struct shuntd *, struct flight *);
/* The same for all that is offered on that flight's lane, and is of its kind, as far as nobody has taken it. */
void offer_take_back_like(struct shuntd *, const struct flight *last);
/* It is taken back, or its process's, or over: the flight is to be found anew. */
int offer_settle(struct shuntd *, struct flight *);
/* The same for all of a directory, or of a client (0: of all). */
int offer_settle_dir(struct shuntd *, const struct home_dir *);
int offer_settle_client(struct shuntd *, uint64_t client);
/* The same for what was taken; what was not stays offered. */
int offer_see_all(struct shuntd *);
/* ... in a lane, before what its process asks for since; or in those lanes whose processes have come by. */
int offer_see_lane(struct shuntd *, uint32_t lane);
int offer_step(struct shuntd *);
/* Its flight ends. */
void offer_over(struct shuntd *, struct flight *);
