/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* All that changes in the preload library: one struct of the process, one of each thread. The library lives in the
 * application's process, so for each member this file says who writes it, whether it is set once or changes, what guards
 * it, what a child has of it, and whether a signal handler may use it. tests/structure/shim_state.py sees to it that no
 * other file of lib/shim holds a variable that changes.
 *
 * True of every member unless it says otherwise:
 *  - No lock guards it. A handler may interrupt its own thread at any instruction, and a fork may find another thread at
 *    any point: a lock could then never be free again. Words are read and written by relaxed atomics where two threads may
 *    meet, by acquire and release where other memory goes with them.
 *  - A signal handler may read and write it: any wrapper may be called there.
 *  - A forked child has a copy, which is as right as the original: nothing is reset.
 *  - A vfork child has its parent's memory, but not its descriptors and not its working directory. It reads, and writes
 *    what is true of its parent, too. Where that could differ the writer compares sys_getpid() with owner_pid() first.
 *  - It begins as zeros, which mean "nothing is known": the struct takes no room in the library's file, and what is not
 *    used is never mapped in. A wrapper may be called before the constructor has run.
 *
 * The types of a cache's entries are in the cache's header (fdcache_table.h), for the cache alone to use. This file
 * includes those headers, and they do not include this one.
 *
 * Elsewhere: `real` and the libraries it is filled from (real.c), which are written once. real_start notes the libraries
 * before the program's first instruction, or in the first wrapper that is called before. Each pointer of `real` goes from
 * NULL to the one function that it can be; two threads that look for it store the same. Handlers, vfork children and
 * forked children use all of it as it is. What lib/names and lib/request keep of a process (page, channels, queue pairs)
 * has its rules there. */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "names/names.h"
#include "shim/bulk_lookup.h"
#include "shim/fdcache_table.h"
#include "shim/interrupts.h"
#include "shim/lasting.h"
#include "shim/parent_guess.h"
#include "shim/scratch.h"

#define PROCESS_HEADS (2 * NAMES_ROOTS)
#define PROCESS_HEAD 256 /* more than a root and what lies beside it begin with alike */
#define PROCESS_PAGES 256
#define PROCESS_TAKEN (1u << 20)
#define REMOTE_TOLD 1024

struct dir_stream;
struct program_shared;

/* process.h. `started` to `config` are set by process_start in the constructor, before there are other threads, and only
 * read from then on, so they need no atomics. Nothing here is keyed by a descriptor or by the working directory. */
struct process_state {
    bool started;
    unsigned count; /* of roots; 0: the shim is out of the way */
    unsigned head_count;
    const char *preload; /* LD_PRELOAD as the program was started with it, to be carried on to its children */
    /* How the texts of the roots begin, as they are and as they were given: nearly every path is told from them by these.
     * Emptied when a root turns out to be elsewhere: then no path is, which is slow and right. */
    char heads[PROCESS_HEADS][PROCESS_HEAD];
    struct config config;
    /* Of an instance in a namespace of the loader's (wrap_namespace.c): `is_filtered` of the first one; NULL: this is that one.
     * Set by the instance that loads it, before there is code of the program's in that namespace. */
    uint32_t *first_is_filtered;
    /* The rest changes. Each word stands for itself: written by any thread, relaxed, the last one stays. */
    uint32_t is_filtered;     /* it may allow itself few system calls by now: set, and never taken back (process_is_filtered) */
    uint32_t claims_in_trunk; /* names that were claimed in the trunk since one was in a branch, up to a few
                                 (target_pin_is_likely) */
    uint32_t taken;           /* how often memory was taken away: read and counted by seq_cst (process.h) */
    /* Pages that could be read when a path outside all roots was there: address, and `taken` of before the kernel was asked, in
     * one word. A forked child counts once more: it may have less. */
    uint64_t readable[PROCESS_PAGES];
};

/* dir_stream.h: memory for the streams that are open. Mapped by the first thread that opens one and set once by
 * compare-and-swap; a thread that comes second unmaps its own. A forked child has a copy, with the streams open that
 * were. A stream is taken by an atomic exchange; the thread that has it uses it alone. */
struct dir_stream_state {
    struct dir_stream *range;
};

