/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* libcs_files: makes files in the working directory that libc opens by itself, has it open them, and says whether it did. A
 * locale zz_ZZ is to be in locale/. */

#include <dirent.h>
#include <fcntl.h>
#include <iconv.h>
#include <libintl.h>
#include <limits.h>
#include <locale.h>
#include <mntent.h>
#include <nl_types.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>
#include <utmpx.h>
#include <wchar.h>

static char here[PATH_MAX], text[2 * PATH_MAX];

static const char *files_at(const char *name)
{
    snprintf(text, sizeof text, "%s/%s", here, name);
    return text;
}

static void files_say(const char *what, int is_right)
{
    printf("%s: %s\n", what, is_right ? "right" : "wrong");
    fflush(stdout);
}

static void files_put(const char *name, const void *bytes, size_t size)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd) != 0)
        exit(2);
}

static void files_copy(const char *from, const char *to)
{
    static char bytes[1 << 16];
    int fd = open(from, O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof bytes);
    close(fd);
    if (size < 0)
        exit(3);
    files_put(to, bytes, (size_t)size);
}

static int files_is_listed(const char *name)
{
    int found = 0;
    DIR *directory = opendir(".");
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        found |= strcmp(entry->d_name, name) == 0;
    closedir(directory);
    return found;
}

static void files_mounts(void)
{
    const struct mntent entry = {(char *)"dev", (char *)"/mnt", (char *)"ext4", (char *)"rw", 0, 0};
    files_put("fstab", "/dev/a /a ext4 rw 0 0\n", 22);
    FILE *table = setmntent("fstab", "r");
    files_say("setmntent r", table != NULL && getmntent(table) != NULL && (fcntl(fileno(table), F_GETFD) & FD_CLOEXEC));
    if (table != NULL)
        endmntent(table);
    table = setmntent("fstab", "r+");
    files_say("setmntent r+", table != NULL && addmntent(table, &entry) == 0 && endmntent(table) == 1);
    table = setmntent("new-table", "w");
    files_say("setmntent w", table != NULL && addmntent(table, &entry) == 0 && endmntent(table) == 1);
    files_say("new-table is listed", files_is_listed("new-table"));
    files_say("setmntent of none", setmntent("none", "r") == NULL);
}

static int files_hour(const char *zone, struct tm *(*of)(const time_t *))
{
    time_t zero = 0;
    setenv("TZ", zone, 1);
    struct tm *tm = of(&zero);
    return tm == NULL ? -1 : tm->tm_hour;
}

static struct tm *files_after_tzset(const time_t *when)
{
    static struct tm tm;
    tzset();
    return localtime_r(when, &tm);
}

static struct tm *files_by_mktime(const time_t *when)
{
    static struct tm tm;
    tm = (struct tm){.tm_year = 70, .tm_mday = 1, .tm_hour = 12};
    tm.tm_hour = 12 - (int)(mktime(&tm) - *when) / 3600;
    return &tm;
}

static struct tm *files_by_ctime(const time_t *when)
{
    static struct tm tm;
    char words[32];
    tm.tm_hour = atoi(ctime_r(when, words) + 11);
    return &tm;
}

static int files_is_summer_in_june(const char *zone)
{
    time_t june = 1593000000;
    setenv("TZ", zone, 1);
    struct tm *tm = localtime(&june);
    return tm == NULL ? -1 : tm->tm_isdst;
}

