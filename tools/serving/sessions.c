/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "config/config.h"
#include "request/channel.h"
#include "serving/leftover.h"
#include "union/disk.h"

#define SESSIONS_ENVIRONMENT (1u << 20)      /* of a process, as much of it as is looked at */
#define SESSIONS_PATIENCE (8 * CLOCK_SECOND) /* with a process of another user's, which itself gives up before */
/* What is read of a channel: as far as numbers stand in it. */
#define SESSIONS_HEAD offsetof(struct channel, trunk_times)

const char *sessions_state(enum session_state state)
{
    static const char *const words[SESSIONS_STATES] = {
        [SESSIONS_SERVES] = "serving",      [SESSIONS_RESTARTS] = "restarting", [SESSIONS_ENDED] = "ended",
        [SESSIONS_CONTAINER] = "container", [SESSIONS_UNKNOWN] = "unknown",
    };
    return words[state];
}

/* A process. */

/* What /proc/PID/status says of a process: 1; 0: it is gone; -errno: it cannot be told. The directory's owner does not do for
 * its user: that is root for a process that may not be traced. */
static int sessions_read_process(pid_t pid, bool *is_shuntd, uid_t *uid, uint64_t *memory)
{
    char path[64], text[4096];
    unsigned real = 0;
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    ssize_t length = pid > 0 ? disk_read(AT_FDCWD, path, text, sizeof text - 1) : 0;
    if (length <= 0)
        return disk_look_failure((int)length);
    text[length] = '\0';
    const char *user = strstr(text, "\nUid:"), *anonymous = strstr(text, "\nRssAnon:");
    /* One that was killed has a number until somebody asks how it ended. */
    if (user == NULL || sscanf(user, "\nUid: %u", &real) != 1 || strstr(text, "\nState:\tZ") != NULL)
        return 0;
    *is_shuntd = strncmp(text, "Name:\tshuntd\n", 13) == 0;
    if (anonymous == NULL || sscanf(anonymous, "\nRssAnon: %llu", &kib) != 1)
        kib = 0;
    *uid = real;
    *memory = (uint64_t)kib * 1024;
    return 1;
}

/* 1, 0 or -errno. */
static int sessions_is_shuntd(pid_t pid, uid_t uid, uint64_t *memory)
{
    uid_t real;
    bool is_shuntd;
    const int code = sessions_read_process(pid, &is_shuntd, &real, memory);
    return code <= 0 ? code : is_shuntd && real == uid;
}

/* The first of all processes that is_one, 0: none is. -errno: they cannot be listed. */
static pid_t sessions_find_process(bool (*is_one)(void *context, pid_t pid), void *context)
{
    uint64_t buffer[1024];
    struct disk_scan scan;
    const struct disk_name *name;
    pid_t found = 0;
    int code = disk_scan_init(&scan, AT_FDCWD, "/proc", buffer, sizeof buffer);
    if (code < 0)
        return code;
    while (found == 0 && disk_scan_next(&scan, &name) > 0) {
        const pid_t pid = (pid_t)strtol(name->name, NULL, 10);
        if (name->name[0] >= '1' && name->name[0] <= '9' && is_one(context, pid))
            found = pid;
    }
    disk_scan_finish(&scan);
    return found;
}

bool sessions_is_of(const struct session_here *here, pid_t pid)
{
    uint64_t memory;
    return here->is_described && sessions_is_shuntd(pid, here->uid, &memory) > 0 &&
           leftover_serves(pid, here->about.root, here->about.node);
}

struct sessions_search {
    const struct sessions *sessions;
    const struct session_here *here;
    char *environment;
};

/* It has no channel yet in which it could be found. */
static bool sessions_may_be_of(const struct sessions *sessions, const struct session_here *here, pid_t pid)
{
    if (here->is_described)
        return leftover_serves(pid, here->about.root, here->about.node);
    for (size_t i = 0; i < sessions->count; i++)
        if (pid == sessions->at[i]->daemon || pid == sessions->at[i]->supervisor)
            return false;
    return true;
}

static bool sessions_is_its_daemon(void *context, pid_t pid)
{
    const struct sessions_search *search = context;
    uint64_t memory;
    const int is_shuntd = sessions_is_shuntd(pid, search->here->uid, &memory);
    return is_shuntd < 0 || (is_shuntd > 0 && sessions_may_be_of(search->sessions, search->here, pid));
}

/* Where it cannot be told, it may be. */
bool sessions_is_beginning(const struct sessions *sessions, const struct session_here *here)
{
    return sessions_find_process(sessions_is_its_daemon, &(struct sessions_search){sessions, here, NULL}) != 0;
}

