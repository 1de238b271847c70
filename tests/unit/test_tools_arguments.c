/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What the tools read from a command line, and how they word what they found. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <iconv.h>
#include <limits.h>
#include <time.h>

#include "base/clock.h"
#include "cli/describe.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/shown.h"
#include "commands/commands.h"
#include "serving/counters.h"
#include "heard.h"
#include "place.h"

static int run_never(const struct command *command, int argc, char **argv)
{
    return 99;
}

static const struct choice eat_choices[] = {{'l', "long", NULL, "a letter and a name"},
                                            {'r', "root", "DIR", "with an argument"},
                                            {COMMAND_LONG + 1, "json", NULL, "a name alone"},
                                            {'q', NULL, NULL, "a letter alone"},
                                            {0}};

enum { EAT, EXECUTE, SEEK, BARE };

/* In place of the command's table. */
static const struct command commands[] = {[EAT] = {"eat", "[-l] WORD", "Eats.", eat_choices, 0, run_never},
                                          [EXECUTE] = {"execute", "", "Executes.", eat_choices, COMMAND_COMMAND, run_never},
                                          [SEEK] = {"seek", "", "Seeks.", eat_choices, COMMAND_SINGLE_DASH, run_never},
                                          [BARE] = {"bare", "", "Takes none.", NULL, 0, run_never},
                                          {0}};

/* The command line being read. */
static char *words[16];
static int word_count;
static const struct command *reading;

static void read_words(const struct command *command, const char *line)
{
    static char copy[256];
    char *rest = strcpy(copy, line);
    reading = command;
    word_count = 0;
    words[word_count++] = (char *)command->name;
    for (char *word; (word = strsep(&rest, " "));)
        if (*word)
            words[word_count++] = word;
    words[word_count] = NULL;
    optind = 0; /* glibc begins again */
}

static int next_option(void)
{
    return command_option(reading, word_count, words);
}

/* Subcommands and their options. */

Test(command, is_found_by_its_whole_name)
{
    cr_assert_eq(command_find(commands, "eat"), &commands[EAT]);
    cr_assert_eq(command_find(commands, "bare"), &commands[BARE]);
    cr_assert_null(command_find(commands, "ea"));
    cr_assert_null(command_find(commands, "eats"));
    cr_assert_null(command_find(commands, ""));
}

Test(command, options_stand_anywhere)
{
    read_words(&commands[EAT], "one -l two --json --root here three -q");
    cr_assert_eq(next_option(), 'l');
    cr_assert_eq(next_option(), COMMAND_LONG + 1);
    cr_assert_eq(next_option(), 'r');
    cr_assert_str_eq(optarg, "here");
    cr_assert_eq(next_option(), 'q');
    cr_assert_eq(next_option(), COMMAND_END);
    cr_assert_eq(word_count - optind, 3);
    cr_assert_str_eq(words[optind], "one");
    cr_assert_str_eq(words[optind + 1], "two");
    cr_assert_str_eq(words[optind + 2], "three");
}

Test(command, an_argument_in_every_spelling)
{
    const char *const lines[] = {"-r here", "-rhere", "-lrhere", "-qlr here", "--root here", "--root=here", "--ro here"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        int option;
        read_words(&commands[EAT], lines[i]);
        while ((option = next_option()) == 'l' || option == 'q')
            continue;
        cr_assert_eq(option, 'r', "%s", lines[i]);
        cr_assert_str_eq(optarg, "here", "%s", lines[i]);
        cr_assert_eq(next_option(), COMMAND_END);
        cr_assert_eq(optind, word_count);
    }
}

Test(command, two_dashes_end_the_options)
{
    read_words(&commands[EAT], "-l -- -q --help");
    cr_assert_eq(next_option(), 'l');
    cr_assert_eq(next_option(), COMMAND_END);
    cr_assert_str_eq(words[optind], "-q");
    cr_assert_eq(word_count - optind, 2);
}

Test(command, the_options_of_a_command_are_its_own)
{
    read_words(&commands[EXECUTE], "-l ls -l --help");
    cr_assert_eq(next_option(), 'l');
    cr_assert_eq(next_option(), COMMAND_END);
    cr_assert_str_eq(words[optind], "ls");
    cr_assert_str_eq(words[optind + 1], "-l");
    read_words(&commands[EXECUTE], "-l -- -odd");
    cr_assert_eq(next_option(), 'l');
    cr_assert_eq(next_option(), COMMAND_END);
    cr_assert_str_eq(words[optind], "-odd");
}

