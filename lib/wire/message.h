/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The messages between a process and its daemon, and what they look like as bytes. WIRE.md says what each
 * means.
 *
 * Pure: the decoder takes (pointer, size), allocates nothing, trusts nothing. Async-signal-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "index/record.h"

#define WIRE_VERSION 9

enum message_type {
    /* From a process (WIRE.md). Each is answered, but for the notices. */
    MESSAGE_LOAD = 1,      /* dir is to be loaded; load.path: its place relative to the root */
    MESSAGE_LOOKUP,        /* what is dir/name? Once nobody is at work on it */
    MESSAGE_CREATE,        /* it is about to be made */
    MESSAGE_COMMIT,        /* notice: it was made */
    MESSAGE_ABORT,         /* nothing came of it. An answer if it has a tag */
    MESSAGE_ADOPT,         /* the trunk turned out to hold it */
    MESSAGE_VANISHED,      /* it is not where found.entry says */
    MESSAGE_UNLINK,        /* it is about to be removed */
    MESSAGE_UNLINKED,      /* notice: it was */
    MESSAGE_RENAME,        /* it is about to become rename.to_dir/rename.to_name */
    MESSAGE_RENAMED,       /* notice: how that went, in result; with a tag: answered once all daemons know the new places */
    MESSAGE_RMDIR,         /* before its rmdir; ended by UNLINKED or ABORT */
    MESSAGE_PROMOTE,       /* to be moved to the trunk; then COMMIT or ABORT */
    MESSAGE_ATTRIBUTES,    /* the attributes of dir changed: give them to its mirrors */
    MESSAGE_SETTLE,        /* the times of dir are about to be set */
    MESSAGE_SYNC,          /* fsync the mirrors of dir */
    MESSAGE_STATUS,        /* the counters, in text; MESSAGE_ALL: those of all daemons together */
    MESSAGE_PING,          /* is the daemon there, and has it seen what was taken of grants? 0 */
    MESSAGE_WATCH,         /* a process waits for events of dir, creates in it are to stay in the trunk */
    MESSAGE_PLACE,         /* name, a mirror's: where is its directory? */
    MESSAGE_LIST,          /* a page of the names of dir that other daemons are home of */
    MESSAGE_VISITED,       /* notice: a file of dir in another node's branch was looked at */
    MESSAGE_STOP,          /* all daemons of the session are to end */
    MESSAGE_ANSWER,        /* to any of these but the following */
    MESSAGE_RENAME_ANSWER, /* to RENAME, of two names */
    MESSAGE_TEXT_ANSWER,   /* to STATUS, LIST, PLACE */
    /* Between daemons (daemon/rpc/RPC.md); from a process they are malformed. */
    MESSAGE_NAME_QUESTION,        /* to the home of dir/name */
    MESSAGE_NAME_ANSWER,          /* ... and back */
    MESSAGE_LISTED,               /* to a home: a name of a directory that is being loaded */
    MESSAGE_MARK,                 /* to a coordinator: dir needs a marker */
    MESSAGE_FREEZE,               /* dir is about to be removed, if it is empty */
    MESSAGE_THAW,                 /* ... was not removed */
    MESSAGE_DROP,                 /* ... was removed */
    MESSAGE_DIR_CREATED,          /* ... was made, at load.path */
    MESSAGE_RETURN,               /* ... is given back to its coordinator */
    MESSAGE_COORDINATOR_ANSWER,   /* of a coordinator */
    MESSAGE_LOADED,               /* collective: all homes have the names of dir */
    MESSAGE_RECORD,               /* collective: its marker, its place */
    MESSAGE_MOVED,                /* collective: directories have other places */
    MESSAGE_FENCE,                /* collective: a directory is about to be renamed, or was */
    MESSAGE_HAS_MOVED,            /* collective: has each daemon done its part of a migration? */
    MESSAGE_COLLECTIVE_ANSWER,    /* of a collective; after it comes a page */
    MESSAGE_NODES,                /* notification: so many nodes use dir */
    MESSAGE_LEAF_VISITED,         /* ... another node looked into a leaf of dir */
    MESSAGE_IDLE,                 /* ... no name of dir is held any more */
    MESSAGE_TIMES,                /* ... when dir changed last */
    MESSAGE_AWAITED,              /* ... somebody waits for the end of an operation */
    MESSAGE_RECALL,               /* ... dir is to be given back to its coordinator */
    MESSAGE_MIGRATED_DIR,         /* of a shard that migrates (membership/migration.h): a directory */
    MESSAGE_MIGRATED_ENTRY,       /* ... an entry of the index */
    MESSAGE_MIGRATED_CLAIM,       /* ... a claim, and what readers meet */
    MESSAGE_MIGRATED_RECORD,      /* ... a directory's record, to its next coordinator */
    MESSAGE_MIGRATED_COORDINATOR, /* ... what its coordinator knows */
    MESSAGE_MIGRATED_ALL,         /* ... that was all */
    MESSAGE_EVICT,                /* to a coordinator, and collective: may all that is known of dir be forgotten? */
    MESSAGE_EVICTED,              /* collective: it is to be */
    MESSAGE_SHARE,                /* collective: mirrors of dir, which is being loaded, to be listed by each daemon */
    MESSAGE_AWAIT_THAW,           /* to a coordinator: answered once dir is not about to be removed */
    MESSAGE_TYPES
};

