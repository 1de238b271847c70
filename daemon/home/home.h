/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What this daemon knows: what its own node does, and the names that it is home of.
 *
 * In the index are facts that others read; here is what is going on. As the daemon of its node it has
 * **operations**, what its clients are at work on, or will be, one for a name at a time; the leaves of the node's mirrors; and
 * which requests wait for what. As a home it decides about names (names.c), for its own node as for others: an entry in
 * the index, and the operation that has **claimed** it. A request that meets an operation, or a directory with a job under way,
 * is blocked there and served again when that ends; a question that meets a name that is held likewise. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/list.h"
#include "index/index.h"
#include "listen/listen.h"

struct shuntd;
struct home;
struct coordinator_request;

/* A request that waits, in memory of its own. */
struct blocked_request {
    struct link link;
    uint32_t qp;
    uint64_t client;
    uint32_t size;
    uint64_t since; /* monotonic: it waits for others since then; 0: it does not */
    uint8_t bytes[];
};

#define HOME_OPEN_LEAVES 4

/* What this node has in a directory: its mirror's leaves, and what it did here in this session. */
struct home_leaves {
    uint32_t *name_counts; /* how many names its processes left in each leaf */
    uint32_t count;
    uint32_t open[HOME_OPEN_LEAVES];
    bool visited[HOME_OPEN_LEAVES]; /* by another node */
    uint32_t open_count;
    uint64_t creates; /* names that it made here */
    uint64_t last_client;
    uint32_t alternations; /* creates whose maker was not the one before */
    uint32_t generation;   /* how often all leaves went */
};

/* What the home of a directory's own entry knows of it. */
struct home_coordinator {
    bool loaded;               /* its homes have all its names */
    bool created_empty;        /* it is empty: this session made it, and nobody has used it yet */
    bool in_request;           /* a question about the directory as a whole is being worked on */
    bool closing;              /* it is about to be removed, */
    uint16_t closed_for;       /* by a process of that member's; 0: of one that only a coordinator before knew */
    bool retries_removal;      /* a name that was claimed is free now: the rmdir is tried again */
    bool recalling;            /* ... that is: it is to be given back (coordinator/delegation.h) */
    bool sharded;              /* its names were handed to their homes: not only nodes[0] may have some */
    bool settles;              /* a name was found in two places: it is listed here, by one daemon, which settles that */
    uint64_t delegation;       /* it is wholly at home with nodes[0], by the delegation of that number; 0: it is not */
    struct link queued;        /* questions (coordinator/coordinator.h) that wait for the end of that */
    struct link awaiting_idle; /* ... that wait until no name is held */
    struct coordinator_request
        *load_request; /* the request that is answered when it is loaded; NULL: none waits for that any more */
    uint16_t *nodes;   /* the members whose processes use it */
    uint32_t node_count;
};

/* When names in a directory's mirrors came or went last, as far as this daemon knows (times.c). */
struct home_times {
    uint64_t round;          /* raised by the directory's coordinator when its times are set: earlier changes count no more */
    uint64_t changed;        /* ns; 0: not in this round */
    bool written;            /* the trunk's own times say so */
    uint64_t settled, stood; /* as in the index */
};

#define HOME_TIMES_PATIENCE CLOCK_SECOND /* with the daemon that is to write the time of a change */

/* How long it is since it was used, as far as this daemon knows (coordinator/evict.h). */
struct home_dir_use {
    struct link clock;   /* on home's clock, unless there is nothing to be forgotten */
    uint64_t last;       /* monotonic, when a process of this node or another daemon asked for it last */
    uint64_t seen;       /* `last` when the hand of the clock came by */
    uint64_t visited_at; /* monotonic, when that was */
    uint64_t refused_at; /* monotonic, when its coordinator said that it is in use */
    uint8_t refusals;    /* how often that was so since it was used here */
    uint8_t returns;     /* how often processes of this node asked for it again since it was hidden from them (evict.h) */
    bool is_hidden;      /* it is, or was before they did */
    bool is_asked;       /* its coordinator has not answered yet */
    bool by_processes;   /* processes of this node have used it */
};

