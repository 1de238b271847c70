/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What the daemon is asked and told of a target. */

#include "shim/target.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/hook.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/parent_guess.h"
#include "shim/root_of.h"

#define TRIES_MAX 1000

/* BRANCH/MIRROR/LEAF, as answers tell a place, taken apart as the index would have it. */
static bool target_ask_take_place(struct view_found *found, const char *place, size_t length)
{
    const char *mirror = memchr(place, '/', length);
    const char *leaf = mirror != NULL ? memrchr(place, '/', length) : NULL;
    if (leaf == mirror || (size_t)(mirror - place) >= sizeof found->branch ||
        (size_t)(leaf - mirror - 1) >= sizeof found->dir.mirror)
        return false;
    struct text branch, name;
    text_init(&branch, found->branch, sizeof found->branch);
    text_bytes(&branch, place, (size_t)(mirror - place));
    text_init(&name, found->dir.mirror, sizeof found->dir.mirror);
    text_bytes(&name, mirror + 1, (size_t)(leaf - mirror - 1));
    return true;
}

int target_learn(struct target *t, int result)
{
    const struct message *answer = &t->scratch->answer.message;
    t->found.known = result == MESSAGE_EXISTS;
    t->found.entry = answer->answer.entry[0];
    return t->found.known && t->found.entry.branch != 0 &&
                   !target_ask_take_place(&t->found, answer->answer.place[0].text, answer->answer.place[0].length)
               ? -EIO
               : 0;
}

/* Another directory may be where the path leads by now (-ESTALE). In between there was nothing, and so nothing is there. */
static int target_ask_gone(int code)
{
    return code == -ESTALE ? -ENOENT : code;
}

/* A descriptor leads to it all the same. */
static bool target_ask_is_removed(int at, const char *path)
{
    struct statx stat;
    const int code = sys_statx(at, path, path[0] == '\0' ? AT_EMPTY_PATH : 0, STATX_NLINK, &stat);
    return code == -ESTALE || code == -ENOENT || (code == 0 && stat.stx_nlink == 0);
}

/* -ENOENT: it was removed, of which no daemon need have heard. -ESTALE: another directory is there, which is not to be told as
 * the place of this one. A coordinator that has it loaded there believes that without a look, and each call would find no leaf
 * in it, and load it again. */
int target_load(struct target *t)
{
    char *text = t->scratch->text[0];
    struct names_root *root;
    if (t->pin < 0 && target_parent_has_changed(t))
        return -ESTALE;
    if (BROKEN("load-fails"))
        return -ENOMEM;
    if (path_parent_text(t->path, t->parent_length, text) != 0)
        return -ENAMETOOLONG;
    const int at = t->pin >= 0 ? t->pin : t->at;
    const char *path = t->pin >= 0 ? "" : text;
    if (target_ask_is_removed(at, path))
        return -ENOENT;
    int code = root_of_place(t->scratch, at, path, t->root->device, t->dir, &root);
    return code == 1 ? 0 : code >= 0 ? -ENOENT : code;
}

static void target_ask_address(const struct target *t, struct message *message)
{
    message->dir = t->dir;
    message->name = message_text(t->name, t->length);
}

static bool target_ask_gives_leave(const struct message *message, int result)
{
    return result == 0 || (message->type == MESSAGE_RENAME && result == MESSAGE_EXISTS);
}

/* While the daemon is at work: it stays unseen if the guess was wrong. */
static void target_ask_see_parent(void *context)
{
    struct target *t = context;
    const bool opens = t->pin < 0 && target_pin_is_likely();
    t->unseen = t->unseen && (opens ? target_pin_see(t) : target_parent_has_changed(t));
    if (t->unseen)
        parent_guess_forget();
}

static int target_ask_for_leave(struct target *t, struct message *message, struct request_hold *hold)
{
    hold->meanwhile = t->unseen ? target_ask_see_parent : NULL;
    hold->context = t;
    int code = names_hold(t->root, message, &t->scratch->answer, hold);
    hold->meanwhile = NULL; /* others ask with the same scratch */
    return code;
}

int target_replaced(struct target *t)
{
    t->unseen = t->want & TARGET_LATER;
    return t->unseen ? TARGET_ASTRAY : -ENOENT;
}

/* A directory that is at another place than the daemon thought is loaded again, i.e. told its place. */
static int target_ask_ask(struct target *t, struct target *other, struct message *message, struct request_hold *hold)
{
    target_ask_address(t, message);
    for (int i = 0; i < TRIES_MAX; i++) {
        int code = hold != NULL ? target_ask_for_leave(t, message, hold) : names_ask(t->root, message, &t->scratch->answer);
        if (code != 0) /* where the words do not lead to the directory, that is nothing to the caller */
            return hold != NULL && t->unseen ? TARGET_ASTRAY : code;
        code = t->scratch->answer.message.result;
        const bool astray = hold != NULL && t->unseen;
        if (hold != NULL && !target_ask_gives_leave(message, code))
            request_let_go(hold);
        else if (astray)
            target_withdraw(t);
        if (astray)
            return TARGET_ASTRAY;
        if (code != MESSAGE_NOT_LOADED)
            return code;
        code = target_load(t);
        if (code == 0 && other != NULL)
            code = target_load(other);
        if (code == -ESTALE && hold != NULL)
            return target_replaced(t);
        if (code != 0)
            return code;
    }
    return -EIO;
}

int target_ask_here(struct target *t, struct message *message)
{
    return target_ask_ask(t, NULL, message, NULL);
}

int target_ask(struct target *t, struct message *message)
{
    return target_ask_gone(target_ask_here(t, message));
}

int target_hold(struct target *t, struct message *message)
{
    HOOK("hold");
    return target_ask_ask(t, NULL, message, &t->scratch->hold);
}

int target_hold_both(struct target *t, struct target *other, struct message *message)
{
    HOOK("hold");
    return target_ask_ask(t, other, message, &t->scratch->hold);
}

void target_tell(struct target *t, struct message *message)
{
    target_ask_address(t, message);
    names_tell_end(t->root, message, &t->scratch->hold);
}

void target_end(struct target *t, struct message *message)
{
    target_ask_address(t, message);
    names_end(t->root, message, &t->scratch->hold);
}

void target_withdraw(struct target *t)
{
    struct message withdraw = {.type = MESSAGE_ABORT};
    target_ask_address(t, &withdraw);
    names_end(t->root, &withdraw, &t->scratch->hold);
}
