/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/migration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/coordinator.h"
#include "coordinator/delegation.h"
#include "coordinator/dir_times.h"
#include "home/home.h"
#include "reply/answer_queue.h"
#include "rpc/peer_rpc.h"
#include "rpc/receive.h"

/* What an old home sends, in `type`; tag is the epoch of the move. */
enum {
    PART_DIRECTORY = MESSAGE_LOADED,  /* dir[0], text, its record; result: frozen */
    PART_NAME = MESSAGE_NAME,         /* result 0: an entry; 1: held by member child.birth, by its operation child.ino */
    PART_RECORD = MESSAGE_RECORD,     /* to the next coordinator: dir[0], text, its record */
    PART_COORDINATOR = MESSAGE_NODES, /* result: enum coordinator_bit; text: the nodes, 2 bytes each */
    PART_END = MESSAGE_IDLE,
};
/* A coordinator's child.birth: by which gift it is wholly at home with its one node. */
enum coordinator_bit {
    COORDINATOR_LOADED = 1,
    COORDINATOR_CREATED_EMPTY = 2,
    COORDINATOR_CLOSING = 4,
    COORDINATOR_SHARDED = 8
};

/* Handing over. */

static int migration_send_part(struct shuntd *shuntd, uint16_t to, struct message *part)
{
    part->tag = shuntd->route.epoch;
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
    struct text *gone; /* names that went, each with a zero after it */
    int code;
};

static int migration_hand_name(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct handing *handing = context;
    struct shuntd *shuntd = handing->shuntd;
    uint16_t to = shuntd->route.to[record_shard(handing->dir, hash)];
    if (to == 0)
        return 0;
    struct message part = rpc_name_message(shuntd, handing->dir, name, length, entry);
    return migration_send_part(shuntd, to, &part);
}

static bool migration_is_lost(void *context, uint64_t hash)
{
    const struct handing *handing = context;
    return handing->shuntd->route.to[record_shard(handing->dir, hash)] != 0;
}

static int migration_hand_directory(struct handing *handing, struct home_dir *dir)
{
    struct message part = {.type = PART_DIRECTORY,
                           .result = dir->frozen,
                           .dir[0] = dir->id,
                           .text = dir->path,
                           .text_length = (uint16_t)strlen(dir->path)};
    int code = 0;
    coordinator_put_record(&part, dir);
    part.dir[1].birth = dir->load_number;
    for (size_t i = 0; i < handing->count && code == 0; i++)
        code = migration_send_part(handing->shuntd, handing->to[i], &part);
    handing->dir = dir->id;
    if (code == 0)
        code = index_list(handing->shuntd->index, dir->id, 0, migration_hand_name, handing);
    return code == 0 ? index_del_names(handing->shuntd->index, dir->id, migration_is_lost, handing) : code;
}

/* Also of one that none of its homes knows: what it was numbered, and where it is. */
static int migration_hand_record(struct handing *handing, struct home_dir *dir, uint16_t to)
{
    struct message part = {
        .type = PART_RECORD, .dir[0] = dir->id, .text = dir->path, .text_length = (uint16_t)strlen(dir->path)};
    coordinator_put_record(&part, dir);
    return migration_send_part(handing->shuntd, to, &part);
}

static int migration_hand_coordinator(struct handing *handing, struct home_dir *dir, uint16_t to)
{
    struct home_coordinator *coordinator = dir->coordinator;
    struct message part = {.type = PART_COORDINATOR,
                           .result = (coordinator->loaded ? COORDINATOR_LOADED : 0) |
                                     (coordinator->created_empty ? COORDINATOR_CREATED_EMPTY : 0) |
                                     (coordinator->closing ? COORDINATOR_CLOSING : 0) |
                                     (coordinator->sharded ? COORDINATOR_SHARDED : 0),
                           .dir[0] = dir->id};
    size_t most = (MESSAGE_TEXT_MAX - 1) / sizeof *coordinator->nodes;
    part.text = (const char *)coordinator->nodes;
    part.text_length =
        (uint16_t)((coordinator->node_count < most ? coordinator->node_count : most) * sizeof *coordinator->nodes);
    dir_times_put(&part, dir);
    part.child.birth = coordinator->delegation;
    int code = migration_hand_record(handing, dir, to);
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
    if (handing->code == 0 && dir->complete && dir->delegation == 0 && shuntd->route.own == 0)
        dir->complete = dir->frozen = false;
    if (handing->code == 0 && dir->coordinator != NULL && coordinator_to != 0)
        handing->code = migration_hand_coordinator(handing, dir, coordinator_to);
}

static int migration_hand_held(void *context, uint16_t to, struct dirid dir, const char *name, size_t length, uint16_t member,
                               uint64_t id)
{
    struct handing *handing = context;
    static const struct record_entry none;
    struct message part = rpc_name_message(handing->shuntd, dir, name, length, &none);
    part.result = 1;
    part.child = (struct dirid){.ino = id, .birth = member};
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
    home_dirs_each(shuntd->home, migration_note_busy, &handing);
    if (handing.code != 0) /* what concerns it as a whole comes to its end first */
        return 0;
    handing.count = migration_receivers(&shuntd->route, handing.to);
    home_dirs_each(shuntd->home, migration_hand_one, &handing);
    if (handing.code == 0)
        handing.code = home_hand_over(shuntd, shuntd->route.to, migration_hand_held, &handing);
    for (size_t i = 0; i < handing.count && handing.code == 0; i++)
        handing.code = migration_send_part(shuntd, handing.to[i], &(struct message){.type = PART_END});
    memset(shuntd->route.to, 0, sizeof shuntd->route.to);
    shuntd->route.hands_over = false;
    return handing.code;
}

