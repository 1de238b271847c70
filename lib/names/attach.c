/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A process and its daemon: the channel and the index are mapped, again after a crash, and in a child. */

#include <errno.h>
#include <linux/capability.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/owner.h"
#include "base/sys.h"
#include "names/state.h"
#include "names/visible.h"
#include "union/layout.h"

uint32_t *names_process_page;

int names_process_init(void)
{
    void *page = sys_mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_is_error(page))
        return (int)(long)page;
    int code = (int)SYS3(SYS_madvise, page, 4096, MADV_WIPEONFORK);
    if (code != 0)
        return code;
    names_process_page = page;
    *names_process_page = 1;
    owner_is_me();
    return 0;
}

/* A view is as good in a child. */
static void attach_set_apart(struct names_root *root)
{
    if (root->channel != NULL) /* else it is the child of a child that never attached */
        root->inherited_channel = root->channel;
    root->channel = NULL;
    root->attaching = 0;
}

/* Its threads are new, so nobody else is in here but a signal handler. */
void names_process_is_new(struct names_root *roots, unsigned count)
{
    uint64_t before = sys_block_signals();
    for (unsigned i = 0; i < count && *names_process_page == 0; i++)
        attach_set_apart(&roots[i]);
    owner_is_me();
    *names_process_page = 1;
    sys_set_signals(before);
}

static int attach_open_view(struct names_root *root, const char *run_dir, struct request_channel *channel, struct view **view)
{
    struct index_stamp stamp = {.session = request_session(channel), .root = root->id};
    return dirid_equal(request_root(channel), root->id) ? view_open(view, run_dir, &stamp) : -ESTALE;
}

/* A daemon that was started again since has other files. */
static int attach_inherit(struct names_root *root, struct request_channel **channel, struct view **view)
{
    struct request_channel *parents = root->inherited_channel;
    if (parents == NULL)
        return -ENOENT;
    root->inherited_channel = NULL;
    int code = request_inherit(parents);
    if (code == 0) {
        *channel = parents;
        *view = root->view;
        return 0;
    }
    root->view = NULL; /* left mapped, as below */
    request_abandon(parents);
    return code;
}

/* By any name of this node: what the environment says may come from another host, by a launcher. */
static int attach_find_daemon(struct names_root *root, struct request_channel **channel)
{
    int code = request_attach(channel, root->run_dir);
    for (const char *at = root->run_dirs; code != 0 && *at != '\0'; at += strlen(at) + 1) {
        if (at == root->run_dir)
            continue;
        const int other = request_attach(channel, at);
        if (other == 0)
            root->run_dir = at;
        code = other == 0 || code == -ENOENT ? other : code;
    }
    return code;
}

static int attach_open_both(struct names_root *root, struct request_channel **channel, struct view **view)
{
    int code = attach_find_daemon(root, channel);
    if (code != 0)
        return code;
    code = attach_open_view(root, root->run_dir, *channel, view);
    if (code == 0)
        return 0;
    if (!request_is_alive(*channel)) /* and what was found is of the next one */
        code = -EINPROGRESS;
    request_abandon(*channel);
    return code;
}

static int attach_map(struct names_root *root)
{
    struct request_channel *channel;
    struct view *view;
    if (root->sight != NAMES_SEEN)
        return root->sight == NAMES_UNTOLD ? -EREMOTEIO : -EREMOTE;
    int code = attach_inherit(root, &channel, &view);
    if (code != 0)
        code = attach_open_both(root, &channel, &view);
    if (code != 0)
        return code;
    /* What stood there before is left mapped: another thread may be looking. It served a daemon that is gone.
     */
    __atomic_store_n(&root->view, view, __ATOMIC_RELEASE);
    __atomic_store_n(&root->channel, channel, __ATOMIC_RELEASE);
    __atomic_store_n(&root->served, 1, __ATOMIC_RELAXED);
    return 0;
}

struct mapping names_begin_mapping(struct names_root *root)
{
    const uint64_t signals = sys_block_signals();
    while (__atomic_exchange_n(&root->attaching, 1, __ATOMIC_ACQUIRE) != 0)
        SYS0(SYS_sched_yield);
    return (struct mapping){signals, errno};
}

