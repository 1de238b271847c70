/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "cli/describe.h"

#include <dirent.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct {
    unsigned type;
    char letter;
    const char *words;
} types[] = {
    {S_IFREG, '-', "regular file"},
    {S_IFDIR, 'd', "directory"},
    {S_IFLNK, 'l', "symbolic link"},
    {S_IFIFO, 'p', "fifo"},
    {S_IFSOCK, 's', "socket"},
    {S_IFCHR, 'c', "character special file"},
    {S_IFBLK, 'b', "block special file"},
    {0, '?', "weird file"},
};

static size_t describe_type_of(unsigned mode)
{
    size_t i = 0;
    while (types[i].type != 0 && types[i].type != (mode & S_IFMT))
        i++;
    return i;
}

void describe_mode(unsigned mode, char to[DESCRIBE_MODE])
{
    to[0] = types[describe_type_of(mode)].letter;
    for (unsigned i = 0; i < 9; i++)
        to[1 + i] = mode & (0400u >> i) ? "rwxrwxrwx"[i] : '-';
    if (mode & S_ISUID)
        to[3] = mode & S_IXUSR ? 's' : 'S';
    if (mode & S_ISGID)
        to[6] = mode & S_IXGRP ? 's' : 'S';
    if (mode & S_ISVTX)
        to[9] = mode & S_IXOTH ? 't' : 'T';
    to[10] = '\0';
}

const char *describe_type(unsigned mode)
{
    return types[describe_type_of(mode)].words;
}

/* The last answer is kept: most files of a directory have one owner. */
const char *describe_user(uint32_t uid)
{
    static char name[DESCRIBE_NAME];
    static uint32_t known;
    if (name[0] && known == uid)
        return name;
    const struct passwd *user = getpwuid(uid);
    known = uid;
    if (user)
        snprintf(name, sizeof name, "%s", user->pw_name);
    else
        snprintf(name, sizeof name, "%u", uid);
    return name;
}

const char *describe_group(uint32_t gid)
{
    static char name[DESCRIBE_NAME];
    static uint32_t known;
    if (name[0] && known == gid)
        return name;
    const struct group *group = getgrgid(gid);
    known = gid;
    if (group)
        snprintf(name, sizeof name, "%s", group->gr_name);
    else
        snprintf(name, sizeof name, "%u", gid);
    return name;
}

#define HALF_A_YEAR (31556952 / 2)

void describe_time_short(const struct statx_timestamp *when, char to[DESCRIBE_TIME])
{
    time_t at = (time_t)when->tv_sec, now = time(NULL);
    struct tm split;
    const char *format = at > now - HALF_A_YEAR && at <= now ? "%b %e %H:%M" : "%b %e  %Y";
    if (!localtime_r(&at, &split) || strftime(to, DESCRIBE_TIME, format, &split) == 0)
        snprintf(to, DESCRIBE_TIME, "%lld", (long long)at);
}

void describe_time_long(const struct statx_timestamp *when, char to[DESCRIBE_TIME])
{
    time_t at = (time_t)when->tv_sec;
    struct tm split;
    char seconds[24], zone[8];
    if (!localtime_r(&at, &split) || strftime(seconds, sizeof seconds, "%Y-%m-%d %H:%M:%S", &split) == 0 ||
        strftime(zone, sizeof zone, "%z", &split) == 0)
        snprintf(to, DESCRIBE_TIME, "%lld", (long long)at);
    else
        snprintf(to, DESCRIBE_TIME, "%s.%09u %s", seconds, when->tv_nsec, zone);
}

const char *describe_branch(const struct union_root *root, const struct union_name *name)
{
    return name && name->branch > 0 ? root->branches[name->branch - 1] : NULL;
}

const char *describe_target(const struct folder *folder, const struct union_name *name, char to[PATH_MAX])
{
    if (!name || name->type != DT_LNK)
        return NULL;
    ssize_t length = sys_readlinkat(folder->fd, name->on_disk, to, PATH_MAX - 1);
    if (length < 0)
        return NULL;
    to[length] = '\0';
    return to;
}

