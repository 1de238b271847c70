#!/bin/bash
# run.sh: installs what is missing, builds three times (build/, build-asan/ with ASan and UBSan, and build-hooks/ with
# points where tests stop what is under way), and runs every test, in two lanes that take about as long: tests of several nodes,
# which mostly wait, and the others, which compute.
# The last line is `N passed, N failed`, and the exit status is 0 if none failed.
set -u -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
exec </dev/null
results=$(mktemp -d "${TMPDIR:-/tmp}/shunt-results.XXXXXX")
waiting='' area=''
trap '[ -z "$waiting" ] || kill -- "-$waiting" 2>/dev/null; leave_area; rm -rf "$results"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# stage NAME COMMAND...: runs one part; its status and its JUnit file, if it writes one, are what is counted.
stage() {
    local name=$1 began=$SECONDS status
    shift
    printf '\n== %s\n' "$name"
    "$@"
    status=$?
    echo "$status" >"$results/$name.status"
    echo "== $name: status $status after $((SECONDS - began)) s"
    return "$status"
}

# A part that is one test: its status is the result.
single() {
    local name=$1
    stage "$@" && echo "<testsuite><testcase name='$name'/></testsuite>" >"$results/$name.xml"
}

build() {
    local directory=$1
    shift
    if [ -f "$directory/build.ninja" ]; then
        meson configure "$directory" -Dtests=enabled || return
    else
        meson setup "$directory" "$@" || return
    fi
    ninja -C "$directory"
}

build_hooks() {
    [ -f build-hooks/build.ninja ] || meson setup build-hooks -Dhooks=true || return
    ninja -C build-hooks hooked
}

# What Meson runs: all but the suites of pytest, which count their tests themselves.
meson_tests() {
    local directory=$1 name=$2 status
    shift 2
    rm -f "$directory/meson-logs/testlog.junit.xml"
    meson test -C "$directory" --print-errorlogs --no-rebuild --no-suite node --no-suite same --no-suite abi --no-suite cluster "$@"
    status=$?
    cp "$directory/meson-logs/testlog.junit.xml" "$results/$name.xml"
    return "$status"
}

pytest() {
    local directory=$1 name=$2
    shift 2
    SHUNT_BUILD=$PWD/$directory "${apart[@]}" "$python" -m pytest -q -p no:cacheprovider "${at_once[@]}" --durations=5 \
        --junit-xml="$results/$name.xml" "$@"
}

# All in one process, since they share a cluster of four nodes. As root, with all packages there, none may be skipped.
slurm_tests() {
    local at_once=() need=if-possible
    [ "$(id -u)" -ne 0 ] || [ "$(cat "$results/packages.status")" -ne 0 ] || need=required
    SHUNT_TEST_SLURM=$need pytest build slurm tests/slurm
}

# Two nodes of GFS2 and two of NFS, whose kernels are their own. As root, where what they boot can be made, none may be skipped.
kernel_tests() {
    local at_once=() need=if-possible
    export SHUNT_KERNELS=${SHUNT_KERNELS:-$HOME/.cache/shunt-kernels}
    [ "$(id -u)" -eq 0 ] && [ -w /dev/net/tun ] && bash tests/kernels/prepare.sh "$SHUNT_KERNELS" && need=required
    SHUNT_TEST_KERNELS="gfs2-2 nfs-2" SHUNT_TEST_KERNELS_NEED=$need pytest build kernels -m "not long" tests/kernels
}

# A third of a suite, by the name of the commit: the next one likely has another third, a run that is repeated has the same. All:
# tests/crash/full.sh sanitized. Not tests/same: it hands over NULL on purpose, which UBSan ends, and empties the environment that
# ASAN_OPTIONS is in.
sanitized() {
    local suite=$1 commit
    commit=$(git rev-parse --short=7 HEAD 2>/dev/null) || commit=0
    "${apart[@]}" bash tests/sanitized.sh "$suite" "${at_once[@]}" --durations=5 --junit-xml="$results/$suite-asan.xml" \
        --part "$((16#${commit:0:7} % 3))/3"
}

