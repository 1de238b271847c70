/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "join.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "background.h"
#include "base/clock.h"
#include "base/faults.h"
#include "base/hook.h"
#include "base/log.h"
#include "complaint.h"
#include "config/config.h"
#include "coordinator/rename_fence.h"
#include "listen/listen.h"
#include "membership/heartbeat.h"
#include "membership/homes.h"
#include "membership/session_view.h"
#include "peer/addresses.h"
#include "peer/peers.h"
#include "session/job.h"

#define NO_NETWORK (-ENONET) /* of join_as_member: it cannot be opened, which was said */
#define HOME_OPENS (10 * CLOCK_SECOND)
#define HOME_ANSWERS (10 * CLOCK_SECOND)

/* A user that can do neither. */
static int join_refuse_user(const struct shuntd *shuntd, const struct session *session, const struct session_member *member)
{
    char words[1024];
    const char *root = shuntd->root.path;
    session_describe(session, member, words, sizeof words);
    if (session_is_held(session))
        return complain(-EBUSY, "%s: %s (wait for its end, or read with 'shunt ls %s')", root, words, root);
    return complain(-EBUSY, "%s: %s (ask that user to run 'shunt stop --root %s', or read with 'shunt ls %s')", root, words,
                    root, root);
}

static int join_refuse_session(const struct shuntd *shuntd, const struct session *session)
{
    char words[1024];
    const char *root = shuntd->root.path;
    const struct session_member *member = session_living(session);
    if (session->uid != geteuid())
        return join_refuse_user(shuntd, session, member);
    session_describe(session, member, words, sizeof words);
    if (session_is_held(session))
        return complain(-EBUSY, "%s: %s (interrupt it, or wait for its end)", root, words);
    if (member != NULL && session_lives(member) == -EREMOTE)
        return complain(-EBUSY, "%s: %s (run 'shunt stop --root %s' on that host, or wait for its end)", root, words, root);
    return complain(-EBUSY, "%s: %s (run 'shunt stop --root %s', or use it with 'shunt exec')", root, words, root);
}

/* A tool of the same user's has it, which ends: a tool that starts this daemon waits for that, and starts it again. */
static bool join_is_for_later(const struct shuntd *shuntd, const struct session *session)
{
    return shuntd->options.again && session_is_held(session) && session->uid == geteuid();
}

static int join_refuse(const struct shuntd *shuntd, const struct session *session)
{
    return join_is_for_later(shuntd, session) ? START_AGAIN : join_refuse_session(shuntd, session);
}

/* A daemon of the same user joins, under a name that nobody goes by. A tool that holds the root serves nobody. */
static bool join_is_possible(const struct shuntd *shuntd, const struct session *session)
{
    const struct session_member *same = session_find_node(session, shuntd->options.node);
    return !session_is_held(session) && session->uid == geteuid() && strcmp(shuntd->options.fabric, "none") != 0 &&
           (same == NULL || session_lives(same) == 0);
}

int join_check(struct shuntd *shuntd)
{
    struct session session;
    int code = session_read(shuntd->root.path, &session);
    if (code == 0 && session_living(&session) != NULL)
        code = join_is_possible(shuntd, &session) ? 0 : join_refuse(shuntd, &session);
    session_finish(&session);
    return code == -EBUSY || code == START_AGAIN ? code : 0;
}

static void join_ring_for_peers(void *context)
{
    struct shuntd *shuntd = context;
    struct listen *listen = __atomic_load_n(&shuntd->listen, __ATOMIC_ACQUIRE);
    bool (*serve_frames)(struct shuntd *) = __atomic_load_n(&shuntd->serve_frames, __ATOMIC_ACQUIRE);
    if (listen != NULL && (serve_frames == NULL || !serve_frames(shuntd)))
        listen_ring(listen);
}

/* Where this daemon is reached is told once it can be joined (session_view_publish_address), also if it tried to join before.
 */
static int join_found(struct shuntd *shuntd)
{
    struct passwd *user = getpwuid(geteuid());
    shuntd->me.address_size = 0;
    shuntd->joined = clock_boot();
    return session_found(shuntd->root.path, user != NULL ? user->pw_name : "unknown", &shuntd->me, 0, shuntd->options.stale,
                         &shuntd->session);
}

