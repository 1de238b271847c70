/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* checkpoint [--steps N] [--bytes N] [--keep N] [DIRECTORY]
 *
 * The input and output of a simulation without the simulation. In every step each rank writes one file,
 * ckpt.STEP.RANK, into one directory that all ranks share: under a temporary name, fsync, rename. Rank 0 then
 * replaces `manifest`, which names every file of the steps that are kept with its checksum, and points the
 * symbolic link `latest` at its own newest file; older steps are removed. At the end each rank reads its
 * neighbour's files back through the manifest, and rank 0 checks that the directory holds these names and no
 * other.
 *
 * What is written depends on the options alone, so two runs can be compared with diff -r. The exit status is
 * 0 only if every rank found what it expected. */

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SIZE 64

struct run {
    int rank;
    int ranks;
    int steps;
    int keep;
    size_t bytes;
    const char *directory;
    unsigned char *state; /* this rank's state, `bytes` of it */
    uint64_t *checksums;  /* rank 0: of the steps that are kept, [step % keep][rank] */
    int mismatches;
};

static _Noreturn void checkpoint_fail(const struct run *run, const char *doing, const char *name)
{
    fprintf(stderr, "checkpoint: rank %d: cannot %s %s/%s: %s\n", run->rank, doing, run->directory, name, strerror(errno));
    MPI_Abort(MPI_COMM_WORLD, 2);
    abort();
}

__attribute__((format(printf, 2, 3))) static void mismatch(struct run *run, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "checkpoint: rank %d: ", run->rank);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    run->mismatches++;
}

static void path_of(const struct run *run, char path[PATH_MAX], const char *name)
{
    int length = snprintf(path, PATH_MAX, "%s/%s", run->directory, name);

    if (length >= 0 && length < PATH_MAX)
        return;
    errno = ENAMETOOLONG;
    checkpoint_fail(run, "name", name);
}

static void file_name(char name[NAME_SIZE], int step, int rank)
{
    snprintf(name, NAME_SIZE, "ckpt.%06d.%05d", step, rank);
}

static int oldest_kept(const struct run *run, int newest)
{
    return newest - run->keep + 1 > 0 ? newest - run->keep + 1 : 0;
}

/* The state of a rank after a step: xorshift64, seeded with both. */
static void checkpoint_compute(unsigned char *state, size_t bytes, int step, int rank)
{
    uint64_t x = 0x9e3779b97f4a7c15u * ((uint64_t)step + 1) ^ 0xbf58476d1ce4e5b9u * ((uint64_t)rank + 1);

    for (size_t i = 0; i < bytes; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state[i] = (unsigned char)(x >> 32);
    }
}

/* FNV-1a. */
static uint64_t checkpoint_checksum(const unsigned char *data, size_t bytes)
{
    uint64_t sum = 0xcbf29ce484222325u;

    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ data[i]) * 0x100000001b3u;
    return sum;
}

/* A file under a temporary name, and the same file, complete and on disk, under its own. */
static FILE *begin_file(const struct run *run, const char *temporary)
{
    char path[PATH_MAX];
    FILE *file;

    path_of(run, path, temporary);
    file = fopen(path, "w");
    if (!file)
        checkpoint_fail(run, "create", temporary);
    return file;
}

static void finish_file(const struct run *run, FILE *file, const char *temporary, const char *name)
{
    char from[PATH_MAX], to[PATH_MAX];

    if (fflush(file) != 0 || fsync(fileno(file)) != 0 || fclose(file) != 0)
        checkpoint_fail(run, "write", temporary);
    path_of(run, from, temporary);
    path_of(run, to, name);
    if (rename(from, to) != 0)
        checkpoint_fail(run, "rename to", name);
}

static void write_state(const struct run *run, int step)
{
    char name[NAME_SIZE], temporary[NAME_SIZE + 8];
    FILE *file;

    file_name(name, step, run->rank);
    snprintf(temporary, sizeof temporary, "%s.tmp", name);
    file = begin_file(run, temporary);
    if (fwrite(run->state, 1, run->bytes, file) != run->bytes)
        checkpoint_fail(run, "write", temporary);
    finish_file(run, file, temporary, name);
}

