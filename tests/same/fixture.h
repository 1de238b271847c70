/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The little tree that every case starts from: ROOT/w, and ROOT/../out, which lies outside the root. It is
 * made, looked at and cleared through libc, as a program would. Whatever fails here ends the program. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fixture {
    char root[PATH_MAX];
    char work[PATH_MAX];    /* ROOT/w */
    char outside[PATH_MAX]; /* the root's neighbour */
    char above[PATH_MAX];   /* the parent of both */
    const char *root_name;
};

extern struct fixture fixture;

/* Where it is; then: makes it, and tells of it. */
void fixture_name(const char *root);
void fixture_start(void);
/* Another process has made it: what it is made of now is what the next look at it is compared with. */
void fixture_see(void);
void fixture_clear(void);
/* Removes and makes all of it. */
void fixture_rebuild(void);
/* Removes and makes what is not as it was made, so that the next case finds the fixture. */
void fixture_repair(void);

/* Prints how the tree differs from the fixture, a line an entry; true if it does. */
bool fixture_tell_changes(void);

/* Helpers for parts that make more: paths are absolute, or beneath the working directory. */
void make_file(const char *path, mode_t mode, const void *content, size_t length);
void make_directory(const char *path, mode_t mode);
void make_link(const char *target, const char *path);
void remove_tree(const char *path);
/* DIRECTORY/NAME in one of a few static buffers. */
const char *joined(const char *directory, const char *name);
/* Prints what failed, with errno, and ends the program. */
void give_up(const char *what, const char *path) __attribute__((noreturn));
