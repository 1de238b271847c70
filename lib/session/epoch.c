/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The text of ROOT/.shunt/session/epoch.N, and what it says to people. */
#include "session/session.h"

#include <errno.h>

#include "session/job.h"
#include "union/lines.h"

#define EPOCH_HEAD "shunt-session 5"
/* More than the longest texts that can be made. */
#define HEAD_TEXT_MAX 512
#define MEMBER_TEXT_MAX (2 * SESSION_RUN_MAX + 2 * SESSION_ADDRESS_MAX + SESSION_JOB_MAX + 512)
/* Less than the shortest. */
#define MEMBER_TEXT_MIN 80

/* The lines after the head, and those of a member, in this order. */
enum head_line { ID, EPOCH, FOUNDED, UID, USER, MOVED, ROOT, PROBE, SYSTEM, SINCE, LEASE, NEXT, MEMBERS, HEAD_LINES };
static const char *const head_keys[HEAD_LINES] = {"id",    "epoch",  "founded", "uid",   "user", "moved",  "root",
                                                  "probe", "system", "since",   "lease", "next", "members"};
enum member_line { NUMBER, NODE, BRANCH, HOST, BOOT, JOB, PID, STARTED, MEMBER_SINCE, RUN, ADDRESS, HOME, MEMBER_LINES };
static const char *const member_keys[MEMBER_LINES] = {"member", "node",    "branch", "host", "boot",    "job",
                                                      "pid",    "started", "since",  "run",  "address", "home"};

static bool epoch_take_lines(struct lines *lines, const char *const keys[], size_t count, struct lines_value to[])
{
    for (size_t i = 0; i < count; i++)
        if (!lines_take(lines, keys[i], &to[i]))
            return false;
    return true;
}

static bool epoch_number_upto(struct lines_value value, uint64_t most, uint64_t *number)
{
    return lines_number(value, 10, number) && *number <= most;
}

static bool epoch_parse_head(struct lines *lines, struct session *session, uint64_t *members)
{
    struct lines_value values[HEAD_LINES];
    uint64_t uid, next;
    if (!lines_expect(lines, EPOCH_HEAD) || !epoch_take_lines(lines, head_keys, HEAD_LINES, values))
        return false;
    if (!lines_number(values[ID], 16, &session->id) || !lines_number(values[EPOCH], 10, &session->epoch) ||
        !lines_number(values[FOUNDED], 10, &session->founded) || !epoch_number_upto(values[UID], UINT32_MAX, &uid) ||
        !lines_word(values[USER], session->user, sizeof session->user) || !lines_number(values[MOVED], 10, &session->moved) ||
        session->moved > session->epoch || !lines_dirid(values[ROOT], &session->root) ||
        !lines_dirid(values[PROBE], &session->probe) || !lines_number(values[SYSTEM], 16, &session->system) ||
        !lines_number(values[SINCE], 10, &session->since) || !lines_number(values[LEASE], 10, &session->lease) ||
        !epoch_number_upto(values[NEXT], UINT16_MAX + 1, &next) ||
        !epoch_number_upto(values[MEMBERS], SESSION_MEMBERS_MAX, members))
        return false;
    session->uid = (uid_t)uid;
    session->next = (uint32_t)next;
    return session->id != 0 && session->founded > 0 && session->founded <= session->epoch &&
           *members * MEMBER_TEXT_MIN <= lines->left;
}

int session_count(const char *text, size_t length)
{
    struct lines lines = {text, length};
    struct session session;
    uint64_t members;
    return epoch_parse_head(&lines, &session, &members) ? (int)members : -EBADMSG;
}

static unsigned epoch_digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 255;
}

static bool epoch_parse_address(struct lines_value value, struct session_member *member)
{
    if (value.length % 2 != 0 || value.length / 2 > SESSION_ADDRESS_MAX)
        return false;
    for (size_t i = 0; i < value.length; i += 2) {
        unsigned high = epoch_digit_of(value.at[i]), low = epoch_digit_of(value.at[i + 1]);
        if (high > 15 || low > 15)
            return false;
        member->address[i / 2] = (uint8_t)(high << 4 | low);
    }
    member->address_size = (uint8_t)(value.length / 2);
    return true;
}

