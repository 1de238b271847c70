/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/describe.h"
#include "union/disk.h"

void doctor_begin(struct doctor *doctor, bool as_json)
{
    *doctor = (struct doctor){.as_json = as_json};
    if (as_json)
        json_open(&doctor->json, NULL, '[');
}

void doctor_end(struct doctor *doctor)
{
    if (doctor->as_json)
        json_close(&doctor->json, ']');
}

const char *doctor_remedy(int error, const char *other)
{
    switch (-error) {
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOMEM:
    case ENOBUFS:
        return "end other processes, or raise their limits, and run this again";
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
    case ESHUTDOWN:
    case ENOTCONN:
        return "look at that file system, and run this again";
    case ENOSPC:
    case EDQUOT:
        return "make room there, and run this again";
    default:
        return other;
    }
}

int doctor_has_server(const char *path)
{
    struct statfs fs;
    const int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    const int has_server = fstatfs(directory, &fs) != 0 ? -errno : disk_has_server(directory);
    close(directory);
    return has_server;
}

void doctor_say(struct doctor *doctor, enum doctor_finding finding, const char *check, const char *format, ...)
{
    static const char *const words[] = {[DOCTOR_OK] = "ok", [DOCTOR_WARNING] = "warning", [DOCTOR_PROBLEM] = "problem"};
    char sentence[2 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    doctor->has_problem |= finding == DOCTOR_PROBLEM;
    if (!doctor->as_json) {
        printf("%-8s %-12s ", words[finding], check);
        describe_print(sentence);
        putchar('\n');
        fflush(stdout);
        return;
    }
    json_open(&doctor->json, NULL, '{');
    json_text(&doctor->json, "check", check);
    json_text(&doctor->json, "finding", words[finding]);
    json_text(&doctor->json, "message", sentence);
    json_close(&doctor->json, '}');
}
