/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* RESERVE, ADOPT, LOOKUP, VANISHED: what is there, and what may come. */

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "prefetch/prefetch.h"
#include "membership/migration.h"
#include "membership/route.h"
#include "ops/ops.h"

/* The flight on a request's first name, if somebody of this node is at work on it. */
static struct flight *busy(struct shuntd *shuntd, const struct message *message)
{
    return flight_find(shuntd->home, message->dir[0], message->name[0], message->name_length[0]);
}

/* Begins a flight on it, once nobody else of this node has one. NULL: *how is what to return. */
static struct flight *begin(struct shuntd *shuntd, const struct listen_request *request, enum flight_kind kind,
                            struct message *answer, int *how)
{
    const struct message *message = &request->message;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, how);
    if (dir == NULL)
        return NULL;
    struct flight *flight = busy(shuntd, message);
    if (flight != NULL) {
        *how = serve_park(shuntd, &flight->waiting, request);
        return NULL;
    }
    flight = flight_begin(shuntd, kind, dir, message->name[0], message->name_length[0], request);
    *how = flight != NULL ? SERVE_PARKED : -ENOMEM;
    return flight;
}

static int tell_and_end(struct shuntd *shuntd, struct flight *flight, const struct name_answer *answer)
{
    int code = answer->result == MESSAGE_EXISTS || answer->result == 0
                   ? serve_tell_place(shuntd, flight, &answer->entry, answer->result)
                   : serve_tell_result(shuntd, flight, answer->result);
    flight_end(shuntd, flight);
    return code;
}

int serve_birth_begins(struct shuntd *shuntd, struct flight *flight)
{
    shuntd->counts.births++;
    shuntd->counts.redirected += flight->place.branch != 0;
    flight->dir->share.births++;
    int code = flight->place.branch != 0 ? flight_touch(shuntd, flight) : 0;
    return code == 0 ? ahead_follow(shuntd, flight) : code;
}

static int reserved(struct shuntd *shuntd, struct flight *flight, const struct name_answer *answer)
{
    if (answer->result != 0)
        return tell_and_end(shuntd, flight, answer);
    if (flight->place.branch != 0 && flight->lost != flight->dir->share.lost)
        return serve_restart(shuntd, flight); /* the leaf went meanwhile */
    int code = serve_birth_begins(shuntd, flight);
    return code == 0 ? serve_tell_place(shuntd, flight, &flight->place, 0) : code;
}

int serve_reserve(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    struct record_entry entry = {.type = message->entry[0].type, .state = RECORD_PENDING};
    const bool moves = entry.type == DT_REG && !(message->flags & MESSAGE_TRUNK);
    bool claimed = false;
    int how;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    int code = ahead_claim(shuntd, request, FLIGHT_BIRTH, moves && serve_redirects(shuntd, dir), &claimed);
    if (code != 0 || claimed)
        return serve_silently(code);
    if (moves && busy(shuntd, message) == NULL)
        code = serve_choose(shuntd, dir, message->name[0], message->name_length[0], request->client, &entry);
    if (code != 0)
        return code == -EAGAIN ? serve_park(shuntd, &dir->waiting, request) : code;
    struct flight *flight = begin(shuntd, request, FLIGHT_BIRTH, answer, &how);
    if (flight == NULL)
        return how;
    flight->place = entry;
    flight->lost = dir->share.lost;
    code = entry.branch != 0 ? flight_count_in_leaf(flight) : 0;
    return code != 0 ? code : serve_silently(serve_ask(shuntd, flight, NAME_RESERVE, 0, &entry, reserved));
}

/* What is at an entry's place: 0 or -errno. */
static int look(const struct shuntd *shuntd, const struct flight *flight, const struct record_entry *entry, struct statx *stat)
{
    char path[PATH_MAX];
    int code = serve_path(shuntd, flight->dir, entry, flight->name, flight->length, path);
    return code == 0 ? sys_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO, stat) : code;
}

/* Is the directory where it was last seen? A native rename may have moved it. */
static bool is_in_place(const struct shuntd *shuntd, const struct home_dir *dir)
{
    const struct record_entry trunk = {.branch = 0};
    struct statx stat;
    char path[PATH_MAX];
    return serve_path(shuntd, dir, &trunk, ".", 1, path) == 0 &&
           sys_statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &stat) == 0 && dirid_equal(dirid_of(&stat), dir->id);
}

/* Between the call that found it and this word of it, it may have been removed again. The name is held, so what
 * the disk says now holds. */
static int adopt(struct shuntd *shuntd, struct flight *flight)
{
    struct record_entry found = {.type = flight->place.type, .state = RECORD_LIVE, .ino = flight->place.ino};
    struct statx stat;
    if (!BROKEN("adopt-unseen")) {
        if (look(shuntd, flight, &found, &stat) != 0) {
            int result = is_in_place(shuntd, flight->dir) ? MESSAGE_ABSENT : MESSAGE_NOT_LOADED;
            int code = serve_tell_result(shuntd, flight, result);
            return code == 0 ? serve_end(shuntd, flight, NULL) : code;
        }
        found.type = (uint8_t)(stat.stx_mode >> 12 & 15);
        found.ino = stat.stx_ino;
    }
    int code = serve_tell_place(shuntd, flight, &found, 0);
    return code == 0 ? serve_end(shuntd, flight, &found) : code;
}

