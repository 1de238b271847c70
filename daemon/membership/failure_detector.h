/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Members that vanish. Each daemon watches the heartbeats of the next member, and of those after it for as long
 * as the ones before them are silent. A member whose heartbeat has stood still for longer than a lease, and which does
 * not hear on the fabric either, is lost: this daemon says so in the next epoch, if it reaches at least half
 * of the members, and all begins again (recovery.h). Nobody answers before the lost one is dropped, which its
 * watcher does when the lease is over and its branch fenced: under its next incarnation's name, so that
 * nothing which that node still wanted to make there can be made. */

#include "shuntd.h"

int failure_detector_create(struct shuntd *);
void failure_detector_free(struct shuntd *);
/* Once a batch. 0 or a fatal -errno. */
int failure_detector_step(struct shuntd *);
