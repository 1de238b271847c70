/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What the tools do with a root, whole subcommands of them: no daemon, no shim. */

#include <getopt.h>

#include "commands/commands.h"
#include "leaving/export.h"
#include "leaving/owner.h"
#include "repair/fsck.h"
#include "heard.h"
#include "tree.h"

const struct command commands[] = {{0}};

#define ROOT_SUITE(name) TestSuite(name, .init = tree_init, .fini = tree_finish, .timeout = 60)

ROOT_SUITE(export);
ROOT_SUITE(fsck);
ROOT_SUITE(commands);

/* Export. */

static int export_it(const char *path, struct export_options options)
{
    hear();
    int status = export_root(place_path("%s", path), &options);
    hear_end();
    return status;
}

static void assert_holds(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(place_path("%s", path), "r");
    cr_assert(file, "%s: %m", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    cr_assert_str_eq(text, expected, "%s", path);
}

static void assert_plain(void)
{
    assert_holds("r/out/t", "trunk");
    assert_holds("r/out/x", "one");
    assert_holds("r/out/y", "two");
    cr_assert_not(place_has("r/.shunt"));
    cr_assert_not(place_has("r/out/.shunt-dir"));
}

Test(export, makes_a_plain_directory)
{
    struct stat before_export = place_stat("r/.shunt/b/n1.1/" OUT "/0/x"), out = place_stat("r/out");
    cr_assert_eq(export_it("r", (struct export_options){0}), STATUS_OK);
    cr_assert_str_empty(heard_error.words);
    cr_assert_eq(strncmp(heard_out.words, "exported 2 files in 1 directory: ", 33), 0, "%s", heard_out.words);
    assert_plain();
    cr_assert_eq(place_stat("r/out/x").st_ino, before_export.st_ino, "it is the same file");
    cr_assert_eq(place_stat("r/out").st_mtim.tv_nsec, out.st_mtim.tv_nsec);
    cr_assert_eq(place_stat("r/out").st_mtim.tv_sec, out.st_mtim.tv_sec);
    cr_assert_eq(export_it("r", (struct export_options){0}), STATUS_OK);
    cr_assert(strstr(heard_out.words, "is a plain directory already"), "%s", heard_out.words);
    cr_assert_not(place_has("r/.shunt"));
}

Test(export, only_says_what_it_would_do)
{
    cr_assert_eq(export_it("r", (struct export_options){.dry_run = true}), STATUS_OK);
    cr_assert_str_eq(heard_out.words, "would export 2 files into out\nwould export 2 files in 1 directory\n");
    cr_assert(place_has("r/out/.shunt-dir") && place_has("r/.shunt/b/n1.1/" OUT "/0/x") && !place_has("r/out/x"));
    cr_assert_eq(place_count("r/.shunt/session"), 0);
    cr_assert_eq(export_it("r", (struct export_options){.dry_run = true, .json = true}), STATUS_OK);
    cr_assert(strstr(heard_out.words,
                     "\"dry_run\": true,\n  \"files\": 2,\n  \"by_owners\": 0,\n  \"copied\": 0,\n  \"looked\": 0,\n  "
                     "\"directories\": 1,\n  \"conflicts\": 0,"),
              "%s", heard_out.words);
}

/* The owners of n1.1 and n2.1, as they say what they do. */
static struct {
    enum owner_state states[2];
    struct owner_order orders[2];
    struct owner_answer answers[2];
    size_t given, most_at_work, dismissed;
    bool are_lost; /* each does half of what it is told, and says nothing any more */
} nodes;

static int nodes_find_one(void *context, const char *node)
{
    return strcmp(node, "n1") == 0 ? 0 : strcmp(node, "n2") == 0 ? 1 : -1;
}

static enum owner_state nodes_state(void *context, int node, struct owner_answer *answer)
{
    *answer = nodes.answers[node];
    return nodes.states[node];
}

static size_t nodes_at_work(void)
{
    return (size_t)(nodes.states[0] == OWNER_WORKS) + (nodes.states[1] == OWNER_WORKS);
}

static bool nodes_order(void *context, int node, const char *line)
{
    const bool other_works = nodes.states[1 - node] == OWNER_WORKS;
    cr_assert(nodes.states[node] == OWNER_FREE || nodes.states[node] == OWNER_ANSWERED, "it has an order");
    cr_assert_eq(owner_order_parse(&nodes.orders[node], line), 0, "%s", line);
    cr_assert(!other_works || strcmp(nodes.orders[0].mirror, nodes.orders[1].mirror) != 0, "both are at %s",
              nodes.orders[node].path);
    nodes.states[node] = OWNER_WORKS;
    nodes.answers[node] = (struct owner_answer){0};
    nodes.given++;
    if (nodes_at_work() > nodes.most_at_work)
        nodes.most_at_work = nodes_at_work();
    return true;
}

static bool nodes_goes_on(void *context, uint64_t files)
{
    return !nodes.are_lost || files < 10;
}

/* One of them ends. */
static void nodes_wait(void *context, int milliseconds)
{
    const int node = nodes.states[1] == OWNER_WORKS;
    if (milliseconds == 0 || nodes.states[node] != OWNER_WORKS)
        return;
    owner_carry_out(&nodes.orders[node], nodes_goes_on, NULL, &nodes.answers[node]);
    nodes.states[node] = nodes.are_lost ? OWNER_LOST : OWNER_ANSWERED;
    if (nodes.are_lost)
        nodes.answers[node] = (struct owner_answer){0};
}

static void nodes_dismiss(void *context)
{
    nodes.dismissed++;
}

static const struct owners nodes_owners = {NULL, nodes_find_one, nodes_state, nodes_order, nodes_wait, nodes_dismiss};

/* Twenty files of each in each of three directories. */
static void nodes_make_files(void)
{
    for (unsigned directory = 1; directory <= 3; directory++) {
        char path[32];
        snprintf(path, sizeof path, "r/d%u", directory);
        place_directory(path);
        struct marker marker = {.id = directory, .directory = tree_id(path)};
        snprintf(marker.mirror, sizeof marker.mirror, "d-%012x", directory);
        strcpy(marker.path, path + 2);
        const int fd = place_open(path);
        cr_assert_eq(marker_write(fd, &marker), 0);
        close(fd);
        for (unsigned i = 0; i < 40; i++) {
            char file[160], leaf[128];
            snprintf(leaf, sizeof leaf, "r/.shunt/b/n%u.1/%s/0", 1 + i % 2, marker.mirror);
            snprintf(file, sizeof file, "%s/f%u", leaf, i);
            place_directory(leaf);
            place_file(file, "");
        }
    }
}

static void assert_nodes_exported(size_t by_owners)
{
    struct export_sum sum = {0};
    cr_assert_eq(export_it("r", (struct export_options){.owners = &nodes_owners, .sum = &sum}), STATUS_OK, "%s",
                 heard_error.words);
    cr_assert_eq(sum.by_owners, by_owners, "%zu", sum.by_owners);
    cr_assert_eq(nodes.dismissed, 0);
    assert_plain();
    cr_assert(place_count("r/d1") == 40 && place_count("r/d2") == 40 && place_count("r/d3") == 40);
}

Test(export, has_each_node_work_in_another_directory)
{
    nodes_make_files();
    assert_nodes_exported(120);
    cr_assert_eq(nodes.given, 6);
    cr_assert_eq(nodes.most_at_work, 2);
}

Test(export, goes_on_without_nodes_that_are_lost)
{
    nodes.are_lost = true;
    nodes_make_files();
    assert_nodes_exported(0);
    cr_assert_eq(nodes.given, 2, "no other order is given to one that is lost");
}

Test(export, settles_nothing_that_it_only_looks_at)
{
    place_file("r/out/x", "of the trunk, and more");
    cr_assert_eq(export_it("r", (struct export_options){.dry_run = true}), STATUS_OK);
    cr_assert(strstr(heard_out.words, "would export 2 files in 1 directory, 1 that lost a conflict"), "%s", heard_out.words);
    cr_assert(place_has("r/.shunt/b/n1.1/" OUT "/0/x"), "not renamed");
}

Test(export, replaces_nothing)
{
    place_file("r/out/x", "of the trunk, and more");
    cr_assert_eq(export_it("r", (struct export_options){.quiet = true}), STATUS_OK);
    cr_assert_str_empty(heard_out.words);
    cr_assert_eq(place_count("r/out"), 5);
    assert_holds("r/out/x", "of the trunk, and more");
    assert_holds("r/out/x.shunt-conflict-n1", "one");
    cr_assert_not(place_has("r/.shunt"));
}

Test(export, loses_no_orphan)
{
    tree_orphan();
    cr_assert_eq(export_it("r", (struct export_options){0}), STATUS_FAILED);
    cr_assert(strstr(heard_error.words, GONE ": 2 files of a directory that is gone (run "), "%s", heard_error.words);
    cr_assert_eq(heard_lines(heard_error.words), 1, "and does not complain of .shunt");
    cr_assert(place_has("r/out/x") && place_has("r/.shunt/b/n1.1/" GONE "/5/b"));
    cr_assert_not(tree_is_held("r"), "it is let go of again");
}

Test(export, of_a_mirror_that_is_empty)
{
    place_directory("r/.shunt/b/n1.1/" GONE "/0");
    cr_assert_eq(export_it("r", (struct export_options){0}), STATUS_OK);
    assert_plain();
}

Test(export, removes_nothing_that_is_not_shunts)
{
    place_file("r/.shunt/mine", "");
    cr_assert_eq(export_it("r", (struct export_options){0}), STATUS_FAILED);
    cr_assert(strstr(heard_error.words, "does not belong to shunt"), "%s", heard_error.words);
    cr_assert(place_has("r/.shunt/mine") && place_has("r/out/x"));
    cr_assert_eq(unlink(place_path("r/.shunt/mine")), 0);
    cr_assert_eq(export_it("r", (struct export_options){0}), STATUS_OK, "it can be run on again");
    assert_plain();
}

Test(export, goes_past_what_it_does_not_understand)
{
    place_directory("r/bad");
    place_file("r/bad/.shunt-dir", "broken");
    cr_assert_eq(export_it("r", (struct export_options){0}), STATUS_FAILED);
    cr_assert(strstr(heard_error.words, "bad: its .shunt-dir is damaged"), "%s", heard_error.words);
    assert_holds("r/out/x", "one");
    cr_assert(place_has("r/.shunt"));
}

Test(export, only_a_whole_root_that_nobody_uses)
{
    struct session_member mine = tree_member(getpid());
    cr_assert_eq(export_it("r/out", (struct export_options){0}), STATUS_FAILED);
    cr_assert(strstr(heard_error.words, "only a whole root can be exported"), "%s", heard_error.words);
    cr_assert_eq(export_it("nothing", (struct export_options){0}), STATUS_FAILED);
    uint64_t id = tree_claim(&mine);
    cr_assert_eq(export_it("r", (struct export_options){0}), STATUS_FAILED);
    cr_assert_eq(export_it("r", (struct export_options){.dry_run = true}), STATUS_FAILED);
    cr_assert_not(place_has("r/out/x"));
    cr_assert_eq(session_leave(place_path("r"), id, mine.number), 0);
}

/* fsck. */

Test(fsck, restores_under_names_that_are_free)
{
    static const char *const branches[] = {"n1.1", "n2.1", "n2.2"};
    for (int i = 0; i < 3; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "r/.shunt/b/%s/" GONE "/0", branches[i]);
        place_directory(path);
        strcat(path, "/f");
        place_file(path, branches[i]);
        cr_assert_eq(chmod(place_path("r/.shunt/b/%s/" GONE, branches[i]), 0750), 0);
    }
    tree_find_mirrors();
    for (int i = 0; i < 3; i++) {
        struct fsck_refused refused;
        const struct mirror_found *orphan = tree_mirror(branches[i], GONE);
        cr_assert_eq(fsck_restore(&tree, orphan, &refused), 0);
        cr_assert_lt(mirrors_open(&tree, orphan), 0, "the mirror is gone");
    }
    cr_assert_eq(place_count("r/shunt-restored/" GONE), 3);
    assert_holds("r/shunt-restored/" GONE "/f", "n1.1");
    assert_holds("r/shunt-restored/" GONE "/f.shunt-conflict-n2", "n2.1");
    assert_holds("r/shunt-restored/" GONE "/f.shunt-conflict-n2.2", "n2.2");
    cr_assert_eq(place_stat("r/shunt-restored/" GONE).st_mode & 07777, 0750);
    tree_close();
}

