/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/takeover.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "cli/stopping.h"
#include "place.h"

#define PATIENCE (CLOCK_SECOND / 2)

static struct session session;
static struct session_member first, second;
static const struct session_member *who;

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

static bool anyhow; /* --takeover */

static int test_takeover_watch(uint64_t patience)
{
    struct takeover_watch watch = {.root = place_path("r"), .session = &session, .patience = patience, .anyhow = anyhow};
    int code = takeover_watch(&watch);
    who = watch.who;
    free(watch.pulses);
    free(watch.words);
    return code;
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
    cr_assert_eq(watch_while(second_beats), TAKEOVER_LIVES);
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
    cr_assert_eq(test_takeover_watch(30 * CLOCK_SECOND), TAKEOVER_CHANGED, "there is nobody to wait for");
}

Test(takeover, of_who_is_alone)
{
    cr_assert_eq(session_leave(place_path("r"), session.id, 2), 0);
    session_finish(&session);
    cr_assert_eq(session_read(place_path("r"), &session), 0);
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_FREE);
    cr_assert_eq(who->number, 1);
}

Test(takeover, not_of_who_lives_here)
{
    session_self(&session.members[1], "n2");
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_LIVES);
    cr_assert_eq(who->number, session.members[1].number);
    session.members[1].started++;
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_FREE, "the dead are not waited for");
}

Test(takeover, is_given_up_when_told)
{
    stopping_catch();
    raise(SIGTERM);
    cr_assert_eq(test_takeover_watch(30 * CLOCK_SECOND), -EINTR);
}

Test(takeover, reading_that_fails_is_no_silence)
{
    place_file("r/.shunt/session/epoch.9", "broken");
    cr_assert_eq(test_takeover_watch(PATIENCE), -EBADMSG);
}

/* A batch system, as a script in PATH; the job of both members. */
static void batch_system(const char *name, const char *script, const char *job)
{
    char path[PATH_MAX];
    place_directory("bin");
    snprintf(path, sizeof path, "bin/%s", name);
    place_file(path, script);
    cr_assert_eq(chmod(place_path("%s", path), 0755), 0);
    snprintf(path, sizeof path, "%s:%s", place_path("bin"), getenv("PATH"));
    setenv("PATH", path, 1);
    for (size_t i = 0; i < session.count; i++)
        strcpy(session.members[i].job, job);
}

#define SCONTROL                                                                                                               \
    "#!/bin/sh\ncase $* in 'show config') echo 'ClusterName = c'; echo 'ProctrackType = proctrack/%s' ;;\n"                    \
    "'-o show job 7') echo 'JobId=7 JobName=j Restarts=0 JobState=%s Reason=None' ;;\n"                                        \
    "'-o show node n1,n1') echo 'NodeName=n1 State=%s ThreadsPerCore=1' ;; *) exit 1 ;; esac\n"

static void slurm_says(const char *state, const char *tracks, const char *node)
{
    char script[2048];
    snprintf(script, sizeof script, SCONTROL, tracks, state, node);
    batch_system("scontrol", script, "slurm:c:7:0::n1");
}

Test(takeover, at_once_of_a_job_that_has_ended)
{
    slurm_says("CANCELLED", "cgroup", "IDLE");
    cr_assert_eq(test_takeover_watch(UINT64_MAX), TAKEOVER_FREE);
}

Test(takeover, not_at_once_if_a_process_may_have_escaped)
{
    uint64_t began = clock_monotonic();
    slurm_says("CANCELLED", "linuxproc", "IDLE");
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_FREE);
    slurm_says("COMPLETED", "cgroup", "DOWN*");
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_FREE);
    cr_assert_geq(clock_monotonic() - began, 2 * PATIENCE);
}

Test(takeover, not_of_a_job_that_runs)
{
    slurm_says("RUNNING", "cgroup", "ALLOCATED");
    cr_assert_eq(watch_while(second_beats), TAKEOVER_LIVES);
    slurm_says("SUSPENDED", "cgroup", "ALLOCATED");
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_SUSPENDED);
}

/* Its members beat until they are killed. */
Test(takeover, of_a_job_that_is_about_to_end)
{
    slurm_says("COMPLETING", "cgroup", "COMPLETING");
    pid_t child = takeover_meanwhile(second_beats);
    pid_t ends = fork();
    if (ends == 0) {
        usleep(300000);
        slurm_says("TIMEOUT", "cgroup", "IDLE");
        _exit(0);
    }
    cr_assert_eq(test_takeover_watch(30 * CLOCK_SECOND), TAKEOVER_FREE);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    waitpid(ends, NULL, 0);
}

/* With --takeover nothing but heartbeats counts. */
static void takeover_with_option(void)
{
    takeover_init();
    anyhow = true;
}

TestSuite(takeover_option, .init = takeover_with_option, .fini = takeover_finish, .timeout = 60);

Test(takeover_option, of_a_suspended_job_that_is_silent)
{
    slurm_says("SUSPENDED", "cgroup", "ALLOCATED");
    uint64_t began = clock_monotonic();
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_FREE);
    cr_assert_geq(clock_monotonic() - began, PATIENCE, "it was watched");
}

Test(takeover_option, not_of_who_beats)
{
    slurm_says("SUSPENDED", "cgroup", "ALLOCATED");
    cr_assert_eq(watch_while(second_beats), TAKEOVER_LIVES);
    cr_assert_eq(who->number, 2);
}

Test(takeover_option, does_not_ask)
{
    slurm_says("CANCELLED", "cgroup", "IDLE");
    cr_assert_eq(watch_while(second_beats), TAKEOVER_LIVES, "the word of Slurm would have been enough");
}

/* The option is not wanted there: a node that Slurm does not hear may be dead. */
Test(takeover, of_a_job_that_runs_if_it_is_silent)
{
    slurm_says("RUNNING", "cgroup", "ALLOCATED");
    cr_assert_eq(test_takeover_watch(PATIENCE), TAKEOVER_FREE);
}
