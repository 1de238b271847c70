/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* PING, STOP, and STATUS: the daemon's counters, one `key value` a line; then `catalogue ERRNO PATH`; then `silent NODE` for
 * members that do not hear, and `pinned REASON PATH` for directories that stay in the trunk although the placement says
 * otherwise, as many as fit; a newline in a path is a zero byte there. STATUS and STOP of all daemons are collectives. */

#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "coordinator/dir_times.h"
#include "home/home.h"
#include "membership/session_view.h"
#include "ops/ops.h"
#include "peer/peers.h"
#include "prefetch/grant.h"
#include "recorder/recorder.h"
#include "reply/reply.h"
#include "rpc/collective.h"
#include "wire/page.h"

#define STATUS_MAX 2000
#define SILENT_AFTER (3 * CLOCK_SECOND) /* a frame is sent again after 2 */

static const char *const reasons[RECORD_WHY_COUNT] = {
    [RECORD_WHY_OWNER] = "owner",     [RECORD_WHY_MODE] = "mode",     [RECORD_WHY_ATTRIBUTES] = "attributes",
    [RECORD_WHY_FLAGS] = "flags",     [RECORD_WHY_DEVICE] = "device", [RECORD_WHY_MARKER] = "marker",
    [RECORD_WHY_WATCHED] = "watched",
};

/* In the order in which daemons tell each other. */
enum counter {
    DAEMONS, /* 1: this one */
    REQUESTS,
    BATCHES,
    MALFORMED,
    CREATES,
    REDIRECTED,
    PREFETCHED,
    GRANTED,
    UNLINKS,
    RENAMES,
    LOADS,
    MIRRORS_OWN,
    MIRRORS_ABSENT,
    MIRRORS_OTHERS,
    BLOCKED,
    WAITED_MS,
    CLIENT_EXITS,
    DIRECTORIES,
    IN_FLIGHT,
    INDEX_BYTES,
    INDEX_KEYS,
    INDEX_FILE_BYTES,
    INDEX_LIMIT,
    EVICTIONS,
    RETURNS,
    OVERSIZED,
    SPILLED,
    SPILLED_BYTES,
    REMOTE_REQUESTS,
    MAX_HOPS, /* of all the highest counts */
    FRAMES_SENT,
    FRAMES_RECEIVED,
    FRAMES_AGAIN,
    FRAMES_DROPPED,
    FRAMES_SENT_BYTES,
    CATALOGUE_DIRECTORIES,
    CATALOGUE_NAMES,
    CATALOGUE_BYTES,
    CATALOGUE_TAKEN,
    CATALOGUE_BEHIND, /* of all the longest */
    COUNTERS
};

/* tools/shunt-status.1 says what each is. */
static const char *const names[COUNTERS] = {
    [DAEMONS] = "daemons",
    [REQUESTS] = "requests",
    [BATCHES] = "batches",
    [MALFORMED] = "malformed",
    [CREATES] = "creates",
    [REDIRECTED] = "redirected",
    [PREFETCHED] = "prefetched",
    [GRANTED] = "granted",
    [UNLINKS] = "unlinks",
    [RENAMES] = "renames",
    [LOADS] = "loads",
    [MIRRORS_OWN] = "mirrors_own",
    [MIRRORS_ABSENT] = "mirrors_absent",
    [MIRRORS_OTHERS] = "mirrors_others",
    [BLOCKED] = "blocked",
    [WAITED_MS] = "waited_ms",
    [CLIENT_EXITS] = "client_exits",
    [DIRECTORIES] = "directories",
    [IN_FLIGHT] = "in_flight",
    [INDEX_BYTES] = "index_bytes",
    [INDEX_KEYS] = "index_keys",
    [INDEX_FILE_BYTES] = "index_file_bytes",
    [INDEX_LIMIT] = "index_limit",
    [EVICTIONS] = "evictions",
    [RETURNS] = "evictions_returned",
    [OVERSIZED] = "index_oversized",
    [SPILLED] = "index_spilled",
    [SPILLED_BYTES] = "index_spilled_bytes",
    [REMOTE_REQUESTS] = "remote_requests",
    [MAX_HOPS] = "max_hops",
    [FRAMES_SENT] = "frames_sent",
    [FRAMES_RECEIVED] = "frames_received",
    [FRAMES_AGAIN] = "frames_resent",
    [FRAMES_DROPPED] = "frames_dropped",
    [FRAMES_SENT_BYTES] = "frames_sent_bytes",
    [CATALOGUE_DIRECTORIES] = "catalogue_directories",
    [CATALOGUE_NAMES] = "catalogue_names",
    [CATALOGUE_BYTES] = "catalogue_bytes",
    [CATALOGUE_TAKEN] = "catalogue_taken",
    [CATALOGUE_BEHIND] = "catalogue_behind_seconds",
};

