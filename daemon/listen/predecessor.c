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

/* NULL: there is none of this version. */
static struct road *map(const char *run_dir)
{
    char path[PATH_MAX];
    struct stat stat;
    snprintf(path, sizeof path, "%s/road", run_dir);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct road *road = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &stat) == 0 && stat.st_size == (off_t)ROAD_SIZE)
        road = mmap(NULL, ROAD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (road == MAP_FAILED)
        return NULL;
    if (road_is_known(road))
        return road;
    munmap(road, ROAD_SIZE);
    return NULL;
}

/* Has that process a road of this run directory? Its number may be another's by now, or the process have executed
 * another program. One whose maps may not be read counts as the old one. */
static bool has_road(pid_t pid, const char *run_dir)
{
    char path[64], tail[PATH_MAX], *line = NULL;
    size_t size = 0;
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    snprintf(tail, sizeof tail, "%s/road", strrchr(run_dir, '/'));
    FILE *maps = fopen(path, "re");
    if (maps == NULL)
        return errno == EACCES || errno == EPERM;
    while (!has && getline(&line, &size, maps) > 0)
        has = strstr(line, tail) != NULL;
    free(line);
    fclose(maps);
    return has;
}

/* Process ids mean something only in their own namespace; what was in another one ended with it. */
static pid_t holder(const struct road *road, const char *run_dir)
{
    if (road->pid_namespace != request_pid_namespace())
        return 0;
    for (unsigned i = 0; i < ROAD_LANES; i++) {
        pid_t owner = (pid_t)__atomic_load_n(&road->lane[i].owner, __ATOMIC_SEQ_CST);
        if (owner != 0 && __atomic_load_n(&road->lane[i].holding, __ATOMIC_SEQ_CST) != 0 && has_road(owner, run_dir))
            return owner;
    }
    return 0;
}

pid_t former_holder(const char *run_dir)
{
    struct road *road = map(run_dir);
    if (road == NULL)
        return 0;
    pid_t pid = road_is_alive(road) ? 0 : holder(road, run_dir);
    munmap(road, ROAD_SIZE);
    return pid;
}

pid_t former_holder_of_any(const char *beginning)
{
    char path[PATH_MAX];
    size_t above = (size_t)(strrchr(beginning, '/') - beginning) + 1, length = strlen(beginning + above);
    pid_t pid = 0;
    snprintf(path, sizeof path, "%.*s", (int)above, beginning);
    DIR *directory = opendir(path);
    if (directory == NULL)
        return 0;
    for (struct dirent *one; pid == 0 && (one = readdir(directory)) != NULL;)
        if (strncmp(one->d_name, beginning + above, length) == 0) {
            snprintf(path, sizeof path, "%.*s%s", (int)above, beginning, one->d_name);
            pid = former_holder(path);
        }
    closedir(directory);
    return pid;
}

void former_abandon(const char *run_dir)
{
    struct road *road = map(run_dir);
    if (road == NULL)
        return;
    __atomic_store_n(&road->supervisor, 0, __ATOMIC_RELEASE);
    munmap(road, ROAD_SIZE);
}
