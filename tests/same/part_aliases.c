/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* One thing by several paths: what the kernel tells of an open file's own path, links outside and inside that
 * lead to names here, and mounts that show a directory elsewhere, or something else in its place. */
#include "same.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "scenario.h"
#include "../old_libc.h"

static int aliases_opened(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0644);
    if (fd < 0)
        give_up("cannot open", path);
    return fd;
}

static const char *proc_name(int fd)
{
    static char text[64];
    snprintf(text, sizeof text, "/proc/self/fd/%d", fd);
    return text;
}

/* As the kernel says it, but for where the test was started. */
static void tell_text(const char *text, ssize_t length)
{
    size_t above = strlen(fixture.above);
    bool ours = length >= (ssize_t)above && strncmp(text, fixture.above, above) == 0;
    if (length < 0)
        detail(" %s", strerrorname_np(errno));
    else
        detail_bytes(text + (ours ? above : 0), (size_t)length - (ours ? above : 0));
}

static void tell_name(int fd)
{
    char text[PATH_MAX];
    ssize_t length = readlink(proc_name(fd), text, sizeof text);
    tell_text(text, length);
}

static void tell_real(int fd)
{
    char *text = realpath(proc_name(fd), NULL);
    tell_text(text, text ? (ssize_t)strlen(text) : -1);
    free(text);
}

static long by_place(const struct place *place, long flags)
{
    int fd = openat(place->at, place->path, (int)flags | O_NONBLOCK | O_CLOEXEC, 0640);
    if (fd < 0)
        return -1;
    tell_name(fd);
    tell_real(fd);
    close(fd);
    errno = 0;
    return 0;
}

static const struct call reading[] = {
    {"open(RDONLY), readlink", CALL_AT, by_place, O_RDONLY},
    {"open(PATH|NOFOLLOW), readlink", CALL_AT, by_place, O_PATH | O_NOFOLLOW},
};
static const struct call changing[] = {
    {"open(WRONLY|CREAT), readlink", CALL_AT | CALL_CHANGES, by_place, O_WRONLY | O_CREAT},
};

/* The same link by all the words there are for it. */
static void tell_spellings(int fd)
{
    char text[PATH_MAX], words[64];
    int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
    int link = open(proc_name(fd), O_PATH | O_NOFOLLOW);
    snprintf(words, sizeof words, "%d", fd);
    tell_text(text, readlinkat(directory, words, text, sizeof text));
    tell_text(text, readlinkat(link, "", text, sizeof text));
    tell_text(text, syscall(SYS_readlinkat, AT_FDCWD, proc_name(fd), text, sizeof text));
    snprintf(words, sizeof words, "/dev/fd/%d", fd);
    tell_text(text, readlink(words, text, sizeof text));
    snprintf(words, sizeof words, "/proc/%d/fd/%d", getpid(), fd);
    tell_text(text, readlink(words, text, sizeof text));
    snprintf(words, sizeof words, "/proc/thread-self/fd/%d", fd);
    tell_text(text, readlink(words, text, sizeof text));
    close(directory);
    close(link);
}

static long aliases_spelled(void)
{
    int fd = aliases_opened("dir/inner", O_RDONLY);
    tell_spellings(fd);
    if (chdir("/proc/self/fd") == 0) {
        char words[32], text[PATH_MAX];
        snprintf(words, sizeof words, "%d", fd);
        tell_text(text, readlink(words, text, sizeof text));
    }
    return close(fd);
}

/* What does not fit is cut: whatever the size, the beginning of the same text, and nothing after it. */
static long aliases_cut(void)
{
    char whole[PATH_MAX], text[PATH_MAX];
    long wrong = 0;
    int fd = aliases_opened("dir/inner", O_RDONLY);
    ssize_t length = readlink(proc_name(fd), whole, sizeof whole);
    for (ssize_t size = 1; size < length + 40; size++) {
        memset(text, '#', sizeof text);
        ssize_t given = readlink(proc_name(fd), text, (size_t)size);
        wrong += given != (size < length ? size : length) || memcmp(text, whole, (size_t)given) != 0 ||
                 (text[given] != '#' && text[given] != '\0');
    }
    detail(" length %zd wrong %ld", length - (ssize_t)strlen(fixture.above), wrong);
    detail(" no room %s", ended(readlink(proc_name(fd), text, 0)));
    return close(fd);
}

