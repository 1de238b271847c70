/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The home of a daemon that a test has made in parts. */

#include <criterion/criterion.h>

#include "home/home.h"
#include "shuntd.h"

/* With what the daemon has by now: an index, and perhaps a channel. home_destroy gives it back. */
static inline void home_fixture_create(struct shuntd *shuntd)
{
    const struct home_uses uses = {.index = shuntd->index,
                                   .listen = shuntd->listen,
                                   .now = &shuntd->now,
                                   .blocked = &shuntd->counts.blocked,
                                   .waited = &shuntd->counts.waited};
    cr_assert_eq(home_create(&shuntd->home, &uses), 0);
}
