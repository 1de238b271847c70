/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "serve/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "request/road.h"

#define CLIENT_BITS ((1ull << LISTEN_MEMBER_SHIFT) - 1)

/* The request of a lane that the home has not answered yet. A lane has one at a time. */
struct relayed {
    uint32_t tag; /* 0: none */
    uint16_t type;
    uint64_t client, serial;
    struct dirid dir;
};

struct relay {
    struct relayed lane[ROAD_LANES];
    unsigned waiting;
    bool welcome, bye;
};

int relay_create(struct relay **to)
{
    *to = calloc(1, sizeof **to);
    return *to != NULL ? 0 : -ENOMEM;
}

void relay_destroy(struct relay *relay)
{
    free(relay);
}

/* Where clients are. */

static int put(struct shuntd *shuntd, const struct frame_item *item)
{
    int code = peers_put(shuntd->peers, shuntd->home_member, item);
    return code == -EHOSTUNREACH ? 0 : code; /* who waits for an answer does so until his deadline */
}

static void note(struct relay *relay, const struct listen_request *request)
{
    struct relayed *relayed = &relay->lane[request->lane];
    if (request->message.tag == 0)
        return;
    relay->waiting += relayed->tag == 0;
    *relayed = (struct relayed){.tag = request->message.tag,
                                .type = request->message.type,
                                .client = request->client,
                                .serial = request->serial,
                                .dir = request->message.dir[0]};
}

int relay_request(struct shuntd *shuntd, const struct listen_request *request)
{
    const struct frame_item item = {.kind = RELAY_REQUEST,
                                    .lane = request->lane,
                                    .client = request->serial,
                                    .bytes = request->bytes,
                                    .size = (uint32_t)message_size(&request->message)};
    note(shuntd->relay, request);
    return put(shuntd, &item);
}

static void forget(struct relay *relay, struct relayed *relayed)
{
    relay->waiting -= relayed->tag != 0;
    relayed->tag = 0;
}

int relay_ended(struct shuntd *shuntd, pid_t client, uint64_t serial)
{
    const struct frame_item item = {.kind = RELAY_ENDED, .client = serial};
    for (unsigned i = 0; i < ROAD_LANES; i++)
        if (shuntd->relay->lane[i].serial == serial)
            forget(shuntd->relay, &shuntd->relay->lane[i]);
    return put(shuntd, &item);
}

int relay_given_up(struct shuntd *shuntd)
{
    int code = 0;
    for (uint32_t i = 0; i < ROAD_LANES && code == 0 && shuntd->relay->waiting > 0; i++) {
        struct relayed *relayed = &shuntd->relay->lane[i];
        const struct frame_item item = {.kind = RELAY_GAVE_UP,
                                        .lane = i,
                                        .client = relayed->serial,
                                        .bytes = (const uint8_t *)&relayed->tag,
                                        .size = sizeof relayed->tag};
        if (relayed->tag == 0 || !listen_gave_up(shuntd->listen, i, relayed->client, relayed->tag))
            continue;
        code = put(shuntd, &item);
        forget(shuntd->relay, relayed);
    }
    return code;
}

bool relay_is_congested(const struct shuntd *shuntd)
{
    return relay_is_needed(shuntd) && peers_is_congested(shuntd->peers, shuntd->home_member);
}

bool relay_waits(const struct shuntd *shuntd)
{
    return shuntd->relay->waiting > 0 || peers_wait(shuntd->peers);
}

/* A directory that the home has loaded is known here from then on: whose names must be asked for. */
static int loaded(struct shuntd *shuntd, const struct relayed *relayed, const struct message *answer)
{
    static const struct record_dir remote = {.flags = RECORD_LOADED | RECORD_REMOTE};
    return relayed->type == MESSAGE_LOAD && answer->result == 0
               ? index_put_dir(shuntd->index, relayed->dir, &remote)
               : 0;
}

static int take_answer(struct shuntd *shuntd, const struct frame_item *item)
{
    struct relayed *relayed = item->lane < ROAD_LANES ? &shuntd->relay->lane[item->lane] : NULL;
    struct message answer;
    if (relayed == NULL || relayed->tag == 0 || relayed->serial != item->client ||
        message_decode(&answer, item->bytes, item->size) != 0 || answer.type != MESSAGE_ANSWER ||
        answer.tag != relayed->tag)
        return 0;
    const struct listen_request request = {
        .lane = item->lane, .client = relayed->client, .message.tag = relayed->tag};
    int code = loaded(shuntd, relayed, &answer);
    forget(shuntd->relay, relayed);
    return code == 0 ? serve_answer(shuntd, &request, &answer) : code;
}

