/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/claim.h"

#include <errno.h>
#include <stdio.h>

#include "base/hook.h"
#include "shim/root_of.h"

#define TRIES_MAX 1000

/* What was found there and is unknown all the same, was removed meanwhile, and the next one that is found is another. */
int claim_know(struct target *t)
{
    struct statx stat;
    int code = 0;
    for (int tries = 0; code == 0 && !t->found.known && tries < TRIES_MAX; tries++) {
        code = (int)TARGET_CALL(t, sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat));
        if (code == 0)
            code = target_look(t);
        if (code == 0 && !t->found.known)
            HOOK("still-unknown");
    }
    return code == 0 && !t->found.known ? -EIO : code;
}

int claim_name(struct target *t, uint16_t type)
{
    struct message hold = {.type = type};
    int code = target_hold(t, &hold);
    const struct message *answer = &t->scratch->answer.message;
    if (code != 0)
        return code;
    code = target_place_at(t, answer->answer.place[0].text, answer->answer.place[0].length);
    if (code == 0)
        code = target_pin(t);
    if (code != 0)
        target_withdraw(t);
    return code;
}

int claim_found(struct target *t)
{
    int code;
    do {
        code = claim_know(t);
        if (code == 0)
            code = claim_name(t, MESSAGE_UNLINK);
        if (code == MESSAGE_ABSENT) {
            HOOK("claim-absent");
            const int looked = target_look(t);
            code = looked == 0 ? MESSAGE_ABSENT : looked;
        }
    } while (code == MESSAGE_ABSENT);
    return code;
}

/* The name is held: it is given back where that directory is not there any more. */
static int claim_same_directory(struct target *t, struct dirid id)
{
    struct statx stat;
    int code = root_of_stat(t->root, t->real_at, t->real_path, &stat);
    if (code == -ENOENT || (code == 0 && !dirid_equal(dirid_of(&stat), id)))
        code = -ESTALE;
    if (code != 0)
        target_withdraw(t);
    return code;
}

int claim_name_of_directory(struct target *t, struct dirid id)
{
    const int code = claim_found(t);
    return code == 0 ? claim_same_directory(t, id) : code == -ENOENT ? -ESTALE : code;
}

/* It is not served, has no mirror, and to its parent is a name like any other; or it had gone. What is there is seen once the
 * name is held: another directory has the same identity where the file system uses an inode number again within a tick of its
 * clock, and where that one is served: MESSAGE_NOT_LOADED. */
static int claim_unserved(struct target *t, struct dirid id)
{
    struct names_root *root;
    HOOK("claim-unserved");
    int code = claim_name_of_directory(t, id);
    if (code == 0 && (code = root_of_directory(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, &root, &id, NULL)) != 0)
        target_withdraw(t);
    return code > 0 ? MESSAGE_NOT_LOADED : code;
}

/* Sends RMDIR for the directory that the target names; loads it if need be. */
int claim_directory(struct target *t, const struct statx *stat)
{
    HOOK("hold");
    struct message close = {.type = MESSAGE_RMDIR, .rmdir.child = dirid_of(stat)};
    close.dir = t->dir;
    close.name = message_text(t->name, t->length);
    for (int i = 0; i < 100; i++) {
        struct names_root *root;
        struct dirid id = {0};
        int code = names_hold(t->root, &close, &t->scratch->answer, &t->scratch->hold);
        if (code != 0)
            return code;
        if ((code = t->scratch->answer.message.result) == 0) {
            target_refresh(t);
            return claim_same_directory(t, close.rmdir.child);
        }
        request_let_go(&t->scratch->hold);
        if (code != MESSAGE_NOT_LOADED)
            return code;
        code = target_load(t); /* the parent; then the directory itself */
        if (code == 0)
            code = root_of_directory(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, &root, &id, NULL);
        if (code > 0)
            code = dirid_equal(id, close.rmdir.child) ? MESSAGE_NOT_LOADED : -ESTALE; /* removed since, and another one made */
        else if (code == 0)
            code = claim_unserved(t, close.rmdir.child);
        if (code != MESSAGE_NOT_LOADED)
            return code;
    }
    return -EIO;
}
