/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* RETIRE, and STATUS: the daemon's counters, one `key value` a line; then `silent NODE` for members that do
 * not hear, and `stays REASON PATH` for directories that stay in the trunk although the placement says
 * otherwise, as many as fit. */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "peer/peers.h"
#include "serve/serve.h"

#define STATUS_MAX 2000
#define SILENT_AFTER (3 * CLOCK_SECOND) /* a frame is sent again after 2 */

static const char *const reasons[RECORD_WHY_COUNT] = {
    [RECORD_WHY_OWNER] = "owner",     [RECORD_WHY_MODE] = "mode",     [RECORD_WHY_ATTRIBUTES] = "attributes",
    [RECORD_WHY_FLAGS] = "flags",     [RECORD_WHY_DEVICE] = "device", [RECORD_WHY_MARKER] = "marker",
    [RECORD_WHY_WATCHED] = "watched",
};

static void add(struct text *t, const char *key, uint64_t value)
{
    text_add(t, key);
    text_add(t, " ");
    text_number(t, value, 10);
    text_add(t, "\n");
}

static void add_counts(struct shuntd *shuntd, struct text *t)
{
    const struct shuntd_counts *counts = &shuntd->counts;
    const struct peers_counts *frames = peers_counts(shuntd->peers);
    struct index_size size = {0};
    index_measure(shuntd->index, &size);
    add(t, "requests", counts->requests);
    add(t, "batches", counts->batches);
    add(t, "malformed", counts->malformed);
    add(t, "births", counts->births);
    add(t, "redirected", counts->redirected);
    add(t, "removals", counts->removals);
    add(t, "renames", counts->renames);
    add(t, "loads", counts->loads);
    add(t, "parked", counts->parked);
    add(t, "deaths", counts->deaths);
    add(t, "directories", home_dir_count(shuntd->home));
    add(t, "flights", flight_count(shuntd->home));
    add(t, "index-bytes", size.bytes_used);
    add(t, "index-keys", size.entries);
    add(t, "readers", size.readers);
    add(t, "frames-sent", frames->frames_sent);
    add(t, "frames-received", frames->frames_received);
    add(t, "frames-dropped", frames->dropped);
}

static void add_if_stays(struct home_dir *dir, void *context)
{
    struct text *t = context, before = *t;
    if (dir->record.why == RECORD_WHY_NOT || dir->record.why >= RECORD_WHY_COUNT || t->full)
        return;
    text_add(t, "stays ");
    text_add(t, reasons[dir->record.why]);
    text_add(t, " ");
    text_add(t, dir->path);
    text_add(t, "\n");
    if (t->full)
        before.at[before.length] = '\0', *t = before, t->full = true;
}

/* Those that do not acknowledge what they are sent. */
static void add_silent(const struct shuntd *shuntd, struct text *t)
{
    uint64_t now = clock_monotonic();
    for (size_t i = 0; i < shuntd->session.count; i++) {
        const struct session_member *member = &shuntd->session.members[i];
        uint64_t since = peers_silent_since(shuntd->peers, member->number);
        if (since == 0 || now - since < SILENT_AFTER)
            continue;
        text_add(t, "silent ");
        text_add(t, member->node);
        text_add(t, "\n");
    }
}

int serve_status(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    char text[STATUS_MAX];
    struct text t;
    text_init(&t, text, sizeof text);
    add_counts(shuntd, &t);
    add_silent(shuntd, &t);
    home_dirs_each(shuntd->home, add_if_stays, &t);
    answer->text = text;
    answer->text_length = (uint16_t)t.length;
    int code = serve_answer(shuntd, request, answer);
    return code == 0 ? SERVE_SILENT : code;
}

int serve_retire(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    int freed = index_retire_readers(shuntd->index);
    return freed < 0 ? freed : SERVE_ANSWER;
}
