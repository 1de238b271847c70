/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "place.h"
#include "sight.h"
#include "../old_libc.h"

#define BATCH 64

struct fixture fixture;
static struct sight original, pristine; /* as it was made first; as it was made last */

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
    char(*found)[256] = malloc(BATCH * sizeof *found);
    size_t count = 0;
    DIR *stream = opendir(path);
    if (!stream || !found)
        give_up("cannot list", path);
    for (struct dirent *entry; count < BATCH && (entry = readdir(stream));)
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
    if (count == BATCH)
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

/* What the tree is made of, in the order of its making. A mode of 0555 or less is given when all is made. */
static const struct part_of_tree {
    char type;
    const char *name;
    mode_t mode;
    const char *text;
} inside[] =
    {
        {'d', "dir", 0755, NULL},
        {'d', "dir/sub", 0755, NULL},
        {'d', "bare", 0755, NULL},
        {'d', "ro", 0555, NULL},
        {'d', "dark", 0, NULL},
        {'f', "file", 0644, "the file\n"},
        {'h', "hard", 0, "file"},
        {'f', "empty", 0600, ""},
        {'f', "secret", 0, "unreadable\n"},
        {'f', "dir/inner", 0640, "inside a directory\n"},
        {'f', "ro/f", 0644, "in ro\n"},
        {'f', "dark/f", 0644, "in the dark\n"},
        {'f', name_255, 0644, "long\n"},
        {'f', "\xff\xfe \x80\n\t'\"", 0644, "odd\n"},
        {'p', "fifo", 0644, NULL},
        {'l', "lfile", 0, "file"},
        {'i', "labs", 0, "file"},
        {'l', "lchain", 0, "lfile"},
        {'l', "lup", 0, "../w/dir/inner"},
        {'l', "ldir", 0, "dir"},
        {'l', "lslash", 0, "dir/"},
        {'l', "ldangling", 0, "nowhere"},
        {'l', "ldangling-dir", 0, "dir/nowhere"},
        {'o', "lout", 0, "plain"},
        {'l', "loop", 0, "loop"},
        {'l', "loopa", 0, "loopb"},
        {'l', "loopb", 0, "loopa"},
},
  outside[] = {
      {'f', "plain", 0644, "outside\n"}, {'i', "into", 0, ".."},    {'i', "to-file", 0, "file"},
      {'i', "to-new", 0, "made"},        {'i', "to-dir", 0, "dir"}, {'i', "to-bare", 0, "bare"},
};

