/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "index/lmdb_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/owner.h"
#include "base/sys.h"

#define LMDB_ARENA (256 * 1024)

static __thread struct lmdb_memory *entered;

int lmdb_memory_init(struct lmdb_memory *memory)
{
    *memory = (struct lmdb_memory){0};
    memory->at = sys_mmap(NULL, LMDB_ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return sys_is_error(memory->at) ? (int)(long)memory->at : 0;
}

void *lmdb_memory_take(struct lmdb_memory *memory, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (memory == NULL || size > LMDB_ARENA || memory->used > LMDB_ARENA - size)
        return NULL;
    void *taken = memory->at + memory->used;
    memory->used += size;
    return taken;
}

int lmdb_memory_inherit(struct lmdb_memory *memory, const struct lmdb_memory *parents)
{
    int code = lmdb_memory_init(memory);
    if (code != 0)
        return code;
    memcpy(memory->files, parents->files, sizeof memory->files);
    memory->inherited = true;
    sys_munmap(parents->at, LMDB_ARENA); /* `parents` may lie in it */
    return 0;
}

/* An old size of 0 asks for a second mapping of the same file: some thread may be looking into the first. */
int lmdb_memory_grow(struct lmdb_memory *memory, const struct lmdb_memory *old, size_t size)
{
    int code = lmdb_memory_init(memory);
    if (code != 0)
        return code;
    void *at = (void *)SYS4(SYS_mremap, old->files[0].at, 0, size, MREMAP_MAYMOVE);
    if (sys_is_error(at)) {
        sys_munmap(memory->at, LMDB_ARENA);
        return (int)(long)at;
    }
    memcpy(memory->files, old->files, sizeof memory->files);
    memory->files[0].at = at;
    memory->files[0].size = size;
    memory->inherited = true;
    return 0;
}

void lmdb_memory_finish(struct lmdb_memory *memory)
{
    for (unsigned i = 0; i < LMDB_FILES; i++)
        if (memory->files[i].at != NULL)
            sys_munmap(memory->files[i].at, memory->files[i].size);
    sys_munmap(memory->at, LMDB_ARENA);
}

void lmdb_close_files(struct lmdb_memory *memory)
{
    for (unsigned i = 0; i < memory->opened; i++)
        sys_close(memory->files[i].fd);
    memory->opened = 0;
}

void lmdb_enter(struct lmdb_memory *memory)
{
    entered = memory;
}

void lmdb_leave(void)
{
    entered = NULL;
}

/* From here on: what the renamed calls of LMDB reach. Results are libc's: -1 and errno. */

FILE *lmdb_host_stderr; /* only LMDB's debug build writes to it */
int lmdb_host_open(const char *path, int flags, ...);
int lmdb_host_close(int fd);
int lmdb_host_fcntl(int fd, int command, ...);
void *lmdb_host_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int lmdb_host_munmap(void *at, size_t size);
ssize_t lmdb_host_pread(int fd, void *to, size_t size, off_t offset);
off_t lmdb_host_lseek(int fd, off_t offset, int whence);
pid_t lmdb_host_getpid(void);
void *lmdb_host_malloc(size_t size);
void *lmdb_host_calloc(size_t count, size_t size);
void *lmdb_host_realloc(void *old, size_t size);
void lmdb_host_free(void *old);
char *lmdb_host_strdup(const char *from);
int lmdb_host_posix_memalign(void **to, size_t alignment, size_t size);

static long answer(long result)
{
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

/* LMDB opens its two files in the same order always. Inherited ones get numbers that no kernel gives. */
#define NUMBER_OF_INHERITED (1 << 30)

static bool is_inherited(int fd)
{
    return fd >= NUMBER_OF_INHERITED;
}

/* What was opened as that number; NULL: not for the memory that is entered. */
static struct lmdb_file *file_of(int fd)
{
    for (unsigned i = 0; entered != NULL && i < entered->opened; i++)
        if (entered->files[i].fd == fd)
            return &entered->files[i];
    return NULL;
}

int lmdb_host_open(const char *path, int flags, ...)
{
    va_list more;
    if (entered == NULL || entered->opened == LMDB_FILES)
        return (int)answer(-EMFILE);
    int fd = NUMBER_OF_INHERITED + (int)entered->opened;
    if (!entered->inherited) {
        va_start(more, flags);
        fd = sys_openat(AT_FDCWD, path, flags | O_CLOEXEC, va_arg(more, mode_t));
        va_end(more);
    }
    if (fd >= 0)
        entered->files[entered->opened++].fd = fd;
    return (int)answer(fd);
}

ssize_t lmdb_host_pread(int fd, void *to, size_t size, off_t offset)
{
    const struct lmdb_file *file = file_of(fd);
    if (!is_inherited(fd) || file == NULL || (size_t)offset + size > file->size)
        return answer(SYS4(SYS_pread64, fd, to, size, offset));
    memcpy(to, (const char *)file->at + offset, size);
    return (ssize_t)size;
}

/* Only to its end: how large is the lock file? */
off_t lmdb_host_lseek(int fd, off_t offset, int whence)
{
    const struct lmdb_file *file = file_of(fd);
    return is_inherited(fd) && file != NULL ? (off_t)file->size : answer(SYS3(SYS_lseek, fd, offset, whence));
}

/* In a reader slot it says how long the reader lives. */
pid_t lmdb_host_getpid(void)
{
    return owner_pid();
}

/* LMDB closes when an open fails half way; lmdb_close_files does it for all. */
int lmdb_host_close(int fd)
{
    return 0;
}

/* Record locks are what an application would break; nobody relies on them. Exclusive is refused, so that LMDB
 * never takes itself for the first and makes the lock file anew. */
int lmdb_host_fcntl(int fd, int command, ...)
{
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    if (command == F_SETLK || command == F_SETLKW) {
        const struct flock *lock = argument;
        return lock->l_type == F_WRLCK && lock->l_start == 0 ? (int)answer(-EAGAIN) : 0;
    }
    return is_inherited(fd) ? 0 : (int)answer(SYS3(SYS_fcntl, fd, command, argument));
}

void *lmdb_host_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    struct lmdb_file *file = file_of(fd);
    if (file != NULL && is_inherited(fd))
        return file->at;
    void *mapped = sys_mmap(at, size, protection, flags, fd, offset);
    if (sys_is_error(mapped)) {
        errno = (int)-(long)mapped;
        return MAP_FAILED;
    }
    if (file != NULL) {
        file->at = mapped;
        file->size = size;
    }
    return mapped;
}

/* Only on the way out of an open that failed: lmdb_memory_finish does it for all. */
int lmdb_host_munmap(void *at, size_t size)
{
    return 0;
}

void *lmdb_host_malloc(size_t size)
{
    return lmdb_memory_take(entered, size);
}

void *lmdb_host_calloc(size_t count, size_t size)
{
    return count != 0 && size > LMDB_ARENA / count ? NULL : lmdb_memory_take(entered, count * size);
}

void *lmdb_host_realloc(void *old, size_t size)
{
    return old == NULL ? lmdb_memory_take(entered, size) : NULL;
}

void lmdb_host_free(void *old)
{
}

char *lmdb_host_strdup(const char *from)
{
    size_t size = strlen(from) + 1;
    char *copy = lmdb_memory_take(entered, size);
    return copy == NULL ? NULL : memcpy(copy, from, size);
}

int lmdb_host_posix_memalign(void **to, size_t alignment, size_t size)
{
    char *taken = lmdb_memory_take(entered, size + alignment);
    if (taken == NULL)
        return ENOMEM;
    *to = (void *)(((uintptr_t)taken + alignment - 1) & ~(alignment - 1));
    return 0;
}