static long aliases_renamed(void)
{
    int fd = aliases_opened("dir/inner", O_RDONLY);
    rename("dir/inner", "dir/renamed");
    tell_name(fd);
    rename("dir/renamed", "bare/moved");
    tell_name(fd);
    rename("bare", "dir/sub/bare");
    tell_name(fd);
    rename("dir", "other");
    tell_name(fd);
    tell_real(fd);
    renameat2(AT_FDCWD, "other", AT_FDCWD, "ro", RENAME_EXCHANGE);
    tell_name(fd);
    rename("empty", "ro/sub/bare/moved");
    tell_name(fd);
    tell_real(fd);
    return close(fd);
}

static long aliases_exchanged(void)
{
    int one = aliases_opened("dir/inner", O_RDONLY), two = aliases_opened("file", O_RDONLY);
    renameat2(AT_FDCWD, "dir/inner", AT_FDCWD, "file", RENAME_EXCHANGE);
    tell_name(one);
    tell_name(two);
    renameat2(AT_FDCWD, "dir/inner", AT_FDCWD, "fifo", RENAME_EXCHANGE);
    tell_name(one);
    tell_name(two);
    renameat2(AT_FDCWD, "dir", AT_FDCWD, "bare", RENAME_EXCHANGE);
    tell_name(two);
    close(two);
    return close(one);
}

static long aliases_removed(void)
{
    int fd = aliases_opened("dir/inner", O_RDONLY);
    unlink("dir/inner");
    tell_name(fd);
    tell_real(fd);
    make_file("dir/inner (deleted)", 0644, "", 0);
    tell_real(fd);
    close(fd);
    fd = aliases_opened("dir/inner (deleted)", O_RDONLY);
    tell_name(fd);
    tell_real(fd);
    return close(fd);
}

/* The name by which it was opened, of several. */
static long aliases_linked(void)
{
    link("dir/inner", "bare/second");
    int one = aliases_opened("dir/inner", O_RDONLY), two = aliases_opened("bare/second", O_RDONLY);
    tell_name(one);
    tell_name(two);
    unlink("dir/inner");
    tell_name(one);
    tell_name(two);
    close(one);
    return close(two);
}

static long moved_out_and_in(void)
{
    int fd = aliases_opened("dir/inner", O_RDONLY);
    rename("dir/inner", joined(fixture.outside, "inner"));
    tell_name(fd);
    rename(joined(fixture.outside, "inner"), "bare/inner");
    tell_name(fd);
    return close(fd);
}

/* What a program wrote into a link of its own is left as it is. */
static long own_links(void)
{
    char text[PATH_MAX];
    const char *targets[] = {joined(fixture.root, ".shunt/b/n.1/dir-000000000001/0/inner"), proc_name(0),
                             joined(fixture.root, "w/dir/inner"), joined(fixture.root, ".shunt/")};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const char *paths[] = {"bare/own", joined(fixture.outside, "own")};
        for (int p = 0; p < 2; p++) {
            make_link(targets[i], paths[p]);
            tell_text(text, readlink(paths[p], text, sizeof text));
            unlink(paths[p]);
        }
    }
    return 0;
}

static void tell_output(const char *const *words)
{
    char text[PATH_MAX] = "";
    int ends[2];
    if (pipe(ends) < 0)
        give_up("no pipe to", words[0]);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execv(words[0], (char *const *)words);
        _exit(127);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], text, sizeof text - 1);
    waitpid(child, NULL, 0);
    close(ends[0]);
    tell_text(text, length > 0 ? length - 1 : length);
}

/* A program knows where it is: what it is started as, and what it has mapped. */
static long own_program(void)
{
    int in = aliases_opened("/bin/readlink", O_RDONLY), out = aliases_opened("bare/program", O_WRONLY | O_CREAT | O_EXCL);
    char block[65536];
    for (ssize_t count; (count = read(in, block, sizeof block)) > 0;)
        if (write(out, block, (size_t)count) != count)
            give_up("cannot write", "bare/program");
    fchmod(out, 0755);
    close(in);
    close(out);
    tell_output((const char *[]){"bare/program", "/proc/self/exe", NULL});
    tell_output((const char *[]){"../../out/to-bare/program", "-f", "/proc/self/exe", NULL});
    return 0;
}