/* A load that has begun since homes changed gives each home its names itself. */
static bool migration_is_new(const struct shuntd *shuntd, uint64_t load)
{
    return load >= (uint64_t)shuntd->route.epoch << RULE_EPOCH_BITS;
}

static int migration_take_directory(struct shuntd *shuntd, const struct message *part)
{
    char path[PATH_MAX];
    memcpy(path, part->text, part->text_length);
    path[part->text_length] = '\0';
    struct home_dir *dir = home_dir_find(shuntd->home, part->dir[0]);
    if (dir == NULL && (dir = home_dir_add(shuntd->home, part->dir[0], path)) == NULL)
        return -ENOMEM;
    if (!migration_is_new(shuntd, dir->load_number) && !migration_is_new(shuntd, part->dir[1].birth)) {
        dir->complete = true;
        dir->load_number = part->dir[1].birth;
    }
    dir->frozen |= part->result != 0;
    coordinator_adopt_record(dir, part);
    return home_dir_store(shuntd, dir);
}

static int migration_take_record(struct shuntd *shuntd, const struct message *part)
{
    char path[PATH_MAX];
    memcpy(path, part->text, part->text_length);
    path[part->text_length] = '\0';
    struct home_dir *dir = home_dir_add(shuntd->home, part->dir[0], path);
    if (dir == NULL || home_dir_set_path(dir, path) != 0)
        return -ENOMEM;
    coordinator_adopt_record(dir, part);
    return home_dir_store(shuntd, dir);
}

static int migration_take_held(struct shuntd *shuntd, const struct message *part)
{
    struct home_dir *dir = home_dir_find(shuntd->home, part->dir[0]);
    struct record_entry shown;
    if (dir == NULL && (dir = home_dir_add(shuntd->home, part->dir[0], "")) == NULL)
        return -ENOMEM;
    int code = home_claim_for(shuntd, dir, part->name[0], part->name_length[0], (uint16_t)part->child.birth, part->child.ino);
    if (code == 0)
        code = rpc_entry(shuntd, part, &shown);
    if (code != 0 || shown.state == 0)
        return code == -EBADMSG ? 0 : code;
    return index_put_entry(shuntd->index, dir->id, part->name[0], part->name_length[0], &shown);
}

static int migration_take_name(struct shuntd *shuntd, const struct message *part)
{
    struct record_entry entry;
    if (part->result != 0)
        return migration_take_held(shuntd, part);
    const struct home_dir *dir = home_dir_find(shuntd->home, part->dir[0]);
    if (dir != NULL && migration_is_new(shuntd, dir->load_number))
        return 0;
    int code = rpc_entry(shuntd, part, &entry);
    if (code != 0 || entry.state == 0)
        return code == -EBADMSG ? 0 : code;
    return index_put_entry(shuntd->index, part->dir[0], part->name[0], part->name_length[0], &entry);
}

static int migration_take_coordinator(struct shuntd *shuntd, const struct message *part)
{
    struct home_dir *dir = home_dir_find(shuntd->home, part->dir[0]);
    if (dir == NULL)
        dir = home_dir_add(shuntd->home, part->dir[0], "");
    struct home_coordinator *coordinator = dir != NULL ? home_coordinator(dir) : NULL;
    int code = coordinator != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; code >= 0 && i + 1 < part->text_length; i += 2) {
        uint16_t node;
        memcpy(&node, part->text + i, sizeof node);
        code = coordinator_add_node(coordinator, node);
    }
    if (code < 0)
        return code;
    coordinator->loaded = (part->result & COORDINATOR_LOADED) != 0;
    coordinator->created_empty = (part->result & COORDINATOR_CREATED_EMPTY) != 0;
    coordinator->closing = (part->result & COORDINATOR_CLOSING) != 0;
    coordinator->sharded = (part->result & COORDINATOR_SHARDED) != 0;
    coordinator->delegation = coordinator->node_count == 1 ? part->child.birth : 0;
    if (coordinator->delegation != 0 && !session_has(&shuntd->session, coordinator->nodes[0]))
        delegation_lose(coordinator);
    return dir_times_take(shuntd, 0, part);
}

static void migration_wake_dir(struct home_dir *dir, void *context)
{
    struct shuntd *shuntd = context;
    if (dir->disk_jobs == 0)
        home_dir_wake(shuntd->home, dir); /* collectives, and unlinks, that found names on their way */
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
    if (message_decode(&part, item->bytes, item->size) != 0 || part.tag != shuntd->route.epoch) {
        shuntd->counts.malformed++;
        return 0;
    }
    switch (part.type) {
    case PART_DIRECTORY:
        return migration_take_directory(shuntd, &part);
    case PART_NAME:
        return migration_take_name(shuntd, &part);
    case PART_RECORD:
        return migration_take_record(shuntd, &part);
    case PART_COORDINATOR:
        return migration_take_coordinator(shuntd, &part);
    case PART_END:
        return migration_arrived(shuntd, member);
    default:
        shuntd->counts.malformed++;
        return 0;
    }
}

int migration_send_end(struct shuntd *shuntd, uint16_t member)
{
    return migration_send_part(shuntd, member, &(struct message){.type = PART_END});
}

int migration_send_claim(struct shuntd *shuntd, const struct operation *operation)
{
    struct message part = rpc_name_message(shuntd, operation->dir->id, operation->name, operation->length, &operation->shown);
    uint16_t home = shuntd->route.home[operation->shard];
    part.result = 1;
    part.child = (struct dirid){.ino = operation->id, .birth = shuntd->me.number};
    return home == shuntd->me.number ? migration_take_held(shuntd, &part) : migration_send_part(shuntd, home, &part);
}
