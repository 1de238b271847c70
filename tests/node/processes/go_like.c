/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* go_like: a dynamic program with the note of Go's compiler, which makes system calls by itself and through libc. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"

__asm__(
    ".pushsection .note.go.buildid,\"a\",%note\n.balign 4\n.long 4, 4, 4\n.asciz \"Go\"\n.byte 0\n.asciz \"one\"\n.popsection");

int main(void)
{
    struct stat st;
    const int made = (int)SYS4(SYS_openat, AT_FDCWD, "made", O_CREAT | O_EXCL | O_WRONLY, 0666);
    printf("raw create %d, write %ld\n", made >= 0, (long)write(made, "text", 4));
    const int known = stat("made", &st);
    printf("stat %d, size %ld\n", known, known == 0 ? (long)st.st_size : -1);
    printf("create %d, again by itself %ld\n", open("second", O_CREAT | O_EXCL | O_WRONLY, 0666) >= 0,
           SYS4(SYS_openat, AT_FDCWD, "second", O_CREAT | O_EXCL | O_WRONLY, 0666));
    printf("raw rename %ld, access %d\n", SYS5(SYS_renameat2, AT_FDCWD, "made", AT_FDCWD, "second", 0), access("made", F_OK));
    printf("unlink %d, raw %ld\n", unlink("second"), SYS3(SYS_unlinkat, AT_FDCWD, "second", 0));
    return access("hot", R_OK);
}