Test(fsck, deletes)
{
    struct fsck_refused refused;
    tree_orphan();
    tree_find_mirrors();
    cr_assert_eq(fsck_delete(&tree, tree_mirror("n1.1", GONE), &refused), 0);
    cr_assert_not(place_has("r/.shunt/b/n1.1/" GONE));
    cr_assert(place_has("r/.shunt/b/n1.1/" OUT "/0/x"));
    cr_assert_lt(fsck_delete(&tree, tree_mirror("n1.1", GONE), &refused), 0, "twice");
    tree_close();
}

/* Subcommands as a whole. */

static const struct command the_fsck = {"fsck", "", "", command_fsck_choices, 0, command_fsck};
static const struct command the_find = {"find", "", "", command_find_choices, COMMAND_SINGLE_DASH, command_find_files};
static const struct command the_names = {"names", "", "", command_names_choices, 0, command_names};
static const struct command the_where = {"where", "", "", NULL, 0, command_where};
static const struct command the_ls = {"ls", "", "", command_ls_choices, 0, command_ls};
static const struct command the_stat = {"stat", "", "", command_stat_choices, 0, command_stat};

/* In the root's directory. */
static int tools_commands_run(const struct command *command, const char *line)
{
    char copy[1024], *rest = strcpy(copy, line), *list[32];
    int count = 0;
    list[count++] = (char *)command->name;
    for (char *word; (word = strsep(&rest, " "));)
        if (*word)
            list[count++] = word;
    list[count] = NULL;
    optind = 0;
    cr_assert_eq(chdir(place_path("r")), 0);
    hear();
    int status = command->run(command, count, list);
    hear_end();
    return status;
}

