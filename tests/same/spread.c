/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "spread.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"

#define NODES_MAX 16

/* What goes from hand to hand: the process that has it works. */
struct baton {
    unsigned generation; /* how often the fixture was made or repaired */
    enum spread_after after;
    long result;
};

static struct {
    unsigned me, count; /* count 0: alone */
    int take[NODES_MAX], give[NODES_MAX];
    bool holds;
    struct baton baton;
    unsigned seen; /* the generation that this process knows */
    unsigned cases;
} spread;

int spread_join(const char *ring)
{
    char *end;
    spread.me = (unsigned)strtoul(ring, &end, 10);
    if (*end != '/')
        return -1;
    spread.count = (unsigned)strtoul(end + 1, &end, 10);
    if (spread.count < 2 || spread.count > NODES_MAX || spread.me >= spread.count)
        return -1;
    for (unsigned i = 0; i < 2 * spread.count; i++) {
        if (*end != (i == 0 ? ':' : ','))
            return -1;
        *(i % 2 == 0 ? &spread.take[i / 2] : &spread.give[i / 2]) = (int)strtol(end + 1, &end, 10);
    }
    return *end == '\0' ? 0 : -1;
}

bool spread_is_on(void)
{
    return spread.count > 0;
}

unsigned spread_cases(void)
{
    return spread.cases;
}

static void spread_take(void)
{
    if (!spread.holds && read(spread.take[spread.me], &spread.baton, sizeof spread.baton) != (ssize_t)sizeof spread.baton)
        give_up("was never told to go on after", "another process");
    spread.holds = true;
}

/* What was printed goes out first, since the next one prints to the same place. */
static void spread_give(unsigned to)
{
    fflush(stdout);
    spread.holds = to == spread.me;
    if (!spread.holds && write(spread.give[to], &spread.baton, sizeof spread.baton) != (ssize_t)sizeof spread.baton)
        give_up("cannot tell to go on", "another process");
}

static unsigned caller_of(unsigned number)
{
    return number % spread.count;
}

/* Never the caller; each of the others by turns. */
static unsigned looker_of(unsigned number)
{
    return (number + 1 + number / spread.count % (spread.count - 1)) % spread.count;
}

void spread_begin(void)
{
    spread.holds = spread.me == 0;
    if (spread.me == 0)
        fixture_start();
    if (!spread_is_on())
        return;
    spread_take();
    fixture_see();
    spread_give(spread.me + 1 < spread.count ? spread.me + 1 : looker_of(0));
}

bool spread_end(void)
{
    if (!spread_is_on())
        return true;
    if (spread.me == looker_of(spread.cases)) {
        spread_take();
        spread_give(0);
    }
    if (spread.me == 0)
        spread_take();
    return spread.me == 0;
}

void spread_look(enum spread_after after, long result)
{
    if (after == SPREAD_NOTHING || (!fixture_tell_changes() && result < 0))
        return;
    if (after == SPREAD_REBUILD)
        fixture_rebuild();
    else
        fixture_repair();
    spread.seen = ++spread.baton.generation;
}

static void look_at(unsigned number)
{
    spread_take();
    if (spread.seen != spread.baton.generation)
        fixture_see();
    spread.seen = spread.baton.generation;
    spread_give(caller_of(number));
    spread_take();
    spread_look(spread.baton.after, spread.baton.result);
    spread_give(looker_of(number + 1));
}

bool spread_case(void)
{
    unsigned number = spread.cases++;
    if (looker_of(number) == spread.me)
        look_at(number);
    if (caller_of(number) != spread.me)
        return false;
    spread_take();
    return true;
}

void spread_told(enum spread_after after, long result)
{
    spread.baton.after = after;
    spread.baton.result = result;
    spread_give(looker_of(spread.cases - 1));
}
