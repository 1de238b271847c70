/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* signals DIRECTORY first|storm|threads|left: a handler works on files while the program does. It runs on an
 * alternate stack of 8 KiB, with a guard after it. Both make, look at and remove names, names of their own
 * and the same ones, in the directory and outside. Prints what each saw that no order of the calls explains.
 *
 * first: the handler is the first of the process to touch the directory. storm: a timer sends the signals.
 * threads: four threads do the program's part, each interrupted itself. left: the handler leaves the call by siglongjmp. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK 8192
#define ROUNDS 500
#define ROUNDS_MOST 200000
#define SIGNALS 1000
#define PERIOD 200000 /* ns */
#define THREADS 4

static unsigned handled, wrong_in_handler, wrong_in_program;
static int wrong_line, wrong_errno;

static void signals_expect(unsigned *wrong, int line, int holds)
{
    if (holds)
        return;
    wrong_errno = errno;
    wrong_line = line;
    __atomic_add_fetch(wrong, 1, __ATOMIC_RELAXED);
}

#define EXPECT(WRONG, HOLDS) signals_expect(&(WRONG), __LINE__, HOLDS)

static int is_or(int result, int error)
{
    return result >= 0 || errno == error;
}

static int signals_make(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);
    if (fd >= 0)
        close(fd);
    return fd;
}

/* What program and handler do to names that both use: any answer that some order explains will do. */
static void signals_contend(unsigned *wrong)
{
    struct stat st;
    EXPECT(*wrong, signals_make("both", 0) >= 0);
    EXPECT(*wrong, is_or(stat("both", &st), ENOENT));
    EXPECT(*wrong, is_or(signals_make("both", O_EXCL), EEXIST));
    EXPECT(*wrong, is_or(rename("both", "other"), ENOENT));
    EXPECT(*wrong, link("other", "both") == 0 || errno == ENOENT || errno == EEXIST);
    EXPECT(*wrong, is_or(unlink("both"), ENOENT));
    EXPECT(*wrong, is_or(unlink("other"), ENOENT));
}

static void signals_outside(unsigned *wrong)
{
    struct stat st;
    int fd = open("/etc/passwd", O_RDONLY);
    EXPECT(*wrong, fd >= 0);
    close(fd);
    EXPECT(*wrong, stat("/etc/no such file", &st) < 0 && errno == ENOENT);
    EXPECT(*wrong, stat("/", &st) == 0);
}

/* A thread's own handler has a name of its own. */
static void number_to(char *to, unsigned number)
{
    do
        *to++ = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    *to = '\0';
}

static __thread timer_t timer;
static __thread int has_timer;

/* One signal, a while from now: however long a handler takes, the program gets its turn. */
static void signals_arm(void)
{
    if (has_timer)
        timer_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, PERIOD}}, NULL);
}

static void signals_handle(int number)
{
    int saved = errno;
    struct stat st;
    char mine[32] = "handler.";
    number_to(mine + 8, (unsigned)gettid());
    EXPECT(wrong_in_handler, signals_make(mine, O_EXCL) >= 0);
    EXPECT(wrong_in_handler, stat(mine, &st) == 0 && S_ISREG(st.st_mode));
    EXPECT(wrong_in_handler, access("kept", R_OK) == 0);
    EXPECT(wrong_in_handler, stat("no such file", &st) < 0 && errno == ENOENT);
    EXPECT(wrong_in_handler, unlink(mine) == 0);
    EXPECT(wrong_in_handler, stat(mine, &st) < 0 && errno == ENOENT);
    signals_contend(&wrong_in_handler);
    signals_outside(&wrong_in_handler);
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
    signals_arm();
    errno = saved;
}

/* A page that nobody may touch lies below: a handler that needs more than 8 KiB ends the program. */
static void set_stack(void)
{
    char *at = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(at, 4096, PROT_NONE);
    stack_t stack = {.ss_sp = at + 4096, .ss_size = STACK};
    sigaltstack(&stack, NULL);
}

static void set_handler(void)
{
    struct sigaction action = {.sa_handler = signals_handle, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigfillset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
}

static void start_timer(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    event._sigev_un._tid = gettid();
    has_timer = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    signals_arm();
}

static int run_out(unsigned round, unsigned signals)
{
    return (round >= ROUNDS && __atomic_load_n(&handled, __ATOMIC_RELAXED) >= signals) || round >= ROUNDS_MOST;
}

static void work_under_signals(unsigned me, unsigned signals)
{
    char name[32], moved[32];
    struct stat st;
    set_stack();
    start_timer();
    for (unsigned round = 0; !run_out(round, signals); round++) {
        snprintf(name, sizeof name, "p%u.%u", me, round % 100);
        snprintf(moved, sizeof moved, "q%u.%u", me, round % 100);
        EXPECT(wrong_in_program, signals_make(name, O_EXCL) >= 0);
        EXPECT(wrong_in_program, stat(name, &st) == 0);
        EXPECT(wrong_in_program, rename(name, moved) == 0);
        EXPECT(wrong_in_program, stat(name, &st) < 0 && errno == ENOENT);
        EXPECT(wrong_in_program, unlink(moved) == 0);
        signals_contend(&wrong_in_program);
        signals_outside(&wrong_in_program);
    }
    has_timer = 0;
    timer_delete(timer);
}

static void *signals_thread(void *number)
{
    work_under_signals((unsigned)(size_t)number, SIGNALS);
    return NULL;
}

static void signals_first(void)
{
    set_stack();
    raise(SIGALRM);
}

static void signals_storm(void)
{
    work_under_signals(0, SIGNALS);
}

static void signals_threads(void)
{
    pthread_t all[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&all[i], NULL, signals_thread, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
}

static sigjmp_buf before;

static void signals_leave(int number)
{
    handled++;
    siglongjmp(before, number);
}

__attribute__((noinline)) static int signals_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* The names that a call which was left has made, or not taken away, are nobody's. */
static void signals_work_alone(void)
{
    struct stat st;
    rmdir("made");
    rmdir("moved");
    EXPECT(wrong_in_program, mkdir("made", 0700) == 0 && rename("made", "moved") == 0 && rmdir("moved") == 0);
    EXPECT(wrong_in_program, stat("made", &st) < 0 && stat("moved", &st) < 0);
}

static void signals_left(void)
{
    const int open_before = signals_descriptors();
    struct sigaction action = {.sa_handler = signals_leave};
    sigaction(SIGALRM, &action, NULL);
    start_timer();
    while (handled < SIGNALS)
        if (sigsetjmp(before, 1) == 0) {
            timer_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, PERIOD / 4 + random() % PERIOD}}, NULL);
            for (;;) {
                mkdir("made", 0700);
                rename("made", "moved");
                rmdir("moved");
            }
        }
    timer_delete(timer);
    signals_work_alone();
    printf("descriptors left open: %d\n", signals_descriptors() - open_before);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
        unsigned signals;
    } modes[] = {{"first", signals_first, 1},
                 {"storm", signals_storm, SIGNALS},
                 {"threads", signals_threads, SIGNALS},
                 {"left", signals_left, SIGNALS}};
    if (argc != 3 || chdir(argv[1]) != 0)
        return 2;
    set_handler();
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[2], modes[i].name) == 0) {
            modes[i].run();
            printf("handled enough: %d\n", handled >= modes[i].signals);
        }
    unlink("both");
    unlink("other");
    printf("wrong in handler: %u, in program: %u\n", wrong_in_handler, wrong_in_program);
    if (wrong_line)
        fprintf(stderr, "the last at line %d: %s\n", wrong_line, strerror(wrong_errno));
    return 0;
}
