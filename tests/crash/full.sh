#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# full.sh [DIRECTORY]: all kills of tests/crash, in DIRECTORY (default /dev/shm): of clients 1,000, of shuntd
# 1,000, of a node 200, of everything with its indexes 200, each on 1 and on 3 nodes; 200 nodes that are away
# for long; a soak; every step between two; histories while daemons crash, and while the network fails; the
# whole model; ten minutes of fuzzing for each target. Wants build/ and build-hooks/ (tests/run.sh makes
# them). Prints figures for each; the status is 0 if nothing was lost or found. Takes some six hours.
set -u

cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
area=${1:-/dev/shm}
failed=0

kills() {
    /usr/bin/python3 tests/crash/crash.py "$@" --area "$area" 2>/dev/null || failed=1
}

kills clients 1000 --nodes 0
for nodes in 1 3; do
    kills clients 500 --nodes "$nodes" --placement branch
    kills clients 500 --nodes "$nodes" --placement auto --leaf-full 20
    kills everything 100 --nodes "$nodes" --placement branch
    kills everything 100 --nodes "$nodes" --placement auto --leaf-full 20
    kills shuntd 1000 --nodes "$nodes"
    kills node 200 --nodes "$nodes"
done
kills vanished 100 --nodes 3
kills silent 100 --nodes 3
# On a CephFS fewer; and natively, which shows that the oracle holds there.
kills clients 40 --nodes 0 --cephfs
for mode in clients shuntd node everything; do
    kills "$mode" 40 --nodes 1 --cephfs
    kills "$mode" 40 --nodes 3 --cephfs
done
/usr/bin/python3 tests/crash/soak.py --area "$area" 2>/dev/null || failed=1
SHUNT_CRASH_FULL=yes SHUNT_BUILD=$PWD/build-hooks /usr/bin/python3 -m pytest -q -p no:cacheprovider \
    tests/crash/test_points.py || failed=1
SHUNT_HISTORIES=20000 SHUNT_BUILD=$PWD/build /usr/bin/python3 -m pytest -q -s -p no:cacheprovider \
    tests/cluster/test_linearizable.py -k crash || failed=1
SHUNT_CUTS=20 SHUNT_BUILD=$PWD/build /usr/bin/python3 -m pytest -q -s -p no:cacheprovider \
    tests/cluster/test_network.py || failed=1
bash tests/model/check.sh || failed=1
bash tests/fuzz/run.sh 600 || failed=1
exit "$failed"
