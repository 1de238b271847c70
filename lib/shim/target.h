/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* From the words of a call to the name it is about: which directory under which root, which name, what is
 * known of it.
 *
 * The kernel resolves the parent (statx of `parent/.`): symbolic links, `..`, bind mounts and search
 * permission are its business. Whether that directory lies under a
 * root is told by its identity (root_of.h). What comes first, for most paths alone, is a look at the text (prefilter.h).
 *
 * target.c finds it; target_place.c: where it really is; target_ask.c: what the daemon is asked and told of it;
 * target_recheck.c: a call on it has failed. */

#include <errno.h>
#include <stdbool.h>

#include "names/names.h"
#include "path/path.h"
#include "shim/dead_end.h"
#include "shim/fdcache.h"
#include "shim/process.h"
#include "shim/scratch.h"

enum target_how {
    TARGET_FOREIGN = 0, /* not ours: the original call with the original arguments */
    TARGET_MANAGED = 1, /* ours: operate on the target, then target_done */
    TARGET_ROOT = 2,    /* the root itself, by its text; otherwise like COLD */
};

enum target_want {
    TARGET_FOLLOW = 1,   /* the operation follows a symbolic link at the end */
    TARGET_MAKES = 2,    /* it makes, removes or replaces a name: look for aliases of a root even if the text is foreign */
    TARGET_ALIAS = 4,    /* the native call said ENOENT: look for aliases */
    TARGET_ASKS = 8,     /* the operation asks the home of the name anyway: one elsewhere is not asked before */
    TARGET_LATER = 16,   /* next to TARGET_ASKS: it makes a name, and which directory that is in may be guessed until
                          * target_hold, which may answer TARGET_ASTRAY (parent_guess.h) */
    TARGET_LOOKS = 32,   /* it does nothing but TARGET_CALL, which finds out by itself whether a file in a branch is still
                          * where it was when this node last asked: that is not looked at before */
    TARGET_PEEKS = 64,   /* its creator is not waited for: it is pending (target_peek); what is not pending is not looked at */
    TARGET_NESTED = 128, /* it looks for a file in a branch that is in the way of another path; `missing` is set */
};

/* What is known of the parent that the caller's path name. */
enum target_parent { TARGET_PARENT_UNSEEN = 0, TARGET_PARENT_FOREIGN, TARGET_PARENT_OURS };

struct target {
    struct names_root *root;
    struct dirid dir;      /* the parent */
    uint64_t mount;        /* through which it was reached; 0: the kernel does not say */
    const char *real_path; /* where it really is, set by target_place */
    int real_at;           /* ... */
    int at;                /* the caller's path: where the name is in the trunk */
    const char *path;
    const char *name;
    uint32_t length, parent_length; /* below PATH_MAX */
    bool seen : 1;                  /* of the parent scratch->seen says it already (target_first_look) */
    bool beneath : 1;               /* the words say by themselves that it is in a root */
    bool slash : 1;                 /* a slash follows: it must be a directory */
    bool unasked : 1;               /* nothing was known of the name because its home was not asked (TARGET_ASKS) */
    bool unseen : 1;                /* the parent is guessed (TARGET_LATER), or its path leads elsewhere by now (target_pin) */
    bool guessed : 1;               /* where it is was remembered, and is not looked at before (TARGET_LOOKS) */
    bool foreign : 1;               /* ... was not so, and by now its path leads to nothing of ours */
    bool sticky : 1;    /* the parent was seen to be sticky, and others may write it: the kernel protects what is in it */
    bool by_leaf : 1;   /* it is reached from its leaf's descriptor (leaf_pin) */
    bool left_leaf : 1; /* it was not there */
    int leaf;           /* which is that of those that are kept */
    int leaf_pin;       /* the call's own, or -1 */
    int pin;            /* the parent, or -1 (target_pin) */
    char *missing;      /* TARGET_NESTED: where the parent goes that is not there either, as `parent/.` */
    uint16_t want;      /* enum target_want */
    uint8_t parent;     /* enum target_parent */
    uint8_t rechecks;   /* how often the daemon saw what this call did not find */
    struct view_found found;
    struct scratch *scratch;
};

/* The first question of a call: does its path lead to nothing of ours, for certain? It takes little stack, so a call on such a
 * path does, if it has no target in its frame (TARGET_ROOM). What is seen from a descriptor says nothing by its words, and is
 * looked at unless `seen` is NULL; after false *seen is what the look has found, for target_find_further, or NULL. */
