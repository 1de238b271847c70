/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "config/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "config/config.h"
#include "config/settings_line.h"

#define FILE_MOST 65536
#define ABOUT_SIZE (PATH_MAX + 512) /* of a sentence */

static int settings_check_switch(const char *text)
{
    return strcmp(text, "yes") == 0 || strcmp(text, "no") == 0 ? 0 : -EINVAL;
}

static int settings_check_any(const char *text)
{
    return 0;
}

static int settings_check_path(const char *text)
{
    return text[0] == '/' ? 0 : -EINVAL;
}

static int settings_check_paths(const char *text)
{
    for (; text != NULL; text = strchr(text, ':'))
        if (*(text += *text == ':') != '/')
            return -EINVAL;
    return 0;
}

static int settings_check_placement(const char *text)
{
    enum config_placement placement;
    return config_placement_parse(text, &placement);
}

static int settings_check_static(const char *text)
{
    enum config_static statics;
    return config_static_parse(text, &statics);
}

static int settings_check_count(const char *text)
{
    uint64_t number;
    return config_number_parse(text, UINT32_MAX, &number);
}

static int settings_check_size(const char *text)
{
    uint64_t size;
    return config_size_parse(text, CONFIG_INDEX_LEAST, &size);
}

static int settings_check_seconds(const char *text)
{
    uint64_t seconds;
    return config_number_parse(text, 86400, &seconds);
}

static int settings_check_log(const char *text)
{
    return strcmp(text, "file") == 0 || strcmp(text, "syslog") == 0 ? 0 : -EINVAL;
}

static const struct {
    const char *name, *variable, *built_in;
    int (*check)(const char *);
    const char *wants;
    bool is_policy; /* not handed on by the environment: each host's own file says it */
} keys[SETTINGS_KEYS] = {
    [SETTINGS_ENABLED] = {"enabled", "SHUNT_ENABLED", "yes", settings_check_switch, "neither yes nor no", true},
    [SETTINGS_MESSAGE] = {"message", NULL, "", settings_check_any, "", true},
    [SETTINGS_ALLOWED_ROOTS] = {"allowed_roots", NULL, "/", settings_check_paths, "not absolute paths with ':' between", true},
    [SETTINGS_FORBIDDEN_ROOTS] = {"forbidden_roots", NULL, "", settings_check_paths, "not absolute paths with ':' between",
                                  true},
    [SETTINGS_INDEX_LIMIT_MAX] = {"index_limit_max", NULL, "", settings_check_size, "not a size of at least 1M", true},
    [SETTINGS_LEAF_FULL_MAX] = {"leaf_full_max", NULL, "", settings_check_count, "not a whole number from 1 on", true},
    [SETTINGS_PLACEMENT] = {"placement", "SHUNT_PLACEMENT", "auto", settings_check_placement, "neither auto nor branch", false},
    [SETTINGS_LEAF_FULL] = {"leaf_full", "SHUNT_LEAF_FULL", "by file system", settings_check_count,
                            "not a whole number from 1 on", false},
    [SETTINGS_INDEX_LIMIT] = {"index_limit", "SHUNT_INDEX_LIMIT", "a quarter of the run directory's file system",
                              settings_check_size, "not a size of at least 1M", false},
    [SETTINGS_STATIC] = {"static", "SHUNT_STATIC", "serve", settings_check_static, "neither serve, warn nor refuse", false},
    [SETTINGS_RUN_DIR] = {"run_dir", "SHUNT_RUN_DIR", "/dev/shm", settings_check_path, "not an absolute path", false},
    [SETTINGS_CATALOGUE_DIR] = {"catalogue_dir", "SHUNT_CATALOGUE_DIR", "the run directory", settings_check_path,
                                "not an absolute path", false},
    [SETTINGS_CATALOGUE_QUIET] = {"catalogue_quiet", "SHUNT_CATALOGUE_QUIET", "10", settings_check_seconds,
                                  "not a number of seconds from 1 to 86400", false},
    [SETTINGS_DEADLINE] = {"deadline", "SHUNT_DEADLINE", "30", settings_check_seconds,
                           "not a number of seconds from 1 to 86400", false},
    [SETTINGS_STALE] = {"stale", "SHUNT_STALE", "15", settings_check_seconds, "not a number of seconds from 1 to 86400", false},
    [SETTINGS_FABRIC] = {"fabric", "SHUNT_FABRIC", CONFIG_FABRIC, settings_check_any, "", false},
    [SETTINGS_LOG] = {"log", "SHUNT_LOG", "file", settings_check_log, "neither file nor syslog", false},
    [SETTINGS_LOG_DIR] = {"log_dir", "SHUNT_LOG_DIR", "~/.local/state/shunt", settings_check_path, "not an absolute path",
                          false},
};

