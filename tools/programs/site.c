/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "programs/site.h"

#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "config/config.h"
#include "programs/launch.h"
#include "programs/places.h"
#include "session/session.h"

static struct settings site;

static bool site_has_doubts;

static void site_say(bool is_error, const char *sentence)
{
    if (is_error || site_has_doubts)
        error_report("%s", sentence);
}

int site_read(bool doubts)
{
    char file[PATH_MAX];
    site_has_doubts = doubts;
    if (settings_read(&site, environ, places_site_file(file), site_say) != 0)
        return -1;
    return settings_to_environment(&site) == 0 ? 0 : -1;
}

const struct settings *site_settings(void)
{
    return &site;
}

const char *site_bad_variable(void)
{
    struct config config;
    config_read(&config, environ);
    return config.bad != NULL ? config.bad : settings_bad_variable(&site);
}

void site_complain_variable(const char *name)
{
    error_report("%s: %s (correct it or unset it)", name, settings_fault(name));
}

int site_check_variables(void)
{
    const char *bad = site_bad_variable();
    if (bad != NULL)
        site_complain_variable(bad);
    return bad != NULL ? -1 : 0;
}

bool site_is_off(void)
{
    return settings_are_off(&site);
}

int site_do_without(const struct roots *roots, const char *what)
{
    char room[PATH_MAX + 64];
    const char *message = settings_text(&site, SETTINGS_MESSAGE), *off = settings_off_by(&site, room);
    const char *colon = *message != '\0' ? ": " : "";
    for (size_t i = 0; i < roots->count; i++)
        if (!launch_is_plain(roots->paths[i])) {
            error_report(
                "%s: has files that only shunt shows, and shunt is off on this host%s%s (run 'shunt export %s', then this "
                "again; %s)",
                roots->paths[i], colon, message, roots->paths[i], off);
            return -1;
        }
    error_report("off on this host%s%s, so %s (%s)", colon, message, what, off);
    return 0;
}

int site_command(const struct roots *roots, char **words)
{
    if (site_do_without(roots, "the command runs without it") < 0)
        return LAUNCH_NO_SHIM;
    return launch_command(words);
}

bool site_is_served(const struct roots *roots)
{
    bool is_served = false;
    for (size_t i = 0; i < roots->count && !is_served; i++) {
        struct session session;
        is_served = session_read(roots->paths[i], &session) == 0 && session_living(&session) != NULL;
        session_finish(&session);
    }
    return is_served;
}
