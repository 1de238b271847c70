/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/coordinator.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "rpc/collective.h"
#include "membership/migration.h"
#include "rpc/peer_rpc.h"
#include "membership/route.h"
#include "coordinator/delegation.h"

/* A ruler that took over goes on behind the one before it, even where it begins anew. */
static uint64_t next_number(const struct shuntd *shuntd, uint64_t last)
{
    uint64_t first = (uint64_t)shuntd->route.epoch << RULE_EPOCH_BITS;
    return last < first ? first : last + 1;
}

void rule_decides(struct shuntd *shuntd, struct home_dir *dir)
{
    dir->version = next_number(shuntd, dir->version);
}

void rule_put_record(struct message *message, const struct home_dir *dir)
{
    const struct record_dir *record = &dir->record;
    uint64_t watched = record->why == RECORD_WHY_WATCHED;
    message->flags = (uint16_t)(record->flags & (RECORD_MARKED | RECORD_UNLISTED));
    message->child = (struct dirid){.ino = record->marker, .birth = dir->version << 1 | watched};
    message->name[0] = record->mirror;
    message->name_length[0] = (uint16_t)strnlen(record->mirror, RECORD_MIRROR_MAX - 1);
}

void rule_take_record(struct home_dir *dir, const struct message *message)
{
    const uint32_t told = RECORD_MARKED | RECORD_UNLISTED;
    struct record_dir *record = &dir->record;
    char mirror[RECORD_MIRROR_MAX] = {0}; /* the message may point into this very record */
    if ((message->child.birth & 1) != 0 && record->why == RECORD_WHY_NOT)
        record->why = RECORD_WHY_WATCHED;
    if (message->child.birth >> 1 < dir->version)
        return;
    dir->version = message->child.birth >> 1;
    if (message->name_length[0] < sizeof mirror)
        memcpy(mirror, message->name[0], message->name_length[0]);
    memcpy(record->mirror, mirror, sizeof mirror);
    record->flags = (record->flags & ~told) | (message->flags & told);
    record->marker = message->child.ino;
    dir->mirrored &= (record->flags & RECORD_MARKED) != 0;
}

void rule_take_answer(struct home_dir *dir, const struct message *answer)
{
    rule_take_record(dir, answer);
    dir->mirrored |= (answer->flags & RECORD_MARKED) != 0 && answer->child.birth >> 1 == dir->version;
}

/* Who asks. */

static int send(struct shuntd *shuntd, struct errand *errand)
{
    struct message message;
    message_decode(&message, errand->bytes, errand->size); /* as it was encoded */
    errand->member = route_of_dir(shuntd, message.dir[0]);
    errand->epoch = shuntd->route.epoch;
    uint64_t id = errand->done != NULL ? errand->id : 0;
    return errand->member == shuntd->me.number && !move_is_awaited(shuntd, record_shard(message.dir[0], 0))
               ? rule_take(shuntd, shuntd->me.number, id, &message)
               : relay_message(shuntd, errand->member, RELAY_RULE, id, &message);
}

int rule_ask(struct shuntd *shuntd, const struct message *message, errand_done *done, const struct errand *what)
{
    size_t size = message_size(message);
    struct errand *errand = calloc(1, sizeof *errand + size);
    if (errand == NULL)
        return -ENOMEM;
    if (what != NULL)
        memcpy(errand, what, sizeof *errand);
    errand->done = done;
    errand->id = ++shuntd->last_errand;
    errand->size = (uint32_t)message_encode(errand->bytes, size, message);
    list_init(&errand->link);
    if (done != NULL)
        list_append(&shuntd->errands, &errand->link);
    int code = send(shuntd, errand);
    if (done == NULL)
        free(errand);
    return code;
}

static int tell_client(struct shuntd *shuntd, const struct errand *errand, const struct message *answer)
{
    struct message told = {.type = MESSAGE_ANSWER, .result = answer->result};
    return errand->tag != 0 ? serve_reply(shuntd, errand->client, errand->lane, errand->tag, &told) : 0;
}

