/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/metrics.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/describe.h"
#include "cli/json.h"

/* What a daemon counts, by its name in the daemon's answer; `unit` ends the name of the metric, or is NULL. */
enum metrics_type { METRICS_COUNTER, METRICS_GAUGE };
static const struct {
    const char *key, *name, *unit, *help;
    enum metrics_type type;
    bool is_ms; /* the daemon says milliseconds */
} counted[] = {
    {"requests", "requests", NULL, "Messages of processes", METRICS_COUNTER, false},
    {"batches", "batches", NULL, "Times that messages were served together", METRICS_COUNTER, false},
    {"malformed", "malformed", NULL, "Messages that were dropped", METRICS_COUNTER, false},
    {"creates", "creates", NULL, "Names reserved to be created", METRICS_COUNTER, false},
    {"redirected", "redirected", NULL, "Files created in the branch of the node", METRICS_COUNTER, false},
    {"prefetched", "prefetched", NULL,
     "Creates and unlinks, and names of renames, that were reserved before they were asked for", METRICS_COUNTER, false},
    {"granted", "granted", NULL, "Names that processes may make, remove or rename without asking", METRICS_GAUGE, false},
    {"unlinks", "unlinks", NULL, "Names reserved to be removed", METRICS_COUNTER, false},
    {"renames", "renames", NULL, "Renames", METRICS_COUNTER, false},
    {"loads", "loads", NULL, "Directories read from the file system", METRICS_COUNTER, false},
    {"mirrors_own", "mirrors_own", NULL, "Mirrors looked for in the branch of the node", METRICS_COUNTER, false},
    {"mirrors_absent", "mirrors_absent", NULL, "Mirrors looked for in branches of nodes that are not in the session",
     METRICS_COUNTER, false},
    {"mirrors_others", "mirrors_others", NULL, "Mirrors looked for in branches of other members", METRICS_COUNTER, false},
    {"blocked", "blocked", NULL, "Requests that waited for others", METRICS_COUNTER, false},
    {"waited_ms", "waited_seconds", "seconds", "Time for which requests waited for others", METRICS_COUNTER, true},
    {"client_exits", "client_exits", NULL, "Processes that ended", METRICS_COUNTER, false},
    {"directories", "directories", NULL, "Directories that are known", METRICS_GAUGE, false},
    {"in_flight", "in_flight", NULL, "Operations under way", METRICS_GAUGE, false},
    {"index_bytes", "index_bytes", "bytes", "Memory that the names of directories in use take", METRICS_GAUGE, false},
    {"index_keys", "index_keys", NULL, "Names in the index", METRICS_GAUGE, false},
    {"index_file_bytes", "index_file_bytes", "bytes", "Size of the file of the index", METRICS_GAUGE, false},
    {"index_limit", "index_limit_bytes", "bytes", "Limit of the index", METRICS_GAUGE, false},
    {"evictions", "evictions", NULL, "Directories forgotten because of the limit", METRICS_COUNTER, false},
    {"evictions_returned", "evictions_returned", NULL, "Forgotten directories that were loaded again", METRICS_COUNTER, false},
    {"index_oversized", "index_oversized", NULL, "Loads of directories that alone are above the limit", METRICS_COUNTER, false},
    {"index_spilled", "index_spilled", NULL, "Directories whose names are looked up in a file", METRICS_GAUGE, false},
    {"index_spilled_bytes", "index_spilled_bytes", "bytes", "Size of these files", METRICS_GAUGE, false},
    {"remote_requests", "remote_requests", NULL, "Requests of other nodes", METRICS_COUNTER, false},
    {"max_hops", "max_hops", NULL, "Messages, one after the other, of the longest collective", METRICS_GAUGE, false},
    {"frames_sent", "frames_sent", NULL, "Frames sent to other daemons", METRICS_COUNTER, false},
    {"frames_received", "frames_received", NULL, "Frames received from other daemons", METRICS_COUNTER, false},
    {"frames_resent", "frames_resent", NULL, "Frames sent again", METRICS_COUNTER, false},
    {"frames_dropped", "frames_dropped", NULL, "Frames dropped", METRICS_COUNTER, false},
    {"frames_sent_bytes", "frames_sent_bytes", "bytes", "Size of the frames that were sent", METRICS_COUNTER, false},
    {"catalogue_directories", "catalogue_directories", NULL, "Directories in the catalogue", METRICS_GAUGE, false},
    {"catalogue_names", "catalogue_names", NULL, "Names in the catalogue", METRICS_GAUGE, false},
    {"catalogue_bytes", "catalogue_bytes", "bytes", "Size of the catalogue", METRICS_GAUGE, false},
    {"catalogue_taken", "catalogue_taken", NULL, "Directories loaded from a catalogue", METRICS_COUNTER, false},
    {"catalogue_behind_seconds", "catalogue_behind_seconds", "seconds", "For how long the catalogue has lacked something",
     METRICS_GAUGE, false},
};

