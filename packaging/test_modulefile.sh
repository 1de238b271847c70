#!/bin/bash
# test_modulefile.sh PREFIX: module load shunt, by Environment Modules or Lmod, whichever is there, of what is installed under
# PREFIX: the command, its pages and libshunt's pkg-config file are found, and not any more after module unload.
set -eu -o pipefail

prefix=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/shunt-module.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
version=$("$prefix/bin/shunt" --version | cut -d ' ' -f 2)

fail() {
    echo "test_modulefile.sh: $*" >&2
    exit 1
}

mkdir -p "$scratch/apps" "$scratch/modulefiles/shunt"
ln -s "$prefix" "$scratch/apps/$version"
sed "s|/apps/shunt/|$scratch/apps/|" "$here/modulefiles/shunt" >"$scratch/modulefiles/shunt/$version"

init=
for file in /usr/share/lmod/lmod/init/bash /usr/share/modules/init/bash; do
    [ ! -e "$file" ] || init=$file
done
[ -n "$init" ] || fail "no module command (apt-get install environment-modules)"

# The functions of both systems use variables that are not set.
set +u
. "$init"
for manpath in "" :; do
    unset MANPATH
    [ -z "$manpath" ] || export MANPATH=$manpath
    before=$PATH:$PKG_CONFIG_PATH
    module use "$scratch/modulefiles"
    module load shunt || fail "module load shunt: failed"
    [ "$(command -v shunt)" = "$scratch/apps/$version/bin/shunt" ] || fail "module load shunt: shunt is not in PATH"
    [ "$(shunt --version)" = "shunt $version" ] || fail "shunt --version: another version than the module's"
    case $PKG_CONFIG_PATH in
    "$scratch"/apps/*/pkgconfig*) ;;
    *) fail "module load shunt: libshunt's pkg-config file is not in PKG_CONFIG_PATH" ;;
    esac
    [ -z "$manpath" ] || [ "${MANPATH#"$scratch/apps/$version/share/man"}" != "$MANPATH" ] || fail "MANPATH: $MANPATH"
    module help shunt 2>&1 | grep shunt-launch >/dev/null || fail "module help shunt: says nothing"
    module whatis shunt 2>&1 | grep "$version" >/dev/null || fail "module whatis shunt: says nothing"
    module unload shunt || fail "module unload shunt: failed"
    [ "$PATH:$PKG_CONFIG_PATH" = "$before" ] || fail "module unload shunt: PATH or PKG_CONFIG_PATH is not as it was"
done
echo "module load shunt: as expected, by $init"
