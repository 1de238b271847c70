/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/create.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "shim/root_of.h"

/* The loader goes from a program to the shared objects it needs without passing any wrapper, so they cannot be
 * moved to the trunk when it comes. */
bool create_is_for_loader(const char *name, size_t length)
{
    for (size_t at = 1; at + 3 <= length; at++)
        if (memcmp(name + at, ".so", 3) == 0 && (at + 3 == length || name[at + 3] == '.'))
            return true;
    return false;
}

int create_reserve(struct target *t, uint8_t type, uint16_t flags)
{
    if (create_is_for_loader(t->name, t->length))
        flags |= MESSAGE_TRUNK;
    struct message reserve = {.type = MESSAGE_CREATE, .flags = flags, .create.entry = {.type = type, .state = RECORD_PENDING}};
    int code = target_hold(t, &reserve);
    const struct message *answer = &t->scratch->answer.message;
    if (code == 0) {
        const struct message_text *place = &answer->answer.place[0];
        code = place->length > 0 ? target_place_new(t, place->text, place->length) : target_place_at(t, place->text, 0);
        if (code == 0)
            code = target_pin(t);
        if (code != 0)
            target_withdraw(t);
        return code;
    }
    if (code == TARGET_ASTRAY)
        return TARGET_RETRY;
    if (code != MESSAGE_EXISTS)
        return code < 0 ? code : -EIO;
    code = t->unasked ? target_learn(t, code) : target_look(t);
    if (code == 0 && t->found.known && target_parent_has_changed(t))
        code = target_replaced(t);
    return code == 0 || code == TARGET_ASTRAY ? TARGET_RETRY : code;
}

static void create_commit_as(struct target *t, const struct statx *stat, bool made)
{
    struct message confirm = {
        .type = MESSAGE_COMMIT,
        .commit.entry = {.type = (uint8_t)IFTODT(stat->stx_mode), .state = RECORD_LIVE, .ino = stat->stx_ino}};
    if (made && confirm.commit.entry.type == DT_DIR)
        confirm.commit.child = dirid_of(stat);
    target_tell(t, &confirm);
}

void create_commit(struct target *t, const struct statx *stat)
{
    create_commit_as(t, stat, true);
}

void create_commit_found(struct target *t, const struct statx *stat)
{
    create_commit_as(t, stat, false);
}

void create_commit_unseen(struct target *t, uint8_t type)
{
    create_commit_as(t, &(struct statx){.stx_mode = (uint16_t)DTTOIF(type)}, false);
}

void create_commit_there(struct target *t, uint8_t type)
{
    struct statx stat;
    const int code = root_of_stat(t->root, t->real_at, t->real_path, &stat);
    if (code == 0)
        create_commit(t, &stat);
    else if (code == -ENOENT)
        target_withdraw(t);
    else
        create_commit_unseen(t, type);
}
