#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# What leaving costs where two nodes with a kernel of their own share a disk: an export by one of them, and by the nodes that made the
# files (shunt export --hosts, and the end of shunt-launch), by turns.
#
#   tests/kernels/leaving.sh DIRECTORY ROUNDS FILES DIRECTORIES 'COMMAND...' 'COMMAND...'
#
# As tests/kernels/run.sh; the first node reaches the second by ssh. FILES: of each node, in each of so many directories of both. Said are
# packets for a file, of all that the nodes send by their Ethernet interfaces, and the seconds of the export.
set -eu
build=$(realpath "${SHUNT_BUILD:-build}"); directory=${1:?DIRECTORY}; rounds=${2:?ROUNDS}; files=${3:?FILES}; directories=${4:?DIRECTORIES}
read -ra one <<<"${5:?COMMAND}"; read -ra two <<<"${6:?COMMAND}"
names=("$("${one[@]}" hostname -s)" "$("${two[@]}" hostname -s)")

on() { # NODE LINE
  if [ "$1" = 0 ]; then "${one[@]}" "$2"; else "${two[@]}" "$2"; fi
}
both() { # LINE, with $0 for the node's name
  local first
  on 0 "bash -c '$1' ${names[0]}" & first=$!
  on 1 "bash -c '$1' ${names[1]}"
  wait "$first"
}
packets() { for node in 0 1; do on "$node" 'cat /sys/class/net/e*/statistics/tx_packets'; done | paste -sd+ | bc; }
make_files() { # ROOT
  for node in 0 1; do on "$node" "mkdir -p $1/{1..$directories}; $build/tools/shunt start --root $1 --placement branch --node ${names[node]}"; done
  both "$build/tools/shunt exec --root $1 --node \$0 -- bash -c \"for i in \\\$(seq $files); do for d in $1/[0-9]*; do : >\\\$d/\$0.\\\$i; done; done\""
  for node in 1 0; do on "$node" "$build/tools/shunt stop --root $1"; done
}
measure() { # WHAT ROOT LINE
  local before said seconds
  make_files "$2"
  before=$(packets)
  said=$(on 0 "$3" 2>&1) || { echo "$said" >&2; exit 1; }
  seconds=$(grep -oE '"(export_)?seconds": [0-9.]+' <<<"$said" | grep -oE '[0-9.]+$')
  echo "$1: $(echo "scale=2; ($(packets) - $before) / (2 * $files * $directories)" | bc) packets a file, $seconds s"
}

on 0 "printf '%s\\n' ${names[*]} >/tmp/shunt-hosts"
for round in $(seq "$rounds"); do
  measure "by one node" "$directory/$round-one" "$build/tools/shunt export --json $directory/$round-one"
  measure "by one node and a helper" "$directory/$round-helper" \
    "$build/tools/shunt export --json --hosts /tmp/shunt-hosts $directory/$round-helper"
  measure "by its owners" "$directory/$round-owners" \
    "$build/tools/shunt-launch --root $directory/$round-owners --hosts /tmp/shunt-hosts --json -- true"
done
