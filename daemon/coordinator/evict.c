/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/evict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/log.h"
#include "coordinator/coordinator.h"
#include "coordinator/new_dirs.h"
#include "home/home.h"
#include "home/route.h"
#include "reply/reply.h"

#define EVICT_LEAST (64ull << 20)     /* the default limit, where a quarter of the run directory is less */
#define EVICT_REST (CLOCK_SECOND / 4) /* between two visits of the hand */
#define EVICT_LEAST_REST (EVICT_REST / 10)
#define EVICT_PATIENCE 8      /* so often that is doubled for a directory that is in use elsewhere */
#define EVICT_RETURNS 5       /* ... and the least for one that is asked for again */
#define EVICT_QUESTIONS 64    /* to coordinators, at once */
#define EVICT_DIR 1024        /* bytes of the daemon's own for a directory that it knows, about */
#define EVICT_UNRECORDED 8192 /* directories that the recorder is told of */
#define EVICT_TAGS (sizeof((struct shuntd *)0)->evicted / sizeof *((struct shuntd *)0)->evicted)

uint64_t evict_limit(uint64_t configured, const char *run_dir)
{
    struct statvfs room;
    if (configured != 0)
        return configured;
    const uint64_t share = statvfs(run_dir, &room) == 0 ? (uint64_t)room.f_blocks * room.f_frsize / 4 : 0;
    return share > EVICT_LEAST ? share : EVICT_LEAST;
}

/* What directories may take before any is evicted, and when that is as urgent as can be. */
static uint64_t evict_budget(const struct shuntd *shuntd)
{
    return shuntd->options.index_limit / 8 * 5;
}

static uint64_t evict_most(const struct shuntd *shuntd)
{
    return shuntd->options.index_limit / 8 * 7;
}

uint64_t evict_used(struct shuntd *shuntd)
{
    struct index_size size;
    index_measure(shuntd->index, &size);
    return size.bytes_used + home_dir_count(shuntd->home) * EVICT_DIR;
}

static bool evict_is_above(struct shuntd *shuntd, uint64_t bytes)
{
    const uint64_t budget = evict_budget(shuntd);
    return budget > 0 && (bytes > budget || evict_used(shuntd) > budget - bytes);
}

/* Directories that were evicted, as far as there is room to remember them: whether one comes back is counted, nothing else. */

static uint32_t *evict_tag_of(struct shuntd *shuntd, struct dirid id, uint32_t *tag)
{
    const uint64_t hash = record_hash((const char *)&id, sizeof id);
    *tag = (uint32_t)hash | 1;
    return &shuntd->evicted[(hash >> 32) % EVICT_TAGS];
}

void evict_note_load(struct shuntd *shuntd, const struct home_dir *dir, size_t names, uint64_t bytes)
{
    uint32_t tag, *at = evict_tag_of(shuntd, dir->id, &tag);
    if (*at == tag) {
        shuntd->counts.returns++;
        *at = 0;
    }
    const uint64_t limit = shuntd->options.index_limit;
    if (limit == 0 || bytes <= limit)
        return;
    shuntd->counts.oversized++;
    log_line("%s: its %zu names take more than the %.1f MiB of the limit, and are %s (raise SHUNT_INDEX_LIMIT)", dir->path,
             names, (double)limit / (1 << 20),
             home_can_spill(shuntd->home) ? "looked up in a file" : "kept all the same while they are used");
}

/* What every daemon does. */

static bool evict_waits_for(const struct home_dir *dir)
{
    const struct home_coordinator *coordinator = dir->coordinator;
    return !list_empty(&dir->blocked) || !list_empty(&dir->blocked_collectives) || !list_empty(&dir->frozen_questions) ||
           (coordinator != NULL && (coordinator->closing || coordinator->load_request != NULL ||
                                    !list_empty(&coordinator->queued) || !list_empty(&coordinator->awaiting_idle)));
}

/* A watch is told to nobody twice. */
static bool evict_is_at_rest(const struct home_dir *dir)
{
    return dir->claims == 0 && dir->operations == 0 && !home_dir_is_busy(dir) && !dir->writing && !dir->recalled &&
           !dir->frozen && !dir->draining && !dir->reports_idle && (dir->complete || dir->listed + dir->expected == 0) &&
           list_empty(&dir->unwritten) && list_empty(&dir->unannounced) && list_empty(&dir->ended_claims) &&
           dir->record.why != RECORD_WHY_WATCHED && !evict_waits_for(dir);
}

/* From the processes of this node, unless they have just asked for it again. */
static int evict_hide(struct shuntd *shuntd, struct home_dir *dir)
{
    struct home_dir_use *use = &dir->use;
    if (use->is_hidden && use->returns < EVICT_RETURNS)
        use->returns++;
    use->is_hidden = false;
    if (use->returns > 0 && shuntd->now - use->last < EVICT_LEAST_REST << use->returns)
        return 0;
    HOOK("evict-hides");
    use->is_hidden = true;
    return reply_forget_dir(shuntd, dir);
}

