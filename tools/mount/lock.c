/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "view.h"
#include "wake.h"

/* Of one inode. */
struct lock_owner {
    uint64_t owner; /* the kernel's number of the process, or of the open file */
    uint64_t file;  /* the open file through which it locked first */
    int fd;
    struct lock_owner *next;
};

/* What a thread waits for; all of it is that thread's. */
struct lock_wait {
    fuse_req_t request;
    int fd;              /* a duplicate: the lock goes with the last one */
    int flock_operation; /* 0: it is a record lock */
    struct flock record;
    timer_t timer;
    bool is_interrupted;
};

static pthread_mutex_t lock_owners_lock = PTHREAD_MUTEX_INITIALIZER;

static struct lock_owner **lock_find(struct inode *inode, uint64_t owner)
{
    struct lock_owner **at = &inode->lock_owners;
    while (*at && (*at)->owner != owner)
        at = &(*at)->next;
    return at;
}

/* A lock to write needs a descriptor that may write, and the owner may have several: the one that can do most is tried. */
static int lock_open(const struct fuse_file_info *file)
{
    char path[VIEW_PATH];
    const struct inode of_file = {.fd = (int)file->fh};
    view_path(&of_file, path);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    return fd >= 0 ? fd : open(path, (fcntl((int)file->fh, F_GETFL) & O_ACCMODE) | O_CLOEXEC);
}

static struct lock_owner *lock_make_owner(struct lock_owner **at, const struct fuse_file_info *file)
{
    const int fd = lock_open(file);
    struct lock_owner *made = fd < 0 ? NULL : malloc(sizeof *made);
    if (made) {
        *made = (struct lock_owner){.owner = file->lock_owner, .file = file->fh, .fd = fd};
        *at = made;
    } else if (fd >= 0) {
        close(fd);
        errno = ENOLCK;
    }
    return made;
}

/* A duplicate of the owner's descriptor, or -1 with errno; ENOENT: it has none, and `makes` is not set. */
static int lock_descriptor(struct inode *inode, const struct fuse_file_info *file, bool makes)
{
    pthread_mutex_lock(&lock_owners_lock);
    struct lock_owner **at = lock_find(inode, file->lock_owner), *owner = *at;
    if (!owner && makes)
        owner = lock_make_owner(at, file);
    else if (!owner)
        errno = ENOENT;
    const int fd = owner ? fcntl(owner->fd, F_DUPFD_CLOEXEC, 0) : -1;
    pthread_mutex_unlock(&lock_owners_lock);
    return fd;
}

static void lock_remove(struct lock_owner **at)
{
    struct lock_owner *removed = *at;
    *at = removed->next;
    close(removed->fd);
    free(removed);
}

void lock_drop(struct inode *inode, uint64_t owner)
{
    pthread_mutex_lock(&lock_owners_lock);
    struct lock_owner **at = lock_find(inode, owner);
    if (*at)
        lock_remove(at);
    pthread_mutex_unlock(&lock_owners_lock);
}

/* A process has lost its locks by then: it has closed a descriptor. */
void lock_drop_file(struct inode *inode, uint64_t file)
{
    pthread_mutex_lock(&lock_owners_lock);
    struct lock_owner **at = &inode->lock_owners;
    while (*at)
        if ((*at)->file == file)
            lock_remove(at);
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&lock_owners_lock);
}

/* A signal may come between the look at is_interrupted and the system call: it comes again until the thread has seen it. */
static void lock_interrupt(fuse_req_t request, void *context)
{
    struct lock_wait *wait = context;
    __atomic_store_n(&wait->is_interrupted, true, __ATOMIC_RELEASE);
    wake_begin(wait->timer);
}

static int lock_call(struct lock_wait *wait)
{
    return wait->flock_operation ? flock(wait->fd, wait->flock_operation) : fcntl(wait->fd, F_OFD_SETLKW, &wait->record);
}

static void *lock_wait_thread(void *context)
{
    struct lock_wait *wait = context;
    int error = wake_create(&wait->timer) < 0 ? ENOLCK : EINTR;
    if (error == EINTR) {
        fuse_req_interrupt_func(wait->request, lock_interrupt, wait);
        while (error == EINTR && !__atomic_load_n(&wait->is_interrupted, __ATOMIC_ACQUIRE))
            error = lock_call(wait) == 0 ? 0 : errno;
        fuse_req_interrupt_func(wait->request, NULL, NULL);
        timer_delete(wait->timer);
    }
    fuse_reply_err(wait->request, error);
    close(wait->fd);
    free(wait);
    return NULL;
}

/* Takes over `fd`. */
static void lock_wait(fuse_req_t request, int fd, int flock_operation, const struct flock *record)
{
    pthread_t thread;
    struct lock_wait *wait = calloc(1, sizeof *wait);
    if (wait) {
        *wait = (struct lock_wait){.request = request, .fd = fd, .flock_operation = flock_operation};
        if (record)
            wait->record = *record;
        if (pthread_create(&thread, NULL, lock_wait_thread, wait) == 0) {
            pthread_detach(thread);
            return;
        }
    }
    fuse_reply_err(request, ENOLCK);
    close(fd);
    free(wait);
}

static void lock_set(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, struct flock *record, int waits)
{
    view_take_own(request); /* lock_open has more rights than a lock needs, and the kernel has looked at the descriptor */
    struct inode *inode = view_inode(request, number);
    const bool is_unlock = record->l_type == F_UNLCK;
    const int fd = lock_descriptor(inode, file, !is_unlock);
    if (fd < 0) {
        fuse_reply_err(request, is_unlock && errno == ENOENT ? 0 : errno);
        return;
    }
    record->l_pid = 0;
    const int error = fcntl(fd, F_OFD_SETLK, record) == 0 ? 0 : errno;
    if (waits && (error == EAGAIN || error == EACCES)) {
        lock_wait(request, fd, 0, record);
        return;
    }
    close(fd);
    fuse_reply_err(request, error);
}

static void lock_get(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, struct flock *record)
{
    const int own = lock_descriptor(view_inode(request, number), file, false);
    record->l_pid = 0;
    const int error = fcntl(own >= 0 ? own : (int)file->fh, F_OFD_GETLK, record) == 0 ? 0 : errno;
    if (own >= 0)
        close(own);
    if (error)
        fuse_reply_err(request, error);
    else
        fuse_reply_lock(request, record);
}

static void lock_flock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, int operation)
{
    const int error = flock((int)file->fh, operation | LOCK_NB) == 0 ? 0 : errno;
    const int fd = error == EWOULDBLOCK && !(operation & LOCK_NB) ? fcntl((int)file->fh, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd >= 0)
        lock_wait(request, fd, operation, NULL);
    else
        fuse_reply_err(request, error);
}

void view_add_locks(struct fuse_lowlevel_ops *operations)
{
    operations->getlk = lock_get;
    operations->setlk = lock_set;
    operations->flock = lock_flock;
}
