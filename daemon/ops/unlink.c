/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* REMOVE, PROMOTE: a name is held while its owner takes the file away or to another place. */

#include <errno.h>

#include "prefetch/prefetch.h"
#include "ops/ops.h"

static int nothing_there(struct shuntd *shuntd, struct flight *flight)
{
    int code = serve_tell_result(shuntd, flight, MESSAGE_ABSENT);
    flight_end(shuntd, flight);
    return code;
}

int serve_removal_begins(struct shuntd *shuntd, struct flight *flight)
{
    flight->place = flight->before;
    shuntd->counts.removals++;
    int code = flight->before.branch != 0 ? flight_touch(shuntd, flight) : 0;
    if (code == 0 && flight->foreseen) /* to its home that was no look yet */
        code = home_looked_into(shuntd, flight->dir, &flight->before, shuntd->me.number);
    return code == 0 ? ahead_follow(shuntd, flight) : code;
}

/* The name is there, and now it is this client's to work on. */
static int held(struct shuntd *shuntd, struct flight *flight, const struct name_answer *answer)
{
    int code = 0;
    if (answer->result == MESSAGE_ABSENT)
        return nothing_there(shuntd, flight);
    if (flight->kind == FLIGHT_REMOVAL) {
        code = serve_removal_begins(shuntd, flight);
    } else {
        flight->place = flight->before;
        flight->place.branch = 0;
        flight->place.leaf = 0;
    }
    return code == 0 ? serve_tell_place(shuntd, flight, &flight->before, 0) : code;
}

static int hold(struct shuntd *shuntd, enum flight_kind kind, const struct listen_request *request,
                const struct record_entry *meanwhile, struct message *answer)
{
    const struct message *message = &request->message;
    bool claimed = false;
    int how, code = 0;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    if (kind == FLIGHT_REMOVAL)
        code = ahead_claim(shuntd, request, kind, true, &claimed);
    if (code != 0 || claimed)
        return serve_silently(code);
    struct flight *flight = flight_find(shuntd->home, dir->id, message->name[0], message->name_length[0]);
    if (flight != NULL)
        return serve_park(shuntd, &flight->waiting, request);
    flight = flight_begin(shuntd, kind, dir, message->name[0], message->name_length[0], request);
    return serve_silently(flight != NULL ? serve_ask(shuntd, flight, NAME_HOLD, 0, meanwhile, held) : -ENOMEM);
}

int serve_remove(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    static const struct record_entry dying = {.state = RECORD_DYING};
    return hold(shuntd, FLIGHT_REMOVAL, request, &dying, answer);
}

int serve_promote(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    return hold(shuntd, FLIGHT_PROMOTION, request, NULL, answer);
}
