/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What takes more than one call to see: files without a name, with several, and with none any more; places in
 * a directory that changes; what a directory and a file system say of themselves. */
#include "same.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fixture.h"
#include "scenario.h"

static int semantics_opened(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0644);
    if (fd < 0)
        give_up("cannot open", path);
    return fd;
}

static unsigned links_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? (unsigned)st.st_nlink : 1000;
}

static const char *proc_name(int fd)
{
    static char text[2][64];
    static unsigned turn;
    char *name = text[turn++ % 2];
    snprintf(name, sizeof text[0], "/proc/self/fd/%d", fd);
    return name;
}

static long link_proc(int fd, const char *to)
{
    return linkat(AT_FDCWD, proc_name(fd), AT_FDCWD, to, AT_SYMLINK_FOLLOW);
}

static long semantics_unnamed(const char *directory, const char *first, const char *second)
{
    struct stat st;
    char text[8] = "";
    int fd = open(directory, O_TMPFILE | O_RDWR, 0640);
    if (fd < 0)
        return -1;
    detail(" wrote %zd", write(fd, "unnamed", 7));
    detail(" links %u", links_of(fd));
    detail(" onto a file %s", ended(link_proc(fd, "empty")));
    long result = link_proc(fd, first);
    detail(" links %u", links_of(fd));
    detail(" again %s", ended(link_proc(fd, first)));
    detail(" second %s", ended(link(first, second)));
    detail(" links %u", links_of(fd));
    detail(" removed %s", ended(unlink(first)));
    detail(" links %u", links_of(fd));
    if (stat(second, &st) == 0)
        detail_stat(0, &st);
    int again = semantics_opened(second, O_RDONLY);
    detail(" read %zd", read(again, text, sizeof text));
    close(again);
    close(fd);
    return result;
}

static long unnamed_in_one(void)
{
    return semantics_unnamed("bare", "bare/first", "bare/second");
}

static long unnamed_into_another(void)
{
    return semantics_unnamed("dir", "bare/first", "dir/sub/second");
}

static long unnamed_through_a_link(void)
{
    return semantics_unnamed("../../out/to-dir", "../../out/to-bare/first", "lslash/second");
}

static long unnamed_from_outside(void)
{
    return semantics_unnamed(fixture.outside, "bare/first", "dir/second");
}

static long unnamed_to_outside(void)
{
    return semantics_unnamed("bare", joined(fixture.outside, "first"), "dir/second");
}

static long unnamed_for_good(void)
{
    int fd = open("bare", O_TMPFILE | O_EXCL | O_WRONLY, 0600);
    if (fd < 0)
        return -1;
    long result = link_proc(fd, "bare/first");
    int error = errno;
    detail(" in a file %s", ended(open("file", O_TMPFILE | O_RDWR, 0600)));
    detail(" only to read %s", ended(open("bare", O_TMPFILE | O_RDONLY, 0600)));
    detail(" nowhere %s", ended(open("absent", O_TMPFILE | O_RDWR, 0600)));
    close(fd);
    errno = error;
    return result;
}

static void tell_links(const char *when, int fd, const char *const *where)
{
    struct stat st;
    detail(" %s %u:", when, links_of(fd));
    for (; *where; where++)
        detail(" %u", lstat(*where, &st) == 0 ? (unsigned)st.st_nlink : 0);
}

static long semantics_linked(void)
{
    static const char *const where[] = {"dir/inner", "dir/second", "bare/third", "fourth", NULL};
    char text[20] = "";
    int fd = semantics_opened("dir/inner", O_RDONLY);
    tell_links("one", fd, where);
    detail(" %s", ended(link("dir/inner", "dir/second")));
    detail(" %s", ended(link("ldir/second", "bare/third")));
    detail(" %s", ended(linkat(AT_FDCWD, "../../out/to-dir/inner", AT_FDCWD, "fourth", 0)));
    tell_links("four", fd, where);
    detail(" onto another %s", ended(link("dir/inner", "bare/third")));
    detail(" rename to itself %s", ended(rename("dir/second", "bare/third")));
    tell_links("then", fd, where);
    detail(" removed %s", ended(unlink("dir/inner")));
    detail(" replaced %s", ended(rename("empty", "fourth")));
    tell_links("two", fd, where);
    truncate("dir/second", 6);
    detail(" read %zd", read(fd, text, sizeof text));
    detail(" %s", ended(unlink("dir/second")));
    detail(" %s", ended(unlink("bare/third")));
    tell_links("none", fd, where);
    return close(fd);
}

/* A link is a link to the symbolic link itself, unless it is told to follow. */
static long linked_links(void)
{
    detail(" link %s", ended(link("lfile", "bare/itself")));
    detail(" follow %s", ended(linkat(AT_FDCWD, "lfile", AT_FDCWD, "bare/file", AT_SYMLINK_FOLLOW)));
    detail(" outside %s", ended(linkat(AT_FDCWD, "../../out/to-file", AT_FDCWD, "bare/outside", AT_SYMLINK_FOLLOW)));
    detail(" dangling %s", ended(linkat(AT_FDCWD, "ldangling", AT_FDCWD, "bare/no", AT_SYMLINK_FOLLOW)));
    detail(" FIFO %s", ended(link("fifo", "bare/fifo")));
    detail(" directory %s", ended(link("dir", "bare/dir")));
    return 0;
}

