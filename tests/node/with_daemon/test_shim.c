/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What the shim has of its own in a process, without a daemon: room for texts, and what it remembers. */

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "place.h"
#include "shim/lasting.h"
#include "shim/process.h"
#include "shim/real.h"
#include "shim/scratch.h"

/* Room for texts. */

TestSuite(scratch, .timeout = 60);

Test(scratch, a_piece_is_one_s_own_until_it_is_given_back)
{
    struct scratch *first = scratch_take(), *second = scratch_take();
    cr_assert(first != NULL && second != NULL && first != second);
    memset(first->text, 'a', sizeof first->text);
    memset(second->text, 'b', sizeof second->text);
    cr_assert(first->text[1][PATH_MAX] == 'a' && first->text[0][0] == 'a');
    scratch_give(first);
    cr_assert_eq(scratch_take(), first, "taken again");
    scratch_give(NULL);
}

#define LEVELS 1000

Test(scratch, it_grows_as_deep_as_it_is_used_and_no_further)
{
    static struct scratch *pieces[LEVELS];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LEVELS; i++) {
            struct scratch *piece = scratch_take();
            cr_assert_not_null(piece);
            if (round == 0)
                pieces[i] = piece;
            cr_assert_eq(piece, pieces[i], "level %d of round %d", i, round);
            snprintf(piece->real, sizeof piece->real, "%d", i);
        }
        for (int i = 0; i < LEVELS; i++) {
            cr_assert_eq(atoi(pieces[i]->real), i);
            scratch_give(pieces[i]);
        }
    }
}

Test(scratch, when_none_is_left)
{
    struct scratch *last = NULL, *piece;
    int count = 0;
    while ((piece = scratch_take()) != NULL) {
        last = piece;
        cr_assert_lt(++count, 100000);
    }
    cr_assert_gt(count, 2000);
    cr_assert_null(scratch_take());
    scratch_give(last);
    cr_assert_eq(scratch_take(), last);
}

Test(scratch, no_memory)
{
    struct rlimit all, none;
    struct scratch *first = scratch_take();
    cr_assert_eq(getrlimit(RLIMIT_AS, &all), 0);
    none = all;
    none.rlim_cur = 1 << 20;
    cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
    struct scratch *second = scratch_take();
    scratch_give(first);
    struct scratch *again = scratch_take();
    cr_assert_eq(setrlimit(RLIMIT_AS, &all), 0);
    cr_assert_null(second);
    cr_assert_eq(again, first, "what is there can still be had");
    cr_assert_not_null(scratch_take());
}

/* Takes a piece, writes its owner all over it, and sees whether that lasts. */
static bool shim_use(uint64_t who)
{
    struct scratch *piece = scratch_take();
    if (piece == NULL)
        return false;
    bool mine = true;
    for (size_t i = 0; i < 64; i++)
        memcpy(piece->real + 8 * i, &who, 8);
    __asm__ volatile("" : : : "memory");
    for (size_t i = 0; i < 64; i++)
        mine &= memcmp(piece->real + 8 * i, &who, 8) == 0;
    scratch_give(piece);
    return mine;
}

static volatile sig_atomic_t wrong, interrupted;

static void on_signal(int number)
{
    interrupted++;
    wrong |= !shim_use((uint64_t)-1 - (uint64_t)interrupted);
}

Test(scratch, a_handler_takes_another_piece)
{
    struct sigaction action = {.sa_handler = on_signal};
    const struct itimerval often = {.it_interval.tv_usec = 200, .it_value.tv_usec = 200}, never = {0};
    cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
    cr_assert_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (uint64_t i = 0; interrupted < 500; i++)
        cr_assert(shim_use(i));
    cr_assert_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
    cr_assert_not(wrong);
}

static void *use_often(void *who)
{
    for (uint64_t i = 0; i < 20000; i++)
        if (!shim_use((uint64_t)who << 32 | i))
            return who;
    return NULL;
}

