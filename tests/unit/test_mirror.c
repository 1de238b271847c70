/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/mirror.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "place.h"
#include "union/attributes.h"
#include "union/layout.h"

#define M "b/n1.1/out-5f3a9c01d2e4"

static void scene_init(void)
{
    place_init();
    place_directory("out");
    place_directory("b/n1.1");
}

static int test_mirror_make(uint32_t leaf)
{
    int fd = place_open("out");
    int answer = mirror_make(fd, place_path("b/n1.1"), "out-5f3a9c01d2e4", leaf);
    close(fd);
    return answer;
}

static int test_mirror_follow(void)
{
    int fd = place_open("out");
    int answer = mirror_follow(fd, place_path("b/n1.1"), "out-5f3a9c01d2e4");
    close(fd);
    return answer;
}

static void assert_equal(const char *leaf)
{
    struct stat a = place_stat("out"), b = place_stat(leaf);
    cr_assert_eq(a.st_mode, b.st_mode, "%o, %o", a.st_mode, b.st_mode);
    cr_assert_eq(a.st_uid, b.st_uid);
    cr_assert_eq(a.st_gid, b.st_gid);
}

/* An ACL: version 2; owner rwx, uid 12345 rwx, group r-x, mask rwx, others none. */
static const unsigned char acl[] = {2, 0,    0,    0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  7,
                                    0, 0x39, 0x30, 0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
                                    7, 0,    255,  255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};

/* What the file system under the test has no room for is not there to be equal. */
static bool mirror_give(const char *name, const void *value, size_t size)
{
    int error = setxattr(place_path("out"), name, value, size, 0);
    cr_assert(error == 0 || errno == EOPNOTSUPP || errno == EPERM, "%s: %m", name);
    return error == 0;
}

static bool mirror_has(const char *path, const char *name, const void *value, size_t size)
{
    char found[1024];
    return getxattr(place_path("%s", path), name, found, sizeof found) == (ssize_t)size && memcmp(found, value, size) == 0;
}

Test(mirror, is_made_equal, .init = scene_init, .fini = place_finish)
{
    umask(077);
    cr_assert_eq(chmod(place_path("out"), 03775), 0);
    cr_assert_eq(test_mirror_make(0), 0);
    assert_equal(M);
    assert_equal(M "/0");
    cr_assert_eq(test_mirror_make(0), -EEXIST);
    cr_assert_eq(test_mirror_make(7), 0);
    assert_equal(M "/7");
    cr_assert_eq(place_count(M), 2, "no temporary directory is left");
    cr_assert_eq(test_mirror_make(LAYOUT_LEAF_MAX), -EOVERFLOW);
}

Test(mirror, carries_attributes, .init = scene_init, .fini = place_finish)
{
    bool user = mirror_give("user.project", "alpha", 5), access = mirror_give("system.posix_acl_access", acl, sizeof acl);
    bool inherited = mirror_give("system.posix_acl_default", acl, sizeof acl), trusted = mirror_give("trusted.note", "x", 1);
    cr_assert_eq(test_mirror_make(0), 0);
    assert_equal(M "/0");
    cr_assert(!user || mirror_has(M "/0", "user.project", "alpha", 5));
    cr_assert(!trusted || mirror_has(M "/0", "trusted.note", "x", 1));
    cr_assert(!access || mirror_has(M "/0", "system.posix_acl_access", acl, sizeof acl));
    cr_assert(!inherited || mirror_has(M "/0", "system.posix_acl_default", acl, sizeof acl));
}

Test(mirror, follows, .init = scene_init, .fini = place_finish)
{
    bool user = mirror_give("user.project", "alpha", 5), inherited = mirror_give("system.posix_acl_default", acl, sizeof acl);
    cr_assert_eq(test_mirror_make(0), 0);
    cr_assert_eq(test_mirror_make(1), 0);
    if (user)
        cr_assert_eq(removexattr(place_path("out"), "user.project"), 0);
    if (inherited)
        cr_assert_eq(removexattr(place_path("out"), "system.posix_acl_default"), 0);
    mirror_give("user.other", "beta", 4);
    cr_assert_eq(chmod(place_path("out"), 02710), 0);
    if (geteuid() == 0)
        cr_assert_eq(chown(place_path("out"), 12345, 23456), 0);
    cr_assert_eq(chmod(place_path("out"), 02710), 0);
    cr_assert_eq(test_mirror_follow(), 0);
    const char *const all[] = {M, M "/0", M "/1"};
    for (size_t i = 0; i < 3; i++) {
        assert_equal(all[i]);
        cr_assert_lt(getxattr(place_path("%s", all[i]), "user.project", NULL, 0), 0);
        cr_assert_leq(getxattr(place_path("%s", all[i]), "system.posix_acl_default", NULL, 0), 0);
        cr_assert(!user || mirror_has(all[i], "user.other", "beta", 4));
    }
}

