/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/agents.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/program_signals.h"
#include "cli/command.h"
#include "launch/agent.h"
#include "programs/launch.h"

#define START_PATIENCE 120 /* seconds */
#define HELP_PATIENCE 45   /* more than ssh's ConnectTimeout (agents_plan.c) */
#define STOP_PATIENCE 90   /* more than an agent's own */

/* In a script under --shunt each srun has the option by its environment; the agents' step is to have no session of the
 * plugin's. */
static void agents_leave_plugin(void)
{
    static const char *const options[] = {"shunt", "shunt_export", "shunt_keep"};
    char name[64];
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        snprintf(name, sizeof name, "SLURM_SPANK__SLURM_SPANK_OPTION_shunt_%s", options[i]);
        unsetenv(name);
    }
}

static void agents_become(const struct agents_member *member, const struct signal_wait *watch, int in, int out)
{
    agents_leave_plugin();
    setsid();                 /* a terminal's ^C is for the job */
    program_signals_ignore(); /* so does what brings the agent to its node, if it takes none of them */
    sigprocmask(SIG_SETMASK, &watch->before, NULL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    launch_natively(member->words.at);
    error_report("%s: cannot be executed: %s (check PATH)", member->words.at[0], strerror(errno));
    _exit(127);
}

static int agents_start_member(struct agents_member *member, const struct signal_wait *watch)
{
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(from, O_CLOEXEC) < 0) {
        int error = -errno;
        close(to[0]);
        close(to[1]);
        return error;
    }
    fflush(NULL);
    member->pid = fork();
    if (member->pid == 0)
        agents_become(member, watch, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    member->to = to[1];
    member->from = from[0];
    fcntl(member->from, F_SETFL, O_NONBLOCK);
    return member->pid < 0 ? -EAGAIN : 0;
}

static void agents_close_pipe(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void agents_dismiss(struct agents *agents)
{
    agents->dismissed = true;
    for (size_t i = 0; i < agents->count; i++)
        agents_close_pipe(&agents->members[i].to);
}

/* An agent calls its host as that does itself, which may be another name than the allocation's. */
static void agents_mark_served(struct agents *agents, struct agents_member *member, const char *name)
{
    size_t at = member->first, end = member->first + member->count;
    while (at < end && !nodes_is_same(agents->nodes->names[at], name))
        at++;
    for (size_t i = member->first; at == end && i < end; i++)
        if (!agents->serves[i])
            at = i;
    if (at < end)
        agents->serves[at] = true;
    member->served++;
    if (agents->named_count < agents->nodes->count && strlen(name) <= LAYOUT_NODE_MAX) {
        agents->named[agents->named_count] = (struct agents_node){.member = member, .state = OWNER_FREE};
        strcpy(agents->named[agents->named_count++].name, name);
    }
}

static void agents_take_failure(struct agents *agents, const struct agents_member *member, const char *name)
{
    const char *node = member->count == 1 ? agents->nodes->names[member->first] : name;
    if (agents->helps) /* its end says it */
        return;
    agents->failed = true;
    error_report("node %s: no daemon could be started there, so the job is not run (see the message above, and run 'shunt "
                 "doctor' on that "
                 "node)",
                 node);
}

static void agents_take_counts(struct agents *agents, const char *report)
{
    struct agent_counts more;
    if (sscanf(report, AGENT_WORD " %*s %*s %" SCNu64 " %" SCNu64 " %" SCNu64, &more.operations, &more.redirected,
               &more.waited_ms) != 3)
        return;
    agents->counts.operations += more.operations;
    agents->counts.redirected += more.redirected;
    agents->counts.waited_ms += more.waited_ms;
}

static void agents_take_word(struct agents *agents, struct agents_member *member, const char *name, const char *word)
{
    if (!strcmp(word, AGENT_SERVES))
        agents_mark_served(agents, member, name);
    else if (!strcmp(word, AGENT_STOPPED))
        member->stopped++;
    else if (!strcmp(word, AGENT_STUCK))
        member->stuck++;
    else if (!strcmp(word, AGENT_FAILED))
        agents_take_failure(agents, member, name);
    else if (!strcmp(word, AGENT_DIED))
        error_report("node %s: a daemon has ended, and calls that need it fail with EIO (run 'shunt start' on that node)",
                     name);
}

struct agents_node *agents_find_node(const struct agents *agents, const char *name)
{
    for (size_t i = 0; i < agents->named_count; i++)
        if (strcmp(agents->named[i].name, name) == 0)
            return &agents->named[i];
    return NULL;
}

/* What the node says that carries out an order. */
static void agents_take_order(struct agents *agents, const char *name, const char *report)
{
    struct agents_node *node = agents_find_node(agents, name);
    struct owner_answer answer = {0};
    if (node == NULL || node->state != OWNER_WORKS)
        return;
    if (sscanf(report, AGENT_WORD " %*s " AGENT_MOVED " %" SCNu64 " %" SCNu64, &answer.files, &answer.looked) == 2)
        node->state = OWNER_ANSWERED;
    else if (sscanf(report, AGENT_WORD " %*s " AGENT_MOVING " %" SCNu64, &answer.files) != 1)
        return;
    node->answer = answer;
    node->heard = clock_monotonic();
}

/* Launchers may put something before a line, and say things of their own. */
static void agents_take_line(struct agents *agents, struct agents_member *member)
{
    char name[256], word[16];
    const char *report = strstr(member->text, AGENT_WORD " ");
    if (report && sscanf(report, AGENT_WORD " %255s " AGENT_COUNTED " %15s", name, word) == 2)
        agents_take_counts(agents, report);
    else if (report && sscanf(report, AGENT_WORD " %255s " AGENT_MOVING " %15s", name, word) == 2)
        agents_take_order(agents, name, report);
    else if (report && sscanf(report, AGENT_WORD " %255s " AGENT_MOVED " %15s", name, word) == 2)
        agents_take_order(agents, name, report);
    else if (report && sscanf(report, AGENT_WORD " %255s %15s", name, word) == 2)
        agents_take_word(agents, member, name, word);
    else if (member->length > 0)
        fprintf(stderr, "%s\n", member->text);
}

static void agents_take_bytes(struct agents *agents, struct agents_member *member, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool is_end = bytes[i] == '\n' || member->length + 2 >= sizeof member->text;
        if (bytes[i] != '\n' && member->length + 1 < sizeof member->text)
            member->text[member->length++] = bytes[i];
        if (!is_end)
            continue;
        member->text[member->length] = '\0';
        agents_take_line(agents, member);
        member->length = 0;
    }
}

static void agents_read_member(struct agents *agents, struct agents_member *member)
{
    char bytes[4096];
    ssize_t length;
    while ((length = read(member->from, bytes, sizeof bytes)) > 0)
        agents_take_bytes(agents, member, bytes, (size_t)length);
    if (length == 0 || (errno != EAGAIN && errno != EINTR))
        agents_close_pipe(&member->from);
}

static void agents_complain_unreached(const struct agents *agents, const struct agents_member *member)
{
    for (size_t i = member->first; i < member->first + member->count; i++)
        if (!agents->serves[i])
            error_report(
                "node %s: not reached by '%s', so its files are renamed from here (check that '%s' can run a command on "
                "that node)",
                agents->nodes->names[i], member->words.at[0], member->words.at[0]);
}

static void agents_complain_lost(const struct agents *agents, const struct agents_member *member)
{
    for (size_t i = member->first; i < member->first + member->count; i++)
        if (!agents->serves[i])
            error_report(
                "node %s: not reached, '%s' ended before a daemon served there, so the job is not run (check that '%s' "
                "can run a command on that node)",
                agents->nodes->names[i], member->words.at[0], member->words.at[0]);
    if (member->served == member->count)
        error_report("node %s%s: '%s' has ended, so its daemon may have ended, too (run 'shunt status')",
                     agents->nodes->names[member->first], member->count > 1 ? " and others" : "", member->words.at[0]);
}

static void agents_reap_member(struct agents *agents, struct agents_member *member)
{
    if (member->pid <= 0 || waitpid(member->pid, NULL, WNOHANG) == 0)
        return;
    member->pid = 0;
    if (member->from >= 0)
        agents_read_member(agents, member);
    agents_close_pipe(&member->from);
    if (agents->dismissed)
        return;
    if (agents->helps)
        agents_complain_unreached(agents, member);
    else if (!agents->failed || member->served == member->count)
        agents_complain_lost(agents, member);
    agents->failed = true;
}

int agents_wait(struct agents *agents, struct signal_wait *watch, int milliseconds)
{
    static struct pollfd all[WATCH_MAX];
    static struct agents_member *of[WATCH_MAX];
    size_t count = 0;
    for (size_t i = 0; i < agents->count; i++)
        if (agents->members[i].from >= 0) {
            all[count] = (struct pollfd){.fd = agents->members[i].from, .events = POLLIN};
            of[count++] = &agents->members[i];
        }
    int signal = watch != NULL ? signal_wait_next(watch, all, count, milliseconds) : 0;
    if (watch == NULL)
        poll(all, count, milliseconds);
    for (size_t i = 0; i < count; i++)
        if (all[i].revents)
            agents_read_member(agents, of[i]);
    for (size_t i = 0; i < agents->count; i++)
        agents_reap_member(agents, &agents->members[i]);
    return signal;
}

static bool agents_all_serve(const struct agents *agents)
{
    for (size_t i = 0; i < agents->count; i++)
        if (agents->members[i].served < agents->members[i].count)
            return false;
    return true;
}

bool agents_any_lives(const struct agents *agents)
{
    for (size_t i = 0; i < agents->count; i++)
        if (agents->members[i].pid > 0)
            return true;
    return false;
}

static void agents_complain_late(const struct agents *agents)
{
    for (size_t i = 0; i < agents->nodes->count; i++)
        if (!agents->serves[i])
            error_report("node %s: no daemon after %d s, so the job is not run (run 'shunt doctor' on that node)",
                         agents->nodes->names[i], START_PATIENCE);
}

static void agents_start_members(struct agents *agents, const struct signal_wait *watch)
{
    for (size_t i = 0; i < agents->count && !agents->failed; i++) {
        int error = agents_start_member(&agents->members[i], watch);
        agents->failed = error < 0;
        if (error < 0)
            error_report("node %s: cannot start a process for it: %s (end other processes and run this again)",
                         agents->nodes->names[agents->members[i].first], strerror(-error));
    }
}

static bool agents_are_awaited(const struct agents *agents)
{
    for (size_t i = 0; i < agents->count; i++)
        if (agents->members[i].pid > 0 && agents->members[i].served < agents->members[i].count)
            return true;
    return false;
}

/* None of its nodes helps. */
static void agents_give_up_late(struct agents *agents, struct agents_member *member)
{
    agents_complain_unreached(agents, member);
    if (member->served > 0)
        return;
    kill(member->pid, SIGTERM);
    member->is_lost = true;
}

int agents_start_helpers(struct agents *agents, struct signal_wait *watch)
{
    const uint64_t end = clock_monotonic() + HELP_PATIENCE * CLOCK_SECOND;
    int signal = 0;
    agents_start_members(agents, watch);
    while (signal == 0 && agents_are_awaited(agents) && clock_monotonic() < end)
        signal = agents_wait(agents, watch, 1000);
    for (size_t i = 0; signal <= 0 && i < agents->count; i++)
        if (agents->members[i].pid > 0 && agents->members[i].served < agents->members[i].count)
            agents_give_up_late(agents, &agents->members[i]);
    agents->dismissed = true; /* one that ends from here on is not told of */
    return signal > 0 ? signal : 0;
}

int agents_start(struct agents *agents, struct signal_wait *watch)
{
    uint64_t end = clock_monotonic() + START_PATIENCE * CLOCK_SECOND;
    int signal = 0;
    agents_start_members(agents, watch);
    while (signal == 0 && !agents->failed && !agents_all_serve(agents) && clock_monotonic() < end)
        signal = agents_wait(agents, watch, 1000);
    if (signal > 0)
        return signal;
    if (!agents->failed && !agents_all_serve(agents))
        agents_complain_late(agents);
    return agents->failed || !agents_all_serve(agents) ? -1 : 0;
}

int agents_complain_unstopped(const struct agents *agents)
{
    int answer = 0;
    for (size_t i = 0; i < agents->count; i++) {
        const struct agents_member *member = &agents->members[i];
        if (member->pid == 0 && member->stopped >= member->served)
            continue;
        error_report("node %s%s: no message that the daemon has stopped (run 'shunt status')",
                     agents->nodes->names[member->first], member->count > 1 ? ", or one of those after it" : "");
        answer = -1;
    }
    return answer;
}

int agents_stop(struct agents *agents, struct signal_wait *watch)
{
    uint64_t end = clock_monotonic() + STOP_PATIENCE * CLOCK_SECOND;
    int signal = 0;
    agents_dismiss(agents);
    while (signal == 0 && agents_any_lives(agents) && clock_monotonic() < end)
        signal = agents_wait(agents, watch, 1000);
    return signal > 0 ? signal : agents_complain_unstopped(agents);
}
