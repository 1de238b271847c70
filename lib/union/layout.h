/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Where things are under a root. Text only; pure; async-signal-safe.
 *
 *   ROOT/.shunt/                     shunt's own directory
 *   ROOT/.shunt/README               what it is, in words
 *   ROOT/.shunt/root                 the stamp: which root this is (lib/session/stamp.h)
 *   ROOT/.shunt/session/             who serves it now (lib/session/SESSION.md)
 *   ROOT/.shunt/opened-INO-BIRTH     the mode of a directory that an export has opened (tools/tree/opened.h)
 *   ROOT/.shunt/b/NODE.N/            the branch of a node, incarnation N
 *   ROOT/.shunt/b/NODE.N/catalogue   the names of directories as its session left them (lib/catalogue/FORMAT.md)
 *   ROOT/.shunt/b/NODE.N/LABEL-ID/   the mirror of the directory whose marker says `mirror LABEL-ID`
 *   ROOT/.shunt/b/NODE.N/LABEL-ID/L/ leaf L of it: redirected files under their own names
 *   DIRECTORY/.shunt-dir             the marker of a redirected directory */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "index/record.h"

#define LAYOUT_OWN ".shunt"
#define LAYOUT_BRANCHES ".shunt/b"
#define LAYOUT_MARKER ".shunt-dir"
#define LAYOUT_CATALOGUE "catalogue"
#define LAYOUT_CATALOGUE_LOCK LAYOUT_CATALOGUE "-lock" /* LMDB's tools make one beside what they read */
#define LAYOUT_CATALOGUE_NEW LAYOUT_CATALOGUE ".new-"  /* and a process id: while it is written */
#define LAYOUT_BRANCH_MAX RECORD_BRANCH_MAX
#define LAYOUT_NODE_MAX 60
#define LAYOUT_LEAF_MAX (1u << 20) /* leaves are 0 to LAYOUT_LEAF_MAX - 1 */

/* A branch. Check text_ok. */
static inline void layout_branch(struct text *t, const char *root, const char *branch)
{
    text_add(t, root);
    text_add(t, "/" LAYOUT_BRANCHES "/");
    text_add(t, branch);
}

/* The mirror of a directory in a branch. Check text_ok. */
static inline void layout_mirror(struct text *t, const char *root, const char *branch, const char *mirror)
{
    layout_branch(t, root, branch);
    text_add(t, "/");
    text_add(t, mirror);
}

/* The real place of a name in a branch. Check text_ok. */
static inline void layout_leaf(struct text *t, const char *root, const char *branch, const char *mirror, uint32_t leaf)
{
    layout_mirror(t, root, branch, mirror);
    text_add(t, "/");
    text_number(t, leaf, 10);
}

/* Is a directory served whose own path is that long? Only if a path leads to every name that it can have.
 * What lies deeper, which programs reach by relative names alone, is the trunk's only. */
static inline bool layout_is_in_reach(size_t length)
{
    return length + 1 + NAME_MAX < PATH_MAX;
}

/* A name that shunt keeps for itself: never listed, never the application's. `.shunt` is ours in the root
 * alone. What is being written is LAYOUT_MARKER, a dot and 16 hexadecimal digits: random ones are those of a
 * marker, the inode number of a redirected file those of its copy. */
#define LAYOUT_UNFINISHED (sizeof LAYOUT_MARKER - 1 + 1 + 16)

static inline bool layout_is_hexadecimal(const char *digits, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((digits[i] < '0' || digits[i] > '9') && (digits[i] < 'a' || digits[i] > 'f'))
            return false;
    return true;
}

/* What it names is removed as soon as nothing else is at work there, so a name that a user may have given to a copy is none. */
static inline bool layout_is_unfinished(const char *name, size_t length)
{
    return length == LAYOUT_UNFINISHED && memcmp(name, LAYOUT_MARKER ".", sizeof LAYOUT_MARKER) == 0 &&
           layout_is_hexadecimal(name + sizeof LAYOUT_MARKER, length - sizeof LAYOUT_MARKER);
}

static inline bool layout_is_ours(const char *name, size_t length, bool in_root)
{
    if (length == sizeof LAYOUT_MARKER - 1)
        return memcmp(name, LAYOUT_MARKER, length) == 0;
    if (length == LAYOUT_UNFINISHED)
        return layout_is_unfinished(name, length);
    return in_root && length == sizeof LAYOUT_OWN - 1 && memcmp(name, LAYOUT_OWN, length) == 0;
}

/* What an NFS client calls a file that is removed while a process of its node has it open, until it is closed. Then it goes, by
 * no call. */
static inline bool layout_is_held_open(const char *name, size_t length)
{
    static const char prefix[] = ".nfs";
    return length == sizeof prefix - 1 + 24 && memcmp(name, prefix, sizeof prefix - 1) == 0 &&
           layout_is_hexadecimal(name + sizeof prefix - 1, 24);
}

/* In a branch: is it a catalogue, one that is being written, or the lock of one? */
static inline bool layout_is_catalogue(const char *name)
{
    return strcmp(name, LAYOUT_CATALOGUE) == 0 || strcmp(name, LAYOUT_CATALOGUE_LOCK) == 0 ||
           strncmp(name, LAYOUT_CATALOGUE_NEW, sizeof LAYOUT_CATALOGUE_NEW - 1) == 0;
}

/* What the copy of the redirected file with that inode number is called until it is in its place. */
static inline void layout_copy(struct text *t, uint64_t ino)
{
    text_add(t, LAYOUT_MARKER ".");
    for (int shift = 60; shift >= 0; shift -= 4)
        text_number(t, ino >> shift & 15, 16);
}

/* A redirected file's place as the kernel tells it, ROOT/.shunt/b/BRANCH/MIRROR/LEAF/NAME, taken apart. The
 * words stand in the text; after the name may follow what the kernel adds to one that was removed. */
struct layout_place {
    const char *mirror;
    size_t mirror_length;
    const char *name;
};

/* `root` is canonical. False: it is no such place. */
bool layout_place(struct layout_place *, const char *root, const char *text);

/* A node's name: 1 to LAYOUT_NODE_MAX of letters, digits, `-`, `_` and `.`, the first a letter or a digit. */
bool layout_node_is_valid(const char *node, size_t length);
/* What a node is called by default, from its host's name, or Slurm's of the node: up to its first dot, other bytes as `-`. The
 * daemon, the tools and the preload library must agree. */
void layout_node_of_host(const char *host, char node[LAYOUT_NODE_MAX + 1]);
/* Takes NODE.N apart: the length of NODE, or 0 if it is no branch's name. */
size_t layout_branch_node(const char *branch, size_t length, uint32_t *incarnation);
/* A number as it stands in the names of branches and leaves: decimal, no leading zero, at most UINT32_MAX. */
bool layout_number(const char *digits, size_t length, uint32_t *number);
