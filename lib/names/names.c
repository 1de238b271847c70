/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "names/names.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/owner.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/valgrind.h"
#include "names/climb.h"
#include "names/mounts.h"
#include "names/origin.h"
#include "names/visible.h"
#include "path/path.h"
#include "session/session.h"
#include "union/identity.h"
#include "wire/page.h"

#define LOOK (5 * CLOCK_MILLISECOND)       /* how often a process looks whether what it waits for has come */
#define LOAD_DEADLINE (600 * CLOCK_SECOND) /* a directory of ten million names on a busy file system */

uint64_t names_device(const struct statx *stat)
{
    return makedev(stat->stx_dev_major, stat->stx_dev_minor); /* as st_dev has it */
}

/* The kernel's own name for what a descriptor stands for. */
int names_read_place(int fd, char to[PATH_MAX])
{
    char link[40];
    struct text t;
    text_init(&t, link, sizeof link);
    text_descriptor(&t, fd);
    ssize_t length = sys_readlinkat(AT_FDCWD, link, to, PATH_MAX - 1);
    if (length < 0)
        return (int)length;
    to[length] = '\0';
    return to[0] == '/' ? 0 : -ENOENT;
}

/* A plain text on whose way there is no symbolic link is canonical already: to be told so by openat2 takes a
 * tenth of the time that /proc takes to say the same. */
static int names_open_canonical(const char *text)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    size_t length = strlen(text);
    return text[0] == '/' && text_find(text, "//") == NULL && text_find(text, "/.") == NULL && text[length - 1] != '/' &&
                   !valgrind_is_there() /* which does not know openat2, and says so */
               ? (int)SYS4(SYS_openat2, AT_FDCWD, text, &how, sizeof how)
               : -ELOOP;
}

/* Sets path, which is as it was given or goes to `to`, of PATH_MAX bytes. */
static int names_resolve(struct names_root *root, char *to)
{
    struct statx stat;
    int fd = names_open_canonical(root->given);
    root->path = fd >= 0 ? root->given : to;
    if (fd < 0) /* or a kernel that has no openat2, or a filter that does not know it */
        fd = sys_openat(AT_FDCWD, root->given, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int code = identity_stat_root(fd, &stat);
    if (code == 0 && root->path == to)
        code = names_read_place(fd, to);
    sys_close(fd);
    if (code != 0)
        return code;
    root->id = dirid_of(&stat);
    root->device = names_device(&stat);
    return 0;
}

/* Its text does not lead to it here. */
static void names_resolve_elsewhere(struct names_root *root, const struct origin *origin, char *to)
{
    root->device = origin->device;
    root->id = origin->id;
    root->sight = visible_find(root, to);
    root->path = root->sight == NAMES_SEEN ? to : root->given;
    root->given = "";
}

static bool names_is_other(const struct names_root *root, const struct origin *origin)
{
    return root->device != origin->device || !dirid_equal(root->id, origin->id);
}

static int names_resolve_all(struct names_root *root, const struct origin *origin, char *to)
{
    int code = names_resolve(root, to);
    if (origin != NULL && (code != 0 || names_is_other(root, origin)) && origin_is_elsewhere(origin)) {
        names_resolve_elsewhere(root, origin, to);
        return 0;
    }
    if (code == 0 && (root->given[0] != '/' || strcmp(root->given, root->path) == 0))
        root->given = "";
    return code;
}

/* The next of the texts, after what was written there last. */
static char *names_next_text(char *last)
{
    return last + strlen(last) + 1;
}

/* Where the next text goes; NULL: there is no room. */
static char *names_write_run_dir(const struct names_root *root, char *to, uint64_t user, const char *base, const char *node)
{
    const size_t room = (size_t)(root->texts + sizeof root->texts - 1 - to);
    struct text t;
    text_init(&t, to, room < PATH_MAX ? room : PATH_MAX);
    session_run_dir(&t, base, (uid_t)user, root->device, root->id.ino, node);
    return text_ok(&t) ? names_next_text(to) : NULL;
}

/* For each name of this node; a user namespace may call the user whose session it is otherwise. */
static int names_write_run_dirs(struct names_root *root, char *to, uint64_t user, const struct names_settings *settings)
{
    const uint64_t users[] = {user, settings->origin != NULL ? settings->origin->user : user};
    const size_t count = users[0] != users[1] ? 2 : 1;
    root->run_dir = root->run_dirs = to;
    for (size_t i = 0; settings->nodes[i / count] != NULL; i++) {
        char *next = names_write_run_dir(root, to, users[i % count], settings->run_base, settings->nodes[i / count]);
        if (next == NULL)
            break;
        to = next;
    }
    *to = '\0';
    return *root->run_dirs != '\0' ? 0 : -ENAMETOOLONG;
}

static void names_root_begin(struct names_root *root, const struct names_settings *settings)
{
    /* Not the whole structure: to write pages of texts would cost a process's start. */
    root->deadline = settings->deadline;
    root->attaching = root->told = root->served = root->sight = 0;
    root->view = NULL;
    root->channel = root->inherited_channel = NULL;
    root->namespace = settings->origin != NULL ? settings->origin->namespace : 0;
    root->boot = settings->origin != NULL ? settings->origin->boot : 0;
}

int names_root_init(struct names_root *root, const char *text, size_t length, const struct names_settings *settings)
{
    struct text given, within;
    const struct origin *origin = settings->origin;
    const uint64_t user = (uid_t)SYS0(SYS_geteuid);
    names_root_begin(root, settings);
    text_init(&given, root->texts, PATH_MAX);
    text_bytes(&given, text, length);
    text_init(&within, given.at + given.length + 1, PATH_MAX);
    text_bytes(&within, origin != NULL ? origin->within : "", origin != NULL ? origin->within_length : 0);
    root->given = given.at;
    root->within = within.at;
    char *rest = names_next_text(within.at);
    *rest = '\0';
    int code = text_ok(&given) && text_ok(&within) ? names_resolve_all(root, origin, rest) : -ENAMETOOLONG;
    if (code != 0)
        return code;
    rest = root->path == rest ? names_next_text(rest) : rest;
    return names_write_run_dirs(root, rest, user, settings);
}

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
static void names_set_apart(struct names_root *root)
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
        names_set_apart(&roots[i]);
    owner_is_me();
    *names_process_page = 1;
    sys_set_signals(before);
}

