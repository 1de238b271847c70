/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "programs/places.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

/* Relative to the executable's directory, the build directory first. SHUNT_DAEMON_FROM_BIN,
 * SHUNT_STATIC_FROM_BIN and SHUNT_PRELOAD_FROM_BIN are the way from bindir to what is installed, so a tree that was moved as a
 * whole still works. */
static const char *const daemon_places[] = {"../daemon/shuntd", SHUNT_DAEMON_FROM_BIN, "shuntd", NULL};
static const char *const mount_places[] = {"mount/shunt-mount", SHUNT_MOUNT_FROM_BIN, NULL};
static const char *const shunt_places[] = {"shunt", NULL};
static const char *const launch_places[] = {"shunt-launch", NULL};
static const char *const static_places[] = {"static/shunt-static", SHUNT_STATIC_FROM_BIN, "../static/shunt-static", NULL};
static const char *const preload_places[] = {"../lib/shim/libshunt_preload.so", SHUNT_PRELOAD_FROM_BIN, NULL};

static bool places_own_directory(char to[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", to, PATH_MAX - 1);
    if (length <= 0)
        return false;
    to[length] = '\0';
    char *slash = strrchr(to, '/');
    *slash = '\0';
    return true;
}

static bool places_find(const char *const *places, const char *directory, char to[PATH_MAX])
{
    char candidate[2 * PATH_MAX];
    for (; *places; places++) {
        bool absolute = **places == '/';
        snprintf(candidate, sizeof candidate, "%s%s%s", absolute ? "" : directory, absolute ? "" : "/", *places);
        if (realpath(candidate, to) && access(to, R_OK) == 0)
            return true;
    }
    return false;
}

static int places_look(const char *const *places, const char *what, const char *remedy, char to[PATH_MAX])
{
    char directory[PATH_MAX];
    if (!places_own_directory(directory))
        error_report("%s: cannot be found, since /proc/self/exe cannot be read (mount /proc)", what);
    else if (places_find(places, directory, to))
        return 0;
    else
        error_report("%s: not found next to %s/shunt (%s)", what, directory, remedy);
    return -1;
}

#define PLACES_WHOLE "build or install shunt as a whole"

int places_daemon(char to[PATH_MAX])
{
    return places_look(daemon_places, "shuntd", PLACES_WHOLE, to);
}

int places_preload(char to[PATH_MAX])
{
    return places_look(preload_places, "libshunt_preload.so", PLACES_WHOLE, to);
}

int places_mount(char to[PATH_MAX])
{
    return places_look(mount_places, "shunt-mount", "build shunt with libfuse3 and -Dmount=enabled", to);
}

bool places_static(char to[PATH_MAX])
{
    char directory[PATH_MAX];
    return places_own_directory(directory) && places_find(static_places, directory, to);
}

const char *places_site_file(char to[PATH_MAX])
{
    const char *from = SHUNT_CONF_FROM_BIN;
    if (*from == '/')
        return from;
    if (!places_own_directory(to) || strlen(to) + strlen(from) + 2 > PATH_MAX)
        return NULL;
    return strcat(strcat(to, "/"), from);
}

int places_launch(char to[PATH_MAX])
{
    return places_look(launch_places, "shunt-launch", PLACES_WHOLE, to);
}

int places_shunt(char to[PATH_MAX])
{
    return places_look(shunt_places, "shunt", PLACES_WHOLE, to);
}
