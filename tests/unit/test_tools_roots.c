/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What the tools know of a root that nobody serves, or another does: no daemon, no shim. */

#include <signal.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "cli/command.h"
#include "cli/roots.h"
#include "cli/stopping.h"
#include "programs/launch.h"
#include "programs/places.h"
#include "serving/daemon.h"
#include "serving/hold.h"
#include "tree/orphans.h"
#include "tree/walk.h"
#include "heard.h"
#include "tree.h"

const struct command commands[] = {{0}};

#define ROOT_SUITE(name) TestSuite(name, .init = tree_init, .fini = tree_finish, .timeout = 60)

ROOT_SUITE(roots);
ROOT_SUITE(walk);
ROOT_SUITE(mirrors);
ROOT_SUITE(orphans);
ROOT_SUITE(hold);
ROOT_SUITE(stop);

/* The roots of a command line. */

static struct roots roots;

static int tools_roots_add(const char *path)
{
    hear();
    int answer = roots_add(&roots, path);
    hear_end();
    cr_assert_eq(heard_lines(heard_error.words), answer < 0, "%s", heard_error.words);
    return answer;
}

Test(roots, are_canonical_and_stand_once)
{
    roots_init(&roots);
    cr_assert_eq(tools_roots_add(place_path("r/out/..")), 0);
    cr_assert_eq(symlink("r", place_path("link")), 0);
    cr_assert_eq(tools_roots_add(place_path("link")), 0);
    cr_assert_eq(chdir(place_path("r/out")), 0);
    cr_assert_eq(tools_roots_add(".."), 0);
    cr_assert_eq(roots.count, 1);
    cr_assert_eq(tools_roots_add("."), 0);
    cr_assert_eq(roots.count, 2);
    cr_assert_str_eq(roots.paths[0], place_path("r"));
    cr_assert_str_eq(roots.paths[1], place_path("r/out"));
    char *joined = roots_join(&roots), expected[2 * PATH_MAX];
    snprintf(expected, sizeof expected, "%s:%s", place_path("r"), place_path("r/out"));
    cr_assert_str_eq(joined, expected);
    free(joined);
    roots_finish(&roots);
    cr_assert_eq(roots.count, 0);
    joined = roots_join(&roots);
    cr_assert_str_empty(joined);
    free(joined);
}

Test(roots, that_cannot_be_roots)
{
    roots_init(&roots);
    place_directory("a:b");
    cr_assert_eq(tools_roots_add(place_path("nothing")), -1);
    cr_assert(strstr(heard_error.words, "does not exist"));
    cr_assert_eq(tools_roots_add(place_path("r/out/t")), -1);
    cr_assert(strstr(heard_error.words, "not a directory"));
    cr_assert_eq(tools_roots_add(place_path("a:b")), -1);
    cr_assert(strstr(heard_error.words, "has a colon"));
    cr_assert_eq(roots.count, 0);
}

Test(roots, more_than_are_allowed)
{
    roots_init(&roots);
    for (int i = 0; i < ROOTS_MAX; i++) {
        cr_assert_eq(mkdir(place_path("r%d", i), 0755), 0);
        cr_assert_eq(tools_roots_add(place_path("r%d", i)), 0);
    }
    cr_assert_eq(tools_roots_add(place_path("r0")), 0, "it is there already");
    cr_assert_eq(tools_roots_add(place_path("r")), -1);
    cr_assert_eq(roots.count, ROOTS_MAX);
    roots_finish(&roots);
}

static int from_environment(const char *value)
{
    if (value)
        setenv("SHUNT_ROOT", value, 1);
    else
        unsetenv("SHUNT_ROOT");
    hear();
    int answer = roots_default(&roots);
    hear_end();
    cr_assert_eq(heard_lines(heard_error.words), answer < 0, "%s", heard_error.words);
    return answer;
}

