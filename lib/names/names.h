/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What this node knows of a name: from the mapped index; else it asks the daemon.
 *
 * Callable from any thread, in signal handlers and in vfork children. A fork child finds out by itself that
 * it is one and goes on with index and channel where its parent mapped them, by queue pairs of its own: it may have lost the
 * permission to open them. Errors are -errno of the kind that an application is to see: -EIO where the root cannot be served
 * (no daemon, an index that is not the session's, no answer in time), and the reason stands on standard error, once for a root
 * and a process. A daemon that has crashed is waited for if its supervisor starts another one, and that one is asked what the
 * first has not answered. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "index/view.h"
#include "request/request.h"

#define NAMES_ROOTS 16

/* What of a root is to be seen in the mount namespace. */
enum names_sight {
    NAMES_SEEN = 0, /* by `path` */
    NAMES_PART,     /* directories of it alone, somewhere, or that cannot be told; `path` is what it is called elsewhere */
    NAMES_HIDDEN,   /* nothing; likewise */
    NAMES_UNTOLD,   /* the file system failed to say it when the process began; `path` is as it was given */
};

struct names_root {
    const char *path;     /* canonical; another one once the root is seen there alone */
    const char *given;    /* as it was given, if that is absolute and differs; else empty */
    const char *run_dir;  /* the one where the daemon was found; before, the first of them */
    const char *run_dirs; /* all, one text after the other, an empty one after the last */
    const char *within;   /* where it is within its file system; empty: that is not known */
    uint64_t namespace;   /* the mount namespace that it was given in; 0: not known */
    uint64_t boot;        /* of which boot of which host, as of an origin */
    uint32_t sight;       /* enum names_sight */
    uint64_t device;
    struct dirid id;
    uint64_t deadline;  /* ns, of a request */
    uint32_t attaching; /* one thread at a time maps */
    uint32_t told;      /* the reason for a failure was printed */
    uint32_t served;    /* it was served once, to this process or the one that it came from */
    struct view *view;  /* in a fork child its parent's, as long as it serves */
    struct request_channel *channel;
    struct request_channel *inherited_channel; /* in a fork child, of its parent, until it attaches */
    char texts[5 * PATH_MAX];                  /* the paths, one after the other: each page more costs every process's start */
};

uint64_t names_device(const struct statx *);

struct origin;

/* What the environment says: of all roots, and of one. */
#define NAMES_NODES 3
struct names_settings {
    const char *run_base;
    const char *nodes[NAMES_NODES + 1]; /* what this node may be called, the likeliest first; NULL after the last */
    uint64_t deadline;
    const struct origin *origin; /* NULL: not known */
};

/* Resolves the text of a root and says where its daemon's files are. 0 or -errno (it does not exist, is no
 * directory). In another mount namespace than that of its origin, where the text does not lead to it, it is looked for. */
int names_root_init(struct names_root *, const char *text, size_t length, const struct names_settings *);
/* A file is not in its branch: is the root at `path` still? */
bool names_root_is_in_place(const struct names_root *);
/* It is not: it is somewhere else by now, or is seen no more. `way`: the path by which the file's directory was reached. */
void names_root_find_again(struct names_root *, const char *way);
/* Once in a process, before any other: sets up the page by which children are noticed. */
int names_process_init(void);
/* A page that the kernel empties in every child with memory of its own (fork, _Fork, clone), but not in a
 * vfork child, which shares its parent's. NULL before names_process_init. */
extern uint32_t *names_process_page;
/* In a new child: what it inherited is its parent's. To be called before it makes vfork children of its own,
 * for which it would be taken else. */
void names_process_is_new(struct names_root *roots, unsigned count);
/* Is this a process that was forked since? Call at the start of every operation. */
static inline void names_process_check(struct names_root *roots, unsigned count)
{
    uint32_t *page = names_process_page;
    if (page != NULL && __builtin_expect(__atomic_load_n(page, __ATOMIC_RELAXED) == 0, 0))
        names_process_is_new(roots, count);
}

/* Has its session ended, and was it exported since, so that it is a directory like any other? Asks the file system each time: a
 * session may begin at any moment. */
bool names_is_plain(struct names_root *);
/* Unmaps them, where no other thread, and nothing that a signal handler interrupted, can be in them. */
void names_detach(struct names_root *);
/* Makes sure that index and channel are mapped and the daemon lives. 0 or -EIO. */
int names_attach(struct names_root *);
/* The same without a word: whether the caller's business is this root's at all is not known yet. */
bool names_is_attached(struct names_root *);
/* What is beneath the root cannot be seen, since this process may not make the system calls for it: -EIO, and says so once. */
int names_refuse(struct names_root *);
int names_find(struct names_root *, struct dirid, const char *name, size_t length, struct view_found *);
/* Is the directory in the index, as far as that is mapped? A hint: no daemon is waited for, and it takes little stack. */
bool names_knows(const struct names_root *, const struct dirid *);
/* The next names of a directory from the hash *from on, as index_list: what `each` said, or 0, and *from is where to
 * go on, 0 after the last name. `room`: about how many bytes of names, 20 bytes more for each, are of use; where other
 * nodes' daemons are home of some, a call is one round through them. -ESTALE: the directory is not loaded (any more),
 * or its names went to other homes meanwhile; what was told then may lack some. */
int names_list(struct names_root *, struct dirid, uint64_t *from, size_t room, index_each *, void *context);
/* May what names_find did not find be called absent? Only if the name was at home here all the while; else the daemon
 * must be asked. */
bool names_has_all(const struct names_root *, struct dirid, const char *name, size_t length, const struct view_found *);
/* Where a name that another node's daemon is home of was when that was last asked, by whichever process of this node: it
 * may be elsewhere by now, or gone, which the caller is to find out. names_recall sets entry, branch and dir.mirror of what
 * was found of its directory; *predicted: it was told with others, and its home does not know that it is looked at. False:
 * nobody knows. */
bool names_recall(const struct names_root *, struct dirid, const char *name, size_t length, struct view_found *,
                  bool *prefetched);
void names_remember(const struct names_root *, struct dirid, const char *name, size_t length, const struct record_entry *,
                    const char *branch, const char *mirror);
/* The same of the names of a directory from a hash on, some hundreds, with one request to all daemons: for a process that looks
 * at one after the other. Up to which hash that was. */
uint64_t names_bulk_lookup(struct names_root *, struct dirid, const char *mirror, uint64_t from, struct request_answer *);
/* What a program without the shim makes in the trunk, or removes there, changes the times of the trunk's directory. A word for
 * them; 0: they prove nothing, since they are whole seconds. Needs STATX_MTIME | STATX_CTIME. Pure. */
uint64_t names_trunk_times(const struct statx *);
/* Is all that is in the trunk's directory known, where it has these times: did a process of this node see to that since?
 * Attached roots only, as the next three. */
bool names_trunk_is_read(const struct names_root *, struct dirid, uint64_t times);
/* Had it these times before `now` (clock_files) for so long that whatever changes it after that gives it others? */
bool names_trunk_has_stood(const struct names_root *, struct dirid, uint64_t times, uint64_t now);
/* It has these times (0 is allowed). */
void names_trunk_was_seen(const struct names_root *, struct dirid, uint64_t times);
/* All that was in it after they had stood is known. */
void names_trunk_was_read(const struct names_root *, struct dirid, uint64_t times);
/* Has the daemon granted this process to make it? Then nobody has made it. */
bool names_is_granted(const struct names_root *, struct dirid, const char *name, size_t length);
/* Are all names of all directories in this node's index? */
bool names_is_sole_home(const struct names_root *);
/* Is what the index tells of a name in another node's branch? */
bool names_is_of_others(const struct names_root *, const struct record_entry *);
/* Tells this node's daemon that such a file was found in the index, or looked for while it may be made there. */
void names_looked(struct names_root *, struct dirid, const char *name, size_t length, const struct record_entry *);
/* One question; its answer's result is in answer->message.result. 0 or -EIO. */
int names_ask(struct names_root *, const struct message *, struct request_answer *);
/* The same where the answer may be leave to change the file system: request_hold. */
int names_hold(struct names_root *, const struct message *, struct request_answer *, struct request_hold *);
/* Says how a change went that is held for, and waits until that is heard; but no daemon is waited for. */
void names_end(struct names_root *, const struct message *, struct request_hold *);
/* Without an answer. The daemon that is gone has nothing to be told. */
void names_tell(struct names_root *, const struct message *);
/* The same of how a change went that is held for: where a daemon had granted that, it hears of it there. */
void names_tell_end(struct names_root *, const struct message *, struct request_hold *);

/* Has a directory of this root names elsewhere, or times that its trunk does not show? False if not attached.
 */
bool names_has_redirected(const struct names_root *);
/* May a process of this node have made or removed names by grants of which its daemon, and the index, know nothing yet? */
bool names_has_grants(const struct names_root *);
/* Are the times of directories in the index those of now, as far as processes of this node make and remove names by grants? 0:
 * they are; 1: they are by now, look again; or -EIO. */
int names_see_grants(struct names_root *);
/* Waits until the trunk's directory has been told when names in its mirrors changed: its own change time means nothing before.
 * 0, also if that takes too long, or as names_find. */
int names_await_told(struct names_root *, struct dirid, struct view_found *);
/* Does its file system ask a server for each part of a path? False if not attached. */
bool names_is_slow_lookup(const struct names_root *);
/* May this node's kernel go by names that another node has changed since (NFS)? False if not attached. */
bool names_are_kept(const struct names_root *);
/* A word for where directories are and which processes they let through, as far as the session changes that (request_places);
 * 0: not attached. */
uint64_t names_places(const struct names_root *);
/* One lets others through than before. */
void names_raise_places(struct names_root *);

/* The path of an open file, as the kernel knows it. 0 or -errno. */
int names_read_place(int fd, char to[PATH_MAX]);
/* The place of an open directory relative to the root: 1 (and *relative points into `text`, of PATH_MAX
 * bytes), 0 if it is not beneath it or in shunt's own directory; -ENAMETOOLONG if it is too deep beneath it
 * to be served (layout_is_in_reach); -EIO if the kernel cannot tell; another -errno. */
int names_place_of(struct names_root *, int directory, char *text, const char **relative);
/* Has the daemon load a directory. 0, -ESTALE if another directory is at that place now, -ENOENT or -ENOTDIR if none is,
 * another -errno. */
int names_load(struct names_root *, struct dirid, const char *relative);
/* The same, where a daemon was asked to work in it and did not find it: all daemons hear of this place. */
int names_load_misplaced(struct names_root *, struct dirid, const char *relative);
