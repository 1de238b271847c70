/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "leaving/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/stopping.h"
#include "leaving/live_pass.h"
#include "programs/launch.h"
#include "session/session.h"
#include "shim/process.h"

#define LIVE_REST_MAX (10 * CLOCK_SECOND) /* between two passes */
#define LIVE_REST_MIN (CLOCK_SECOND / 4)
#define LIVE_NICE 10              /* less would let those wait long who want a name that is held */
#define LIVE_IDLE_CLASS (3 << 13) /* of ioprio_set */

static int live_set(const char *name, const char *value)
{
    return value != NULL && setenv(name, value, 1) == 0 ? 0 : -1;
}

/* From now on this process is a client of the daemons of these roots. */
static int live_become_client(const struct roots *roots, const char *node)
{
    char *joined = roots_join(roots);
    int error = live_set("SHUNT_ROOT", joined);
    free(joined);
    if (error == 0 && live_set("SHUNT_NODE", node) == 0 && launch_set_root_ids(roots) == 0)
        process_start(environ);
    return process_has_roots() ? 0 : -1;
}

static void live_be_modest(void)
{
    if (getpriority(PRIO_PROCESS, 0) < LIVE_NICE)
        setpriority(PRIO_PROCESS, 0, LIVE_NICE);
    SYS3(SYS_ioprio_set, 1, 0, LIVE_IDLE_CLASS);
}

static struct names_root *live_root(const char *path)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        if (strcmp(shim_state.roots[i].path, path) == 0)
            return &shim_state.roots[i];
    return NULL;
}

/* 0, or -ENOENT: no daemon of that node serves the root. */
static int live_init(struct live *live, const char *root, const char *node, const struct live_options *options)
{
    struct session session;
    *live = (struct live){.options = options, .root = live_root(root), .node = node, .began = clock_monotonic()};
    const bool is_member = session_read(root, &session) == 0 && session_find_node(&session, node) != NULL;
    const int length = snprintf(live->branches, sizeof live->branches, "%s/" LAYOUT_BRANCHES, root);
    session_finish(&session);
    return live->root != NULL && is_member && length < PATH_MAX ? 0 : -ENOENT;
}

static void live_tell_json(const struct live *live, const char *root, bool complete)
{
    struct json json = {0};
    json_open(&json, NULL, '{');
    json_text(&json, "root", root);
    json_unsigned(&json, "files", live->files);
    json_unsigned(&json, "directories", live->directories);
    json_unsigned(&json, "in_use", live->in_use);
    json_unsigned(&json, "unknown", live->unknown);
    json_unsigned(&json, "refused", live->refused);
    json_real(&json, "seconds", (double)(clock_monotonic() - live->began) / CLOCK_SECOND);
    json_bool(&json, "complete", complete);
    json_close(&json, '}');
}

static void live_tell(struct live *live, const char *root, bool complete)
{
    progress_finish(&live->progress);
    if (live->options->json) {
        live_tell_json(live, root, complete);
        return;
    }
    printf("moved %zu file%s of this node in %zu director%s", live->files, live->files == 1 ? "" : "s", live->directories,
           live->directories == 1 ? "y" : "ies");
    if (live->in_use > 0)
        printf(", %zu in use", live->in_use);
    if (live->unknown > 0)
        printf(", %zu not used in this session, or not since a program without shunt has renamed them", live->unknown);
    if (live->refused > 0)
        printf(", %zu file%s not moved", live->refused, live->refused == 1 ? "" : "s");
    printf("\n");
}

static int live_export_caught(struct live *live, const char *root)
{
    progress_init(&live->progress, live->options->progress);
    const int code = live_pass(live);
    live_tell(live, root, code == 0 && live->in_use + live->unknown + live->refused == 0);
    const bool is_stopped = code == -EINTR && stopping();
    if (code < 0 && !is_stopped)
        error_report_path(root, code);
    if (is_stopped)
        error_report("%s: interrupted, nothing is lost (run this again to go on)", root);
    return is_stopped ? 128 + stopping() : code < 0 || live->refused > 0 ? STATUS_FAILED : STATUS_OK;
}

int live_export(const char *root, const char *node, const struct live_options *options)
{
    static struct live live;
    struct roots roots = {.count = 1, .paths = {(char *)root}};
    if (live_become_client(&roots, node) < 0 || live_init(&live, root, node, options) < 0) {
        error_report("%s: no daemon of node '%s' serves it here (run 'shunt export %s')", root, node, root);
        return STATUS_FAILED;
    }
    live.tells = true;
    live_be_modest();
    stopping_catch();
    const int status = live_export_caught(&live, root);
    stopping_release();
    return status;
}

static uint64_t live_rest_between(uint64_t quiet)
{
    const uint64_t rest = quiet / 4;
    return rest < LIVE_REST_MIN ? LIVE_REST_MIN : rest > LIVE_REST_MAX ? LIVE_REST_MAX : rest;
}

void live_again_and_again(const struct roots *roots, const char *node, const struct live_options *options)
{
    struct live *all = calloc(roots->count, sizeof *all);
    size_t count = 0;
    live_be_modest();
    if (all == NULL || live_become_client(roots, node) < 0)
        return;
    for (size_t i = 0; i < roots->count; i++)
        count += live_init(&all[count], roots->paths[i], node, options) == 0;
    for (int code = 0; count > 0 && code == 0;) {
        live_pause(live_rest_between(options->quiet));
        for (size_t i = 0; i < count && code == 0; i++)
            code = live_pass(&all[i]);
    }
    free(all);
}
