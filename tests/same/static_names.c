/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* dlsym of the statically linked program (-Wl,--wrap=dlsym): there is no loader to ask for what libc's archive has. */

#include <dlfcn.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);

int __open_2(const char *, int);
int __openat64_2(int, const char *, int);
int __open64(const char *, int, ...);
char *__realpath_chk(const char *, char *, size_t);

/* What libc keeps for old programs, and its archive does not have. */
static int static_xstat(int version, const char *path, struct stat *to)
{
    return stat(path, to);
}

static int static_lxstat(int version, const char *path, struct stat *to)
{
    return lstat(path, to);
}

static int static_fxstatat(int version, int at, const char *path, struct stat *to, int flags)
{
    return fstatat(at, path, to, flags);
}

static int static_xmknod(int version, const char *path, mode_t mode, dev_t *device)
{
    return mknod(path, mode, *device);
}

#define STATIC_OWN(NAME)                                                                                                       \
    {                                                                                                                          \
#NAME, (void *)NAME                                                                                                    \
    }
static const struct {
    const char *name;
    void *function;
} functions[] = {
    STATIC_OWN(__open_2),
    STATIC_OWN(__openat64_2),
    STATIC_OWN(__open64),
    STATIC_OWN(__realpath_chk),
    STATIC_OWN(glob),
    STATIC_OWN(glob64),
    STATIC_OWN(ftw),
    STATIC_OWN(ftw64),
    STATIC_OWN(nftw),
    STATIC_OWN(nftw64),
    STATIC_OWN(fts_open),
    STATIC_OWN(fts_read),
    STATIC_OWN(fts_children),
    STATIC_OWN(fts_set),
    STATIC_OWN(fts_close),
    STATIC_OWN(fts64_open),
    STATIC_OWN(fts64_read),
    STATIC_OWN(fts64_children),
    STATIC_OWN(fts64_set),
    STATIC_OWN(fts64_close),
    {"__xstat", (void *)static_xstat},
    {"__xstat64", (void *)static_xstat},
    {"__lxstat", (void *)static_lxstat},
    {"__lxstat64", (void *)static_lxstat},
    {"__fxstatat", (void *)static_fxstatat},
    {"__xmknod", (void *)static_xmknod},
};

void *__wrap_dlsym(void *handle, const char *name)
{
    for (size_t i = 0; handle == RTLD_DEFAULT && i < sizeof functions / sizeof *functions; i++)
        if (strcmp(name, functions[i].name) == 0)
            return functions[i].function;
    return __real_dlsym(handle, name);
}
