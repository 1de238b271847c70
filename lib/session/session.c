/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What members do to a session: each is one change from the epoch in force to the next. */
#include "session/session.h"

#include <errno.h>

#include "session/store.h"
#include "union/disk.h"

int session_read(const char *root, struct session *session)
{
    *session = (struct session){0};
    int directory = store_open(root);
    if (directory < 0)
        return directory;
    int error = store_is_copied(directory) ? -ENOENT : store_read(directory, session);
    sys_close(directory);
    if (error == 0 && session->count == 0) {
        session_finish(session);
        error = -ENOENT;
    }
    return error;
}

int session_epoch(const char *root, uint64_t *epoch)
{
    int directory = store_open(root);
    if (directory < 0)
        return directory;
    int error = store_highest(directory, epoch);
    sys_close(directory);
    return error;
}

bool session_is_served(const char *root)
{
    struct session session;
    bool served = session_read(root, &session) == 0 && session_living(&session);
    session_finish(&session);
    return served;
}

struct session_member *session_find(const struct session *session, uint16_t number)
{
    for (size_t i = 0; i < session->count; i++)
        if (session->members[i].number == number)
            return &session->members[i];
    return NULL;
}

bool session_has(const struct session *session, uint16_t number)
{
    const struct session_member *member = session_find(session, number);
    return member != NULL && member->home != SESSION_LOST;
}

struct session_member *session_find_node(const struct session *session, const char *node)
{
    for (size_t i = 0; i < session->count; i++)
        if (strcmp(session->members[i].node, node) == 0)
            return &session->members[i];
    return NULL;
}

bool session_is_held(const struct session *session)
{
    return session->count == 1 && strcmp(session->members[0].run_dir, SESSION_HELD) == 0;
}

/* A change: the member that makes it, and what it needs to know. */
struct change {
    /* Looks at what is in force: 0, it is as it should be; 1, *session is the next epoch now; -EAGAIN, it is
     * in force no more; or -errno. */
    int (*step)(struct change *, int directory, struct session *);
    const char *user;
    struct session_member *mine;
    uint64_t silent;
    uint64_t lease;
    uint64_t id;
    uint16_t number;
    bool drops;             /* a lost one */
    struct session attempt; /* a founder's: which files are its own; without members */
};

/* The loser looks again. The winner, too: it is done when what is in force says so, since a number can
 * be won that has been in force, was followed and removed meanwhile. */
static int session_carry_out(int directory, struct change *change, struct session *session)
{
    for (;;) {
        int error = store_read(directory, session);
        if (error < 0 && error != -ENOENT)
            return error;
        error = change->step(change, directory, session);
        if (error <= 0 && error != -EAGAIN)
            return error;
        if (error > 0)
            error = store_publish(directory, session);
        session_finish(session);
        if (error < 0 && error != -EAGAIN)
            return error;
    }
}

static int session_is_silent(const struct session *session, uint64_t silent)
{
    if (silent == 0 || session->epoch != silent)
        return 0;
    for (size_t i = 0; i < session->count; i++)
        if (session_lives(&session->members[i]) == 1)
            return 0;
    return 1;
}

/* Its session is not in force, nor will it be. */
static void session_abandon(struct change *change, int directory)
{
    if (change->attempt.id != 0)
        store_clear(directory, &change->attempt);
    change->attempt.id = 0;
}

/* Heartbeats are rarer where there are many. A member that has read an older epoch may go by its lease still: it never shrinks.
 */
static uint64_t session_longest_lease(uint64_t lease, size_t members)
{
    uint64_t least = SESSION_LEASE_BEATS * session_beat_interval(members);
    return lease > least ? lease : least;
}

static int session_next_founded(struct change *change, int directory, struct session *session)
{
    uint64_t epoch = session->epoch + 1;
    struct session next = {.id = change->id,
                           .epoch = epoch,
                           .founded = epoch,
                           .moved = epoch,
                           .uid = (uid_t)SYS0(SYS_geteuid),
                           .since = change->mine->since,
                           .lease = session_longest_lease(change->lease, 1),
                           .next = 2,
                           .count = 1,
                           .room = session->room,
                           .members = session->members};
    struct text t;
    text_init(&t, next.user, sizeof next.user);
    text_add(&t, change->user);
    change->mine->number = 1;
    change->mine->home = SESSION_HOME;
    next.members[0] = *change->mine;
    *session = next;
    change->attempt = next;
    int error = key_make(directory, session);
    if (error == 0)
        error = probe_make(directory, session);
    return error < 0 ? error : store_beat(directory, session, 1);
}

