/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "place.h"
#include "union/identity.h"

TestSuite(identity, .init = place_init, .fini = place_finish);

static const struct dirid by_handle = {1, DIRID_BY_HANDLE | 1}, by_birth = {1, 1}, by_number = {1, 0};

/* As a file system without times of birth answers. */
static struct dirid handle_of(int at, const char *path, int flags)
{
    struct statx stat;
    cr_assert_eq(sys_statx(at, path, flags, IDENTITY_MASK & ~STATX_BTIME, &stat), 0);
    stat.stx_mask &= ~STATX_BTIME;
    identity_add_handle(at, path, flags, &stat);
    return dirid_of(&stat);
}

static const char *made_directory(const char *name)
{
    cr_assert_eq(mkdir(place_path("%s", name), 0700), 0);
    return place_path("%s", name);
}

Test(identity, a_handle_is_the_same_by_path_and_by_descriptor)
{
    const struct dirid id = handle_of(AT_FDCWD, made_directory("one"), AT_SYMLINK_NOFOLLOW);
    const int fd = open(place_path("one"), O_PATH);
    cr_assert(dirid_is_by_handle(id));
    cr_assert(dirid_equal(id, handle_of(AT_FDCWD, place_path("one"), 0)));
    cr_assert(dirid_equal(id, handle_of(fd, "", AT_EMPTY_PATH)));
    cr_assert_eq(symlink("one", place_path("link")), 0);
    cr_assert(dirid_equal(id, handle_of(AT_FDCWD, place_path("link"), 0)));
    close(fd);
}

Test(identity, handles_of_directories_differ)
{
    const struct dirid one = handle_of(AT_FDCWD, made_directory("one"), 0);
    cr_assert_neq(one.birth, handle_of(AT_FDCWD, made_directory("two"), 0).birth);
    cr_assert_eq(rmdir(place_path("one")), 0);
    cr_assert_neq(one.birth, handle_of(AT_FDCWD, made_directory("one"), 0).birth);
}

Test(identity, links_and_files_have_none)
{
    made_directory("one");
    cr_assert_eq(symlink("one", place_path("link")), 0);
    cr_assert_eq(handle_of(AT_FDCWD, place_path("link"), AT_SYMLINK_NOFOLLOW).birth, 0);
    close(open(place_path("file"), O_CREAT | O_WRONLY, 0600));
    cr_assert_eq(handle_of(AT_FDCWD, place_path("file"), 0).birth, 0);
}

Test(identity, what_has_no_lasting_handle_has_none)
{
    cr_assert_eq(handle_of(AT_FDCWD, "/proc/self", 0).birth, 0);
}

Test(identity, a_time_of_birth_stands)
{
    struct statx stat, same;
    made_directory("one");
    cr_assert_eq(sys_statx(AT_FDCWD, place_path("one"), 0, IDENTITY_MASK, &stat), 0);
    if (!(stat.stx_mask & STATX_BTIME))
        cr_skip_test("the file system keeps none");
    const int fd = open(place_path("one"), O_PATH);
    cr_assert_eq(identity_stat_root(fd, &same), 0);
    close(fd);
    cr_assert(dirid_equal(dirid_of(&stat), dirid_of(&same)));
    const struct dirid roots[] = {by_handle, by_birth, by_number};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        cr_assert_eq(identity_stat(roots[i], AT_FDCWD, place_path("one"), 0, &same), 0);
        cr_assert(dirid_equal(dirid_of(&stat), dirid_of(&same)));
    }
}

Test(identity, a_path_that_is_not_there_is_an_error)
{
    struct statx stat;
    cr_assert_eq(identity_stat(by_handle, AT_FDCWD, place_path("none"), 0, &stat), -ENOENT);
    cr_assert_eq(identity_stat_root(-1, &stat), -EBADF);
}
