/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* RESERVE, ADOPT, LOOKUP, VANISHED: what is there, and what may come. */

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "serve/serve.h"

/* The flight on a request's first name, if somebody is at work on it. */
static struct flight *busy(struct shuntd *shuntd, const struct message *message)
{
    return flight_find(shuntd->home, message->dir[0], message->name[0], message->name_length[0]);
}

static int get(struct shuntd *shuntd, const struct message *message, struct record_entry *entry)
{
    return index_get_entry(shuntd->index, message->dir[0], message->name[0], message->name_length[0], entry);
}

static int exists(struct shuntd *shuntd, const struct listen_request *request, struct home_dir *dir,
                  const struct record_entry *entry, struct message *answer)
{
    char place[SERVE_PLACE_MAX];
    struct home_share *owner = entry->branch != 0 && entry->branch != serve_branch(shuntd, request->client)
                                   ? home_share(dir, entry->branch)
                                   : NULL;
    if (owner != NULL)
        home_leaf_looked_into(owner, entry->leaf);
    answer->result = MESSAGE_EXISTS;
    answer->entry[0] = *entry;
    serve_place(shuntd, dir, entry, place, answer, 0);
    int code = serve_answer(shuntd, request, answer);
    return code == 0 ? SERVE_SILENT : code;
}

static int reserve(struct shuntd *shuntd, const struct listen_request *request, struct home_dir *dir,
                   struct record_entry *entry, struct message *answer)
{
    const struct message *message = &request->message;
    char place[SERVE_PLACE_MAX];
    struct flight *flight =
        flight_begin(shuntd, FLIGHT_BIRTH, dir, message->name[0], message->name_length[0], request);
    struct home_share *share = home_share(dir, serve_branch(shuntd, request->client));
    if (flight == NULL || share == NULL)
        return -ENOMEM;
    entry->type = message->entry[0].type;
    entry->state = RECORD_PENDING;
    entry->ino = 0;
    flight->place = *entry;
    int code = index_put_entry(shuntd->index, dir->id, flight->name, flight->length, entry);
    if (code == 0 && entry->branch != 0)
        code = flight_touch(shuntd, flight);
    if (code != 0)
        return code;
    shuntd->counts.births++;
    shuntd->counts.redirected += entry->branch != 0;
    share->births++;
    answer->entry[0] = *entry;
    serve_place(shuntd, dir, entry, place, answer, 0);
    code = serve_answer(shuntd, request, answer);
    return code == 0 ? SERVE_SILENT : code;
}

int serve_reserve(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    struct record_entry entry = {0};
    int how;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct flight *flight = busy(shuntd, message);
    if (flight != NULL)
        return serve_park(shuntd, &flight->waiting, request);
    int code = BROKEN("no-cas") ? -ENOENT : get(shuntd, message, &entry);
    if (code == 0)
        return exists(shuntd, request, dir, &entry, answer);
    if (code != -ENOENT)
        return code;
    code = 0;
    if (message->entry[0].type == DT_REG && !(message->flags & MESSAGE_TRUNK))
        code = serve_choose(shuntd, dir, message->name[0], message->name_length[0], request->client, &entry);
    if (code == -EAGAIN)
        return serve_park(shuntd, &dir->waiting, request);
    return code == 0 ? reserve(shuntd, request, dir, &entry, answer) : code;
}

int serve_lookup(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    struct record_entry entry;
    int how;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct flight *flight = busy(shuntd, message);
    if (flight != NULL && !BROKEN("absent-while-pending"))
        return serve_park(shuntd, &flight->waiting, request);
    int code = flight != NULL ? -ENOENT : get(shuntd, message, &entry);
    if (code == 0)
        return exists(shuntd, request, dir, &entry, answer);
    answer->result = MESSAGE_ABSENT;
    return code == -ENOENT ? SERVE_ANSWER : code;
}

/* What is at an entry's place: 0 or -errno. */
static int look(const struct shuntd *shuntd, const struct home_dir *dir, const struct record_entry *entry,
                const struct message *message, struct statx *stat)
{
    char path[PATH_MAX];
    int code = serve_path(shuntd, dir, entry, message->name[0], message->name_length[0], path);
    return code == 0 ? sys_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO, stat) : code;
}

/* Is the directory where it was last seen? A native rename may have moved it. */
static bool is_in_place(const struct shuntd *shuntd, const struct home_dir *dir)
{
    const struct record_entry trunk = {.branch = 0};
    struct statx stat;
    char path[PATH_MAX];
    return serve_path(shuntd, dir, &trunk, ".", 1, path) == 0 &&
           sys_statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &stat) == 0 &&
           dirid_equal(dirid_of(&stat), dir->id);
}

/* Between the call that found it and this word of it, it may have been removed again. Nobody is at work on
 * the name, so what the disk says now holds. */
static int adopt(struct shuntd *shuntd, const struct home_dir *dir, const struct message *message,
                 struct message *answer)
{
    struct record_entry *adopted = &answer->entry[0];
    struct statx stat;
    *adopted = (struct record_entry){
        .type = message->entry[0].type, .state = RECORD_LIVE, .ino = message->entry[0].ino};
    if (!BROKEN("adopt-unseen")) {
        if (look(shuntd, dir, adopted, message, &stat) != 0) {
            answer->result = is_in_place(shuntd, dir) ? MESSAGE_ABSENT : MESSAGE_NOT_LOADED;
            *adopted = (struct record_entry){0};
            return SERVE_ANSWER;
        }
        adopted->type = (uint8_t)(stat.stx_mode >> 12 & 15);
        adopted->ino = stat.stx_ino;
    }
    return index_put_entry(shuntd->index, dir->id, message->name[0], message->name_length[0], adopted);
}

int serve_adopt(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    struct record_entry entry;
    int how;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct flight *flight = busy(shuntd, message);
    if (flight != NULL)
        return serve_park(shuntd, &flight->waiting, request);
    int code = get(shuntd, message, &entry);
    if (code == 0)
        return exists(shuntd, request, dir, &entry, answer);
    return code == -ENOENT ? adopt(shuntd, dir, message, answer) : code;
}

/* An entry is taken off only if the disk agrees: an inode number may have come again at the same place, and
 * the call that found nothing may have missed something else, as where a link leads. */
static bool is_still_there(const struct shuntd *shuntd, const struct home_dir *dir,
                           const struct record_entry *entry, const struct message *message)
{
    struct statx stat;
    return look(shuntd, dir, entry, message, &stat) == 0;
}

int serve_vanished(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    struct record_entry entry;
    int how;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct flight *flight = busy(shuntd, message);
    if (flight != NULL)
        return serve_park(shuntd, &flight->waiting, request);
    int code = get(shuntd, message, &entry);
    if (code == -ENOENT) {
        answer->result = MESSAGE_ABSENT;
        return SERVE_ANSWER;
    }
    if (code != 0)
        return code;
    if (!record_same(&entry, &message->entry[0]) || is_still_there(shuntd, dir, &entry, message)) {
        answer->result = MESSAGE_CHANGED;
        return SERVE_ANSWER;
    }
    return index_del_entry(shuntd->index, dir->id, message->name[0], message->name_length[0]);
}
