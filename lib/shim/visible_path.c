/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/visible_path.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/sys.h"
#include "base/text.h"
#include "shim/process.h"
#include "shim/root_of.h"
#include "shim/scratch.h"
#include "union/layout.h"

/* Could these bytes, of which there may be more, be a place below a root's `.shunt`? Nearly no link is. */
static bool visible_path_begins_like(const char *root, const char *text, size_t length, bool is_cut)
{
    static const char own[] = "/" LAYOUT_OWN "/";
    size_t root_length = root[1] == '\0' ? 0 : strlen(root);
    size_t whole = root_length + sizeof own - 1;
    if (length <= root_length + 1 || (length < whole && !is_cut))
        return false;
    size_t own_length = length < whole ? length - root_length : sizeof own - 1;
    return memcmp(text, root, root_length) == 0 && memcmp(text + root_length, own, own_length) == 0;
}

static struct names_root *visible_path_root_like(const char *text, size_t length, bool is_cut)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        if (visible_path_begins_like(shim_state.roots[i].path, text, length, is_cut))
            return &shim_state.roots[i];
    return NULL;
}

/* A link that a program made may say what it likes. Not inlined: what it needs is not on the stack of every call that reads
 * one. */
__attribute__((noinline)) bool visible_path_is_of_proc(int at, const char *path)
{
    const unsigned flags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
    struct statx link, proc;
    struct statfs fs;
    return SYS2(SYS_statfs, "/proc", &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC &&
           sys_statx(AT_FDCWD, "/proc", 0, STATX_TYPE, &proc) == 0 && sys_statx(at, path, flags, STATX_TYPE, &link) == 0 &&
           names_device(&link) == names_device(&proc);
}

/* The directory that the mirror belongs to, in `to`. False: it is not known, or not there any more. */
static bool visible_path_directory_of(struct names_root *root, const struct layout_place *place, struct request_answer *answer,
                                      struct text *to)
{
    const struct message question = {.type = MESSAGE_PLACE, .name = message_text(place->mirror, place->mirror_length)};
    const struct message *m = &answer->message;
    const struct message_text *path = &m->text_answer.text;
    struct statx stat;
    if (place->mirror_length >= RECORD_MIRROR_MAX || !names_is_attached(root) || names_ask(root, &question, answer) != 0 ||
        m->result != 0)
        return false;
    text_add(to, root->path[1] == '\0' ? "" : root->path);
    if (path->length != 1 || path->text[0] != '.') {
        text_add(to, "/");
        text_bytes(to, path->text, path->length);
    }
    return text_ok(to) && root_of_stat(root, AT_FDCWD, to->length > 0 ? to->at : "/", &stat) == 0 &&
           dirid_equal(dirid_of(&stat), m->dir);
}

/* `from` as the application knows it, in scratch->text[1]. False: it is left as it is. */
static bool visible_path_map(struct scratch *scratch, struct names_root *root, const char *from, struct text *to)
{
    struct layout_place place;
    text_init(to, scratch->text[1], PATH_MAX);
    if (!layout_place(&place, root->path, from) || !visible_path_directory_of(root, &place, &scratch->answer, to))
        return false;
    text_add(to, "/");
    text_add(to, place.name);
    return text_ok(to);
}

static ssize_t visible_path_map_link(struct names_root *root, struct scratch *scratch, int at, const char *path, char *buffer,
                                     size_t size, ssize_t length)
{
    struct text to;
    ssize_t whole = sys_readlinkat(at, path, scratch->text[0], PATH_MAX);
    if (whole < 0)
        return length;
    scratch->text[0][whole] = '\0';
    if (!visible_path_map(scratch, root, scratch->text[0], &to))
        return length;
    size_t fits = to.length < size ? to.length : size;
    memcpy(buffer, to.at, fits);
    if (fits < (size_t)length) /* a program that cleared its buffer takes this for the end of the text */
        memset(buffer + fits, 0, (size_t)length - fits);
    return (ssize_t)fits;
}

ssize_t visible_path_link(int at, const char *path, char *buffer, size_t size, ssize_t length)
{
    if (length <= 0 || !process_has_roots())
        return length;
    struct names_root *root = visible_path_root_like(buffer, (size_t)length, (size_t)length == size);
    if (root == NULL || !visible_path_is_of_proc(at, path))
        return length;
    struct scratch *scratch = scratch_take();
    if (scratch == NULL)
        return length;
    length = visible_path_map_link(root, scratch, at, path, buffer, size, length);
    scratch_give(scratch);
    return length;
}

bool visible_path_path(char path[PATH_MAX])
{
    struct names_root *root = visible_path_root_like(path, strlen(path), false);
    struct scratch *scratch = root != NULL ? scratch_take() : NULL;
    struct text to;
    if (scratch == NULL)
        return false;
    bool mapped = visible_path_map(scratch, root, path, &to);
    if (mapped)
        memcpy(path, to.at, to.length + 1);
    scratch_give(scratch);
    return mapped;
}

bool visible_path_of_mirror(struct names_root *root, const char *mirror, char path[PATH_MAX])
{
    const struct layout_place place = {.mirror = mirror, .mirror_length = strlen(mirror)};
    struct scratch *scratch = scratch_take();
    struct text to;
    if (scratch == NULL)
        return false;
    text_init(&to, path, PATH_MAX);
    const bool is_known = visible_path_directory_of(root, &place, &scratch->answer, &to);
    scratch_give(scratch);
    return is_known;
}
