#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
#
# full.sh [-a DIRECTORY] [PART...]: the full counts of tests/crash, on the file system of DIRECTORY (default /dev/shm), or
# these parts of them. Wants build/, build-asan/ and build-hooks/ (tests/run.sh makes them). Prints figures for each; the status is 0 if
# nothing was lost or found. Parts may run side by side.
#
#   kills-1, kills-3   on 1 and on 3 nodes: of clients 1,000, of shuntd 1,000, of a node 200, of everything with its indexes
#                      200; natively 1,000 of clients, which shows that the oracle holds there (15 and 30 minutes)
#   away               20 nodes that vanish and 20 daemons that stand still until the others have gone on (10 minutes)
#   cephfs             40 of each on a CephFS of 1 and of 3 nodes, and natively (30 minutes)
#   points             a kill at each named point between two steps
#   histories          2,000 histories while daemons crash
#   network            cuts shorter and longer than the deadline, one-way loss, loss, reordering, resets (30 minutes)
#   soak               mixed load from 3 nodes for half an hour: what daemons use levels off
#   interrupted        SIGTERM, SIGINT and SIGHUP at 200 moments of each command, and of its daemons (25 minutes)
#   calls              4,000 random orders of 300 calls each on one node, 800 on three, natively and under shunt (40 minutes)
#   sanitized          tests/node and tests/cluster with ASan and UBSan: tests/run.sh runs a third (30 minutes)
#   model              the whole model
#   fuzz               ten minutes for each target (70 minutes)
set -u

cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
area=/dev/shm
if [ "${1:-}" = -a ]; then
    area=$2
    shift 2
fi
parts="kills-1 kills-3 away cephfs points histories network soak interrupted calls sanitized model fuzz"
failed=0

kills() {
    /usr/bin/python3 tests/crash/crash.py "$@" --area "$area" 2>/dev/null || failed=1
}

kills_on() {
    kills clients 500 --nodes "$1" --placement branch
    kills clients 500 --nodes "$1" --placement auto --leaf-full 20
    kills everything 100 --nodes "$1" --placement branch
    kills everything 100 --nodes "$1" --placement auto --leaf-full 20
    kills node 200 --nodes "$1"
    kills shuntd 500 --nodes "$1" --placement branch
    kills shuntd 500 --nodes "$1" --placement auto --leaf-full 20
}

# pytest BUILD SETTING ARGUMENT...
tests() {
    env "$2" SHUNT_BUILD="$PWD/$1" /usr/bin/python3 -m pytest -q -s -p no:cacheprovider "${@:3}" || failed=1
}

part() {
    case $1 in
    kills-1)
        kills clients 1000 --nodes 0
        kills_on 1
        ;;
    kills-3) kills_on 3 ;;
    away)
        kills vanished 20 --nodes 3
        kills silent 20 --nodes 3
        ;;
    cephfs)
        kills clients 40 --nodes 0 --cephfs
        for mode in clients shuntd node everything; do
            kills "$mode" 40 --nodes 1 --cephfs
            kills "$mode" 40 --nodes 3 --cephfs
        done
        ;;
    points) tests build-hooks SHUNT_CRASH_FULL=yes tests/crash/test_points.py ;;
    histories) tests build SHUNT_HISTORIES=20000 tests/cluster/test_linearizable.py -k crash ;;
    network) tests build SHUNT_CUTS=20 tests/cluster/test_network.py ;;
    soak) /usr/bin/python3 tests/crash/soak.py --area "$area" 2>/dev/null || failed=1 ;;
    interrupted) tests build PYTHONDONTWRITEBYTECODE=yes tests/node/test_interrupted.py --moments 200 ;;
    calls)
        tests build SHUNT_SEEDS=2000 tests/node/test_random_calls.py
        tests build SHUNT_SEEDS=200 tests/cluster/test_random_calls.py
        ;;
    sanitized)
        for suite in node cluster; do
            bash tests/sanitized.sh "$suite" || failed=1
        done
        ;;
    model) bash tests/model/check.sh || failed=1 ;;
    fuzz) bash tests/fuzz/run.sh 600 || failed=1 ;;
    *)
        echo "full.sh: there is no part '$1': $parts" >&2
        exit 2
        ;;
    esac
}

for name in ${*:-$parts}; do
    printf '\n== %s\n' "$name"
    part "$name"
done
exit "$failed"
