/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <criterion/criterion.h>

#include "request/lease_clock.h"

#define LEASE (1000 * CLOCK_SECOND)
#define FILES (1764000000 * CLOCK_SECOND) /* when the machine was started */

static struct lease_clock lease_clock_learnt(uint64_t ahead)
{
    struct lease_clock lease = {0};
    lease_clock_learn(&lease, ahead, 5 * CLOCK_SECOND, FILES + 5 * CLOCK_SECOND);
    return lease;
}

static bool lease_clock_goes_on(const struct lease_clock *lease, uint64_t now)
{
    return lease_clock_has(lease, LEASE, now, FILES + now - CLOCK_MILLISECOND);
}

Test(lease_clock, nothing_is_known_at_first)
{
    const struct lease_clock lease = {0};
    cr_assert(!lease_clock_is_known(&lease, 5, 5));
    cr_assert(!lease_clock_has(&lease, LEASE, 5, 5));
}

Test(lease_clock, a_lease_of_the_same_clock_ends_when_it_says)
{
    const struct lease_clock lease = lease_clock_learnt(0);
    cr_assert(lease_clock_goes_on(&lease, LEASE - CLOCK_SECOND));
    cr_assert(!lease_clock_goes_on(&lease, LEASE - CLOCK_MILLISECOND), "the clocks are compared roughly");
    cr_assert(!lease_clock_goes_on(&lease, LEASE + CLOCK_SECOND));
}

Test(lease_clock, a_clock_that_is_behind_or_ahead_is_reckoned_with)
{
    const struct lease_clock behind = lease_clock_learnt(100 * CLOCK_SECOND), ahead = lease_clock_learnt(-100 * CLOCK_SECOND);
    cr_assert(lease_clock_goes_on(&behind, LEASE - 101 * CLOCK_SECOND));
    cr_assert(!lease_clock_goes_on(&behind, LEASE - 100 * CLOCK_SECOND));
    cr_assert(lease_clock_goes_on(&ahead, LEASE + 99 * CLOCK_SECOND));
    cr_assert(!lease_clock_goes_on(&ahead, LEASE + 100 * CLOCK_SECOND));
}

Test(lease_clock, who_enters_another_namespace_is_noticed)
{
    const struct lease_clock lease = lease_clock_learnt(0);
    const uint64_t now = 6 * CLOCK_SECOND;
    cr_assert(lease_clock_is_known(&lease, now, FILES + now));
    cr_assert(lease_clock_is_known(&lease, now, FILES + now - 10 * CLOCK_MILLISECOND), "the clock of files lags");
    const uint64_t shifts[] = {CLOCK_SECOND / 10, -CLOCK_SECOND / 10, 100000 * CLOCK_SECOND, -100000 * CLOCK_SECOND};
    for (unsigned i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        cr_assert(!lease_clock_is_known(&lease, now + shifts[i], FILES + now));
        cr_assert(!lease_clock_has(&lease, LEASE, now + shifts[i], FILES + now));
    }
}
