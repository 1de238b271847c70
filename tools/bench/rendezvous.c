/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "cli/command.h"

#define TEXT_MAX 2048
#define CONNECT_PATIENCE 3000 /* ms */
#define HELLO_PATIENCE 5      /* s */
#define FILE_OLD (2 * MEET_PATIENCE)

uint64_t rendezvous_host(void)
{
    char boot[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, boot, sizeof boot);
    if (fd >= 0)
        close(fd);
    return XXH3_64bits(boot, length > 0 ? (size_t)length : 0);
}

static void rendezvous_make_token(char token[TALK_TOKEN_SIZE])
{
    unsigned char bytes[TALK_TOKEN_SIZE / 2];
    while (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        continue;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
}

static void rendezvous_find_addresses(struct rendezvous *meet)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *one = all; one && meet->count < MEET_ADDRESSES_MAX; one = one->ifa_next)
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && one->ifa_flags & IFF_UP && !(one->ifa_flags & IFF_LOOPBACK))
            meet->addresses[meet->count++] = ((struct sockaddr_in *)(void *)one->ifa_addr)->sin_addr.s_addr;
    freeifaddrs(all);
}

static int rendezvous_begin_to_listen(struct rendezvous *meet, bool wide)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(wide ? INADDR_ANY : INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    meet->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (meet->listener < 0 || bind(meet->listener, (struct sockaddr *)&at, size) < 0 || listen(meet->listener, 4096) < 0 ||
        getsockname(meet->listener, (struct sockaddr *)&at, &size) < 0) {
        error_report("TCP: cannot listen for the other processes: %s (raise the limit on open files with 'ulimit -n', or run "
                     "'shunt doctor')",
                     strerror(errno));
        return -1;
    }
    meet->port = ntohs(at.sin_port);
    return 0;
}

/* The last line tells a reader that it has seen all. */
static size_t rendezvous_format(const struct rendezvous *meet, char text[TEXT_MAX])
{
    struct session_member self;
    session_self(&self, "");
    int at = snprintf(text, TEXT_MAX, "%s\n%s %016" PRIx64 " %u\n%s %s %d %" PRIu64 "\n", TALK_MAGIC, meet->token, meet->host,
                      meet->port, *self.host ? self.host : "-", *self.boot ? self.boot : "-", (int)self.pid, self.started);
    for (unsigned i = 0; i < meet->count; i++)
        at += snprintf(text + at, TEXT_MAX - (size_t)at, "%08x\n", ntohl(meet->addresses[i]));
    at += snprintf(text + at, TEXT_MAX - (size_t)at, "end\n");
    return (size_t)at;
}

static void rendezvous_name_file(struct rendezvous *meet, const char *directory)
{
    snprintf(meet->file, sizeof meet->file, "%s/" MEET_FILE, directory);
}

