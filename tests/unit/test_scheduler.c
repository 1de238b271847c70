/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "batch/scheduler.h"
#include "batch/slurm.h"
#include "serving/step.h"

#include "place.h"

static const char *job_of(char *const environment[], const char *cgroups)
{
    static char job[SESSION_JOB_MAX];
    scheduler_of(environment, cgroups, job);
    return job;
}

Test(scheduler, a_process_and_its_job)
{
    char *const slurm[] = {"SLURM_JOB_ID=12",
                           "SLURM_CLUSTER_NAME=c",
                           "SLURM_RESTART_COUNT=2",
                           "SLURM_STEP_ID=3",
                           "SLURMD_NODENAME=n1",
                           "SHUNT_JOB=pbs::1:::",
                           NULL};
    cr_assert_str_eq(job_of(slurm, "4:freezer:/slurm/uid_0/job_12/step_3\n"), "slurm:c:12:2:3:n1");
    cr_assert_str_eq(job_of(slurm, "0::/system.slice/slurmstepd.scope/job_12\n"), "slurm:c:12:2:3:n1");
    cr_assert_str_eq(job_of(slurm, "0::/user.slice/job_123\n"), "slurm:c:12:2:3:", "Slurm does not end it");
    cr_assert_str_eq(job_of(slurm, ""), "slurm:c:12:2:3:");
    cr_assert_str_eq(job_of((char *[]){"PBS_JOBID=12[3].server", NULL}, ""), "pbs::12[3].server:::");
    cr_assert_str_eq(job_of((char *[]){"LSB_JOBID=12", "LSB_JOBINDEX=0", NULL}, ""), "lsf::12:::");
    cr_assert_str_eq(job_of((char *[]){"LSB_JOBID=12", "LSB_JOBINDEX=4", NULL}, ""), "lsf::12[4]:::");
    cr_assert_str_eq(job_of((char *[]){"FLUX_JOB_ID=ƒAbC", NULL}, ""), "flux::ƒAbC:::");
    cr_assert_str_eq(job_of((char *[]){"SHUNT_JOB=slurm:c:12:2:3:n1", NULL}, "/job_12/"), "slurm:c:12:2::", "by ssh");
    cr_assert_str_eq(job_of((char *[]){"SHUNT_JOB=slurm", NULL}, ""), "");
    cr_assert_str_eq(job_of((char *[]){"PBS_JOBID=-f", NULL}, ""), "");
    cr_assert_str_eq(job_of((char *[]){NULL}, ""), "");
}

Test(scheduler, a_group_of_a_heterogeneous_job)
{
    char *const slurm[] = {"SLURM_JOB_ID=12", "SLURMD_NODENAME=n1", "SLURM_JOB_ID_HET_GROUP_0=12",
                           "SLURM_JOB_ID_HET_GROUP_1=13", NULL};
    cr_assert_str_eq(job_of(slurm, "4:freezer:/slurm/uid_0/job_13/step_3\n"), "slurm::13:::n1");
    cr_assert_str_eq(job_of(slurm, "4:freezer:/slurm/uid_0/job_12/step_3\n"), "slurm::12:::n1");
    cr_assert_str_eq(job_of(slurm, "0::/user.slice\n"), "slurm::12:::");
}

Test(step, is_one_of_srun)
{
    cr_assert(step_is_tracked("6:freezer:/slurm_node1/uid_0/job_1/step_0\n0::/\n"));
    cr_assert(step_is_tracked("0::/system.slice/slurmstepd.scope/job_1/step_12/user/task_0\n"));
    cr_assert_not(step_is_tracked("6:freezer:/slurm/uid_0/job_1/step_batch\n"));
    cr_assert_not(step_is_tracked("0::/system.slice/slurmstepd.scope/job_1/step_interactive/user/task_0\n"));
    cr_assert_not(step_is_tracked("6:freezer:/slurm/uid_0/job_1/step_extern\n"));
    cr_assert_not(step_is_tracked("0::/user.slice\n"));
    cr_assert_not(step_is_tracked(""));
}

