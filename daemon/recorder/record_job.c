/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "recorder/record_job.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/sys.h"
#include "catalogue/take.h"
#include "coordinator/evict.h"
#include "home/home.h"
#include "shuntd.h"
#include "union/disk.h"

#define RECORD_JOB_PARTS 1024 /* that are looked at before the first of them is read: one wait for all */
#define RECORD_JOB_BUFFER 32768
#define RECORD_JOB_MARKER (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) /* as open takes it */
#define RECORD_JOB_LEAST (16ull << 20) /* bytes that are left to all others on the file system of the live catalogue, */
#define RECORD_JOB_SHARE_OF_MEMORY 4   /* ... and this part of it where it is memory, */
#define RECORD_JOB_SHARE_OF_DISK 64    /* ... or a disk */

/* What main's thread knows. */

static bool record_job_is_loaded(const struct home_dir *dir)
{
    return home_dir_is_loaded(dir) || (dir->coordinator != NULL && dir->coordinator->loaded);
}

static void record_job_add(struct record_dirs *dirs, struct dirid id, const char *at, bool is_coordinated)
{
    if (dirs->count == dirs->room) {
        const size_t room = dirs->room > 0 ? 2 * dirs->room : 64;
        struct record_dir_path *more = realloc(dirs->dirs, room * sizeof *more);
        if (more == NULL)
            return;
        dirs->dirs = more;
        dirs->room = room;
    }
    char *path = strdup(at);
    if (path != NULL)
        dirs->dirs[dirs->count++] = (struct record_dir_path){.id = id, .path = path, .is_coordinated = is_coordinated};
}

static void record_job_add_dir(struct home_dir *dir, void *context)
{
    if (record_job_is_loaded(dir))
        record_job_add(context, dir->id, dir->path, dir->coordinator != NULL);
}

/* What there is no memory for is not recorded. */
int record_dirs_of(struct record_dirs *dirs, struct shuntd *shuntd)
{
    *dirs = (struct record_dirs){.room = 64, .dirs = calloc(64, sizeof *dirs->dirs)};
    if (dirs->dirs == NULL)
        return -ENOMEM;
    home_dirs_each(shuntd->home, record_job_add_dir, dirs);
    for (struct evict_unrecorded *one; (one = evict_take_unrecorded(shuntd)) != NULL; free(one))
        record_job_add(dirs, one->id, one->path, one->is_coordinated);
    return 0;
}

void record_dirs_free(struct record_dirs *dirs)
{
    for (size_t i = 0; i < dirs->count; i++)
        free(dirs->dirs[i].path);
    free(dirs->dirs);
    *dirs = (struct record_dirs){0};
}

/* The job. */

/* A physical directory, or a marker, that no catalogue proves. */
struct record_part {
    char *path; /* absolute */
    bool is_marker;
    struct catalogue_stamp stood;
    unsigned flags; /* of take */
};

struct record_pass {
    struct record_job *job;
    const struct shuntd *shuntd;
    size_t count;
    bool is_young; /* one of them changed a short while ago */
    struct record_part parts[RECORD_JOB_PARTS];
};

/* The second signal ends all at once. */
static bool record_job_goes_on(const struct record_pass *pass)
{
    return pass->job->result == 0 && pass->shuntd->stop < 2;
}

static bool record_job_has_room(const struct record_pass *pass)
{
    struct statfs room;
    if (statfs(catalogue_path(pass->job->live), &room) != 0)
        return true;
    const bool is_memory = room.f_type == TMPFS_MAGIC || room.f_type == RAMFS_MAGIC;
    const uint64_t left = (uint64_t)room.f_bavail * (uint64_t)room.f_frsize;
    const uint64_t all = (uint64_t)room.f_blocks * (uint64_t)room.f_frsize;
    return left >= RECORD_JOB_LEAST && left >= all / (is_memory ? RECORD_JOB_SHARE_OF_MEMORY : RECORD_JOB_SHARE_OF_DISK);
}

static void record_job_read(struct record_pass *pass, const struct record_part *part)
{
    struct record_job *job = pass->job;
    if (!record_job_has_room(pass)) {
        job->result = -ENOSPC;
        return;
    }
    int fd = sys_openat(AT_FDCWD, part->path, part->is_marker ? RECORD_JOB_MARKER : DISK_DIRECTORY, 0);
    if (fd < 0)
        return;
    int code = part->is_marker ? take_marker(job->live, fd, &part->stood) : take(job->live, fd, &part->stood, part->flags);
    HOOK("record-put");
    sys_close(fd);
    job->is_complete &= code == 1;
    if (code < 0 && code != -EINVAL) /* that one has a name that no catalogue takes */
        job->result = code;
}

/* What was looked at. */
static void record_job_read_all(struct record_pass *pass)
{
    const struct timespec stands = clock_split(TAKE_STANDS);
    if (pass->is_young && record_job_goes_on(pass))
        clock_sleep(&stands);
    for (size_t i = 0; i < pass->count; i++) {
        if (record_job_goes_on(pass))
            record_job_read(pass, &pass->parts[i]);
        free(pass->parts[i].path);
    }
    pass->count = 0;
    pass->is_young = false;
}

