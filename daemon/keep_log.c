/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "keep_log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "session/kept_log.h"

void keep_log(const struct shuntd_options *options, int log)
{
    char path[PATH_MAX];
    if (log < 0)
        return;
    if (options->log_dir[0] == '\0') {
        close(log);
        return;
    }
    const int code = kept_log_keep(options->log_dir, log, options->node, getpid(), path);
    if (code == 1)
        log_line("%s: this log is kept there", path);
    else if (code < 0)
        log_line("%s: this log cannot be kept there: %s", options->log_dir, strerror(-code));
}
