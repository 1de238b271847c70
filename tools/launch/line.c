/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/line.h"

#include <errno.h>
#include <string.h>

#define PRELOAD "LD_PRELOAD"

enum {
    CARRY = 1, /* how hosts are reached */
    HOSTS = 2,
    HOST_FILE = 4,
    VARIABLE = 8,  /* NAME, NAME=VALUE, or NAME VALUE: sets a variable */
    EXPORT = 16,   /* a list of them */
    PROGRAMS = 32, /* a file that has the programs */
};

struct option_kind {
    const char *name;
    unsigned takes; /* words */
    unsigned what;
};

/* The launchers' options with the words that they take. One that is not here takes none, or the next word if
 * that is no program. */
static const struct option_kind openmpi_options[] = {
    {"n", 1, 0},
    {"np", 1, 0},
    {"c", 1, 0},
    {"N", 1, 0},
    {"x", 1, VARIABLE},
    {"H", 1, HOSTS},
    {"host", 1, HOSTS},
    {"hostfile", 1, HOST_FILE},
    {"machinefile", 1, HOST_FILE},
    {"default-hostfile", 1, HOST_FILE},
    {"mca", 2, CARRY},
    {"gmca", 2, CARRY},
    {"pmixmca", 2, CARRY},
    {"prtemca", 2, CARRY},
    {"omca", 2, CARRY},
    {"prefix", 1, CARRY},
    {"allow-run-as-root", 0, CARRY},
    {"launch-agent", 1, CARRY},
    {"am", 1, CARRY},
    {"tune", 1, CARRY},
    {"app", 1, PROGRAMS},
    {"bind-to", 1, 0},
    {"cf", 1, 0},
    {"cartofile", 1, 0},
    {"cpu-list", 1, 0},
    {"cpu-set", 1, 0},
    {"cpus-per-proc", 1, 0},
    {"cpus-per-rank", 1, 0},
    {"debugger", 1, 0},
    {"hnp", 1, 0},
    {"dvm", 1, 0},
    {"dvm-uri", 1, 0},
    {"map-by", 1, 0},
    {"rank-by", 1, 0},
    {"max-restarts", 1, 0},
    {"max-vm-size", 1, 0},
    {"npernode", 1, 0},
    {"npersocket", 1, 0},
    {"ompi-server", 1, 0},
    {"output-filename", 1, 0},
    {"output", 1, 0},
    {"display", 1, 0},
    {"path", 1, 0},
    {"personality", 1, 0},
    {"ppr", 1, 0},
    {"preload-files", 1, 0},
    {"report-events", 1, 0},
    {"report-pid", 1, 0},
    {"report-uri", 1, 0},
    {"rf", 1, 0},
    {"rankfile", 1, 0},
    {"runtime-options", 1, 0},
    {"stdin", 1, 0},
    {"timeout", 1, 0},
    {"wd", 1, 0},
    {"wdir", 1, 0},
    {"xml-file", 1, 0},
    {"xterm", 1, 0},
    {"oversubscribe", 0, 0},
    {"nooversubscribe", 0, 0},
    {"bynode", 0, 0},
    {"byslot", 0, 0},
    {"bycore", 0, 0},
    {"bysocket", 0, 0},
    {"bind-to-core", 0, 0},
    {"bind-to-socket", 0, 0},
    {"bind-to-none", 0, 0},
    {"report-bindings", 0, 0},
    {"display-map", 0, 0},
    {"display-allocation", 0, 0},
    {"display-devel-map", 0, 0},
    {"tag-output", 0, 0},
    {"timestamp-output", 0, 0},
    {"nolocal", 0, 0},
    {"novm", 0, 0},
    {"pernode", 0, 0},
    {"quiet", 0, 0},
    {"q", 0, 0},
    {"v", 0, 0},
    {"verbose", 0, 0},
    {"d", 0, 0},
    {"debug", 0, 0},
    {"use-hwthread-cpus", 0, 0},
    {"enable-recovery", 0, 0},
    {"disable-recovery", 0, 0},
    {"continuous", 0, 0},
    {"get-stack-traces", 0, 0},
    {"index-argv-by-rank", 0, 0},
    {"noprefix", 0, 0},
    {"preload-binary", 0, 0},
    {"s", 0, 0},
    {"xml", 0, 0},
    {0},
};

