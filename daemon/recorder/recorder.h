/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Writes the catalogue (lib/catalogue): once this node has been quiet for a while, and at the end, the directories that are
 * known here are looked at, and those that no catalogue proves are read again and put. Nothing that is served waits for it: it
 * has a thread of its own, and what it puts is what is on disk, not what the index says. At the end, and now and then while it
 * is quiet, a copy goes into the branch.
 *
 * Which directories: of each that this node's processes use, the leaves of this node's branch; of each whose coordinator is
 * here, the trunk directory and the leaves of branches of no member.
 *
 * If it cannot be written (no room, no permission), it is not written any more, status says why, and all else goes on. */

#include "shuntd.h"

struct recorder;

struct recorder_status {
    const char *path; /* of the live catalogue */
    int failed;       /* 0, or the -errno for which it is not written any more */
    uint64_t bytes, directories, names;
    uint64_t taken;  /* directories whose names were taken from a catalogue instead of being read */
    uint64_t behind; /* ns since it was complete, as far as this node knows; 0: it is */
};

/* Opens the live catalogue and makes catalogues the source of listings. Out of memory alone is an error. */
int recorder_create(struct shuntd *);
/* Waits for its thread. Takes NULL. */
void recorder_destroy(struct shuntd *);
/* With each batch: 0 or a fatal -errno. */
int recorder_step(struct shuntd *);
/* Until when main may sleep for it: monotonic, UINT64_MAX: for ever. */
uint64_t recorder_due(struct shuntd *);
/* The daemon is to end, and gives away what it knows from now on: notes which directories that are, once. */
void recorder_note_end(struct shuntd *);
/* The daemon is about to end: is there something to be written yet? Begins with it when it is called first. */
bool recorder_is_ending(struct shuntd *);
/* All zero where there is no recorder. */
void recorder_get_status(struct shuntd *, struct recorder_status *);
/* Removes the live catalogue's files. */
void recorder_remove_files(const struct shuntd *);
