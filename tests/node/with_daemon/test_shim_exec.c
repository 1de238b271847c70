/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What goes before a program is started: it is moved to where the kernel looks, and the shim goes along. */

#include "shim/wrap_exec.h"

#include "shimmed.h"

TestSuite(carry, .init = shimmed_init, .fini = shimmed_finish, .timeout = 60);
TestSuite(promote, .init = shimmed_init, .fini = shimmed_finish, .timeout = 60);

/* Kept until the test ends. */
static void *kept[64];
static unsigned kept_count;

static void *shim_exec_keep(size_t size)
{
    cr_assert_lt(kept_count, 64);
    return kept[kept_count++] = malloc(size);
}

/* The environment of a child, in memory of exactly the sizes that were asked for. */
static char *const *shim_exec_carried(char *const environment[])
{
    size_t room = exec_room(environment);
    return room == 0 ? environment
                     : exec_carry(environment, shim_exec_keep((exec_count(environment) + EXEC_CARRIED + 1) * sizeof(char *)),
                                  shim_exec_keep(room));
}

static char *const *carried_by(const char *preload, char *const environment[])
{
    shim_state.process.preload = preload;
    return shim_exec_carried(environment);
}

static const char *value_in(char *const environment[], const char *name)
{
    const char *found = NULL;
    size_t length = strlen(name);
    for (size_t i = 0; environment[i] != NULL; i++)
        if (strncmp(environment[i], name, length) == 0 && environment[i][length] == '=') {
            cr_assert_null(found, "%s twice", name);
            found = environment[i] + length + 1;
        }
    return found;
}

#define LIBRARY "/lib/libshunt_preload.so"

static void assert_complete(char *const environment[])
{
    cr_assert_str_eq(value_in(environment, "LD_PRELOAD"), LIBRARY);
    cr_assert_str_eq(value_in(environment, "SHUNT_ROOT"), place_path("r"));
    cr_assert_str_eq(value_in(environment, "SHUNT_NODE"), "n1");
    cr_assert_str_eq(value_in(environment, "SHUNT_RUN_DIR"), place_path("run"));
}

Test(carry, an_empty_environment_gets_what_it_lacks)
{
    char *nothing[] = {NULL};
    char *const *child = shim_exec_carried(nothing);
    cr_assert_eq(exec_count(child), 4);
    assert_complete(child);
    child = shim_exec_carried(NULL);
    cr_assert_eq(exec_count(child), 4);
    assert_complete(child);
}

Test(carry, a_complete_one_is_left_alone)
{
    char *nothing[] = {NULL};
    char *const *child = shim_exec_carried(nothing);
    cr_assert_eq(exec_room(child), 0);
    char *own[] = {"SHUNT_RUN_DIR=/other", "LD_PRELOAD=/elsewhere/libshunt_preload.so", "SHUNT_ROOT=", "SHUNT_NODE=n2", NULL};
    cr_assert_eq(exec_room(own), 0, "the program's own values stay");
}

Test(carry, others_stay_as_they_are)
{
    char *own[] = {"A=1", "SHUNT_ROOTS=x", "XSHUNT_ROOT=y", "no equals sign", "LD_PRELOADS=z", "B=2", NULL};
    char *const *child = shim_exec_carried(own);
    cr_assert_eq(exec_count(child), 10);
    assert_complete(child);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(child[i], own[i]);
    cr_assert_null(own[6]);
    cr_assert_eq(exec_count(own), 6);
}

Test(carry, a_preload_of_the_program_s_own_comes_first)
{
    char *own[] = {"LD_PRELOAD=/usr/lib/libasan.so /x/y.so", "Z=26", NULL};
    char *const *child = shim_exec_carried(own);
    cr_assert_eq(exec_count(child), 5);
    cr_assert_str_eq(value_in(child, "LD_PRELOAD"), "/usr/lib/libasan.so /x/y.so:" LIBRARY);
    cr_assert_str_eq(own[0], "LD_PRELOAD=/usr/lib/libasan.so /x/y.so", "the caller's is not touched");
    cr_assert_str_eq(child[1], "Z=26");
    char *empty[] = {"LD_PRELOAD=", NULL};
    cr_assert_str_eq(value_in(shim_exec_carried(empty), "LD_PRELOAD"), ":" LIBRARY);
}

