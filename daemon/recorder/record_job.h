/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One look at all directories that are known, on the recorder's thread: those that no catalogue proves are read and put, then a
 * copy is made. What is gone is dropped. */

#include "catalogue/known.h"
#include "disk/disk.h"
#include "recorder/record_places.h"

/* A directory as main's thread knew it. */
struct record_dir_path {
    struct dirid id;
    bool is_coordinated; /* here */
    char *path;          /* relative to the root */
};

struct record_dirs {
    size_t count, room;
    struct record_dir_path *dirs;
};

/* All that are loaded, or were evicted since. 0 or -ENOMEM. By main's thread. */
int record_dirs_of(struct record_dirs *, struct shuntd *);
void record_dirs_free(struct record_dirs *);

struct record_job {
    struct disk_job job;
    struct catalogue *live;
    struct known *known;
    struct record_places *places;
    struct record_dirs dirs;
    bool *is_others; /* by the number of a branch: it is another member's, whose daemon records it */
    size_t branch_count;
    uint64_t served; /* recorder.c's */
    bool is_last, is_to_copy;
    /* What came of it. */
    int result;       /* 0, or why the catalogue cannot be written */
    bool is_complete; /* each of them is in a catalogue, or cannot be proven on this file system */
    uint64_t copied;  /* ns that the copy took, 0: none was made */
    struct catalogue_size size;
};

/* Takes over the directories, also when it fails: NULL. Its `finish` is the caller's to set. */
struct record_job *record_job_create(struct shuntd *, struct catalogue *live, struct known *, struct record_places *,
                                     struct record_dirs *);
void record_job_free(struct record_job *);
