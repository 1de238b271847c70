/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* worker work DIRECTORY LOG NUMBER SEED OPERATIONS [LIMIT...]: makes, writes, renames, links and removes
 * files below the directories p and q of DIRECTORY until it is told to end (SIGTERM), has done so many
 * operations, or is killed. What must be true afterwards stands in LOG: a line before each operation and one
 * after it,
 *
 *     I SEQUENCE NS OPERATION TOKEN LENGTH A B
 *     D SEQUENCE NS ERRNO SIZE LINKS
 *
 * each written at once, so that a kill leaves both lines, the first, or none. Names with the worker's NUMBER
 * are its own: no other process touches them. The others all workers fight for. A LIMIT is what a file system
 * cannot do:
 *
 *     noflags           rename with flags
 *     nolinkedvictims   rename onto a name whose file has another name, which is unlinked first then
 *
 * worker look DIRECTORY: lists what is below it, a line each: TYPE INODE LINKS SIZE TOKEN IS_GOOD PATH.
 *
 * A file holds lines of 32 bytes, each with the token of its making and its own number, so that of every
 * prefix can be told whether it is one. Sees nothing but libc. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../cluster/linearizable/chance.h"

#define LINE 32                 /* bytes of a line of a file */
#define LENGTH_MAX (512 * LINE) /* of what is written at once */
#define OWN 5                   /* names of a worker's own, in each of p and q */
#define BELOW 2                 /* in its own directory */
#define FOUGHT_FOR 2            /* names that everybody replaces and removes, in each of p and q */
#define ROW 16                  /* names that are made, renamed and removed one after the other: some of them are granted */
#define PATH_SIZE 64

enum operation {
    CREATE = 'c',  /* O_EXCL */
    REWRITE = 'w', /* O_TRUNC */
    APPEND = 'a',
    UNLINK = 'u',
    RENAME = 'r',
    NOREPLACE = 'n',
    EXCHANGE = 'e',
    LINK = 'l',
    MKDIR = 'm',
    RMDIR = 'd',
    STAT = 's',
    SYNC = 'f', /* of a directory */
};

/* What is done how often; with own files if it is the letter of an operation. */
enum { MOVE_DIRECTORY = 'D', CONTEST = 'X', CONTEST_BY_LINK = 'L', REPLACE = 'R', REMOVE = 'U', IN_A_ROW = 'W' };
static const char deck[] = "ffccccccccwwaaauuuuurrrrrnnelllmdssssDXXXLLRRRRUUW";

static struct {
    unsigned number, contests;
    uint64_t random, sequence, token, length;
    bool has_flags, spares_linked;
    int log;
} run;

struct outcome {
    int error;
    uint64_t size, links;
};

static volatile sig_atomic_t is_told_to_end;

static void worker_end(int number)
{
    is_told_to_end = 1;
}

static void give_up(const char *what)
{
    perror(what);
    exit(2);
}

static unsigned worker_below(unsigned limit)
{
    return draw(&run.random, limit);
}

/* Lines `first` and on of the file of a token. */
static void worker_fill(char *to, uint64_t token, uint64_t first, size_t length)
{
    char line[2 * LINE];
    for (size_t at = 0; at < length; at += LINE) {
        snprintf(line, sizeof line, "%016" PRIx64 " %014" PRIu64 "\n", token, first + at / LINE);
        memcpy(to + at, line, LINE);
    }
}

static bool worker_put(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

/* In two pieces, so that a kill can come between them; synced now and then. */
static int put_lines(int fd, uint64_t token, uint64_t first)
{
    static char bytes[LENGTH_MAX];
    worker_fill(bytes, token, first, run.length);
    if (!worker_put(fd, bytes, LINE) || !worker_put(fd, bytes + LINE, run.length - LINE))
        return -1;
    return worker_below(8) == 0 ? fsync(fd) : 0;
}

static struct outcome worker_outcome(int result)
{
    return (struct outcome){.error = result < 0 ? errno : 0};
}

static struct outcome close_after(int fd, int result)
{
    struct stat stat;
    struct outcome o = worker_outcome(result < 0 ? result : fstat(fd, &stat));
    if (o.error == 0)
        o.size = (uint64_t)stat.st_size;
    return close(fd) < 0 && o.error == 0 ? worker_outcome(-1) : o;
}

static struct outcome worker_make(const char *path, int flags)
{
    int fd = open(path, O_CREAT | O_WRONLY | flags, 0644);
    return fd < 0 ? worker_outcome(fd) : close_after(fd, put_lines(fd, run.token, 0));
}

static struct outcome worker_append(const char *path)
{
    char line[LINE + 1] = {0};
    struct stat stat;
    int fd = open(path, O_RDWR | O_APPEND);
    if (fd < 0)
        return worker_outcome(fd);
    if (pread(fd, line, LINE, 0) != LINE || fstat(fd, &stat) < 0) {
        close(fd);
        return (struct outcome){.error = EILSEQ};
    }
    return close_after(fd, put_lines(fd, strtoull(line, NULL, 16), (uint64_t)stat.st_size / LINE));
}

static struct outcome look_at(const char *path)
{
    struct stat stat;
    struct outcome o = worker_outcome(lstat(path, &stat));
    if (o.error == 0 && S_ISREG(stat.st_mode)) {
        o.size = (uint64_t)stat.st_size;
        o.links = stat.st_nlink;
    }
    return o;
}

static struct outcome sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    struct outcome o = worker_outcome(fd < 0 ? fd : fsync(fd));
    if (fd >= 0)
        close(fd);
    return o;
}

