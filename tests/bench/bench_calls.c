/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* bench_calls COLD HOT TRUNK MANY [PART]: times file calls of this process and prints `CASE<tab>NANOSECONDS`
 * a line. Of cases that cost little more than libc's own function, that is timed by turns with what the
 * program was linked with (which a preloaded library may have replaced), and is a third column. A fourth is libc's own
 * function where the directory of each name that is changed is looked at (statx) first.
 *
 * COLD is a directory that is in no root, HOT and TRUNK are directories of a root (or, for the native run,
 * are not), MANY is a directory of many names. Knows nothing of shunt. Of each case the median of several
 * batches is printed; with PART they are so many times smaller. */

#include <dirent.h>
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 15
#define READS 20000 /* calls in a batch that change nothing */
#define CHANGES 1000
#define STARTS 40
#define LISTINGS 1
#define PAIRS 301 /* for small differences */
#define PAIRED 300

extern char **environ;

/* What the cases call that are measured in pairs, through the shim and not. */
struct functions {
    int (*stat)(const char *, struct stat *);
    int (*open)(const char *, int, ...);
    int (*unlink)(const char *);
    int (*rename)(const char *, const char *);
    DIR *(*opendir)(const char *);
    struct dirent *(*readdir)(DIR *);
    int (*closedir)(DIR *);
    int (*statx)(int, const char *, int, unsigned, struct statx *);
};
static struct functions linked = {stat, open, unlink, rename, opendir, readdir, closedir, statx}, libc, asking,
                        *functions = &linked;

static char path[PATH_MAX], moved[PATH_MAX], directory_of_both[PATH_MAX];
static const char *hot, *many;
static unsigned serial; /* of the names that are made */
static unsigned part = 1;

static void calls_must(bool is_so, const char *what)
{
    if (!is_so)
        err(1, "%s %s", what, path);
}

static void calls_name(char to[PATH_MAX], const char *directory, const char *prefix, unsigned number)
{
    snprintf(to, PATH_MAX, "%s/%s%u", directory, prefix, number);
}

/* The least that it takes to learn which directory a name is in. */
static void calls_ask(void)
{
    struct statx stat;
    calls_must(libc.statx(AT_FDCWD, directory_of_both, AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &stat) == 0, "statx");
}

static int open_asking(const char *name, int flags, ...)
{
    if (flags & O_CREAT)
        calls_ask();
    return libc.open(name, flags, 0644);
}

static int unlink_asking(const char *name)
{
    calls_ask();
    return libc.unlink(name);
}

static int rename_asking(const char *name, const char *to)
{
    calls_ask();
    return libc.rename(name, to);
}

static void stat_path(unsigned number)
{
    struct stat stat_of;
    calls_must(functions->stat(path, &stat_of) == 0, "stat");
}

static void stat_absent(unsigned number)
{
    struct stat stat_of;
    calls_must(functions->stat(path, &stat_of) == -1 && errno == ENOENT, "stat");
}

static void open_path(unsigned number)
{
    int fd = functions->open(path, O_RDONLY | O_CLOEXEC);
    calls_must(fd >= 0, "open");
    close(fd);
}

static void open_absent(unsigned number)
{
    calls_must(functions->open(path, O_RDONLY | O_CLOEXEC) == -1 && errno == ENOENT, "open");
}

static void make_and_remove(unsigned number)
{
    int fd = functions->open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    calls_must(fd >= 0, "create");
    close(fd);
    calls_must(functions->unlink(path) == 0, "unlink");
}

static void rename_to_and_fro(unsigned number)
{
    calls_must(functions->rename(path, moved) == 0 && functions->rename(moved, path) == 0, "rename");
}

static void list_few(unsigned number)
{
    DIR *directory = functions->opendir(path);
    calls_must(directory != NULL, "opendir");
    while (functions->readdir(directory) != NULL)
        continue;
    functions->closedir(directory);
}

static void calls_create(unsigned number)
{
    calls_name(path, hot, "new-", serial + number);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    calls_must(fd >= 0, "create");
    close(fd);
}

static void rename_new(unsigned number)
{
    calls_name(path, hot, "new-", serial + number);
    calls_name(moved, hot, "moved-", serial + number);
    calls_must(rename(path, moved) == 0, "rename");
}

static void unlink_moved(unsigned number)
{
    calls_name(path, hot, "moved-", serial + number);
    calls_must(unlink(path) == 0, "unlink");
}

static void calls_list(unsigned number)
{
    DIR *directory = opendir(many);
    unsigned names = 0;
    calls_must(directory != NULL, "opendir");
    while (readdir(directory) != NULL)
        names++;
    calls_must(names > 2, "readdir");
    closedir(directory);
}

static void start_program(const char *program, const char *word)
{
    char *words[] = {(char *)program, "-e", (char *)word, NULL};
    pid_t child;
    int status;
    calls_must(posix_spawn(&child, program, NULL, NULL, words, environ) == 0, "posix_spawn");
    calls_must(waitpid(child, &status, 0) == child && status == 0, "waitpid");
}

static void start_true(unsigned number)
{
    start_program("/bin/true", NULL);
}

static void start_test(unsigned number)
{
    start_program("/usr/bin/test", path);
}

static uint64_t calls_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static uint64_t calls_batch(void (*call)(unsigned), unsigned count)
{
    uint64_t began = calls_now();
    for (unsigned i = 0; i < count; i++)
        call(i);
    return calls_now() - began;
}

