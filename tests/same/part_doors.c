/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Calls that meet a path for another reason than the file's own sake: working directories, sockets, keys,
 * handles, limits. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "fixture.h"
#include "../old_libc.h"

static const char *from_above(const char *path)
{
    size_t length = strlen(fixture.above);
    return strncmp(path, fixture.above, length) == 0 ? path + length : path;
}

/* What getcwd and its kin say from the new directory, by $PWD where that is true. */
static long by_chdir(const struct place *place, long by_number)
{
    static char here[PATH_MAX];
    long result = by_number ? syscall(SYS_chdir, place->path) : chdir(place->path);
    int error = errno;
    if (result == 0 && getcwd(here, sizeof here)) {
        setenv("PWD", place->path, 1);
        char *current = get_current_dir_name();
        detail(" in %s, called %s", from_above(here), current ? from_above(current) : "nothing");
        free(current);
        unsetenv("PWD");
    }
    errno = error;
    return result;
}

static long by_fchdir(const struct place *place, long flags)
{
    static char here[PATH_MAX];
    int fd = open(place->path, (int)flags);
    if (fd < 0)
        return -1;
    long result = fchdir(fd);
    int error = errno;
    if (result == 0 && getwd(here))
        detail(" in %s", from_above(here));
    close(fd);
    errno = error;
    return result;
}

/* The length of an address that is these words, without a zero if there is no room for one or none is
 * wanted. */
static socklen_t address_of(struct sockaddr_un *to, const char *words, bool with_zero)
{
    size_t length = strnlen(words, sizeof to->sun_path + 1);
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    memcpy(to->sun_path, words, length < sizeof to->sun_path ? length : sizeof to->sun_path);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + with_zero);
}

/* Two ends that find each other by the name, which is the caller's. */
static void tell_meeting(int listener, const struct sockaddr_un *address, socklen_t length)
{
    struct sockaddr_un said;
    socklen_t said_length = sizeof said;
    memset(&said, 0, sizeof said);
    if (getsockname(listener, (struct sockaddr *)&said, &said_length) == 0)
        detail(" named as it was %s",
               strncmp(said.sun_path, address->sun_path, sizeof said.sun_path) == 0 ? "said" : "not said");
    int caller = socket(AF_UNIX, SOCK_STREAM, 0);
    if (listen(listener, 1) == 0)
        detail(" reached %d", connect(caller, (const struct sockaddr *)address, length));
    close(caller);
}

enum bind_way { BIND_ZERO, BIND_BARE, BIND_RAW, BIND_DATAGRAM, BIND_NAMED, BIND_FOREIGN, BIND_NO_SOCKET };

static long bind_to(const char *words, enum bind_way way)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address, words, way != BIND_BARE);
    int fd = way == BIND_NO_SOCKET
                 ? open("/dev/null", O_RDONLY)
                 : socket(way == BIND_FOREIGN ? AF_INET : AF_UNIX, way == BIND_DATAGRAM ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (way == BIND_NAMED) /* by the kernel: it has a name then */
        bind(fd, (const struct sockaddr *)&address, sizeof address.sun_family);
    long result =
        way == BIND_RAW ? syscall(SYS_bind, fd, &address, length) : bind(fd, (const struct sockaddr *)&address, length);
    int error = errno;
    if (result == 0 && way != BIND_DATAGRAM)
        tell_meeting(fd, &address, length);
    close(fd);
    errno = error;
    return result;
}

static long by_bind(const struct place *place, long way)
{
    return bind_to(place->path, (enum bind_way)way);
}

/* The longest address there is, which has no zero; and one byte more. */
static long by_bind_filled(const struct place *place, long length)
{
    char words[256];
    const char *name = strrchr(place->path, '/') ? strrchr(place->path, '/') + 1 : place->path;
    size_t start = (size_t)(name - place->path), end = strlen(name);
    if (start + end >= (size_t)length) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memset(words, '/', sizeof words);
    memcpy(words, start ? place->path : "./", start ? start : 2);
    memcpy(words + length - end, name, end + 1);
    return bind_to(words, BIND_BARE);
}

static long by_connect(const struct place *place, long type)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address, place->path, true);
    int fd = type < 0 ? open("/dev/null", O_RDONLY) : socket(AF_UNIX, (int)type, 0);
    long result = connect(fd, (const struct sockaddr *)&address, length);
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

int __connect(int fd, const struct sockaddr *address, socklen_t length);