static int join_try(struct shuntd *shuntd)
{
    shuntd->joined = clock_boot();
    return session_join(shuntd->root.path, &shuntd->me, &shuntd->session);
}

/* If this node was taken for lost, the daemon that fences its old branch drops its old member; that takes no longer than a
 * lease, unless that one is lost itself. */
static int join_when_dropped(struct shuntd *shuntd)
{
    const struct timespec pause = clock_split(SESSION_BEAT / 20);
    uint64_t until = clock_monotonic() + 4 * shuntd->options.stale + SESSION_STALE;
    int code = join_try(shuntd);
    if (code == -EINPROGRESS)
        log_line("node %s: taken for lost, it joins again once its old branch is fenced", shuntd->me.node);
    while (code == -EINPROGRESS && shuntd->stop == 0 && clock_monotonic() < until) {
        clock_sleep(&pause);
        code = join_try(shuntd);
    }
    return code;
}

static int join_complain_of_network(const struct shuntd *shuntd, int code)
{
    return complain(
        NO_NETWORK,
        "SHUNT_FABRIC '%s': the network cannot be opened: %s (run 'shunt doctor', which names the interfaces of this host)",
        shuntd->options.fabric, strerror(-code));
}

static int join_open_fabric_now(struct shuntd *shuntd)
{
    return peers_is_open(shuntd->peers) ? 0 : peers_open(shuntd->peers, shuntd->options.fabric, join_ring_for_peers, shuntd);
}

/* Others must know where to reach a daemon from the moment on that it is a member. */
static int join_as_member(struct shuntd *shuntd)
{
    size_t size = sizeof shuntd->me.address;
    int code = join_open_fabric_now(shuntd);
    if (code == 0)
        code = peers_address(shuntd->peers, shuntd->me.address, &size);
    if (code != 0)
        return join_complain_of_network(shuntd, code);
    shuntd->me.address_size = (uint8_t)size;
    shuntd->me.home = SESSION_GUEST; /* it may have tried to found a session before */
    return join_when_dropped(shuntd);
}

/* Many daemons may start at once: one of them founds the session, and it may end meanwhile. */
static int join_repeatedly(struct shuntd *shuntd)
{
    int code = join_found(shuntd);
    for (int i = 0; i < 10 && code == -EBUSY && join_is_possible(shuntd, &shuntd->session); i++) {
        session_finish(&shuntd->session);
        code = join_as_member(shuntd);
        if (code == -ENOENT) {
            session_finish(&shuntd->session);
            code = join_found(shuntd);
        }
    }
    return code;
}

/* An export may have removed it before this daemon had the root. */
static int join_has_branch(const struct shuntd *shuntd)
{
    if (access(shuntd->branch_path, F_OK) == 0)
        return 0;
    if (shuntd->options.again)
        return START_AGAIN;
    return complain(-ENOENT, "%s: was removed while shuntd started (run this again)", shuntd->branch_path);
}

int join_or_found(struct shuntd *shuntd)
{
    int code = join_repeatedly(shuntd);
    if (code == 0)
        return join_has_branch(shuntd);
    shuntd->me.number = 0;
    if (code == NO_NETWORK)
        return code;
    if (code == -ENOENT && shuntd->options.again)
        return START_AGAIN;
    if (code == -EBUSY || code == -EACCES)
        return join_refuse(shuntd, &shuntd->session);
    if (code == -EINPROGRESS)
        return complain(
            code,
            "node %s: was silent for so long that the others went on without it, and they do not let it in again yet (run this "
            "again, or run 'shunt stop --all --root %s' on another host)",
            shuntd->options.node, shuntd->root.path);
    if (code == -EXDEV)
        return complain(code, "%s: another file system than the one of its session (mount that one here)", shuntd->root.path);
    if (code == -EBADMSG)
        return complain(code,
                        "%s: its session is of another version of shunt (run 'shunt stop --root %s' of that version, or 'shunt "
                        "export %s' of it if its job was killed)",
                        shuntd->root.path, shuntd->root.path, shuntd->root.path);
    return complain(code, "%s: the session cannot be written: %s (check permissions, quota and space of %s/.shunt)",
                    shuntd->root.path, strerror(-code), shuntd->root.path);
}

