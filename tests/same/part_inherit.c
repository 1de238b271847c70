/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a file gets from its directory and from the process that makes it: umask, setgid, sticky, default
 * ACLs. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "acl.h"
#include "fixture.h"

static long inherit_make(const char *path, mode_t mode, mode_t mask)
{
    struct stat st;
    mode_t before = umask(mask);
    errno = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, mode);
    int error = errno;
    umask(before);
    if (fd < 0) {
        errno = error;
        return -1;
    }
    fstat(fd, &st);
    detail_stat(0, &st);
    close(fd);
    detail_acl(path);
    errno = 0;
    return 0;
}

static void inherit_birth(const char *name, const char *path, mode_t mode, mode_t mask)
{
    char where[300];
    snprintf(where, sizeof where, "%s mode %04o umask %04o", name, mode, mask);
    long result = inherit_make(path, mode, mask);
    case_told("birth in", where, result, errno, true);
}

static const struct {
    const char *name;
    mode_t mode;
    long group; /* -1: as it is */
    bool acl;
} directories[] = {
    {"a plain directory", 0755, -1, false},
    {"a directory of another group", 0755, 17, false},
    {"a setgid directory", 02775, -1, false},
    {"a setgid directory of another group", 02775, 17, false},
    {"a sticky directory", 01777, -1, false},
    {"a setuid directory", 04755, -1, false},
    {"a directory for its group alone", 0070, -1, false},
    {"a directory with a default ACL", 0755, -1, true},
    {"a setgid directory with a default ACL", 02750, -1, true},
};

static bool inherit_prepare(size_t which)
{
    const char *path = joined(fixture.work, "bare");
    long result = 0;
    if (directories[which].group >= 0)
        result = chown(path, (uid_t)-1, (gid_t)directories[which].group);
    if (result == 0 && directories[which].acl)
        result = setxattr(path, "system.posix_acl_default", &default_acl, sizeof default_acl, 0);
    if (result == 0)
        result = chmod(path, directories[which].mode);
    if (result < 0)
        case_told("prepare", directories[which].name, result, errno, true);
    return result == 0;
}

/* The first file finds the directory as it was made, the second finds it redirected already. */
static void birth_after(size_t which, bool first, mode_t mode, mode_t mask)
{
    const char *path = joined(fixture.work, "bare/born");
    if (!case_is_due())
        return;
    if (!first)
        make_file(joined(fixture.work, "bare/early"), 0644, "early\n", 6);
    if (inherit_prepare(which))
        inherit_birth(directories[which].name, path, mode, mask);
}

void part_inherit(void)
{
    static const mode_t modes[] = {0666, 0777, 0600, 06777, 0}, masks[] = {0, 022, 077, 0777};
    for (size_t which = 0; which < sizeof directories / sizeof *directories; which++)
        for (size_t mode = 0; mode < sizeof modes / sizeof *modes; mode++)
            for (size_t mask = 0; mask < sizeof masks / sizeof *masks; mask++) {
                birth_after(which, true, modes[mode], masks[mask]);
                birth_after(which, false, modes[mode], masks[mask]);
            }
}
