/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "base/kernel_abi.h"
#include "index/view.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "index/table.h"
#include "place.h"

static const struct index_stamp stamp = {.session = 77, .root = {2, 3}};
static const struct dirid one = {100, 1}, two = {100, 2};

static pid_t writer;
static FILE *to_writer, *from_writer;

static int view_answer(void)
{
    int number = 0;
    cr_assert_eq(fscanf(from_writer, "%d", &number), 1, "the writer is gone");
    return number;
}

static int view_tell(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(to_writer, format, list);
    va_end(list);
    fputc('\n', to_writer);
    fflush(to_writer);
    return view_answer();
}

static void start_writer(void)
{
    int in[2], out[2];
    cr_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    writer = fork();
    if (writer == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execl(INDEX_WRITER, "index_writer", place, NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_writer = fdopen(in[1], "w");
    from_writer = fdopen(out[0], "r");
    cr_assert_eq(view_answer(), 0);
}

static void view_init(void)
{
    place_init();
    start_writer();
    cr_assert_eq(view_tell("branch 1 n017.1"), 0);
    cr_assert_eq(view_tell("dir 100 1 1"), 0);
    cr_assert_eq(view_tell("put 100 1 a 5 0 0"), 0);
    cr_assert_eq(view_tell("put 100 1 b 6 1 3"), 0);
}

static void view_finish(void)
{
    fclose(to_writer);
    fclose(from_writer);
    waitpid(writer, NULL, 0);
    place_finish();
}

TestSuite(view, .init = view_init, .fini = view_finish, .timeout = 60);

static struct view *view_opened(void)
{
    struct view *view;
    cr_assert_eq(view_open(&view, place, &stamp), 0);
    return view;
}

/* The writer may lose the processor in the middle of a change: then who looks may look again. */

static int find_patiently(struct view *view, struct dirid dir, const char *name, struct view_found *found)
{
    int code;
    while ((code = view_find(view, dir, name, strlen(name), found)) == -EBUSY)
        ;
    return code;
}

/* The inode number of a name; 0: it is not there; or -errno. No assertions: it is used in children, too. */
static int64_t ino_of(struct view *view, struct dirid dir, const char *name)
{
    struct view_found found;
    int code = find_patiently(view, dir, name, &found);
    if (code != 0)
        return code;
    return found.known ? (int64_t)found.entry.ino : 0;
}

/* Runs a part of a test in a fork child; its answer is the child's. */
static int in_child(int (*part)(struct view *), struct view *view)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(part(view));
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

Test(view, finds_what_is_there)
{
    struct view *view = view_opened();
    struct view_found found;
    cr_assert_eq(view_find(view, one, "b", 1, &found), 0);
    cr_assert(found.dir_known && found.known);
    cr_assert(found.dir.flags == RECORD_LOADED && found.entry.ino == 6 && found.entry.leaf == 3);
    cr_assert_str_eq(found.branch, "n017.1");
    cr_assert_eq(view_find(view, one, "a", 1, &found), 0);
    cr_assert(found.known && found.entry.branch == 0);
    cr_assert_str_empty(found.branch);
    cr_assert_eq(view_find(view, one, "c", 1, &found), 0);
    cr_assert(found.dir_known && !found.known);
    cr_assert_eq(view_find(view, two, "a", 1, &found), 0);
    cr_assert(!found.dir_known && !found.known);
    cr_assert_eq(view_find(view, one, NULL, 0, &found), 0);
    cr_assert(found.dir_known && !found.known);
    view_abandon(view);
}

Test(view, a_name_too_long_is_not_there)
{
    struct view *view = view_opened();
    struct view_found found;
    char name[RECORD_NAME_MAX + 1];
    memset(name, 'x', sizeof name);
    cr_assert_eq(view_find(view, one, name, sizeof name, &found), 0);
    cr_assert(found.dir_known && !found.known);
    view_abandon(view);
}

Test(view, sees_each_change_of_the_other_process)
{
    struct view *view = view_opened();
    for (int i = 1; i <= 200; i++) {
        cr_assert_eq(view_tell("put 100 1 x %d 0 0", i), 0);
        cr_assert_eq(ino_of(view, one, "x"), i);
    }
    cr_assert_eq(view_tell("del 100 1 x"), 0);
    cr_assert_eq(ino_of(view, one, "x"), 0);
    view_abandon(view);
}

Test(view, finds_what_was_meant)
{
    struct view *view = view_opened();
    struct view_found found;
    cr_assert_eq(view_tell("branch 2 n018.1"), 0);
    cr_assert_eq(view_tell("dir 100 2 1"), 0);
    cr_assert_eq(view_tell("put 100 2 b 7 2 0"), 0);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(ino_of(view, one, "b"), 6);
        cr_assert_eq(ino_of(view, one, "b"), 6);
        cr_assert_eq(ino_of(view, one, "a"), 5);
        cr_assert_eq(ino_of(view, one, "c"), 0);
        cr_assert_eq(ino_of(view, one, "c"), 0);
        cr_assert_eq(ino_of(view, one, "ba"), 0);
        cr_assert_eq(view_find(view, two, "b", 1, &found), 0);
        cr_assert(found.known && found.entry.ino == 7);
        cr_assert_str_eq(found.branch, "n018.1");
        cr_assert_eq(view_find(view, two, NULL, 0, &found), 0);
        cr_assert(found.dir_known && !found.known);
        cr_assert_str_empty(found.branch);
    }
    cr_assert_eq(view_find(view, two, "b", 1, &found), 0);
    cr_assert_eq(view_tell("branch 2 n018.2"), 0); /* fenced */
    cr_assert_eq(view_find(view, two, "b", 1, &found), 0);
    cr_assert_str_eq(found.branch, "n018.2");
    cr_assert_eq(view_tell("dir 100 2 0"), 0);
    cr_assert_eq(view_find(view, two, "b", 1, &found), 0);
    cr_assert_eq(found.dir.flags, 0);
    view_abandon(view);
}

Test(view, sees_an_index_grow)
{
    struct view *view = view_opened();
    cr_assert_eq(view_tell("many 100 1 100000 9"), 0);
    cr_assert_eq(ino_of(view, one, "n0"), 9);
    cr_assert_eq(ino_of(view, one, "n99999"), 9);
    cr_assert_eq(ino_of(view, one, "n100000"), 0);
    view_abandon(view);
}

static int test_view_list(struct view *view, struct dirid dir, uint64_t from, index_each *each, void *context)
{
    struct view_place at = {.hash = from};
    return view_list(view, dir, &at, each, context);
}

struct listed {
    uint64_t last, stop_after, count;
    bool in_order;
};

static int view_each(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct listed *listed = context;
    listed->in_order &= hash >= listed->last && hash == record_hash(name, length);
    listed->last = hash;
    return ++listed->count == listed->stop_after ? 17 : 0;
}

static int count_name(void *count, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    ++*(unsigned *)count;
    return 0;
}

/* Only a part of what an index may grow to is mapped. */
Test(view, outgrown)
{
    struct view *small = view_opened(), *larger;
    struct view_found found;
    struct rlimit limit;
    unsigned count = 0;
    cr_assert_eq(view_find(small, one, "a", 1, &found), 0);
    cr_assert_eq(view_tell("many 100 1 400000 77"), 0);
    cr_assert_eq(view_find(small, one, "a", 1, &found), -EOVERFLOW);
    cr_assert_eq(test_view_list(small, one, 0, count_name, &count), -EOVERFLOW);
    cr_assert_eq(count, 0);
    getrlimit(RLIMIT_NOFILE, &limit);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, limit.rlim_max}); /* it opens nothing */
    int code = view_grow(&larger, small);
    setrlimit(RLIMIT_NOFILE, &limit);
    cr_assert_eq(code, 0);
    cr_assert_eq(view_find(larger, one, "n399999", 7, &found), 0);
    cr_assert(found.known && found.entry.ino == 77);
    cr_assert_eq(test_view_list(larger, one, 0, count_name, &count), 0);
    cr_assert_eq(count, 400002);
    pid_t child = fork();
    if (child == 0)
        _exit(view_find(larger, one, "n1", 2, &found) != 0 || !found.known);
    int status;
    waitpid(child, &status, 0);
    cr_assert_eq(status, 0);
    view_abandon(larger);
}

