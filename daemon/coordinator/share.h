/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The mirrors of a directory that is being loaded are listed by all daemons: each lists those of its own node's branches, and
 * of the branches whose nodes are absent, a share. It hands the names to their homes itself; how many each home was sent is
 * summed up along the tree (RPC.md, Loading). */

#include "coordinator/hand_out.h"
#include "rpc/collective.h"
#include "shuntd.h"

/* Is it worth a collective, with that many branches? Else the coordinator lists all of them itself. */
bool share_pays(const struct shuntd *);

/* expected[M] is raised by how many names went to member M. `result`: 0; -errno of one that could not list its share;
 * MESSAGE_REMOTE: it is to be begun again. 0 or a fatal -errno. */
typedef int share_done(struct shuntd *, void *context, int result);
/* `mirror`: the name of the mirrors. 0 or a fatal -errno; `done` may be called before. */
int share_begin(struct shuntd *, const struct hand_out *, const char *mirror, uint32_t *expected, share_done *done,
                void *context);
/* The coordinator has listed all mirrors itself: they are counted. */
void share_count_all(struct shuntd *);

collective_part share_part;
/* For collective_handlers.add: how many names each home was sent. Pure. */
size_t share_add_page(char *to, size_t used, const char *from, size_t size);
