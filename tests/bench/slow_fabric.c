/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A network that takes its time, for daemons of one host: a library that is preloaded into them. What is sent by TCP
 * leaves SLOW_FABRIC microseconds later, in its order, by a thread; the sender does not wait. Other programs that it
 * is preloaded into (shunt itself) send nothing by TCP.
 *
 * What libfabric calls is replaced: sendmsg and send. Connections are made without delay. When one is closed, what
 * was on its way is lost, as shunt's daemons have to expect of any network. */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LATE 50000 /* ns */

struct flying {
    struct flying *next;
    uint64_t due;
    int socket;
    size_t size, sent;
    uint8_t bytes[];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t comes;
    struct flying *first, **last;
    uint64_t delay; /* ns */
} wire = {.lock = PTHREAD_MUTEX_INITIALIZER, .comes = PTHREAD_COND_INITIALIZER, .last = &wire.first};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static ssize_t (*real_send)(int, const void *, size_t, int);
static int (*real_close)(int);

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

/* A virtual processor that slept is up to 50 us late, which would be half as much delay again: so long it does
 * not sleep. */
static void wait_until(uint64_t due)
{
    const uint64_t wake = due - LATE;
    const struct timespec time = {.tv_sec = (time_t)(wake / 1000000000ull), .tv_nsec = (long)(wake % 1000000000ull)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
        continue;
    while (now_ns() < due)
        continue;
}

static void sleep_until(uint64_t due)
{
    pthread_mutex_unlock(&wire.lock);
    wait_until(due);
    pthread_mutex_lock(&wire.lock);
}

/* A socket that takes no more is asked again. A broken connection is noticed by its reader. */
static void slow_fabric_arrive(struct flying *one)
{
    sleep_until(one->due);
    while (one->socket >= 0 && one->sent < one->size) {
        ssize_t sent = real_send(one->socket, one->bytes + one->sent, one->size - one->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return;
        one->sent += sent > 0 ? (size_t)sent : 0;
        if (sent < 0)
            sleep_until(now_ns() + LATE);
    }
}

static void forget_first(void)
{
    struct flying *one = wire.first;
    wire.first = one->next;
    if (wire.first == NULL)
        wire.last = &wire.first;
    free(one);
}

static void *slow_fabric_carry(void *unused)
{
    prctl(PR_SET_TIMERSLACK, 1); /* the kernel would be up to 50 us late, too */
    pthread_mutex_lock(&wire.lock);
    for (;;) {
        while (wire.first == NULL)
            pthread_cond_wait(&wire.comes, &wire.lock);
        slow_fabric_arrive(wire.first);
        forget_first();
    }
    return NULL;
}

static void slow_fabric_begin(void)
{
    const char *delay = getenv("SLOW_FABRIC");
    *(void **)&real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
    *(void **)&real_send = dlsym(RTLD_NEXT, "send");
    *(void **)&real_close = dlsym(RTLD_NEXT, "close");
    wire.delay = delay != NULL ? strtoull(delay, NULL, 10) * 1000 : 0;
}

/* Not in slow_fabric_begin: a daemon is a fork of what was executed, and a thread would not be there. */
static void begin_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, slow_fabric_carry, NULL);
    pthread_detach(thread);
}

static bool is_slow(int socket)
{
    int domain = 0, type = 0;
    socklen_t size = sizeof domain;
    pthread_once(&once, slow_fabric_begin);
    if (wire.delay == 0 || getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 ||
        getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
        return false;
    return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM;
}

static struct flying *slow_fabric_copy(int socket, const struct iovec *parts, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += parts[i].iov_len;
    struct flying *one = malloc(sizeof *one + size);
    if (one == NULL)
        return NULL;
    *one = (struct flying){.due = now_ns() + wire.delay, .socket = socket};
    for (size_t i = 0; i < count; i++) {
        memcpy(one->bytes + one->size, parts[i].iov_base, parts[i].iov_len);
        one->size += parts[i].iov_len;
    }
    return one;
}

static ssize_t slow_fabric_put(int socket, const struct iovec *parts, size_t count)
{
    static pthread_once_t thread = PTHREAD_ONCE_INIT;
    struct flying *one = slow_fabric_copy(socket, parts, count);
    if (one == NULL) {
        errno = ENOMEM;
        return -1;
    }
    size_t size = one->size; /* it may be gone soon */
    pthread_once(&thread, begin_thread);
    pthread_mutex_lock(&wire.lock);
    *wire.last = one;
    wire.last = &one->next;
    pthread_cond_signal(&wire.comes);
    pthread_mutex_unlock(&wire.lock);
    return (ssize_t)size;
}

__attribute__((visibility("default"))) ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    return is_slow(socket) ? slow_fabric_put(socket, message->msg_iov, message->msg_iovlen)
                           : real_sendmsg(socket, message, flags);
}

__attribute__((visibility("default"))) ssize_t send(int socket, const void *bytes, size_t size, int flags)
{
    const struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    return is_slow(socket) ? slow_fabric_put(socket, &part, 1) : real_send(socket, bytes, size, flags);
}

/* Its number may be another file's at once. */
__attribute__((visibility("default"))) int close(int descriptor)
{
    pthread_once(&once, slow_fabric_begin);
    pthread_mutex_lock(&wire.lock);
    for (struct flying *one = wire.first; one != NULL; one = one->next)
        if (one->socket == descriptor)
            one->socket = -1;
    pthread_mutex_unlock(&wire.lock);
    return real_close(descriptor);
}
