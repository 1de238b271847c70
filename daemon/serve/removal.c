/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* REMOVE, PROMOTE: a name is held while its owner takes the file away or to another place. */

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "serve/serve.h"

/* What both have in common: the name is there, and now it is this client's to work on. `entry` is what the
 * index says. NULL: *how is what to return. */
static struct flight *hold(struct shuntd *shuntd, enum flight_kind kind, const struct listen_request *request,
                           struct record_entry *entry, struct message *answer, int *how)
{
    const struct message *message = &request->message;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, how);
    if (dir == NULL)
        return NULL;
    struct flight *busy = flight_find(shuntd->home, dir->id, message->name[0], message->name_length[0]);
    if (busy != NULL) {
        *how = serve_park(shuntd, &busy->waiting, request);
        return NULL;
    }
    int code = index_get_entry(shuntd->index, dir->id, message->name[0], message->name_length[0], entry);
    if (code != 0) {
        answer->result = MESSAGE_ABSENT;
        *how = code == -ENOENT ? SERVE_ANSWER : code;
        return NULL;
    }
    struct flight *flight =
        flight_begin(shuntd, kind, dir, message->name[0], message->name_length[0], request);
    *how = -ENOMEM;
    if (flight == NULL)
        return NULL;
    flight->had_before = true;
    flight->before = flight->place = *entry;
    return flight;
}

static int answer_with_place(struct shuntd *shuntd, const struct listen_request *request,
                             const struct flight *flight, struct message *answer)
{
    char place[SERVE_PLACE_MAX];
    answer->entry[0] = flight->before;
    serve_place(shuntd, flight->dir, &flight->before, place, answer, 0);
    int code = serve_answer(shuntd, request, answer);
    return code == 0 ? SERVE_SILENT : code;
}

int serve_remove(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct record_entry entry;
    int how;
    struct flight *flight = hold(shuntd, FLIGHT_REMOVAL, request, &entry, answer, &how);
    if (flight == NULL)
        return how;
    entry.state = RECORD_DYING;
    int code = index_put_entry(shuntd->index, flight->dir->id, flight->name, flight->length, &entry);
    if (code == 0 && entry.branch != 0)
        code = flight_touch(shuntd, flight);
    shuntd->counts.removals++;
    return code == 0 ? answer_with_place(shuntd, request, flight, answer) : code;
}

int serve_promote(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct record_entry entry;
    int how;
    struct flight *flight = hold(shuntd, FLIGHT_PROMOTION, request, &entry, answer, &how);
    if (flight == NULL)
        return how;
    flight->place.branch = 0;
    flight->place.leaf = 0;
    return answer_with_place(shuntd, request, flight, answer);
}
