/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A process and the daemon it asks: lib/names in this one, shuntd itself as a child, since a view of an index
 * and its writer cannot be linked into one program. */

#include "names/names.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>

#include "channel_memory.h"
#include "heard.h"
#include "place.h"
#include "request/channel.h"
#include "served.h"
#include "session/session.h"
#include "union/marker.h"

#define NODE "n1" /* as served_start has it */
#define OUT "out-5f3a9c01d2e4"

static struct names_root root;
static struct dirid out;

static int init_text(struct names_root *to, const char *text, size_t length, const char *run_base)
{
    memset(to, 0, sizeof *to);
    return names_root_init(to, text, length, &(struct names_settings){run_base, {NODE}, SOON, NULL});
}

static int init_root(struct names_root *to, const char *text)
{
    return init_text(to, text, strlen(text), place_path("run"));
}

static struct dirid id_of(const char *path)
{
    struct statx stat;
    cr_assert_eq(sys_statx(AT_FDCWD, place_path("%s", path), 0, STATX_INO | STATX_BTIME, &stat), 0, "%s", path);
    return dirid_of(&stat);
}

/* A root `r` with the directories `a` and `out`; in the trunk of `out` is t, in a branch of another node x.
 */
static void root_init(void)
{
    place_init();
    place_directory("run");
    place_directory("r/a/deep");
    place_directory("r/out");
    place_directory("r/.shunt/b/n9.1/" OUT "/4");
    place_file("r/out/t", "");
    place_file("r/.shunt/b/n9.1/" OUT "/4/x", "");
    out = id_of("r/out");
    struct marker marker = {.id = 0x5f3a9c01d2e4, .mirror = OUT, .directory = out, .path = "out"};
    int fd = place_open("r/out");
    cr_assert_eq(marker_write(fd, &marker), 0);
    close(fd);
    cr_assert_eq(init_root(&root, place_path("r")), 0);
}

/* The root that waits for the daemon is not the one that is tested. */
static void start_daemon(void)
{
    static struct names_root waiting;
    memset(&waiting, 0, sizeof waiting);
    served_start(&waiting, "branch", "1000");
    view_abandon(waiting.view);
    request_abandon(waiting.channel);
}

static void served_init(void)
{
    root_init();
    start_daemon();
}

static void served_finish(void)
{
    served_stop(SIGTERM);
    place_finish();
}

TestSuite(root, .init = root_init, .fini = place_finish, .timeout = 120);
TestSuite(names, .init = served_init, .fini = served_finish, .timeout = 120);

static struct message names_named(uint16_t type, struct dirid directory, const char *name)
{
    return (struct message){.type = type, .dir = directory, .name = message_text(name, strlen(name))};
}

/* What the daemon says of a name: the result, and in *entry what it is. */
static int look_up(struct dirid directory, const char *name, struct record_entry *entry)
{
    struct request_answer answer;
    struct message message = names_named(MESSAGE_LOOKUP, directory, name);
    int code = names_ask(&root, &message, &answer);
    *entry = answer.message.answer.entry[0];
    return code == 0 ? answer.message.result : code;
}

static int names_reserve(struct dirid directory, const char *name)
{
    struct request_answer answer;
    struct message message = names_named(MESSAGE_CREATE, directory, name);
    message.create.entry = (struct record_entry){.type = DT_REG, .state = RECORD_PENDING};
    int code = names_ask(&root, &message, &answer);
    return code == 0 ? answer.message.result : code;
}

static int test_names_load(const char *relative)
{
    return names_load(&root, id_of(strcmp(relative, ".") ? place_path("r/%s", relative) + strlen(place) + 1 : "r"), relative);
}

static struct channel *names_shared(void)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/channel", root.run_dir);
    return channel_memory(path);
}

/* What a root is. */

