/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* glob: patterns, from every base, with every flag; what it calls back, and what it leaves in its result. */
#include "same.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "lines.h"
#include "../old_libc.h"

typedef int glob_function(const char *, int, int (*)(const char *, int), glob_t *);

/* The spelling by its name: the headers would make one of the two. */
static glob_function *glob_named(const char *name)
{
    return (glob_function *)dlsym(RTLD_DEFAULT, name);
}

static const struct name patterns[] = {
    {"*", "*", NAME_CORE},
    {"f*", "f*", NAME_CORE},
    {"nothing*", "nothing*", NAME_CORE},
    {"dir/*", "dir/*", NAME_CORE},
    {"dir/inn[de]r", "dir/inn[de]r", 0},
    {"dir/inner", "dir/inner", 0},
    {"dir/abs?nt", "dir/abs?nt", 0},
    {"*/inner", "*/inner", NAME_CORE},
    {"*/sub", "*/sub", 0},
    {"*/*", "*/*", NAME_CORE},
    {"*/", "*/", NAME_CORE},
    {"d*/", "d*/", 0},
    {"f*/", "f*/", 0},
    {"l*", "l*", NAME_CORE},
    {"l*/", "l*/", 0},
    {"l*/inner", "l*/inner", 0},
    {"lfile/*", "lfile/*", 0},
    {"file/*", "file/*", NAME_CORE},
    {"absent/*", "absent/*", 0},
    {"loop/*", "loop/*", 0},
    {"ldangling*", "ldangling*", 0},
    {"ldangling", "ldangling", 0},
    {"loop", "loop", 0},
    {"file", "file", NAME_CORE},
    {"absent", "absent", NAME_CORE},
    {"{file,dir}", "{file,dir}", 0},
    {"{file,absent,e*}", "{file,absent,e*}", NAME_CORE},
    {"{dir,bare}/*", "{dir,bare}/*", 0},
    {"dir/{inner,s{ub,ap},x}", "dir/{inner,s{ub,ap},x}", 0},
    {".*", ".*", 0},
    {"dir/.*", "dir/.*", 0},
    {"dir/../f*", "dir/../f*", NAME_CORE},
    {"../w/f*", "../w/f*", 0},
    {"../*/file", "../*/file", NAME_CORE},
    {"../*", "../*", 0},
    {"./*", "./*", 0},
    {".//*", ".//*", 0},
    {"ro/*", "ro/*", 0},
    {"dark/*", "dark/*", NAME_CORE},
    {"*/f", "*/f", 0},
    {"dark/f", "dark/f", 0},
    {"[", "[", 0},
    {"f\\ile", "f\\ile", 0},
    {"\\f*", "\\f*", 0},
    {"f[", "f[", 0},
    {"n*", "n*", 0},
    {"?", "?", 0},
    {"(odd)", "\xff*", 0},
    {"(empty)", "", NAME_AS_IS},
    {"(NULL)", NULL, NAME_AS_IS},
    {"~", "~", NAME_AS_IS},
    {"~/f*", "~/f*", NAME_AS_IS},
    {"~nosuchuser/*", "~nosuchuser/*", NAME_AS_IS},
    {"out/p*", "p*", NAME_OUTSIDE},
    {"out/*", "*", NAME_OUTSIDE},
    {"out/to-dir/*", "to-dir/*", NAME_OUTSIDE},
    {"out/*/inner", "*/inner", NAME_OUTSIDE},
    {"out/into/*", "into/*", NAME_OUTSIDE},
    {"out/into/*/f*", "into/*/f*", NAME_OUTSIDE},
    {"out/../*/w/f*", "../*/w/f*", NAME_OUTSIDE},
};

static unsigned errors;

static int each_error(const char *path, int error)
{
    errors++;
    lines_add("%s says %s", path, strerrorname_np(error));
    return 0;
}

static int first_error(const char *path, int error)
{
    errors++;
    return 1;
}

static const char *glob_words(int result)
{
    static const char *const all[] = {"found", "NOSPACE", "ABORTED", "NOMATCH"};
    return result >= 0 && result < 4 ? all[result] : "error";
}

/* In the order of the result, unless that is the directory's. */
static void tell_found(const glob_t *found, int flags)
{
    detail(" flags %x count %zu", (unsigned)found->gl_flags, found->gl_pathc);
    for (size_t i = 0; i < found->gl_pathc; i++)
        lines_add("%s", found->gl_pathv[found->gl_offs + i]);
    lines_tell(flags & GLOB_NOSORT);
    if (found->gl_pathv && found->gl_pathv[found->gl_offs + found->gl_pathc])
        detail(" not ended");
}

static long glob_globbed(const char *name, const char *pattern, int flags, int (*on_error)(const char *, int))
{
    glob_t found;
    memset(&found, 0, sizeof found);
    found.gl_flags = GLOB_MAGCHAR; /* is it set again? */
    errors = 0;
    int result = glob_named(name)(pattern, flags, on_error, &found);
    int error = errno;
    if (result == GLOB_ABORTED) /* the others tell whether another directory was read before, and these come in no order */
        found.gl_flags &= GLOB_MAGCHAR;
    detail(" %s, %u errors", glob_words(result), errors);
    lines_tell(true);
    if (result != -1)
        tell_found(&found, flags);
    if (found.gl_opendir || found.gl_readdir || found.gl_closedir || found.gl_stat || found.gl_lstat)
        detail(" functions are left");
    globfree(&found);
    errno = error;
    return result;
}

