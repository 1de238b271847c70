/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* small PATH: calls of a thread that has as little stack as a thread may have, and an execve with many variables that carry
 * nothing of the preload library. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLES 6000

static char *variables[VARIABLES + 1];
static char resolved[PATH_MAX];
static struct stat seen;

static void small_say(const char *what, long result)
{
    printf("%s %ld %d\n", what, result, result < 0 ? errno : 0);
}

static void small_list(void)
{
    DIR *stream = opendir(".");
    long count = 0;
    while (stream != NULL && readdir(stream) != NULL)
        count++;
    small_say("names", count);
    closedir(stream);
}

static void small_start(void)
{
    pid_t child;
    int status = -1;
    static char *words[] = {"true", NULL};
    small_say("spawn", posix_spawnp(&child, "true", NULL, NULL, words, variables));
    waitpid(child, &status, 0);
    small_say("status", status);
    small_say("execve", execve("absent", words, variables));
    child = vfork();
    if (child == 0) {
        execve("/bin/true", words, variables);
        _exit(9);
    }
    waitpid(child, &status, 0);
    small_say("status", status);
}

static void *small_calls(void *nothing)
{
    static char made[] = "made.XXXXXX";
    small_say("open", close(open("a", O_CREAT | O_WRONLY, 0600)));
    small_say("realpath", realpath("a", resolved) == resolved ? (long)strlen(strrchr(resolved, '/')) : -1);
    small_say("realpath", realpath("absent/a", resolved) == NULL ? -1 : 0);
    small_say("stat", stat("a", &seen));
    small_say("stat", stat("a/b/c", &seen));
    small_say("symlink", symlink("a/b", "l"));
    small_say("symlink", symlink("l/c", "m"));
    small_say("stat", stat("m/d", &seen));
    small_say("rename", rename("a", "b"));
    small_say("link", link("b", "c"));
    small_say("chmod", chmod("c", 0644));
    small_say("mkstemp", close(mkstemp(made)));
    small_list();
    small_say("unlink", unlink("b") + unlink("c") + unlink("l") + unlink("m") + unlink(made));
    small_say("mkdir", mkdir("d", 0700));
    small_say("rename", rename("d", "e"));
    small_say("rmdir", rmdir("e"));
    small_start();
    return NULL;
}

int main(int count, char *arguments[])
{
    pthread_t thread;
    pthread_attr_t attributes;
    if (count < 2 || chdir(arguments[1]) != 0)
        return 1;
    for (int i = 0; i < VARIABLES; i++)
        if (asprintf(&variables[i], "VARIABLE_%d=value", i) < 0)
            return 2;
    setvbuf(stdout, malloc(8192), _IOFBF, 8192);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN));
    if (pthread_create(&thread, &attributes, small_calls, NULL) != 0)
        return 3;
    pthread_join(thread, NULL);
    return 0;
}