/* Where the home is. */

static uint64_t client_of(uint16_t member, uint64_t number)
{
    return (uint64_t)member << LISTEN_MEMBER_SHIFT | (number & CLIENT_BITS);
}

static int take_request(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    static struct listen_request request;
    request.lane = item->lane;
    request.client = client_of(member, item->client);
    if (item->size > sizeof request.bytes || shuntd->branch_of[member] == 0) {
        shuntd->counts.malformed++;
        return 0;
    }
    memcpy(request.bytes, item->bytes, item->size);
    if (message_decode(&request.message, request.bytes, item->size) != 0 ||
        !relay_may_be(request.message.type)) {
        shuntd->counts.malformed++;
        return 0;
    }
    int code = listen_far_is_there(shuntd->listen, request.client);
    shuntd->counts.requests++;
    return code == 0 ? serve(shuntd, &request) : code;
}

int relay_answer(struct shuntd *shuntd, uint64_t client, uint32_t lane, const uint8_t *bytes, size_t size)
{
    const struct frame_item item = {.kind = RELAY_ANSWER,
                                    .lane = lane,
                                    .client = client & CLIENT_BITS,
                                    .bytes = bytes,
                                    .size = (uint32_t)size};
    int code = peers_put(shuntd->peers, listen_member(client), &item);
    return code == -EHOSTUNREACH ? 0 : code;
}

static int put_message(struct shuntd *shuntd, uint16_t member, enum relay_kind kind, uint32_t lane,
                       const struct message *message)
{
    uint8_t bytes[MESSAGE_SHORT + MESSAGE_TEXT_MAX];
    const struct frame_item item = {.kind = (uint16_t)kind,
                                    .lane = lane,
                                    .bytes = bytes,
                                    .size = (uint32_t)message_encode(bytes, sizeof bytes, message)};
    return item.size > 0 ? peers_put(shuntd->peers, member, &item) : -EINVAL;
}

int relay_make_leaf(struct shuntd *shuntd, uint16_t branch, uint32_t leaf, const struct message *make)
{
    uint16_t member = 1;
    while (member < UINT16_MAX && shuntd->branch_of[member] != branch)
        member++;
    int code = put_message(shuntd, member, RELAY_MAKE, leaf, make);
    return code == -EHOSTUNREACH ? serve_leaf_made(shuntd, branch, make->dir[0], leaf, -EHOSTDOWN) : code;
}

int relay_leaf_made(struct shuntd *shuntd, uint32_t leaf, const struct message *made)
{
    int code = put_message(shuntd, shuntd->home_member, RELAY_MADE, leaf, made);
    return code == -EHOSTUNREACH ? 0 : code;
}

static int take_make(struct shuntd *shuntd, const struct frame_item *item)
{
    struct message make;
    if (message_decode(&make, item->bytes, item->size) == 0 && make.type == MESSAGE_PLACE &&
        make.text_length > 0)
        return serve_make_leaf(shuntd, item->lane, &make);
    shuntd->counts.malformed++;
    return 0;
}

static int take_made(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct message made;
    if (message_decode(&made, item->bytes, item->size) == 0 && made.type == MESSAGE_ANSWER)
        return serve_leaf_made(shuntd, shuntd->branch_of[member], made.dir[0], item->lane, made.result);
    shuntd->counts.malformed++;
    return 0;
}

static int settle_client(struct shuntd *shuntd, uint64_t client)
{
    int code = serve_settle_client(shuntd, client);
    listen_far_ended(shuntd->listen, client);
    return code;
}

static int say(struct shuntd *shuntd, uint16_t member, enum relay_kind kind)
{
    const struct frame_item item = {.kind = (uint16_t)kind};
    return peers_put(shuntd->peers, member, &item);
}

static int settle_member(struct shuntd *shuntd, uint16_t member)
{
    int code = 0;
    for (uint64_t client; code == 0 && (client = listen_far_any(shuntd->listen, member)) != 0;)
        code = settle_client(shuntd, client);
    return code == 0 ? serve_leaves_gone(shuntd, shuntd->branch_of[member]) : code;
}