static const char *const parts[SESSION_PARTS] = {"no", "yes", "coming", "leaving", "going", "gone", "lost"};

const char *session_part_word(uint8_t part)
{
    return part < SESSION_PARTS ? parts[part] : "";
}

static bool epoch_parse_home(struct lines_value value, struct session_member *member)
{
    char word[8];
    if (!lines_word(value, word, sizeof word))
        return false;
    for (member->home = 0; member->home < SESSION_PARTS; member->home++)
        if (strcmp(word, parts[member->home]) == 0)
            return true;
    return false;
}

static bool epoch_names_are_valid(const struct session_member *member)
{
    uint32_t incarnation;
    return layout_node_is_valid(member->node, strlen(member->node)) &&
           layout_branch_node(member->branch, strlen(member->branch), &incarnation) > 0;
}

static bool epoch_parse_texts(struct session_member *member, const struct lines_value values[MEMBER_LINES])
{
    return lines_word(values[NODE], member->node, sizeof member->node) &&
           lines_word(values[BRANCH], member->branch, sizeof member->branch) &&
           lines_word(values[HOST], member->host, sizeof member->host) &&
           lines_word(values[BOOT], member->boot, sizeof member->boot) &&
           lines_word(values[JOB], member->job, sizeof member->job) &&
           lines_path(values[RUN], member->run_dir, sizeof member->run_dir) && epoch_parse_address(values[ADDRESS], member) &&
           epoch_parse_home(values[HOME], member) && epoch_names_are_valid(member);
}

static bool epoch_parse_member(struct lines *lines, struct session_member *member)
{
    struct lines_value values[MEMBER_LINES];
    uint64_t number, pid;
    /* Of process numbers, 0 and negative ones mean groups to kill(2). */
    if (!epoch_take_lines(lines, member_keys, MEMBER_LINES, values) || !epoch_parse_texts(member, values) ||
        !epoch_number_upto(values[NUMBER], UINT16_MAX, &number) || number == 0 ||
        !epoch_number_upto(values[PID], INT32_MAX, &pid) || pid == 0 || !lines_number(values[STARTED], 10, &member->started) ||
        !lines_number(values[MEMBER_SINCE], 10, &member->since))
        return false;
    member->number = (uint16_t)number;
    member->pid = (pid_t)pid;
    return true;
}

int session_parse(struct session *session, const char *text, size_t length)
{
    struct lines lines = {text, length};
    uint64_t members, before = 0;
    session->count = 0;
    if (!epoch_parse_head(&lines, session, &members))
        return -EBADMSG;
    if (members > session->room)
        return -E2BIG;
    for (size_t i = 0; i < members; i++) {
        struct session_member *member = &session->members[i];
        if (!epoch_parse_member(&lines, member) || member->number <= before || member->number >= session->next)
            return -EBADMSG;
        before = member->number;
    }
    if (lines.left > 0)
        return -EBADMSG;
    session->count = (size_t)members;
    return 0;
}

static void epoch_add_head(struct text *t, const struct session *session)
{
    text_add(t, EPOCH_HEAD "\n");
    lines_add_number(t, head_keys[ID], session->id, 16);
    lines_add_number(t, head_keys[EPOCH], session->epoch, 10);
    lines_add_number(t, head_keys[FOUNDED], session->founded, 10);
    lines_add_number(t, head_keys[UID], session->uid, 10);
    lines_add(t, head_keys[USER], session->user);
    lines_add_number(t, head_keys[MOVED], session->moved, 10);
    lines_add_dirid(t, head_keys[ROOT], session->root);
    lines_add_dirid(t, head_keys[PROBE], session->probe);
    lines_add_number(t, head_keys[SYSTEM], session->system, 16);
    lines_add_number(t, head_keys[SINCE], session->since, 10);
    lines_add_number(t, head_keys[LEASE], session->lease, 10);
    lines_add_number(t, head_keys[NEXT], session->next, 10);
    lines_add_number(t, head_keys[MEMBERS], session->count, 10);
}

