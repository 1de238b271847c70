/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Listing: every way to read a directory, places in it, and what happens while it changes. Names are told
 * sorted; what depends on the order of a directory is told as whether it agrees with itself. */
#include "same.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"
#include "../old_libc.h"

#define MANY 700
#define NAMES_MAX 1024

struct listed {
    size_t count;
    char **name; /* a thread's stack may be small */
};

static void listed_add(struct listed *listed, const char *name)
{
    if (listed->name == NULL)
        listed->name = malloc(NAMES_MAX * sizeof *listed->name);
    if (listed->count < NAMES_MAX)
        listed->name[listed->count++] = strdup(name);
}

static void listed_clear(struct listed *listed)
{
    while (listed->count > 0)
        free(listed->name[--listed->count]);
    free(listed->name);
    listed->name = NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void listed_sort(struct listed *listed)
{
    if (listed->count > 0)
        qsort(listed->name, listed->count, sizeof *listed->name, by_text);
}

static void listed_tell(struct listed *listed)
{
    listed_sort(listed);
    for (size_t i = 0; i < listed->count; i++)
        detail_bytes(listed->name[i], strlen(listed->name[i]));
    listed_clear(listed);
}

static size_t listed_twice(struct listed *listed)
{
    size_t twice = 0;
    listed_sort(listed);
    for (size_t i = 1; i < listed->count; i++)
        twice += strcmp(listed->name[i - 1], listed->name[i]) == 0;
    return twice;
}

static void read_stream(DIR *stream, struct listed *listed)
{
    errno = 0;
    for (struct dirent *entry; (entry = readdir(stream));)
        listed_add(listed, entry->d_name);
    if (errno != 0)
        detail(" readdir says %s", strerrorname_np(errno));
}

static long directory_streamed(DIR *stream)
{
    struct listed listed = {0};
    if (!stream)
        return -1;
    detail(" fd-flags %d", fcntl(dirfd(stream), F_GETFD));
    read_stream(stream, &listed);
    listed_tell(&listed);
    return closedir(stream);
}

static long by_opendir(const struct place *place, long unused)
{
    return directory_streamed(opendir(place->path));
}

static long by_fdopendir(const struct place *place, long flags)
{
    int fd = openat(place->at, place->path, (int)flags | O_NONBLOCK);
    if (fd < 0)
        return -1;
    DIR *stream = fdopendir(fd);
    int error = errno;
    if (!stream)
        close(fd);
    errno = error;
    return directory_streamed(stream);
}

static long by_readdir64(const struct place *place, long unused)
{
    struct listed listed = {0};
    DIR *stream = opendir(place->path);
    if (!stream)
        return -1;
    for (struct dirent64 *entry; (entry = readdir64(stream));)
        listed_add(&listed, entry->d_name);
    listed_tell(&listed);
    return closedir(stream);
}

static long by_readdir_r(const struct place *place, long unused)
{
    struct listed listed = {0};
    struct dirent buffer, *entry;
    DIR *stream = opendir(place->path);
    if (!stream)
        return -1;
    while (readdir_r(stream, &buffer, &entry) == 0 && entry)
        listed_add(&listed, entry->d_name);
    listed_tell(&listed);
    return closedir(stream);
}

static int not_dots(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static long directory_scanned(int count, struct dirent **found)
{
    for (int i = 0; i < count; i++) {
        detail_bytes(found[i]->d_name, strlen(found[i]->d_name));
        free(found[i]);
    }
    if (count >= 0)
        free(found);
    return count;
}

static long by_scandir(const struct place *place, long filters)
{
    struct dirent **found;
    int count = scandir(place->path, &found, filters ? not_dots : NULL, alphasort);
    return directory_scanned(count, found);
}

static long by_scandirat(const struct place *place, long unused)
{
    struct dirent **found;
    int count = scandirat(place->at, place->path, &found, not_dots, alphasort);
    return directory_scanned(count, found);
}

static ssize_t read_block(int fd, void *block, size_t size, bool raw)
{
    return raw ? syscall(SYS_getdents64, fd, block, size) : getdents64(fd, block, size);
}

static long read_blocks(int fd, size_t size, bool raw, struct listed *listed)
{
    static char block[32768];
    ssize_t count;
    while ((count = read_block(fd, block, size, raw)) > 0)
        for (ssize_t at = 0; at < count;) {
            struct dirent64 *entry = (struct dirent64 *)(block + at);
            listed_add(listed, entry->d_name);
            at += entry->d_reclen;
        }
    return count;
}

static long by_getdents(const struct place *place, long raw)
{
    struct listed listed = {0};
    int fd = openat(place->at, place->path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return -1;
    long result = read_blocks(fd, 512, raw, &listed);
    int error = errno;
    if (result == 0 && lseek(fd, 0, SEEK_SET) == 0) {
        size_t first = listed.count;
        read_blocks(fd, 4096, raw, &listed);
        detail(" %zu then %zu", first, listed.count - first);
    }
    close(fd);
    listed_tell(&listed);
    errno = error;
    return result;
}

static const struct call calls[] = {
    {"opendir", CALL_NO_NULL, by_opendir, 0},
    {"fdopendir(RDONLY)", CALL_AT, by_fdopendir, O_RDONLY},
    {"fdopendir(PATH)", CALL_AT, by_fdopendir, O_PATH},
    {"readdir64", CALL_NO_NULL, by_readdir64, 0},
    {"readdir_r", CALL_NO_NULL, by_readdir_r, 0},
    {"scandir", CALL_NO_NULL, by_scandir, 0},
    {"scandir(filter)", CALL_NO_NULL, by_scandir, 1},
    {"scandirat", CALL_NO_NULL | CALL_AT, by_scandirat, 0},
    {"getdents64", CALL_AT, by_getdents, 0},
    {"syscall(getdents64)", CALL_AT, by_getdents, 1},
};

/* A directory of many files, some of which come before and some after it was listed. */
static const char *many_file(char path[64], unsigned number)
{
    sprintf(path, "bare/file-%04u", number);
    return path;
}

static void make_many(void)
{
    char path[64];
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
    for (unsigned i = 0; i < MANY; i++)
        make_file(many_file(path, i), 0644, "", 0);
}

static DIR *open_many(void)
{
    DIR *stream = opendir("bare");
    if (!stream)
        give_up("cannot list", "bare");
    return stream;
}

static void many_listed(void)
{
    struct listed listed = {0};
    DIR *stream = open_many();
    read_stream(stream, &listed);
    size_t first = listed.count;
    rewinddir(stream);
    read_stream(stream, &listed);
    closedir(stream);
    case_told("many", "listed twice", (long)first, 0, false);
    case_told("many", "seen again", (long)listed_twice(&listed), 0, false);
    listed_clear(&listed);
}

static void many_places(void)
{
    static long at[NAMES_MAX];
    struct listed listed = {0};
    long wrong = 0;
    struct dirent *entry;
    DIR *stream = open_many();
    do {
        at[listed.count] = telldir(stream);
        entry = readdir(stream);
        if (entry)
            listed_add(&listed, entry->d_name);
    } while (entry);
    for (size_t i = 0; i < listed.count; i++) {
        size_t which = i * 389 % listed.count;
        seekdir(stream, at[which]);
        entry = readdir(stream);
        wrong += !entry || strcmp(entry->d_name, listed.name[which]) != 0;
    }
    seekdir(stream, at[listed.count]);
    case_told("many", "read at the end", readdir(stream) != NULL, 0, false);
    closedir(stream);
    case_told("many", "wrong after seekdir", wrong, 0, false);
    listed_clear(&listed);
}

/* d_off of an entry is a place for lseek, and the end of what was read is where the descriptor is. */
static void many_offsets(void)
{
    char block[2048], next_block[2048];
    long wrong = 0, blocks = 0;
    int fd = open("bare", O_RDONLY | O_DIRECTORY);
    for (ssize_t count; (count = getdents64(fd, block, sizeof block)) > 0; blocks++) {
        struct dirent64 *first = (struct dirent64 *)block;
        if ((ssize_t)first->d_reclen == count)
            continue;
        off_t here = lseek(fd, 0, SEEK_CUR);
        struct dirent64 *second = (struct dirent64 *)(block + first->d_reclen);
        lseek(fd, first->d_off, SEEK_SET);
        wrong += getdents64(fd, next_block, sizeof next_block) <= 0 ||
                 strcmp(((struct dirent64 *)next_block)->d_name, second->d_name) != 0;
        lseek(fd, here, SEEK_SET);
    }
    close(fd);
    case_told("many", "blocks wrong after lseek", wrong, 0, false);
    case_told("many", "there are blocks", blocks > 1, 0, false);
}

static void small_buffer(void)
{
    static char block[32768];
    int fd = open("bare", O_RDONLY | O_DIRECTORY);
    errno = 0;
    long result = getdents64(fd, block, 8);
    case_told("getdents64", "8 bytes", result, errno, false);
    struct listed listed = {0};
    result = read_blocks(fd, sizeof block, false, &listed);
    case_told("getdents64", "then all", (long)listed.count, 0, false);
    listed_clear(&listed);
    close(fd);
    errno = 0;
    result = getdents64(fd, block, sizeof block);
    case_told("getdents64", "a closed descriptor", result, errno, false);
    fd = open("file", O_RDONLY);
    errno = 0;
    result = getdents64(fd, block, sizeof block);
    case_told("getdents64", "a file", result, errno, false);
    close(fd);
}

/* rm -r: every entry is removed while the directory is read; none may be missed. */
static void many_removed(void)
{
    long removed = 0;
    DIR *stream = open_many();
    for (struct dirent *entry; (entry = readdir(stream));)
        if (not_dots(entry))
            removed += unlinkat(dirfd(stream), entry->d_name, 0) == 0;
    closedir(stream);
    case_told("many", "removed while listed", removed, 0, false);
    errno = 0;
    long result = rmdir("bare");
    case_told("many", "rmdir", result, errno, false);
}

/* Entries that stay are listed once, whatever comes and goes meanwhile. */
static void many_while_changing(void)
{
    char path[64];
    struct listed listed = {0};
    DIR *stream = open_many();
    unsigned step = 0;
    for (struct dirent *entry; (entry = readdir(stream)); step++) {
        listed_add(&listed, entry->d_name);
        if (step % 16 == 0 && step / 16 < 40) {
            unlink(many_file(path, step / 16 * 16 + 3));
            sprintf(path, "bare/new-%u", step);
            make_file(path, 0600, "new", 3);
        }
    }
    closedir(stream);
    long stayed = 0;
    listed_twice(&listed);
    for (size_t i = 0; i < listed.count; i++) {
        unsigned number;
        if (sscanf(listed.name[i], "file-%u", &number) == 1)
            stayed += !(number % 16 == 3 && number < 640);
    }
    case_told("changing", "files that stayed", stayed, 0, false);
    case_told("changing", "listed twice", (long)listed_twice(&listed), 0, false);
    listed_clear(&listed);
}

/* What came and went shows after rewinddir. */
static void directory_rewound(void)
{
    struct listed listed = {0};
    DIR *stream = opendir("dir");
    read_stream(stream, &listed);
    listed_clear(&listed);
    make_file("dir/late", 0644, "", 0);
    unlink("dir/inner");
    mkdir("dir/latedir", 0755);
    rewinddir(stream);
    read_stream(stream, &listed);
    listed_tell(&listed);
    errno = 0;
    int fd = dirfd(stream);
    long result = closedir(stream);
    detail(" descriptor %s", fcntl(fd, F_GETFD) < 0 ? strerrorname_np(errno) : "open");
    case_told("rewinddir", "after changes", result, errno, true);
}

/* A directory that is gone while it is open. */
static void listed_after_rmdir(void)
{
    struct listed listed = {0};
    DIR *stream = opendir("bare");
    if (!stream || rmdir("bare") < 0)
        give_up("cannot remove", "bare");
    read_stream(stream, &listed);
    listed_clear(&listed);
    rewinddir(stream);
    read_stream(stream, &listed);
    listed_tell(&listed);
    errno = 0;
    int fd = openat(dirfd(stream), "new", O_WRONLY | O_CREAT, 0600);
    detail(" create says %s", fd < 0 ? strerrorname_np(errno) : "made");
    closedir(stream);
    case_told("opendir", "removed meanwhile", 0, 0, true);
}

/* One that is gone may still be synced and watched. */
static void used_after_rmdir(const char *name)
{
    char path[64];
    int fd = open(name, O_RDONLY | O_DIRECTORY), watches = inotify_init1(IN_CLOEXEC);
    if (fd < 0 || rmdir(name) < 0)
        give_up("cannot remove", name);
    sprintf(path, "/proc/self/fd/%d", fd);
    detail(" fsync %s", fsync(fd) < 0 ? strerrorname_np(errno) : "done");
    detail(", fdatasync %s", fdatasync(fd) < 0 ? strerrorname_np(errno) : "done");
    detail(", watch %s", inotify_add_watch(watches, path, IN_ATTRIB) < 0 ? strerrorname_np(errno) : "set");
    close(watches);
    close(fd);
    case_told("directory", "removed while open", 0, 0, true);
}

static void used_after_use_and_rmdir(void)
{
    if (mkdir("bare/used", 0755) < 0)
        give_up("cannot make", "bare/used");
    make_file("bare/used/file", 0600, "text", 4);
    unlink("bare/used/file");
    used_after_rmdir("bare/used");
}

/* A directory that is renamed while it is open stays itself. */
static void used_after_rename(void)
{
    struct listed listed = {0};
    int fd = open("dir", O_RDONLY | O_DIRECTORY);
    if (rename("dir", "bare/moved") < 0)
        give_up("cannot rename", "dir");
    int made = openat(fd, "late", O_WRONLY | O_CREAT | O_EXCL, 0600);
    detail(" create %s, unlink %d, stat %d", made < 0 ? strerrorname_np(errno) : "made", unlinkat(fd, "inner", 0),
           faccessat(AT_FDCWD, "bare/moved/late", F_OK, 0));
    close(made);
    read_blocks(fd, 4096, false, &listed);
    close(fd);
    listed_tell(&listed);
    case_told("directory", "renamed meanwhile", 0, 0, true);
}

static void enter_fresh(void)
{
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
    fixture_rebuild();
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
}

void part_directory(void)
{
    CASES(calls, true);
    make_many();
    many_listed();
    many_places();
    many_offsets();
    small_buffer();
    many_removed();
    enter_fresh();
    make_many();
    many_while_changing();
    enter_fresh();
    directory_rewound();
    enter_fresh();
    listed_after_rmdir();
    enter_fresh();
    used_after_rmdir("bare");
    enter_fresh();
    used_after_use_and_rmdir();
    enter_fresh();
    used_after_rename();
    enter_fresh();
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
}