static void files_zones(void)
{
    static const struct {
        const char *name;
        struct tm *(*of)(const time_t *);
    } ways[] = {
        {"tzset", files_after_tzset}, {"localtime", localtime}, {"mktime", files_by_mktime}, {"ctime_r", files_by_ctime}};
    char name[64], zone[2 * PATH_MAX + 1];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        snprintf(name, sizeof name, "zone-%s", ways[i].name);
        files_copy("/usr/share/zoneinfo/Asia/Tokyo", name);
        snprintf(zone, sizeof zone, "%s%s", i % 2 == 0 ? ":" : "", files_at(name));
        files_say(name, files_hour(zone, ways[i].of) == 9);
    }
    files_copy("/usr/share/zoneinfo/Asia/Tokyo", "zone-in-directory");
    setenv("TZDIR", here, 1);
    files_say("TZDIR", files_hour("zone-in-directory", localtime) == 9);
    files_copy("/usr/share/zoneinfo/Asia/Tokyo", "zone-strftime");
    setenv("TZ", "zone-strftime", 1);
    char words[32] = "";
    strftime(words, sizeof words, "%Z", &(struct tm){.tm_year = 70, .tm_mday = 1});
    files_say("strftime", tzname[0] != NULL && strcmp(tzname[0], "JST") == 0);
    files_copy("/usr/share/zoneinfo/Asia/Tokyo", "Universal");
    files_say("TZ that is empty", files_hour("", files_after_tzset) == 9);
    files_copy("/usr/share/zoneinfo/Australia/Sydney", "posixrules");
    files_say("posixrules", files_is_summer_in_june("AAA0BBB") == 0);
    unsetenv("TZDIR");
    files_say("none", files_hour(":/no/such/zone", localtime) == 0);
}

static void files_users(void)
{
    struct utmp user = {.ut_type = USER_PROCESS, .ut_user = "someone", .ut_line = "pts/9", .ut_id = "9"};
    files_put("utmp", &user, sizeof user);
    utmpname(files_at("utmp"));
    setutent();
    struct utmp *found = getutent();
    files_say("utmpname", found != NULL && strcmp(found->ut_user, "someone") == 0);
    files_put("utmpx", &user, sizeof user);
    utmpxname(files_at("utmpx"));
    setutxent();
    struct utmpx *other = getutxent();
    files_say("utmpxname", other != NULL && strcmp(other->ut_user, "someone") == 0);
    endutxent();
    struct stat st;
    files_put("wtmp", "", 0);
    updwtmp("wtmp", &user);
    files_say("updwtmp", stat("wtmp", &st) == 0 && st.st_size == sizeof user);
}

static void files_texts(void)
{
    files_put("datemsk", "%Y-%m-%d\n", 9);
    setenv("DATEMSK", files_at("datemsk"), 1);
    files_say("DATEMSK", getdate("2020-01-02") != NULL);
    struct tm tm;
    files_put("datemsk-r", "%Y-%m-%d\n", 9);
    setenv("DATEMSK", files_at("datemsk-r"), 1);
    files_say("DATEMSK, getdate_r", getdate_r("2020-01-02", &tm) == 0);
    files_put("m.msg", "$set 1\n1 from the catalogue\n", 28);
    if (system("gencat m.cat m.msg && gencat n.cat m.msg && gencat o.cat m.msg") != 0)
        exit(4);
    files_say("catopen", catopen(files_at("m.cat"), 0) != (nl_catd)-1);
    files_say("catopen of a relative path", catopen("./n.cat", 0) != (nl_catd)-1);
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "/none/%%L/%%N:%s/%%N.cat", here);
    setenv("NLSPATH", path, 1);
    files_say("NLSPATH", catopen("o", 0) != (nl_catd)-1);
}

/* A catalogue of one message, "hello", by hand: what msgfmt would make. */
static void files_put_translation(const char *name)
{
    struct {
        uint32_t magic, revision, count, from, to, hash_size, hash_at, lengths[8];
        char texts[64];
    } file = {0x950412de, 0, 2, 28, 44, 0, 60, {0, 60, 5, 61, 39, 67, 10, 107}, ""};
    memcpy(file.texts, "\0hello\0Content-Type: text/plain; charset=UTF-8\0translated", 58);
    files_put(name, &file, sizeof file);
}

static void files_locales(void)
{
    if (mkdir("loc", 0755) != 0 || mkdir("loc/xx", 0755) != 0 || mkdir("loc/xx/LC_MESSAGES", 0755) != 0)
        exit(5);
    files_put_translation("loc/xx/LC_MESSAGES/demo.mo");
    setenv("LANGUAGE", "xx", 1);
    setlocale(LC_ALL, "C.UTF-8");
    bindtextdomain("demo", files_at("loc"));
    textdomain("demo");
    files_say("bindtextdomain", strcmp(gettext("hello"), "translated") == 0);
    setenv("LOCPATH", files_at("locale"), 1);
    locale_t made = newlocale(LC_ALL_MASK, "yy_YY", (locale_t)0);
    files_say("newlocale", made != (locale_t)0);
    files_say("setlocale", setlocale(LC_ALL, "zz_ZZ") != NULL);
    files_say("setlocale of none", setlocale(LC_ALL, "qq_QQ") == NULL);
}