Test(command, long_options_with_one_dash)
{
    read_words(&commands[SEEK], "here -root there -json --json -long");
    cr_assert_eq(next_option(), 'r');
    cr_assert_str_eq(optarg, "there");
    cr_assert_eq(next_option(), COMMAND_LONG + 1);
    cr_assert_eq(next_option(), COMMAND_LONG + 1);
    cr_assert_eq(next_option(), 'l');
    cr_assert_eq(next_option(), COMMAND_END);
    cr_assert_str_eq(words[optind], "here");
}

static void assert_wrong(int command, const char *line, const char *complaint)
{
    int option;
    char whole[256];
    snprintf(whole, sizeof whole, "shunt: %s (see 'shunt %s --help')\n", complaint, commands[command].name);
    read_words(&commands[command], line);
    hear();
    while ((option = next_option()) > 0)
        continue;
    hear_end();
    cr_assert_eq(option, COMMAND_WRONG, "%s", line);
    cr_assert_str_eq(heard_error.words, whole);
    cr_assert_str_empty(heard_out.words);
    cr_assert_eq(command_status(option), STATUS_USAGE);
}

Test(command, names_the_option_that_is_wrong)
{
    assert_wrong(EAT, "-x", "unknown option '-x'");
    assert_wrong(EAT, "word -lxq", "unknown option '-x'");
    assert_wrong(EAT, "--nothing", "unknown option '--nothing'");
    assert_wrong(EAT, "-l --json=3 word", "unknown option '--json=3'");
    assert_wrong(EAT, "--root", "an argument is missing after '--root'");
    assert_wrong(EAT, "-l -r", "an argument is missing after '-r'");
    assert_wrong(EAT, "-lr", "an argument is missing after '-r'");
    assert_wrong(SEEK, "-nothing", "unknown option '-nothing'");
    assert_wrong(SEEK, "here -root", "an argument is missing after '-root'");
    assert_wrong(BARE, "-l", "unknown option '-l'");
    assert_wrong(BARE, "--long", "unknown option '--long'");
}

Test(command, help_is_given_and_ends_it)
{
    for (int command = EAT; command <= BARE; command++) {
        read_words(&commands[command], "--help");
        hear();
        int option = next_option();
        hear_end();
        cr_assert_eq(option, COMMAND_HELPED);
        cr_assert_eq(command_status(option), STATUS_OK);
        cr_assert(strstr(heard_out.words, commands[command].help), "%s", heard_out.words);
        cr_assert_str_empty(heard_error.words);
    }
}

Test(command, help_shows_options_as_they_are_typed)
{
    hear();
    command_help(&commands[EAT]);
    hear_end();
    cr_assert_eq(strncmp(heard_out.words, "usage: shunt eat [-l] WORD\n\nEats.\n\n", 34), 0, "%s", heard_out.words);
    cr_assert(strstr(heard_out.words, "\n  -l, --long "), "%s", heard_out.words);
    cr_assert(strstr(heard_out.words, "\n  -r, --root DIR "), "%s", heard_out.words);
    cr_assert(strstr(heard_out.words, "\n  --json "), "%s", heard_out.words);
    cr_assert(strstr(heard_out.words, "\n  -q "), "%s", heard_out.words);
    hear();
    command_help(&commands[SEEK]);
    hear_end();
    cr_assert(strstr(heard_out.words, "\n  -json ") && !strstr(heard_out.words, "--"), "%s", heard_out.words);
    cr_assert_eq(strncmp(heard_out.words, "usage: shunt seek\n", 18), 0);
}

/* The tables that users meet: a table too long for getopt's would be written beyond (a sanitizer sees it), a
 * letter used twice would hide the second. */
static void assert_choice_works(const struct command *command, const struct choice *choice)
{
    char line[64];
    const char *argument = choice->argument ? " value" : "";
    if (choice->letter < COMMAND_LONG) {
        snprintf(line, sizeof line, "-%c%s", choice->letter, argument);
        read_words(command, line);
        cr_assert_eq(next_option(), choice->letter, "%s", line);
        cr_assert_eq(next_option(), COMMAND_END, "%s", line);
    }
    if (choice->name) {
        snprintf(line, sizeof line, "%s%s%s", command->flags & COMMAND_SINGLE_DASH ? "-" : "--", choice->name, argument);
        read_words(command, line);
        cr_assert_eq(next_option(), choice->letter, "%s", line);
        cr_assert_eq(next_option(), COMMAND_END, "%s", line);
    }
    for (const struct choice *other = command->choices; other != choice; other++)
        cr_assert_neq(other->letter, choice->letter, "%s and %s", other->name, choice->name);
}