/* Links that lead to links, outside and inside; the file is made where the last one leads, once. */
static void make_chain(void)
{
    make_link("one", joined(fixture.outside, "two"));
    make_link(joined(fixture.work, "to-made"), joined(fixture.outside, "one"));
    make_link("ldir/made", "to-made");
    make_directory(joined(fixture.outside, "deep"), 0755);
    make_link("../two", joined(fixture.outside, "deep/three"));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void tell_listed(const char *path)
{
    char found[32][16];
    int count = 0;
    DIR *stream = opendir(path);
    detail(" [");
    for (struct dirent *entry; stream && (entry = readdir(stream)) && count < 32;)
        if (entry->d_name[0] != '.')
            snprintf(found[count++], sizeof found[0], "%.15s", entry->d_name);
    qsort(found, (size_t)count, sizeof found[0], by_text);
    for (int i = 0; i < count; i++)
        detail("%s%s", i ? " " : "", found[i]);
    detail("]");
    if (stream)
        closedir(stream);
}

static long made_through_a_chain(void)
{
    char *path = strdup(joined(fixture.outside, "deep/three"));
    make_chain();
    detail(" not there %s", ended(open(path, O_RDONLY)));
    detail(" exclusive %s", ended(open(path, O_WRONLY | O_CREAT | O_EXCL, 0644)));
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    detail(" made %s", ended(fd));
    detail(" wrote %zd", write(fd, "chain", 5));
    tell_name(fd);
    close(fd);
    fd = open("dir/made", O_WRONLY | O_CREAT | O_EXCL, 0644);
    detail(" once %s", ended(fd));
    detail(" fopen %d", fopen(joined(fixture.outside, "two"), "a") != NULL);
    detail(" chmod %s", ended(chmod(path, 0600)));
    detail(" truncate %s", ended(truncate(path, 2)));
    tell_listed("dir");
    detail(" unlink %s", ended(unlink(path)));
    tell_listed("dir");
    free(path);
    return 0;
}

/* A directory by the name of a link to it: what is done to the link, and what to the directory. */
static long directory_through_a_link(void)
{
    char *link = strdup(joined(fixture.outside, "to-dir")), *slash = strdup(joined(fixture.outside, "to-dir/"));
    struct stat st;
    tell_listed(link);
    detail(" rmdir %s", ended(rmdir(link)));
    detail(" rmdir/ %s", ended(rmdir(slash)));
    detail(" chmod %s", ended(chmod(link, 0711)));
    detail_stat(stat("dir", &st), &st);
    detail(" below %s", ended(mkdir(joined(fixture.outside, "to-dir/new"), 0755)));
    detail(" rename below %s", ended(rename(joined(fixture.outside, "to-dir/inner"), "bare/inner")));
    detail(" rename/ %s", ended(rename(slash, "elsewhere")));
    detail(" rename %s", ended(rename(link, "elsewhere")));
    tell_listed("elsewhere");
    detail(" rmdir full %s", ended(rmdir("elsewhere/sub/..")));
    free(link);
    free(slash);
    return 0;
}

/* Mounts, in a mount namespace of a child's own, if it may have one. */
static long aliases_apart(long (*run)(void))
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
            _exit(errno == EPERM ? 111 : 112);
        errno = 0;
        long result = run();
        case_told("mounts", "seen there", result, errno, false);
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    errno = EPERM;
    return WEXITSTATUS(status) == 0 ? 0 : -1;
}

static void use_twin(const char *twin)
{
    char *made = strdup(joined(twin, "made"));
    tell_listed(twin);
    int fd = open(made, O_RDWR | O_CREAT | O_EXCL, 0644);
    detail(" made %s", ended(fd));
    detail(" wrote %zd", write(fd, "twin", 4));
    close(fd);
    detail(" once %s", ended(open("dir/made", O_WRONLY | O_CREAT | O_EXCL, 0644)));
    detail(" across %s", ended(rename(made, "dir/renamed")));
    detail(" within %s", ended(rename(made, joined(twin, "renamed"))));
    detail(" link %s", ended(link(joined(twin, "renamed"), joined(twin, "linked"))));
    detail(" unlink %s", ended(unlink(joined(twin, "inner"))));
    detail(" mkdir %s", ended(mkdir(joined(twin, "new"), 0755)));
    detail(" rmdir %s", ended(rmdir(joined(twin, "sub"))));
    detail(" itself %s", ended(rmdir(twin)));
    detail(" busy %s", ended(rename(twin, joined(twin, "../away"))));
    tell_listed("dir");
    tell_listed(twin);
    free(made);
}

