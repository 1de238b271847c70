/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Heartbeats: a member sets the time of its file, others look whether it changes. The times of different hosts are
 * never compared with each other. */
#include <errno.h>
#include <linux/magic.h>
#include <sys/stat.h>

#include "session/store.h"
#include "union/disk.h"

#define HEARTBEAT_GFS2 0x01161970
#define HEARTBEAT_STALL (3 * SESSION_BEAT) /* from one read to the next, or in a read */

static int heartbeat_open_beat(const char *root, const struct session *session, uint16_t number, char name[STORE_NAME_MAX])
{
    store_name(name, "beat", session, number);
    return store_open(root);
}

int store_beat(int directory, const struct session *session, uint16_t number)
{
    char name[STORE_NAME_MAX];
    store_name(name, "beat", session, number);
    int error = sys_utimensat(directory, name, NULL, AT_SYMLINK_NOFOLLOW);
    if (error == -ENOENT)
        error = disk_write_new(directory, name, "", 0, 0644);
    return error == -EEXIST ? 0 : error; /* of a daemon that wants to join under the same number */
}

int session_beat(const char *root, const struct session *session, uint16_t number)
{
    int directory = store_open(root);
    if (directory < 0)
        return directory;
    int error = store_beat(directory, session, number);
    sys_close(directory);
    return error;
}

uint64_t session_beat_interval(size_t members)
{
    uint64_t all = members * (20 * CLOCK_MILLISECOND);
    return all > SESSION_BEAT ? all : SESSION_BEAT;
}

/* No later than when it was written, if it is not the one of before. What was written after the last look, and before a stall,
 * is seen only when that is over: then it is as much younger than the last one that was seen as the member's own clock says. */
static uint64_t heartbeat_since(const struct session_pulse *pulse, uint64_t beat, uint64_t ended)
{
    const bool stalled = pulse->read > 0 && ended - pulse->read > HEARTBEAT_STALL;
    const uint64_t later = pulse->since + (beat - pulse->beat);
    return stalled && pulse->beat != 0 && beat > pulse->beat && later < ended ? later : ended;
}

static void heartbeat_count_silence(struct session_pulse *pulse, uint64_t began, uint64_t ended)
{
    const uint64_t gap = pulse->read > 0 && began > pulse->read ? began - pulse->read : 0;
    const uint64_t counted = gap < SESSION_BEAT ? gap : SESSION_BEAT;
    pulse->still += counted;
    pulse->steady = ended - pulse->read > HEARTBEAT_STALL ? 0 : pulse->steady + counted;
    pulse->silent = began > pulse->since ? began - pulse->since : 0;
}

void session_pulse_count(struct session_pulse *pulse, uint64_t beat, uint64_t began, uint64_t ended)
{
    if (beat != pulse->beat)
        *pulse = (struct session_pulse){.beat = beat, .since = heartbeat_since(pulse, beat, ended)};
    else
        heartbeat_count_silence(pulse, began, ended);
    pulse->read = ended;
}

bool session_pulse_is_over(const struct session_pulse *pulse, uint64_t system, uint64_t time)
{
    const bool expels = system == OCFS2_SUPER_MAGIC || system == HEARTBEAT_GFS2;
    return pulse->still >= time || (expels && pulse->steady >= HEARTBEAT_STALL && pulse->silent >= time);
}

/* 0 and what the file's time is, 0 without one; or -errno. What this node remembers of it does not count. */
static int heartbeat_read_beat(const char *root, const struct session *session, uint16_t number, uint64_t *beat)
{
    char name[STORE_NAME_MAX];
    struct statx stat;
    int directory = heartbeat_open_beat(root, session, number, name);
    if (directory < 0)
        return directory;
    int error = sys_statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_MTIME, &stat);
    sys_close(directory);
    *beat = error == 0 ? clock_stamp(stat.stx_mtime) : 0;
    return error == -ENOENT ? 0 : error;
}

int session_observe(const char *root, const struct session *session, uint16_t number, struct session_pulse *pulse)
{
    uint64_t beat, began = clock_monotonic();
    int error = heartbeat_read_beat(root, session, number, &beat);
    if (error < 0)
        pulse->read = 0;
    else
        session_pulse_count(pulse, beat, began, clock_monotonic());
    return error;
}
