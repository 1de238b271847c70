/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* shuntd: one process for a node and a root. This file is the table of contents. */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "background.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/standard_streams.h"
#include "coordinator/coordinator.h"
#include "coordinator/delegation.h"
#include "coordinator/dir_times.h"
#include "coordinator/evict.h"
#include "coordinator/outgrown.h"
#include "crash.h"
#include "disk/disk.h"
#include "home/home.h"
#include "keep_log.h"
#include "listen/listen.h"
#include "membership/failure_detector.h"
#include "membership/heartbeat.h"
#include "membership/homes.h"
#include "membership/remote_stall.h"
#include "membership/root_watch.h"
#include "membership/session_view.h"
#include "ops/completion.h"
#include "ops/ops.h"
#include "options.h"
#include "prefetch/grant.h"
#include "prefetch/prefetch.h"
#include "recorder/recorder.h"
#include "reply/reply.h"
#include "rpc/receive.h"
#include "session/kept_log.h"
#include "shuntd.h"
#include "start.h"
#include "supervise.h"
#include "user_watch.h"

#define BATCH_MAX 1024          /* requests in one batch */
#define TICK (CLOCK_SECOND / 2) /* while something waits for time to pass; without that the daemon sleeps */

static int main_finish_jobs(struct shuntd *shuntd, struct disk *disk)
{
    int code = 0;
    for (struct disk_job *job; code == 0 && (job = disk_next_done(disk)) != NULL;)
        code = job->finish(job, shuntd);
    return code;
}

static int main_serve_jobs(struct shuntd *shuntd)
{
    int code = main_finish_jobs(shuntd, shuntd->heartbeat_disk);
    return code == 0 ? main_finish_jobs(shuntd, shuntd->disk) : code;
}

/* A request whose process has ended meanwhile is dropped. */
static int main_serve_requests_again(struct shuntd *shuntd)
{
    struct listen_request request;
    int code = 0;
    for (struct blocked_request *blocked; code == 0 && (blocked = home_next_retry(shuntd->home)) != NULL;) {
        if (listen_is_there(shuntd->listen, blocked->qp, blocked->client)) {
            home_restore_request(blocked, &request);
            code = ops_serve(shuntd, &request);
        }
        free(blocked);
    }
    return code;
}

/* One may wake another: until nothing is left to go on with. */
static int main_serve_woken(struct shuntd *shuntd)
{
    int code = 0;
    while (code == 0 && home_has_ready(shuntd->home)) {
        code = main_serve_requests_again(shuntd);
        if (code == 0)
            code = ops_resume(shuntd);
    }
    return code;
}

static int main_serve_messages(struct shuntd *shuntd)
{
    struct listen_request request;
    int code = 0;
    for (unsigned i = 0; i < BATCH_MAX && code == 0 && !peers_are_congested(shuntd->peers); i++) {
        if (!listen_next(shuntd->listen, &request, &shuntd->counts.malformed))
            break;
        shuntd->counts.requests++;
        code = ops_serve(shuntd, &request);
        if (code == 0)
            code = main_serve_woken(shuntd);
    }
    return code;
}

static int main_serve_deaths(struct shuntd *shuntd)
{
    int code = 0;
    for (pid_t client; code == 0 && (client = listen_next_death(shuntd->listen)) != 0;) {
        shuntd->counts.client_exits++;
        code = completion_settle_client(shuntd, (uint64_t)client);
        listen_forget(shuntd->listen, client);
    }
    return code;
}

/* What was asked for ahead, and by nobody since. Requests whose senders stopped waiting: what they began is settled by what
 * is on disk. And those that wait for a member that is silent. Looked for with each tick, not with each batch. */
static int main_serve_overdue(struct shuntd *shuntd)
{
    static uint64_t next;
    if (shuntd->now < next)
        return shuntd->stop != 0 ? prefetch_tick(shuntd) : 0;
    next = shuntd->now + TICK;
    listen_look(shuntd->listen);
    int code = prefetch_tick(shuntd);
    if (code == 0)
        code = completion_settle_client(shuntd, 0);
    if (code == 0)
        code = coordinator_give_up(shuntd);
    return code == 0 ? remote_stall_step(shuntd) : code;
}