Test(view, lists_in_the_order_of_hashes)
{
    struct view *view = view_opened();
    struct listed all = {.in_order = true}, some = {.in_order = true, .stop_after = 400}, rest = {.in_order = true};
    cr_assert_eq(view_tell("many 100 1 1000 9"), 0);
    cr_assert_eq(view_tell("many 100 2 10 9"), 0);
    cr_assert_eq(test_view_list(view, one, 0, view_each, &all), 0);
    cr_assert(all.in_order && all.count == 1002);
    cr_assert_eq(test_view_list(view, one, 0, view_each, &some), 17);
    cr_assert_eq(test_view_list(view, one, some.last + 1, view_each, &rest), 0);
    cr_assert_eq(some.count + rest.count, 1002);
    cr_assert(rest.in_order);
    cr_assert_eq(test_view_list(view, one, UINT64_MAX, view_each, &rest), 0);
    cr_assert_eq(some.count + rest.count, 1002, "nothing behind the last");
    view_abandon(view);
}

/* Descriptors. */

static int close_all_and_look(struct view *view)
{
    if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0 || ino_of(view, one, "a") != 5)
        return 1;
    for (int i = 0; i < 100; i++)
        if (open("/dev/null", O_RDWR) < 0)
            return 2;
    return ino_of(view, one, "b") == 6 ? 0 : 3;
}

