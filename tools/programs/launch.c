/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "programs/launch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/command.h"
#include "config/config.h"
#include "names/names.h"
#include "names/origin.h"
#include "programs/places.h"
#include "request/request.h"
#include "union/layout.h"

#define LIBC "libc.so.6"

static bool launch_is_shim(const char *entry, size_t length)
{
    const size_t name = sizeof LAUNCH_PRELOAD_NAME - 1;
    return length >= name && !memcmp(entry + length - name, LAUNCH_PRELOAD_NAME, name) &&
           (length == name || entry[length - name - 1] == '/');
}

/* The list `old` with `last` after the others and without any other shim; its entries are separated by
 * colons or spaces. A sanitizer insists on being first, and a profiler is to see the paths that the program
 * uses. */
static char *launch_preload_with(const char *old, const char *last)
{
    size_t size = strlen(last) + (old ? strlen(old) : 0) + 3;
    char *made = malloc(size), *at = made;
    if (!made)
        return NULL;
    while (old && *old) {
        size_t length = strcspn(old, ": ");
        if (length > 0 && !launch_is_shim(old, length)) {
            at = stpcpy(at, at > made ? ":" : "");
            at = mempcpy(at, old, length);
        }
        old += length + (old[length] != '\0');
    }
    at = stpcpy(at, at > made && *last ? ":" : "");
    strcpy(at, last);
    return made;
}

static int launch_find_libc(struct dl_phdr_info *object, size_t size, void *found)
{
    const char **path = found;
    if (strstr(object->dlpi_name, "/" LIBC))
        *path = object->dlpi_name;
    return *path != NULL;
}

/* What the loader of this C library puts in the place of $LIB: where libc lies, seen from / or /usr. Empty if
 * that cannot be told. */
static void launch_lib_directory(char to[PATH_MAX])
{
    const char *path = NULL;
    char check[PATH_MAX];
    to[0] = '\0';
    dl_iterate_phdr(launch_find_libc, &path);
    if (!path || strlen(path) >= PATH_MAX)
        return;
    int prefix = strncmp(path, "/usr/", 5) == 0 ? 4 : 0;
    snprintf(check, sizeof check, "%.*s/$LIB/" LIBC, prefix, path);
    void *libc = dlopen(check, RTLD_LAZY | RTLD_NOLOAD); /* it is loaded: does that name mean it? */
    if (!libc)
        return;
    dlclose(libc);
    const char *name = strrchr(path, '/');
    snprintf(to, PATH_MAX, "%.*s", (int)(name - path) - prefix - 1, path + prefix + 1);
}

static bool launch_is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Loaders of other C libraries take $LIB for a name, or for another directory: so they do not find the shim,
 * which they could not load, and the program runs without it. In an installed tree the shim lies below such a
 * directory; in a build directory a link of that name leads to it. */
static void launch_say_lib(char shim[PATH_MAX])
{
    char lib[PATH_MAX], wanted[PATH_MAX], said[PATH_MAX];
    launch_lib_directory(lib);
    int room = snprintf(wanted, sizeof wanted, "/%s/", lib);
    char *at = lib[0] && room < PATH_MAX ? strstr(shim, wanted) : NULL;
    char *name = strrchr(shim, '/');
    if (at) {
        room = snprintf(said, sizeof said, "%.*s/$LIB/%s", (int)(at - shim), shim, at + strlen(wanted));
    } else {
        room = snprintf(wanted, sizeof wanted, "%.*s/%s%s", (int)(name - shim), shim, lib, name);
        if (!lib[0] || room >= PATH_MAX || !launch_is_same_file(wanted, shim))
            return;
        room = snprintf(said, sizeof said, "%.*s/$LIB%s", (int)(name - shim), shim, name);
    }
    if (room < PATH_MAX)
        strcpy(shim, said);
}

