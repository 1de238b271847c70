/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/migration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/peer_rpc.h"
#include "membership/route.h"
#include "coordinator/coordinator.h"
#include "coordinator/dir_times.h"
#include "coordinator/delegation.h"

/* An item that waits for what it is about. */
struct kept {
    struct link link;
    uint16_t member;
    struct frame_item item;
    uint8_t bytes[];
};

/* What an old home sends, in `type`; tag is the epoch of the move. */
enum {
    PART_DIRECTORY = MESSAGE_KNOWN, /* dir[0], text, its record; result: sealed */
    PART_NAME = MESSAGE_NAME,       /* result 0: an entry; 1: held by member child.birth, by its flight child.ino */
    PART_RECORD = MESSAGE_RECORD,   /* to the next ruler: dir[0], text, its record */
    PART_RULER = MESSAGE_NODES,     /* result: enum ruler_bit; text: the nodes, 2 bytes each */
    PART_END = MESSAGE_IDLE,
};
/* A ruler's child.birth: by which gift it is wholly at home with its one node. */
enum ruler_bit { RULER_LOADED = 1, RULER_BORN = 2, RULER_CLOSED = 4, RULER_SPREAD = 8 };

/* Handing over. */

static int send_part(struct shuntd *shuntd, uint16_t to, struct message *part)
{
    part->tag = shuntd->route.epoch;
    return relay_message(shuntd, to, RELAY_MOVE, 0, part);
}

/* Each member that gets something. */
static size_t receivers(const struct route *route, uint16_t *to)
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
    struct text *gone; /* names that went, each with a zero behind it */
    int code;
};

static int hand_name(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct handing *handing = context;
    struct shuntd *shuntd = handing->shuntd;
    uint16_t to = shuntd->route.to[record_shard(handing->dir, hash)];
    if (to == 0)
        return 0;
    struct message part = relay_about(shuntd, handing->dir, name, length, entry);
    return send_part(shuntd, to, &part);
}

static bool is_lost(void *context, uint64_t hash)
{
    const struct handing *handing = context;
    return handing->shuntd->route.to[record_shard(handing->dir, hash)] != 0;
}

static int hand_directory(struct handing *handing, struct home_dir *dir)
{
    struct message part = {.type = PART_DIRECTORY,
                           .result = dir->sealed,
                           .dir[0] = dir->id,
                           .text = dir->path,
                           .text_length = (uint16_t)strlen(dir->path)};
    int code = 0;
    rule_put_record(&part, dir);
    part.dir[1].birth = dir->load;
    for (size_t i = 0; i < handing->count && code == 0; i++)
        code = send_part(handing->shuntd, handing->to[i], &part);
    handing->dir = dir->id;
    if (code == 0)
        code = index_list(handing->shuntd->index, dir->id, 0, hand_name, handing);
    return code == 0 ? index_del_names(handing->shuntd->index, dir->id, is_lost, handing) : code;
}

/* Also of one that none of its homes knows: what it was numbered, and where it is. */
static int hand_record(struct handing *handing, struct home_dir *dir, uint16_t to)
{
    struct message part = {
        .type = PART_RECORD, .dir[0] = dir->id, .text = dir->path, .text_length = (uint16_t)strlen(dir->path)};
    rule_put_record(&part, dir);
    return send_part(handing->shuntd, to, &part);
}

static int hand_ruler(struct handing *handing, struct home_dir *dir, uint16_t to)
{
    struct home_ruler *ruler = dir->ruler;
    struct message part = {.type = PART_RULER,
                           .result = (ruler->loaded ? RULER_LOADED : 0) | (ruler->born ? RULER_BORN : 0) |
                                     (ruler->closed ? RULER_CLOSED : 0) | (ruler->spread ? RULER_SPREAD : 0),
                           .dir[0] = dir->id};
    size_t most = (MESSAGE_TEXT_MAX - 1) / sizeof *ruler->nodes;
    part.text = (const char *)ruler->nodes;
    part.text_length = (uint16_t)((ruler->node_count < most ? ruler->node_count : most) * sizeof *ruler->nodes);
    times_put(&part, dir);
    part.child.birth = ruler->whole;
    int code = hand_record(handing, dir, to);
    if (code == 0)
        code = send_part(handing->shuntd, to, &part);
    rule_forget(ruler);
    list_move(&ruler->waiting, &ruler->sealing);
    return code == 0 ? rule_rest(handing->shuntd, dir->id) : code;
}

