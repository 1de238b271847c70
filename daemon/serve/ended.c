/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* CONFIRM, WITHDRAW, GONE, and what a client that died has left: how a flight ended. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "serve/serve.h"

/* Of a node that does nothing in the directory the leaves are not counted. */
static int count_leaf(struct home_dir *dir, const struct record_entry *entry, int32_t change)
{
    struct home_share *share = dir->shares;
    while (share != NULL && share->branch != entry->branch)
        share = share->next;
    return share != NULL && entry->branch != 0 ? home_leaf_count(share, entry->leaf, change) : 0;
}

/* A directory that was born in this session is loaded when it is born, since it is empty; unless it is too
 * deep. */
static int born_directory(struct shuntd *shuntd, const struct flight *flight, struct dirid child)
{
    char path[PATH_MAX];
    const char *parent = strcmp(flight->dir->path, ".") == 0 ? "" : flight->dir->path;
    int length = snprintf(path, sizeof path, "%s%s%.*s", parent, *parent != '\0' ? "/" : "", flight->length,
                          flight->name);
    if (!layout_is_in_reach(strlen(shuntd->root.path) + 1 + (size_t)length) ||
        home_dir_find(shuntd->home, child) != NULL)
        return 0;
    struct home_dir *dir = home_dir_add(shuntd->home, child, path);
    if (dir == NULL)
        return -ENOMEM;
    dir->record = (struct record_dir){.flags = RECORD_LOADED};
    return home_dir_store(shuntd, dir);
}

static int put_live(struct shuntd *shuntd, const struct flight *flight, const struct record_entry *entry)
{
    struct record_entry live = *entry;
    live.state = RECORD_LIVE;
    return index_put_entry(shuntd->index, flight->dir->id, flight->name, flight->length, &live);
}

static int ended_birth(struct shuntd *shuntd, struct flight *flight, const struct record_entry *made,
                       struct dirid child)
{
    struct record_entry entry = flight->place;
    entry.type = made->type != 0 ? made->type : entry.type;
    entry.ino = made->ino;
    int code = put_live(shuntd, flight, &entry);
    if (code == 0 && !flight->had_before)
        code = count_leaf(flight->dir, &entry, 1);
    if (code == 0 && entry.type == DT_DIR && child.ino != 0)
        code = born_directory(shuntd, flight, child);
    return code;
}

static int ended_removal(struct shuntd *shuntd, struct flight *flight)
{
    int code = index_del_entry(shuntd->index, flight->dir->id, flight->name, flight->length);
    return code == 0 ? count_leaf(flight->dir, &flight->before, -1) : code;
}

static int ended_close(struct shuntd *shuntd, struct flight *flight)
{
    struct home_dir *child = flight->child;
    int code = index_del_entry(shuntd->index, flight->dir->id, flight->name, flight->length);
    if (code == 0)
        code = index_del_dir(shuntd->index, child->id);
    home_dir_drop(shuntd->home, child);
    return code;
}

static int ended_promotion(struct shuntd *shuntd, struct flight *flight)
{
    int code = put_live(shuntd, flight, &flight->place);
    return code == 0 ? count_leaf(flight->dir, &flight->before, -1) : code;
}

int serve_ended_well(struct shuntd *shuntd, struct flight *flight, const struct record_entry *made,
                     struct dirid child)
{
    int code = 0;
    switch (flight->kind) {
    case FLIGHT_BIRTH:
        code = ended_birth(shuntd, flight, made, child);
        break;
    case FLIGHT_REMOVAL:
    case FLIGHT_FROM:
        code = ended_removal(shuntd, flight);
        break;
    case FLIGHT_TO:
        code = ended_birth(shuntd, flight, made, (struct dirid){0, 0});
        break;
    case FLIGHT_CLOSE:
        code = ended_close(shuntd, flight);
        break;
    case FLIGHT_PROMOTION:
        code = ended_promotion(shuntd, flight);
        break;
    }
    flight_end(shuntd, flight);
    return code;
}

int serve_ended_badly(struct shuntd *shuntd, struct flight *flight)
{
    int code = flight->had_before
                   ? put_live(shuntd, flight, &flight->before)
                   : index_del_entry(shuntd->index, flight->dir->id, flight->name, flight->length);
    if (code == 0)
        code = flight_untouch(shuntd, flight);
    if (flight->kind == FLIGHT_CLOSE) {
        flight->child->closing = false;
        home_wake(shuntd->home, &flight->child->waiting);
    }
    flight_end(shuntd, flight);
    return code;
}

/* What lies at an entry's place: 0, -ENOENT or another -errno. */
static int look(const struct shuntd *shuntd, const struct flight *flight, const struct record_entry *entry,
                struct statx *stat)
{
    char path[PATH_MAX];
    int code = serve_path(shuntd, flight->dir, entry, flight->name, flight->length, path);
    return code == 0
               ? sys_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO | STATX_BTIME, stat)
               : code;
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

int serve_settle_client(struct shuntd *shuntd, uint64_t client)
{
    int code = 0;
    for (struct flight *flight;
         code == 0 && (flight = flight_of_client(shuntd, client)) != NULL && !BROKEN("no-settle");)
        code = serve_settle_by_disk(shuntd, flight);
    return code;
}

static struct flight *mine(struct shuntd *shuntd, const struct listen_request *request)
{
    const struct message *m = &request->message;
    return flight_of(shuntd->home, m->dir[0], m->name[0], m->name_length[0], request->client);
}

int serve_confirm(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct flight *flight = mine(shuntd, request);
    if (flight == NULL || flight->partner != NULL || flight->kind == FLIGHT_CLOSE)
        return SERVE_SILENT;
    if (flight->kind == FLIGHT_REMOVAL)
        flight->kind =
            FLIGHT_BIRTH; /* a file from outside the root took its place: another birth, at the same place */
    int code = serve_ended_well(shuntd, flight, &request->message.entry[0], request->message.child);
    return code == 0 ? SERVE_SILENT : code;
}

int serve_withdraw(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct flight *flight = mine(shuntd, request);
    int code = flight == NULL || flight->partner != NULL ? 0 : serve_ended_badly(shuntd, flight);
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
