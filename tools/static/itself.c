/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "itself.h"

#include <linux/openat2.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/kernel_abi.h"
#include "base/text.h"
#include "path/path.h"
#include "caller.h"
#include "kernel.h"

#define ITSELF_LINKS 40 /* the kernel follows so many */

/* What follows that name and its slashes at the start of a path, past slashes and single dots; NULL: another name is there. */
static const char *itself_after_name(const char *path, const char *name)
{
    const size_t length = strlen(name);
    while (path[0] == '/' || (path[0] == '.' && path[1] == '/'))
        path++;
    if (strncmp(path, name, length) != 0 || path[length] != '/')
        return NULL;
    return path + length + strspn(path + length, "/");
}

const char *itself_after(const char *path)
{
    const char *inside = path[0] == '/' ? itself_after_name(path, "proc") : NULL;
    const char *own = inside != NULL ? itself_after_name(inside, "self") : NULL;
    return own != NULL || inside == NULL ? own : itself_after_name(inside, "thread-self");
}

/* Nothing under /proc is in a root, and only a link to what is open leads on from there, which we may not have. */
static bool itself_may_pass_proc(const char *directory)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
    struct statfs fs;
    const int fd = (int)SYS4(SYS_openat2, AT_FDCWD, directory, &how, sizeof how);
    if (fd < 0)
        return true;
    const bool may_be = SYS2(SYS_fstatfs, fd, &fs) != 0 || fs.f_type == PROC_SUPER_MAGIC;
    sys_close(fd);
    return may_be;
}

/* Of most paths there is none that counts. The kernel looks no further than where nothing is, as at the name of a file in a
 * branch. */
static bool itself_may_be_a_link(const char *text, bool follows)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW), .resolve = RESOLVE_NO_SYMLINKS};
    const int fd = (int)SYS4(SYS_openat2, AT_FDCWD, text, &how, sizeof how);
    if (fd >= 0)
        sys_close(fd);
    return fd < 0 && fd != -ENOENT && fd != -ENOTDIR;
}

bool itself_may_be_on_the_way(const char *text, bool follows)
{
    if (!itself_may_be_a_link(text, follows))
        return false;
    char room[PATH_MAX];
    struct path_parts parts;
    path_split(&parts, text);
    const bool is_name = parts.last == PATH_NAME && !parts.slash;
    if (is_name && follows && sys_readlinkat(AT_FDCWD, text, room, sizeof room) > 0)
        return true;
    return path_parent_text(text, is_name ? parts.parent_length : strlen(text), room) == 0 && itself_may_pass_proc(room);
}

/* The names that were passed, of which none is a link, and what is to come. */
struct itself_walk {
    char own[CALLER_NAME]; /* what stands for /proc/self */
    bool follows;
    int error; /* 0: none; it cannot be told */
    unsigned links;
    char passed[PATH_MAX], rest[WHERE_TEXT], link[PATH_MAX];
    char spelt[WHERE_TEXT]; /* from the last /proc/self on; "": none was there */
};

/* What is to come begins with that text. False: it is too long. */
static bool itself_put_before(struct itself_walk *walk, const char *first, const char *rest)
{
    char whole[WHERE_TEXT];
    struct text text;
    text_init(&text, whole, sizeof whole);
    text_add(&text, first);
    text_add(&text, rest);
    if (text_ok(&text))
        strcpy(walk->rest, whole);
    return text_ok(&text);
}

static bool itself_is(const char *name, size_t length, const char *other)
{
    return strlen(other) == length && memcmp(name, other, length) == 0;
}

/* It goes on from the root directory. */
static bool itself_begin_again(struct itself_walk *walk, const char *first, const char *rest)
{
    walk->passed[0] = '\0';
    return ++walk->links <= ITSELF_LINKS && itself_put_before(walk, first, rest);
}

/* The name is the last of what was passed, which is that long without it. False: that was all. */
static bool itself_follow(struct itself_walk *walk, size_t above, const char *after)
{
    const bool is_last = after[0] == '\0';
    const ssize_t length =
        is_last && !walk->follows ? 0 : sys_readlinkat(AT_FDCWD, walk->passed, walk->link, sizeof walk->link - 1);
    if (length < 0 && length != -EINVAL && length != -ENOENT && length != -ENOTDIR && length != -EACCES &&
        length != -ENAMETOOLONG)
        walk->error = (int)length;
    if (length <= 0)
        return !is_last && length == -EINVAL && itself_put_before(walk, "", after);
    walk->link[length] = '\0';
    if (walk->link[0] == '/')
        return itself_begin_again(walk, walk->link, after);
    walk->passed[above] = '\0';
    return ++walk->links <= ITSELF_LINKS && itself_put_before(walk, walk->link, after);
}

/* One name. False: that was all, or it cannot be told. */
static bool itself_step(struct itself_walk *walk)
{
    const char *name = walk->rest + strspn(walk->rest, "/");
    const size_t length = strcspn(name, "/"), above = strlen(walk->passed);
    if (length == 0 || above + length + 1 >= sizeof walk->passed)
        return false;
    if (itself_is(name, length, ".."))
        *(above > 0 ? strrchr(walk->passed, '/') : walk->passed) = '\0';
    if (itself_is(name, length, ".") || itself_is(name, length, ".."))
        return itself_put_before(walk, "", name + length);
    if (strcmp(walk->passed, "/proc") == 0 && (itself_is(name, length, "self") || itself_is(name, length, "thread-self"))) {
        const bool fits = itself_begin_again(walk, walk->own, name + length);
        strcpy(walk->spelt, fits ? walk->rest : "");
        return fits;
    }
    walk->passed[above] = '/';
    memcpy(walk->passed + above + 1, name, length);
    walk->passed[above + 1 + length] = '\0';
    return itself_follow(walk, above, name + length);
}

/* A link of /proc's to what is open is followed by what it says: that is where others may be on the way. */
int itself_spell_out(pid_t tid, char text[WHERE_TEXT], bool follows)
{
    struct itself_walk walk = {.follows = follows};
    caller_name(tid, "", walk.own);
    walk.own[strlen(walk.own) - 1] = '\0';
    strcpy(walk.rest, text);
    while (itself_step(&walk))
        continue;
    if (walk.error != 0)
        return walk.error;
    if (walk.spelt[0] != '\0')
        strcpy(text, walk.spelt);
    return walk.spelt[0] != '\0';
}
