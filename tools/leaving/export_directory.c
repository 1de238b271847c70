/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/stopping.h"
#include "leaving/export_state.h"
#include "union/layout.h"
#include "union/mirror.h"

#define EXPORT_WAIT 200 /* ms, how often it is looked whether the export is to stop */

static void export_complain_mirror(struct export *export, const char *branch, const char *mirror, int error)
{
    char path[PATH_MAX + 1 + RECORD_MIRROR_MAX];
    snprintf(path, sizeof path, "%s/%s", branch, mirror);
    if (error == -EPERM && export_complain_fixed_below(export, path))
        return;
    if (error != -ENOTEMPTY) {
        export_fail(export, path, error);
        return;
    }
    progress_finish(&export->progress);
    error_report(
        "%s: something in it is not a leaf (move it back to its place if it was one, else elsewhere, and run this again)",
        path);
    export->failed = true;
}

static int export_remove_mirrors(struct export *export, const struct folder *folder)
{
    const char *mirror = folder->listing.marker.mirror;
    char path[PATH_MAX];
    for (size_t i = 1; i <= export->root.branch_count; i++) {
        int error = mirrors_branch_path(&export->root, (uint16_t)i, path, sizeof path);
        if (error == 0)
            error = mirror_remove(path, mirror);
        if (error < 0) {
            export_complain_mirror(export, path, mirror, error);
            return error;
        }
    }
    return 0;
}

static int export_remove_marker(struct export *export, const struct folder *folder)
{
    char where[2 * PATH_MAX];
    int error = folder->listing.unfinished ? listing_sweep(folder->fd) : 0;
    if (error == 0)
        error = sys_unlinkat(folder->fd, LAYOUT_MARKER, 0);
    export_place(export, folder->path, where);
    if (error == -EPERM && disk_is_fixed(folder->fd, ""))
        export_complain_fixed_directory(export, folder);
    else if (error == -EPERM && disk_is_fixed(folder->fd, LAYOUT_MARKER))
        export_complain_fixed_below(export, strcat(where, "/" LAYOUT_MARKER));
    else if (error < 0 && error != -ENOENT)
        export_fail(export, where, error);
    return error == -ENOENT ? 0 : error;
}

/* All that is shunt's own leaves a listed directory. */
static int export_empty(struct export *export, const struct folder *folder)
{
    int error = export_files(export, folder);
    if (error == 0)
        error = export_remove_mirrors(export, folder);
    return error == 0 ? export_remove_marker(export, folder) : error;
}

/* From disk, whatever the owners said, and whatever a catalogue knew before they renamed anything. */
static int export_list_again(struct export *export, struct folder *folder, unsigned how)
{
    const struct listing_source *source = export->root.source;
    export->root.source = NULL;
    const int error = folder_list(folder, &export->root, how);
    export->root.source = source;
    return error == 0 && !folder->listing.marked ? -ENOENT : error;
}

/* A file that lost a conflict has its name still: the directory, or its mirror, let nobody rename it. */
static bool export_is_unsettled(const struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        if (strcmp(listing->names[i].name, listing->names[i].on_disk) != 0)
            return true;
    return false;
}

/* Now that it is open to its owner. Of one that cannot be listed again it is not known any more what is left. */
static int export_settle(struct export *export, struct folder *folder)
{
    folder_unlist(folder);
    const int error = export_list_again(export, folder, LISTING_SETTLE);
    export->blind |= error < 0 && error != -ENOENT;
    return error;
}

static int export_marked(struct export *export, struct walk *walk)
{
    struct folder *folder = &walk->folder;
    const struct dirid id = folder->listing.id;
    bool loosened = export_loosen(export, folder->fd, id, &walk->before);
    struct export_aside *aside = export_owners_put_aside(&export->owners, &export->root, folder);
    if (aside != NULL) {
        aside->before = walk->before;
        aside->loosened = loosened;
        export_turn(export, 0);
        return 0;
    }
    int error = loosened && export_is_unsettled(&folder->listing) ? export_settle(export, folder) : 0;
    if (error == 0)
        error = export_empty(export, folder);
    export_put_back(export, folder->fd, folder->path, id, &walk->before, loosened);
    return error;
}

/* Would the kernel let files be made there, and the marker be removed? Its owner opens it to itself. */
static int export_dry(struct export *export, const struct walk *walk)
{
    int error = 0;
    if (walk->before.stx_uid != geteuid())
        error = (int)SYS4(SYS_faccessat2, walk->folder.fd, "", W_OK | X_OK, AT_EMPTY_PATH | AT_EACCESS);
    if (error == 0 && disk_is_fixed(walk->folder.fd, "")) {
        export_complain_fixed_directory(export, &walk->folder);
        error = -EPERM;
    }
    return error == 0 ? export_files(export, &walk->folder) : error;
}

static size_t export_count_redirected(const struct listing *listing)
{
    size_t count = 0;
    for (size_t i = 0; i < listing->count; i++)
        count += listing->names[i].branch > 0;
    return count;
}

static void export_tell_directory(struct export *export, const struct folder *folder)
{
    size_t files = export_count_redirected(&folder->listing);
    if (!export->options->dry_run || export->options->json)
        return;
    printf("would export %zu file%s into ", files, files == 1 ? "" : "s");
    describe_print(folder->path);
    putchar('\n');
}

/* How the export of a directory ended. One that was removed meanwhile, or its marker, is like one without: what is left of its
 * mirror is looked at later. */
static void export_note(struct export *export, const char *path, const char *mirror, int error)
{
    char where[2 * PATH_MAX];
    if (error == -ENOENT)
        return;
    export_place(export, path, where);
    if (error < 0 && !export->failed && !(error == -EINTR && stopping()))
        export_fail(export, where, error);
    if (error < 0 || export->options->dry_run)
        error = mirror_names_add(&export->left, mirror);
    export->blind |= error == -ENOMEM;
}

