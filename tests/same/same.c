/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* same [--every N] [--phase K] [--ring RING] [--stack BYTES] ROOT PLUGIN [PART]...: makes file-system calls by the thousand
 * beneath ROOT and prints what came of each. Run natively and under shunt, it prints the same. ROOT is an
 * empty directory, its parent may be written to; PLUGIN is a shared object to be copied and loaded. With
 * --every, only each Nth case is run, from the Kth on. With --ring, it is one of several processes that do
 * this by turns (spread.h). With --stack, each call is made by a thread that has so many bytes more than the least stack that
 * a thread may have. */
#include "same.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "spread.h"
#include "../old_libc.h"

static char details[16384];
static size_t details_length;
static unsigned cases, candidates, every = 1, phase;
static long stack = -1; /* main's own */

void detail(const char *format, ...)
{
    int error = errno;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(details + details_length, sizeof details - details_length, format, arguments);
    va_end(arguments);
    if (length > 0 && details_length + (size_t)length < sizeof details)
        details_length += (size_t)length;
    errno = error;
}

void detail_bytes(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    detail(" \"");
    for (size_t i = 0; i < count; i++)
        detail(at[i] >= ' ' && at[i] < 127 ? "%c" : "\\%02x", at[i]);
    detail("\"");
}

long detail_stat(long result, const struct stat *st)
{
    if (result < 0)
        return result;
    detail(" %06o links %u owner %u:%u", st->st_mode, (unsigned)st->st_nlink, st->st_uid, st->st_gid);
    if (!S_ISDIR(st->st_mode))
        detail(" size %lld", (long long)st->st_size);
    return result;
}

bool case_is_wanted(void)
{
    return candidates++ % every == phase % every;
}

bool case_is_mine(void)
{
    return !spread_is_on() || spread_case();
}

bool case_is_due(void)
{
    return case_is_wanted() && case_is_mine();
}

static void same_tell(const char *call, const char *where, long result, int error)
{
    cases++;
    if (result < 0)
        printf("%s %s = %s%s\n", call, where, strerrorname_np(error), details);
    else
        printf("%s %s = %ld%s\n", call, where, result, details);
    details[0] = '\0';
    details_length = 0;
}

static void go_on(enum spread_after after, long result)
{
    if (spread_is_on())
        spread_told(after, result);
    else
        spread_look(after, result);
}

void case_told(const char *call, const char *where, long result, int error, bool changes)
{
    same_tell(call, where, result, error);
    go_on(changes ? SPREAD_REPAIR : SPREAD_NOTHING, result);
}

void case_left(const char *call, const char *where)
{
    same_tell(call, where, 0, 0);
    go_on(SPREAD_REBUILD, 0);
}

struct made {
    const struct call *call;
    struct place *place;
    long result;
    int error;
};

static void *make_call(void *context)
{
    struct made *made = context;
    errno = 0;
    made->result = made->call->run(made->place, made->call->argument);
    made->error = errno;
    return NULL;
}

static void make_call_on_thread(struct made *made)
{
    pthread_t thread;
    pthread_attr_t attributes;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)(sysconf(_SC_THREAD_STACK_MIN) + stack);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size + page - 1) / page * page);
    if (pthread_create(&thread, &attributes, make_call, made) != 0 || pthread_join(thread, NULL) != 0)
        exit(3);
}

void case_run(const struct call *call, enum place_base base, const struct name *name)
{
    static struct place place;
    char where[64];
    if (!place_exists(base, name, call->traits & CALL_AT))
        return;
    if ((call->traits & CALL_WAITS && name->traits & NAME_FIFO) || (call->traits & CALL_NO_NULL && !name->text))
        return;
    if (!case_is_due())
        return;
    place_enter(&place, base, name);
    struct made made = {.call = call, .place = &place};
    stack >= 0 ? make_call_on_thread(&made) : (void)make_call(&made);
    place_leave(&place);
    snprintf(where, sizeof where, "%s:%s", base_label(base), name->label);
    case_told(call->name, where, made.result, made.error, call->traits & CALL_CHANGES);
}

void cases_run(const struct call *calls, size_t count, bool everywhere)
{
    for (size_t c = 0; c < count; c++)
        for (enum place_base base = 0; base < BASES; base++)
            for (size_t n = 0; n < names_count; n++)
                if (everywhere || base == BASE_ABSOLUTE || names[n].traits & (NAME_CORE | NAME_AS_IS))
                    case_run(&calls[c], base, &names[n]);
}

static const char *plugin;

static void part_exec_plugin(void)
{
    part_exec(plugin);
}

static const struct part {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"open", part_open},           {"stdio", part_stdio},         {"stat", part_stat},
    {"names", part_names},         {"pairs", part_pairs},         {"meta", part_meta},
    {"times", part_times},         {"xattr", part_xattr},         {"inherit", part_inherit},
    {"directory", part_directory}, {"canon", part_canon},         {"deep", part_deep},
    {"temp", part_temp},           {"exec", part_exec_plugin},    {"raw", part_raw},
    {"glob", part_glob},           {"walk", part_walk},           {"fts", part_fts},
    {"doors", part_doors},         {"spawn", part_spawn},         {"notify", part_notify},
    {"locks", part_locks},         {"semantics", part_semantics}, {"kinds", part_kinds},
    {"order", part_order},         {"follow", part_follow},       {"refused", part_refused},
    {"aliases", part_aliases},     {"users", part_users},         {"wild", part_wild},
    {"stories", part_stories},
};

static bool is_wanted(const char *name, char **wanted)
{
    if (!*wanted)
        return true;
    while (*wanted && strcmp(*wanted, name) != 0)
        wanted++;
    return *wanted;
}

static int same_options(int argc, char **argv)
{
    static const struct option known[] = {{"every", required_argument, NULL, 'e'},
                                          {"phase", required_argument, NULL, 'p'},
                                          {"ring", required_argument, NULL, 'r'},
                                          {"stack", required_argument, NULL, 's'},
                                          {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == '?')
            return -1;
        if (option == 's')
            stack = strtol(optarg, NULL, 10);
        else if (option != 'r')
            *(option == 'e' ? &every : &phase) = (unsigned)strtoul(optarg, NULL, 10);
        else if (spread_join(optarg) < 0)
            return -1;
    }
    return every > 0 ? 0 : -1;
}

/* What it says is for one that has all the output to itself. */
static void run_part(const struct part *part)
{
    unsigned before = cases;
    part->run();
    if (spread_is_on())
        return;
    printf("part %s: %u cases\n", part->name, cases - before);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (same_options(argc, argv) < 0 || argc - optind < 2 || argv[optind][0] != '/') {
        fprintf(stderr, "usage: same [--every N] [--phase K] [--ring RING] [--stack BYTES] ROOT PLUGIN [PART]...\n");
        return 2;
    }
    static char buffer[1 << 16];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    umask(022);
    plugin = argv[optind + 1];
    fixture_name(argv[optind]);
    spread_begin();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (is_wanted(parts[i].name, argv + optind + 2))
            run_part(&parts[i]);
    if (!spread_end())
        return 0;
    fixture_clear();
    printf("%u cases\n", spread_is_on() ? spread_cases() : cases);
    return fflush(stdout) == 0 ? 0 : 1;
}
