/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/json.h"
#include "cli/roots.h"
#include "request/request.h"
#include "serving/counters.h"
#include "session/session.h"
#include "union/listing.h"
#include "commands.h"
#include "status_left.h"
#include "status_here.h"

#define RESTART_PATIENCE (10 * CLOCK_SECOND)

const struct choice command_status_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {'n', "node", "NAME", "of the daemon that goes by that name (default: one of this host)"},
    {'a', "all", NULL, "also what all daemons of the session have counted together"},
    {'v', "verbose", NULL, "without a root: each daemon's counters, too"},
    {COMMAND_LONG + 2, "metrics", NULL, "the counters of this host's sessions as OpenMetrics text"},
    {COMMAND_LONG + 1, "json", NULL, "an array of objects, one for each root or session"},
    {0},
};

struct asking {
    bool all, json, verbose, metrics;
    const char *node; /* NULL: any of this host */
};

struct standing {
    const char *root;
    int error;   /* of reading the session; 0: there is one */
    bool nobody; /* in it goes by the name that was asked for */
    int lives;   /* of `member`, as session_lives */
    size_t branches;
    int left_error; /* 0: `left` is known */
    struct status_left left;
    bool counted;       /* counters hold what the daemon said */
    int counters_error; /* of the last daemon of this host that was asked; 0: none was, or it answered */
    struct session session;
    const struct session_member *member; /* the one that answers: of this host, if there is one */
    struct counters counters;
    const struct asking *asking;
    int all_error; /* of asking all; 0: `all` holds the answer */
    struct counters all;
};

/* Why not all could be asked. */
static const char *command_status_reason(const struct standing *standing)
{
    if (!standing->counted)
        return "no daemon of its session runs on this host (run this on a host where one does)";
    return standing->all_error == -ETIMEDOUT
               ? "not all of its daemons answer (run this again, and 'shunt doctor --host HOST' for a host that stays silent)"
               : "the daemon cannot be asked (run this again)";
}

static void command_status_ask(struct standing *standing, const struct session_member *member)
{
    if (session_lives(member) != 1)
        return;
    standing->counters_error = counters_ask(&standing->counters, member->run_dir, false);
    if (standing->counters_error != 0)
        return;
    standing->counted = true;
    standing->member = member;
    standing->lives = 1;
}

static void command_status_ask_all(struct standing *standing)
{
    if (standing->counted)
        standing->all_error = counters_ask(&standing->all, standing->member->run_dir, true);
    if (standing->all_error != 0)
        error_report("%s: no counters of all daemons, %s", standing->root, command_status_reason(standing));
}

/* It is told of the node that was asked for; else of one that lives and answers, of one that lives, or of the first. */
static void command_status_choose_member(struct standing *standing)
{
    const struct session *session = &standing->session;
    const char *node = standing->asking->node;
    const struct session_member *named = node ? session_find_node(session, node) : NULL;
    standing->nobody = node && !named;
    standing->member = named ? named : session_living(session);
    if (!standing->member)
        standing->member = session->members;
    standing->lives = session_lives(standing->member);
}

static void command_status_look_at_session(struct standing *standing)
{
    const struct session *session = &standing->session;
    const char *node = standing->asking->node;
    if (standing->nobody)
        error_report("%s: no daemon of its session is named '%s' (run 'shunt status --root %s' to see their names)",
                     standing->root, node, standing->root);
    else if (node)
        command_status_ask(standing, standing->member);
    for (size_t i = 0; i < session->count && !node && !standing->counted; i++)
        command_status_ask(standing, &session->members[i]);
    if (standing->asking->all)
        command_status_ask_all(standing);
}

/* Has the daemon that is asked for crashed, and is another one about to be started? */
static bool command_status_is_restarted(const struct standing *standing)
{
    return !standing->nobody && standing->lives == 0 && request_supervisor(standing->member->run_dir) != 0;
}