/* Does it run under shunt with that root, for another job? It need not have made a call yet. */
static bool sessions_is_of_other_job(pid_t pid, const struct session_here *here, char *environment)
{
    char path[64];
    struct session_job job;
    const size_t length = strlen(here->about.root);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    const ssize_t size = disk_read(AT_FDCWD, path, environment, SESSIONS_ENVIRONMENT);
    if (size <= 0)
        return false;
    session_job_parse(&job, environment, (size_t)size);
    if (strcmp(job.id, here->about.job) == 0)
        return false;
    for (const char *at = environment, *end; (end = memchr(at, '\0', (size_t)(environment + size - at))) != NULL;
         at = end + 1) {
        const char *roots = strncmp(at, "SHUNT_ROOT=", 11) == 0 ? at + 11 : end;
        for (; roots < end; roots += strcspn(roots, ":") + 1)
            if (strcspn(roots, ":") == length && memcmp(roots, here->about.root, length) == 0)
                return true;
    }
    return false;
}

static bool sessions_is_foreign_client(void *context, pid_t pid)
{
    const struct sessions_search *search = context;
    uint64_t memory;
    bool is_shuntd;
    uid_t real;
    const int code = sessions_read_process(pid, &is_shuntd, &real, &memory);
    return code < 0 || (code > 0 && !is_shuntd && real == search->here->uid &&
                        sessions_is_of_other_job(pid, search->here, search->environment));
}

pid_t sessions_other_job(const struct session_here *here)
{
    struct sessions_search search = {NULL, here, malloc(SESSIONS_ENVIRONMENT)};
    const pid_t other = search.environment != NULL ? sessions_find_process(sessions_is_foreign_client, &search) : -ENOMEM;
    free(search.environment);
    return other >= 0 ? other : here->daemon; /* it cannot be told: leave it */
}

/* The channel, read: its writer may cut it meanwhile. */

static bool sessions_has_client(const struct session_here *here, pid_t pid)
{
    for (size_t i = 0; i < here->client_count; i++)
        if (here->clients[i] == pid)
            return true;
    return false;
}

static void sessions_read_clients(struct session_here *here, int fd, const struct channel *head)
{
    here->client_count = 0;
    if (here->clients == NULL && (here->clients = calloc(CHANNEL_QPS, sizeof *here->clients)) == NULL)
        return;
    for (unsigned i = 0; i < CHANNEL_QPS; i++) {
        uint32_t owner = 0;
        const off_t at = (off_t)(sizeof(struct channel) + i * sizeof(struct channel_qp) + offsetof(struct channel_qp, owner));
        if (!channel_qp_is_there(head, i) || pread(fd, &owner, sizeof owner, at) != sizeof owner || owner == 0)
            continue;
        if (!sessions_has_client(here, (pid_t)owner) && kill((pid_t)owner, 0) != -1)
            here->clients[here->client_count++] = (pid_t)owner;
    }
}

static enum session_state sessions_state_of(struct session_here *here, const struct channel *head, int *error)
{
    uint64_t ignored;
    if (!channel_is_known(head))
        return SESSIONS_UNKNOWN;
    if (!request_is_of_this_boot(head))
        return SESSIONS_ENDED;
    if (head->pid_namespace != request_pid_namespace())
        return channel_is_alive(head) ? SESSIONS_CONTAINER : SESSIONS_ENDED;
    const int daemon = sessions_is_shuntd(channel_daemon(head), here->uid, &here->daemon_bytes);
    const int supervisor = sessions_is_shuntd(head->supervisor, here->uid, &ignored);
    *error = daemon < 0 ? daemon : supervisor < 0 ? supervisor : 0;
    if (daemon > 0)
        here->daemon = channel_daemon(head);
    if (supervisor > 0)
        here->supervisor = head->supervisor;
    return here->daemon != 0 ? SESSIONS_SERVES : here->supervisor != 0 ? SESSIONS_RESTARTS : SESSIONS_ENDED;
}

