/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "answer.h"

#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "kernel.h"

/* No call has this bit in its flags: execveat looks at the path, and the kernel then refuses the call. */
#define ANSWER_NO_FLAG 0x40000000
#define ANSWER_EXCLUSIVE (O_CREAT | O_EXCL)
#define ANSWER_TEMPORARY (O_TMPFILE & ~O_DIRECTORY)

/* A call that may change rights or the root was seen; from then on they are asked for. */
static atomic_uint answer_rights_may_differ;
/* A program that the library is not in has forbidden others to look into it. Before, what cannot be looked at is a dynamic one
 * whose file may be executed and not read, which the library is in. */
static atomic_bool answer_some_hide;
static atomic_bool answer_was_told;

static int answer_said = -1; /* what is written to our standard error is read there; it does not block */

/* The process whose call below a root this thread answers; 0. */
static _Thread_local pid_t answer_caller;

/* On the caller's standard error, which is not held open, before it is answered: it may end then. */
static void answer_say(pid_t tid, const char *text, size_t length)
{
    const int fd = caller_take(tid, 2);
    if (fd < 0)
        return;
    sys_write(fd, text, length);
    sys_close(fd);
}

/* Once. */
static void answer_tell(pid_t tid, const char *sentence)
{
    if (!atomic_exchange(&answer_was_told, true))
        answer_say(tid, sentence, strlen(sentence));
}

void answer_listen(int said)
{
    answer_said = said;
}

void answer_trust_nobody(void)
{
    atomic_store(&answer_rights_may_differ, 1);
    atomic_store(&answer_some_hide, true);
}

/* What the library said here meanwhile is the caller's to hear. */
static void answer_pass_on(void)
{
    char text[512];
    int waiting = 0;
    if (answer_caller == 0 || SYS3(SYS_ioctl, answer_said, FIONREAD, &waiting) != 0)
        return;
    for (long length; waiting > 0 && (length = sys_read(answer_said, text, sizeof text)) > 0; waiting -= (int)length)
        answer_say(answer_caller, text, (size_t)length);
}

static struct answer answer_result(long result)
{
    return (struct answer){ANSWER_RESULT, result, 0};
}

/* The kernel does it. What it then reads through the caller's pointers may differ from what was read here only if the caller
 * changes it meanwhile. */
static struct answer answer_goes_on(void)
{
    return (struct answer){ANSWER_GOES_ON, 0, 0};
}

static struct answer answer_or_goes_on(long code)
{
    return code < 0 ? answer_result(code) : answer_goes_on();
}

/* What is asked of the listener is done also where the kernel breaks off: while this process is stopped or frozen and another
 * thread of its is at the listener, it says EINTR. */
static long answer_ioctl(int listener, unsigned long request, void *of)
{
    long code;
    do
        code = SYS3(SYS_ioctl, listener, request, of);
    while (code == -EINTR);
    return code;
}

/* A file that the caller demanded to make itself, and is not told of, is taken back, as long as it is as it was made: others
 * would wait for the end of what it locks. Of any other file it is not known who made it. */
static void answer_take_back(const struct arguments *a, int fd, uint64_t flags)
{
    const int at = (int)a->made[0];
    const char *path = (const char *)a->made[1];
    struct stat made, found;
    if ((flags & ANSWER_EXCLUSIVE) == ANSWER_EXCLUSIVE && fstat(fd, &made) == 0 &&
        fstatat(at, path, &found, AT_SYMLINK_NOFOLLOW) == 0 && made.st_dev == found.st_dev && made.st_ino == found.st_ino &&
        found.st_size == 0)
        unlinkat(at, path, 0);
}

/* The descriptor becomes the caller's, as the result. It is closed here before the caller goes on: its own close is to be the
 * last (a program that it wrote may be executed then, what is mounted there be unmounted, and its watchers are told). One that
 * was killed (ENOENT) may have made a file, as natively. */
static long answer_hand_over(int listener, uint64_t id, const struct arguments *a, const struct answer *answer)
{
    const int fd = (int)answer->value;
    struct seccomp_notif_addfd add = {.id = id, .srcfd = (uint32_t)fd, .newfd_flags = (uint32_t)answer->flags & O_CLOEXEC};
    const long code = answer_ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    if (code < 0 && code != -ENOENT)
        answer_take_back(a, fd, answer->flags);
    sys_close(fd);
    return code;
}

void answer_give(int listener, uint64_t id, const struct answer *answer)
{
    struct seccomp_notif_resp response = {.id = id};
    if (answer->way == ANSWER_GOES_ON) {
        response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    } else {
        response.val = answer->value < 0 ? 0 : answer->value;
        response.error = answer->value < 0 ? (int)answer->value : 0;
    }
    answer_ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response); /* ENOENT: the caller was killed */
}