Test(command, every_choice_of_every_command_is_understood)
{
    const struct command real[] = {{"ls", "", "", command_ls_choices},
                                   {"stat", "", "", command_stat_choices},
                                   {"tree", "", "", command_tree_choices},
                                   {"export", "", "", command_export_choices},
                                   {"fsck", "", "", command_fsck_choices},
                                   {"start", "", "", command_start_choices},
                                   {"stop", "", "", command_stop_choices},
                                   {"status", "", "", command_status_choices},
                                   {"exec", "", "", command_exec_choices, COMMAND_COMMAND},
                                   {"env", "", "", command_env_choices},
                                   {"run", "", "", command_run_choices, COMMAND_COMMAND},
                                   {"find", "", "", command_find_choices, COMMAND_SINGLE_DASH},
                                   {"names", "", "", command_names_choices}};
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        for (const struct choice *choice = real[i].choices; choice->letter; choice++)
            assert_choice_works(&real[i], choice);
}

Test(command, takes_exactly_one_word)
{
    static const struct {
        const char *line, *complaint;
    } cases[] = {{"-l", "shunt: exactly one root is required (see 'shunt eat --help')\n"},
                 {"one two", "shunt: exactly one root is required (see 'shunt eat --help')\n"},
                 {"-l one", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_words(&commands[EAT], cases[i].line);
        while (next_option() >= 0)
            continue;
        hear();
        bool is_one = command_one_word(&commands[EAT], word_count, "root");
        hear_end();
        cr_assert_eq(is_one, cases[i].complaint[0] == '\0', "%s", cases[i].line);
        cr_assert_str_eq(heard_error.words, cases[i].complaint);
    }
}

/* Complaints. */

Test(complain, comes_after_what_was_printed_before)
{
    hear();
    cr_assert_eq(dup2(STDOUT_FILENO, STDERR_FILENO), STDERR_FILENO);
    printf("first\n");
    error_report("%s", "second");
    printf("third\n");
    hear_end();
    cr_assert_str_eq(heard_out.words, "first\nshunt: second\nthird\n");
}

static const char *complaint_of(int error)
{
    hear();
    error_report_path("a/b", error);
    hear_end();
    cr_assert_eq(heard_lines(heard_error.words), 1, "%s", heard_error.words);
    cr_assert_eq(strncmp(heard_error.words, "shunt: a/b: ", 12), 0, "%s", heard_error.words);
    return heard_error.words + 12;
}

Test(complain, says_what_to_do)
{
    cr_assert(strstr(complaint_of(-ENOENT), "in the union"));
    cr_assert(strstr(complaint_of(-ENOTUNIQ), "in no root of shunt"));
    cr_assert(strstr(complaint_of(-EINVAL), "belongs to shunt"));
    cr_assert(strstr(complaint_of(-EBADMSG), "'shunt fsck'"));
    cr_assert(strstr(complaint_of(-EXDEV), "another file system"));
    cr_assert_str_eq(complaint_of(-ELOOP), "Too many levels of symbolic links\n");
}

/* JSON. */

static const char *json_of(const char *text)
{
    struct json json = {0};
    hear();
    json_text(&json, NULL, text);
    hear_end();
    return heard_out.words;
}

Test(json, is_laid_out)
{
    struct json json = {0};
    hear();
    json_open(&json, NULL, '{');
    json_text(&json, "name", "a");
    json_open(&json, "list", '[');
    json_number(&json, NULL, INT64_MIN);
    json_unsigned(&json, NULL, UINT64_MAX);
    json_open(&json, NULL, '{');
    json_close(&json, '}');
    json_close(&json, ']');
    json_open(&json, "none", '[');
    json_close(&json, ']');
    json_real(&json, "half", 0.5);
    json_real(&json, "endless", 1.0 / 0.0);
    json_bool(&json, "yes", true);
    json_bool(&json, "no", false);
    json_text(&json, "nothing", NULL);
    json_close(&json, '}');
    hear_end();
    cr_assert_str_eq(
        heard_out.words,
        "{\n  \"name\": \"a\",\n  \"list\": [\n    -9223372036854775808,\n"
        "    18446744073709551615,\n    {}\n  ],\n  \"none\": [],\n  \"half\": 0.5,\n  \"endless\": null,\n  \"yes\": true,\n"
        "  \"no\": false,\n  \"nothing\": null\n}\n");
}

Test(json, is_laid_out_on_one_line)
{
    struct json json = {.flat = true};
    hear();
    json_open(&json, NULL, '{');
    json_text(&json, "name", "a");
    json_open(&json, "list", '[');
    json_number(&json, NULL, 1);
    json_number(&json, NULL, 2);
    json_close(&json, ']');
    json_text(&json, "nothing", NULL);
    json_close(&json, '}');
    hear_end();
    cr_assert_str_eq(heard_out.words, "{\"name\": \"a\", \"list\": [1, 2], \"nothing\": null}\n");
}

Test(json, quotes_names_of_every_kind)
{
    static const char *const texts[][2] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"\"\\/", "\"\\\"\\\\/\""},
        {"a\nb\tc\x01\x1f\x7f", "\"a\\u000ab\\u0009c\\u0001\\u001f\\u007f\""},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x82", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x82\""},
        {"\x80", "\"\\u0080\""},
        {"a\xff"
         "b",
         "\"a\\u00ffb\""},
        {"\xc0\x80", "\"\\u00c0\\u0080\""},
        {"\xc1\xbf", "\"\\u00c1\\u00bf\""},
        {"\xe0\x9f\xbf", "\"\\u00e0\\u009f\\u00bf\""},
        {"\xed\xa0\x80", "\"\\u00ed\\u00a0\\u0080\""},
        {"\xed\x9f\xbf", "\"\xed\x9f\xbf\""},
        {"\xf0\x8f\xbf\xbf", "\"\\u00f0\\u008f\\u00bf\\u00bf\""},
        {"\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\""},
        {"\xf4\x90\x80\x80", "\"\\u00f4\\u0090\\u0080\\u0080\""},
        {"\xf5\x80\x80\x80", "\"\\u00f5\\u0080\\u0080\\u0080\""},
        {"\xe2\x82", "\"\\u00e2\\u0082\""},
        {"\xe2\x82\"", "\"\\u00e2\\u0082\\\"\""},
        {"\xc3\xc3\xa4", "\"\\u00c3\xc3\xa4\""},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_assert_str_eq(json_of(texts[i][0]), texts[i][1]);
}