/* What processes did with what they were granted counts as soon as they did it. */
static int status_count(struct shuntd *shuntd, uint64_t to[COUNTERS])
{
    int code = grant_see_all(shuntd);
    if (code != 0)
        return code;
    const struct shuntd_counts *counts = &shuntd->counts;
    const struct peers_counts *frames = peers_counts(shuntd->peers);
    struct index_size size = {0};
    uint64_t spilled_bytes;
    const uint64_t spilled = home_spilled(shuntd->home, &spilled_bytes);
    struct recorder_status catalogue;
    recorder_get_status(shuntd, &catalogue);
    index_measure(shuntd->index, &size);
    const uint64_t values[COUNTERS] = {
        [DAEMONS] = 1,
        [REQUESTS] = counts->requests,
        [BATCHES] = counts->batches,
        [MALFORMED] = counts->malformed,
        [CREATES] = counts->creates,
        [REDIRECTED] = counts->redirected,
        [PREFETCHED] = counts->prefetched,
        [GRANTED] = grant_count(shuntd),
        [UNLINKS] = counts->unlinks,
        [RENAMES] = counts->renames,
        [LOADS] = counts->loads,
        [MIRRORS_OWN] = counts->mirrors_own,
        [MIRRORS_ABSENT] = counts->mirrors_absent,
        [MIRRORS_OTHERS] = counts->mirrors_others,
        [BLOCKED] = counts->blocked,
        [WAITED_MS] = counts->waited / CLOCK_MILLISECOND,
        [CLIENT_EXITS] = counts->client_exits,
        [DIRECTORIES] = home_dir_count(shuntd->home),
        [IN_FLIGHT] = operation_count(shuntd->home),
        [INDEX_BYTES] = size.bytes_used,
        [INDEX_KEYS] = size.entries,
        [INDEX_FILE_BYTES] = size.bytes,
        [INDEX_LIMIT] = shuntd->options.index_limit,
        [EVICTIONS] = counts->evictions,
        [RETURNS] = counts->returns,
        [OVERSIZED] = counts->oversized,
        [SPILLED] = spilled,
        [SPILLED_BYTES] = spilled_bytes,
        [REMOTE_REQUESTS] = counts->remote_requests,
        [MAX_HOPS] = counts->max_hops,
        [FRAMES_SENT] = frames->frames_sent,
        [FRAMES_RECEIVED] = frames->frames_received,
        [FRAMES_AGAIN] = frames->sent_again,
        [FRAMES_DROPPED] = frames->dropped,
        [FRAMES_SENT_BYTES] = frames->bytes_sent,
        [CATALOGUE_DIRECTORIES] = catalogue.directories,
        [CATALOGUE_NAMES] = catalogue.names,
        [CATALOGUE_BYTES] = catalogue.bytes,
        [CATALOGUE_TAKEN] = catalogue.taken,
        [CATALOGUE_BEHIND] = (catalogue.behind + CLOCK_SECOND - 1) / CLOCK_SECOND, /* 0: it has all */
    };
    memcpy(to, values, sizeof values);
    return 0;
}

static void status_add_counters(struct text *t, const uint64_t values[COUNTERS], enum counter first)
{
    for (unsigned i = first; i < COUNTERS; i++) {
        text_add(t, names[i]);
        text_add(t, " ");
        text_number(t, values[i], 10);
        text_add(t, "\n");
    }
}

/* A newline in it as a zero byte, which no path has: lines stay lines. */
static void status_add_path(struct text *t, const char *path)
{
    const size_t begin = t->length;
    text_add(t, path);
    for (char *at = t->at + begin; (at = memchr(at, '\n', (size_t)(t->at + t->length - at))) != NULL;)
        *at = '\0';
}

static void status_add_if_stays(struct home_dir *dir, void *context)
{
    struct text *t = context, before = *t;
    if (dir->record.why == RECORD_WHY_NOT || dir->record.why >= RECORD_WHY_COUNT || t->full)
        return;
    text_add(t, "pinned ");
    text_add(t, reasons[dir->record.why]);
    text_add(t, " ");
    status_add_path(t, dir->path);
    text_add(t, "\n");
    if (t->full)
        before.at[before.length] = '\0', *t = before, t->full = true;
}

/* Where it is, and 0 or the error for which it is not written any more. */
static void status_add_catalogue(struct shuntd *shuntd, struct text *t)
{
    struct recorder_status catalogue;
    recorder_get_status(shuntd, &catalogue);
    text_add(t, "catalogue ");
    text_number(t, (uint64_t)-catalogue.failed, 10);
    text_add(t, " ");
    status_add_path(t, catalogue.path);
    text_add(t, "\n");
}