struct home_dir {
    struct home_dir *next; /* in its bucket */
    struct dirid id;
    char *path; /* where it was when last seen, relative to the root; "." is the root */

    /* For this node's processes. */
    struct record_dir record; /* as in the index, once they use it (RECORD_LOADED) */
    uint64_t version;         /* of what its coordinator decides of that (coordinator/coordinator.h) */
    bool mirrored;            /* every daemon knows its mirror: creates may go there */
    unsigned disk_jobs;       /* jobs of the disk's for it */
    bool awaits_coordinator;  /* its coordinator for something. Collectives, which that waits for, do not wait for this */
    unsigned operations;      /* of its names */
    struct link blocked;      /* blocked until both end */
    struct link blocked_collectives; /* parts of collectives (rpc/collective.h) that wait for the jobs */
    struct home_leaves leaves;
    uint32_t nodes; /* how many nodes use it, as the coordinator told */
    struct home_dir_use use;
    bool keeps_mirror; /* its names were forgotten, where its files are is not */

    /* Its times. */
    struct home_times times;    /* the record's are what readers are to see of that */
    uint64_t change_count;      /* how often it changed here */
    uint64_t changed_at;        /* monotonic, of the last change here; HOME_TIMES_PATIENCE later, of one elsewhere */
    struct link unwritten;      /* on home's list while this node has changed it, and the trunk does not show it */
    bool writing;               /* it is being shown to the trunk */
    bool misplaced;             /* that failed: it was not where it was thought to be. Tried again when another place is told */
    struct link unannounced;    /* on home's list while other daemons are to hear of a change */
    uint64_t unannounced_since; /* monotonic */
    uint64_t announced;         /* the change that they have heard of */
    uint16_t times_source;      /* whose word its times are, 0: this daemon's */

    /* As home of some of its names. */
    bool complete;       /* all of them are in the index */
    uint64_t delegation; /* ... whatever their shards, by the delegation of that number (coordinator/delegation.h); 0: no */
    bool recalled;       /* ... and is to be given back once no name is held */
    bool frozen;         /* it is about to be removed: questions wait */
    bool reports_idle;   /* the coordinator is to hear when no name is held any more */
    unsigned claims;     /* names */
    uint64_t existing_claimed_at;        /* monotonic, when one that is there was given to somebody last; 0: never */
    unsigned prefetched_claims;          /* ... for which no process has asked yet, as far as is known here */
    bool draining;                       /* a listing waits until there are none: no more are given */
    uint64_t listed, expected;           /* names that have come so far, of so many */
    uint64_t listed_names, listed_bytes; /* of those this daemon took, and their bytes */
    struct spill *spill;                 /* it has the names, instead of the index; NULL */
    struct link spilled;                 /* on home's list then */
    int list_result;              /* ... 0; MESSAGE_TWICE: one of them in two places; -ENOSPC: there is no room for them */
    uint64_t load_number;         /* ... the number of that load: the directory's version then */
    struct link ended_claims;     /* names that were held while it was not complete, and are not any more (home_list_name) */
    struct link frozen_questions; /* questions that wait for the thaw */
    uint64_t reported_leaves[4];  /* leaves of other nodes whose owners know that they were looked into */
    unsigned reported_next;

    struct home_coordinator *coordinator; /* as home of the directory itself, else NULL */
};

enum operation_kind {
    OPERATION_LOOKUP, /* a question, nothing more: any number for a name */
    OPERATION_ADOPT,
    OPERATION_CREATE,
    OPERATION_UNLINK,
    OPERATION_RENAME_FROM,
    OPERATION_RENAME_TO,
    OPERATION_RMDIR,
    OPERATION_PROMOTE,
    OPERATION_VANISHED
};

/* Questions about a name, to its home. Before each: the directory must be complete there, else
 * MESSAGE_NOT_LOADED; and the name free, or claimed by the operation that asks, else the request waits. */