static void make_part(const char *directory, const struct part_of_tree *part)
{
    const char *path = joined(directory, part->name);
    switch (part->type) {
    case 'd':
        make_directory(path, 0755);
        break;
    case 'f':
        make_file(path, part->mode, part->text, strlen(part->text));
        break;
    case 'h':
        if (link(joined(directory, part->text), path) < 0)
            give_up("cannot link", path);
        break;
    case 'p':
        if (mkfifo(path, part->mode) < 0)
            give_up("cannot mkfifo", path);
        break;
    case 'i':
        make_link(strcmp(part->text, "..") == 0 ? fixture.root : joined(fixture.work, part->text), path);
        break;
    case 'o':
        make_link(joined(fixture.outside, part->text), path);
        break;
    default:
        make_link(part->text, path);
    }
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* What is in a directory that not everyone may write to or search. */
static bool is_guarded(const char *name)
{
    return strncmp(name, "ro/", 3) == 0 || strncmp(name, "dark/", 5) == 0;
}

static void make_missing(const char *directory, const struct part_of_tree *parts, size_t count)
{
    bool guarded_are_there = is_there(joined(directory, "ro"));
    for (size_t i = 0; i < count; i++)
        if (!(guarded_are_there && is_guarded(parts[i].name)) && !is_there(joined(directory, parts[i].name)))
            make_part(directory, &parts[i]);
    for (size_t i = 0; i < count && !guarded_are_there; i++)
        if (parts[i].type == 'd' && chmod(joined(directory, parts[i].name), parts[i].mode) < 0)
            give_up("cannot chmod", parts[i].name);
}

void fixture_see(void)
{
    sight_free(&pristine);
    sight_take(&pristine);
    if (original.count == 0)
        sight_take(&original);
}

/* Makes what is missing. */
static void fixture_build(void)
{
    if (!is_there(fixture.work))
        make_directory(fixture.work, 0755);
    if (!is_there(fixture.outside))
        make_directory(fixture.outside, 0755);
    make_missing(fixture.work, inside, sizeof inside / sizeof *inside);
    make_missing(fixture.outside, outside, sizeof outside / sizeof *outside);
    fixture_see();
}

void fixture_clear(void)
{
    struct stat st;
    if (stat(fixture.above, &st) == 0 && (st.st_mode & 07777) != 0755 && chmod(fixture.above, 0755) < 0)
        give_up("cannot chmod", fixture.above);
    if (stat(fixture.root, &st) == 0 && (st.st_mode & 07777) != 0755 && chmod(fixture.root, 0755) < 0)
        give_up("cannot chmod", fixture.root);
    remove_entries(fixture.root);
    remove_tree(fixture.outside);
}

void fixture_rebuild(void)
{
    fixture_clear();
    fixture_build();
}

/* The kernel's own, or what NFS shows the mode as. */
static bool is_always_there(const char *name)
{
    return strncmp(name, "security.", 9) == 0 || strcmp(name, "system.nfs4_acl") == 0;
}

/* A directory that is what it was, but was touched: nothing of that may last. */
static void strip_attributes(const char *path)
{
    char list[4096];
    ssize_t length = listxattr(path, list, sizeof list);
    for (char *name = list; length > 0 && name < list + length; name += strlen(name) + 1)
        if (!is_always_there(name) && removexattr(path, name) < 0 && errno != ENODATA)
            give_up("cannot remove the attributes of", path);
}

/* Can the tree be repaired piece by piece? What holds it, and what is guarded, is remade whole. */
static bool is_repairable(const struct sight *now)
{
    static const char *const whole[] = {"ro", "ro/f", "dark", "dark/f"};
    bool repairable = sight_same_line(&pristine, now, fixture.root) && sight_same_line(&pristine, now, fixture.work) &&
                      sight_same_line(&pristine, now, fixture.outside);
    for (size_t i = 0; repairable && i < sizeof whole / sizeof *whole; i++)
        repairable = !sight_changed(&pristine, now, joined(fixture.work, whole[i]));
    for (size_t i = 0; repairable && i < now->count; i++)
        repairable = !S_ISDIR(now->entry[i].mode) || (now->entry[i].mode & 0700) == 0700 ||
                     sight_change(&pristine, &now->entry[i]) == SIGHT_SAME;
    return repairable;
}

void fixture_repair(void)
{
    struct sight *now = calloc(1, sizeof *now);
    sight_take(now);
    bool repairable = is_repairable(now);
    for (size_t i = now->count; repairable && i-- > 0;) {
        enum sight_change change = sight_change(&pristine, &now->entry[i]);
        if (change == SIGHT_TOUCHED && S_ISDIR(now->entry[i].mode))
            strip_attributes(now->entry[i].path);
        else if (change != SIGHT_SAME)
            remove_tree(now->entry[i].path);
    }
    sight_free(now);
    free(now);
    if (repairable)
        fixture_build();
    if (!repairable || !sight_same_lines(&original, &pristine))
        fixture_rebuild();
}

bool fixture_tell_changes(void)
{
    struct sight now = {0};
    sight_take(&now);
    bool changed = sight_tell_difference(&original, &now);
    sight_free(&now);
    return changed;
}

void fixture_name(const char *root)
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
}

void fixture_start(void)
{
    fixture_build();
    for (size_t i = 0; i < pristine.count; i++)
        printf("fixture %s\n", pristine.entry[i].line);
}