/* The daemon that ends or supersedes a session sweeps its files: one that is missing says nothing then. */
static int session_unless_followed(int directory, uint64_t epoch, int error)
{
    uint64_t now;
    return store_highest(directory, &now) == 0 && now != epoch ? -EAGAIN : error;
}

static int session_step_found(struct change *change, int directory, struct session *session)
{
    if (session->count > 0 && session->id == change->id)
        return 0;
    session_abandon(change, directory);
    if (session_living(session) && !session_is_silent(session, change->silent))
        return -EBUSY;
    if (!session->members && store_room(session, 1) < 0)
        return -ENOMEM;
    int error = session_next_founded(change, directory, session);
    return error < 0 ? session_unless_followed(directory, session->epoch - 1, error) : 1;
}

/* Could it be read back? Without a number it is no member yet. */
static int session_check_own(const struct session_member *mine, const char *user)
{
    char text[8192];
    struct session_member one = *mine, back;
    struct session session = {.id = 1, .epoch = 1, .founded = 1, .next = 2, .count = 1, .members = &one};
    struct session same = {.room = 1, .members = &back};
    struct text t;
    one.number = 1;
    text_init(&t, session.user, sizeof session.user);
    text_add(&t, user);
    ssize_t length = text_ok(&t) ? session_format(&session, text, sizeof text) : -1;
    return length > 0 && session_parse(&same, text, (size_t)length) == 0 ? 0 : -EINVAL;
}

static uint64_t session_random_id(void)
{
    uint64_t id;
    do
        id = disk_random();
    while (id == 0);
    return id;
}

static int session_found_epoch(int directory, struct change *change, struct session *session)
{
    bool parted;
    int error = store_part(directory, &parted);
    if (error == 0)
        error = session_carry_out(directory, change, session);
    if (error < 0)
        session_abandon(change, directory);
    else
        store_sweep(directory, session->founded);
    return error;
}

/* Of a session that was not reached, only the members that are in the way are of interest. */
static int session_answer(int error, struct session *session)
{
    if (error < 0 && error != -EBUSY && error != -EACCES && error != -EXDEV)
        session_finish(session);
    return error;
}

int session_found(const char *root, const char *user, struct session_member *mine, uint64_t silent, uint64_t lease,
                  struct session *session)
{
    struct change change = {
        .step = session_step_found, .user = user, .mine = mine, .silent = silent, .lease = lease, .id = session_random_id()};
    *session = (struct session){0};
    if (session_check_own(mine, user) < 0)
        return -EINVAL;
    int directory = store_open(root);
    if (directory < 0)
        return directory;
    int error = session_found_epoch(directory, &change, session);
    sys_close(directory);
    return session_answer(error, session);
}

static void session_remove_member(struct session *session, struct session_member *member)
{
    size_t after = (size_t)(session->members + session->count - (member + 1));
    memmove(member, member + 1, after * sizeof *member);
    session->count--;
}

static struct session_member *session_find_branch(const struct session *session, const char *branch)
{
    for (size_t i = 0; i < session->count; i++)
        if (strcmp(session->members[i].branch, branch) == 0)
            return &session->members[i];
    return NULL;
}

/* A branch is made by exclusive mkdir: a member with the same branch is this daemon. */
static int session_step_join(struct change *change, int directory, struct session *session)
{
    if (session->count == 0 || session->id != change->attempt.id)
        session_abandon(change, directory);
    const struct session_member *there = session_find_branch(session, change->mine->branch);
    if (there && there->pid == change->mine->pid) {
        change->mine->number = there->number;
        return 0;
    }
    if (!session_living(session))
        return -ENOENT;
    if (session->uid != (uid_t)SYS0(SYS_geteuid))
        return -EACCES;
    if (probe_check(directory, session) < 0)
        return session_unless_followed(directory, session->epoch, -EXDEV);
    struct session_member *namesake = session_find_node(session, change->mine->node);
    if (namesake && session_lives(namesake) != 0)
        return -EBUSY;
    if (namesake && namesake->home == SESSION_LOST)
        return -EINPROGRESS;
    if (namesake)
        session_remove_member(session, namesake);
    if (session->count == SESSION_MEMBERS_MAX)
        return -EUSERS;
    if (session->next > UINT16_MAX)
        return -EOVERFLOW;
    /* Before any member knows of it: one that has never sent a heartbeat is not taken for lost. */
    change->attempt = *session;
    int error = store_beat(directory, session, (uint16_t)session->next);
    if (error < 0)
        return session_unless_followed(directory, session->epoch, error);
    session->epoch++;
    session->members[session->count] = *change->mine;
    session->members[session->count++].number = (uint16_t)session->next++;
    session->lease = session_longest_lease(session->lease, session->count);
    return 1;
}

