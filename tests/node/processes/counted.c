/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* counted DIRECTORY [WAY]: sets a handler of a signal in that way, then makes, looks at, renames and removes files there, whose
 * paths are on the stack, and then on the heap. Between the first and the second half of each it calls getppid, and after it,
 * for the test that counts the calls. */

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 20
#define ROOM 4096

static void create_file(const char *path, const char *to)
{
    (void)to;
    close(open(path, O_CREAT | O_EXCL | O_WRONLY, 0600));
}

static void look_file(const char *path, const char *to)
{
    struct stat seen;
    (void)to;
    if (stat(path, &seen) != 0)
        perror(path);
}

static void move_file(const char *path, const char *to)
{
    if (rename(path, to) != 0)
        perror(path);
}

static void drop_file(const char *path, const char *to)
{
    (void)path;
    if (unlink(to) != 0)
        perror(to);
}

static void check_all(const char *directory, char *path, char *to)
{
    static void (*const calls[])(const char *, const char *) = {create_file, look_file, move_file, drop_file};
    for (size_t call = 0; call < sizeof calls / sizeof *calls; call++) {
        for (int i = 0; i < ROUNDS; i++) {
            if (i == ROUNDS / 2)
                getppid();
            snprintf(path, ROOM, "%s/f.%05d", directory, i);
            snprintf(to, ROOM, "%s/g.%05d", directory, i);
            calls[call](path, to);
        }
        getppid();
    }
}

/* Ways to set a handler. */

__sighandler_t bsd_signal(int number, __sighandler_t handler);
__sighandler_t __sysv_signal(int number, __sighandler_t handler);
int __sigaction(int number, const struct sigaction *action, struct sigaction *before);

static void do_nothing(int number)
{
    (void)number;
}

static void set_by_action(void)
{
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = do_nothing}, NULL);
}

static void set_by_other_action(void)
{
    __sigaction(SIGUSR1, &(struct sigaction){.sa_handler = do_nothing}, NULL);
}

static void set_by_signal(void)
{
    signal(SIGTERM, do_nothing);
}

static void set_by_bsd_signal(void)
{
    bsd_signal(SIGTERM, do_nothing);
}

static void set_by_ssignal(void)
{
    ssignal(SIGTERM, do_nothing);
}

static void set_by_sysv_signal(void)
{
    sysv_signal(SIGTERM, do_nothing);
}

static void set_by_other_sysv_signal(void)
{
    __sysv_signal(SIGTERM, do_nothing);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void set_by_sigset(void)
{
    sigset(SIGINT, do_nothing);
}

static void set_by_number(void)
{
    const struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {.handler = do_nothing};
    syscall(SYS_rt_sigaction, SIGUSR2, &action, NULL, sizeof action.mask);
}

static void set_in_a_thread_before(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, (void *(*)(void *))set_by_action, NULL);
    pthread_join(thread, NULL);
}

static void load_another_libc(void)
{
    dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
}

static void set_for_a_fault(void)
{
    signal(SIGSEGV, do_nothing);
}

static void ignore_and_ask(void)
{
    struct sigaction before;
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_DFL);
    sigaction(SIGTERM, NULL, &before);
}

static const struct {
    const char *name;
    void (*set)(void);
} ways[] = {
    {"sigaction", set_by_action},
    {"__sigaction", set_by_other_action},
    {"signal", set_by_signal},
    {"bsd_signal", set_by_bsd_signal},
    {"ssignal", set_by_ssignal},
    {"sysv_signal", set_by_sysv_signal},
    {"__sysv_signal", set_by_other_sysv_signal},
    {"sigset", set_by_sigset},
    {"its number", set_by_number},
    {"a thread", set_in_a_thread_before},
    {"another libc", load_another_libc},
    {"a fault", set_for_a_fault},
    {"none", ignore_and_ask},
};

int main(int count, char *arguments[])
{
    char path[ROOM], to[ROOM];
    char *heap = malloc(2 * ROOM);
    if (count < 2 || heap == NULL)
        return 1;
    for (size_t i = 0; count == 3 && i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, arguments[2]) == 0)
            ways[i].set();
    check_all(arguments[1], path, to);
    check_all(arguments[1], heap, heap + ROOM);
    free(heap);
    return 0;
}
