/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Directories on their way to another name. Where a node's kernel goes by names that it has seen (NFS), it does so on the way
 * to a directory, too: before one is renamed all daemons of the session raise their channels' `places`, so that processes ask
 * the server (target_way_changes), and after it again. A daemon that is gone renames nothing any more. */

#include "rpc/collective.h"
#include "shuntd.h"

struct operation;

/* Does some node's kernel go by such names? All members see one type of file system (probe_check). */
bool rename_fence_is_needed(const struct shuntd *);
/* The two operations of a rename are held: all processes are told, then `then` is called with `from`, unless that has ended
 * meanwhile. 0 or a fatal -errno. */
int rename_fence_begin(struct shuntd *, struct operation *from, int (*then)(struct shuntd *, struct operation *from));
/* It has ended, one way or the other. */
int rename_fence_end(struct shuntd *, const struct operation *from);
/* This daemon has joined, and is welcome. Of renames that began before the others knew it, it is not told: its processes ask
 * the server until those have ended. 0 or a fatal -errno. */
int rename_fence_join(struct shuntd *);
/* A daemon is a member no more. */
void rename_fence_gone(struct shuntd *, uint16_t member);
void rename_fence_free(struct shuntd *);
collective_part rename_fence_part;
