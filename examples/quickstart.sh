#!/bin/bash
# quickstart.sh [--installed] [--ranks N] [--dir DIRECTORY]
#
# From a fresh clone on Debian or Ubuntu, as root or with sudo: installs what the build needs, builds, runs the MPI
# program examples/checkpoint.c natively and under shunt, shows where its files were, exports them, and compares. Exits
# with 0 only if shunt left the directory that the native run left. With --installed, shunt is the one in PATH, and mpicc
# compiles the program.
set -eu -o pipefail

usage() {
    echo "usage: quickstart.sh [--installed] [--ranks N] [--dir DIRECTORY]" >&2
    exit 2
}

ranks=4
parent=${TMPDIR:-/tmp}
installed=
while [ $# -gt 0 ]; do
    if [ "$1" = --installed ]; then
        installed=yes
        shift
        continue
    fi
    [ $# -ge 2 ] || usage
    case $1 in
    --ranks) ranks=$2 ;;
    --dir) parent=$2 ;;
    *) usage ;;
    esac
    shift 2
done

examples=$(dirname "$(readlink -f "$0")")
repository=$(dirname "$examples")
build=$repository/build

say() {
    printf '\n== %s\n' "$*"
}

# Prints a command as a user would type it, and runs it.
show() {
    echo "\$ $*" | sed "s|$tools/||g; s|${checkpoint%/*}/||g"
    "$@"
}

build_all() {
    bash "$repository/tests/packages.sh" build
    [ -f "$build/build.ninja" ] || meson setup "$build" "$repository" >/dev/null
    ninja -C "$build" | tail -n 1
    tools=$build/tools checkpoint=$build/examples/checkpoint
    [ -x "$checkpoint" ] && return
    echo "quickstart.sh: the build found no MPI: delete $build and run this again" >&2
    exit 1
}

find_installed() {
    tools=$(dirname "$(command -v shunt-launch)") checkpoint=$data/bin/checkpoint
    mkdir "$data/bin"
    mpicc -O2 -o "$checkpoint" "$examples/checkpoint.c"
}

# Open MPI wants to be told that root, and more ranks than cores, are meant; MPICH does not know these options.
find_mpirun() {
    mpirun=(mpirun -n "$ranks")
    mpirun --version 2>/dev/null | grep -qiE 'open.?mpi' || return 0
    mpirun+=(--oversubscribe)
    [ "$(id -u)" -ne 0 ] || mpirun+=(--allow-run-as-root)
}

# Each name with its type, mode, number of links, size, target of a symbolic link and checksum of a file.
contents() {
    (
        cd "$1"
        find . ! -type d -printf '%P %y %m %n %s %l\n' -o -printf '%P %y %m\n' | sort
        find . -type f -print0 | sort -z | xargs -0r sha256sum
    )
}

data=$(mktemp -d "$(readlink -f "$parent")/shunt-quickstart.XXXXXX")
trap 'rm -rf "$data"' EXIT
if [ -n "$installed" ]; then
    find_installed
else
    say "Building shunt and the example"
    build_all
fi
find_mpirun
mkdir "$data/native" "$data/shunt"

say "The program without shunt: $ranks ranks write checkpoints into one directory"
show "${mpirun[@]}" "$checkpoint" --steps 30 "$data/native/out"

say "The same program, unchanged, under shunt on four nodes (pretended ones, with a daemon each); --keep leaves its files there"
show "$tools/shunt-launch" --root "$data/shunt" --fake-nodes "$ranks" --keep \
    "${mpirun[@]}" "$checkpoint" --steps 30 "$data/shunt/out"

say "What the program saw: the directory, from the trunk and all branches together"
show "$tools/shunt" ls -l "$data/shunt/out"

say "Where these files really are: in the branches of the nodes that wrote them, under their own names"
for ((node = 0; node < ranks; node++)); do
    show "$tools/shunt" find "$data/shunt/out" -branch "fake$node" -type f
done
newest=$(readlink "$data/shunt/out/latest")
show "$tools/shunt" where "$data/shunt/out/$newest"

say "The root as a tree"
show "$tools/shunt" tree "$data/shunt"

redirected=$(find "$data/shunt/.shunt/b" -mindepth 3 -type f | wc -l)
if [ "$redirected" -eq 0 ]; then
    echo "quickstart.sh: no file was redirected, so this run shows nothing" >&2
    exit 1
fi

say "Leaving shunt: export renames the $redirected redirected files into the directory and removes .shunt"
show "$tools/shunt" export "$data/shunt"

say "Comparing names, types, modes, contents and links with the native run"
contents "$data/native" >"$data/native.txt"
contents "$data/shunt" >"$data/shunt.txt"
if ! diff -u "$data/native.txt" "$data/shunt.txt"; then
    echo "The directories differ: lines with - are of the native run, lines with + of the run under shunt." >&2
    exit 1
fi
find "$data/shunt" -mindepth 1 | sed "s|^$data/shunt|.|" | sort
echo
echo "The two directories are equal: $redirected files went through shunt, and nothing of it is left."
