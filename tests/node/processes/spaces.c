/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* spaces PLUGIN [STORY]: loads a plug-in into namespaces of their own (dlmopen), where it makes and looks at files at the same
 * time as the program does, or one of the stories below happens. */

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "few_calls.h"

enum { FILES = 300, SPACES = 3, TRIES = 40 };

typedef int make_function(const char *prefix, int count);
typedef int see_function(const char *path);
typedef int become_function(int user);
typedef int restrict_function(void);

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

static int spaces_use(const char *path)
{
    spaces_tried(path);
    spaces_together(path);
    return 0;
}

/* The environment has no roots by then. */
static int spaces_alone(const char *path)
{
    unsetenv("SHUNT_ROOT");
    void *plugin = spaces_load(path);
    return plugin == NULL ? 1 : !((see_function *)dlsym(plugin, "plugin_see"))("d/none");
}

/* The program goes to another directory and the plug-in looks, and the other way round, for each of them not the first time. */
static int spaces_go(const char *path)
{
    char here[4096];
    void *plugin = spaces_load(path);
    if (plugin == NULL || getcwd(here, sizeof here) == NULL)
        return 1;
    see_function *see = (see_function *)dlsym(plugin, "plugin_see"), *go = (see_function *)dlsym(plugin, "plugin_go");
    for (int i = 0; i < TRIES; i++) {
        int wrong = chdir("/") != 0 || see("d/f") == 0 || access("d/f", F_OK) == 0;
        wrong += chdir(here) != 0 || see("d/f") != 0 || go("/") != 0 || access("d/f", F_OK) == 0;
        wrong += go(here) != 0 || access("d/f", F_OK) != 0 || see("d/f") != 0;
        if (wrong != 0)
            printf("wrong in round %d\n", i);
    }
    puts("gone to and fro");
    return 0;
}

static int spaces_told_to_become(const char *path, int looks_before)
{
    void *plugin = spaces_load(path);
    if (plugin == NULL)
        return 1;
    see_function *see = (see_function *)dlsym(plugin, "plugin_see");
    const int before = looks_before ? see("d/f") : 0;
    const int became = looks_before ? ((become_function *)dlsym(plugin, "plugin_become"))(65534) : setuid(65534);
    printf("%d %d %d %d\n", before, became, see("d/f"), access("d/f", F_OK));
    return 0;
}

/* Both have used the root when the plug-in becomes another user. */
static int spaces_become(const char *path)
{
    return spaces_told_to_become(path, 1);
}

/* The program becomes one, and the plug-in has not used it. */
static int spaces_become_at_once(const char *path)
{
    return spaces_told_to_become(path, 0);
}

static int spaces_restricted(see_function *see, see_function *also, restrict_function *begin)
{
    if (begin() != 0)
        return 1;
    printf("%d %d %d", see("d/f"), see("../no-such-file"), see("d/none"));
    printf(" %d %d %d\n", also("d/f"), also("../no-such-file"), also("d/none"));
    return 0;
}

static int spaces_see(const char *path)
{
    return access(path, F_OK);
}

static int spaces_restrict(const char *path)
{
    void *plugin = spaces_load(path);
    return plugin == NULL ? 1 : spaces_restricted((see_function *)dlsym(plugin, "plugin_see"), spaces_see, few_calls_begin);
}

/* The filter is the plug-in's, and another one looks, too. */
static int spaces_be_restricted(const char *path)
{
    void *plugin = spaces_load(path), *other = spaces_load(path);
    if (plugin == NULL || other == NULL)
        return 1;
    return spaces_restricted((see_function *)dlsym(other, "plugin_see"), spaces_see,
                             (restrict_function *)dlsym(plugin, "plugin_restrict"));
}

static const struct story {
    const char *name;
    int (*tell)(const char *path);
} stories[] = {{"use", spaces_use},
               {"alone", spaces_alone},
               {"go", spaces_go},
               {"become", spaces_become},
               {"become at once", spaces_become_at_once},
               {"restrict", spaces_restrict},
               {"be restricted", spaces_be_restricted}};

int main(int argc, char **argv)
{
    const char *name = argc > 2 ? argv[2] : "use";
    if (argc < 2 || mkdir("d", 0755) != 0)
        return 2;
    close(open("d/f", O_CREAT | O_WRONLY, 0644));
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++)
        if (strcmp(stories[i].name, name) == 0)
            return stories[i].tell(argv[1]);
    return 2;
}