int rule_ask_for(struct shuntd *shuntd, const struct message *message, const struct listen_request *request)
{
    const struct errand errand = {.client = request->client, .lane = request->lane, .tag = request->message.tag};
    int code = rule_ask(shuntd, message, tell_client, &errand);
    return code == 0 ? SERVE_SILENT : code;
}

static struct message about(uint16_t type, struct dirid dir)
{
    return (struct message){.type = type, .dir[0] = dir};
}

int rule_unseal(struct shuntd *shuntd, struct dirid dir)
{
    const struct message unseal = about(MESSAGE_UNSEAL, dir);
    return rule_ask(shuntd, &unseal, NULL, NULL);
}

int rule_unseal_for(struct shuntd *shuntd, struct dirid dir, const struct listen_request *request)
{
    const struct message unseal = about(MESSAGE_UNSEAL, dir);
    return rule_ask_for(shuntd, &unseal, request);
}

int rule_drop(struct shuntd *shuntd, struct dirid dir)
{
    const struct message drop = about(MESSAGE_DROP, dir);
    return rule_ask(shuntd, &drop, NULL, NULL);
}

/* Where this daemon alone is home of all it is known from now on; else whoever uses it first asks its ruler. */
int rule_born(struct shuntd *shuntd, struct dirid id, const char *path)
{
    struct message born = about(MESSAGE_BORN, id);
    if (!route_is_sole(shuntd)) {
        born.text = path;
        born.text_length = (uint16_t)strlen(path);
        return rule_ask(shuntd, &born, NULL, NULL);
    }
    if (home_dir_find(shuntd->home, id) != NULL)
        return 0;
    struct home_dir *dir = home_dir_add(shuntd->home, id, path);
    struct home_ruler *ruler = dir != NULL ? home_ruler(dir) : NULL;
    if (ruler == NULL)
        return -ENOMEM;
    ruler->loaded = dir->complete = true;
    dir->record = (struct record_dir){.flags = RECORD_LOADED};
    int code = rule_add_node(ruler, shuntd->me.number);
    return code < 0 ? code : home_dir_store(shuntd, dir);
}

static struct errand *errand_of(struct shuntd *shuntd, uint64_t id)
{
    for (struct link *link = shuntd->errands.next; link != &shuntd->errands; link = link->next)
        if (LINK_OF(link, struct errand, link)->id == id)
            return LINK_OF(link, struct errand, link);
    return NULL;
}

/* It was asked before all began anew, when the directory was another thing to its homes. That it is sealed means no less
 * than before: its mirrors are gone, and the file system itself says if anything has come since. */
static bool is_outdated(const struct shuntd *shuntd, const struct errand *errand)
{
    struct message asked;
    message_decode(&asked, errand->bytes, errand->size);
    return move_is_outdated(shuntd, errand->epoch) && asked.type != MESSAGE_SEAL;
}

int rule_answered(struct shuntd *shuntd, uint64_t id, const struct message *answer)
{
    struct errand *errand = errand_of(shuntd, id);
    if (errand == NULL)
        return 0;
    if (answer->result == MESSAGE_ELSEWHERE || is_outdated(shuntd, errand))
        return send(shuntd, errand);
    list_remove(&errand->link);
    int code = errand->done(shuntd, errand, answer);
    free(errand);
    return code;
}

static struct errand *asks_nobody(struct shuntd *shuntd, uint64_t behind)
{
    for (struct link *link = shuntd->errands.next; link != &shuntd->errands; link = link->next) {
        struct errand *errand = LINK_OF(link, struct errand, link);
        if (errand->id > behind && !session_has(&shuntd->session, errand->member))
            return errand;
    }
    return NULL;
}

struct waited_for {
    struct dirid *dirs; /* NULL: they are only counted */
    size_t count;
};