static void epoch_add_member(struct text *t, const struct session_member *member)
{
    lines_add_number(t, member_keys[NUMBER], member->number, 10);
    lines_add(t, member_keys[NODE], member->node);
    lines_add(t, member_keys[BRANCH], member->branch);
    lines_add(t, member_keys[HOST], member->host);
    lines_add(t, member_keys[BOOT], member->boot);
    lines_add(t, member_keys[JOB], member->job);
    lines_add_number(t, member_keys[PID], (uint64_t)member->pid, 10);
    lines_add_number(t, member_keys[STARTED], member->started, 10);
    lines_add_number(t, member_keys[MEMBER_SINCE], member->since, 10);
    lines_add_path(t, member_keys[RUN], member->run_dir);
    text_add(t, member_keys[ADDRESS]);
    text_add(t, " ");
    for (size_t i = 0; i < member->address_size; i++) {
        text_number(t, member->address[i] >> 4, 16);
        text_number(t, member->address[i] & 15, 16);
    }
    text_add(t, "\n");
    lines_add(t, member_keys[HOME], parts[member->home]);
}

ssize_t session_format(const struct session *session, char *to, size_t size)
{
    struct text t;
    text_init(&t, to, size);
    epoch_add_head(&t, session);
    for (size_t i = 0; i < session->count; i++)
        epoch_add_member(&t, &session->members[i]);
    return text_ok(&t) ? (ssize_t)t.length : -ENAMETOOLONG;
}

size_t session_text_max(size_t members)
{
    return HEAD_TEXT_MAX + members * MEMBER_TEXT_MAX;
}

static void epoch_add_two_digits(struct text *t, uint64_t number)
{
    text_number(t, number / 10, 10);
    text_number(t, number % 10, 10);
}

/* YYYY-MM-DD hh:mm:ss UTC, without libc, which would read its time zone files. Days are counted in years that
 * begin in March, so that the leap day is the last. */
static void epoch_add_date(struct text *t, uint64_t ns)
{
    uint64_t seconds = ns / CLOCK_SECOND, days = seconds / 86400 + 719468;
    uint64_t era = days / 146097, day = days % 146097;
    uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    uint64_t rest = day - (365 * year + year / 4 - year / 100);
    uint64_t month = (5 * rest + 2) / 153;
    text_number(t, year + era * 400 + (month >= 10), 10);
    text_add(t, "-");
    epoch_add_two_digits(t, month < 10 ? month + 3 : month - 9);
    text_add(t, "-");
    epoch_add_two_digits(t, rest - (153 * month + 2) / 5 + 1);
    const uint64_t clock[] = {seconds / 3600 % 24, seconds / 60 % 60, seconds % 60};
    for (size_t i = 0; i < 3; i++) {
        text_add(t, i == 0 ? " " : ":");
        epoch_add_two_digits(t, clock[i]);
    }
    text_add(t, " UTC");
}

static void epoch_add_owner(struct text *t, const struct session *session)
{
    if (session->user[0]) {
        text_add(t, session->user);
    } else {
        text_add(t, "user ");
        text_number(t, session->uid, 10);
    }
}

static void epoch_add_job(struct text *t, const char *written)
{
    char words[SESSION_JOB_MAX + sizeof " job "];
    struct text job;
    text_init(&job, words, sizeof words);
    session_job_describe(&job, written);
    if (job.length > 0) {
        text_add(t, ", ");
        text_add(t, words);
    }
}

static void epoch_add_place(struct text *t, const struct session_member *member, size_t others)
{
    text_add(t, " on host ");
    text_add(t, member->host);
    text_add(t, " (node ");
    text_add(t, member->node);
    text_add(t, ", process ");
    text_number(t, (uint64_t)member->pid, 10);
    epoch_add_job(t, member->job);
    if (others > 0) {
        text_add(t, ", and ");
        text_number(t, others, 10);
        text_add(t, others == 1 ? " other node" : " other nodes");
    }
    text_add(t, ")");
}

void session_describe(const struct session *session, const struct session_member *member, char *to, size_t size)
{
    struct text t;
    text_init(&t, to, size);
    text_add(&t, "held by a session of ");
    epoch_add_owner(&t, session);
    if (session->count > 0)
        epoch_add_place(&t, member ? member : session->members, session->count - 1);
    text_add(&t, " since ");
    epoch_add_date(&t, session->since);
}