enum name_op {
    NAME_LOOKUP = 1, /* MESSAGE_EXISTS, MESSAGE_ABSENT */
    NAME_RESERVE,    /* entry: 0 it is held, and pending there; MESSAGE_EXISTS; -ENOSPC: the index has no room */
    NAME_CLAIM,      /* entry.state, if not 0: what it becomes while held. MESSAGE_EXISTS: held; MESSAGE_ABSENT:
                      * held all the same with NAME_EVEN_ABSENT, else -ENOSPC, and pending at entry if that says so */
    NAME_MARK,       /* by its claimant: what readers are to meet meanwhile. 0 */
    NAME_RELEASE,    /* by its claimant, no answer: what it is from now on; entry.state 0: nothing */
    NAME_REQUESTED,  /* by its claimant by NAME_PREFETCH, no answer: a process has asked for it by now */
    NAME_OPS
};
enum name_flag {
    NAME_EVEN_ABSENT = 1,
    NAME_NONBLOCK = 2, /* waits neither for the claimant nor for a thaw: MESSAGE_BUSY */
    NAME_PREFETCH = 4, /* no process has asked for it yet (prefetch/prefetch.h): likewise */
    NAME_PEEK = 8      /* LOOKUP does not wait for the creator of a new name: it is there, and PENDING. Its process looks at
                        * the file then; not where it is LIVE */
};

struct name_question {
    uint16_t op, flags;
    uint16_t member; /* that asks */
    uint16_t branch; /* of its node; 0: not known */
    uint64_t id;     /* ... for this operation of its own */
    struct dirid dir;
    struct record_entry entry;
    const char *name;
    size_t length;
};

struct name_answer {
    int result; /* also MESSAGE_REMOTE: ask again, another daemon is its home or the place is no more */
    struct record_entry entry;
};

enum operation_state {
    OPERATION_PREFETCHED, /* no client has asked for it yet (prefetch/prefetch.h): it has none, and no request */
    OPERATION_RETRACTED,  /* ... and none will: it ends once its home has answered */
    OPERATION_WANTED,     /* its client waits for the answer, or is at work */
    OPERATION_GIVEN_UP,   /* its answer came too late for the client: it is settled as if the client had ended */
    OPERATION_ABANDONED,  /* nobody waits for it any more, and nothing was begun: it ends once its home has answered */
};

/* The name at its home. */
enum operation_claim {
    CLAIM_NONE,     /* not given to this operation (yet) */
    CLAIM_NEW,      /* given, and there was no entry */
    CLAIM_EXISTING, /* given, and the entry was `before` */
};

struct operation;
/* What follows an answer: 0 or a fatal -errno. */
typedef int operation_next(struct shuntd *, struct operation *, const struct name_answer *);

/* A request to the home of the operation's name (rpc/home_rpc.h). */
struct operation_request {
    uint16_t op;     /* enum name_op that is not answered yet, 0: none */
    uint16_t member; /* that was asked */
    uint16_t flags;
    struct record_entry entry;
    operation_next *completion;
};

/* What the operation does to the times of its directory. */
struct operation_dir_change {
    uint64_t number;        /* 0, or which of the directory's changes is its own */
    uint64_t at, at_before; /* the directory's time with and without it */
    bool written_before;
};

/* A name that a client of this node has under way. What one kind alone has is in a struct of that kind's name. */
struct operation {
    struct operation *next;    /* in its bucket; lookups are in none */
    struct operation *next_id; /* in its bucket of numbers */
    struct link all;
    uint64_t id;
    enum operation_kind kind;
    struct home_dir *dir;
    /* The client, and its request. */
    uint64_t client;
    uint32_t qp, tag;
    uint16_t flags;
    struct blocked_request *request; /* to begin again; NULL: there is none (yet) */
    struct link blocked;             /* requests that wait for its end */
    enum operation_state state;
    bool awaited;        /* somebody, here or elsewhere, waits for its end */
    bool was_prefetched; /* no client had asked for it when its home was asked */
    uint64_t forgotten;  /* home_note_forgotten, as often as that was when this began */

