/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* LOAD: the first operation in a directory. Its coordinator has the trunk listed by a job; its mirrors, too, or, where there
 * are many branches, each daemon lists some (share.h). A daemon hands each name that it lists to its home. Then the coordinator
 * tells all homes how many they were sent, and that these are all: from then on they may answer "absent". Until then nobody can
 * change a name in it, since a process asks for the directory first.
 *
 * Two files of one name meet at its home, whichever daemons listed them. It says so, and all is listed once more by the
 * coordinator alone, which sees both and settles that on disk (union/conflict.h). */

#include "coordinator/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "base/log.h"
#include "base/sys.h"
#include "coordinator/coordinator.h"
#include "coordinator/delegation.h"
#include "coordinator/dir_times.h"
#include "coordinator/evict.h"
#include "coordinator/hand_out.h"
#include "coordinator/share.h"
#include "disk/disk.h"
#include "home/home.h"
#include "home/route.h"
#include "reply/answer_queue.h"
#include "reply/reply.h"
#include "rpc/collective.h"
#include "rpc/peer_rpc.h"
#include "rpc/receive.h"

/* What the coordinator does. */

struct load_job {
    struct disk_job job;
    struct dirid id;
    uint16_t branch;
    uint32_t began;     /* in which epoch of the route, */
    uint32_t epoch;     /* and in which names were handed out */
    bool shares;        /* other daemons may list mirrors */
    uint32_t *expected; /* how many names each member was sent */
    struct listing listing;
    int result;
    char path[PATH_MAX];
};

static void load_carry_out(struct disk_job *job, const struct shuntd *shuntd)
{
    struct load_job *load = (struct load_job *)job;
    HOOK("load-begun");
    int fd = disk_open_trunk(shuntd, load->path, load->id);
    load->result = fd;
    HOOK("load-opened");
    if (fd < 0)
        return;
    load->result = listing_init(&load->listing, &shuntd->root, fd, load->path, load->branch,
                                load->shares ? LISTING_SETTLE | LISTING_TRUNK : LISTING_SETTLE);
    sys_close(fd);
    if (load->result == -ECANCELED)
        load->result = MESSAGE_REMOTE;
    HOOK("load-listed");
}

static void load_note_found(struct shuntd *shuntd, struct home_dir *dir, const struct listing *listing)
{
    struct record_dir *record = &dir->record;
    const struct marker none = {.id = 0}, *marker = listing->marked ? &listing->marker : &none;
    record->flags &= ~(uint32_t)(RECORD_UNLISTED | RECORD_MARKED);
    record->flags |= (listing->trunk_unlisted ? RECORD_UNLISTED : 0) | (listing->marked ? RECORD_MARKED : 0);
    record->marker = marker->id;
    memcpy(record->mirror, marker->mirror, sizeof record->mirror);
    coordinator_number_decision(shuntd, dir);
}

/* The request that waits for the directory, if one still does. */
static struct coordinator_request *load_take_question(struct home_dir *dir)
{
    struct coordinator_request *question = dir->coordinator->load_request;
    dir->coordinator->load_request = NULL;
    dir->coordinator->in_request = false;
    return question;
}

static void load_destroy(struct load_job *load)
{
    listing_finish(&load->listing);
    free(load->expected);
    free(load);
}

/* The others that use it learn how many they are, as long as that matters to them (placement_redirects). */
static int load_tell_nodes(struct shuntd *shuntd, struct home_dir *dir, uint16_t newcomer)
{
    const struct home_coordinator *coordinator = dir->coordinator;
    const struct message notifications = {.type = MESSAGE_NODES, .dir = dir->id, .nodes.count = coordinator->node_count};
    int code = 0;
    dir->nodes = coordinator->node_count;
    for (uint32_t i = 0; i < coordinator->node_count && coordinator->node_count <= 16 && code == 0; i++)
        if (coordinator->nodes[i] != newcomer && coordinator->nodes[i] != shuntd->me.number)
            code = rpc_message(shuntd, coordinator->nodes[i], RPC_NOTIFY, 0, &notifications);
    return code;
}

