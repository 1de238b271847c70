/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* race DIRECTORY PROCESSES NAMES [NODE]...: processes contend for the same names. For each name exactly one
 * may win: O_EXCL, unlink, rename of one file to a name of one's own, link, mkdir, rmdir, RENAME_NOREPLACE. A
 * rename over an existing file is never seen half done: the target can be opened at every moment. Prints each
 * contest's winners; exits 1 if any is wrong.
 *
 * With NODEs the processes are spread over them: each is executed again with SHUNT_NODE set to one of them,
 * since what a process is called is read when it starts. */

#include <errno.h>
#include <signal.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONTESTS 8

struct shared {
    unsigned ready;           /* processes at the barrier */
    unsigned wins[CONTESTS];  /* over all names */
    unsigned wrong[CONTESTS]; /* answers that no contest allows */
};

static struct shared *shared;
static unsigned processes, names, me;

static void race_barrier(void)
{
    static unsigned round;
    unsigned all = ++round * processes;
    __atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < all)
        usleep(50);
}

static const char *race_name(const char *prefix, unsigned number)
{
    static char text[2][64];
    static unsigned turn;
    char *to = text[turn++ % 2];
    snprintf(to, sizeof text[0], "%s%u", prefix, number);
    return to;
}

static const char *race_mine(unsigned number)
{
    static char text[64];
    snprintf(text, sizeof text, "mine%u.%u", me, number);
    return text;
}

static int race_create(unsigned i)
{
    int fd = open(race_name("f", i), O_CREAT | O_EXCL | O_WRONLY, 0644);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : -errno;
}

static int race_take(unsigned i)
{
    return rename(race_name("f", i), race_mine(i)) == 0 ? 0 : -errno;
}

static int race_give(unsigned i)
{
    int code = renameat2(AT_FDCWD, race_mine(i), AT_FDCWD, race_name("g", i), RENAME_NOREPLACE) == 0 ? 0 : -errno;
    return code == -ENOENT ? -EEXIST : code; /* not everybody has one */
}

static int race_linked(unsigned i)
{
    return link(race_name("g", i), race_name("l", i)) == 0 ? 0 : -errno;
}

static int race_removed(unsigned i)
{
    return unlink(race_name("g", i)) == 0 ? 0 : -errno;
}

static int race_made(unsigned i)
{
    return mkdir(race_name("d", i), 0755) == 0 ? 0 : -errno;
}

static int race_unmade(unsigned i)
{
    return rmdir(race_name("d", i)) == 0 ? 0 : -errno;
}

/* Each process renames a file of its own over one target, and opens it all the time. */
static int race_replaced(unsigned i)
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
    {"O_EXCL", race_create, EEXIST}, {"rename away", race_take, ENOENT},     {"RENAME_NOREPLACE", race_give, EEXIST},
    {"link", race_linked, EEXIST},   {"unlink", race_removed, ENOENT},       {"mkdir", race_made, EEXIST},
    {"rmdir", race_unmade, ENOENT},  {"rename over", race_replaced, EEXIST},
};

static void race_contend(unsigned which)
{
    race_barrier();
    for (unsigned i = 0; i < names; i++) {
        int code = contests[which].contest(i);
        if (code == 0)
            __atomic_add_fetch(&shared->wins[which], 1, __ATOMIC_RELAXED);
        else if (code != -contests[which].loses && __atomic_fetch_add(&shared->wrong[which], 1, __ATOMIC_RELAXED) < 3)
            fprintf(stderr, "%s %u: errno %d\n", contests[which].title, i, -code);
    }
}

static void contend_all(void)
{
    for (unsigned i = 0; i < CONTESTS; i++)
        race_contend(i);
    _exit(0);
}

/* What they share goes along as a descriptor, named by RACE_SHARED; RACE_ME is the process's number. */
static void race_share(void)
{
    const char *inherited = getenv("RACE_SHARED");
    char number[16];
    int fd = inherited != NULL ? atoi(inherited) : memfd_create("race", 0);
    if (fd < 0 || (inherited == NULL && ftruncate(fd, sizeof *shared) != 0))
        exit(2);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        exit(2);
    snprintf(number, sizeof number, "%d", fd);
    setenv("RACE_SHARED", number, 1);
}

static void race_begin(char *argv[], const char *node)
{
    char number[16];
    if (node == NULL)
        contend_all();
    snprintf(number, sizeof number, "%u", me);
    setenv("RACE_ME", number, 1);
    setenv("SHUNT_NODE", node, 1);
    execv("/proc/self/exe", argv);
    perror("exec");
    _exit(2);
}

/* One that is missing at the barrier would be waited for without end. */
static void wait_for_all(void)
{
    int status;
    while (wait(&status) > 0)
        if (status != 0) {
            fprintf(stderr, "a process ended with status %x\n", (unsigned)status);
            kill(0, SIGKILL);
        }
}

static int race_judge(void)
{
    int wrong = 0;
    for (unsigned i = 0; i < CONTESTS; i++) {
        printf("%s: %u of %u won, %u wrong\n", contests[i].title, shared->wins[i], names, shared->wrong[i]);
        wrong |= shared->wins[i] != names || shared->wrong[i] != 0;
    }
    return wrong;
}

int main(int argc, char *argv[])
{
    if (argc < 4 || chdir(argv[1]) != 0) {
        perror("race");
        return 2;
    }
    processes = (unsigned)atoi(argv[2]);
    names = (unsigned)atoi(argv[3]);
    race_share();
    if (getenv("RACE_ME") != NULL) {
        me = (unsigned)atoi(getenv("RACE_ME"));
        contend_all();
    }
    for (me = 0; me < processes; me++)
        if (fork() == 0)
            race_begin(argv, argc > 4 ? argv[4 + me % (unsigned)(argc - 4)] : NULL);
    wait_for_all();
    return race_judge();
}