static void note_waited_for(struct home_dir *dir, void *context)
{
    struct waited_for *waited = context;
    if (dir->ruler == NULL || dir->ruler->busy || list_empty(&dir->ruler->waiting))
        return;
    if (waited->dirs != NULL)
        waited->dirs[waited->count] = dir->id;
    waited->count++;
}

int rule_rest_all(struct shuntd *shuntd)
{
    struct waited_for waited = {0};
    int code = 0;
    home_dirs_each(shuntd->home, note_waited_for, &waited);
    if (waited.count == 0)
        return 0;
    waited.dirs = malloc(waited.count * sizeof *waited.dirs);
    if (waited.dirs == NULL)
        return -ENOMEM;
    waited.count = 0;
    home_dirs_each(shuntd->home, note_waited_for, &waited);
    for (size_t i = 0; i < waited.count && code == 0; i++)
        code = rule_rest(shuntd, waited.dirs[i]);
    free(waited.dirs);
    return code;
}

int rule_ask_again(struct shuntd *shuntd)
{
    uint64_t last = 0;
    int code = 0;
    for (struct errand *errand; code == 0 && (errand = asks_nobody(shuntd, last)) != NULL;) {
        last = errand->id;
        code = send(shuntd, errand);
    }
    return code;
}

/* Who is silent. */

static bool is_silent(const struct shuntd *shuntd, uint16_t member)
{
    return peers_is_silent(shuntd->peers, member, shuntd->options.deadline);
}

static bool is_anybody_silent(const struct shuntd *shuntd)
{
    for (size_t i = 0; i < shuntd->session.count; i++)
        if (is_silent(shuntd, shuntd->session.members[i].number))
            return true;
    return false;
}

static int give_up_errands(struct shuntd *shuntd)
{
    int code = 0;
    for (struct link *link = shuntd->errands.next, *next; link != &shuntd->errands && code == 0; link = next) {
        struct errand *errand = LINK_OF(link, struct errand, link);
        struct message answer = {.type = MESSAGE_ANSWER, .result = -ETIMEDOUT}, asked;
        next = link->next;
        message_decode(&asked, errand->bytes, errand->size);
        if (asked.type != MESSAGE_LOAD || !is_silent(shuntd, errand->member))
            continue;
        answer.dir[0] = asked.dir[0];
        code = rule_answered(shuntd, errand->id, &answer);
    }
    return code;
}

struct giving_up {
    struct shuntd *shuntd;
    int code;
};

/* Who asked this ruler to load a directory. */
static void give_up_questions(struct home_dir *dir, void *context)
{
    struct giving_up *giving_up = context;
    struct home_ruler *ruler = dir->ruler;
    if (ruler == NULL || !(ruler->busy || move_is_gathering(giving_up->shuntd)))
        return;
    struct link overdue;
    list_init(&overdue);
    for (struct link *link = ruler->waiting.next, *next; link != &ruler->waiting; link = next) {
        next = link->next;
        if (LINK_OF(link, struct rule_question, link)->message.type == MESSAGE_LOAD) {
            list_remove(link);
            list_append(&overdue, link);
        }
    }
    if (ruler->loading != NULL)
        list_append(&overdue, &ruler->loading->link);
    ruler->loading = NULL;
    for (struct link *link; giving_up->code == 0 && (link = list_take(&overdue)) != NULL;)
        giving_up->code = rule_result(giving_up->shuntd, LINK_OF(link, struct rule_question, link), -ETIMEDOUT);
}

int rule_give_up(struct shuntd *shuntd)
{
    struct giving_up giving_up = {.shuntd = shuntd};
    if (!is_anybody_silent(shuntd))
        return 0;
    giving_up.code = give_up_errands(shuntd);
    if (giving_up.code == 0)
        home_dirs_each(shuntd->home, give_up_questions, &giving_up);
    return giving_up.code;
}

/* Who rules. */

