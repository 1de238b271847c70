/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "sight.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fixture.h"
#include "../old_libc.h"

/* FNV-1a: enough to tell contents apart, and the program stays without libraries. Where a file names the
 * place of the fixture, that counts as nothing. */
static uint64_t hash_of(const unsigned char *bytes, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325;
    size_t length = strlen(fixture.above);
    for (size_t i = 0; i < count; i++) {
        if (count - i >= length && memcmp(bytes + i, fixture.above, length) == 0)
            i += length - 1;
        else
            hash = (hash ^ bytes[i]) * 0x100000001b3;
    }
    return hash;
}

static void content_of(const char *path, char text[64])
{
    static unsigned char bytes[1 << 20];
    size_t count = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(text, 64, "unread: %s", strerrorname_np(errno));
        return;
    }
    for (ssize_t more; count < sizeof bytes && (more = read(fd, bytes + count, sizeof bytes - count)) > 0;)
        count += (size_t)more;
    close(fd);
    snprintf(text, 64, "%016llx", (unsigned long long)hash_of(bytes, count));
}

static void shown_name(const char *name, char text[1100])
{
    if (strlen(name) >= 230) {
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

static struct sight_entry *entry_add(struct sight *sight, const char *path, const struct stat *st)
{
    if (sight->count == SIGHT_MAX)
        give_up("too many files at", path);
    struct sight_entry *entry = &sight->entry[sight->count++];
    *entry = (struct sight_entry){.path = strdup(path), .mode = st->st_mode, .inode = st->st_ino};
    entry->modified = st->st_mtim;
    entry->changed = st->st_ctim;
    sight->has_fine_times |= st->st_ctim.tv_nsec != 0 && !S_ISDIR(st->st_mode); /* of directories shunt tells finer ones */
    if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode))
        entry->attributes = llistxattr(path, NULL, 0);
    return entry;
}

static void look_into(struct sight *, const char *path, const char *label);

static void line_set(struct sight_entry *entry, const char *label, const struct stat *st, const struct dirent *listed)
{
    char content[PATH_MAX + 8] = "";
    if (S_ISREG(st->st_mode))
        content_of(entry->path, content);
    ssize_t length = S_ISLNK(st->st_mode) ? readlink(entry->path, content, PATH_MAX) : 0;
    if (length > 0)
        content[length] = '\0';
    if (length > 1000)
        snprintf(content, sizeof content, "(%zd x %c)", length, content[0]);
    if (asprintf(&entry->line, "%s %c%04o links %u owner %u:%u size %lld %s%s%s", label, type_letter(st->st_mode),
                 st->st_mode & 07777, (unsigned)st->st_nlink, st->st_uid, st->st_gid,
                 S_ISDIR(st->st_mode) ? 0 : (long long)st->st_size, content,
                 !listed || listed->d_ino == st->st_ino ? "" : " d_ino is not st_ino",
                 !listed || listed->d_type == IFTODT(st->st_mode) ? "" : " d_type is wrong") < 0)
        give_up("no memory for", label);
}

/* `listed` is how its directory told of it, or NULL. */
static void look_at(struct sight *sight, const char *path, const char *label, const struct dirent *listed)
{
    struct stat st = {0};
    bool failed = lstat(path, &st) < 0;
    int error = errno;
    struct sight_entry *entry = entry_add(sight, path, &st);
    if (!failed)
        line_set(entry, label, &st, listed);
    else if (asprintf(&entry->line, "%s cannot be stat'ed: %s", label, strerrorname_np(error)) < 0)
        give_up("no memory for", label);
    if (S_ISDIR(st.st_mode))
        look_into(sight, path, label);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct dirent *)a)->d_name, ((const struct dirent *)b)->d_name);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static size_t sight_list(const char *path, struct dirent *found)
{
    size_t count = 0;
    DIR *stream = opendir(path);
    if (!stream)
        return 0;
    for (struct dirent *entry; count < SIGHT_MAX && (entry = readdir(stream));)
        if (!is_dots(entry->d_name))
            memcpy(&found[count++], entry, entry->d_reclen < sizeof *found ? entry->d_reclen : sizeof *found);
    closedir(stream);
    qsort(found, count, sizeof *found, by_name);
    return count;
}

static void look_into(struct sight *sight, const char *path, const char *label)
{
    struct dirent *found = malloc(SIGHT_MAX * sizeof *found);
    struct {
        char inner[2 * PATH_MAX], shown[1100], where[2 * PATH_MAX];
    } *text = malloc(sizeof *text); /* a thread's stack may be small */
    size_t count = sight_list(path, found);
    for (size_t i = 0; i < count; i++) {
        snprintf(text->inner, sizeof text->inner, "%s/%s", path, found[i].d_name);
        shown_name(found[i].d_name, text->shown);
        snprintf(text->where, sizeof text->where, "%s/%s", label, text->shown);
        look_at(sight, text->inner, text->where, &found[i]);
    }
    free(text);
    free(found);
}

void sight_take(struct sight *sight)
{
    sight->count = 0;
    sight->has_fine_times = false;
    look_at(sight, fixture.root, "ROOT", NULL);
    look_at(sight, fixture.outside, "OUT", NULL);
}

void sight_free(struct sight *sight)
{
    for (size_t i = 0; i < sight->count; i++) {
        free(sight->entry[i].path);
        free(sight->entry[i].line);
    }
    sight->count = 0;
}

static const struct sight_entry *entry_at(const struct sight *sight, const char *path)
{
    for (size_t i = 0; i < sight->count; i++)
        if (strcmp(sight->entry[i].path, path) == 0)
            return &sight->entry[i];
    return NULL;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_untouched(const struct sight_entry *a, const struct sight_entry *b)
{
    return a->inode == b->inode && same_time(&a->modified, &b->modified) && same_time(&a->changed, &b->changed);
}

enum sight_change sight_change(const struct sight *before, const struct sight_entry *entry)
{
    const struct sight_entry *old = entry_at(before, entry->path);
    if (!old || strcmp(old->line, entry->line) != 0)
        return SIGHT_DIFFERENT;
    const bool touched = before->has_fine_times && !is_untouched(old, entry);
    return touched || old->attributes != entry->attributes ? SIGHT_TOUCHED : SIGHT_SAME;
}

/* Where the tree cannot be looked into, neither look has an entry. */
bool sight_changed(const struct sight *before, const struct sight *after, const char *path)
{
    const struct sight_entry *first = entry_at(before, path), *second = entry_at(after, path);
    if (!first || !second)
        return first != second;
    return sight_change(before, second) != SIGHT_SAME;
}

bool sight_same_line(const struct sight *a, const struct sight *b, const char *path)
{
    const struct sight_entry *first = entry_at(a, path), *second = entry_at(b, path);
    return first && second && strcmp(first->line, second->line) == 0;
}

bool sight_same_lines(const struct sight *a, const struct sight *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = sight_same_line(a, b, a->entry[i].path);
    return same;
}

static bool tell_missing(const struct sight *from, const struct sight *in, char sign)
{
    bool any = false;
    for (size_t i = 0; i < from->count; i++)
        if (!sight_same_line(from, in, from->entry[i].path)) {
            printf("    %c %s\n", sign, from->entry[i].line);
            any = true;
        }
    return any;
}

bool sight_tell_difference(const struct sight *before, const struct sight *after)
{
    bool gone = tell_missing(before, after, '-');
    bool come = tell_missing(after, before, '+');
    return gone || come;
}
