/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* unseen [PATH...]: a filter, to be built in the ways that keep a library from being preloaded. Turns its
 * standard input to capitals, and says of each path whether it is there. */

#include <ctype.h>
#include <stdio.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
    struct stat st;
    for (int i = 1; i < argc; i++)
        printf("%s\n", stat(argv[i], &st) == 0 ? "there" : "not there");
    for (int c; (c = getchar()) != EOF;)
        putchar(toupper(c));
    return 0;
}
