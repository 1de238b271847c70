/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the index holds: identities, keys and values. FORMAT.md next to this file is the document.
 *
 * Pure: no I/O, no allocation, callable anywhere, async-signal-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_FORMAT 3 /* raised when what is in the file changes its meaning; an index of another format is refused */
#define RECORD_NAME_MAX 255
#define RECORD_MIRROR_MAX 80 /* the name of a mirror: a label of at most 64 bytes, a dash, 12 hexadecimal digits */
#define RECORD_BRANCH_MAX 72 /* NODE.N: a node's name of at most 60 bytes, a dot, a number */

/* A directory, the same on every node and for as long as it lives: its inode number and its time of birth (ns since 1970; where
 * the file system keeps none, a hash of its file handle with DIRID_BY_HANDLE; 0 where it has neither). Inode numbers are used
 * again; with what stands beside them they are not, but for one that is made within the same tick of the file system's clock
 * (4 ms of a kernel with HZ=250) as the one that had the number before: both are empty then, and the first one's names are
 * forgotten everywhere (DROP) before anything is asked of the second. union/identity.h finds it. */
struct dirid {
    uint64_t ino;
    uint64_t birth;
};

#define DIRID_BY_HANDLE ((uint64_t)1 << 63)

static inline bool dirid_is_by_handle(struct dirid id)
{
    return (id.birth & DIRID_BY_HANDLE) != 0;
}

static inline bool dirid_equal(struct dirid a, struct dirid b)
{
    return a.ino == b.ino && a.birth == b.birth;
}

struct statx;
/* Needs STATX_INO | STATX_BTIME in the request that filled it, which union/identity.h sends. */
struct dirid dirid_of(const struct statx *stat);

/* Where the bytes of the XXH3 hash of a name decide: the leaf a create goes to, the order of a listing (and so
 * what telldir says), the shard. 63 bits, never 0, 1 or 2: those are the positions before and after `.` and
 * `..`. */
uint64_t record_hash(const char *name, size_t length);

/* A sum of other bytes, by which it is seen that they belong together. */
uint64_t record_sum(const void *, size_t size, uint64_t seed);

/* What a branch is called where its name would take too much room, the same on all nodes; never 0. */
uint32_t record_branch_word(const char *branch);

/* A name falls into a shard by its directory and its hash, a directory itself with hash 0; each shard has one home
 * among the daemons of a session. */
#define RECORD_SHARDS 1024
uint32_t record_shard(struct dirid, uint64_t hash);

/* Which of two names comes first: less than 0, 0, more. By directory, hash and bytes; the same on all nodes. */
int record_order(struct dirid, const char *name, size_t length, struct dirid other, const char *other_name,
                 size_t other_length);

enum record_state {
    RECORD_LIVE = 1,    /* it is there */
    RECORD_PENDING = 2, /* a process was told that it may make it, and has not said yet how it went */
    RECORD_DYING = 3,   /* likewise for its end */
};

/* Is it a type of files that this system knows (DT_UNKNOWN is)? */
bool record_type_is_known(uint8_t type);

/* What is known of a name. Its identity is (branch, leaf, ino). */
struct record_entry {
    uint8_t type;    /* DT_REG and so on */
    uint8_t state;   /* enum record_state */
    uint16_t branch; /* 0 is the trunk, else the number of a branch of the index */
    uint32_t leaf;   /* of the mirror in that branch; 0 in the trunk */
    uint64_t ino;    /* 0 while pending */
};

static inline bool record_same(const struct record_entry *a, const struct record_entry *b)
{
    return a->branch == b->branch && a->leaf == b->leaf && a->ino == b->ino;
}

enum record_dir_flag {
    RECORD_LOADED = 1,     /* its homes have all its names: of a shard that is at home here this index may answer "absent" */
    RECORD_MARKED = 2,     /* it has a marker, and so may have mirrors */
    RECORD_UNLISTED = 4,   /* the trunk could not be listed (no permission): absent names must be asked of it */
    RECORD_WRITTEN = 8,    /* the trunk has been told `changed` */
    RECORD_DELEGATED = 16, /* all its names are at home here, whatever their shards */
    RECORD_SPILLED = 32,   /* its names are not in this index, but in a file of the daemon's, which is asked */
    RECORD_TELLING = 64,   /* the trunk is just being told `changed`: its change time is not to be seen until that is settled */
};

/* Why creates in a directory stay in the trunk although the placement says otherwise. */
enum record_why {
    RECORD_WHY_NOT = 0,
    RECORD_WHY_OWNER,      /* a mirror could not be given its owner or group */
    RECORD_WHY_MODE,       /* ... its mode, setgid and sticky bits included */
    RECORD_WHY_ATTRIBUTES, /* ... its ACLs and extended attributes */
    RECORD_WHY_FLAGS,      /* ... its inode flags or project */
    RECORD_WHY_DEVICE,     /* it lies on another device than the branch, or in a directory with a quota (union/quota.h) */
    RECORD_WHY_MARKER,     /* its marker could not be written */
    RECORD_WHY_WATCHED,    /* somebody waits for its events, which the kernel reports of the trunk */
    RECORD_WHY_COUNT
};

/* What is known of a directory. */
struct record_dir {
    uint32_t flags;                 /* enum record_dir_flag */
    uint32_t why;                   /* enum record_why */
    uint64_t marker;                /* the random id of its marker, 48 bits; 0 without one */
    uint64_t changed;               /* when a name in a mirror last came or went, ns; 0: the trunk's own times say it */
    uint64_t settled;               /* the trunk's change time when it was last told `changed`, ns; 0: it was not */
    uint64_t stood;                 /* what it stands for: the change time before, or `changed` */
    char mirror[RECORD_MIRROR_MAX]; /* the name of its mirrors in every branch; empty without a marker */
};

/* What a directory's times are to be where its trunk has these, ns: that may have been read before the trunk
 * was told, or at a node where it is seen later. Pure. */
void record_times(const struct record_dir *, uint64_t *modified, uint64_t *changed);

/* Decoding checks sizes and ranges and answers 0, or -EBADMSG. */
int record_entry_decode(struct record_entry *, const void *bytes, size_t size);
int record_dir_decode(struct record_dir *, const void *bytes, size_t size);
size_t record_entry_encode(uint8_t to[16], const struct record_entry *);
#define RECORD_DIR_SIZE (8 + 4 * 8 + RECORD_MIRROR_MAX)
size_t record_dir_encode(uint8_t to[RECORD_DIR_SIZE], const struct record_dir *);
