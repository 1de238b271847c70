/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Descriptors 0, 1 and 2 of a tool or a daemon. One of them that is closed would be the next one to be opened: a message would
 * go into a file, and what is put in the place of the standard streams would replace a pipe that somebody waits for. */

#include <fcntl.h>
#include <unistd.h>

/* Closed ones are occupied, and stay of no use: to read and to write there is EBADF as before. A program that is executed has
 * them closed. */
static inline void standard_streams_occupy(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) /* then it is the lowest that is free */
            open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}
