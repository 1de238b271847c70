/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "recorder/record_places.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "leaks.h"

#define MANY 1000

static struct record_places *places;
static size_t asked;

static void place_see(size_t i, const char *where)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%zu", where, i);
    cr_assert_eq(record_places_see(places, (struct dirid){i + 1, 7}, path), 0);
}

/* Those with an even number are gone. */
static bool is_even_gone(void *context, struct dirid id, const char *path)
{
    const char *where = context;
    cr_assert_eq(strncmp(path, where, strlen(where)), 0, "%s", path);
    asked++;
    return id.ino % 2 == 0;
}

static size_t count_asked(const char *where)
{
    asked = 0;
    record_places_sweep(places, is_even_gone, (void *)where);
    return asked;
}

Test(record_places, what_was_not_seen_is_asked_about_until_it_is_gone)
{
    places = record_places_create();
    cr_assert_not_null(places);
    record_places_begin(places);
    for (size_t i = 0; i < MANY; i++)
        place_see(i, "/old");
    cr_assert_eq(count_asked("/old"), 0, "all were seen");
    record_places_begin(places);
    for (size_t i = 0; i < 10; i++)
        place_see(i, "/moved");
    cr_assert_eq(count_asked("/old"), MANY - 10);
    cr_assert_eq(count_asked("/old"), (MANY - 10) / 2, "half of them were gone");
    record_places_begin(places);
    for (size_t i = 10; i < MANY; i++)
        place_see(i, "/old");
    cr_assert_eq(count_asked("/moved"), 10, "and where they are now is known");
    record_places_destroy(places);
    record_places_destroy(NULL);
    leaks_none();
}