/* What a user can do about it stands in parentheses: `before`, the root if `of_root`, `after`. */
struct names_failure {
    const char *failure, *before;
    bool of_root;
    const char *after;
};

static struct names_failure names_explain(int code)
{
    switch (code) {
    case -ENOENT:
        return (struct names_failure){"no daemon is running for this root", " (run 'shunt start --root ", true, "')"};
    case -EHOSTDOWN:
        return (struct names_failure){"the daemon of this node has ended", " (run 'shunt start --root ", true, "')"};
    case -EACCES:
    case -EPERM:
        return (struct names_failure){"the daemon belongs to another user", " (run 'shunt status --root ", true,
                                      "' to see which)"};
    case -ESTALE:
    case -EBADMSG:
        return (struct names_failure){"the index of the daemon is damaged or of another session", " (run 'shunt stop --root ",
                                      true, "', then 'shunt start')"};
    case -EPROTO:
        return (struct names_failure){"the daemon is of another version of shunt", " (run 'shunt stop --root ", true,
                                      "', then 'shunt start')"};
    case -EMFILE:
    case -ENFILE:
        return (struct names_failure){"too many open files to map the index", " (raise the limit with 'ulimit -n')", false, ""};
    case -EUSERS:
        return (struct names_failure){"too many threads of this node use it", " (run fewer processes on this node)", false, ""};
    case -ENOSPC:
        return (struct names_failure){"the run directory is full, so this process cannot reach the daemon",
                                      " (make room where SHUNT_RUN_DIR is, by default in /dev/shm)", false, ""};
    case -EXDEV:
        return (struct names_failure){"the daemon is in another PID namespace",
                                      " (start the container with the host's, or run 'shunt start --root ", true,
                                      "' inside the container)"};
    case -ESRCH:
        return (struct names_failure){"/proc is not mounted, so it cannot be told where files and processes are",
                                      " (mount /proc)", false, ""};
    case -EREMOTE:
        return (struct names_failure){"the root is hidden in this mount namespace",
                                      " (bind all of it, here or at another path)", false, ""};
    case -EROFS:
        return (struct names_failure){"the run directory is read-only in this mount namespace",
                                      " (bind it writable; it is where SHUNT_RUN_DIR is, by default in /dev/shm)", false, ""};
    case -EADDRNOTAVAIL:
        return (struct names_failure){"no daemon can be seen in this mount namespace",
                                      " (bind the host's run directory, by default /dev/shm, or run 'shunt start --root ", true,
                                      "')"};
    case -EINPROGRESS:
        return (struct names_failure){"the daemon crashed and was not started again in time", " (run 'shunt status --root ",
                                      true, "', and see the log in its run dir)"};
    case -ETIMEDOUT:
        return (struct names_failure){"the daemon did not answer within SHUNT_DEADLINE", " (run 'shunt status --root ", true,
                                      "' to see whether another node is silent)"};
    case -ENOLINK:
        return (struct names_failure){"the daemon cannot reach the session on the file system", " (run 'shunt status --root ",
                                      true, "' on another node)"};
    case -EOPNOTSUPP:
        return (struct names_failure){"this process is not allowed the system calls that tell what is beneath it",
                                      " (let its filter allow statx, openat and readlinkat, see shunt(7))", false, ""};
    case -ENOMEM:
        return (struct names_failure){"not enough memory to map the index", " (raise the limit with 'ulimit -v')", false, ""};
    default:
        return (struct names_failure){"the daemon cannot be reached", " (run 'shunt status --root ", true, "')"};
    }
}