bool target_is_foreign(int at, const char *path, unsigned want, struct scratch **seen);
/* The look: does the parent lie beside all roots, and does no link lead on from there? `seen` may be NULL. */
bool target_first_look(int at, const char *path, unsigned want, struct scratch **seen);
/* Gives back what it has found and nobody takes. */
void target_give_seen(struct scratch *);
/* Looks at the parent whose text is in scratch->text[0], from a descriptor of it if that will be needed: as root_of_see. */
int target_see_parent(struct scratch *, int at, bool may_pin);
/* Is there no name in it that could be ours? Too long a one the native call refuses, too. */
bool target_has_no_name(const struct path_parts *);
/* Is the text itself foreign? It can be read, and is not empty. An alias of a root may be, too (TARGET_MAKES, TARGET_ALIAS). */
bool target_has_foreign_words(int at, const char *path);
/* The same as target_is_foreign of such a text, also of one that is seen from a descriptor. */
bool target_text_is_foreign(int at, const char *path, unsigned want);
/* After false; takes `seen`. Answers enum target_how, or -errno (fail closed, out of memory, ELOOP). After anything but
 * TARGET_MANAGED there is nothing to give back. */
int target_find_further(struct target *, int at, const char *path, unsigned want, struct scratch *seen);
/* Both. */
static inline int target_find(struct target *t, int at, const char *path, unsigned want)
{
    struct scratch *seen = NULL;
    return target_is_foreign(at, path, want, &seen) ? TARGET_FOREIGN : target_find_further(t, at, path, want, seen);
}
/* A target in the frame of the function that has this, from there on. */
#define TARGET_ROOM ((struct target *)__builtin_alloca(sizeof(struct target)))
/* The same as target_find, with the target (T), a pointer that is set, in that room where the path may be ours. SEEN: a
 * struct scratch * that is NULL, for its use alone. */
#define TARGET_FIND(T, SEEN, AT, PATH, WANT)                                                                                   \
    (target_is_foreign(AT, PATH, WANT, &(SEEN)) ? TARGET_FOREIGN : target_find_further((T) = TARGET_ROOM, AT, PATH, WANT, SEEN))
/* The same as target_find of a text that can be read: it is the library's own, or this very call has found out. */
int target_find_text(struct target *, int at, const char *path, unsigned want);
/* The two paths of a call, whose second is to be made. */
struct target_pair {
    bool is_first_foreign; /* for certain; else nothing is known of the second, and if so, the second is not */
    struct scratch *seen;  /* of the one that is not: as of target_is_foreign */
};
/* Are both foreign? Asked once where they have one parent, by their words. After true there is nothing to give back. */
bool target_are_foreign(struct target_pair *, int at, const char *path, unsigned want, int second_at, const char *second);
/* After false each in its turn, as target_find. They take what was seen. If the second names its parent by the same words as
 * the first, neither the kernel nor the index is asked for that again. The first one was zero before it was looked for. */
int target_find_first(struct target *, const struct target_pair *, int at, const char *path, unsigned want);
int target_find_second(struct target *, const struct target_pair *, const struct target *first, int at, const char *path,
                       unsigned want);
/* After a native call has said ENOENT, so that the path can be read: does it lead to nothing of ours? False: perhaps it does;
 * target_find_alias is to follow. Takes little stack, too. */
static inline bool target_is_dead_end(int at, const char *path, unsigned want)
{
    /* Some calls take NULL for the descriptor itself. */
    return shim_state.process.count == 0 || path == NULL || path[0] == '\0' || dead_end(at, path, want);
}
static inline int target_find_alias(struct target *t, int at, const char *path, unsigned want)
{
    return target_find_further(t, at, path, want | TARGET_ALIAS, NULL);
}
/* The same words again. After anything but TARGET_MANAGED there is nothing to give back. */
int target_find_again(struct target *, unsigned want);
void target_done(struct target *);

/* Sets real_at and real_path from what was found: the caller's own path in the trunk, or a full path in a
 * branch. 0 or -ENAMETOOLONG. */
int target_place(struct target *);
/* The same for a place as the daemon answers it (BRANCH/MIRROR/LEAF, or empty for the trunk). */
int target_place_at(struct target *, const char *place, size_t length);
/* The same for a call that makes the name, which does not go by what this node's kernel remembers of it, but where that
 * remembers a file: after -EEXIST target_refresh is to follow. */
int target_place_new(struct target *, const char *place, size_t length);
/* real_path without the slashes after it, which would lead through a link: in scratch->real, where it may be already. */
const char *target_without_slash(struct target *);
/* What this node's kernel remembers of the names in real_path's directory may be out of date (names_are_kept): it looks them up
 * again after this. target_place and target_place_at do it. */
void target_refresh(struct target *);
/* This node's kernel has not found the file of a name that is there, or whose operation is under way. May it be there all the
 * time? It is where it is being replaced, of which NFS says ENOENT even if it remembers no names; and it may be where the
 * kernel goes by what it remembers (names_are_kept). */
