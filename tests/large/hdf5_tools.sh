#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# hdf5_tools.sh: makes HDF5 files in the working directory, one of them in many parts, and dumps, compares, copies,
# repacks, splits and joins them. The files hold the time of their making, so that two runs leave the same in them, but
# not the same bytes.
set -eu -o pipefail

# numbers NAME ROWS COLUMNS STEP: a text file of numbers, and its import into NAME.h5 in /group/NAME.
numbers() {
    local name=$1 rows=$2 columns=$3 step=$4
    awk -v rows="$rows" -v columns="$columns" -v step="$step" 'BEGIN {
        for (i = 0; i < rows; i++) {
            for (j = 0; j < columns; j++) printf "%d ", (i * 31 + j * 17) % 1000 * step
            printf "\n"
        }
    }' > "$name.txt"
    cat > "$name.conf" <<CONF
PATH group/$name
INPUT-CLASS TEXTIN
RANK 2
DIMENSION-SIZES $rows $columns
OUTPUT-CLASS IN
OUTPUT-SIZE 32
CHUNKED-DIMENSION-SIZES 10 10
COMPRESSION-TYPE GZIP
COMPRESSION-PARAM 5
CONF
    h5import "$name.txt" -c "$name.conf" -o "$name.h5"
    rm "$name.txt" "$name.conf"
}

status_of() {
    local status=0
    "$@" || status=$?
    echo "status $status of: $*"
}

make() {
    local i
    for i in $(seq 20); do numbers "set$i" $((40 + i)) 50 "$i"; done
    numbers large 400 400 1
    h5mkgrp -p large.h5 /made/of/groups
}

look() {
    h5ls -r large.h5
    h5dump -H set1.h5
    h5dump -d /group/set3 -s 2,3 -c 4,5 set3.h5
    h5dump -d /group/large -o large.out -y -w 200 large.h5 > /dev/null
    sha256sum large.out
    h5dump -d /group/set5 -b LE -o set5.bin set5.h5
    od -A d -t d4 set5.bin | tail -n 2
    h5stat -f -g large.h5
    h5debug set1.h5 | sed -n 1,3p
}

change() {
    local i
    cp set1.h5 all.h5
    for i in $(seq 2 20); do h5copy -p -i "set$i.h5" -o all.h5 -s "/group/set$i" -d "/group/set$i"; done
    h5copy -i large.h5 -o all.h5 -s /made -d /made
    h5repack -f GZIP=9 -l CHUNK=20x20 all.h5 repacked.h5
    h5repack -f NONE -l CONTI large.h5 plain.h5
    h5repack -f SHUF -f GZIP=1 -L plain.h5 shuffled.h5
    status_of h5diff -c large.h5 shuffled.h5
    status_of h5diff -n 3 set1.h5 set2.h5 /group/set1 /group/set2
    status_of h5diff -v set4.h5 all.h5 /group/set4
    status_of h5dump -H missing.h5 2>&1
    printf 'some words in front\n' > words
    h5jam -i set6.h5 -u words -o jammed.h5
    h5unjam -i jammed.h5 -u words.out -o unjammed.h5
    head -n 1 words.out | tr -d "\0" | cmp - words
    h5diff set6.h5 unjammed.h5
    h5clear -s set7.h5
}

# One file as a family of many, and back.
split_and_join() {
    mkdir family
    h5repart -m 64k plain.h5 family/part%04d.h5
    ls family
    h5dump -f family -H family/part%04d.h5
    h5repart -m 16k family/part%04d.h5 family/small%05d.h5
    h5repart -family_to_sec2 family/part%04d.h5 joined.h5
    h5diff plain.h5 joined.h5
    h5dump -f family -d /group/large -s 399,390 -c 1,10 family/small%05d.h5
}

for part in make look change split_and_join; do
    echo "== $part"
    "$part"
done
h5ls -r all.h5
for file in *.h5; do echo "$file $(h5dump "$file" | sha256sum) $(stat -c %s "$file")"; done