static const struct option_kind hydra_options[] = {
    {"n", 1, 0},
    {"np", 1, 0},
    {"genv", 2, VARIABLE},
    {"env", 2, VARIABLE},
    {"genvlist", 1, 0},
    {"envlist", 1, 0},
    {"genvnone", 0, 0},
    {"genvall", 0, 0},
    {"envnone", 0, 0},
    {"envall", 0, 0},
    {"f", 1, HOST_FILE},
    {"hostfile", 1, HOST_FILE},
    {"machinefile", 1, HOST_FILE},
    {"machine", 1, HOST_FILE},
    {"hosts", 1, HOSTS},
    {"host", 1, HOSTS},
    {"wdir", 1, 0},
    {"configfile", 1, PROGRAMS},
    {"launcher", 1, CARRY},
    {"launcher-exec", 1, CARRY},
    {"bootstrap", 1, CARRY},
    {"bootstrap-exec", 1, CARRY},
    {"enable-x", 0, 0},
    {"disable-x", 0, 0},
    {"rmk", 1, CARRY},
    {"iface", 1, CARRY},
    {"topolib", 1, 0},
    {"bind-to", 1, 0},
    {"map-by", 1, 0},
    {"membind", 1, 0},
    {"demux", 1, 0},
    {"ppn", 1, 0},
    {"perhost", 1, 0},
    {"prepend-pattern", 1, 0},
    {"outfile-pattern", 1, 0},
    {"errfile-pattern", 1, 0},
    {"nameserver", 1, 0},
    {"localhost", 1, 0},
    {"usize", 1, 0},
    {"gpus-per-proc", 1, 0},
    {"path", 1, 0},
    {"umask", 1, 0},
    {"order-nodes", 1, 0},
    {"verbose", 0, 0},
    {"v", 0, 0},
    {"info", 0, 0},
    {"print-all-exitcodes", 0, 0},
    {"profile", 0, 0},
    {"prepend-rank", 0, 0},
    {"l", 0, 0},
    {"disable-auto-cleanup", 0, 0},
    {"disable-hostname-propagation", 0, 0},
    {"pmi-port", 0, 0},
    {"skip-launch-node", 0, 0},
    {0},
};

/* Of srun and flux a letter may have its word attached; a long name has it behind `=` or as the next word. */
static const struct option_kind srun_options[] = {
    {"A", 1, 0},
    {"account", 1, 0},
    {"a", 1, 0},
    {"B", 1, 0},
    {"b", 1, 0},
    {"begin", 1, 0},
    {"C", 1, 0},
    {"constraint", 1, 0},
    {"c", 1, 0},
    {"cpus-per-task", 1, 0},
    {"cpu-bind", 1, 0},
    {"cpu-freq", 1, 0},
    {"cluster-constraint", 1, 0},
    {"comment", 1, 0},
    {"core-spec", 1, 0},
    {"S", 1, 0},
    {"cores-per-socket", 1, 0},
    {"cpus-per-gpu", 1, 0},
    {"D", 1, 0},
    {"chdir", 1, 0},
    {"d", 1, 0},
    {"dependency", 1, 0},
    {"distribution", 1, 0},
    {"m", 1, 0},
    {"E", 0, 0},
    {"preserve-env", 0, 0},
    {"e", 1, 0},
    {"error", 1, 0},
    {"epilog", 1, 0},
    {"exact", 0, 0},
    {"exclude", 1, 0},
    {"exclusive", 0, 0},
    {"export", 1, EXPORT},
    {"F", 1, HOST_FILE},
    {"nodefile", 1, HOST_FILE},
    {"G", 1, 0},
    {"gpus", 1, 0},
    {"gpu-bind", 1, 0},
    {"gpu-freq", 1, 0},
    {"gpus-per-node", 1, 0},
    {"gpus-per-socket", 1, 0},
    {"gpus-per-task", 1, 0},
    {"gres", 1, 0},
    {"gres-flags", 1, 0},
    {"H", 0, 0},
    {"hold", 0, 0},
    {"het-group", 1, 0},
    {"hint", 1, 0},
    {"I", 0, 0},
    {"i", 1, 0},
    {"input", 1, 0},
    {"J", 1, 0},
    {"job-name", 1, 0},
    {"jobid", 1, 0},
    {"K", 0, 0},
    {"kill-on-bad-exit", 0, 0},
    {"k", 0, 0},
    {"no-kill", 0, 0},
    {"L", 1, 0},
    {"licenses", 1, 0},
    {"l", 0, 0},
    {"label", 0, 0},
    {"M", 1, 0},
    {"clusters", 1, 0},
    {"mail-type", 1, 0},
    {"mail-user", 1, 0},
    {"mem", 1, 0},
    {"mem-bind", 1, 0},
    {"mem-per-cpu", 1, 0},
    {"mem-per-gpu", 1, 0},
    {"mincpus", 1, 0},
    {"mpi", 1, 0},
    {"msg-timeout", 1, 0},
    {"multi-prog", 0, PROGRAMS},
    {"N", 1, 0},
    {"nodes", 1, 0},
    {"n", 1, 0},
    {"ntasks", 1, 0},
    {"network", 1, 0},
    {"nice", 0, 0},
    {"nodelist", 1, 0},
    {"w", 1, 0},
    {"no-allocate", 0, 0},
    {"Z", 0, 0},
    {"ntasks-per-core", 1, 0},
    {"ntasks-per-gpu", 1, 0},
    {"ntasks-per-node", 1, 0},
    {"ntasks-per-socket", 1, 0},
    {"O", 0, 0},
    {"overcommit", 0, 0},
    {"o", 1, 0},
    {"output", 1, 0},
    {"open-mode", 1, 0},
    {"overlap", 0, 0},
    {"oversubscribe", 0, 0},
    {"s", 0, 0},
    {"p", 1, 0},
    {"partition", 1, 0},
    {"power", 1, 0},
    {"profile", 1, 0},
    {"prolog", 1, 0},
    {"propagate", 0, 0},
    {"pty", 0, 0},
    {"Q", 0, 0},
    {"quiet", 0, 0},
    {"q", 1, 0},
    {"qos", 1, 0},
    {"R", 0, 0},
    {"r", 1, 0},
    {"relative", 1, 0},
    {"reservation", 1, 0},
    {"signal", 1, 0},
    {"slurmd-debug", 1, 0},
    {"sockets-per-node", 1, 0},
    {"spread-job", 0, 0},
    {"T", 1, 0},
    {"threads", 1, 0},
    {"t", 1, 0},
    {"task-epilog", 1, 0},
    {"task-prolog", 1, 0},
    {"test-only", 0, 0},
    {"thread-spec", 1, 0},
    {"threads-per-core", 1, 0},
    {"time", 1, 0},
    {"time-min", 1, 0},
    {"tmp", 1, 0},
    {"tres-per-task", 1, 0},
    {"u", 0, 0},
    {"unbuffered", 0, 0},
    {"use-min-nodes", 0, 0},
    {"v", 0, 0},
    {"verbose", 0, 0},
    {"W", 1, 0},
    {"wait", 1, 0},
    {"wckey", 1, 0},
    {"X", 0, 0},
    {"disable-status", 0, 0},
    {"x", 1, 0},
    {0},
};

