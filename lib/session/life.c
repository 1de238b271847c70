/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Processes: the identity of this one, and whether a member's lives. */
#include <errno.h>
#include <sys/utsname.h>

#include "base/sys.h"
#include "session/session.h"
#include "union/lines.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* A small file of /proc, without the newline at its end; empty if it cannot be read. */
static size_t life_read_proc(const char *path, char *to, size_t size)
{
    int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    ssize_t length = fd < 0 ? 0 : sys_read(fd, to, size - 1);
    if (fd >= 0)
        sys_close(fd);
    if (length < 0)
        length = 0;
    if (length > 0 && to[length - 1] == '\n')
        length--;
    to[length] = '\0';
    return (size_t)length;
}

/* State and start time of a process: fields 3 and 22, counted from the last parenthesis, since the name in
 * field 2 may hold anything. False: there is none, or it is not shown to us. */
static bool life_read_process(pid_t pid, char *state, uint64_t *started)
{
    char path[32], stat[1024];
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, "/proc/");
    text_number(&t, (uint64_t)pid, 10);
    text_add(&t, "/stat");
    size_t length = life_read_proc(path, stat, sizeof stat);
    const char *at = memrchr(stat, ')', length);
    if (!at || at[1] != ' ')
        return false;
    *state = at[2];
    for (int field = 2; field < 22; field++) {
        at = strchr(at + 1, ' ');
        if (!at)
            return false;
    }
    struct lines_value value = {at + 1, strcspn(at + 1, " ")};
    return lines_number(value, 10, started);
}

uint64_t session_process_started(pid_t pid)
{
    char state;
    uint64_t started;
    return pid > 0 && life_read_process(pid, &state, &started) ? started : 0;
}

/* -ESRCH from kill(2) is certain; a process hidden by the mount options of /proc is taken for alive. */
static bool life_process_lives(pid_t pid, uint64_t expected)
{
    char state;
    uint64_t started;
    if (pid <= 0)
        return false;
    if (!life_read_process(pid, &state, &started))
        return SYS2(SYS_kill, pid, 0) != -ESRCH;
    return state != 'Z' && state != 'X' && (expected == 0 || started == expected);
}

void session_self(struct session_member *member, const char *node)
{
    struct utsname host = {0};
    struct text t;
    *member = (struct session_member){.pid = sys_getpid(), .since = clock_of(CLOCK_REALTIME)};
    member->started = session_process_started(member->pid);
    text_init(&t, member->node, sizeof member->node);
    text_add(&t, node);
    SYS1(SYS_uname, &host);
    text_init(&t, member->host, sizeof member->host);
    text_add(&t, host.nodename);
    life_read_proc(BOOT_ID, member->boot, sizeof member->boot);
}

/* One boot is one machine, whatever it calls itself in its containers; in another of those the process may
 * have another number, so that only a match says something there. */
int session_lives(const struct session_member *member)
{
    char boot[64];
    struct utsname host = {0};
    life_read_proc(BOOT_ID, boot, sizeof boot);
    SYS1(SYS_uname, &host);
    bool same_boot = boot[0] && !strcmp(boot, member->boot);
    bool same_host = !strncmp(host.nodename, member->host, SESSION_HOST_MAX - 1);
    if (same_boot && life_process_lives(member->pid, member->started))
        return 1;
    if (!same_host)
        return -EREMOTE;
    /* Without a boot id on either side, the start time has to do. */
    if (boot[0] && member->boot[0])
        return 0;
    return life_process_lives(member->pid, member->started);
}

const struct session_member *session_living(const struct session *session)
{
    const struct session_member *distant = NULL;
    for (size_t i = 0; i < session->count; i++) {
        int lives = session_lives(&session->members[i]);
        if (lives == 1)
            return &session->members[i];
        if (lives == -EREMOTE && !distant)
            distant = &session->members[i];
    }
    return distant;
}

const struct session_member *session_home(const struct session *session)
{
    for (size_t i = 0; i < session->count; i++)
        if (session->members[i].home != SESSION_GUEST && session->members[i].home != SESSION_GONE &&
            session->members[i].home != SESSION_LOST)
            return &session->members[i];
    return NULL;
}
