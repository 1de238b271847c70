#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# Prolog= of slurm.conf: looks at the node when a job with --shunt=DIR begins there. Root runs it, so it does not use DIR, which
# is the user's word (SPANK_SHUNT). A prolog that fails drains its node: this one writes to the log instead, and never does.
shunt=/usr/bin/shunt

[ -n "$SPANK_SHUNT" ] || exit 0
timeout 20 "$shunt" doctor 2>&1 | grep -E '^(warning|problem)' | logger -t shunt-prolog
exit 0
