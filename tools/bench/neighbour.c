/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/neighbour.h"

#include <errno.h>
#include <stdlib.h>

struct seat {
    uint32_t place, node, rank; /* the place on the node */
};

static int neighbour_compare_seats(const void *a, const void *b)
{
    const struct seat *one = a, *other = b;
    if (one->place != other->place)
        return one->place < other->place ? -1 : 1;
    return one->node < other->node ? -1 : one->node > other->node;
}

int neighbour_of(const uint32_t *node, uint32_t count, uint32_t *next)
{
    struct seat *seats = calloc(count, sizeof *seats);
    if (!seats)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        seats[i] = (struct seat){0, node[i], i};
        for (uint32_t j = 0; j < i; j++)
            seats[i].place += node[j] == node[i];
    }
    qsort(seats, count, sizeof *seats, neighbour_compare_seats);
    for (uint32_t i = 0; i < count; i++)
        next[seats[i].rank] = seats[(i + 1) % count].rank;
    free(seats);
    return 0;
}
