/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* LOAD: the first operation in a directory. Its coordinator has trunk and mirrors listed by a job, hands each name to
 * its home, and tells all homes that these are all: from then on they may answer "absent". Until then nobody can
 * change a name in it, since a process asks for the directory first.
 *
 * The coordinator lists all mirrors itself, rather than have each daemon list some: of the CPU time that loading 200,000 names
 * of four mirrors took four daemons (1.2 s), listing was 0.08 s. The rest is handing out, and writing down, which all
 * homes do at the same time. */

#include "coordinator/load.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "coordinator/coordinator.h"
#include "coordinator/delegation.h"
#include "coordinator/dir_times.h"
#include "coordinator/evict.h"
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
    uint32_t began; /* in which epoch of the route, */
    uint32_t epoch; /* and in which names were handed out */
    uint16_t whole; /* the member that all of them were sent to, 0: each to its home */
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
    if (fd < 0)
        return;
    load->result = listing_init(&load->listing, &shuntd->root, fd, load->path, load->branch, LISTING_SETTLE);
    sys_close(fd);
    HOOK("load-listed");
}

static int load_hand_out(struct shuntd *shuntd, const struct load_job *load, struct home_dir *dir, uint32_t *expected)
{
    const struct listing *listing = &load->listing;
    int code = 0;
    for (size_t i = 0; i < listing->count && code == 0 && !BROKEN("absent-unloaded"); i++) {
        const struct union_name *name = &listing->names[i];
        size_t length = strlen(name->name);
        struct record_entry entry = {
            .type = name->type, .state = RECORD_LIVE, .branch = name->branch, .leaf = name->leaf, .ino = name->ino};
        uint16_t home = load->whole != 0 ? load->whole : route_of_name(&shuntd->route, dir->id, name->name, length);
        expected[home]++;
        code = home == shuntd->me.number ? home_list_name(shuntd->home, dir, name->name, length, &entry)
                                         : rpc_name(shuntd, home, dir, name->name, length, &entry);
    }
    return code;
}

