/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Files that libc opens by itself, where no wrapper is, at paths that the program or its environment gives: time zones,
 * locales, message catalogues, tables of users. One that is in a branch is moved to the trunk by the call that names it, and
 * libc finds it there. Nothing here is callable in a signal handler, as the functions themselves are not. */

#include <dirent.h>
#include <fcntl.h>
#include <iconv.h>
#include <libintl.h>
#include <limits.h>
#include <locale.h>
#include <nl_types.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>
#include <utmpx.h>
#include <wchar.h>

#include "base/sys.h"
#include "base/text.h"
#include "shim/promote.h"
#include "shim/scratch.h"
#include "shim/wrap.h"
#include "shim/wrap_files.h"

/* Not in the headers of every glibc. */
int getdate_r(const char *restrict words, struct tm *restrict to);
time_t timelocal(struct tm *);
locale_t __newlocale(int mask, const char *name, locale_t base);
size_t __strftime_l(char *to, size_t size, const char *format, const struct tm *when, locale_t in);
size_t __wcsftime_l(wchar_t *to, size_t size, const wchar_t *format, const struct tm *when, locale_t in);

/* Those of the environment. libc's getenv may be another library's, or the program's own. */
static const char *wrap_files_environment(const char *name)
{
    const size_t length = strlen(name);
    for (char **at = environ; at != NULL && *at != NULL; at++)
        if (**at == *name && strncmp(*at, name, length) == 0 && (*at)[length] == '=')
            return *at + length + 1;
    return NULL;
}

/* If it fails libc does not find the file, and the caller hears of it. */
static void wrap_files_promote(const char *path)
{
    if (path != NULL)
        promote_path(AT_FDCWD, path, TARGET_FOLLOW);
}

static void wrap_files_promote_in(const char *directory, size_t length, const char *name)
{
    struct scratch *scratch = scratch_take();
    struct text text;
    if (scratch == NULL)
        return;
    text_init(&text, scratch->text[0], PATH_MAX);
    text_bytes(&text, directory, length);
    text_add(&text, "/");
    text_add(&text, name);
    if (text_ok(&text))
        promote_path(AT_FDCWD, scratch->text[0], TARGET_FOLLOW);
    scratch_give(scratch);
}

/* Time zones: TZ names a file, by itself or seen from TZDIR. These functions are called often: paths outside all roots cost a
 * look at their text. */

static void wrap_files_promote_zone(const char *directory, const char *zone)
{
    struct scratch *scratch = scratch_take();
    struct text text;
    struct target t;
    if (scratch == NULL)
        return;
    text_init(&text, scratch->text[0], PATH_MAX);
    text_add(&text, directory != NULL ? directory : "");
    text_add(&text, directory != NULL ? "/" : "");
    text_add(&text, zone);
    if (text_ok(&text) && target_find_text(&t, AT_FDCWD, scratch->text[0], TARGET_FOLLOW) == TARGET_MANAGED)
        operate_promote(&t);
    scratch_give(scratch);
}

static void wrap_files_prepare_zone(void)
{
    if (!process_has_roots())
        return;
    int saved = errno;
    const char *zone = wrap_files_environment("TZ"), *directory = NULL;
    if (zone != NULL && *zone == '\0')
        zone = "Universal"; /* as libc does */
    else if (zone != NULL && *zone == ':')
        zone++;
    if (zone != NULL && *zone != '/' && *zone != '\0')
        directory = wrap_files_environment("TZDIR");
    if (zone != NULL && (*zone == '/' || directory != NULL))
        wrap_files_promote_zone(directory, zone);
    if (directory != NULL)
        wrap_files_promote_zone(directory, "posixrules"); /* for a zone that says no rules */
    errno = saved;
}

#define ZONED(RESULT, NAME, DECLARED, GIVEN)                                                                                   \
    WRAPPER RESULT NAME DECLARED                                                                                               \
    {                                                                                                                          \
        wrap_files_prepare_zone();                                                                                             \
        return REAL(NAME) GIVEN;                                                                                               \
    }

