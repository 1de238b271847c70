/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/agent.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon.h"
#include "launch/watch.h"

/* A batch system that ends a job tells all of its processes. The programs may still write then, so the
 * daemons go on until the launch says that these have ended, but not for longer than this. */
#define GRACE 15    /* seconds */
#define PATIENCE 60 /* seconds for a daemon to write down its work */

const struct choice keeper_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again"},
    {'n', "node", "NAME", "what this node is called"},
    {'p', "placement", "auto|branch", "as of start"},
    {'f', "leaf-full", "N", "as of start"},
    {0},
};

struct keeper {
    struct roots roots;
    struct daemon_options options;
    const char *node;
    bool wrong; /* a root is not there */
    struct watch watch;
    size_t count; /* of daemons that live */
    pid_t daemons[ROOTS_MAX];
};

static void tell(const struct keeper *keeper, const char *word)
{
    printf(KEEPER_WORD " %s %s\n", keeper->options.node, word);
    fflush(stdout);
}

static pid_t parent_of(const char *pid)
{
    char path[64], state;
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*d (%*[^)]) %c %d", &state, &parent) != 2)
        parent = 0;
    fclose(file);
    return parent;
}

/* The daemons have become children of this process when those that started them ended. */
static void find_daemons(struct keeper *keeper)
{
    DIR *processes = opendir("/proc");
    if (!processes)
        return;
    for (struct dirent *entry; (entry = readdir(processes)) && keeper->count < ROOTS_MAX;)
        if (atoi(entry->d_name) > 0 && parent_of(entry->d_name) == getpid())
            keeper->daemons[keeper->count++] = atoi(entry->d_name);
    closedir(processes);
}

static void reap(struct keeper *keeper)
{
    for (size_t i = 0; i < keeper->count;)
        if (waitpid(keeper->daemons[i], NULL, WNOHANG) != 0)
            keeper->daemons[i] = keeper->daemons[--keeper->count];
        else
            i++;
}

static bool input_ends(void)
{
    char bytes[512];
    ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
    return length == 0 || (length < 0 && errno != EINTR && errno != EAGAIN);
}

/* Until standard input ends, or a second signal comes, or the time after the first is over. */
static void keep(struct keeper *keeper)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    uint64_t end = 0;
    for (size_t served = keeper->count; end == 0 || clock_monotonic() < end;) {
        int signal = watch_wait(&keeper->watch, &input, 1, end ? 1000 : -1);
        if (input.revents && input_ends())
            return;
        if (signal > 0 && end)
            return;
        if (signal > 0)
            end = clock_monotonic() + GRACE * CLOCK_SECOND;
        reap(keeper);
        if (keeper->count < served)
            tell(keeper, KEEPER_DIED);
        served = keeper->count;
    }
}

static void stop(struct keeper *keeper)
{
    uint64_t end = clock_monotonic() + PATIENCE * CLOCK_SECOND;
    for (size_t i = 0; i < keeper->count; i++)
        kill(keeper->daemons[i], SIGTERM);
    for (reap(keeper); keeper->count > 0 && clock_monotonic() < end; reap(keeper))
        watch_wait(&keeper->watch, NULL, 0, 1000);
    for (size_t i = 0; i < keeper->count; i++)
        complain("shuntd (process %d) has not ended after %d s on %s: see its log, and if it hangs, `kill -KILL "
                 "%d`",
                 (int)keeper->daemons[i], PATIENCE, keeper->options.node, (int)keeper->daemons[i]);
    tell(keeper, keeper->count == 0 ? KEEPER_STOPPED : KEEPER_STUCK);
}

static void serve(struct keeper *keeper)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    bool serves = daemon_node(&keeper->options, keeper->node) == 0 && !keeper->wrong &&
                  daemon_start(&keeper->roots, &keeper->options) == 0;
    signal(SIGPIPE, SIG_IGN);
    watch_init(&keeper->watch);
    if (serves)
        find_daemons(keeper);
    tell(keeper, serves ? KEEPER_SERVES : KEEPER_FAILED);
    keep(keeper);
    stop(keeper);
    watch_finish(&keeper->watch);
}

static int take_options(struct keeper *keeper, const struct verb *verb, int argc, char **argv)
{
    int option;
    while ((option = verb_option(verb, argc, argv)) >= 0)
        switch (option) {
        case 'r':
            keeper->wrong |= roots_add(&keeper->roots, optarg) < 0;
            break;
        case 'n':
            keeper->node = optarg;
            break;
        case 'p':
            keeper->options.placement = optarg;
            break;
        default:
            keeper->options.leaf_full = optarg;
        }
    return option;
}

int keeper(const struct verb *verb, int argc, char **argv)
{
    static struct keeper keeper = {.options.orphans_told = true};
    int end = take_options(&keeper, verb, argc, argv);
    if (end == VERB_END)
        serve(&keeper);
    roots_finish(&keeper.roots);
    return verb_status(end);
}