bool target_may_be_missed(const struct target *);
/* The kernel has said EXDEV: one of the places is in a branch, which is reached by the root's own path, and
 * the other in the trunk, which was reached by another mount. Reaches the trunk's by the root's path, too.
 * False: it is not that. */
bool target_place_by_root(struct target *);
/* The same place in a branch, named from nearby if that is quicker (fdcache.h): after target_place or target_place_at, for
 * calls that take real_at and real_path. */
void target_come_near(struct target *);
/* The same, or from its leaf, where that is quicker, for calls on a file that is there, and such that make or remove one and
 * ask target_leaf_holds after that: target_goes_on is to follow. */
void target_come_to_leaf(struct target *);
/* The same for a call that takes both: the other comes there, too, if it is in that leaf, else near. target_goes_on is to be
 * asked for the first. */
void target_come_to_one_leaf(struct target *, struct target *other);
/* Before the kernel gives the program a descriptor: that is the lowest free number, so those that the call has for itself go
 * out of its way. The program may count on it (close(0), then open). */
void target_yield_number(struct target *);
/* It said EMFILE: the parent's descriptor may have been the last one. True: that is given back, and the path stays. */
bool target_yield_pin(struct target *);
/* Was a file made or removed where its path leads? False: perhaps not, since its node was lost before, and the leaf is another
 * branch's. */
bool target_leaf_holds(const struct target *);
/* After such a call. True: it is not in that leaf any more; the call is to be made once more. */
bool target_goes_on(struct target *, long result);
/* The same after a call that does nothing but look. True also if it was another directory that was looked into. */
bool target_looks_again(struct target *, long result);
/* What is held in a directory is done in that one, be it renamed or exchanged in between, or another one by now where the path
 * begins, to which another thread has gone. Before a change of a name whose place is the trunk: opens the parent, and has
 * real_at and real_path name it from there. 0; or TARGET_RETRY: the path leads to another directory by now, and
 * target_follow_again is to follow. Where no descriptor is to be had it is looked at, and the path stays. */
int target_pin(struct target *);
/* A process that changes names of the trunk only has their parents opened when it looks for them: then they are looked at
 * once. */
bool target_pin_is_likely(void);
/* The same of both names of one call, those in the trunk. */
int target_pin_both(struct target *, struct target *other);
/* Opens the parent, if its path leads there still. True: it does not, as target_parent_has_changed says. */
bool target_pin_see(struct target *);
/* The same wherever the name is now; where it is in the trunk is told in *at and *path. */
int target_pin_in_trunk(struct target *, int *at, const char **path);
/* After TARGET_RETRY: if the path leads elsewhere, follows it again. As target_find; of what is not ours the native call is to
 * be made. */
int target_follow_again(struct target *);
/* Where an operation is under way on the name: waits until it has ended, and looks it up again. 0 or -errno. */
int target_settled(struct target *);
/* A name in a directory of a root that is open, and stays so: it is seen from there, whatever becomes of the directory's path.
 * 0, and the scratch is to be given back (scratch_give), nothing else; or -errno. */
int target_in_directory(struct target *, struct names_root *, struct dirid, int fd, const char *name, size_t length);
/* Of what a look or a question came to: nobody knows what is there, so the call fails with that. Not that nothing is there, or
 * that the words lead elsewhere. */
static inline bool target_cannot_tell(long code)
{
    return code < 0 && code != -ENOENT && code != -ESTALE;
}
/* Looks the name up again. 0 or -errno. */
int target_look(struct target *);
/* The same, but another daemon is not asked (unasked). */
int target_look_here(struct target *);
/* The same, but a new name that is about to be made is pending, whichever its home is, and not waited for. */
int target_peek(struct target *);
/* The same for what its home has just said of it: MESSAGE_EXISTS (and where, in scratch->answer) or MESSAGE_ABSENT. */
int target_learn(struct target *, int result);
/* Is it known, and in a branch? */
static inline bool target_is_away(const struct target *t)
{
    return t->found.known && t->found.entry.branch != 0;
}

/* An operation on a file that exists ended with `*result`. True: what was known is out of date, try it again
 * (at a new target_place). A file that turned up in the trunk is adopted. Where nobody can say what became of it, the
 * result is that error. */
bool target_recheck(struct target *, long *result);
/* Was real_path in a branch? */
bool target_was_away(const struct target *);
/* The same as target_recheck of what was to be changed at real_path, and was held: if the node whose branch that is was
 * lost, the branch has another name now. Where nothing was there, and that is all that is known, a few times. */
bool target_has_moved(struct target *, long *result);

/* A program without the shim may have put something of another type in the place of what is known, or nothing: then the index
 * is told. Is something else known by now? It costs a look, and is for what would fail because of the type. */
