/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "request/users.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/sys.h"
#include "union/layout.h"

#define USERS_MAX 4096
#define USERS_NAME_MAX (LAYOUT_NODE_MAX + 64)

static void users_add_name(struct text *t, const char *run_dir)
{
    text_add(t, ".");
    text_add(t, strrchr(run_dir, '/') + 1);
    text_add(t, ".users");
}

void users_path(struct text *t, const char *run_dir)
{
    text_bytes(t, run_dir, (size_t)(strrchr(run_dir, '/') + 1 - run_dir));
    users_add_name(t, run_dir);
}

static int users_control(int fd, int command, short type, off_t first, off_t count)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
    int code = (int)SYS3(SYS_fcntl, fd, command, &lock);
    return code == 0 && command == F_OFD_GETLK ? lock.l_type != F_UNLCK : code == -EACCES ? -EAGAIN : code;
}

/* Of another opening. `count` 0: to the end. */
static bool users_is_locked(int fd, off_t first, off_t count)
{
    return users_control(fd, F_OFD_GETLK, F_WRLCK, first, count) == 1;
}

bool users_are_there(const char *run_dir)
{
    char name[USERS_NAME_MAX];
    struct text t;
    text_init(&t, name, sizeof name);
    text_add(&t, "../");
    users_add_name(&t, run_dir);
    int dir = text_ok(&t) ? sys_openat(AT_FDCWD, run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0) : -ENAMETOOLONG;
    if (dir < 0)
        return false;
    int fd = sys_openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
    sys_close(dir);
    const bool are_there = fd >= 0 && users_is_locked(fd, 1, 0);
    if (fd >= 0)
        sys_close(fd);
    return are_there;
}

int users_lock(int fd)
{
    return users_control(fd, F_OFD_SETLK, F_WRLCK, 0, 1);
}

int users_unlock(int fd)
{
    return users_control(fd, F_OFD_SETLK, F_UNLCK, 0, 1);
}

int users_add(int fd, off_t *mine)
{
    int code = -EAGAIN;
    for (*mine = 0; code == -EAGAIN && *mine < USERS_MAX;)
        code = users_control(fd, F_OFD_SETLK, F_WRLCK, ++*mine, 1);
    return code;
}

int users_remove(int fd, off_t mine)
{
    return users_control(fd, F_OFD_SETLK, F_UNLCK, mine, 1);
}

unsigned users_count(int fd)
{
    unsigned count = 0;
    for (off_t at = 1; at <= USERS_MAX && users_is_locked(fd, at, 0); at++)
        count += users_is_locked(fd, at, 1);
    return count;
}