void answer_refuse(int listener, const struct seccomp_notif *call)
{
    const struct answer answer = answer_result(-EIO);
    answer_tell((pid_t)call->pid,
                "shunt: the helper of statically linked programs has ended, so that their calls on paths fail with "
                "EIO (run the program again)\n");
    answer_give(listener, call->id, &answer);
}

static long answer_errno(long result)
{
    return result == -1 ? -errno : result;
}

static long answer_do(const struct arguments *a)
{
    const long *m = a->made;
    return answer_errno(syscall(a->call->as, m[0], m[1], m[2], m[3], m[4], m[5]));
}

/* The type of a file; -errno. */
static long answer_type(int at, const char *path, int flags)
{
    struct stat stat;
    const long code = answer_errno(fstatat(at, path, &stat, flags));
    return code < 0 ? code : (long)(stat.st_mode & S_IFMT);
}

/* Moves a file to the trunk, with all that it takes to execute it: the shim does that before the kernel looks at the call. */
static void answer_to_trunk(int at, const char *path)
{
    char *none[] = {NULL};
    syscall(SYS_execveat, at, path, none, none, ANSWER_NO_FLAG);
}

/* What the kernel is to do, since it is about the caller itself, with a file that is in the trunk by now; 0, or -errno: it
 * would find that file, or none where a file in a branch is in the way. */
static long answer_prepare(int at, const char *path, int flags, bool is_for_directory)
{
    const long type = answer_type(at, path, flags);
    if (type < 0 || (is_for_directory && type != S_IFDIR))
        return type < 0 ? type : -ENOTDIR;
    if (type == S_IFREG)
        answer_to_trunk(at, path);
    return 0;
}

/* An open may last (a FIFO), or has to be the caller's own (a terminal): both only of what lies in the trunk, so in the
 * kernel: 1. A descriptor of O_PATH cannot be handed over. 0: the kernel need not; -errno. */
static long answer_open_in_kernel(const struct arguments *a, uint64_t flags)
{
    const int at = (int)a->made[0], follow = flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
    const char *path = (const char *)a->made[1];
    if (flags & O_PATH) {
        const long code = answer_prepare(at, path, follow, (flags & O_DIRECTORY) != 0);
        return code < 0 ? code : 1;
    }
    if ((flags & ANSWER_EXCLUSIVE) == ANSWER_EXCLUSIVE || (flags & O_DIRECTORY))
        return 0;
    const long type = answer_type(at, path, follow);
    if (type == -EIO)
        return type;
    return type == S_IFIFO || type == S_IFCHR || type == S_IFBLK || type == S_IFSOCK;
}

/* Before the open has its effects: what the caller may not be given is not to be made or emptied. */
static long answer_may_open(const struct arguments *a, uint64_t flags)
{
    const int room = flags & (O_CREAT | O_TRUNC) ? caller_has_room(a->tid) : 1;
    return room == 0 ? -EMFILE : 0;
}

static struct answer answer_open(struct arguments *a)
{
    struct open_how *how = a->call->kind == CALLS_OPEN_HOW ? (struct open_how *)a->in : NULL;
    if (how != NULL && (size_t)a->made[3] < sizeof *how)
        return answer_goes_on(); /* EINVAL */
    const uint64_t flags = how != NULL ? how->flags : (uint64_t)(unsigned)a->made[2];
    const long in_kernel = answer_open_in_kernel(a, flags);
    if (in_kernel != 0)
        return answer_or_goes_on(in_kernel);
    if (how != NULL)
        how->flags |= O_CLOEXEC;
    else
        a->made[2] |= O_CLOEXEC;
    const long refused = answer_may_open(a, flags), fd = refused == 0 ? answer_do(a) : refused;
    return fd < 0 ? answer_result(fd) : (struct answer){ANSWER_DESCRIPTOR, fd, flags};
}

/* Of name_to_handle_at: the kernel looks at its flags before the path. */
#define ANSWER_FLAGS (AT_SYMLINK_FOLLOW | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | 0x203 /* AT_HANDLE_... */)

/* A mount's source need be no path, the file of a quota is looked at last, and attributes first; and what lacks a capability is
 * told so whatever the path is. */
static bool answer_kernel_knows_better(const struct arguments *a, unsigned i)
{
    return (a->call->number == SYS_mount && i == 0) || (a->call->number == SYS_quotactl && i == 1) ||
           a->call->number == SYS_mount_setattr || (a->call->how & CALLS_ADMIN && geteuid() != 0) ||
           (a->flags & ~(unsigned)ANSWER_FLAGS) != 0;
}

