/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "names/climb.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "union/identity.h"

struct climb {
    const struct names_root *root;
    struct statx here;
    char *start; /* of the place, which is written from the end of a text on */
    char *limit;
    char entries[32768];
};

static bool climb_is_root(const struct climb *c)
{
    return names_device(&c->here) == c->root->device && dirid_equal(dirid_of(&c->here), c->root->id);
}

static int climb_prepend(struct climb *c, const char *name)
{
    const size_t length = strlen(name);
    if ((size_t)(c->start - c->limit) < length + 1)
        return -ENAMETOOLONG;
    *--c->start = '/';
    c->start -= length;
    memcpy(c->start, name, length);
    return 1;
}

static bool climb_is_here(const struct climb *c, int above, const struct dirent64 *entry)
{
    struct statx stat;
    return entry->d_ino == c->here.stx_ino && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
           identity_stat(c->root->id, above, entry->d_name, AT_SYMLINK_NOFOLLOW, &stat) == 0 &&
           dirid_equal(dirid_of(&stat), dirid_of(&c->here)) && names_device(&stat) == names_device(&c->here);
}

/* Its name in the directory above. 1, 0: it has none there, or -errno. */
static int climb_find_name(struct climb *c, int above)
{
    ssize_t length;
    while ((length = sys_getdents64(above, c->entries, sizeof c->entries)) > 0)
        for (char *at = c->entries; at < c->entries + length; at += ((struct dirent64 *)at)->d_reclen)
            if (climb_is_here(c, above, (struct dirent64 *)at))
                return climb_prepend(c, ((struct dirent64 *)at)->d_name);
    return (int)length;
}

/* From there to the root. As climb_place. */
static int climb_up(struct climb *c, int directory)
{
    int at = directory, code = identity_stat(c->root->id, directory, "", AT_EMPTY_PATH, &c->here);
    bool found = code == 0 && climb_is_root(c);
    code = code == 0 ? 1 : code;
    while (code == 1 && !found) {
        int above = sys_openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        if (at != directory)
            sys_close(at);
        at = above;
        code = above < 0 ? above : climb_find_name(c, above);
        if (code == 1 && identity_stat(c->root->id, above, "", AT_EMPTY_PATH, &c->here) != 0)
            code = -EIO;
        found = code == 1 && climb_is_root(c);
    }
    if (at >= 0 && at != directory)
        sys_close(at);
    return code;
}

int climb_place(const struct names_root *root, int directory, char text[PATH_MAX])
{
    struct climb *c = sys_mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_is_error(c))
        return (int)(long)c;
    c->root = root;
    c->limit = text;
    c->start = text + PATH_MAX;
    int code = climb_up(c, directory);
    const size_t length = (size_t)(text + PATH_MAX - c->start);
    if (code == 1 && length > 0)
        memmove(text, c->start, length);
    text[length > 0 ? length - 1 : 1] = '\0';
    if (length == 0)
        text[0] = '.';
    sys_munmap(c, sizeof *c);
    return code;
}