bool target_was_replaced(struct target *);

/* The result of a call. -ESTALE: what it was on has gone since, from its server (NFS) or as this node's daemon knows it;
 * natively nothing would be there, -ENOENT. Of a root that has gone itself it is said as it is. */
long target_gone(const struct target *, long result);
/* A name that the home did not know has been taken out of the trunk by a plain call. If somebody made it
 * there just before, the home knows it by now: it is to forget it. */
void target_forget(struct target *);

/* Runs CALL, which uses (T)->real_at and (T)->real_path, until its answer holds. After it (T) is what the words have led to
 * in the end: in another root perhaps, or foreign. */
#define TARGET_CALL(T, CALL)                                                                                                   \
    ({                                                                                                                         \
        long result_;                                                                                                          \
        do {                                                                                                                   \
            result_ = target_place(T);                                                                                         \
            if (result_ == 0)                                                                                                  \
                result_ = (CALL);                                                                                              \
        } while (target_recheck(T, &result_));                                                                                 \
        result_;                                                                                                               \
    })

/* The same where CALL uses both; TARGET_LOOK: and does nothing but look. */
#define TARGET_CALL_NEAR(T, CALL)                                                                                              \
    TARGET_CALL(T, ({                                                                                                          \
                    long near_;                                                                                                \
                    target_come_to_leaf(T);                                                                                    \
                    do                                                                                                         \
                        near_ = (CALL);                                                                                        \
                    while (target_goes_on(T, near_));                                                                          \
                    near_;                                                                                                     \
                }))
#define TARGET_LOOK(T, CALL)                                                                                                   \
    TARGET_CALL(T, ({                                                                                                          \
                    long near_;                                                                                                \
                    target_come_to_leaf(T);                                                                                    \
                    do                                                                                                         \
                        near_ = (CALL);                                                                                        \
                    while (target_looks_again(T, near_));                                                                      \
                    near_;                                                                                                     \
                }))

/* Asks the daemon about this target: fills dir and name, loads the directory if need be. The answer is in
 * scratch->answer; its result (not negative) or -errno is returned. */
int target_ask(struct target *, struct message *);
/* The same, or -ESTALE: another directory is where the path leads by now. In between there was nothing, which is what
 * target_ask says (-ENOENT). */
int target_ask_here(struct target *, struct message *);
/* The same where 0 (and MESSAGE_EXISTS for a rename) is leave to change the file system; then target_tell or
 * target_withdraw is to follow. TARGET_ASTRAY: the path leads elsewhere than was guessed, find it again. */
#define TARGET_ASTRAY 1000
int target_hold(struct target *, struct message *);
/* ... of a message that is about another target, too. It is the first that holds. */
int target_hold_both(struct target *, struct target *other, struct message *);
/* Tells it how the change went, without an answer. */
void target_tell(struct target *, struct message *);
/* The same, and waits until that is heard. */
void target_end(struct target *, struct message *);
/* Begin again: what was known of the name has changed. No -errno, since the kernel may say EAGAIN itself. */
#define TARGET_RETRY (-4096)
/* Nothing was changed. Waits, since nobody may see what a call that failed had announced: the directory's times, for
 * one. */
void target_withdraw(struct target *);
/* May the caller make and remove names in the parent? */
bool target_parent_is_writable(struct target *);
/* Does it lie on a file system or a mount that is read-only? The kernel says so first. */
bool target_parent_is_read_only(struct target *);
/* Does its path lead to another directory by now, or to none? */
bool target_parent_has_changed(struct target *);
/* Where this node's kernel may remember names that are out of date: it looks those on the way to `text`, a `parent/.`, up again
 * after this. False: it has none such. */
bool target_refresh_way(int at, char *text);
/* The same for a path that is not foreign, if it leads to a directory of a root that has gone. */
void target_refresh_way_to(int at, const char *path);
/* Before the original call follows a path in whose end the process then stands. */
static inline void target_come_to(int at, const char *path)
{
    if (!target_is_foreign(at, path, TARGET_FOLLOW, NULL))
        target_refresh_way_to(at, path);
}
/* Such a way may change just now: a directory is being renamed. */
bool target_way_changes(void);
/* They do, and leave was asked for: a call that makes a file follows them again (TARGET_ASTRAY), for others nothing is there:
 * -ENOENT.
 */
int target_replaced(struct target *);
/* Has the parent loaded: 0 or -errno. */
int target_load(struct target *);

/* Of a path that is not ours, as the other side of a rename: 0 if its parent is there to take or give the
 * name, or the error that the kernel would have before it looks at anything else. What the path ends in is not looked at. */
int target_outside(int at, const char *path);
