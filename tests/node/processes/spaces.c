/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* spaces PLUGIN [alone]: loads a plug-in into namespaces of their own (dlmopen), where it makes and looks at files at the same
 * time as the program does. With `alone`, the environment has no roots by then. */

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 300, SPACES = 3, TRIES = 40 };

typedef int make_function(const char *prefix, int count);
typedef int see_function(const char *path);

static void *spaces_load(const char *path)
{
    void *space = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    if (space == NULL)
        printf("not loaded\n");
    return space;
}

static void *spaces_make(void *plugin)
{
    make_function *make = (make_function *)dlsym(plugin, "plugin_make");
    char prefix[32];
    snprintf(prefix, sizeof prefix, "d/%p-", plugin);
    return (void *)(long)make(prefix, FILES);
}

static int spaces_count(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static void spaces_together(const char *path)
{
    void *plugins[SPACES], *made;
    pthread_t threads[SPACES];
    for (int i = 0; i < SPACES; i++)
        if ((plugins[i] = spaces_load(path)) == NULL)
            exit(1);
    for (int i = 0; i < SPACES; i++)
        pthread_create(&threads[i], NULL, spaces_make, plugins[i]);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "d/own-%d", i);
        close(open(name, O_CREAT | O_EXCL | O_WRONLY, 0644));
    }
    for (int i = 0; i < SPACES; i++) {
        pthread_join(threads[i], &made);
        printf("made %ld\n", (long)made);
    }
    printf("names %d\n", spaces_count("d"));
    see_function *see = (see_function *)dlsym(plugins[0], "plugin_see");
    printf("seen %d %d\n", see("d/own-7"), see("d/none"));
    unlink("d/own-7");
    printf("seen %d\n", see("d/own-7"));
}

/* What is not there does not use up namespaces. */
static void spaces_tried(const char *path)
{
    int failed = 0;
    for (int i = 0; i < TRIES; i++)
        failed += dlmopen(LM_ID_NEWLM, "./no-such.so", RTLD_NOW) == NULL;
    const char *why = dlerror();
    printf("failed %d: %s\n", failed, why != NULL && strstr(why, "no-such.so") != NULL ? "not there" : why);
    for (int i = 0; i < TRIES; i++) {
        void *plugin = spaces_load(path);
        if (plugin == NULL || dlclose(plugin) != 0)
            exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || mkdir("d", 0755) != 0)
        return 2;
    close(open("d/f", O_CREAT | O_WRONLY, 0644));
    if (argc > 2) {
        unsetenv("SHUNT_ROOT");
        void *plugin = spaces_load(argv[1]);
        return plugin == NULL ? 1 : !((see_function *)dlsym(plugin, "plugin_see"))("d/none");
    }
    spaces_tried(argv[1]);
    spaces_together(argv[1]);
    return 0;
}
