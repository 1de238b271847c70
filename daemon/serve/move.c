/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "serve/move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "base/log.h"
#include "serve/cast.h"
#include "serve/relay.h"
#include "serve/route.h"
#include "serve/rule.h"
#include "serve/times.h"

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
    PART_RULER = MESSAGE_NODES,     /* result: enum ruler_bit; text: the nodes, 2 bytes each */
    PART_END = MESSAGE_IDLE,
};
enum ruler_bit { RULER_LOADED = 1, RULER_BORN = 2, RULER_CLOSED = 4 };

static void count_own(struct route *route, uint16_t me)
{
    route->own = 0;
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        route->own += route->home[i] == me;
}

void move_found(struct shuntd *shuntd)
{
    struct route *route = &shuntd->route;
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        route->home[i] = shuntd->me.number;
    count_own(route, shuntd->me.number);
    route->epoch = (uint32_t)shuntd->session.moved;
    route->dirty = true;
}

/* Who is home. */

static bool is_home_now(uint8_t part)
{
    return part == SESSION_HOME || part == SESSION_LEAVING || part == SESSION_COMING;
}

static bool was_home(uint8_t part)
{
    return part == SESSION_HOME || part == SESSION_LEAVING || part == SESSION_GOING;
}

static size_t list(const struct session *session, bool (*is)(uint8_t), uint16_t *to)
{
    size_t count = 0;
    for (size_t i = 0; i < session->count; i++)
        if (is(session->members[i].home))
            to[count++] = session->members[i].number;
    return count;
}

static bool is_moving(const struct session *session)
{
    for (size_t i = 0; i < session->count; i++)
        if (session->members[i].home == SESSION_COMING || session->members[i].home == SESSION_GOING)
            return true;
    return false;
}

/* The first of those who were homes sees a move through; where none is left, of those who are to be. */
static uint16_t first_home(const struct session *session)
{
    uint16_t homes[SESSION_MEMBERS_MAX];
    return list(session, was_home, homes) > 0 || list(session, is_home_now, homes) > 0 ? homes[0] : 0;
}

/* A home has died: none of those that are to be homes was one before. */
static bool begins_anew(const struct session *session)
{
    uint16_t before[SESSION_MEMBERS_MAX];
    return is_moving(session) && list(session, was_home, before) == 0;
}

/* A shard whose old home is no member any more has nothing to be waited for: its directories are read again. */
static void assign(struct shuntd *shuntd, uint32_t shard, uint16_t next, uint16_t old)
{
    struct route *route = &shuntd->route;
    uint16_t me = shuntd->me.number;
    if (route->home[shard] == me && next != me)
        route->to[shard] = next;
    if (next == me && route->home[shard] != me && old != 0 && old != me)
        route->from[shard] = old;
    route->home[shard] = next;
}

static void reassign(struct shuntd *shuntd)
{
    uint16_t now[SESSION_MEMBERS_MAX], before[SESSION_MEMBERS_MAX];
    size_t count = list(&shuntd->session, is_home_now, now);
    size_t old_count = list(&shuntd->session, was_home, before);
    bool moving = is_moving(&shuntd->session);
    struct route *route = &shuntd->route;
    for (uint32_t i = 0; i < RECORD_SHARDS && count > 0; i++)
        assign(shuntd, i, route_rendezvous(i, now, count),
               moving && old_count > 0 ? route_rendezvous(i, before, old_count) : 0);
    count_own(route, shuntd->me.number);
    route->missing = route->untold_count;
    route->hands_over = false;
    for (unsigned i = 0; i < RECORD_SHARDS; i++) {
        route->missing += route->from[i] != 0;
        route->hands_over |= route->to[i] != 0;
    }
}

struct listed {
    struct home *home;
    struct home_dir *dir;
};

static bool was_listed(void *context, uint64_t hash)
{
    const struct listed *listed = context;
    return home_may_list(listed->home, listed->dir, hash);
}

/* A directory that is being loaded is loaded again: its ruler finds the homes changed. */
static void forget_listed(struct home_dir *dir, void *context)
{
    struct shuntd *shuntd = context;
    if (dir->complete || dir->listed + dir->expected == 0)
        return;
    index_del_names(shuntd->index, dir->id, was_listed, &(struct listed){shuntd->home, dir});
    dir->listed = dir->expected = 0;
    home_dir_rest(shuntd->home, dir);
}

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