/* Notes what no catalogue proves, to be read. */
static void record_job_add_part(struct record_pass *pass, const char *path, const struct record_part *part)
{
    struct record_part *to = &pass->parts[pass->count];
    *to = *part;
    to->path = strdup(path);
    if (to->path == NULL)
        return;
    pass->count++;
    pass->is_young |= !catalogue_stamp_is_old(&to->stood, (int64_t)clock_of(CLOCK_REALTIME));
    if (pass->count == RECORD_JOB_PARTS)
        record_job_read_all(pass);
}

static void record_job_note(struct record_pass *pass, const char *path, int fd, uint16_t branch, unsigned flags)
{
    struct record_part part = {.flags = flags};
    if (take_stamp(fd, &part.stood) == 1 && record_places_see(pass->job->places, part.stood.id, path) == 0 &&
        !known_proves(pass->job->known, &part.stood, branch))
        record_job_add_part(pass, path, &part);
}

static void record_job_note_marker(struct record_pass *pass, const char *directory, int fd)
{
    struct record_part part = {.is_marker = true};
    char path[2 * PATH_MAX];
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, directory);
    text_add(&t, "/" LAYOUT_MARKER);
    if (text_ok(&t) && take_stamp_at(fd, LAYOUT_MARKER, &part.stood) == 1 &&
        record_places_see(pass->job->places, part.stood.id, path) == 0 && !known_proves_marker(pass->job->known, &part.stood))
        record_job_add_part(pass, path, &part);
}

static void record_job_look_at_leaf(struct record_pass *pass, const char *mirror, const char *leaf, uint16_t branch,
                                    unsigned flags)
{
    char path[PATH_MAX];
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, mirror);
    text_add(&t, "/");
    text_add(&t, leaf);
    int fd = text_ok(&t) ? sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0) : -ENAMETOOLONG;
    if (fd < 0)
        return;
    record_job_note(pass, path, fd, branch, flags);
    sys_close(fd);
}

static void record_job_look_at_mirror(struct record_pass *pass, const struct marker *marker, uint16_t branch, unsigned flags)
{
    char path[PATH_MAX], buffer[RECORD_JOB_BUFFER] __attribute__((aligned(8)));
    struct text t;
    struct disk_scan scan;
    const struct disk_name *one;
    uint32_t leaf;
    text_init(&t, path, sizeof path);
    layout_mirror(&t, pass->shuntd->root.path, pass->shuntd->root.branches[branch - 1], marker->mirror);
    int more = text_ok(&t) ? disk_scan_init(&scan, AT_FDCWD, path, buffer, sizeof buffer) : -ENAMETOOLONG;
    if (more < 0)
        return;
    record_job_note(pass, path, scan.fd, branch, flags);
    while (record_job_goes_on(pass) && disk_scan_next(&scan, &one) > 0)
        if (layout_number(one->name, strlen(one->name), &leaf))
            record_job_look_at_leaf(pass, path, one->name, branch, flags);
    disk_scan_finish(&scan);
}

static bool record_job_is_ours(const struct record_pass *pass, uint16_t branch, const struct record_dir_path *dir)
{
    return branch == pass->shuntd->branch || (dir->is_coordinated && !pass->job->is_others[branch]);
}

static void record_job_look_at_mirrors(struct record_pass *pass, int trunk, const struct record_dir_path *dir, unsigned flags)
{
    struct marker marker;
    if (marker_read(trunk, &marker) != 0 || !dirid_equal(marker.directory, dir->id))
        return;
    for (size_t branch = 1; branch < pass->job->branch_count && record_job_goes_on(pass); branch++)
        if (record_job_is_ours(pass, (uint16_t)branch, dir))
            record_job_look_at_mirror(pass, &marker, (uint16_t)branch, flags);
}

/* May everybody search this directory, or list it, too? */
static bool record_job_allows(const char *path, mode_t bits)
{
    struct statx stat;
    return sys_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_MODE, &stat) == 0 && (stat.stx_mode & bits) == bits;
}

/* `path` is absolute, and below the root's. */
static bool record_job_is_public(const struct shuntd *shuntd, char *path)
{
    bool is_public = record_job_allows(path, S_IROTH | S_IXOTH);
    const size_t root = strlen(shuntd->root.path);
    for (char *slash = strrchr(path, '/'); is_public && slash != NULL && (size_t)(slash - path) > root;
         slash = strrchr(path, '/')) {
        *slash = '\0';
        is_public = record_job_allows(path, S_IXOTH);
    }
    return is_public;
}

static unsigned record_job_flags(const struct record_pass *pass, const struct record_dir_path *dir, char path[2 * PATH_MAX])
{
    char walked[2 * PATH_MAX];
    strcpy(walked, path);
    return (strcmp(dir->path, ".") == 0 ? TAKE_IN_ROOT : 0) | (record_job_is_public(pass->shuntd, walked) ? TAKE_PUBLIC : 0);
}