static long answer_one_in_trunk(const struct arguments *a, unsigned i)
{
    const struct arguments_path *path = &a->paths[i];
    const bool has_directory = path->where > 0 && a->call->arguments[path->where - 1] == 'd';
    const bool follows = a->call->how & CALLS_FOLLOWS ? !(a->flags & AT_SYMLINK_NOFOLLOW) : (a->flags & AT_SYMLINK_FOLLOW) != 0;
    return answer_prepare(has_directory ? (int)a->made[path->where - 1] : AT_FDCWD,
                          path->given[0] == '/' ? path->text : path->given,
                          (follows ? 0 : AT_SYMLINK_NOFOLLOW) | (int)(a->flags & AT_EMPTY_PATH), a->call->kind == CALLS_CHDIR);
}

/* The target of a mount comes before its source, as in the kernel. */
static long answer_in_trunk(const struct arguments *a)
{
    long refused = 0;
    for (unsigned i = a->count; i-- > 0;) {
        const long code = a->paths[i].is_in_root ? answer_one_in_trunk(a, i) : 0;
        if (refused == 0 && !answer_kernel_knows_better(a, i))
            refused = code;
    }
    return refused;
}

/* A file does not become longer than its caller may make one, who gets the signal that the kernel sends. */
static long answer_truncate(const struct arguments *a)
{
    const char *path = (const char *)a->made[0];
    struct stat stat;
    if (a->made[1] < 0 || !caller_may_not_write(a->tid, (uint64_t)a->made[1]) || fstatat(AT_FDCWD, path, &stat, 0) != 0 ||
        !S_ISREG(stat.st_mode) || stat.st_size >= a->made[1] || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return answer_do(a);
    SYS2(SYS_tkill, a->tid, SIGXFSZ);
    return -EFBIG;
}

static long answer_do_plainly(const struct arguments *a)
{
    return a->call->as == SYS_truncate ? answer_truncate(a) : answer_do(a);
}

/* A socket keeps the words of its name. Where they mean something else to us, the kernel is to make it. */
static long answer_may_bind(const struct arguments *a)
{
    return answer_type(AT_FDCWD, a->paths[0].text, AT_SYMLINK_NOFOLLOW) >= 0 ? -EADDRINUSE : 0;
}

static struct answer answer_bind(const struct arguments *a)
{
    return a->paths[0].is_spelt ? answer_or_goes_on(answer_may_bind(a)) : answer_result(answer_do(a));
}

static struct answer answer_perform(struct arguments *a)
{
    switch (a->call->kind) {
    case CALLS_OPEN:
    case CALLS_OPEN_HOW:
        return answer_open(a);
    case CALLS_CHDIR:
    case CALLS_TRUNK:
    case CALLS_EXEC:
        return answer_or_goes_on(answer_in_trunk(a));
    case CALLS_BIND:
        return answer_bind(a);
    default:
        return answer_result(arguments_back(a, answer_do_plainly(a)));
    }
}

/* 1, 0 or -errno. */
static int answer_is_elsewhere(pid_t tid)
{
    const int code = atomic_load(&answer_rights_may_differ) ? caller_is_elsewhere(tid) : 0;
    if (code <= 0)
        return code;
    answer_tell(tid,
                "shunt: warning: a statically linked program has a root directory or mounts of its own, so shunt does not see "
                "what it does there\n");
    return 1;
}

/* Its umask counts, as in an open only where that may make a file. */
static bool answer_may_make(const struct arguments *a)
{
    return (a->call->how & CALLS_MAKES) && (a->call->kind != CALLS_OPEN || (a->made[2] & (O_CREAT | ANSWER_TEMPORARY)) != 0);
}

/* With its umask, and not for another user. 0 or -errno. */
static int answer_take_rights(const struct arguments *a)
{
    struct caller_rights rights = {0};
    const bool asks = atomic_load(&answer_rights_may_differ) != 0;
    if (!asks && !answer_may_make(a))
        return 0;
    int code = asks ? caller_rights(a->tid, &rights) : caller_umask(a->tid, &rights.umask);
    if (code == 0 && rights.are_others) {
        answer_tell(a->tid,
                    "shunt: a statically linked program changed its user, groups or capabilities, so its calls on paths of a "
                    "root fail with EIO (link it dynamically)\n");
        code = -EIO;
    }
    if (code == 0)
        SYS1(SYS_umask, rights.umask);
    return code == -ESRCH || code == -ENOENT ? -EIO : code;
}

/* Is this one of the roots that the shim of a caller names? */
static int answer_roots(const struct seccomp_notif *call)
{
    static _Thread_local char roots[WHERE_ROOTS * 256];
    return caller_read_text((pid_t)call->pid, call->data.args[1], roots, sizeof roots) >= 0 && where_are_the_roots(roots)
               ? 0
               : -EINVAL;
}

/* It asks, or is about to forbid that others look into it. */
static struct answer answer_control(const struct seccomp_notif *call)
{
    if (call->data.args[0] == CALLS_ASK)
        return answer_result(answer_roots(call));
    const pid_t tid = (pid_t)call->pid;
    if (call->data.args[1] == 0 && caller_can_hide() && caller_is_shim(tid, call->data.instruction_pointer) <= 0) {
        atomic_store(&answer_some_hide, true);
        answer_tell(tid,
                    "shunt: warning: a statically linked program forbids that others look into it (PR_SET_DUMPABLE), so its "
                    "calls on paths fail with EIO from here on (link it dynamically)\n");
    }
    return answer_goes_on();
}

/* Its sandbox would bind it, and not us, who do its calls below a root. */
static struct answer answer_refused(const struct seccomp_notif *call)
{
    return caller_is_shim((pid_t)call->pid, call->data.instruction_pointer) > 0 ? answer_goes_on() : answer_result(-ENOSYS);
}

static bool answer_still_waits(int listener, uint64_t id)
{
    return answer_ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* It may become another user by that. */
static bool answer_is_set_id(const struct arguments *a)
{
    struct statx stat;
    return a->count > 0 && sys_statx(AT_FDCWD, a->paths[0].text, 0, STATX_MODE, &stat) == 0 &&
           (stat.stx_mode & (S_ISUID | S_ISGID)) != 0;
}

/* The shim of a dynamic program makes the calls of the union itself. */
static bool answer_looks_ours(const struct seccomp_notif *call, const struct calls_entry *entry, struct arguments *a)
{
    const pid_t tid = (pid_t)call->pid;
    const int elsewhere = answer_is_elsewhere(tid);
    if (elsewhere > 0)
        return false;
    const bool is_ours = arguments_look(a, entry, (const uint64_t *)call->data.args, tid) != 0;
    if (entry->kind == CALLS_EXEC && answer_is_set_id(a))
        atomic_store(&answer_rights_may_differ, 1);
    const bool is_told = elsewhere == 0 && !a->is_unknown && !(a->is_hidden && atomic_load(&answer_some_hide));
    if (is_told && !is_ours)
        return false;
    const int is_shim = caller_is_shim(tid, call->data.instruction_pointer);
    if (!is_told || is_shim < 0)
        a->objection = -EIO;
    return is_shim <= 0;
}

/* What is known of a program is forgotten last: by then it has been asked of the one that executes another. */
static bool answer_is_ours(const struct seccomp_notif *call, const struct calls_entry *entry, struct arguments *a)
{
    const bool is_ours = answer_looks_ours(call, entry, a);
    if (entry->kind == CALLS_EXEC)
        caller_executes((pid_t)call->pid);
    return is_ours;
}

/* Threads, too, are begun by clone3, whose flags the filter does not see. */
static bool answer_may_change_rights(const struct seccomp_notif *call)
{
    uint64_t flags;
    return call->data.nr != SYS_clone3 || caller_read((pid_t)call->pid, call->data.args[0], &flags, sizeof flags) != 0 ||
           (flags & (CLONE_NEWNS | CLONE_NEWUSER)) != 0;
}

bool answer_at_once(const struct seccomp_notif *call, struct arguments *a, struct answer *answer)
{
    const struct calls_entry *entry = calls_find(call->data.nr);
    *answer = answer_goes_on();
    if (entry == NULL || entry->kind == CALLS_RIGHTS)
        atomic_fetch_or(&answer_rights_may_differ, answer_may_change_rights(call));
    else if (entry->kind == CALLS_CONTROL)
        *answer = answer_control(call);
    else if (entry->kind == CALLS_REFUSED)
        *answer = answer_refused(call);
    else
        return !answer_is_ours(call, entry, a);
    return true;
}

/* What is to be said is said before the caller gets its descriptor, which may become its standard error. */
struct answer answer_find(int listener, const struct seccomp_notif *call, struct arguments *a)
{
    answer_caller = (pid_t)call->pid;
    int code = arguments_make(a);
    code = code == 0 ? answer_take_rights(a) : code;
    struct answer answer = answer_result(code == 0 ? -EIO : code);
    if (code == 0 && answer_still_waits(listener, call->id))
        answer = answer_perform(a);
    answer_pass_on();
    if (answer.way == ANSWER_DESCRIPTOR)
        answer = answer_result(answer_hand_over(listener, call->id, a, &answer));
    arguments_release(a);
    answer_caller = 0;
    return answer;
}