    struct operation_request pending;
    enum operation_claim claim;
    struct record_entry shown;  /* what readers meet while it is claimed; state 0: nothing */
    struct record_entry before; /* what the index said (CLAIM_EXISTING) */
    struct record_entry place;  /* where the file will be if it goes well */
    struct operation_dir_change dir_change;
    struct {                 /* that was chosen for what is to be made, if it is not the trunk */
        uint32_t generation; /* the directory's leaves' then */
        bool counted;        /* the name counts among those of its leaf, though it is not made yet */
    } leaf;

    struct {            /* of CREATE, UNLINK, and of a rename at its old name (prefetch/grant.h) */
        uint16_t slot;  /* 1 + the slot in its queue pair in which it is granted, or was taken; 0: it is not */
        uint64_t began; /* clock_files, when its client took it there; 0: it was told that it may begin */
    } grant;
    union {
        struct {                       /* OPERATION_RENAME_FROM, OPERATION_RENAME_TO */
            struct operation *partner; /* each has the other; NULL: it has ended, or none is known yet */
            bool is_tried;             /* its home was asked to give it at once, and has not answered yet */
            int result;                /* ... what it answered */
            bool marked;               /* readers know */
            bool fenced;               /* FROM: all daemons were told that a directory moves */
        } rename;
        struct {                                                     /* OPERATION_RMDIR */
            enum { RMDIR_CLAIMS, RMDIR_FREEZES, RMDIR_FROZEN } step; /* FREEZES: the child's coordinator has not answered yet */
            struct dirid child;                                      /* the directory that is to go */
        } rmdir;
    };

    uint64_t hash;  /* of its name */
    uint32_t shard; /* that it falls into */
    uint16_t length;
    char name[RECORD_NAME_MAX]; /* the last: operation_begin clears what comes before it */
};

/* What is asked of any kind. */

static inline bool operation_is_prefetched(const struct operation *operation)
{
    return operation->state == OPERATION_PREFETCHED || operation->state == OPERATION_RETRACTED;
}

/* ... and may be a request's still. */
static inline bool operation_may_be_attached(const struct operation *operation)
{
    return operation->state == OPERATION_PREFETCHED;
}

static inline bool operation_is_abandoned(const struct operation *operation)
{
    return operation->state == OPERATION_RETRACTED || operation->state == OPERATION_ABANDONED;
}

static inline void operation_abandon(struct operation *operation)
{
    operation->state = operation_is_prefetched(operation) ? OPERATION_RETRACTED : OPERATION_ABANDONED;
}

static inline bool operation_is_claimed(const struct operation *operation)
{
    return operation->claim != CLAIM_NONE;
}

static inline bool operation_had_entry(const struct operation *operation)
{
    return operation->claim == CLAIM_EXISTING;
}

static inline bool operation_renames(const struct operation *operation)
{
    return operation->kind == OPERATION_RENAME_FROM || operation->kind == OPERATION_RENAME_TO;
}

/* The other of a rename's two, or NULL. */
static inline struct operation *operation_partner(const struct operation *operation)
{
    return operation_renames(operation) ? operation->rename.partner : NULL;
}

/* Is the directory frozen that it is to remove? */
static inline bool operation_is_frozen(const struct operation *operation)
{
    return operation->kind == OPERATION_RMDIR && operation->rmdir.step == RMDIR_FROZEN;
}

/* The operation that has its grant, if there is one: of a rename that of its old name. */
static inline struct operation *operation_granted_as(struct operation *operation)
{
    const bool has_old = operation->kind == OPERATION_RENAME_TO && operation->rename.partner != NULL;
    return has_old ? operation->rename.partner : operation;
}

/* Is it granted, or was it taken, in a slot of its queue pair? */
static inline bool operation_has_grant(struct operation *operation)
{
    return operation_granted_as(operation)->grant.slot != 0;
}