/* `names`: how many were sent to the daemon that asks, if the directory is delegated to it now. */
static int load_answer_load(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question, uint64_t names)
{
    struct message answer = {.coordinator_answer = {.delegation = dir->coordinator->delegation, .names = names}};
    home_dir_note_use(shuntd->home, dir);
    int newcomer = coordinator_add_node(dir->coordinator, question->member);
    if (newcomer > 0)
        newcomer = load_tell_nodes(shuntd, dir, question->member);
    if (newcomer >= 0 && question->member != shuntd->me.number)
        newcomer = dir_times_tell(shuntd, dir, question->member); /* before its processes look */
    if (newcomer < 0)
        return newcomer;
    coordinator_put_record(&answer.coordinator_answer.record, dir);
    answer.coordinator_answer.node_count = dir->coordinator->node_count;
    return coordinator_answer(shuntd, question, &answer);
}

/* The request is served (again), or told what went wrong. One that says where the directory was when this began is no news: it
 * has been renamed while it was listed, and the daemons have heard of that. */
static int load_end(struct shuntd *shuntd, struct load_job *load, int result)
{
    const struct dirid id = load->id;
    struct home_dir *dir = home_dir_find(shuntd->home, id);
    struct coordinator_request *question = load_take_question(dir);
    const bool has_moved = result == 0 && dir->coordinator->loaded && strcmp(dir->path, load->path) != 0;
    load_destroy(load);
    if (route_lacks_home(&shuntd->route, &shuntd->session)) { /* coordinator_resume_all comes back to it */
        if (question != NULL)
            list_append(&dir->coordinator->queued, &question->link);
        return 0;
    }
    int code = question == NULL ? 0
               : result < 0     ? coordinator_result(shuntd, question, result)
               : has_moved      ? load_answer_load(shuntd, dir, question, UINT64_MAX)
                                : coordinator_serve(shuntd, question);
    return code == 0 ? coordinator_resume(shuntd, id) : code;
}

/* All homes know it, or those that were its homes when this began are no more: then it begins again. */
static int load_known(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct load_job *load = context;
    struct home_coordinator *coordinator = home_dir_find(shuntd->home, load->id)->coordinator;
    bool lost = end->lost || route_lacks_home(&shuntd->route, &shuntd->session) || load->epoch != shuntd->route.epoch;
    coordinator->loaded = end->result == 0 && !lost;
    coordinator->settles = end->result == MESSAGE_TWICE;
    if (coordinator->loaded)
        coordinator->created_empty = false; /* it need not be empty any more */
    shuntd->counts.loads++;
    return load_end(shuntd, load, end->result);
}

static int load_tell_homes(struct shuntd *shuntd, struct load_job *load, struct home_dir *dir)
{
    struct message message = {.type = MESSAGE_LOADED,
                              .epoch = shuntd->route.epoch,
                              .dir = load->id,
                              .record.path = message_text(dir->path, strlen(dir->path))};
    coordinator_put_record(&message.record.record, dir);
    dir->coordinator->sharded = true;
    return collective_begin(shuntd, &message, load->expected, load_known, load);
}

/* The names are on their way to the daemon that asked, before this answer. */
static int load_give(struct shuntd *shuntd, struct load_job *load, struct home_dir *dir, uint32_t names)
{
    struct coordinator_request *question = load_take_question(dir);
    const struct dirid id = load->id;
    dir->coordinator->loaded = true;
    dir->coordinator->created_empty = false;
    dir->coordinator->delegation = dir->version;
    shuntd->counts.loads++;
    load_destroy(load);
    int code = load_answer_load(shuntd, dir, question, names);
    return code == 0 ? coordinator_resume(shuntd, id) : code;
}

/* All mirrors are listed, and the names of them on their way. */
static int load_shared(struct shuntd *shuntd, void *context, int result)
{
    struct load_job *load = context;
    struct home_dir *dir = home_dir_find(shuntd->home, load->id);
    return result == 0 ? load_tell_homes(shuntd, load, dir) : load_end(shuntd, load, result);
}

static int load_spread(struct shuntd *shuntd, struct load_job *load)
{
    struct home_dir *dir = home_dir_find(shuntd->home, load->id);
    const bool shares = load->listing.trunk_alone;
    struct hand_out names = {.dir = load->id};
    if ((load->expected = calloc(UINT16_MAX + 1, sizeof *load->expected)) == NULL)
        return -ENOMEM;
    if (!shares && delegation_may_be(shuntd, dir, dir->coordinator->load_request, load->listing.count))
        names.whole = dir->coordinator->load_request->member;
    load_note_found(shuntd, dir, &load->listing);
    if (load->listing.conflicts > 0)
        log_warning("%s: %zu of its names were in two places, so the other file is now NAME.shunt-conflict-NODE (keep one)",
                    dir->path, load->listing.conflicts);
    if (load->listing.marked && !shares)
        share_count_all(shuntd);
    names.number = dir->version;
    load->epoch = shuntd->route.epoch;
    int code = home_list_begin(shuntd->home, dir, names.number);
    if (code == 0)
        code = hand_out(shuntd, &names, &load->listing, load->expected);
    if (code == 0)
        code = hand_out_leaf_counts(dir, &load->listing);
    listing_finish(&load->listing);
    if (code != 0)
        return code;
    if (shares)
        return share_begin(shuntd, &names, dir->record.mirror, load->expected, load_shared, load);
    return names.whole != 0 ? load_give(shuntd, load, dir, load->expected[names.whole]) : load_tell_homes(shuntd, load, dir);
}

