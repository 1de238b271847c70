/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "caller.h"

#include <linux/capability.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "base/text.h"
#include "kernel.h"

#define CALLER_KNOWN 512 /* at most so many threads are remembered, each with a descriptor */
#define CALLER_STATUS 4096
#define CALLER_SHORT 256 /* what most texts are shorter than; to read a page takes longer */
#define CALLER_SHIM "/libshunt_preload.so"
#define CALLER_LOADER "/ld-linux"

/* Descriptors of /proc/PID/mem, which read nothing any more once the program of that time is gone: replaced or ended. */
static struct caller_slot {
    pthread_mutex_t lock;
    pid_t tid;
    int memory;
    bool has_shim;
    uint64_t start, end; /* of the program's own code */
} caller_slots[CALLER_KNOWN];
static unsigned caller_slot_count = CALLER_KNOWN;

static char caller_own_rights[CALLER_STATUS], caller_own_space[CALLER_NAME], caller_own_users[CALLER_NAME];
static uint64_t caller_own_capabilities;

static long caller_move(long number, pid_t tid, uint64_t there, void *here, size_t size)
{
    const struct iovec own = {here, size}, other = {(void *)(uintptr_t)there, size};
    return SYS6(number, tid, &own, 1, &other, 1, 0);
}

/* Of other errors the caller knows nothing: the kernel would not meet them in its place. */
static int caller_moved(long moved, size_t size)
{
    if (moved == (long)size)
        return 0;
    return moved >= 0 || moved == -EFAULT ? -EFAULT : moved == -EPERM ? -EPERM : -EIO;
}

int caller_read(pid_t tid, uint64_t from, void *to, size_t size)
{
    return size == 0 ? 0 : caller_moved(caller_move(SYS_process_vm_readv, tid, from, to, size), size);
}

int caller_write(pid_t tid, uint64_t to, const void *from, size_t size)
{
    return size == 0 ? 0 : caller_moved(caller_move(SYS_process_vm_writev, tid, to, (void *)from, size), size);
}

/* Page by page, since what follows the end may not be there. */
long caller_read_text(pid_t tid, uint64_t from, char *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        const size_t page = SYS_LEAST_PAGE - (from + at) % SYS_LEAST_PAGE,
                     room = at == 0 && size > CALLER_SHORT ? CALLER_SHORT : size - at, wanted = page < room ? page : room;
        const long got = caller_move(SYS_process_vm_readv, tid, from + at, to + at, wanted);
        if (got <= 0)
            return caller_moved(got, wanted);
        const char *end = memchr(to + at, '\0', (size_t)got);
        if (end != NULL)
            return end - to;
        at += (size_t)got;
    }
    return -ENAMETOOLONG;
}

void caller_name(pid_t tid, const char *what, char to[CALLER_NAME])
{
    struct text text;
    text_init(&text, to, CALLER_NAME);
    text_add(&text, "/proc/");
    text_number(&text, (uint64_t)tid, 10);
    text_add(&text, "/");
    text_add(&text, what);
}

void caller_name_descriptor(pid_t tid, int fd, char to[CALLER_NAME])
{
    struct text text;
    if (fd == AT_FDCWD) {
        caller_name(tid, "cwd", to);
        return;
    }
    caller_name(tid, "fd/", to);
    text_init(&text, to + strlen(to), CALLER_NAME - strlen(to));
    text_number(&text, (uint64_t)(unsigned)fd, 10);
}

static long caller_read_file(const char *path, char *to, size_t size)
{
    const int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    const long length = sys_read(fd, to, size - 1);
    sys_close(fd);
    to[length > 0 ? length : 0] = '\0';
    return length;
}

/* The number after that word at the start of a line; -1: there is none. */
static long caller_number(const char *status, const char *word, unsigned base)
{
    const char *at = strstr(status, word);
    long number = 0;
    if (at == NULL)
        return -1;
    for (at += strlen(word); *at == '\t' || *at == ' '; at++)
        continue;
    for (; *at >= '0' && *at <= '9'; at++)
        number = number * base + (*at - '0');
    return number;
}

/* That thread, which may have descriptors of its own, or be the last of its process; before Linux 6.9 its process. */
static int caller_open_process(pid_t tid)
{
    char name[CALLER_NAME], status[CALLER_STATUS];
    const int thread = (int)SYS2(SYS_pidfd_open, tid, PIDFD_THREAD);
    if (thread != -EINVAL)
        return thread;
    caller_name(tid, "status", name);
    const long length = caller_read_file(name, status, sizeof status);
    return length < 0 ? (int)length : (int)SYS2(SYS_pidfd_open, caller_number(status, "\nTgid:", 10), 0);
}

int caller_take(pid_t tid, int fd)
{
    const int process = caller_open_process(tid);
    if (process < 0)
        return process;
    const int taken = (int)SYS3(SYS_pidfd_getfd, process, fd, 0);
    sys_close(process);
    return taken;
}

