/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* CONFIRM, WITHDRAW, GONE, and what a client that died has left: how a flight ended. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "prefetch/prefetch.h"
#include "coordinator/coordinator.h"
#include "ops/ops.h"

/* Leaves are counted by what this node's processes do, in its own branch. */
static int count_leaf(const struct shuntd *shuntd, struct home_dir *dir, const struct record_entry *entry, int32_t change)
{
    return entry->branch != 0 && entry->branch == shuntd->branch ? home_leaf_count(&dir->share, entry->leaf, change) : 0;
}

/* A directory that was born in this session need not be listed, since it is empty; unless it is too deep. */
static int born_directory(struct shuntd *shuntd, const struct flight *flight, struct dirid child)
{
    char path[PATH_MAX];
    const char *parent = strcmp(flight->dir->path, ".") == 0 ? "" : flight->dir->path;
    int length = snprintf(path, sizeof path, "%s%s%.*s", parent, *parent != '\0' ? "/" : "", flight->length, flight->name);
    return layout_is_in_reach(strlen(shuntd->root.path) + 1 + (size_t)length) ? rule_born(shuntd, child, path) : 0;
}

static int ended_birth(struct shuntd *shuntd, struct flight *flight, const struct record_entry *made, struct dirid child)
{
    struct record_entry entry = flight->place;
    entry.type = made->type != 0 ? made->type : entry.type;
    entry.ino = made->ino;
    int code = flight->had_before || flight->counted ? 0 : count_leaf(shuntd, flight->dir, &entry, 1);
    flight->counted = false;
    if (code == 0 && entry.type == DT_DIR && child.ino != 0)
        code = born_directory(shuntd, flight, child);
    return code == 0 ? serve_end(shuntd, flight, &entry) : code;
}

static int ended_removal(struct shuntd *shuntd, struct flight *flight)
{
    int code = count_leaf(shuntd, flight->dir, &flight->before, -1);
    return code == 0 ? serve_end(shuntd, flight, NULL) : code;
}

static int ended_close(struct shuntd *shuntd, struct flight *flight)
{
    int code = rule_drop(shuntd, flight->child);
    return code == 0 ? serve_end(shuntd, flight, NULL) : code;
}

static int ended_promotion(struct shuntd *shuntd, struct flight *flight)
{
    int code = count_leaf(shuntd, flight->dir, &flight->before, -1);
    return code == 0 ? serve_end(shuntd, flight, &flight->place) : code;
}

int serve_ended_well(struct shuntd *shuntd, struct flight *flight, const struct record_entry *made, struct dirid child)
{
    switch (flight->kind) {
    case FLIGHT_BIRTH:
        return ended_birth(shuntd, flight, made, child);
    case FLIGHT_TO:
        return ended_birth(shuntd, flight, made, (struct dirid){0, 0});
    case FLIGHT_REMOVAL:
    case FLIGHT_FROM:
        return ended_removal(shuntd, flight);
    case FLIGHT_CLOSE:
        return ended_close(shuntd, flight);
    case FLIGHT_PROMOTION:
        return ended_promotion(shuntd, flight);
    default: /* questions, which end with their answer */
        return serve_release(shuntd, flight);
    }
}

int serve_ended_badly(struct shuntd *shuntd, struct flight *flight)
{
    int code = flight_untouch(shuntd, flight);
    if (code == 0 && flight->sealed)
        code = rule_unseal(shuntd, flight->child);
    return code == 0 ? serve_end(shuntd, flight, flight->had_before ? &flight->before : NULL) : code;
}

/* What lies at an entry's place: 0, -ENOENT or another -errno. */
static int look(const struct shuntd *shuntd, const struct flight *flight, const struct record_entry *entry, struct statx *stat)
{
    char path[PATH_MAX];
    int code = serve_path(shuntd, flight->dir, entry, flight->name, flight->length, path);
    return code == 0 ? sys_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO | STATX_BTIME, stat) : code;
}

static int settle_pair(struct shuntd *shuntd, struct flight *flight)
{
    struct flight *from = flight->kind == FLIGHT_FROM ? flight : flight->partner;
    struct flight *to = from->partner;
    struct statx stat;
    struct message renamed = {.type = MESSAGE_RENAMED, .result = -ECANCELED};
    if (look(shuntd, to, &to->place, &stat) == 0 && stat.stx_ino == from->before.ino)
        renamed.result = 0;
    return serve_ended_pair(shuntd, from, to, &renamed);
}

/* What is on disk decides. A birth that is there happened; a removal whose file is still there did not; where
 * another file is there, it took the name over. A promotion has happened where that very file is. */