static bool settings_is_of_site(enum settings_key key)
{
    return keys[key].variable == NULL;
}

__attribute__((format(printf, 3, 4))) static void settings_tell(const struct settings *settings, bool is_error,
                                                                const char *format, ...)
{
    char sentence[ABOUT_SIZE];
    va_list more;
    if (settings->say == NULL)
        return;
    va_start(more, format);
    vsnprintf(sentence, sizeof sentence, format, more);
    va_end(more);
    settings->say(is_error, sentence);
}

/* The files. */

static enum settings_key settings_find(const char *name, size_t length)
{
    enum settings_key key = 0;
    while (key < SETTINGS_KEYS && (strlen(keys[key].name) != length || memcmp(keys[key].name, name, length) != 0))
        key++;
    return key;
}

/* The last line of a file that says it holds, and each file is read after those it goes above; but none lifts an off switch. */
static int settings_put(struct settings *settings, enum settings_key key, const struct settings_value *value)
{
    struct settings_value *now = &settings->values[key];
    const bool stays = key == SETTINGS_ENABLED && now->source < value->source && settings_are_off(settings);
    if (stays || value->text == NULL) {
        free(value->text);
        return stays ? 0 : -ENOMEM;
    }
    free(now->text);
    *now = *value;
    return 0;
}

static int settings_take_line(struct settings *settings, enum settings_source source, unsigned number, const char *line,
                              size_t length)
{
    const char *file = settings->files[source - 1];
    struct settings_line parsed;
    const int kind = settings_line_parse(&parsed, line, length);
    if (kind < 0)
        settings_tell(settings, true, "%s:%u: not of the form 'KEY = value' (correct or remove the line)", file, number);
    if (kind <= 0)
        return kind;
    const enum settings_key key = settings_find(parsed.key, parsed.key_length);
    const int shown = parsed.key_length < 64 ? (int)parsed.key_length : 64;
    if (key == SETTINGS_KEYS) /* maybe of a later version */
        settings_tell(settings, false, "%s:%u: unknown setting '%.*s' is ignored (see 'shunt config')", file, number, shown,
                      parsed.key);
    if (key == SETTINGS_KEYS)
        return 0;
    if (source != SETTINGS_SITE && settings_is_of_site(key)) {
        settings_tell(settings, true, "%s:%u: '%s' is for the file of the site alone (remove the line)", file, number,
                      keys[key].name);
        return -EINVAL;
    }
    char *text = strndup(parsed.value, parsed.value_length);
    if (text != NULL && keys[key].check(text) != 0) {
        settings_tell(settings, true, "%s:%u: %s '%.200s': %s (correct or remove the line)", file, number, keys[key].name, text,
                      keys[key].wants);
        free(text);
        return -EINVAL;
    }
    return settings_put(settings, key, &(struct settings_value){.text = text, .source = source, .line = number});
}

/* All lines, also after one that is wrong. */
static int settings_take_text(struct settings *settings, enum settings_source source, const char *text, size_t size)
{
    const char *end = text + size;
    int answer = 0;
    for (unsigned number = 1; text < end; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const size_t length = (size_t)((stop != NULL ? stop : end) - text);
        const int code = settings_take_line(settings, source, number, text, length);
        answer = code < 0 ? code : answer;
        text += length + (stop != NULL);
    }
    return answer;
}

/* How long it is, or -errno. -ENOENT also for a directory that is not there. */
static ssize_t settings_read_file(const char *path, char text[FILE_MOST])
{
    size_t size = 0;
    struct stat stat;
    const int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return fd == -ENOTDIR ? -ENOENT : fd;
    ssize_t got = fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode) ? -EINVAL : 1;
    while (got > 0 && size < FILE_MOST && (got = sys_read(fd, text + size, FILE_MOST - size)) > 0)
        size += (size_t)got;
    sys_close(fd);
    return got < 0 ? got : size == FILE_MOST ? -EFBIG : (ssize_t)size;
}