Test(roots, of_the_environment)
{
    char both[2 * PATH_MAX];
    roots_init(&roots);
    cr_assert_eq(from_environment(NULL), -1);
    cr_assert(strstr(heard_error.words, "--root DIR"));
    cr_assert_eq(from_environment(""), -1);
    cr_assert_eq(from_environment("::"), -1);
    snprintf(both, sizeof both, ":%s::%s/", place_path("r"), place_path("r/out"));
    cr_assert_eq(from_environment(both), 0);
    cr_assert_eq(roots.count, 2);
    cr_assert_str_eq(getenv("SHUNT_ROOT"), both, "it is not taken apart in place");
    roots_finish(&roots);
    cr_assert_eq(tools_roots_add(place_path("r")), 0);
    cr_assert_eq(from_environment("/nothing"), 0, "what was given goes before it");
    cr_assert_eq(roots.count, 1);
    roots_finish(&roots);
    snprintf(both, sizeof both, "%s:/nothing", place_path("r"));
    cr_assert_eq(from_environment(both), -1);
    roots_finish(&roots);
}

/* What a node is called. */

static const char *host_name;

/* In libc's place; the host's own unless a test says otherwise. */
int gethostname(char *to, size_t size)
{
    struct utsname machine;
    uname(&machine);
    snprintf(to, size, "%s", host_name ? host_name : machine.nodename);
    return 0;
}

static const char *node_of(const char *given, const char *environment)
{
    static struct daemon_options options;
    memset(&options, 0, sizeof options);
    if (environment)
        setenv("SHUNT_NODE", environment, 1);
    else
        unsetenv("SHUNT_NODE");
    hear();
    int answer = daemon_node(&options, given);
    hear_end();
    cr_assert_eq(heard_lines(heard_error.words), answer < 0, "%s", heard_error.words);
    return answer == 0 ? options.node : NULL;
}

Test(node, is_what_it_is_told)
{
    char longest[LAYOUT_NODE_MAX + 2];
    cr_assert_str_eq(node_of("n-1_x.y", "other"), "n-1_x.y");
    cr_assert_str_eq(node_of(NULL, "other"), "other");
    cr_assert_str_eq(node_of("", "other"), "other");
    cr_assert_null(node_of("../x", "other"));
    cr_assert_null(node_of("-x", "other"));
    cr_assert_null(node_of(NULL, "a/b"));
    memset(longest, 'n', sizeof longest);
    longest[LAYOUT_NODE_MAX] = '\0';
    cr_assert_str_eq(node_of(longest, NULL), longest);
    longest[LAYOUT_NODE_MAX] = 'n';
    longest[LAYOUT_NODE_MAX + 1] = '\0';
    cr_assert_null(node_of(longest, NULL));
}

Test(node, else_the_hosts)
{
    static const char *const hosts[][2] = {{"n017", "n017"},     {"n017.cluster.example", "n017"},
                                           {"-a_b c", "na_b-c"}, {"", "node"},
                                           {".example", "node"}, {"\xc3\xa4", "n-"}};
    char longest[LAYOUT_NODE_MAX + 10];
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        host_name = hosts[i][0];
        cr_assert_str_eq(node_of(NULL, NULL), hosts[i][1]);
        cr_assert_str_eq(node_of(NULL, ""), hosts[i][1]);
    }
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    host_name = longest;
    cr_assert_eq(strlen(node_of(NULL, NULL)), LAYOUT_NODE_MAX);
}

/* Other programs do without the shim. */

static const char *preload_after(const char *before)
{
    if (before)
        setenv("LD_PRELOAD", before, 1);
    else
        unsetenv("LD_PRELOAD");
    launch_without_shim();
    return getenv("LD_PRELOAD");
}

