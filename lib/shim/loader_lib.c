/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
/* Run by meson: prints what the loader puts in the place of $LIB, which is where libc lies, seen from / or /usr: lib, lib64 or
 * lib/x86_64-linux-gnu. A libc of another place (Nix, Spack's glibc) has no such directory: the exit status is 1. */
#include <link.h>
#include <stdio.h>
#include <string.h>

static int loader_lib_look(struct dl_phdr_info *object, size_t size, void *printed)
{
    const char *begin = object->dlpi_name, *end = strstr(begin, "/libc.so.6");
    if (end == NULL)
        return 0;
    begin += strncmp(begin, "/usr/", 5) == 0 ? 5 : 1;
    return strncmp(begin, "lib", 3) == 0 && end > begin ? printf("%.*s", (int)(end - begin), begin) : -1;
}

int main(void)
{
    return dl_iterate_phdr(loader_lib_look, NULL) > 0 ? 0 : 1;
}