static struct outcome carry_out(enum operation operation, const char *a, const char *b)
{
    switch (operation) {
    case CREATE:
        return worker_make(a, O_EXCL);
    case REWRITE:
        return worker_make(a, O_TRUNC);
    case APPEND:
        return worker_append(a);
    case UNLINK:
        return worker_outcome(unlink(a));
    case RENAME:
        return worker_outcome(rename(a, b));
    case NOREPLACE:
        return worker_outcome(renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_NOREPLACE));
    case EXCHANGE:
        return worker_outcome(renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE));
    case LINK:
        return worker_outcome(link(a, b));
    case MKDIR:
        return worker_outcome(mkdir(a, 0755));
    case RMDIR:
        return worker_outcome(rmdir(a));
    case SYNC:
        return sync_directory(a);
    default:
        return look_at(a);
    }
}

/* A line that is written in part would be one that was never written: it has no end. */
static void write_down(const char *line, int length)
{
    if (write(run.log, line, (size_t)length) != length)
        give_up("the log");
}

static int worker_operate(enum operation operation, const char *a, const char *b)
{
    char line[4 * PATH_SIZE];
    run.sequence++;
    run.token = (uint64_t)run.number << 32 | run.sequence;
    run.length = LINE * (2 + worker_below(8) * worker_below(8));
    write_down(line, snprintf(line, sizeof line, "I %" PRIu64 " %" PRIu64 " %c %" PRIx64 " %" PRIu64 " %s %s\n", run.sequence,
                              now(), operation, run.token, run.length, a, b));
    struct outcome o = carry_out(operation, a, b);
    write_down(line, snprintf(line, sizeof line, "D %" PRIu64 " %" PRIu64 " %d %" PRIu64 " %" PRIu64 "\n", run.sequence, now(),
                              o.error, o.size, o.links));
    return o.error;
}

static char worker_side(void)
{
    return "pq"[worker_below(2)];
}

static const char *own_directory(char *to)
{
    snprintf(to, PATH_SIZE, "%c/d%u", worker_side(), run.number);
    return to;
}

static const char *own_file(char *to)
{
    unsigned slot = worker_below(OWN + BELOW);
    if (slot < OWN)
        snprintf(to, PATH_SIZE, "%c/w%u-%u", worker_side(), run.number, slot);
    else
        snprintf(to, PATH_SIZE, "%c/d%u/w%u-%u", worker_side(), run.number, run.number, slot);
    return to;
}

static const char *fought_for(char *to)
{
    snprintf(to, PATH_SIZE, "%c/c%u", worker_side(), worker_below(FOUGHT_FOR));
    return to;
}

static const char *next_contest(char *to, char kind)
{
    snprintf(to, PATH_SIZE, "%c/%c%u", "pq"[run.contests / 2 % 2], kind, run.contests);
    run.contests++;
    return to;
}

static const char *worker_fresh(char *to)
{
    snprintf(to, PATH_SIZE, "%c/s%u", worker_side(), run.number);
    worker_operate(CREATE, to, "-");
    return to;
}

static void link_in_contest(void)
{
    char from[PATH_SIZE], to[PATH_SIZE];
    worker_fresh(from);
    worker_operate(LINK, from, next_contest(to, 'l'));
    worker_operate(UNLINK, from, "-");
}

static void worker_replace(void)
{
    char from[PATH_SIZE], to[PATH_SIZE];
    worker_fresh(from);
    worker_operate(RENAME, from, fought_for(to));
}

static void worker_one_of_row(enum operation operation, char side, char old, char new, unsigned i)
{
    char from[PATH_SIZE], to[PATH_SIZE] = "-";
    snprintf(from, sizeof from, "%c/%c%u-1%02u", side, old, run.number, i);
    if (operation == RENAME)
        snprintf(to, sizeof to, "%c/%c%u-1%02u", side, new, run.number, i);
    worker_operate(operation, from, to);
}

static void worker_each_of_row(enum operation operation, char side, char old, char new)
{
    for (unsigned i = 0; i < ROW && !is_told_to_end; i++)
        worker_one_of_row(operation, side, old, new, i);
}

/* Each made, and then renamed. */
static void worker_checkpoints(char side)
{
    for (unsigned i = 0; i < ROW && !is_told_to_end; i++) {
        worker_one_of_row(CREATE, side, 's', '-', i);
        worker_one_of_row(RENAME, side, 's', 'w', i);
    }
}

static void worker_row(void)
{
    const char side = worker_side();
    if (worker_below(2) == 0) {
        worker_checkpoints(side);
    } else {
        worker_each_of_row(CREATE, side, 's', '-');
        worker_each_of_row(RENAME, side, 's', 'w');
    }
    worker_each_of_row(UNLINK, side, 'w', '-');
}