static long by_glob(const struct place *place, long flags)
{
    return glob_globbed("glob", place->path, (int)flags, NULL);
}

static long by_glob64(const struct place *place, long flags)
{
    return glob_globbed("glob64", place->path, (int)flags, each_error);
}

static long by_glob_until_error(const struct place *place, long flags)
{
    return glob_globbed("glob", place->path, (int)flags, first_error);
}

static const struct call calls[] = {
    {"glob(0)", 0, by_glob, 0},
    {"glob64(0), errors", 0, by_glob64, 0},
    {"glob(0), first error", 0, by_glob_until_error, 0},
    {"glob(ERR)", 0, by_glob, GLOB_ERR},
    {"glob(MARK)", 0, by_glob, GLOB_MARK},
    {"glob64(NOSORT), errors", 0, by_glob64, GLOB_NOSORT},
    {"glob(NOCHECK)", 0, by_glob, GLOB_NOCHECK},
    {"glob(NOESCAPE)", 0, by_glob, GLOB_NOESCAPE},
    {"glob(PERIOD | MARK)", 0, by_glob, GLOB_PERIOD | GLOB_MARK},
    {"glob(BRACE)", 0, by_glob, GLOB_BRACE},
    {"glob(BRACE | NOMAGIC | MARK)", 0, by_glob, GLOB_BRACE | GLOB_NOMAGIC | GLOB_MARK},
    {"glob(NOMAGIC)", 0, by_glob, GLOB_NOMAGIC},
    {"glob(TILDE)", 0, by_glob, GLOB_TILDE},
    {"glob(TILDE_CHECK | MARK)", 0, by_glob, GLOB_TILDE_CHECK | GLOB_MARK},
    {"glob(ONLYDIR)", 0, by_glob, GLOB_ONLYDIR},
    {"glob64(ONLYDIR | BRACE | NOCHECK), errors", 0, by_glob64, GLOB_ONLYDIR | GLOB_BRACE | GLOB_NOCHECK},
    {"glob(wrong)", 0, by_glob, 1 << 20},
};

static void patterns_run(void)
{
    if (setenv("HOME", fixture.work, 1) < 0)
        give_up("cannot set", "HOME");
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (enum place_base base = 0; base < BASES; base++)
            for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
                if (base == BASE_ABSOLUTE || patterns[i].traits & (NAME_CORE | NAME_AS_IS))
                    case_run(&calls[c], base, &patterns[i]);
}

static void enter_work(void)
{
    if (chdir(fixture.work) < 0)
        give_up("cannot enter", fixture.work);
}

/* One result for several patterns, with room before them. */
static void glob_appended(int flags)
{
    static const char *const all[] = {"f*", "nothing*", "dir/*", "{absent,empty}", "bare"};
    glob_t found = {.gl_offs = 3};
    int result = 0;
    if (!case_is_due())
        return;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        result = glob(all[i], flags | GLOB_DOOFFS | (i > 0 ? GLOB_APPEND : 0), NULL, &found);
        detail(" %s %zu %x", glob_words(result), found.gl_pathc, (unsigned)found.gl_flags);
    }
    if (found.gl_pathv)
        detail(" room is %s", found.gl_pathv[0] || found.gl_pathv[1] || found.gl_pathv[2] ? "used" : "empty");
    tell_found(&found, flags);
    globfree(&found);
    detail(" flags %x", (unsigned)flags);
    case_told("glob", "appended", result, 0, false);
}

/* A caller's own functions are called, and by nobody else. */
static unsigned own_calls;

static void *own_opendir(const char *path)
{
    own_calls++;
    return opendir(path);
}

static struct dirent *own_readdir(void *stream)
{
    return readdir(stream);
}

static void own_closedir(void *stream)
{
    own_calls++;
    closedir(stream);
}

static int own_lstat(const char *path, struct stat *to)
{
    own_calls++;
    return lstat(path, to);
}

static int own_stat(const char *path, struct stat *to)
{
    own_calls++;
    return stat(path, to);
}

static void with_own_functions(const char *pattern, int flags)
{
    glob_t found = {.gl_opendir = own_opendir,
                    .gl_readdir = own_readdir,
                    .gl_closedir = own_closedir,
                    .gl_stat = own_stat,
                    .gl_lstat = own_lstat};
    if (!case_is_due())
        return;
    own_calls = 0;
    int result = glob(pattern, flags, NULL, &found);
    detail(" %u calls", own_calls);
    bool kept = found.gl_opendir == own_opendir && found.gl_readdir == own_readdir && found.gl_closedir == own_closedir &&
                found.gl_stat == own_stat && found.gl_lstat == own_lstat;
    detail(" functions %s", kept ? "kept" : "changed");
    tell_found(&found, flags);
    globfree(&found);
    case_told("glob, own functions", pattern, result, 0, false);
}

void part_glob(void)
{
    patterns_run();
    enter_work();
    static const int flags[] = {0, GLOB_NOCHECK, GLOB_BRACE, GLOB_MARK, GLOB_NOSORT | GLOB_BRACE};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        glob_appended(flags[i]);
    static const char *const some[] = {"*", "d*/inner", "file", "absent", "l*/"};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        with_own_functions(some[i], GLOB_ALTDIRFUNC | GLOB_MARK);
        with_own_functions(some[i], GLOB_MARK);
    }
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
}