int session_join(const char *root, struct session_member *mine, struct session *session)
{
    struct change change = {.step = session_step_join, .mine = mine};
    *session = (struct session){0};
    if (session_check_own(mine, "") < 0)
        return -EINVAL;
    int directory = store_open(root);
    if (directory < 0)
        return directory;
    int error = store_is_copied(directory) ? -ENOENT : session_carry_out(directory, &change, session);
    sys_close(directory);
    return session_answer(error, session);
}

static int session_step_leave(struct change *change, int directory, struct session *session)
{
    struct session_member *member = session->id == change->id ? session_find(session, change->number) : NULL;
    if (!member || (member->home == SESSION_LOST) != change->drops)
        return 0;
    change->attempt = *session;
    session_remove_member(session, member);
    session->epoch++;
    return 1;
}

static void session_remove_beat(const struct change *change, int directory)
{
    char name[STORE_NAME_MAX];
    store_name(name, "beat", &change->attempt, change->number);
    sys_unlinkat(directory, name, 0);
}

static void session_leave_nothing(const struct change *change, int directory)
{
    if (change->attempt.count == 1)
        store_clear(directory, &change->attempt);
    else if (change->attempt.count > 1)
        session_remove_beat(change, directory);
}

/* Where there is no room, the file of this member's heartbeats makes some: one that does not leave yet makes it again. */
static int session_carry_out_leave(int directory, struct change *change, struct session *session)
{
    const int error = session_carry_out(directory, change, session);
    if ((error != -ENOSPC && error != -EDQUOT) || change->drops)
        return error;
    session_remove_beat(change, directory);
    session_finish(session);
    return session_carry_out(directory, change, session);
}

static int session_take_out(const char *root, uint64_t id, uint16_t number, bool drops)
{
    struct change change = {.step = session_step_leave, .id = id, .number = number, .drops = drops};
    struct session session;
    int directory = store_open(root);
    if (directory < 0)
        return directory;
    int error = store_is_copied(directory) ? 0 : session_carry_out_leave(directory, &change, &session);
    if (error == 0)
        session_leave_nothing(&change, directory);
    session_finish(&session);
    sys_close(directory);
    return error;
}

int session_leave(const char *root, uint64_t id, uint16_t number)
{
    return session_take_out(root, id, number, false);
}

int session_drop(const char *root, uint64_t id, uint16_t number)
{
    return session_take_out(root, id, number, true);
}

static int session_take_revised(const struct session *from, struct session *to)
{
    size_t homes = 0;
    for (size_t i = 0; i < to->count; i++) {
        to->members[i].home = from->members[i].home;
        to->members[i].address_size = from->members[i].address_size;
        memcpy(to->members[i].address, from->members[i].address, sizeof to->members[i].address);
        homes += to->members[i].home != SESSION_GUEST;
    }
    to->moved = from->moved;
    return homes > 0 ? 0 : -EINVAL;
}

static int session_revise_once(int directory, struct session *session)
{
    struct session next;
    int error = store_read(directory, &next);
    if (error == 0 && (next.id != session->id || next.epoch != session->epoch || next.count != session->count))
        error = -ESTALE;
    if (error == 0)
        error = session_take_revised(session, &next);
    next.epoch++;
    if (error == 0)
        error = store_publish(directory, &next);
    session_finish(&next);
    if (error == 0)
        error = store_read(directory, &next);
    /* A number that was won too late is followed by others. */
    if (error == 0 && next.epoch != session->epoch + 1)
        error = -ESTALE;
    session_finish(&next);
    return error == -EAGAIN || error == -ENOENT ? -ESTALE : error;
}

int session_revise(const char *root, struct session *session)
{
    int directory = store_open(root);
    if (directory < 0)
        return directory;
    int error = store_is_copied(directory) ? -ESTALE : session_revise_once(directory, session);
    sys_close(directory);
    if (error == 0)
        session->epoch++;
    return error;
}
