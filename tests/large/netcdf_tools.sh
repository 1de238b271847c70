#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# netcdf_tools.sh: makes NetCDF files of every kind from text, dumps them to text again, and copies each kind to each.
set -eu -o pipefail

kinds='classic 64-bit-offset 64-bit-data netCDF-4 netCDF-4-classic'

# A text file of some fields over a grid.
describe() {
    awk -v times="$1" 'BEGIN {
        print "netcdf field {\ndimensions:\n  time = UNLIMITED ;\n  lat = 18 ;\n  lon = 36 ;\nvariables:"
        print "  double time(time) ;\n    time:units = \"hours\" ;"
        print "  float t(time, lat, lon) ;\n    t:long_name = \"a field\" ;"
        print "  int n(lat, lon) ;\n  // global attributes:\n    :title = \"a file of a test\" ;\ndata:"
        printf "  time = "
        for (i = 0; i < times; i++) printf "%s%d", i ? ", " : "", i * 6
        printf " ;\n  t = "
        for (i = 0; i < times * 18 * 36; i++) printf "%s%.2f", i ? ", " : "", (i * 37 % 10007) / 8
        printf " ;\n  n = "
        for (i = 0; i < 18 * 36; i++) printf "%s%d", i ? ", " : "", i * i
        print " ;\n}"
    }'
}

make() {
    local kind
    for kind in $kinds; do
        ncgen -b -k "$kind" -o "$kind.nc" field.cdl
        ncdump -k "$kind.nc"
        ncdump "$kind.nc" | tail -n +2 > "$kind.cdl"
        cmp classic.cdl "$kind.cdl"
    done
    ncdump -h classic.nc
    ncdump -c netCDF-4.nc
    ncdump -s -h netCDF-4.nc | grep -v -e _NCProperties -e _SuperblockVersion
}

copy_each_to_each() {
    local from to
    for from in $kinds; do
        for to in $kinds; do
            nccopy -k "$to" "$from.nc" "copy.$from.$to.nc"
            ncdump "copy.$from.$to.nc" | tail -n +2 | cmp - classic.cdl
        done
    done
}

repack() {
    nccopy -d 5 -s -c time/1,lat/9,lon/36 netCDF-4.nc deflated.nc
    nccopy -w -u deflated.nc fixed.nc
    nccopy -V n -k classic deflated.nc one-variable.nc
    ncdump -v n one-variable.nc | tail -n 3
    ncdump -p 4 -v t fixed.nc | sha256sum
    h5ls -r deflated.nc
    h5diff deflated.nc netCDF-4.nc
}

# As a model writes them: a file for each step.
many() {
    local step
    mkdir steps
    for step in $(seq 40); do
        sed "s/a file of a test/step $step/" field.cdl | ncgen -o "steps/out.$(printf %04d "$step").nc"
    done
    for step in steps/*; do ncdump -h "$step" | grep title; done
}

describe 6 > field.cdl
for part in make copy_each_to_each repack many; do
    echo "== $part"
    "$part"
done
find . -name '*.nc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