static void write_manifest(const struct run *run, int newest)
{
    FILE *file = begin_file(run, "manifest.tmp");
    char name[NAME_SIZE];

    fprintf(file, "ranks %d newest %d bytes %zu\n", run->ranks, newest, run->bytes);
    for (int step = oldest_kept(run, newest); step <= newest; step++) {
        for (int rank = 0; rank < run->ranks; rank++) {
            file_name(name, step, rank);
            fprintf(file, "%016" PRIx64 " %s\n", run->checksums[(size_t)(step % run->keep) * (size_t)run->ranks + (size_t)rank],
                    name);
        }
    }
    finish_file(run, file, "manifest.tmp", "manifest");
}

static void point_latest(const struct run *run, int newest)
{
    char name[NAME_SIZE], from[PATH_MAX], to[PATH_MAX];

    file_name(name, newest, 0);
    path_of(run, from, "latest.tmp");
    path_of(run, to, "latest");
    if (symlink(name, from) != 0)
        checkpoint_fail(run, "make symbolic link", "latest.tmp");
    if (rename(from, to) != 0)
        checkpoint_fail(run, "rename to", "latest");
}

static void remove_step(const struct run *run, int step)
{
    char name[NAME_SIZE], path[PATH_MAX];

    file_name(name, step, run->rank);
    path_of(run, path, name);
    if (unlink(path) != 0)
        checkpoint_fail(run, "remove", name);
}

