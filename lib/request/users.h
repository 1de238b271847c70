/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The users of a node's daemon: processes that hold it for what they run (`shunt run`, an agent of shunt-launch). Each has a
 * lock on a byte of one file, BASE/shunt-UID/.DEVICE-INO-NODE.users, beside the run directory, which the kernel takes back when
 * the process ends, however it does. The first byte is locked by the process that is about to start or stop the daemon: one
 * that begins to use it and one that was the last to do so decide one after the other. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/text.h"

/* Async-signal-safe. */
void users_path(struct text *, const char *run_dir);
/* Does any process use the daemon of that run directory? Async-signal-safe. */
bool users_are_there(const char *run_dir);

/* Of the file, opened for reading and writing: a lock lasts until the last descriptor of that opening is closed. 0; -EAGAIN:
 * another one has it; another -errno. */
int users_lock(int fd);
int users_unlock(int fd);
/* While it is locked. *mine is the user's number. */
int users_add(int fd, off_t *mine);
int users_remove(int fd, off_t mine);
/* How many others there are, besides who opened it. */
unsigned users_count(int fd);