/* Its coordinator may be told that a directory is new as long as this daemon has not agreed, and has heard of it before. */
static int evict_agree(struct shuntd *shuntd, struct dirid id)
{
    if (new_dirs_are_told(shuntd, id) && !BROKEN("new-untold")) {
        HOOK("evict-awaits-word");
        return MESSAGE_BUSY;
    }
    home_note_forgotten(shuntd->home);
    return 0;
}

int evict_part_evict(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    if (message->epoch != shuntd->route.epoch || shuntd->route.missing > 0 || shuntd->route.hands_over)
        return MESSAGE_BUSY;
    if (dir == NULL)
        return evict_agree(shuntd, message->dir);
    if (!evict_is_at_rest(dir) || shuntd->now - dir->use.last < message->evict.idle / 2)
        return MESSAGE_BUSY;
    int code = home_dir_is_loaded(dir) ? evict_hide(shuntd, dir) : 1;
    return code == 0 ? MESSAGE_BUSY : code < 0 ? code : evict_agree(shuntd, message->dir);
}

struct evict_unrecorded *evict_take_unrecorded(struct shuntd *shuntd)
{
    struct link *link = list_take(&shuntd->unrecorded);
    shuntd->unrecorded_count -= link != NULL;
    return link != NULL ? LINK_OF(link, struct evict_unrecorded, link) : NULL;
}

/* Without the memory it is not recorded. */
static void evict_tell_recorder(struct shuntd *shuntd, const struct home_dir *dir)
{
    const size_t size = strlen(dir->path) + 1;
    const bool is_coordinated = dir->coordinator != NULL && dir->coordinator->loaded;
    struct evict_unrecorded *one = is_coordinated || dir->use.by_processes ? malloc(sizeof *one + size) : NULL;
    if (one == NULL)
        return;
    one->id = dir->id;
    one->is_coordinated = is_coordinated;
    memcpy(one->path, dir->path, size);
    list_append(&shuntd->unrecorded, &one->link);
    if (++shuntd->unrecorded_count > EVICT_UNRECORDED)
        free(evict_take_unrecorded(shuntd));
}

/* A listing that began when all names were here is told before they go. */
int evict_part_evicted(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    HOOK("evict-forgets");
    if (dir == NULL)
        return 0;
    if (dir->delegation != 0)
        listen_count_loss(shuntd->listen);
    evict_tell_recorder(shuntd, dir);
    int code = home_del_dir(shuntd->home, dir);
    home_dir_evict(shuntd->home, dir);
    return code;
}

/* What the coordinator does. */

struct eviction {
    struct coordinator_request *question;
    struct dirid id;
    uint32_t epoch; /* of the route, when it began */
};

static int evict_end(struct shuntd *shuntd, struct eviction *eviction, int result)
{
    struct home_dir *dir = home_dir_find(shuntd->home, eviction->id);
    struct coordinator_request *question = eviction->question;
    const struct dirid id = eviction->id;
    free(eviction);
    if (dir != NULL && dir->coordinator != NULL)
        dir->coordinator->in_request = false;
    int code = coordinator_result(shuntd, question, result);
    return code == 0 ? coordinator_resume(shuntd, id) : code;
}

/* It is as if nobody had ever used it, but that no number comes again by which something was decided. */
static void evict_forget(struct shuntd *shuntd, struct home_dir *dir)
{
    uint32_t tag, *at = evict_tag_of(shuntd, dir->id, &tag);
    coordinator_outnumber(shuntd, dir);
    coordinator_forget(dir->coordinator);
    dir->coordinator->node_count = 0;
    shuntd->counts.evictions++;
    *at = tag;
}

/* A home that joined meanwhile may have been handed names by one that had not heard of this yet. It hears of it with the next
 * load, which is therefore that of all homes: there is no delegation. */
static bool evict_may_be_unheard(const struct shuntd *shuntd, const struct eviction *eviction)
{
    return eviction->epoch != shuntd->route.epoch && !route_is_outdated(&shuntd->route, eviction->epoch);
}

/* A daemon that is lost may not have passed it on. One that has not heard of it has the names of a load that is over. */
static int evict_done(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct eviction *eviction = context;
    struct home_dir *dir = home_dir_find(shuntd->home, eviction->id);
    if (dir != NULL && dir->coordinator != NULL) {
        evict_forget(shuntd, dir);
        dir->coordinator->sharded = evict_may_be_unheard(shuntd, eviction);
    }
    return end->result < 0 ? end->result : evict_end(shuntd, eviction, 0);
}

static int evict_answered_by_all(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct eviction *eviction = context;
    const struct message evicted = {.type = MESSAGE_EVICTED, .dir = eviction->id};
    struct home_dir *dir = home_dir_find(shuntd->home, eviction->id);
    const bool stands = eviction->epoch == shuntd->route.epoch && !route_lacks_home(&shuntd->route, &shuntd->session) &&
                        dir != NULL && dir->coordinator != NULL && dir->coordinator->loaded;
    if (end->result != 0 || end->lost || !stands)
        return evict_end(shuntd, eviction, MESSAGE_BUSY);
    HOOK("evict-agreed");
    return collective_begin(shuntd, &evicted, NULL, evict_done, eviction);
}