static void run_step(struct run *run, int step)
{
    uint64_t sum, *sums = NULL;

    if (run->rank == 0)
        sums = run->checksums + (size_t)(step % run->keep) * (size_t)run->ranks;
    checkpoint_compute(run->state, run->bytes, step, run->rank);
    sum = checkpoint_checksum(run->state, run->bytes);
    write_state(run, step);
    /* A rank that sends its checksum has its file in place; so the manifest never names a file that is not there. */
    MPI_Gather(&sum, 1, MPI_UINT64_T, sums, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (run->rank == 0) {
        write_manifest(run, step);
        point_latest(run, step);
    }
    /* An old step goes only when no manifest names it any more. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (step >= run->keep)
        remove_step(run, step - run->keep);
}

/* Reads a whole file of run->bytes and compares it with what its rank must have written. */
static void verify_file(struct run *run, const char *name, int step, int rank, uint64_t expected)
{
    unsigned char *found = malloc(run->bytes + 1);
    char path[PATH_MAX];
    size_t length;
    FILE *file;

    path_of(run, path, name);
    file = fopen(path, "r");
    if (!file || !found)
        checkpoint_fail(run, "open", name);
    length = fread(found, 1, run->bytes + 1, file);
    if (ferror(file) || fclose(file) != 0)
        checkpoint_fail(run, "read", name);
    checkpoint_compute(run->state, run->bytes, step, rank);
    if (length != run->bytes)
        mismatch(run, "%s has not %zu bytes", path, run->bytes);
    else if (checkpoint_checksum(found, length) != expected)
        mismatch(run, "%s does not have the checksum that the manifest names", path);
    else if (memcmp(found, run->state, length) != 0)
        mismatch(run, "%s does not hold what rank %d wrote", path, rank);
    free(found);
}

/* Every file of the neighbour that the manifest names. */
static void verify_neighbour(struct run *run)
{
    int neighbour = (run->rank + 1) % run->ranks, seen = 0, step, rank, ranks, newest;
    char path[PATH_MAX], name[NAME_SIZE];
    uint64_t expected;
    size_t bytes;
    FILE *file;

    path_of(run, path, "manifest");
    file = fopen(path, "r");
    if (!file)
        checkpoint_fail(run, "open", "manifest");
    if (fscanf(file, "ranks %d newest %d bytes %zu", &ranks, &newest, &bytes) != 3 || ranks != run->ranks ||
        newest != run->steps - 1 || bytes != run->bytes)
        mismatch(run, "%s is not of this run", path);
    while (fscanf(file, "%" SCNx64 " %63s", &expected, name) == 2) {
        if (sscanf(name, "ckpt.%d.%d", &step, &rank) != 2)
            mismatch(run, "%s names %s", path, name);
        else if (rank == neighbour)
            verify_file(run, name, step, rank, expected), seen++;
    }
    fclose(file);
    if (seen != run->steps - oldest_kept(run, run->steps - 1))
        mismatch(run, "%s names %d files of rank %d", path, seen, neighbour);
}

static void verify_latest(struct run *run)
{
    char path[PATH_MAX], expected[NAME_SIZE], target[NAME_SIZE];
    struct stat st;
    ssize_t length;

    file_name(expected, run->steps - 1, 0);
    path_of(run, path, "latest");
    length = readlink(path, target, sizeof target - 1);
    if (length < 0 || stat(path, &st) != 0)
        checkpoint_fail(run, "follow", "latest");
    target[length] = '\0';
    if (strcmp(target, expected) != 0)
        mismatch(run, "%s points to %s, not %s", path, target, expected);
    if (!S_ISREG(st.st_mode) || (uintmax_t)st.st_size != run->bytes)
        mismatch(run, "%s is not a file of %zu bytes", path, run->bytes);
}

static bool is_expected(const struct run *run, const char *name)
{
    char expected[NAME_SIZE];
    int step, rank;

    if (strcmp(name, "manifest") == 0 || strcmp(name, "latest") == 0)
        return true;
    if (sscanf(name, "ckpt.%d.%d", &step, &rank) != 2)
        return false;
    file_name(expected, step, rank);
    return strcmp(name, expected) == 0 && step >= oldest_kept(run, run->steps - 1) && step < run->steps && rank >= 0 &&
           rank < run->ranks;
}

/* The directory holds what is kept, each name once, and nothing else. */
static void verify_listing(struct run *run)
{
    int found = 0, expected = (run->steps - oldest_kept(run, run->steps - 1)) * run->ranks + 2;
    DIR *directory = opendir(run->directory);
    const struct dirent *entry;

    if (!directory)
        checkpoint_fail(run, "list", "");
    while ((entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        found++;
        if (!is_expected(run, entry->d_name))
            mismatch(run, "%s holds %s, which nobody should have left", run->directory, entry->d_name);
    }
    closedir(directory);
    if (found != expected)
        mismatch(run, "%s lists %d names, not %d", run->directory, found, expected);
}

/* How many mismatches all ranks found together. */
static int checkpoint_verify(struct run *run)
{
    int all = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    verify_neighbour(run);
    if (run->rank == 0) {
        verify_latest(run);
        verify_listing(run);
    }
    MPI_Allreduce(&run->mismatches, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static long checkpoint_number(const char *text, long least, long most)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    return errno != 0 || end == text || *end != '\0' || value < least || value > most ? -1 : value;
}

static bool checkpoint_parse(struct run *run, int argc, char **argv)
{
    static const struct option options[] = {{"steps", required_argument, NULL, 's'},
                                            {"bytes", required_argument, NULL, 'b'},
                                            {"keep", required_argument, NULL, 'k'},
                                            {NULL, 0, NULL, 0}};
    long steps = 10, bytes = 65536, keep = 3;
    int option;

    while ((option = getopt_long(argc, argv, "s:b:k:", options, NULL)) != -1) {
        if (option == 's')
            steps = checkpoint_number(optarg, 1, 999999);
        else if (option == 'b')
            bytes = checkpoint_number(optarg, 0, 1L << 40);
        else if (option == 'k')
            keep = checkpoint_number(optarg, 1, 1000);
        else
            return false;
    }
    run->steps = (int)steps;
    run->bytes = (size_t)bytes;
    run->keep = (int)keep;
    run->directory = optind < argc ? argv[optind++] : ".";
    return steps > 0 && bytes >= 0 && keep > 0 && optind == argc;
}

static void checkpoint_prepare(struct run *run)
{
    run->state = malloc(run->bytes + 1);
    if (run->rank == 0)
        run->checksums = calloc((size_t)run->keep * (size_t)run->ranks, sizeof *run->checksums);
    if (!run->state || (run->rank == 0 && !run->checksums))
        checkpoint_fail(run, "find memory for", "");
    if (run->rank == 0 && mkdir(run->directory, 0777) != 0 && errno != EEXIST)
        checkpoint_fail(run, "make", "");
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    struct run run = {0};
    int mismatches;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
    if (!checkpoint_parse(&run, argc, argv)) {
        if (run.rank == 0)
            fprintf(stderr, "usage: checkpoint [--steps N] [--bytes N] [--keep N] [DIRECTORY]\n");
        MPI_Finalize();
        return 2;
    }
    checkpoint_prepare(&run);
    for (int step = 0; step < run.steps; step++)
        run_step(&run, step);
    mismatches = checkpoint_verify(&run);
    if (run.rank == 0)
        printf("checkpoint: %d ranks wrote %d steps and kept %d, %d mismatches\n", run.ranks, run.steps,
               run.steps - oldest_kept(&run, run.steps - 1), mismatches);
    free(run.state);
    free(run.checksums);
    MPI_Finalize();
    return mismatches == 0 ? 0 : 1;
}