Test(json, keys_are_quoted_too)
{
    struct json json = {0};
    hear();
    json_open(&json, NULL, '{');
    json_number(&json, "a\"\n\xff", 1);
    json_close(&json, '}');
    hear_end();
    cr_assert_str_eq(heard_out.words, "{\n  \"a\\\"\\u000a\\u00ff\": 1\n}\n");
}

/* What a reader makes of it: \u00NN is the byte NN. */
static size_t tools_arguments_unquote(const char *line, size_t length, char *to)
{
    size_t made = 0;
    cr_assert(length >= 2 && line[0] == '"' && line[length - 1] == '"', "%.*s", (int)length, line);
    for (size_t i = 1; i < length - 1; i++) {
        unsigned byte;
        cr_assert_neq(line[i], '"', "%.*s", (int)length, line);
        if (line[i] != '\\') {
            to[made++] = line[i];
        } else if (line[i + 1] == 'u') {
            cr_assert_eq(sscanf(line + i + 2, "00%2x", &byte), 1);
            to[made++] = (char)byte;
            i += 5;
        } else {
            to[made++] = line[++i];
        }
    }
    return made;
}

static bool is_utf8(char *text, size_t length)
{
    static char wide[1 << 20];
    iconv_t reader = iconv_open("UTF-32LE", "UTF-8");
    char *to = wide;
    size_t room = sizeof wide;
    bool good = iconv(reader, &text, &length, &to, &room) != (size_t)-1;
    iconv_close(reader);
    return good;
}

/* Names made of the bytes that matter, in memory of exactly their size. */
static char *odd_name(unsigned *seed)
{
    static const char bytes[] = "a\"\\\n\x7f\x80\xbf\xc2\xc3\xe0\xa0\xed\x9f\xe2\xf0\x90\xf4\x8f\xff";
    size_t length = place_next(seed) % 12;
    char *name = malloc(length + 1);
    for (size_t i = 0; i < length; i++)
        name[i] = bytes[place_next(seed) % (sizeof bytes - 1)];
    name[length] = '\0';
    return name;
}

