/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a flight asks of the home of its name, here or elsewhere, and what an answer means to any flight. */

#include <errno.h>
#include <string.h>

#include "base/hook.h"
#include "home/state.h"
#include "prefetch/prefetch.h"
#include "membership/migration.h"
#include "prefetch/grant.h"
#include "rpc/peer_rpc.h"
#include "membership/route.h"
#include "coordinator/coordinator.h"
#include "ops/ops.h"

static struct name_question question_of(const struct shuntd *shuntd, const struct flight *flight)
{
    return (struct name_question){.op = flight->asking,
                                  .flags = flight->ask_flags,
                                  .member = shuntd->me.number,
                                  .id = flight->id,
                                  .dir = flight->dir->id,
                                  .entry = flight->ask_entry,
                                  .name = flight->name,
                                  .length = flight->length};
}

static uint16_t home_of(const struct shuntd *shuntd, const struct flight *flight)
{
    return flight->dir->whole != 0 ? shuntd->me.number : shuntd->route.home[flight->shard];
}

static bool is_awaited(const struct shuntd *shuntd, const struct flight *flight)
{
    return flight->dir->whole == 0 && move_is_awaited(shuntd, flight->shard);
}

/* Who is cut off from the home of a name waits for it: nobody else knows who has the name by now. */
static bool decides_alone(const struct shuntd *shuntd, const struct flight *flight)
{
    return BROKEN("silent-home") && (flight->asking == NAME_LOOKUP || flight->asking == NAME_RESERVE) &&
           peers_is_silent(shuntd->peers, flight->asked, shuntd->options.deadline);
}

static int ask(struct shuntd *shuntd, struct flight *flight)
{
    struct name_question question = question_of(shuntd, flight);
    struct name_answer answer;
    flight->asked = home_of(shuntd, flight);
    if (decides_alone(shuntd, flight)) {
        answer = (struct name_answer){.result = flight->asking == NAME_LOOKUP ? MESSAGE_ABSENT : 0};
        return serve_answered(shuntd, flight, &answer);
    }
    if (flight->asked != shuntd->me.number || is_awaited(shuntd, flight))
        return relay_ask(shuntd, flight->asked, &question);
    int code = home_ask(shuntd, &question, &answer);
    return code == HOME_WAITS ? 0 : code != 0 ? code : serve_answered(shuntd, flight, &answer);
}

int serve_ask(struct shuntd *shuntd, struct flight *flight, enum name_op op, unsigned flags, const struct record_entry *entry,
              flight_next *then)
{
    flight->asking = (uint16_t)op;
    flight->ask_flags = (uint16_t)flags;
    flight->ask_entry = entry != NULL ? *entry : (struct record_entry){0};
    flight->then = then;
    return ask(shuntd, flight);
}

/* The first flight behind that number that asks a daemon which is gone. */
static struct flight *asks_nobody(struct shuntd *shuntd, uint64_t behind)
{
    struct link *flights = &shuntd->home->flights;
    for (struct link *link = flights->next; link != flights; link = link->next) {
        struct flight *flight = LINK_OF(link, struct flight, all);
        if (flight->id > behind && flight->asking != 0 && !session_has(&shuntd->session, flight->asked))
            return flight;
    }
    return NULL;
}

int serve_ask_again(struct shuntd *shuntd)
{
    uint64_t last = 0;
    int code = 0;
    for (struct flight *flight; code == 0 && (flight = asks_nobody(shuntd, last)) != NULL;) {
        last = flight->id;
        code = ask(shuntd, flight);
    }
    return code;
}

static int tell_end(struct shuntd *shuntd, const struct flight *flight, const struct record_entry *entry)
{
    struct name_question question = question_of(shuntd, flight);
    struct name_answer unused;
    question.op = NAME_END;
    question.flags = 0;
    question.entry = entry != NULL ? *entry : (struct record_entry){0};
    if (entry != NULL)
        question.entry.state = RECORD_LIVE;
    uint16_t home = home_of(shuntd, flight);
    return home == shuntd->me.number && !is_awaited(shuntd, flight) ? home_ask(shuntd, &question, &unused)
                                                                    : relay_end(shuntd, home, &question, flight->awaited);
}

