/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <elf.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"
#include "verb.h"
#include "verbs.h"

#define PRELOAD_NAME "libshunt_preload.so"
#define HEADERS_MAX 64

static bool shim_is_loaded(void)
{
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return false;
    while (!found && getline(&line, &size, maps) > 0)
        found = strstr(line, "/" PRELOAD_NAME) != NULL;
    free(line);
    fclose(maps);
    return found;
}

/* An executable without an interpreter never meets the dynamic loader, nor what it preloads. Only of this
 * machine's own word size: others cannot load the shim anyway. */
static bool is_static(int fd)
{
    Elf64_Ehdr head;
    Elf64_Phdr headers[HEADERS_MAX];
    if (pread(fd, &head, sizeof head, 0) != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof *headers ||
        head.e_phnum > HEADERS_MAX)
        return head.e_ident[EI_CLASS] != ELFCLASS64;
    ssize_t size = (ssize_t)(head.e_phnum * sizeof *headers);
    if (pread(fd, headers, (size_t)size, (off_t)head.e_phoff) != size)
        return false;
    for (size_t i = 0; i < head.e_phnum; i++)
        if (headers[i].p_type == PT_INTERP)
            return false;
    return true;
}

static void warn(const char *path)
{
    struct stat stat;
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (is_static(fileno(file)))
        complain("warning: %s is statically linked or not 64-bit, so what it does with files will not be "
                 "seen by shunt",
                 path);
    else if (fstat(fileno(file), &stat) == 0 && ((stat.st_mode & S_ISUID && stat.st_uid != getuid()) ||
                                                 (stat.st_mode & S_ISGID && stat.st_gid != getgid())))
        complain(
            "warning: %s changes its user or group, so what it does with files will not be seen by shunt",
            path);
    fclose(file);
}

/* As execvp finds it. False: nothing of that name may be executed. */
static bool on_path(const char *command, char to[PATH_MAX])
{
    const char *path = getenv("PATH");
    if (strchr(command, '/')) {
        snprintf(to, PATH_MAX, "%s", command);
        return true;
    }
    for (path = path ? path : "/bin:/usr/bin"; path;
         path = strchr(path, ':') ? strchr(path, ':') + 1 : NULL) {
        int length = (int)strcspn(path, ":");
        int made = snprintf(to, PATH_MAX, "%.*s%s%s", length, path, length > 0 ? "/" : "./", command);
        if (made < PATH_MAX && access(to, X_OK) == 0)
            return true;
    }
    return false;
}

static int complain_command(const char *command, int error)
{
    bool missing = error == ENOENT || error == ENOTDIR;
    complain(missing ? "%s: command not found (%s): check its spelling and PATH"
                     : "%s: cannot be executed (%s): check what it is and its permissions",
             command, strerror(error));
    return missing ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
}

int verb_prove(const struct verb *verb, int argc, char **argv)
{
    char path[PATH_MAX];
    int end = verb_option(verb, argc, argv);
    if (end != VERB_END)
        return verb_status(end);
    if (optind == argc)
        return complain_usage(verb, "give a command");
    if (!shim_is_loaded()) {
        complain("the dynamic loader did not load %s, so nothing would go through shunt: check that this "
                 "machine can load "
                 "it (`ldd` it) and that nothing forbids LD_PRELOAD",
                 PRELOAD_NAME);
        return LAUNCH_NO_SHIM;
    }
    if (on_path(argv[optind], path))
        warn(path);
    execvp(argv[optind], argv + optind);
    return complain_command(argv[optind], errno);
}
