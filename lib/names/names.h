/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What this node knows of a name: from the mapped index; else it asks the daemon.
 *
 * Callable from any thread, in signal handlers and in vfork children. A fork child finds out by itself that
 * it is one and maps index and road anew. Errors are -errno of the kind that an application is to see: -EIO
 * where the root cannot be served (no daemon, an index that is not the session's, no answer in time), and the
 * reason stands on standard error, once for a root and a process. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "index/view.h"
#include "request/request.h"

#define NAMES_ROOTS 16

struct names_root {
    char path[PATH_MAX];  /* canonical */
    char given[PATH_MAX]; /* as it was given, if that is absolute and differs; else empty */
    uint64_t device;
    struct dirid id;
    char run_dir[PATH_MAX];
    uint64_t deadline;  /* ns, of a request */
    uint32_t attaching; /* one thread at a time maps */
    uint32_t told;      /* the reason for a failure was printed */
    struct view *view;  /* both or none */
    struct request_road *road;
};

uint64_t names_device(const struct statx *);

/* Resolves the text of a root and says where its daemon's files are. 0 or -errno (it does not exist, is no
 * directory). */
int names_root_init(struct names_root *, const char *text, size_t length, const char *run_base,
                    const char *node, uint64_t deadline);
/* Once in a process, before any other: sets up the page by which children are noticed. */
int names_process_init(void);
/* Is this a process that was forked since? Then what it inherited was given up; call at the start of every
 * operation. */
void names_process_check(struct names_root *roots, unsigned count);

/* Makes sure that index and road are mapped and the daemon lives. 0 or -EIO. */
int names_attach(struct names_root *);
/* The same without a word: whether the caller's business is this root's at all is not known yet. */
bool names_is_attached(struct names_root *);
int names_find(struct names_root *, struct dirid, const char *name, size_t length, struct view_found *);
/* The next names of a directory; as view_list. */
int names_list(struct names_root *, struct dirid, uint64_t from, view_each *, void *context);
/* One question; its answer's result is in answer->message.result. 0 or -EIO. */
int names_ask(struct names_root *, const struct message *, struct request_answer *);
/* Without an answer. The daemon that is gone has nothing to be told. */
void names_tell(struct names_root *, const struct message *);

/* Has a directory of this root names elsewhere, or times that its trunk does not show? False if not attached.
 */
bool names_has_redirected(const struct names_root *);
uint32_t names_generation(const struct names_root *);

/* The place of an open directory relative to the root: 1 (and *relative points into `text`, of PATH_MAX
 * bytes), 0 if it is not beneath it or in shunt's own directory, or -errno. */
int names_place_of(const struct names_root *, int directory, char *text, const char **relative);
/* Has the daemon load a directory. 0, -ESTALE if another directory is at that place now, another -errno. */
int names_load(struct names_root *, struct dirid, const char *relative);