static void hand_one(struct home_dir *dir, void *context)
{
    struct handing *handing = context;
    struct shuntd *shuntd = handing->shuntd;
    uint16_t ruler_to = shuntd->route.to[record_shard(dir->id, 0)];
    home_send_away(shuntd->home, dir);
    if (handing->code == 0 && dir->complete && dir->whole == 0)
        handing->code = hand_directory(handing, dir);
    if (handing->code == 0 && dir->complete && dir->whole == 0 && shuntd->route.own == 0)
        dir->complete = dir->sealed = false;
    if (handing->code == 0 && dir->ruler != NULL && ruler_to != 0)
        handing->code = hand_ruler(handing, dir, ruler_to);
}

static int hand_held(void *context, uint16_t to, struct dirid dir, const char *name, size_t length, uint16_t member,
                     uint64_t id)
{
    struct handing *handing = context;
    static const struct record_entry none;
    struct message part = relay_about(handing->shuntd, dir, name, length, &none);
    part.result = 1;
    part.child = (struct dirid){.ino = id, .birth = member};
    return send_part(handing->shuntd, to, &part);
}

/* What is to be given back (whole.h) is given back to the next ruler. */
static void note_busy(struct home_dir *dir, void *context)
{
    struct handing *handing = context;
    if (dir->ruler != NULL && dir->ruler->busy && !dir->ruler->recalls &&
        handing->shuntd->route.to[record_shard(dir->id, 0)] != 0)
        handing->code = 1;
}

/* Directories go before who holds names in them. */
int move_hand_over(struct shuntd *shuntd)
{
    struct handing handing = {.shuntd = shuntd};
    home_dirs_each(shuntd->home, note_busy, &handing);
    if (handing.code != 0) /* what concerns it as a whole comes to its end first */
        return 0;
    handing.count = receivers(&shuntd->route, handing.to);
    home_dirs_each(shuntd->home, hand_one, &handing);
    if (handing.code == 0)
        handing.code = home_hand_over(shuntd, shuntd->route.to, hand_held, &handing);
    for (size_t i = 0; i < handing.count && handing.code == 0; i++)
        handing.code = send_part(shuntd, handing.to[i], &(struct message){.type = PART_END});
    memset(shuntd->route.to, 0, sizeof shuntd->route.to);
    shuntd->route.hands_over = false;
    return handing.code;
}

/* Taking over. */

int move_keep(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct kept *kept = malloc(sizeof *kept + item->size);
    if (kept == NULL)
        return -ENOMEM;
    kept->member = member;
    kept->item = *item;
    kept->item.bytes = kept->bytes;
    memcpy(kept->bytes, item->bytes, item->size);
    list_append(&shuntd->kept, &kept->link);
    return 0;
}

int move_take_kept(struct shuntd *shuntd)
{
    struct link waiting;
    int code = 0;
    list_init(&waiting);
    list_move(&waiting, &shuntd->kept);
    for (struct link *link; code == 0 && (link = list_take(&waiting)) != NULL;) {
        struct kept *kept = LINK_OF(link, struct kept, link);
        if (kept->member == shuntd->me.number || session_has(&shuntd->session, kept->member))
            code = relay_kept(shuntd, kept->member, &kept->item);
        free(kept);
    }
    return code;
}

/* A load that has begun since homes changed gives each home its names itself. */
static bool is_new(const struct shuntd *shuntd, uint64_t load)
{
    return load >= (uint64_t)shuntd->route.epoch << RULE_EPOCH_BITS;
}

static int take_directory(struct shuntd *shuntd, const struct message *part)
{
    char path[PATH_MAX];
    memcpy(path, part->text, part->text_length);
    path[part->text_length] = '\0';
    struct home_dir *dir = home_dir_find(shuntd->home, part->dir[0]);
    if (dir == NULL && (dir = home_dir_add(shuntd->home, part->dir[0], path)) == NULL)
        return -ENOMEM;
    if (!is_new(shuntd, dir->load) && !is_new(shuntd, part->dir[1].birth)) {
        dir->complete = true;
        dir->load = part->dir[1].birth;
    }
    dir->sealed |= part->result != 0;
    rule_take_record(dir, part);
    return home_dir_store(shuntd, dir);
}

static int take_record(struct shuntd *shuntd, const struct message *part)
{
    char path[PATH_MAX];
    memcpy(path, part->text, part->text_length);
    path[part->text_length] = '\0';
    struct home_dir *dir = home_dir_add(shuntd->home, part->dir[0], path);
    if (dir == NULL || home_dir_set_path(dir, path) != 0)
        return -ENOMEM;
    rule_take_record(dir, part);
    return home_dir_store(shuntd, dir);
}

