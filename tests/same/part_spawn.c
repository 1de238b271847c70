/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* posix_spawn in a directory that its file actions lead to: the program, its interpreter and the files that
 * it is given are relative to that. The children write to this program's standard output, in turn with it. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "../old_libc.h"

extern char **environ;

static void spawn_script(const char *path, const char *text)
{
    make_file(path, 0755, text, strlen(text));
}

/* None of it was run before: what is in a branch is there until it is spawned. */
static void make_programs(void)
{
    make_directory("bin", 0755);
    make_directory("bin/deep", 0755);
    spawn_script("bin/tell", "#!/bin/sh\necho \"tell $0 $*\"; pwd | sed 's:.*/w:w:'\n");
    spawn_script("bin/deep/tell", "#!/bin/sh\necho \"deep tell $0 $*\"; pwd | sed 's:.*/w:w:'\n");
    spawn_script("bin/interpreted", "#!./interpreter\nshown by the interpreter\n");
    spawn_script("bin/interpreter", "#!/bin/sh\ncat \"$1\"\n");
    spawn_script("bin/deep/searched", "#!/bin/sh\necho \"searched $0\"\n");
}

/* One action each; a list ends with DONE. */
struct action {
    enum { DONE, CHDIR, ABSOLUTE_CHDIR, FCHDIR, OPEN, DUP2, CLOSE } kind;
    const char *path;
    int fd, flags;
};

#define ACTIONS 6

static int spawn_add(posix_spawn_file_actions_t *to, const struct action *action)
{
    switch (action->kind) {
    case CHDIR:
        return posix_spawn_file_actions_addchdir_np(to, action->path);
    case ABSOLUTE_CHDIR:
        return posix_spawn_file_actions_addchdir_np(to, joined(fixture.work, action->path));
    case FCHDIR:
        return posix_spawn_file_actions_addfchdir_np(to, action->fd);
    case OPEN:
        return posix_spawn_file_actions_addopen(to, action->fd, action->path, action->flags, 0640);
    case DUP2:
        return posix_spawn_file_actions_adddup2(to, action->fd, action->flags);
    default:
        return posix_spawn_file_actions_addclose(to, action->fd);
    }
}

static long spawn_run(const char *program, bool searches, const posix_spawn_file_actions_t *actions)
{
    char *argv[] = {"spawned", "-", NULL};
    pid_t child;
    int status;
    fflush(stdout);
    int error = searches ? posix_spawnp(&child, program, actions, NULL, argv, environ)
                         : posix_spawn(&child, program, actions, NULL, argv, environ);
    errno = error;
    if (error != 0)
        return -1;
    if (waitpid(child, &status, 0) < 0)
        return -1;
    errno = 0;
    return status;
}

static long spawn_child(const char *program, bool searches, const struct action *list)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < ACTIONS && list[i].kind != DONE; i++) {
        int error = spawn_add(&actions, &list[i]);
        if (error != 0)
            detail(" action %d: %s", i, strerrorname_np(error));
    }
    long result = spawn_run(program, searches, &actions);
    int error = errno;
    posix_spawn_file_actions_destroy(&actions);
    errno = error;
    return result;
}

#define MAKE (O_WRONLY | O_CREAT | O_TRUNC)