/* In quotes; what is no UTF-8, which the format demands, as '?'. */
static void metrics_print_label(const char *name, const char *value)
{
    printf("%s=\"", name);
    for (const unsigned char *at = (const unsigned char *)value; *at != '\0';) {
        const size_t length = json_utf8_length(at);
        if (*at == '\n')
            fputs("\\n", stdout);
        else if (*at == '"' || *at == '\\')
            printf("\\%c", *at);
        else if (length == 0)
            putchar('?');
        else
            fwrite(at, 1, length, stdout);
        at += length > 0 ? length : 1;
    }
    putchar('"');
}

/* No two sessions have the same: a run directory is of one root and node. */
static void metrics_begin_sample(const struct session_here *here, const char *name, const char *suffix)
{
    printf("shunt_%s%s{", name, suffix);
    metrics_print_label("session", strrchr(here->run_dir, '/') + 1);
    putchar(',');
    metrics_print_label("user", describe_user(here->uid));
    putchar(',');
    metrics_print_label("root", here->is_described ? here->about.root : "");
}

static void metrics_print_seconds(const struct session_here *here, const char *name, const char *suffix, uint64_t ms)
{
    metrics_begin_sample(here, name, suffix);
    printf("} %llu.%03u\n", (unsigned long long)(ms / 1000), (unsigned)(ms % 1000));
}

static void metrics_print_sample(const struct session_here *here, const char *name, const char *suffix, uint64_t value)
{
    metrics_begin_sample(here, name, suffix);
    printf("} %llu\n", (unsigned long long)value);
}

static void metrics_begin_family(const char *name, const char *type, const char *unit, const char *help)
{
    printf("# TYPE shunt_%s %s\n", name, type);
    if (unit != NULL)
        printf("# UNIT shunt_%s %s\n", name, unit);
    printf("# HELP shunt_%s %s.\n", name, help);
}

static void metrics_print_counted(const struct sessions *sessions)
{
    uint64_t value;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        const bool is_counter = counted[i].type == METRICS_COUNTER;
        metrics_begin_family(counted[i].name, is_counter ? "counter" : "gauge", counted[i].unit, counted[i].help);
        for (size_t which = 0; which < sessions->count; which++) {
            const struct session_here *here = sessions->at[which];
            if (here->counters_error != 0 || !counters_value(&here->counters, counted[i].key, &value))
                continue;
            (counted[i].is_ms ? metrics_print_seconds : metrics_print_sample)(here, counted[i].name, is_counter ? "_total" : "",
                                                                              value);
        }
    }
}

static void metrics_print_info(const struct session_here *here)
{
    metrics_begin_sample(here, "session_info", "");
    putchar(',');
    metrics_print_label("node", here->about.node);
    putchar(',');
    metrics_print_label("scheduler", here->about.scheduler);
    putchar(',');
    metrics_print_label("job", here->about.job);
    puts("} 1");
}

static void metrics_print_states(const struct session_here *here)
{
    for (int state = 0; state < SESSIONS_STATES; state++) {
        metrics_begin_sample(here, "session_state", "");
        putchar(',');
        metrics_print_label("shunt_session_state", sessions_state(state));
        printf("} %d\n", here->state == (enum session_state)state);
    }
}

static void metrics_print_since(const struct session_here *here)
{
    if (!here->is_described)
        return;
    metrics_begin_sample(here, "session_start_time_seconds", "");
    printf("} %llu.%09llu\n", (unsigned long long)(here->about.since / CLOCK_SECOND),
           (unsigned long long)(here->about.since % CLOCK_SECOND));
}

static void metrics_print_file_bytes(const struct session_here *here)
{
    metrics_print_sample(here, "session_file_bytes", "", here->file_bytes);
}

static void metrics_print_daemon_bytes(const struct session_here *here)
{
    metrics_print_sample(here, "session_daemon_bytes", "", here->daemon_bytes);
}

static void metrics_print_processes(const struct session_here *here)
{
    metrics_print_sample(here, "session_processes", "", here->client_count);
}

/* Not of OpenMetrics' types info and stateset: the textfile collector of a node exporter refuses all of a file that has a type
 * which the format before OpenMetrics does not know. */
void metrics_print(const struct sessions *sessions)
{
    static const struct {
        const char *name, *type, *unit, *help;
        void (*print)(const struct session_here *);
    } families[] = {
        {"session_info", "gauge", NULL, "A root that is served on this host, or was until its daemon was killed",
         metrics_print_info},
        {"session_state", "gauge", NULL, "What has become of the daemon", metrics_print_states},
        {"session_start_time_seconds", "gauge", "seconds", "When the daemon started", metrics_print_since},
        {"session_file_bytes", "gauge", "bytes", "Memory of the files in the run directory", metrics_print_file_bytes},
        {"session_daemon_bytes", "gauge", "bytes", "Memory that the process of the daemon takes alone",
         metrics_print_daemon_bytes},
        {"session_processes", "gauge", NULL, "Processes that use the daemon", metrics_print_processes},
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        metrics_begin_family(families[i].name, families[i].type, families[i].unit, families[i].help);
        for (size_t which = 0; which < sessions->count; which++)
            families[i].print(sessions->at[which]);
    }
    metrics_print_counted(sessions);
    puts("# EOF");
}