/* Was its client not told yet that it may begin? */
static inline bool operation_is_asking(const struct operation *operation)
{
    return operation->pending.op != 0 || (operation->kind == OPERATION_RMDIR && operation->rmdir.step == RMDIR_FREEZES);
}

/* What it uses of its daemon, which outlives it. */
struct home_uses {
    struct index *index;
    struct listen *listen;
    const uint64_t *now; /* monotonic, when the batch began */
    uint64_t *blocked;   /* counts requests and questions that had to wait */
    uint64_t *waited;    /* ns for which requests did */
};
int home_create(struct home **, const struct home_uses *);
void home_destroy(struct home *);

/* Directories. home_dir_add finds or makes; NULL: out of memory. */
struct home_dir *home_dir_find(struct home *, struct dirid);
struct home_dir *home_dir_add(struct home *, struct dirid, const char *path);
/* It is no more: nothing of it is known, requests that wait on it are served again. Its memory goes with its last
 * operation. The index is the caller's. */
void home_dir_drop(struct home *, struct home_dir *);
/* The same, but for that record of it. One that is watched is kept. */
void home_dir_drop_but(struct home *, struct home_dir *, const struct record_dir *);
/* Its names and all that can be read again are forgotten. What stays of one with mirrors that this node has used is what cannot
 * be: its times, how many leaves it has, which directory they belong to. The index is the caller's. */
void home_dir_evict(struct home *, struct home_dir *);
/* All daemons are about to forget a directory, or all directories. What an operation that has begun before made may have been
 * loaded, used and forgotten since, however new it is to this daemon. */
void home_note_forgotten(struct home *);
bool home_has_forgotten_since(const struct home *, const struct operation *);
/* It is used. */
void home_dir_note_use(struct home *, struct home_dir *);
/* The next directory that the hand of the clock comes to, and goes by, if it came by before `until` (monotonic) last; or
 * NULL. */
struct home_dir *home_dir_next_on_clock(struct home *, uint64_t until);
/* When it came by the next one; UINT64_MAX: there is none. */
uint64_t home_clock_hand(const struct home *);
/* Is something under way for this node's processes? */
bool home_dir_is_busy(const struct home_dir *);
/* Some of that has ended: waiting requests look whether they can go on. 0 or -ENOMEM. */
int home_dir_wake(struct home *, struct home_dir *);
/* The next of the collectives that waited for that: its link, or NULL. */
struct link *home_next_collective(struct home *);
void home_collectives_ready(struct home *, struct link *collectives);
/* Frees it if nothing refers to it. */
void home_dir_release(struct home *, struct home_dir *);
/* The directory whose mirrors have that name, or NULL. Looks at all: rarely asked. */
struct home_dir *home_dir_of_mirror(struct home *, const char *mirror, size_t length);
int home_dir_set_path(struct home *, struct home_dir *, const char *path);
/* A directory was renamed: those beneath it have new places. */
void home_dirs_moved(struct home *, const char *from, const char *to);
/* Do this node's processes know it? */
bool home_dir_is_loaded(const struct home_dir *);
/* Its coordinator's part, made if there is none. NULL: out of memory. */
struct home_coordinator *home_coordinator(struct home_dir *);
/* Writes its record to the index, if this node's processes use it. */
int home_dir_store(struct home *, struct home_dir *);
/* All directories, for status and the end. */
void home_dirs_each(struct home *, void (*each)(struct home_dir *, void *), void *context);
uint64_t home_dir_count(struct home *);

