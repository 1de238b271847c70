/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "config/settings.h"

#include "config/settings_line.h"
#include "leaks.h"
#include "place.h"

/* What was said, a sentence a line, without the directory of the test. */
static char said[8192];

static void note_sentence(bool is_error, const char *sentence)
{
    const char *at = strncmp(sentence, place, strlen(place)) == 0 ? sentence + strlen(place) + 1 : sentence;
    const size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%s %s\n", is_error ? "error" : "warning", at);
}

static void remove_place(void)
{
    leaks_none();
    place_finish();
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(place_path("%s", name), "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

/* `variable` comes after those that say where the user's file is. */
static int read_all(struct settings *settings, const char *variable)
{
    static char base[PATH_MAX];
    snprintf(base, sizeof base, "XDG_CONFIG_HOME=%s", place);
    char *const environment[] = {"HOME=/nowhere", base, (char *)variable, NULL};
    return settings_read(settings, environment, place_path("site.conf"), note_sentence);
}

static void assert_holds(const struct settings *settings, enum settings_key key, const char *text, const char *origin)
{
    char room[PATH_MAX + 32];
    const char *from = settings_origin(settings, key, room);
    const char *shown = strncmp(from, place, strlen(place)) == 0 ? from + strlen(place) + 1 : from;
    cr_assert_str_eq(settings_text(settings, key), text);
    cr_assert_str_eq(shown, origin);
}

Test(settings_line, forms)
{
    static const struct {
        const char *line, *key, *value;
        int kind;
    } lines[] = {
        {"", NULL, NULL, 0},
        {" \t\r", NULL, NULL, 0},
        {"# a = b", NULL, NULL, 0},
        {"  #", NULL, NULL, 0},
        {"a = b", "a", "b", 1},
        {"\ta=b \r", "a", "b", 1},
        {"a = b = c", "a", "b = c", 1},
        {"a = b # c", "a", "b # c", 1},
        {"a b = /x y", "a b", "/x y", 1},
        {"a", NULL, NULL, -EINVAL},
        {"a =", NULL, NULL, -EINVAL},
        {"= b", NULL, NULL, -EINVAL},
        {"=", NULL, NULL, -EINVAL},
        {"a = \x01", NULL, NULL, -EINVAL},
        {"a = b\x7f", NULL, NULL, -EINVAL},
        {"[shunt]", NULL, NULL, -EINVAL},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct settings_line parsed = {0};
        cr_expect_eq(settings_line_parse(&parsed, lines[i].line, strlen(lines[i].line)), lines[i].kind, "%s", lines[i].line);
        if (lines[i].kind == 1) {
            cr_expect_eq(parsed.key_length, strlen(lines[i].key));
            cr_expect_eq(memcmp(parsed.key, lines[i].key, parsed.key_length), 0);
            cr_expect_eq(parsed.value_length, strlen(lines[i].value));
            cr_expect_eq(memcmp(parsed.value, lines[i].value, parsed.value_length), 0);
        }
    }
}

Test(settings_line, a_zero_byte)
{
    struct settings_line parsed;
    cr_assert_eq(settings_line_parse(&parsed, "a = b\0c", 7), -EINVAL);
}

TestSuite(settings, .init = place_init, .fini = remove_place);

Test(settings, nothing_is_said)
{
    struct settings settings;
    cr_assert_eq(read_all(&settings, NULL), 0);
    assert_holds(&settings, SETTINGS_DEADLINE, "30", "built-in");
    assert_holds(&settings, SETTINGS_ENABLED, "yes", "built-in");
    cr_assert_eq(settings_limit(&settings, SETTINGS_INDEX_LIMIT_MAX), UINT64_MAX);
    enum settings_key which;
    cr_assert(settings_allow_root(&settings, "/anywhere", &which));
    cr_assert_str_eq(said, "");
    settings_finish(&settings);
}

Test(settings, environment_above_user_above_site)
{
    struct settings settings;
    write_file("site.conf", "# of the site\n\ndeadline = 40\nstale = 20\nplacement = branch\n");
    write_file("shunt.conf", "stale = 30\nstale = 31\nplacement=auto\n");
    cr_assert_eq(read_all(&settings, "SHUNT_PLACEMENT=branch"), 0);
    assert_holds(&settings, SETTINGS_DEADLINE, "40", "site.conf:3");
    assert_holds(&settings, SETTINGS_STALE, "31", "shunt.conf:2");
    assert_holds(&settings, SETTINGS_PLACEMENT, "branch", "environment");
    unsetenv("SHUNT_PLACEMENT");
    cr_assert_eq(settings_to_environment(&settings), 0);
    cr_assert_str_eq(getenv("SHUNT_DEADLINE"), "40");
    cr_assert_str_eq(getenv("SHUNT_STALE"), "31");
    cr_assert_null(getenv("SHUNT_PLACEMENT"));
    cr_assert_null(getenv("SHUNT_ENABLED"));
    settings_finish(&settings);
}

Test(settings, every_wrong_line_is_named)
{
    struct settings settings;
    write_file("site.conf", "deadline = soon\nno setting\nrun_dir = shm\nfuture = 1\nplacement = here\nallowed_roots = /a:b\n");
    write_file("shunt.conf", "forbidden_roots = /a\nindex_limit = 1\nroot = /a\n");
    cr_assert_eq(read_all(&settings, NULL), -EINVAL);
    cr_assert_str_eq(
        said, "error site.conf:1: deadline 'soon': not a number of seconds from 1 to 86400 (correct or remove the line)\n"
              "error site.conf:2: not of the form 'KEY = value' (correct or remove the line)\n"
              "error site.conf:3: run_dir 'shm': not an absolute path (correct or remove the line)\n"
              "warning site.conf:4: unknown setting 'future' is ignored (see 'shunt config')\n"
              "error site.conf:5: placement 'here': neither auto nor branch (correct or remove the line)\n"
              "error site.conf:6: allowed_roots '/a:b': not absolute paths with ':' between (correct or remove the line)\n"
              "error shunt.conf:1: 'forbidden_roots' is for the file of the site alone (remove the line)\n"
              "error shunt.conf:2: index_limit '1': not a size of at least 1M (correct or remove the line)\n"
              "warning shunt.conf:3: unknown setting 'root' is ignored (see 'shunt config')\n");
    settings_finish(&settings);
}

Test(settings, a_value_of_the_environment_that_means_nothing)
{
    struct settings settings;
    cr_assert_eq(read_all(&settings, "SHUNT_DEADLINE=soon"), 0);
    cr_assert(settings.values[SETTINGS_DEADLINE].is_bad);
    assert_holds(&settings, SETTINGS_DEADLINE, "soon", "environment");
    settings_finish(&settings);
}

Test(settings, what_is_off_stays_off)
{
    struct settings settings;
    write_file("site.conf", "message = read the news\nenabled = no\n");
    write_file("shunt.conf", "enabled = yes\n");
    cr_assert_eq(read_all(&settings, "SHUNT_ENABLED=yes"), 0);
    cr_assert(settings_are_off(&settings));
    assert_holds(&settings, SETTINGS_ENABLED, "no", "site.conf:2");
    assert_holds(&settings, SETTINGS_MESSAGE, "read the news", "site.conf:1");
    settings_finish(&settings);
    write_file("site.conf", "enabled = no\nenabled = yes\n");
    cr_assert_eq(read_all(&settings, "SHUNT_ENABLED=no"), 0);
    cr_assert(settings_are_off(&settings));
    assert_holds(&settings, SETTINGS_ENABLED, "no", "environment");
    settings_finish(&settings);
}

Test(settings, limits_hold_above_all)
{
    struct settings settings;
    write_file("site.conf", "index_limit_max = 64M\nleaf_full_max = 1000\n");
    write_file("shunt.conf", "leaf_full = 999\n");
    cr_assert_eq(read_all(&settings, "SHUNT_INDEX_LIMIT=1G"), 0);
    assert_holds(&settings, SETTINGS_INDEX_LIMIT, "64M", "site.conf:1");
    cr_assert(settings.values[SETTINGS_INDEX_LIMIT].is_limited);
    assert_holds(&settings, SETTINGS_LEAF_FULL, "999", "shunt.conf:1");
    cr_assert_eq(settings_limit(&settings, SETTINGS_INDEX_LIMIT_MAX), 64ull << 20);
    cr_assert_eq(settings_limit(&settings, SETTINGS_LEAF_FULL_MAX), 1000);
    setenv("SHUNT_INDEX_LIMIT", "1G", 1);
    cr_assert_eq(settings_to_environment(&settings), 0);
    cr_assert_str_eq(getenv("SHUNT_INDEX_LIMIT"), "64M");
    settings_finish(&settings);
}

Test(settings, roots)
{
    struct settings settings;
    char text[PATH_MAX];
    place_directory("real");
    cr_assert_eq(symlink("real", place_path("link")), 0);
    snprintf(text, sizeof text, "allowed_roots = /scratch:/project:%s/link\nforbidden_roots = /project/archive:/scratch/a/b\n",
             place);
    write_file("site.conf", text);
    cr_assert_eq(read_all(&settings, NULL), 0);
    static const struct {
        const char *root;
        int which; /* SETTINGS_KEYS: it is allowed */
    } roots[] = {
        {"/scratch", SETTINGS_FORBIDDEN_ROOTS},
        {"/scratch/a", SETTINGS_FORBIDDEN_ROOTS},
        {"/scratch/a/b/c", SETTINGS_FORBIDDEN_ROOTS},
        {"/scratch/a/bc", SETTINGS_KEYS},
        {"/scratch/c", SETTINGS_KEYS},
        {"/scratch2", SETTINGS_ALLOWED_ROOTS},
        {"/", SETTINGS_ALLOWED_ROOTS},
        {"/project/archive", SETTINGS_FORBIDDEN_ROOTS},
    };
    enum settings_key which;
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        const bool allowed = settings_allow_root(&settings, roots[i].root, &which);
        cr_expect_eq(allowed ? SETTINGS_KEYS : (int)which, roots[i].which, "%s", roots[i].root);
    }
    cr_assert(settings_allow_root(&settings, place_path("real/below"), &which));
    settings_finish(&settings);
}

Test(settings, what_is_no_file_of_settings)
{
    struct settings settings;
    cr_assert_eq(mkfifo(place_path("site.conf"), 0600), 0);
    cr_assert_eq(read_all(&settings, NULL), -EINVAL);
    cr_assert_str_eq(said, "error site.conf: not a regular file (replace or remove it)\n");
    settings_finish(&settings);
}