Test(carry, only_the_shim_s_own_entry_is_added)
{
    static const struct {
        const char *preload, *added;
    } started_with[] = {
        {"/x/a.so:" LIBRARY ":/x/b.so", LIBRARY},
        {"/x/a.so " LIBRARY " /x/b.so", LIBRARY},
        {"/a:/b /usr/$LIB/libshunt_preload.so", "/usr/$LIB/libshunt_preload.so"},
        {"libshunt_preload.so", "libshunt_preload.so"},
    };
    char *own[] = {"LD_PRELOAD=mine.so", NULL}, *nothing[] = {NULL};
    for (size_t i = 0; i < sizeof started_with / sizeof *started_with; i++) {
        char expected[128];
        snprintf(expected, sizeof expected, "mine.so:%s", started_with[i].added);
        cr_assert_str_eq(value_in(carried_by(started_with[i].preload, own), "LD_PRELOAD"), expected);
        cr_assert_str_eq(value_in(carried_by(started_with[i].preload, nothing), "LD_PRELOAD"), started_with[i].preload,
                         "as the program was started with");
    }
}

Test(carry, what_the_program_did_not_have_its_child_has_not)
{
    char *own[] = {"LD_PRELOAD=mine.so", NULL}, *nothing[] = {NULL};
    shim_state.process.config.node = NULL;
    char *const *child = carried_by(NULL, nothing);
    cr_assert_eq(exec_count(child), 2);
    cr_assert(value_in(child, "LD_PRELOAD") == NULL && value_in(child, "SHUNT_NODE") == NULL);
    child = carried_by("/x/other.so", own);
    cr_assert_str_eq(value_in(child, "LD_PRELOAD"), "mine.so", "it was not loaded by its name");
}

/* Programs and interpreters. */

static bool in_trunk(const char *name)
{
    struct stat stat;
    return lstat(place_path("r/out/%s", name), &stat) == 0;
}

static void shim_exec_script(const char *name, const char *first_line)
{
    born(place_path("r/out/%s", name), first_line, 0755);
    cr_assert_not(in_trunk(name));
}

static void shim_exec_promote(const char *name)
{
    errno = EDOM;
    exec_prepare(AT_FDCWD, place_path("r/out/%s", name), AT_FDCWD, NULL);
    cr_assert_eq(errno, EDOM);
}

Test(promote, a_program_goes_to_the_trunk)
{
    shim_exec_script("program", "\177ELF");
    shim_exec_script("other", "");
    shim_exec_promote("program");
    cr_assert(in_trunk("program") && !in_trunk("other"));
    shim_exec_promote("program");
    shim_exec_promote("none");
    exec_prepare(AT_FDCWD, NULL, AT_FDCWD, NULL);
    cr_assert(in_trunk("program") && !in_trunk("other"));
}

Test(promote, seen_from_a_descriptor_and_through_a_link)
{
    int out = place_open("r/out");
    shim_exec_script("one", "");
    shim_exec_script("two", "");
    exec_prepare(out, "one", AT_FDCWD, NULL);
    cr_assert(in_trunk("one"));
    cr_assert_eq(symlink("../r/out/two", place_path("beside/link")), 0);
    exec_prepare(AT_FDCWD, place_path("beside/link"), AT_FDCWD, NULL);
    cr_assert(in_trunk("two"));
}

/* Each first line names the interpreter r/out/interp, as the kernel reads it; or not. */
Test(promote, the_first_line_of_a_script)
{
    static const struct {
        const char *before, *after;
        bool names_it;
    } lines[] = {
        {"#!", "\n", true},    {"#! ", "\n", true},    {"#!\t \t", "\n", true},     {"#!", "", true},
        {"#!", " -x\n", true}, {"#!", "\t-x\n", true}, {"#!", " \n", true},         {"#!", "\nrest", true},
        {"#", "\n", false},    {" #!", "\n", false},   {"", "\n", false},           {"#!\n", "\n", false},
        {"#!", "\r\n", false}, {"#!", "x\n", false},   {"#!/bin/sh ", "\n", false}, {"!#", "\n", false},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char name[16], text[PATH_MAX];
        snprintf(name, sizeof name, "script%zu", i);
        snprintf(text, sizeof text, "%s%s%s", lines[i].before, place_path("r/out/interp"), lines[i].after);
        shim_exec_script("interp", "");
        shim_exec_script(name, text);
        shim_exec_promote(name);
        cr_assert(in_trunk(name));
        cr_assert_eq(in_trunk("interp"), lines[i].names_it, "line %zu: %s", i, text);
        struct target t = hot(place_path("r/out/interp"), TARGET_MAKES);
        cr_assert_eq(operate_unlink(&t), 0);
    }
}

