/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Starting programs. The kernel and the loader read a program, its interpreter and its neighbours by
 * themselves, so a file that is executed or loaded is moved to the trunk first: then every path means
 * natively what it means here. The shim goes along: an environment without it gets it back, on the stack
 * (this may be a vfork child). */

#include <alloca.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"
#include "shim/door.h"

static void promote_one(int at, const char *path)
{
    struct target t;
    if (target_find(&t, at, path, TARGET_FOLLOW | TARGET_ALIAS) == TARGET_HOT)
        operate_promote(&t); /* if it fails the program is not found, and the caller hears of it */
}

#define LINE_MAX_OF_KERNEL 256
#define INTERPRETERS_MAX 5 /* the kernel's depth of scripts that interpret scripts */

/* The interpreter that a script's first line names; false if there is none. */
static bool interpreter_of(int at, const char *path, char line[LINE_MAX_OF_KERNEL + 1])
{
    struct statx stat;
    if (path == NULL || sys_statx(at, path, 0, STATX_TYPE, &stat) != 0 || !S_ISREG(stat.stx_mode))
        return false;
    int fd = sys_openat(at, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    long length = SYS3(SYS_read, fd, line, LINE_MAX_OF_KERNEL);
    sys_close(fd);
    line[length > 0 ? length : 0] = '\0';
    if (strncmp(line, "#!", 2) != 0)
        return false;
    size_t start = 2 + strspn(line + 2, " \t"), end = start + strcspn(line + start, " \t\n");
    memmove(line, line + start, end - start);
    line[end - start] = '\0';
    return end > start;
}

/* The kernel looks for a script's interpreter by itself, too. */
static void promote(int at, const char *path)
{
    char lines[2][LINE_MAX_OF_KERNEL + 1];
    int saved = errno;
    if (!process_has_roots())
        return;
    promote_one(at, path);
    for (int i = 0; i < INTERPRETERS_MAX && interpreter_of(at, path, lines[i % 2]); i++) {
        at = AT_FDCWD;
        path = lines[i % 2];
        promote_one(at, path);
    }
    errno = saved;
}

/* execvp looks along PATH: each directory's candidate that is in a branch is moved; those after the first
 * that is found as well, which does no harm. */
static void promote_along_path(const char *file)
{
    char candidate[PATH_MAX];
    const char *path = config_value(environ, "PATH", "/bin:/usr/bin"); /* the default is execvp's */
    if (!process_has_roots())
        return;
    if (strchr(file, '/') != NULL) {
        promote(AT_FDCWD, file);
        return;
    }
    for (const char *at = path; at != NULL; at = *at == ':' ? at + 1 : NULL) {
        const char *end = strchrnul(at, ':');
        struct text text;
        text_init(&text, candidate, sizeof candidate);
        text_bytes(&text, at, (size_t)(end - at));
        text_add(&text, end > at ? "/" : "");
        text_add(&text, file);
        if (text_ok(&text))
            promote(AT_FDCWD, candidate);
        at = end;
    }
}

/* What a child must have in its environment. The first is LD_PRELOAD: a value of the program's own stays, and
 * the shim's library goes behind it (a sanitizer's must come first). */
#define CARRIED 4
#define LIBRARY "libshunt_preload.so"
static const char *const carried[CARRIED] = {"LD_PRELOAD", "SHUNT_ROOT", "SHUNT_NODE", "SHUNT_RUN_DIR"};

static const char *value_of(unsigned which)
{
    switch (which) {
    case 0:
        return process.preload;
    case 1:
        return process.config.roots;
    case 2:
        return process.config.node;
    default:
        return process.config.run_base;
    }
}

/* Where NAME=value stands, or the end of the vector. */
static size_t find(char *const environment[], const char *name)
{
    size_t length = strlen(name), at = 0;
    while (environment != NULL && environment[at] != NULL &&
           !(strncmp(environment[at], name, length) == 0 && environment[at][length] == '='))
        at++;
    return at;
}

static bool has(char *const environment[], size_t at)
{
    return environment != NULL && environment[at] != NULL;
}

/* The shim's own entry in the LD_PRELOAD this program was started with. */
static const char *own_library(size_t *length)
{
    const char *start = process.preload, *library = strstr(process.preload, LIBRARY);
    if (library == NULL)
        return NULL;
    for (const char *at = start; at < library; at++)
        if (*at == ':' || *at == ' ')
            start = at + 1;
    *length = strcspn(start, ": ");
    return start;
}

/* Must this child be given something? Whoever took everything out of the environment did not mean the shim,
 * which he does not know. */
static bool lacks(char *const environment[], unsigned which)
{
    size_t at = find(environment, carried[which]), length;
    if (value_of(which) == NULL)
        return false;
    if (!has(environment, at))
        return true;
    return which == 0 && strstr(environment[at], LIBRARY) == NULL && own_library(&length) != NULL;
}

static size_t count_of(char *const environment[])
{
    size_t count = 0;
    while (environment != NULL && environment[count] != NULL)
        count++;
    return count;
}

static size_t room_for(char *const environment[])
{
    size_t room = 0;
    for (unsigned i = 0; i < CARRIED; i++) {
        size_t at = find(environment, carried[i]);
        if (lacks(environment, i))
            room += strlen(carried[i]) + strlen(value_of(i)) + 3 +
                    (has(environment, at) ? strlen(environment[at]) : 0);
    }
    return room;
}

static char *write_entry(char *to, unsigned which, const char *theirs)
{
    size_t length;
    if (theirs == NULL)
        return stpcpy(stpcpy(stpcpy(to, carried[which]), "="), value_of(which)) + 1;
    const char *library = own_library(&length);
    to = stpcpy(stpcpy(to, theirs), ":");
    memcpy(to, library, length);
    to[length] = '\0';
    return to + length + 1;
}

/* Writes `environment` and what it lacks to `to`; the new texts go to `texts`. */
static char *const *fill(char *const environment[], char **to, char *texts)
{
    size_t count = count_of(environment);
    if (count > 0)
        memcpy(to, environment, count * sizeof *to);
    for (unsigned i = 0; i < CARRIED; i++) {
        size_t at = find(environment, carried[i]);
        if (!lacks(environment, i))
            continue;
        char *entry = texts;
        texts = write_entry(texts, i, has(environment, at) ? environment[at] : NULL);
        to[has(environment, at) ? at : count++] = entry;
    }
    to[count] = NULL;
    return to;
}

/* A macro, since alloca must be the caller's. */
#define CARRY(ENVIRONMENT)                                                                                   \
    (process_has_roots() && room_for(ENVIRONMENT) > 0                                                        \
         ? fill(ENVIRONMENT, alloca((count_of(ENVIRONMENT) + CARRIED + 1) * sizeof(char *)),                 \
                alloca(room_for(ENVIRONMENT)))                                                               \
         : (ENVIRONMENT))

DOOR int execve(const char *path, char *const arguments[], char *const environment[])
{
    DOOR_LAUNDER(path);
    promote(AT_FDCWD, path);
    return real.execve(path, arguments, CARRY(environment));
}

DOOR int execv(const char *path, char *const arguments[])
{
    return execve(path, arguments, environ);
}

DOOR int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    promote_along_path(file);
    return real.execvpe(file, arguments, CARRY(environment));
}

