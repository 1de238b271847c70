/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "listen/predecessor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "request/request.h"
#include "request/channel.h"
#include "session/run_dirs.h"

/* NULL: there is none of this version. */
static struct channel *predecessor_map(const char *run_dir)
{
    char path[PATH_MAX];
    struct stat stat;
    snprintf(path, sizeof path, "%s/channel", run_dir);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct channel *channel = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &stat) == 0 && stat.st_size == (off_t)CHANNEL_SIZE)
        channel = mmap(NULL, CHANNEL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (channel == MAP_FAILED)
        return NULL;
    if (channel_is_known(channel))
        return channel;
    munmap(channel, CHANNEL_SIZE);
    return NULL;
}

/* Has that process a channel of this run directory? 1, 0, or -errno: its maps may not be read. */
static int predecessor_look_at(pid_t pid, const char *run_dir)
{
    char path[64], tail[PATH_MAX], *line = NULL;
    size_t size = 0;
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    snprintf(tail, sizeof tail, "%s/channel", strrchr(run_dir, '/'));
    FILE *maps = fopen(path, "re");
    if (maps == NULL)
        return -errno;
    while (!has && getline(&line, &size, maps) > 0)
        has = strstr(line, tail) != NULL;
    free(line);
    fclose(maps);
    return has;
}

/* Its number may be another's by now, or the process have executed another program. One whose maps may not be read counts as
 * the old one. */
static bool predecessor_has_channel(pid_t pid, const char *run_dir)
{
    const int has = predecessor_look_at(pid, run_dir);
    return has == 1 || has == -EACCES || has == -EPERM;
}

/* Process ids mean something only in their own namespace; what was in another one ended with it. */
static pid_t predecessor_holder_of(const struct channel *channel, const char *run_dir)
{
    if (channel->pid_namespace != request_pid_namespace())
        return 0;
    for (unsigned i = 0; i < CHANNEL_QPS; i++) {
        if (!channel_qp_is_there(channel, i))
            continue;
        pid_t owner = (pid_t)__atomic_load_n(&channel->qp[i].owner, __ATOMIC_SEQ_CST);
        if (owner != 0 && __atomic_load_n(&channel->qp[i].holding, __ATOMIC_SEQ_CST) != 0 &&
            predecessor_has_channel(owner, run_dir))
            return owner;
    }
    return 0;
}

pid_t predecessor_holder(const char *run_dir)
{
    struct channel *channel = predecessor_map(run_dir);
    if (channel == NULL)
        return 0;
    pid_t pid = channel_is_alive(channel) ? 0 : predecessor_holder_of(channel, run_dir);
    munmap(channel, CHANNEL_SIZE);
    return pid;
}

static int predecessor_find(void *holder, const char *run_dir)
{
    return (*(pid_t *)holder = predecessor_holder(run_dir)) != 0;
}

pid_t predecessor_holder_of_any(const char *beginning)
{
    pid_t pid = 0;
    run_dirs_each(beginning, predecessor_find, &pid);
    return pid;
}

bool predecessor_served_root(const char *run_dir, struct dirid root)
{
    struct channel *channel = predecessor_map(run_dir);
    const bool is_it = channel == NULL || dirid_equal(channel->root, root);
    if (channel != NULL)
        munmap(channel, CHANNEL_SIZE);
    return is_it;
}

bool predecessor_is_served(const char *run_dir)
{
    struct channel *channel = predecessor_map(run_dir);
    const bool is_served = channel != NULL && channel_is_alive(channel);
    if (channel != NULL)
        munmap(channel, CHANNEL_SIZE);
    return is_served;
}

/* What asked the daemon for something, also if its maps may not be read. */
static bool predecessor_is_asked(const char *run_dir)
{
    struct channel *channel = predecessor_map(run_dir);
    bool is_asked = false;
    for (unsigned i = 0; channel != NULL && i < CHANNEL_QPS && !is_asked; i++) {
        const pid_t owner =
            channel_qp_is_there(channel, i) ? (pid_t)__atomic_load_n(&channel->qp[i].owner, __ATOMIC_SEQ_CST) : 0;
        is_asked = owner > 0 && predecessor_has_channel(owner, run_dir);
    }
    if (channel != NULL)
        munmap(channel, CHANNEL_SIZE);
    return is_asked;
}

/* Or read without asking. */
static bool predecessor_is_read(const char *run_dir)
{
    struct dirent *entry;
    struct stat stat;
    bool is_read = false;
    DIR *processes = opendir("/proc");
    while (processes != NULL && !is_read && (entry = readdir(processes)) != NULL) {
        const pid_t pid = atoi(entry->d_name);
        is_read = pid > 0 && pid != getpid() && fstatat(dirfd(processes), entry->d_name, &stat, 0) == 0 &&
                  stat.st_uid == geteuid() && predecessor_look_at(pid, run_dir) == 1;
    }
    if (processes != NULL)
        closedir(processes);
    return is_read;
}

bool predecessor_is_used(const char *run_dir)
{
    return predecessor_is_asked(run_dir) || predecessor_is_read(run_dir);
}

void predecessor_abandon(const char *run_dir)
{
    struct channel *channel = predecessor_map(run_dir);
    if (channel == NULL)
        return;
    __atomic_store_n(&channel->supervisor, 0, __ATOMIC_RELEASE);
    munmap(channel, CHANNEL_SIZE);
}
