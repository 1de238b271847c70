/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/talk.h"

#include <errno.h>
#include <sys/socket.h>

int talk_send(int fd, const void *from, size_t size)
{
    for (const char *at = from; size > 0;) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return -errno;
        at += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

int talk_receive(int fd, void *to, size_t size)
{
    for (char *at = to; size > 0;) {
        ssize_t got = recv(fd, at, size, 0);
        if (got == 0)
            return -ECONNRESET;
        if (got < 0 && errno != EINTR)
            return -errno;
        at += got > 0 ? got : 0;
        size -= got > 0 ? (size_t)got : 0;
    }
    return 0;
}
