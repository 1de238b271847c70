/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "leaving/export.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/stopping.h"
#include "leaving/client_requests.h"
#include "leaving/copy.h"
#include "leaving/export_owners.h"
#include "serving/hold.h"
#include "session/stamp.h"
#include "tree/fixed.h"
#include "tree/mirrors.h"
#include "tree/opened.h"
#include "tree/walk.h"
#include "union/disk.h"
#include "union/mirror.h"

#define SESSION LAYOUT_OWN "/session"
#define SESSION_OVER LAYOUT_OWN "/session.over"
#define EXPORT_WAIT 200 /* ms, how often it is looked whether the export is to stop */
#define LINKED_MAX 64   /* few enough to be seen to soon when the export is stopped */

struct export
{
    const struct export_options *options;
    uint16_t branch; /* of the leaf that is open */
    uint32_t leaf;
    int leaf_fd; /* -1: none is */
    struct disk_rename renaming;
    const struct union_name *linked[LINKED_MAX]; /* in the trunk, and in that leaf still */
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

/* Will it be so everywhere? */
static bool export_is_hopeless(int error)
{
    return error == -EXDEV || error == -EROFS || error == -ENOSPC || error == -EDQUOT;
}

static void export_fail(struct export *export, const char *path, int error)
{
    char fixed[PATH_MAX];
    progress_finish(&export->progress);
    if (error == -EPERM && fixed_find(export->root.path, path, fixed))
        fixed_complain(fixed);
    else
        error_report_path(path, error);
    export->failed = true;
}

/* Something of shunt's own cannot be removed. True: that is said, since it, or something in it, is fixed. */
static bool export_complain_fixed_below(struct export *export, const char *path)
{
    char fixed[PATH_MAX];
    if (!fixed_find_below(path, fixed))
        return false;
    progress_finish(&export->progress);
    fixed_complain(fixed);
    export->failed = true;
    return true;
}

/* A directory whose mode keeps even its owner from changing it (a tree unpacked read-only) is opened to it
 * for the time of the export. */
static bool export_loosen(const struct export *export, int fd, struct dirid id, const struct statx *before)
{
    if (!opened_has_to(before))
        return false;
    opened_write(export->root.path, id, before->stx_mode);
    return opened_give_mode(fd, opened_mode(before->stx_mode)) == 0;
}

static void export_put_back_times(int fd, const struct statx *before)
{
    char proc[DISK_PROC_SIZE];
    struct timespec times[2] = {{before->stx_atime.tv_sec, before->stx_atime.tv_nsec},
                                {before->stx_mtime.tv_sec, before->stx_mtime.tv_nsec}};
    disk_proc(proc, fd);
    sys_utimensat(AT_FDCWD, proc, times, 0);
}

static void export_put_back(const struct export *export, int fd, struct dirid id, const struct statx *before, bool loosened)
{
    if (loosened && opened_give_mode(fd, before->stx_mode) == 0)
        opened_remove(export->root.path, id);
    export_put_back_times(fd, before);
}

/* Mirrors and leaves have the mode of their directory, or one that it had before its owner changed it without shunt; they end
 * here, so nothing is put back. */
static void export_loosen_mirrors(const struct export *export)
{
    char path[PATH_MAX], buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    for (size_t i = 1; i <= export->root.branch_count && geteuid() != 0 && !export->options->dry_run; i++) {
        if (mirrors_branch_path(&export->root, (uint16_t)i, path, sizeof path) < 0 ||
            disk_scan_init(&scan, AT_FDCWD, path, buffer, sizeof buffer) < 0)
            continue;
        while (!stopping() && disk_scan_next(&scan, &one) > 0)
            if (!layout_is_catalogue(one->name))
                opened_open_mirror(scan.fd, one->name);
        disk_scan_finish(&scan);
    }
}

static double export_seconds(const struct export *export)
{
    return (double)(clock_monotonic() - export->began) / CLOCK_SECOND;
}

static void export_show_progress(struct export *export)
{
    if (!progress_due(&export->progress))
        return;
    const size_t files = export->files + export->owners.underway;
    const double rate = (double)files / (export_seconds(export) + 1e-9);
    const size_t left = export->about > files ? export->about - files : 0;
    char rest[64] = "", nodes[48] = "";
    if (export->owners.working > 0)
        snprintf(nodes, sizeof nodes, ", %zu other node%s at work", export->owners.working,
                 export->owners.working == 1 ? "" : "s");
    if (files > 0)
        snprintf(rest, sizeof rest, ", %.0f files/s, about %.0f s left", rate, (double)left / rate);
    progress_line(&export->progress, "exported %zu of about %zu files in %zu directories%s%s", files, export->about,
                  export->directories, nodes, rest);
}

/* Looks after the owners. */
static void export_turn(struct export *export, int milliseconds)
{
    const uint64_t files = export->owners.files, looked = export->owners.looked;
    export_owners_turn(&export->owners, &export->root, milliseconds);
    export->files += export->owners.files - files;
    export->looked += export->owners.looked - looked;
    export_show_progress(export);
}

static void export_turn_if_due(struct export *export)
{
    if (export_owners_are_due(&export->owners))
        export_turn(export, 0);
    else
        export_show_progress(export);
}

static void export_complain_appeared(struct export *export, const char *where)
{
    progress_finish(&export->progress);
    error_report("%s: a file of that name appeared in the trunk during the export (stop the program that writes there and run "
                 "this again)",
                 where);
    export->failed = true;
}

static void export_complain_across(struct export *export, const char *where)
{
    progress_finish(&export->progress);
    error_report("%s: cannot be renamed to another file system, mount or project quota (run 'shunt export --copy %s' to copy "
                 "such files)",
                 where, export->root.path);
    export->failed = true;
}

/* -ECANCELED: refused after a complaint, and left where it is; the others go on. */
static int export_copy_file(struct export *export, const char *where, const struct folder *folder,
                            const struct union_name *name)
{
    int answer = copy_into(export->leaf_fd, name->on_disk, folder->fd, name->name);
    export->copied += answer == 0;
    if (answer <= 0)
        return answer;
    progress_finish(&export->progress);
    error_report("%s: %s", where, copy_words((enum copy_refusal)answer));
    export->failed = true;
    return -ECANCELED;
}

/* Takes those out of the leaf that are in the trunk by now. */
static void export_unlink_linked(struct export *export, const struct folder *folder)
{
    char where[PATH_MAX];
    for (size_t i = 0; i < export->linked_count; i++) {
        const struct union_name *name = export->linked[i];
        int error = sys_unlinkat(export->leaf_fd, name->on_disk, 0);
        if (error == 0 || error == -ENOENT)
            continue;
        export_fail(export, folder_where(folder, &export->root, name, where, sizeof where) == 0 ? where : name->name, error);
        export->hopeless |= export_is_hopeless(error);
        export->stays = true;
    }
    export->linked_count = 0;
}

static void export_close_leaf(struct export *export, const struct folder *folder)
{
    export_unlink_linked(export, folder);
    if (export->leaf_fd >= 0)
        sys_close(export->leaf_fd);
    export->leaf_fd = -1;
}

/* Has its owner renamed it since the directory was listed again? A look at its new name would then find it. */
static bool export_has_left(const struct export *export, const struct union_name *name)
{
    struct statx stat;
    return export->aside != NULL && export_aside_was_ordered(export->aside, name) &&
           sys_statx(export->leaf_fd, name->on_disk, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == -ENOENT;
}

/* The leaf of one file, kept for those after it. A file system that is asked for each part of a path is asked for the names
 * alone; and those who may write below .shunt cannot make it another place once it is open. */
static int export_open_leaf(struct export *export, const struct folder *folder, const struct union_name *name)
{
    char path[PATH_MAX];
    struct text t;
    if (export->leaf_fd >= 0 && export->branch == name->branch && export->leaf == name->leaf)
        return 0;
    export_close_leaf(export, folder);
    text_init(&t, path, sizeof path);
    layout_leaf(&t, "", export->root.branches[name->branch - 1], folder->listing.marker.mirror, name->leaf);
    export->leaf_fd = text_ok(&t) ? disk_open_below(export->root.path, path + 1) : -ENAMETOOLONG;
    export->branch = name->branch;
    export->leaf = name->leaf;
    return export->leaf_fd < 0 ? export->leaf_fd : 0;
}

static int export_move_file(struct export *export, const char *where, const struct folder *folder,
                            const struct union_name *name)
{
    struct disk_rename *renaming = &export->renaming;
    int error = export_open_leaf(export, folder, name);
    if (error == 0 && export_has_left(export, name))
        error = -ENOENT;
    else if (error == 0 && export->aside != NULL && strcmp(name->name, name->on_disk) != 0) /* it lost a conflict since then */
        error = -EEXIST;
    if (error < 0)
        return error;
    error = disk_rename_next(renaming, export->leaf_fd, name->on_disk, folder->fd, name->name);
    export->looked += error == 0 && renaming->unknown && !renaming->linked;
    if (renaming->linked)
        export->linked[export->linked_count++] = name;
    if (export->linked_count == LINKED_MAX)
        export_unlink_linked(export, folder);
    return error == -EXDEV && export->options->copy ? export_copy_file(export, where, folder, name) : error;
}

static int export_complain_fixed(struct export *export, const char *where)
{
    progress_finish(&export->progress);
    error_report("%s: immutable or append-only, so it cannot be renamed (run 'chattr -i -a' on it, then run this again)",
                 where);
    export->failed = true;
    return -ECANCELED;
}

static void export_place(const struct export *export, const char *path, char where[2 * PATH_MAX])
{
    snprintf(where, 2 * PATH_MAX, "%s/%s", export->root.path, path);
}

static void export_complain_fixed_directory(struct export *export, const struct folder *folder)
{
    char where[2 * PATH_MAX];
    export_place(export, folder->path, where);
    progress_finish(&export->progress);
    error_report("%s: immutable or append-only, so it cannot become a plain directory (run 'chattr -i -a' on it, then run this "
                 "again)",
                 where);
    export->failed = true;
}

/* Has another program removed the directory? What was its is an orphan then. */
static bool export_is_gone(const struct folder *folder)
{
    char path[PATH_MAX];
    return disk_canonical(folder->fd, path, sizeof path) == -ENOENT;
}

/* One file. 0, also if it ended by itself; -ENOENT: its directory did; else -errno after a complaint. */
static int export_file(struct export *export, const struct folder *folder, const struct union_name *name)
{
    char where[PATH_MAX];
    int error = folder_where(folder, &export->root, name, where, sizeof where);
    if (error == 0 && !export->options->dry_run)
        error = export_move_file(export, where, folder, name);
    if (error == -EPERM && disk_is_fixed(export->leaf_fd, name->on_disk))
        error = export_complain_fixed(export, where);
    if (error == -EPERM && disk_is_fixed(folder->fd, ""))
        export_complain_fixed_directory(export, folder);
    else if (error == -EEXIST)
        export_complain_appeared(export, where);
    else if (error == -EXDEV)
        export_complain_across(export, where);
    else if (error < 0 && error != -ENOENT && error != -ECANCELED && error != -EINTR)
        export_fail(export, where, error);
    export->hopeless |= export_is_hopeless(error);
    export->files += error == 0;
    export_turn_if_due(export);
    return error == -ENOENT && (export->options->dry_run || !export_is_gone(folder)) ? 0 : error;
}

static int export_compare_leaves(const void *a, const void *b)
{
    const struct union_name *one = *(const struct union_name *const *)a, *other = *(const struct union_name *const *)b;
    if (one->branch != other->branch)
        return one->branch < other->branch ? -1 : 1;
    if (one->leaf != other->leaf)
        return one->leaf < other->leaf ? -1 : 1;
    return one < other ? -1 : 1;
}

/* What is redirected, one leaf after the other: malloc'ed, NULL without memory. */
static const struct union_name **export_order_by_leaf(const struct listing *listing, size_t *count)
{
    const struct union_name **names = malloc((listing->count + 1) * sizeof *names);
    *count = 0;
    for (size_t i = 0; i < listing->count && names != NULL; i++)
        if (listing->names[i].branch > 0)
            names[(*count)++] = &listing->names[i];
    if (names != NULL)
        qsort(names, *count, sizeof *names, export_compare_leaves);
    return names;
}

/* -ECANCELED: some were refused. */
static int export_files(struct export *export, const struct folder *folder)
{
    size_t count;
    const struct union_name **names = export_order_by_leaf(&folder->listing, &count);
    int error = names != NULL ? 0 : -ENOMEM;
    export->stays = false;
    for (size_t i = 0; i < count && (error == 0 || error == -ECANCELED); i++) {
        error = stopping() ? -EINTR : export_file(export, folder, names[i]);
        export->stays |= error == -ECANCELED;
    }
    export_close_leaf(export, folder);
    free(names);
    return error == 0 && export->stays ? -ECANCELED : error;
}

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
    int error = export_empty(export, folder);
    export_put_back(export, folder->fd, id, &walk->before, loosened);
    return error;
}

/* Would the kernel let files be made there, and the marker be removed? Its owner opens it to himself. */
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
    if (export->options->dry_run && !export->options->json)
        printf("would export %zu file%s into %s\n", files, files == 1 ? "" : "s", folder->path);
}

