#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
#
# run.sh [SECONDS [TARGET...]]: runs each fuzzer that long (default 600: the full count), two at a time, from its corpus.
# What it finds stays in build-fuzz/findings/TARGET, to become an input of the corpus once it is mended; prints how many
# inputs each tried.
# Exit status 1 if one found something. tests/run.sh gives each 8 seconds.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
seconds=${1:-600}
shift $(($# > 0))
[ -f build-fuzz/build.ninja ] || meson setup build-fuzz -Dfuzz=enabled >/dev/null || exit 1
targets=("$@")
[ $# -gt 0 ] || for source in tests/fuzz/fuzz_*.c; do
    source=${source##*/fuzz_}
    targets+=("${source%.c}")
done
ninja -C build-fuzz "${targets[@]/#/tests/fuzz/libfuzzer_}" >/dev/null || exit 1

fuzz() {
    local found=build-fuzz/findings/$1 grown=build-fuzz/grown/$1 status
    mkdir -p "$found" "$grown"
    "build-fuzz/tests/fuzz/libfuzzer_$1" -max_total_time="$2" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$found/" "$grown" "tests/fuzz/corpus/$1" >"$found.log" 2>&1
    status=$?
    printf '%-10s %12s inputs  %s\n' "$1" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log")" \
        "$([ $status -eq 0 ] && echo 'no finding' || echo "status $status, see $found.log")"
    return "$status"
}
export -f fuzz
printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} bash -c "fuzz {} $seconds"
[ $? -eq 0 ]