/* -ENOENT: there is none. */
static int settings_take_file(struct settings *settings, enum settings_source source)
{
    static char text[FILE_MOST];
    const char *path = settings->files[source - 1];
    const ssize_t size = *path != '\0' ? settings_read_file(path, text) : -ENOENT;
    if (size == -ENOENT || (size == -EACCES && source == SETTINGS_USER)) /* HOME is another user's, as under setpriv */
        return -ENOENT;
    settings->is_there[source - 1] = true;
    if (size == -EINVAL || size == -EFBIG)
        settings_tell(settings, true, "%s: %s (replace or remove it)", path,
                      size == -EINVAL ? "not a regular file" : "longer than a file of settings may be");
    else if (size < 0)
        settings_tell(settings, true, "%s: cannot be read: %s (check its permissions)", path, strerror((int)-size));
    return size < 0 ? (int)size : settings_take_text(settings, source, text, (size_t)size);
}

static int settings_take_site(struct settings *settings, char *const environment[], const char *tree_file)
{
    const char *named = config_value(environment, "SHUNT_CONF", NULL);
    const char *const places[] = {SETTINGS_SITE_FILE, tree_file, named};
    int code = -ENOENT;
    for (size_t i = 0; i < sizeof places / sizeof *places && code == -ENOENT; i++)
        if (places[i] != NULL && strlen(places[i]) < PATH_MAX) {
            strcpy(settings->files[SETTINGS_SITE - 1], places[i]);
            code = settings_take_file(settings, SETTINGS_SITE);
        }
    if (code != -ENOENT)
        return code;
    if (named != NULL) {
        settings_tell(settings, true, "SHUNT_CONF: there is no file '%s' (correct it or unset it)", named);
        return -ENOENT;
    }
    strcpy(settings->files[SETTINGS_SITE - 1], SETTINGS_SITE_FILE);
    return 0;
}

static int settings_take_user(struct settings *settings, char *const environment[])
{
    const char *base = config_value(environment, "XDG_CONFIG_HOME", ""), *home = config_value(environment, "HOME", "");
    char *to = settings->files[SETTINGS_USER - 1];
    const bool is_named = *base == '/'; /* as the XDG base directory specification says */
    if (!is_named && *home != '/')
        return 0;
    const int length = snprintf(to, PATH_MAX, "%s/%sshunt.conf", is_named ? base : home, is_named ? "" : ".config/");
    if (length >= PATH_MAX)
        *to = '\0';
    const int code = settings_take_file(settings, SETTINGS_USER);
    return code == -ENOENT ? 0 : code;
}

static int settings_take_environment(struct settings *settings, char *const environment[])
{
    int code = 0;
    for (enum settings_key key = 0; key < SETTINGS_KEYS && code == 0; key++) {
        const char *value = keys[key].variable != NULL ? config_value(environment, keys[key].variable, NULL) : NULL;
        if (value != NULL)
            code =
                settings_put(settings, key,
                             &(struct settings_value){
                                 .text = strdup(value), .source = SETTINGS_ENVIRONMENT, .is_bad = keys[key].check(value) != 0});
    }
    return code;
}

/* The limits of the site. */

static uint64_t settings_amount(const char *text)
{
    uint64_t amount;
    return text != NULL && config_size_parse(text, 1, &amount) == 0 ? amount : UINT64_MAX;
}

uint64_t settings_limit(const struct settings *settings, enum settings_key limit)
{
    return settings_amount(settings->values[limit].text);
}

static int settings_keep_limit(struct settings *settings, enum settings_key key, enum settings_key limit)
{
    const struct settings_value *most = &settings->values[limit];
    struct settings_value *now = &settings->values[key];
    const uint64_t amount = settings_amount(now->text);
    if (now->text == NULL || now->is_bad || amount <= settings_amount(most->text))
        return 0;
    free(now->text);
    *now = *most;
    now->text = strdup(most->text);
    now->is_limited = true;
    return now->text != NULL ? 0 : -ENOMEM;
}

int settings_read(struct settings *settings, char *const environment[], const char *tree_file,
                  void (*say)(bool is_error, const char *sentence))
{
    *settings = (struct settings){.say = say};
    const int site = settings_take_site(settings, environment, tree_file), user = settings_take_user(settings, environment);
    int code = site != 0 ? site : user;
    code = code != 0 ? code : settings_take_environment(settings, environment);
    code = code != 0 ? code : settings_keep_limit(settings, SETTINGS_INDEX_LIMIT, SETTINGS_INDEX_LIMIT_MAX);
    return code != 0 ? code : settings_keep_limit(settings, SETTINGS_LEAF_FULL, SETTINGS_LEAF_FULL_MAX);
}

void settings_finish(struct settings *settings)
{
    for (enum settings_key key = 0; key < SETTINGS_KEYS; key++)
        free(settings->values[key].text);
    *settings = (struct settings){0};
}