/* What the maps of a program say. */
struct caller_maps {
    bool has_shim, has_loader;
    uint64_t start, end; /* of its own code */
    char own[PATH_MAX];  /* its file */
};

static uint64_t caller_address(const char **at)
{
    uint64_t number = 0;
    for (; (**at >= '0' && **at <= '9') || (**at >= 'a' && **at <= 'f'); ++*at)
        number = number * 16 + (uint64_t)(**at <= '9' ? **at - '0' : **at - 'a' + 10);
    ++*at;
    return number;
}

/* START-END PERMISSIONS ... /PATH */
static void caller_read_map(struct caller_maps *maps, const char *line)
{
    const char *at = line, *path = strchr(line, '/');
    const uint64_t start = caller_address(&at), end = caller_address(&at);
    if (path == NULL)
        return;
    maps->has_shim |= strstr(path, CALLER_SHIM) != NULL;
    maps->has_loader |= strstr(path, CALLER_LOADER) != NULL;
    if (at[2] != 'x' || strcmp(path, maps->own) != 0)
        return;
    maps->start = maps->end == 0 || start < maps->start ? start : maps->start;
    maps->end = end > maps->end ? end : maps->end;
}

/* 0 or -errno. */
static int caller_read_maps(pid_t tid, struct caller_maps *maps)
{
    char name[CALLER_NAME], piece[2 * PATH_MAX];
    size_t kept = 0;
    long got = 0;
    *maps = (struct caller_maps){0};
    caller_name(tid, "exe", name);
    const ssize_t length = sys_readlinkat(AT_FDCWD, name, maps->own, sizeof maps->own - 1);
    if (length < 0)
        return (int)length;
    caller_name(tid, "maps", name);
    const int fd = sys_openat(AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    while ((got = sys_read(fd, piece + kept, sizeof piece - 1 - kept)) > 0) {
        char *line = piece, *end;
        piece[kept + (size_t)got] = '\0';
        for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            caller_read_map(maps, line);
        }
        kept = strlen(line);
        memmove(piece, line, kept);
    }
    sys_close(fd);
    return (int)got;
}

static bool caller_is_known(const struct caller_slot *slot, pid_t tid, uint64_t any)
{
    char byte;
    return slot->tid == tid && SYS4(SYS_pread64, slot->memory, &byte, 1, any) == 1;
}

static void caller_forget(struct caller_slot *slot)
{
    if (slot->tid != 0)
        sys_close(slot->memory);
    slot->tid = 0;
}

/* 0 or -errno: nothing is remembered. */
static int caller_learn(struct caller_slot *slot, pid_t tid)
{
    char name[CALLER_NAME];
    struct caller_maps maps;
    caller_forget(slot);
    caller_name(tid, "mem", name);
    const int memory = sys_openat(AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0), code = caller_read_maps(tid, &maps);
    slot->has_shim = maps.has_shim;
    slot->start = maps.start;
    slot->end = maps.end;
    const bool may_change = maps.has_loader && !maps.has_shim; /* the loader may be about to load it */
    if (memory >= 0 && !may_change && code == 0) {
        slot->memory = memory;
        slot->tid = tid;
    } else if (memory >= 0) {
        sys_close(memory);
    }
    return code;
}

int caller_is_shim(pid_t tid, uint64_t code)
{
    int error = 0;
    struct caller_slot *slot = &caller_slots[(unsigned)tid % caller_slot_count];
    pthread_mutex_lock(&slot->lock);
    if (!caller_is_known(slot, tid, code))
        error = caller_learn(slot, tid);
    const bool is_shim = slot->has_shim && (code < slot->start || code >= slot->end);
    pthread_mutex_unlock(&slot->lock);
    return error == 0 || error == -EACCES || error == -EPERM ? is_shim : -EIO;
}

void caller_executes(pid_t tid)
{
    struct caller_slot *slot = &caller_slots[(unsigned)tid % caller_slot_count];
    pthread_mutex_lock(&slot->lock);
    if (slot->tid == tid)
        caller_forget(slot);
    pthread_mutex_unlock(&slot->lock);
}

/* From the line of the user to that of the groups, as the kernel writes them one after the other. */
static const char *caller_rights_in(char *status)
{
    char *start = strstr(status, "\nUid:"), *groups = start != NULL ? strstr(start, "\nGroups:") : NULL;
    char *end = groups != NULL ? strchr(groups + 1, '\n') : NULL;
    if (end == NULL)
        return "";
    *end = '\0';
    char *size = strstr(start, "\nFDSize:"); /* between them, and of no interest */
    if (size != NULL)
        memmove(size, strchr(size + 1, '\n'), strlen(strchr(size + 1, '\n')) + 1);
    return start;
}

