/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the files of an export share. One thread's. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "cli/json.h"
#include "cli/progress.h"
#include "leaving/export.h"
#include "leaving/export_owners.h"
#include "tree/mirrors.h"
#include "tree/opened.h"
#include "tree/walk.h"
#include "union/disk.h"

#define EXPORT_LINKED_MAX 64 /* few enough to be seen to soon when the export is stopped */

struct export
{
    const struct export_options *options;
    uint16_t branch; /* of the leaf that is open */
    uint32_t leaf;
    int leaf_fd; /* -1: none is */
    struct disk_rename renaming;
    const struct union_name *linked[EXPORT_LINKED_MAX]; /* in the trunk, and in that leaf still */
    size_t linked_count;
    struct export_owners owners;
    const struct export_aside *aside; /* the directory was, and is finished now; NULL: it was not */
    bool stays;                       /* a file of this directory was refused, or is in its leaf still */
    struct union_root root;
    struct progress progress;
    uint64_t began, requests; /* when it began, and what the file system's client had sent by then */
    bool has_requests;        /* ... if that is told */
    struct json json;
    struct opened opened; /* directories that an export which was killed has left open */
    struct statx root_before;
    struct mirror_names left; /* of directories that could not be exported wholly */
    size_t files, copied, looked, about, directories, conflicts, orphans;
    bool blind;                /* not all of the trunk was seen: a mirror without a marker need not be an orphan */
    char hidden[2 * PATH_MAX]; /* ... as the first directory that cannot be read or reached, or "" */
    bool hides;                /* ... and that is one of the user's own, in which a marker may be */
    bool failed;               /* something was complained of */
    bool hopeless;             /* ... that will be so everywhere */
};

/* export_complaint.c: sentences on standard error; the export has failed then. */

/* What it says of `path`, which is beneath the root or the root itself. */
void export_fail(struct export *, const char *path, int error);
/* Something of shunt's own cannot be removed. True: that is said, since it, or something in it, is fixed. */
bool export_complain_fixed_below(struct export *, const char *path);
void export_complain_appeared(struct export *, const char *where);
/* So was that the trunk's file, which is to be called so, could not be taken aside. */
void export_complain_loser(struct export *, const char *where, const char *called);
void export_complain_across(struct export *, const char *where);
/* Of what is beneath .shunt. */
void export_complain_own(struct export *, int error);
/* Of a directory: what it had before cannot be put back. */
void export_complain_mode(struct export *, const char *path, unsigned before, int error);
void export_complain_times(struct export *, const char *path, const struct statx *before, int error);
/* -ECANCELED. */
int export_complain_fixed(struct export *, const char *where);
void export_complain_fixed_directory(struct export *, const struct folder *);
/* A path beneath the root as it is said. */
void export_place(const struct export *, const char *path, char where[2 * PATH_MAX]);

/* export_report.c: how far it is, and how it ended. */

/* If it is due. */
void export_show_progress(struct export *);
void export_tell_json(struct export *, bool complete);
/* The end, in the form that was asked for. */
void export_tell(struct export *, bool complete);

/* export_loosen.c: directories that are closed to their owner, and their times. */

/* One whose mode keeps even its owner from changing it (a tree unpacked read-only) is opened to it for the time of the export.
 * True: it was, and export_put_back closes it. */
bool export_loosen(const struct export *, int fd, struct dirid, const struct statx *before);
void export_put_back_times(struct export *, int fd, const char *path, const struct statx *before);
void export_put_back(struct export *, int fd, const char *path, struct dirid, const struct statx *before, bool loosened);
/* Mirrors and leaves have the mode of their directory, or one that it had before its owner changed it without shunt; they end
 * here, so nothing is put back. */
void export_loosen_mirrors(const struct export *);

/* export_files.c: the files of a directory leave their leaves. */

/* Looks after the owners. */
void export_turn(struct export *, int milliseconds);
void export_turn_if_due(struct export *);
/* All files. 0; -ECANCELED: some were refused; -ENOENT: the directory is gone; or -errno after a complaint. */
int export_files(struct export *, const struct folder *);

/* export_directory.c: one directory of the trunk after the other becomes plain. */

void export_trunk(struct export *);

/* export_own.c: what is left in the root's .shunt. */

/* What no directory claimed. An empty mirror holds nothing that could be lost, but its marker may still be found. */
void export_look_at_mirrors(struct export *);
void export_remove_shunt(struct export *);
