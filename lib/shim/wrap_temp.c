/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Temporary names: libc makes them up and tries them by itself, so under a root it is done here, with the
 * same promise: a name that nobody had, 62 to the 6th of them, tried until one is free. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "shim/wrap.h"
#include "shim/wrap_open.h"

#define TRIES 238328 /* glibc's ATTEMPTS_MIN: 62 to the 3rd */

static __attribute__((noinline)) bool wrap_temp_is_found(const char *template)
{
    struct target t;
    int how = target_find_further(&t, AT_FDCWD, template, TARGET_MAKES, NULL);
    if (how == TARGET_MANAGED)
        target_done(&t);
    return how == TARGET_MANAGED || how < 0; /* what is wrong is found again when it is made */
}

static bool wrap_temp_is_ours(const char *template)
{
    return process_has_roots() && !target_is_foreign(AT_FDCWD, template, TARGET_MAKES, NULL) && wrap_temp_is_found(template);
}

static char *wrap_temp_place_of_x(char *template, int suffix)
{
    size_t length = strlen(template);
    if (suffix < 0 || length < 6 + (size_t)suffix || memcmp(template + length - suffix - 6, "XXXXXX", 6) != 0)
        return NULL;
    return template + length - suffix - 6;
}

static void wrap_temp_fill(char *x)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = (uint64_t)(uintptr_t)x ^ (uint64_t)random() << 20;
    for (int i = 0; i < 6; i++, number /= 62)
        x[i] = letters[number % 62];
}

enum kind { TEMP_FILE, TEMP_DIRECTORY, TEMP_NAME };

/* One try: not negative, it is ours; -1 and errno. */
static int wrap_temp_try(enum kind kind, const char *name, int flags)
{
    struct stat stat;
    switch (kind) {
    case TEMP_FILE:
        return (int)wrap_openat(AT_FDCWD, name, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600);
    case TEMP_DIRECTORY:
        return mkdir(name, 0700);
    default:
        if (lstat(name, &stat) == 0)
            errno = EEXIST;
        else if (errno == ENOENT)
            return 0;
        return -1;
    }
}

static int wrap_temp_make(enum kind kind, char *template, int suffix, int flags)
{
    int saved = errno;
    char *x = wrap_temp_place_of_x(template, suffix);
    if (x == NULL)
        return (int)wrap_answer(-EINVAL);
    for (int i = 0; i < TRIES; i++) {
        wrap_temp_fill(x);
        int made = wrap_temp_try(kind, template, flags);
        if (made >= 0) {
            errno = saved;
            return made;
        }
        if (errno != EEXIST)
            return -1;
    }
    return (int)wrap_answer(-EEXIST);
}

WRAPPER int mkstemp(char *template)
{
    return wrap_temp_is_ours(template) ? wrap_temp_make(TEMP_FILE, template, 0, 0) : REAL(mkstemp)(template);
}

WRAPPER int mkstemp64(char *template)
{
    return wrap_temp_is_ours(template) ? wrap_temp_make(TEMP_FILE, template, 0, 0) : REAL(mkstemp64)(template);
}

WRAPPER int mkostemp(char *template, int flags)
{
    return wrap_temp_is_ours(template) ? wrap_temp_make(TEMP_FILE, template, 0, flags) : REAL(mkostemp)(template, flags);
}

WRAPPER int mkostemp64(char *template, int flags)
{
    return wrap_temp_is_ours(template) ? wrap_temp_make(TEMP_FILE, template, 0, flags) : REAL(mkostemp64)(template, flags);
}

WRAPPER int mkstemps(char *template, int suffix)
{
    return wrap_temp_is_ours(template) ? wrap_temp_make(TEMP_FILE, template, suffix, 0) : REAL(mkstemps)(template, suffix);
}

WRAPPER int mkstemps64(char *template, int suffix)
{
    return wrap_temp_is_ours(template) ? wrap_temp_make(TEMP_FILE, template, suffix, 0) : REAL(mkstemps64)(template, suffix);
}

WRAPPER int mkostemps(char *template, int suffix, int flags)
{
    return wrap_temp_is_ours(template) ? wrap_temp_make(TEMP_FILE, template, suffix, flags)
                                       : REAL(mkostemps)(template, suffix, flags);
}

WRAPPER int mkostemps64(char *template, int suffix, int flags)
{
    return wrap_temp_is_ours(template) ? wrap_temp_make(TEMP_FILE, template, suffix, flags)
                                       : REAL(mkostemps64)(template, suffix, flags);
}

WRAPPER char *mkdtemp(char *template)
{
    if (!wrap_temp_is_ours(template))
        return REAL(mkdtemp)(template);
    return wrap_temp_make(TEMP_DIRECTORY, template, 0, 0) == 0 ? template : NULL;
}

/* libc finds the directory and makes up a name, which is free in the trunk; here it must be free in the
 * branches, too. */
WRAPPER char *tempnam(const char *directory, const char *prefix)
{
    struct stat stat;
    int saved = errno;
    bool roots = process_has_roots();
    for (int i = 0; i < TRIES; i++) {
        char *name = REAL(tempnam)(directory, prefix);
        if (name == NULL || !roots)
            return name;
        int code = lstat(name, &stat);
        if (code != 0 && errno == ENOENT) {
            errno = saved;
            return name;
        }
        free(name);
        if (code != 0)
            return NULL;
    }
    errno = EEXIST;
    return NULL;
}

/* On failure the template becomes empty. */
WRAPPER char *mktemp(char *template)
{
    if (!wrap_temp_is_ours(template))
        return REAL(mktemp)(template);
    if (wrap_temp_make(TEMP_NAME, template, 0, 0) != 0)
        template[0] = '\0';
    return template;
}