static int open_and_close_all(struct view *inherited)
{
    struct view *view;
    view_abandon(inherited);
    return view_open(&view, place, &stamp) == 0 ? close_all_and_look(view) : 4;
}

Test(view, outlives_the_closing_of_all_descriptors)
{
    cr_assert_eq(in_child(open_and_close_all, view_opened()), 0);
}

static volatile bool stop; /* of what threads do */

/* Listing while the directory changes. */

struct meanwhile {
    const char *change; /* when `after` names were told */
    unsigned after, told[3000];
    unsigned count;
};

static int change_meanwhile(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct meanwhile *meanwhile = context;
    char number[RECORD_NAME_MAX + 1] = "";
    memcpy(number, name + 1, length - 1);
    unsigned which = (unsigned)strtoul(number, NULL, 10);
    if (name[0] == 'n' && which < 3000)
        meanwhile->told[which]++;
    if (meanwhile->count++ == meanwhile->after)
        cr_assert_eq(view_tell("%s", meanwhile->change), 0);
    return 0;
}

static struct meanwhile list_meanwhile(struct view *view, const char *change, unsigned after, int expected)
{
    struct meanwhile meanwhile = {.change = change, .after = after};
    cr_assert_eq(view_tell("deldir 100 2"), 0);
    cr_assert_eq(view_tell("dir 100 2 1"), 0);
    cr_assert_eq(view_tell("many 100 2 3000 1"), 0);
    cr_assert_eq(test_view_list(view, two, 0, change_meanwhile, &meanwhile), expected, "%s", change);
    return meanwhile;
}

Test(view, a_listing_has_all_that_is_there_all_the_while)
{
    static const char *const changes[] = {"many 100 2 20000 9", "many 100 1 200000 1", "fewer 100 2 1000 3000",
                                          "put 100 2 x 1 0 0", "dir 100 2 9"};
    struct view *view = view_opened();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        for (unsigned after = 0; after < 3000; after += 311) {
            struct meanwhile meanwhile = list_meanwhile(view, changes[i], after, 0);
            for (unsigned j = 0; j < 3000; j++)
                cr_assert(meanwhile.told[j] == 1 || (meanwhile.told[j] == 0 && j >= 1000 && i == 2), "%s: n%u", changes[i], j);
        }
    view_abandon(view);
}

Test(view, a_listing_of_what_was_forgotten_meanwhile_says_so)
{
    static const char *const changes[] = {"deldir 100 2", "delnames 100 2", "dir 100 2 0"};
    struct view *view = view_opened();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        for (unsigned after = 0; after < 3000; after += 1499)
            list_meanwhile(view, changes[i], after, -ENODATA);
    view_abandon(view);
}

static int make_it_again(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    if (++*(unsigned *)context == 10) {
        cr_assert_eq(view_tell("deldir 100 2"), 0);
        cr_assert_eq(view_tell("dir 100 2 1"), 0);
        cr_assert_eq(view_tell("many 100 2 3000 1"), 0);
    }
    return 0;
}

Test(view, a_listing_of_what_was_read_again_meanwhile_says_so)
{
    struct view *view = view_opened();
    unsigned count = 0;
    cr_assert_eq(view_tell("dir 100 2 1"), 0);
    cr_assert_eq(view_tell("many 100 2 3000 1"), 0);
    cr_assert_eq(test_view_list(view, two, 0, make_it_again, &count), -ENODATA);
    cr_assert_eq(count, 10);
    view_abandon(view);
}

/* Next to a writer that does not stop. */

#define KEPT 200

