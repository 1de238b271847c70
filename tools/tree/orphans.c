/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "tree/orphans.h"

#include "base/clock.h"
#include "cli/command.h"
#include "session/session.h"
#include "tree/mirrors.h"
#include "tree/walk.h"

#define PATIENCE (2 * CLOCK_SECOND)

/* The mirrors that markers name. False: not all of the trunk was seen, so that any mirror may belong to a
 * directory. */
static bool orphans_collect(struct union_root *root, struct mirror_names *known)
{
    struct walk walk;
    uint64_t end = clock_monotonic() + PATIENCE;
    int more = walk_init(&walk, root, ".", WALK_ONE_DEVICE | WALK_AHEAD);
    bool whole = more == 0;
    while (whole && (more = walk_next(&walk)) > 0) {
        const struct listing *listing = &walk.folder.listing;
        whole = clock_monotonic() < end && (!listing->marked || mirror_names_add(known, listing->marker.mirror) == 0);
    }
    whole &= more >= 0 && !walk.partial;
    walk_finish(&walk);
    return whole;
}

static size_t orphans_count_files(struct union_root *root, struct mirror_names *known)
{
    struct mirrors mirrors;
    size_t files = 0;
    mirrors_init(&mirrors, root, known);
    for (size_t i = 0; i < mirrors.count; i++)
        if (!mirrors.all[i].known && !mirrors.all[i].foreign)
            files += mirrors.all[i].files;
    mirrors_finish(&mirrors);
    return files;
}

/* Without a mirror there is no orphan, and the trunk need not be walked. */
static bool orphans_has_mirrors(const struct union_root *root)
{
    struct mirror_names none = {0};
    struct mirrors mirrors;
    mirrors_init(&mirrors, root, &none);
    bool any = mirrors.count > 0;
    mirrors_finish(&mirrors);
    return any;
}

static void orphans_report_stray(const struct union_root *root)
{
    char stray[MIRRORS_STRAY_MAX];
    if (mirrors_find_stray(root, true, stray) > 0)
        error_report("%s/" LAYOUT_BRANCHES
                     "/%s: warning: is not a %s, and what may be in it will not be shown (move it back to "
                     "its place if it was one, else elsewhere)",
                     root->path, stray, mirrors_stray_kind(stray));
}

void orphans_report(const char *path)
{
    struct union_root root;
    struct mirror_names known = {0};
    if (session_is_served(path) || union_root_init(&root, path, 0) < 0)
        return;
    orphans_report_stray(&root);
    size_t files = orphans_has_mirrors(&root) && orphans_collect(&root, &known) ? orphans_count_files(&root, &known) : 0;
    if (files > 0)
        error_report("%s: warning: %zu file%s of a directory that is gone will not be shown (run 'shunt fsck %s')", root.path,
                     files, files == 1 ? "" : "s", root.path);
    mirror_names_finish(&known);
    union_root_finish(&root);
}