Test(root, is_resolved_by_the_kernel)
{
    struct names_root other;
    const char *text = place_path("r/out/../../link/./a/..");
    char run_dir[PATH_MAX];
    struct text t;
    struct stat stat = place_stat("r");
    cr_assert_eq(symlink("r", place_path("link")), 0);
    cr_assert_eq(init_root(&other, text), 0);
    cr_assert_str_eq(other.path, place_path("r"));
    cr_assert_str_eq(other.given, text, "what the application will say");
    cr_assert(dirid_equal(other.id, id_of("r")));
    cr_assert_eq(other.device, stat.st_dev);
    cr_assert_eq(other.deadline, SOON);
    text_init(&t, run_dir, sizeof run_dir);
    session_run_dir(&t, place_path("run"), geteuid(), stat.st_dev, stat.st_ino, NODE);
    cr_assert_str_eq(other.run_dir, run_dir, "where shuntd puts its files");
}

Test(root, as_given_only_if_that_differs)
{
    struct names_root other;
    cr_assert_str_empty(root.given, "it was given by its own path");
    cr_assert_eq(chdir(place_path("r/a")), 0);
    cr_assert_eq(init_root(&other, "../../r"), 0);
    cr_assert_str_eq(other.path, place_path("r"));
    cr_assert_str_empty(other.given, "relative to a directory that will change");
    cr_assert_eq(init_root(&other, place_path("r/")), 0);
    cr_assert_str_eq(other.given, place_path("r/"));
}

Test(root, a_text_ends_where_its_length_says)
{
    struct names_root other;
    char text[2 * PATH_MAX];
    int length = snprintf(text, sizeof text, "%s", place_path("r"));
    strcpy(text + length, ":/nowhere");
    cr_assert_eq(init_text(&other, text, (size_t)length, "/run"), 0);
    cr_assert_str_eq(other.path, place_path("r"));
    memset(text, '/', PATH_MAX);
    cr_assert_eq(init_text(&other, text, PATH_MAX - 1, "/run"), 0);
    cr_assert_str_eq(other.path, "/");
    cr_assert_eq(init_text(&other, text, PATH_MAX, "/run"), -ENAMETOOLONG);
}

Test(root, failures)
{
    struct names_root other;
    char base[PATH_MAX];
    cr_assert_eq(init_root(&other, place_path("nothing")), -ENOENT);
    cr_assert_eq(init_root(&other, ""), -ENOENT);
    cr_assert_eq(init_root(&other, place_path("r/out/t")), -ENOTDIR);
    cr_assert_eq(symlink("loop", place_path("loop")), 0);
    cr_assert_eq(init_root(&other, place_path("loop")), -ELOOP);
    memset(base, 'b', sizeof base - 1);
    base[sizeof base - 1] = '\0';
    cr_assert_eq(init_text(&other, place, strlen(place), base), -ENAMETOOLONG);
}

Test(root, device_as_stat_has_it)
{
    const char *const paths[] = {"/", "/proc", "/dev", "/dev/shm", "/sys"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct statx statx;
        struct stat plain;
        if (stat(paths[i], &plain) != 0)
            continue;
        cr_assert_eq(sys_statx(AT_FDCWD, paths[i], 0, STATX_INO, &statx), 0);
        cr_assert_eq(names_device(&statx), plain.st_dev, "%s", paths[i]);
    }
}

/* The place of an open directory. */

static int place_of(struct names_root *in, const char *path, const char **relative)
{
    static char text[PATH_MAX];
    int fd = open(path, O_PATH | O_CLOEXEC);
    cr_assert(fd >= 0, "%s: %m", path);
    *relative = NULL;
    int answer = names_place_of(in, fd, text, relative);
    close(fd);
    return answer;
}

Test(root, place_of_a_directory)
{
    const struct {
        const char *path, *relative;
    } inside[] = {
        {"r", "."}, {"r/a/deep/..", "a"}, {"link/a/deep", "a/deep"}, {"r/.shunty", ".shunty"}, {"r/a/.shunt", "a/.shunt"}};
    const char *const outside[] = {"", "run", "rr", "rr/a", "r/.shunt", "r/.shunt/b/n9.1", "r/away"};
    const char *relative;
    place_directory("r/.shunty");
    place_directory("r/a/.shunt");
    place_directory("rr/a");
    cr_assert_eq(symlink("r", place_path("link")), 0);
    cr_assert_eq(symlink("../run", place_path("r/away")), 0);
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        cr_assert_eq(place_of(&root, place_path("%s", inside[i].path), &relative), 1, "%s", inside[i].path);
        cr_assert_str_eq(relative, inside[i].relative);
    }
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        cr_assert_eq(place_of(&root, place_path("%s", outside[i]), &relative), 0, "%s", outside[i]);
}

