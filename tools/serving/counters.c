/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/counters.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/describe.h"

#define DEADLINE (5 * CLOCK_SECOND)

int counters_ask(struct counters *counters, const char *run_dir, bool all)
{
    struct message ask = {.type = MESSAGE_STATUS, .flags = all ? MESSAGE_ALL : 0};
    struct request_channel *channel;
    int code = request_attach(&channel, run_dir);
    if (code != 0)
        return code;
    code = request_ask(channel, &ask, &counters->answer, DEADLINE);
    request_abandon(channel);
    return code != 0 ? code : counters->answer.message.result;
}

/* One line of the text, taken apart: `key` and the rest. False at the end. */
struct line {
    const char *next, *end;
    char key[64];
    char rest[MESSAGE_TEXT_MAX + 1];
};

static void counters_begin(struct line *line, const struct counters *counters)
{
    line->next = counters->answer.message.text_answer.text.text;
    line->end = line->next + counters->answer.message.text_answer.text.length;
}

/* A zero byte in it is a newline of a path. */
static void counters_take_rest(struct line *line, const char *from, size_t length)
{
    length = length < sizeof line->rest ? length : sizeof line->rest - 1;
    memcpy(line->rest, from, length);
    line->rest[length] = '\0';
    for (char *at = line->rest; (at = memchr(at, '\0', (size_t)(line->rest + length - at))) != NULL;)
        *at = '\n';
}

static bool counters_next(struct line *line)
{
    const char *stop = memchr(line->next, '\n', (size_t)(line->end - line->next));
    const char *space = stop != NULL ? memchr(line->next, ' ', (size_t)(stop - line->next)) : NULL;
    if (space == NULL || space - line->next >= (ptrdiff_t)sizeof line->key)
        return false;
    snprintf(line->key, sizeof line->key, "%.*s", (int)(space - line->next), line->next);
    counters_take_rest(line, space + 1, (size_t)(stop - space - 1));
    line->next = stop + 1;
    return true;
}

static bool counters_is_stay(const struct line *line)
{
    return strcmp(line->key, "pinned") == 0;
}

static bool counters_is_silent(const struct line *line)
{
    return strcmp(line->key, "silent") == 0;
}

static bool counters_is_catalogue(const struct line *line)
{
    return strcmp(line->key, "catalogue") == 0;
}

/* The path after the reason; the reason is cut off there. */
static const char *counters_path_of(struct line *line)
{
    char *space = strchr(line->rest, ' ');
    if (space == NULL)
        return "";
    *space = '\0';
    return space + 1;
}

static const char *counters_in_words(const char *reason)
{
    static const char *const words[][2] = {
        {"owner", "a mirror cannot be given its owner or group"},
        {"mode", "a mirror cannot be given its mode"},
        {"attributes", "a mirror cannot be given its ACLs or extended attributes"},
        {"flags", "a mirror cannot be given its inode flags or project"},
        {"device", "the directory is on another file system, or has a quota of its own or of one above"},
        {"marker", "the marker of the directory cannot be written"},
        {"watched", "a program watches the directory (inotify, fanotify)"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], reason) == 0)
            return words[i][1];
    return reason;
}

static void counters_print_catalogue(struct line *line)
{
    const char *path = counters_path_of(line);
    const int error = atoi(line->rest);
    printf("  %-16s ", "catalogue");
    describe_print(path);
    if (error != 0)
        printf(": not written any more: %s", strerror(error));
    putchar('\n');
}

static void counters_print_silent(const char *node)
{
    fputs("  silent   ", stdout);
    describe_print(node);
    puts(": does not answer the other daemons");
}

/* Both are what another user's daemon says. */
static void counters_print_value(const char *key, const char *value)
{
    const unsigned width = describe_width(key);
    fputs("  ", stdout);
    describe_print(key);
    printf("%*s ", width < 16 ? (int)(16 - width) : 0, "");
    describe_print(value);
    putchar('\n');
}

static void counters_print_pinned(const char *path, const char *reason)
{
    fputs("  pinned   ", stdout);
    describe_print(path);
    printf(": new files stay in the trunk, %s\n", counters_in_words(reason));
}

void counters_print(const struct counters *counters)
{
    struct line line;
    for (counters_begin(&line, counters); counters_next(&line);) {
        const char *path = counters_is_stay(&line) ? counters_path_of(&line) : NULL;
        if (counters_is_silent(&line))
            counters_print_silent(line.rest);
        else if (counters_is_catalogue(&line))
            counters_print_catalogue(&line);
        else if (path != NULL)
            counters_print_pinned(path, line.rest);
        else
            counters_print_value(line.key, line.rest);
    }
}

void counters_json(const struct counters *counters, struct json *json, const char *key)
{
    struct line line;
    json_open(json, key, '{');
    for (counters_begin(&line, counters); counters_next(&line);)
        if (!counters_is_stay(&line) && !counters_is_silent(&line) && !counters_is_catalogue(&line))
            json_unsigned(json, line.key, strtoull(line.rest, NULL, 10));
    json_close(json, '}');
}

bool counters_value(const struct counters *counters, const char *key, uint64_t *value)
{
    struct line line;
    for (counters_begin(&line, counters); counters_next(&line);)
        if (strcmp(line.key, key) == 0 && line.rest[0] >= '0' && line.rest[0] <= '9') {
            *value = strtoull(line.rest, NULL, 10);
            return true;
        }
    return false;
}

static void counters_json_catalogue(struct line *line, struct json *json)
{
    const char *path = counters_path_of(line);
    const int error = atoi(line->rest);
    json_open(json, "catalogue", '{');
    json_text(json, "path", path);
    json_text(json, "error", error != 0 ? strerror(error) : NULL);
    json_close(json, '}');
}

void counters_json_lists(const struct counters *counters, struct json *json)
{
    struct line line;
    for (counters_begin(&line, counters); counters_next(&line);)
        if (counters_is_catalogue(&line))
            counters_json_catalogue(&line, json);
    json_open(json, "silent", '[');
    for (counters_begin(&line, counters); counters_next(&line);)
        if (counters_is_silent(&line))
            json_text(json, NULL, line.rest);
    json_close(json, ']');
    json_open(json, "pinned", '[');
    for (counters_begin(&line, counters); counters_next(&line);)
        if (counters_is_stay(&line)) {
            const char *path = counters_path_of(&line);
            json_open(json, NULL, '{');
            json_text(json, "path", path);
            json_text(json, "reason", line.rest);
            json_close(json, '}');
        }
    json_close(json, ']');
}