static int hand_name(void *context, uint64_t hash, const char *name, size_t length,
                     const struct record_entry *entry)
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
    for (size_t i = 0; i < handing->count && code == 0; i++)
        code = send_part(handing->shuntd, handing->to[i], &part);
    handing->dir = dir->id;
    if (code == 0)
        code = index_list(handing->shuntd->index, dir->id, 0, hand_name, handing);
    return code == 0 ? index_del_names(handing->shuntd->index, dir->id, is_lost, handing) : code;
}

static int hand_ruler(struct handing *handing, struct home_dir *dir, uint16_t to)
{
    struct home_ruler *ruler = dir->ruler;
    struct message part = {.type = PART_RULER,
                           .result = (ruler->loaded ? RULER_LOADED : 0) | (ruler->born ? RULER_BORN : 0) |
                                     (ruler->closed ? RULER_CLOSED : 0),
                           .dir[0] = dir->id};
    size_t most = (MESSAGE_TEXT_MAX - 1) / sizeof *ruler->nodes;
    part.text = (const char *)ruler->nodes;
    part.text_length =
        (uint16_t)((ruler->node_count < most ? ruler->node_count : most) * sizeof *ruler->nodes);
    times_put(&part, dir);
    int code = send_part(handing->shuntd, to, &part);
    ruler->loaded = ruler->born = ruler->closed = false;
    list_move(&ruler->waiting, &ruler->sealing);
    return code == 0 ? rule_rest(handing->shuntd, dir->id) : code;
}

static void hand_one(struct home_dir *dir, void *context)
{
    struct handing *handing = context;
    struct shuntd *shuntd = handing->shuntd;
    uint16_t ruler_to = shuntd->route.to[record_shard(dir->id, 0)];
    home_send_away(shuntd->home, dir);
    if (handing->code == 0 && dir->complete)
        handing->code = hand_directory(handing, dir);
    if (handing->code == 0 && dir->complete && shuntd->route.own == 0)
        dir->complete = dir->sealed = false;
    if (handing->code == 0 && dir->ruler != NULL && ruler_to != 0)
        handing->code = hand_ruler(handing, dir, ruler_to);
}

static int hand_held(void *context, uint16_t to, struct dirid dir, const char *name, size_t length,
                     uint16_t member, uint64_t id)
{
    struct handing *handing = context;
    static const struct record_entry none;
    struct message part = relay_about(handing->shuntd, dir, name, length, &none);
    part.result = 1;
    part.child = (struct dirid){.ino = id, .birth = member};
    return send_part(handing->shuntd, to, &part);
}

static void note_busy(struct home_dir *dir, void *context)
{
    struct handing *handing = context;
    if (dir->ruler != NULL && dir->ruler->busy &&
        handing->shuntd->route.to[record_shard(dir->id, 0)] != 0)
        handing->code = 1;
}

/* Directories go before who holds names in them. */
static int hand_over(struct shuntd *shuntd)
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

static int take_kept(struct shuntd *shuntd)
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

static int take_directory(struct shuntd *shuntd, const struct message *part)
{
    char path[PATH_MAX];
    memcpy(path, part->text, part->text_length);
    path[part->text_length] = '\0';
    struct home_dir *dir = home_dir_find(shuntd->home, part->dir[0]);
    if (dir == NULL && (dir = home_dir_add(shuntd->home, part->dir[0], path)) == NULL)
        return -ENOMEM;
    dir->complete = true;
    dir->sealed |= part->result != 0;
    rule_take_record(dir, part);
    return home_dir_store(shuntd, dir);
}

static int take_held(struct shuntd *shuntd, const struct message *part)
{
    struct home_dir *dir = home_dir_find(shuntd->home, part->dir[0]);
    struct record_entry shown;
    if (dir == NULL && (dir = home_dir_add(shuntd->home, part->dir[0], "")) == NULL)
        return -ENOMEM;
    int code = home_hold_for(shuntd, dir, part->name[0], part->name_length[0], (uint16_t)part->child.birth,
                             part->child.ino);
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
    return times_take(shuntd, 0, part);
}

static void wake_dir(struct home_dir *dir, void *context)
{
    struct shuntd *shuntd = context;
    if (dir->working == 0)
        home_dir_rest(shuntd->home, dir); /* collectives, and removals, that found names on their way */
}

