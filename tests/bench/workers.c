/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Its processes share one mapping and sleep on a semaphore each: an inactive one is not woken, and
 * costs no descriptor. */

#include "workers.h"

#include <err.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define PREFIX_MAX 64

struct order {
    char prefix[PREFIX_MAX];
    const struct agents_call *call;
    unsigned first, count;
};

struct costs {
    uint64_t elapsed, used; /* ns */
    long switches;
};

struct seat {
    sem_t go;
    struct costs costs; /* of the last order */
};

struct agents {
    sem_t done;
    struct order order;
    struct seat seats[];
};

/* The daemon that is measured waits for what a process does between its calls, which is therefore little. */
static void make_all(const char *directory, unsigned process, const struct order *order)
{
    char path[PATH_MAX];
    struct text text;
    int stem = snprintf(path, sizeof path, "%s/%s-%u-", directory, order->prefix, process);
    if (stem < 0 || stem >= (int)sizeof path - 16)
        errx(2, "%s: a path that is too long", directory);
    text_init(&text, path + stem, sizeof path - (size_t)stem);
    for (unsigned number = order->first; number < order->first + order->count; number++) {
        text.length = 0;
        text_number(&text, number, 10);
        if (order->call->make(directory, path) == -1)
            err(1, "%s %s", order->call->name, path);
    }
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static struct costs costs_until_now(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct costs){.elapsed = clock_ns(CLOCK_MONOTONIC),
                          .used = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
                          .switches = usage.ru_nvcsw + usage.ru_nivcsw};
}

static void carry_out(struct agents *agents, const char *directory, unsigned process)
{
    struct costs before = costs_until_now();
    make_all(directory, process, &agents->order);
    struct costs after = costs_until_now();
    agents->seats[process].costs = (struct costs){.elapsed = after.elapsed - before.elapsed,
                                                  .used = after.used - before.used,
                                                  .switches = after.switches - before.switches};
}

/* A process that fails takes the agents with it, for nobody would wait for it without success. */
static void end_agents(void)
{
    kill(getppid(), SIGTERM);
}

static void workers_serve(struct agents *agents, const char *directory, unsigned process)
{
    for (;;) {
        sem_wait(&agents->seats[process].go);
        carry_out(agents, directory, process);
        sem_post(&agents->done);
    }
}

static struct agents *make_room(unsigned processes)
{
    size_t size = sizeof(struct agents) + processes * sizeof(struct seat);
    struct agents *agents = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (agents == MAP_FAILED)
        err(1, "mmap");
    sem_init(&agents->done, 1, 0);
    for (unsigned process = 0; process < processes; process++)
        sem_init(&agents->seats[process].go, 1, 0);
    return agents;
}

static struct agents *workers_hire(int argc, char *argv[], unsigned processes, void (*begin)(int, char *[]))
{
    struct agents *agents = make_room(processes);
    for (unsigned process = 0; process < processes; process++) {
        pid_t child = fork();
        if (child == -1)
            err(1, "fork");
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            atexit(end_agents);
            if (begin != NULL)
                begin(argc, argv);
            workers_serve(agents, argv[1], process);
        }
    }
    return agents;
}

static const struct agents_call *find_call(const struct agents_call *calls, const char *name)
{
    for (; calls->name != NULL; calls++)
        if (strcmp(calls->name, name) == 0)
            return calls;
    errx(2, "no such call: %s", name);
}

static void workers_order(struct agents *agents, unsigned active)
{
    for (unsigned process = 0; process < active; process++)
        sem_post(&agents->seats[process].go);
    for (unsigned process = 0; process < active; process++)
        sem_wait(&agents->done);
    for (unsigned process = 0; process < active; process++) {
        const struct costs *costs = &agents->seats[process].costs;
        printf("%lu %lu %ld\n", costs->elapsed, costs->used, costs->switches);
    }
    fflush(stdout);
}

int agents_main(int argc, char *argv[], const struct agents_call *calls, void (*begin)(int, char *[]))
{
    unsigned processes = argc > 2 ? (unsigned)atoi(argv[2]) : 0, active;
    char name[PREFIX_MAX];
    if (processes == 0)
        errx(2, "usage: %s DIRECTORY PROCESSES [WORD]...", argv[0]);
    struct agents *agents = workers_hire(argc, argv, processes, begin);
    puts("ready");
    fflush(stdout);
    struct order *next = &agents->order;
    while (scanf("%63s %63s %u %u %u", name, next->prefix, &next->first, &next->count, &active) == 5) {
        if (active > processes)
            errx(2, "there are %u processes", processes);
        next->call = find_call(calls, name);
        workers_order(agents, active);
    }
    return 0;
}
