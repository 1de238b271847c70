/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* CLOSE: a directory is about to be removed. Its ruler has all its homes sealed; if no name is left there its
 * mirrors and its marker go; then the name of the directory is held, and the client may rmdir it. GONE or WITHDRAW
 * says how that went.
 *
 * Nobody waits for anything while a directory is sealed, or two who remove and rename crosswise would wait for each
 * other: where a name is held, the seals are taken off again, and it is tried once more when the name is free. Whoever makes
 * and removes files there without a pause has one held each time: where one of them was there since the first try, the
 * directory was not empty. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sys.h"
#include "disk/disk.h"
#include "peer/peers.h"
#include "rpc/collective.h"
#include "membership/recovery.h"
#include "coordinator/coordinator.h"
#include "ops/ops.h"
#include "union/mirror.h"

/* What every daemon does. */

int cast_seal(struct shuntd *shuntd, struct cast *cast, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    if (dir == NULL)
        return 0;
    if (shuntd->route.missing == 0)
        return home_seal(shuntd, dir, message->child.ino);
    int code = home_tell_idle(shuntd->home, dir); /* names are on their way here */
    return code == 0 ? MESSAGE_BUSY : code;
}

int cast_unseal(struct shuntd *shuntd, struct cast *cast, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    return dir != NULL ? home_unseal(shuntd, dir) : 0;
}

int cast_drop(struct shuntd *shuntd, struct cast *cast, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    if (dir == NULL)
        return 0;
    int code = index_del_dir(shuntd->index, dir->id);
    home_dir_forget_times(dir);
    home_dir_drop(shuntd->home, dir);
    return code;
}

/* What the ruler does. */

struct seal {
    struct disk_job job;
    struct rule_question *question;
    struct dirid id;
    uint32_t epoch; /* of the route, when it began */
    int result;
    char mirror[RECORD_MIRROR_MAX];
    char path[PATH_MAX];
};

static void carry_out(struct disk_job *job, const struct shuntd *shuntd)
{
    struct seal *seal = (struct seal *)job;
    char branch[2 * PATH_MAX];
    int trunk = disk_open_trunk(shuntd, seal->path, seal->id);
    seal->result = trunk < 0 ? trunk : 0;
    for (size_t i = 0; i < shuntd->root.branch_count && seal->result == 0; i++) {
        snprintf(branch, sizeof branch, "%s/" LAYOUT_BRANCHES "/%s", shuntd->root.path, shuntd->root.branches[i]);
        seal->result = mirror_remove(branch, seal->mirror);
    }
    if (seal->result == 0)
        seal->result = sys_unlinkat(trunk, LAYOUT_MARKER, 0);
    if (trunk >= 0)
        sys_close(trunk);
}

/* All are sealed, and nothing is left that would stand in the way of an rmdir but what the kernel knows of. */
static int closed(struct shuntd *shuntd, void *context, const struct cast_end *end)
{
    struct seal *seal = context;
    struct home_dir *dir = home_dir_find(shuntd->home, seal->id);
    struct rule_question *question = seal->question;
    struct dirid id = seal->id;
    free(seal);
    dir->ruler->closed = true;
    dir->ruler->busy = false;
    int code = rule_result(shuntd, question, 0);
    return code == 0 ? rule_rest(shuntd, id) : code;
}

static int unsealed(struct shuntd *shuntd, void *context, const struct cast_end *end)
{
    struct seal seal = *(struct seal *)context;
    struct home_dir *dir = home_dir_find(shuntd->home, seal.id);
    int code = 0;
    free(context);
    dir->ruler->busy = false;
    if (anew_is_due(shuntd)) { /* rule_ask_again comes back to it */
        list_append(&dir->ruler->waiting, &seal.question->link);
        return 0;
    }
    if (seal.result == MESSAGE_NOT_EMPTY || seal.result < 0)
        code = rule_result(shuntd, seal.question, seal.result);
    else if (dir->ruler->idle || seal.epoch != shuntd->route.epoch) /* nobody says so any more where all began anew */
        code = rule_work(shuntd, seal.question);
    else /* rule_idle comes back to it */
        list_append(&dir->ruler->sealing, &seal.question->link);
    return code == 0 ? rule_rest(shuntd, seal.id) : code;
}

/* The marker stays, and rmdir will say that the directory is not empty, which is true on disk. */
static int not_bare(struct shuntd *shuntd, struct home_dir *dir, struct seal *seal)
{
    const struct message unseal = {.type = MESSAGE_UNSEAL, .dir[0] = seal->id};
    log_line("the mirrors of %s could not be removed: %s", dir->path, strerror(-seal->result));
    dir->record.flags |= RECORD_UNLISTED;
    seal->result = MESSAGE_NOT_EMPTY;
    return cast_begin(shuntd, &unseal, NULL, unsealed, seal);
}

