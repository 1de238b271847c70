/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/outsiders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/kernel_abi.h"
#include "base/sys.h"
#include "shim/operations.h"
#include "shim/root_of.h"
#include "shim/target.h"
#include "union/layout.h"

#define OUTSIDERS_BUFFER 32768
#define OUTSIDERS_FIRST 1024 /* slots; a power of two */
#define OUTSIDERS_TEXT 32768 /* for names, at first */
#define OUTSIDERS_LOADS 100

/* A name on disk; hash 0: free. */
struct outsiders_slot {
    uint64_t hash, ino;
    uint8_t type;
    bool known;         /* as it is, or it is known elsewhere */
    bool has_other_ino; /* than is known, and the same type */
};

/* A directory while its trunk is compared with what is known. */
struct outsiders {
    struct names_root *root;
    struct dirid id;
    int fd; /* with an offset of its own, if there is a descriptor to be had */
    off_t offset;
    bool is_own;
    char *buffer;
    struct outsiders_slot *slots;
    size_t room, count, known;
    char *gone; /* names, each with its 0, that are known in the trunk and not on disk */
    size_t gone_room, gone_used;
};

static void *outsiders_map(size_t size)
{
    void *at = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return sys_is_error(at) ? NULL : at;
}

static struct outsiders_slot *outsiders_slot(const struct outsiders *o, uint64_t hash)
{
    size_t at = (size_t)hash & (o->room - 1);
    while (o->slots[at].hash != 0 && o->slots[at].hash != hash)
        at = (at + 1) & (o->room - 1);
    return &o->slots[at];
}

static int outsiders_grow(struct outsiders *o)
{
    const struct outsiders before = *o;
    o->room *= 2;
    o->slots = outsiders_map(o->room * sizeof *o->slots);
    if (o->slots == NULL) {
        *o = before;
        return -ENOMEM;
    }
    for (size_t i = 0; i < before.room; i++)
        if (before.slots[i].hash != 0)
            *outsiders_slot(o, before.slots[i].hash) = before.slots[i];
    sys_munmap(before.slots, before.room * sizeof *before.slots);
    return 0;
}

typedef int outsiders_one(struct outsiders *, const struct dirent64 *, size_t length);

static int outsiders_note(struct outsiders *o, const struct dirent64 *entry, size_t length)
{
    const uint64_t hash = record_hash(entry->d_name, length);
    if (2 * (o->count + 1) > o->room && outsiders_grow(o) != 0)
        return -ENOMEM;
    struct outsiders_slot *slot = outsiders_slot(o, hash);
    o->count += slot->hash == 0;
    *slot = (struct outsiders_slot){.hash = hash, .ino = entry->d_ino, .type = entry->d_type};
    return 0;
}

/* A listing may have another inode number than the file itself: below a mount point, and on some file systems. */
static bool outsiders_is_of_its_number(const struct outsiders *o, const struct dirent64 *entry)
{
    struct statx stat;
    return sys_statx(o->fd, entry->d_name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO, &stat) == 0 &&
           stat.stx_ino == entry->d_ino;
}

/* Its home looks at the disk itself. What is gone by now, with its directory perhaps, need not be known. */
static int outsiders_adopt(struct outsiders *o, const struct dirent64 *entry, size_t length)
{
    const struct outsiders_slot *slot = outsiders_slot(o, record_hash(entry->d_name, length));
    if (slot->known || (slot->has_other_ino && !outsiders_is_of_its_number(o, entry)))
        return 0;
    struct message message = {.type = MESSAGE_ADOPT,
                              .found.entry = {.type = entry->d_type, .state = RECORD_LIVE, .ino = entry->d_ino}};
    struct target t;
    int code = target_in_directory(&t, o->root, o->id, o->fd, entry->d_name, length);
    if (code != 0)
        return code == -ENOMEM ? code : 0;
    code = target_ask(&t, &message);
    scratch_give(t.scratch);
    return code >= 0 || code == -ENOENT ? 0 : code;
}

static int outsiders_read(struct outsiders *o, outsiders_one *one)
{
    const bool in_root = dirid_equal(o->id, o->root->id);
    ssize_t filled;
    int code = 0;
    if (sys_lseek(o->fd, 0, SEEK_SET) < 0)
        return -EIO;
    while (code == 0 && (filled = sys_getdents64(o->fd, o->buffer, OUTSIDERS_BUFFER)) > 0)
        for (ssize_t at = 0; at < filled && code == 0;) {
            const struct dirent64 *entry = (const struct dirent64 *)(o->buffer + at);
            const size_t length = strlen(entry->d_name);
            at += entry->d_reclen;
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                !layout_is_ours(entry->d_name, length, in_root))
                code = one(o, entry, length);
        }
    return code != 0 ? code : filled == 0 || filled == -ENOENT ? 0 : (int)filled;
}

