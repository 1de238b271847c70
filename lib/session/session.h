/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Who serves a root: the stamp and the session under ROOT/.shunt, written by shuntd, read by all.
 *
 *     ROOT/.shunt/root                    shunt-root 1 / id HEX / directory INO BIRTH
 *     ROOT/.shunt/session/holder          shunt-session 1 / id ... one `key value` a line, see session_parse
 *
 * The holder is written whole to a temporary name, fsynced and published with link(2): one wins. Blocking; it
 * allocates nothing; thread-safe; not for signal handlers. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"
#include "index/record.h"
#include "union/layout.h"

#define SESSION_HOST_MAX 65
#define SESSION_USER_MAX 33

struct session {
    uint64_t id;                    /* random */
    char host[SESSION_HOST_MAX];    /* gethostname of the daemon */
    char boot[40];                  /* /proc/sys/kernel/random/boot_id of that host */
    char node[LAYOUT_NODE_MAX + 1]; /* the name it goes by */
    char branch[LAYOUT_BRANCH_MAX]; /* NODE.N, the branch it claimed */
    pid_t pid;
    uint64_t started; /* of the process, clock ticks since boot (/proc/PID/stat, field 22) */
    uid_t uid;
    char user[SESSION_USER_MAX];
    uint64_t since;         /* ns since 1970 */
    char run_dir[PATH_MAX]; /* node-local: the index, the road to the daemon, its log */
};

/* Pure. 0, or -EBADMSG. */
int session_parse(struct session *, const char *text, size_t length);
/* Pure. The length, or -ENAMETOOLONG. */
int session_format(const struct session *, char *to, size_t size);

/* The session of a root: 0, -ENOENT without one (one that was copied with the root is none), -EBADMSG,
 * another -errno. */
int session_read(const char *root, struct session *);
/* Does its process still live? 1 yes, 0 no, -EREMOTE: it is on another host, which cannot be told from here.
 */
int session_lives(const struct session *);
/* Publishes. 0, or -EBUSY: *holder says whose it is. A session of this host whose process is gone is
 * replaced. -EINVAL: `mine` holds something that could not be read back (a space in a name, no node, no
 * run_dir). -EBADMSG: there is a holder, but it cannot be read. */
int session_claim(const char *root, const struct session *mine, struct session *holder);
/* Withdraws it, if it is still this one. */
void session_release(const char *root, const struct session *mine);
/* One sentence for people: whose session, on which host, since when. */
void session_describe(const struct session *, char *to, size_t size);

/* The process's own start time, in session.started's unit; 0 if it cannot be told. */
uint64_t session_process_started(pid_t pid);

/* Makes ROOT/.shunt with its README, session/ and b/, and the stamp; *restamped says that there was a
 * stamp of another directory, i.e. this root is a copy: the copied session was removed and a new stamp
 * written. Checks that the file system will do: hard links, and an inode number that survives link and
 * rename. 0; -EMEDIUMTYPE: inode numbers are not stable here; -EOPNOTSUPP: no hard links; -ELOOP: the root
 * lies inside another root; another -errno
 * (-EROFS, -ENOSPC, -EACCES ...). */
int session_prepare_root(const char *root, bool *restamped);

/* Claims the next incarnation of a node's branch by exclusive mkdir: `branch` becomes NODE.N. 0 or -errno. */
int session_claim_branch(const char *root, const char *node, char branch[LAYOUT_BRANCH_MAX]);

/* Where the node-local files of (this user, this root, this node) are: BASE/shunt-UID/DEVICE-INO-NODE. Pure.
 * `base` is /dev/shm unless configured. */
void session_run_dir(struct text *, const char *base, uid_t uid, uint64_t device, uint64_t ino,
                     const char *node);