static void export_finish_aside(struct export *export, struct export_aside *aside)
{
    const struct dirid id = aside->folder.listing.id;
    /* What has the name of a file in a branch was made since it was settled, so it is not settled again, but complained of. */
    int error = stopping() || export->hopeless ? -EINTR : export_list_again(export, &aside->folder, 0);
    export->aside = aside;
    if (error == 0)
        error = export_empty(export, &aside->folder);
    export->aside = NULL;
    export_put_back(export, aside->folder.fd, aside->folder.path, id, &aside->before, aside->loosened);
    export_note(export, aside->folder.path, aside->mirror, error);
    export_aside_destroy(aside);
}

/* Those whose owners have answered. */
static void export_finish_answered(struct export *export)
{
    export_turn_if_due(export);
    for (struct export_aside *aside; (aside = export_owners_take(&export->owners)) != NULL; export_turn(export, 0))
        export_finish_aside(export, aside);
}

/* Until no more than so many are aside. Owners that are to stop are waited for. */
static void export_finish_asides(struct export *export, size_t most)
{
    while (export->owners.count > most) {
        if (stopping() || export->hopeless)
            export_owners_cancel(&export->owners);
        if (stopping())
            export->owners.owners->dismiss(export->owners.owners->context);
        export_finish_answered(export);
        export_turn(export, export->owners.count > most ? EXPORT_WAIT : 0);
    }
}

static void export_note_hidden(struct export *export, const struct walk *walk)
{
    const bool hides = walk->before.stx_uid == geteuid() && geteuid() != 0;
    if (export->hidden[0] == '\0' || (hides && !export->hides))
        export_place(export, walk->folder.path, export->hidden);
    export->hides |= hides;
}

/* One that has a name of shunt's own is not gone into. */
static void export_note_reserved(struct export *export, const struct walk *walk)
{
    char name[LAYOUT_UNFINISHED + 1], path[PATH_MAX];
    if (export->hidden[0] != '\0' || !listing_find_hidden(walk->folder.fd, name) ||
        folder_path(&walk->folder, name, path, sizeof path) < 0)
        return;
    export_place(export, path, export->hidden);
}

/* It was open, since an export was killed in it: what this one sees and puts back is its mode before. */
static void export_close_opened(struct export *export, struct walk *walk)
{
    const struct folder *folder = &walk->folder;
    mode_t before;
    if (!opened_find(&export->opened, folder->listing.id, walk->before.stx_mode, &before) || export->options->dry_run)
        return;
    walk->before.stx_mode = (uint16_t)((walk->before.stx_mode & S_IFMT) | before);
    if (!folder->listing.marked)
        export_put_back(export, folder->fd, folder->path, folder->listing.id, &walk->before, true);
}

/* LISTING_SETTLE takes away a marker that was copied. One that stays would be there in the plain directory. */
static void export_unmarked(struct export *export, const struct folder *folder)
{
    char where[2 * PATH_MAX];
    const int error = folder->listing.marker.mirror[0] != '\0' ? marker_remove(folder->fd) : 0;
    export_place(export, folder->path, where);
    if (error < 0 && error != -ENOENT)
        export_fail(export, where, error);
}

/* A directory without a marker may have been touched too. */
static void export_folder(struct export *export, struct walk *walk)
{
    const struct folder *folder = &walk->folder;
    struct statx now;
    export->conflicts += folder->listing.conflicts;
    if (folder->listing.trunk_unlisted)
        export_note_hidden(export, walk);
    if (folder->listing.hides)
        export_note_reserved(export, walk);
    if (!folder->listing.marked) {
        if (!export->options->dry_run)
            export_unmarked(export, folder);
        if (folder_stat(folder, walk->root, NULL, &now) == 0 &&
            (now.stx_mtime.tv_sec != walk->before.stx_mtime.tv_sec || now.stx_mtime.tv_nsec != walk->before.stx_mtime.tv_nsec))
            export_put_back_times(export, folder->fd, folder->path, &walk->before);
        return;
    }
    export->directories++;
    export_tell_directory(export, folder);
    int error = export->options->dry_run ? export_dry(export, walk) : export_marked(export, walk);
    if (folder->fd >= 0) /* it is not aside */
        export_note(export, folder->path, folder->listing.marker.mirror, error);
}

/* A directory was not listed. One that cannot be seen is no fault, unless something is left that may be its. */
static void export_pass_over(struct export *export, const struct walk *walk, int error)
{
    char where[2 * PATH_MAX];
    export_place(export, walk->folder.path, where);
    export->blind = true;
    if (error != -EACCES && error != -ENAMETOOLONG)
        export_fail(export, where, error);
    else
        export_note_hidden(export, walk);
}

void export_trunk(struct export *export)
{
    struct walk walk;
    unsigned flags = WALK_ONE_DEVICE | (export->options->dry_run ? 0 : WALK_SETTLE);
    int more = walk_init(&walk, &export->root, ".", flags);
    if (more < 0) {
        export_fail(export, export->root.path, more);
        export->blind = true;
    }
    bool first = true;
    for (; more == 0 && !stopping() && !export->hopeless && (more = walk_next(&walk)) != 0; more = 0) {
        if (more > 0)
            export_close_opened(export, &walk);
        if (first)
            export->root_before = walk.before;
        first = false;
        export_finish_answered(export);
        export_finish_asides(export, EXPORT_OWNERS_ASIDE - 1);
        if (more > 0) {
            export_folder(export, &walk);
            continue;
        }
        export_pass_over(export, &walk, more);
    }
    export_finish_asides(export, 0);
    export->blind |= walk.partial || export->hopeless;
    walk_finish(&walk);
}
