/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Two calls of LMDB's in shuntd are answered here, every other one is passed on. The build renames them, and only them, in
 * the daemon's copy of liblmdb.a.
 *
 * LMDB asks "is this reader's process alive?" with F_GETLK on a record lock that the reader should hold. Our readers hold
 * none (lmdb_host.h), so the question is answered from the process itself.
 *
 * And it makes a data file that it writes through its map as large as the map, i.e. as the index may ever grow. That one
 * grows as index.c finds room for it. The lock file, empty at first, is made as large as it is to be. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

int lmdb_daemon_fcntl(int fd, int command, ...);
int lmdb_daemon_ftruncate(int fd, off_t size);

int lmdb_daemon_fcntl(int fd, int command, ...)
{
    va_list more;
    va_start(more, command);
    struct flock *lock = va_arg(more, struct flock *);
    va_end(more);
    if (command != F_GETLK)
        return fcntl(fd, command, lock);
    pid_t reader = (pid_t)lock->l_start;
    int before = errno;
    lock->l_type = kill(reader, 0) == 0 || errno != ESRCH ? F_WRLCK : F_UNLCK;
    errno = before;
    return 0;
}

int lmdb_daemon_ftruncate(int fd, off_t size)
{
    struct stat stat;
    return fstat(fd, &stat) != 0 ? -1 : stat.st_size > 0 ? 0 : ftruncate(fd, size);
}