static void find_libc(void)
{
    void *handle = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_NOW);
    if (handle == NULL)
        errx(1, "libc.so.6 is not loaded");
    *(void **)&libc.stat = dlsym(handle, "stat");
    *(void **)&libc.open = dlsym(handle, "open");
    *(void **)&libc.unlink = dlsym(handle, "unlink");
    *(void **)&libc.rename = dlsym(handle, "rename");
    *(void **)&libc.opendir = dlsym(handle, "opendir");
    *(void **)&libc.readdir = dlsym(handle, "readdir");
    *(void **)&libc.closedir = dlsym(handle, "closedir");
    *(void **)&libc.statx = dlsym(handle, "statx");
    for (size_t i = 0; i < sizeof libc / sizeof(void *); i++)
        if (((void **)&libc)[i] == NULL)
            errx(1, "libc.so.6 does not have all of them");
    asking = libc;
    asking.open = open_asking;
    asking.unlink = unlink_asking;
    asking.rename = rename_asking;
}

static int calls_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double calls_median(double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, calls_compare);
    return samples[count / 2];
}

static void print_median(const char *what, double samples[BATCHES])
{
    printf("%s\t%.1f\n", what, calls_median(samples, BATCHES));
}

static void calls_measure(const char *what, void (*call)(unsigned), unsigned count)
{
    double samples[BATCHES];
    count = (count + part - 1) / part;
    call(0);
    for (int i = 0; i < BATCHES; i++)
        samples[i] = (double)calls_batch(call, count) / count;
    print_median(what, samples);
}

/* The differences are the medians of those of neighbours in time. */
static void measure_pairs(const char *what, void (*call)(unsigned))
{
    double native[PAIRS], added[PAIRS], asked[PAIRS];
    const unsigned paired = (PAIRED + part - 1) / part;
    for (int i = 0; i < PAIRS; i++) {
        functions = &libc;
        native[i] = (double)calls_batch(call, paired) / paired;
        functions = &linked;
        added[i] = (double)calls_batch(call, paired) / paired - native[i];
        functions = &asking;
        asked[i] = (double)calls_batch(call, paired) / paired - native[i];
    }
    functions = &linked;
    double base = calls_median(native, PAIRS);
    printf("%s\t%.1f\t%.1f\t%.1f\n", what, base + calls_median(added, PAIRS), base, base + calls_median(asked, PAIRS));
}

/* A file is made, renamed and removed; the three are timed apart. */
static void measure_changes(void)
{
    const unsigned changes = (CHANGES + part - 1) / part;
    double samples[3][BATCHES];
    void (*const calls[])(unsigned) = {calls_create, rename_new, unlink_moved};
    for (int i = 0; i < BATCHES; i++, serial += changes)
        for (int call = 0; call < 3; call++)
            samples[call][i] = (double)calls_batch(calls[call], changes) / changes;
    print_median("create and close", samples[0]);
    print_median("rename", samples[1]);
    print_median("unlink", samples[2]);
}

static void calls_at(const char *directory, const char *file)
{
    snprintf(path, sizeof path, "%s%s%s", directory, *directory != '\0' ? "/" : "", file);
}

static void measure_cold(const char *cold)
{
    snprintf(directory_of_both, sizeof directory_of_both, "%s/.", cold);
    calls_at(cold, "known");
    measure_pairs("outside, absolute: stat", stat_path);
    measure_pairs("outside, absolute: open and close", open_path);
    calls_at(cold, "absent");
    measure_pairs("outside, absolute: open, ENOENT", open_absent);
    calls_at(cold, "new");
    measure_pairs("outside, absolute: create, close and unlink", make_and_remove);
    calls_at(cold, "known");
    snprintf(moved, sizeof moved, "%s/moved", cold);
    measure_pairs("outside, absolute: two renames", rename_to_and_fro);
    calls_at(cold, ".");
    measure_pairs("outside, absolute: list three names", list_few);
    calls_must(chdir(cold) == 0, "chdir");
    calls_at("", "known");
    measure_pairs("outside, relative: stat", stat_path);
    measure_pairs("outside, relative: open and close", open_path);
    calls_at("", "absent");
    measure_pairs("outside, relative: open, ENOENT", open_absent);
    calls_must(chdir("/") == 0, "chdir");
}

static void measure_known(const char *directory, const char *where)
{
    char what[64];
    calls_at(directory, "known");
    snprintf(what, sizeof what, "%s: stat", where);
    calls_measure(what, stat_path, READS);
    snprintf(what, sizeof what, "%s: open and close", where);
    calls_measure(what, open_path, READS);
    calls_at(directory, "absent");
    snprintf(what, sizeof what, "%s: stat, ENOENT", where);
    calls_measure(what, stat_absent, READS);
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 6)
        errx(2, "usage: bench_calls COLD HOT TRUNK MANY [PART]");
    if (argc == 6 && (part = (unsigned)atoi(argv[5])) == 0)
        errx(2, "a part of 0");
    find_libc();
    hot = argv[2];
    many = argv[4];
    measure_cold(argv[1]);
    measure_known(argv[3], "trunk");
    measure_known(hot, "branch");
    measure_changes();
    calls_measure("list a directory of many names", calls_list, LISTINGS);
    calls_measure("start of /bin/true", start_true, STARTS);
    calls_at(hot, "known");
    calls_measure("start of a test that a file is there", start_test, STARTS);
    return 0;
}
