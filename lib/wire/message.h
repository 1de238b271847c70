/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The messages between a process and its daemon, and what they look like as bytes. WIRE.md says what each
 * means.
 *
 * Pure: the decoder takes (pointer, size), allocates nothing, trusts nothing. Async-signal-safe. */

#include <stddef.h>
#include <stdint.h>

#include "index/record.h"

#define WIRE_VERSION 5

enum message_type {
    MESSAGE_LOAD = 1,   /* dir[0], text: its place relative to the root */
    MESSAGE_LOOKUP,     /* dir[0], name[0]: once nobody is at work on it */
    MESSAGE_CREATE,     /* dir[0], name[0], entry[0].type; MESSAGE_TRUNK */
    MESSAGE_COMMIT,     /* dir[0], name[0], entry[0], child: it was made. No answer */
    MESSAGE_ABORT,      /* dir[0], name[0]: nothing came of it. An answer if it has a tag */
    MESSAGE_ADOPT,      /* dir[0], name[0], entry[0]: the trunk turned out to hold it */
    MESSAGE_VANISHED,   /* dir[0], name[0], entry[0]: it is not where that entry says */
    MESSAGE_UNLINK,     /* dir[0], name[0] */
    MESSAGE_UNLINKED,   /* dir[0], name[0]: it was removed. No answer */
    MESSAGE_RENAME,     /* dir[0], name[0] to dir[1], name[1]; MESSAGE_EXCHANGE, MESSAGE_NOREPLACE */
    MESSAGE_RENAMED,    /* likewise, result: how it went. No answer */
    MESSAGE_RMDIR,      /* dir[0], name[0], child: before its rmdir; answered by UNLINKED or ABORT */
    MESSAGE_PROMOTE,    /* dir[0], name[0]: to be moved to the trunk; then COMMIT or ABORT */
    MESSAGE_ATTRIBUTES, /* dir[0]: its attributes changed, give them to its mirrors */
    MESSAGE_SETTLE,     /* dir[0]: its times are about to be set */
    MESSAGE_SYNC,       /* dir[0]: fsync its mirrors */
    MESSAGE_STATUS,     /* the counters, in text; MESSAGE_ALL: those of all daemons together */
    MESSAGE_PING,       /* is the daemon there, and has it seen what was taken of grants? 0 */
    MESSAGE_WATCH,      /* dir[0]: somebody waits for its events, creates in it are to stay in the trunk */
    MESSAGE_PLACE,      /* name[0], a mirror's: where is its directory? */
    MESSAGE_LIST,       /* dir[0], child.ino: its next names, from that hash on, that others are home of */
    MESSAGE_ANSWER,     /* result, and what it says */
    /* Between daemons (daemon/rpc/RPC.md); from a process they are malformed, but for VISITED. */
    MESSAGE_NAME,        /* a question about dir[0], name[0] to its home */
    MESSAGE_MARK,        /* dir[0] needs a marker */
    MESSAGE_FREEZE,      /* ... is about to be removed, if it is empty */
    MESSAGE_THAW,        /* ... was not removed */
    MESSAGE_DROP,        /* ... was removed */
    MESSAGE_DIR_CREATED, /* ... was made, at the place in text */
    MESSAGE_LOADED,      /* all homes have its names */
    MESSAGE_RECORD,      /* its marker, its place */
    MESSAGE_MOVED,       /* directories have other places: text, from and to with a zero between them */
    MESSAGE_NODES,       /* tag nodes use it */
    MESSAGE_VISITED,     /* another node looked into leaf tag of it; also from a process, with entry[0] */
    MESSAGE_IDLE,        /* no name of it is held any more */
    /* From a process again. */
    MESSAGE_STOP, /* all daemons of the session are to end */
    /* Between daemons again. */
    MESSAGE_TIMES,   /* when dir[0] changed last */
    MESSAGE_FENCE,   /* a directory is about to be renamed, or was: child says by which operation */
    MESSAGE_AWAITED, /* somebody waits for the end of an operation */
    MESSAGE_RECALL,  /* dir[0] is to be given back to its coordinator */
    MESSAGE_RETURN,  /* ... is */
    MESSAGE_TYPES
};

enum message_flag {
    MESSAGE_TRUNK = 1,     /* CREATE: whatever the placement says, in the trunk */
    MESSAGE_EXCHANGE = 2,  /* RENAME_EXCHANGE */
    MESSAGE_NOREPLACE = 4, /* RENAME_NOREPLACE */
    MESSAGE_ALL = 8,       /* STATUS: of all daemons of the session */
    MESSAGE_BULK = 16,     /* in an answer: the text lies in the bulk buffer child.birth of the channel */
    MESSAGE_SPREAD = 32,   /* between daemons, LOAD: the sender does not take a delegation */
    MESSAGE_PEEK = 64,     /* LOOKUP: a new name that somebody is about to make is told as such (PENDING), at once */
};

/* Answers besides 0 and -errno, in `result`. */
enum message_result {
    MESSAGE_EXISTS = 1, /* CREATE, ADOPT: there is one: entry[0], and name[0] its place; RENAME: the new name */
    MESSAGE_ABSENT,     /* LOOKUP, UNLINK, RENAME (the old name), VANISHED: there is none */
    MESSAGE_NOT_LOADED, /* any: send LOAD, then again */
    MESSAGE_CHANGED,    /* VANISHED: look again */
    MESSAGE_NOT_EMPTY,  /* RMDIR */
    MESSAGE_SAME,       /* RENAME: both are names of one file; nothing is held, nothing is to be done */
    MESSAGE_BUSY,       /* between daemons: somebody is at work on it */
    MESSAGE_REMOTE,     /* between daemons: another one is its home now; or begin again */
};

/* Every message has this one layout; what a type does not use is zero. In answers name[] are places:
 * BRANCH/MIRROR/LEAF for an entry in a branch, empty for the trunk. */
struct message {
    uint16_t type;
    uint16_t flags;
    uint32_t tag; /* the answer carries its request's */
    int32_t result;
    struct dirid dir[2];
    struct dirid child;
    struct record_entry entry[2];
    const char *name[2]; /* not terminated */
    const char *text;
    uint16_t name_length[2];
    uint16_t text_length;
};

#define MESSAGE_FIXED 104
#define MESSAGE_TEXT_MAX 4095
#define MESSAGE_SHORT (MESSAGE_FIXED + 2 * RECORD_NAME_MAX) /* the longest without text */

/* The size of a message as bytes. */
static inline size_t message_size(const struct message *m)
{
    return (size_t)MESSAGE_FIXED + m->name_length[0] + m->name_length[1] + m->text_length;
}

/* Writes it; the size, or 0 if it does not fit or a length is out of range. */
size_t message_encode(uint8_t *to, size_t size, const struct message *);
/* Reads it; names and text point into `bytes`. 0; -EPROTO: another version; -EBADMSG: malformed (sizes, type,
 * a name that is empty where it must not be, holds a slash or a zero, or is `.` or `..`). */
int message_decode(struct message *, const uint8_t *bytes, size_t size);