int serve_settle_by_disk(struct shuntd *shuntd, struct flight *flight)
{
    struct record_entry made = {0};
    struct statx stat;
    if (flight->partner != NULL)
        return settle_pair(shuntd, flight);
    int there = look(shuntd, flight, &flight->place, &stat);
    if (there == 0) {
        made.type = (uint8_t)(stat.stx_mode >> 12 & 15);
        made.ino = stat.stx_ino;
    }
    bool another = there == 0 && made.ino != flight->before.ino;
    if (another && flight->kind == FLIGHT_PROMOTION)
        return serve_ended_badly(shuntd, flight);
    if (another && flight->kind == FLIGHT_REMOVAL)
        flight->kind = FLIGHT_BIRTH;
    bool removing = flight->kind == FLIGHT_REMOVAL || flight->kind == FLIGHT_CLOSE;
    if ((there == 0) == !removing)
        return serve_ended_well(shuntd, flight, &made, there == 0 ? dirid_of(&stat) : (struct dirid){0, 0});
    return serve_ended_badly(shuntd, flight);
}

/* Its client was not told yet that it may begin: there is nothing to look for. */
static bool has_not_begun(struct flight *flight)
{
    struct flight *partner = flight->partner;
    if (!flight_is_asking(flight) && (partner == NULL || !flight_is_asking(partner)))
        return false;
    flight->abandoned = true;
    if (partner != NULL)
        partner->abandoned = true;
    return true;
}

int serve_settle_client(struct shuntd *shuntd, uint64_t client)
{
    int code = client != 0 ? ahead_ends(shuntd, client) : 0;
    for (struct flight *flight; code == 0 && (flight = flight_of_client(shuntd, client)) != NULL && !BROKEN("no-settle");)
        if (!has_not_begun(flight))
            code = serve_settle_by_disk(shuntd, flight);
    return code;
}

static int settle_held(struct shuntd *shuntd, struct name_question *end)
{
    const struct home_dir *dir = home_dir_find(shuntd->home, end->dir);
    struct record_entry entry;
    struct name_answer unused;
    struct statx stat;
    char path[PATH_MAX];
    int code = index_get_entry(shuntd->index, end->dir, end->name, end->length, &entry);
    if (code != 0 && code != -ENOENT)
        return code;
    if (code == 0 && serve_path(shuntd, dir, &entry, end->name, end->length, path) == 0 &&
        sys_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO, &stat) == 0) {
        end->entry = entry;
        end->entry.state = RECORD_LIVE;
        end->entry.type = (uint8_t)(stat.stx_mode >> 12 & 15);
        end->entry.ino = stat.stx_ino;
    }
    return home_ask(shuntd, end, &unused);
}

int serve_settle_member(struct shuntd *shuntd, uint16_t member)
{
    struct name_question end;
    int code = 0;
    while (code == 0 && home_held_by(shuntd->home, member, &end))
        code = settle_held(shuntd, &end);
    return code;
}

/* What a notice is about: a flight of its sender's, which was told that it may begin. */
static struct flight *mine(struct shuntd *shuntd, const struct listen_request *request)
{
    const struct message *m = &request->message;
    struct flight *flight = flight_of(shuntd->home, m->dir[0], m->name[0], m->name_length[0], request->client);
    return flight != NULL && !flight_is_asking(flight) ? flight : NULL;
}

int serve_confirm(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct flight *flight = mine(shuntd, request);
    if (flight == NULL || flight->partner != NULL || flight->kind == FLIGHT_CLOSE)
        return SERVE_SILENT;
    if (flight->kind == FLIGHT_REMOVAL)
        flight->kind = FLIGHT_BIRTH; /* a file from outside the root took its place: another birth, at the same place */
    int code = serve_ended_well(shuntd, flight, &request->message.entry[0], request->message.child);
    return code == 0 ? SERVE_SILENT : code;
}

int serve_withdraw(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct flight *flight = mine(shuntd, request);
    if (flight == NULL || flight->partner != NULL)
        return request->message.tag != 0 ? SERVE_ANSWER : SERVE_SILENT;
    bool sealed = flight->sealed;
    struct dirid child = flight->child;
    flight->sealed = false;
    int code = serve_ended_badly(shuntd, flight);
    if (code == 0 && sealed)
        return rule_unseal_for(shuntd, child, request);
    return code != 0 ? code : request->message.tag != 0 ? SERVE_ANSWER : SERVE_SILENT;
}

int serve_gone(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    static const struct record_entry nothing;
    struct flight *flight = mine(shuntd, request);
    if (flight == NULL || (flight->kind != FLIGHT_REMOVAL && flight->kind != FLIGHT_CLOSE))
        return SERVE_SILENT;
    int code = serve_ended_well(shuntd, flight, &nothing, (struct dirid){0, 0});
    return code == 0 ? SERVE_SILENT : code;
}