static long by_connect_twice(const struct place *place, long unused)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address, place->path, false);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    syscall(SYS_connect, fd, &address, length);
    detail(" by number %s", strerrorname_np(errno));
    long result = __connect(fd, (const struct sockaddr *)&address, length);
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

static long by_pathconf(const struct place *place, long name)
{
    errno = EXDEV; /* which a limit that is none leaves alone */
    return pathconf(place->path, (int)name);
}

static long by_ftok(const struct place *place, long project)
{
    struct stat st;
    key_t key = ftok(place->path, (int)project);
    int error = errno;
    if (key == -1)
        return -1;
    if (stat(place->path, &st) == 0)
        detail(" key %s", (uint32_t)key == ((uint32_t)(st.st_ino & 0xffff) | (uint32_t)(st.st_dev & 0xff) << 16 |
                                            (uint32_t)(project & 0xff) << 24)
                              ? "of the file"
                              : "of something else");
    errno = error;
    return 0;
}

/* A case asks for MAX_HANDLE_SZ + 1 bytes, which the kernel refuses. qemu-user writes that many back all the same. */
struct handle {
    struct file_handle head;
    unsigned char bytes[MAX_HANDLE_SZ + 1];
};

static long handle_of(int at, const char *path, int flags, struct handle *handle, int *mount)
{
    memset(handle, 0, sizeof *handle);
    handle->head.handle_bytes = MAX_HANDLE_SZ;
    return name_to_handle_at(at, path, &handle->head, mount, flags);
}

/* The handle that a name gives is that of the file which is then opened by it. */
static long by_handle(const struct place *place, long flags)
{
    struct handle handle, opened;
    int mount, opened_mount;
    long result = handle_of(place->at, place->path, (int)flags, &handle, &mount);
    int error = errno;
    int fd = result == 0 && !(flags & AT_EMPTY_PATH)
                 ? openat(place->at, place->path, O_PATH | (flags & AT_SYMLINK_FOLLOW ? 0 : O_NOFOLLOW))
                 : -1;
    if (fd >= 0 && handle_of(fd, "", AT_EMPTY_PATH, &opened, &opened_mount) == 0)
        detail(" bytes %u type %d %s, mount %s", handle.head.handle_bytes, handle.head.handle_type,
               memcmp(&handle, &opened, sizeof handle) == 0 ? "the file's" : "another's",
               mount == opened_mount ? "too" : "not");
    close(fd);
    errno = error;
    return result;
}

static long by_raw_handle(const struct place *place, long room)
{
    struct handle handle = {.head.handle_bytes = (unsigned)room};
    int mount;
    long result = syscall(SYS_name_to_handle_at, place->at, place->path, &handle.head, &mount, 0);
    detail(" bytes %u", handle.head.handle_bytes);
    return result;
}

static char *tempnam_in(const char *variable, const char *directory, const char *prefix)
{
    if (variable)
        setenv("TMPDIR", variable, 1);
    char *name = tempnam(directory, prefix);
    unsetenv("TMPDIR");
    return name;
}

/* Where the name is, and how long its last part. */
static long by_tempnam(const struct place *place, long way)
{
    struct stat st;
    static const char *const prefixes[] = {NULL, "", "abc", "longer than five"};
    char *name = tempnam_in(way & 4 ? place->path : NULL, way & 4 ? NULL : place->path, prefixes[way & 3]);
    if (!name)
        return -1;
    char *last = strrchr(name, '/') + 1;
    size_t length = strlen(last);
    int error = lstat(name, &st) < 0 ? errno : 0;
    memset(last + (length > 6 ? length - 6 : 0), 'X', length > 6 ? 6 : length);
    detail(" %s %s", from_above(name), strerrorname_np(error));
    free(name);
    errno = 0;
    return 0;
}