struct kept {
    unsigned told[KEPT];
    uint64_t last;
    bool wrong;
};

static int tell_kept(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct kept *kept = context;
    char number[RECORD_NAME_MAX + 1] = "";
    memcpy(number, name + 1, length - 1);
    unsigned which = (unsigned)strtoul(number, NULL, 10);
    kept->wrong |= hash < kept->last || hash != record_hash(name, length) || (name[0] == 'n' && which >= KEPT);
    kept->last = hash;
    if (name[0] == 'n' && which < KEPT)
        kept->told[which]++;
    return 0;
}

static int list_patiently(struct view *view, struct dirid dir, index_each *of_each, void *context)
{
    struct view_place at = {0};
    int code;
    while ((code = view_list(view, dir, &at, of_each, context)) == -EBUSY)
        ;
    return code;
}

/* 0, or what is wrong. */
static int look_once(struct view *view, unsigned which, bool lists)
{
    struct kept kept = {0};
    struct view_found found;
    char name[16];
    snprintf(name, sizeof name, "n%u", which % KEPT);
    int code = find_patiently(view, one, name, &found);
    if (code != 0 || !found.known || found.entry.ino != 9 || strncmp(found.branch, "n017.", 5) != 0)
        return 1;
    name[0] = 'z';
    code = find_patiently(view, one, name, &found);
    if (code != 0 || found.known || !found.dir_known)
        return 2;
    code = find_patiently(view, two, "a", &found);
    if (code != 0 || (found.known && found.entry.ino != 5))
        return 3;
    code = lists ? list_patiently(view, one, tell_kept, &kept) : 0;
    for (unsigned i = 0; lists && i < KEPT; i++)
        kept.wrong |= kept.told[i] != 1;
    return code != 0 || kept.wrong ? 4 : 0;
}

static void *look_all_the_while(void *context)
{
    uintptr_t wrong = 0;
    for (unsigned i = 0; !stop && wrong == 0; i++)
        wrong = (uintptr_t)look_once(context, i, i % 50 == 0);
    return (void *)wrong;
}

Test(view, next_to_a_writer_that_does_not_stop)
{
    struct view *view = view_opened();
    pthread_t threads[3];
    void *wrong;
    cr_assert_eq(view_tell("del 100 1 a"), 0);
    cr_assert_eq(view_tell("del 100 1 b"), 0);
    cr_assert_eq(view_tell("keep 100 1 %d 9 1", KEPT), 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, look_all_the_while, view), 0);
    cr_assert_eq(view_tell("stir 100 1 40"), 0);
    stop = true;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(pthread_join(threads[i], &wrong), 0);
        cr_assert_null(wrong, "%lu", (uintptr_t)wrong);
    }
    view_abandon(view);
}

/* Its file grows just then. */
Test(view, is_opened_while_its_index_grows)
{
    fprintf(to_writer, "many 100 2 300000 1\n");
    fflush(to_writer);
    struct pollfd from = {.fd = fileno(from_writer), .events = POLLIN};
    unsigned count = 0;
    for (; poll(&from, 1, 0) == 0; count++)
        view_abandon(view_opened());
    cr_assert_eq(view_answer(), 0);
    cr_assert_gt(count, 100);
}

/* Almost all of a large directory is gone, and what is left changes all the time. */
Test(view, lists_what_is_almost_empty_next_to_a_writer)
{
    struct view *view = view_opened();
    unsigned count = 0;
    cr_assert_eq(view_tell("many 100 1 100000 9"), 0);
    cr_assert_eq(view_tell("fewer 100 1 0 99990"), 0);
    fprintf(to_writer, "flip 100 1 1000000\n");
    fflush(to_writer);
    struct pollfd from = {.fd = fileno(from_writer), .events = POLLIN};
    unsigned rounds = 0;
    for (; poll(&from, 1, 0) == 0; rounds++) {
        count = 0;
        cr_assert_eq(list_patiently(view, one, count_name, &count), 0);
        cr_assert(count == 12 || count == 13, "%u", count);
    }
    cr_assert_eq(view_answer(), 0);
    cr_assert_gt(rounds, 3, "each took as long as the writer was at it");
    view_abandon(view);
}