int settings_to_environment(const struct settings *settings)
{
    for (enum settings_key key = 0; key < SETTINGS_KEYS; key++) {
        const struct settings_value *value = &settings->values[key];
        const bool is_of_file = value->source == SETTINGS_SITE || value->source == SETTINGS_USER;
        if (!keys[key].is_policy && is_of_file && setenv(keys[key].variable, value->text, 1) != 0)
            return -ENOMEM;
    }
    return 0;
}

const char *settings_name(enum settings_key key)
{
    return keys[key].name;
}

const char *settings_variable(enum settings_key key)
{
    return keys[key].variable;
}

const char *settings_bad_variable(const struct settings *settings)
{
    for (enum settings_key key = 0; key < SETTINGS_KEYS; key++)
        if (settings->values[key].is_bad)
            return keys[key].variable;
    return NULL;
}

const char *settings_fault(const char *variable)
{
    for (enum settings_key key = 0; key < SETTINGS_KEYS; key++)
        if (keys[key].variable != NULL && strcmp(keys[key].variable, variable) == 0)
            return keys[key].wants;
    return "not one word"; /* SHUNT_JOB */
}

const char *settings_text(const struct settings *settings, enum settings_key key)
{
    const char *text = settings->values[key].text;
    return text != NULL ? text : keys[key].built_in;
}

const char *settings_origin(const struct settings *settings, enum settings_key key, char to[PATH_MAX + 32])
{
    const struct settings_value *value = &settings->values[key];
    if (value->source == SETTINGS_BUILT_IN || value->source == SETTINGS_ENVIRONMENT)
        return value->source == SETTINGS_BUILT_IN ? "built-in" : "environment";
    snprintf(to, PATH_MAX + 32, "%s:%u", settings->files[value->source - 1], value->line);
    return to;
}

/* What is the user's alone, as the XDG base directory specification says. */
bool settings_log_dir(const struct settings *settings, char *const environment[], char to[PATH_MAX])
{
    const char *set = settings->values[SETTINGS_LOG_DIR].text, *base = config_value(environment, "XDG_STATE_HOME", "");
    const char *home = config_value(environment, "HOME", "");
    const char *top = set != NULL ? set : *base == '/' ? base : home;
    const char *rest = set != NULL ? "" : *base == '/' ? "/shunt" : "/.local/state/shunt";
    return *top == '/' && snprintf(to, PATH_MAX, "%s%s", top, rest) < PATH_MAX;
}

bool settings_are_off(const struct settings *settings)
{
    return strcmp(settings_text(settings, SETTINGS_ENABLED), "no") == 0;
}

const char *settings_off_by(const struct settings *settings, char to[PATH_MAX + 64])
{
    char origin[PATH_MAX + 32];
    if (settings->values[SETTINGS_ENABLED].source == SETTINGS_ENVIRONMENT)
        snprintf(to, PATH_MAX + 64, "%s says 'no'", settings_variable(SETTINGS_ENABLED));
    else
        snprintf(to, PATH_MAX + 64, "%s says '%s = no'", settings_origin(settings, SETTINGS_ENABLED, origin),
                 settings_name(SETTINGS_ENABLED));
    return to;
}

/* Roots. */

/* Is `path` that directory, or below it? */
static bool settings_is_within(const char *path, const char *directory)
{
    const size_t length = strcmp(directory, "/") == 0 ? 0 : strlen(directory);
    return strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* Does one of these directories hold the root, or, if `both`, the root one of them? Symbolic links on their paths are followed.
 */
static bool settings_list_meets(const char *list, const char *root, bool both)
{
    char path[PATH_MAX], real[PATH_MAX];
    while (*list != '\0') {
        const size_t length = strcspn(list, ":");
        snprintf(path, sizeof path, "%.*s", (int)(length < PATH_MAX ? length : PATH_MAX - 1), list);
        const char *directory = realpath(path, real) != NULL ? real : path;
        if (settings_is_within(root, directory) || (both && settings_is_within(directory, root)))
            return true;
        list += length + (list[length] == ':');
    }
    return false;
}

bool settings_allow_root(const struct settings *settings, const char *root, enum settings_key *which)
{
    *which = SETTINGS_ALLOWED_ROOTS;
    if (!settings_list_meets(settings_text(settings, *which), root, false))
        return false;
    *which = SETTINGS_FORBIDDEN_ROOTS;
    return !settings_list_meets(settings_text(settings, *which), root, true);
}