/* A file that lost its name is there for processes that have it open. */
static void use_nameless(int fd)
{
    char text[32] = "";
    struct stat st;
    detail(" links %u", links_of(fd));
    detail(" read %zd", pread(fd, text, sizeof text, 0));
    detail_bytes(text, strlen(text));
    detail(" wrote %zd", pwrite(fd, "AFTER", 5, 0));
    detail(" truncated %s", ended(ftruncate(fd, 7)));
    detail(" mode %s", ended(fchmod(fd, 0611)));
    detail(" linked %s", ended(link_proc(fd, "bare/revived")));
    int again = open(proc_name(fd), O_RDWR);
    detail(" again %s", ended(again));
    detail(" read %zd", read(again, text, sizeof text));
    detail_stat(fstat(again, &st), &st);
    detail(" made through it %s", ended(open(proc_name(fd), O_RDWR | O_CREAT | O_EXCL, 0600)));
    close(again);
    close(fd);
}

static long nameless_by_unlink(void)
{
    int fd = semantics_opened("dir/inner", O_RDWR);
    long result = unlink("ldir/inner");
    detail(" by name %s", ended(open("dir/inner", O_RDONLY)));
    use_nameless(fd);
    make_file("dir/inner", 0600, "another", 7);
    return result;
}

static long nameless_by_rename(void)
{
    int fd = semantics_opened("dir/inner", O_RDWR);
    long result = rename("empty", "dir/inner");
    use_nameless(fd);
    return result;
}

static long nameless_with_its_directory(void)
{
    make_file("bare/only", 0644, "only", 4);
    int fd = semantics_opened("bare/only", O_RDWR);
    detail(" full %s", ended(rmdir("bare")));
    unlink("bare/only");
    long result = rmdir("bare");
    use_nameless(fd);
    return result;
}

#define MANY 300

static const char *many_file(const char *prefix, unsigned number)
{
    static char path[64];
    snprintf(path, sizeof path, "bare/%s-%04u", prefix, number);
    return path;
}

static void set_to_rest(DIR *stream, bool seen[MANY])
{
    unsigned number;
    memset(seen, 0, MANY * sizeof *seen);
    for (struct dirent *entry; (entry = readdir(stream));)
        if (sscanf(entry->d_name, "file-%u", &number) == 1)
            seen[number] = true;
}

/* From a place in the directory the same files follow as before, but for those that came and went. */
static long sought_while_changing(void)
{
    static bool first[MANY], second[MANY], early[MANY];
    unsigned number;
    long wrong = 0, rest = 0;
    for (unsigned i = 0; i < MANY; i++)
        make_file(many_file("file", i), 0644, "", 0);
    DIR *stream = opendir("bare");
    for (struct dirent *entry; rest < MANY / 2 && (entry = readdir(stream)); rest++)
        if (sscanf(entry->d_name, "file-%u", &number) == 1)
            early[number] = true;
    long place = telldir(stream);
    set_to_rest(stream, first);
    for (unsigned i = 0; i < MANY; i += 3)
        unlink(many_file("file", i));
    for (unsigned i = 0; i < 50; i++)
        make_file(many_file("late", i), 0644, "", 0);
    seekdir(stream, place);
    set_to_rest(stream, second);
    for (unsigned i = 0; i < MANY; i++)
        if (i % 3 != 0)
            wrong += first[i] == early[i] || (first[i] && !second[i]);
    detail(" told twice or not %ld", wrong);
    rewinddir(stream);
    set_to_rest(stream, second);
    wrong = 0;
    for (unsigned i = 0; i < MANY; i++)
        wrong += second[i] != (i % 3 != 0);
    detail(" after rewinddir %ld", wrong);
    long result = closedir(stream);
    fixture_rebuild();
    return result;
}

/* `.` and `..` are what stat says they are, in the root, too. */
static void tell_dots(const char *directory)
{
    struct stat st;
    DIR *stream = opendir(directory);
    for (struct dirent *entry; stream && (entry = readdir(stream));)
        if (fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino != entry->d_ino ||
            IFTODT(st.st_mode) != entry->d_type)
            detail(" [%s in %s: type %d]", entry->d_name, directory, entry->d_type);
    if (stream)
        closedir(stream);
}

static long semantics_dots(void)
{
    make_file("bare/early", 0644, "", 0);
    tell_dots(".");
    tell_dots("..");
    tell_dots("bare");
    tell_dots("ldir/sub");
    tell_dots("../../out/into");
    tell_dots("../..");
    return 0;
}

