#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""scaling_plot.py FIGURES PICTURE...: draws what `scaling.py --out FIGURES` has written, by gnuplot, as .svg or .png."""

import json
import math
import pathlib
import subprocess
import sys

TERMINALS = {".svg": "svg", ".png": "pngcairo"}
COLOURS = {"shared": "#c0392b", "private": "#7f8c8d", "shunt": "#2471a3"}


def block(name, rows):
    lines = ["\t".join("NaN" if isinstance(value, float) and math.isnan(value) else f"{value}" for value in row) for row in rows]
    return "\n".join([f"${name} << END", *lines, "END"])


def compared_rows(figures, what):
    return [(count, measured, simulated) for name, count, measured, simulated in figures["compared"] if name == what]


def plot_of(columns):
    return "plot " + ", ".join(columns)


def rates(figures):
    """One panel for each file system."""
    names = figures["simulated"]["names"]
    systems = list(dict.fromkeys(name.rpartition(" ")[0] for name in names if not name.endswith(" us")))
    for system in systems:
        columns = [(number, name.rpartition(" ")[2]) for number, name in enumerate(names, 2) if name.startswith(f"{system} ")]
        words = {"shared": "natively, one directory", "private": "natively, private directories", "shunt": "shunt, one directory"}
        yield "\n".join([
            f"set title 'simulation: {system}, {figures['simulated']['clients']} processes on each node'",
            "set xlabel 'nodes (simulation)'", "set ylabel 'creates/s (simulation)'",
            plot_of(f"$simulated using 1:{number} with linespoints lc rgb '{COLOURS[how]}' pt 7 ps 0.5 title '{words[how]}'"
                    for number, how in columns)])


def latency(figures):
    number = len(figures["simulated"]["names"]) + 1
    return "\n".join([
        f"set title 'simulation: a collective, {figures['simulated']['wire']:.0f} us from node to node'",
        "set xlabel 'nodes (simulation)'", "set ylabel 'microseconds (simulation)'", "set yrange [0:*]", "unset logscale y",
        plot_of([f"$simulated using 1:{number} with linespoints lc rgb '{COLOURS['shunt']}' pt 7 ps 0.5 "
                 "title 'there and back along the tree'"])])


def break_even(figures):
    """The lines are the formula, the points the simulation."""
    wires = figures["break even"]["wires"]
    colours = ("#1e8449", "#2471a3", "#c0392b")
    return "\n".join([
        f"set title 'from which penalty on shunt pays, {figures['simulated']['clients']} processes on each node'",
        "set xlabel 'nodes'", "set ylabel 'penalty of a shared directory'", "set yrange [1:*]", "set logscale y", "set key top right",
        plot_of([f"$pays using 1:{number} with lines lc rgb '{colour}' title '{wire:.0f} us from node to node', "
                 f"$pays using 1:{number + len(wires)} with points pt 6 lc rgb '{colour}' notitle"
                 for number, (wire, colour) in enumerate(zip(wires, colours), 2)])])


def check():
    return "\n".join([
        "set logscale y", "set yrange [*:*]", "set title 'simulation, and what was measured: one machine'",
        "set xlabel 'daemons of one machine'", "set ylabel 'creates/s; microseconds (lines: simulation)'",
        "set key center right",
        plot_of(f"${name} using 1:2 with points pt 6 lc rgb '{colour}' title '{what}, measured', "
                f"${name} using 1:3 with lines lc rgb '{colour}' title '{what}, simulation'"
                for name, what, colour in (("creates", "creates/s", "#2471a3"), ("collectives", "collective", "#c0392b")))])


def script(figures, path):
    return "\n".join([
        block("simulated", figures["simulated"]["rows"]), block("creates", compared_rows(figures, "creates/s")),
        block("collectives", compared_rows(figures, "collective us")), block("pays", figures["break even"]["rows"]),
        f"set terminal {TERMINALS[path.suffix]} size 1100,1350 noenhanced background '#ffffff'",
        f"set output '{path}'", "set logscale x 2", "set logscale y", "set grid", "set key bottom right",
        "set multiplot layout 3,2", *rates(figures), latency(figures), check(), break_even(figures), "unset multiplot", ""])


def main():
    figures = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for path in map(pathlib.Path, sys.argv[2:]):
        subprocess.run(["gnuplot"], input=script(figures, path), text=True, check=True)


if __name__ == "__main__":
    if len(sys.argv) < 3 or any(pathlib.Path(name).suffix not in TERMINALS for name in sys.argv[2:]):
        sys.exit(__doc__)
    main()