/* Programs wait for that one, too. One that crashes once its member is chosen was alive when it was asked for. */
static int command_status_read(struct standing *standing)
{
    const struct timespec pause = clock_split(20 * CLOCK_MILLISECOND);
    const uint64_t until = clock_monotonic() + RESTART_PATIENCE;
    for (;;) {
        int error = session_read(standing->root, &standing->session);
        if (error != 0)
            return error;
        HOOK("status-read");
        command_status_choose_member(standing);
        if (!command_status_is_restarted(standing) || clock_monotonic() > until)
            return 0;
        session_finish(&standing->session);
        clock_sleep(&pause);
    }
}

static void command_status_look(struct standing *standing, const char *root, const struct asking *asking)
{
    struct union_root opened;
    *standing = (struct standing){.root = root, .asking = asking, .all_error = -ENODATA, .left_error = -ENODATA};
    standing->error = command_status_read(standing);
    if (standing->error == -ENOTDIR)
        standing->error = -ENOENT;
    if (standing->error == 0)
        command_status_look_at_session(standing);
    if (union_root_init(&opened, root, 0) < 0)
        return;
    standing->branches = opened.branch_count;
    if (standing->error == -ENOENT) /* else a look into leaves costs those who make files there */
        standing->left_error = status_left_look(&standing->left, &opened);
    union_root_finish(&opened);
}

static const char *command_status_life(int lives)
{
    return lives == 1 ? "alive" : lives == 0 ? "dead" : "elsewhere";
}

static const char *command_status_state(const struct standing *standing)
{
    if (standing->error == -ENOENT)
        return "none";
    if (standing->error < 0)
        return "unreadable";
    return command_status_life(standing->lives);
}

/* The one that is told of is as it was when it was chosen, or members and session would differ. */
static const char *command_status_member_life(const struct standing *standing, const struct session_member *member)
{
    return command_status_life(member == standing->member ? standing->lives : session_lives(member));
}