static int all_has_come(struct shuntd *shuntd, uint16_t from)
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
    int code = take_kept(shuntd);
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
    case PART_RULER:
        return take_ruler(shuntd, &part);
    case PART_END:
        return all_has_come(shuntd, member);
    default:
        shuntd->counts.malformed++;
        return 0;
    }
}

/* Another epoch. */

/* A home has died: what it had in its index is on the file system. Everything is read again, directory by directory,
 * as it is used; what is under way ends as it began. */
bool move_has_lost(const struct shuntd *shuntd)
{
    const struct route *route = &shuntd->route;
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        if (route->home[i] != 0 && !session_has(&shuntd->session, route->home[i]))
            return true;
    return false;
}

/* What is under way in it goes on, in its mirrors: they are what they were as long as its marker is there. */
static void forget(struct home_dir *dir, void *context)
{
    struct shuntd *shuntd = context;
    struct record_dir record = {.flags = dir->record.flags & RECORD_MARKED, .marker = dir->record.marker};
    memcpy(record.mirror, dir->record.mirror, sizeof record.mirror);
    index_del_dir(shuntd->index, dir->id);
    if (dir->ruler != NULL) {
        dir->ruler->loaded = dir->ruler->born = dir->ruler->closed = false;
        list_move(&dir->ruler->waiting, &dir->ruler->sealing); /* nobody will say any more that a name is free */
    }
    bool stays = dir->flights > 0; /* else it may be gone now */
    home_dir_drop(shuntd->home, dir);
    if (stays)
        dir->record = record;
}

static void forget_all(struct shuntd *shuntd)
{
    struct route *route = &shuntd->route;
    log_line("a daemon that was home of names is gone: they are read again");
    memset(route->from, 0, sizeof route->from);
    memset(route->to, 0, sizeof route->to);
    home_let_go(shuntd->home);
    home_dirs_each(shuntd->home, forget, shuntd);
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        route->home[i] = 0;
}

/* Who joined later than the home died holds nothing, and says so, too; but nobody else tells him. Who is lost says
 * nothing: until he is dropped, his processes may be at work. */
static void await_all(struct shuntd *shuntd)
{
    const struct session_member *me = session_find(&shuntd->session, shuntd->me.number);
    struct route *route = &shuntd->route;
    memset(route->untold, 0, sizeof route->untold);
    route->untold_count = 0;
    for (size_t i = 0; i < shuntd->session.count && me != NULL && is_home_now(me->home); i++) {
        const struct session_member *member = &shuntd->session.members[i];
        if (member == me || member->address_size == 0 || BROKEN("held-untold"))
            continue;
        route->untold[member->number] = true;
        route->untold_count++;
    }
}

static int tell_held(void *context, const struct flight *flight)
{
    struct shuntd *shuntd = context;
    struct message part = relay_about(shuntd, flight->dir->id, flight->name, flight->length, &flight->shown);
    uint16_t home = route_of_name(shuntd, flight->dir->id, flight->name, flight->length);
    part.result = 1;
    part.child = (struct dirid){.ino = flight->id, .birth = shuntd->me.number};
    return home == shuntd->me.number ? take_held(shuntd, &part) : send_part(shuntd, home, &part);
}

static int tell_all_held(struct shuntd *shuntd)
{
    int code = BROKEN("held-untold") ? 0 : flight_each_held(shuntd->home, tell_held, shuntd);
    for (size_t i = 0; i < shuntd->session.count && code == 0; i++) {
        const struct session_member *member = &shuntd->session.members[i];
        if (member->number != shuntd->me.number && is_home_now(member->home))
            code = send_part(shuntd, member->number, &(struct message){.type = PART_END});
    }
    return code;
}

/* What waited for a daemon that is gone is asked again. */
static int begin_again(struct shuntd *shuntd)
{
    int code = tell_all_held(shuntd);
    if (code == 0)
        code = take_kept(shuntd);
    if (code == 0)
        code = serve_ask_again(shuntd);
    if (code == 0)
        code = rule_ask_again(shuntd);
    if (code == 0 && !move_is_gathering(shuntd))
        code = rule_rest_all(shuntd);
    return code == 0 ? list_again(shuntd) : code;
}

