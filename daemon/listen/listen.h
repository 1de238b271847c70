/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Accepts the processes of this node: makes the channel (lib/request/channel.h), takes messages from it, puts
 * answers on it, and notices the end of a process that used it. Bytes are copied out of the shared memory
 * before they are decoded. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/message.h"

struct shuntd;
struct listen;

/* A message, its sender, and where the answer goes. */
struct listen_request {
    struct message message; /* its names and text point into bytes */
    uint32_t qp;
    uint64_t client; /* its process id */
    uint32_t size;   /* of the message, as bytes */
    uint8_t bytes[MESSAGE_SHORT + MESSAGE_TEXT_MAX];
};

/* `supervisor`: the process that starts another daemon if this one crashes, 0: nobody does. */
int listen_create(struct listen **, const char *run_dir, uint64_t session, struct dirid root, pid_t supervisor);
/* Says to every client that the daemon is gone, and removes the channel. Takes NULL. */
void listen_destroy(struct listen *);

/* Wakes the daemon's main thread. From any thread, and from a signal handler. */
void listen_ring(struct listen *);
/* How often it was rung. Taken before a look at what there is to do, and handed to listen_wait after it, so
 * that a ring in between is not slept through. */
uint32_t listen_rings(struct listen *);
/* Somebody waits for what notices say: they wake the daemon like requests, or (from the start) they do not. */
void listen_heed(struct listen *, bool notices);
/* Sleeps until there is something to do, or for `limit` ns (0: for as long as it takes). */
void listen_wait(struct listen *, uint32_t rings, uint64_t limit);
/* The same in three steps, of which the second touches nothing but the doorbell: true: nothing came for a while, and any client
 * that comes from now on rings. */
bool listen_rest(struct listen *, uint32_t rings);
void listen_sleep(struct listen *, uint32_t rings, uint64_t limit);
void listen_rise(struct listen *);
/* Is there a request that was not looked at yet? */
bool listen_has_more(struct listen *);

/* Takes the next message: 1, or 0 if there is none. Malformed ones are counted in *malformed and dropped (a
 * request among them is answered -EBADMSG, so that its sender does not wait). */
int listen_next(struct listen *, struct listen_request *, uint64_t *malformed);
/* False: of some processes the end is noticed only by listen_look. */
bool listen_follows_all(const struct listen *);
void listen_look(struct listen *);
/* The next process of this node that used the channel and has ended, all of whose messages were taken: its id,
 * or 0. */
pid_t listen_next_death(struct listen *);
/* Gives its queue pairs back; call it when what it left has been settled. */
void listen_forget(struct listen *, pid_t client);
/* Does the sender of a request still own its queue pair? */
bool listen_is_there(struct listen *, uint32_t qp, uint64_t client);
/* Has the sender of that request stopped waiting for the answer? */
bool listen_gave_up(struct listen *, uint32_t qp, uint64_t client, uint32_t tag);
/* Answers a request of a process of this node, if it still owns the queue pair, with an encoded message of at most
 * REQUEST_ANSWER_MAX; the next listen_wake or listen_wait wakes it. False: nobody takes the answer, what it lets its sender
 * begin will not be begun. */
bool listen_answer(struct listen *, uint32_t qp, uint64_t client, uint32_t tag, const void *answer, size_t size);
/* Puts a page of names (PAGE_MAX at most) into a bulk buffer for a client: its number, for an answer with MESSAGE_BULK;
 * -ENOBUFS: all are taken. If nobody takes that answer, it is to be taken back. */
int listen_put_page(struct listen *, uint64_t client, const char *page, size_t size);
void listen_take_back_page(struct listen *, uint64_t client, int bulk);

/* Grants (request/channel.h). A slot of a queue pair is filled, with a name (two of MESSAGE_RENAME, and of a MESSAGE_CREATE
 * that may be followed by one) and an answer, of MESSAGE_CREATE, MESSAGE_UNLINK or MESSAGE_RENAME, whose place is
 * BRANCH/MIRROR/LEAF; `calls`: the daemon is to be woken when it is done. False: the name is too long, or while there are
 * grants of another branch or mirror in the queue pair. */
struct listen_grant {
    uint16_t type;
    bool calls;
    struct dirid dir;
    struct record_entry entry;
    const char *name, *to, *place;
    size_t name_length, to_length, place_length;
};
bool listen_grant(struct listen *, uint32_t qp, unsigned slot, const struct listen_grant *);
bool listen_is_taken(const struct listen *, uint32_t qp, unsigned slot);
enum listen_granted { LISTEN_GRANTED, LISTEN_TAKEN, LISTEN_DONE, LISTEN_MOVING, LISTEN_MOVED };
/* What has become of it, since when (clock_files), and the inode number of what was made. */
enum listen_granted listen_granted(struct listen *, uint32_t qp, unsigned slot, uint64_t *taken_at, uint64_t *made);
/* The slot is free again, unless its process takes it or goes on with it meanwhile: false. What was taken it says by a message
 * how that went. */
bool listen_close_grant(struct listen *, uint32_t qp, unsigned slot, enum listen_granted);
/* The slot is free again, whatever was in it. */
void listen_end_grant(struct listen *, uint32_t qp, unsigned slot);
/* A queue pair whose process has come by since that was asked last, while it has grants; -1: there is no more. */
int listen_next_visited(struct listen *);

/* Wakes clients that sleep and were answered: so many at a time as there are cores (listen/wakeups.h), the others with
 * listen_rest, or now. */
void listen_wake(struct listen *);
void listen_wake_all(struct listen *);

/* So many directories are about to be renamed, and others were: clients are to forget where they were. */
void listen_raise_rename_generation(struct listen *, uint32_t count);
/* Directories may have times that their trunk does not show: clients are to look. */
void listen_set_redirected(struct listen *);
/* The number of this node's branch. */
void listen_set_branch(struct listen *, uint16_t branch);
/* Until when (clock_boot) this node is of the session; CHANNEL_FOR_EVER, as at first: it does not serve yet. */
void listen_set_lease(struct listen *, uint64_t until);
uint64_t listen_lease(const struct listen *);
/* Says that the file system stalls: processes wait for longer. */
void listen_add_stall(struct listen *);
/* Says what time it is, for processes of other time namespaces: before a PING is answered. */
void listen_set_clock(struct listen *);
/* The file system asks a server for each part of a path: clients are to name short ones. */
void listen_set_slow_lookup(struct listen *);
bool listen_is_slow_lookup(const struct listen *);
/* From now on, or no longer, another node may change a name that this node's kernel keeps. */
void listen_set_keeps_names(struct listen *, bool keeps);
/* Names have left this index. */
void listen_count_loss(struct listen *);
/* Of which shards (a bit each) this index has all names, so that clients may take "absent" from it. */
void listen_set_homes(struct listen *, const uint64_t homes[RECORD_SHARDS / 64]);
