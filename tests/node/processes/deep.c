/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* deep DIRECTORY PLUGIN...: loads plug-ins with RTLD_DEEPBIND, which then find libc before what is preloaded, and has them make
 * files and look at some. */

#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 20, TIMES = 2 };

typedef int make_function(const char *prefix, int count);
typedef int see_function(const char *path);

static int deep_use(const char *path, int number)
{
    char prefix[32], last[48];
    struct stat st;
    void *plugin = dlopen(path, RTLD_LAZY | RTLD_DEEPBIND);
    if (plugin == NULL) {
        printf("not loaded: %s\n", dlerror());
        return 1;
    }
    printf("an error is left: %d\n", dlerror() != NULL);
    make_function *make = (make_function *)dlsym(plugin, "plugin_make");
    see_function *see = (see_function *)dlsym(plugin, "plugin_see");
    snprintf(prefix, sizeof prefix, "of-%d-", number);
    snprintf(last, sizeof last, "%s%d", prefix, FILES - 1);
    printf("made %d\n", make(prefix, FILES));
    printf("made again %d\n", make(prefix, FILES));
    printf("seen %d %d, by the program %d\n", see("kept"), see("none"), stat(last, &st));
    unlink(last);
    printf("seen %d\n", see(last));
    return dlclose(plugin);
}

int main(int count, char **arguments)
{
    if (count < 3 || chdir(arguments[1]) != 0)
        return 2;
    for (int i = 0; i < TIMES * (count - 2); i++)
        if (deep_use(arguments[2 + i / TIMES], i) != 0)
            return 3;
    return 0;
}