Test(promote, scripts_that_interpret_scripts)
{
    char name[16], line[PATH_MAX];
    shim_exec_script("s7", "\177ELF");
    for (int i = 6; i >= 0; i--) {
        snprintf(name, sizeof name, "s%d", i);
        snprintf(line, sizeof line, "#!%s\n", place_path("r/out/s%d", i + 1));
        shim_exec_script(name, line);
    }
    shim_exec_promote("s0");
    for (int i = 0; i <= 5; i++) {
        snprintf(name, sizeof name, "s%d", i);
        cr_assert(in_trunk(name), "%s", name);
    }
    cr_assert_not(in_trunk("s7"), "deeper than the kernel goes");
}

Test(promote, a_script_that_interprets_itself)
{
    char line[PATH_MAX];
    snprintf(line, sizeof line, "#!%s\n", place_path("r/out/self"));
    shim_exec_script("self", line);
    shim_exec_promote("self");
    cr_assert(in_trunk("self"));
}

Test(promote, an_interpreter_is_looked_for_from_the_working_directory)
{
    shim_exec_script("interp", "");
    shim_exec_script("script", "#!interp\n");
    shim_exec_script("script2", "#!out/interp\n");
    shim_exec_promote("script");
    cr_assert_not(in_trunk("interp"), "not next to the script");
    exec_prepare(AT_FDCWD, place_path("r/out/script"), place_open("r/out"), NULL);
    cr_assert(in_trunk("interp"));
    cr_assert_eq(chdir(place_path("r")), 0);
    shim_exec_script("interp2", "");
    shim_exec_script("script3", "#!out/interp2\n");
    shim_exec_promote("script3");
    cr_assert(in_trunk("interp2"));
}

Test(promote, a_first_line_without_end)
{
    char line[2000];
    memset(line, 'x', sizeof line);
    memcpy(line, "#!/", 3);
    line[sizeof line - 1] = '\0';
    shim_exec_script("endless", line);
    shim_exec_script("empty", "");
    shim_exec_script("bare", "#!");
    shim_exec_promote("endless");
    shim_exec_promote("empty");
    shim_exec_promote("bare");
    cr_assert(in_trunk("endless") && in_trunk("empty") && in_trunk("bare"));
}

Test(promote, what_is_no_program_is_not_opened)
{
    cr_assert_eq(mkfifo(place_path("r/out/fifo"), 0600), 0);
    shim_exec_promote("fifo"); /* nobody writes to it */
    exec_prepare(AT_FDCWD, place_path("r/out"), AT_FDCWD, NULL);
}

Test(promote, along_path)
{
    char path[3 * PATH_MAX];
    shim_exec_script("tool", "#!/bin/sh\n");
    shim_exec_script("here", "");
    shim_exec_script("direct", "");
    shim_exec_script("unrelated", "");
    snprintf(path, sizeof path, "%s:%s::/bin", place_path("none"), place_path("r/out"));
    setenv("PATH", path, 1);
    exec_prepare_along_path("tool", AT_FDCWD, NULL);
    cr_assert(in_trunk("tool"));
    setenv("PATH", "/none::/bin", 1);
    cr_assert_eq(chdir(place_path("r/out")), 0);
    exec_prepare_along_path("here", AT_FDCWD, NULL);
    cr_assert(in_trunk("here"), "an empty element is the working directory");
    cr_assert_eq(chdir(place_path("r")), 0);
    setenv("PATH", "/bin", 1);
    exec_prepare_along_path("out/direct", AT_FDCWD, NULL);
    cr_assert(in_trunk("direct"), "a word with a slash is no matter of PATH");
    exec_prepare_along_path("unrelated", AT_FDCWD, NULL);
    cr_assert_not(in_trunk("unrelated"));
}
