/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A disk that takes time: preloaded into User Mode Linux, whose disks are files that one thread of it reads and writes. Each
 * request to the file SLOW_DISK takes SLOW_DISK_US microseconds longer, and those of a node come one after the other. Nodes do
 * not wait for each other's. (dm-delay of the guest's kernel counts in its ticks of 10 ms.) */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct stat slow_disk;
static struct timespec longer;

static __attribute__((constructor)) void slow_disk_begin(void)
{
    const char *file = getenv("SLOW_DISK"), *us = getenv("SLOW_DISK_US");
    if (file == NULL || us == NULL || stat(file, &slow_disk) != 0)
        abort(); /* it would be measured as slow, and is not */
    longer = (struct timespec){atol(us) / 1000000, atol(us) % 1000000 * 1000};
}

static void slow_disk_wait(int fd)
{
    struct stat file;
    if (fstat(fd, &file) != 0 || file.st_ino != slow_disk.st_ino || file.st_dev != slow_disk.st_dev)
        return;
    for (struct timespec left = longer; clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR;)
        ;
}

ssize_t pread64(int fd, void *bytes, size_t size, off64_t at)
{
    slow_disk_wait(fd);
    return syscall(SYS_pread64, fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
    slow_disk_wait(fd);
    return syscall(SYS_pwrite64, fd, bytes, size, at);
}