Test(launch, takes_the_shim_out)
{
    static const char *const cases[][2] = {
        {"/a/libshunt_preload.so:/b/other.so", "/b/other.so"},     {"x.so libshunt_preload.so y.so", "x.so:y.so"},
        {"x.so::  y.so:/a/$LIB/libshunt_preload.so", "x.so:y.so"}, {"/a/notlibshunt_preload.so", "/a/notlibshunt_preload.so"},
        {"/a/libshunt_preload.so.0", "/a/libshunt_preload.so.0"},
    };
    const char *const nothing_left[] = {NULL, "", ":", "/a/libshunt_preload.so", "libshunt_preload.so:/b/libshunt_preload.so"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_str_eq(preload_after(cases[i][0]), cases[i][1]);
    for (size_t i = 0; i < sizeof nothing_left / sizeof *nothing_left; i++)
        cr_assert_null(preload_after(nothing_left[i]), "%s", nothing_left[i]);
}

Test(places, say_what_is_missing)
{
    char to[PATH_MAX];
    hear();
    cr_assert_eq(places_daemon(to), -1);
    hear_end();
    cr_assert_eq(strncmp(heard_error.words, "shunt: shuntd: not found next to /", 34), 0, "%s", heard_error.words);
    hear();
    cr_assert_eq(places_preload(to), -1);
    hear_end();
    cr_assert_eq(strncmp(heard_error.words, "shunt: libshunt_preload.so: not found next to /", 47), 0);
}

/* Signals that ask long work to end. */

static volatile sig_atomic_t before_came;

static void tools_roots_before(int number)
{
    before_came = number;
}

Test(stopping, catches_what_came_and_gives_it_back)
{
    signal(SIGTERM, tools_roots_before);
    signal(SIGHUP, SIG_IGN);
    stopping_catch();
    cr_assert_eq(stopping(), 0);
    raise(SIGHUP);
    cr_assert_eq(stopping(), 0, "a signal that was ignored stays ignored");
    raise(SIGTERM);
    cr_assert_eq(stopping(), SIGTERM);
    cr_assert_eq(before_came, 0);
    stopping_release();
    cr_assert_eq(stopping(), 0);
    raise(SIGTERM);
    cr_assert_eq(before_came, SIGTERM);
    raise(SIGHUP);
    stopping_catch();
    raise(SIGINT);
    cr_assert_eq(stopping(), SIGINT);
    stopping_catch();
    cr_assert_eq(stopping(), SIGINT, "it is that of what is outside, too");
    cr_assert_eq(stopping_release(), SIGINT);
    raise(SIGTERM);
    cr_assert_eq(stopping_take(), SIGTERM, "it is caught still");
    cr_assert_eq(stopping_release(), 0);
}

Test(stopping, a_child_is_told_once)
{
    int status, ends[2];
    char word;
    cr_assert_eq(pipe(ends), 0);
    stopping_catch();
    pid_t child = stopping_fork();
    if (child == 0) {
        close(ends[1]);
        (void)!read(ends[0], &word, 1); /* for ever, but for the signal, which it does not catch */
        _exit(0);
    }
    raise(SIGTERM);
    cr_assert_eq(stopping_wait(child, &status), 0);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    cr_assert_eq(stopping_release(), SIGTERM);
}

/* The walk. */

/* Where it goes, one a line; an error by its number. */
static const char *tools_roots_walked(const char *from, unsigned flags)
{
    static char steps[4096];
    struct walk walk;
    int more;
    tree_open();
    steps[0] = '\0';
    cr_assert_eq(walk_init(&walk, &tree, from, flags), 0);
    while ((more = walk_next(&walk)) != 0) {
        strcat(steps, walk.folder.path);
        if (more < 0)
            sprintf(steps + strlen(steps), " %d", more);
        strcat(steps, "\n");
    }
    strcat(steps, walk.partial ? "partial" : "");
    walk_finish(&walk);
    union_root_finish(&tree);
    return steps;
}

Test(walk, each_directory_before_those_in_it)
{
    place_directory("r/a/b/c");
    place_directory("r/a/a");
    place_directory("r/a.b");
    place_directory("r/out/sub/.shunt");
    place_directory("plain/deep");
    cr_assert_eq(symlink("../plain", place_path("r/link")), 0);
    cr_assert_str_eq(tools_roots_walked(".", 0), ".\na\na/a\na/b\na/b/c\na.b\nout\nout/sub\nout/sub/.shunt\n");
    cr_assert_str_eq(tools_roots_walked("a", WALK_ONE_DEVICE), "a\na/a\na/b\na/b/c\n");
    cr_assert_str_eq(tools_roots_walked("nothing", 0), "");
    cr_assert_str_eq(tools_roots_walked("out/t", 0), "");
}

Test(walk, goes_on_after_a_broken_marker)
{
    place_directory("r/a/b");
    place_directory("r/a/.shunt-dir.0123456789abcdef");
    place_file("r/a/file", "");
    place_file("r/a/.shunt-dir", "broken");
    cr_assert_str_eq(tools_roots_walked(".", 0), ".\na -74\na/b\nout\nout/sub\n");
}

Test(walk, lists_what_it_walks)
{
    struct walk walk;
    tree_open();
    cr_assert_eq(walk_init(&walk, &tree, "out", 0), 0);
    cr_assert_eq(walk_next(&walk), 1);
    cr_assert_not_null(listing_find(&walk.folder.listing, "x", 1));
    cr_assert_eq(walk.before.stx_ino, place_stat("r/out").st_ino);
    cr_assert_eq(rmdir(place_path("r/out/sub")), 0);
    cr_assert_eq(walk_next(&walk), 0, "it went meanwhile");
    cr_assert_not(walk.partial);
    walk_finish(&walk);
    union_root_finish(&tree);
}

static int walk_as_another(const char *expected)
{
    if (geteuid() == 0 && (setgid(12345) || setuid(12345)))
        return 99;
    return strcmp(tools_roots_walked(".", 0), expected) != 0;
}

static void assert_walked_by_another(const char *expected)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(walk_as_another(expected));
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
}