/* The times of both are the file system's, whatever clock that has. */
static bool rendezvous_is_old(const struct stat *file, const char *probe)
{
    struct stat now;
    int fd = open(probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool is_old = fd >= 0 && fstat(fd, &now) == 0 && now.st_mtime > file->st_mtime + FILE_OLD;
    if (fd >= 0) {
        close(fd);
        unlink(probe);
    }
    return is_old;
}

static bool rendezvous_is_left(const char *directory, const struct stat *file, const char *probe)
{
    struct rendezvous other;
    int lives = rendezvous_read(&other, directory) == 0 ? session_lives(&other.writer) : -EREMOTE;
    return lives == -EREMOTE ? rendezvous_is_old(file, probe) : lives == 0;
}

/* 0: the file was left by one that was killed, and is gone; -EEXIST: not. Another process may have taken it away, too, and have
 * written its own since it was looked at: that one is put back. */
static int rendezvous_take_away(const struct rendezvous *meet, const char *directory)
{
    char aside[sizeof meet->file + sizeof meet->token];
    struct stat before, after;
    snprintf(aside, sizeof aside, "%s.%s", meet->file, meet->token);
    if (lstat(meet->file, &before) < 0)
        return errno == ENOENT ? 0 : -EEXIST;
    if (!rendezvous_is_left(directory, &before, aside) || rename(meet->file, aside) < 0)
        return -EEXIST;
    bool is_same = lstat(aside, &after) == 0 && after.st_ino == before.st_ino &&
                   after.st_mtim.tv_sec == before.st_mtim.tv_sec && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec;
    if (!is_same && link(aside, meet->file) < 0)
        error_report_path(meet->file, -errno);
    unlink(aside);
    return is_same ? 0 : -EEXIST;
}

/* A descriptor or -errno. */
static int rendezvous_create_file(const struct rendezvous *meet, const char *directory)
{
    int fd = open(meet->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EEXIST)
        return fd >= 0 ? fd : -errno;
    int code = rendezvous_take_away(meet, directory);
    if (code == 0)
        fd = open(meet->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : code != 0 ? code : -errno;
}

static int rendezvous_write_file(struct rendezvous *meet, const char *directory)
{
    char text[TEXT_MAX];
    size_t length = rendezvous_format(meet, text);
    rendezvous_name_file(meet, directory);
    int fd = rendezvous_create_file(meet, directory);
    if (fd < 0) {
        if (fd == -EEXIST)
            error_report("%s: exists, another 'shunt bench' begins in this directory (run this again in %d minutes, or give "
                         "another directory)",
                         meet->file, FILE_OLD / 60);
        else
            error_report_path(directory, fd);
        meet->file[0] = '\0';
        return -1;
    }
    int error = write(fd, text, length) == (ssize_t)length && fsync(fd) == 0 ? 0 : -errno;
    close(fd);
    if (error < 0)
        error_report_path(meet->file, error);
    return error < 0 ? -1 : 0;
}

int rendezvous_open(struct rendezvous *meet, const char *directory, bool wide)
{
    *meet = (struct rendezvous){.listener = -1, .host = rendezvous_host()};
    rendezvous_make_token(meet->token);
    if (wide)
        rendezvous_find_addresses(meet);
    if (rendezvous_begin_to_listen(meet, wide) == 0 && (!wide || rendezvous_write_file(meet, directory) == 0))
        return 0;
    rendezvous_close(meet);
    return -1;
}

void rendezvous_hide(struct rendezvous *meet)
{
    if (meet->file[0])
        unlink(meet->file);
    meet->file[0] = '\0';
}

void rendezvous_close(struct rendezvous *meet)
{
    rendezvous_hide(meet);
    if (meet->listener >= 0)
        close(meet->listener);
    meet->listener = -1;
}

static int rendezvous_parse(struct rendezvous *meet, const char *text)
{
    struct session_member *writer = &meet->writer;
    unsigned port, address;
    int skip = 0;
    if (sscanf(text, TALK_MAGIC "\n%32[0-9a-f] %16" SCNx64 " %5u\n%64s %39s %d %" SCNu64 "\n%n", meet->token, &meet->host,
               &port, writer->host, writer->boot, &writer->pid, &writer->started, &skip) != 7)
        return -EAGAIN;
    meet->port = (uint16_t)port;
    for (text += skip; meet->count < MEET_ADDRESSES_MAX && sscanf(text, "%8x\n%n", &address, &skip) == 1; text += skip)
        if (!strncmp(text, "end", 3))
            break;
        else
            meet->addresses[meet->count++] = htonl(address);
    return strcmp(text, "end\n") ? -EAGAIN : 0;
}

int rendezvous_read(struct rendezvous *meet, const char *directory)
{
    char text[TEXT_MAX];
    *meet = (struct rendezvous){.listener = -1};
    rendezvous_name_file(meet, directory);
    int fd = open(meet->file, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    meet->file[0] = '\0'; /* not ours to remove */
    text[length > 0 ? length : 0] = '\0';
    return rendezvous_parse(meet, text);
}

static int rendezvous_connect_in_time(int fd, const struct sockaddr_in *to)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    int error = connect(fd, (const struct sockaddr *)to, sizeof *to) == 0 ? 0 : errno;
    if (error == EINPROGRESS && poll(&ready, 1, CONNECT_PATIENCE) <= 0)
        return -ETIMEDOUT;
    socklen_t size = sizeof error;
    if (error == EINPROGRESS)
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return -error;
}

/* A peer whose host is gone says nothing any more: the kernel finds out. */
static void rendezvous_prepare_socket(int fd)
{
    int on = 1, patience = 1000 * MEET_PATIENCE;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
}

static int rendezvous_connect_to(const struct rendezvous *meet, uint32_t address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(meet->port), .sin_addr.s_addr = address};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = fd < 0 ? -errno : rendezvous_connect_in_time(fd, &to);
    if (error == 0)
        rendezvous_prepare_socket(fd);
    if (error < 0 && fd >= 0)
        close(fd);
    return error < 0 ? error : fd;
}

/* The loopback leads to the first only on its own host, and even there not from another network namespace. */
static int rendezvous_reach(const struct rendezvous *meet)
{
    int fd = meet->host == rendezvous_host() ? rendezvous_connect_to(meet, htonl(INADDR_LOOPBACK)) : -ECONNREFUSED;
    for (unsigned i = 0; i < meet->count && fd < 0; i++)
        fd = rendezvous_connect_to(meet, meet->addresses[i]);
    return fd;
}

bool rendezvous_answers(const struct rendezvous *meet)
{
    int fd = rendezvous_reach(meet);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

int rendezvous_connect(const struct rendezvous *meet, struct talk_hello *hello)
{
    snprintf(hello->magic, sizeof hello->magic, "%s", TALK_MAGIC);
    memcpy(hello->token, meet->token, sizeof hello->token);
    int fd = rendezvous_reach(meet);
    int error = fd < 0 ? fd : talk_send(fd, hello, sizeof *hello);
    if (error < 0 && fd >= 0)
        close(fd);
    return error < 0 ? error : fd;
}

static bool rendezvous_is_ours(const struct rendezvous *meet, struct talk_hello *hello)
{
    hello->node[sizeof hello->node - 1] = '\0';
    return !memcmp(hello->token, meet->token, sizeof meet->token) && !strncmp(hello->magic, TALK_MAGIC, sizeof hello->magic);
}

int rendezvous_accept(const struct rendezvous *meet, struct talk_hello *hello)
{
    const struct timeval patience = {.tv_sec = HELLO_PATIENCE}, none = {0};
    int fd = accept4(meet->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : -EAGAIN;
    rendezvous_prepare_socket(fd);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (talk_receive(fd, hello, sizeof *hello) < 0 || !rendezvous_is_ours(meet, hello)) {
        close(fd);
        return -EAGAIN;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    return fd;
}