Test(view, goes_on_where_a_listing_stopped)
{
    struct view *view = view_opened();
    struct listed listed = {.in_order = true, .stop_after = 100};
    struct view_place at = {0};
    unsigned rounds = 0;
    cr_assert_eq(view_tell("many 100 1 1000 9"), 0);
    while (view_list(view, one, &at, view_each, &listed) == 17) {
        cr_assert_eq(listed.count, 100);
        listed.count = 0;
        rounds++;
    }
    cr_assert(rounds == 10 && listed.count == 2 && listed.in_order);
    view_abandon(view);
}

Test(view, keeps_no_descriptor)
{
    struct view *view = view_opened();
    char target[64];
    for (int fd = 3; fd < 200; fd++) {
        ssize_t length = readlink(place_path("../../proc/self/fd/%d", fd), target, sizeof target);
        cr_assert(length < 0 || memmem(target, (size_t)length, "/index", 6) == NULL);
    }
    view_abandon(view);
}

/* Fork. */

static int look_again(struct view *view)
{
    if (ino_of(view, one, "a") != 5)
        return 2;
    return view_tell("put 100 1 a 7 0 0") == 0 && ino_of(view, one, "a") == 7 && view_tell("put 100 1 a 5 0 0") == 0 ? 0 : 1;
}

static int look_again_in_a_child(struct view *view)
{
    return look_again(view) == 0 ? in_child(look_again, view) : 1;
}

Test(view, children_go_on_with_it)
{
    struct view *view = view_opened();
    for (int i = 0; i < 10; i++)
        cr_assert_eq(in_child(look_again_in_a_child, view), 0);
    cr_assert_eq(ino_of(view, one, "b"), 6);
    view_abandon(view);
}

/* Neither the files nor any descriptor can be had. */
static int look_with_nothing(struct view *view)
{
    struct rlimit none = {0, 0};
    if (chroot("/proc/self/fdinfo") != 0 || setrlimit(RLIMIT_NOFILE, &none) != 0 || setuid(65534) != 0)
        return 3;
    return look_again(view);
}

Test(view, a_child_opens_nothing)
{
    struct view *view = view_opened();
    if (geteuid() == 0)
        cr_assert_eq(in_child(look_with_nothing, view), 0);
    view_abandon(view);
}

/* Threads. */

#define THREADS 100

/* Each look ends its turn: the writer, which 300 questions wait for, would else stand behind all of them each time. */
static void *look_often(void *context)
{
    struct view *view = context;
    int64_t last = 0;
    while (!stop) {
        int64_t ino = ino_of(view, one, "x");
        if (ino < last || ino_of(view, one, "a") != 5)
            return (void *)1;
        last = ino;
        sched_yield();
    }
    return NULL;
}

Test(view, many_threads)
{
    struct view *view = view_opened();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, look_often, view), 0);
    for (int i = 1; i <= 300; i++) {
        cr_assert_eq(view_tell("put 100 1 x %d 0 0", i), 0);
        if (i % 30 == 0) /* buckets are parted, and emptied, under way */
            cr_assert_eq(view_tell(i % 60 ? "many 100 1 20000 1" : "fewer 100 1 0 20000"), 0);
    }
    stop = true;
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        cr_assert_eq(pthread_join(threads[i], &wrong), 0);
        cr_assert_null(wrong, "thread %d went back in time", i);
    }
    view_abandon(view);
}

/* A lookup within a lookup, as a signal handler makes one. */
static int look_within(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    return (int)ino_of(context, one, "a");
}

Test(view, a_lookup_within_a_lookup)
{
    struct view *view = view_opened();
    cr_assert_eq(test_view_list(view, one, 0, look_within, view), 5);
    view_abandon(view);
}

/* Its writer stands still in the middle of a change: nobody waits for it for ever. */
Test(view, a_writer_that_stands_still)
{
    struct view *view = view_opened();
    struct view_found found;
    char head[4096];
    int fd = open(place_path("index"), O_RDWR | O_CLOEXEC);
    cr_assert_eq(pread(fd, head, sizeof head, 0), (ssize_t)sizeof head);
    struct table_map *things = &((struct table_head *)head)->things;
    things->changes++;
    cr_assert_eq(pwrite(fd, head, sizeof head, 0), (ssize_t)sizeof head);
    cr_assert_eq(view_find(view, one, "a", 1, &found), -EBUSY);
    cr_assert_eq(test_view_list(view, one, 0, look_within, view), -EBUSY);
    things->changes++;
    cr_assert_eq(pwrite(fd, head, sizeof head, 0), (ssize_t)sizeof head);
    cr_assert_eq(view_find(view, one, "a", 1, &found), 0);
    close(fd);
    view_abandon(view);
}