static void assert_found(const char *line, const char *expected)
{
    cr_assert_eq(tools_commands_run(&the_find, line), STATUS_OK, "%s: %s", line, heard_error.words);
    cr_assert_str_eq(heard_out.words, expected, "%s: %s", line, heard_out.words);
}

Test(commands, find)
{
    place_directory("r/.shunt/b/n1.10/" OUT "/0");
    place_file("r/.shunt/b/n1.10/" OUT "/0/x10", "");
    cr_assert_eq(symlink("x", place_path("r/out/link")), 0);
    assert_found("", ".\n./out\n./out/link\n./out/t\n./out/x\n./out/x10\n./out/y\n./out/sub\n");
    assert_found("out -type f", "out/t\nout/x\nout/x10\nout/y\n");
    assert_found("out/ -type d", "out/\nout/sub\n");
    assert_found("-type l", "./out/link\n");
    assert_found("-name x*", "./out/x\n./out/x10\n");
    assert_found("-name .*", ".\n");
    assert_found("-branch n1", "./out/x\n./out/x10\n");
    assert_found("-branch n1.1", "./out/x\n");
    assert_found("-branch n", "");
    assert_found("out -trunk -type f", "out/t\n");
    assert_found("out/x out/t -branch n1.1", "out/x\n");
    assert_found("-path ./out/x*", "./out/x\n./out/x10\n");
    assert_found("-path ./out*x -name x -branch n1 -branch n1.1", "./out/x\n");
    assert_found("out/ -name out", "out/\n");
    assert_found("-name x* -name *0 -count", "1\n");
    assert_found("-type b -count", "0\n");
    cr_assert_eq(tools_commands_run(&the_find, "out/sub out/t -print0"), STATUS_OK);
    cr_assert_eq(heard_out.length, 14);
    cr_assert_eq(memcmp(heard_out.words, "out/sub\0out/t\0", 14), 0);
}