static void command_status_print_members_json(struct json *json, const struct standing *standing)
{
    const struct session *session = &standing->session;
    json_open(json, "members", '[');
    for (size_t i = 0; i < session->count; i++) {
        const struct session_member *member = &session->members[i];
        json_open(json, NULL, '{');
        json_unsigned(json, "number", member->number);
        json_text(json, "node", member->node);
        json_text(json, "branch", member->branch);
        json_text(json, "host", member->host);
        json_number(json, "pid", member->pid);
        json_text(json, "state", command_status_member_life(standing, member));
        json_text(json, "home", session_part_word(member->home));
        json_unsigned(json, "since_ns", member->since);
        json_text(json, "run_dir", member->run_dir);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void command_status_print_session_json(struct json *json, const struct standing *standing)
{
    const struct session *session = &standing->session;
    const struct session_member *member = standing->member;
    json_text(json, "host", member->host);
    json_text(json, "node", member->node);
    json_text(json, "branch", member->branch);
    json_number(json, "pid", member->pid);
    json_text(json, "user", session->user);
    json_unsigned(json, "uid", session->uid);
    json_unsigned(json, "since_ns", session->since);
    json_text(json, "run_dir", member->run_dir);
    json_unsigned(json, "epoch", session->epoch);
    command_status_print_members_json(json, standing);
}

static void command_status_print_json(struct json *json, const struct standing *standing)
{
    json_open(json, NULL, '{');
    json_text(json, "root", standing->root);
    json_text(json, "state", command_status_state(standing));
    json_unsigned(json, "branches", standing->branches);
    if (standing->left_error == 0) {
        json_unsigned(json, "left_files", standing->left.files);
        json_real(json, "export_seconds", standing->left.seconds);
    }
    if (standing->error == 0)
        command_status_print_session_json(json, standing);
    if (standing->counted) {
        counters_json(&standing->counters, json, "counters");
        counters_json_lists(&standing->counters, json);
    }
    if (standing->all_error == 0)
        counters_json(&standing->all, json, "all");
    json_close(json, '}');
}

static void command_status_print_members(const struct standing *standing)
{
    const struct session *session = &standing->session;
    printf("  epoch    %llu, %zu member%s\n", (unsigned long long)session->epoch, session->count,
           session->count == 1 ? "" : "s");
    for (size_t i = 0; i < session->count; i++) {
        const struct session_member *member = &session->members[i];
        printf("  member   %u: node %s on host %s, process %d, branch %s, %s, home: %s\n", member->number, member->node,
               member->host, (int)member->pid, member->branch, command_status_member_life(standing, member),
               session_part_word(member->home));
    }
}

static void command_status_print_words(const struct standing *standing)
{
    char words[512];
    if (standing->error < 0) {
        describe_print(standing->root);
        printf(": %s (%zu branches)\n", standing->error == -ENOENT ? "no session" : "the session cannot be read",
               standing->branches);
        if (standing->left_error == 0)
            status_left_print(&standing->left);
        return;
    }
    session_describe(&standing->session, standing->member, words, sizeof words);
    describe_print(standing->root);
    printf(": %s\n", words);
    printf("  state    %s\n", standing->lives == 1   ? "alive"
                              : standing->lives == 0 ? "dead (run 'shunt start' to take over)"
                                                     : "on another host (run 'shunt status' there)");
    printf("  branch   %s (of %zu)\n", standing->member->branch, standing->branches);
    printf("  run dir  %s\n", standing->member->run_dir);
    command_status_print_members(standing);
    if (standing->counted)
        counters_print(&standing->counters);
    else if (standing->counters_error != 0)
        printf("  counters cannot be read: %s\n", strerror(-standing->counters_error));
    if (standing->all_error == 0) {
        printf("  all together:\n");
        counters_print(&standing->all);
    }
}

static int command_status_print_all(const struct roots *roots, const struct asking *asking)
{
    struct json json = {0};
    static struct standing standing;
    int status = STATUS_OK;
    if (asking->json)
        json_open(&json, NULL, '[');
    for (size_t i = 0; i < roots->count; i++) {
        command_status_look(&standing, roots->paths[i], asking);
        if (asking->json)
            command_status_print_json(&json, &standing);
        else
            command_status_print_words(&standing);
        if (standing.error < 0 || standing.nobody || standing.lives == 0 || (asking->all && standing.all_error != 0))
            status = STATUS_FAILED;
        session_finish(&standing.session);
    }
    if (asking->json)
        json_close(&json, ']');
    return status;
}

/* No root, and nothing that only a root has. */
static bool command_status_is_of_host(const struct roots *roots, const struct asking *asking)
{
    const char *named = getenv("SHUNT_ROOT");
    return roots->count == 0 && (named == NULL || *named == '\0') && asking->node == NULL && !asking->all;
}

static int command_status_print(struct roots *roots, const struct asking *asking)
{
    if (asking->metrics)
        return status_here(STATUS_HERE_METRICS, true);
    if (command_status_is_of_host(roots, asking))
        return status_here(asking->json ? STATUS_HERE_JSON : STATUS_HERE_TABLE, asking->verbose);
    return roots_default(roots) < 0 ? STATUS_USAGE : command_status_print_all(roots, asking);
}

int command_status_of(const struct command *command, int argc, char **argv)
{
    struct roots roots;
    struct asking asking = {.node = NULL};
    int end, wrong = 0;
    roots_init(&roots);
    while (wrong == 0 && (end = command_option(command, argc, argv)) >= 0)
        if (end == 'r')
            wrong = roots_add(&roots, optarg);
        else if (end == 'n')
            asking.node = optarg;
        else if (end == 'a')
            asking.all = true;
        else if (end == 'v')
            asking.verbose = true;
        else if (end == COMMAND_LONG + 2)
            asking.metrics = true;
        else
            asking.json = true;
    int status = wrong ? STATUS_USAGE : command_status(end);
    if (!wrong && end == COMMAND_END && optind < argc)
        status = error_usage(command, "unexpected argument '%s', roots are given with --root", argv[optind]);
    else if (!wrong && end == COMMAND_END && asking.metrics && (roots.count > 0 || asking.node || asking.all || asking.json))
        status = error_usage(command, "--metrics is of all sessions of this host: no other option goes with it");
    else if (!wrong && end == COMMAND_END)
        status = command_status_print(&roots, &asking);
    roots_finish(&roots);
    return status;
}
