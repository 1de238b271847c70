/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/describe.h"
#include "leaving/client_requests.h"
#include "leaving/export_state.h"

static double export_seconds(const struct export *export)
{
    return (double)(clock_monotonic() - export->began) / CLOCK_SECOND;
}

void export_show_progress(struct export *export)
{
    if (!progress_due(&export->progress))
        return;
    const size_t files = export->files + export->owners.underway;
    const double rate = (double)files / (export_seconds(export) + 1e-9);
    const size_t left = export->about > files ? export->about - files : 0;
    char rest[64] = "", nodes[48] = "";
    if (export->owners.working > 0)
        snprintf(nodes, sizeof nodes, ", %zu other node%s at work", export->owners.working,
                 export->owners.working == 1 ? "" : "s");
    if (files > 0)
        snprintf(rest, sizeof rest, ", %.0f files/s, about %.0f s left", rate, (double)left / rate);
    progress_line(&export->progress, "exported %zu of about %zu files in %zu directories%s%s", files, export->about,
                  export->directories, nodes, rest);
}

/* What this host's client has sent since the export began. */
static bool export_requests(const struct export *export, uint64_t *sent)
{
    uint64_t now;
    if (!export->has_requests || !client_requests_read(export->root.path, &now) || now < export->requests)
        return false;
    *sent = now - export->requests;
    return true;
}

static void export_add_to_sum(const struct export *export, struct export_sum *sum)
{
    uint64_t sent;
    sum->files += export->files;
    sum->by_owners += export->owners.files;
    sum->directories += export->directories;
    if (export_requests(export, &sent)) {
        sum->has_requests = true;
        sum->requests += sent;
    }
}

void export_tell_json(struct export *export, bool complete)
{
    const double seconds = export_seconds(export);
    uint64_t sent;
    struct json *json = &export->json;
    json_open(json, NULL, '{');
    json_text(json, "root", export->root.path);
    json_bool(json, "dry_run", export->options->dry_run);
    json_unsigned(json, "files", export->files);
    json_unsigned(json, "by_owners", export->owners.files);
    json_unsigned(json, "copied", export->copied);
    json_unsigned(json, "looked", export->looked);
    json_unsigned(json, "directories", export->directories);
    json_unsigned(json, "conflicts", export->conflicts);
    json_unsigned(json, "orphans", export->orphans);
    json_real(json, "seconds", seconds);
    json_real(json, "files_per_second", export->options->dry_run ? NAN : (double)export->files / seconds);
    if (export_requests(export, &sent))
        json_unsigned(json, "requests", sent);
    else
        json_text(json, "requests", NULL);
    json_bool(json, "complete", complete);
    json_close(json, '}');
}

/* Of work that nobody waits for it says nothing. */
static void export_tell_rate(const struct export *export)
{
    const double seconds = export_seconds(export);
    uint64_t sent;
    if (!export->options->dry_run && seconds >= 1)
        printf(", in %.1f s (%.0f files/s)", seconds, (double)export->files / seconds);
    if (!export->options->dry_run && export->files > 0 && export_requests(export, &sent))
        printf(", %" PRIu64 " requests of this host's NFS client", sent);
}

void export_tell(struct export *export, bool complete)
{
    bool dry = export->options->dry_run;
    progress_finish(&export->progress);
    if (export->options->sum)
        export_add_to_sum(export, export->options->sum);
    if (export->options->json) {
        export_tell_json(export, complete);
        return;
    }
    if (export->options->quiet && complete)
        return;
    printf("%s %zu file%s in %zu director%s", dry ? "would export" : "exported", export->files, export->files == 1 ? "" : "s",
           export->directories, export->directories == 1 ? "y" : "ies");
    if (export->copied > 0)
        printf(", %zu of them copied", export->copied);
    if (export->owners.files > 0)
        printf(", %" PRIu64 " of them by the nodes that made them", export->owners.files);
    if (export->conflicts > 0)
        printf(", %zu that lost a conflict kept as NAME.shunt-conflict-NODE", export->conflicts);
    if (export->looked > 0)
        printf(", renamed after a look at each name (--careful links, where no rename is known that replaces nothing)");
    export_tell_rate(export);
    fputs(complete && !dry ? ": " : "", stdout);
    describe_print(complete && !dry ? export->root.path : "");
    puts(complete && !dry ? " is a plain directory" : "");
}
