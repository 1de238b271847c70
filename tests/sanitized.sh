#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
#
# sanitized.sh node|cluster [ARGUMENT...]: the tests of that suite that show more with ASan and UBSan (build-asan/) than without;
# arguments as pytest has them, and --part K/N for the K-th of N parts (tests/part.py).
set -u

cd "$(dirname "$(readlink -f "$0")")/.." || exit 1

# The sanitized shim enters programs that are not sanitized themselves, and whose leaks are their own.
export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export PYTHONPATH=tests SHUNT_BUILD="$PWD/build-asan"
python=/usr/bin/python3
"$python" -m pytest --version >/dev/null 2>&1 || python=python3

suite=$1
shift
case $suite in
# Not signals at many moments, and outsiders on one file system of three: they show what they show without sanitizers.
node) set -- -m "not large and not unsanitized" -k "not test_bench and not test_interrupted and not (meanwhile and (xfs or tmpfs))" "$@" ;;
# Nor calls by turns; 64 sanitized daemons are too many for a small machine; and a wire between the nodes shows what it shows
# without sanitizers.
cluster) set -- -k "not turns and not cephfs and not slow and not 64 and not logarithm and not test_times and not network and not addresses and not (histories and branch)" "$@" ;;
*)
    echo "sanitized.sh: not a suite: '$suite' (give node or cluster)" >&2
    exit 2
    ;;
esac
exec "$python" -m pytest -q -p no:cacheprovider -p part "$@" "tests/$suite"