Test(scratch, threads_take_different_pieces)
{
    pthread_t threads[8];
    for (size_t i = 0; i < 8; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, use_often, (void *)(i + 1)), 0);
    for (int i = 0; i < 8; i++) {
        void *met = NULL;
        cr_assert_eq(pthread_join(threads[i], &met), 0);
        cr_assert_null(met);
    }
    for (int i = 0; i < 8; i++)
        cr_assert_not_null(scratch_take());
    struct scratch *ninth = scratch_take();
    scratch_give(ninth);
    cr_assert_eq(scratch_take(), ninth, "no more were made than were used at once");
}

/* The functions after the wrappers. */

TestSuite(real, .timeout = 60);

/* Those that came after this C library have a stand-in. */
static bool real_is_newer(const char *name)
{
    static const char *const newer[] = {"openat2", "pidfd_spawn", "pidfd_spawnp"};
    bool found = !__GLIBC_PREREQ(2, 34);
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        found |= strcmp(newer[i], name) == 0;
    return found;
}

/* Before glibc 2.36, RTLD_NEXT finds a name's oldest version, not its default one; before 2.34 some names are not there. */
static bool real_is_found(const void *function, const char *name)
{
    const void *next = dlsym(RTLD_NEXT, name);
    if (function == next || (next == NULL && real_is_newer(name)))
        return function != NULL;
    return !__GLIBC_PREREQ(2, 36) && function == dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), name);
}

Test(real, they_are_those_that_the_loader_finds)
{
#define SYMBOL(group, name, result, arguments) cr_expect(real_is_found((void *)REAL(name), #name), #name);
#include "shim/table.h"
#undef SYMBOL
}

/* The process. */

static void process_init(void)
{
    place_init();
    place_directory("a");
    place_directory("b");
    place_directory("run");
    shim_state.process.count = 0;
}

TestSuite(process, .init = process_init, .fini = place_finish, .timeout = 60);

/* As the constructor does it, with an environment of the test's. */
static void start_with(const char *roots)
{
    static char root[4 * PATH_MAX + 16], run_dir[PATH_MAX + 16];
    snprintf(root, sizeof root, "SHUNT_ROOT=%s", roots);
    snprintf(run_dir, sizeof run_dir, "SHUNT_RUN_DIR=%s", place_path("run"));
    static char *environment[] = {root, run_dir, "SHUNT_NODE=n1", "LD_PRELOAD=/x/one.so", NULL};
    process_start(environment);
}

Test(process, it_was_started_before_main)
{
    cr_assert(shim_state.process.started);
}

Test(process, without_a_root_it_is_out_of_the_way)
{
    char *environment[] = {"LD_PRELOAD=/x/one.so", NULL};
    errno = EDOM;
    process_start(environment);
    cr_assert_not(process_has_roots());
    cr_assert_str_eq(shim_state.process.preload, "/x/one.so", "to be carried on all the same");
    cr_assert_eq(errno, EDOM);
}

Test(process, roots)
{
    char roots[4 * PATH_MAX];
    cr_assert_eq(symlink("b", place_path("link")), 0);
    place_file("file", "");
    snprintf(roots, sizeof roots, "%s:%s:%s:%s::%s", place_path("a/"), place_path("none"), place_path("file"),
             place_path("link"), place_path("b/.."));
    errno = EDOM;
    start_with(roots);
    cr_assert_eq(errno, EDOM);
    cr_assert(process_has_roots());
    cr_assert_eq(shim_state.process.count, 3, "what is no directory is no root");
    cr_assert_str_eq(shim_state.roots[0].path, place_path("a"));
    cr_assert_str_eq(shim_state.roots[1].path, place_path("b"));
    cr_assert_str_eq(shim_state.roots[1].given, place_path("link"), "known by both texts");
    cr_assert_str_eq(shim_state.roots[2].path, place);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(shim_state.roots[i].id.ino, place_stat(i == 2 ? "." : i == 0 ? "a" : "b").st_ino);
    cr_assert_str_eq(shim_state.process.config.node, "n1");
    cr_assert_eq(strncmp(shim_state.roots[0].run_dir, place_path("run/"), strlen(place_path("run/"))), 0);
}