/* As libc looks for what it knows of character sets. */
static void files_configure(const char *directory)
{
    char name[64], environment[2 * PATH_MAX + 8];
    static const char *const both[] = {"", "/gconv-modules.d"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s%s", directory, both[i]);
        if (mkdir(name, 0755) != 0)
            exit(7);
    }
    snprintf(name, sizeof name, "%s/gconv-modules", directory);
    files_put(name, "alias XX-CONFIGURED// ISO-10646/UTF8/\n", 38);
    snprintf(name, sizeof name, "%s/gconv-modules.d/xx.conf", directory);
    files_put(name, "alias XX-BESIDE// ISO-10646/UTF8/\nalias XX-LATIN// ISO-8859-1//\n", 64);
    snprintf(environment, sizeof environment, "/none:%s", files_at(directory));
    setenv("GCONV_PATH", environment, 1);
}

static int files_iconv(void)
{
    files_configure("conversions");
    return iconv_open("UTF-16LE", "XX-CONFIGURED") != (iconv_t)-1 && iconv_open("UTF-16LE", "XX-BESIDE") != (iconv_t)-1;
}

/* "a", the Euro sign and the end of the line are so many bytes. */
static int files_stream(const char *name, const char *set, long size)
{
    char mode[64];
    struct stat st;
    wchar_t line[16] = L"";
    snprintf(mode, sizeof mode, "wx,ccs=%s", set);
    FILE *stream = fopen(name, mode);
    int is_right = stream != NULL && fputws(L"a\x20ac\n", stream) >= 0 && fclose(stream) == 0;
    is_right = is_right && stat(name, &st) == 0 && st.st_size == size;
    snprintf(mode, sizeof mode, "r,ccs=%s", set);
    stream = is_right ? fopen(name, mode) : NULL;
    return stream != NULL && fgetws(line, 16, stream) != NULL && line[0] == 'a' && line[1] == 0x20ac;
}

static int files_stream_configured(void)
{
    files_configure("conversions-of-streams");
    return files_stream("wide", "XX-CONFIGURED", 5);
}

static int files_stream_beside(void)
{
    files_configure("conversions-of-more-streams");
    return files_stream("wide-beside", "XX-BESIDE", 5);
}

static int files_stream_of_two_bytes(void)
{
    return files_stream("two", "UTF-16LE", 6);
}

static int files_locale_of_a_character_set(void)
{
    wchar_t wide[4] = L"";
    files_configure("conversions-of-locales");
    setenv("LOCPATH", files_at("locale"), 1);
    return setlocale(LC_ALL, "cc_CC") != NULL && mbstowcs(wide, "\xe9", 4) == 1 && wide[0] == 0xe9;
}

static int files_strptime(void)
{
    struct tm tm = {0};
    files_copy("/usr/share/zoneinfo/Asia/Tokyo", "zone-strptime");
    setenv("TZ", files_at("zone-strptime"), 1);
    return strptime("0", "%s", &tm) != NULL && tm.tm_hour == 9;
}

/* What libc has read of character sets it keeps, and of zones until some other functions are called. */
static void files_in_child(const char *what, int (*is_right)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        files_say(what, is_right());
        exit(0);
    }
    waitpid(child, NULL, 0);
}

static void files_first(void)
{
    files_in_child("iconv_open", files_iconv);
    files_in_child("fopen of a character set", files_stream_configured);
    files_in_child("fopen of another one", files_stream_beside);
    files_in_child("fopen of UTF-16", files_stream_of_two_bytes);
    files_in_child("a locale's character set", files_locale_of_a_character_set);
    files_in_child("strptime", files_strptime);
}

int main(void)
{
    if (getcwd(here, sizeof here) == NULL)
        return 2;
    files_first();
    files_mounts();
    files_zones();
    files_users();
    files_texts();
    files_locales();
    return 0;
}
