/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "scenario.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "same.h"
#include "../old_libc.h"

struct outcome {
    long result;
    int error;
};

void scenarios_run(const char *part, const struct scenario *scenarios, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!case_is_due())
            continue;
        if (chdir(fixture.work) < 0)
            give_up("cannot enter", fixture.work);
        errno = 0;
        long result = scenarios[i].run();
        int error = errno;
        if (chdir("/") < 0)
            give_up("cannot enter", "/");
        case_told(part, scenarios[i].name, result, error, true);
    }
}

static void scenario_answer(int to, long (*run)(void *), void *argument)
{
    errno = 0;
    struct outcome outcome = {.result = run(argument)};
    outcome.error = errno;
    _exit(write(to, &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
}

long in_child(long (*run)(void *), void *argument)
{
    struct outcome outcome;
    int ends[2], status;
    if (pipe(ends) < 0)
        give_up("no pipe to", "a child");
    pid_t child = fork();
    if (child == 0)
        scenario_answer(ends[1], run, argument);
    close(ends[1]);
    ssize_t count = read(ends[0], &outcome, sizeof outcome);
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || count != sizeof outcome)
        give_up("no answer from", "a child");
    errno = outcome.error;
    return outcome.result;
}

const char *ended(long result)
{
    return result >= 0 ? "done" : strerrorname_np(errno);
}
