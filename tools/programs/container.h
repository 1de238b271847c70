/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a container needs for programs in it to be served, as words of the command line of the program that starts it. */

#include <stdbool.h>
#include <stdio.h>

/* A program that starts containers. */
struct container;

/* By its name; NULL: not known. */
const struct container *container_find(const char *name);
#define CONTAINER_NAMES "podman, apptainer or bwrap"

/* Does a text come through a shell's `$(...)` as a part of one word, and is it a part of one option's argument there? */
bool container_takes(const struct container *, const char *text);

/* Each writes one option and a space. A path is the same inside. */
void container_bind(const struct container *, const char *path, bool is_read_only, FILE *);
void container_set(const struct container *, const char *name, const char *value, FILE *);
/* Those without which the host's processes and descriptors are not seen inside. */
void container_begin(const struct container *, FILE *);