/* How the export of a directory ended. One that was removed meanwhile, or its marker, is like one without: what is left of its
 * mirror is looked at later. */
static void export_note(struct export *export, const char *path, const char *mirror, int error)
{
    char where[2 * PATH_MAX];
    if (error == -ENOENT)
        return;
    export_place(export, path, where);
    if (error < 0 && !export->failed && error != -EINTR)
        export_fail(export, where, error);
    if (error < 0 || export->options->dry_run)
        error = mirror_names_add(&export->left, mirror);
    export->blind |= error == -ENOMEM;
}

/* From disk, whatever the owners said, and whatever a catalogue knew before they renamed anything. What has the name of a file
 * in a branch was made since the directory was settled, so it is not settled again, but complained of. */
static int export_list_again(struct export *export, struct folder *folder)
{
    const struct listing_source *source = export->root.source;
    export->root.source = NULL;
    const int error = folder_list(folder, &export->root, 0);
    export->root.source = source;
    return error == 0 && !folder->listing.marked ? -ENOENT : error;
}

static void export_finish_aside(struct export *export, struct export_aside *aside)
{
    const struct dirid id = aside->folder.listing.id;
    int error = stopping() || export->hopeless ? -EINTR : export_list_again(export, &aside->folder);
    export->aside = aside;
    if (error == 0)
        error = export_empty(export, &aside->folder);
    export->aside = NULL;
    export_put_back(export, aside->folder.fd, id, &aside->before, aside->loosened);
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
        export_put_back(export, folder->fd, folder->listing.id, &walk->before, true);
}

