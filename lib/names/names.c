/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "names/names.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/sys.h"
#include "names/state.h"
#include "wire/page.h"

/* What was read holds if this node was still of the session then: 0. Else that is waited for: -EAGAIN, look again;
 * -EHOSTDOWN, the daemon has ended; or -ENOLINK. */
static int names_check_lease(const struct names_root *root, struct request_channel *channel)
{
    const struct timespec pause = clock_split(NAMES_LOOK);
    if (__builtin_expect(request_has_lease(channel), 1) || BROKEN("no-lease"))
        return 0;
    uint64_t began = clock_monotonic();
    uint32_t stalls = request_stalls(channel);
    for (int learnt = 0; request_is_alive(channel) && clock_monotonic() - began < root->deadline; learnt = -EAGAIN) {
        if (stalls != request_stalls(channel))
            began = clock_monotonic();
        stalls = request_stalls(channel);
        const int asked = request_learn_clock(channel, root->deadline);
        if (asked >= 0 && request_has_lease(channel))
            return asked > 0 ? -EAGAIN : learnt;
        SYS2(SYS_nanosleep, &pause, NULL);
    }
    return request_is_alive(channel) ? -ENOLINK : -EHOSTDOWN;
}

/* The index has outgrown what this process maps of it. The second thread finds it done. */
static int names_grow(struct names_root *root, const struct view *small)
{
    struct view *larger;
    const struct mapping mapping = names_begin_mapping(root);
    int code = root->view == small ? view_grow(&larger, small) : 0;
    if (code == 0 && root->view == small)
        __atomic_store_n(&root->view, larger, __ATOMIC_RELEASE);
    names_end_mapping(root, &mapping);
    return code;
}

/* The index's writer stands still in the middle of a change: it has lost the processor, or is dead. */
static int names_await_writer(const struct names_root *root, const struct request_channel *channel, uint64_t began)
{
    const struct timespec pause = clock_split(NAMES_LOOK);
    if (!request_is_alive(channel))
        return -EHOSTDOWN;
    if (clock_monotonic() - began >= root->deadline)
        return -ETIMEDOUT;
    SYS2(SYS_nanosleep, &pause, NULL);
    return 0;
}

/* 0: a look that failed may go better now. */
static int names_mend(struct names_root *root, const struct request_channel *channel, const struct view *view, uint64_t began,
                      int code)
{
    return code == -EOVERFLOW ? names_grow(root, view) : code == -EBUSY ? names_await_writer(root, channel, began) : code;
}

static int names_find_patiently(struct names_root *root, const struct request_channel *channel, struct view *view,
                                struct dirid dir, const char *name, size_t length, struct view_found *found, int code)
{
    const uint64_t began = clock_monotonic();
    while (code != 0 && (code = names_mend(root, channel, view, began, code)) == 0) {
        view = root->view;
        code = view_find(view, dir, name, length, found);
    }
    return code;
}

static bool names_has_granted(const struct names_root *root, struct dirid dir, const char *name, size_t length, bool is_new)
{
    const struct message_text text = message_text(name, length);
    return request_has_granted(root->channel, dir, &text, is_new);
}

bool names_is_granted(const struct names_root *root, struct dirid dir, const char *name, size_t length)
{
    return names_has_granted(root, dir, name, length, true);
}

/* What is only granted to this process is as it was: nobody is at work on it, and nobody will be before the grant is taken
 * back. */
static void names_see_granted(struct names_root *root, struct dirid dir, const char *name, size_t length,
                              struct view_found *found)
{
    const bool pending = found->entry.state == RECORD_PENDING;
    if (!names_has_granted(root, dir, name, length, pending))
        return;
    found->known = !pending;
    found->entry.state = RECORD_LIVE;
}

static int names_search_index(struct names_root *root, struct dirid dir, const char *name, size_t length,
                              struct view_found *found)
{
    struct request_channel *channel = root->channel;
    uint32_t gains = request_gains(channel);
    struct view *view = root->view;
    int code = view_find(view, dir, name, length, found);
    if (__builtin_expect(code != 0, 0))
        code = names_find_patiently(root, channel, view, dir, name, length, found, code);
    found->gains = gains;
    if (code == 0 && found->known && found->entry.state != RECORD_LIVE)
        names_see_granted(root, dir, name, length, found);
    return code == 0 ? names_check_lease(root, channel) : code;
}

int names_find(struct names_root *root, struct dirid dir, const char *name, size_t length, struct view_found *found)
{
    int code = names_attach(root);
    if (code != 0)
        return code;
    do
        code = names_search_index(root, dir, name, length, found);
    while (code == -EAGAIN || (code == -EHOSTDOWN && names_attach_patiently(root) == 0));
    return code == 0 ? 0 : names_fail(root, code);
}