static void move_own_directory(void)
{
    char from[PATH_SIZE], to[PATH_SIZE];
    own_directory(from);
    own_directory(to);
    worker_operate(RENAME, from, to);
}

static bool has_other_names(const char *path)
{
    struct stat stat;
    return lstat(path, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_nlink > 1;
}

static void operate_with_own(enum operation operation)
{
    char a[PATH_SIZE], b[PATH_SIZE] = "-";
    own_file(a);
    if (strchr("rnel", operation) != NULL)
        own_file(b);
    if ((operation == NOREPLACE || operation == EXCHANGE) && !run.has_flags)
        operation = RENAME;
    if (operation == RENAME && run.spares_linked && has_other_names(b))
        worker_operate(UNLINK, b, "-");
    worker_operate(operation, a, b);
}

static void do_something(char what)
{
    char path[PATH_SIZE];
    switch (what) {
    case MOVE_DIRECTORY:
        move_own_directory();
        break;
    case CONTEST:
        worker_operate(CREATE, next_contest(path, 'x'), "-");
        break;
    case CONTEST_BY_LINK:
        link_in_contest();
        break;
    case REPLACE:
        worker_replace();
        break;
    case REMOVE:
        worker_operate(UNLINK, fought_for(path), "-");
        break;
    case IN_A_ROW:
        worker_row();
        break;
    case SYNC:
        worker_operate(SYNC, worker_below(2) == 0 ? "p" : "q", "-");
        break;
    case MKDIR:
    case RMDIR:
        worker_operate((enum operation)what, own_directory(path), "-");
        break;
    default:
        operate_with_own((enum operation)what);
    }
}

static void worker_limit(char *words[])
{
    run.has_flags = true;
    for (; *words != NULL; words++) {
        run.has_flags &= strcmp(*words, "noflags") != 0;
        run.spares_linked |= strcmp(*words, "nolinkedvictims") == 0;
    }
}

static int worker_work(char *words[])
{
    struct sigaction action = {.sa_handler = worker_end};
    sigaction(SIGTERM, &action, NULL);
    run.log = open(words[1], O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    if (run.log < 0 || chdir(words[0]) != 0)
        give_up(words[1]);
    run.number = (unsigned)atoi(words[2]);
    run.random = mix(mix(strtoull(words[3], NULL, 10)) + run.number);
    worker_limit(words + 5);
    for (uint64_t most = strtoull(words[4], NULL, 10); run.sequence < most && !is_told_to_end;)
        do_something(deck[worker_below(sizeof deck - 1)]);
    return 0;
}

/* The token that a file begins with, 0 if it has none yet; and whether it holds what follows from that. */
static uint64_t read_file(const char *path, bool *is_good)
{
    static char found[LENGTH_MAX], expected[LENGTH_MAX];
    uint64_t token = 0;
    ssize_t got;
    int fd = open(path, O_RDONLY);
    *is_good = fd >= 0;
    for (uint64_t at = 0; fd >= 0 && (got = read(fd, found, sizeof found)) != 0; at += (uint64_t)got) {
        if (got < 0 || got % LINE != 0) { /* what is written at once is read at once */
            *is_good = false;
            break;
        }
        if (at == 0)
            sscanf(found, "%16" SCNx64, &token);
        worker_fill(expected, token, at / LINE, (size_t)got);
        *is_good &= memcmp(found, expected, (size_t)got) == 0;
    }
    if (fd >= 0)
        close(fd);
    return token;
}

static void look_below(const char *directory);

static void worker_tell(const char *path)
{
    struct stat stat;
    bool is_good = true;
    uint64_t token = 0;
    if (lstat(path, &stat) != 0)
        give_up(path);
    if (S_ISREG(stat.st_mode))
        token = read_file(path, &is_good);
    printf("%c %ju %ju %jd %" PRIx64 " %d %s\n",
           S_ISDIR(stat.st_mode)   ? 'd'
           : S_ISREG(stat.st_mode) ? 'f'
                                   : '?',
           (uintmax_t)stat.st_ino, (uintmax_t)stat.st_nlink, S_ISREG(stat.st_mode) ? (intmax_t)stat.st_size : 0, token, is_good,
           path);
    if (S_ISDIR(stat.st_mode))
        look_below(path);
}

static void look_below(const char *directory)
{
    char path[4096];
    DIR *stream = opendir(directory);
    if (stream == NULL)
        give_up(directory);
    errno = 0;
    for (struct dirent *entry; (entry = readdir(stream)) != NULL; errno = 0) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        worker_tell(path + (strncmp(path, "./", 2) == 0 ? 2 : 0));
    }
    if (errno != 0)
        give_up(directory);
    closedir(stream);
}

int main(int argc, char *argv[])
{
    if (argc >= 7 && strcmp(argv[1], "work") == 0)
        return worker_work(argv + 2);
    if (argc != 3 || strcmp(argv[1], "look") != 0 || chdir(argv[2]) != 0) {
        fputs("worker: see its source\n", stderr);
        return 2;
    }
    look_below(".");
    return fflush(stdout) == 0 ? 0 : 1;
}