static const struct option_kind flux_options[] = {
    {"n", 1, 0},
    {"ntasks", 1, 0},
    {"N", 1, 0},
    {"nodes", 1, 0},
    {"c", 1, 0},
    {"cores-per-task", 1, 0},
    {"g", 1, 0},
    {"gpus-per-task", 1, 0},
    {"tasks-per-node", 1, 0},
    {"tasks-per-core", 1, 0},
    {"gpus-per-node", 1, 0},
    {"cores", 1, 0},
    {"B", 1, 0},
    {"bank", 1, 0},
    {"q", 1, 0},
    {"queue", 1, 0},
    {"t", 1, 0},
    {"time-limit", 1, 0},
    {"o", 1, 0},
    {"setopt", 1, 0},
    {"S", 1, 0},
    {"setattr", 1, 0},
    {"env", 1, VARIABLE},
    {"env-remove", 1, 0},
    {"env-file", 1, 0},
    {"rlimit", 1, 0},
    {"input", 1, 0},
    {"output", 1, 0},
    {"error", 1, 0},
    {"cwd", 1, 0},
    {"job-name", 1, 0},
    {"requires", 1, 0},
    {"urgency", 1, 0},
    {"dependency", 1, 0},
    {"begin-time", 1, 0},
    {"signal", 1, 0},
    {"taskmap", 1, 0},
    {"add-file", 1, 0},
    {"label-io", 0, 0},
    {"l", 0, 0},
    {"unbuffered", 0, 0},
    {"u", 0, 0},
    {"exclusive", 0, 0},
    {"x", 0, 0},
    {"verbose", 0, 0},
    {"v", 0, 0},
    {0},
};

/* What the launchers have not in common. */
static const struct {
    const struct option_kind *options;
    size_t first; /* words before the options */
    bool letters; /* a letter's word may be attached to it */
    bool parts;   /* `:` begins another program */
    bool each;    /* variables are said for each program anew */
} launchers[] = {
    [LINE_PLAIN] = {NULL, 0, false, false, false},
    [LINE_OPENMPI] = {openmpi_options, 1, false, true, true},
    [LINE_HYDRA] = {hydra_options, 1, false, true, false},
    [LINE_SRUN] = {srun_options, 1, true, true, true},
    [LINE_FLUX] = {flux_options, 2, true, false, false},
};

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
    const struct option_kind *kind; /* NULL: unknown */
    const char *value;              /* in the same word; NULL */
    size_t words;                   /* with those that it takes */
};

