#!/bin/bash
# in_there.sh [TEST...]: the tests of the scripts beside it, run inside a Debian of theirs, in a built tree. Not run is
# what is named: a test program (fabric), or one test of Criterion's (channel/telling_*), whose others are run.
set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/../.."
multiplier=${TIMEOUT_MULTIPLIER:-4} # a machine that emulates another one, or does something else, is slow
programs=() single=()
for test; do
    case $test in
    */*) single+=("$test") ;;
    *) programs+=("$test") ;;
    esac
done

run() {
    meson test -C build --no-rebuild -t "$multiplier" --num-processes 2 --print-errorlogs "$@"
}

run --suite fuzz
mapfile -t chosen < <(meson test -C build --no-rebuild --list --suite unit --suite daemon 2>/dev/null |
    sed -n 's|^.* / ||p' | grep -v -x -F -f <(printf '%s\n' "${programs[@]}" ""))
pattern=$(IFS='|' && echo "${single[*]}")
if [ -n "$pattern" ]; then
    export CRITERION_TEST_PATTERN="!($pattern)"
fi
run --suite unit --suite daemon "${chosen[@]}"

# Something small, by a shell and by programs of the system's.
root=$(mktemp -d)
build/tools/shunt run --root "$root" --placement branch -- bash -euc '
    mkdir "$1/one"
    for i in $(seq 20); do echo "$i" >"$1/one/$i"; done
    mv "$1/one/3" "$1/one/three"
    rm "$1/one/4"
    [ "$(ls "$1/one" | wc -l)" = 19 ]
' small "$root"
[ "$(cat "$root/one/three")" = 3 ]
[ "$(ls -A "$root" "$root/one" | wc -l)" = 23 ] # with the lines that name both, and the one between them
rm -rf "$root"
echo "shunt run: as expected"

# Each hundredth of the cases in a place, by a user, with a placement: another one in each.
SHUNT_SAME_EVERY=100 python3 -m pytest -q -p no:cacheprovider tests/same