Test(root, place_beneath_the_root_of_all)
{
    struct names_root all;
    const char *relative;
    cr_assert_eq(init_root(&all, "/"), 0);
    cr_assert_eq(place_of(&all, "/proc", &relative), 1);
    cr_assert_str_eq(relative, "proc");
    cr_assert_eq(place_of(&all, "/", &relative), 1);
    cr_assert_str_eq(relative, ".");
}

Test(root, place_of_what_has_none)
{
    char text[PATH_MAX];
    const char *relative;
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_lt(names_place_of(&root, ends[0], text, &relative), 0);
    close(ends[0]);
    close(ends[1]);
    cr_assert_lt(names_place_of(&root, ends[0], text, &relative), 0);
}

/* Opens a directory whose whole path has `length` bytes, beneath `from`. */
static int names_dig(const char *from, size_t length)
{
    int fd = place_open(from);
    for (size_t at = strlen(place) + 1 + strlen(from); at < length;) {
        char name[NAME_MAX + 1] = "";
        size_t left = length - at - 1, step = left <= 200 ? left : left == 201 ? 199 : 200;
        memset(name, 'd', step);
        cr_assert(mkdirat(fd, name, 0755) == 0 || errno == EEXIST);
        int below = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        cr_assert(below >= 0, "%m");
        close(fd);
        fd = below;
        at += 1 + step;
    }
    return fd;
}

static int place_at_depth(const char *from, size_t length)
{
    char text[PATH_MAX];
    const char *relative = NULL;
    int fd = names_dig(from, length);
    int answer = names_place_of(&root, fd, text, &relative);
    close(fd);
    cr_assert(answer != 1 || relative == text + strlen(root.path) + 1);
    return answer;
}

Test(root, place_of_a_deep_directory)
{
    const size_t deepest = PATH_MAX - NAME_MAX - 2; /* a slash, the longest name and the end still fit */
    char command[3 * PATH_MAX];
    cr_assert_eq(place_at_depth("r/a", deepest), 1);
    cr_assert_eq(place_at_depth("r/a", deepest + 1), -ENAMETOOLONG);
    cr_assert_eq(place_at_depth("r/a", PATH_MAX + 500), -ENAMETOOLONG);
    cr_assert_eq(place_at_depth("run", deepest + 1), 0);
    cr_assert_eq(place_at_depth("run", PATH_MAX + 500), 0, "it is not beneath the root, however deep");
    snprintf(command, sizeof command, "rm -rf '%s/r/a' '%s/run'", place, place);
    cr_assert_eq(system(command), 0);
}

/* Without a daemon. */

static int each_never(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    cr_assert_fail("there is nothing to list");
    return 0;
}

static void assert_nothing_works(void)
{
    struct view_found found;
    struct record_entry entry;
    struct message message = names_named(MESSAGE_COMMIT, out, "t");
    cr_assert_eq(names_attach(&root), -EIO);
    cr_assert_eq(names_find(&root, root.id, "a", 1, &found), -EIO);
    cr_assert_eq(names_list(&root, root.id, &(uint64_t){0}, 0, each_never, NULL), -EIO);
    cr_assert_eq(look_up(out, "t", &entry), -EIO);
    cr_assert_eq(test_names_load("out"), -EIO);
    names_tell(&root, &message);
}

