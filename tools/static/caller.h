/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The thread that made a call: its memory, directories and rights, as /proc shows them. It stands still until it is answered,
 * so what is read of it holds, unless it was killed: then its number may be another one's, and what was read is used only after
 * the kernel has confirmed that it still waits (answer.c). Other threads of its own may change what a pointer leads to between
 * our look and the kernel's: a program can so deceive itself, and nobody else. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 0, -EFAULT, -EPERM: we may not look into it, or -EIO: it cannot be told. */
int caller_read(pid_t, uint64_t from, void *to, size_t size);
int caller_write(pid_t, uint64_t to, const void *from, size_t size);
/* A text with its end; its length, -ENAMETOOLONG, or as above. */
long caller_read_text(pid_t, uint64_t from, char *to, size_t size);

/* "/proc/PID/WHAT", or "/proc/PID/fd/N" of a descriptor; AT_FDCWD is its working directory. */
#define CALLER_NAME 64
void caller_name(pid_t, const char *what, char to[CALLER_NAME]);
void caller_name_descriptor(pid_t, int fd, char to[CALLER_NAME]);

/* What is open there, as a descriptor of ours that shares its position; -errno. */
int caller_take(pid_t, int fd);

/* Does the shim make this call, from the instruction at `code`, or libc below it? It does where it is loaded, unless the
 * instruction is the program's own, as in Go. Remembered until another program is executed. 1; 0, also of one that is hidden
 * from us; -EIO: it cannot be told. */
int caller_is_shim(pid_t, uint64_t code);
/* It is about to execute one: what a vfork child had of its parent's memory is no sign any more. */
void caller_executes(pid_t);

/* What its status says. */
struct caller_rights {
    mode_t umask;
    bool are_others; /* its user or groups are not ours, or it lacks a capability that we have */
};
/* 0 or -errno. */
int caller_rights(pid_t, struct caller_rights *);
/* The first of it alone. */
int caller_umask(pid_t, mode_t *);
/* May we look only into what allows it? */
bool caller_can_hide(void);
/* May it have one more descriptor? -errno: it cannot be told. */
int caller_has_room(pid_t);
/* Is a file of that size more than it may make? */
bool caller_may_not_write(pid_t, uint64_t size);
/* Does it see other files than we do, under the same paths? 1; 0; -EIO: it cannot be told. */
int caller_is_elsewhere(pid_t);
/* Remembers what ours are. Before the first of the two above. */
void caller_start(void);