static const struct option_kind *find(const struct option_kind *kinds, const char *name, size_t length)
{
    for (; kinds->name; kinds++)
        if (strlen(kinds->name) == length && !memcmp(kinds->name, name, length))
            return kinds;
    return NULL;
}

static size_t words_taken(const struct line *line, size_t at, const struct option *option)
{
    size_t takes = option->kind->takes, rest = line->count - at - 1;
    const char *next = rest > 0 ? line->words[at + 1] : "";
    if (option->value)
        takes = 0;
    else if (option->kind->what & VARIABLE && takes == 2 && strchr(next, '='))
        takes = 1; /* -genv NAME=VALUE */
    return 1 + (takes < rest ? takes : rest);
}

static struct option option_at(const struct line *line, size_t at)
{
    const char *word = line->words[at], *name = word + 1 + (word[1] == '-');
    bool is_letter = launchers[line->kind].letters && word[1] != '-';
    const char *equals = is_letter ? NULL : strchr(name, '=');
    size_t length = is_letter ? 1 : equals ? (size_t)(equals - name) : strlen(name);
    struct option option = {.kind = find(launchers[line->kind].options, name, length), .words = 1};
    if (equals)
        option.value = equals + 1;
    else if (is_letter && option.kind && option.kind->takes && name[1])
        option.value = name + 1;
    if (option.kind)
        option.words = words_taken(line, at, &option);
    return option;
}

static const char *value_of(const struct line *line, size_t at, const struct option *option)
{
    if (option->value)
        return option->value;
    return option->words > 1 ? line->words[at + 1] : "";
}

static bool is_named(const char *text, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(text, name, length) &&
           (text[length] == '\0' || text[length] == '=' || text[length] == ',');
}

static void take_preload(struct line *line, const char *value, size_t length)
{
    line->preload = value;
    line->preload_length = length;
}

static void see_variable(struct line *line, size_t at, const struct option *option)
{
    const char *value = value_of(line, at, option);
    if (!is_named(value, PRELOAD))
        return;
    if (value[sizeof PRELOAD - 1] == '=')
        take_preload(line, value + sizeof PRELOAD, strlen(value + sizeof PRELOAD));
    else if (option->words > 2)
        take_preload(line, line->words[at + 2], strlen(line->words[at + 2]));
}

static void see_export(struct line *line, const char *list)
{
    for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
        if (is_named(list, PRELOAD) && list[sizeof PRELOAD - 1] == '=')
            take_preload(line, list + sizeof PRELOAD, strcspn(list + sizeof PRELOAD, ","));
}

static int see(struct line *line, size_t at, const struct option *option)
{
    unsigned what = option->kind ? option->kind->what : 0;
    if (what & HOSTS)
        line->hosts = value_of(line, at, option);
    if (what & HOST_FILE)
        line->file = value_of(line, at, option);
    if (what & VARIABLE)
        see_variable(line, at, option);
    if (what & EXPORT)
        see_export(line, value_of(line, at, option));
    if (what & PROGRAMS)
        line->file = line->words[at];
    return what & PROGRAMS ? -EOPNOTSUPP : 0;
}

/* The word behind an unknown option is its own if it is no program, and if there is another for that. */
static bool takes_next(const struct line *line, size_t at, const struct option *option,
                       bool (*is_program)(const char *))
{
    return !option->kind && !option->value && at + 2 < line->count && line->words[at + 1][0] != '-' &&
           !is_program(line->words[at + 1]);
}

static int parse_part(struct line *line, size_t begin, bool (*is_program)(const char *))
{
    struct line_part *part = &line->part[line->parts];
    size_t at = begin;
    while (at < line->count && line->words[at][0] == '-' && strcmp(line->words[at], "--")) {
        struct option option = option_at(line, at);
        int error = see(line, at, &option);
        if (error < 0)
            return error;
        at += option.words + takes_next(line, at, &option, is_program);
    }
    if (at < line->count && !strcmp(line->words[at], "--"))
        at++;
    *part = (struct line_part){.begin = begin, .program = at, .end = at};
    while (part->end < line->count && !(launchers[line->kind].parts && !strcmp(line->words[part->end], ":")))
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
    for (size_t at = launchers[kind].first;; at = line->part[line->parts - 1].end + 1) {
        if (line->parts == LINE_PARTS_MAX)
            return -E2BIG;
        int error = parse_part(line, at, is_program);
        if (error < 0)
            return error;
        if (line->part[line->parts++].end == line->count)
            return 0;
    }
}