Test(root, without_a_daemon_all_fails_and_says_why_once)
{
    char expected[2 * PATH_MAX];
    snprintf(expected, sizeof expected, "shunt: %s: no daemon is running for this root (run 'shunt start --root ", root.path);
    hear();
    cr_assert_not(names_is_attached(&root));
    hear_end();
    cr_assert_str_empty(heard_error.words, "whether it is asked for at all is not known yet");
    hear();
    for (int i = 0; i < 3; i++)
        assert_nothing_works();
    cr_assert_not(names_is_attached(&root));
    hear_end();
    cr_assert_eq(heard_lines(heard_error.words), 1, "%s", heard_error.words);
    cr_assert_eq(strncmp(heard_error.words, expected, strlen(expected)), 0, "%s", heard_error.words);
    cr_assert_str_empty(heard_out.words);
    cr_assert_not(names_has_redirected(&root));
    cr_assert_eq(names_places(&root), 0);
}

Test(root, each_root_says_its_own_reason)
{
    struct names_root other;
    place_directory("s");
    cr_assert_eq(init_root(&other, place_path("s")), 0);
    hear();
    cr_assert_eq(names_attach(&root), -EIO);
    cr_assert_eq(names_attach(&other), -EIO);
    hear_end();
    cr_assert_eq(heard_lines(heard_error.words), 2, "%s", heard_error.words);
    cr_assert(strstr(heard_error.words, root.path) && strstr(heard_error.words, other.path));
}

/* With one. */

/* What the environment calls the node may come from another host. */
Test(names, a_daemon_by_another_name_of_its_node)
{
    struct names_root one;
    const struct names_settings settings = {place_path("run"), {"elsewhere", "nor_this", NODE}, SOON, NULL};
    memset(&one, 0, sizeof one);
    cr_assert_eq(names_root_init(&one, place_path("r"), strlen(place_path("r")), &settings), 0);
    cr_assert(strstr(one.run_dir, "-elsewhere") != NULL);
    cr_assert_eq(names_attach(&one), 0);
    cr_assert(strstr(one.run_dir, "-" NODE) != NULL && one.channel != NULL);
    view_abandon(one.view);
    request_abandon(one.channel);
}

Test(names, attaches_once)
{
    struct request_channel *channel;
    struct view *view;
    hear();
    cr_assert_eq(names_attach(&root), 0);
    channel = root.channel;
    view = root.view;
    cr_assert(names_is_attached(&root));
    cr_assert_eq(names_attach(&root), 0);
    hear_end();
    cr_assert_str_empty(heard_error.words);
    cr_assert(channel && view && root.channel == channel && root.view == view);
    cr_assert(dirid_equal(request_root(root.channel), root.id));
}

Test(names, attaching_leaves_no_trace_in_the_thread)
{
    sigset_t mask, now;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    cr_assert_eq(sigprocmask(SIG_SETMASK, &mask, NULL), 0);
    errno = 77;
    cr_assert_eq(names_attach(&root), 0);
    cr_assert_eq(errno, 77);
    cr_assert_eq(sigprocmask(SIG_SETMASK, NULL, &now), 0);
    for (int i = 1; i < SIGRTMAX; i++)
        cr_assert_eq(sigismember(&now, i), i == SIGUSR1, "signal %d", i);
}

static pthread_barrier_t together;

static void *attach_together(void *context)
{
    struct view_found found;
    pthread_barrier_wait(&together);
    *(int *)context = names_find(&root, root.id, "out", 3, &found);
    return NULL;
}

static unsigned mappings_of(const char *path)
{
    char line[2 * PATH_MAX];
    unsigned count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        count += strstr(line, path) != NULL;
    fclose(maps);
    return count;
}

