/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* LMDB in shuntd asks "is this reader's process alive?" with F_GETLK on a record lock that the reader should
 * hold. Our readers hold none (lmdb_host.h), so the question is answered from the process itself. Every other
 * call is passed on. The build renames fcntl, and only fcntl, in the daemon's copy of liblmdb.a. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>

int lmdb_daemon_fcntl(int fd, int command, ...);

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
