/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* RENAME and RENAMED: two names, held at once.
 *
 * The file goes to the place of what it replaces, whoever's branch that is: one rename of the file system,
 * and no moment with two copies. Onto no name it stays in its leaf if the directory stays the same and nobody
 * waits for its events, else it goes where births of the other directory go; a file of the trunk stays in the
 * trunk. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hook.h"
#include "serve/serve.h"

struct two {
    struct home_dir *dir[2];
    struct record_entry entry[2];
    bool there[2];
};

/* Both directories and what the index says of both names; SERVE_ANSWER (0) and answer->result == 0 to go on.
 */
static int find_two(struct shuntd *shuntd, const struct listen_request *request, struct two *two,
                    struct message *answer)
{
    const struct message *message = &request->message;
    int how = SERVE_ANSWER;
    for (int i = 0; i < 2; i++) {
        two->dir[i] = serve_dir(shuntd, request, i, answer, &how);
        if (two->dir[i] == NULL)
            return how;
        struct flight *busy =
            flight_find(shuntd->home, message->dir[i], message->name[i], message->name_length[i]);
        if (busy != NULL)
            return serve_park(shuntd, &busy->waiting, request);
    }
    for (int i = 0; i < 2; i++) {
        int code = index_get_entry(shuntd->index, message->dir[i], message->name[i], message->name_length[i],
                                   &two->entry[i]);
        if (code != 0 && code != -ENOENT)
            return code;
        two->there[i] = code == 0;
    }
    return SERVE_ANSWER;
}

/* Where the old name's file will be. 0, -EAGAIN: a leaf is being made; or a fatal -errno. */
static int choose(struct shuntd *shuntd, const struct listen_request *request, const struct two *two,
                  struct record_entry *place)
{
    const struct message *message = &request->message;
    *place = two->entry[0];
    place->branch = 0;
    place->leaf = 0;
    if (two->there[1] && !BROKEN("victims-place"))
        *place = two->entry[1];
    else if (two->dir[0] == two->dir[1] && two->dir[1]->record.why != RECORD_WHY_WATCHED)
        *place = two->entry[0];
    else if (two->entry[0].branch != 0 && !(message->flags & MESSAGE_TRUNK))
        return serve_choose(shuntd, two->dir[1], message->name[1], message->name_length[1], request->client,
                            place);
    return 0;
}

static struct flight *begin(struct shuntd *shuntd, enum flight_kind kind,
                            const struct listen_request *request, const struct two *two, int i)
{
    const struct message *message = &request->message;
    struct flight *flight =
        flight_begin(shuntd, kind, two->dir[i], message->name[i], message->name_length[i], request);
    if (flight == NULL)
        return NULL;
    flight->had_before = two->there[i];
    flight->before = flight->place = two->entry[i];
    flight->exchange = (message->flags & MESSAGE_EXCHANGE) != 0;
    return flight;
}

/* Readers meet the old name as dying and a new one as pending. So is a name that is replaced, or exchanged,
 * but in its old place: there is a file there at every moment, and which one it is, is to be looked at. */
static int tell_index(struct shuntd *shuntd, struct flight *from, struct flight *to)
{
    struct record_entry dying = from->before, pending = to->place;
    dying.state = RECORD_DYING;
    if (from->exchange)
        dying.state = RECORD_PENDING;
    pending.state = RECORD_PENDING;
    if (!to->had_before) {
        pending.type = from->before.type;
        pending.ino = 0;
    }
    int code = index_put_entry(shuntd->index, from->dir->id, from->name, from->length, &dying);
    if (code == 0)
        code = index_put_entry(shuntd->index, to->dir->id, to->name, to->length, &pending);
    if (code == 0 && from->before.branch != 0)
        code = flight_touch(shuntd, from);
    if (code == 0 && to->place.branch != 0)
        code = flight_touch(shuntd, to);
    return code;
}

static int hold(struct shuntd *shuntd, const struct listen_request *request, struct two *two,
                const struct record_entry *place, struct message *answer)
{
    char places[2][SERVE_PLACE_MAX];
    struct flight *from = begin(shuntd, FLIGHT_FROM, request, two, 0);
    struct flight *to = from != NULL ? begin(shuntd, FLIGHT_TO, request, two, 1) : NULL;
    if (to == NULL)
        return -ENOMEM;
    from->partner = to;
    to->partner = from;
    to->place = *place;
    int code = tell_index(shuntd, from, to);
    if (code != 0)
        return code;
    shuntd->counts.renames++;
    answer->result = two->there[1] ? MESSAGE_EXISTS : 0;
    answer->entry[0] = two->entry[0];
    answer->entry[1] = *place;
    serve_place(shuntd, two->dir[0], &two->entry[0], places[0], answer, 0);
    serve_place(shuntd, two->dir[1], place, places[1], answer, 1);
    code = serve_answer(shuntd, request, answer);
    return code == 0 ? SERVE_SILENT : code;
}