static void set_time(const char *path, time_t seconds)
{
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    cr_assert_eq(utimensat(AT_FDCWD, place_path("%s", path), times, AT_SYMLINK_NOFOLLOW), 0, "%s: %m", path);
}

Test(commands, find_asks_directories_for_their_time)
{
    place_file("stamp", "");
    set_time("stamp", 1000);
    set_time("r", 900);
    set_time("r/out", 1000);
    set_time("r/out/sub", 1001);
    set_time("r/.shunt/b/n1.1/" OUT "/0", 1001);
    set_time("r/.shunt/b/n2.1/" OUT "/3", 999);
    assert_found("out -newer ../stamp", "out/x\n");
    set_time("r/out", 1001);
    assert_found("out -newer ../stamp", "out/t\nout/x\nout/sub\n");
    assert_found("out/x out/y out/t -newer ../stamp", "out/x\nout/t\n");
    set_time("r/out/t", 1001);
    assert_found("out -newer ../stamp -newer out/t -count", "0\n");
    assert_found("out -newer out/t -newer ../stamp -count", "0\n");
}

Test(commands, names)
{
    char expected[2 * PATH_MAX];
    cr_assert_eq(tools_commands_run(&the_names, "."), STATUS_OK);
    cr_assert_str_eq(heard_out.words, "out\nout/sub\nout/t\nout/x\nout/y\n");
    cr_assert_eq(tools_commands_run(&the_names, "../r -0"), STATUS_OK);
    cr_assert_eq(heard_out.length, 30);
    cr_assert_eq(memcmp(heard_out.words, "out\0out/sub\0out/t\0out/x\0out/y\0", 30), 0);
    cr_assert_eq(tools_commands_run(&the_names, "--json ."), STATUS_OK);
    snprintf(expected, sizeof expected,
             "{\"path\": \"out/y\", \"type\": \"file\", \"ino\": %llu, \"branch\": \"n2.1\", \"leaf\": 3, ",
             (unsigned long long)place_stat("r/.shunt/b/n2.1/" OUT "/3/y").st_ino);
    cr_assert(strstr(heard_out.words, expected), "%s", heard_out.words);
    cr_assert_eq(heard_lines(heard_out.words), 5);
    cr_assert_eq(tools_commands_run(&the_names, "out"), STATUS_FAILED);
    cr_assert(strstr(heard_error.words, "out: a part of the root "), "%s", heard_error.words);
    cr_assert_eq(tools_commands_run(&the_names, ". --json -0"), STATUS_USAGE);
    cr_assert_eq(tools_commands_run(&the_names, ""), STATUS_USAGE);
}