static int take_leave(struct shuntd *shuntd, uint16_t member)
{
    int code = settle_member(shuntd, member);
    return code == 0 ? say(shuntd, member, RELAY_BYE) : code;
}

static void take_give_up(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    uint32_t tag;
    if (item->size != sizeof tag)
        return;
    memcpy(&tag, item->bytes, sizeof tag);
    listen_far_gave_up(shuntd->listen, client_of(member, item->client), item->lane, tag);
}

static int take_item(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    bool from_home = member == shuntd->home_member;
    switch (item->kind) {
    case RELAY_REQUEST:
        return relay_is_needed(shuntd) ? 0 : take_request(shuntd, member, item);
    case RELAY_ENDED:
        return settle_client(shuntd, client_of(member, item->client));
    case RELAY_GAVE_UP:
        take_give_up(shuntd, member, item);
        return 0;
    case RELAY_HELLO:
        return say(shuntd, member, RELAY_WELCOME);
    case RELAY_LEAVE:
        return take_leave(shuntd, member);
    case RELAY_ANSWER:
        return from_home ? take_answer(shuntd, item) : 0;
    case RELAY_WELCOME:
        shuntd->relay->welcome |= from_home;
        return 0;
    case RELAY_MAKE:
        return from_home ? take_make(shuntd, item) : 0;
    case RELAY_MADE:
        return take_made(shuntd, member, item);
    case RELAY_BYE:
        shuntd->relay->bye |= from_home;
        return 0;
    default:
        shuntd->counts.malformed++;
        return 0;
    }
}

/* Who is there. */

static int number_of(struct union_root *root, const char *branch)
{
    for (size_t i = 0; i < root->branch_count; i++)
        if (strcmp(root->branches[i], branch) == 0)
            return (int)i + 1;
    return union_root_add(root, branch);
}

/* A branch is known for good: its number stands in entries. */
static int add_branch(struct shuntd *shuntd, const struct session_member *member)
{
    if (shuntd->branch_of[member->number] != 0)
        return 0;
    int number = number_of(&shuntd->root, member->branch);
    if (number < 0)
        return number;
    shuntd->branch_of[member->number] = (uint16_t)number;
    return index_put_branch(shuntd->index, (uint16_t)number, member->branch);
}

/* One without an address is not reached yet, and reaches nobody. */
static int add_member(struct shuntd *shuntd, const struct session_member *member)
{
    if (member->number == shuntd->me.number || member->address_size == 0)
        return 0;
    int code = add_branch(shuntd, member);
    return code == 0 ? peers_add(shuntd->peers, member->number, member->since, member->address,
                                 member->address_size)
                     : code;
}

/* One that went without a word has left its clients' business behind. */
static int remove_members(struct shuntd *shuntd)
{
    int code = 0;
    for (uint32_t number = 1; number < shuntd->session.next && code == 0; number++) {
        uint16_t member = (uint16_t)number;
        if (!peers_knows(shuntd->peers, member) || session_find(&shuntd->session, member) != NULL)
            continue;
        code = settle_member(shuntd, member);
        peers_remove(shuntd->peers, member);
    }
    return code;
}

/* Read once for a session: what becomes of the file later changes nothing for who has the key. */
static int own_key(struct shuntd *shuntd, uint8_t key[FRAME_KEY])
{
    int code = 0;
    if (shuntd->keyed != shuntd->session.id)
        code = session_key(shuntd->root.path, &shuntd->session, shuntd->key);
    if (code == 0)
        shuntd->keyed = shuntd->session.id;
    memcpy(key, shuntd->key, FRAME_KEY);
    return code;
}

int relay_adopt(struct shuntd *shuntd)
{
    const struct session *session = &shuntd->session;
    struct frame_self self = {.session = session->id,
                              .epoch = session->epoch,
                              .instance = shuntd->me.since,
                              .member = shuntd->me.number};
    int code = own_key(shuntd, self.key);
    if (code != 0)
        return code;
    peers_set_self(shuntd->peers, &self);
    for (size_t i = 0; i < session->count && code == 0; i++)
        code = add_member(shuntd, &session->members[i]);
    if (session->count > 0)
        shuntd->home_member = session_home(session)->number;
    listen_set_passes_on(shuntd->listen, relay_is_needed(shuntd));
    return code == 0 ? remove_members(shuntd) : code;
}

