/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "counters.h"
#include "json.h"
#include "roots.h"
#include "session/session.h"
#include "union/listing.h"
#include "verb.h"
#include "verbs.h"

const struct choice verb_status_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {'a', "all", NULL, "also what all daemons of the session have counted together"},
    {VERB_LONG + 1, "json", NULL, "an array of objects, one for each root"},
    {0},
};

struct standing {
    const char *root;
    int error; /* of reading the session; 0: there is one */
    int lives; /* of `member`, as session_lives */
    size_t branches;
    bool counted; /* counters hold what the daemon said */
    struct session session;
    const struct session_member *member; /* the one that answers: of this host, if there is one */
    struct counters counters;
    bool asks_all;
    int all_error; /* of asking all; 0: `all` holds the answer */
    struct counters all;
};

/* Why not all could be asked. */
static const char *reason(const struct standing *standing)
{
    if (!standing->counted)
        return "no daemon of it runs on this host";
    return standing->all_error == -ETIMEDOUT ? "not all of its daemons answer" : "its daemon cannot be asked";
}

/* Who lives and answers says how it goes; else it is told of one who lives, or of the first. */
static void look_at_session(struct standing *standing)
{
    standing->member = session_living(&standing->session);
    if (!standing->member)
        standing->member = standing->session.members;
    standing->lives = session_lives(standing->member);
    for (size_t i = 0; i < standing->session.count && !standing->counted; i++) {
        const struct session_member *member = &standing->session.members[i];
        if (session_lives(member) != 1)
            continue;
        standing->counted = counters_ask(&standing->counters, member->run_dir, false) == 0;
        if (standing->counted)
            standing->member = member;
    }
    if (standing->asks_all && standing->counted)
        standing->all_error = counters_ask(&standing->all, standing->member->run_dir, true);
    if (standing->asks_all && standing->all_error != 0)
        complain("%s: %s: what all have counted cannot be told", standing->root, reason(standing));
}

static void look(struct standing *standing, const char *root, bool asks_all)
{
    struct union_root opened;
    *standing = (struct standing){.root = root, .asks_all = asks_all, .all_error = -ENODATA};
    standing->error = session_read(root, &standing->session);
    if (standing->error == -ENOTDIR)
        standing->error = -ENOENT;
    if (standing->error == 0)
        look_at_session(standing);
    if (union_root_init(&opened, root, 0) < 0)
        return;
    standing->branches = opened.branch_count;
    union_root_finish(&opened);
}

static const char *life(int lives)
{
    return lives == 1 ? "alive" : lives == 0 ? "dead" : "elsewhere";
}

static const char *state(const struct standing *standing)
{
    if (standing->error == -ENOENT)
        return "none";
    if (standing->error < 0)
        return "unreadable";
    return life(standing->lives);
}

static void print_members_json(struct json *json, const struct session *session)
{
    json_open(json, "members", '[');
    for (size_t i = 0; i < session->count; i++) {
        const struct session_member *member = &session->members[i];
        json_open(json, NULL, '{');
        json_unsigned(json, "number", member->number);
        json_text(json, "node", member->node);
        json_text(json, "branch", member->branch);
        json_text(json, "host", member->host);
        json_number(json, "pid", member->pid);
        json_text(json, "state", life(session_lives(member)));
        json_text(json, "home", session_part_word(member->home));
        json_unsigned(json, "since_ns", member->since);
        json_text(json, "run_dir", member->run_dir);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void print_session_json(struct json *json, const struct standing *standing)
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
    print_members_json(json, session);
}

static void print_json(struct json *json, const struct standing *standing)
{
    json_open(json, NULL, '{');
    json_text(json, "root", standing->root);
    json_text(json, "state", state(standing));
    json_unsigned(json, "branches", standing->branches);
    if (standing->error == 0)
        print_session_json(json, standing);
    if (standing->counted) {
        counters_json(&standing->counters, json, "counters");
        counters_json_lists(&standing->counters, json);
    }
    if (standing->all_error == 0)
        counters_json(&standing->all, json, "all");
    json_close(json, '}');
}

static void print_members(const struct session *session)
{
    printf("  epoch    %llu, %zu member%s\n", (unsigned long long)session->epoch, session->count,
           session->count == 1 ? "" : "s");
    for (size_t i = 0; i < session->count; i++) {
        const struct session_member *member = &session->members[i];
        printf("  member   %u: node %s on host %s, process %d, branch %s, %s, home: %s\n", member->number,
               member->node, member->host, (int)member->pid, member->branch, life(session_lives(member)),
               session_part_word(member->home));
    }
}

static void print_words(const struct standing *standing)
{
    char words[512];
    if (standing->error < 0) {
        printf("%s: %s (%zu branches)\n", standing->root,
               standing->error == -ENOENT ? "no session" : "the session cannot be read", standing->branches);
        return;
    }
    session_describe(&standing->session, standing->member, words, sizeof words);
    printf("%s: %s\n", standing->root, words);
    printf("  state    %s\n", standing->lives == 1   ? "alive"
                              : standing->lives == 0 ? "dead: `shunt start` takes over"
                                                     : "on another host: ask there");
    printf("  branch   %s (of %zu)\n", standing->member->branch, standing->branches);
    printf("  run dir  %s\n", standing->member->run_dir);
    print_members(&standing->session);
    if (standing->counted)
        counters_print(&standing->counters);
    if (standing->all_error == 0) {
        printf("  all together:\n");
        counters_print(&standing->all);
    }
}

static int print_all(const struct roots *roots, bool asks_all, bool as_json)
{
    struct json json = {0};
    static struct standing standing;
    int status = STATUS_OK;
    if (as_json)
        json_open(&json, NULL, '[');
    for (size_t i = 0; i < roots->count; i++) {
        look(&standing, roots->paths[i], asks_all);
        if (as_json)
            print_json(&json, &standing);
        else
            print_words(&standing);
        if (standing.error < 0 || standing.lives == 0 || (asks_all && standing.all_error != 0))
            status = STATUS_FAILED;
        session_finish(&standing.session);
    }
    if (as_json)
        json_close(&json, ']');
    return status;
}

int verb_status_of(const struct verb *verb, int argc, char **argv)
{
    struct roots roots;
    bool asks_all = false, as_json = false;
    int end, wrong = 0;
    roots_init(&roots);
    while (wrong == 0 && (end = verb_option(verb, argc, argv)) >= 0)
        if (end == 'r')
            wrong = roots_add(&roots, optarg);
        else if (end == 'a')
            asks_all = true;
        else
            as_json = true;
    int status = wrong ? STATUS_USAGE : verb_status(end);
    if (!wrong && end == VERB_END && optind < argc)
        status = complain_usage(verb, "'%s' is too much: roots are given with --root", argv[optind]);
    else if (!wrong && end == VERB_END)
        status = roots_default(&roots) < 0 ? STATUS_USAGE : print_all(&roots, asks_all, as_json);
    roots_finish(&roots);
    return status;
}