static const struct {
    const char *label, *program;
    struct action actions[ACTIONS];
} spawns[] = {
    {"no action", "./bin/tell", {{DONE}}},
    {"a directory, then a program", "./tell", {{CHDIR, "bin"}}},
    {"an absolute directory", "./tell", {{ABSOLUTE_CHDIR, "bin"}}},
    {"two directories", "./tell", {{CHDIR, "bin"}, {CHDIR, "deep"}}},
    {"a way back", "bin/tell", {{CHDIR, "bin/deep"}, {CHDIR, "../.."}}},
    {"a program above", "../tell", {{CHDIR, "bin/deep"}}},
    {"an interpreter from there", "./interpreted", {{CHDIR, "bin"}}},
    {"a program that is elsewhere", "./bin/tell", {{CHDIR, "dir"}}},
    {"no directory", "./tell", {{CHDIR, "absent"}}},
    {"a file", "./tell", {{CHDIR, "file"}}},
    {"below a file", "./tell", {{CHDIR, "file/x"}}},
    {"a link to a file", "./tell", {{CHDIR, "lfile"}}},
    {"a loop", "./tell", {{CHDIR, "loop"}}},
    {"a dark directory", "./tell", {{CHDIR, "dark"}}},
    {"a descriptor", "./tell", {{OPEN, "bin", 7, O_RDONLY | O_DIRECTORY}, {FCHDIR, .fd = 7}}},
    {"a descriptor's copy",
     "./tell",
     {{OPEN, "bin", 7, O_RDONLY}, {DUP2, .fd = 7, .flags = 8}, {CLOSE, .fd = 7}, {FCHDIR, .fd = 8}}},
    {"a descriptor that was closed", "./tell", {{OPEN, "bin", 7, O_RDONLY}, {CLOSE, .fd = 7}, {FCHDIR, .fd = 7}}},
    {"an inherited descriptor", "./tell", {{FCHDIR, .fd = 9}}},
    {"an inherited descriptor, then further", "./tell", {{FCHDIR, .fd = 9}, {CHDIR, "deep"}}},
    {"reads what is there", "/bin/cat", {{CHDIR, "dir"}, {OPEN, "inner", 0, O_RDONLY}}},
    {"reads before it goes", "/bin/cat", {{OPEN, "file", 0, O_RDONLY}, {CHDIR, "dir"}}},
    {"reads through a link", "/bin/cat", {{CHDIR, "dir"}, {OPEN, "../lfile", 0, O_RDONLY}}},
    {"reads what is not there", "/bin/cat", {{CHDIR, "dir"}, {OPEN, "file", 0, O_RDONLY}}},
    {"reads below a file", "/bin/cat", {{CHDIR, "dir"}, {OPEN, "inner/x", 0, O_RDONLY}}},
    {"writes there", "/bin/echo", {{CHDIR, "bare"}, {OPEN, "written", 1, MAKE}}},
    {"writes over a file", "/bin/echo", {{CHDIR, "dir"}, {OPEN, "inner", 1, MAKE}}},
    {"appends to a file", "/bin/echo", {{CHDIR, "dir"}, {OPEN, "inner", 1, O_WRONLY | O_APPEND}}},
    {"makes what is there", "/bin/echo", {{CHDIR, "dir"}, {OPEN, "inner", 1, MAKE | O_EXCL}}},
    {"makes what is not there", "/bin/echo", {{CHDIR, "dir"}, {OPEN, "new", 1, MAKE | O_EXCL}}},
    {"makes one file twice", "/bin/echo", {{CHDIR, "dir"}, {OPEN, "new", 1, MAKE}, {OPEN, "../dir/new", 2, MAKE}}},
    {"makes one file twice at most",
     "/bin/echo",
     {{CHDIR, "dir"}, {OPEN, "new", 1, MAKE | O_EXCL}, {OPEN, "new", 2, MAKE | O_EXCL}}},
    {"makes where nothing may be made", "/bin/echo", {{CHDIR, "ro"}, {OPEN, "new", 1, MAKE}}},
    {"makes in what is no directory", "/bin/echo", {{CHDIR, "bare"}, {OPEN, "../file/x", 1, MAKE}}},
    {"makes through a link", "/bin/echo", {{CHDIR, "dir"}, {OPEN, "../ldangling", 1, MAKE}}},
    {"makes from outside", "/bin/echo", {{CHDIR, "../../out"}, {OPEN, "to-new", 1, MAKE}}},
    {"makes outside", "/bin/echo", {{CHDIR, "../../out"}, {OPEN, "new", 1, MAKE}}},
};

static void case_of(size_t i, bool searches)
{
    if (!case_is_due())
        return;
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    make_programs();
    int bin = open("bin", O_RDONLY | O_DIRECTORY);
    if (bin < 0 || dup2(bin, 9) != 9)
        give_up("cannot open", "bin");
    close(bin);
    long result = spawn_child(spawns[i].program, searches, spawns[i].actions);
    int error = errno;
    close(9);
    remove_tree("bin");
    case_told(searches ? "posix_spawnp" : "posix_spawn", spawns[i].label, result, error, true);
}

/* A program that is looked for along a PATH that is relative. */
static void case_of_search(const char *path_variable, const char *directory)
{
    const struct action list[ACTIONS] = {{directory ? CHDIR : DONE, directory}};
    char *before = strdup(getenv("PATH")), where[64];
    if (!case_is_due())
        return;
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    make_programs();
    setenv("PATH", path_variable, 1);
    long result = spawn_child("searched", true, list);
    int error = errno;
    setenv("PATH", before, 1);
    free(before);
    remove_tree("bin");
    snprintf(where, sizeof where, "along %s in %s", path_variable, directory ? directory : ".");
    case_told("posix_spawnp", where, result, error, true);
}

/* A list that is made once means at each time what it then means. */
static void case_of_reuse(void)
{
    posix_spawn_file_actions_t actions;
    if (!case_is_due())
        return;
    posix_spawn_file_actions_init(&actions);
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    posix_spawn_file_actions_addopen(&actions, 0, "moving", O_RDONLY, 0);
    detail(" before %ld", spawn_run("/bin/cat", false, &actions));
    make_file("moving", 0644, "first\n", 6);
    detail(" made %ld", spawn_run("/bin/cat", false, &actions));
    detail(" renamed %d", rename("moving", "dir/moving"));
    detail(" then %ld", spawn_run("/bin/cat", false, &actions));
    detail(" in %d", chdir("dir"));
    long result = spawn_run("/bin/cat", false, &actions);
    int error = errno;
    posix_spawn_file_actions_destroy(&actions);
    case_told("posix_spawn", "one list for all times", result, error, true);
}

void part_spawn(void)
{
    for (size_t i = 0; i < sizeof spawns / sizeof *spawns; i++) {
        case_of(i, false);
        case_of(i, true);
    }
    case_of_search("deep:/bin", "bin");
    case_of_search("bin/deep:/bin", NULL);
    case_of_search("bin/deep:/bin", "bin");
    case_of_search("", "bin/deep");
    case_of_reuse();
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
}