int move_gone(struct shuntd *shuntd)
{
    int code = 0;
    for (uint32_t member = 1; member < shuntd->session.next && code == 0; member++)
        if (shuntd->route.untold[member] && session_find(&shuntd->session, (uint16_t)member) == NULL)
            code = all_has_come(shuntd, (uint16_t)member);
    return code;
}

int move_adopt(struct shuntd *shuntd)
{
    struct route *route = &shuntd->route;
    if ((uint32_t)shuntd->session.moved == route->epoch)
        return 0;
    route->epoch = (uint32_t)shuntd->session.moved;
    bool anew = begins_anew(&shuntd->session);
    if (anew) {
        route->anew = route->epoch;
        forget_all(shuntd);
        await_all(shuntd);
    }
    reassign(shuntd);
    home_dirs_each(shuntd->home, forget_listed, shuntd);
    move_publish_losses(shuntd);
    return anew ? begin_again(shuntd) : 0;
}

/* The end of a move. */

static bool has_done_its_part(const struct shuntd *shuntd)
{
    const struct session *session = &shuntd->session;
    if (shuntd->route.hands_over || shuntd->route.missing > 0)
        return false;
    for (size_t i = 0; i < session->count; i++)
        if (session->members[i].home == SESSION_GOING &&
            !peers_is_idle(shuntd->peers, session->members[i].number))
            return false;
    return true;
}

int cast_moved_on(struct shuntd *shuntd, struct cast *cast, const struct message *message)
{
    if (message->tag != shuntd->route.epoch || has_done_its_part(shuntd))
        return 0;
    cast_wait_on(cast, &shuntd->checks);
    return CAST_LATER;
}

/* Publishes what homes are from now on; an epoch of somebody else's came first: it is looked at, and this again. */
static int publish(struct shuntd *shuntd, bool moves)
{
    uint64_t before = shuntd->session.moved;
    if (moves)
        shuntd->session.moved = shuntd->session.epoch + 1;
    int code = session_revise(shuntd->root.path, &shuntd->session);
    if (code == 0)
        return relay_adopt(shuntd);
    shuntd->session.moved = before;
    if (code != -ESTALE)
        log_line("the session cannot be told its homes: %s", strerror(-code));
    return relay_reread(shuntd);
}

static int all_have_moved(struct shuntd *shuntd, void *context, const struct cast_end *end)
{
    shuntd->checking = false;
    if (end->result == 0 && (uint32_t)shuntd->session.moved == shuntd->checked)
        shuntd->moved = true; /* published with the next step, outside of what called this */
    return 0;
}

static void finish_parts(struct session *session)
{
    for (size_t i = 0; i < session->count; i++) {
        uint8_t *part = &session->members[i].home;
        *part = *part == SESSION_COMING ? SESSION_HOME : *part == SESSION_GOING ? SESSION_GONE : *part;
    }
}

/* Who comes, who goes. False: nothing changes. */
static bool begin_parts(struct session *session)
{
    bool stays = false, comes = false, goes = false;
    for (size_t i = 0; i < session->count; i++) {
        const struct session_member *member = &session->members[i];
        comes |= member->home == SESSION_GUEST && member->address_size > 0;
        goes |= member->home == SESSION_LEAVING;
        stays |= member->home == SESSION_HOME;
    }
    for (size_t i = 0; i < session->count; i++) {
        struct session_member *member = &session->members[i];
        if (member->home == SESSION_GUEST && member->address_size > 0)
            member->home = SESSION_COMING;
        if (member->home == SESSION_LEAVING)
            member->home = stays || comes ? SESSION_GOING : SESSION_GONE;
    }
    return comes || goes;
}

/* A home has died. Nobody hands anything over: all who are homes from now on were none before. */
static void begin_anew(struct session *session)
{
    begin_parts(session);
    for (size_t i = 0; i < session->count; i++) {
        uint8_t *part = &session->members[i].home;
        *part = *part == SESSION_HOME ? SESSION_COMING : *part == SESSION_GOING ? SESSION_GONE : *part;
    }
}

int move_lose(struct shuntd *shuntd)
{
    begin_anew(&shuntd->session);
    return publish(shuntd, true);
}