int coordinator_evict(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    if (!list_empty(&dir->coordinator->queued) || route_is_gathering(&shuntd->route))
        return coordinator_result(shuntd, question, MESSAGE_BUSY);
    struct eviction *eviction = malloc(sizeof *eviction);
    if (eviction == NULL)
        return -ENOMEM;
    *eviction = (struct eviction){.question = question, .id = dir->id, .epoch = shuntd->route.epoch};
    question->message.epoch = shuntd->route.epoch;
    dir->coordinator->in_request = true;
    return collective_begin(shuntd, &question->message, NULL, evict_answered_by_all, eviction);
}

/* What a daemon does that has too much. */

static int evict_answered(struct shuntd *shuntd, const struct coordinator_call *call, const struct message *answer)
{
    struct home_dir *dir = home_dir_find(shuntd->home, answer->dir);
    (void)call;
    shuntd->evict_questions--;
    if (dir == NULL)
        return 0;
    dir->use.is_asked = false;
    dir->use.refused_at = shuntd->now;
    if (answer->result != 0 && dir->use.refusals < EVICT_PATIENCE)
        dir->use.refusals++;
    return 0;
}

static int evict_ask(struct shuntd *shuntd, struct home_dir *dir)
{
    const struct message evict = {.type = MESSAGE_EVICT, .dir = dir->id, .evict.idle = shuntd->now - dir->use.last};
    dir->use.is_asked = true;
    shuntd->evict_questions++;
    return coordinator_submit(shuntd, &evict, evict_answered, NULL);
}

/* It was made in this session, and nobody has used it: to be read when it is used is as good. */
static bool evict_is_new(const struct home_dir *dir)
{
    const struct home_coordinator *coordinator = dir->coordinator;
    return coordinator != NULL && coordinator->created_empty && !coordinator->loaded && !coordinator->in_request;
}

static bool evict_is_refused(const struct shuntd *shuntd, const struct home_dir *dir)
{
    return dir->use.is_asked || shuntd->evict_questions >= EVICT_QUESTIONS ||
           (dir->use.refusals > 0 && shuntd->now - dir->use.refused_at < EVICT_REST << dir->use.refusals);
}

/* The hand has come to it. The directory may be gone then. */
static int evict_visit(struct shuntd *shuntd, struct home_dir *dir, bool evicts)
{
    const bool was_used = dir->use.last != dir->use.seen, is_loaded = home_dir_is_loaded(dir);
    if (was_used)
        dir->use.refusals = 0;
    if (!evict_is_at_rest(dir))
        return 0;
    dir->use.seen = dir->use.last;
    if (is_loaded)
        return evict_hide(shuntd, dir);
    if (!was_used)
        dir->use.returns = 0;
    if (was_used || !evicts || evict_is_refused(shuntd, dir))
        return 0;
    if (evict_is_new(dir)) {
        dir->coordinator->created_empty = false;
        return coordinator_resume(shuntd, dir->id);
    }
    return dir->complete || (dir->coordinator != NULL && dir->coordinator->loaded) ? evict_ask(shuntd, dir) : 0;
}

/* Between two visits of the hand: the less, the less room is left. */
static uint64_t evict_rest(struct shuntd *shuntd)
{
    const uint64_t used = evict_used(shuntd), budget = evict_budget(shuntd), most = evict_most(shuntd);
    const uint64_t left = used < most ? most - used : 0;
    return used <= budget ? EVICT_REST
                          : EVICT_LEAST_REST + (EVICT_REST - EVICT_LEAST_REST) * (left >> 10) / (((most - budget) >> 10) + 1);
}

/* Each directory once, as long as there is too much; before something is loaded, some are hidden ahead. */
static int evict_sweep(struct shuntd *shuntd, uint64_t bytes, bool all)
{
    const uint64_t until = shuntd->now - evict_rest(shuntd), ahead = bytes > 0 ? bytes + evict_budget(shuntd) / 4 : 0;
    struct home_dir *dir;
    int code = 0;
    while (code == 0 && (all || evict_is_above(shuntd, ahead)) && (dir = home_dir_next_on_clock(shuntd->home, until)) != NULL)
        code = evict_visit(shuntd, dir, all || evict_is_above(shuntd, bytes));
    return code;
}

int evict_make_room(struct shuntd *shuntd, uint64_t bytes)
{
    return shuntd->stop == 0 && evict_budget(shuntd) > 0 ? evict_sweep(shuntd, bytes, false) : 0;
}

int evict_all_idle(struct shuntd *shuntd)
{
    return shuntd->stop == 0 ? evict_sweep(shuntd, 0, true) : 0;
}

int evict_step(struct shuntd *shuntd)
{
    return evict_is_above(shuntd, 0) ? evict_make_room(shuntd, 0) : 0;
}

uint64_t evict_due(struct shuntd *shuntd)
{
    if (shuntd->stop != 0 || !evict_is_above(shuntd, 0))
        return UINT64_MAX;
    const uint64_t hand = home_clock_hand(shuntd->home), rest = evict_rest(shuntd);
    const uint64_t due = hand != UINT64_MAX ? hand + rest : 0, next = shuntd->now + rest;
    return due > next ? due : next;
}