/* program.h: programs that the user was warned about, and what is known of programs: pages that the process shares with its
 * children, so that what one child says the next does not say again. Mapped by the first fork or exec and set once, by a
 * plain store: of two threads that come first both map some, and those of one are lost. Words of warnings are exchanged
 * atomically; of a program's entry the key says whether the rest counts. */
struct program_state {
    struct program_shared *shared;
};

/* wrap_spawn.c, wrap_xattr.c: what libc and the kernel can do. 0: not asked, 1: yes, -1: no. The first
 * call that needs to know asks and stores the answer, relaxed; two threads get the same. Children have it from their
 * parent, since libc and kernel are the same. To ask for reads_spawn_actions takes malloc, so not in a handler, as
 * posix_spawn_file_actions_init is not to be called there either. */
struct abilities {
    int reads_spawn_actions; /* is the array of posix_spawn's file actions what wrap_spawn.c takes it for? */
    int has_xattrat;         /* has the kernel (6.13) getxattrat and listxattrat? */
};

/* remote.h: leaves of other nodes whose owners have been told that this process looks into them; of two with one place
 * here the last. Written by any thread, relaxed, each word for itself. A child goes by what its parent told: the owner
 * was told of this node. It decides whether the owner is told once more, which then goes on in another leaf, and answers no
 * call: nothing has to invalidate it. Two leaves with one word, or an owner that has forgotten, cost requests to the file
 * system. */
struct remote_state {
    uint32_t told_leaves[REMOTE_TOLD];
};

/* What every call looks at comes first, in one line of memory: each more costs every call of the program some ns. Tables
 * come last: what is written at a process's start is then on few pages. */
struct shim_state {
    _Alignas(64) struct process_state process;
    struct lasting_state lasting;
    struct interrupts_state interrupts;
    /* Written by any thread; its fields by relaxed atomics, each for itself: threads that disagree cost a request more. */
    struct bulk_lookup_state bulk_lookup;
    struct dir_stream_state dir_stream;
    struct program_state program;
    struct abilities abilities;
    /* Texts and identity: set with process.count, and only read from then on. Index and channel: lib/names writes them
     * when a root is attached, one thread at a time (`attaching`), and takes the channel away in a forked child
     * (names_process_check, at the start of each operation and in the child's handler of pthread_atfork). */
    struct names_root roots[NAMES_ROOTS];
    struct remote_state remote;
    /* Which descriptors are kept open. Each entry is written once by one thread and published with release; a fork in the
     * middle of that costs the child one entry. A forked child has the same descriptors; a vfork child uses entries, but keeps
     * and loses none. */
    struct fdcache_state fdcache;
    /* Pieces are mapped when all others are taken, put here by compare-and-swap, and stay. A piece is taken by an atomic
     * exchange, so a handler takes another one than the operation that it interrupts. What other threads hold at a fork
     * is never given back in the child. */
    struct scratch *scratch[SCRATCH_PIECES];
};

extern struct shim_state shim_state;

/* The state of a thread is read and written by that thread and the handlers that interrupt it, without atomics. A new
 * thread begins with zeros. In a forked child the thread that forked goes on with its own. Initial-exec, as all that the
 * project's flags compile: the loader makes room for it in the memory of each thread, and no access allocates or calls.
 * The library is preloaded, never loaded later, so there always is room. */
struct shim_thread {
    /* prefilter.h: was the working directory in a root when it was looked at last? A guess, which decides what the kernel is
     * asked, and no answer. */
    bool works_within;
    /* A handler may interrupt a read or write of it: what was read counts if the word is the same after it, and a write that
     * is interrupted (`writing`) is left alone. A child forked in the middle of one goes on with it as the parent does. What
     * it says is a guess, which the kernel confirms. */
    struct parent_guess_thread parent_guess;
    /* wrap_namespace.c: the namespace of the loader that this thread made last: what was loaded first there, and how many
     * objects were there then. */
    struct {
        struct link_map *first;
        unsigned size;
    } space;
    /* wrap_exec.h: memory for an environment, kept for the next one, and the process that has it in use, 0: none. A vfork child
     * that has begun its program never says that it has ended; its parent's thread stands still until then, so what another
     * process than this one has in use is free. A handler that interrupts its thread here maps some of its own. */
    struct {
        void *at;
        uint32_t size;
        pid_t user;
    } carrying;
};

extern __thread struct shim_thread shim_thread;