/* 0 or -errno: it is not known. */
static int sessions_read_channel(struct session_here *here, int directory)
{
    struct channel *head = mmap(NULL, sizeof *head, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* aligned */
    const int fd = openat(directory, "channel", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const int channel_error = fd < 0 ? -errno : 0;
    here->state = SESSIONS_ENDED; /* or it is about to begin, and has a daemon that nobody can find yet */
    here->daemon = here->supervisor = 0;
    here->daemon_bytes = 0;
    int error = head == MAP_FAILED ? -ENOMEM : fd < 0 ? disk_look_failure(channel_error) : 0;
    const ssize_t got = fd >= 0 && error == 0 ? pread(fd, head, SESSIONS_HEAD, 0) : 0;
    if (got < 0)
        error = disk_look_failure(-errno);
    if (got == (ssize_t)SESSIONS_HEAD)
        here->state = sessions_state_of(here, head, &error);
    if (here->state == SESSIONS_SERVES)
        sessions_read_clients(here, fd, head);
    if (fd >= 0)
        close(fd);
    if (head != MAP_FAILED)
        munmap(head, sizeof *head);
    return error;
}

static void sessions_read_files(struct session_here *here, int directory)
{
    uint64_t buffer[1024];
    struct disk_scan scan;
    const struct disk_name *name;
    struct stat stat;
    here->file_bytes = 0;
    if (disk_scan_init(&scan, directory, ".", buffer, sizeof buffer) < 0)
        return;
    while (disk_scan_next(&scan, &name) > 0)
        if (fstatat(directory, name->name, &stat, AT_SYMLINK_NOFOLLOW) == 0)
            here->file_bytes += (uint64_t)stat.st_blocks * 512;
    disk_scan_finish(&scan);
}

/* 1; 0: it is no run directory; -errno: what it is is not known. */
static int sessions_read(struct session_here *here)
{
    struct stat stat;
    int directory = open(here->run_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), error = 0;
    if (directory < 0)
        return disk_look_failure(-errno);
    if (fstat(directory, &stat) != 0)
        error = -errno;
    const bool is_one = error == 0 && stat.st_uid == here->uid;
    if (is_one) {
        here->gid = stat.st_gid;
        error = sessions_read_channel(here, directory);
        sessions_read_files(here, directory);
        here->is_described = run_dirs_about_read(directory, &here->about) == 0;
    }
    close(directory);
    return error < 0 ? error : is_one;
}

int sessions_look_again(struct session_here *here)
{
    const int code = sessions_read(here);
    if (code <= 0) {
        here->state = SESSIONS_ENDED;
        here->daemon = here->supervisor = 0;
    }
    return code < 0 ? code : 0;
}

/* All of them. */

struct sessions_walk {
    struct sessions *sessions;
    uid_t uid;
};

static int sessions_add(void *context, const char *run_dir)
{
    struct sessions_walk *walk = context;
    struct session_here *here = calloc(1, sizeof *here);
    struct session_here **at = realloc(walk->sessions->at, (walk->sessions->count + 1) * sizeof *at);
    if (at != NULL)
        walk->sessions->at = at;
    if (here == NULL || at == NULL) {
        free(here);
        return -ENOMEM;
    }
    snprintf(here->run_dir, sizeof here->run_dir, "%s", run_dir);
    here->uid = walk->uid;
    here->counters_error = -ENODATA;
    const int read = sessions_read(here);
    if (read > 0) {
        at[walk->sessions->count++] = here;
        return 0;
    }
    if (read < 0) {
        error_report_path(run_dir, read);
        walk->sessions->is_partial = true;
    }
    free(here->clients);
    free(here);
    return 0;
}

/* A directory of that name which is not that user's own is nobody's. */
static int sessions_add_user(struct sessions *sessions, const char *base, uid_t uid)
{
    char all[SESSION_RUN_MAX];
    struct stat stat = {0};
    struct text t;
    struct sessions_walk walk = {sessions, uid};
    text_init(&t, all, sizeof all);
    session_run_dirs(&t, base, uid);
    if (!text_ok(&t))
        return -ENAMETOOLONG;
    all[t.length - 1] = '\0';
    int code = lstat(all, &stat) == 0 ? 0 : disk_look_failure(-errno);
    const bool is_own = code == 0 && S_ISDIR(stat.st_mode) && stat.st_uid == uid;
    all[t.length - 1] = '/';
    if (is_own)
        code = run_dirs_each(all, sessions_add, &walk);
    return code == -ENOENT || code == -EACCES ? 0 : code;
}

struct sessions_users {
    struct sessions *sessions;
    const char *base;
};

static int sessions_add_named(void *context, const char *path)
{
    const struct sessions_users *users = context;
    char *end;
    const char *number = strrchr(path, '-') + 1;
    errno = 0;
    const unsigned long uid = strtoul(number, &end, 10);
    if (*number < '0' || *number > '9' || *end != '\0' || errno != 0 || uid >= (uid_t)-1)
        return 0;
    return sessions_add_user(users->sessions, users->base, (uid_t)uid);
}

static int sessions_compare(const void *one, const void *other)
{
    const struct session_here *a = *(struct session_here *const *)one, *b = *(struct session_here *const *)other;
    if (a->uid != b->uid)
        return a->uid < b->uid ? -1 : 1;
    return a->about.since != b->about.since ? (a->about.since < b->about.since ? -1 : 1) : strcmp(a->run_dir, b->run_dir);
}

/* What is meant is not what is taken then, whose sessions may be ended. */
static bool sessions_knows_base(void)
{
    if (config_value(environ, "SHUNT_RUN_DIR", "/")[0] == '/')
        return true;
    error_report("SHUNT_RUN_DIR: not an absolute path, so it is not looked at (correct it or unset it)");
    return false;
}

int sessions_look(struct sessions *sessions, uid_t user)
{
    struct config config;
    char all[SESSION_RUN_MAX];
    config_read(&config, environ);
    struct sessions_users users = {sessions, config.run_base};
    *sessions = (struct sessions){0};
    if (!sessions_knows_base())
        return -1;
    int code;
    if (user != (uid_t)-1)
        code = sessions_add_user(sessions, config.run_base, user);
    else if (snprintf(all, sizeof all, "%s/shunt-", config.run_base) < (int)sizeof all)
        code = run_dirs_each(all, sessions_add_named, &users);
    else
        code = -ENAMETOOLONG;
    if (code < 0 && code != -ENOENT) {
        error_report("%s: cannot be read: %s (check SHUNT_RUN_DIR)", config.run_base, strerror(-code));
        return -1;
    }
    if (sessions->count > 1)
        qsort(sessions->at, sessions->count, sizeof(struct session_here *), sessions_compare);
    return 0;
}

void sessions_finish(struct sessions *sessions)
{
    for (size_t i = 0; i < sessions->count; i++) {
        free(sessions->at[i]->clients);
        free(sessions->at[i]);
    }
    free(sessions->at);
    *sessions = (struct sessions){0};
}

int sessions_user(const char *name, uid_t *uid)
{
    char *end;
    const struct passwd *user = getpwnam(name);
    errno = 0;
    const unsigned long number = strtoul(name, &end, 10);
    if (user != NULL) {
        *uid = user->pw_uid;
        return 0;
    }
    if (*name >= '0' && *name <= '9' && *end == '\0' && errno == 0 && number < (uid_t)-1) {
        *uid = (uid_t)number;
        return 0;
    }
    error_report("user '%s': unknown on this host (give a login name or a number)", name);
    return -1;
}

/* Counters. */

/* In a process of that user's: what is mapped is the user's, who may cut it. Writes the text; an exit status: an errno. */
static void sessions_ask_as(const struct session_here *here, int to)
{
    static struct counters counters;
    if (setgroups(0, NULL) != 0 || setgid(here->gid) != 0 || setuid(here->uid) != 0)
        _exit(EPERM);
    int code = counters_ask(&counters, here->run_dir, false);
    const struct message_text text = counters.answer.message.text_answer.text;
    if (code == 0 && write(to, text.text, text.length) != (ssize_t)text.length)
        code = -EIO;
    _exit(code < 0 && code > -256 ? -code : code == 0 ? 0 : EIO);
}

/* Is there something to be read, or has the writer ended? The user may have stopped it. */
static bool sessions_is_heard(int from, uint64_t until)
{
    struct pollfd readable = {.fd = from, .events = POLLIN};
    int ready = 0;
    for (uint64_t now = clock_monotonic(); ready <= 0 && now < until; now = clock_monotonic())
        ready = poll(&readable, 1, (int)((until - now) / CLOCK_MILLISECOND) + 1);
    return ready > 0;
}

static int sessions_take_counters(struct counters *counters, int from)
{
    const uint64_t until = clock_monotonic() + SESSIONS_PATIENCE;
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length < sizeof counters->answer.bytes) {
        if (!sessions_is_heard(from, until))
            return -ETIMEDOUT;
        got = read(from, counters->answer.bytes + length, sizeof counters->answer.bytes - length);
        length += got > 0 ? (size_t)got : 0;
    }
    counters->answer.message.text_answer.text = message_text((const char *)counters->answer.bytes, length);
    return got < 0 ? -errno : 0;
}

static int sessions_ask_of(struct session_here *here)
{
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        sessions_ask_as(here, ends[1]);
    close(ends[1]);
    int code = child < 0 ? -errno : sessions_take_counters(&here->counters, ends[0]);
    close(ends[0]);
    if (child > 0 && code == -ETIMEDOUT)
        kill(child, SIGKILL);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return code != 0 ? code : !WIFEXITED(status) ? -EIO : -WEXITSTATUS(status);
}

void sessions_count(struct session_here *here)
{
    if (here->state != SESSIONS_SERVES)
        here->counters_error = -EHOSTDOWN;
    else if (here->uid != geteuid() && geteuid() == 0)
        here->counters_error = sessions_ask_of(here);
    else
        here->counters_error = counters_ask(&here->counters, here->run_dir, false);
}
