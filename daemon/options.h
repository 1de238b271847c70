/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the command line, the environment and the configuration files say. */

#include "config/settings.h"
#include "shuntd.h"

/* 0; 1: help or version was printed; -EINVAL: a sentence was printed. */
int options_read(struct shuntd_options *, int argc, char *argv[]);
/* Of the configuration files, once options were read. */
const struct settings *options_settings(void);
