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

static bool mounts_open(struct reader *r)
{
    r->at = r->filled = 0;
    r->fd = sys_openat(AT_FDCWD, "/proc/thread-self/mountinfo", O_RDONLY | O_CLOEXEC, 0);
    return r->fd >= 0;
}

/* Fills own and other, of which the ids are given; 0: it is not asked for. */
static bool mounts_find_both(struct search *s)
{
    int missing = (s->own.id != 0) + (s->other.id != 0);
    if (!mounts_open(&s->reader))
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
static bool mounts_path_within(const struct mount *mount, const char *path, char to[PATH_MAX])
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

static int mounts_behind_own(struct search *s, char *text)
{
    const char *relative = mounts_behind(s->other_path, s->own_path);
    if (relative == NULL)
        return 0;
    strcpy(text, *relative == '\0' ? "." : relative + 1);
    return 1;
}

static int mounts_place_of(struct search *s, const char *root, char *text)
{
    return mounts_find_both(s) && mounts_path_within(&s->own, root, s->own_path) &&
                   mounts_path_within(&s->other, text, s->other_path)
               ? mounts_behind_own(s, text)
               : 0;
}

static uint64_t mounts_mount_of(int at, const char *path, int flags)
{
    struct statx stat;
    if (sys_statx(at, path, flags, STATX_MNT_ID, &stat) != 0 || !(stat.stx_mask & STATX_MNT_ID))
        return 0;
    return stat.stx_mnt_id;
}

bool mounts_are_two(const char *root, int directory)
{
    struct statx own, other;
    return sys_statx(AT_FDCWD, root, 0, STATX_MNT_ID, &own) == 0 &&
           sys_statx(directory, "", AT_EMPTY_PATH, STATX_MNT_ID, &other) == 0 && own.stx_dev_major == other.stx_dev_major &&
           own.stx_dev_minor == other.stx_dev_minor && (own.stx_mask & other.stx_mask & STATX_MNT_ID) &&
           own.stx_mnt_id != other.stx_mnt_id;
}

static struct search *mounts_begin(void)
{
    return sys_mmap(NULL, sizeof(struct search), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int mounts_place(const char *root, int directory, char *text)
{
    uint64_t own = mounts_mount_of(AT_FDCWD, root, 0), other = mounts_mount_of(directory, "", AT_EMPTY_PATH);
    if (own == 0 || other == 0 || own == other)
        return 0;
    struct search *s = mounts_begin();
    if (sys_is_error(s))
        return (int)(long)s;
    s->own.id = own;
    s->other.id = other;
    int code = mounts_place_of(s, root, text);
    sys_munmap(s, sizeof *s);
    return code;
}

/* The path of `directory` within its file system, in other_path. */
static bool mounts_find_within(struct search *s, int directory, const char *text)
{
    s->other.id = mounts_mount_of(directory, "", AT_EMPTY_PATH);
    return s->other.id != 0 && mounts_find_both(s) && mounts_path_within(&s->other, text, s->other_path);
}

int mounts_within(int directory, char *text)
{
    struct search *s = mounts_begin();
    if (sys_is_error(s))
        return (int)(long)s;
    const bool is_known = mounts_find_within(s, directory, text);
    if (is_known)
        strcpy(text, s->other_path);
    sys_munmap(s, sizeof *s);
    return is_known;
}

int mounts_place_within(const char *within, int directory, char *text)
{
    struct search *s = mounts_begin();
    if (sys_is_error(s))
        return (int)(long)s;
    strcpy(s->own_path, within);
    const int code = mounts_find_within(s, directory, text) ? mounts_behind_own(s, text) : -ENOENT;
    sys_munmap(s, sizeof *s);
    return code;
}

/* What is read is the mount of a directory above that, or of itself: where that is seen, in own_path. */
static bool mounts_compose(struct search *s, const char *within)
{
    struct text t;
    const char *rest = mounts_behind(within, s->read.root);
    text_init(&t, s->own_path, PATH_MAX);
    if (rest == NULL)
        return false;
    text_add(&t, s->read.point[1] == '\0' && *rest != '\0' ? "" : s->read.point);
    text_add(&t, rest);
    return text_ok(&t);
}

int mounts_lead_to(const char *within, mounts_each *each, void *context)
{
    int code = 0;
    struct search *s = mounts_begin();
    if (sys_is_error(s))
        return (int)(long)s;
    const bool is_open = mounts_open(&s->reader);
    while (is_open && code == 0 && mounts_take_line(&s->reader, &s->read))
        if (mounts_compose(s, within))
            code = each(context, s->read.id, s->own_path, false);
        else if (mounts_behind(s->read.root, within) != NULL)
            code = each(context, s->read.id, s->read.point, true);
    if (is_open)
        sys_close(s->reader.fd);
    sys_munmap(s, sizeof *s);
    return is_open ? code : -ENOENT;
}