/* Those that do not acknowledge what they are sent. */
static void status_add_silent(const struct shuntd *shuntd, struct text *t)
{
    for (size_t i = 0; i < shuntd->session.count; i++) {
        const struct session_member *member = &shuntd->session.members[i];
        if (!peers_is_silent(shuntd->peers, member->number, SILENT_AFTER))
            continue;
        text_add(t, "silent ");
        text_add(t, member->node);
        text_add(t, "\n");
    }
}

/* Of all daemons. */

/* A page: a little-endian number for each counter. One of another length is of another version, and not counted. */
static bool status_read_page(uint64_t to[COUNTERS], const char *page, size_t size)
{
    if (size != COUNTERS * sizeof *to)
        return false;
    memcpy(to, page, size);
    for (unsigned i = 0; i < COUNTERS; i++)
        to[i] = le64toh(to[i]);
    return true;
}

static size_t status_write_page(char *to, const uint64_t values[COUNTERS])
{
    for (unsigned i = 0; i < COUNTERS; i++) {
        const uint64_t value = htole64(values[i]);
        memcpy(to + i * sizeof value, &value, sizeof value);
    }
    return COUNTERS * sizeof *values;
}

size_t status_add_page(char *to, size_t used, const char *from, size_t size)
{
    uint64_t sum[COUNTERS] = {0}, more[COUNTERS];
    if (!status_read_page(more, from, size))
        return used;
    status_read_page(sum, to, used);
    for (unsigned i = 0; i < COUNTERS; i++)
        sum[i] = i != MAX_HOPS && i != CATALOGUE_BEHIND ? sum[i] + more[i] : sum[i] > more[i] ? sum[i] : more[i];
    return status_write_page(to, sum);
}

int status_part(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    uint64_t values[COUNTERS];
    char page[sizeof values];
    int code = status_count(shuntd, values);
    return code == 0 ? collective_page(shuntd, collective, page, status_write_page(page, values), PAGE_ALL) : code;
}

/* SIGTERM once more would end it at once; this does not. */
int status_part_stop(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    if (shuntd->stop == 0)
        shuntd->stop = 1;
    /* Else, should this daemon crash now, another one would serve. A process that is not its parent any more is another one. */
    if (shuntd->supervisor != 0 && getppid() == shuntd->supervisor)
        kill(shuntd->supervisor, SHUNTD_NO_MORE);
    return 0;
}

/* Whose question all are asked. */
struct asker {
    uint64_t client;
    uint32_t qp, tag;
    uint16_t type; /* MESSAGE_STATUS, MESSAGE_STOP */
};

static int status_all_have_answered(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct asker asker = *(struct asker *)context;
    struct message answer = {.type = message_answer_type(asker.type), .result = end->result};
    uint64_t values[COUNTERS];
    char text[STATUS_MAX];
    struct text t;
    free(context);
    text_init(&t, text, sizeof text);
    if (status_read_page(values, end->page, end->used))
        status_add_counters(&t, values, DAEMONS);
    if (asker.type == MESSAGE_STATUS)
        answer.text_answer.text = message_text(text, t.length);
    return reply_send(shuntd, asker.client, asker.qp, asker.tag, &answer);
}

static int status_ask_all(struct shuntd *shuntd, const struct listen_request *request)
{
    const struct message message = {.type = request->message.type};
    struct asker *asker = malloc(sizeof *asker);
    if (asker == NULL)
        return -ENOMEM;
    *asker = (struct asker){
        .client = request->client, .qp = request->qp, .tag = request->message.tag, .type = request->message.type};
    int code = collective_begin(shuntd, &message, NULL, status_all_have_answered, asker);
    return code == 0 ? REPLY_SILENT : code;
}

/* Members that joined before this daemon's network was open would not be told: the client asks again. */
int ops_stop(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    int code = session_view_refresh(shuntd);
    if (code != 0)
        return code;
    if (shuntd->session.count < 2 || shuntd->me.address_size > 0)
        return status_ask_all(shuntd, request);
    answer->result = -EAGAIN;
    return REPLY_ANSWER;
}

int ops_status(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    uint64_t values[COUNTERS];
    char text[STATUS_MAX];
    struct text t;
    if (request->message.flags & MESSAGE_ALL)
        return status_ask_all(shuntd, request);
    text_init(&t, text, sizeof text);
    int code = status_count(shuntd, values);
    if (code != 0)
        return code;
    status_add_counters(&t, values, REQUESTS);
    status_add_catalogue(shuntd, &t);
    status_add_silent(shuntd, &t);
    home_dirs_each(shuntd->home, status_add_if_stays, &t);
    answer->text_answer.text = message_text(text, t.length);
    code = reply_answer(shuntd, request, answer);
    return code == 0 ? REPLY_SILENT : code;
}

int ops_ping(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    int code = grant_see_all(shuntd);
    listen_set_clock(shuntd->listen);
    return code == 0 ? REPLY_ANSWER : code;
}