static int load_count_leaves(struct home_dir *dir, const struct listing *listing)
{
    int code = 0;
    for (size_t i = 0; i < listing->leaves && code == 0; i++)
        code = home_leaf_add(&dir->leaves, (uint32_t)i, (int32_t)listing->leaf_counts[i]);
    return code;
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

/* All homes know it, or those that were its homes when this began are no more: then it begins again. */
static int load_known(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct load_job *load = context;
    struct home_dir *dir = home_dir_find(shuntd->home, load->id);
    struct coordinator_request *question = load_take_question(dir);
    bool lost = end->lost || route_lacks_home(&shuntd->route, &shuntd->session) || load->epoch != shuntd->route.epoch;
    dir->coordinator->loaded = end->result == 0 && !lost;
    if (dir->coordinator->loaded)
        dir->coordinator->created_empty = false; /* it need not be empty any more */
    shuntd->counts.loads++;
    struct dirid id = load->id;
    free(load);
    if (route_lacks_home(&shuntd->route, &shuntd->session)) { /* coordinator_call_again comes back to it */
        if (question != NULL)
            list_append(&dir->coordinator->queued, &question->link);
        return 0;
    }
    int code = question == NULL  ? 0
               : end->result < 0 ? coordinator_result(shuntd, question, end->result)
                                 : coordinator_serve(shuntd, question);
    return code == 0 ? coordinator_resume(shuntd, id) : code;
}

static int load_tell_homes(struct shuntd *shuntd, struct load_job *load, struct home_dir *dir, const uint32_t *expected)
{
    struct message message = {.type = MESSAGE_LOADED,
                              .epoch = shuntd->route.epoch,
                              .dir = load->id,
                              .record.path = message_text(load->path, strlen(load->path))};
    coordinator_put_record(&message.record.record, dir);
    dir->coordinator->sharded = true;
    return collective_begin(shuntd, &message, expected, load_known, load);
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

/* The names are on their way to the daemon that asked, before this answer. */
static int load_give(struct shuntd *shuntd, struct load_job *load, struct home_dir *dir, uint32_t names)
{
    struct coordinator_request *question = load_take_question(dir);
    struct dirid id = load->id;
    dir->coordinator->loaded = true;
    dir->coordinator->created_empty = false;
    dir->coordinator->delegation = dir->version;
    shuntd->counts.loads++;
    free(load);
    int code = load_answer_load(shuntd, dir, question, names);
    return code == 0 ? coordinator_resume(shuntd, id) : code;
}

static int load_spread(struct shuntd *shuntd, struct load_job *load)
{
    struct home_dir *dir = home_dir_find(shuntd->home, load->id);
    uint32_t *expected = calloc(UINT16_MAX + 1, sizeof *expected);
    if (expected == NULL)
        return -ENOMEM;
    if (delegation_may_be(shuntd, dir, dir->coordinator->load_request, load->listing.count))
        load->whole = dir->coordinator->load_request->member;
    load_note_found(shuntd, dir, &load->listing);
    int code = home_list_begin(shuntd->home, dir, dir->version);
    if (code == 0)
        code = load_hand_out(shuntd, load, dir, expected);
    if (code == 0)
        code = load_count_leaves(dir, &load->listing);
    dir->listed = expected[shuntd->me.number];
    load->epoch = shuntd->route.epoch;
    if (code == 0)
        code = load->whole != 0 ? load_give(shuntd, load, dir, expected[load->whole])
                                : load_tell_homes(shuntd, load, dir, expected);
    free(expected);
    return code;
}

static int load_failed(struct shuntd *shuntd, struct load_job *load)
{
    struct dirid id = load->id;
    struct coordinator_request *question = load_take_question(home_dir_find(shuntd->home, id));
    int code = question != NULL ? coordinator_result(shuntd, question, load->result) : 0;
    free(load);
    return code == 0 ? coordinator_resume(shuntd, id) : code;
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
    int code = evict_make_room(shuntd, size);
    if (code != 0 || index_make_room_for(shuntd->index, listing->count, bytes) == 0)
        return code;
    code = evict_all_idle(shuntd);
    return code == 0 ? index_make_room_for(shuntd->index, listing->count, bytes) : code;
}

/* All began again while it was listed: a daemon that changed something then has not told it yet, and what was found may be
 * older. */
static int load_again(struct shuntd *shuntd, struct load_job *load)
{
    struct dirid id = load->id;
    struct coordinator_request *question = load_take_question(home_dir_find(shuntd->home, id));
    listing_finish(&load->listing);
    free(load);
    int code = question != NULL ? coordinator_serve(shuntd, question) : 0;
    return code == 0 ? coordinator_resume(shuntd, id) : code;
}

static int load_finish(struct disk_job *job, struct shuntd *shuntd)
{
    struct load_job *load = (struct load_job *)job;
    if (load->result == 0 && route_is_outdated(&shuntd->route, load->began))
        return load_again(shuntd, load);
    if (load->result == 0 && (load->result = load_make_room(shuntd, load)) != 0)
        listing_finish(&load->listing);
    if (load->result != 0)
        return load_failed(shuntd, load);
    struct listing listing = load->listing; /* load may be gone then */
    int code = load_spread(shuntd, load);
    listing_finish(&listing);
    return code;
}

static int load_start(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    if (route_is_gathering(&shuntd->route)) { /* coordinator_resume_all comes back to it */
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
    strcpy(load->path, dir->path);
    dir->coordinator->in_request = true;
    if (dir->coordinator->created_empty)
        return load_spread(shuntd, load);
    disk_submit(shuntd->disk, &load->job);
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
    int code = strcmp(dir->path, path) != 0 ? load_has_moved(shuntd, dir, path) : 0;
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
    dir->listed = dir->expected = 0;
    dir->complete = true;
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
    if (home_dir_is_loaded(dir) && strcmp(dir->path, path) == 0)
        return REPLY_ANSWER;
    if (dir != NULL && (home_dir_is_busy(dir) || dir->recalled))
        return reply_block(shuntd, &dir->blocked, request);
    if (dir == NULL && (dir = home_dir_add(shuntd->home, message->dir, path)) == NULL)
        return -ENOMEM;
    home_dir_note_use(shuntd->home, dir);
    dir->awaits_coordinator = true;
    asked.flags = shuntd->stop != 0 ? MESSAGE_SPREAD : 0;
    int code = coordinator_submit(shuntd, message, load_loaded, &coordinator_call);
    return code == 0 ? REPLY_SILENT : code;
}

/* The directory is not known as complete yet; its coordinator says how many there are (load_part_loaded). */
int load_take_listed(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct message message;
    struct record_entry entry;
    if (message_decode(&message, item->bytes, item->size) != 0 || message.type != MESSAGE_LISTED)
        return rpc_malformed(shuntd);
    int code = rpc_take_entry(shuntd, &message.listed.entry, &entry);
    if (code != 0 || entry.state != RECORD_LIVE)
        return code == -EBADMSG || code == 0 ? rpc_malformed(shuntd) : code;
    struct home_dir *dir = home_dir_find(shuntd->home, message.dir);
    if (message.epoch != shuntd->route.epoch)
        return 0;
    if (dir == NULL && (dir = home_dir_add(shuntd->home, message.dir, "")) == NULL)
        return -ENOMEM;
    code = home_list_begin(shuntd->home, dir, message.listed.load_number);
    if (code != 0 || dir->complete)
        return code == -ESTALE ? 0 : code;
    code = home_list_name(shuntd->home, dir, message.name.text, message.name.length, &entry);
    return ++dir->listed == dir->expected && code == 0 ? home_dir_wake(shuntd->home, dir) : code;
}