int rule_add_node(struct home_ruler *ruler, uint16_t member)
{
    for (uint32_t i = 0; i < ruler->node_count; i++)
        if (ruler->nodes[i] == member)
            return 0;
    uint16_t *more = realloc(ruler->nodes, (ruler->node_count + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    ruler->nodes = more;
    ruler->nodes[ruler->node_count++] = member;
    return 1;
}

int rule_answer(struct shuntd *shuntd, struct rule_question *question, struct message *answer)
{
    uint64_t id = question->id;
    uint16_t member = question->member;
    answer->type = MESSAGE_ANSWER;
    answer->dir[0] = question->message.dir[0];
    free(question);
    if (id == 0)
        return 0;
    return member == shuntd->me.number ? rule_answered(shuntd, id, answer)
                                       : relay_message(shuntd, member, RELAY_RULE_ANSWER, id, answer);
}

int rule_result(struct shuntd *shuntd, struct rule_question *question, int result)
{
    struct message answer = {.result = result};
    return rule_answer(shuntd, question, &answer);
}

/* Of a directory that nobody uses any more nothing is kept. */
static void release(struct shuntd *shuntd, struct home_dir *dir)
{
    struct home_ruler *ruler = dir->ruler;
    if (ruler != NULL && !ruler->loaded && !ruler->born && !ruler->spread && !ruler->busy && list_empty(&ruler->waiting) &&
        list_empty(&ruler->sealing)) {
        free(ruler->nodes);
        free(ruler);
        dir->ruler = NULL;
    }
    home_dir_release(shuntd->home, dir);
}

int rule_rest(struct shuntd *shuntd, struct dirid id)
{
    struct home_dir *dir = home_dir_find(shuntd->home, id);
    struct link waiting;
    int code = 0;
    if (dir == NULL || dir->ruler == NULL)
        return 0;
    list_init(&waiting);
    list_move(&waiting, &dir->ruler->waiting);
    for (struct link *link; code == 0 && (link = list_take(&waiting)) != NULL;)
        code = rule_work(shuntd, LINK_OF(link, struct rule_question, link));
    dir = home_dir_find(shuntd->home, id);
    if (dir != NULL)
        release(shuntd, dir);
    return code;
}

struct told {
    struct dirid dir;
    struct rule_question *question;
};

static int is_told(struct shuntd *shuntd, void *context, const struct cast_end *end)
{
    struct told told = *(struct told *)context;
    struct home_dir *dir = home_dir_find(shuntd->home, told.dir);
    free(context);
    if (dir != NULL && dir->ruler != NULL)
        dir->ruler->busy = false;
    int code = rule_result(shuntd, told.question, end->result < 0 ? end->result : 0);
    return code == 0 ? rule_rest(shuntd, told.dir) : code;
}

/* Every daemon does its part; then the question is answered. */
static int tell_all(struct shuntd *shuntd, struct home_dir *dir, struct rule_question *question)
{
    struct told *told = malloc(sizeof *told);
    if (told == NULL)
        return -ENOMEM;
    *told = (struct told){.dir = dir->id, .question = question};
    dir->ruler->busy = true;
    HOOK("all-asked");
    return cast_begin(shuntd, &question->message, NULL, is_told, told);
}

static int only_if_marked(struct shuntd *shuntd, struct home_dir *dir, struct rule_question *question)
{
    return dir->record.flags & RECORD_MARKED ? tell_all(shuntd, dir, question) : rule_result(shuntd, question, 0);
}

/* No change before this counts. */
static int settle(struct shuntd *shuntd, struct home_dir *dir, struct rule_question *question)
{
    question->message.child.ino = next_number(shuntd, dir->times.round);
    return tell_all(shuntd, dir, question);
}

static rule_operation *const operations[MESSAGE_TYPES] = {
    [MESSAGE_LOAD] = rule_load,      [MESSAGE_MARK] = rule_mark, [MESSAGE_SEAL] = rule_seal, [MESSAGE_FOLLOW] = only_if_marked,
    [MESSAGE_SYNC] = only_if_marked, [MESSAGE_SETTLE] = settle,  [MESSAGE_WATCH] = tell_all,
};

/* It was empty when it was made, and nobody has asked for it yet. */
static int born(struct shuntd *shuntd, struct rule_question *question)
{
    char path[PATH_MAX];
    const struct message *message = &question->message;
    memcpy(path, message->text, message->text_length);
    path[message->text_length] = '\0';
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    if (dir == NULL && (dir = home_dir_add(shuntd->home, message->dir[0], path)) == NULL)
        return -ENOMEM;
    if (dir->ruler == NULL) {
        if (home_ruler(dir) == NULL)
            return -ENOMEM;
        dir->ruler->born = true;
    }
    return rule_result(shuntd, question, 0);
}

void rule_forget(struct home_ruler *ruler)
{
    ruler->loaded = ruler->born = ruler->closed = ruler->spread = false;
    whole_forget(ruler);
}

/* What ends a removal: it was removed, or not. */
static int reopen(struct shuntd *shuntd, struct rule_question *question)
{
    struct home_dir *dir = home_dir_find(shuntd->home, question->message.dir[0]);
    if (dir == NULL || dir->ruler == NULL)
        return rule_result(shuntd, question, 0);
    dir->ruler->closed = false;
    if (question->message.type == MESSAGE_DROP)
        rule_forget(dir->ruler);
    return tell_all(shuntd, dir, question);
}

int rule_work(struct shuntd *shuntd, struct rule_question *question)
{
    const struct message *message = &question->message;
    if (route_of_dir(shuntd, message->dir[0]) != shuntd->me.number)
        return rule_pass_on(shuntd, question);
    if (message->type == MESSAGE_BORN)
        return born(shuntd, question);
    if (message->type == MESSAGE_GIVEN)
        return whole_given_back(shuntd, question);
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    struct home_ruler *ruler = dir != NULL ? dir->ruler : NULL;
    bool ends = message->type == MESSAGE_UNSEAL || message->type == MESSAGE_DROP;
    if (ruler != NULL && (ruler->busy || (ruler->closed && !ends))) {
        HOOK("request-parked");
        list_append(&ruler->waiting, &question->link);
        shuntd->counts.parked++;
        return 0;
    }
    if (ends)
        return reopen(shuntd, question);
    if (message->type != MESSAGE_LOAD && (ruler == NULL || !ruler->loaded))
        return rule_result(shuntd, question, MESSAGE_NOT_LOADED);
    return operations[message->type](shuntd, dir, question);
}

/* Another daemon is its home now: who waits for an answer asks there, what wants none is handed on. */
int rule_pass_on(struct shuntd *shuntd, struct rule_question *question)
{
    if (question->id != 0)
        return rule_result(shuntd, question, MESSAGE_ELSEWHERE);
    int code = relay_message(shuntd, route_of_dir(shuntd, question->message.dir[0]), RELAY_RULE, 0, &question->message);
    free(question);
    return code;
}

static bool is_question(uint16_t type)
{
    return type < MESSAGE_TYPES && (operations[type] != NULL || type == MESSAGE_BORN || type == MESSAGE_GIVEN ||
                                    type == MESSAGE_UNSEAL || type == MESSAGE_DROP);
}

int rule_take(struct shuntd *shuntd, uint16_t member, uint64_t id, const struct message *message)
{
    size_t size = message_size(message);
    if (!is_question(message->type)) {
        shuntd->counts.malformed++;
        return 0;
    }
    struct rule_question *question = malloc(sizeof *question + size);
    if (question == NULL)
        return -ENOMEM;
    list_init(&question->link);
    question->member = member;
    question->id = id;
    question->began = 0;
    message_decode(&question->message, question->bytes, message_encode(question->bytes, size, message));
    return rule_work(shuntd, question);
}

void rule_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->errands)) != NULL;)
        free(LINK_OF(link, struct errand, link));
}
