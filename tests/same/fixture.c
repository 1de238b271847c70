/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "place.h"

#define LINES_MAX 512

/* The tree as lines, in the order of names. */
struct lines {
    size_t count;
    char *line[LINES_MAX];
};

struct fixture fixture;
static struct lines pristine;

void give_up(const char *what, const char *path)
{
    int error = errno;
    printf("the fixture failed: %s %s: %s\n", what, path, strerrorname_np(error));
    fflush(stdout);
    _exit(1);
}

const char *joined(const char *directory, const char *name)
{
    static char buffers[8][2 * PATH_MAX];
    static unsigned turn;
    char *buffer = buffers[turn++ % 8];
    snprintf(buffer, sizeof buffers[0], "%s/%s", directory, name);
    return buffer;
}

void make_file(const char *path, mode_t mode, const void *content, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up("cannot create", path);
    if (write(fd, content, length) != (ssize_t)length)
        give_up("cannot write", path);
    if (fchmod(fd, mode) < 0)
        give_up("cannot chmod", path);
    close(fd);
}

void make_directory(const char *path, mode_t mode)
{
    if (mkdir(path, mode) < 0)
        give_up("cannot mkdir", path);
}

void make_link(const char *target, const char *path)
{
    if (symlink(target, path) < 0)
        give_up("cannot symlink", path);
}

static void remove_entries(const char *path)
{
    char (*found)[256] = malloc(LINES_MAX * sizeof *found);
    size_t count = 0;
    DIR *stream = opendir(path);
    if (!stream || !found)
        give_up("cannot list", path);
    for (struct dirent *entry; count < LINES_MAX && (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            strcpy(found[count++], entry->d_name);
    closedir(stream);
    char *inner = malloc(strlen(path) + 260);
    for (size_t i = 0; i < count; i++) {
        sprintf(inner, "%s/%s", path, found[i]);
        remove_tree(inner);
    }
    free(inner);
    free(found);
    if (count == LINES_MAX)
        remove_entries(path);
}

void remove_tree(const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        if (errno == ENOENT)
            return;
        give_up("cannot lstat", path);
    }
    if (!S_ISDIR(st.st_mode)) {
        if (unlink(path) < 0)
            give_up("cannot unlink", path);
        return;
    }
    if ((st.st_mode & 0700) != 0700 && chmod(path, 0700) < 0)
        give_up("cannot chmod", path);
    remove_entries(path);
    if (rmdir(path) < 0)
        give_up("cannot rmdir", path);
}

static void work_file(const char *name, mode_t mode, const char *content)
{
    make_file(joined(fixture.work, name), mode, content, strlen(content));
}

static void work_directory(const char *name)
{
    make_directory(joined(fixture.work, name), 0755);
}

static void work_link(const char *target, const char *name)
{
    make_link(target, joined(fixture.work, name));
}

static void build_links(void)
{
    work_link("file", "lfile");
    work_link(joined(fixture.work, "file"), "labs");
    work_link("lfile", "lchain");
    work_link("../w/dir/inner", "lup");
    work_link("dir", "ldir");
    work_link("dir/", "lslash");
    work_link("nowhere", "ldangling");
    work_link("dir/nowhere", "ldangling-dir");
    work_link(joined(fixture.outside, "plain"), "lout");
    work_link("loop", "loop");
    work_link("loopb", "loopa");
    work_link("loopa", "loopb");
}

static void build_outside(void)
{
    make_directory(fixture.outside, 0755);
    make_file(joined(fixture.outside, "plain"), 0644, "outside\n", 8);
    make_link(fixture.root, joined(fixture.outside, "into"));
    make_link(joined(fixture.work, "file"), joined(fixture.outside, "to-file"));
    make_link(joined(fixture.work, "made"), joined(fixture.outside, "to-new"));
    make_link(joined(fixture.work, "dir"), joined(fixture.outside, "to-dir"));
    make_link(joined(fixture.work, "bare"), joined(fixture.outside, "to-bare"));
}

void fixture_build(void)
{
    make_directory(fixture.work, 0755);
    work_directory("dir");
    work_directory("dir/sub");
    work_directory("bare");
    work_directory("ro");
    work_directory("dark");
    work_file("file", 0644, "the file\n");
    work_file("empty", 0600, "");
    work_file("secret", 0, "unreadable\n");
    work_file("dir/inner", 0640, "inside a directory\n");
    work_file("ro/f", 0644, "in ro\n");
    work_file("dark/f", 0644, "in the dark\n");
    work_file(name_255, 0644, "long\n");
    work_file("\xff\xfe \x80\n\t'\"", 0644, "odd\n");
    if (link(joined(fixture.work, "file"), joined(fixture.work, "hard")) < 0)
        give_up("cannot link", "hard");
    if (mkfifo(joined(fixture.work, "fifo"), 0644) < 0)
        give_up("cannot mkfifo", "fifo");
    build_links();
    build_outside();
    if (chmod(joined(fixture.work, "ro"), 0555) < 0 || chmod(joined(fixture.work, "dark"), 0) < 0)
        give_up("cannot chmod", "ro");
}

void fixture_clear(void)
{
    struct stat st;
    if (stat(fixture.root, &st) == 0 && (st.st_mode & 07777) != 0755 && chmod(fixture.root, 0755) < 0)
        give_up("cannot chmod", fixture.root);
    remove_tree(fixture.work);
    remove_tree(fixture.outside);
}

static void line_add(struct lines *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line_add(struct lines *lines, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (lines->count == LINES_MAX || vasprintf(&lines->line[lines->count++], format, arguments) < 0)
        give_up("too many lines at", format);
    va_end(arguments);
}

/* FNV-1a: enough to tell contents apart, and the program stays without libraries. */
static void content_of(const char *path, char text[64])
{
    uint64_t hash = 0xcbf29ce484222325;
    unsigned char block[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(text, 64, "unread: %s", strerrorname_np(errno));
        return;
    }
    for (ssize_t count; (count = read(fd, block, sizeof block)) > 0;)
        for (ssize_t i = 0; i < count; i++)
            hash = (hash ^ block[i]) * 0x100000001b3;
    close(fd);
    snprintf(text, 64, "%016llx", (unsigned long long)hash);
}

static void shown_name(const char *name, char text[1100])
{
    if (strlen(name) >= 255) {
        sprintf(text, "(%zu x %c)", strlen(name), name[0]);
        return;
    }
    for (; *name; name++)
        text += sprintf(text, *name > ' ' && *name < 127 ? "%c" : "\\%02x", (unsigned char)*name);
    *text = '\0';
}

static char type_letter(mode_t mode)
{
    static const char letters[] = "?pc?d?b?-?l?s???";
    return letters[(mode & S_IFMT) >> 12];
}

static void look_into(struct lines *, const char *path, const char *label);

static void look_at(struct lines *lines, const char *directory, const char *label, const struct dirent *entry)
{
    char shown[1200], where[2400], content[PATH_MAX + 8] = "";
    const char *path = joined(directory, entry->d_name);
    struct stat st;
    shown_name(entry->d_name, shown);
    snprintf(where, sizeof where, "%s/%s", label, shown);
    if (lstat(path, &st) < 0) {
        line_add(lines, "%s cannot be stat'ed: %s", where, strerrorname_np(errno));
        return;
    }
    if (S_ISREG(st.st_mode))
        content_of(path, content);
    ssize_t length = S_ISLNK(st.st_mode) ? readlink(path, content, PATH_MAX) : 0;
    if (length > 0)
        content[length] = '\0';
    line_add(lines, "%s %c%04o links %u owner %u:%u size %lld %s%s%s", where, type_letter(st.st_mode),
             st.st_mode & 07777, (unsigned)st.st_nlink, st.st_uid, st.st_gid,
             S_ISDIR(st.st_mode) ? 0 : (long long)st.st_size, content,
             entry->d_ino == st.st_ino ? "" : " d_ino is not st_ino",
             entry->d_type == IFTODT(st.st_mode) ? "" : " d_type is wrong");
    if (S_ISDIR(st.st_mode)) {
        char *inner = strdup(path);
        look_into(lines, inner, where);
        free(inner);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct dirent *)a)->d_name, ((const struct dirent *)b)->d_name);
}

