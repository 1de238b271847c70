/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "doctor/doctor.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "cli/describe.h"

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
