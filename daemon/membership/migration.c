/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/migration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "coordinator/coordinator.h"
#include "coordinator/delegation.h"
#include "coordinator/dir_times.h"
#include "home/home.h"
#include "reply/answer_queue.h"
#include "rpc/peer_rpc.h"
#include "rpc/receive.h"

/* Handing over. */

static int migration_send_part(struct shuntd *shuntd, uint16_t to, struct message *part)
{
    part->epoch = shuntd->route.epoch;
    return rpc_message(shuntd, to, RPC_MIGRATE, 0, part);
}

/* Each member that gets something. */
static size_t migration_receivers(const struct route *route, uint16_t *to)
{
    bool seen[UINT16_MAX + 1] = {false};
    size_t count = 0;
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        if (route->to[i] != 0 && !seen[route->to[i]]) {
            seen[route->to[i]] = true;
            to[count++] = route->to[i];
        }
    return count;
}

struct handing {
    struct shuntd *shuntd;
    struct dirid dir;
    uint16_t to[RECORD_SHARDS]; /* the receivers */
    size_t count;
    int code;
};

static int migration_hand_name(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct handing *handing = context;
    struct shuntd *shuntd = handing->shuntd;
    uint16_t to = shuntd->route.to[record_shard(handing->dir, hash)];
    if (to == 0)
        return 0;
    struct message part = {.type = MESSAGE_MIGRATED_ENTRY,
                           .dir = handing->dir,
                           .name = message_text(name, length),
                           .migrated_entry.entry = rpc_put_entry(shuntd, entry)};
    return migration_send_part(shuntd, to, &part);
}

static bool migration_is_lost(void *context, uint64_t hash)
{
    const struct handing *handing = context;
    return handing->shuntd->route.to[record_shard(handing->dir, hash)] != 0;
}

static int migration_hand_directory(struct handing *handing, struct home_dir *dir)
{
    struct message part = {.type = MESSAGE_MIGRATED_DIR,
                           .dir = dir->id,
                           .migrated_dir = {.path = message_text(dir->path, strlen(dir->path)),
                                            .load_number = dir->load_number,
                                            .frozen = dir->frozen}};
    int code = 0;
    coordinator_put_record(&part.migrated_dir.record, dir);
    for (size_t i = 0; i < handing->count && code == 0; i++)
        code = migration_send_part(handing->shuntd, handing->to[i], &part);
    handing->dir = dir->id;
    if (code == 0)
        code = home_list_entries(handing->shuntd->home, dir->id, 0, migration_hand_name, handing);
    return code == 0 ? home_del_entries(handing->shuntd->home, dir->id, migration_is_lost, handing) : code;
}

/* Also of one that none of its homes knows: what it was numbered, and where it is. */
int migration_send_record(struct shuntd *shuntd, const struct home_dir *dir, uint16_t member)
{
    struct message part = {
        .type = MESSAGE_MIGRATED_RECORD, .dir = dir->id, .record.path = message_text(dir->path, strlen(dir->path))};
    coordinator_put_record(&part.record.record, dir);
    return migration_send_part(shuntd, member, &part);
}

static int migration_hand_coordinator(struct handing *handing, struct home_dir *dir, uint16_t to)
{
    struct home_coordinator *coordinator = dir->coordinator;
    const size_t most = (MESSAGE_TEXT_MAX - 1) / sizeof *coordinator->nodes;
    const size_t nodes = coordinator->node_count < most ? coordinator->node_count : most;
    struct message part = {
        .type = MESSAGE_MIGRATED_COORDINATOR,
        .dir = dir->id,
        .migrated_coordinator = {.nodes = message_text((const char *)coordinator->nodes, nodes * sizeof *coordinator->nodes),
                                 .delegation = coordinator->delegation,
                                 .times = dir_times_of(dir),
                                 .loaded = coordinator->loaded,
                                 .created_empty = coordinator->created_empty,
                                 .closing = coordinator->closing,
                                 .sharded = coordinator->sharded}};
    int code = migration_send_record(handing->shuntd, dir, to);
    if (code == 0)
        code = migration_send_part(handing->shuntd, to, &part);
    coordinator_forget(coordinator);
    list_move(&coordinator->queued, &coordinator->awaiting_idle);
    return code == 0 ? coordinator_resume(handing->shuntd, dir->id) : code;
}