Test(mirror, a_file_born_there_is_the_same_file, .init = scene_init, .fini = place_finish)
{
    mirror_give("system.posix_acl_default", acl, sizeof acl);
    if (geteuid() == 0)
        cr_assert_eq(chown(place_path("out"), 0, 23456), 0);
    cr_assert_eq(chmod(place_path("out"), 02755), 0);
    cr_assert_eq(test_mirror_make(0), 0);
    umask(027);
    close(open(place_path("out/f"), O_CREAT | O_WRONLY, 0666));
    close(open(place_path(M "/0/f"), O_CREAT | O_WRONLY, 0666));
    struct stat a = place_stat("out/f"), b = place_stat(M "/0/f");
    cr_assert_eq(a.st_mode, b.st_mode);
    cr_assert_eq(a.st_uid, b.st_uid);
    cr_assert_eq(a.st_gid, b.st_gid);
    char one[1024], other[1024];
    ssize_t size = getxattr(place_path("out/f"), "system.posix_acl_access", one, sizeof one);
    cr_assert_eq(getxattr(place_path(M "/0/f"), "system.posix_acl_access", other, sizeof other), size);
    cr_assert(size <= 0 || memcmp(one, other, (size_t)size) == 0);
}

Test(mirror, the_owner_can_always_read_it, .init = scene_init, .fini = place_finish)
{
    cr_assert_eq(test_mirror_make(0), 0);
    mirror_give("system.posix_acl_access", acl, sizeof acl);
    cr_assert_eq(chmod(place_path("out"), 0270), 0);
    cr_assert_eq(test_mirror_follow(), 0);
    cr_assert_eq(place_stat(M "/0").st_mode & 07777, 0770);
    cr_assert_eq(test_mirror_make(1), geteuid() == 0 ? 0 : RECORD_WHY_FLAGS, "they cannot be read");
    cr_assert_eq(chmod(place_path("out"), 0470), 0);
    cr_assert_eq(test_mirror_follow(), 0);
    cr_assert_eq(place_stat(M "/0").st_mode & 07777, 0570);
}

Test(mirror, carries_inode_flags, .init = scene_init, .fini = place_finish)
{
    int fd = open(place_path("out"), O_RDONLY), flags = 0, there = 0;
    bool known = ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0;
    int wanted = flags | FS_NODUMP_FL | FS_NOATIME_FL;
    known = known && ioctl(fd, FS_IOC_SETFLAGS, &wanted) == 0;
    cr_assert_eq(test_mirror_make(0), 0);
    int leaf = open(place_path(M "/0"), O_RDONLY);
    if (known) {
        cr_assert_eq(ioctl(leaf, FS_IOC_GETFLAGS, &there), 0);
        cr_assert_eq(there & (FS_NODUMP_FL | FS_NOATIME_FL), FS_NODUMP_FL | FS_NOATIME_FL);
        cr_assert_eq(ioctl(fd, FS_IOC_SETFLAGS, &flags), 0);
    }
    cr_assert_eq(test_mirror_follow(), 0);
    if (known) {
        cr_assert_eq(ioctl(leaf, FS_IOC_GETFLAGS, &there), 0);
        cr_assert_eq(there & (FS_NODUMP_FL | FS_NOATIME_FL), 0);
    }
    wanted = flags | FS_APPEND_FL;
    if (known && ioctl(fd, FS_IOC_SETFLAGS, &wanted) == 0) {
        cr_assert_eq(test_mirror_make(1), RECORD_WHY_FLAGS);
        cr_assert_eq(ioctl(fd, FS_IOC_SETFLAGS, &flags), 0);
    }
    cr_assert_eq(place_count(M), 1);
    close(leaf);
    close(fd);
}

/* As a user who cannot give files away. */
static int make_as_another(void)
{
    return geteuid() == 0 && (setgid(12345) || setuid(12345)) ? 99 : test_mirror_make(0);
}

static int make_with_a_umask_of_all(void)
{
    umask(0777);
    int answer = make_as_another();
    return answer ? answer : test_mirror_make(1);
}