/* A directory without a marker may have been touched too: LISTING_SETTLE takes away one that was copied. */
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
        if (folder_stat(folder, walk->root, NULL, &now) == 0 &&
            (now.stx_mtime.tv_sec != walk->before.stx_mtime.tv_sec || now.stx_mtime.tv_nsec != walk->before.stx_mtime.tv_nsec))
            export_put_back_times(folder->fd, &walk->before);
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

static void export_trunk(struct export *export)
{
    struct walk walk;
    unsigned flags = WALK_ONE_DEVICE | (export->options->dry_run ? 0 : WALK_SETTLE);
    int more = walk_init(&walk, &export->root, ".", flags);
    if (more < 0)
        export_fail(export, export->root.path, more);
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

/* Only to say how much there is to do. */
static void export_count_prefetch(struct export *export)
{
    struct mirror_names none = {0};
    struct mirrors mirrors;
    if (!export->progress.on)
        return;
    mirrors_init(&mirrors, &export->root, &none);
    for (size_t i = 0; i < mirrors.count; i++)
        export->about += mirrors.all[i].files;
    mirrors_finish(&mirrors);
}

static void export_complain_left(struct export *export, const struct mirror_found *mirror)
{
    const char *root = export->root.path;
    char path[PATH_MAX + sizeof LAYOUT_BRANCHES + LAYOUT_BRANCH_MAX + NAME_MAX + 3];
    snprintf(path, sizeof path, "%s/" LAYOUT_BRANCHES "/%s/%s", root, export->root.branches[mirror->branch - 1], mirror->name);
    if (mirror->foreign)
        error_report("%s: does not belong to shunt (move it elsewhere and run this again)", path);
    else if (!export->blind)
        error_report("%s: %zu file%s of a directory that is gone (run 'shunt fsck --restore %s' to restore them or 'shunt fsck "
                     "--delete %s' to remove them)",
                     path, mirror->files, mirror->files == 1 ? "" : "s", root, root);
    else if (!export->failed)
        error_report(
            "%s: %zu file%s of a directory that is gone, or hidden by its permissions, its name, a long path or a mount%s%s%s "
            "(make all of %s visible and run this again)",
            path, mirror->files, mirror->files == 1 ? "" : "s", export->hidden[0] != '\0' ? ", as " : "", export->hidden,
            export->hidden[0] != '\0' ? " may be" : "", root);
    export->failed = true;
}

/* What no directory claimed. An empty mirror holds nothing that could be lost, but its marker may still be found. */
static void export_look_at_mirrors(struct export *export)
{
    struct mirrors mirrors;
    char path[PATH_MAX];
    int error = mirrors_init(&mirrors, &export->root, &export->left);
    if (error < 0) {
        char unread[PATH_MAX + sizeof LAYOUT_BRANCHES + 1 + sizeof mirrors.unread];
        snprintf(unread, sizeof unread, "%s/" LAYOUT_BRANCHES "/%s", export->root.path, mirrors.unread);
        export_fail(export, unread, error);
    }
    for (size_t i = 0; i < mirrors.count; i++) {
        const struct mirror_found *mirror = &mirrors.all[i];
        if (mirror->known)
            continue;
        const bool is_empty = !mirror->foreign && mirror->files == 0 && !export->hides;
        if (is_empty && !export->options->dry_run &&
            mirrors_branch_path(&export->root, mirror->branch, path, sizeof path) == 0 &&
            mirror_remove(path, mirror->name) == 0)
            continue;
        if (is_empty)
            continue;
        export->orphans += !mirror->foreign && !export->blind;
        export_complain_left(export, mirror);
    }
    mirrors_finish(&mirrors);
}

/* The names in a directory that are meant; NULL: all of them. */
static void export_unlink_all(int directory, const char *name, bool (*is_meant)(const char *), int flags)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    if (disk_scan_init(&scan, directory, name, buffer, sizeof buffer) < 0)
        return;
    while (disk_scan_next(&scan, &one) > 0)
        if (is_meant == NULL || is_meant(one->name))
            sys_unlinkat(scan.fd, one->name, flags);
    disk_scan_finish(&scan);
}