int names_await_told(struct names_root *root, struct dirid dir, struct view_found *found)
{
    const struct timespec pause = clock_split(CLOCK_MILLISECOND / 10);
    const uint64_t began = clock_monotonic();
    int code = 0;
    HOOK("times-awaited");
    while (code == 0 && found->dir_known && (found->dir.flags & RECORD_TELLING) && clock_monotonic() - began < root->deadline) {
        SYS2(SYS_nanosleep, &pause, NULL);
        code = names_find(root, dir, "", 0, found);
    }
    return code;
}

bool names_knows(const struct names_root *root, const struct dirid *dir)
{
    return names_root_is_attached(root) && view_knows(root->view, dir);
}

bool names_has_all(const struct names_root *root, struct dirid dir, const char *name, size_t length,
                   const struct view_found *found)
{
    if (found->dir_known && (found->dir.flags & (RECORD_DELEGATED | RECORD_SPILLED)))
        return !(found->dir.flags & RECORD_SPILLED);
    bool is_home =
        request_is_sole_home(root->channel) || request_is_home(root->channel, record_shard(dir, record_hash(name, length)));
    return is_home && request_gains(root->channel) == found->gains;
}

bool names_is_sole_home(const struct names_root *root)
{
    return request_is_sole_home(root->channel);
}

/* Names of which other nodes' daemons are home: a page, up to its limit. */
struct slow_lookups {
    struct request_answer answer;
    uint64_t limit;
    size_t at;
    struct page_name next;
    int there; /* as page_next */
};

static void names_take_far(struct slow_lookups *far)
{
    const struct message *message = &far->answer.message;
    far->there = page_next(message->text_answer.text.text, message->text_answer.text.length, &far->at, &far->next);
}

static int names_ask_far(struct names_root *root, struct dirid dir, uint64_t from, size_t room, struct slow_lookups *far)
{
    const struct message list = {.type = MESSAGE_LIST, .dir = dir, .list = {.from = from, .room = room}};
    int code = names_ask(root, &list, &far->answer);
    if (code != 0)
        return code;
    far->limit = far->answer.message.text_answer.limit;
    names_take_far(far);
    code = far->answer.message.result;
    return code == MESSAGE_NOT_LOADED ? -ESTALE : code;
}

/* The names of this node's index and the far ones, in one order. */
struct merging {
    struct slow_lookups far;
    index_each *each;
    void *context;
    bool passed; /* the far names' limit */
};

/* Tells the far names that come before `until`, NULL: all. A name may be on its way from one home to another, and in
 * both. */
static int names_tell_far(struct merging *merging, const struct page_name *until)
{
    struct slow_lookups *far = &merging->far;
    while (far->there == 1) {
        int order = until != NULL ? page_order(&far->next, until) : -1;
        int code =
            order < 0 ? merging->each(merging->context, far->next.hash, far->next.name, far->next.length, &far->next.entry) : 0;
        if (order > 0 || code != 0)
            return code;
        names_take_far(far);
    }
    return far->there;
}

static int names_tell_near(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct merging *merging = context;
    const struct page_name near = {.hash = hash, .name = name, .length = length};
    if (hash > merging->far.limit) {
        merging->passed = true;
        return 1;
    }
    int code = names_tell_far(merging, &near);
    return code != 0 ? code : merging->each(merging->context, hash, name, length, entry);
}

/* `merging` has the far names by now. */
static int names_list_near(struct names_root *root, struct dirid dir, uint64_t from, struct merging *merging)
{
    const struct request_channel *channel = root->channel;
    struct view_place place = {.hash = from};
    struct view *view = root->view;
    int code = view_list(view, dir, &place, names_tell_near, merging);
    for (uint64_t began = clock_monotonic(), last = from; code < 0; last = place.hash) {
        if (place.hash != last)
            began = clock_monotonic();
        if ((code = names_mend(root, channel, view, began, code)) != 0)
            break;
        view = root->view;
        code = view_list(view, dir, &place, names_tell_near, merging);
    }
    if (code == 0 || merging->passed)
        code = names_tell_far(merging, NULL);
    const bool is_over = code == -ENODATA || code == -EHOSTDOWN; /* the next daemon has it read again */
    return code >= 0 ? code : is_over ? -ESTALE : names_fail(root, code);
}

/* Are all of its names in this node's index? True until `losses` says otherwise. */
static bool names_is_whole(struct names_root *root, struct dirid dir)
{
    struct view_found found;
    const bool is_known = names_search_index(root, dir, NULL, 0, &found) == 0 && found.dir_known;
    if (!is_known || (found.dir.flags & RECORD_SPILLED))
        return !is_known && request_is_sole_home(root->channel);
    return request_is_sole_home(root->channel) || (found.dir.flags & RECORD_DELEGATED);
}

/* What was asked for and what was read then are together all names only if none began to leave this node's index in
 * between. */