/* Its length or -errno. */
static ssize_t caller_space(const char *of, char to[CALLER_NAME])
{
    const ssize_t length = sys_readlinkat(AT_FDCWD, of, to, CALLER_NAME - 1);
    to[length > 0 ? length : 0] = '\0';
    return length;
}

static uint64_t caller_capabilities(const char *status)
{
    const char *at = strstr(status, "\nCapEff:\t");
    return at != NULL ? (at += strlen("\nCapEff:\t"), caller_address(&at)) : 0;
}

/* Those of another namespace of users are worth nothing here. */
static bool caller_lacks_capabilities(pid_t tid, const char *status)
{
    char name[CALLER_NAME], found[CALLER_NAME];
    if (caller_own_capabilities == 0)
        return false;
    caller_name(tid, "ns/user", name);
    return (caller_own_capabilities & ~caller_capabilities(status)) != 0 || caller_space(name, found) < 0 ||
           strcmp(found, caller_own_users) != 0;
}

static long caller_read_status(pid_t tid, char status[CALLER_STATUS])
{
    char name[CALLER_NAME];
    caller_name(tid, "status", name);
    return caller_read_file(name, status, CALLER_STATUS);
}

static mode_t caller_umask_in(const char *status)
{
    const long umask = caller_number(status, "\nUmask:", 8);
    return umask < 0 ? 0 : (mode_t)umask;
}

int caller_umask(pid_t tid, mode_t *umask)
{
    char status[CALLER_STATUS];
    const long length = caller_read_status(tid, status);
    if (length >= 0)
        *umask = caller_umask_in(status);
    return length < 0 ? (int)length : 0;
}

int caller_rights(pid_t tid, struct caller_rights *rights)
{
    char status[CALLER_STATUS];
    const long length = caller_read_status(tid, status);
    if (length < 0)
        return (int)length;
    rights->umask = caller_umask_in(status);
    const bool lacks_some = caller_lacks_capabilities(tid, status);
    rights->are_others = lacks_some || strcmp(caller_rights_in(status), caller_own_rights) != 0;
    return 0;
}

bool caller_can_hide(void)
{
    return (caller_own_capabilities & 1u << CAP_SYS_PTRACE) == 0;
}

/* The kernel tells how many are open since Linux 6.2; where there are as many as it may have, they may still have higher
 * numbers, from a time when it might have more. */
static bool caller_has_all_below(pid_t tid, rlim_t limit)
{
    char name[CALLER_NAME];
    struct statx stat;
    for (rlim_t fd = 0; fd < limit; fd++) {
        caller_name_descriptor(tid, (int)fd, name);
        if (sys_statx(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == -ENOENT)
            return false;
    }
    return true;
}

int caller_has_room(pid_t tid)
{
    char name[CALLER_NAME];
    struct statx stat;
    struct rlimit limit;
    int code = (int)SYS4(SYS_prlimit64, tid, RLIMIT_NOFILE, NULL, &limit);
    caller_name(tid, "fd", name);
    if (code == 0)
        code = sys_statx(AT_FDCWD, name, 0, STATX_SIZE, &stat);
    if (code != 0)
        return code;
    const bool is_counted = stat.stx_size != 0;
    return (is_counted && stat.stx_size < limit.rlim_cur) || !caller_has_all_below(tid, limit.rlim_cur);
}

bool caller_may_not_write(pid_t tid, uint64_t size)
{
    struct rlimit limit;
    return SYS4(SYS_prlimit64, tid, RLIMIT_FSIZE, NULL, &limit) == 0 && size > limit.rlim_cur;
}

/* 1: it is another one than ours, or not to be looked at; 0; -EIO: it cannot be told. */
static int caller_has_another(pid_t tid, const char *what, const char *own)
{
    char name[CALLER_NAME], found[CALLER_NAME];
    caller_name(tid, what, name);
    const ssize_t length = caller_space(name, found);
    if (length >= 0)
        return strcmp(found, own) != 0;
    return length == -EACCES || length == -EPERM ? 1 : -EIO;
}

int caller_is_elsewhere(pid_t tid)
{
    const int code = caller_has_another(tid, "root", "/");
    return code != 0 ? code : caller_has_another(tid, "ns/mnt", caller_own_space);
}

void caller_start(void)
{
    char status[CALLER_STATUS] = "";
    struct rlimit limit;
    for (size_t i = 0; i < CALLER_KNOWN; i++)
        pthread_mutex_init(&caller_slots[i].lock, NULL);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < CALLER_KNOWN)
        caller_slot_count = limit.rlim_cur >= 4 ? (unsigned)limit.rlim_cur / 4 : 1;
    caller_read_file("/proc/self/status", status, sizeof status);
    caller_own_capabilities = caller_capabilities(status);
    caller_space("/proc/self/ns/user", caller_own_users);
    strcpy(caller_own_rights, caller_rights_in(status));
    caller_space("/proc/self/ns/mnt", caller_own_space);
}
