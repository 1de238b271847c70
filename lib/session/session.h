/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Who serves a root: the stamp and the session under ROOT/.shunt, written by shuntd, read by all. SESSION.md
 * next to this file says what is on disk.
 *
 * A session has members, one for each daemon. Its state is an epoch: written whole to a temporary name,
 * fsynced and published with link(2) to its number, so that one wins. Every change is the next epoch; a member that
 * loses looks at what the winner published and tries again.
 *
 * Blocking; thread-safe; not for signal handlers. Memory is mapped, never allocated. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/text.h"
#include "index/record.h"
#include "union/layout.h"

#define SESSION_HOST_MAX 65
#define SESSION_USER_MAX 33
#define SESSION_RUN_MAX 1024
#define SESSION_ADDRESS_MAX 128 /* bytes */
#define SESSION_JOB_MAX 192
#define SESSION_MEMBERS_MAX 4096
#define SESSION_KEY_SIZE 32
#define SESSION_BEAT (2 * CLOCK_SECOND)   /* how often a member heartbeats at most, if there is another one */
#define SESSION_STALE (15 * CLOCK_SECOND) /* ... and how long it is silent until it counts as gone */
#define SESSION_LEASE_BEATS 3             /* a lease is not shorter than so many of them */

struct session_member {
    uint16_t number;                /* from 1, never given twice within a session; 0: none yet */
    char node[LAYOUT_NODE_MAX + 1]; /* the name it goes by */
    char branch[LAYOUT_BRANCH_MAX]; /* NODE.N, the branch it claimed */
    char host[SESSION_HOST_MAX];    /* gethostname of the daemon */
    char boot[40];                  /* /proc/sys/kernel/random/boot_id of that host */
    char job[SESSION_JOB_MAX];      /* of a batch system, as SESSION.md says; empty: of none */
    pid_t pid;
    uint64_t started;              /* of the process, clock ticks since boot (/proc/PID/stat, field 22) */
    uint64_t since;                /* ns since 1970 */
    char run_dir[SESSION_RUN_MAX]; /* node-local: the index, the channel to the daemon, its log */
    uint8_t address[SESSION_ADDRESS_MAX];
    uint8_t address_size; /* 0: none */
    uint8_t home;         /* enum session_part */
};

/* Does a member decide about names? A change of homes is published as COMING and GOING, and once every daemon has
 * done its part (daemon/membership/migration.h) as HOME and UNLINKED. */
enum session_part {
    SESSION_GUEST = 0, /* no */
    SESSION_HOME,      /* yes */
    SESSION_COMING,    /* it is about to take over its shards */
    SESSION_LEAVING,   /* yes, and it wants to end */
    SESSION_GOING,     /* it is about to hand them over */
    SESSION_GONE,      /* it has, and ends */
    SESSION_LOST,      /* it is silent: it is no member any more once its lease is over and its branch fenced */
    SESSION_PARTS
};
/* Its word: no, yes, coming, leaving, going, gone, lost. */
const char *session_part_word(uint8_t part);

struct session {
    uint64_t id; /* random, never 0 */
    uint64_t epoch;
    uint64_t founded; /* its first epoch */
    uid_t uid;
    char user[SESSION_USER_MAX];
    struct dirid root;              /* the root and the session's probe file, as its founder sees them */
    struct dirid probe;             /* ... */
    uint64_t moved;                 /* the epoch in which homes began to change last */
    uint64_t system;                /* statfs.f_type there */
    uint64_t since;                 /* ns since 1970 */
    uint64_t lease;                 /* ns for which a member may go on after a heartbeat; never less than it was */
    uint32_t next;                  /* the number of the next member */
    size_t count;                   /* 0: it has ended */
    size_t room;                    /* for how many there is memory */
    struct session_member *members; /* by number */
};

/* Memory. Every function below that fills a session makes it again, whatever it answers; session_finish takes
 * it back, also of one that is empty or zero. */
void session_finish(struct session *);

/* The text of an epoch. Pure. How many members it says there are, or -EBADMSG; no more than can stand in it.
 */
