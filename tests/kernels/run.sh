#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# run.sh [WORD...]: all tests of nodes with kernels of their own, on each file system with 2, 3 and 4 nodes; the words are for
# pytest: `-m "not long"` is the small part. $SHUNT_TEST_KERNELS may name some clusters, as `nfs-2 gfs2-3`; $SHUNT_BUILD is the
# build (default: build/). What the nodes boot is made at the first time (prepare.sh): 130 MB of packages, 40 s of one processor.
# Needs root, and Debian 12 or what has its packages.
set -eu
cd "$(dirname "$(readlink -f "$0")")/../.."
bash tests/packages.sh kernels
python=/usr/bin/python3
"$python" -m pytest --version >/dev/null 2>&1 || python=python3
export SHUNT_TEST_KERNELS="${SHUNT_TEST_KERNELS:-all}" SHUNT_TEST_KERNELS_NEED=required
exec "$python" -m pytest -q -p no:cacheprovider --durations=10 tests/kernels "$@"