Test(scheduler, parts_of_a_job)
{
    struct scheduler_job job;
    char words[64];
    cr_assert_eq(scheduler_parse(&job, "slurm:c:12:2:3:n1"), 0);
    cr_assert_str_eq(job.id, "12");
    cr_assert_str_eq(job.node, "n1");
    cr_assert_eq(scheduler_parse(&job, ""), -ENOENT);
    const char *const bad[] = {"slurm",       "slurm:c:12:2:3", "slurm:c:12:2:3:n1:", ":c:12:::",
                               "slurm:c::::", "pbs::-x:::",     "pbs::a b:::",        "slurm:c:1:::n1,n2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(scheduler_parse(&job, bad[i]), -EBADMSG, "%s", bad[i]);
    scheduler_describe("slurm:c:12:2:3:n1", words, sizeof words);
    cr_assert_str_eq(words, "Slurm job 12");
    scheduler_describe("", words, sizeof words);
    cr_assert_str_eq(words, "");
}

static enum scheduler_word slurm_state(const char *state, unsigned restarts)
{
    char said[1024];
    snprintf(said, sizeof said,
             "JobId=11 ArrayJobId=12 JobState=RUNNING Restarts=0 x=y\nJobId=12 JobName=a Requeue=1 Restarts=%u JobState=%s "
             "Reason=None\n",
             restarts, state);
    return slurm_of_job(said, 0, "12", 1);
}

Test(scheduler, what_slurm_says_of_a_job)
{
    static const struct {
        const char *state;
        enum scheduler_word word;
    } states[] = {{"RUNNING", SCHEDULER_RUNS},      {"CONFIGURING", SCHEDULER_RUNS}, {"SUSPENDED", SCHEDULER_SUSPENDED},
                  {"COMPLETING", SCHEDULER_ENDING}, {"PENDING", SCHEDULER_GONE},     {"CANCELLED", SCHEDULER_GONE},
                  {"TIMEOUT", SCHEDULER_GONE},      {"COMPLETED", SCHEDULER_GONE},   {"NODE_FAIL", SCHEDULER_ENDED},
                  {"SOMETHING", SCHEDULER_UNTOLD}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        cr_assert_eq(slurm_state(states[i].state, 1), states[i].word, "%s", states[i].state);
    cr_assert_eq(slurm_state("RUNNING", 2), SCHEDULER_GONE, "that is a later run of it");
    cr_assert_eq(slurm_of_job("slurm_load_jobs error: Invalid job id specified\n", 1, "12", 0), SCHEDULER_GONE);
    cr_assert_eq(slurm_of_job("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n", 1, "12", 0),
                 SCHEDULER_UNTOLD);
    cr_assert_eq(slurm_of_job("", 127, "12", 0), SCHEDULER_UNTOLD);
}

Test(scheduler, what_slurm_says_of_itself_and_of_nodes)
{
    const char *config =
        "Configuration data as of now\nClusterName             = c\nProctrackType           = proctrack/cgroup\n";
    cr_assert(slurm_is_cluster(config, "c") && slurm_tracks_all(config));
    cr_assert_not(slurm_is_cluster(config, "d"));
    cr_assert_not(slurm_is_cluster(config, ""));
    cr_assert_not(slurm_tracks_all("ProctrackType = proctrack/linuxproc\n"));
    const char *nodes = "NodeName=n1 Arch=x State=IDLE ThreadsPerCore=1\nNodeName=n2 State=MIXED+PLANNED x=y\n"
                        "NodeName=n3 State=DOWN* x=y\nNodeName=n4 State=IDLE+DRAIN x=y\nNodeName=n5 State=IDLE* x=y\n";
    cr_assert(slurm_node_is_well(nodes, "n1") && slurm_node_is_well(nodes, "n2"));
    for (const char *const *node = (const char *[]){"n3", "n4", "n5", "n", "", NULL}; *node != NULL; node++)
        cr_assert_not(slurm_node_is_well(nodes, *node), "'%s'", *node);
}

Test(scheduler, what_others_say)
{
    cr_assert_eq(scheduler_of_pbs("Job Id: 1.s\n    job_state = R\n", 0), SCHEDULER_RUNS);
    cr_assert_eq(scheduler_of_pbs("Job Id: 1.s\n    job_state = S\n", 0), SCHEDULER_SUSPENDED);
    cr_assert_eq(scheduler_of_pbs("Job Id: 1.s\n    job_state = E\n", 0), SCHEDULER_ENDING);
    cr_assert_eq(scheduler_of_pbs("Job Id: 1.s\n    job_state = C\n", 0), SCHEDULER_ENDED);
    cr_assert_eq(scheduler_of_pbs("qstat: 1.s Job has finished, use -x or -H to obtain historical job information\n", 35),
                 SCHEDULER_ENDED);
    cr_assert_eq(scheduler_of_pbs("qstat: Unknown Job Id 1.s\n", 153), SCHEDULER_ENDED);
    cr_assert_eq(scheduler_of_pbs("qstat: cannot connect to server s (errno=15010)\n", 1), SCHEDULER_UNTOLD);
    cr_assert_eq(scheduler_of_lsf("RUN\n", 0), SCHEDULER_RUNS);
    cr_assert_eq(scheduler_of_lsf("SSUSP\n", 0), SCHEDULER_SUSPENDED);
    cr_assert_eq(scheduler_of_lsf("EXIT\n", 0), SCHEDULER_ENDED);
    cr_assert_eq(scheduler_of_lsf("Job <1> is not found\n", 255), SCHEDULER_ENDED);
    cr_assert_eq(scheduler_of_lsf("UNKWN\n", 0), SCHEDULER_UNTOLD);
    cr_assert_eq(scheduler_of_flux("RUN\n", 0), SCHEDULER_RUNS);
    cr_assert_eq(scheduler_of_flux("CLEANUP\n", 0), SCHEDULER_ENDING);
    cr_assert_eq(scheduler_of_flux("INACTIVE\n", 0), SCHEDULER_ENDED);
    cr_assert_eq(scheduler_of_flux("", 1), SCHEDULER_UNTOLD);
}