Test(process, more_roots_than_there_is_room_for)
{
    char roots[4 * PATH_MAX] = "";
    for (int i = 0; i < NAMES_ROOTS + 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "root%d", i);
        place_directory(name);
        strcat(strcat(roots, i > 0 ? ":" : ""), place_path("%s", name));
    }
    start_with(roots);
    cr_assert_eq(shim_state.process.count, NAMES_ROOTS);
    cr_assert_str_eq(shim_state.roots[NAMES_ROOTS - 1].path, place_path("root%d", NAMES_ROOTS - 1));
}

/* Memory that lasts. */

#define PAGE ((size_t)4096)

static char of_program[2 * PAGE];

static char *page_in(char *at)
{
    return (char *)(((uintptr_t)at + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
}

/* Two pages at the end of the heap. */
static char *of_heap(void)
{
    sbrk((intptr_t)(-(uintptr_t)sbrk(0) % PAGE));
    lasting_start();
    return sbrk(2 * PAGE);
}

Test(lasting, up_to_its_end)
{
    char here[16] = "", *heap = of_heap();
    const size_t room = lasting_room(here);
    cr_assert(room >= sizeof here && room < 1 << 20);
    cr_assert_eq(lasting_room(here + 1), room - 1);
    cr_assert(lasting_room(of_program) >= sizeof of_program);
    cr_assert(lasting_room("in the program") > 0);
    cr_assert_eq(lasting_room(heap + 1), 2 * PAGE - 1);
}

Test(lasting, no_other_memory)
{
    char *mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *heap = of_heap();
    cr_assert(mapped != MAP_FAILED);
    cr_assert_eq(lasting_room(mapped), 0);
    cr_assert_eq(lasting_room(NULL), 0);
    cr_assert_eq(lasting_room((void *)UINTPTR_MAX), 0);
    cr_assert_eq(lasting_room((char *)__builtin_frame_address(0) - (2 << 20)), 0, "below what is in use");
    cr_assert(sbrk(-(intptr_t)PAGE) != (void *)-1);
    cr_assert_eq(lasting_room(heap + PAGE), 0, "what was the heap's");
    cr_assert_eq(lasting_room(heap), PAGE);
}

static void *room_on_a_threads_stack(void *unused)
{
    char here[16] = "";
    (void)unused;
    return (void *)lasting_room(here);
}

Test(lasting, no_stack_of_a_thread)
{
    pthread_t thread;
    void *room;
    lasting_start();
    cr_assert_eq(pthread_create(&thread, NULL, room_on_a_threads_stack, NULL), 0);
    cr_assert_eq(pthread_join(thread, &room), 0);
    cr_assert_null(room);
}

Test(lasting, nothing_of_a_kind_of_which_a_part_is_taken)
{
    char here[16] = "", *heap = of_heap();
    lasting_taken(heap + 2 * PAGE, PAGE);
    lasting_taken(NULL, PAGE);
    cr_assert(lasting_room(here) > 0 && lasting_room(of_program) > 0 && lasting_room(heap) > 0, "that is none of them");
    lasting_taken(heap + PAGE, 1);
    cr_assert(lasting_room(here) > 0 && lasting_room(of_program) > 0 && lasting_room(heap) == 0);
    lasting_taken(page_in(of_program), PAGE);
    cr_assert(lasting_room(here) > 0 && lasting_room(of_program) == 0);
    lasting_taken((char *)__builtin_frame_address(0) - PAGE, SIZE_MAX);
    cr_assert_eq(lasting_room(here), 0);
}
