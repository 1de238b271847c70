/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A real shuntd on the root `r` of a place: a child that ends with the test. */

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/sys.h"
#include "names/names.h"
#include "place.h"

#define SOON (20 * CLOCK_SECOND) /* what must happen happens long before */

static pid_t served_pid;

/* A raw system call, since a test may have execl from the shim. */
static inline void served_be(const char *placement, const char *leaf_full)
{
    const char *arguments[] = {"shuntd",      "--foreground", "--root",      place_path("r"), "--node", "n1",
                               "--placement", placement,      "--leaf-full", leaf_full,       NULL};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("SHUNT_RUN_DIR", place_path("run"), 1);
    setenv("SHUNT_FABRIC", "none", 1);
    SYS3(SYS_execve, SHUNTD, arguments, environ);
    _exit(127);
}

/* Fills `root` and waits until its daemon serves. */
static inline void served_start(struct names_root *root, const char *placement, const char *leaf_full)
{
    int status;
    place_directory("run");
    const char *path = place_path("r");
    cr_assert_eq(names_root_init(root, path, strlen(path), &(struct names_settings){place_path("run"), {"n1"}, SOON, NULL}), 0);
    served_pid = fork();
    if (served_pid == 0)
        served_be(placement, leaf_full);
    while (!names_is_attached(root)) {
        cr_assert_eq(waitpid(served_pid, &status, WNOHANG), 0, "shuntd ended");
        usleep(1000);
    }
}

/* Ends it with a signal: its status. */
static inline int served_stop(int signal)
{
    int status = -1;
    if (served_pid > 0) {
        kill(served_pid, signal);
        waitpid(served_pid, &status, 0);
    }
    served_pid = 0;
    return status;
}
