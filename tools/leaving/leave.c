/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "leaving/leave.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/stopping.h"
#include "config/config.h"
#include "leaving/export.h"
#include "leaving/live.h"
#include "programs/places.h"
#include "session/session.h"
#include "union/layout.h"

/* 1: it is background, or background,SECONDS; 0: it is another word; -1: not so many seconds. */
static int leave_take_background(const char *word, uint64_t *quiet)
{
    const size_t length = sizeof "background" - 1;
    uint64_t seconds = LIVE_QUIET;
    if (strncmp(word, "background", length) != 0 || (word[length] != '\0' && word[length] != ','))
        return 0;
    if (word[length] == ',' && config_number_parse(word + length + 1, LIVE_QUIET_MAX, &seconds) != 0)
        return -1;
    *quiet = seconds * CLOCK_SECOND;
    return 1;
}

int leave_take(const struct command *command, const char *word, enum leave *leave, uint64_t *quiet)
{
    static const char *const words[] = {
        [LEAVE_NOW] = "now", [LEAVE_LATER] = "later", [LEAVE_SUBMIT] = "later,submit", [LEAVE_NEVER] = "never"};
    *quiet = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *leave = (enum leave)i;
            if (i != LEAVE_SUBMIT || getenv("SLURM_JOB_ID") != NULL)
                return 0;
            error_usage(command, "--export later,submit: not within a job of Slurm (use --export later)");
            return -1;
        }
    *leave = LEAVE_NOW;
    if (leave_take_background(word, quiet) > 0)
        return 0;
    error_usage(command, "--export '%s': not now, background, background,SECONDS, later, later,submit or never", word);
    return -1;
}

/* Is it by this that Slurm hands the options of its plugin (tools/spank) on: to srun, or with a batch script? */
static bool leave_is_of_plugin(const char *setting)
{
    static const char *const prefixes[] = {"_SLURM_SPANK_OPTION_shunt_", "SLURM_SPANK__SLURM_SPANK_OPTION_shunt_",
                                           "SLURM_SPANK_SHUNT="};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(setting, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* In a child. They would put the export itself under shunt. */
static void leave_forget_plugin(void)
{
    char **to = environ;
    for (char **from = environ; *from != NULL; from++)
        if (!leave_is_of_plugin(*from))
            *to++ = *from;
    *to = NULL;
}

/* In a child. The words of the job come by its environment, in which no character means anything to a shell. */
static void leave_become_sbatch(const char *root, const char *shunt)
{
    char dependency[64];
    snprintf(dependency, sizeof dependency, "--dependency=afterany:%.40s", getenv("SLURM_JOB_ID"));
    setenv("SHUNT_EXPORTED_BY", shunt, 1);
    setenv("SHUNT_EXPORTED_ROOT", root, 1);
    leave_forget_plugin();
    stopping_release();
    execlp("sbatch", "sbatch", "--quiet", "--export=ALL", dependency, "--nodes=1", "--ntasks=1", "--job-name=shunt-export",
           "--wrap=exec \"$SHUNT_EXPORTED_BY\" export \"$SHUNT_EXPORTED_ROOT\"", (char *)NULL);
    error_report("sbatch: cannot be run: %s (run 'shunt export %s')", strerror(errno), root);
    _exit(127);
}

static int leave_submit(const char *root)
{
    char shunt[PATH_MAX];
    int status = 0;
    if (places_shunt(shunt) < 0)
        return STATUS_FAILED;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        leave_become_sbatch(root, shunt);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (child > 0 && status == 0)
        return STATUS_OK;
    error_report("%s: its export could not be submitted (run 'shunt export %s')", root, root);
    return STATUS_FAILED;
}

int leave_root(const char *root, enum leave leave, const struct owners *owners, struct export_sum *sum)
{
    const struct export_options options = {.quiet = true, .yields = true, .owners = owners, .sum = sum};
    if (leave == LEAVE_NOW)
        return export_root(root, &options);
    if (leave != LEAVE_NEVER && session_is_served(root)) /* the last one says it, or submits it */
        return STATUS_OK;
    if (leave == LEAVE_LATER)
        error_report("%s: its files stay in the branches (run 'shunt export %s' on one node, when other nodes are released)",
                     root, root);
    return leave == LEAVE_SUBMIT ? leave_submit(root) : STATUS_OK;
}

static bool leave_is_plain(const char *root)
{
    struct stat stat;
    char own[PATH_MAX + sizeof LAYOUT_OWN];
    snprintf(own, sizeof own, "%s/" LAYOUT_OWN, root);
    return lstat(own, &stat) != 0 && errno == ENOENT;
}

void leave_note_plain(const struct roots *roots, bool plain[ROOTS_MAX])
{
    for (size_t i = 0; i < roots->count; i++)
        plain[i] = leave_is_plain(roots->paths[i]);
}

void leave_undo(const struct roots *roots, const bool was_plain[ROOTS_MAX])
{
    for (size_t i = 0; i < roots->count; i++)
        if (was_plain[i] && !leave_is_plain(roots->paths[i]))
            leave_root(roots->paths[i], LEAVE_NOW, NULL, NULL);
}