/* Times. A name in one of its mirrors comes or goes, `at` (clock_files): the trunk's times do not show it. */
int home_dir_note_change(struct home *, struct home_dir *, uint64_t at);
/* It did not: they are as before. */
int home_dir_undo_change(struct home *, struct home_dir *, uint64_t changed, bool written);
/* What a daemon has heard and another's word of it: the later counts. True: it says something new. Pure. */
bool home_times_merge(struct home_times *, const struct home_times *word);
bool home_times_equal(const struct home_times *, const struct home_times *);
/* The same for a directory, whose readers see it then; `teller` is the member that said so. */
int home_dir_merge_times(struct home *, struct home_dir *, const struct home_times *word, uint16_t teller);
/* Readers are to see dir->times. */
int home_dir_publish_times(struct home *, struct home_dir *);
/* Other daemons are to hear of them. */
void home_dir_announce(struct home *, struct home_dir *);
/* They could not be written, since it is not where it was thought to be; and now another place is told. */
void home_dir_misplaced(struct home_dir *);
void home_dir_found(struct home *, struct home_dir *);
/* It was removed. */
void home_dir_forget_times(struct home_dir *);
/* The end of home_dir.writing, as its readers see; as home_dir_wake. */
int home_dir_times_written(struct home *, struct home_dir *);
/* A directory whose times wait to be written to the trunk since before `quiet` (monotonic), or NULL. */
struct home_dir *home_dir_next_to_write(struct home *, uint64_t quiet);
/* Likewise to be told; it is off the list then. */
struct home_dir *home_dir_next_to_announce(struct home *, uint64_t since);
bool home_has_unwritten(const struct home *);
/* When the first of them is due, if one is told after `pause` and written after `quiet`; UINT64_MAX: none. */
uint64_t home_times_due(const struct home *, uint64_t pause, uint64_t quiet);

/* Leaves. How many names of a node's mirror are in leaf N. */
int home_leaf_add(struct home_leaves *, uint32_t leaf, int32_t change);
/* The leaf that takes a name, or -EAGAIN: a new one must be made (*fresh is its number) before. */
int home_leaf_pick(struct home_leaves *, uint64_t hash, uint64_t client, uint32_t full, uint32_t *leaf, uint32_t *fresh);
/* A leaf was made: it is open now, instead of one that is full, or next to the others. */
int home_leaf_open(struct home_leaves *, uint32_t leaf, uint32_t full);
/* Another node looks at a file in that leaf: from then on the file system must ask it about the leaf, so its
 * owner goes on in a fresh one, once this one holds a number of names that grows with the number of leaves.
 */
void home_leaf_note_visit(struct home_leaves *, uint32_t leaf);
/* Has it no names in any of them? */
bool home_leaves_are_empty(const struct home_leaves *);
/* Is it left for that, once a name is made? */
bool home_leaf_is_retired(const struct home_leaves *, uint32_t leaf);
/* Another node is about to look into all of them: its owner goes on in a fresh one. */
void home_leaves_retire(struct home_leaves *);
/* The mirrors are gone. */
void home_leaves_forget(struct home_leaves *);

/* Operations. */
struct operation *operation_by_id(struct home *, uint64_t id);
struct operation *operation_find(struct home *, struct dirid, const char *name, size_t length);
/* Its own operation if `client` began it, else NULL. */
struct operation *operation_find_own(struct home *, struct dirid, const char *name, size_t length, uint64_t client);
/* NULL: out of memory. Without a request (NULL) it is ahead of one. */
struct operation *operation_begin(struct home *, enum operation_kind, struct home_dir *, const char *name, size_t length,
                                  const struct listen_request *);
/* A prefetched operation is that request's from now on; NULL: its client took it without one. 0 or -ENOMEM. */
int operation_attach_request(struct home *, struct operation *, const struct listen_request *);
/* A create has ended, and its claim goes on, as the old name of a rename that no process has asked for yet. */
void operation_keep(struct home *, struct operation *, const struct record_entry *made);
/* The operation's directory changes by it; it did not after all: its time is what it was, unless it changed
 * again. */
int operation_note_change(struct home *, struct operation *);
int operation_undo_change(struct home *, struct operation *);
/* What is to be made counts among the names of its leaf, or that would take too many meanwhile. 0 or -ENOMEM. */
int operation_count_in_leaf(struct operation *);
/* Somebody waits for the end of the operation of that number, if there is one still: what its process says of that is to be
 * heard at once, and not with the next request. */