static const struct call calls[] = {
    {"chdir", 0, by_chdir, 0},
    {"SYS_chdir", 0, by_chdir, 1},
    {"fchdir", CALL_WAITS, by_fchdir, O_RDONLY},
    {"fchdir(PATH)", 0, by_fchdir, O_PATH},
    {"bind", CALL_CHANGES | CALL_NO_NULL, by_bind, BIND_ZERO},
    {"bind(no zero)", CALL_CHANGES | CALL_NO_NULL, by_bind, BIND_BARE},
    {"SYS_bind", CALL_CHANGES | CALL_NO_NULL, by_bind, BIND_RAW},
    {"bind(DGRAM)", CALL_CHANGES | CALL_NO_NULL, by_bind, BIND_DATAGRAM},
    {"bind(again)", CALL_CHANGES | CALL_NO_NULL, by_bind, BIND_NAMED},
    {"bind(INET)", CALL_CHANGES | CALL_NO_NULL, by_bind, BIND_FOREIGN},
    {"bind(no socket)", CALL_CHANGES | CALL_NO_NULL, by_bind, BIND_NO_SOCKET},
    {"bind(108 bytes)", CALL_CHANGES | CALL_NO_NULL, by_bind_filled, 108},
    {"bind(109 bytes)", CALL_CHANGES | CALL_NO_NULL, by_bind_filled, 109},
    {"connect", CALL_NO_NULL, by_connect, SOCK_STREAM},
    {"connect(DGRAM)", CALL_NO_NULL, by_connect, SOCK_DGRAM},
    {"connect(no socket)", CALL_NO_NULL, by_connect, -1},
    {"connect, __connect", CALL_NO_NULL, by_connect_twice, 0},
    {"pathconf(LINK_MAX)", CALL_NO_NULL, by_pathconf, _PC_LINK_MAX},
    {"pathconf(NAME_MAX)", CALL_NO_NULL, by_pathconf, _PC_NAME_MAX},
    {"pathconf(PATH_MAX)", CALL_NO_NULL, by_pathconf, _PC_PATH_MAX},
    {"pathconf(ASYNC_IO)", CALL_NO_NULL, by_pathconf, _PC_ASYNC_IO},
    {"pathconf(PRIO_IO)", CALL_NO_NULL, by_pathconf, _PC_PRIO_IO},
    {"pathconf(2_SYMLINKS)", CALL_NO_NULL, by_pathconf, _PC_2_SYMLINKS},
    {"pathconf(REC_XFER_ALIGN)", CALL_NO_NULL, by_pathconf, _PC_REC_XFER_ALIGN},
    {"pathconf(wrong)", CALL_NO_NULL, by_pathconf, 12345},
    {"ftok", 0, by_ftok, 'x'},
    {"ftok(255)", 0, by_ftok, 255},
    {"name_to_handle_at", CALL_AT, by_handle, 0},
    {"name_to_handle_at(FOLLOW)", CALL_AT, by_handle, AT_SYMLINK_FOLLOW},
    {"name_to_handle_at(EMPTY_PATH)", CALL_AT, by_handle, AT_EMPTY_PATH},
    {"name_to_handle_at(wrong flag)", CALL_AT, by_handle, 1 << 20},
    {"SYS_name_to_handle_at(0)", CALL_AT, by_raw_handle, 0},
    {"SYS_name_to_handle_at(wrong)", CALL_AT, by_raw_handle, MAX_HANDLE_SZ + 1},
    {"tempnam(,NULL)", 0, by_tempnam, 0},
    {"tempnam(,long)", 0, by_tempnam, 3},
    {"tempnam($TMPDIR,abc)", CALL_NO_NULL, by_tempnam, 6},
    {"tempnam($TMPDIR,)", CALL_NO_NULL, by_tempnam, 5},
};

/* What was bound under one name of a directory is found under the others. */
static void doors_meet(const char *label, const char *bound, const char *called)
{
    struct sockaddr_un address;
    if (!case_is_due())
        return;
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), caller = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t length = address_of(&address, bound, true);
    long result = bind(listener, (const struct sockaddr *)&address, length);
    int error = errno;
    if (result == 0 && listen(listener, 1) == 0) {
        length = address_of(&address, called, false);
        result = connect(caller, (const struct sockaddr *)&address, length);
        error = errno;
    }
    close(listener);
    close(caller);
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
    case_told("meeting", label, result, error, true);
}

static void doors_meetings(void)
{
    static char outside[PATH_MAX];
    snprintf(outside, sizeof outside, "%s", joined(fixture.outside, "to-dir/door"));
    doors_meet("in the same words", "door", "door");
    doors_meet("through a directory's link", "dir/door", "ldir/door");
    doors_meet("made through a directory's link", "ldir/door", "dir/../dir/door");
    doors_meet("made from outside", outside, "dir/door");
    doors_meet("called from outside", "dir/door", outside);
    doors_meet("in a file", "dir/door", "file/door");
    doors_meet("elsewhere", "bare/door", "dir/door");
    doors_meet("through its own link", "nowhere", "ldangling");
}

void part_doors(void)
{
    CASES(calls, false);
    doors_meetings();
}
