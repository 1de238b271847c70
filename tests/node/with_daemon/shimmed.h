/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The shim's insides in this process, with a daemon of its own. The process is not under the shim: its own
 * calls are native, its wrappers are not there. */

#include "base/sys.h"
#include "served.h"
#include "shim/create.h"
#include "shim/operations.h"
#include "shim/process.h"
#include "shim/target.h"

/* As the constructor does it, with that text of the root. */
static inline void shimmed_enter(const char *path)
{
    static char root[PATH_MAX + 16], run_dir[PATH_MAX + 16];
    static char *environment[] = {root, run_dir, "SHUNT_NODE=n1", "LD_PRELOAD=/lib/libshunt_preload.so", NULL};
    snprintf(root, sizeof root, "SHUNT_ROOT=%s", path);
    snprintf(run_dir, sizeof run_dir, "SHUNT_RUN_DIR=%s", place_path("run"));
    shim_state.process.count = shim_state.process.head_count = 0;
    memset(shim_state.process.heads, 0, sizeof shim_state.process.heads);
    process_start(environment);
    cr_assert_eq(shim_state.process.count, 1);
}

/* Next to the root `r`, with `r/out` and `r/in`, there is `next to`. Every regular file goes to a branch. */
static inline void shimmed_init(void)
{
    place_init();
    place_directory("r/out");
    place_directory("r/in");
    place_directory("beside");
    place_directory("run");
    shimmed_enter(place_path("r"));
    served_start(&shim_state.roots[0], "branch", "1000");
}

static inline void shimmed_finish(void)
{
    served_stop(SIGKILL);
    cr_assert_eq(chdir("/"), 0);
    place_finish();
}

static inline struct dirid id_at(const char *path)
{
    struct statx stat;
    cr_assert_eq(sys_statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &stat), 0, "%s", path);
    return dirid_of(&stat);
}

static inline uint64_t ino_at(const char *path)
{
    struct stat stat;
    cr_assert_eq(lstat(path, &stat), 0, "%s: %m", path);
    return stat.st_ino;
}

/* A target under the root. */
static inline struct target hot(const char *path, unsigned want)
{
    struct target t;
    int how = target_find(&t, AT_FDCWD, path, want);
    cr_assert_eq(how, TARGET_MANAGED, "%s: %d", path, how);
    return t;
}

/* What is told is not waited for; a question about the name is answered after it. */
static inline void heard(const char *path)
{
    struct message lookup = {.type = MESSAGE_LOOKUP};
    struct target t = hot(path, 0);
    cr_assert_geq(target_ask(&t, &lookup), 0);
    target_done(&t);
}

/* Makes a file as a program would: its inode number. */
static inline uint64_t born(const char *path, const char *words, mode_t mode)
{
    struct stat stat;
    struct target t = hot(path, TARGET_FOLLOW | TARGET_MAKES);
    int fd = operate_open(&t, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    cr_assert(fd >= 0, "%s: %s", path, strerror(-fd));
    cr_assert_eq(write(fd, words, strlen(words)), (ssize_t)strlen(words));
    cr_assert_eq(fstat(fd, &stat), 0);
    close(fd);
    cr_assert_neq(access(path, F_OK), 0, "natively it is not there");
    heard(path);
    return stat.st_ino;
}