/* The home of the names may be just about to open its end. */
static int join_find_home(struct shuntd *shuntd)
{
    const struct timespec pause = clock_split(20 * CLOCK_MILLISECOND);
    const struct session_member *home;
    uint64_t until = clock_monotonic() + HOME_OPENS;
    int code = 0;
    while (code == 0 && shuntd->stop == 0 && (home = session_home(&shuntd->session)) != NULL && home->address_size == 0) {
        if (clock_monotonic() > until)
            return complain(
                -EHOSTUNREACH,
                "%s: in use on host %s by a session that no other host can join (wait for the end of its 'shunt run', or run "
                "'shunt stop --root %s' there and start it with SHUNT_FABRIC=tcp)",
                shuntd->root.path, home->host, shuntd->root.path);
        clock_sleep(&pause);
        session_finish(&shuntd->session);
        code = session_read(shuntd->root.path, &shuntd->session);
    }
    return code == 0
               ? 0
               : complain(code, "%s: the session cannot be read: %s (run this again)", shuntd->root.path, strerror(-code));
}

static int join_fail(const struct shuntd *shuntd, int code)
{
    return complain(code, "%s: the session cannot be joined: %s (run this again)", shuntd->root.path, strerror(-code));
}

static int join_adopt(struct shuntd *shuntd)
{
    int code = session_view_adopt(shuntd);
    return code == 0 ? 0 : join_fail(shuntd, code);
}

static int join_ask_home(struct shuntd *shuntd)
{
    int code = session_view_join(shuntd, HOME_ANSWERS);
    const struct session_member *home = session_home(&shuntd->session);
    if (code == 0)
        return 0;
    if (shuntd->stop != 0)
        return complain_interrupted();
    if (code == -ETIMEDOUT && shuntd->options.again) /* its job may have ended meanwhile */
        return START_AGAIN;
    if (code != -ETIMEDOUT || home == NULL)
        return join_fail(shuntd, code);
    char addresses[ADDRESSES_TEXT_MAX], job[SESSION_JOB_MAX + sizeof " job "];
    struct text t;
    text_init(&t, job, sizeof job);
    session_job_describe(&t, home->job);
    addresses_text(home->address, home->address_size, addresses);
    return complain(
        code,
        "%s: in use by a session whose daemon on host %s%s%s does not answer%s%s (if that job has ended, run 'shunt start "
        "--takeover --root %s', else 'shunt doctor --host %s'; SHUNT_FABRIC=tcp:INTERFACE names the network that the hosts "
        "share)",
        shuntd->root.path, home->host, t.length > 0 ? " for " : "", job, addresses[0] != '\0' ? " at " : "", addresses,
        shuntd->root.path, home->host);
}

static void *join_open_fabric(void *context)
{
    struct shuntd *shuntd = context;
    HOOK("fabric-opens");
    int code = join_open_fabric_now(shuntd);
    if (code != 0)
        log_warning("SHUNT_FABRIC '%s': the network cannot be opened, so no other node can join: %s", shuntd->options.fabric,
                    strerror(-code));
    return NULL;
}

/* It takes a while, and nobody needs it yet: see session_view_publish_address. But one that somebody has named is to be there.
 */
static int join_open_fabric_meanwhile(struct shuntd *shuntd)
{
    homes_found(shuntd);
    heartbeat_adopt(shuntd);
    if (strcmp(shuntd->options.fabric, "none") == 0 || peers_is_open(shuntd->peers))
        return 0;
    if (strcmp(shuntd->options.fabric, CONFIG_FABRIC) != 0) {
        const int refused = join_open_fabric_now(shuntd);
        return refused == 0 ? 0 : join_complain_of_network(shuntd, refused);
    }
    /* As all threads but main's: the handler is not at work while main's thread takes down what it touches. */
    sigset_t all, before;
    faults_excepted(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&shuntd->fabric_thread, NULL, join_open_fabric, shuntd);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    shuntd->fabric_opens = code == 0;
    return -code;
}

int join_enter(struct shuntd *shuntd)
{
    const struct session_member *home = session_home(&shuntd->session);
    if (home != NULL && home->number == shuntd->me.number)
        return join_open_fabric_meanwhile(shuntd);
    int code = join_find_home(shuntd);
    if (code == 0)
        code = join_adopt(shuntd);
    if (code == 0)
        code = join_ask_home(shuntd);
    return code == 0 ? rename_fence_join(shuntd) : code;
}