/* Refusals. */

static int view_refusal(const struct index_stamp *expected)
{
    struct view *view;
    return view_open(&view, place, expected);
}

Test(view, another_session_or_root)
{
    cr_assert_eq(view_refusal(&(struct index_stamp){.session = 78, .root = {2, 3}}), -ESTALE);
    cr_assert_eq(view_refusal(&(struct index_stamp){.session = 77, .root = {1, 3}}), -ESTALE);
    cr_assert_eq(view_refusal(&(struct index_stamp){.session = 77, .root = {2, 4}}), -ESTALE);
    cr_assert_eq(view_refusal(&stamp), 0);
}

static int open_it(struct view *none)
{
    int code = view_refusal(&stamp);
    return code < 0 && code >= -255 ? -code : code;
}

static void end_writer(void)
{
    kill(writer, SIGKILL);
}

Test(view, no_index)
{
    end_writer();
    unlink(place_path("index"));
    cr_assert_eq(in_child(open_it, NULL), ENOENT);
    cr_assert_not(place_has("index"), "a view makes no files");
}

static void put_file(const char *name, const char *bytes, size_t size)
{
    int fd = open(place_path("%s", name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && close(fd) == 0);
}

static size_t get_file(const char *name, char *bytes, size_t size)
{
    int fd = open(place_path("%s", name), O_RDONLY);
    ssize_t got = fd >= 0 ? read(fd, bytes, size) : -1;
    cr_assert(got > 0 && close(fd) == 0);
    return (size_t)got;
}

Test(view, foreign_files)
{
    static char noise[40000], good[1 << 21];
    unsigned seed = 7;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)place_next(&seed);
    end_writer();
    size_t size = get_file("index", good, sizeof good);
    const struct {
        const char *bytes;
        size_t size;
    } bad[] = {{noise, 0}, {noise, 1}, {noise, 100}, {noise, sizeof noise}, {"not an index\n", 13}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_file("index", bad[i].bytes, bad[i].size);
        cr_assert_eq(in_child(open_it, NULL), EBADMSG, "case %zu", i);
    }
    put_file("index", good, size);
    cr_assert_eq(in_child(open_it, NULL), 0);
}

Test(view, an_index_cut_short)
{
    static char good[1 << 21];
    end_writer();
    size_t size = get_file("index", good, sizeof good), used = ((struct table_head *)good)->end;
    cr_assert(used > 500 && used < 10000);
    for (size_t cut = 0; cut < used; cut += 60) {
        put_file("index", good, cut);
        cr_assert_eq(in_child(open_it, NULL), EBADMSG, "cut to %zu", cut);
    }
    put_file("index", good, size);
    cr_assert_eq(in_child(open_it, NULL), 0);
}

/* Whatever the bytes are, a program that looks into them goes on. */
Test(view, an_index_of_any_bytes)
{
    struct view *view = view_opened();
    unsigned seed = 5, wrong = 0;
    cr_assert_eq(view_tell("dir 100 2 1"), 0);
    cr_assert_eq(view_tell("many 100 2 300 1"), 0);
    end_writer();
    int fd = open(place_path("index"), O_RDWR | O_CLOEXEC);
    static char good[40000], bad[40000];
    cr_assert_eq(pread(fd, good, sizeof good, 0), (ssize_t)sizeof good);
    for (unsigned round = 0; round < 20000; round++) {
        struct view_found found;
        unsigned count = 0;
        memcpy(bad, good, sizeof bad);
        for (unsigned i = 0; i < 1 + round % 8; i++) {
            const uint32_t noise = place_next(&seed) % 2 ? place_next(&seed) : place_next(&seed) % 128;
            memcpy(bad + place_next(&seed) % (sizeof bad - 4), &noise, 1 + place_next(&seed) % 4);
        }
        struct table_head *head = (struct table_head *)bad;
        head->things.changes &= ~1ull;
        head->end = ((struct table_head *)good)->end; /* after which there is no file */
        cr_assert_eq(pwrite(fd, bad, sizeof bad, 0), (ssize_t)sizeof bad);
        int code = view_find(view, two, "n17", 3, &found);
        wrong += code != 0 || !found.known;
        if (test_view_list(view, two, 0, count_name, &count) == 0)
            wrong += count != 300;
    }
    cr_assert_gt(wrong, 100);
    close(fd);
    view_abandon(view);
}