Test(names, threads_attach_at_once)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    int codes[THREADS];
    cr_assert_eq(pthread_barrier_init(&together, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, attach_together, &codes[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(codes[i], 0);
    }
    cr_assert_eq(mappings_of("/channel"), 1, "one of them mapped it for all");
}

Test(names, finds_what_was_loaded)
{
    struct view_found found;
    cr_assert_eq(names_find(&root, out, "t", 1, &found), 0);
    cr_assert_not(found.dir_known || found.known);
    cr_assert_eq(test_names_load("out"), 0);
    cr_assert_eq(names_find(&root, out, "t", 1, &found), 0);
    cr_assert(found.dir_known && found.known);
    cr_assert_eq(found.dir.flags, RECORD_LOADED | RECORD_MARKED);
    cr_assert_eq(found.entry.ino, place_stat("r/out/t").st_ino);
    cr_assert_str_empty(found.branch, "it lies in the trunk");
    cr_assert_eq(names_find(&root, out, "x", 1, &found), 0);
    cr_assert_eq(found.entry.ino, place_stat("r/.shunt/b/n9.1/" OUT "/4/x").st_ino);
    cr_assert_eq(found.entry.leaf, 4);
    cr_assert_str_eq(found.branch, "n9.1");
    cr_assert_eq(names_find(&root, out, "nothing", 7, &found), 0);
    cr_assert(found.dir_known && !found.known);
}

struct listed {
    uint64_t last;
    int count, stop_after;
    char names[8][16];
};

static int names_each(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct listed *listed = context;
    cr_assert_gt(hash, listed->last);
    listed->last = hash;
    snprintf(listed->names[listed->count], sizeof listed->names[0], "%.*s", (int)length, name);
    return ++listed->count == listed->stop_after ? 42 : 0;
}

Test(names, lists_what_was_loaded)
{
    struct listed all = {0}, first = {.stop_after = 1}, rest = {0};
    struct dirid top = id_of("r");
    uint64_t from = 0;
    place_file("r/file", "");
    cr_assert_eq(names_list(&root, top, &from, 0, each_never, NULL), -ESTALE, "it is not loaded");
    cr_assert_eq(test_names_load("."), 0);
    cr_assert_eq(names_list(&root, top, &from, 0, names_each, &all), 0);
    cr_assert_eq(all.count, 3, "a, out and file, but not .shunt");
    cr_assert_eq(from, 0, "there are no more");
    cr_assert_eq(names_list(&root, top, &from, 0, names_each, &first), 42);
    from = first.last + 1;
    cr_assert_eq(names_list(&root, top, &from, 0, names_each, &rest), 0);
    cr_assert_eq(rest.count, 2);
    cr_assert_str_eq(first.names[0], all.names[0]);
    cr_assert_str_eq(rest.names[0], all.names[1]);
    cr_assert_str_eq(rest.names[1], all.names[2]);
}

Test(names, asks_the_daemon)
{
    struct record_entry entry;
    cr_assert_eq(look_up(out, "t", &entry), MESSAGE_NOT_LOADED);
    cr_assert_eq(test_names_load("out"), 0);
    cr_assert_eq(look_up(out, "t", &entry), MESSAGE_EXISTS);
    cr_assert_eq(entry.ino, place_stat("r/out/t").st_ino);
    cr_assert_eq(look_up(out, "nothing", &entry), MESSAGE_ABSENT);
    hear();
    cr_assert_eq(look_up(out, "not/a/name", &entry), -EBADMSG, "what it says is handed on");
    hear_end();
    cr_assert_str_empty(heard_error.words, "the root can be used all the same");
}

Test(names, tells_the_daemon)
{
    struct record_entry entry;
    struct message message;
    cr_assert_eq(test_names_load("a"), 0);
    cr_assert_eq(names_reserve(id_of("r/a"), "new"), 0);
    message = names_named(MESSAGE_COMMIT, id_of("r/a"), "new");
    message.commit.entry = (struct record_entry){.type = DT_REG, .state = RECORD_LIVE, .ino = 123456};
    names_tell(&root, &message);
    cr_assert_eq(look_up(id_of("r/a"), "new", &entry), MESSAGE_EXISTS);
    cr_assert_eq(entry.ino, 123456);
    cr_assert_eq(names_reserve(id_of("r/a"), "never"), 0);
    message = names_named(MESSAGE_ABORT, id_of("r/a"), "never");
    names_tell(&root, &message);
    cr_assert_eq(look_up(id_of("r/a"), "never", &entry), MESSAGE_ABSENT);
}

Test(names, loads_the_directory_that_is_meant)
{
    cr_assert_eq(test_names_load("."), 0);
    cr_assert_eq(test_names_load("a/deep"), 0);
    cr_assert_eq(test_names_load("a/deep"), 0, "already");
    cr_assert_eq(names_load(&root, out, "a"), -ESTALE);
    cr_assert_eq(names_load(&root, out, "nothing"), -ENOENT);
    cr_assert_eq(names_load(&root, id_of("run"), "../run"), -EXDEV);
    cr_assert_eq(names_load(&root, id_of("r/.shunt"), ".shunt"), -EXDEV);
    struct dirid before = id_of("r/a");
    cr_assert_eq(rename(place_path("r/a"), place_path("r/moved")), 0);
    place_directory("r/a");
    cr_assert_eq(names_load(&root, before, "a"), -ESTALE, "another directory is there now");
    cr_assert_eq(names_load(&root, before, "moved"), 0);
    cr_assert_eq(test_names_load("a"), 0);
}

Test(names, is_told_of_the_first_redirection)
{
    cr_assert_eq(names_attach(&root), 0);
    cr_assert_not(names_has_redirected(&root));
    cr_assert_eq(test_names_load("out"), 0);
    cr_assert_not(names_has_redirected(&root));
    cr_assert_eq(names_reserve(out, "new"), 0);
    cr_assert(names_has_redirected(&root), "the trunk's time is not that of the last birth");
}

Test(names, what_was_seen_of_a_thousand_names)
{
    const struct record_entry entry = {.type = DT_REG, .state = RECORD_LIVE, .branch = 3, .leaf = 4, .ino = 5};
    struct view_found found = {0};
    unsigned recalled = 0;
    bool prefetched = true;
    char name[20];
    cr_assert_eq(names_attach(&root), 0);
    for (int i = 0; i < 2000; i++)
        names_remember(&root, out, name, (size_t)sprintf(name, "name%d", i), &entry, "node.1", "out-1");
    for (int i = 0; i < 2000; i++)
        recalled += names_recall(&root, out, name, (size_t)sprintf(name, "name%d", i), &found, &prefetched);
    cr_assert_not(prefetched);
    cr_assert_gt(recalled, 1980, "%u", recalled); /* with one place each it would be some 1,770, with two 1,940 */
    cr_assert(record_same(&found.entry, &entry) && strcmp(found.branch, "node.1") == 0 &&
              strcmp(found.dir.mirror, "out-1") == 0);
    cr_assert_not(names_recall(&root, out, "name", 4, &found, &prefetched));
}

Test(names, a_word_for_places_is_everybodys)
{
    struct names_root other;
    cr_assert_eq(init_root(&other, place_path("r/a/..")), 0);
    cr_assert_eq(names_attach(&root), 0);
    cr_assert_eq(names_attach(&other), 0);
    uint64_t before = names_places(&root);
    cr_assert_eq(names_places(&other), before);
    request_raise_places(other.channel);
    cr_assert_neq(names_places(&root), before);
    cr_assert_eq(names_places(&root), names_places(&other));
}

/* A daemon that ends, hangs, or is another's. */

static const char *why_not_attached(void)
{
    root.told = 0;
    hear();
    cr_assert_not(names_is_attached(&root));
    cr_assert_eq(names_attach(&root), -EIO);
    hear_end();
    cr_assert_eq(heard_lines(heard_error.words), 1, "%s", heard_error.words);
    return heard_error.words;
}

Test(names, a_killed_daemon_is_noticed_and_its_successor_found)
{
    struct record_entry entry;
    cr_assert_eq(test_names_load("out"), 0);
    served_stop(SIGKILL);
    cr_assert(strstr(why_not_attached(), "the daemon of this node has ended"));
    cr_assert_eq(look_up(out, "t", &entry), -EIO);
    start_daemon();
    cr_assert_eq(look_up(out, "t", &entry), MESSAGE_NOT_LOADED, "it begins with nothing");
    cr_assert_eq(test_names_load("out"), 0);
    cr_assert_eq(look_up(out, "t", &entry), MESSAGE_EXISTS);
}

Test(names, a_stopped_daemon_leaves_nothing)
{
    struct view_found found;
    cr_assert_eq(test_names_load("out"), 0);
    cr_assert_eq(served_stop(SIGTERM), 0);
    cr_assert(strstr(why_not_attached(), "no daemon is running for this root"));
    cr_assert_eq(names_find(&root, out, "t", 1, &found), -EIO, "an index that nobody keeps up");
}

Test(names, a_daemon_that_hangs)
{
    struct record_entry entry;
    cr_assert_eq(test_names_load("out"), 0);
    root.deadline = 50 * CLOCK_MILLISECOND;
    kill(served_pid, SIGSTOP);
    hear();
    cr_assert_eq(look_up(out, "t", &entry), -EIO);
    cr_assert_eq(look_up(out, "t", &entry), -EIO);
    hear_end();
    kill(served_pid, SIGCONT);
    cr_assert_eq(heard_lines(heard_error.words), 1, "%s", heard_error.words);
    cr_assert(strstr(heard_error.words, "did not answer within SHUNT_DEADLINE"), "%s", heard_error.words);
    root.deadline = SOON;
    cr_assert_eq(look_up(out, "t", &entry), MESSAGE_EXISTS);
}

Test(names, a_channel_of_another_make)
{
    struct channel *channel = names_shared();
    channel->version++;
    cr_assert(strstr(why_not_attached(), "of another version of shunt"));
    channel->version--;
    channel->pid_namespace++;
    cr_assert(strstr(why_not_attached(), "in another PID namespace"));
    channel->pid_namespace--;
    cr_assert_eq(chmod(root.run_dir, 0755), 0);
    cr_assert(strstr(why_not_attached(), "belongs to another user"));
    cr_assert_eq(chmod(root.run_dir, 0700), 0);
    cr_assert_eq(names_attach(&root), 0);
}

Test(names, a_daemon_of_another_directory)
{
    root.id.birth++;
    cr_assert(strstr(why_not_attached(), "damaged or of another session"), "%s", heard_error.words);
    root.id.birth--;
    cr_assert_eq(names_attach(&root), 0);
}

/* Indexes that are not this session's. */

static const char *in_run_dir(const char *name)
{
    static char paths[4][PATH_MAX + 64];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", root.run_dir, name);
    return path;
}

/* The daemon goes on with the file that it has open. */
static void set_aside(void)
{
    cr_assert_eq(rename(in_run_dir("index"), in_run_dir("kept")), 0);
}

static void put_back(void)
{
    cr_assert_eq(rename(in_run_dir("kept"), in_run_dir("index")), 0);
    cr_assert_eq(names_attach(&root), 0);
}

Test(names, an_index_of_another_session_is_refused)
{
    char command[3 * PATH_MAX];
    set_aside();
    snprintf(command, sizeof command, INDEX_WRITER " '%s' </dev/null >/dev/null", root.run_dir);
    cr_assert_eq(system(command), 0);
    cr_assert_eq(access(in_run_dir("index"), F_OK), 0);
    cr_assert(strstr(why_not_attached(), "damaged or of another session"), "%s", heard_error.words);
    put_back();
}

static void write_noise(const char *path, size_t size)
{
    unsigned seed = 7;
    FILE *file = fopen(path, "w");
    cr_assert(file, "%s: %m", path);
    for (size_t i = 0; i < size; i++)
        fputc((int)(place_next(&seed) & 255), file);
    cr_assert_eq(fclose(file), 0);
}

Test(names, a_damaged_index_is_refused)
{
    static const size_t sizes[] = {0, 1, 4096, 65536};
    set_aside();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        write_noise(in_run_dir("index"), sizes[i]);
        cr_assert(strstr(why_not_attached(), "shunt: "), "%zu bytes", sizes[i]);
        cr_assert_not(root.view || root.channel, "both or none");
    }
    cr_assert_eq(mappings_of("/channel"), 0, "what was mapped without success is given back");
    put_back();
}

