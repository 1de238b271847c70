/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What is known of a target's name now: by the index, else by its home. */

#include "shim/target.h"

#include <errno.h>
#include <fcntl.h>

#include "shim/remote.h"
#include "shim/root_of.h"

#define TRIES_MAX 1000

int target_in_directory(struct target *t, struct names_root *root, struct dirid dir, int fd, const char *name, size_t length)
{
    struct statx stat;
    *t = (struct target){.root = root, .dir = dir, .pin = fd, .at = fd, .path = name, .name = name, .length = (uint32_t)length};
    int code = root_of_identify(fd, "", AT_EMPTY_PATH, &stat);
    t->mount = code == 0 ? mount_of(&stat) : 0;
    if (code == 0 && (t->scratch = scratch_take()) == NULL)
        code = -ENOMEM;
    return code;
}

/* The index may be that of another daemon by now, or have been begun again: then the directory is loaded again. Where the
 * words do not lead to it any more, nothing is known of the name. */
static int target_look_up(struct target *t, unsigned want)
{
    int code = names_find(t->root, t->dir, t->name, t->length, &t->found), loaded = 0;
    for (int i = 0; code == 0 && loaded == 0 && !root_of_is_loaded(&t->found) && i < TRIES_MAX; i++)
        if ((loaded = target_load(t)) == 0)
            code = names_find(t->root, t->dir, t->name, t->length, &t->found);
    if (target_cannot_tell(loaded))
        return loaded;
    t->unasked = code == 0 && (want & TARGET_ASKS) && !t->slash && remote_is(t);
    if (code == 0 && !t->unasked)
        code = remote_look(t, want, true);
    return code == -ESTALE ? -ENOENT : code; /* in between there was nothing, and so nothing is there */
}

int target_look(struct target *t)
{
    return target_look_up(t, 0);
}

int target_look_here(struct target *t)
{
    return target_look_up(t, TARGET_ASKS);
}

int target_peek(struct target *t)
{
    return target_look_up(t, TARGET_PEEKS);
}

/* The index may say no more than before: a name that was only predicted stays pending there. */
int target_settled(struct target *t)
{
    struct message lookup = {.type = MESSAGE_LOOKUP};
    if (!t->found.known || t->found.entry.state == RECORD_LIVE)
        return 0;
    int code = target_ask(t, &lookup);
    return code < 0 ? code : target_learn(t, code);
}