Test(walk, says_what_it_could_not_see)
{
    place_directory("r/locked/below");
    cr_assert_eq(chmod(place, 0755), 0);
    cr_assert_eq(chmod(place_path("r/locked"), 0), 0);
    assert_walked_by_another(".\nlocked -13\nout\nout/sub\npartial");
    cr_assert_eq(chmod(place_path("r/locked"), 0311), 0);
    assert_walked_by_another(".\nlocked\nout\nout/sub\npartial");
    cr_assert_eq(chmod(place_path("r/locked"), 0755), 0);
    assert_walked_by_another(".\nlocked\nlocked/below\nout\nout/sub\n");
}

/* Mirrors and orphans. */

Test(mirrors, are_told_apart)
{
    tree_orphan();
    place_directory("r/.shunt/b/n1.1/" GONE "/.new-1-2");
    place_file("r/.shunt/b/n1.1/" GONE "/odd", "");
    place_directory("r/.shunt/b/n1.1/not-a-mirror");
    place_directory("r/.shunt/b/n1.1/x-0123456789aG");
    place_file("r/.shunt/b/n2.1/file-0123456789ab", "");
    cr_assert_eq(symlink(OUT, place_path("r/.shunt/b/n2.1/link-0123456789ab")), 0);
    tree_find_mirrors();
    cr_assert_eq(tree_mirrors.count, 7);
    const struct mirror_found *orphan = tree_mirror("n1.1", GONE);
    cr_assert(!orphan->known && !orphan->foreign && orphan->files == 3 && orphan->unfinished == 1, "%zu files", orphan->files);
    cr_assert(tree_mirror("n1.1", OUT)->known && tree_mirror("n1.1", OUT)->files == 1);
    cr_assert(tree_mirror("n2.1", OUT)->known && !tree_mirror("n2.1", OUT)->foreign);
    cr_assert(tree_mirror("n1.1", "not-a-mirror")->foreign);
    cr_assert(tree_mirror("n1.1", "x-0123456789aG")->foreign);
    cr_assert(tree_mirror("n2.1", "file-0123456789ab")->foreign);
    cr_assert(tree_mirror("n2.1", "link-0123456789ab")->foreign);
    tree_close();
}

static int count_to_two(int leaf, const char *name, void *count)
{
    return ++*(int *)count == 2 ? 42 : 0;
}

Test(mirrors, every_file_until_told_to_stop)
{
    int count = 0;
    tree_orphan();
    place_file("r/.shunt/b/n1.1/" GONE "/5/c", "");
    place_directory("r/.shunt/b/n1.1/" GONE "/.new-1-2");
    place_file("r/.shunt/b/n1.1/" GONE "/.new-1-2/hidden", "");
    tree_find_mirrors();
    int mirror = mirrors_open(&tree, tree_mirror("n1.1", GONE));
    cr_assert_eq(mirrors_files(mirror, count_to_two, &count), 42);
    cr_assert_eq(count, 2);
    count = -100;
    cr_assert_eq(mirrors_files(mirror, count_to_two, &count), 0);
    cr_assert_eq(count, -97);
    close(mirror);
    tree_close();
}

