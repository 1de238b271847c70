/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a client of a file system says of its requests: the text of /proc/self/mountstats. */

#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "leaving/client_requests.h"

TestSuite(client_requests, .timeout = 10);

#define LOCAL(path) "device /dev/vda mounted on " path " with fstype ext4\n"
#define NFS(path, getattr)                                                                                                     \
    "device server:/export mounted on " path " with fstype nfs4 statvers=1.1\n"                                                \
    "\topts:\trw,vers=4.2,rsize=524288,namlen=255\n"                                                                           \
    "\tage:\t318\n"                                                                                                            \
    "\tevents:\t7 40 0 0 5 11 43 0 0 2 0 4 0 3 0 0 0 2 0 0 0 0 0 0 0 0 0\n"                                                    \
    "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"                                                                        \
    "\txprt:\ttcp 0 0 2 0 12 46 46 0 46 0 2 0 0\n"                                                                             \
    "\tper-op statistics\n"                                                                                                    \
    "\t        NULL: 1 1 0 44 24 0 0 0 0\n"                                                                                    \
    "\t     GETATTR: " getattr " 18 0 2804 4080 0 9 10 0\n"                                                                    \
    "\tBIND_CONN_TO_SESSION: 2 2 0 0 0 0 0 0 0\n\n"

static uint64_t count;

static bool client_requests_told(const char *text, const char *path)
{
    char copy[8192];
    const size_t length = strlen(text);
    cr_assert_lt(length, sizeof copy);
    memcpy(copy, text, length + 1);
    FILE *file = fmemopen(copy, length, "r");
    cr_assert_not_null(file);
    count = 4711;
    const bool is_told = client_requests_parse(file, path, &count);
    fclose(file);
    return is_told;
}

Test(client_requests, are_those_of_all_kinds)
{
    cr_assert(client_requests_told(LOCAL("/") NFS("/scratch", "17") LOCAL("/tmp"), "/scratch/run1"));
    cr_assert_eq(count, 20);
    cr_assert(client_requests_told(LOCAL("/") NFS("/scratch", "17"), "/scratch"));
    cr_assert(client_requests_told(NFS("/", "17"), "/scratch"));
}

Test(client_requests, are_those_of_the_mount_that_is_seen)
{
    const char *text =
        LOCAL("/") NFS("/scratch", "100") NFS("/scratch/fast", "200") LOCAL("/scratch/fast/disk") NFS("/home", "300");
    cr_assert(client_requests_told(text, "/scratch/fast/run1"));
    cr_assert_eq(count, 203);
    cr_assert(client_requests_told(text, "/scratch/faster"));
    cr_assert_eq(count, 103);
    cr_assert_not(client_requests_told(text, "/scratch/fast/disk/run1"));
    cr_assert_not(client_requests_told(text, "/homely"));
    cr_assert(client_requests_told(LOCAL("/scratch") NFS("/scratch", "400"), "/scratch/run1"));
    cr_assert_eq(count, 403);
    cr_assert_not(client_requests_told(NFS("/scratch", "400") LOCAL("/scratch"), "/scratch/run1"));
    cr_assert_not(client_requests_told(NFS("/a", "1") "no device mounted on /a with fstype rootfs\n", "/a/b"));
}

Test(client_requests, have_paths_that_are_written_with_octal_digits)
{
    cr_assert(client_requests_told(NFS("/with\\040a\\134space", "17"), "/with a\\space/run1"));
    cr_assert_not(client_requests_told(NFS("/with\\040a\\134space", "17"), "/with"));
}

Test(client_requests, are_not_told_by_other_text)
{
    cr_assert_not(client_requests_told("\n", "/scratch"));
    cr_assert_not(client_requests_told("device\nper-op statistics\n READ: 1 1 1\n", "/scratch"));
    cr_assert(
        client_requests_told("device x mounted on / with fstype nfs\nper-op statistics\n READ: many\nWRITE: 3\n", "/scratch"));
    cr_assert_eq(count, 0);
}
