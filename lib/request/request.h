/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One question, one answer, one deadline: the channel to this node's daemon, from the side of a process.
 *
 * No descriptor, no malloc, no lock: async-signal-safe and thread-safe. In a vfork child it uses the parent's
 * queue pairs (the parent's thread sleeps meanwhile). A fork child must call request_inherit. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/message.h"

struct request_channel;
struct channel_bulk;

/* Maps the channel in `run_dir`. 0; -ENOENT: no daemon ever served there; -EHOSTDOWN: it is gone; -EINPROGRESS: it has
 * crashed, and another one is being started; -EPROTO: of another version; -EPERM: the directory is not this user's
 * alone; -EXDEV: the daemon is in another PID namespace (a container), -ESRCH: that cannot be told (no /proc); -ENOMEM; another
 * -errno. */
int request_attach(struct request_channel **, const char *run_dir);
/* In a fork child, with its parent's: the same mapping, queue pairs of its own. 0; -EHOSTDOWN; or -EXDEV: it is
 * in another PID namespace, where its number means nothing to the daemon. */
int request_inherit(struct request_channel *);
/* Unmaps it, when no thread can be in it. */
void request_abandon(struct request_channel *);

/* The inode number of this process's PID namespace, 0 if it cannot be told. */
uint64_t request_pid_namespace(void);

/* The boot id of this machine, ended by a zero; empty if it cannot be told. */
void request_boot_id(char *id, size_t size);

/* Was the channel made since the machine was last started, as far as can be told? Else what it says of processes means nothing.
 */
struct channel;
bool request_is_of_this_boot(const struct channel *);

/* The process that starts the daemon of that run directory again when it crashes; 0: there is none. */
pid_t request_supervisor(const char *run_dir);
/* The daemon that serves there; 0: none lives. */
pid_t request_daemon(const char *run_dir);
/* The one whose end is the end of that daemon: its supervisor, which passes on what it is sent, or the daemon itself; 0:
 * neither. */
pid_t request_serving_process(const char *run_dir);
/* Have both been killed, so that only somebody else can start another daemon there? */
bool request_was_killed(const char *run_dir);

/* The session and root it serves, once attached. */
uint64_t request_session(const struct request_channel *);
struct dirid request_root(const struct request_channel *);
bool request_is_alive(const struct request_channel *);
/* Another number than before: the file system stalls, as it does for all nodes while it expels one, or it holds up something
 * that the daemon does. That is waited for as it is natively: a deadline begins again. */
uint32_t request_stalls(const struct request_channel *);
/* Did what was read before this call hold when it was read? */
bool request_has_lease(const struct request_channel *);
/* Learns how this process's clock is to be compared with the daemon's lease, where that is not known, as at first: until then
 * it has none. 0; 1: the daemon was asked; or as request_ask. */
int request_learn_clock(struct request_channel *, uint64_t deadline);
/* Has the daemon granted anything to any process? Then it may not have seen yet what was done. */
bool request_has_grants(const struct request_channel *);
/* May a directory have times that its trunk does not show? */
bool request_has_redirected(const struct request_channel *);
/* Are all names that fall into this shard in the index of this node? Ask after a lookup that found none. */
bool request_is_home(const struct request_channel *, uint32_t shard);
/* ... of all shards? */
bool request_is_sole_home(const struct request_channel *);
/* How often shards came home here: while it stays the same, a bit that is set was set all the time. */
uint32_t request_gains(const struct request_channel *);
/* ... and how often they began to go elsewhere: while it stays the same, what was at home here is in the index. */
uint32_t request_losses(const struct request_channel *);
#define REQUEST_LOCATION_HINT 192
#define REQUEST_ALIKE 4
/* So many times so many bytes that the processes of the node share, for what was seen of names with keys like that; they may
 * hold anything. */
void *request_location_hints(struct request_channel *, uint64_t key);
/* Before something is remembered there: until a process of the node has called it, there are few of them. A process tries once,
 * and few they stay while the run directory is full. */
void request_make_location_hints(struct request_channel *);
#define REQUEST_TRUNK_TIMES 32
/* The same for the times of a trunk directory with a key like that: one, of which there are few, too. */
void *request_trunk_times(struct request_channel *, uint64_t key);
/* The number of this node's branch in its index. */
uint16_t request_branch(const struct request_channel *);
/* Does the root's file system ask a server for each part of a path? */
bool request_is_slow_lookup(const struct request_channel *);
/* May this node's kernel go by a name that another node of the session has changed since (NFS)? */
bool request_keeps_names(const struct request_channel *);
/* Changes when a directory is renamed, or lets others through; while that is under way (request_are_places_kept), nothing
 * that this node's kernel has seen of a path before is to be gone by (names_are_kept). */
uint64_t request_places(const struct request_channel *);
static inline bool request_are_places_kept(uint64_t places)
{
    return places != 0 && (uint32_t)places == 0;
}
/* Tells every process of the node that a directory lets others through. */
void request_raise_places(struct request_channel *);

#define REQUEST_TEXT_MAX 2048 /* the longest text of an answer, but for those in a bulk buffer */
#define REQUEST_ANSWER_MAX (MESSAGE_SHORT + REQUEST_TEXT_MAX)

/* The answer, in memory of the caller's; a long text is in shared memory, until request_read. */
struct request_answer {
    struct message message;    /* names and text point into bytes, or the text into a bulk buffer */
    struct channel_bulk *bulk; /* NULL: the text is not in one */
    uint8_t bytes[REQUEST_ANSWER_MAX];
};

/* Asks and waits. Answers 0 when `answer` holds one (whatever its result); -EHOSTDOWN: the daemon is gone,
 * the request may or may not have been carried out; -ETIMEDOUT: no answer within `deadline` ns, the daemon
 * will look at the disk and settle it; -EUSERS: every queue pair of the node is taken, or was taken by threads of
 * this process until then; -ENOSPC: so it is with those that have memory, and the run directory is full; -EINVAL: a length is
 * out of range, nothing was sent. */
int request_ask(struct request_channel *, const struct message *, struct request_answer *, uint64_t deadline);
/* The text of an answer was read: the bulk buffer it may lie in is for others. */
void request_read(struct request_answer *);
/* The same where only the answer's result is wanted, which takes little room on the stack. */
int request_result(struct request_channel *, const struct message *, int *result, uint64_t deadline);
/* What a process holds by the word of a daemon. Zero: nothing. `meanwhile` is set before request_hold is called. */
struct request_hold {
    struct request_channel *channel;
    uint32_t qp;                      /* 1 + its number */
    uint32_t grant;                   /* 1 + the slot of the grant that was taken, 0: it was asked for */
    uint64_t word;                    /* ... what the grant is */
    void (*meanwhile)(void *context); /* the caller's, or NULL: what there is to do while the daemon is at work */
    void *context;
};
/* Asks for leave to change the file system. On 0 the channel knows that a change may be under way, until request_let_go:
 * call that when the answer gives no leave, and else after the notice of how the change went. */
int request_hold(struct request_channel *, const struct message *, struct request_answer *, uint64_t deadline,
                 struct request_hold *);
void request_let_go(struct request_hold *);
/* The notice of how a change went, where it was asked for by what the daemon had granted: true: it was told there. False: it
 * takes request_tell. */
bool request_end(struct request_hold *, const struct message *);
/* Has the daemon granted this process to make that name (is_new), be it by a rename, or to take it away? Then nobody is at work
 * on it: a new one is not there, and an old one is. */
bool request_has_granted(const struct request_channel *, struct dirid, const struct message_text *name, bool is_new);
/* Tells, without waiting (but for a queue pair, where more threads of the process wait than there are) and, unless
 * the ring is full, the daemon asked for it or it is of another node's leaf, without waking: it is read before any process
 * is answered about the same name. 0, -EHOSTDOWN, -EUSERS, -ENOSPC, -EINVAL. */
int request_tell(struct request_channel *, const struct message *);