static int launch_set(const char *name, char *value)
{
    int error = value ? setenv(name, value, 1) : -1;
    free(value);
    if (error < 0)
        error_report("environment: not enough memory (free some and run this again)");
    return error;
}

void launch_without_shim(void)
{
    char *rest = launch_preload_with(getenv("LD_PRELOAD"), "");
    if (rest && *rest)
        setenv("LD_PRELOAD", rest, 1);
    else
        unsetenv("LD_PRELOAD");
    free(rest);
}

char *launch_preload(const char *others)
{
    char shim[PATH_MAX], helper[PATH_MAX];
    if (places_preload(shim) < 0)
        return NULL;
    if (!places_static(helper))
        unsetenv("SHUNT_STATIC_HELPER"); /* without it there are warnings */
    else if (setenv("SHUNT_STATIC_HELPER", helper, 1) < 0)
        return NULL;
    if (strpbrk(shim, ": ")) {
        error_report("%s: cannot be preloaded, its path has a colon or a space (install shunt elsewhere)", shim);
        return NULL;
    }
    launch_say_lib(shim);
    char *made = launch_preload_with(others, shim);
    if (!made)
        error_report("environment: not enough memory (free some and run this again)");
    return made;
}

int launch_set_root_ids(const struct roots *roots)
{
    char room[PATH_MAX];
    const size_t size = (roots->count + 1) * (PATH_MAX + 128);
    char *ids = malloc(size);
    struct text text;
    text_init(&text, ids, ids ? size : 0);
    for (size_t i = 0; i < roots->count; i++) {
        int fd = sys_openat(AT_FDCWD, roots->paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        text_add(&text, i > 0 ? ":" : "");
        if (fd < 0)
            continue;
        origin_write(&text, fd, room);
        sys_close(fd);
    }
    return launch_set("SHUNT_ROOT_ID", ids);
}

/* Would a program find that daemon by the name of its node and the run directory? */
static bool launch_finds(const struct session_member *member, const char *node)
{
    struct config config;
    config_read(&config, environ);
    const size_t length = strlen(config.run_base);
    return strcmp(member->node, node) == 0 && strncmp(member->run_dir, config.run_base, length) == 0 &&
           member->run_dir[length] == '/';
}

bool launch_has_daemon(const struct session_member *member)
{
    return session_lives(member) == 1 || request_supervisor(member->run_dir) != 0;
}

/* A root of the environment that this command is begun in, which serves it on as well: can its daemon be found still? One that
 * has none here any more is as it was. */
static int launch_must_find(const char *root, const char *node)
{
    struct session session;
    const struct session_member *other = NULL;
    bool found = false;
    if (session_read(root, &session) != 0)
        return 0;
    for (size_t i = 0; i < session.count && !found; i++)
        if (launch_has_daemon(&session.members[i])) {
            other = &session.members[i];
            found = launch_finds(other, node);
        }
    if (!found && other)
        error_report("%s: is served in this environment, by the daemon of node '%s' in %s, which would not be found as node "
                     "'%s' (give --node %s and the same SHUNT_RUN_DIR, or leave that environment)",
                     root, other->node, other->run_dir, node, other->node);
    const bool refused = !found && other;
    session_finish(&session);
    return refused ? -1 : 0;
}

bool launch_is_plain(const char *root)
{
    char own[PATH_MAX];
    struct statx stat;
    const int length = snprintf(own, sizeof own, "%s/" LAYOUT_OWN, root);
    return length < PATH_MAX && sys_statx(AT_FDCWD, own, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == -ENOENT;
}

/* Those of the environment that this command is begun in come after its own, but for what was exported meanwhile. */
static int launch_join_outer(struct roots *all, const char *node)
{
    struct roots outer;
    int error = 0;
    roots_init(&outer);
    roots_served(&outer);
    for (size_t i = 0; i < outer.count && error == 0; i++)
        if (!roots_has(all, outer.paths[i]) && !launch_is_plain(outer.paths[i]))
            error = node && launch_must_find(outer.paths[i], node) < 0 ? -1 : roots_add(all, outer.paths[i]);
    roots_finish(&outer);
    return error;
}

int launch_roots_for(const struct roots *own, const char *node, struct roots *all)
{
    int error = 0;
    roots_init(all);
    for (size_t i = 0; i < own->count && error == 0; i++)
        error = roots_add(all, own->paths[i]);
    if (error == 0 && launch_shim_is_loaded())
        error = launch_join_outer(all, node);
    if (error == 0 && all->count > NAMES_ROOTS) {
        error_report("more than %d roots would be served at once (name fewer, or use a directory further up)", NAMES_ROOTS);
        error = -1;
    }
    return error;
}

static int launch_set_roots(const struct roots *own, const char *node)
{
    struct roots all;
    int error = launch_roots_for(own, node, &all);
    error = error == 0 ? launch_set("SHUNT_ROOT", roots_join(&all)) : error;
    error = error == 0 ? launch_set_root_ids(&all) : error;
    roots_finish(&all);
    return error;
}

int launch_set_environment(const struct roots *roots, const char *node)
{
    char *preload = launch_preload(getenv("LD_PRELOAD"));
    if (!preload || launch_set_roots(roots, node) < 0 || launch_set("LD_PRELOAD", preload) < 0)
        return -1;
    return launch_set("SHUNT_SERVED", strdup("1")) < 0 ? -1 : launch_set("SHUNT_NODE", strdup(node));
}

int launch_exec(const struct roots *roots, const char *node, char **command, bool asks)
{
    size_t count = 0;
    while (command[count])
        count++;
    char **words = launch_set_environment(roots, node) == 0 ? calloc(count + 5, sizeof *words) : NULL;
    if (!words)
        return LAUNCH_NO_SHIM;
    size_t at = 0;
    words[at++] = "shunt";
    words[at++] = LAUNCH_PROVE;
    if (asks)
        words[at++] = "--" LAUNCH_SERVED;
    words[at++] = "--";
    memcpy(words + at, command, count * sizeof *words);
    fflush(NULL);
    SYS3(SYS_execve, "/proc/self/exe", words, environ);
    error_report("/proc/self/exe: cannot be executed (mount /proc)");
    free(words);
    return LAUNCH_NO_SHIM;
}

bool launch_shim_is_loaded(void)
{
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return false;
    while (!found && getline(&line, &size, maps) > 0)
        found = strstr(line, "/" LAUNCH_PRELOAD_NAME) != NULL;
    free(line);
    fclose(maps);
    return found;
}

/* As execvp(3) looks for it, by the system call. */
void launch_natively(char **words)
{
    const char *path = getenv("PATH") ? getenv("PATH") : "/bin:/usr/bin";
    char at[PATH_MAX];
    if (strchr(words[0], '/'))
        SYS3(SYS_execve, words[0], words, environ);
    for (bool is_more = !strchr(words[0], '/'); is_more;) {
        const size_t length = strcspn(path, ":");
        const int size = snprintf(at, sizeof at, "%.*s%s%s", (int)length, path, length > 0 ? "/" : "./", words[0]);
        if (size > 0 && size < (int)sizeof at)
            SYS3(SYS_execve, at, words, environ);
        is_more = path[length] == ':';
        path += length + 1;
    }
    execvp(words[0], words); /* which says why not, and hands a shell what has no `#!` */
}

static int launch_complain_command(const char *command, int error)
{
    bool missing = error == ENOENT || error == ENOTDIR;
    error_report(missing ? "%s: command not found: %s (check its spelling and PATH)"
                         : "%s: cannot be executed: %s (check its type and permissions)",
                 command, strerror(error));
    return missing ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
}

int launch_command(char **words)
{
    execvp(words[0], words);
    return launch_complain_command(words[0], errno);
}
