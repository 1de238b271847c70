/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A root with two branches for the tests of the tools: made without shunt, looked at with its own rooms. */

#include "base/sys.h"
#include "session/session.h"
#include "tree/mirrors.h"
#include "leaks.h"
#include "place.h"

#define OUT "out-5f3a9c01d2e4"
#define GONE "gone-00000000beef"

static inline struct dirid tree_id(const char *path)
{
    struct statx stat;
    cr_assert_eq(sys_statx(AT_FDCWD, place_path("%s", path), 0, STATX_INO | STATX_BTIME, &stat), 0);
    return dirid_of(&stat);
}

static inline void tree_mark(const char *directory, const char *said)
{
    struct marker marker = {.id = 0x5f3a9c01d2e4, .mirror = OUT, .directory = tree_id(directory)};
    strcpy(marker.path, said);
    int fd = place_open(directory);
    cr_assert_eq(marker_write(fd, &marker), 0);
    close(fd);
}

/* A root `r`: `out` holds t and the directory sub in the trunk, x in branch n1.1, y in branch n2.1. */
static inline void tree_init(void)
{
    place_init();
    place_directory("r/.shunt/b/n1.1/" OUT "/0");
    place_directory("r/.shunt/b/n2.1/" OUT "/3");
    place_directory("r/.shunt/session");
    place_directory("r/out/sub");
    tree_mark("r/out", "out");
    place_file("r/out/t", "trunk");
    place_file("r/.shunt/b/n1.1/" OUT "/0/x", "one");
    place_file("r/.shunt/b/n2.1/" OUT "/3/y", "two");
}

static inline void tree_finish(void)
{
    place_finish();
    leaks_none();
}

/* Two files of a directory that is gone. */
static inline void tree_orphan(void)
{
    place_directory("r/.shunt/b/n1.1/" GONE "/0");
    place_directory("r/.shunt/b/n1.1/" GONE "/5");
    place_file("r/.shunt/b/n1.1/" GONE "/0/a", "");
    place_file("r/.shunt/b/n1.1/" GONE "/5/b", "");
}

/* A process that serves it, or says so. */
static inline struct session_member tree_member(pid_t pid)
{
    struct session_member member;
    session_self(&member, "n017");
    strcpy(member.branch, "n017.1");
    strcpy(member.run_dir, "/nowhere");
    member.pid = pid;
    member.started = session_process_started(pid);
    return member;
}

/* The id of the session that it founds. */
static inline uint64_t tree_found(const char *root, struct session_member *member)
{
    struct session session;
    cr_assert_eq(session_found(root, "alice", member, 0, SESSION_STALE, &session), 0);
    uint64_t id = session.id;
    session_finish(&session);
    return id;
}

static inline uint64_t tree_claim(struct session_member *member)
{
    return tree_found(place_path("r"), member);
}

/* Does a session hold it, be it of the dead? */
static inline bool tree_is_held(const char *root)
{
    struct session session;
    int error = session_read(place_path("%s", root), &session);
    cr_assert(error == 0 || error == -ENOENT, "%d", error);
    session_finish(&session);
    return error == 0;
}

/* What is on disk. */

static struct union_root tree;

static inline void tree_open(void)
{
    cr_assert_eq(union_root_init(&tree, place_path("r"), 0), 0);
}

static struct mirrors tree_mirrors;

/* One that must be there. */
static inline const struct mirror_found *tree_mirror(const char *branch, const char *name)
{
    for (size_t i = 0; i < tree_mirrors.count; i++)
        if (!strcmp(tree_mirrors.all[i].name, name) && !strcmp(tree.branches[tree_mirrors.all[i].branch - 1], branch))
            return &tree_mirrors.all[i];
    cr_assert_fail("%s/%s was not found", branch, name);
    return NULL;
}

/* All of them, where the marker of OUT is known among many, in no order. */
static inline void tree_find_mirrors(void)
{
    struct mirror_names known = {0};
    tree_open();
    for (int i = 200; i > 0; i--) {
        char other[RECORD_MIRROR_MAX];
        snprintf(other, sizeof other, "z%d-0123456789ab", i);
        cr_assert_eq(mirror_names_add(&known, other), 0);
    }
    cr_assert_eq(mirror_names_add(&known, OUT), 0);
    cr_assert_eq(mirrors_init(&tree_mirrors, &tree, &known), 0);
    mirror_names_finish(&known);
}

static inline void tree_close(void)
{
    mirrors_finish(&tree_mirrors);
    union_root_finish(&tree);
}