enum message_flag {
    MESSAGE_TRUNK = 1,       /* CREATE: whatever the placement says, in the trunk */
    MESSAGE_EXCHANGE = 2,    /* RENAME_EXCHANGE */
    MESSAGE_NOREPLACE = 4,   /* RENAME_NOREPLACE */
    MESSAGE_ALL = 8,         /* STATUS: of all daemons of the session */
    MESSAGE_BULK = 16,       /* in an answer: the text lies in the bulk buffer text_answer.bulk of the channel */
    MESSAGE_SPREAD = 32,     /* between daemons, LOAD: the sender does not take a delegation */
    MESSAGE_PEEK = 64,       /* LOOKUP: a new name that somebody is about to make is told as such (PENDING), at once */
    MESSAGE_TWO_FILES = 128, /* RENAME: whatever is known, the disk shows that these are not two names of one file */
    MESSAGE_MISPLACED = 256, /* LOAD: some daemon looks for it elsewhere, so that all are to hear of its place */
};

/* Answers besides 0 and -errno, in `result`. */
enum message_result {
    MESSAGE_EXISTS = 1, /* CREATE, ADOPT: there is one: answer.entry[0], at answer.place[0]; RENAME: the new name */
    MESSAGE_ABSENT,     /* LOOKUP, UNLINK, RENAME (the old name), VANISHED: there is none */
    MESSAGE_NOT_LOADED, /* any: send LOAD, then again */
    MESSAGE_CHANGED,    /* VANISHED: look again */
    MESSAGE_NOT_EMPTY,  /* RMDIR */
    MESSAGE_SAME,       /* RENAME: both are one name, or names of one file, as far as known; nothing is held */
    MESSAGE_BUSY,       /* between daemons: somebody is at work on it */
    MESSAGE_REMOTE,     /* between daemons: another one is its home now; or begin again */
    MESSAGE_TWICE,      /* between daemons, LOADED: a name was found in two places */
};

/* Bytes of the sender's, or of those that a message was decoded from; not terminated. */
struct message_text {
    const char *text;
    uint16_t length;
};

static inline struct message_text message_text(const char *text, size_t length)
{
    return (struct message_text){text, (uint16_t)length};
}

/* At most MESSAGE_TEXT_MAX bytes and a zero. */
static inline void message_copy_path(char *to, const struct message_text *path)
{
    if (path->length > 0)
        memcpy(to, path->text, path->length);
    to[path->length] = '\0';
}

/* An entry as daemons tell it each other: a branch's number is each daemon's own, its name is the same for all. */
struct message_entry {
    struct record_entry entry;
    struct message_text branch; /* empty in the trunk */
};

/* What a coordinator decided of a directory. */
struct message_record {
    uint64_t marker;  /* its id; 0: none */
    uint64_t version; /* of the decision: an older one is passed over */
    bool marked, unlisted, watched;
    struct message_text mirror; /* the name of its mirrors */
};

/* When a directory's names came or went last (home/home.h, struct home_times), ns. */
struct message_times {
    uint64_t round, changed, settled;
    bool written; /* the trunk shows it */
};

/* A message. The union has one body for each type that has one; bodies without a type in their comment belong to the type of
 * their name. What a type does not have is zero. */