/* As if all of them had their home here. */
static int load_make_room(struct shuntd *shuntd, const struct load_job *load)
{
    const struct listing *listing = &load->listing;
    uint64_t bytes = 0;
    for (size_t i = 0; i < listing->count; i++)
        bytes += strlen(listing->names[i].name);
    const uint64_t size = index_size_of(listing->count, bytes);
    evict_note_load(shuntd, home_dir_find(shuntd->home, load->id), listing->count, size);
    if (home_can_spill(shuntd->home) && size > shuntd->options.index_limit)
        return 0;
    int code = evict_make_room(shuntd, size);
    if (code != 0 || index_make_room_for(shuntd->index, listing->count, bytes) == 0)
        return code;
    code = evict_all_idle(shuntd);
    return code == 0 ? index_make_room_for(shuntd->index, listing->count, bytes) : code;
}

static int load_finish(struct disk_job *job, struct shuntd *shuntd)
{
    struct load_job *load = (struct load_job *)job;
    coordinator_end_job(shuntd, load->began);
    /* All began again while it was listed: a daemon that changed something then has not told it yet, and what was found may be
     * older. */
    if (load->result == 0 && route_is_outdated(&shuntd->route, load->began))
        load->result = MESSAGE_REMOTE;
    if (load->result == 0)
        load->result = load_make_room(shuntd, load);
    return load->result == 0 ? load_spread(shuntd, load) : load_end(shuntd, load, load->result);
}

static int load_start(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    /* coordinator_resume_all comes back to it. Without a lease others may be listing it, and change what they find. */
    if (route_is_gathering(&shuntd->route) || !coordinator_has_lease(shuntd)) {
        list_append(&dir->coordinator->queued, &question->link);
        return 0;
    }
    struct load_job *load = calloc(1, sizeof *load);
    if (load == NULL)
        return -ENOMEM;
    load->began = shuntd->route.epoch;
    load->job = (struct disk_job){.carry_out = load_carry_out, .finish = load_finish};
    dir->coordinator->load_request = question;
    load->id = dir->id;
    load->branch = shuntd->branch;
    load->shares = !dir->coordinator->settles && share_pays(shuntd);
    strcpy(load->path, dir->path);
    dir->coordinator->in_request = true;
    if (dir->coordinator->created_empty)
        return load_spread(shuntd, load);
    coordinator_begin_job(shuntd, &load->job);
    return 0;
}

static int load_has_moved(struct shuntd *shuntd, struct home_dir *dir, const char *path)
{
    struct message record = {.type = MESSAGE_RECORD, .dir = dir->id, .record.path = message_text(path, strlen(path))};
    coordinator_put_record(&record.record.record, dir);
    return collective_begin(shuntd, &record, NULL, NULL, NULL);
}

int coordinator_load(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    const struct message *message = &question->message;
    char path[PATH_MAX];
    message_copy_path(path, &message->load.path);
    if (dir == NULL || dir->coordinator == NULL || !dir->coordinator->loaded) {
        dir = home_dir_add(shuntd->home, message->dir, path);
        return dir != NULL && home_coordinator(dir) != NULL ? load_start(shuntd, dir, question) : -ENOMEM;
    }
    if (dir->coordinator->delegation != 0 && dir->coordinator->nodes[0] != question->member)
        return delegation_recall(shuntd, dir, question);
    const bool is_news = (message->flags & MESSAGE_MISPLACED) || strcmp(dir->path, path) != 0;
    int code = is_news ? load_has_moved(shuntd, dir, path) : 0;
    return code == 0 ? load_answer_load(shuntd, dir, question, UINT64_MAX) : code;
}

/* What each home does. */

