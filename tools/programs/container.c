/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "programs/container.h"

#include <string.h>

/* The parts of its options. */
struct container {
    const char *name, *begin;
    const char *bind, *bind_read_only, *between, *read_only; /* bind PATH between PATH, or bind_read_only ... read_only */
    const char *set, *is;                                    /* set NAME is VALUE */
    const char *separators;                                  /* what a path or a value cannot have */
};

/* Podman makes a PID namespace unless told otherwise. Apptainer keeps the host's, and mounts /proc. Bubblewrap keeps it, and
 * mounts what it is told alone. */
static const struct container containers[] = {
    {"podman", "--pid=host ", "--volume=", "--volume=", ":", ":ro", "--env=", "=", ""},
    {"apptainer", "", "--bind=", "--bind=", ":", ":ro", "--env=", "=", ","},
    {"bwrap", "--proc /proc ", "--bind ", "--ro-bind ", " ", "", "--setenv ", " ", ""},
};

const struct container *container_find(const char *name)
{
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++)
        if (strcmp(containers[i].name, name) == 0)
            return &containers[i];
    return NULL;
}

/* A backslash makes a word a pattern in some shells. */
bool container_takes(const struct container *container, const char *text)
{
    return *text != '\0' && strpbrk(text, " \t\n*?[\\") == NULL && strpbrk(text, container->separators) == NULL;
}

void container_bind(const struct container *container, const char *path, bool is_read_only, FILE *to)
{
    fprintf(to, "%s%s%s%s%s ", is_read_only ? container->bind_read_only : container->bind, path, container->between, path,
            is_read_only ? container->read_only : "");
}

void container_set(const struct container *container, const char *name, const char *value, FILE *to)
{
    fprintf(to, "%s%s%s%s ", container->set, name, container->is, value);
}

void container_begin(const struct container *container, FILE *to)
{
    fputs(container->begin, to);
}
