/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* race DIRECTORY PROCESSES NAMES: processes contend for the same names. For each name exactly one may win:
 * O_EXCL, unlink, rename of one file to a name of one's own, link, mkdir, rmdir, RENAME_NOREPLACE. A rename
 * over an existing file is never seen half done: the target can be opened at every moment. Prints each
 * contest's winners; exits 1 if any is wrong. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONTESTS 8

struct shared {
    unsigned ready;           /* who stands at the barrier */
    unsigned wins[CONTESTS];  /* over all names */
    unsigned wrong[CONTESTS]; /* answers that no contest allows */
};

static struct shared *shared;
static unsigned processes, names, me;

static void barrier(void)
{
    static unsigned round;
    unsigned all = ++round * processes;
    __atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < all)
        usleep(50);
}

static const char *name(const char *prefix, unsigned number)
{
    static char text[2][64];
    static unsigned turn;
    char *to = text[turn++ % 2];
    snprintf(to, sizeof text[0], "%s%u", prefix, number);
    return to;
}

static const char *mine(unsigned number)
{
    static char text[64];
    snprintf(text, sizeof text, "mine%u.%u", me, number);
    return text;
}

static int create(unsigned i)
{
    int fd = open(name("f", i), O_CREAT | O_EXCL | O_WRONLY, 0644);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : -errno;
}

static int take(unsigned i)
{
    return rename(name("f", i), mine(i)) == 0 ? 0 : -errno;
}

static int give(unsigned i)
{
    int code = renameat2(AT_FDCWD, mine(i), AT_FDCWD, name("g", i), RENAME_NOREPLACE) == 0 ? 0 : -errno;
    return code == -ENOENT ? -EEXIST : code; /* not everybody has one */
}

static int linked(unsigned i)
{
    return link(name("g", i), name("l", i)) == 0 ? 0 : -errno;
}

static int removed(unsigned i)
{
    return unlink(name("g", i)) == 0 ? 0 : -errno;
}

static int made(unsigned i)
{
    return mkdir(name("d", i), 0755) == 0 ? 0 : -errno;
}

static int unmade(unsigned i)
{
    return rmdir(name("d", i)) == 0 ? 0 : -errno;
}

/* Everybody renames a file of his own over one target, and opens it all the time. */
static int replaced(unsigned i)
{
    char own[64];
    snprintf(own, sizeof own, "own%u", me);
    int fd = open(own, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0)
        return -errno;
    close(fd);
    if (rename(own, "target") != 0)
        return -errno;
    fd = open("target", O_RDONLY);
    if (fd < 0)
        return -errno;
    close(fd);
    return me == 0 ? 0 : -EEXIST; /* counted once a name */
}

static const struct {
    const char *title;
    int (*contest)(unsigned);
    int loses; /* the only error a loser may meet */
} contests[CONTESTS] = {
    {"O_EXCL", create, EEXIST}, {"rename away", take, ENOENT},     {"RENAME_NOREPLACE", give, EEXIST},
    {"link", linked, EEXIST},   {"unlink", removed, ENOENT},       {"mkdir", made, EEXIST},
    {"rmdir", unmade, ENOENT},  {"rename over", replaced, EEXIST},
};

static void contend(unsigned which)
{
    barrier();
    for (unsigned i = 0; i < names; i++) {
        int code = contests[which].contest(i);
        if (code == 0)
            __atomic_add_fetch(&shared->wins[which], 1, __ATOMIC_RELAXED);
        else if (code != -contests[which].loses &&
                 __atomic_fetch_add(&shared->wrong[which], 1, __ATOMIC_RELAXED) < 3)
            fprintf(stderr, "%s %u: errno %d\n", contests[which].title, i, -code);
    }
}

int main(int argc, char *argv[])
{
    int wrong = 0;
    if (argc != 4 || chdir(argv[1]) != 0)
        return 2;
    processes = (unsigned)atoi(argv[2]);
    names = (unsigned)atoi(argv[3]);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (me = 0; me < processes; me++)
        if (fork() == 0) {
            for (unsigned i = 0; i < CONTESTS; i++)
                contend(i);
            _exit(0);
        }
    while (wait(NULL) > 0)
        continue;
    for (unsigned i = 0; i < CONTESTS; i++) {
        printf("%s: %u of %u won, %u wrong\n", contests[i].title, shared->wins[i], names, shared->wrong[i]);
        wrong |= shared->wins[i] != names || shared->wrong[i] != 0;
    }
    return wrong;
}
