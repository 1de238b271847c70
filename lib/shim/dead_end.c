/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/dead_end.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>

#include "base/kernel_abi.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/valgrind.h"
#include "shim/beside.h"
#include "shim/prefilter.h"
#include "shim/process.h"
#include "shim/root_of.h"
#include "shim/scratch.h"
#include "shim/target.h"

/* What is asked of openat2, which not all know: nor does valgrind, and a program that restricts its system calls may be killed
 * for it. */
static const struct open_how dead_end_name = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
/* A directory is opened for writing by nobody: EISDIR says that it is there, and leaves nothing to be closed. */
static const struct open_how dead_end_directory = {.flags = O_WRONLY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};

static bool dead_end_may_ask(void)
{
    return !process_is_filtered() && !valgrind_is_there();
}

/* The name's absolute path, in s->real; NULL: it cannot be told. Its end, where the name begins. */
static char *dead_end_absolute(struct scratch *s)
{
    const size_t before = (size_t)(s->end.name - s->text[0]);
    struct text text;
    text_init(&text, s->real, PATH_MAX);
    if (s->text[0][0] != '/') {
        if (s->end.at != AT_FDCWD || !process_working_directory(s->text[1]))
            return NULL;
        text_add(&text, s->text[1]);
        text_add(&text, "/");
    }
    text_bytes(&text, s->text[0], before);
    const size_t length = text.length;
    text_add(&text, s->end.name);
    return text_ok(&text) && length + sizeof "." <= PATH_MAX ? s->real + length : NULL;
}

/* Is there no link on the way, so that the text is the kernel's, too? Of a name that would be followed: nor in its place, if it
 * is not there. */
static bool dead_end_is_straight(struct scratch *s)
{
    char *name = dead_end_may_ask() ? dead_end_absolute(s) : NULL;
    if (name == NULL || prefilter_text(NULL, s->real) != PATH_FOREIGN)
        return false;
    if (!s->end.follows) {
        memcpy(name, ".", sizeof ".");
        return SYS4(SYS_openat2, AT_FDCWD, s->real, &dead_end_directory, sizeof dead_end_directory) == -EISDIR;
    }
    const int fd = (int)SYS4(SYS_openat2, AT_FDCWD, s->real, &dead_end_name, sizeof dead_end_name);
    s->end.follows = fd != -ENOENT;
    if (fd >= 0)
        sys_close(fd);
    return fd >= 0 || fd == -ENOENT;
}

static void dead_end_show_parent(struct scratch *s)
{
    memcpy(&s->end.kept, s->end.name, sizeof s->end.kept);
    memcpy(s->end.name, ".", sizeof s->end.kept); /* `parent/.` */
}

static void dead_end_show_name(struct scratch *s)
{
    memcpy(s->end.name, &s->end.kept, sizeof s->end.kept);
}

/* Links lead to it: the kernel has its path. */
static bool dead_end_is_placed_beside(struct scratch *s)
{
    dead_end_show_parent(s);
    const int fd = sys_openat(s->end.at, s->text[0], O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    dead_end_show_name(s);
    if (fd < 0)
        return false;
    const bool is_beside = beside_has_place(s, fd);
    sys_close(fd);
    return is_beside;
}

/* The parent is on the device of a root: is it beside it? By the mount that shows the root at its path it has one path, too. */
__attribute__((noinline)) static bool dead_end_is_beside(struct scratch *s)
{
    return beside_is_mount_of_roots(s, names_device(&s->end.seen), mount_of(&s->end.seen)) &&
           (dead_end_is_straight(s) || dead_end_is_placed_beside(s));
}

/* Finds the last part of the text that ends at `end`. False: it is none, or `.` or `..`. */
static inline bool dead_end_find_name(struct scratch *s, char *end)
{
    while (end > s->text[0] && end[-1] != '/')
        end--;
    s->end.name = end;
    return *end != '\0' && (*end != '.' || (end[1] != '\0' && (end[1] != '.' || end[2] != '\0')));
}

/* The name's parent: 1: it is there, and lies under no root; 0: it is not there; -1: it may lie under one, as after an error
 * that says nothing of its path. Another error than ENOENT that does is the native call's, too. */
static inline int dead_end_look_at_parent(struct scratch *s)
{
    dead_end_show_parent(s);
    int answer = sys_statx(s->end.at, s->text[0], AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &s->end.seen);
    dead_end_show_name(s);
    if (answer != 0 && !sys_is_about_path(answer)) /* or a filter of system calls refuses the look */
        return -1;
    if (answer != 0)
        return answer != -ENOENT || s->end.name == s->text[0];
    return !beside_is_on_a_root_device(names_device(&s->end.seen)) || dead_end_is_beside(s) ? 1 : -1;
}

static inline bool dead_end_is_link(struct scratch *s)
{
    return s->end.follows && sys_readlinkat(s->end.at, s->text[0], s->real, PATH_MAX) >= 0;
}

/* Gives the scratch back. */
__attribute__((noinline)) static bool dead_end_search(struct scratch *s, char *end)
{
    int there = -1;
    while (dead_end_find_name(s, end) && (there = dead_end_look_at_parent(s)) == 0) {
        for (end = s->end.name; end > s->text[0] && end[-1] == '/'; end--)
            continue;
        *end = '\0'; /* what of the parent is missing is looked at like the name, and a link there would be followed */
        s->end.follows = true;
        there = -1;
    }
    const bool is_one = there == 1 && !dead_end_is_link(s);
    scratch_give(s);
    return is_one;
}

static bool dead_end_is_open_beside(struct scratch *s, int fd)
{
    if (sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &s->end.seen) != 0)
        return false;
    const uint64_t device = names_device(&s->end.seen);
    return !beside_is_on_a_root_device(device) ||
           (beside_is_mount_of_roots(s, device, mount_of(&s->end.seen)) && beside_has_place(s, fd));
}

bool dead_end_is_beside_roots(int fd, const char *path)
{
    struct scratch *s = !prefilter_some_is_hidden() && target_has_foreign_words(AT_FDCWD, path) ? scratch_take() : NULL;
    const bool is_beside = s != NULL && dead_end_is_open_beside(s, fd);
    scratch_give(s);
    return is_beside;
}

/* Nothing stands on the stack of this one while the next is at work. */
bool dead_end(int at, const char *path, unsigned want)
{
    const size_t length = strnlen(path, PATH_MAX);
    struct scratch *s = length < PATH_MAX ? scratch_take() : NULL;
    if (s == NULL)
        return false;
    memcpy(s->text[0], path, length + 1);
    s->end.at = at;
    s->end.follows = want & TARGET_FOLLOW;
    return dead_end_search(s, s->text[0] + length);
}