/* How each launcher is told of a variable. */
static void add_variable(enum line_kind kind, const struct line_variable *variable, struct words *to)
{
    bool is_preload = !strcmp(variable->name, PRELOAD);
    switch (kind) {
    case LINE_OPENMPI:
        words_add(to, "-x");
        if (is_preload)
            words_format(to, "%s=%s", variable->name, variable->value);
        else
            words_add(to, variable->name);
        break;
    case LINE_HYDRA:
        words_add(to, "-genv");
        words_add(to, variable->name);
        words_add(to, variable->value);
        break;
    case LINE_FLUX:
        words_format(to, "--env=%s=%s", variable->name, variable->value);
        break;
    default:
        break;
    }
}

/* The user's list without LD_PRELOAD and without NONE, or else ALL. */
static void format_list(const char *list, char *to)
{
    char *at = to;
    for (const char *item = list; *item;) {
        size_t length = strcspn(item, ",");
        bool is_none = (length == 4 && !memcmp(item, "NONE", 4)) || (length == 3 && !memcmp(item, "NIL", 3));
        if (length > 0 && !is_none && !is_named(item, PRELOAD)) {
            at = mempcpy(at, item, length);
            *at++ = ',';
        }
        item += length + (item[length] != '\0');
    }
    *at = '\0';
}

#define EXPORT_MAX 32768

static void add_export(const char *list, const struct line_variable *variables, size_t count,
                       struct words *to)
{
    static char text[EXPORT_MAX];
    size_t length;
    if (strlen(list) + 1 >= sizeof text / 2) {
        to->full = true;
        return;
    }
    format_list(list, text);
    for (size_t i = 0; i < count; i++) {
        bool is_preload = !strcmp(variables[i].name, PRELOAD);
        length = strlen(text);
        int more = snprintf(text + length, sizeof text - length, "%s%s%s,", variables[i].name,
                            is_preload ? "=" : "", is_preload ? variables[i].value : "");
        to->full |= more < 0 || (size_t)more >= sizeof text - length;
    }
    length = strlen(text);
    words_format(to, "--export=%.*s", (int)(length - (length > 0)), text);
}

/* Is this option replaced by ours? */
static bool is_ours(const struct line *line, size_t at, const struct option *option)
{
    unsigned what = option->kind ? option->kind->what : 0;
    return what & EXPORT || (what & VARIABLE && is_named(value_of(line, at, option), PRELOAD));
}

static const char *export_of(const struct line *line, const struct line_part *part)
{
    const char *list = "ALL";
    for (size_t at = part->begin; at < part->program;) {
        if (line->words[at][0] != '-') {
            at++;
            continue;
        }
        struct option option = option_at(line, at);
        if (option.kind && option.kind->what & EXPORT)
            list = value_of(line, at, &option);
        at += option.words;
    }
    return list;
}

static void add_options(const struct line *line, const struct line_part *part, struct words *to)
{
    for (size_t at = part->begin, next; at < part->program; at = next) {
        struct option option = {.words = 1};
        if (line->words[at][0] == '-')
            option = option_at(line, at);
        next = at + option.words;
        for (size_t i = at; i < next && !is_ours(line, at, &option); i++)
            words_add(to, line->words[i]);
    }
}

void line_compose(const struct line *line, const struct words *wrapper, const struct line_variable *variables,
                  size_t count, struct words *to)
{
    for (size_t i = 0; i < launchers[line->kind].first; i++)
        words_add(to, line->words[i]);
    for (size_t p = 0; p < line->parts; p++) {
        const struct line_part *part = &line->part[p];
        if (line->kind == LINE_SRUN)
            add_export(export_of(line, part), variables, count, to);
        for (size_t i = 0; i < count && (p == 0 || launchers[line->kind].each); i++)
            add_variable(line->kind, &variables[i], to);
        add_options(line, part, to);
        words_add_all(to, wrapper);
        for (size_t i = part->program; i < part->end + (p + 1 < line->parts); i++)
            words_add(to, line->words[i]);
    }
}

void line_carry(const struct line *line, struct words *to)
{
    const struct line_part *part = &line->part[0];
    for (size_t at = part->begin, next; at < part->program; at = next) {
        struct option option = {.words = 1};
        if (line->words[at][0] == '-')
            option = option_at(line, at);
        next = at + option.words;
        for (size_t i = at; i < next && option.kind && option.kind->what & CARRY; i++)
            words_add(to, line->words[i]);
    }
}