Test(commands, find_complains)
{
    cr_assert_eq(tools_commands_run(&the_find, "-count -print0"), STATUS_USAGE);
    cr_assert_eq(tools_commands_run(&the_find, "-newer nothing"), STATUS_FAILED);
    cr_assert_str_empty(heard_out.words);
    cr_assert_eq(tools_commands_run(&the_find, "-type x"), STATUS_USAGE);
    cr_assert_eq(tools_commands_run(&the_find, "-type ff"), STATUS_USAGE);
    cr_assert_eq(tools_commands_run(&the_find, "-branch n1 -trunk"), STATUS_USAGE);
    cr_assert_str_empty(heard_out.words);
    cr_assert_eq(tools_commands_run(&the_find, "nothing out/sub"), STATUS_FAILED);
    cr_assert_str_eq(heard_out.words, "out/sub\n", "the others are found all the same");
    cr_assert_eq(strncmp(heard_error.words, "shunt: nothing: ", 16), 0, "%s", heard_error.words);
}

/* What is known of the last path is used for the next. */
Test(commands, where_in_several_roots)
{
    char expected[4 * PATH_MAX], line[4 * PATH_MAX];
    place_directory("s/.shunt");
    place_directory("s/d");
    place_file("s/d/x", "");
    cr_assert_eq(symlink("x", place_path("r/out/link")), 0);
    snprintf(line, sizeof line, "out/x ../s/d/x out/y ../s/d out/link .");
    snprintf(expected, sizeof expected, "%s\n%s\n%s\n%s\n%s\n%s\n", place_path("r/.shunt/b/n1.1/" OUT "/0/x"),
             place_path("s/d/x"), place_path("r/.shunt/b/n2.1/" OUT "/3/y"), place_path("s/d"), place_path("r/out/link"),
             place_path("r"));
    cr_assert_eq(tools_commands_run(&the_where, line), STATUS_OK, "%s", heard_error.words);
    cr_assert_str_eq(heard_out.words, expected);
    cr_assert_eq(tools_commands_run(&the_where, "out/z out/t"), STATUS_FAILED);
    cr_assert_eq(heard_lines(heard_out.words), 1);
    cr_assert_eq(tools_commands_run(&the_where, ""), STATUS_USAGE);
    cr_assert_eq(symlink("sub", place_path("r/out/to-sub")), 0);
    cr_assert_eq(tools_commands_run(&the_where, "out/to-sub out/to-sub/"), STATUS_OK);
    snprintf(expected, sizeof expected, "%s\n%s\n", place_path("r/out/to-sub"), place_path("r/out/sub"));
    cr_assert_str_eq(heard_out.words, expected, "a slash means what it leads to");
}