# Where tests have their files: as root in an ext4 of its own, in memory. It has a journal; one without, as a machine for tests
# may have, looks at each inode that was deleted within a minute before it gives one out: a quarter of the processor time.
mount_area() {
    local image at
    [ "$(id -u)" -eq 0 ] || return
    image=$(mktemp /dev/shm/shunt-tests.XXXXXX) && at=$(mktemp -d "${TMPDIR:-/tmp}/st.XXXXXX") || return
    truncate -s 16G "$image" && mkfs.ext4 -q -i 8192 "$image" && mount -o loop "$image" "$at" && area=$at
    rm "$image"
    if [ -n "$area" ]; then
        chmod 1777 "$area" && export TMPDIR=$area
    else
        rmdir "$at"
    fi
}

leave_area() {
    [ -z "$area" ] || { umount -l "$area" && rmdir "$area"; }
}

summary() {
    printf '\n== summary\n'
    "$python" tests/count_results.py "$results"
}

stage packages bash tests/packages.sh build test kernels
mount_area

# The distribution's Python is the one that has the distribution's pytest.
python=/usr/bin/python3
"$python" -m pytest --version >/dev/null 2>&1 || python=python3

# Most tests of pytest's wait for other processes most of the time, so in each of the two lanes as many run at once as there are
# processors, each in places of its own; of one node one more, since nodes of several take more than a processor.
at_once=() at_once_of_one=()
"$python" -c 'import xdist' 2>/dev/null && at_once=(-n "$(nproc)" --dist loadgroup) &&
    at_once_of_one=(-n "$(($(nproc) + 1))" --dist loadgroup)

# A daemon that meets another opens libfabric, whose provider for InfiniBand reads all of /proc/kallsyms, twice: 90 of the 100 ms of
# processor time that its start takes.
apart=()
unshare --mount mount --bind /dev/null /proc/kallsyms 2>/dev/null &&
    apart=(unshare --mount sh -c 'mount --bind /dev/null /proc/kallsyms && exec "$@"' sh)

if ! stage build build build -Dtests=enabled; then
    summary
    exit 1
fi

# The other lane builds it, long before.
has_built() {
    until [ -e "$results/$1.status" ]; do
        sleep 1
    done
}

tests_that_wait() {
    stage cluster pytest build cluster tests/cluster
    # One cluster, whose tests take turns.
    stage slurm slurm_tests
    stage kernels kernel_tests
    has_built build-hooks
    stage hooked pytest build-hooks hooked tests/hooked
}

tests_that_compute() {
    stage build-hooks build_hooks
    stage build-asan build build-asan --native-file dev.ini -Dtests=enabled
    single lint bash tests/structure/lint.sh
    single release bash tests/structure/release.sh
    stage unit meson_tests build unit
    stage unit-asan meson_tests build-asan unit-asan --no-suite structure
    stage cluster-asan sanitized cluster
    # Not apart: where something lies on a file of /proc, a user's namespace cannot mount that.
    local at_once=("${at_once_of_one[@]}") apart=()
    for suite in abi same node; do
        stage "$suite" pytest build "$suite" "tests/$suite"
    done
    stage node-asan sanitized node
    # Few seconds: ten minutes for each target are for tests/crash/full.sh.
    single fuzz bash tests/fuzz/run.sh 8
    single quickstart bash examples/quickstart.sh
    stage crash pytest build crash tests/crash/test_crash.py
    stage crash-hooked pytest build-hooks crash-hooked tests/crash/test_points.py
    # A part of the cases: all are for tests/crash/full.sh.
    single model bash tests/model/check.sh names lost-home lost-branch no-cas absent-while-pending confirm-lost listed-early listing peeked-once kept waits-holding at-once-unmarked
}

# A group of its own, that goes with this script.
set -m
tests_that_wait >"$results/waiting.output" 2>&1 &
waiting=$!
set +m
tests_that_compute
echo
echo "waiting for the tests of several nodes"
wait "$waiting"
waiting=
cat "$results/waiting.output"

summary