static const char *tools_roots_report(void)
{
    hear();
    orphans_report(place_path("r"));
    hear_end();
    cr_assert_str_empty(heard_out.words);
    return heard_error.words;
}

Test(orphans, are_reported)
{
    cr_assert_str_empty(tools_roots_report());
    tree_orphan();
    cr_assert(strstr(tools_roots_report(), ": warning: "));
    cr_assert(strstr(heard_error.words, ": warning: 2 files of a directory that is gone"), "%s", heard_error.words);
    cr_assert_eq(heard_lines(heard_error.words), 1);
    cr_assert_eq(unlink(place_path("r/.shunt/b/n1.1/" GONE "/0/a")), 0);
    cr_assert(strstr(tools_roots_report(), ": warning: 1 file of a directory"), "%s", heard_error.words);
    cr_assert_eq(unlink(place_path("r/.shunt/b/n1.1/" GONE "/5/b")), 0);
    cr_assert_str_empty(tools_roots_report(), "an empty mirror holds nothing that could be missed");
}

Test(orphans, of_a_directory_that_was_removed_natively)
{
    cr_assert_eq(unlink(place_path("r/out/.shunt-dir")), 0);
    cr_assert(strstr(tools_roots_report(), ": warning: 2 files"), "%s", heard_error.words);
}

Test(orphans, unless_it_is_not_known)
{
    tree_orphan();
    cr_assert_eq(unlink(place_path("r/out/.shunt-dir")), 0);
    place_file("r/out/.shunt-dir", "broken");
    cr_assert_str_empty(tools_roots_report(), "they may be those of the directory with the broken marker");
}

/* Who holds a root. */

static struct session_member distant_member(void)
{
    struct session_member member = tree_member(getpid());
    strcpy(member.host, "some.other.host");
    strcpy(member.boot, "another-boot");
    return member;
}

static bool is_taken(void)
{
    hear();
    bool answer = hold_is_taken(place_path("r"));
    hear_end();
    cr_assert_eq(heard_lines(heard_error.words), answer, "%s", heard_error.words);
    return answer;
}

static int tools_roots_take(struct hold *hold, const char *root)
{
    hear();
    int answer = hold_take(hold, root, "export");
    hear_end();
    cr_assert_eq(heard_lines(heard_error.words), answer < 0, "%s", heard_error.words);
    return answer;
}

Test(hold, one_at_a_time)
{
    char root[PATH_MAX];
    struct hold mine, other;
    strcpy(root, place_path("r"));
    cr_assert_not(is_taken());
    cr_assert_eq(tools_roots_take(&mine, root), 0);
    cr_assert(is_taken());
    cr_assert_eq(tools_roots_take(&other, root), -1);
    cr_assert(strstr(heard_error.words, "(node export, process ") && strstr(heard_error.words, "or wait for its end"), "%s",
              heard_error.words);
    hold_release(&other);
    cr_assert(is_taken(), "it was not the other's");
    hold_release(&mine);
    cr_assert_not(is_taken());
    cr_assert_eq(place_count("r/.shunt/session"), 2, "its last epochs");
    cr_assert_eq(tools_roots_take(&other, root), 0);
    hold_release(&other);
}

Test(hold, a_root_that_was_never_served)
{
    char root[PATH_MAX];
    struct hold hold;
    place_directory("new/.shunt");
    strcpy(root, place_path("new"));
    cr_assert_eq(tools_roots_take(&hold, root), 0);
    cr_assert(tree_is_held("new"));
    hold_release(&hold);
    cr_assert_not(tree_is_held("new"));
    strcpy(root, place_path("nothing"));
    cr_assert_eq(tools_roots_take(&hold, root), -1);
}