Test(commands, ls_shows_the_union)
{
    place_file("r/out/.hidden", "");
    cr_assert_eq(tools_commands_run(&the_ls, "-1 out"), STATUS_OK);
    cr_assert_str_eq(heard_out.words, "sub\nt\nx\ny\n");
    cr_assert_eq(tools_commands_run(&the_ls, "-1 -a out"), STATUS_OK);
    cr_assert(strstr(heard_out.words, ".hidden\n") && !strstr(heard_out.words, ".shunt"), "%s", heard_out.words);
    cr_assert_eq(tools_commands_run(&the_ls, "-1 out/nothing out/x"), STATUS_FAILED);
    cr_assert_str_eq(heard_out.words, "out/x\n");
}

Test(commands, stat_says_where)
{
    char expected[2 * PATH_MAX];
    cr_assert_eq(symlink("nowhere\n", place_path("r/out/link")), 0);
    cr_assert_eq(tools_commands_run(&the_stat, "--json out/y"), STATUS_OK);
    snprintf(expected, sizeof expected, "\"branch\": \"n2.1\",\n    \"leaf\": 3,\n    \"where\": \"%s\"\n",
             place_path("r/.shunt/b/n2.1/" OUT "/3/y"));
    cr_assert(strstr(heard_out.words, expected), "%s", heard_out.words);
    cr_assert(strstr(heard_out.words, "\"type\": \"file\",\n    \"mode\": \"0644\""), "%s", heard_out.words);
    cr_assert_eq(tools_commands_run(&the_stat, "--json out/link"), STATUS_OK);
    cr_assert(strstr(heard_out.words, "\"target\": \"nowhere\\u000a\""), "%s", heard_out.words);
    cr_assert(strstr(heard_out.words, "\"branch\": null"), "%s", heard_out.words);
}

Test(commands, fsck_weighs_what_it_finds)
{
    cr_assert_eq(tools_commands_run(&the_fsck, "."), 0);
    cr_assert(strstr(heard_out.words, "/r: clean (3 directories)\n"), "%s", heard_out.words);
    tree_orphan();
    cr_assert_eq(tools_commands_run(&the_fsck, "."), 2, "a person must say what becomes of them");
    cr_assert(place_has("r/.shunt/b/n1.1/" GONE "/0/a"), "looking changes nothing");
    cr_assert_eq(tools_commands_run(&the_fsck, "--restore ."), 1);
    cr_assert(place_has("r/shunt-restored/" GONE "/a") && !place_has("r/.shunt/b/n1.1/" GONE));
    cr_assert_eq(tools_commands_run(&the_fsck, "."), 0);
    place_directory("r/.shunt/b/n1.1/mine");
    cr_assert_eq(tools_commands_run(&the_fsck, "--repair ."), 2);
    cr_assert(place_has("r/.shunt/b/n1.1/mine"));
    cr_assert_not(tree_is_held("r"));
}

Test(commands, fsck_deletes_only_what_is_surely_an_orphan)
{
    tree_orphan();
    place_directory("r/bad");
    place_file("r/bad/.shunt-dir", "broken");
    cr_assert_eq(tools_commands_run(&the_fsck, "--delete ."), 2);
    cr_assert(place_has("r/.shunt/b/n1.1/" GONE "/0/a"), "it may be that of the broken marker");
    cr_assert_eq(unlink(place_path("r/bad/.shunt-dir")), 0);
    cr_assert_eq(tools_commands_run(&the_fsck, "--delete ."), 1);
    cr_assert_not(place_has("r/.shunt/b/n1.1/" GONE));
    cr_assert(place_has("r/.shunt/b/n1.1/" OUT "/0/x"));
}

Test(commands, fsck_of_what_is_no_root)
{
    place_directory("plain");
    cr_assert_eq(tools_commands_run(&the_fsck, "--repair ../plain"), 2);
    cr_assert(strstr(heard_error.words, "not a root"), "%s", heard_error.words);
    cr_assert_not(place_has("plain/.shunt"), "a plain directory stays one");
    cr_assert_eq(tools_commands_run(&the_fsck, "--restore --delete ."), STATUS_USAGE);
    cr_assert_eq(tools_commands_run(&the_fsck, ""), STATUS_USAGE);
}
