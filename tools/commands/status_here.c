/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "status_here.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/json.h"
#include "serving/metrics.h"
#include "serving/sessions.h"

/* The columns but for the last one, the root, which is as long as it is. */
enum column { USER, JOB, SINCE, MEMORY, STATE, COLUMNS };
static const char *const titles[COLUMNS] = {"USER", "JOB", "SINCE", "MEMORY", "STATE"};
#define CELL 160

static void status_here_size(uint64_t bytes, char to[CELL])
{
    static const char units[] = "BKMGT";
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1000 && unit + 2 < sizeof units; unit++)
        size /= 1024;
    if (unit == 0)
        snprintf(to, CELL, "%llu B", (unsigned long long)bytes);
    else
        snprintf(to, CELL, size < 10 ? "%.1f %ciB" : "%.0f %ciB", size, units[unit]);
}

static void status_here_cells(const struct session_here *here, char cells[COLUMNS][CELL])
{
    char when[DESCRIBE_TIME];
    const struct timespec since = clock_split(here->about.since);
    const struct statx_timestamp stamp = {.tv_sec = since.tv_sec};
    describe_time_short(&stamp, when);
    snprintf(cells[USER], CELL, "%s", describe_user(here->uid));
    snprintf(cells[JOB], CELL, "%s", here->about.job[0] != '\0' ? here->about.job : "-");
    snprintf(cells[SINCE], CELL, "%s", here->is_described ? when : "-");
    status_here_size(here->file_bytes + here->daemon_bytes, cells[MEMORY]);
    snprintf(cells[STATE], CELL, "%s", sessions_state(here->state));
}

static void status_here_widths(const struct sessions *sessions, unsigned widths[COLUMNS])
{
    char cells[COLUMNS][CELL];
    for (unsigned column = 0; column < COLUMNS; column++)
        widths[column] = describe_width(titles[column]);
    for (size_t i = 0; i < sessions->count; i++) {
        status_here_cells(sessions->at[i], cells);
        for (unsigned column = 0; column < COLUMNS; column++)
            if (describe_width(cells[column]) > widths[column])
                widths[column] = describe_width(cells[column]);
    }
}

/* Numbers stand at the right. */
static void status_here_print_cell(const char *cell, unsigned column, unsigned width)
{
    const int room = (int)(width - describe_width(cell));
    printf("%*s", column == MEMORY ? room : 0, "");
    describe_print(cell);
    printf("%*s  ", column == MEMORY ? 0 : room, "");
}

static void status_here_print_counters(const struct session_here *here)
{
    printf("  run dir  %s\n", here->run_dir);
    if (here->daemon != 0)
        printf("  daemon   process %d, used by %zu process%s\n", (int)here->daemon, here->client_count,
               here->client_count == 1 ? "" : "es");
    if (here->counters_error == 0)
        counters_print(&here->counters);
    else if (here->state == SESSIONS_SERVES)
        printf("  counters cannot be read: %s\n", strerror(-here->counters_error));
}

static void status_here_print_table(const struct sessions *sessions, bool counts)
{
    char cells[COLUMNS][CELL];
    unsigned widths[COLUMNS];
    status_here_widths(sessions, widths);
    for (unsigned column = 0; column < COLUMNS && sessions->count > 0; column++)
        status_here_print_cell(titles[column], column, widths[column]);
    puts(sessions->count > 0 ? "ROOT" : "no session on this host");
    for (size_t i = 0; i < sessions->count; i++) {
        const struct session_here *here = sessions->at[i];
        status_here_cells(here, cells);
        for (unsigned column = 0; column < COLUMNS; column++)
            status_here_print_cell(cells[column], column, widths[column]);
        describe_print(here->is_described ? here->about.root : here->run_dir);
        putchar('\n');
        if (counts)
            status_here_print_counters(here);
    }
}

static void status_here_print_job(struct json *json, const struct run_dirs_about *about)
{
    if (about->job[0] == '\0') {
        json_text(json, "job", NULL);
        return;
    }
    json_open(json, "job", '{');
    json_text(json, "scheduler", about->scheduler);
    json_text(json, "id", about->job);
    json_text(json, "step", about->step[0] != '\0' ? about->step : NULL);
    json_close(json, '}');
}

static void status_here_print_json(const struct session_here *here, struct json *json, bool counts)
{
    const struct run_dirs_about *about = &here->about;
    json_open(json, NULL, '{');
    json_text(json, "root", here->is_described ? about->root : NULL);
    json_text(json, "state", sessions_state(here->state));
    json_text(json, "user", describe_user(here->uid));
    json_unsigned(json, "uid", here->uid);
    json_text(json, "node", here->is_described ? about->node : NULL);
    status_here_print_job(json, about);
    json_unsigned(json, "since_ns", about->since);
    json_unsigned(json, "memory_bytes", here->file_bytes + here->daemon_bytes);
    json_unsigned(json, "file_bytes", here->file_bytes);
    json_unsigned(json, "daemon_bytes", here->daemon_bytes);
    json_number(json, "pid", here->daemon);
    json_unsigned(json, "processes", here->client_count);
    json_text(json, "run_dir", here->run_dir);
    if (counts && here->counters_error == 0) {
        counters_json(&here->counters, json, "counters");
        counters_json_lists(&here->counters, json);
    }
    json_close(json, '}');
}

int status_here(enum status_here_form form, bool counts)
{
    struct sessions sessions;
    struct json json = {0};
    const int code = sessions_look(&sessions, (uid_t)-1);
    const bool is_whole = code == 0 && !sessions.is_partial;
    counts |= form == STATUS_HERE_METRICS;
    for (size_t i = 0; i < sessions.count && counts; i++)
        sessions_count(sessions.at[i]);
    if (code == 0 && form == STATUS_HERE_TABLE)
        status_here_print_table(&sessions, counts);
    if (code == 0 && form == STATUS_HERE_JSON) {
        json_open(&json, NULL, '[');
        for (size_t i = 0; i < sessions.count; i++)
            status_here_print_json(sessions.at[i], &json, counts);
        json_close(&json, ']');
    }
    if (code == 0 && form == STATUS_HERE_METRICS)
        metrics_print(&sessions);
    sessions_finish(&sessions);
    return is_whole ? STATUS_OK : STATUS_FAILED;
}