static int outsiders_note_gone(struct outsiders *o, const char *name, size_t length)
{
    if (o->gone_used + length + 1 > o->gone_room) {
        const size_t room = o->gone_room != 0 ? 2 * o->gone_room : OUTSIDERS_TEXT;
        char *more = outsiders_map(room);
        if (more == NULL)
            return -ENOMEM;
        if (o->gone != NULL) {
            memcpy(more, o->gone, o->gone_used);
            sys_munmap(o->gone, o->gone_room);
        }
        o->gone = more;
        o->gone_room = room;
    }
    memcpy(o->gone + o->gone_used, name, length);
    o->gone[o->gone_used + length] = '\0';
    o->gone_used += length + 1;
    return 0;
}

static bool outsiders_is_of_type(const struct outsiders_slot *slot, const struct record_entry *entry)
{
    return slot->type == DT_UNKNOWN || entry->type == DT_UNKNOWN || slot->type == entry->type;
}

/* index_each. A name that is known elsewhere, and was made in the trunk, too, is a conflict: the daemon that loads the
 * directory next settles it. */
static int outsiders_compare(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct outsiders *o = context;
    struct outsiders_slot *slot = outsiders_slot(o, hash);
    const bool is_live_here = entry->branch == 0 && entry->state == RECORD_LIVE;
    if (slot->hash == 0)
        return is_live_here ? outsiders_note_gone(o, name, length) : 0;
    const bool is_same = !is_live_here || (outsiders_is_of_type(slot, entry) && slot->ino == entry->ino);
    o->known += is_same && !slot->known;
    slot->known = slot->known || is_same;
    slot->has_other_ino = outsiders_is_of_type(slot, entry);
    return 0;
}

/* As dir_stream_list_names: daemons that have forgotten the directory load it again. */
static int outsiders_compare_all(struct outsiders *o)
{
    int code = -ESTALE;
    for (int i = 0; code == -ESTALE && i < OUTSIDERS_LOADS; i++) {
        uint64_t from = 2;
        do
            code = names_list(o->root, o->id, &from, OUTSIDERS_TEXT, outsiders_compare, o);
        while (code == 0 && from != 0);
        int loaded = code == -ESTALE ? directory_load(o->fd, o->root, o->id) : 1;
        if (loaded != 1)
            return loaded < 0 ? loaded : -EIO;
    }
    return code;
}

/* It may have been made since: its home looks, too. */
static int outsiders_forget(struct outsiders *o, const char *name)
{
    struct statx stat;
    struct target t;
    if (sys_statx(o->fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO, &stat) != -ENOENT)
        return 0;
    int code = target_in_directory(&t, o->root, o->id, o->fd, name, strlen(name));
    if (code != 0)
        return code == -ENOMEM ? code : 0;
    target_forget(&t);
    scratch_give(t.scratch);
    return 0;
}

static int outsiders_tell(struct outsiders *o)
{
    int code = o->known < o->count ? outsiders_read(o, outsiders_adopt) : 0;
    for (size_t at = 0; at < o->gone_used && code == 0; at += strlen(o->gone + at) + 1)
        code = outsiders_forget(o, o->gone + at);
    return code;
}

/* One with an offset of its own: that of `fd` is the place in the union's listing. */
static void outsiders_open(struct outsiders *o, int fd)
{
    o->fd = sys_openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    o->is_own = o->fd >= 0;
    o->fd = o->is_own ? o->fd : fd;
    o->offset = o->is_own ? 0 : sys_lseek(fd, 0, SEEK_CUR);
}

static void outsiders_close(struct outsiders *o)
{
    if (o->is_own)
        sys_close(o->fd);
    else
        sys_lseek(o->fd, o->offset, SEEK_SET);
    sys_munmap(o->buffer, OUTSIDERS_BUFFER);
    sys_munmap(o->slots, o->room * sizeof *o->slots);
    if (o->gone != NULL)
        sys_munmap(o->gone, o->gone_room);
}

static int outsiders_compare_trunk(struct names_root *root, struct dirid id, int fd)
{
    struct outsiders o = {.root = root, .id = id, .room = OUTSIDERS_FIRST};
    o.buffer = outsiders_map(OUTSIDERS_BUFFER);
    o.slots = outsiders_map(o.room * sizeof *o.slots);
    int code = o.buffer != NULL && o.slots != NULL ? 0 : -ENOMEM;
    if (code == 0) {
        outsiders_open(&o, fd);
        code = outsiders_read(&o, outsiders_note);
        code = code == 0 ? outsiders_compare_all(&o) : code;
        code = code == 0 ? outsiders_tell(&o) : code;
        directory_inherits(o.fd); /* the same time tells of its attributes */
        outsiders_close(&o);
    }
    return code;
}

int outsiders_see(struct names_root *root, struct dirid id, int fd, const struct statx *stat, uint64_t now)
{
    int code = names_attach(root);
    if (code != 0)
        return code;
    const uint64_t times = names_trunk_times(stat);
    if (names_trunk_is_read(root, id, times))
        return 0;
    const bool have_stood = names_trunk_has_stood(root, id, times, now);
    names_trunk_was_seen(root, id, times);
    code = outsiders_compare_trunk(root, id, fd);
    if (code == 0 && have_stood)
        names_trunk_was_read(root, id, times);
    return code;
}
