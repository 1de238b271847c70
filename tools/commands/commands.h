/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the subcommands' files hold, for the table in main.c. */

#include "cli/command.h"

extern const struct choice command_ls_choices[], command_stat_choices[], command_tree_choices[], command_find_choices[],
    command_names_choices[], command_export_choices[], command_fsck_choices[], command_start_choices[], command_stop_choices[],
    command_status_choices[], command_exec_choices[], command_run_choices[], command_prove_choices[], command_cleanup_choices[],
    command_doctor_choices[], command_config_choices[], command_env_choices[], command_mount_choices[];

int command_ls(const struct command *, int argc, char **argv);
int command_stat(const struct command *, int argc, char **argv);
int command_tree(const struct command *, int argc, char **argv);
int command_where(const struct command *, int argc, char **argv);
int command_find_files(const struct command *, int argc, char **argv);
int command_names(const struct command *, int argc, char **argv);
int command_export(const struct command *, int argc, char **argv);
int command_fsck(const struct command *, int argc, char **argv);
int command_start(const struct command *, int argc, char **argv);
int command_stop(const struct command *, int argc, char **argv);
int command_status_of(const struct command *, int argc, char **argv);
int command_exec(const struct command *, int argc, char **argv);
int command_env(const struct command *, int argc, char **argv);
int command_run(const struct command *, int argc, char **argv);
int command_bench(const struct command *, int argc, char **argv);
int command_cleanup(const struct command *, int argc, char **argv);
int command_doctor(const struct command *, int argc, char **argv);
int command_config(const struct command *, int argc, char **argv);
int command_mount(const struct command *, int argc, char **argv);
int command_umount(const struct command *, int argc, char **argv);
/* Is a root mounted at that canonical path by `shunt mount`? */
bool command_umount_is_mount(const char *path);
int command_prove(const struct command *, int argc, char **argv);