/* A file's file system is its directory's, however it is asked for. */
static long file_systems(void)
{
    static const char *const where[] = {".", "file", "dir/inner", "lfile", "../../out/to-file", "fifo"};
    struct statfs here, there;
    struct statvfs v, first;
    if (statfs(".", &here) < 0 || statvfs(".", &first) < 0)
        return -1;
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        int fd = open(where[i], O_RDONLY | O_NONBLOCK);
        detail(" %s", where[i]);
        for (int way = 0; way < 2; way++)
            detail(" %d", (way ? fstatfs(fd, &there) : statfs(where[i], &there)) == 0 && here.f_type == there.f_type &&
                              here.f_bsize == there.f_bsize && here.f_blocks == there.f_blocks &&
                              here.f_flags == there.f_flags && memcmp(&here.f_fsid, &there.f_fsid, sizeof here.f_fsid) == 0);
        for (int way = 0; way < 2; way++)
            detail(" %d", (way ? fstatvfs(fd, &v) : statvfs(where[i], &v)) == 0 && v.f_fsid == first.f_fsid &&
                              v.f_namemax == first.f_namemax && v.f_flag == first.f_flag && v.f_frsize == first.f_frsize);
        close(fd);
    }
    return 0;
}

/* A link whose text, put after the path of its directory, would be longer than a path may be. XFS has none that are so long. */
static void long_link(const char *before, const char *filling, const char *after, const char *path)
{
    char text[PATH_MAX];
    size_t length = strlen(strcpy(text, before));
    for (const size_t more = strlen(filling); length + more + strlen(after) < PATH_MAX - 1; length += more)
        memcpy(text + length, filling, more);
    strcpy(text + length, after);
    if (symlink(text, path) < 0 && errno != ENAMETOOLONG)
        give_up("cannot link", path);
}

static const char *long_opened(const char *path, int flags)
{
    int fd = open(path, flags | O_RDWR | O_CLOEXEC, 0644);
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return ended(fd);
}

static long long_links_to(const char *name, const char *path)
{
    struct stat st;
    char text[64];
    long_link("", "./", name, "dir/dots");
    long_link(".", "/", name, "dir/slashes");
    long_link(fixture.work, "/", path, "dir/absolute");
    static const char *const links[] = {"dir/dots", "dir/slashes", "dir/absolute"};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        detail(" %s stat %s", links[i], ended(stat(links[i], &st)));
        detail(" open %s", long_opened(links[i], 0));
        detail(" by the whole path %s", long_opened(joined(fixture.work, links[i]), 0));
        detail(" create %s", long_opened(links[i], O_CREAT));
        snprintf(text, sizeof text, "%s/", links[i]);
        detail(" slash %s", ended(stat(text, &st)));
        detail(" link %s", ended(linkat(AT_FDCWD, links[i], AT_FDCWD, "linked", AT_SYMLINK_FOLLOW)));
        detail(" unlink %s", ended(unlink("linked")));
        detail(" gone %s", ended(unlink(path)));
    }
    return 0;
}

static long long_links(void)
{
    return long_links_to("inner", "dir/inner");
}

static long long_dangling_links(void)
{
    return long_links_to("made-by-it", "dir/made-by-it");
}

static long long_links_to_nowhere(void)
{
    return long_links_to("file/made-by-it", "dir/made-by-it");
}

/* Each is the lowest that is free, however many files were made before. */
static long numbers_given(void)
{
    for (int i = 0; i < 12; i++) {
        char path[16];
        const int lowest = dup(STDERR_FILENO);
        close(lowest);
        snprintf(path, sizeof path, "dir/n%d", i);
        const int made = semantics_opened(path, O_CREAT | O_EXCL | O_RDWR), there = semantics_opened(path, O_CREAT | O_RDWR);
        detail(" %d %d", made - lowest, there - lowest);
        close(made);
        close(there);
    }
    return 0;
}

static const struct scenario scenarios[] = {
    {"O_TMPFILE, in one directory", unnamed_in_one},
    {"O_TMPFILE, into another", unnamed_into_another},
    {"O_TMPFILE, through links", unnamed_through_a_link},
    {"O_TMPFILE, from outside", unnamed_from_outside},
    {"O_TMPFILE, to outside", unnamed_to_outside},
    {"O_TMPFILE, never to be named", unnamed_for_good},
    {"links, counted", semantics_linked},
    {"links, to links", linked_links},
    {"links with long texts", long_links},
    {"links with long texts, to nothing", long_dangling_links},
    {"links with long texts, to no directory", long_links_to_nowhere},
    {"nameless, by unlink", nameless_by_unlink},
    {"nameless, by rename", nameless_by_rename},
    {"nameless, with its directory", nameless_with_its_directory},
    {"seekdir, while it changes", sought_while_changing},
    {"dots", semantics_dots},
    {"numbers of descriptors", numbers_given},
    {"file systems", file_systems},
};

void part_semantics(void)
{
    SCENARIOS("semantics", scenarios);
}
