/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "repair/fsck.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "cli/describe.h"
#include "cli/json.h"

static const char *const weights[] = {"note", "repairable", "trouble"};

static void fsck_tell_json(struct fsck *fsck, enum fsck_weight weight, bool repaired, const char *kind, const char *path,
                           const char *detail)
{
    struct json *json = &fsck->writer;
    json_open(json, NULL, '{');
    json_text(json, "kind", kind);
    json_text(json, "path", path);
    json_text(json, "weight", weights[weight]);
    json_bool(json, "repaired", repaired);
    json_text(json, "detail", detail);
    json_close(json, '}');
}

static void fsck_tell_text(bool repaired, const char *kind, const char *path, const char *detail)
{
    describe_print(path);
    printf(": %s: ", kind);
    describe_print(detail);
    puts(repaired ? " (repaired)" : "");
}

void fsck_tell(struct fsck *fsck, enum fsck_weight weight, bool repaired, const char *kind, const char *path,
               const char *format, ...)
{
    char detail[2 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    fsck->notes += weight == FSCK_NOTE;
    fsck->repairable += weight == FSCK_REPAIRABLE && !repaired;
    fsck->repaired += weight == FSCK_REPAIRABLE && repaired;
    fsck->troubles += weight == FSCK_TROUBLE;
    if (fsck->json)
        fsck_tell_json(fsck, weight, repaired, kind, path, detail);
    else
        fsck_tell_text(repaired, kind, path, detail);
}
