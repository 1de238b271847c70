/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "fuzz.h"
#include "session/run_dirs.h"

/* What root reads of other users: `about` of a run directory, and the environment of a process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run_dirs_about about;
    struct session_job job;
    if (run_dirs_about_parse(&about, (const char *)data, size) == 0) {
        fuzz_must(memchr(about.root, '\0', sizeof about.root) != NULL && memchr(about.node, '\0', sizeof about.node) != NULL);
        fuzz_must(strpbrk(about.job, " \n") == NULL && strpbrk(about.scheduler, " \n") == NULL);
    }
    const bool has_job = session_job_parse(&job, (const char *)data, size);
    fuzz_must(has_job == (job.scheduler != NULL) && has_job == (job.id[0] != '\0'));
    fuzz_must(strpbrk(job.id, " \n") == NULL && strpbrk(job.step, " \n") == NULL);
    return 0;
}
