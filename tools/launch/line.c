/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/line.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "launch/line_options.h"

#define PRELOAD "LD_PRELOAD"

enum line_kind line_kind(char *const words[])
{
    static const struct {
        const char *name;
        enum line_kind kind;
    } names[] = {{"srun", LINE_SRUN},
                 {"mpirun", LINE_UNTOLD},
                 {"mpiexec", LINE_UNTOLD},
                 {"mpirun.openmpi", LINE_OPENMPI},
                 {"mpiexec.openmpi", LINE_OPENMPI},
                 {"orterun", LINE_OPENMPI},
                 {"prterun", LINE_OPENMPI},
                 {"mpirun.mpich", LINE_HYDRA},
                 {"mpiexec.mpich", LINE_HYDRA},
                 {"mpiexec.hydra", LINE_HYDRA}};
    const char *slash = strrchr(words[0], '/'), *name = slash ? slash + 1 : words[0];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i].name))
            return names[i].kind;
    return !strcmp(name, "flux") && words[1] && !strcmp(words[1], "run") ? LINE_FLUX : LINE_PLAIN;
}

static bool line_is_prefix(const char *word)
{
    static const char *const names[] = {"env",    "time", "nice",    "ionice",  "nohup",  "numactl", "taskset", "stdbuf",
                                        "strace", "chrt", "setarch", "timeout", "setsid", "prlimit", "perf"};
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

size_t line_launcher_at(char *const words[])
{
    for (size_t i = 1; words[0] && line_is_prefix(words[0]) && words[i]; i++)
        if (line_kind(words + i) != LINE_PLAIN)
            return i;
    return 0;
}

enum line_kind line_kind_of_version(const char *version)
{
    static const char *const openmpi[] = {"Open MPI", "OpenRTE", "PRRTE", "prterun"};
    static const char *const hydra[] = {"HYDRA", "Intel(R) MPI", "MPICH", "MVAPICH"};
    for (size_t i = 0; i < sizeof openmpi / sizeof *openmpi; i++)
        if (strstr(version, openmpi[i]))
            return LINE_OPENMPI;
    for (size_t i = 0; i < sizeof hydra / sizeof *hydra; i++)
        if (strstr(version, hydra[i]))
            return LINE_HYDRA;
    return LINE_UNTOLD;
}

/* One option of the line, as it stands there. */
struct option {
    const struct line_option *kind; /* NULL: unknown */
    const char *value;              /* in the same word; NULL */
    size_t words;                   /* with those that it takes */
};

static const struct line_option *line_find(const struct line_option *kinds, const char *name, size_t length)
{
    for (; kinds->name; kinds++)
        if (strlen(kinds->name) == length && !memcmp(kinds->name, name, length))
            return kinds;
    return NULL;
}

static size_t line_words_taken(const struct line *line, size_t at, const struct option *option)
{
    size_t takes = option->kind->takes, rest = line->count - at - 1;
    const char *next = rest > 0 ? line->words[at + 1] : "";
    if (option->value)
        takes = 0;
    else if (option->kind->what & LINE_VARIABLE && takes == 2 && strchr(next, '='))
        takes = 1; /* -genv NAME=VALUE */
    return 1 + (takes < rest ? takes : rest);
}

/* Letters may share a word, as in -ln4: the first one that takes a word has the rest of this one, or the next. */
static struct option line_letters_at(const struct line *line, size_t at)
{
    const struct line_option *options = line_launchers[line->kind].options, *kind;
    const char *letter = line->words[at] + 1;
    struct option option = {.kind = line_find(options, letter, 1), .words = 1};
    while (option.kind && option.kind->takes == 0 && letter[1] && (kind = line_find(options, letter + 1, 1))) {
        option.kind = kind;
        letter++;
    }
    if (option.kind && option.kind->takes && letter[1])
        option.value = letter + 1;
    if (option.kind)
        option.words = line_words_taken(line, at, &option);
    return option;
}

/* A word that begins with no dash is of no kind: the value of an option that is not known. */
static struct option line_option_at(const struct line *line, size_t at)
{
    if (line->words[at][0] != '-')
        return (struct option){.words = 1};
    const char *word = line->words[at], *name = word + 1 + (word[1] == '-'), *equals = strchr(name, '=');
    if (line_launchers[line->kind].letters && word[1] != '-')
        return line_letters_at(line, at);
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    struct option option = {.kind = line_find(line_launchers[line->kind].options, name, length), .words = 1};
    if (equals)
        option.value = equals + 1;
    if (option.kind)
        option.words = line_words_taken(line, at, &option);
    return option;
}

static const char *line_value_of(const struct line *line, size_t at, const struct option *option)
{
    if (option->value)
        return option->value;
    return option->words > 1 ? line->words[at + 1] : "";
}

static bool line_names_preload(const char *text)
{
    const size_t length = strlen(PRELOAD);
    return !strncmp(text, PRELOAD, length) && (text[length] == '\0' || text[length] == '=' || text[length] == ',');
}

static void line_take_preload(struct line *line, const char *value, size_t length)
{
    line->preload = value;
    line->preload_length = length;
}

static void line_see_variable(struct line *line, size_t at, const struct option *option)
{
    const char *value = line_value_of(line, at, option);
    if (!line_names_preload(value))
        return;
    if (value[sizeof PRELOAD - 1] == '=')
        line_take_preload(line, value + sizeof PRELOAD, strlen(value + sizeof PRELOAD));
    else if (option->words > 2)
        line_take_preload(line, line->words[at + 2], strlen(line->words[at + 2]));
}

static void line_see_export(struct line *line, const char *list)
{
    for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
        if (line_names_preload(list) && list[sizeof PRELOAD - 1] == '=')
            line_take_preload(line, list + sizeof PRELOAD, strcspn(list + sizeof PRELOAD, ","));
}

static int line_see(struct line *line, size_t at, const struct option *option)
{
    unsigned what = option->kind ? option->kind->what : 0;
    if (what & LINE_VARIABLE)
        line_see_variable(line, at, option);
    if (what & LINE_EXPORT)
        line_see_export(line, line_value_of(line, at, option));
    if (what & LINE_PROGRAMS)
        line->file = line->words[at];
    return what & LINE_PROGRAMS ? -EOPNOTSUPP : 0;
}

/* The word after an unknown option is its own if it is no program, and if there is another for that. */
static bool line_takes_next(const struct line *line, size_t at, const struct option *option, bool (*is_program)(const char *))
{
    return !option->kind && !option->value && at + 2 < line->count && line->words[at + 1][0] != '-' &&
           !is_program(line->words[at + 1]);
}

static int line_parse_part(struct line *line, size_t begin, bool (*is_program)(const char *))
{
    struct line_part *part = &line->part[line->parts];
    size_t at = begin;
    while (at < line->count && line->words[at][0] == '-' && strcmp(line->words[at], "--")) {
        struct option option = line_option_at(line, at);
        int error = line_see(line, at, &option);
        if (error < 0)
            return error;
        at += option.words + line_takes_next(line, at, &option, is_program);
    }
    if (at < line->count && !strcmp(line->words[at], "--"))
        at++;
    *part = (struct line_part){.begin = begin, .program = at, .end = at};
    while (part->end < line->count && !(line_launchers[line->kind].parts && !strcmp(line->words[part->end], ":")))
        part->end++;
    return part->end > part->program ? 0 : -ENOEXEC;
}

int line_parse(struct line *line, enum line_kind kind, char *const words[], bool (*is_program)(const char *))
{
    *line = (struct line){.kind = kind, .words = words};
    while (words[line->count])
        line->count++;
    if (kind == LINE_PLAIN) {
        line->part[0] = (struct line_part){.end = line->count};
        line->parts = 1;
        return line->count > 0 ? 0 : -ENOEXEC;
    }
    for (size_t at = line_launchers[kind].first;; at = line->part[line->parts - 1].end + 1) {
        if (line->parts == LINE_PARTS_MAX)
            return -E2BIG;
        int error = line_parse_part(line, at, is_program);
        if (error < 0)
            return error;
        if (line->part[line->parts++].end == line->count)
            return 0;
    }
}

int line_each_value(const struct line *line, const struct line_part *part, unsigned what,
                    int (*take)(void *, const char *value), void *context)
{
    int count = 0;
    for (size_t at = part->begin, next; at < part->program && count >= 0; at = next) {
        const struct option option = line_option_at(line, at);
        next = at + option.words;
        if (option.kind && option.kind->what & what)
            count = take(context, line_value_of(line, at, &option)) < 0 ? -1 : count + 1;
    }
    return count;
}

/* How each launcher is told of a variable. */
static void line_add_variable(enum line_kind kind, const struct line_variable *variable, struct arguments *to)
{
    bool is_preload = !strcmp(variable->name, PRELOAD);
    switch (kind) {
    case LINE_OPENMPI:
        arguments_add(to, "-x");
        if (is_preload)
            arguments_format(to, "%s=%s", variable->name, variable->value);
        else
            arguments_add(to, variable->name);
        break;
    case LINE_HYDRA:
        arguments_add(to, "-genv");
        arguments_add(to, variable->name);
        arguments_add(to, variable->value);
        break;
    case LINE_FLUX:
        arguments_format(to, "--env=%s=%s", variable->name, variable->value);
        break;
    default:
        break;
    }
}

/* The user's list without LD_PRELOAD and without NONE, or else ALL. */
static void line_format_list(const char *list, char *to)
{
    char *at = to;
    for (const char *item = list; *item;) {
        size_t length = strcspn(item, ",");
        bool is_none = (length == 4 && !memcmp(item, "NONE", 4)) || (length == 3 && !memcmp(item, "NIL", 3));
        if (length > 0 && !is_none && !line_names_preload(item)) {
            at = mempcpy(at, item, length);
            *at++ = ',';
        }
        item += length + (item[length] != '\0');
    }
    *at = '\0';
}

bool line_export(const char *list, const struct line_variable *variables, size_t count, char text[LINE_EXPORT_MAX])
{
    bool fits = strlen(list) + 1 < LINE_EXPORT_MAX / 2;
    line_format_list(fits ? list : "", text);
    for (size_t i = 0; i < count; i++) {
        bool is_preload = !strcmp(variables[i].name, PRELOAD);
        size_t length = strlen(text);
        int more = snprintf(text + length, LINE_EXPORT_MAX - length, "%s%s%s,", variables[i].name, is_preload ? "=" : "",
                            is_preload ? variables[i].value : "");
        fits &= more > 0 && (size_t)more < LINE_EXPORT_MAX - length;
    }
    if (*text)
        text[strlen(text) - 1] = '\0';
    return fits;
}

static void line_add_export(const char *list, const struct line_variable *variables, size_t count, struct arguments *to)
{
    static char text[LINE_EXPORT_MAX];
    to->full |= !line_export(list, variables, count, text);
    arguments_format(to, "--export=%s", text);
}

/* Is this option replaced by ours? */
static bool line_is_ours(const struct line *line, size_t at, const struct option *option)
{
    unsigned what = option->kind ? option->kind->what : 0;
    return what & LINE_EXPORT || (what & LINE_VARIABLE && line_names_preload(line_value_of(line, at, option)));
}

static const char *line_export_of(const struct line *line, const struct line_part *part)
{
    const char *list = line->exported ? line->exported : "ALL";
    for (size_t at = part->begin, next; at < part->program; at = next) {
        const struct option option = line_option_at(line, at);
        next = at + option.words;
        if (option.kind && option.kind->what & LINE_EXPORT)
            list = line_value_of(line, at, &option);
    }
    return list;
}

static void line_add_options(const struct line *line, const struct line_part *part, struct arguments *to)
{
    for (size_t at = part->begin, next; at < part->program; at = next) {
        const struct option option = line_option_at(line, at);
        next = at + option.words;
        for (size_t i = at; i < next && !line_is_ours(line, at, &option); i++)
            arguments_add(to, line->words[i]);
    }
}

void line_compose(const struct line *line, const struct arguments *wrapper, const struct line_variable *variables, size_t count,
                  struct arguments *to)
{
    for (size_t i = 0; i < line->before_count; i++)
        arguments_add(to, line->before[i]);
    for (size_t i = 0; i < line_launchers[line->kind].first; i++)
        arguments_add(to, line->words[i]);
    for (size_t p = 0; p < line->parts; p++) {
        const struct line_part *part = &line->part[p];
        if (line->kind == LINE_SRUN)
            line_add_export(line_export_of(line, part), variables, count, to);
        for (size_t i = 0; i < count && (p == 0 || line_launchers[line->kind].each); i++)
            line_add_variable(line->kind, &variables[i], to);
        line_add_options(line, part, to);
        arguments_add_all(to, wrapper);
        for (size_t i = part->program; i < part->end + (p + 1 < line->parts); i++)
            arguments_add(to, line->words[i]);
    }
}

void line_carry(const struct line *line, struct arguments *to)
{
    const struct line_part *part = &line->part[0];
    for (size_t at = part->begin, next; at < part->program; at = next) {
        const struct option option = line_option_at(line, at);
        next = at + option.words;
        for (size_t i = at; i < next && option.kind && option.kind->what & LINE_CARRY; i++)
            arguments_add(to, line->words[i]);
    }
}