static void look_into(struct lines *lines, const char *path, const char *label)
{
    size_t count = 0;
    struct dirent *found = malloc(LINES_MAX * sizeof *found);
    DIR *stream = opendir(path);
    if (!stream)
        line_add(lines, "%s cannot be listed: %s", label, strerrorname_np(errno));
    for (struct dirent *entry; stream && count < LINES_MAX && (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            memcpy(&found[count++], entry, entry->d_reclen < sizeof *found ? entry->d_reclen : sizeof *found);
    if (stream)
        closedir(stream);
    qsort(found, count, sizeof *found, by_name);
    for (size_t i = 0; i < count; i++)
        look_at(lines, path, label, &found[i]);
    free(found);
}

static void look(struct lines *lines)
{
    struct stat st;
    if (stat(fixture.root, &st) == 0)
        line_add(lines, "ROOT %c%04o links %u owner %u:%u", type_letter(st.st_mode), st.st_mode & 07777,
                 (unsigned)st.st_nlink, st.st_uid, st.st_gid);
    look_into(lines, fixture.root, "ROOT");
    look_into(lines, fixture.outside, "OUT");
}

static void lines_free(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->line[i]);
    lines->count = 0;
}

static bool lines_have(const struct lines *lines, const char *line)
{
    for (size_t i = 0; i < lines->count; i++)
        if (strcmp(lines->line[i], line) == 0)
            return true;
    return false;
}

static bool tell_missing(const struct lines *from, const struct lines *in, char sign)
{
    bool any = false;
    for (size_t i = 0; i < from->count; i++)
        if (!lines_have(in, from->line[i])) {
            printf("    %c %s\n", sign, from->line[i]);
            any = true;
        }
    return any;
}

bool fixture_tell_changes(void)
{
    struct lines now = {0};
    look(&now);
    bool gone = tell_missing(&pristine, &now, '-');
    bool come = tell_missing(&now, &pristine, '+');
    lines_free(&now);
    return gone || come;
}

void fixture_rebuild(void)
{
    fixture_clear();
    fixture_build();
}

void fixture_start(const char *root)
{
    memset(name_255, 'n', 255);
    memset(name_255_new, 'N', 255);
    memset(name_256, 'm', 256);
    snprintf(name_256_below, sizeof name_256_below, "%s/x", name_256);
    snprintf(fixture.root, sizeof fixture.root, "%s", root);
    snprintf(fixture.above, sizeof fixture.above, "%s", root);
    *strrchr(fixture.above, '/') = '\0';
    fixture.root_name = strrchr(root, '/') + 1;
    snprintf(fixture.work, sizeof fixture.work, "%s", joined(root, "w"));
    snprintf(fixture.outside, sizeof fixture.outside, "%s", joined(fixture.above, "out"));
    fixture_build();
    look(&pristine);
    for (size_t i = 0; i < pristine.count; i++)
        printf("fixture %s\n", pristine.line[i]);
}