int serve_rename(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct two two;
    struct record_entry place;
    int how = find_two(shuntd, request, &two, answer);
    if (how != SERVE_ANSWER || answer->result != 0)
        return how;
    if (!two.there[0] || (!two.there[1] && (request->message.flags & MESSAGE_EXCHANGE))) {
        answer->result = MESSAGE_ABSENT;
        return SERVE_ANSWER;
    }
    if (two.there[1] && (request->message.flags & MESSAGE_NOREPLACE)) {
        answer->result = -EEXIST;
        return SERVE_ANSWER;
    }
    if (two.there[1] && two.entry[0].ino == two.entry[1].ino) {
        answer->result = MESSAGE_SAME;
        return SERVE_ANSWER;
    }
    int code = choose(shuntd, request, &two, &place);
    if (code == -EAGAIN)
        return serve_park(shuntd, &two.dir[1]->waiting, request);
    return code == 0 ? hold(shuntd, request, &two, &place, answer) : code;
}

static void path_of(const struct flight *flight, char to[PATH_MAX])
{
    const char *parent = strcmp(flight->dir->path, ".") == 0 ? "" : flight->dir->path;
    snprintf(to, PATH_MAX, "%s%s%.*s", parent, *parent != '\0' ? "/" : "", flight->length, flight->name);
}

static void moved_directory(struct shuntd *shuntd, const struct flight *from, const struct flight *to)
{
    char old_path[PATH_MAX], new_path[PATH_MAX];
    path_of(from, old_path);
    path_of(to, new_path);
    home_dirs_moved(shuntd->home, old_path, new_path);
}

/* The directory that was replaced is no more. */
static int replaced_directory(struct shuntd *shuntd, struct dirid id)
{
    struct home_dir *dir = id.ino != 0 ? home_dir_find(shuntd->home, id) : NULL;
    if (dir == NULL || dir->working || dir->flights > 0)
        return 0;
    home_dir_drop(shuntd->home, dir);
    return index_del_dir(shuntd->index, id);
}

/* What is known of the places of directories, in three steps: the second must not meet the first's. */
static void exchanged_directories(struct shuntd *shuntd, const struct flight *from, const struct flight *to)
{
    static const char aside[] = "//"; /* no place has that name */
    char old_path[PATH_MAX], new_path[PATH_MAX];
    path_of(from, old_path);
    path_of(to, new_path);
    home_dirs_moved(shuntd->home, old_path, aside);
    home_dirs_moved(shuntd->home, new_path, old_path);
    home_dirs_moved(shuntd->home, aside, new_path);
}

/* Place stays with name; what lies there has changed hands. */
static int exchanged(struct shuntd *shuntd, struct flight *from, struct flight *to)
{
    struct record_entry first = from->before, second = to->before;
    first.type = to->before.type;
    first.ino = to->before.ino;
    second.type = from->before.type;
    second.ino = from->before.ino;
    exchanged_directories(shuntd, from, to);
    from->before = first;
    to->before = second;
    int code = serve_ended_badly(shuntd, from);
    return code == 0 ? serve_ended_badly(shuntd, to) : code;
}

int serve_ended_pair(struct shuntd *shuntd, struct flight *from, struct flight *to,
                     const struct message *renamed)
{
    struct record_entry moved = from->before;
    int code;
    if (renamed->result == 0 && from->exchange)
        return exchanged(shuntd, from, to);
    if (renamed->result != 0) {
        code = serve_ended_badly(shuntd, from);
        return code == 0 ? serve_ended_badly(shuntd, to) : code;
    }
    if (moved.type == DT_DIR) {
        moved_directory(shuntd, from, to);
        code = replaced_directory(shuntd, renamed->child);
        if (code != 0)
            return code;
    }
    code = serve_ended_well(shuntd, from, &moved, (struct dirid){0, 0});
    return code == 0 ? serve_ended_well(shuntd, to, &moved, (struct dirid){0, 0}) : code;
}

int serve_renamed(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *m = &request->message;
    struct flight *from = flight_of(shuntd->home, m->dir[0], m->name[0], m->name_length[0], request->client);
    if (from == NULL || from->kind != FLIGHT_FROM || from->partner == NULL)
        return SERVE_SILENT;
    int code = serve_ended_pair(shuntd, from, from->partner, m);
    return code == 0 ? SERVE_SILENT : code;
}
