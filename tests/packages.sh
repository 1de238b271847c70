#!/bin/bash
# packages.sh NEED...: installs what tests/packages.txt lists for these needs (build, test, large, kernels), where it is missing.
# Asks nothing, and runs neither apt-get nor sudo if all of it is there.
set -eu

list=$(dirname "$(readlink -f "$0")")/packages.txt

# Is one of these packages, or of the packages that these patterns match, installed?
any_installed() {
    dpkg-query -W -f '${db:Status-Status}\n' "$@" 2>/dev/null | grep -x installed >/dev/null
}

# Is there one of the commands that are named in parentheses?
any_command() {
    local choice
    for choice; do
        case $choice in
        "("*")") command -v "${choice//[()]/}" >/dev/null && return ;;
        esac
    done
    return 1
}

missing() {
    local need words choices machine
    machine=$(dpkg --print-architecture)
    while read -r need words; do
        words=${words#"[$machine] "}
        [ "${words#[}" = "$words" ] || continue
        read -ra choices <<<"$words"
        case " $* " in
        *" $need "*) any_command "${choices[@]}" || any_installed "${choices[@]}" || echo "${choices[0]}" ;;
        esac
    done < <(grep -v '^#' "$list")
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "packages.sh: run this as root, or install sudo, or install yourself: ${packages[*]}" >&2
        exit 1
    fi
}

if ! command -v dpkg-query >/dev/null; then
    echo "packages.sh: this is no Debian or Ubuntu: what $list lists must be there already" >&2
    exit 0
fi
mapfile -t packages < <(missing "$@")
[ ${#packages[@]} -gt 0 ] || exit 0
echo "installing ${packages[*]}"
as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update </dev/null
known=()
for package in "${packages[@]}"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
        known+=("$package")
    else
        echo "packages.sh: this release has no package $package: what needs it will say so" >&2
    fi
done
[ ${#known[@]} -eq 0 ] ||
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${known[@]}" </dev/null