ZONED(void, tzset, (void), ())
ZONED(struct tm *, localtime, (const time_t *when), (when))
ZONED(struct tm *, localtime_r, (const time_t *restrict when, struct tm *restrict to), (when, to))
ZONED(time_t, mktime, (struct tm * when), (when))
ZONED(time_t, timelocal, (struct tm * when), (when))
ZONED(char *, ctime, (const time_t *when), (when))
ZONED(char *, ctime_r, (const time_t *restrict when, char *restrict to), (when, to))
ZONED(size_t, strftime, (char *restrict to, size_t size, const char *restrict format, const struct tm *restrict when),
      (to, size, format, when))
ZONED(size_t, strftime_l,
      (char *restrict to, size_t size, const char *restrict format, const struct tm *restrict when, locale_t in),
      (to, size, format, when, in))
ZONED(size_t, __strftime_l, (char *to, size_t size, const char *format, const struct tm *when, locale_t in),
      (to, size, format, when, in))
ZONED(size_t, wcsftime, (wchar_t *restrict to, size_t size, const wchar_t *restrict format, const struct tm *restrict when),
      (to, size, format, when))
ZONED(size_t, wcsftime_l,
      (wchar_t *restrict to, size_t size, const wchar_t *restrict format, const struct tm *restrict when, locale_t in),
      (to, size, format, when, in))
ZONED(size_t, __wcsftime_l, (wchar_t * to, size_t size, const wchar_t *format, const struct tm *when, locale_t in),
      (to, size, format, when, in))

ZONED(char *, strptime, (const char *restrict words, const char *restrict format, struct tm *restrict to), (words, format, to))
ZONED(char *, strptime_l, (const char *restrict words, const char *restrict format, struct tm *restrict to, locale_t in),
      (words, format, to, in))

static void wrap_files_prepare_dates(void)
{
    wrap_files_prepare_zone();
    if (process_has_roots())
        wrap_files_promote(wrap_files_environment("DATEMSK"));
}

WRAPPER struct tm *getdate(const char *words)
{
    wrap_files_prepare_dates();
    return REAL(getdate)(words);
}

WRAPPER int getdate_r(const char *restrict words, struct tm *restrict to)
{
    wrap_files_prepare_dates();
    return REAL(getdate_r)(words, to);
}

/* Tables of users. */

WRAPPER int utmpname(const char *file)
{
    WRAPPER_LAUNDER(file);
    wrap_files_promote(file);
    return REAL(utmpname)(file);
}

WRAPPER int utmpxname(const char *file)
{
    WRAPPER_LAUNDER(file);
    wrap_files_promote(file);
    return REAL(utmpxname)(file);
}

WRAPPER void updwtmp(const char *file, const struct utmp *entry)
{
    WRAPPER_LAUNDER(file);
    wrap_files_promote(file);
    REAL(updwtmp)(file, entry);
}

WRAPPER void updwtmpx(const char *file, const struct utmpx *entry)
{
    WRAPPER_LAUNDER(file);
    wrap_files_promote(file);
    REAL(updwtmpx)(file, entry);
}

/* Message catalogues: a path, or a name for the patterns of NLSPATH. */

/* The language of a locale's name like ll_TT.codeset@modifier, its territory ('_') or codeset ('.'). */
static void wrap_files_add_part(struct text *to, const char *locale, char part)
{
    const char *start = part == '\0' ? locale : strchr(locale, part);
    if (start != NULL)
        text_bytes(to, part == '\0' ? start : start + 1, strcspn(part == '\0' ? start : start + 1, "_.@"));
}

static void wrap_files_expand(struct text *to, const char *pattern, size_t length, const char *name, const char *locale)
{
    for (size_t i = 0; i < length; i++) {
        const char *at = &pattern[i];
        if (*at != '%' || i + 1 == length) {
            text_bytes(to, at, 1);
            continue;
        }
        switch (pattern[++i]) {
        case 'N':
            text_add(to, name);
            break;
        case 'L':
            text_add(to, locale);
            break;
        case 'l':
            wrap_files_add_part(to, locale, '\0');
            break;
        case 't':
            wrap_files_add_part(to, locale, '_');
            break;
        case 'c':
            wrap_files_add_part(to, locale, '.');
            break;
        default:
            text_bytes(to, &pattern[i], 1);
        }
    }
}

