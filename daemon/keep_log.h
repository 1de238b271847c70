/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* At the end of a daemon, when nobody waits for it any more: the user's directory may be on a file system that hangs. */

#include "shuntd.h"

/* Keeps its log if something went wrong, and says in it, and to syslog, where. `log` as of kept_log_open; negative: there is
 * none. */
void keep_log(const struct shuntd_options *, int log);
