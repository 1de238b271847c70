/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "listen/clients.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/faults.h"

#define BUCKETS 1024
#define SPARE 64 /* descriptors that are left to all other users, or half of a few */

struct client {
    struct client *next;      /* in its bucket */
    struct client *next_dead; /* in the list of the dead */
    pid_t pid;
    int pidfd; /* -1: none could be spared, it is looked at now and then */
    bool dead;
};

struct clients {
    void (*ring)(void *);
    void *context;
    int epoll, end; /* `end` is an eventfd that stops the thread */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* of dead */
    struct client *dead;
    struct client *buckets[BUCKETS]; /* main's thread only, as what follows */
    unsigned unfollowed;
    int last_pidfd; /* the highest that may be kept */
};

static void clients_note_death(struct clients *clients, struct client *client)
{
    pthread_mutex_lock(&clients->lock);
    client->next_dead = clients->dead;
    clients->dead = client;
    pthread_mutex_unlock(&clients->lock);
}

static void *clients_watch_exit(void *context)
{
    struct clients *clients = context;
    struct epoll_event event;
    for (;;) {
        int count = epoll_wait(clients->epoll, &event, 1, -1);
        if (count < 0 && errno != EINTR)
            return NULL;
        if (count == 1 && event.data.ptr == NULL)
            return NULL;
        if (count != 1)
            continue;
        struct client *client = event.data.ptr;
        epoll_ctl(clients->epoll, EPOLL_CTL_DEL, client->pidfd, NULL);
        clients_note_death(clients, client);
        clients->ring(clients->context);
    }
}

static int clients_start_thread(struct clients *clients)
{
    sigset_t all, before;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (clients->epoll < 0 || clients->end < 0 || epoll_ctl(clients->epoll, EPOLL_CTL_ADD, clients->end, &event) != 0)
        return -errno;
    faults_excepted(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&clients->thread, NULL, clients_watch_exit, clients);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    clients->running = code == 0;
    return -code;
}

static int clients_last_pidfd(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX)
        return INT_MAX;
    int count = (int)limit.rlim_cur;
    return count - 1 - (count > 2 * SPARE ? SPARE : count / 2);
}

int clients_create(struct clients **to, void (*ring)(void *), void *context)
{
    struct clients *clients = calloc(1, sizeof *clients);
    if (clients == NULL)
        return -ENOMEM;
    clients->ring = ring;
    clients->last_pidfd = clients_last_pidfd();
    clients->context = context;
    clients->epoll = epoll_create1(EPOLL_CLOEXEC);
    clients->end = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&clients->lock, NULL);
    int code = clients_start_thread(clients);
    if (code != 0) {
        clients_destroy(clients);
        return code;
    }
    *to = clients;
    return 0;
}

static void clients_client_free(struct client *client)
{
    if (client->pidfd >= 0)
        close(client->pidfd);
    free(client);
}

void clients_destroy(struct clients *clients)
{
    if (clients == NULL)
        return;
    if (clients->running) {
        eventfd_write(clients->end, 1);
        pthread_join(clients->thread, NULL);
    }
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct client *client = clients->buckets[i], *next; client != NULL; client = next) {
            next = client->next;
            clients_client_free(client);
        }
    close(clients->end);
    close(clients->epoll);
    pthread_mutex_destroy(&clients->lock);
    free(clients);
}

static struct client **clients_bucket_of(struct clients *clients, pid_t pid)
{
    return &clients->buckets[(uint32_t)pid % BUCKETS];
}

static bool clients_has_ended(pid_t pid, int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    return pidfd >= 0 ? poll(&end, 1, 0) == 1 : kill(pid, 0) != 0 && errno == ESRCH;
}

/* Keeps a descriptor of it if one can be spared, else looks just now. The thread may have heard of it, and take it out
 * again, before epoll_ctl has returned. */
static void clients_follow(struct clients *clients, struct client *client)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    int pidfd = (int)syscall(SYS_pidfd_open, client->pid, 0);
    client->pidfd = pidfd <= clients->last_pidfd ? pidfd : -1;
    if (client->pidfd >= 0 && epoll_ctl(clients->epoll, EPOLL_CTL_ADD, pidfd, &event) == 0)
        return;
    client->pidfd = -1;
    client->dead = clients_has_ended(client->pid, pidfd);
    if (client->dead)
        clients_note_death(clients, client);
    if (pidfd >= 0)
        close(pidfd);
}

bool clients_are_followed(const struct clients *clients)
{
    return clients->unfollowed == 0;
}

void clients_look(struct clients *clients)
{
    for (unsigned i = 0; i < BUCKETS && clients->unfollowed > 0; i++)
        for (struct client *client = clients->buckets[i]; client != NULL; client = client->next)
            if (client->pidfd < 0 && !client->dead) {
                clients_follow(clients, client);
                clients->unfollowed -= client->pidfd >= 0;
            }
}

void clients_watch(struct clients *clients, pid_t pid)
{
    struct client **bucket = clients_bucket_of(clients, pid);
    for (struct client *client = *bucket; client != NULL; client = client->next)
        if (client->pid == pid)
            return;
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return;
    client->pid = pid;
    client->pidfd = -1;
    client->next = *bucket;
    *bucket = client;
    clients_follow(clients, client);
    clients->unfollowed += client->pidfd < 0;
}

pid_t clients_next_death(struct clients *clients)
{
    if (__atomic_load_n(&clients->dead, __ATOMIC_ACQUIRE) == NULL)
        return 0;
    pthread_mutex_lock(&clients->lock);
    struct client *client = clients->dead;
    if (client != NULL)
        clients->dead = client->next_dead;
    pthread_mutex_unlock(&clients->lock);
    if (client == NULL)
        return 0;
    pid_t pid = client->pid;
    struct client **at = clients_bucket_of(clients, pid);
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    clients->unfollowed -= client->pidfd < 0;
    clients_client_free(client);
    return pid;
}