#define ODD_NAMES 3000

Test(json, nothing_of_a_name_is_lost)
{
    unsigned seed = 1;
    char *names[ODD_NAMES], back[64];
    hear();
    for (size_t i = 0; i < ODD_NAMES; i++) {
        struct json json = {0};
        names[i] = odd_name(&seed);
        json_text(&json, NULL, names[i]);
        putchar('\n');
    }
    hear_end();
    cr_assert(is_utf8(heard_out.words, heard_out.length));
    char *line = heard_out.words;
    for (size_t i = 0; i < ODD_NAMES; i++) {
        char *end = strchr(line, '\n');
        cr_assert_not_null(end, "no byte below 0x20 stands for itself");
        size_t length = tools_arguments_unquote(line, (size_t)(end - line), back);
        cr_assert(length == strlen(names[i]) && memcmp(back, names[i], length) == 0, "%.*s", (int)(end - line), line);
        free(names[i]);
        line = end + 1;
    }
    cr_assert_str_empty(line);
}

/* What a file is. */

Test(describe, modes_as_ls_has_them)
{
    static const struct {
        unsigned mode;
        const char *words, *type;
    } modes[] = {{0100644, "-rw-r--r--", "regular file"},
                 {040755, "drwxr-xr-x", "directory"},
                 {0104755, "-rwsr-xr-x", "regular file"},
                 {0104644, "-rwSr--r--", "regular file"},
                 {042775, "drwxrwsr-x", "directory"},
                 {042765, "drwxrwSr-x", "directory"},
                 {041777, "drwxrwxrwt", "directory"},
                 {041776, "drwxrwxrwT", "directory"},
                 {0120777, "lrwxrwxrwx", "symbolic link"},
                 {010000, "p---------", "fifo"},
                 {0140111, "s--x--x--x", "socket"},
                 {020222, "c-w--w--w-", "character special file"},
                 {060400, "br--------", "block special file"},
                 {0777, "?rwxrwxrwx", "weird file"}};
    char words_of_it[DESCRIBE_MODE];
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        describe_mode(modes[i].mode, words_of_it);
        cr_assert_str_eq(words_of_it, modes[i].words);
        cr_assert_str_eq(describe_type(modes[i].mode), modes[i].type);
    }
}

/* The last answer is kept, and is not another's. */
Test(describe, owners)
{
    for (int i = 0; i < 2; i++) {
        cr_assert_str_eq(describe_user(0), "root");
        cr_assert_str_eq(describe_user(0), "root");
        cr_assert_str_eq(describe_user(4000000001u), "4000000001");
        cr_assert_str_eq(describe_group(0), "root");
        cr_assert_str_eq(describe_group(4000000002u), "4000000002");
        cr_assert_str_eq(describe_user(4000000001u), "4000000001");
    }
}

static void set_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static const char *short_time(int64_t seconds)
{
    static char to[DESCRIBE_TIME];
    describe_time_short(&(struct statx_timestamp){.tv_sec = seconds}, to);
    return to;
}

Test(describe, times_as_ls_has_them)
{
    char clock[16];
    time_t lately = time(NULL) - 86400;
    set_zone("UTC0");
    cr_assert_str_eq(short_time(981203696), "Feb  3  2001");
    cr_assert_str_eq(short_time(4102444799), "Dec 31  2099", "what is to come has a year");
    strftime(clock, sizeof clock, "%H:%M", gmtime(&lately));
    cr_assert_eq(strlen(short_time(lately)), 12);
    cr_assert_str_eq(short_time(lately) + 7, clock);
    cr_assert_str_eq(short_time(INT64_MAX), "9223372036854775807", "a year that does not fit");
}

static const char *long_time(int64_t seconds, uint32_t ns)
{
    static char to[DESCRIBE_TIME];
    describe_time_long(&(struct statx_timestamp){.tv_sec = seconds, .tv_nsec = ns}, to);
    return to;
}

Test(describe, times_as_stat_has_them)
{
    set_zone("UTC0");
    cr_assert_str_eq(long_time(0, 5), "1970-01-01 00:00:00.000000005 +0000");
    cr_assert_str_eq(long_time(-1, 999999999), "1969-12-31 23:59:59.999999999 +0000");
    set_zone("IST-5:30");
    cr_assert_str_eq(long_time(951782400, 0), "2000-02-29 05:30:00.000000000 +0530");
    cr_assert_str_eq(long_time(INT64_MIN, 0), "-9223372036854775808");
}

