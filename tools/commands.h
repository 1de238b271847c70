/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the verbs' files hold, for the table in main.c. */

#include "command.h"

extern const struct choice verb_ls_choices[], verb_stat_choices[], verb_tree_choices[], verb_find_choices[],
    verb_export_choices[], verb_fsck_choices[], verb_start_choices[], verb_stop_choices[], verb_status_choices[],
    verb_exec_choices[], verb_run_choices[];

int verb_ls(const struct verb *, int argc, char **argv);
int verb_stat(const struct verb *, int argc, char **argv);
int verb_tree(const struct verb *, int argc, char **argv);
int verb_where(const struct verb *, int argc, char **argv);
int verb_find_files(const struct verb *, int argc, char **argv);
int verb_export(const struct verb *, int argc, char **argv);
int verb_fsck(const struct verb *, int argc, char **argv);
int verb_start(const struct verb *, int argc, char **argv);
int verb_stop(const struct verb *, int argc, char **argv);
int verb_status_of(const struct verb *, int argc, char **argv);
int verb_exec(const struct verb *, int argc, char **argv);
int verb_run(const struct verb *, int argc, char **argv);
int verb_bench(const struct verb *, int argc, char **argv);
int verb_prove(const struct verb *, int argc, char **argv);
