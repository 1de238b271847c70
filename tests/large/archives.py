# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Round trips through programs that copy trees with all that belongs to them, and the making of Debian packages."""

from suite import Suite, script

TRIPS = ("tar", "rsync", "cp", "cpio", "mv")


def suites():
    trips = [Suite(f"{trip}{'-as-nobody' if as_nobody else ''}", script("round_trip.py", trip), as_nobody=as_nobody)
             for trip in TRIPS for as_nobody in (False, True)]
    return [*trips, Suite("dpkg-deb", script("dpkg_deb.sh", program="bash"))]
