/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* realpath and its kin: a file in a branch has the path it has in the trunk. The kernel and libc resolve the
 * parent. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"
#include "shim/wrap.h"
#include "shim/visible_path.h"

/* The parent's canonical text with the name after it. 0 or -errno. */
static int wrap_canon_canonical(struct target *t, char *to)
{
    struct text text;
    struct statx stat;
    int code = (int)TARGET_CALL(t, sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat));
    if (code != 0)
        return code;
    char *parent = t->scratch->text[0];
    memcpy(parent, t->path, t->parent_length);
    strcpy(parent + t->parent_length, ".");
    if (REAL(realpath)(parent, to) == NULL)
        return -errno;
    text = (struct text){.at = to, .size = PATH_MAX, .length = strlen(to)};
    if (text.length > 1)
        text_add(&text, "/");
    text_bytes(&text, t->name, t->length);
    return text_ok(&text) ? 0 : -ENAMETOOLONG;
}

static char *wrap_canon_give(const char *from, char *to)
{
    return to != NULL ? strcpy(to, from) : strdup(from);
}

/* libc resolves text of any length, so long as what it means is short: repeated slashes are taken out. */
static const char *wrap_canon_shortened(const char *path, char *to)
{
    size_t length = 0;
    if (path == NULL || strnlen(path, PATH_MAX) < PATH_MAX)
        return path;
    for (; *path != '\0' && length + 1 < PATH_MAX; path++)
        if (path[0] != '/' || path[1] != '/')
            to[length++] = *path;
    to[length] = '\0';
    return to;
}

static int wrap_canon_resolve_in(struct scratch *room, const char *path, char *to, char **answer, unsigned want)
{
    struct target t;
    int how = target_find(&t, AT_FDCWD, wrap_canon_shortened(path, room->text[0]), TARGET_FOLLOW | want);
    if (how == TARGET_FOREIGN || how == TARGET_ROOT)
        return 0;
    *answer = NULL;
    if (how < 0)
        return wrap_answer(how), 1;
    if (!target_is_away(&t)) {
        target_done(&t);
        return 0;
    }
    int code = wrap_canon_canonical(&t, room->real);
    target_done(&t);
    *answer = code == 0 ? wrap_canon_give(room->real, to) : (wrap_answer(code), NULL);
    return 1;
}

/* 1: ours, *answer is set (NULL with errno); 0: libc's business. */
static int wrap_canon_resolve(const char *path, char *to, char **answer, unsigned want)
{
    struct scratch *room = scratch_take();
    if (room == NULL) {
        errno = ENOMEM;
        *answer = NULL;
        return 1;
    }
    const int ours = wrap_canon_resolve_in(room, path, to, answer, want);
    scratch_give(room);
    return ours;
}

/* libc goes through links of /proc by their text, which names the real place. */
static char *wrap_canon_shown(char *resolved, char *to)
{
    int saved = errno;
    struct scratch *room = resolved != NULL && strlen(resolved) < PATH_MAX ? scratch_take() : NULL;
    if (room == NULL)
        return resolved;
    strcpy(room->real, resolved);
    if (visible_path_path(room->real)) {
        if (to == NULL)
            free(resolved);
        errno = saved;
        resolved = wrap_canon_give(room->real, to);
    }
    scratch_give(room);
    return resolved;
}

/* A link of /proc whose text names something that libc did not find: the text may mean a name of ours. 1 and
 * 0 as resolve. */
static int wrap_canon_resolve_text(const char *path, char *to, char **answer)
{
    struct scratch *room = visible_path_is_of_proc(AT_FDCWD, path) ? scratch_take() : NULL;
    if (room == NULL)
        return 0;
    ssize_t length = readlink(path, room->real, PATH_MAX - 1);
    room->real[length > 0 ? length : 0] = '\0';
    const int ours = room->real[0] == '/' ? wrap_canon_resolve(room->real, to, answer, TARGET_ALIAS) : 0;
    scratch_give(room);
    return ours;
}

WRAPPER char *realpath(const char *restrict path, char *restrict to)
{
    char *answer;
    WRAPPER_LAUNDER(path);
    if (!process_has_roots())
        return REAL(realpath)(path, to);
    if (wrap_canon_resolve(path, to, &answer, 0))
        return answer;
    answer = REAL(realpath)(path, to);
    if (answer == NULL && errno == ENOENT && path != NULL && !wrap_canon_resolve_text(path, to, &answer))
        wrap_canon_resolve(path, to, &answer, TARGET_ALIAS);
    return wrap_canon_shown(answer, to);
}

char *__realpath_chk(const char *path, char *to, size_t room);
WRAPPER char *__realpath_chk(const char *path, char *to, size_t room)
{
    if (!process_has_roots() || room < PATH_MAX)
        return REAL(__realpath_chk)(path, to, room);
    return realpath(path, to);
}

WRAPPER char *canonicalize_file_name(const char *path)
{
    return realpath(path, NULL);
}