int load_part_loaded(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    char path[PATH_MAX];
    struct home_dir *known = home_dir_find(shuntd->home, message->dir);
    if (shuntd->route.own == 0 && known != NULL && known->delegation == 0)
        known->complete = false; /* it hands nothing over that is older than this */
    if (shuntd->route.own == 0)
        return 0;
    if (message->epoch != shuntd->route.epoch)
        return MESSAGE_REMOTE;
    message_copy_path(path, &message->record.path);
    struct home_dir *dir = home_dir_add(shuntd->home, message->dir, path);
    if (dir == NULL)
        return -ENOMEM;
    int code = home_list_begin(shuntd->home, dir, message->record.record.version);
    if (code != 0 || dir->complete)
        return code == -ESTALE ? MESSAGE_REMOTE : code;
    dir->expected = collective_expected(collective);
    if (dir->listed < dir->expected || route_is_gathering(&shuntd->route)) {
        collective_wait(collective, dir);
        return COLLECTIVE_LATER;
    }
    const int result = dir->list_result;
    if (result != 0) {
        code = home_unlist(shuntd->home, dir);
        home_dir_release(shuntd->home, dir);
        return code == 0 ? result : code;
    }
    dir->listed = dir->expected = 0;
    dir->complete = true;
    HOOK("load-complete");
    home_list_end(dir);
    coordinator_adopt_record(dir, &message->record.record);
    return home_dir_store(shuntd->home, dir);
}

/* On the node that asks. */

static int load_loaded(struct shuntd *shuntd, const struct coordinator_call *coordinator_call, const struct message *answer)
{
    struct home_dir *dir = home_dir_find(shuntd->home, answer->dir);
    struct message told = {.type = MESSAGE_ANSWER, .result = answer->result};
    int code = answer->result == 0 ? delegation_accept(shuntd, dir, answer, coordinator_call->epoch) : 0;
    dir->awaits_coordinator = false;
    dir->use.by_processes = true;
    home_dir_note_use(shuntd->home, dir); /* it may have been evicted while this waited */
    if (answer->result == 0 && code == 0) {
        coordinator_adopt_answer(dir, &answer->coordinator_answer.record);
        dir->record.flags |= RECORD_LOADED;
        dir->nodes = answer->coordinator_answer.node_count;
        code = home_dir_publish_times(shuntd->home, dir);
        if (!list_empty(&dir->unwritten)) /* its coordinator may be another than before */
            home_dir_announce(shuntd->home, dir);
    }
    if (code == 0 || code == -EAGAIN) /* it is asked for again */
        code = home_dir_wake(shuntd->home, dir);
    home_dir_release(shuntd->home, dir);
    return code == 0 ? reply_send(shuntd, coordinator_call->client, coordinator_call->qp, coordinator_call->tag, &told) : code;
}

/* `path` comes from a client: it must stay beneath the root and out of shunt's own directory. */
static bool load_path_is_inside(const char *path)
{
    if (path[0] == '/' || strncmp(path, LAYOUT_OWN "/", sizeof LAYOUT_OWN) == 0 || strcmp(path, LAYOUT_OWN) == 0)
        return false;
    for (const char *at = path; at != NULL; at = strchr(at, '/'), at += at != NULL)
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return false;
    return true;
}

static bool load_is_known_elsewhere(const struct home_dir *dir, const char *path)
{
    return dir != NULL && dir->path[0] != '\0' && strcmp(dir->path, path) != 0;
}

int load_request(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct message asked = request->message, *message = &asked;
    const struct coordinator_call coordinator_call = {.client = request->client, .qp = request->qp, .tag = message->tag};
    char path[PATH_MAX];
    message_copy_path(path, &message->load.path);
    if (!load_path_is_inside(path)) {
        answer->result = -EXDEV;
        return REPLY_ANSWER;
    }
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    asked.flags &= MESSAGE_MISPLACED;
    if (load_is_known_elsewhere(dir, path))
        asked.flags |= MESSAGE_MISPLACED;
    if (home_dir_is_loaded(dir) && !(asked.flags & MESSAGE_MISPLACED))
        return REPLY_ANSWER;
    if (dir != NULL && (home_dir_is_busy(dir) || dir->recalled))
        return reply_block(shuntd, &dir->blocked, request);
    if ((dir = home_dir_add(shuntd->home, message->dir, path)) == NULL)
        return -ENOMEM;
    home_dir_note_use(shuntd->home, dir);
    dir->awaits_coordinator = true;
    if (shuntd->stop != 0)
        asked.flags |= MESSAGE_SPREAD;
    int code = coordinator_submit(shuntd, message, load_loaded, &coordinator_call);
    return code == 0 ? REPLY_SILENT : code;
}