static const char *describe_json_type(unsigned mode)
{
    static const char *const words[] = {"file", "directory", "link", "fifo", "socket", "character", "block", "unknown"};
    return words[describe_type_of(mode)];
}

static void describe_json_time(struct json *json, const char *key, const struct statx_timestamp *when)
{
    json_number(json, key, (int64_t)when->tv_sec * 1000000000 + when->tv_nsec);
}

static void describe_json_stat(struct json *json, const struct statx *stat)
{
    char mode[8];
    snprintf(mode, sizeof mode, "%04o", stat->stx_mode & 07777u);
    json_text(json, "type", describe_json_type(stat->stx_mode));
    json_text(json, "mode", mode);
    json_unsigned(json, "ino", stat->stx_ino);
    json_unsigned(json, "nlink", stat->stx_nlink);
    json_unsigned(json, "uid", stat->stx_uid);
    json_text(json, "user", describe_user(stat->stx_uid));
    json_unsigned(json, "gid", stat->stx_gid);
    json_text(json, "group", describe_group(stat->stx_gid));
    json_unsigned(json, "size", stat->stx_size);
    json_unsigned(json, "blocks", stat->stx_blocks);
    describe_json_time(json, "atime_ns", &stat->stx_atime);
    describe_json_time(json, "mtime_ns", &stat->stx_mtime);
    describe_json_time(json, "ctime_ns", &stat->stx_ctime);
    if (stat->stx_mask & STATX_BTIME)
        describe_json_time(json, "btime_ns", &stat->stx_btime);
}

int describe_json(struct json *json, const struct folder *folder, const struct union_root *root, const struct union_name *name,
                  const char *path)
{
    struct statx stat;
    char where[PATH_MAX], target[PATH_MAX];
    int error = folder_stat(folder, root, name, &stat);
    if (error == 0)
        error = folder_where(folder, root, name, where, sizeof where);
    if (error < 0)
        return error;
    json_open(json, NULL, '{');
    json_text(json, "path", path);
    describe_json_stat(json, &stat);
    json_text(json, "branch", describe_branch(root, name));
    json_unsigned(json, "leaf", name ? name->leaf : 0);
    json_text(json, "where", where);
    if (describe_target(folder, name, target))
        json_text(json, "target", target);
    json_close(json, '}');
    return 0;
}

int describe_json_name(const struct folder *folder, const struct union_root *root, const struct union_name *name,
                       const char *path)
{
    struct json json = {.flat = true};
    char where[PATH_MAX];
    int error = folder_where(folder, root, name, where, sizeof where);
    if (error < 0)
        return error;
    json_open(&json, NULL, '{');
    json_text(&json, "path", path);
    json_text(&json, "type", describe_json_type(DTTOIF(name->type)));
    json_unsigned(&json, "ino", name->ino);
    json_text(&json, "branch", describe_branch(root, name));
    json_unsigned(&json, "leaf", name->leaf);
    json_text(&json, "where", where);
    json_close(&json, '}');
    return 0;
}

static bool describe_to_terminal(void)
{
    static int answer = -1;
    if (answer < 0)
        answer = isatty(STDOUT_FILENO);
    return answer;
}

/* How many bytes a control character takes, of ASCII or of ISO 6429 in UTF-8 (U+0080 to U+009F); 0: it is none. */
static size_t describe_control(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;
    if (byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] <= 0x9f)
        return 2;
    return byte[0] < 0x20 || byte[0] == 0x7f;
}

void describe_print_for_terminal(const char *text, FILE *to)
{
    while (*text != '\0') {
        const size_t length = describe_control(text);
        putc(length > 0 ? '?' : *text, to);
        text += length > 0 ? length : 1;
    }
}

void describe_print(const char *name)
{
    if (describe_to_terminal())
        describe_print_for_terminal(name, stdout);
    else
        fputs(name, stdout);
}

unsigned describe_width(const char *name)
{
    unsigned width = 0;
    for (; *name; name++)
        width += ((unsigned char)*name & 0xc0) != 0x80; /* a character of UTF-8 is one column, or so */
    return width;
}
