#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# Two nodes of a real cluster change one directory by turns (steps.py): natively, then under shunt.
#
#   tests/kernels/steps.sh DIRECTORY ADDRESS 'COMMAND...' 'COMMAND...'
#
# DIRECTORY: a new one on a file system that both share. ADDRESS: of the first node, as the second one reaches it. Each COMMAND
# reaches a node, as `ssh n1` does: a line for its shell is put after it; SHUNT_PLACEMENT=branch there has files redirected from
# the first one on. Source and build ($SHUNT_BUILD) have the same path there.
set -eu
here=$(cd "$(dirname "$0")" && pwd); build=$(realpath "${SHUNT_BUILD:-build}")
directory=${1:?DIRECTORY}; address=${2:?ADDRESS}; read -ra one <<<"${3:?COMMAND}"; read -ra two <<<"${4:?COMMAND}"
shunt=$build/tools/shunt

both() { # WORDS BEFORE steps.py, WHERE
  local code=0 first port=9300
  "${one[@]}" "python3 $here/meeting.py $address $port 2 & $1 python3 $here/steps.py $2 0 2 $address $port; code=\$?; kill \$!; exit \$code" &
  first=$!
  "${two[@]}" "$1 python3 $here/steps.py $2 1 2 $address $port" || code=1
  wait "$first" || code=1
  return $code
}
# A node whose daemon has gone, which is an error where it is looked at, is no reason to leave the other one's.
ends() { for node in one two; do declare -n words=$node; "${words[@]}" "$shunt stop --root $directory/shunt" || true; done; }

"${one[@]}" "mkdir -p $directory/shunt"
# The file system alone may well differ: that is what it is compared with.
echo "natively:"; both "" "$directory/natively" | tail -n 1 || true
trap ends EXIT
"${one[@]}" "$shunt start --root $directory/shunt"
"${two[@]}" "ls ${directory%/*} >/dev/null; $shunt start --root $directory/shunt"
echo "under shunt:"; both "$shunt exec --root $directory/shunt --" "$directory/shunt/steps"