struct message {
    uint16_t type;
    uint16_t flags; /* enum message_flag */
    uint32_t tag;   /* of a process's request, and of its answer; 0: no answer is wanted */
    int32_t result; /* of answers and RENAMED: 0, enum message_result or -errno */
    uint32_t epoch; /* between daemons: of the homes, as the sender knew them */
    struct dirid dir;
    struct message_text name; /* in dir */
    union {                   /* the largest first: an initialiser that names no body clears that one */
        struct {
            struct message_record record;
            uint32_t node_count; /* LOAD: so many nodes use it */
            bool leaf_is_made;   /* MARK: the wanted leaf, too */
            uint32_t why;        /* MARK: enum record_why */
            uint64_t delegation; /* LOAD: to the sender, by this number; 0: not */
            uint64_t names;      /* LOAD: so many were sent before; UINT64_MAX: with an earlier answer */
        } coordinator_answer;
        struct {
            struct record_entry entry[2];
            struct message_text place[2]; /* of those entries: BRANCH/MIRROR/LEAF, empty in the trunk */
        } answer;                         /* ANSWER, which has the first of each; RENAME_ANSWER */
        struct {
            struct message_text text; /* STATUS: counters; LIST: a page; PLACE: the place of dir */
            uint64_t limit;           /* LIST: up to this hash they are all */
            uint32_t bulk;            /* MESSAGE_BULK: where the text lies */
        } text_answer;
        struct {
            struct message_text path;
        } load; /* LOAD, DIR_CREATED */
        struct {
            struct record_entry entry; /* its type is what is to be made */
        } create;
        struct {
            struct record_entry entry; /* its type and inode number */
            struct dirid child;        /* a new directory's identity */
        } commit;
        struct {
            struct record_entry entry;
        } found; /* ADOPT, VANISHED, VISITED */
        struct {
            struct dirid to_dir;
            struct message_text to_name;
            struct dirid replaced;     /* RENAMED: the directory that made way, if one did */
            struct record_entry found; /* RENAME: the old name, as far as the process knows it */
        } rename;                      /* RENAME, RENAMED */
        struct {
            struct dirid child;
        } rmdir;
        struct {
            uint64_t round; /* that begins; 0 from a process */
        } settle;
        struct {
            uint64_t from; /* hash */
            uint64_t room; /* for so many bytes of all names */
            uint64_t to;   /* hash, between daemons */
        } list;
        struct {
            struct message_entry entry;
            uint16_t op; /* enum name_op */
        } name_question;
        struct {
            struct message_entry entry;
        } name_answer;
        struct {
            struct message_entry entry;
            uint64_t load_number; /* the directory's version */
        } listed;
        struct {
            uint64_t load_number;         /* as in LISTED */
            struct message_text mirror;   /* the name of its mirrors */
            struct message_text branches; /* of each: the member that lists it (2 bytes), its name, a zero */
        } share;
        struct {
            uint32_t leaf;
        } leaf; /* MARK: that is wanted; LEAF_VISITED */
        struct {
            uint64_t tried; /* ns since it was tried first */
        } freeze;
        struct {
            uint64_t idle; /* ns for which the sender has not used it */
        } evict;
        struct {
            uint64_t number;
        } delegation; /* RECALL, RETURN */
        struct {
            struct message_record record;
            struct message_text path;
        } record; /* RECORD, LOADED, MIGRATED_RECORD. RECORD: an empty path says that it is as before */
        struct {
            struct message_text paths; /* from and to, with a zero between them */
        } moved;
        struct {
            uint64_t operation;
            uint16_t member;
            bool ends;
        } fence;
        struct {
            uint64_t limit; /* of the page that comes after it */
            uint32_t hops;  /* messages on the longest way */
            bool lost;      /* a daemon is gone */
        } collective_answer;
        struct {
            uint32_t count;
        } nodes;
        struct message_times times;
        struct {
            struct message_record record;
            struct message_text path;
            uint64_t load_number;
            bool frozen;
        } migrated_dir;
        struct {
            struct message_entry entry;
        } migrated_entry;
        struct {
            struct message_entry shown; /* state 0: nothing */
            uint64_t operation;
            uint16_t member;
        } migrated_claim;
        struct {
            struct message_text nodes; /* 2 bytes each */
            uint64_t delegation;
            struct message_times times;
            bool loaded, created_empty, closing, sharded; /* as in struct home_coordinator */
        } migrated_coordinator;
    };
};

#define MESSAGE_NAME_MAX RECORD_NAME_MAX                                        /* a name, a place, a branch, a mirror */
#define MESSAGE_TEXT_MAX 4095                                                   /* a path, a page, counters */
#define MESSAGE_FIXED 20                                                        /* what all begin with */
#define MESSAGE_BODY_MAX 60                                                     /* the fixed fields after that */
#define MESSAGE_SHORT (MESSAGE_FIXED + MESSAGE_BODY_MAX + 2 * MESSAGE_NAME_MAX) /* the longest without its text */

/* The length of the text and the tag in the bytes of a message, for one who puts it together of two parts (request/channel.h).
 */
#define MESSAGE_TEXT_LENGTH_AT 10
#define MESSAGE_TAG_AT 12

static inline uint16_t message_text_length(const uint8_t *bytes)
{
    uint16_t length;
    memcpy(&length, bytes + MESSAGE_TEXT_LENGTH_AT, sizeof length);
    return length;
}

static inline void message_set_text_length(uint8_t *bytes, uint16_t length)
{
    memcpy(bytes + MESSAGE_TEXT_LENGTH_AT, &length, sizeof length);
}

/* The type of the answer to a process's request. An ANSWER to any of them says its result alone. */
uint16_t message_answer_type(uint16_t request);

/* The size of a message as bytes; 0: no such type. */
size_t message_size(const struct message *);
/* The text, which comes last in the bytes, or NULL if the type has none. */
struct message_text *message_text_of(struct message *);
/* Writes it; the size, or 0 if it does not fit, a length is out of range or there is no such type. */
size_t message_encode(uint8_t *to, size_t size, const struct message *);
/* Reads it; names and texts point into `bytes`. 0; -EPROTO: another version; -EBADMSG: malformed (sizes, type,
 * a name that is empty where it must not be, holds a slash or a zero, or is `.` or `..`). */
int message_decode(struct message *, const uint8_t *bytes, size_t size);