Test(describe, width_of_a_name)
{
    cr_assert_eq(describe_width(""), 0);
    cr_assert_eq(describe_width("abc"), 3);
    cr_assert_eq(describe_width("\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x82"), 3);
}

#define ODD "a\n\033[31m\x7f\xc3\xa4"

Test(describe, a_name_for_a_file)
{
    hear();
    describe_print(ODD);
    hear_end();
    cr_assert_str_eq(heard_out.words, ODD, "as it is: others read it");
}

/* A terminal in place of `fd`: its other end. */
static int become_terminal(int fd)
{
    int keyboard = posix_openpt(O_RDWR | O_NOCTTY);
    cr_assert(keyboard >= 0 && grantpt(keyboard) == 0 && unlockpt(keyboard) == 0);
    int screen = open(ptsname(keyboard), O_RDWR | O_NOCTTY);
    cr_assert(screen >= 0 && dup2(screen, fd) == fd);
    close(screen);
    return keyboard;
}

/* It may come in pieces. */
static void assert_shown(int keyboard, const char *expected)
{
    char shown[256] = "";
    size_t length = 0, wanted = strlen(expected);
    while (length < wanted) {
        ssize_t more = read(keyboard, shown + length, wanted - length);
        cr_assert_gt(more, 0);
        length += (size_t)more;
    }
    cr_assert_str_eq(shown, expected);
}

Test(describe, a_name_for_a_terminal, .timeout = 60)
{
    int before = dup(STDOUT_FILENO), keyboard = become_terminal(STDOUT_FILENO);
    describe_print(ODD);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    assert_shown(keyboard, "a??[31m?\xc3\xa4");
}

/* Paths as the user spelled them. */

Test(shown, joins)
{
    static const char *const cases[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"},     {"a//", "b", "a//b"},
                                           {"/", "b", "/b"},  {"a", "", "a"},         {"a/", "", "a/"},
                                           {".", "b", "./b"}, {"..", "b/c", "../b/c"}};
    char to[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_eq(visible_path_join(cases[i][0], cases[i][1], to, sizeof to), 0);
        cr_assert_str_eq(to, cases[i][2]);
    }
    cr_assert_eq(visible_path_join("abc", "def", to, 8), 0);
    cr_assert_eq(visible_path_join("abc", "def", to, 7), -ENAMETOOLONG);
}

Test(shown, below_what_was_given)
{
    static const char *const cases[][4] = {{"/r", ".", ".", "/r"},          {"/r", ".", "a/b", "/r/a/b"},
                                           {"x/", ".", "a", "x/a"},         {"./a", "a", "a", "./a"},
                                           {"./a/", "a", "a/b", "./a/b"},   {"..", "a/b", "a/b/c/d", "../c/d"},
                                           {"link", "a", "a/ab", "link/ab"}};
    char to[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_eq(visible_path_below(cases[i][0], cases[i][1], cases[i][2], to, sizeof to), 0);
        cr_assert_str_eq(to, cases[i][3]);
    }
    cr_assert_eq(visible_path_below("link", "a", "a/ab", to, 7), -ENAMETOOLONG);
}

/* How far long work is. */

Test(progress, nobody_asked_and_nobody_looks)
{
    struct progress progress;
    hear();
    progress_init(&progress, false);
    progress.last = 0;
    cr_assert_not(progress_due(&progress));
    progress_finish(&progress);
    hear_end();
    cr_assert_str_empty(heard_error.words);
}

Test(progress, asked_for_in_a_file)
{
    struct progress progress;
    hear();
    progress_init(&progress, true);
    bool at_once = progress_due(&progress);
    uint64_t when = progress.last;
    progress.last = clock_monotonic() + CLOCK_SECOND;
    bool again = progress_due(&progress);
    progress_line(&progress, "%d of %d", 1, 2);
    progress_line(&progress, "%d of %d", 2, 2);
    progress_finish(&progress);
    progress_finish(&progress);
    hear_end();
    cr_assert(at_once && when > 0 && when <= clock_monotonic());
    cr_assert_not(again, "there was one less than 200 ms ago");
    cr_assert_str_eq(heard_error.words, "\r1 of 2\r2 of 2\n");
}