static void migration_hand_one(struct home_dir *dir, void *context)
{
    struct handing *handing = context;
    struct shuntd *shuntd = handing->shuntd;
    uint16_t coordinator_to = shuntd->route.to[record_shard(dir->id, 0)];
    home_redirect_waiters(shuntd->home, dir);
    if (handing->code == 0 && dir->complete && dir->delegation == 0)
        handing->code = migration_hand_directory(handing, dir);
    if (handing->code == 0 && dir->complete && dir->delegation == 0 && shuntd->route.own == 0) {
        dir->complete = dir->frozen = false;
        home_wake(shuntd->home, &dir->blocked);
    }
    if (handing->code == 0 && dir->coordinator != NULL && coordinator_to != 0)
        handing->code = migration_hand_coordinator(handing, dir, coordinator_to);
}

static int migration_hand_held(void *context, uint16_t to, struct dirid dir, const char *name, size_t length, uint16_t member,
                               uint64_t id)
{
    struct handing *handing = context;
    struct message part = {.type = MESSAGE_MIGRATED_CLAIM,
                           .dir = dir,
                           .name = message_text(name, length),
                           .migrated_claim = {.operation = id, .member = member}};
    return migration_send_part(handing->shuntd, to, &part);
}

/* What is to be given back (delegation.h) is given back to the next coordinator. */
static void migration_note_busy(struct home_dir *dir, void *context)
{
    struct handing *handing = context;
    if (dir->coordinator != NULL && dir->coordinator->in_request && !dir->coordinator->recalling &&
        handing->shuntd->route.to[record_shard(dir->id, 0)] != 0)
        handing->code = 1;
}

/* Directories go before the claims of names in them. */
int migration_hand_over(struct shuntd *shuntd)
{
    struct handing handing = {.shuntd = shuntd};
    HOOK("hands-over");
    home_dirs_each(shuntd->home, migration_note_busy, &handing);
    if (handing.code != 0) /* what concerns it as a whole comes to its end first */
        return 0;
    handing.count = migration_receivers(&shuntd->route, handing.to);
    home_dirs_each(shuntd->home, migration_hand_one, &handing);
    if (handing.code == 0)
        handing.code = home_hand_over(shuntd->home, shuntd->route.to, migration_hand_held, &handing);
    for (size_t i = 0; i < handing.count && handing.code == 0; i++)
        handing.code = migration_send_part(shuntd, handing.to[i], &(struct message){.type = MESSAGE_MIGRATED_ALL});
    memset(shuntd->route.to, 0, sizeof shuntd->route.to);
    shuntd->route.hands_over = false;
    return handing.code;
}

/* A load that has begun since homes changed gives each home its names itself. */
static bool migration_is_new(const struct shuntd *shuntd, uint64_t load)
{
    return load >= (uint64_t)shuntd->route.epoch << COORDINATOR_EPOCH_BITS;
}

static int migration_take_directory(struct shuntd *shuntd, const struct message *part)
{
    const uint64_t load_number = part->migrated_dir.load_number;
    char path[PATH_MAX];
    message_copy_path(path, &part->migrated_dir.path);
    struct home_dir *dir = home_dir_find(shuntd->home, part->dir);
    if (dir == NULL && (dir = home_dir_add(shuntd->home, part->dir, path)) == NULL)
        return -ENOMEM;
    if (!migration_is_new(shuntd, dir->load_number) && !migration_is_new(shuntd, load_number)) {
        dir->complete = true;
        dir->load_number = load_number;
    }
    const bool freezes = part->migrated_dir.frozen && !dir->frozen;
    dir->frozen |= freezes;
    coordinator_adopt_record(dir, &part->migrated_dir.record);
    const int code = home_dir_store(shuntd->home, dir);
    return code == 0 && freezes ? freeze_await_thaw(shuntd, part->dir) : code;
}

static int migration_take_record(struct shuntd *shuntd, const struct message *part)
{
    char path[PATH_MAX];
    message_copy_path(path, &part->record.path);
    struct home_dir *dir = home_dir_add(shuntd->home, part->dir, path);
    if (dir == NULL)
        return -ENOMEM;
    coordinator_adopt_record(dir, &part->record.record);
    return home_dir_store(shuntd->home, dir);
}

static int migration_take_claim(struct shuntd *shuntd, const struct message *part)
{
    struct home_dir *dir = home_dir_find(shuntd->home, part->dir);
    struct record_entry shown;
    if (dir == NULL && (dir = home_dir_add(shuntd->home, part->dir, "")) == NULL)
        return -ENOMEM;
    int code = home_claim_for(shuntd->home, dir, part->name.text, part->name.length, part->migrated_claim.member,
                              part->migrated_claim.operation);
    if (code == 0)
        code = rpc_take_entry(shuntd, &part->migrated_claim.shown, &shown);
    if (code != 0 || shown.state == 0)
        return code == -EBADMSG ? 0 : code;
    return home_put_entry(shuntd->home, dir->id, part->name.text, part->name.length, &shown);
}