static void wrap_files_promote_catalogues(const char *name, int flags)
{
    const char *patterns = wrap_files_environment("NLSPATH");
    const char *locale = flags == NL_CAT_LOCALE ? REAL(setlocale)(LC_MESSAGES, NULL) : wrap_files_environment("LANG");
    if (locale == NULL || *locale == '\0' || strchr(locale, '/') != NULL)
        locale = "C";
    struct scratch *scratch = scratch_take();
    while (scratch != NULL && patterns != NULL && *patterns != '\0') {
        struct text text;
        const size_t length = strcspn(patterns, ":");
        text_init(&text, scratch->text[0], PATH_MAX);
        wrap_files_expand(&text, length > 0 ? patterns : "%N", length > 0 ? length : 2, name, locale);
        if (text_ok(&text))
            promote_path(AT_FDCWD, scratch->text[0], TARGET_FOLLOW);
        patterns += length + (patterns[length] == ':');
    }
    scratch_give(scratch);
}

static void wrap_files_prepare_catalogue(const char *name, int flags)
{
    if (name == NULL || !process_has_roots())
        return;
    if (strchr(name, '/') != NULL)
        wrap_files_promote(name);
    else
        wrap_files_promote_catalogues(name, flags);
}

WRAPPER nl_catd catopen(const char *name, int flags)
{
    WRAPPER_LAUNDER(name);
    wrap_files_prepare_catalogue(name, flags);
    return REAL(catopen)(name, flags);
}

/* Locales: DIRECTORY/LOCALE/CATEGORY of each directory in LOCPATH, DIRECTORY/LOCALE/CATEGORY/DOMAIN.mo of bindtextdomain's.
 * Which locales libc tries it makes of a name and its variants: all that are there are moved. */

/* The files of one locale; with a domain, its translations. `name` is memory. */
static void wrap_files_promote_locale(const char *directory, const char *locale, const char *domain, char name[PATH_MAX])
{
    static const char categories[][20] = {"LC_CTYPE",    "LC_NUMERIC",   "LC_TIME",        "LC_COLLATE",
                                          "LC_MONETARY", "LC_MESSAGES",  "LC_PAPER",       "LC_NAME",
                                          "LC_ADDRESS",  "LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION"};
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++) {
        struct text text;
        text_init(&text, name, PATH_MAX);
        text_add(&text, locale);
        text_add(&text, "/");
        text_add(&text, categories[i]);
        if (domain != NULL) {
            text_add(&text, "/");
            text_add(&text, domain);
            text_add(&text, ".mo");
        } else if (strcmp(categories[i], "LC_MESSAGES") == 0) {
            text_add(&text, "/SYS_LC_MESSAGES");
        }
        if (text_ok(&text))
            wrap_files_promote_in(directory, strlen(directory), name);
    }
}

/* Do the words lead to what is below a root? `path` is memory. */
static bool wrap_files_is_below(const char *directory, char path[PATH_MAX])
{
    struct text text;
    struct target t;
    text_init(&text, path, PATH_MAX);
    text_add(&text, directory);
    text_add(&text, "/C");
    int how = text_ok(&text) ? target_find_text(&t, AT_FDCWD, path, TARGET_ALIAS) : TARGET_FOREIGN;
    if (how == TARGET_MANAGED)
        target_done(&t);
    return how != TARGET_FOREIGN;
}