static int export_remove_directory(int root, const char *path)
{
    int error = sys_unlinkat(root, path, AT_REMOVEDIR);
    return error == -ENOENT ? 0 : error;
}

static int export_remove_branches(const struct export *export, int root)
{
    int error = 0;
    for (size_t i = 0; i < export->root.branch_count && error == 0; i++) {
        char path[sizeof LAYOUT_BRANCHES + 1 + LAYOUT_BRANCH_MAX];
        snprintf(path, sizeof path, LAYOUT_BRANCHES "/%s", export->root.branches[i]);
        export_unlink_all(root, path, layout_is_catalogue, 0);
        error = export_remove_directory(root, path);
    }
    if (error == 0) /* those of daemons that are about to start, which find that the root is held, or gone, and start again */
        export_unlink_all(root, LAYOUT_BRANCHES, NULL, AT_REMOVEDIR);
    return error < 0 ? error : export_remove_directory(root, LAYOUT_BRANCHES);
}

/* What a process left that ended while it wrote a stamp. */
static bool export_is_half_written(const char *name)
{
    return strncmp(name, STAMP_TEMPORARY, sizeof STAMP_TEMPORARY - 1) == 0;
}

/* Somebody began a session once the claim was gone. */
static bool export_is_begun(int root)
{
    struct statx stat;
    return sys_statx(root, SESSION, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == 0;
}

/* The claim on the root goes last, at once: a daemon that founds a session afterwards does so in a directory of its own. */
static int export_remove_own(const struct export *export, int root)
{
    int error = export_remove_branches(export, root);
    if (error < 0)
        return error;
    export_unlink_all(root, LAYOUT_OWN, export_is_half_written, 0);
    sys_unlinkat(root, LAYOUT_OWN "/README", 0);
    sys_unlinkat(root, LAYOUT_OWN "/root", 0);
    export_unlink_all(root, SESSION_OVER, NULL, 0);
    export_remove_directory(root, SESSION_OVER);
    error = sys_renameat2(root, SESSION, root, SESSION_OVER, 0);
    if (error < 0 && error != -ENOENT)
        return error;
    export_unlink_all(root, SESSION_OVER, NULL, 0);
    error = export_remove_directory(root, SESSION_OVER);
    export_unlink_all(root, LAYOUT_OWN, opened_is_one, 0); /* the root's own, and of directories that are gone */
    if (error == 0)
        error = export_remove_directory(root, LAYOUT_OWN);
    return error < 0 && export_is_begun(root) ? 0 : error;
}

static void export_complain_own(struct export *export, int error)
{
    const bool is_full = error == -ENOTEMPTY || error == -EEXIST;
    char own[2 * PATH_MAX];
    export_place(export, LAYOUT_OWN, own);
    export->failed = true;
    if ((is_full || error == -EPERM) && export_complain_fixed_below(export, own))
        return;
    if (is_full)
        error_report("%s: something in it does not belong to shunt (move it elsewhere and run this again)", own);
    else
        export_fail(export, export->root.path, error);
}

static void export_remove_shunt(struct export *export)
{
    hold_rest();
    int root = sys_openat(AT_FDCWD, export->root.path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    bool loosened = root >= 0 && export_loosen(export, root, export->root.id, &export->root_before);
    int error = root < 0 ? root : export_remove_own(export, root);
    if (error < 0)
        export_complain_own(export, error);
    if (root >= 0) {
        export_put_back(export, root, export->root.id, &export->root_before, loosened);
        sys_close(root);
    }
}

/* What this host's client has sent since the export began. */
static bool export_requests(const struct export *export, uint64_t *sent)
{
    uint64_t now;
    if (!export->has_requests || !client_requests_read(export->root.path, &now) || now < export->requests)
        return false;
    *sent = now - export->requests;
    return true;
}

static void export_add_to_sum(const struct export *export, struct export_sum *sum)
{
    uint64_t sent;
    sum->files += export->files;
    sum->by_owners += export->owners.files;
    sum->directories += export->directories;
    if (export_requests(export, &sent)) {
        sum->has_requests = true;
        sum->requests += sent;
    }
}

static void export_tell_json(struct export *export, bool complete)
{
    const double seconds = export_seconds(export);
    uint64_t sent;
    struct json *json = &export->json;
    json_open(json, NULL, '{');
    json_text(json, "root", export->root.path);
    json_bool(json, "dry_run", export->options->dry_run);
    json_unsigned(json, "files", export->files);
    json_unsigned(json, "by_owners", export->owners.files);
    json_unsigned(json, "copied", export->copied);
    json_unsigned(json, "looked", export->looked);
    json_unsigned(json, "directories", export->directories);
    json_unsigned(json, "conflicts", export->conflicts);
    json_unsigned(json, "orphans", export->orphans);
    json_real(json, "seconds", seconds);
    json_real(json, "files_per_second", export->options->dry_run ? NAN : (double)export->files / seconds);
    if (export_requests(export, &sent))
        json_unsigned(json, "requests", sent);
    else
        json_text(json, "requests", NULL);
    json_bool(json, "complete", complete);
    json_close(json, '}');
}

/* Of work that nobody waits for it says nothing. */
static void export_tell_rate(const struct export *export)
{
    const double seconds = export_seconds(export);
    uint64_t sent;
    if (!export->options->dry_run && seconds >= 1)
        printf(", in %.1f s (%.0f files/s)", seconds, (double)export->files / seconds);
    if (!export->options->dry_run && export->files > 0 && export_requests(export, &sent))
        printf(", %" PRIu64 " requests of this host's NFS client", sent);
}

static void export_tell(struct export *export, bool complete)
{
    bool dry = export->options->dry_run;
    progress_finish(&export->progress);
    if (export->options->sum)
        export_add_to_sum(export, export->options->sum);
    if (export->options->json) {
        export_tell_json(export, complete);
        return;
    }
    if (export->options->quiet && complete)
        return;
    printf("%s %zu file%s in %zu director%s", dry ? "would export" : "exported", export->files, export->files == 1 ? "" : "s",
           export->directories, export->directories == 1 ? "y" : "ies");
    if (export->copied > 0)
        printf(", %zu of them copied", export->copied);
    if (export->owners.files > 0)
        printf(", %" PRIu64 " of them by the nodes that made them", export->owners.files);
    if (export->conflicts > 0)
        printf(", %zu that lost a conflict kept as NAME.shunt-conflict-NODE", export->conflicts);
    if (export->looked > 0)
        printf(", renamed after a look at each name (--careful links, where no rename is known that replaces nothing)");
    export_tell_rate(export);
    printf("%s%s%s\n", complete && !dry ? ": " : "", complete && !dry ? export->root.path : "",
           complete && !dry ? " is a plain directory" : "");
}

static int export_interrupted(const struct export *export, int signal)
{
    if (signal == STOPPING_LEASE) {
        error_report("%s: the claim on it ran out, since this process, or the file system, stood still; nothing is lost (run "
                     "'shunt export %s' to go on)",
                     export->root.path, export->root.path);
        return STATUS_FAILED;
    }
    error_report("%s: the export was interrupted, nothing is lost (run 'shunt export %s' to go on)", export->root.path,
                 export->root.path);
    return 128 + signal;
}

static int export_finish(struct export *export, int signal)
{
    if (!signal)
        export_look_at_mirrors(export);
    if (!signal && !export->failed && !export->options->dry_run)
        export_remove_shunt(export);
    export_tell(export, !signal && !export->failed);
    mirror_names_finish(&export->left);
    return signal ? export_interrupted(export, signal) : export->failed ? STATUS_FAILED : STATUS_OK;
}

/* Without the marker that goes, what comes back to its place would be an orphan. */
static bool export_complain_stray(struct export *export)
{
    char stray[MIRRORS_STRAY_MAX];
    if (!mirrors_find_stray(&export->root, true, stray))
        return false;
    error_report("%s/" LAYOUT_BRANCHES
                 "/%s: is not a %s, and what may be in it is not seen (move it back to its place if it was one, "
                 "else elsewhere, and run this again)",
                 export->root.path, stray, mirrors_stray_kind(stray));
    return true;
}

static int export_held(struct export *export)
{
    progress_init(&export->progress, export->options->progress);
    if (export_complain_stray(export)) {
        export_tell(export, false);
        return STATUS_FAILED;
    }
    export_count_prefetch(export);
    export_loosen_mirrors(export);
    opened_init(&export->opened, export->root.path);
    export_trunk(export);
    opened_finish(&export->opened);
    return export_finish(export, stopping());
}

static bool export_has_own(const char *root)
{
    struct statx stat;
    int fd = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    int error = sys_statx(fd, LAYOUT_OWN, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat);
    sys_close(fd);
    return error == 0;
}

/* Nothing of shunt's in it: it is plain already, unless it is a part of a root. */
static int export_plain(struct export *export, const char *root)
{
    struct union_root above;
    if (union_root_init(&above, root, LISTING_FIND_ROOT) == 0) {
        error_report("%s: only a whole root can be exported, and this is a part of %s (run 'shunt export %s')", root,
                     above.path, above.path);
        union_root_finish(&above);
        return STATUS_FAILED;
    }
    if (export->options->json)
        export_tell_json(export, true);
    else if (!export->options->quiet)
        printf("%s is a plain directory already\n", root);
    return STATUS_OK;
}

static int export_yield(const struct export *export)
{
    if (export->options->sum != NULL)
        export->options->sum->yielded++;
    error_report("%s: not exported yet, others of your jobs use it (the last one exports it, else run 'shunt export %s')",
                 export->root.path, export->root.path);
    return STATUS_OK;
}

static int export_claimed(struct export *export)
{
    struct hold hold;
    if (export->options->dry_run)
        return hold_is_taken(export->root.path) ? STATUS_FAILED : export_held(export);
    const int taken = export->options->yields ? hold_take_or_yield(&hold, export->root.path, "export")
                                              : hold_take(&hold, export->root.path, "export");
    if (taken > 0)
        return export_yield(export);
    if (taken < 0)
        return stopping() ? export_interrupted(export, stopping()) : STATUS_FAILED;
    int error = hold_look_at_root(&export->root);
    export_owners_init(&export->owners, export->options->careful ? NULL : export->options->owners, &export->root);
    int status = error < 0 ? STATUS_FAILED : export_held(export);
    export_owners_finish(&export->owners);
    hold_release(&hold);
    return status;
}

int export_root(const char *root, const struct export_options *options)
{
    struct export export = {
        .options = options, .leaf_fd = -1, .renaming.careful = options->careful, .began = clock_monotonic()};
    int error = union_root_init(&export.root, root, 0);
    if (error < 0) {
        error_report_path(root, error);
        return STATUS_FAILED;
    }
    export.has_requests = client_requests_read(export.root.path, &export.requests);
    stopping_catch(); /* while it is claimed, too: other hosts take it for the claim of a process that lives */
    int status = export_has_own(export.root.path) ? export_claimed(&export) : export_plain(&export, export.root.path);
    int signal = stopping_release();
    union_root_finish(&export.root);
    return status == STATUS_OK && signal != 0 ? 128 + signal : status;
}