/* What is known here of directories is noted for the catalogue before any of it is given away. */
static int main_begin_to_leave(struct shuntd *shuntd)
{
    if (shuntd->stop == 0)
        return 0;
    recorder_note_end(shuntd);
    return delegation_leave(shuntd);
}

/* What is done, what is asked, what is over; then the answers go out. */
static int main_serve_batch(struct shuntd *shuntd)
{
    static int (*const steps[])(struct shuntd *) = {main_serve_jobs,
                                                    session_view_publish_address,
                                                    rpc_receive_all,
                                                    main_serve_woken,
                                                    main_serve_messages,
                                                    grant_step,
                                                    main_serve_deaths,
                                                    main_serve_overdue,
                                                    dir_times_step,
                                                    homes_step,
                                                    main_begin_to_leave,
                                                    heartbeat_step,
                                                    failure_detector_step,
                                                    recorder_step,
                                                    evict_step,
                                                    outgrown_step,
                                                    root_watch_step,
                                                    user_watch_step,
                                                    main_serve_woken};
    int code = 0;
    shuntd->now = clock_monotonic();
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == 0; i++)
        code = steps[i](shuntd);
    if (code == 0 && index_is_damaged(shuntd->index)) /* whichever room met it */
        code = -EBADMSG;
    if (code != 0)
        return code;
    shuntd->counts.batches++;
    homes_publish(shuntd);
    reply_flush(shuntd);
    peers_flush(shuntd->peers);
    return 0;
}

/* A blocked request waits for a notice, and so may an rmdir and a client's end. A request that waits at another daemon has
 * this one told (NOTIFY_AWAITED); else what a notice says travels in the frame of the next question. */
static bool main_is_awaited(struct shuntd *shuntd)
{
    return home_has_waiting(shuntd->home) || !list_empty(&shuntd->coordinator_calls) || shuntd->stop != 0;
}

/* Until when it may sleep if nothing happens: monotonic, UINT64_MAX: for ever. */
static uint64_t main_sleep_end(struct shuntd *shuntd)
{
    bool waits = main_is_awaited(shuntd) || session_view_waits(shuntd) || !listen_follows_all(shuntd->listen);
    uint64_t end = shuntd->now + (waits ? TICK : heartbeat_interval(shuntd));
    uint64_t root = root_watch_due(shuntd), times = dir_times_due(shuntd), recorder = recorder_due(shuntd),
             evict = evict_due(shuntd);
    end = times < end ? times : end;
    end = evict < end ? evict : end;
    end = root < end ? root : end;
    return recorder < end ? recorder : end;
}

/* A home of names ends when others have taken them over; a second signal ends it at once. */
static bool main_goes_on(struct shuntd *shuntd)
{
    return shuntd->stop == 0 || disk_is_busy(shuntd->disk) || disk_is_busy(shuntd->heartbeat_disk) ||
           (shuntd->stop == 1 && (!homes_may_leave(shuntd) || recorder_is_ending(shuntd)));
}

/* Whose turn it is to serve: main's, but while it sleeps. What comes from another daemon wakes the fabric's thread; that it
 * then wakes main costs as much as what is to be done. So that thread does it if main sleeps, and wakes main if there is
 * more to do, or main is to sleep otherwise. What other rooms say of main's thread is said of whose turn it is. */
static struct {
    pthread_mutex_t lock;
    uint64_t until; /* main sleeps, as main_sleep_end; 0: it does not */
    bool awaited;   /* ... heeding notices */
    int code;       /* 0, or the fatal -errno of a batch */
} turn = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool main_is_main_to_wake(struct shuntd *shuntd)
{
    return turn.code != 0 || shuntd->stop != 0 || homes_are_due(shuntd) || listen_has_more(shuntd->listen) ||
           main_is_awaited(shuntd) != turn.awaited || main_sleep_end(shuntd) < turn.until;
}

