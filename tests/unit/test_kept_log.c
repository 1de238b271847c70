/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "session/kept_log.h"

#include "base/clock.h"
#include "base/log.h"
#include "leaks.h"
#include "place.h"

static void finish_place(void)
{
    leaks_none();
    place_finish();
}

TestSuite(kept_log, .init = place_init, .fini = finish_place);

static void write_log(const char *text)
{
    FILE *log = fopen(place_path("log"), "w");
    cr_assert_not_null(log);
    fputs(text, log);
    fclose(log);
}

static int keep_as(const char *directory, pid_t pid, char path[PATH_MAX])
{
    return kept_log_keep(directory, kept_log_open(place), "n17", pid, path);
}

Test(kept_log, only_with_a_warning)
{
    char path[PATH_MAX], found[PATH_MAX], text[64] = "";
    write_log("2026-11-26 12:00:00 serving\n");
    cr_assert_eq(keep_as(place_path("a/b"), 17, path), 0);
    cr_assert_neq(access(place_path("a"), F_OK), 0);
    write_log("2026-11-26 12:00:00 warning: it burns\n");
    cr_assert_eq(keep_as(place_path("a/b"), 17, path), 1);
    const uint64_t since = clock_of(CLOCK_REALTIME) - 60 * CLOCK_SECOND;
    cr_assert(kept_log_find(place_path("a/b"), "n17", 17, since, found));
    cr_assert_str_eq(found, path);
    cr_assert_not(kept_log_find(place_path("a/b"), "n17", 7, since, found));
    cr_assert_not(kept_log_find(place_path("a/b"), "n1", 17, since, found));
    cr_assert_not(kept_log_find(place_path("a/b"), "n17", 17, since + 3600 * CLOCK_SECOND, found));
    cr_assert_not(kept_log_find(place_path("nowhere"), "n17", 17, since, found));
    FILE *log = fopen(path, "r");
    cr_assert_not_null(fgets(text, sizeof text, log));
    fclose(log);
    cr_assert_str_eq(text, "2026-11-26 12:00:00 warning: it burns\n");
}

Test(kept_log, the_oldest_go)
{
    char path[PATH_MAX];
    write_log(" warning: \n");
    place_directory("kept");
    for (int i = 0; i < KEPT_LOG_MOST + 3; i++)
        close(open(place_path("kept/shuntd-19700101T%06dZ-n17-1.log", i), O_CREAT | O_WRONLY, 0600));
    close(open(place_path("kept/another"), O_CREAT | O_WRONLY, 0600));
    cr_assert_eq(keep_as(place_path("kept"), 2, path), 1);
    cr_assert_eq(access(path, F_OK), 0);
    cr_assert_eq(access(place_path("kept/another"), F_OK), 0);
    cr_assert_neq(access(place_path("kept/shuntd-19700101T%06dZ-n17-1.log", 3), F_OK), 0);
    cr_assert_eq(access(place_path("kept/shuntd-19700101T%06dZ-n17-1.log", 4), F_OK), 0);
}

Test(kept_log, where_no_directory_can_be)
{
    char path[PATH_MAX];
    write_log(" warning: \n");
    cr_assert_eq(keep_as(place_path("log/below"), 2, path), -ENOTDIR);
    cr_assert_eq(keep_as("relative", 2, path), -EINVAL);
    cr_assert_eq(kept_log_open(place_path("nowhere")), -ENOENT);
}

/* Standard error is a file of a bounded size, at whose end warnings still have room. */
Test(kept_log, a_log_has_an_end)
{
    struct stat stat;
    const int to = open(place_path("log"), O_CREAT | O_WRONLY | O_APPEND, 0600), before = dup(STDERR_FILENO);
    dup2(to, STDERR_FILENO);
    for (int i = 0; i < 20000; i++)
        log_line("%0100d", i);
    cr_assert_eq(fstat(to, &stat), 0);
    const off_t size = stat.st_size;
    for (int i = 0; i < 20000; i++)
        log_warning("%0100d", i);
    cr_assert_eq(fstat(to, &stat), 0);
    dup2(before, STDERR_FILENO);
    cr_assert(size >= LOG_LINE_MOST && size < LOG_LINE_MOST + 4096);
    cr_assert(stat.st_size >= LOG_WARNING_MOST && stat.st_size < LOG_WARNING_MOST + 4096);
}