static int look(struct shuntd *shuntd)
{
    struct session session;
    int code = session_read(shuntd->root.path, &session);
    if (code != 0 || session.id != shuntd->session.id || session.epoch <= shuntd->session.epoch) {
        if (code != 0) /* the file system may be back with the next frame */
            log_line("the session cannot be read: %s", strerror(-code));
        session_finish(&session);
        return 0;
    }
    session_finish(&shuntd->session);
    shuntd->session = session;
    code = relay_adopt(shuntd);
    log_line("epoch %lu: %zu members", (unsigned long)session.epoch, session.count);
    return code;
}

/* The file system may fail for a while: then it is told with a later batch. */
static int revise(struct shuntd *shuntd)
{
    struct session_member *me = session_find(&shuntd->session, shuntd->me.number);
    size_t size = sizeof me->address;
    int code = me == NULL ? -ENOENT : peers_address(shuntd->peers, me->address, &size);
    if (code != 0)
        return code;
    me->address_size = (uint8_t)size;
    code = session_revise(shuntd->root.path, &shuntd->session);
    if (code == 0)
        shuntd->me = *me;
    return code;
}

int relay_tell_address(struct shuntd *shuntd)
{
    if (shuntd->me.address_size > 0 || !peers_is_open(shuntd->peers))
        return 0;
    int code = revise(shuntd);
    while (code == -ESTALE) { /* somebody joined meanwhile */
        if ((code = look(shuntd)) != 0)
            return code;
        code = revise(shuntd);
    }
    if (code == 0)
        return relay_adopt(shuntd);
    log_line("the session cannot be told the address: %s", strerror(-code));
    return 0;
}

int relay_items(struct shuntd *shuntd)
{
    struct frame_item item;
    uint16_t member;
    int code = 0;
    for (int got; code == 0 && (got = peers_next(shuntd->peers, &member, &item)) != 0;)
        code = got == PEERS_NEWER ? look(shuntd) : take_item(shuntd, member, &item);
    return code;
}

/* Coming and going: what is asked of the home here is waited for, since nothing else is to be done. */

static int wait_for(struct shuntd *shuntd, const bool *word, uint64_t deadline)
{
    const uint64_t pulse = 50 * CLOCK_MILLISECOND, until = clock_monotonic() + deadline;
    int code = 0;
    while (code == 0 && !*word && clock_monotonic() < until) {
        uint32_t rings = listen_rings(shuntd->listen);
        code = index_begin(shuntd->index);
        if (code == 0)
            code = relay_items(shuntd);
        if (code == 0)
            code = index_commit(shuntd->index);
        if (code == 0)
            code = serve_flush(shuntd);
        peers_flush(shuntd->peers);
        if (code == 0 && !*word)
            listen_wait(shuntd->listen, rings, pulse);
    }
    return code != 0 ? code : *word ? 0 : -ETIMEDOUT;
}

/* One of this host that died without a word is taken out. */
static bool lives(struct shuntd *shuntd, const struct session_member *member)
{
    if (session_lives(member) != 0)
        return true;
    session_leave(shuntd->root.path, shuntd->session.id, member->number);
    return false;
}

bool relay_is_asked(struct shuntd *shuntd)
{
    struct session session;
    bool asked = false;
    if (relay_is_needed(shuntd) || shuntd->session.count < 2)
        return false;
    int code = session_read(shuntd->root.path, &session);
    for (size_t i = 0; code == 0 && session.id == shuntd->session.id && i < session.count; i++)
        asked |= session.members[i].number != shuntd->me.number && lives(shuntd, &session.members[i]);
    session_finish(&session);
    return asked;
}

int relay_join(struct shuntd *shuntd, uint64_t deadline)
{
    int code = say(shuntd, shuntd->home_member, RELAY_HELLO);
    return code == 0 ? wait_for(shuntd, &shuntd->relay->welcome, deadline) : code;
}

int relay_leave(struct shuntd *shuntd, uint64_t deadline)
{
    int code = say(shuntd, shuntd->home_member, RELAY_LEAVE);
    return code == 0 ? wait_for(shuntd, &shuntd->relay->bye, deadline) : code;
}
