# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Programs that lock their memory, under a limit that is enough for them: what shunt maps must not count."""

import pytest
from conftest import IS_SUPERUSER

CURRENT, FUTURE, ONFAULT = 1, 2, 4
ENOUGH = 7  # MiB; 8 is the least that is usual


def both(build, pair, *words, **options):
    become = "setpriv --bounding-set -ipc_lock" if IS_SUPERUSER else ""  # for whom there is no limit
    native, shunt = pair.both(f"{become} {build / 'tests' / 'node' / 'locked'} {' '.join(map(str, words))}", **options)
    assert shunt == native and "setrlimit: 0" in native
    return native


@pytest.mark.unsanitized
@pytest.mark.parametrize("flags", [CURRENT, FUTURE, CURRENT | FUTURE, FUTURE | ONFAULT, CURRENT | FUTURE | ONFAULT])
@pytest.mark.parametrize("when", ["", "after"])
def test_a_program_that_locks_its_memory(build, pair, flags, when):
    said = both(build, pair, flags, ENOUGH, when)
    assert "mlockall: 0" in said and "3002 names" in said and "child: 0" in said, said
    pair.assert_equal()


@pytest.mark.unsanitized
@pytest.mark.parametrize("flags, limit", [(FUTURE | 64, ENOUGH), (CURRENT | 64, ENOUGH), (ONFAULT, ENOUGH), (0, ENOUGH), (FUTURE, 0),
                                          (CURRENT | FUTURE, 1)])
def test_mlockall_fails_as_it_does_natively(build, pair, flags, limit):
    assert "mlockall: 0" not in both(build, pair, flags, limit, "only", redirects=False)