static struct iovec names_words(const char *text)
{
    return (struct iovec){(void *)text, strlen(text)};
}

/* No daemon is there for this process, but a session may be. Another user's: a program that became somebody else looks for that
 * one's daemon. The same user's: on other hosts, or under another name or run directory. */
static struct names_failure names_explain_session(const struct names_root *root, int code, char *user, size_t size)
{
    struct text t;
    uid_t uid;
    if (session_user(root->path, &uid) != 0 || (uid == (uid_t)SYS0(SYS_geteuid) && code != -ENOENT))
        return names_explain(code);
    if (uid == (uid_t)SYS0(SYS_geteuid))
        return (struct names_failure){"no daemon is running for this root on this host, while a session of yours serves it "
                                      "elsewhere",
                                      " (give this host to shunt-launch, or run 'shunt start --root ", true, "' on it)"};
    text_init(&t, user, size);
    text_number(&t, uid, 10);
    return (struct names_failure){"served for another user, number ", " (run the program as that user, or read with 'shunt ls ",
                                  true, "')"};
}

/* Fail closed, and say why once: in one write, from where the words are, since the stack may be a signal's.
 */
static int names_fail(struct names_root *root, int code)
{
    const struct origin given = {.namespace = root->namespace, .boot = root->boot};
    const bool is_elsewhere = code == -ENOENT && root->namespace != 0 && origin_is_elsewhere(&given);
    struct names_failure failure = names_explain(is_elsewhere ? -EADDRNOTAVAIL : code);
    char user[16] = "";
    if (!is_elsewhere && (code == -ENOENT || code == -EACCES || code == -EPERM))
        failure = names_explain_session(root, code, user, sizeof user);
    const struct iovec line[] = {names_words("shunt: "),
                                 names_words(root->path),
                                 names_words(": "),
                                 names_words(failure.failure),
                                 names_words(user),
                                 names_words(failure.before),
                                 names_words(failure.of_root ? root->path : ""),
                                 names_words(failure.after),
                                 names_words("\n")};
    if (__atomic_exchange_n(&root->told, 1, __ATOMIC_RELAXED) == 0)
        SYS3(SYS_writev, 2, line, sizeof line / sizeof *line);
    return -EIO;
}

static int names_open_view(struct names_root *root, const char *run_dir, struct request_channel *channel, struct view **view)
{
    struct index_stamp stamp = {.session = request_session(channel), .root = root->id};
    return dirid_equal(request_root(channel), root->id) ? view_open(view, run_dir, &stamp) : -ESTALE;
}

/* A daemon that was started again since has other files. */
static int names_inherit(struct names_root *root, struct request_channel **channel, struct view **view)
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
static int names_find_daemon(struct names_root *root, struct request_channel **channel)
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

static int names_open_both(struct names_root *root, struct request_channel **channel, struct view **view)
{
    int code = names_find_daemon(root, channel);
    if (code != 0)
        return code;
    code = names_open_view(root, root->run_dir, *channel, view);
    if (code == 0)
        return 0;
    if (!request_is_alive(*channel)) /* and what was found is of the next one */
        code = -EINPROGRESS;
    request_abandon(*channel);
    return code;
}