static int take_held(struct shuntd *shuntd, const struct message *part)
{
    struct home_dir *dir = home_dir_find(shuntd->home, part->dir[0]);
    struct record_entry shown;
    if (dir == NULL && (dir = home_dir_add(shuntd->home, part->dir[0], "")) == NULL)
        return -ENOMEM;
    int code = home_hold_for(shuntd, dir, part->name[0], part->name_length[0], (uint16_t)part->child.birth, part->child.ino);
    if (code == 0)
        code = relay_entry(shuntd, part, &shown);
    if (code != 0 || shown.state == 0)
        return code == -EBADMSG ? 0 : code;
    return index_put_entry(shuntd->index, dir->id, part->name[0], part->name_length[0], &shown);
}

static int take_name(struct shuntd *shuntd, const struct message *part)
{
    struct record_entry entry;
    if (part->result != 0)
        return take_held(shuntd, part);
    const struct home_dir *dir = home_dir_find(shuntd->home, part->dir[0]);
    if (dir != NULL && is_new(shuntd, dir->load))
        return 0;
    int code = relay_entry(shuntd, part, &entry);
    if (code != 0 || entry.state == 0)
        return code == -EBADMSG ? 0 : code;
    return index_put_entry(shuntd->index, part->dir[0], part->name[0], part->name_length[0], &entry);
}

static int take_ruler(struct shuntd *shuntd, const struct message *part)
{
    struct home_dir *dir = home_dir_find(shuntd->home, part->dir[0]);
    if (dir == NULL)
        dir = home_dir_add(shuntd->home, part->dir[0], "");
    struct home_ruler *ruler = dir != NULL ? home_ruler(dir) : NULL;
    int code = ruler != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; code >= 0 && i + 1 < part->text_length; i += 2) {
        uint16_t node;
        memcpy(&node, part->text + i, sizeof node);
        code = rule_add_node(ruler, node);
    }
    if (code < 0)
        return code;
    ruler->loaded = (part->result & RULER_LOADED) != 0;
    ruler->born = (part->result & RULER_BORN) != 0;
    ruler->closed = (part->result & RULER_CLOSED) != 0;
    ruler->spread = (part->result & RULER_SPREAD) != 0;
    ruler->whole = ruler->node_count == 1 ? part->child.birth : 0;
    if (ruler->whole != 0 && !session_has(&shuntd->session, ruler->nodes[0]))
        whole_lose(ruler);
    return times_take(shuntd, 0, part);
}

static void wake_dir(struct home_dir *dir, void *context)
{
    struct shuntd *shuntd = context;
    if (dir->working == 0)
        home_dir_rest(shuntd->home, dir); /* collectives, and removals, that found names on their way */
}

int move_has_come(struct shuntd *shuntd, uint16_t from)
{
    struct route *route = &shuntd->route;
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        if (route->from[i] == from) {
            route->from[i] = 0;
            route->missing--;
        }
    bool told = route->untold[from];
    if (told) {
        route->untold[from] = false;
        route->untold_count--;
        route->missing--;
    }
    route->dirty = true;
    if (route->missing == 0)
        home_dirs_each(shuntd->home, wake_dir, shuntd);
    int code = move_take_kept(shuntd);
    return code == 0 && told && route->untold_count == 0 ? rule_rest_all(shuntd) : code;
}

int move_take(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct message part;
    if (message_decode(&part, item->bytes, item->size) != 0 || part.tag != shuntd->route.epoch) {
        shuntd->counts.malformed++;
        return 0;
    }
    switch (part.type) {
    case PART_DIRECTORY:
        return take_directory(shuntd, &part);
    case PART_NAME:
        return take_name(shuntd, &part);
    case PART_RECORD:
        return take_record(shuntd, &part);
    case PART_RULER:
        return take_ruler(shuntd, &part);
    case PART_END:
        return move_has_come(shuntd, member);
    default:
        shuntd->counts.malformed++;
        return 0;
    }
}

int move_tell_end(struct shuntd *shuntd, uint16_t member)
{
    return send_part(shuntd, member, &(struct message){.type = PART_END});
}

int move_tell_held(struct shuntd *shuntd, const struct flight *flight)
{
    struct message part = relay_about(shuntd, flight->dir->id, flight->name, flight->length, &flight->shown);
    uint16_t home = shuntd->route.home[flight->shard];
    part.result = 1;
    part.child = (struct dirid){.ino = flight->id, .birth = shuntd->me.number};
    return home == shuntd->me.number ? take_held(shuntd, &part) : send_part(shuntd, home, &part);
}

void move_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->kept)) != NULL;)
        free(LINK_OF(link, struct kept, link));
}