void operation_await(struct home *, uint64_t id);
/* Ends it; requests that waited for it, or for the directory's last operation, are served again. */
void operation_end(struct home *, struct operation *);
/* The first operation whose client is gone (client == that) or has given up waiting for its answer (client ==
 * 0), and that was not abandoned. */
struct operation *operation_next_of_client(struct home *, uint64_t client);
unsigned operation_count(struct home *);
/* Those that hold their name at its home. Ends with the first that answers another thing than 0, and answers that. */
int operation_each_claimed(struct home *, int (*each)(void *context, const struct operation *), void *context);
/* The answer to that request, which began operations perhaps, was not waited for any more. */
void operation_give_up(struct home *, uint64_t client, uint32_t qp, uint32_t tag);

/* Waiting. The request is copied: 0 or -ENOMEM. */
int home_block(struct home *, struct link *waiting, const struct listen_request *);
struct blocked_request *home_copy_request(const struct listen_request *);
/* The request as it came. */
void home_restore_request(const struct blocked_request *, struct listen_request *);
/* Those of them that would make a file in a branch are to do so in the trunk. 0 */
int home_pin_to_trunk(struct link *waiting);
void home_wake(struct home *, struct link *waiting);
/* Does any request, or any question of another daemon's, wait, or is an operation waited for elsewhere? */
bool home_has_waiting(const struct home *);
/* `each` with the members that hold names for which questions wait, once for a name. 0 or what `each` answers. */
int home_each_awaited(const struct home *, int (*each)(void *context, uint16_t member), void *context);
/* Is there anything to go on with: a request, a question, a notification, a part of a collective? */
bool home_has_ready(const struct home *);
/* A request that is to be served again. */
void home_retry(struct home *, struct blocked_request *);
/* The next request to be served again, or NULL; the caller frees it. */
struct blocked_request *home_next_retry(struct home *);

/* As home of names. 0: answered; HOME_WAITS: it will be, see home_next_question; or a fatal -errno. NAME_RELEASE has
 * no answer. */
#define HOME_WAITS 1
int home_ask(struct home *, const struct name_question *, struct name_answer *);
/* A process of the node with that branch (0: not known) looks at a file there: if it is in another node's branch, that one is
 * to hear. 0 or -ENOMEM. */
int home_report_visit(struct home *, struct home_dir *, const struct record_entry *, uint16_t branch);
/* The next question that waited and has its answer now: 1, 0 if there is none, or a fatal -errno. Only member
 * and id of the question are to be looked at. */
int home_next_question(struct home *, struct name_question *, struct name_answer *);
/* The directory is about to be removed, which has been tried for `tried` ns. 0: frozen; MESSAGE_NOT_EMPTY, also if a name is
 * held and one was there since then; MESSAGE_BUSY: a name is held, and the coordinator is told once none is; or a fatal -errno.
 */
int home_freeze(struct home *, struct home_dir *, uint64_t tried);
/* That name is looked at, and not there: if it is prefetched and no process has asked for it, it is given back. 0 or -ENOMEM.
 */
int home_recall_prefetched(struct home *, struct dirid, const char *name, size_t length);
/* Before its names are told: 1, if those that were prefetched are to be awaited (home_dir.blocked_collectives), 0 or
 * -ENOMEM. */
int home_drain_prefetched(struct home *, struct home_dir *);
/* The claimants of names in it hear that their ends are waited for. 0 or -ENOMEM. */
int home_await_all(struct home *, const struct home_dir *);
/* The coordinator is to be told once no name is held there. 0 or -ENOMEM. */
int home_report_idle(struct home *, struct home_dir *);
/* It was not removed, or it was: requests that came meanwhile are repeated. */
int home_thaw(struct home *, struct home_dir *);
/* A name that is held, as another home hands it over. 0 or -ENOMEM. */
int home_claim_for(struct home *, struct home_dir *, const char *name, size_t length, uint16_t member, uint64_t id);
/* May a name with that hash be believed as it was found on disk? Not if it is held, or was since the directory is being
 * listed: what was found may be older. */