static int names_map(struct names_root *root)
{
    struct request_channel *channel;
    struct view *view;
    if (root->sight != NAMES_SEEN)
        return -EREMOTE;
    int code = names_inherit(root, &channel, &view);
    if (code != 0)
        code = names_open_both(root, &channel, &view);
    if (code != 0)
        return code;
    /* What stood there before is left mapped: another thread may be looking. It served a daemon that is gone.
     */
    __atomic_store_n(&root->view, view, __ATOMIC_RELEASE);
    __atomic_store_n(&root->channel, channel, __ATOMIC_RELEASE);
    __atomic_store_n(&root->served, 1, __ATOMIC_RELAXED);
    return 0;
}

/* NULL: not attached. */
static struct request_channel *names_channel_of(const struct names_root *root)
{
    return __atomic_load_n(&root->channel, __ATOMIC_ACQUIRE);
}

static bool names_root_is_attached(const struct names_root *root)
{
    const struct request_channel *channel = names_channel_of(root);
    return channel != NULL && request_is_alive(channel) && root->sight == NAMES_SEEN;
}

/* One thread at a time maps, no handler comes in between, and errno is as it was after it. */
struct mapping {
    uint64_t signals;
    int saved;
};

static struct mapping names_begin_mapping(struct names_root *root)
{
    const uint64_t signals = sys_block_signals();
    while (__atomic_exchange_n(&root->attaching, 1, __ATOMIC_ACQUIRE) != 0)
        SYS0(SYS_sched_yield);
    return (struct mapping){signals, errno};
}

static void names_end_mapping(struct names_root *root, const struct mapping *mapping)
{
    errno = mapping->saved;
    __atomic_store_n(&root->attaching, 0, __ATOMIC_RELEASE);
    sys_set_signals(mapping->signals);
}

/* A thread that acts for another user by its fsuid alone, as a file server's, is still one of its process, whose daemon this
 * is: it is itself for as long as it maps, if it can be that user again. The user; -1: it acts for nobody. */
static long names_be_oneself(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    const long acts_for = SYS1(SYS_setfsuid, -1), own = SYS0(SYS_geteuid);
    if (acts_for == own || SYS2(SYS_capget, &header, data) != 0 || !(data[0].effective & (1u << CAP_SETUID)))
        return -1;
    SYS1(SYS_setfsuid, own);
    return acts_for;
}

static int names_map_as_oneself(struct names_root *root)
{
    int code = names_map(root);
    const long acts_for = code == -EACCES ? names_be_oneself() : -1;
    if (acts_for < 0)
        return code;
    code = names_map(root);
    SYS1(SYS_setfsuid, acts_for);
    return code;
}

static int names_attach_root(struct names_root *root)
{
    const struct mapping mapping = names_begin_mapping(root);
    int code = names_root_is_attached(root) ? 0 : names_map_as_oneself(root);
    names_end_mapping(root, &mapping);
    return code;
}

/* Where another thread still reads the old path, that stays. */
static void names_move(struct names_root *root, const char *way)
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
        names_move(root, way);
    names_end_mapping(root, &mapping);
}

