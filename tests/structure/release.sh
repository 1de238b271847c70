#!/bin/bash
# release.sh: what somebody builds who packages shunt: with gcc all that is built without Criterion, pytest and Go; with clang,
# or gcc where that is not there, no tests and no manual pages. Release builds with -Werror; their files are hardened; they
# install as a whole, the second one with the libdir of Spack and EasyBuild; for both the modulefile works, and programs of another
# C library run; what is not ours takes as little stack as in the build of the tests.
set -eu -o pipefail

top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/shunt-release.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# pkg-config as on a machine that has no Criterion.
mkdir "$scratch/pkgconfig"
for directory in $(pkg-config --variable pc_path pkg-config | tr : ' '); do
    [ ! -d "$directory" ] || find "$directory" -name '*.pc' ! -name 'criterion.pc' -exec ln -sf {} "$scratch/pkgconfig" \;
done
export PKG_CONFIG_LIBDIR=$scratch/pkgconfig

# takes_little_stack BIN: as tests/node/test_processes.py has it, a call takes at most 512 bytes more.
takes_little_stack() {
    PATH=/usr/bin:/bin "$scratch/stack" /etc/passwd "$scratch/outside" >"$scratch/native"
    PATH=/usr/bin:/bin "$1/shunt" run --root "$scratch/root" -- "$scratch/stack" /etc/passwd "$scratch/outside" >"$scratch/shimmed"
    join <(sort "$scratch/native") <(sort "$scratch/shimmed") | awk '
        $3 - $2 > 512 { print "release.sh: " $1 " takes " $3 - $2 " bytes of stack"; bad = 1 }
        $1 == "stat" { seen = $3 > $2 }
        END { exit bad || !seen }'
}

# leaves_others_alone BIN: a program of another C library, which takes $LIB for a name, does not find the preloaded library, which it
# could not load. So wherever libdir is.
leaves_others_alone() {
    local preload
    preload=$("$1/shunt" run --root "$scratch/root" -- sh -c 'echo "$LD_PRELOAD"')
    case $preload in
    *'$LIB'*) ;;
    *)
        echo "release.sh: LD_PRELOAD is $preload, which programs of another C library find" >&2
        exit 1
        ;;
    esac
    [ ! -x "$scratch/foreign" ] || "$1/shunt" run --root "$scratch/root" -- "$scratch/foreign"
}

# release NAME COMPILER OPTION...
release() {
    local name=$1 compiler=$2 build=$scratch/$1
    shift 2
    CC=$compiler meson setup "$build" "$top" --buildtype=release -Dwerror=true "$@" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
    ninja -C "$build" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
    if [ -d "$build/tests/unit" ]; then
        echo "release.sh: tests were built" >&2
        exit 1
    fi
    python3 "$top/tests/structure/hardening.py" "$build"
    DESTDIR=$scratch/installed-$name meson install -C "$build" --quiet
    "$scratch/installed-$name/usr/local/bin/shunt" --version
    bash "$top/packaging/test_modulefile.sh" "$scratch/installed-$name/usr/local"
    takes_little_stack "$scratch/installed-$name/usr/local/bin"
    leaves_others_alone "$scratch/installed-$name/usr/local/bin"
}

has() {
    local name=$1 file
    shift
    for file; do
        if [ ! -e "$scratch/installed-$name/usr/local/$file" ]; then
            echo "release.sh: $file was not installed" >&2
            exit 1
        fi
    done
}

mkdir "$scratch/outside" "$scratch/root" "$scratch/run"
cp /bin/true "$scratch/outside"
gcc -D_GNU_SOURCE -o "$scratch/stack" "$top/tests/node/processes/stack.c"
echo 'int main(void) { return 0; }' >"$scratch/foreign.c"
! command -v musl-gcc >/dev/null || musl-gcc -o "$scratch/foreign" "$scratch/foreign.c"
export SHUNT_RUN_DIR=$scratch/run

programs=(bin/shunt bin/shunt-launch libexec/shunt/shuntd include/shunt/shunt.h)
release all gcc
has all "${programs[@]}" share/man/man7/shunt.7 share/man/man1/shunt.1 share/man/man1/shunt-{bench,export,fsck,launch,ls,run,status}.1
release bare "$(command -v clang || echo gcc)" -Dtests=disabled -Ddocs=false -Dlibdir=lib
has bare "${programs[@]}"
if [ -e "$scratch/installed-bare/usr/local/share/man" ]; then
    echo "release.sh: -Ddocs=false installed manual pages" >&2
    exit 1
fi
