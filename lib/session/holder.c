/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The text of ROOT/.shunt/session/holder, and what it says to people. */
#include "session/session.h"

#include <errno.h>

#include "base/clock.h"
#include "union/lines.h"

#define HOLDER_HEAD "shunt-session 1"

/* The lines after the head, in this order. */
enum holder_line { ID, HOST, BOOT, NODE, BRANCH, PID, STARTED, UID, USER, SINCE, RUN, HOLDER_LINES };
static const char *const holder_keys[HOLDER_LINES] = {"id",      "host", "boot", "node",  "branch", "pid",
                                                      "started", "uid",  "user", "since", "run"};

static bool names_are_valid(const struct session *session)
{
    uint32_t incarnation;
    return layout_node_is_valid(session->node, strlen(session->node)) &&
           layout_branch_node(session->branch, strlen(session->branch), &incarnation) > 0;
}

static bool parse_texts(struct session *session, const struct lines_value values[HOLDER_LINES])
{
    return lines_word(values[HOST], session->host, sizeof session->host) &&
           lines_word(values[BOOT], session->boot, sizeof session->boot) &&
           lines_word(values[NODE], session->node, sizeof session->node) &&
           lines_word(values[BRANCH], session->branch, sizeof session->branch) &&
           lines_word(values[USER], session->user, sizeof session->user) &&
           lines_path(values[RUN], session->run_dir, sizeof session->run_dir) && names_are_valid(session);
}

static bool parse_numbers(struct session *session, const struct lines_value values[HOLDER_LINES])
{
    uint64_t pid, uid;
    if (!lines_number(values[ID], 16, &session->id) || !lines_number(values[PID], 10, &pid) ||
        !lines_number(values[STARTED], 10, &session->started) || !lines_number(values[UID], 10, &uid) ||
        !lines_number(values[SINCE], 10, &session->since))
        return false;
    /* 0 and negative numbers mean process groups to kill(2). */
    if (pid == 0 || pid > INT32_MAX || uid > UINT32_MAX)
        return false;
    session->pid = (pid_t)pid;
    session->uid = (uid_t)uid;
    return true;
}

int session_parse(struct session *session, const char *text, size_t length)
{
    struct lines lines = {text, length};
    struct lines_value values[HOLDER_LINES];
    if (!lines_expect(&lines, HOLDER_HEAD))
        return -EBADMSG;
    for (size_t i = 0; i < HOLDER_LINES; i++)
        if (!lines_take(&lines, holder_keys[i], &values[i]))
            return -EBADMSG;
    if (lines.left > 0 || !parse_texts(session, values) || !parse_numbers(session, values))
        return -EBADMSG;
    return 0;
}

int session_format(const struct session *session, char *to, size_t size)
{
    struct text t;
    text_init(&t, to, size);
    text_add(&t, HOLDER_HEAD "\n");
    lines_add_number(&t, holder_keys[ID], session->id, 16);
    lines_add(&t, holder_keys[HOST], session->host);
    lines_add(&t, holder_keys[BOOT], session->boot);
    lines_add(&t, holder_keys[NODE], session->node);
    lines_add(&t, holder_keys[BRANCH], session->branch);
    lines_add_number(&t, holder_keys[PID], (uint64_t)session->pid, 10);
    lines_add_number(&t, holder_keys[STARTED], session->started, 10);
    lines_add_number(&t, holder_keys[UID], session->uid, 10);
    lines_add(&t, holder_keys[USER], session->user);
    lines_add_number(&t, holder_keys[SINCE], session->since, 10);
    lines_add_path(&t, holder_keys[RUN], session->run_dir);
    return text_ok(&t) ? (int)t.length : -ENAMETOOLONG;
}

static void add_two_digits(struct text *t, uint64_t number)
{
    text_number(t, number / 10, 10);
    text_number(t, number % 10, 10);
}

/* YYYY-MM-DD hh:mm:ss UTC, without libc, which would read its time zone files. Days are counted in years that
 * begin in March, so that the leap day is the last. */
static void add_date(struct text *t, uint64_t ns)
{
    uint64_t seconds = ns / CLOCK_SECOND, days = seconds / 86400 + 719468;
    uint64_t era = days / 146097, day = days % 146097;
    uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    uint64_t rest = day - (365 * year + year / 4 - year / 100);
    uint64_t month = (5 * rest + 2) / 153;
    text_number(t, year + era * 400 + (month >= 10), 10);
    text_add(t, "-");
    add_two_digits(t, month < 10 ? month + 3 : month - 9);
    text_add(t, "-");
    add_two_digits(t, rest - (153 * month + 2) / 5 + 1);
    const uint64_t clock[] = {seconds / 3600 % 24, seconds / 60 % 60, seconds % 60};
    for (size_t i = 0; i < 3; i++) {
        text_add(t, i == 0 ? " " : ":");
        add_two_digits(t, clock[i]);
    }
    text_add(t, " UTC");
}

void session_describe(const struct session *session, char *to, size_t size)
{
    struct text t;
    text_init(&t, to, size);
    text_add(&t, "a session of ");
    if (session->user[0]) {
        text_add(&t, session->user);
    } else {
        text_add(&t, "user ");
        text_number(&t, session->uid, 10);
    }
    text_add(&t, " holds it on host ");
    text_add(&t, session->host);
    text_add(&t, " (node ");
    text_add(&t, session->node);
    text_add(&t, ", process ");
    text_number(&t, (uint64_t)session->pid, 10);
    text_add(&t, ") since ");
    add_date(&t, session->since);
}