static int names_list_dir(struct names_root *root, struct dirid dir, uint64_t *from, size_t room, struct merging *merging)
{
    struct request_channel *channel = root->channel;
    uint32_t losses = request_losses(channel);
    int code = names_is_whole(root, dir) ? 0 : names_ask_far(root, dir, *from, room, &merging->far);
    HOOK("list-asked");
    if (code != 0)
        return code;
    code = names_list_near(root, dir, *from, merging);
    if (code >= 0 && (root->channel != channel || request_losses(channel) != losses || names_check_lease(root, channel) != 0) &&
        !BROKEN("list-torn"))
        return -ESTALE;
    *from = merging->far.limit + 1; /* 0 after PAGE_ALL */
    return code;
}

int names_list(struct names_root *root, struct dirid dir, uint64_t *from, size_t room, index_each *each, void *context)
{
    struct merging merging = {.far = {.limit = PAGE_ALL}, .each = each, .context = context};
    int code = names_attach(root);
    if (code == 0)
        code = names_list_dir(root, dir, from, room, &merging);
    request_read(&merging.far.answer);
    return code;
}

/* Nobody may go by an answer without a lease. If it comes back, nobody went on without this node, and the answer is as
 * good as it was; a call that was allowed to change something has no other choice than to wait for that. */
static int names_ask_once(struct names_root *root, const struct message *message, struct request_answer *answer,
                          struct request_hold *hold)
{
    struct request_channel *channel = root->channel;
    int code = hold == NULL ? request_ask(channel, message, answer, root->deadline)
                            : request_hold(channel, message, answer, root->deadline, hold);
    if (code != 0)
        return code;
    do
        code = names_check_lease(root, channel);
    while (code == -EAGAIN || (code == -ENOLINK && hold != NULL));
    if (code != 0 && hold != NULL)
        request_let_go(hold);
    if (code != 0)
        request_read(answer);
    return code;
}

/* What a daemon that crashed has not answered is asked its successor. */
static int names_ask_daemon(struct names_root *root, const struct message *message, struct request_answer *answer,
                            struct request_hold *hold)
{
    int code = names_attach(root);
    if (code != 0)
        return code;
    do
        code = names_ask_once(root, message, answer, hold);
    while (code == -EHOSTDOWN && names_attach_patiently(root) == 0);
    return code == 0 ? 0 : names_fail(root, code);
}

int names_ask(struct names_root *root, const struct message *message, struct request_answer *answer)
{
    return names_ask_daemon(root, message, answer, NULL);
}

int names_hold(struct names_root *root, const struct message *message, struct request_answer *answer, struct request_hold *hold)
{
    return names_ask_daemon(root, message, answer, hold);
}

void names_end(struct names_root *root, const struct message *message, struct request_hold *hold)
{
    int result;
    const int code = request_result(hold->channel, message, &result, root->deadline);
    if (code == -EUSERS || code == -ENOSPC) /* there was no queue pair for it so far */
        request_tell(hold->channel, message);
    request_let_go(hold);
}

void names_tell(struct names_root *root, const struct message *message)
{
    if (names_root_is_attached(root))
        request_tell(root->channel, message);
}

void names_tell_end(struct names_root *root, const struct message *message, struct request_hold *hold)
{
    if (!request_end(hold, message))
        names_tell(root, message);
    request_let_go(hold);
}

bool names_is_of_others(const struct names_root *root, const struct record_entry *entry)
{
    return entry->branch != 0 && entry->branch != request_branch(root->channel);
}

void names_looked(struct names_root *root, struct dirid dir, const char *name, size_t length, const struct record_entry *entry)
{
    const struct message looked = {
        .type = MESSAGE_VISITED, .dir = dir, .name = message_text(name, length), .found.entry = *entry};
    names_tell(root, &looked);
}

bool names_has_redirected(const struct names_root *root)
{
    const struct request_channel *channel = names_channel_of(root);
    return channel != NULL && request_has_redirected(channel);
}

bool names_is_slow_lookup(const struct names_root *root)
{
    const struct request_channel *channel = names_channel_of(root);
    return channel != NULL && request_is_slow_lookup(channel);
}

bool names_are_kept(const struct names_root *root)
{
    const struct request_channel *channel = names_channel_of(root);
    return channel != NULL && request_keeps_names(channel);
}

uint64_t names_places(const struct names_root *root)
{
    const struct request_channel *channel = names_channel_of(root);
    return channel != NULL ? request_places(channel) : 0;
}

void names_raise_places(struct names_root *root)
{
    struct request_channel *channel = names_channel_of(root);
    if (channel != NULL)
        request_raise_places(channel);
}

int names_ping(struct request_channel *channel, uint64_t deadline)
{
    const struct message ping = {.type = MESSAGE_PING};
    int result;
    return request_result(channel, &ping, &result, deadline);
}

bool names_has_grants(const struct names_root *root)
{
    const struct request_channel *channel = names_channel_of(root);
    return channel != NULL && request_has_grants(channel);
}

int names_see_grants(struct names_root *root)
{
    if (__builtin_expect(!names_has_grants(root), 1) || BROKEN("times-unseen"))
        return 0;
    int code = names_ping(names_channel_of(root), root->deadline);
    return code == 0 || code == -EHOSTDOWN ? 1 : names_fail(root, code);
}
