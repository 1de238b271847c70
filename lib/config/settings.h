/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What holds on this host: the environment, above the user's file, above the site's file, above what is built in; and what the
 * site does not allow, which neither lifts (shunt.conf(5)). For the tools and the daemon. The shim reads no files: it is given
 * what they say by the environment of `shunt exec`. Blocking; for one thread. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTINGS_SITE_FILE "/etc/shunt/shunt.conf"

enum settings_key {
    SETTINGS_ENABLED,
    SETTINGS_MESSAGE,
    SETTINGS_ALLOWED_ROOTS,
    SETTINGS_FORBIDDEN_ROOTS,
    SETTINGS_INDEX_LIMIT_MAX,
    SETTINGS_LEAF_FULL_MAX,
    SETTINGS_PLACEMENT,
    SETTINGS_LEAF_FULL,
    SETTINGS_INDEX_LIMIT,
    SETTINGS_STATIC,
    SETTINGS_RUN_DIR,
    SETTINGS_CATALOGUE_DIR,
    SETTINGS_CATALOGUE_QUIET,
    SETTINGS_DEADLINE,
    SETTINGS_STALE,
    SETTINGS_FABRIC,
    SETTINGS_LOG,
    SETTINGS_LOG_DIR,
    SETTINGS_KEYS
};

enum settings_source { SETTINGS_BUILT_IN, SETTINGS_SITE, SETTINGS_USER, SETTINGS_ENVIRONMENT };
#define SETTINGS_FILES 2 /* their names are at [source - 1] */

struct settings_value {
    char *text; /* NULL: built in */
    enum settings_source source;
    unsigned line;   /* of a file */
    bool is_limited; /* another value was given, which the site's file, of which this is a line, does not allow */
    bool is_bad;     /* of the environment, and means nothing */
};

struct settings {
    struct settings_value values[SETTINGS_KEYS];
    char files[SETTINGS_FILES][PATH_MAX]; /* empty: there is none to look for */
    bool is_there[SETTINGS_FILES];
    void (*say)(bool is_error, const char *sentence); /* about a file; NULL: nothing is said */
};

/* Reads files and environment. `tree_file` is the site's file where there is no SETTINGS_SITE_FILE; NULL: none. Where neither
 * is, SHUNT_CONF names it, and then it must be there. 0; -EINVAL: a file holds what means nothing, -errno: it cannot be read,
 * after saying so. To be finished in any case. */
int settings_read(struct settings *, char *const environment[], const char *tree_file,
                  void (*say)(bool is_error, const char *sentence));
void settings_finish(struct settings *);

/* Puts what the files say into the environment of this process, for what it starts. 0 or -ENOMEM. */
int settings_to_environment(const struct settings *);

/* Of a key, as files have it, and as the environment has it (NULL: it has none). */
const char *settings_name(enum settings_key);
const char *settings_variable(enum settings_key);
/* The first variable of the environment that means nothing, or NULL. */
const char *settings_bad_variable(const struct settings *);
/* What is wrong with the value of such a variable, or of another one that config_read refuses. */
const char *settings_fault(const char *variable);
/* What holds; never NULL. */
const char *settings_text(const struct settings *, enum settings_key);
/* "built-in", "environment", or FILE:LINE. */
const char *settings_origin(const struct settings *, enum settings_key, char to[PATH_MAX + 32]);

/* Of logs that are kept: as it is set, or else by the user's directories. False: there is none. */
bool settings_log_dir(const struct settings *, char *const environment[], char to[PATH_MAX]);

bool settings_are_off(const struct settings *);
/* What says so: "FILE:LINE says 'enabled = no'", or "SHUNT_ENABLED says 'no'". */
const char *settings_off_by(const struct settings *, char to[PATH_MAX + 64]);
/* May that directory be a root, whose path is canonical? Else which key says no. */
bool settings_allow_root(const struct settings *, const char *root, enum settings_key *which);
/* UINT64_MAX: there is none. */
uint64_t settings_limit(const struct settings *, enum settings_key limit);