int serve_tell_claimed(struct shuntd *shuntd, const struct flight *flight)
{
    struct name_question question = question_of(shuntd, flight);
    struct name_answer unused;
    uint16_t home = home_of(shuntd, flight);
    question.op = NAME_CLAIMED;
    question.flags = 0;
    return home == shuntd->me.number && !is_awaited(shuntd, flight) ? home_ask(shuntd, &question, &unused)
                                                                    : relay_ask(shuntd, home, &question);
}

int serve_end(struct shuntd *shuntd, struct flight *flight, const struct record_entry *entry)
{
    int code = flight->held ? tell_end(shuntd, flight, entry) : 0;
    offer_over(shuntd, flight);
    flight_end(shuntd, flight);
    return code;
}

int serve_release(struct shuntd *shuntd, struct flight *flight)
{
    struct flight *partner = flight->partner;
    int code = 0;
    if (partner != NULL) {
        partner->partner = NULL;
        if (flight_is_asking(partner))
            partner->abandoned = true;
        else
            code = serve_release(shuntd, partner);
    }
    if (code == 0 && flight->sealed)
        code = rule_unseal(shuntd, flight->child);
    int ended = serve_end(shuntd, flight, flight->had_before ? &flight->before : NULL);
    return code != 0 ? code : ended;
}

int serve_restart(struct shuntd *shuntd, struct flight *flight)
{
    struct flight *first = flight->request != NULL || flight->partner == NULL ? flight : flight->partner;
    struct home_parked *request = first->request;
    first->request = NULL;
    int code = serve_release(shuntd, flight);
    if (request != NULL)
        home_again(shuntd->home, request);
    return code;
}

static int not_loaded(struct shuntd *shuntd, struct flight *flight)
{
    const struct flight *first = flight->tag != 0 ? flight : flight->partner;
    int code = serve_forget(shuntd, flight->dir);
    if (code == 0)
        code = serve_tell_result(shuntd, first, MESSAGE_NOT_LOADED);
    return code == 0 ? serve_release(shuntd, flight) : code;
}

/* What it was told of its name before, and that it has it. */
static void note_held(struct flight *flight, const struct name_answer *answer)
{
    flight->had_before = answer->result == MESSAGE_EXISTS;
    flight->before = flight->shown = answer->entry;
    flight->held = flight->had_before || (flight->ask_flags & NAME_ANYHOW) != 0;
    if (!flight->had_before)
        flight->shown = (struct record_entry){0};
    else if (flight->ask_entry.state != 0)
        flight->shown.state = flight->ask_entry.state;
}

static void note(struct flight *flight, uint16_t op, const struct name_answer *answer)
{
    if (op == NAME_RESERVE && answer->result == 0) {
        flight->held = true;
        flight->shown = answer->entry;
    }
    if (op == NAME_HOLD && (answer->result == MESSAGE_EXISTS || answer->result == MESSAGE_ABSENT))
        note_held(flight, answer);
    if (op == NAME_MARK && answer->result == 0)
        flight->shown = flight->ask_entry;
}

int serve_answered(struct shuntd *shuntd, struct flight *flight, const struct name_answer *answer)
{
    uint16_t op = flight->asking;
    flight->asking = 0;
    note(flight, op, answer);
    const bool in_trunk = flight->had_before && flight->before.branch == 0; /* perhaps no file: what is said of it may differ */
    if (flight->abandoned || (flight->ahead && (!flight->held || in_trunk)))
        return serve_release(shuntd, flight);
    if (flight->ahead) { /* ahead_claim goes on with it; who looks for the name has waited for that */
        home_wake(shuntd->home, &flight->waiting);
        return ahead_given(shuntd, flight);
    }
    if (answer->result == MESSAGE_BUSY && (flight->ask_flags & NAME_AHEAD)) /* it was claimed meanwhile, and can wait now */
        return serve_ask(shuntd, flight, op, flight->ask_flags & ~(unsigned)NAME_AHEAD, &flight->ask_entry, flight->then);
    if (answer->result == MESSAGE_ELSEWHERE && (op == NAME_MARK || flight->kind == FLIGHT_CLOSE))
        return serve_ask(shuntd, flight, op, flight->ask_flags, &flight->ask_entry, flight->then);
    if (answer->result == MESSAGE_ELSEWHERE)
        return serve_restart(shuntd, flight);
    if (answer->result == MESSAGE_NOT_LOADED)
        return not_loaded(shuntd, flight);
    return flight->then(shuntd, flight, answer);
}
