/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the ways to start a program share. Callable in a vfork child: no malloc, nothing is remembered. */

#include <errno.h>
#include <stddef.h>

#include "shim/process.h"
#include "shim/program.h"

/* Moves a file that is in a branch to the trunk. If it fails the file is not found, and the caller hears of it. Keeps errno. */
void exec_promote_file(const char *path);

/* What an exec that failed with `error` (positive) says of that path: where the kernel missed its parent, a
 * file in a branch may have been in the way, ENOTDIR. */
int exec_error(int at, const char *path, int error);
/* Promotes a program, with the interpreters that its first line leads to (the kernel looks for those from the working
 * directory, `directory`), and judges one that the shim will not be in (program.h): PROGRAM_GOES, or what it says. Keeps errno.
 * The second: what execvp would find along PATH. */
enum program_way exec_prepare(int at, const char *path, int directory, char *const arguments[]);
enum program_way exec_prepare_along_path(const char *file, int directory, char *const arguments[]);
/* The error of one that is not executed; 0: it is. */
static inline int exec_refused(enum program_way way)
{
    return way == PROGRAM_REFUSED ? EACCES : way == PROGRAM_BUSY ? ETXTBSY : 0;
}

/* A child's environment must carry the shim on. So many variables may be added, with so many bytes of text
 * (0: it lacks nothing); how many it has. */
#define EXEC_CARRIED 7
size_t exec_room(char *const environment[]);
size_t exec_count(char *const environment[]);
/* Writes the environment and what it lacks to `to`; the new texts go to `texts`. */
char *const *exec_carry(char *const environment[], char **to, char *texts);

/* A program that the helper is to execute, as it is given to exec. */
struct exec_helped {
    enum program_way way; /* nothing of this counts unless it is PROGRAM_HELPED */
    const char *path;     /* or a name to be found along PATH; empty: what is open as `directory` */
    bool is_along_path;
    int directory; /* from which a relative path is seen */
    char *const *arguments;
};

/* The environment to start a program with: that which is given, or one that has what it lacks, which lies in memory of this
 * thread, since a stack may be small, and malloc is not to be called here. NULL: there is no memory. What a vfork child has
 * begun ends when its parent goes on, so the next call of the thread takes the same memory. Keeps errno. */
struct exec_carrying {
    void *at; /* NULL: nothing is to be given back */
    size_t size;
    char **words; /* the command line of the helper, which is to be executed instead; NULL: the program itself */
    int passed;   /* a duplicate that outlives the exec of the helper, which closes it; -1 */
};
char *const *exec_carry_begin(struct exec_carrying *, char *const environment[], const struct exec_helped *);
/* The program was not started, or by a child. */
void exec_carry_end(const struct exec_carrying *);