int session_count(const char *text, size_t length);
/* Pure. `members` has memory for `room` of them. 0; -E2BIG: there are more; -EBADMSG. */
int session_parse(struct session *, const char *text, size_t length);
/* Pure. The length, or -ENAMETOOLONG; at most session_text_max() with the zero at its end. */
ssize_t session_format(const struct session *, char *to, size_t size);
size_t session_text_max(size_t members);

/* The session of a root: 0, -ENOENT without one (it has ended; it was copied with the root), -EBADMSG,
 * another -errno. */
int session_read(const char *root, struct session *);
/* The last epoch. 0 or -errno. */
int session_epoch(const char *root, uint64_t *epoch);
/* The member of that number or of that node, or NULL. */
struct session_member *session_find(const struct session *, uint16_t number);
struct session_member *session_find_node(const struct session *, const char *node);
/* Is it a member, and not lost? */
bool session_has(const struct session *, uint16_t number);
/* The first member that is home of names, or NULL. */
const struct session_member *session_home(const struct session *);
/* Is it that of a tool, which holds the root for itself (run_dir is SESSION_HELD)? */
#define SESSION_HELD "/"
bool session_is_held(const struct session *);
/* Does its process still live? 1 yes, 0 no, -EREMOTE: it is on another host, which cannot be told from here.
 */
int session_lives(const struct session_member *);
/* The first that lives here, else the first that is on another host, else NULL: the session is dead. */
const struct session_member *session_living(const struct session *);
/* Is there a session with a member that lives, or may live on another host? */
bool session_is_served(const char *root);
/* One sentence for people: whose session, on which host (of `member`; NULL: of the first), of which job, since when. */
void session_describe(const struct session *, const struct session_member *, char *to, size_t size);

/* This process as a member: all but number, branch, job, run_dir, address and home. */
void session_self(struct session_member *, const char *node);
/* The start time of a process, in session_member.started's unit; 0 if it cannot be told. */
uint64_t session_process_started(pid_t pid);

/* Founds a session of one member, its home, with that lease at least: 0, and mine->number is set. A session that nobody lives
 * of is superseded, one with members on other hosts only if it is in the epoch `silent` (0: no), whose members on
 * other hosts have ended, or were seen not to heartbeat for a lease. The member has beaten once then. -EBUSY: somebody of it
 * lives, and *session says who. -EINVAL: `mine` or `user` holds something that could not be read back (a space in a name, no
 * node, no run_dir). -EBADMSG: there is an epoch, but it cannot be read. Then, and after other errors, nothing has changed. */
int session_found(const char *root, const char *user, struct session_member *mine, uint64_t silent, uint64_t lease,
                  struct session *);
/* Adds a member, which has beaten once then: 0, and mine->number is set. A dead member of the same node, on this host,
 * gives way to it.
 * -EINPROGRESS: it is lost, and its branch not fenced yet: try again;
 * -ENOENT: there is no session that lives, found one; -EACCES: it is another user's; -EBUSY: the name of the
 * node is taken; -EXDEV: the probe shows that this is another file system; -EUSERS: no more members;
 * -EOVERFLOW: no more numbers; -EINVAL as above. *session says what is in force if it was read. */
int session_join(const char *root, struct session_member *mine, struct session *);
/* Takes a member out of that session, if it is in it and not lost. The last one ends the session and takes its key,
 * probe and heartbeats away. 0 or -errno. */
int session_leave(const char *root, uint64_t id, uint16_t number);
/* The same with one that is lost, once its branch is fenced. */
int session_drop(const char *root, uint64_t id, uint16_t number);
/* Publishes the next epoch with `moved`, `home` and the addresses of the members as they are in `session`, which is in
 * it then. -ESTALE: another epoch is in force; -EINVAL: no home would be left. Either way session stays as it
 * is. */
int session_revise(const char *root, struct session *);