Test(mirror, what_a_umask_takes_from_its_owner_is_given_back, .init = scene_init, .fini = place_finish)
{
    static const char *const paths[] = {"out", "b", "b/n1.1"};
    int status;
    cr_assert_eq(chmod(place, 0755), 0);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        cr_assert(geteuid() != 0 || chown(place_path("%s", paths[i]), 12345, 12345) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(make_with_a_umask_of_all());
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(WEXITSTATUS(status), 0);
    assert_equal(M "/0");
    assert_equal(M "/1");
}

Test(mirror, what_cannot_be_equal_is_refused_and_gone, .init = scene_init, .fini = place_finish)
{
    int status;
    cr_assert_eq(chmod(place, 0755), 0);
    cr_assert_eq(chmod(place_path("b/n1.1"), 0777), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(make_as_another());
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(WEXITSTATUS(status), geteuid() == 0 ? RECORD_WHY_OWNER : 0);
    cr_assert_eq(place_count("b/n1.1"), geteuid() == 0 ? 0 : 1);
}

Test(mirror, another_device_is_refused, .init = scene_init, .fini = place_finish)
{
    int proc = open("/proc", O_PATH | O_DIRECTORY);
    cr_assert_eq(mirror_make(proc, place_path("b/n1.1"), "m-000000000001", 0), RECORD_WHY_DEVICE);
    cr_assert_eq(place_count("b/n1.1"), 0);
    close(proc);
}

Test(mirror, errors, .init = scene_init, .fini = place_finish)
{
    int out = place_open("out");
    place_file("file", "");
    cr_assert_eq(mirror_make(out, place_path("b/none"), "m-000000000001", 0), -ENOENT);
    int file = open(place_path("file"), O_PATH);
    cr_assert_eq(mirror_make(file, place_path("b/n1.1"), "m-000000000001", 0), -ENOTDIR);
    place_file("b/n1.1/m-000000000002", "");
    cr_assert_eq(mirror_make(out, place_path("b/n1.1"), "m-000000000002", 0), -ENOTDIR);
    cr_assert_eq(place_count("b/n1.1"), 1);
    close(file);
    close(out);
}

Test(mirror, what_a_dead_stream_left, .init = scene_init, .fini = place_finish)
{
    char path[128];
    snprintf(path, sizeof path, M "/.new-%d-0", getpid());
    place_directory(path);
    cr_assert_eq(test_mirror_make(0), 0);
    place_directory(M "/.new-1-5");
    cr_assert_eq(mirror_remove(place_path("b/n1.1"), "out-5f3a9c01d2e4"), 0);
    cr_assert_eq(place_count("b/n1.1"), 0);
}

Test(mirror, is_synced_and_removed, .init = scene_init, .fini = place_finish)
{
    const char *const name = "out-5f3a9c01d2e4";
    cr_assert_eq(mirror_sync(place_path("b/n1.1"), name), 0);
    cr_assert_eq(mirror_remove(place_path("b/n1.1"), name), 0);
    cr_assert_eq(mirror_remove(place_path("b/none"), name), 0);
    cr_assert_eq(test_mirror_follow(), 0);
    for (uint32_t leaf = 0; leaf < 20; leaf++)
        cr_assert_eq(test_mirror_make(leaf), 0);
    place_file(M "/3/f", "");
    cr_assert_eq(mirror_sync(place_path("b/n1.1"), name), 0);
    cr_assert_eq(mirror_remove(place_path("b/n1.1"), name), -ENOTEMPTY);
    cr_assert(place_has(M "/3/f"));
    cr_assert_eq(unlink(place_path(M "/3/f")), 0);
    place_file(M "/stray", "");
    cr_assert_eq(mirror_remove(place_path("b/n1.1"), name), -ENOTEMPTY);
    cr_assert_eq(unlink(place_path(M "/stray")), 0);
    cr_assert_eq(mirror_remove(place_path("b/n1.1"), name), 0);
    cr_assert_eq(place_count("b/n1.1"), 0);
}

Test(attributes, one_that_is_there_no_longer_goes, .init = scene_init, .fini = place_finish)
{
    if (!mirror_give("user.layout", "wide", 4))
        return;
    cr_assert_eq(mkdir(place_path("copy"), 0700), 0);
    int copy = open(place_path("copy"), O_RDONLY | O_DIRECTORY);
    char from[PATH_MAX];
    snprintf(from, sizeof from, "%s", place_path("out"));
    cr_assert_eq(attributes_copy(from, copy, false), 0);
    cr_assert(mirror_has("copy", "user.layout", "wide", 4));
    cr_assert_eq(removexattr(from, "user.layout"), 0);
    cr_assert_eq(attributes_copy(from, copy, false), 0);
    cr_assert_lt(getxattr(place_path("copy"), "user.layout", NULL, 0), 0);
    close(copy);
}

Test(attributes, which_are_carried)
{
    cr_assert(attributes_carried("user.x") && attributes_carried("trusted.lov") && attributes_carried("security.capability") &&
              attributes_carried("system.posix_acl_default"));
    cr_assert_not(attributes_carried("security.selinux") || attributes_carried("security.ima") ||
                  attributes_carried("trusted.lma") || attributes_carried("trusted.overlay.origin") ||
                  attributes_carried("btrfs.compression") || attributes_carried("system.cifs_acl"));
}
