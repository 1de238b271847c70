/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "takeover.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "place.h"

#define PATIENCE (CLOCK_SECOND / 2)

static struct session session;
static struct session_member first, second;
static const struct session_member *who;
static volatile int stop;

static void make_distant(struct session_member *member, const char *node)
{
    session_self(member, node);
    snprintf(member->branch, sizeof member->branch, "%s.1", node);
    strcpy(member->run_dir, "/nowhere");
    strcpy(member->host, "some.other.host");
    strcpy(member->boot, "another-boot");
}

/* A session of two on another host, which both have beaten. */
static void takeover_init(void)
{
    bool restamped;
    place_init();
    place_directory("r");
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), 0);
    make_distant(&first, "n1");
    make_distant(&second, "n2");
    cr_assert_eq(session_found(place_path("r"), "alice", &first, 0, SESSION_STALE, &session), 0);
    session_finish(&session);
    cr_assert_eq(session_join(place_path("r"), &second, &session), 0);
    cr_assert_eq(session_beat(place_path("r"), &session, 1), 0);
    cr_assert_eq(session_beat(place_path("r"), &session, 2), 0);
}

static void takeover_finish(void)
{
    session_finish(&session);
    place_finish();
}

TestSuite(takeover, .init = takeover_init, .fini = takeover_finish, .timeout = 60);

static int test_takeover_watch(uint64_t patience)
{
    return takeover_watch(place_path("r"), &session, patience, &stop, &who);
}

Test(takeover, of_the_silent)
{
    uint64_t began = clock_monotonic();
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_FREE);
    cr_assert_geq(clock_monotonic() - began, PATIENCE, "it was watched");
    struct session_member mine;
    struct session theirs;
    session_self(&mine, "n3");
    strcpy(mine.branch, "n3.1");
    strcpy(mine.run_dir, "/nowhere");
    cr_assert_eq(session_found(place_path("r"), "alice", &mine, session.epoch, SESSION_STALE, &theirs), 0);
    session_finish(&theirs);
}

/* A process that does that again and again. */
static pid_t takeover_meanwhile(void (*what)(void))
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            what();
            usleep(10000);
        }
    }
    return child;
}

static void second_beats(void)
{
    session_beat(place_path("r"), &session, 2);
}

static void somebody_comes(void)
{
    struct session_member more;
    struct session now;
    make_distant(&more, "n3");
    session_join(place_path("r"), &more, &now);
    session_finish(&now);
}

static void all_leave(void)
{
    session_leave(place_path("r"), session.id, 1);
    session_leave(place_path("r"), session.id, 2);
}

static int watch_while(void (*what)(void))
{
    pid_t child = takeover_meanwhile(what);
    int answer = test_takeover_watch(30 * CLOCK_SECOND);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return answer;
}

Test(takeover, not_of_who_beats)
{
    cr_assert_eq(watch_while(second_beats), TAKEOVER_BEATS);
    cr_assert_eq(who->number, 2);
}

Test(takeover, not_if_it_changes)
{
    cr_assert_eq(watch_while(somebody_comes), TAKEOVER_CHANGED);
}

Test(takeover, of_what_ends)
{
    int answer = watch_while(all_leave);
    cr_assert(answer == TAKEOVER_FREE || answer == TAKEOVER_CHANGED, "%d", answer);
    all_leave(); /* the other process may have been stopped between the two */
    cr_assert_eq(test_takeover_watch(30 * CLOCK_SECOND), TAKEOVER_FREE, "there is nobody to wait for");
}

Test(takeover, not_of_who_never_beat)
{
    session_beat_end(place_path("r"), &session, 2);
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_ALONE);
    cr_assert_eq(who->number, 2);
}

/* The file is there, from when it was not alone. */
Test(takeover, not_of_who_is_alone_now)
{
    cr_assert_eq(session_leave(place_path("r"), session.id, 2), 0);
    session_finish(&session);
    cr_assert_eq(session_read(place_path("r"), &session), 0);
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_ALONE);
    cr_assert_eq(who->number, 1);
}

Test(takeover, not_of_who_lives_here)
{
    session_self(&session.members[1], "n2");
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_HERE);
    cr_assert_eq(who->number, session.members[1].number);
    session.members[1].started++;
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_FREE, "the dead are not waited for");
}

Test(takeover, is_given_up_when_told)
{
    stop = 1;
    cr_assert_eq(test_takeover_watch(30 * CLOCK_SECOND), -EINTR);
}

Test(takeover, reading_that_fails_is_no_silence)
{
    place_file("r/.shunt/session/epoch.9", "broken");
    cr_assert_eq(test_takeover_watch(PATIENCE), -EBADMSG);
}
