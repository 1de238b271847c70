/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* home_of DIRECTORY MEMBERS NAME...: which of the members 1 to MEMBERS of a session, all of them homes, is home of each
 * name in the directory; of the empty name: which rules the directory. A line for each name. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "home/route.h"

int main(int argc, char *argv[])
{
    uint16_t members[64], count = argc > 3 ? (uint16_t)atoi(argv[2]) : 0;
    struct statx stat;
    if (count == 0 || count > 64 || sys_statx(AT_FDCWD, argv[1], 0, STATX_INO | STATX_BTIME, &stat) != 0) {
        fprintf(stderr, "home_of DIRECTORY MEMBERS NAME...\n");
        return 2;
    }
    for (uint16_t i = 0; i < count; i++)
        members[i] = (uint16_t)(i + 1);
    for (int i = 3; i < argc; i++) {
        uint64_t hash = argv[i][0] != '\0' ? record_hash(argv[i], strlen(argv[i])) : 0;
        uint32_t shard = record_shard(dirid_of(&stat), hash);
        printf("%u\n", route_rendezvous(shard, members, count));
    }
    return 0;
}
