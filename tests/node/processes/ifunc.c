/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* ifunc DIRECTORY: which of two functions is called is decided before any constructor has run, by a resolver
 * that looks at a file, as some ask /proc what the processor can do. Linked with early.c. */

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int early_answer(void);

static int with_file(void)
{
    return 1;
}

static int without_file(void)
{
    return 0;
}

__attribute__((used)) static int (*ifunc_resolve(void))(void)
{
    return access("/proc/self/exe", F_OK) == 0 ? with_file : without_file;
}

static int ifunc_chosen(void) __attribute__((ifunc("ifunc_resolve")));

int main(int argc, char **argv)
{
    struct stat st;
    if (argc != 2 || chdir(argv[1]) != 0)
        return 2;
    printf("chosen: %d, early: %d\n", ifunc_chosen(), early_answer());
    printf("kept: %d, early.1: %d\n", stat("kept", &st), stat("early.1", &st));
    return 0;
}