static void record_job_look_at(struct record_pass *pass, const struct record_dir_path *dir)
{
    char path[2 * PATH_MAX];
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, pass->shuntd->root.path);
    if (strcmp(dir->path, ".") != 0) {
        text_add(&t, "/");
        text_add(&t, dir->path);
    }
    int fd = disk_open_trunk(pass->shuntd, dir->path, dir->id);
    if (fd < 0)
        return;
    const unsigned flags = record_job_flags(pass, dir, path);
    if (dir->is_coordinated) {
        record_job_note(pass, path, fd, 0, flags);
        record_job_note_marker(pass, path, fd);
    }
    record_job_look_at_mirrors(pass, fd, dir, flags & ~(unsigned)TAKE_IN_ROOT);
    sys_close(fd);
}

/* Of what was there before and is there no more, or is another directory now. What cannot be looked at is left alone. */
static bool record_job_drop_if_gone(void *context, struct dirid id, const char *path)
{
    struct record_pass *pass = context;
    struct statx stat;
    if (!record_job_goes_on(pass))
        return false;
    int code = sys_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &stat);
    if (code == 0 ? dirid_equal(dirid_of(&stat), id) : code != -ENOENT && code != -ENOTDIR)
        return false;
    code = catalogue_drop(pass->job->live, id);
    if (code < 0)
        pass->job->result = code;
    return code == 0;
}

static int record_job_look_at_all(struct record_pass *pass)
{
    struct record_job *job = pass->job;
    int code = catalogue_begin(job->live);
    record_places_begin(job->places);
    if (code != 0)
        return code;
    for (size_t i = 0; i < job->dirs.count && record_job_goes_on(pass); i++)
        record_job_look_at(pass, &job->dirs.dirs[i]);
    record_job_read_all(pass);
    record_places_sweep(job->places, record_job_drop_if_gone, pass);
    if (job->result != 0) {
        catalogue_undo(job->live);
        return job->result;
    }
    HOOK("record-all");
    return catalogue_end(job->live);
}

/* A branch without mirrors goes with its session. */
static bool record_job_has_mirrors(int branch)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    bool found = false;
    if (disk_scan_init(&scan, branch, ".", buffer, sizeof buffer) < 0)
        return false;
    while (!found && disk_scan_next(&scan, &one) > 0)
        found = !layout_is_catalogue(one->name);
    disk_scan_finish(&scan);
    return found;
}

/* That there is no copy harms nobody. */
static void record_job_copy(struct record_job *job, const struct shuntd *shuntd)
{
    const uint64_t began = clock_monotonic();
    int branch = sys_openat(AT_FDCWD, shuntd->branch_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (branch < 0)
        return;
    if (!record_job_has_mirrors(branch))
        sys_unlinkat(branch, LAYOUT_CATALOGUE, 0);
    else if (catalogue_copy(job->live, branch, LAYOUT_CATALOGUE) == 0)
        job->copied = clock_monotonic() - began + 1;
    sys_close(branch);
    HOOK("record-copied");
}

static void record_job_carry_out(struct disk_job *base, const struct shuntd *shuntd)
{
    struct record_job *job = (struct record_job *)base;
    struct record_pass *pass = calloc(1, sizeof *pass);
    job->is_complete = pass != NULL;
    if (pass == NULL)
        return;
    pass->job = job;
    pass->shuntd = shuntd;
    HOOK("record-begun");
    job->result = record_job_look_at_all(pass);
    if (job->result == 0)
        job->result = catalogue_measure(job->live, &job->size);
    if (job->result == 0 && job->is_to_copy && record_job_goes_on(pass))
        record_job_copy(job, shuntd);
    free(pass);
}

static int record_job_note_others(struct record_job *job, const struct shuntd *shuntd)
{
    job->branch_count = shuntd->root.branch_count + 1;
    job->is_others = calloc(job->branch_count, sizeof *job->is_others);
    if (job->is_others == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < shuntd->session.count; i++) {
        const uint16_t branch = shuntd_branch(shuntd, shuntd->session.members[i].number);
        if (branch < job->branch_count)
            job->is_others[branch] = true;
    }
    return 0;
}

struct record_job *record_job_create(struct shuntd *shuntd, struct catalogue *live, struct known *known,
                                     struct record_places *places, struct record_dirs *dirs)
{
    struct record_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        record_dirs_free(dirs);
        return NULL;
    }
    job->job.carry_out = record_job_carry_out;
    job->live = live;
    job->known = known;
    job->places = places;
    job->dirs = *dirs;
    *dirs = (struct record_dirs){0};
    if (record_job_note_others(job, shuntd) == 0)
        return job;
    record_job_free(job);
    return NULL;
}

void record_job_free(struct record_job *job)
{
    record_dirs_free(&job->dirs);
    free(job->is_others);
    free(job);
}