/* Children. */

Test(names, a_process_that_is_no_child_keeps_what_it_has)
{
    cr_assert_eq(names_process_init(), 0);
    cr_assert_eq(names_attach(&root), 0);
    struct request_channel *channel = root.channel;
    struct view *view = root.view;
    names_process_check(&root, 1);
    cr_assert(root.channel == channel && root.view == view);
}

/* No assertions in a child: the number says which step failed. */
static int child_asks(struct channel *memory)
{
    struct view_found found;
    struct record_entry entry;
    pid_t parent = getppid();
    unsigned before = channel_memory_qps(memory, parent);
    root.attaching = 1; /* as if another thread had been at it */
    names_process_check(&root, 1);
    if (root.channel != NULL)
        return 1;
    if (names_find(&root, out, "x", 1, &found) != 0 || strcmp(found.branch, "n9.1") != 0)
        return 2;
    if (look_up(out, "t", &entry) != MESSAGE_EXISTS)
        return 3;
    if (channel_memory_qps(memory, getpid()) != 1 || channel_memory_qps(memory, parent) != before)
        return 4;
    struct request_channel *channel = root.channel;
    names_process_check(&root, 1);
    return root.channel == channel ? 0 : 5;
}

static int in_child(int (*steps)(struct channel *), struct channel *memory)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(steps(memory));
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void attached_parent(void)
{
    struct record_entry entry;
    cr_assert_eq(names_process_init(), 0);
    cr_assert_eq(test_names_load("out"), 0);
    cr_assert_eq(look_up(out, "t", &entry), MESSAGE_EXISTS);
}

