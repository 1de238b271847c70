/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a file that is about to be executed is. Async-signal-safe, callable in a vfork child. */

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct names_root;
struct scratch;

/* Before a fork: a process that starts many programs forks first, and what one child was told, the next is not
 * told again. To have the memory from the start would take every process 20 us. */
void program_share(void);

#define PROGRAM_LINE_MAX 256  /* the kernel reads so much of a script */
#define PROGRAM_SCRIPTS_MAX 5 /* the kernel's depth of scripts that interpret scripts */

enum program_kind { PROGRAM_OTHER = 0, PROGRAM_SCRIPT, PROGRAM_ELF };

/* What is in a program's file. */
struct program_look {
    uint8_t kind, why;                      /* why the shim will not be in it; 0: it will, or that cannot be told */
    char interpreter[PROGRAM_LINE_MAX + 1]; /* that a script's first line names; of PROGRAM_ELF the loader; empty: none */
};

/* What is read of an ELF file: too much for the stack of a call on a path outside all roots (scratch.h). */
struct program_elf {
    Elf64_Ehdr header;
    Elf64_Phdr part, other_part;
    Elf64_Dyn entry;
};

/* The first bytes of a program, as they were read at once, and the descriptor for what comes after them. */
struct program_head {
    int fd;
    const char *bytes;
    size_t length;
    struct program_elf *elf;
};

/* Is it, by its name, the dynamic loader, which may be executed with a program as its argument? */
bool program_is_loader(const char *path);

/* Is it, by its name, a tool of valgrind (memcheck-amd64-linux), which is static, loads the program that its arguments name,
 * and has the loader load the shim into it? */
bool program_is_analyser(const char *path);

/* Looks into it: it is opened and read once, which others may watch (inotify, fanotify), and not at all if it was before, by
 * this process or one that forked it, and has not changed since: same file, mode, size and times, which were not of a moment
 * ago. A change of what is in it, or another file in its place, changes these, in whichever process, mount or table of
 * descriptors: the name is looked at each time (one statx), and no file can be executed that somebody may write to without the
 * kernel's notice (ETXTBSY). Only a clock that is set back to the very moment of the last change hides one. An empty path
 * is the descriptor `at` itself. False: there is no such file. Uses scratch->real, scratch->program.seen, .elf and .head. */
bool program_look(struct scratch *, int at, const char *path, struct program_look *);

/* The root that a program is handed, in its arguments or as its working directory; NULL: none. */
const struct names_root *program_root_handed(int directory, char *const arguments[]);

/* What becomes of a program that is handed a root (NULL: it is handed none). */
enum program_way {
    PROGRAM_GOES,    /* with the shim, or handed nothing, or without the shim, which was said */
    PROGRAM_HELPED,  /* by the helper of static programs, which is to execute it */
    PROGRAM_REFUSED, /* EACCES: SHUNT_STATIC=refuse, which was said, or it may not be executed */
    PROGRAM_BUSY,    /* ETXTBSY */
};

/* Of one that the loader will not put the shim into (it is statically linked, or for another C library or machine, or it
 * changes its user): the helper if that can be (`helps`: it can be found by its path alone, and SHUNT_STATIC is serve), else
 * what is said on standard error, in one line, once for each program by a process and those forked from it. */
enum program_way program_judge(int at, const char *path, const struct program_look *, const struct names_root *root,
                               bool helps);

/* Would the kernel refuse to execute it? Its caller is to hear of that, and not the helper: PROGRAM_REFUSED or PROGRAM_BUSY,
 * else PROGRAM_HELPED. That somebody may write to it is told since Linux 6.14. */
enum program_way program_refusal(int at, const char *path);

/* The same of a library that is loaded in such a way that the shim does not see what it does. */
void program_warn_of_library(const char *path, const char *why);