/* The fabric's thread. */
static bool main_serve_frames(struct shuntd *shuntd)
{
    if (pthread_mutex_trylock(&turn.lock) != 0)
        return false;
    bool served = turn.until != 0 && turn.code == 0 && shuntd->stop == 0;
    if (served) {
        turn.code = main_serve_batch(shuntd);
        listen_wake_all(shuntd->listen);
        served = !main_is_main_to_wake(shuntd);
    }
    pthread_mutex_unlock(&turn.lock);
    return served;
}

/* Main's, which has the turn before and after it. */
static void main_sleep_on(struct shuntd *shuntd, uint32_t rings)
{
    const uint64_t until = main_sleep_end(shuntd), now = clock_monotonic();
    turn.until = until;
    pthread_mutex_unlock(&turn.lock);
    listen_sleep(shuntd->listen, rings, until == UINT64_MAX ? 0 : until > now ? until - now : 1);
    pthread_mutex_lock(&turn.lock);
    turn.until = 0;
}

static int main_run(struct shuntd *shuntd)
{
    pthread_mutex_lock(&turn.lock);
    __atomic_store_n(&shuntd->serve_frames, main_serve_frames, __ATOMIC_RELEASE);
    while (turn.code == 0 && main_goes_on(shuntd)) {
        uint32_t rings = listen_rings(shuntd->listen);
        turn.code = main_serve_batch(shuntd);
        turn.awaited = main_is_awaited(shuntd);
        listen_heed(shuntd->listen, turn.awaited);
        if (turn.code != 0 || !main_goes_on(shuntd) || homes_are_due(shuntd))
            continue;
        if (listen_rest(shuntd->listen, rings))
            main_sleep_on(shuntd, rings);
        listen_rise(shuntd->listen);
    }
    /* What was taken of grants is seen, for the times of directories, and nothing more of them is taken. */
    const int code = turn.code == 0 ? prefetch_tick(shuntd) : turn.code;
    dir_times_write_all(shuntd); /* before another daemon may set the times of a directory without this one */
    if (code == 0)
        session_view_leave(shuntd);
    return code;
}

static void main_tell_end(const struct shuntd *shuntd, int code)
{
    if (code == 0)
        log_line("stopped");
    else if (code == -EBADMSG && index_is_damaged(shuntd->index))
        log_warning("stopped: %s: the index is damaged, the next shuntd makes a new one from the file system (if it happens "
                    "again, set SHUNT_RUN_DIR to another directory)",
                    shuntd->run_dir);
    else
        log_warning("stopped: %s", strerror(-code));
}

int main(int argc, char *argv[])
{
    static struct shuntd shuntd;
    int ready = -1;
    bool serves;
    standard_streams_occupy();
    int code = options_read(&shuntd.options, argc, argv);
    if (code != 0)
        return code > 0 ? 0 : 2;
    if (shuntd.options.logs_to_syslog)
        log_to_syslog(shuntd.options.root);
    if (!shuntd.options.foreground && (ready = background_fork()) < 0)
        return 1;
    if (!shuntd.options.foreground)
        ready = supervise(ready, &shuntd.former_run_dir, &shuntd.options);
    shuntd.supervisor = shuntd.options.foreground ? 0 : getppid();
    const bool again = shuntd.former_run_dir != NULL;
    shuntd.options.again &= !again; /* nobody would be told but the log */
    crash_report_init();
    code = start(&shuntd);
    serves = code == 0;
    background_ready(ready, code, shuntd.run_dir);
    if (serves) {
        log_line("serving %s as %s", shuntd.root.path, shuntd.me.branch);
        code = main_run(&shuntd);
        main_tell_end(&shuntd, code);
    }
    if ((serves || (again && shuntd.stop == 0)) && code != 0 && shuntd.supervisor != 0 && !shuntd.root_gone)
        _exit(1); /* as after a crash: processes wait for the next one, which takes over */
    const bool log_stays = (serves && code != 0) || shuntd.root_gone;
    const bool log_goes = (serves || again) && !log_stays && !shuntd.options.foreground;
    const int log = log_goes ? kept_log_open(shuntd.run_dir) : -1;
    start_undo(&shuntd, log_stays);
    keep_log(&shuntd.options, log);
    return code == 0 || (again && shuntd.root_gone) ? 0 : 1;
}