Test(progress, seen_on_a_terminal, .timeout = 60)
{
    struct progress progress;
    int before = dup(STDERR_FILENO), keyboard = become_terminal(STDERR_FILENO);
    uint64_t began = clock_monotonic();
    progress_init(&progress, false);
    cr_assert(progress.on && progress.last > began, "not before half a second of work");
    progress.last = began - CLOCK_SECOND;
    cr_assert(progress_due(&progress));
    progress_line(&progress, "half");
    assert_shown(keyboard, "\rhalf\033[K");
    progress_finish(&progress);
    assert_shown(keyboard, "\r\033[K");
    dup2(before, STDERR_FILENO);
}

/* What a daemon says of itself. */

/* In memory of exactly its size: the text of an answer is not terminated. */
static void tools_arguments_say(struct counters *counters, const char *text)
{
    size_t length = strlen(text);
    char *exact = malloc(length ? length : 1);
    memcpy(exact, text, length);
    *counters = (struct counters){.answer.message = {.text_answer.text = message_text(exact, length)}};
}

static const char *tools_arguments_printed(const char *text)
{
    static struct counters counters;
    tools_arguments_say(&counters, text);
    hear();
    counters_print(&counters);
    hear_end();
    free((char *)counters.answer.message.text_answer.text.text);
    return heard_out.words;
}

static const char *as_json(const char *text)
{
    static struct counters counters;
    struct json json = {0};
    tools_arguments_say(&counters, text);
    hear();
    json_open(&json, NULL, '{');
    counters_json(&counters, &json, "counters");
    counters_json_lists(&counters, &json);
    json_close(&json, '}');
    hear_end();
    free((char *)counters.answer.message.text_answer.text.text);
    return heard_out.words;
}

Test(counters, in_words)
{
    cr_assert_str_eq(tools_arguments_printed("creates 12\nredirected 18446744073709551615\n"),
                     "  creates          12\n  redirected       18446744073709551615\n");
    cr_assert_str_eq(tools_arguments_printed("silent n7\n"), "  silent   n7: does not answer the other daemons\n");
    cr_assert_str_eq(tools_arguments_printed("pinned owner a b/c  d\npinned new-reason x\n"),
                     "  pinned   a b/c  d: new files stay in the trunk, a mirror cannot be given its owner or "
                     "group\n  pinned   x: new files stay in the trunk, new-reason\n");
}

Test(counters, in_json)
{
    cr_assert_str_eq(as_json("creates 12\nsilent n7\npinned mode a b\nloads 18446744073709551615\npinned owner \xff\"\n"),
                     "{\n  \"counters\": {\n    \"creates\": 12,\n    \"loads\": 18446744073709551615\n  },\n"
                     "  \"silent\": [\n    \"n7\"\n  ],\n"
                     "  \"pinned\": [\n    {\n      \"path\": \"a b\",\n      \"reason\": \"mode\"\n    },\n"
                     "    {\n      \"path\": \"\\u00ff\\\"\",\n      \"reason\": \"owner\"\n    }\n  ]\n}\n");
}

#define KEY_63 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"

/* A text that was cut, or of another version: as far as it makes sense. */
Test(counters, a_text_that_is_none)
{
    cr_assert_str_empty(tools_arguments_printed(""));
    cr_assert_str_eq(tools_arguments_printed("creates 12\nlo"), "  creates          12\n");
    cr_assert_str_eq(tools_arguments_printed("creates 12\nloads 3"), "  creates          12\n");
    cr_assert_str_eq(tools_arguments_printed("creates 12\nloads\nlate 4\n"), "  creates          12\n");
    cr_assert_str_eq(tools_arguments_printed(KEY_63 " 1\n"), "  " KEY_63 " 1\n");
    cr_assert_str_empty(tools_arguments_printed(KEY_63 "k 1\n"));
    cr_assert_str_eq(tools_arguments_printed("pinned owner\n"),
                     "  pinned   : new files stay in the trunk, a mirror cannot be given its owner or group\n");
    cr_assert_str_eq(as_json(""), "{\n  \"counters\": {},\n  \"silent\": [],\n  \"pinned\": []\n}\n");
}

Test(counters, of_a_daemon_that_is_none, .init = place_init, .fini = place_finish)
{
    static struct counters counters;
    cr_assert_eq(counters_ask(&counters, place_path("nothing"), false), -ENOENT);
    cr_assert_eq(counters_ask(&counters, place, false), -ENOENT);
}
