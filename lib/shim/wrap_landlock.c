/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Landlock: where a program names a directory of a root as one that it may use, its files in branches are meant, too; and
 * whatever it names, this library is to reach its daemons still. */

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"
#include "shim/root_of.h"
#include "shim/scratch.h"
#include "shim/wrap.h"
#include "shim/wrap_landlock.h"
#include "union/layout.h"

/* linux/landlock.h, which is newer than the oldest headers. */
enum {
    CALL_LANDLOCK_ADD_RULE = 445,
    CALL_LANDLOCK_RESTRICT_SELF = 446,
    LANDLOCK_PATH_BENEATH = 1,
    LANDLOCK_WRITE_FILE = 1 << 1,
    LANDLOCK_READ_FILE = 1 << 2,
};

#define DEPTH_MAX 64
#define DIRECTORIES_MAX 10000

struct landlock_beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

static long wrap_landlock_allow(int ruleset, int at, const char *path, uint64_t allowed)
{
    const struct landlock_beneath beneath = {allowed, sys_openat(at, path, O_PATH | O_CLOEXEC, 0)};
    if (beneath.parent < 0)
        return beneath.parent;
    const long code = SYS4(CALL_LANDLOCK_ADD_RULE, ruleset, LANDLOCK_PATH_BENEATH, &beneath, 0);
    sys_close(beneath.parent);
    return code;
}

/* A ruleset takes no right that it does not handle, and does not say which it handles. */
static void wrap_landlock_allow_daemon(int ruleset, const struct names_root *root)
{
    const uint64_t rights[] = {LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE, LANDLOCK_WRITE_FILE, LANDLOCK_READ_FILE};
    for (const char *at = root->run_dirs; *at != '\0'; at += strlen(at) + 1)
        for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
            if (wrap_landlock_allow(ruleset, AT_FDCWD, at, rights[i]) == 0)
                break;
}

/* A directory that is named, with those beneath it: one is opened after the other, each from the one above it. */
struct landlock_walk {
    int ruleset;
    uint64_t allowed;
    struct names_root *root;
    int branches;
    unsigned count;
    int depth;
    int fds[DEPTH_MAX];
    off_t at[DEPTH_MAX]; /* where the next entries are to be read */
    char entries[8192], names[8192];
    char mirror[NAME_MAX + 1 + RECORD_MIRROR_MAX];
};

/* Its mirror in each branch that has one. */
static void wrap_landlock_allow_mirrors(struct landlock_walk *w, const char *mirror)
{
    ssize_t length;
    sys_lseek(w->branches, 0, SEEK_SET);
    while ((length = sys_getdents64(w->branches, w->names, sizeof w->names)) > 0)
        for (char *at = w->names; at < w->names + length; at += ((struct dirent64 *)at)->d_reclen) {
            struct text t;
            text_init(&t, w->mirror, sizeof w->mirror);
            text_add(&t, ((struct dirent64 *)at)->d_name);
            text_add(&t, "/");
            text_add(&t, mirror);
            if (((struct dirent64 *)at)->d_name[0] != '.' && text_ok(&t))
                wrap_landlock_allow(w->ruleset, w->branches, t.at, w->allowed);
        }
}

/* Goes down into it, and gives it away, if it is one of the root. */
static void wrap_landlock_enter(struct landlock_walk *w, int fd)
{
    struct names_root *root;
    struct view_found found;
    struct dirid id;
    if (fd < 0)
        return;
    if (w->depth == DEPTH_MAX || w->count++ == DIRECTORIES_MAX ||
        root_of_directory(fd, "", AT_EMPTY_PATH, &root, &id, &found) != 1 || root != w->root) {
        sys_close(fd);
        return;
    }
    if (found.dir.mirror[0] != '\0')
        wrap_landlock_allow_mirrors(w, found.dir.mirror);
    w->fds[w->depth] = fd;
    w->at[w->depth++] = 0;
}

/* The next entry of the deepest one, or out of it. */
static void wrap_landlock_step(struct landlock_walk *w)
{
    const int here = w->depth - 1;
    sys_lseek(w->fds[here], w->at[here], SEEK_SET);
    const ssize_t length = sys_getdents64(w->fds[here], w->entries, sizeof w->entries);
    if (length <= 0) {
        sys_close(w->fds[here]);
        w->depth--;
        return;
    }
    for (char *at = w->entries; at < w->entries + length && w->depth == here + 1; at += ((struct dirent64 *)at)->d_reclen) {
        const struct dirent64 *entry = (struct dirent64 *)at;
        w->at[here] = entry->d_off;
        if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0)
            wrap_landlock_enter(w, sys_openat(w->fds[here], entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0));
    }
}

static void wrap_landlock_allow_branches(int ruleset, struct names_root *root, const struct landlock_beneath *beneath,
                                         struct scratch *scratch)
{
    struct text t;
    struct landlock_walk *w = sys_mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_is_error(w))
        return;
    text_init(&t, scratch->real, PATH_MAX);
    text_add(&t, root->path);
    text_add(&t, "/" LAYOUT_BRANCHES);
    w->ruleset = ruleset;
    w->allowed = beneath->allowed;
    w->root = root;
    w->branches = text_ok(&t) ? sys_openat(AT_FDCWD, t.at, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) : -1;
    if (w->branches >= 0) {
        wrap_landlock_enter(w, sys_openat(beneath->parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
        while (w->depth > 0)
            wrap_landlock_step(w);
        sys_close(w->branches);
    }
    sys_munmap(w, sizeof *w);
}

/* What is in the root itself is beneath it, wherever that is. */
static void wrap_landlock_follow(int ruleset, const struct landlock_beneath *beneath)
{
    struct names_root *root;
    struct view_found found;
    struct dirid id;
    if (root_of_directory(beneath->parent, "", AT_EMPTY_PATH, &root, &id, &found) != 1 || dirid_equal(id, root->id))
        return;
    struct scratch *scratch = scratch_take();
    if (scratch == NULL)
        return;
    wrap_landlock_allow_branches(ruleset, root, beneath, scratch);
    scratch_give(scratch);
}

static long wrap_landlock_add_rule(const long a[6])
{
    const long answer = REAL(syscall)(CALL_LANDLOCK_ADD_RULE, a[0], a[1], a[2], a[3]);
    if (answer == 0 && a[1] == LANDLOCK_PATH_BENEATH) {
        const struct landlock_beneath beneath = *(const struct landlock_beneath *)a[2];
        wrap_landlock_follow((int)a[0], &beneath);
    }
    return answer;
}

/* From then on the daemon can be found no more, by this process and its children, unless that is named, too. */
static long wrap_landlock_restrict(const long a[6])
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        if (names_is_attached(&shim_state.roots[i]))
            wrap_landlock_allow_daemon((int)a[0], &shim_state.roots[i]);
    return REAL(syscall)(CALL_LANDLOCK_RESTRICT_SELF, a[0], a[1]);
}

long wrap_landlock_call(long number, const long a[6], bool *known)
{
    *known = number == CALL_LANDLOCK_ADD_RULE || number == CALL_LANDLOCK_RESTRICT_SELF;
    return !*known ? 0 : number == CALL_LANDLOCK_ADD_RULE ? wrap_landlock_add_rule(a) : wrap_landlock_restrict(a);
}