void names_end_mapping(struct names_root *root, const struct mapping *mapping)
{
    errno = mapping->saved;
    __atomic_store_n(&root->attaching, 0, __ATOMIC_RELEASE);
    sys_set_signals(mapping->signals);
}

/* A thread that acts for another user by its fsuid alone, as a file server's, is still one of its process, whose daemon this
 * is: it is itself for as long as it maps, if it can be that user again. The user; -1: it acts for nobody. */
static long attach_be_oneself(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    const long acts_for = SYS1(SYS_setfsuid, -1), own = SYS0(SYS_geteuid);
    if (acts_for == own || SYS2(SYS_capget, &header, data) != 0 || !(data[0].effective & (1u << CAP_SETUID)))
        return -1;
    SYS1(SYS_setfsuid, own);
    return acts_for;
}

static int attach_map_as_oneself(struct names_root *root)
{
    int code = attach_map(root);
    const long acts_for = code == -EACCES ? attach_be_oneself() : -1;
    if (acts_for < 0)
        return code;
    code = attach_map(root);
    SYS1(SYS_setfsuid, acts_for);
    return code;
}

static int attach_root(struct names_root *root)
{
    const struct mapping mapping = names_begin_mapping(root);
    int code = names_root_is_attached(root) ? 0 : attach_map_as_oneself(root);
    names_end_mapping(root, &mapping);
    return code;
}

/* Where another thread still reads the old path, that stays. */
static void attach_move(struct names_root *root, const char *way)
{
    char *to = sys_mmap(NULL, PATH_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_is_error(to))
        return;
    enum names_sight sight = visible_find(root, to);
    if (sight != NAMES_SEEN && visible_find_above(root, way, to))
        sight = NAMES_SEEN;
    if (sight == NAMES_SEEN)
        __atomic_store_n(&root->path, to, __ATOMIC_RELEASE);
    else
        sys_munmap(to, PATH_MAX);
    root->sight = sight;
}

bool names_root_is_in_place(const struct names_root *root)
{
    return visible_is_at(root, root->path);
}

void names_root_find_again(struct names_root *root, const char *way)
{
    const struct mapping mapping = names_begin_mapping(root);
    if (!names_root_is_in_place(root))
        attach_move(root, way);
    names_end_mapping(root, &mapping);
}

int names_attach_patiently(struct names_root *root)
{
    const struct timespec pause = clock_split(NAMES_LOOK);
    uint64_t began = clock_monotonic();
    int code;
    while ((code = attach_root(root)) == -EINPROGRESS && clock_monotonic() - began < root->deadline)
        SYS2(SYS_nanosleep, &pause, NULL);
    return code;
}

/* One that was never served is none: its daemon may have been forgotten. What a client of a network file system remembers of a
 * name that was not there is checked once the directory's own attributes are new. */
bool names_is_plain(struct names_root *root)
{
    struct statx stat;
    if (names_root_is_attached(root) || __atomic_load_n(&root->served, __ATOMIC_RELAXED) == 0)
        return false;
    const int code = names_attach_patiently(root);
    const int fd =
        code == -ENOENT || code == -EHOSTDOWN ? sys_openat(AT_FDCWD, root->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0) : -1;
    if (fd < 0)
        return false;
    const bool is_plain = sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_MTIME | STATX_CTIME, &stat) == 0 &&
                          sys_statx(fd, LAYOUT_OWN, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == -ENOENT;
    sys_close(fd);
    return is_plain;
}

void names_detach(struct names_root *root)
{
    struct request_channel *channel = root->channel, *inherited = root->inherited_channel;
    struct view *view = root->view;
    root->view = NULL;
    root->channel = root->inherited_channel = NULL;
    if (view != NULL)
        view_abandon(view);
    if (channel != NULL)
        request_abandon(channel);
    if (inherited != NULL)
        request_abandon(inherited);
}

bool names_is_attached(struct names_root *root)
{
    return __builtin_expect(names_root_is_attached(root), 1) || names_attach_patiently(root) == 0;
}

int names_attach(struct names_root *root)
{
    if (__builtin_expect(names_root_is_attached(root), 1))
        return 0;
    int code = names_attach_patiently(root);
    return code == 0 ? 0 : names_fail(root, code);
}

int names_refuse(struct names_root *root)
{
    return names_fail(root, -EOPNOTSUPP);
}