bool home_may_list(struct home *, const struct home_dir *, uint64_t hash);
/* Names of the load of that number are about to come, or there are none: what is known by an earlier one, which has come to
 * nothing, is forgotten. 0, -ESTALE: that is over; or a fatal -errno. */
int home_list_begin(struct home *, struct home_dir *, uint64_t number);
/* What was listed so far is forgotten. 0 or a fatal -errno. */
int home_unlist(struct home *, struct home_dir *);
/* A name of a directory that is not complete yet, as it was found on disk; home_dir.list_result says if that is no name that
 * can be taken. 0 or a fatal -errno. */
int home_list_name(struct home *, struct home_dir *, const char *name, size_t length, const struct record_entry *);
/* The entries of the names that this daemon is home of, wherever they are (entries.c): as the functions of the index, -ENOSPC
 * included. */
int home_get_entry(struct home *, struct dirid, const char *name, size_t length, struct record_entry *);
int home_put_entry(struct home *, struct dirid, const char *name, size_t length, const struct record_entry *);
int home_add_entry(struct home *, struct dirid, const char *name, size_t length, struct record_entry *);
int home_del_entry(struct home *, struct dirid, const char *name, size_t length);
int home_make_room(struct home *, struct dirid, const char *name, size_t length);
int home_has_entries(struct home *, struct dirid);
int home_list_entries(struct home *, struct dirid, uint64_t from, index_each *each, void *context);
int home_del_entries(struct home *, struct dirid, index_is_meant *, void *context);
int home_del_dir(struct home *, struct home_dir *);
/* A directory that takes more than so many bytes of the index when it is listed is spilled, i.e. its names go to a file whose
 * path begins like that; 0: none is. */
void home_set_spill(struct home *, uint64_t above, const char *base);
bool home_can_spill(const struct home *);
/* One more of its names was listed. 0 or a fatal -errno. */
int home_spill(struct home *, struct home_dir *);
/* Its names go to a file at once, if that can be (home_dir.spill). 0 or a fatal -errno. */
int home_spill_now(struct home *, struct home_dir *);
/* Back into the index, for a directory that nobody uses yet; after an error its names are forgotten. 0; -ENOSPC; -errno */
int home_unspill(struct home *, struct home_dir *);
/* Forgets the names of a spilled directory. */
void home_end_spill(struct home_dir *);
/* How many are, and the bytes of their files. */
uint64_t home_spilled(struct home *, uint64_t *bytes);
/* It is complete, or nothing is known of it any more. */
void home_list_end(struct home_dir *);
/* Any name that this member holds: the end of that, but for what the name is then. Its text is good until it ends. */
bool home_claim_of_member(struct home *, uint16_t member, struct name_question *end);
/* Names that are held and go to another home: `to` says to which, by shard, 0: it stays. They are claimed no more; requests
 * that waited for them are redirected, and by home_redirect_waiters those that wait for a freeze. */
typedef int home_each_claim(void *context, uint16_t to, struct dirid, const char *name, size_t length, uint16_t member,
                            uint64_t id);
int home_hand_over(struct home *, const uint16_t *to, home_each_claim *, void *context);
void home_redirect_waiters(struct home *, struct home_dir *);
/* All claims are dropped; requests that waited for them are redirected. */
void home_drop_claims(struct home *);
unsigned home_claim_count(struct home *);

/* What others are to hear of. False: nothing more. */
enum home_notification_kind {
    NOTIFY_LEAF_VISITED = 1, /* another node than its owner asked for a file in that leaf of that branch */
    NOTIFY_IDLE,             /* no name of the directory is held any more, after MESSAGE_BUSY */
    NOTIFY_AWAITED,          /* somebody waits for the end of that member's operation */
    NOTIFY_UNCLAIMED         /* no name of the directory is held any more, which is wanted */
};
struct home_notification {
    enum home_notification_kind kind;
    struct dirid dir;
    uint16_t branch;
    uint32_t leaf;
    uint16_t member;
    uint64_t operation;
};
bool home_next_notification(struct home *, struct home_notification *);