static int finish(struct disk_job *job, struct shuntd *shuntd)
{
    struct seal *seal = (struct seal *)job;
    struct home_dir *dir = home_dir_find(shuntd->home, seal->id);
    struct message record = {.type = MESSAGE_RECORD, .dir[0] = seal->id};
    if (seal->result != 0 && seal->result != -ENOENT)
        return not_bare(shuntd, dir, seal);
    dir->record.flags &= ~(uint32_t)RECORD_MARKED;
    dir->record.marker = 0;
    memset(dir->record.mirror, 0, sizeof dir->record.mirror);
    rule_decides(shuntd, dir);
    rule_put_record(&record, dir);
    return cast_begin(shuntd, &record, NULL, closed, seal);
}
static int sealed(struct shuntd *shuntd, void *context, const struct cast_end *end)
{
    struct seal *seal = context;
    struct home_dir *dir = home_dir_find(shuntd->home, seal->id);
    const struct message unseal = {.type = MESSAGE_UNSEAL, .dir[0] = seal->id};
    /* Names may have been nowhere while all were asked. */
    bool moved = seal->epoch != shuntd->route.epoch || !dir->ruler->loaded;
    dir->ruler->idle |= moved;
    seal->result = end->lost ? MESSAGE_BUSY : end->result;
    if (seal->result != 0 || moved || anew_is_due(shuntd))
        return cast_begin(shuntd, &unseal, NULL, unsealed, seal);
    if (!(dir->record.flags & RECORD_MARKED))
        return closed(shuntd, seal, end);
    seal->job = (struct disk_job){.carry_out = carry_out, .finish = finish};
    memcpy(seal->mirror, dir->record.mirror, sizeof seal->mirror);
    strcpy(seal->path, dir->path);
    disk_submit(shuntd->disk, &seal->job);
    return 0;
}

int rule_seal(struct shuntd *shuntd, struct home_dir *dir, struct rule_question *question)
{
    const uint64_t now = clock_monotonic();
    question->began = question->began != 0 ? question->began : now;
    const struct message seal_all = {.type = MESSAGE_SEAL, .dir[0] = dir->id, .child.ino = now - question->began};
    if (dir->record.flags & RECORD_UNLISTED)
        return rule_result(shuntd, question, MESSAGE_NOT_EMPTY);
    struct seal *seal = calloc(1, sizeof *seal);
    if (seal == NULL)
        return -ENOMEM;
    seal->question = question;
    seal->id = dir->id;
    seal->epoch = shuntd->route.epoch;
    dir->ruler->busy = true;
    dir->ruler->idle = false;
    return cast_begin(shuntd, &seal_all, NULL, sealed, seal);
}

int rule_idle(struct shuntd *shuntd, struct dirid id)
{
    struct home_dir *dir = home_dir_find(shuntd->home, id);
    struct home_ruler *ruler = dir != NULL ? dir->ruler : NULL;
    if (ruler == NULL)
        return 0;
    ruler->idle = true;
    list_move(&ruler->waiting, &ruler->sealing);
    return ruler->busy ? 0 : rule_rest(shuntd, id);
}

/* What the node of who asks does. */

static int ask_to_seal(struct shuntd *, struct flight *);

static int release(struct shuntd *shuntd, struct flight *flight, int result)
{
    int code = serve_tell_result(shuntd, flight, result);
    return code == 0 ? serve_release(shuntd, flight) : code;
}

/* What this node's processes know of a directory that is not loaded is out of date. */
static int not_sealed(struct shuntd *shuntd, struct flight *flight, int result)
{
    struct home_dir *child = home_dir_find(shuntd->home, flight->child);
    int code = result == MESSAGE_NOT_LOADED && home_dir_is_loaded(child) ? serve_forget(shuntd, child) : 0;
    return code == 0 ? release(shuntd, flight, result) : code;
}

/* Who had the name has it no more: once more. */
static int is_free(struct shuntd *shuntd, struct flight *flight, const struct name_answer *unused)
{
    return ask_to_seal(shuntd, flight);
}

static int held(struct shuntd *shuntd, struct flight *flight, const struct name_answer *answer)
{
    if (answer->result != MESSAGE_BUSY) {
        flight->place = flight->before;
        return serve_tell_result(shuntd, flight, 0);
    }
    flight->sealed = false;
    int code = rule_unseal(shuntd, flight->child);
    return code == 0 ? serve_ask(shuntd, flight, NAME_LOOKUP, 0, NULL, is_free) : code;
}

static int is_sealed(struct shuntd *shuntd, const struct errand *errand, const struct message *answer)
{
    static const struct record_entry dying = {.state = RECORD_DYING};
    struct flight *flight = flight_by_id(shuntd->home, errand->flight);
    if (flight == NULL)
        return answer->result == 0 ? rule_unseal(shuntd, answer->dir[0]) : 0;
    flight->errand = false;
    flight->sealed = answer->result == 0;
    if (flight->abandoned)
        return serve_release(shuntd, flight);
    if (!flight->sealed)
        return not_sealed(shuntd, flight, answer->result);
    return serve_ask(shuntd, flight, NAME_HOLD, NAME_ANYHOW | NAME_TRY, &dying, held);
}

static int ask_to_seal(struct shuntd *shuntd, struct flight *flight)
{
    const struct message seal = {.type = MESSAGE_SEAL, .dir[0] = flight->child};
    const struct errand errand = {.flight = flight->id};
    flight->errand = true;
    peers_urge_all(shuntd->peers); /* what was removed there is to be gone for its homes when they are asked */
    return rule_ask(shuntd, &seal, is_sealed, &errand);
}

int serve_close(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    int how;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct flight *flight = flight_find(shuntd->home, dir->id, message->name[0], message->name_length[0]);
    if (flight != NULL)
        return serve_park(shuntd, &flight->waiting, request);
    flight = flight_begin(shuntd, FLIGHT_CLOSE, dir, message->name[0], message->name_length[0], request);
    if (flight == NULL)
        return -ENOMEM;
    flight->child = message->child;
    flight_await(shuntd->home, flight->id); /* whoever asks for the directory waits, wherever that is */
    int code = ask_to_seal(shuntd, flight);
    return code == 0 ? SERVE_SILENT : code;
}