/* The key of the session, for its members. 0; -ENOENT; -EPERM: it is no regular file, or not for this user alone, or of
 * another owner than what this user makes there; -EBADMSG; -ESTALE: it is another session's. */
int session_key(const char *root, const struct session *, uint8_t key[SESSION_KEY_SIZE]);

/* The user of a session that has members, from whose key it is, which others may not read: 0; -ENOENT: there is none; another
 * -errno. Takes little of the stack. */
int session_user(const char *root, uid_t *uid);

/* ns between two heartbeats of a member: each is a request to the file system's metadata server, so all of them together
 * heartbeat no more than fifty times a second. Pure. */
uint64_t session_beat_interval(size_t members);
/* Says that the member lives: to be called at this interval. */
int session_beat(const char *root, const struct session *, uint16_t number);

/* What an observer knows of one member's heartbeats. Zero at first. */
struct session_pulse {
    uint64_t beat;   /* the last that was seen, 0: there is none */
    uint64_t still;  /* ns for which this observer saw that one, over reads that worked */
    uint64_t read;   /* when the last read that worked returned, 0: none, or one failed since */
    uint64_t since;  /* when the first read of that one returned, or earlier: it was written by then */
    uint64_t silent; /* ns from then until the last read that worked was begun */
    uint64_t steady; /* what was added to `still` since the last stall */
};

/* Reads a heartbeat: 0 or -errno. Only time between two reads that worked counts for pulse->still, and no more
 * than SESSION_BEAT of it: a file system that stalls, or an observer that was stopped, takes nobody for gone.
 */
int session_observe(const char *root, const struct session *, uint16_t number, struct session_pulse *);
/* The same with what was read between `began` and `ended` (clock_monotonic). Pure. */
void session_pulse_count(struct session_pulse *, uint64_t beat, uint64_t began, uint64_t ended);
/* Is a lease of `time` ns over that began before that heartbeat, and has the member had that long to send another one? Where
 * the nodes' kernels are a cluster (`system`: statfs.f_type), which stalls until it has expelled a member, the stall counts as
 * well: by then nothing is carried out any more that the member had called for. Some heartbeats without a stall must be missing
 * after it, since it may have held up theirs. Pure. */
bool session_pulse_is_over(const struct session_pulse *, uint64_t system, uint64_t time);

/* Makes ROOT/.shunt with its README, session/ and b/, and the stamp; *restamped says that there was a
 * stamp of another directory, i.e. this root is a copy: the copied session was removed and a new stamp
 * written. Checks that the file system will do: hard links, and an inode number that survives link and
 * rename. 0; -EMEDIUMTYPE: inode numbers are not stable here; -EOPNOTSUPP: no hard links; -ELOOP: the root
 * lies inside another root; -EBUSY: it is `/`; another -errno (-EROFS, -ENOSPC, -EACCES ...). */
int session_prepare_root(const char *root, bool *restamped);

/* Claims the next incarnation of a node's branch by exclusive mkdir: `branch` becomes NODE.N, N odd. 0 or -errno. */
int session_claim_branch(const char *root, const char *node, char branch[LAYOUT_BRANCH_MAX]);
/* What a branch is called once it is fenced, NODE.N+1: nobody claims that. Pure. False: it is none that was claimed. */
bool session_fenced_name(const char *branch, char fenced[LAYOUT_BRANCH_MAX]);
/* Renames the branch of a lost member so: what its node still wanted to make there by its path cannot be made. 0, also
 * if that was done before, or there is no such branch; or -errno. */
int session_fence(const char *root, const char *branch);
/* Was it? */
bool session_is_fenced(const char *root, const char *branch);

/* Where the node-local files of (this user, this root, this node) are: BASE/shunt-UID/DEVICE-INO-NODE. Pure.
 * `base` is /dev/shm unless configured. */
void session_run_dir(struct text *, const char *base, uid_t uid, uint64_t device, uint64_t ino, const char *node);
/* ... what those of all roots of the user begin with: BASE/shunt-UID/ (run_dirs.h). Pure. */
void session_run_dirs(struct text *, const char *base, uid_t uid);
