/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "base/hook.h"

#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/sys.h"
#include "base/text.h"

#define SETTING_MAX 1024
#define MEET_WITHIN (60 * CLOCK_SECOND) /* a process that waits longer is forgotten by its test */

static struct {
    char hooks[SETTING_MAX], breaks[SETTING_MAX];
    int is_read;
} setting;

struct reader {
    int fd;
    size_t at, filled;
    char bytes[512];
};

/* The next byte, or -1. */
static int hook_next(struct reader *r)
{
    if (r->at == r->filled) {
        ssize_t got = sys_read(r->fd, r->bytes, sizeof r->bytes);
        r->at = 0;
        r->filled = got > 0 ? (size_t)got : 0;
    }
    return r->at < r->filled ? r->bytes[r->at++] : -1;
}

/* One NAME=VALUE, cut off where it is too long. False: that was the last. */
static bool hook_next_variable(struct reader *r, char *to, size_t size)
{
    size_t length = 0;
    int c;
    while ((c = hook_next(r)) > 0)
        if (length + 1 < size)
            to[length++] = (char)c;
    to[length] = '\0';
    return c == 0;
}

/* Not from libc's environment: the shim's is the application's, which may have changed it. */
static void hook_read_settings(void)
{
    static const char hooks[] = "SHUNT_HOOKS=", breaks[] = "SHUNT_BREAK=";
    char variable[SETTING_MAX];
    struct reader r = {.fd = sys_openat(AT_FDCWD, "/proc/self/environ", O_RDONLY | O_CLOEXEC, 0)};
    while (r.fd >= 0 && hook_next_variable(&r, variable, sizeof variable)) {
        if (strncmp(variable, hooks, sizeof hooks - 1) == 0)
            strcpy(setting.hooks, variable + sizeof hooks - 1);
        if (strncmp(variable, breaks, sizeof breaks - 1) == 0)
            strcpy(setting.breaks, variable + sizeof breaks - 1);
    }
    if (r.fd >= 0)
        sys_close(r.fd);
    __atomic_store_n(&setting.is_read, 1, __ATOMIC_RELEASE);
}

/* Two threads that come first read the same. */
static void hook_have_settings(void)
{
    if (__atomic_load_n(&setting.is_read, __ATOMIC_ACQUIRE) == 0)
        hook_read_settings();
}

static void hook_pause_for(uint64_t ns)
{
    const struct timespec time = clock_split(ns);
    SYS2(SYS_nanosleep, &time, NULL);
}

static uint64_t hook_number_of(const char *text, size_t length, size_t *at)
{
    uint64_t number = 0;
    for (*at = 0; *at < length && text[*at] >= '0' && text[*at] <= '9'; ++*at)
        number = number * 10 + (uint64_t)(text[*at] - '0');
    return number;
}

static uint64_t hook_time_of(const char *text, size_t length)
{
    size_t at;
    uint64_t number = hook_number_of(text, length, &at);
    return number * (at < length && text[at] == 'm' ? CLOCK_MILLISECOND : CLOCK_MILLISECOND / 1000);
}

/* False: somebody was here before. */
static bool hook_tell(const char *path, size_t length)
{
    char words[SETTING_MAX];
    struct text text;
    text_init(&text, words, sizeof words);
    text_bytes(&text, path, length);
    text_add(&text, ".reached");
    int fd = sys_openat(AT_FDCWD, words, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        sys_close(fd);
    return fd >= 0;
}

static void hook_meet(const char *name, const char *path, size_t length)
{
    char words[SETTING_MAX];
    struct text text;
    struct statx stat;
    if (!hook_tell(path, length))
        return;
    text_init(&text, words, sizeof words);
    text_bytes(&text, path, length);
    text_add(&text, ".go");
    uint64_t until = clock_monotonic() + MEET_WITHIN;
    while (sys_statx(AT_FDCWD, words, 0, STATX_TYPE, &stat) != 0 && clock_monotonic() < until)
        hook_pause_for(CLOCK_MILLISECOND);
    if (clock_monotonic() >= until) {
        sys_write(2, name, strlen(name));
        sys_write(2, ": nobody came\n", 14);
        SYS1(SYS_exit_group, 99);
    }
}

/* Only one hook of a process is its end, so that one count will do. A child goes on with its parent's. */
static void hook_die(const char *text, size_t length)
{
    static uint64_t reached;
    size_t at;
    if (length == 0)
        SYS2(SYS_kill, sys_getpid(), SIGKILL);
    else if (__atomic_add_fetch(&reached, 1, __ATOMIC_RELAXED) == hook_number_of(text, length, &at) &&
             (at == length || hook_tell(text + at, length - at)))
        SYS2(SYS_kill, sys_getpid(), SIGKILL);
}

static bool hook_begins(const char *text, size_t length, const char *word)
{
    size_t size = strlen(word);
    return length >= size && memcmp(text, word, size) == 0;
}

static void hook_act(const char *name, const char *action, size_t length)
{
    const char *value = memchr(action, '=', length);
    size_t rest = value != NULL ? length - (size_t)(++value - action) : 0;
    if (hook_begins(action, length, "delay="))
        hook_pause_for(hook_time_of(value, rest));
    else if (hook_begins(action, length, "random="))
        hook_pause_for(clock_monotonic() / 7 % (hook_time_of(value, rest) + 1));
    else if (hook_begins(action, length, "meet="))
        hook_meet(name, value, rest);
    else if (hook_begins(action, length, "tell="))
        hook_tell(value, rest);
    else if (hook_begins(action, length, "kill"))
        hook_die(value, rest);
}

static bool hook_matches(const char *pattern, size_t length, const char *name)
{
    if (length > 0 && pattern[length - 1] == '*')
        return strncmp(pattern, name, length - 1) == 0;
    return strlen(name) == length && memcmp(pattern, name, length) == 0;
}

void hook_reach(const char *name)
{
    hook_have_settings();
    for (const char *at = setting.hooks; *at != '\0';) {
        size_t length = strcspn(at, ","), pattern = strcspn(at, ":");
        if (pattern < length && hook_matches(at, pattern, name))
            hook_act(name, at + pattern + 1, length - pattern - 1);
        at += length + (at[length] == ',');
    }
}

bool hook_breaks(const char *guard)
{
    hook_have_settings();
    for (const char *at = setting.breaks; *at != '\0';) {
        size_t length = strcspn(at, ",");
        if (hook_matches(at, length, guard))
            return true;
        at += length + (at[length] == ',');
    }
    return false;
}