/* Directories are in the trunk alone, where the kernel lists them. `room` is memory. */
static void wrap_files_promote_all_of(const char *directory, const char *domain, char room[PATH_MAX])
{
    _Alignas(struct dirent64) char entries[1024];
    int fd = sys_openat(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    for (ssize_t size; fd >= 0 && (size = sys_getdents64(fd, entries, sizeof entries)) > 0;)
        for (ssize_t at = 0; at < size; at += ((struct dirent64 *)&entries[at])->d_reclen) {
            const struct dirent64 *entry = (struct dirent64 *)&entries[at];
            if (entry->d_name[0] != '.' && entry->d_type != DT_REG)
                wrap_files_promote_locale(directory, entry->d_name, domain, room);
        }
    if (fd >= 0)
        sys_close(fd);
}

static void wrap_files_promote_locales(const char *from, size_t length, const char *domain)
{
    struct scratch *scratch = scratch_take();
    struct text text;
    if (scratch == NULL)
        return;
    text_init(&text, scratch->text[0], PATH_MAX);
    text_bytes(&text, from, length);
    if (length > 0 && text_ok(&text) && wrap_files_is_below(scratch->text[0], scratch->text[1]))
        wrap_files_promote_all_of(scratch->text[0], domain, scratch->text[1]);
    scratch_give(scratch);
}

/* What modules there are for character sets: gconv-modules, and each .conf in gconv-modules.d, of each directory
 * in GCONV_PATH. The modules themselves are shared objects, which are made in the trunk. */

static bool wrap_files_is_configuration(const char *name)
{
    const size_t length = strlen(name);
    const size_t end = sizeof ".conf" - 1;
    return length > end && strcmp(name + length - end, ".conf") == 0;
}

static void wrap_files_promote_conversions(const char *directory, size_t length)
{
    wrap_files_promote_in(directory, length, "gconv-modules");
    struct scratch *scratch = scratch_take();
    struct text text;
    if (scratch == NULL)
        return;
    text_init(&text, scratch->text[0], PATH_MAX);
    text_bytes(&text, directory, length);
    text_add(&text, "/gconv-modules.d");
    DIR *list = text_ok(&text) ? opendir(scratch->text[0]) : NULL;
    for (const struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;)
        if (wrap_files_is_configuration(entry->d_name))
            wrap_files_promote_in(scratch->text[0], strlen(scratch->text[0]), entry->d_name);
    if (list != NULL)
        closedir(list);
    scratch_give(scratch);
}

void wrap_files_prepare_conversions(void)
{
    if (!process_has_roots())
        return;
    int saved = errno;
    for (const char *at = wrap_files_environment("GCONV_PATH"); at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, ":");
        wrap_files_promote_conversions(at, length);
        at += length + (at[length] == ':');
    }
    errno = saved;
}

/* That of a locale's character set is looked for when a wide character is read or written first. */
static void wrap_files_prepare_locale(const char *name)
{
    if (name == NULL || !process_has_roots())
        return;
    wrap_files_prepare_conversions();
    int saved = errno;
    for (const char *at = wrap_files_environment("LOCPATH"); at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, ":");
        wrap_files_promote_locales(at, length, NULL);
        at += length + (at[length] == ':');
    }
    errno = saved;
}

WRAPPER char *setlocale(int category, const char *name)
{
    wrap_files_prepare_locale(name);
    return REAL(setlocale)(category, name);
}

WRAPPER locale_t newlocale(int mask, const char *name, locale_t base)
{
    WRAPPER_LAUNDER(name);
    wrap_files_prepare_locale(name);
    return REAL(newlocale)(mask, name, base);
}

WRAPPER locale_t __newlocale(int mask, const char *name, locale_t base)
{
    WRAPPER_LAUNDER(name);
    wrap_files_prepare_locale(name);
    return REAL(__newlocale)(mask, name, base);
}

WRAPPER char *bindtextdomain(const char *domain, const char *directory)
{
    int saved = errno;
    if (domain != NULL && directory != NULL && process_has_roots())
        wrap_files_promote_locales(directory, strlen(directory), domain);
    errno = saved;
    return REAL(bindtextdomain)(domain, directory);
}

WRAPPER iconv_t iconv_open(const char *to, const char *from)
{
    WRAPPER_LAUNDER(to);
    wrap_files_prepare_conversions();
    return REAL(iconv_open)(to, from);
}