Test(hold, whom_the_dead_and_the_distant_stop)
{
    char root[PATH_MAX];
    struct hold hold;
    struct session_member dead = tree_member(getpid()), distant = distant_member();
    strcpy(root, place_path("r"));
    dead.started++;
    tree_claim(&dead);
    cr_assert_not(is_taken());
    cr_assert_eq(tools_roots_take(&hold, root), 0);
    hold_release(&hold);
    uint64_t id = tree_claim(&distant);
    cr_assert(is_taken());
    cr_assert(strstr(heard_error.words, "some.other.host") && strstr(heard_error.words, "wait for its end)"), "%s",
              heard_error.words);
    cr_assert_eq(session_leave(root, id, distant.number), 0);
    place_file("r/.shunt/session/epoch.99", "shunt-session 99\n");
    cr_assert(is_taken());
    cr_assert_eq(tools_roots_take(&hold, root), -1);
    cr_assert(strstr(heard_error.words, "is of another version"), "%s", heard_error.words);
}

/* Stopping a daemon: any process does in its place. */

static int stop_root(void)
{
    hear();
    int answer = daemon_stop(place_path("r"), NULL);
    hear_end();
    cr_assert_eq(heard_lines(heard_error.words), answer < 0, "%s", heard_error.words);
    return answer;
}

Test(stop, nothing_to_stop)
{
    struct session_member dead = tree_member(getpid());
    cr_assert_eq(stop_root(), 0);
    dead.started++;
    tree_claim(&dead);
    cr_assert_eq(stop_root(), 0);
    cr_assert_not(tree_is_held("r"), "what the dead left is taken away");
    cr_assert_eq(rename(place_path("r/.shunt/session"), place_path("away")), 0);
    cr_assert_eq(stop_root(), 0);
}

Test(stop, what_cannot_be_stopped_from_here)
{
    struct session_member distant = distant_member();
    tree_claim(&distant);
    cr_assert_eq(stop_root(), -1);
    cr_assert(strstr(heard_error.words, "some.other.host") && strstr(heard_error.words, "on that host)"), "%s",
              heard_error.words);
    cr_assert(tree_is_held("r"));
    place_file("r/.shunt/session/epoch.2", "broken");
    cr_assert_eq(stop_root(), -1);
}

static pid_t some_process(void)
{
    pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return process;
}

Test(stop, a_process_that_lives)
{
    int status;
    pid_t process = some_process();
    struct session_member member = tree_member(process);
    tree_claim(&member);
    cr_assert_eq(stop_root(), 0);
    cr_assert_eq(waitpid(process, &status, WNOHANG), process, "it returns when it has ended");
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

Test(stop, all_of_this_host_and_no_other)
{
    struct session_member members[4] = {tree_member(some_process()), tree_member(getpid()), distant_member(),
                                        tree_member(some_process())};
    struct session session;
    members[1].started++;
    for (int i = 0; i < 4; i++) {
        snprintf(members[i].node, sizeof members[i].node, "n%d", i);
        snprintf(members[i].branch, sizeof members[i].branch, "n%d.1", i);
        if (i == 0)
            tree_claim(&members[i]);
        else
            cr_assert_eq(session_join(place_path("r"), &members[i], &session), 0);
        if (i > 0)
            session_finish(&session);
    }
    cr_assert_eq(stop_root(), 0);
    for (int i = 0; i < 4; i += 3)
        cr_assert_eq(waitpid(members[i].pid, NULL, WNOHANG), members[i].pid);
    cr_assert_eq(session_read(place_path("r"), &session), 0);
    cr_assert(session_find_node(&session, "n2") && !session_find_node(&session, "n1"), "the dead one has left");
    session_finish(&session);
}

Test(stop, goes_on_after_one_that_fails)
{
    struct session_member distant = distant_member(), dead = tree_member(getpid());
    char other[PATH_MAX];
    place_directory("s/.shunt/session");
    strcpy(other, place_path("s"));
    tree_claim(&distant);
    dead.started++;
    tree_found(other, &dead);
    roots_init(&roots);
    cr_assert_eq(tools_roots_add(place_path("r")), 0);
    cr_assert_eq(tools_roots_add(other), 0);
    hear();
    cr_assert_eq(daemon_stop_all(&roots, 1, NULL), -1);
    cr_assert(tree_is_held("s"), "the second was not asked for");
    cr_assert_eq(daemon_stop_all(&roots, 2, NULL), -1);
    hear_end();
    cr_assert_not(tree_is_held("s"));
    roots_finish(&roots);
}