Test(names, a_fork_child_has_a_qp_of_its_own)
{
    struct record_entry entry;
    attached_parent();
    cr_assert_eq(in_child(child_asks, names_shared()), 0);
    cr_assert_eq(look_up(out, "t", &entry), MESSAGE_EXISTS, "the parent has lost nothing");
}

static int grandchild_asks(struct channel *memory)
{
    names_process_check(&root, 1);
    return in_child(child_asks, memory);
}

Test(names, a_child_of_a_child_that_never_asked)
{
    attached_parent();
    cr_assert_eq(in_child(grandchild_asks, names_shared()), 0);
}

static int asks_as_another(struct channel *memory)
{
    if (geteuid() == 0 && (setgid(12345) || setuid(12345)))
        return 99;
    if (geteuid() == 12345 && access(root.run_dir, R_OK) == 0)
        return 98;
    return child_asks(memory);
}

Test(names, a_child_that_lost_the_permission_to_map)
{
    attached_parent();
    cr_assert_eq(in_child(asks_as_another, names_shared()), 0);
}

static int asks_the_successor(struct channel *unused)
{
    struct record_entry entry;
    names_process_check(&root, 1);
    if (look_up(out, "t", &entry) != MESSAGE_NOT_LOADED)
        return 1;
    return names_load(&root, out, "out") == 0 && look_up(out, "t", &entry) == MESSAGE_EXISTS ? 0 : 2;
}

Test(names, a_child_does_not_go_on_with_a_daemon_that_is_gone)
{
    attached_parent();
    served_stop(SIGKILL);
    start_daemon();
    cr_assert_eq(in_child(asks_the_successor, NULL), 0);
}

/* A vfork child runs in its parent's memory while that sleeps. */
static int share_memory(void *answer)
{
    struct record_entry entry;
    names_process_check(&root, 1);
    *(int *)answer = look_up(out, "t", &entry);
    return 0;
}

Test(names, a_vfork_child_uses_what_its_parent_has)
{
    static char stack[1 << 18] __attribute__((aligned(16)));
    int status, answer = -1;
    attached_parent();
    struct request_channel *channel = root.channel;
    struct view *view = root.view;
    pid_t child = clone(share_memory, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &answer);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert_eq(answer, MESSAGE_EXISTS);
    cr_assert(root.channel == channel && root.view == view);
}
