/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/agents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/agent.h"
#include "command.h"

#define START_PATIENCE 120 /* seconds */
#define STOP_PATIENCE 90   /* more than a keeper's own */

static void become(const struct crew_member *member, const struct watch *watch, int in, int out)
{
    setsid(); /* a terminal's ^C is for the job */
    sigprocmask(SIG_SETMASK, &watch->before, NULL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    execvp(member->words.at[0], member->words.at);
    complain("%s cannot be run: %s", member->words.at[0], strerror(errno));
    _exit(127);
}

static int start_member(struct crew_member *member, const struct watch *watch)
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
        become(member, watch, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    member->to = to[1];
    member->from = from[0];
    fcntl(member->from, F_SETFL, O_NONBLOCK);
    return member->pid < 0 ? -EAGAIN : 0;
}

static void close_pipe(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void dismiss(struct crew *crew)
{
    crew->dismissed = true;
    for (size_t i = 0; i < crew->count; i++)
        close_pipe(&crew->members[i].to);
}

/* A keeper calls its host as that does itself, which may be another name than the allocation's. */
static void mark_served(struct crew *crew, struct crew_member *member, const char *name)
{
    size_t at = member->first, end = member->first + member->count;
    while (at < end && !nodes_is_same(crew->nodes->names[at], name))
        at++;
    for (size_t i = member->first; at == end && i < end; i++)
        if (!crew->serves[i])
            at = i;
    if (at < end)
        crew->serves[at] = true;
    member->served++;
}

static void take_failure(struct crew *crew, const struct crew_member *member, const char *name)
{
    const char *node = member->count == 1 ? crew->nodes->names[member->first] : name;
    crew->failed = crew->told = true;
    complain("node %s has no daemon (its reason stands above), so nothing is run", node);
}

static void take_word(struct crew *crew, struct crew_member *member, const char *name, const char *word)
{
    if (!strcmp(word, KEEPER_SERVES))
        mark_served(crew, member, name);
    else if (!strcmp(word, KEEPER_STOPPED))
        member->stopped++;
    else if (!strcmp(word, KEEPER_FAILED))
        take_failure(crew, member, name);
    else if (!strcmp(word, KEEPER_DIED))
        complain("a daemon of node %s has ended: what needs it fails there with EIO until `shunt start`", name);
}

/* Launchers may put something before a line, and say things of their own. */
static void take_line(struct crew *crew, struct crew_member *member)
{
    char name[256], word[16];
    const char *report = strstr(member->text, KEEPER_WORD " ");
    if (report && sscanf(report, KEEPER_WORD " %255s %15s", name, word) == 2)
        take_word(crew, member, name, word);
    else if (member->length > 0)
        fprintf(stderr, "%s\n", member->text);
}

static void take_bytes(struct crew *crew, struct crew_member *member, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool is_end = bytes[i] == '\n' || member->length + 2 >= sizeof member->text;
        if (bytes[i] != '\n' && member->length + 1 < sizeof member->text)
            member->text[member->length++] = bytes[i];
        if (!is_end)
            continue;
        member->text[member->length] = '\0';
        take_line(crew, member);
        member->length = 0;
    }
}

static void read_member(struct crew *crew, struct crew_member *member)
{
    char bytes[4096];
    ssize_t length;
    while ((length = read(member->from, bytes, sizeof bytes)) > 0)
        take_bytes(crew, member, bytes, (size_t)length);
    if (length == 0 || (errno != EAGAIN && errno != EINTR))
        close_pipe(&member->from);
}

static void complain_lost(struct crew *crew, const struct crew_member *member)
{
    for (size_t i = member->first; i < member->first + member->count; i++)
        if (!crew->serves[i])
            complain("node %s was not reached: `%s` ended before a daemon served there", crew->nodes->names[i],
                     member->words.at[0]);
    if (member->served == member->count)
        complain("node %s%s has lost its keeper, `%s`: its daemon may have ended, too", crew->nodes->names[member->first],
                 member->count > 1 ? " and others" : "", member->words.at[0]);
    crew->told = true;
}

static void reap_member(struct crew *crew, struct crew_member *member)
{
    if (member->pid <= 0 || waitpid(member->pid, NULL, WNOHANG) == 0)
        return;
    member->pid = 0;
    if (member->from >= 0)
        read_member(crew, member);
    close_pipe(&member->from);
    if (crew->dismissed)
        return;
    if (!crew->failed || member->served == member->count)
        complain_lost(crew, member);
    crew->failed = true;
}

int crew_wait(struct crew *crew, struct watch *watch, int milliseconds)
{
    static struct pollfd all[WATCH_MAX];
    static struct crew_member *of[WATCH_MAX];
    size_t count = 0;
    for (size_t i = 0; i < crew->count; i++)
        if (crew->members[i].from >= 0) {
            all[count] = (struct pollfd){.fd = crew->members[i].from, .events = POLLIN};
            of[count++] = &crew->members[i];
        }
    int signal = watch_wait(watch, all, count, milliseconds);
    for (size_t i = 0; i < count; i++)
        if (all[i].revents)
            read_member(crew, of[i]);
    for (size_t i = 0; i < crew->count; i++)
        reap_member(crew, &crew->members[i]);
    return signal;
}

static bool all_serve(const struct crew *crew)
{
    for (size_t i = 0; i < crew->count; i++)
        if (crew->members[i].served < crew->members[i].count)
            return false;
    return true;
}

static bool any_lives(const struct crew *crew)
{
    for (size_t i = 0; i < crew->count; i++)
        if (crew->members[i].pid > 0)
            return true;
    return false;
}

static void complain_late(const struct crew *crew)
{
    for (size_t i = 0; i < crew->nodes->count; i++)
        if (!crew->serves[i])
            complain("node %s has no daemon after %d s, so nothing is run", crew->nodes->names[i], START_PATIENCE);
}

int crew_start(struct crew *crew, struct watch *watch)
{
    uint64_t end = clock_monotonic() + START_PATIENCE * CLOCK_SECOND;
    int signal = 0;
    for (size_t i = 0; i < crew->count && !crew->failed; i++) {
        int error = start_member(&crew->members[i], watch);
        crew->failed = error < 0;
        if (error < 0)
            complain("node %s: no process can be made for it (%s): end some and run this again",
                     crew->nodes->names[crew->members[i].first], strerror(-error));
    }
    while (signal == 0 && !crew->failed && !all_serve(crew) && clock_monotonic() < end)
        signal = crew_wait(crew, watch, 1000);
    if (signal > 0)
        return signal;
    if (!crew->failed && !all_serve(crew))
        complain_late(crew);
    return crew->failed || !all_serve(crew) ? -1 : 0;
}

static int complain_unstopped(const struct crew *crew)
{
    int answer = 0;
    for (size_t i = 0; i < crew->count; i++) {
        const struct crew_member *member = &crew->members[i];
        if (member->pid == 0 && member->stopped >= member->served)
            continue;
        complain("node %s%s has not said that its daemon has stopped: look at `shunt status`",
                 crew->nodes->names[member->first], member->count > 1 ? ", or one of those after it," : "");
        answer = -1;
    }
    return answer;
}

int crew_stop(struct crew *crew, struct watch *watch)
{
    uint64_t end = clock_monotonic() + STOP_PATIENCE * CLOCK_SECOND;
    int signal = 0;
    dismiss(crew);
    while (signal == 0 && any_lives(crew) && clock_monotonic() < end)
        signal = crew_wait(crew, watch, 1000);
    return signal > 0 ? signal : complain_unstopped(crew);
}
