/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "backing.h"

#include <fuse3/fuse_lowlevel.h>

#ifdef FUSE_CAP_PASSTHROUGH

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

static pthread_mutex_t backing_lock = PTHREAD_MUTEX_INITIALIZER;
/* Until the kernel refuses: where the root lies on a file system over another one, or in a container. */
static bool backing_is_offered;

void backing_init(struct fuse_conn_info *connection)
{
    backing_is_offered = (connection->capable & FUSE_CAP_PASSTHROUGH) != 0 && geteuid() == 0;
    if (backing_is_offered)
        connection->want |= FUSE_CAP_PASSTHROUGH;
}

void backing_open(struct fuse_req *request, struct backing *backing, int fd, struct fuse_file_info *file)
{
    pthread_mutex_lock(&backing_lock);
    if (backing->opens++ == 0 && backing_is_offered) {
        backing->id = fuse_passthrough_open(request, fd);
        backing_is_offered = backing->id > 0;
    }
    file->backing_id = backing->id;
    pthread_mutex_unlock(&backing_lock);
    if (file->backing_id > 0 && (file->flags & O_APPEND)) /* the kernel's own would go on appending without that flag */
        file->direct_io = 1;
}

void backing_close(struct fuse_req *request, struct backing *backing)
{
    pthread_mutex_lock(&backing_lock);
    if (--backing->opens == 0 && backing->id > 0) {
        fuse_passthrough_close(request, backing->id);
        backing->id = 0;
    }
    pthread_mutex_unlock(&backing_lock);
}

#else

void backing_init(struct fuse_conn_info *connection)
{
    (void)connection;
}

void backing_open(struct fuse_req *request, struct backing *backing, int fd, struct fuse_file_info *file)
{
    (void)request, (void)backing, (void)fd, (void)file;
}

void backing_close(struct fuse_req *request, struct backing *backing)
{
    (void)request, (void)backing;
}

#endif