DOOR int execvp(const char *file, char *const arguments[])
{
    return execvpe(file, arguments, environ);
}

DOOR int fexecve(int fd, char *const arguments[], char *const environment[])
{
    process_has_roots();
    return real.fexecve(fd, arguments, CARRY(environment));
}

DOOR int execveat(int at, const char *path, char *const arguments[], char *const environment[], int flags)
{
    DOOR_LAUNDER(path);
    promote(at, path);
    return real.execveat(at, path, arguments, CARRY(environment), flags);
}

/* The arguments of a variadic exec as a vector on the stack. */
static size_t count_arguments(va_list from)
{
    size_t count = 1;
    while (va_arg(from, char *) != NULL)
        count++;
    return count;
}

#define VECTOR(FIRST)                                                                                        \
    va_list more;                                                                                            \
    DOOR_LAUNDER(FIRST);                                                                                     \
    va_start(more, FIRST);                                                                                   \
    size_t count = FIRST != NULL ? count_arguments(more) : 0;                                                \
    va_end(more);                                                                                            \
    char **vector = alloca((count + 1) * sizeof *vector);                                                    \
    va_start(more, FIRST);                                                                                   \
    vector[0] = (char *)FIRST;                                                                               \
    for (size_t i = 1; i <= count; i++)                                                                      \
    vector[i] = va_arg(more, char *)