/* A daemon that has crashed is waited for if somebody starts it again. */
static int names_attach_patiently(struct names_root *root)
{
    const struct timespec pause = clock_split(LOOK);
    uint64_t began = clock_monotonic();
    int code;
    while ((code = names_attach_root(root)) == -EINPROGRESS && clock_monotonic() - began < root->deadline)
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

/* What was read holds if this node was still of the session then: 0. Else that is waited for: -EAGAIN, look again;
 * -EHOSTDOWN, the daemon has ended; or -ENOLINK. */
static int names_check_lease(const struct names_root *root, struct request_channel *channel)
{
    const struct timespec pause = clock_split(LOOK);
    if (__builtin_expect(request_has_lease(channel), 1) || BROKEN("no-lease"))
        return 0;
    uint64_t began = clock_monotonic();
    uint32_t stalls = request_stalls(channel);
    for (int learnt = 0; request_is_alive(channel) && clock_monotonic() - began < root->deadline; learnt = -EAGAIN) {
        if (stalls != request_stalls(channel))
            began = clock_monotonic();
        stalls = request_stalls(channel);
        const int asked = request_learn_clock(channel, root->deadline);
        if (asked >= 0 && request_has_lease(channel))
            return asked > 0 ? -EAGAIN : learnt;
        SYS2(SYS_nanosleep, &pause, NULL);
    }
    return request_is_alive(channel) ? -ENOLINK : -EHOSTDOWN;
}

/* The index has outgrown what this process maps of it. The second thread finds it done. */
static int names_grow(struct names_root *root, const struct view *small)
{
    struct view *larger;
    const struct mapping mapping = names_begin_mapping(root);
    int code = root->view == small ? view_grow(&larger, small) : 0;
    if (code == 0 && root->view == small)
        __atomic_store_n(&root->view, larger, __ATOMIC_RELEASE);
    names_end_mapping(root, &mapping);
    return code;
}

/* The index's writer stands still in the middle of a change: it has lost the processor, or is dead. */
static int names_await_writer(const struct names_root *root, const struct request_channel *channel, uint64_t began)
{
    const struct timespec pause = clock_split(LOOK);
    if (!request_is_alive(channel))
        return -EHOSTDOWN;
    if (clock_monotonic() - began >= root->deadline)
        return -ETIMEDOUT;
    SYS2(SYS_nanosleep, &pause, NULL);
    return 0;
}

/* 0: a look that failed may go better now. */
static int names_mend(struct names_root *root, const struct request_channel *channel, const struct view *view, uint64_t began,
                      int code)
{
    return code == -EOVERFLOW ? names_grow(root, view) : code == -EBUSY ? names_await_writer(root, channel, began) : code;
}

static int names_find_patiently(struct names_root *root, const struct request_channel *channel, struct view *view,
                                struct dirid dir, const char *name, size_t length, struct view_found *found, int code)
{
    const uint64_t began = clock_monotonic();
    while (code != 0 && (code = names_mend(root, channel, view, began, code)) == 0) {
        view = root->view;
        code = view_find(view, dir, name, length, found);
    }
    return code;
}

static bool names_has_granted(const struct names_root *root, struct dirid dir, const char *name, size_t length, bool is_new)
{
    const struct message_text text = message_text(name, length);
    return request_has_granted(root->channel, dir, &text, is_new);
}

bool names_is_granted(const struct names_root *root, struct dirid dir, const char *name, size_t length)
{
    return names_has_granted(root, dir, name, length, true);
}

/* What is only granted to this process is as it was: nobody is at work on it, and nobody will be before the grant is taken
 * back. */
static void names_see_granted(struct names_root *root, struct dirid dir, const char *name, size_t length,
                              struct view_found *found)
{
    const bool pending = found->entry.state == RECORD_PENDING;
    if (!names_has_granted(root, dir, name, length, pending))
        return;
    found->known = !pending;
    found->entry.state = RECORD_LIVE;
}

static int names_search_index(struct names_root *root, struct dirid dir, const char *name, size_t length,
                              struct view_found *found)
{
    struct request_channel *channel = root->channel;
    uint32_t gains = request_gains(channel);
    struct view *view = root->view;
    int code = view_find(view, dir, name, length, found);
    if (__builtin_expect(code != 0, 0))
        code = names_find_patiently(root, channel, view, dir, name, length, found, code);
    found->gains = gains;
    if (code == 0 && found->known && found->entry.state != RECORD_LIVE)
        names_see_granted(root, dir, name, length, found);
    return code == 0 ? names_check_lease(root, channel) : code;
}

int names_find(struct names_root *root, struct dirid dir, const char *name, size_t length, struct view_found *found)
{
    int code = names_attach(root);
    if (code != 0)
        return code;
    do
        code = names_search_index(root, dir, name, length, found);
    while (code == -EAGAIN || (code == -EHOSTDOWN && names_attach_patiently(root) == 0));
    return code == 0 ? 0 : names_fail(root, code);
}

bool names_knows(const struct names_root *root, const struct dirid *dir)
{
    return names_root_is_attached(root) && view_knows(root->view, dir);
}

bool names_has_all(const struct names_root *root, struct dirid dir, const char *name, size_t length,
                   const struct view_found *found)
{
    if (found->dir_known && (found->dir.flags & (RECORD_DELEGATED | RECORD_SPILLED)))
        return !(found->dir.flags & RECORD_SPILLED);
    bool is_home =
        request_is_sole_home(root->channel) || request_is_home(root->channel, record_shard(dir, record_hash(name, length)));
    return is_home && request_gains(root->channel) == found->gains;
}

bool names_is_sole_home(const struct names_root *root)
{
    return request_is_sole_home(root->channel);
}

/* Names of which other nodes' daemons are home: a page, up to its limit. */
struct slow_lookups {
    struct request_answer answer;
    uint64_t limit;
    size_t at;
    struct page_name next;
    int there; /* as page_next */
};

static void names_take_far(struct slow_lookups *far)
{
    const struct message *message = &far->answer.message;
    far->there = page_next(message->text_answer.text.text, message->text_answer.text.length, &far->at, &far->next);
}

static int names_ask_far(struct names_root *root, struct dirid dir, uint64_t from, size_t room, struct slow_lookups *far)
{
    const struct message list = {.type = MESSAGE_LIST, .dir = dir, .list = {.from = from, .room = room}};
    int code = names_ask(root, &list, &far->answer);
    if (code != 0)
        return code;
    far->limit = far->answer.message.text_answer.limit;
    names_take_far(far);
    code = far->answer.message.result;
    return code == MESSAGE_NOT_LOADED ? -ESTALE : code;
}

/* The names of this node's index and the far ones, in one order. */
struct merging {
    struct slow_lookups far;
    index_each *each;
    void *context;
    bool passed; /* the far names' limit */
};

/* Tells the far names that come before `until`, NULL: all. A name may be on its way from one home to another, and in
 * both. */
static int names_tell_far(struct merging *merging, const struct page_name *until)
{
    struct slow_lookups *far = &merging->far;
    while (far->there == 1) {
        int order = until != NULL ? page_order(&far->next, until) : -1;
        int code =
            order < 0 ? merging->each(merging->context, far->next.hash, far->next.name, far->next.length, &far->next.entry) : 0;
        if (order > 0 || code != 0)
            return code;
        names_take_far(far);
    }
    return far->there;
}

static int names_tell_near(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct merging *merging = context;
    const struct page_name near = {.hash = hash, .name = name, .length = length};
    if (hash > merging->far.limit) {
        merging->passed = true;
        return 1;
    }
    int code = names_tell_far(merging, &near);
    return code != 0 ? code : merging->each(merging->context, hash, name, length, entry);
}

/* `merging` has the far names by now. */
static int names_list_near(struct names_root *root, struct dirid dir, uint64_t from, struct merging *merging)
{
    const struct request_channel *channel = root->channel;
    struct view_place place = {.hash = from};
    struct view *view = root->view;
    int code = view_list(view, dir, &place, names_tell_near, merging);
    for (uint64_t began = clock_monotonic(), last = from; code < 0; last = place.hash) {
        if (place.hash != last)
            began = clock_monotonic();
        if ((code = names_mend(root, channel, view, began, code)) != 0)
            break;
        view = root->view;
        code = view_list(view, dir, &place, names_tell_near, merging);
    }
    if (code == 0 || merging->passed)
        code = names_tell_far(merging, NULL);
    const bool is_over = code == -ENODATA || code == -EHOSTDOWN; /* the next daemon has it read again */
    return code >= 0 ? code : is_over ? -ESTALE : names_fail(root, code);
}

/* Are all of its names in this node's index? True until `losses` says otherwise. */
static bool names_is_whole(struct names_root *root, struct dirid dir)
{
    struct view_found found;
    const bool is_known = names_search_index(root, dir, NULL, 0, &found) == 0 && found.dir_known;
    if (!is_known || (found.dir.flags & RECORD_SPILLED))
        return !is_known && request_is_sole_home(root->channel);
    return request_is_sole_home(root->channel) || (found.dir.flags & RECORD_DELEGATED);
}

/* What was asked for and what was read then are together all names only if none began to leave this node's index in
 * between. */
static int names_list_dir(struct names_root *root, struct dirid dir, uint64_t *from, size_t room, struct merging *merging)
{
    struct request_channel *channel = root->channel;
    uint32_t losses = request_losses(channel);
    int code = names_is_whole(root, dir) ? 0 : names_ask_far(root, dir, *from, room, &merging->far);
    HOOK("list-asked");
    if (code != 0)
        return code;
    code = names_list_near(root, dir, *from, merging);
    if (code >= 0 && (root->channel != channel || request_losses(channel) != losses || names_check_lease(root, channel) != 0) &&
        !BROKEN("list-torn"))
        return -ESTALE;
    *from = merging->far.limit + 1; /* 0 after PAGE_ALL */
    return code;
}

int names_list(struct names_root *root, struct dirid dir, uint64_t *from, size_t room, index_each *each, void *context)
{
    struct merging merging = {.far = {.limit = PAGE_ALL}, .each = each, .context = context};
    int code = names_attach(root);
    if (code == 0)
        code = names_list_dir(root, dir, from, room, &merging);
    request_read(&merging.far.answer);
    return code;
}

/* Nobody may go by an answer without a lease. If it comes back, nobody went on without this node, and the answer is as
 * good as it was; a call that was allowed to change something has no other choice than to wait for that. */
static int names_ask_once(struct names_root *root, const struct message *message, struct request_answer *answer,
                          struct request_hold *hold)
{
    struct request_channel *channel = root->channel;
    int code = hold == NULL ? request_ask(channel, message, answer, root->deadline)
                            : request_hold(channel, message, answer, root->deadline, hold);
    if (code != 0)
        return code;
    do
        code = names_check_lease(root, channel);
    while (code == -EAGAIN || (code == -ENOLINK && hold != NULL));
    if (code != 0 && hold != NULL)
        request_let_go(hold);
    if (code != 0)
        request_read(answer);
    return code;
}

/* What a daemon that crashed has not answered is asked its successor. */
static int names_ask_daemon(struct names_root *root, const struct message *message, struct request_answer *answer,
                            struct request_hold *hold)
{
    int code = names_attach(root);
    if (code != 0)
        return code;
    do
        code = names_ask_once(root, message, answer, hold);
    while (code == -EHOSTDOWN && names_attach_patiently(root) == 0);
    return code == 0 ? 0 : names_fail(root, code);
}

int names_ask(struct names_root *root, const struct message *message, struct request_answer *answer)
{
    return names_ask_daemon(root, message, answer, NULL);
}

int names_hold(struct names_root *root, const struct message *message, struct request_answer *answer, struct request_hold *hold)
{
    return names_ask_daemon(root, message, answer, hold);
}

void names_end(struct names_root *root, const struct message *message, struct request_hold *hold)
{
    int result;
    const int code = request_result(hold->channel, message, &result, root->deadline);
    if (code == -EUSERS || code == -ENOSPC) /* there was no queue pair for it so far */
        request_tell(hold->channel, message);
    request_let_go(hold);
}

void names_tell(struct names_root *root, const struct message *message)
{
    if (names_root_is_attached(root))
        request_tell(root->channel, message);
}

void names_tell_end(struct names_root *root, const struct message *message, struct request_hold *hold)
{
    if (!request_end(hold, message))
        names_tell(root, message);
    request_let_go(hold);
}

bool names_is_of_others(const struct names_root *root, const struct record_entry *entry)
{
    return entry->branch != 0 && entry->branch != request_branch(root->channel);
}

void names_looked(struct names_root *root, struct dirid dir, const char *name, size_t length, const struct record_entry *entry)
{
    const struct message looked = {
        .type = MESSAGE_VISITED, .dir = dir, .name = message_text(name, length), .found.entry = *entry};
    names_tell(root, &looked);
}

bool names_has_redirected(const struct names_root *root)
{
    const struct request_channel *channel = names_channel_of(root);
    return channel != NULL && request_has_redirected(channel);
}

bool names_is_slow_lookup(const struct names_root *root)
{
    const struct request_channel *channel = names_channel_of(root);
    return channel != NULL && request_is_slow_lookup(channel);
}

bool names_are_kept(const struct names_root *root)
{
    const struct request_channel *channel = names_channel_of(root);
    return channel != NULL && request_keeps_names(channel);
}

uint64_t names_places(const struct names_root *root)
{
    const struct request_channel *channel = names_channel_of(root);
    return channel != NULL ? request_places(channel) : 0;
}

void names_raise_places(struct names_root *root)
{
    struct request_channel *channel = names_channel_of(root);
    if (channel != NULL)
        request_raise_places(channel);
}

/* Is a directory whose place is too long to be told beneath the root? Every step of the way up is asked; one
 * that may not be taken counts as leading there. */
static bool names_leads_up_to(const struct names_root *root, int directory)
{
    struct statx below = {0}, stat = {0};
    bool found = false, is_top = false;
    int at = directory;
    while (!found && !is_top) {
        int above = sys_openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        if (at != directory)
            sys_close(at);
        at = above;
        found = above < 0 || identity_stat(root->id, above, "", AT_EMPTY_PATH, &stat) != 0 ||
                (names_device(&stat) == root->device && dirid_equal(dirid_of(&stat), root->id));
        is_top = !found && stat.stx_ino == below.stx_ino && names_device(&stat) == names_device(&below);
        below = stat;
    }
    if (at >= 0)
        sys_close(at);
    return found;
}

/* The kernel does not say where the directory is; as names_place_of, but that it tells the place in `text`. Where it leads up
 * to the root, but cannot be named, nothing is to be done there. */
static int names_place_by_climbing(struct names_root *root, int directory, char *text)
{
    int code = climb_place(root, directory, text);
    if (code >= 0 || !names_leads_up_to(root, directory))
        return code > 0;
    return names_fail(root, -ESRCH);
}

/* `text` is the kernel's path of it. In a chroot the root's own leads nowhere, and nothing is told of the mounts outside. */
static int names_place_by_mounts(struct names_root *root, int directory, char *text)
{
    struct statx stat;
    int code = -ENOENT;
    if (root->sight != NAMES_SEEN && root->within[0] != '\0')
        code = mounts_place_within(root->within, directory, text);
    else if (root->sight == NAMES_SEEN && sys_statx(AT_FDCWD, root->path, 0, STATX_TYPE, &stat) == 0)
        code = mounts_place(root->path, directory, text);
    return code == -ENOENT ? names_place_by_climbing(root, directory, text) : code;
}

int names_place_of(struct names_root *root, int directory, char *text, const char **relative)
{
    int code = names_read_place(directory, text);
    if (code == -ENAMETOOLONG && !names_leads_up_to(root, directory))
        return 0;
    if (code != 0 && code != -ENOENT)
        return code;
    enum path_verdict verdict = code == 0 && root->sight == NAMES_SEEN ? path_verdict(root->path, NULL, text) : PATH_FOREIGN;
    size_t length = strlen(root->path);
    *relative = verdict == PATH_IS_ROOT ? "." : text + (length == 1 ? 1 : length + 1);
    const bool is_covered =
        root->sight == NAMES_SEEN && mounts_are_two(root->path, directory); /* another may be mounted over it */
    if (verdict == PATH_FOREIGN || is_covered) {
        code = code == 0 ? names_place_by_mounts(root, directory, text) : names_place_by_climbing(root, directory, text);
        if (code != 1)
            return code;
        *relative = text;
    }
    size_t own = sizeof LAYOUT_OWN - 1;
    bool is_own = strncmp(*relative, LAYOUT_OWN, own) == 0 && ((*relative)[own] == '/' || (*relative)[own] == '\0');
    return is_own ? 0 : layout_is_in_reach(length + 1 + strlen(*relative)) ? 1 : -ENAMETOOLONG;
}

static int names_ping(struct request_channel *channel, uint64_t deadline)
{
    const struct message ping = {.type = MESSAGE_PING};
    int result;
    return request_result(channel, &ping, &result, deadline);
}

int names_see_grants(struct names_root *root)
{
    struct request_channel *channel = names_channel_of(root);
    if (channel == NULL || __builtin_expect(!request_has_grants(channel), 1) || BROKEN("times-unseen"))
        return 0;
    int code = names_ping(channel, root->deadline);
    return code == 0 || code == -EHOSTDOWN ? 1 : names_fail(root, code);
}

/* It may take long while everybody is there; if another node is silent, the daemon says so. */
static int names_load_patiently(struct names_root *root, const struct message *load, int *result)
{
    int code = -ETIMEDOUT;
    for (uint64_t waited = 0; code == -ETIMEDOUT && waited < LOAD_DEADLINE; waited += root->deadline + 1) {
        code = request_result(root->channel, load, result, root->deadline);
        if (code == -ETIMEDOUT && names_ping(root->channel, root->deadline) != 0)
            return code;
    }
    return code;
}

static int names_load_as(struct names_root *root, struct dirid dir, const char *relative, uint16_t flags)
{
    const struct message load = {
        .type = MESSAGE_LOAD, .flags = flags, .dir = dir, .load.path = message_text(relative, strlen(relative))};
    int result = 0, code = names_attach(root);
    if (code != 0)
        return code;
    do
        code = names_load_patiently(root, &load, &result);
    while (code == -EHOSTDOWN && names_attach_patiently(root) == 0);
    if (code == 0 && result == -ETIMEDOUT) /* a node is silent */
        code = result;
    return code == 0 ? result : names_fail(root, code);
}

int names_load(struct names_root *root, struct dirid dir, const char *relative)
{
    return names_load_as(root, dir, relative, 0);
}

int names_load_misplaced(struct names_root *root, struct dirid dir, const char *relative)
{
    return names_load_as(root, dir, relative, MESSAGE_MISPLACED);
}