static int migration_take_entry(struct shuntd *shuntd, const struct message *part)
{
    struct record_entry entry;
    const struct home_dir *dir = home_dir_find(shuntd->home, part->dir);
    if (dir != NULL && migration_is_new(shuntd, dir->load_number))
        return 0;
    int code = rpc_take_entry(shuntd, &part->migrated_entry.entry, &entry);
    if (code != 0 || entry.state == 0)
        return code == -EBADMSG ? 0 : code;
    return home_put_entry(shuntd->home, part->dir, part->name.text, part->name.length, &entry);
}

static int migration_take_coordinator(struct shuntd *shuntd, const struct message *part)
{
    struct home_dir *dir = home_dir_find(shuntd->home, part->dir);
    if (dir == NULL)
        dir = home_dir_add(shuntd->home, part->dir, "");
    struct home_coordinator *coordinator = dir != NULL ? home_coordinator(dir) : NULL;
    int code = coordinator != NULL ? 0 : -ENOMEM;
    const struct message_text *nodes = &part->migrated_coordinator.nodes;
    for (size_t i = 0; code >= 0 && i + 1 < nodes->length; i += 2) {
        uint16_t node;
        memcpy(&node, nodes->text + i, sizeof node);
        code = coordinator_add_node(coordinator, node);
    }
    if (code < 0)
        return code;
    coordinator->loaded = part->migrated_coordinator.loaded;
    coordinator->created_empty = part->migrated_coordinator.created_empty;
    coordinator->closing = part->migrated_coordinator.closing;
    coordinator->closed_for = 0;
    coordinator->sharded = part->migrated_coordinator.sharded;
    coordinator->delegation = coordinator->node_count == 1 ? part->migrated_coordinator.delegation : 0;
    if (coordinator->delegation != 0 && !session_has(&shuntd->session, coordinator->nodes[0]))
        delegation_lose(coordinator);
    return dir_times_take(shuntd, 0, part->dir, &part->migrated_coordinator.times);
}

static void migration_wake_dir(struct home_dir *dir, void *context)
{
    struct shuntd *shuntd = context;
    if (dir->disk_jobs > 0)
        return;
    home_dir_wake(shuntd->home, dir); /* collectives, and unlinks, that found names on their way */
    home_dir_release(shuntd->home, dir);
}

int migration_arrived(struct shuntd *shuntd, uint16_t from)
{
    struct route *route = &shuntd->route;
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        if (route->from[i] == from) {
            route->from[i] = 0;
            route->missing--;
        }
    bool told = route->unreported[from];
    if (told) {
        route->unreported[from] = false;
        route->unreported_count--;
        route->missing--;
    }
    route->dirty = true;
    if (route->missing == 0)
        home_dirs_each(shuntd->home, migration_wake_dir, shuntd);
    int code = rpc_receive_deferred(shuntd);
    return code == 0 && told && route->unreported_count == 0 ? coordinator_resume_all(shuntd) : code;
}

int migration_receive(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct message part;
    if (message_decode(&part, item->bytes, item->size) != 0 || part.epoch != shuntd->route.epoch) {
        shuntd->counts.malformed++;
        return 0;
    }
    switch (part.type) {
    case MESSAGE_MIGRATED_DIR:
        return migration_take_directory(shuntd, &part);
    case MESSAGE_MIGRATED_ENTRY:
        return migration_take_entry(shuntd, &part);
    case MESSAGE_MIGRATED_CLAIM:
        return migration_take_claim(shuntd, &part);
    case MESSAGE_MIGRATED_RECORD:
        return migration_take_record(shuntd, &part);
    case MESSAGE_MIGRATED_COORDINATOR:
        return migration_take_coordinator(shuntd, &part);
    case MESSAGE_MIGRATED_ALL:
        return migration_arrived(shuntd, member);
    default:
        shuntd->counts.malformed++;
        return 0;
    }
}

int migration_send_end(struct shuntd *shuntd, uint16_t member)
{
    return migration_send_part(shuntd, member, &(struct message){.type = MESSAGE_MIGRATED_ALL});
}

int migration_send_claim(struct shuntd *shuntd, const struct operation *operation)
{
    struct message part = {.type = MESSAGE_MIGRATED_CLAIM,
                           .dir = operation->dir->id,
                           .name = message_text(operation->name, operation->length),
                           .migrated_claim = {.shown = rpc_put_entry(shuntd, &operation->shown),
                                              .operation = operation->id,
                                              .member = shuntd->me.number}};
    uint16_t home = shuntd->route.home[operation->shard];
    return home == shuntd->me.number ? migration_take_claim(shuntd, &part) : migration_send_part(shuntd, home, &part);
}