DOOR int execl(const char *path, const char *first, ...)
{
    VECTOR(first);
    va_end(more);
    return execve(path, vector, environ);
}

DOOR int execle(const char *path, const char *first, ...)
{
    VECTOR(first);
    char *const *environment = va_arg(more, char *const *);
    va_end(more);
    return execve(path, vector, environment);
}

DOOR int execlp(const char *file, const char *first, ...)
{
    VECTOR(first);
    va_end(more);
    return execvpe(file, vector, environ);
}

DOOR int posix_spawn(pid_t *restrict child, const char *restrict path,
                     const posix_spawn_file_actions_t *restrict actions,
                     const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                     char *const environment[restrict])
{
    promote(AT_FDCWD, path);
    return real.posix_spawn(child, path, actions, attributes, arguments, CARRY(environment));
}

DOOR int posix_spawnp(pid_t *restrict child, const char *restrict file,
                      const posix_spawn_file_actions_t *restrict actions,
                      const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                      char *const environment[restrict])
{
    promote_along_path(file);
    return real.posix_spawnp(child, file, actions, attributes, arguments, CARRY(environment));
}

/* The child opens by itself, inside libc: the file is made now if it is to be made, and the action is given
 * the place where it really is. */
DOOR int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *restrict actions, int fd,
                                          const char *restrict path, int flags, mode_t mode)
{
    struct target t;
    char there[PATH_MAX + 8];
    int how =
        target_find(&t, AT_FDCWD, path, TARGET_FOLLOW | (flags & O_CREAT ? TARGET_MAKES : TARGET_ALIAS));
    if (how == TARGET_HOT && !t.found.known && (flags & O_CREAT)) {
        int made = operate_open(&t, O_WRONLY | O_CREAT | O_CLOEXEC | (flags & O_EXCL), mode);
        if (made < 0)
            return -made;
        close(made);
        flags &= ~O_EXCL;
        how = target_find(&t, AT_FDCWD, path, TARGET_FOLLOW | TARGET_ALIAS);
    }
    if (how < 0)
        return -how;
    bool away = how == TARGET_HOT && target_is_away(&t) && target_place(&t) == 0;
    if (away)
        strcpy(there, t.real_path);
    if (how == TARGET_HOT)
        target_done(&t);
    return real.posix_spawn_file_actions_addopen(actions, fd, away ? there : path, flags, mode);
}

/* The call of the real dlopen is the last thing done, so that it is a jump and the loader still sees whose
 * call it was (for RUNPATH and namespaces). */
static void before_dlopen(const char *path)
{
    if (process_has_roots() && path != NULL && strchr(path, '/') != NULL)
        promote(AT_FDCWD, path);
}

DOOR void *dlopen(const char *path, int flags)
{
    before_dlopen(path);
    return real.dlopen(path, flags);
}

DOOR void *dlmopen(Lmid_t space, const char *path, int flags)
{
    before_dlopen(path);
    return real.dlmopen(space, path, flags);
}