static int check(struct shuntd *shuntd)
{
    const struct message moved_on = {.type = MESSAGE_IDLE, .tag = shuntd->route.epoch};
    if (shuntd->checking)
        return 0;
    shuntd->checking = true;
    shuntd->checked = shuntd->route.epoch;
    return cast_begin(shuntd, &moved_on, NULL, all_have_moved, NULL);
}

/* When all homes have gone, and this daemon came too late to take over from them, what was in their indexes is read
 * again from the file system. */
static bool must_begin(const struct shuntd *shuntd)
{
    const struct session *session = &shuntd->session;
    for (size_t i = 0; i < session->count; i++)
        if (session->members[i].home != SESSION_GUEST ||
            (session->members[i].address_size > 0 && session->members[i].number < shuntd->me.number))
            return false;
    return shuntd->stop == 0;
}

static int lead(struct shuntd *shuntd)
{
    if (is_moving(&shuntd->session) && !shuntd->moved)
        return check(shuntd);
    if (shuntd->moved) {
        shuntd->moved = false;
        finish_parts(&shuntd->session);
        return publish(shuntd, false);
    }
    if (move_has_lost(shuntd)) {
        begin_anew(&shuntd->session);
        return publish(shuntd, true);
    }
    return begin_parts(&shuntd->session) ? publish(shuntd, true) : 0;
}

int move_step(struct shuntd *shuntd)
{
    int code = shuntd->route.hands_over ? hand_over(shuntd) : 0;
    if (code == 0 && has_done_its_part(shuntd))
        home_ready(shuntd->home, &shuntd->checks);
    uint16_t first = first_home(&shuntd->session);
    if (code != 0 || shuntd->me.address_size == 0 || (shuntd->session.count < 2 && first != 0))
        return code;
    if (first == 0)
        code = relay_look(shuntd);
    if (first == shuntd->me.number)
        return lead(shuntd);
    if (code == 0 && first == 0 && must_begin(shuntd)) {
        begin_anew(&shuntd->session);
        return publish(shuntd, true);
    }
    return code;
}

bool move_is_under_way(const struct shuntd *shuntd)
{
    return shuntd->route.hands_over || shuntd->route.missing > 0 || shuntd->checking || shuntd->moved ||
           !list_empty(&shuntd->checks) || first_home(&shuntd->session) == 0 || is_moving(&shuntd->session);
}

bool move_is_due(const struct shuntd *shuntd)
{
    return shuntd->moved && shuntd->me.address_size > 0 && shuntd->session.count > 1 &&
           first_home(&shuntd->session) == shuntd->me.number;
}

/* What processes of this node may take from the index: "absent" of names in these shards. */

void move_publish_losses(struct shuntd *shuntd)
{
    uint64_t homes[RECORD_SHARDS / 64] = {0};
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        if (shuntd->route.home[i] == shuntd->me.number && !move_is_awaited(shuntd, i))
            homes[i / 64] |= 1ull << (i % 64);
    listen_set_homes(shuntd->listen, homes);
    if (!route_is_sole(shuntd)) /* other nodes may change directories in their mirrors */
        listen_set_redirected(shuntd->listen);
}

void move_publish(struct shuntd *shuntd)
{
    if (!shuntd->route.dirty)
        return;
    shuntd->route.dirty = false;
    move_publish_losses(shuntd);
}

/* Leaving. */

static bool is_alone(const struct shuntd *shuntd)
{
    return shuntd->session.count < 2 || shuntd->me.address_size == 0;
}

static bool has_lost_members(const struct shuntd *shuntd)
{
    for (size_t i = 0; i < shuntd->session.count; i++)
        if (shuntd->session.members[i].home == SESSION_LOST)
            return true;
    return false;
}

bool move_may_leave(struct shuntd *shuntd)
{
    struct session_member *me = session_find(&shuntd->session, shuntd->me.number);
    if (me == NULL || is_alone(shuntd))
        return true;
    if (has_lost_members(shuntd)) /* somebody is to fence them */
        return false;
    if (me->home == SESSION_GUEST || me->home == SESSION_GONE)
        return flight_count(shuntd->home) == 0 && !cast_is_under_way(shuntd) && !peers_wait(shuntd->peers);
    if (me->home == SESSION_HOME) {
        me->home = SESSION_LEAVING;
        publish(shuntd, false);
    }
    return false;
}

void move_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->kept)) != NULL;)
        free(LINK_OF(link, struct kept, link));
}
