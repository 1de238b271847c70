/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* home_of DIRECTORY MEMBERS NAME...: which of the members of a session, all of them homes, is home of each name in the
 * directory; of the empty name: which rules the directory. A line for each name. MEMBERS is N, for 1 to N, or their numbers
 * with commas. */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "home/route.h"

#define MEMBERS_MAX 64

/* How many they are, 0: that is not what it says. */
static uint16_t home_of_members(char *text, uint16_t members[MEMBERS_MAX])
{
    uint16_t count = 0;
    const bool listed = strchr(text, ',') != NULL;
    const int all = listed ? 0 : atoi(text);
    for (char *one = strtok(text, ","); listed && one != NULL && count < MEMBERS_MAX; one = strtok(NULL, ","))
        members[count++] = (uint16_t)atoi(one);
    for (int i = 0; i < all && count < MEMBERS_MAX; i++)
        members[count++] = (uint16_t)(i + 1);
    return count;
}

int main(int argc, char *argv[])
{
    uint16_t members[MEMBERS_MAX], count = argc > 3 ? home_of_members(argv[2], members) : 0;
    struct statx stat;
    if (count == 0 || sys_statx(AT_FDCWD, argv[1], 0, STATX_INO | STATX_BTIME, &stat) != 0) {
        fprintf(stderr, "home_of DIRECTORY MEMBERS NAME...\n");
        return 2;
    }
    for (int i = 3; i < argc; i++) {
        uint64_t hash = argv[i][0] != '\0' ? record_hash(argv[i], strlen(argv[i])) : 0;
        uint32_t shard = record_shard(dirid_of(&stat), hash);
        printf("%u\n", route_rendezvous(shard, members, count));
    }
    return 0;
}