static int held_for_adoption(struct shuntd *shuntd, struct flight *flight, const struct name_answer *answer)
{
    if (answer->result == MESSAGE_ABSENT)
        return adopt(shuntd, flight);
    if (answer->result < 0)
        return tell_and_end(shuntd, flight, answer);
    int code = serve_tell_place(shuntd, flight, &flight->before, MESSAGE_EXISTS);
    return code == 0 ? serve_release(shuntd, flight) : code;
}

int serve_adopt(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    int how;
    struct flight *flight = begin(shuntd, request, FLIGHT_ADOPTION, answer, &how);
    if (flight == NULL)
        return how;
    flight->place = request->message.entry[0];
    return serve_silently(serve_ask(shuntd, flight, NAME_HOLD, NAME_ANYHOW, NULL, held_for_adoption));
}

static bool is_at_home(const struct shuntd *shuntd, const struct home_dir *dir, const struct message *message)
{
    uint32_t shard = record_shard(message->dir[0], record_hash(message->name[0], message->name_length[0]));
    return dir->whole != 0 || move_is_here(shuntd, shard);
}

static int tell_found(struct shuntd *shuntd, const struct home_dir *dir, const struct listen_request *request,
                      const struct name_answer *found)
{
    struct message reply = {.type = MESSAGE_ANSWER, .result = found->result};
    char place[SERVE_PLACE_MAX];
    if (found->result == MESSAGE_EXISTS) {
        reply.entry[0] = found->entry;
        serve_place(shuntd, dir, &found->entry, place, &reply, 0);
    }
    return serve_silently(serve_answer(shuntd, request, &reply));
}

static uint16_t peeks(const struct message *lookup)
{
    return lookup->flags & MESSAGE_PEEK ? NAME_PEEK : 0;
}

/* What nobody holds, and this daemon decides about, is told without a flight. SERVE_SILENT: it was; SERVE_PARKED: it takes a
 * flight; or a fatal -errno. */
static int look_up_here(struct shuntd *shuntd, const struct home_dir *dir, const struct listen_request *request)
{
    const struct message *message = &request->message;
    const struct name_question question = {.op = NAME_LOOKUP,
                                           .flags = NAME_TRY | peeks(message),
                                           .member = shuntd->me.number,
                                           .dir = dir->id,
                                           .name = message->name[0],
                                           .length = message->name_length[0]};
    struct name_answer found;
    if (dir->sealed || !is_at_home(shuntd, dir, message))
        return SERVE_PARKED;
    int code = home_ask(shuntd, &question, &found);
    if (code != 0 || (found.result != MESSAGE_EXISTS && found.result != MESSAGE_ABSENT))
        return code != 0 ? code : SERVE_PARKED;
    return tell_found(shuntd, dir, request, &found);
}

int serve_lookup(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    int how;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct flight *flight = busy(shuntd, message);
    if (flight != NULL && ahead_knows(flight)) {
        const struct name_answer found = ahead_answer(flight);
        return tell_found(shuntd, dir, request, &found);
    }
    if (flight != NULL && !(message->flags & MESSAGE_PEEK) && !BROKEN("absent-while-pending"))
        return serve_park(shuntd, &flight->waiting, request);
    how = look_up_here(shuntd, dir, request);
    if (how != SERVE_PARKED)
        return how;
    flight = flight_begin(shuntd, FLIGHT_LOOKUP, dir, message->name[0], message->name_length[0], request);
    return flight != NULL ? serve_silently(serve_ask(shuntd, flight, NAME_LOOKUP, peeks(message), NULL, tell_and_end))
                          : -ENOMEM;
}

/* A process of this node found it in the index, without a question: a file, or that it may be made. */
int serve_looked(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct record_entry *entry = &request->message.entry[0];
    struct home_dir *dir = home_dir_find(shuntd->home, request->message.dir[0]);
    int code = 0;
    if (dir == NULL || entry->branch > shuntd->root.branch_count)
        return SERVE_SILENT;
    if (entry->state == RECORD_PENDING)
        code = home_looked_for(shuntd->home, dir->id, request->message.name[0], request->message.name_length[0]);
    return serve_silently(code != 0 ? code : home_looked_into(shuntd, dir, entry, shuntd->me.number));
}

/* An entry is taken off only if the disk agrees: an inode number may have come again at the same place, and
 * the call that found nothing may have missed something else, as where a link leads. */
static bool is_still_there(const struct shuntd *shuntd, const struct flight *flight)
{
    struct statx stat;
    return look(shuntd, flight, &flight->before, &stat) == 0;
}

/* The name is held: nobody makes a file at that place meanwhile. */
static int vanished(struct shuntd *shuntd, struct flight *flight, const struct name_answer *answer)
{
    bool there = answer->result == MESSAGE_EXISTS;
    bool stays = there && (!record_same(&flight->before, &flight->place) || is_still_there(shuntd, flight));
    int code = serve_tell_result(shuntd, flight, !there ? MESSAGE_ABSENT : stays ? MESSAGE_CHANGED : 0);
    int ended = serve_end(shuntd, flight, stays ? &flight->before : NULL);
    return code != 0 ? code : ended;
}

int serve_vanished(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    int how;
    struct flight *flight = begin(shuntd, request, FLIGHT_VANISHED, answer, &how);
    if (flight == NULL)
        return how;
    flight->place = request->message.entry[0];
    return serve_silently(serve_ask(shuntd, flight, NAME_HOLD, 0, NULL, vanished));
}