static long bound_outside(void)
{
    char *twin = strdup(joined(fixture.outside, "twin"));
    make_directory(twin, 0755);
    if (mount("dir", twin, NULL, MS_BIND, NULL) < 0)
        return -1;
    use_twin(twin);
    detail(" below it %s", ended(rmdir("dir/new")));
    detail(" its own name %s", ended(rename("dir", "moved")));
    tell_listed(twin);
    int fd = open(joined(twin, "late"), O_WRONLY | O_CREAT | O_EXCL, 0600);
    detail(" after it %s", ended(fd));
    close(fd);
    tell_listed("moved");
    free(twin);
    return 0;
}

static long bound_inside(void)
{
    if (mount("dir", "bare", NULL, MS_BIND, NULL) < 0)
        return -1;
    use_twin("bare");
    detail(" covered %s", ended(umount("bare")));
    tell_listed("bare");
    return 0;
}

static long root_bound_outside(void)
{
    char *twin = strdup(joined(fixture.outside, "twin"));
    make_directory(twin, 0755);
    if (mount(fixture.root, twin, NULL, MS_BIND | MS_REC, NULL) < 0)
        return -1;
    tell_listed(twin);
    char *inner = strdup(joined(twin, "w/dir"));
    use_twin(inner);
    free(inner);
    free(twin);
    return 0;
}

/* Another file system in the place of a directory that has files. */
static long aliases_covered(void)
{
    struct stat st;
    make_file("bare/below", 0644, "below", 5);
    if (mount("none", "bare", "tmpfs", 0, "size=1m") < 0)
        return -1;
    detail(" covers %s", ended(lstat("bare/below", &st)));
    make_file("bare/above", 0644, "above", 5);
    tell_listed("bare");
    detail(" out %s", ended(rename("bare/above", "dir/above")));
    detail(" in %s", ended(rename("dir/inner", "bare/inner")));
    detail(" link %s", ended(link("dir/inner", "bare/inner")));
    detail(" exchange %s", ended(renameat2(AT_FDCWD, "bare/above", AT_FDCWD, "file", RENAME_EXCHANGE)));
    detail(" rmdir %s", ended(rmdir("bare")));
    detail(" rename %s", ended(rename("bare", "moved")));
    detail(" up %s", ended(open("bare/../dir/inner", O_RDONLY)));
    mkdir("bare/sub", 0755);
    make_file("bare/sub/file", 0600, "", 0);
    tell_listed("bare/sub");
    int fd = aliases_opened("bare/sub/file", O_RDONLY);
    tell_name(fd);
    close(fd);
    detail(" uncovered %s", ended(umount("bare")));
    tell_listed("bare");
    return 0;
}

static long by_bind_outside(void)
{
    return aliases_apart(bound_outside);
}

static long by_bind_inside(void)
{
    return aliases_apart(bound_inside);
}

static long by_bind_of_the_root(void)
{
    return aliases_apart(root_bound_outside);
}

static long by_nested_mount(void)
{
    return aliases_apart(aliases_covered);
}

static const struct scenario scenarios[] = {
    {"spelled", aliases_spelled},
    {"cut", aliases_cut},
    {"renamed", aliases_renamed},
    {"exchanged", aliases_exchanged},
    {"removed", aliases_removed},
    {"linked", aliases_linked},
    {"moved out and in", moved_out_and_in},
    {"own links", own_links},
    {"own program", own_program},
    {"made through a chain", made_through_a_chain},
    {"a directory through a link", directory_through_a_link},
    {"bound outside", by_bind_outside},
    {"bound inside", by_bind_inside},
    {"the root bound outside", by_bind_of_the_root},
    {"nested mount", by_nested_mount},
};

void part_aliases(void)
{
    CASES(reading, true);
    CASES(changing, false);
    SCENARIOS("aliases", scenarios);
}
