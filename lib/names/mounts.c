/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "names/mounts.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "base/text.h"

/* What a line of mountinfo says of a mount: which directory of the file system is seen at which path. */
struct mount {
    uint64_t id;
    char root[PATH_MAX], point[PATH_MAX];
};

struct reader {
    int fd;
    size_t at, filled;
    char bytes[4096];
};

/* More than a signal's stack has room for. */
struct search {
    struct reader reader;
    struct mount read, own, other;
    char own_path[PATH_MAX], other_path[PATH_MAX];
};

/* The next character, or 0 at the end. */
static char mounts_next(struct reader *r)
{
    if (r->at == r->filled) {
        ssize_t count = sys_read(r->fd, r->bytes, sizeof r->bytes);
        r->at = 0;
        r->filled = count > 0 ? (size_t)count : 0;
    }
    return r->at < r->filled ? r->bytes[r->at++] : '\0';
}

/* Space, tab, newline and backslash stand as three octal digits. */
static char mounts_unescaped(struct reader *r, char c)
{
    unsigned value = 0;
    if (c != '\\')
        return c;
    for (int i = 0; i < 3; i++)
        value = value * 8 + (unsigned)(mounts_next(r) - '0');
    return (char)value;
}

/* A word, up to the space after it. What does not fit is cut: no path is that long. */
static bool mounts_take_word(struct reader *r, char *to, size_t size)
{
    size_t length = 0;
    char c;
    while ((c = mounts_next(r)) != '\0' && c != ' ')
        if (length + 1 < size)
            to[length++] = mounts_unescaped(r, c);
    to[length] = '\0';
    return c == ' ';
}

static uint64_t mounts_number_of(const char *word)
{
    uint64_t number = 0;
    for (; *word >= '0' && *word <= '9'; word++)
        number = number * 10 + (uint64_t)(*word - '0');
    return number;
}

static bool mounts_take_line(struct reader *r, struct mount *mount)
{
    char word[64], c;
    if (!mounts_take_word(r, word, sizeof word))
        return false;
    mount->id = mounts_number_of(word);
    bool whole = mounts_take_word(r, word, sizeof word) && mounts_take_word(r, word, sizeof word) &&
                 mounts_take_word(r, mount->root, sizeof mount->root) && mounts_take_word(r, mount->point, sizeof mount->point);
    while ((c = mounts_next(r)) != '\n' && c != '\0')
        continue;
    return whole;
}

/* Fills own and other, of which the ids are given. */
static bool mounts_find_both(struct search *s)
{
    int missing = 2;
    s->reader.fd = sys_openat(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC, 0);
    if (s->reader.fd < 0)
        return false;
    while (missing > 0 && mounts_take_line(&s->reader, &s->read)) {
        struct mount *wanted = s->read.id == s->own.id ? &s->own : s->read.id == s->other.id ? &s->other : NULL;
        if (wanted != NULL)
            *wanted = s->read, missing--;
    }
    sys_close(s->reader.fd);
    return missing == 0;
}

/* What follows `above` in a path beneath it: "" or "/...". NULL: it is not beneath it. */
static const char *mounts_behind(const char *path, const char *above)
{
    size_t length = above[1] == '\0' ? 0 : strlen(above);
    if (strncmp(path, above, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    return path[length] == '/' && path[length + 1] == '\0' ? "" : path + length;
}

/* The path within the file system of what is at `path` by this mount. */
static bool mounts_within(const struct mount *mount, const char *path, char to[PATH_MAX])
{
    struct text t;
    const char *rest = mounts_behind(path, mount->point);
    text_init(&t, to, PATH_MAX);
    if (rest == NULL)
        return false;
    text_add(&t, mount->root[1] == '\0' && *rest != '\0' ? "" : mount->root);
    text_add(&t, rest);
    return text_ok(&t);
}

static int mounts_place_of(struct search *s, const char *root, char *text)
{
    if (!mounts_find_both(s) || !mounts_within(&s->own, root, s->own_path) || !mounts_within(&s->other, text, s->other_path))
        return 0;
    const char *relative = mounts_behind(s->other_path, s->own_path);
    if (relative == NULL)
        return 0;
    strcpy(text, *relative == '\0' ? "." : relative + 1);
    return 1;
}

static uint64_t mounts_mount_of(int at, const char *path, int flags)
{
    struct statx stat;
    if (sys_statx(at, path, flags, STATX_MNT_ID, &stat) != 0 || !(stat.stx_mask & STATX_MNT_ID))
        return 0;
    return stat.stx_mnt_id;
}

int mounts_place(const char *root, int directory, char *text)
{
    uint64_t own = mounts_mount_of(AT_FDCWD, root, 0), other = mounts_mount_of(directory, "", AT_EMPTY_PATH);
    if (own == 0 || other == 0 || own == other)
        return 0;
    struct search *s = sys_mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_is_error(s))
        return (int)(long)s;
    s->own.id = own;
    s->other.id = other;
    int code = mounts_place_of(s, root, text);
    sys_munmap(s, sizeof *s);
    return code;
}
