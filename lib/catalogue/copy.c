/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A copy: LMDB's compact copy, then a trailer by which damage is seen before LMDB reads it. */

#include <errno.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/hook.h"
#include "base/text.h"
#include "catalogue/codec.h"
#include "catalogue/environment.h"
#include "union/disk.h"
#include "union/layout.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define COPY_PIECE ((size_t)1 << 20)
#define COPY_NAME_MAX 64
#define COPY_MODE 0644 /* if everybody may list each of its directories */
#define COPY_PRIVATE 0600
#define COPY_FLAGS (MDB_RDONLY | MDB_NOLOCK | MDB_NOSUBDIR | MDB_NOTLS)

/* Reads all of it; less is -EBADMSG. */
static int copy_read(int file, void *to, size_t size, uint64_t offset)
{
    uint8_t *at = to;
    while (size > 0) {
        ssize_t more = SYS4(SYS_pread64, file, at, size, offset);
        if (more == -EINTR)
            continue;
        if (more <= 0)
            return more < 0 ? (int)more : -EBADMSG;
        at += more;
        size -= (size_t)more;
        offset += (uint64_t)more;
    }
    return 0;
}

static int copy_hash_pieces(XXH3_state_t *state, uint8_t *piece, int file, uint64_t bytes)
{
    int error = 0;
    for (uint64_t offset = 0; offset < bytes && error == 0; offset += COPY_PIECE) {
        const size_t size = bytes - offset < COPY_PIECE ? (size_t)(bytes - offset) : COPY_PIECE;
        error = copy_read(file, piece, size, offset);
        if (error == 0)
            XXH3_128bits_update(state, piece, size);
    }
    return error;
}

/* The hash of so many bytes of the file and of a trailer up to its own hash. */
static int copy_hash(int file, uint64_t bytes, const uint8_t trailer[CODEC_TRAILER_SIZE], uint8_t hash[CODEC_HASH_SIZE])
{
    XXH3_state_t *state = XXH3_createState();
    uint8_t *piece = malloc(COPY_PIECE);
    int error = state != NULL && piece != NULL ? 0 : -ENOMEM;
    if (error == 0) {
        XXH3_128bits_reset(state);
        error = copy_hash_pieces(state, piece, file, bytes);
    }
    if (error == 0) {
        XXH128_canonical_t canonical;
        XXH3_128bits_update(state, trailer, CODEC_TRAILER_SIZE - CODEC_HASH_SIZE);
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
        memcpy(hash, canonical.digest, CODEC_HASH_SIZE);
    }
    free(piece);
    XXH3_freeState(state);
    return error;
}

static int copy_append_trailer(int file, struct dirid root)
{
    const off_t bytes = sys_lseek(file, 0, SEEK_END);
    if (bytes < 0)
        return (int)bytes;
    uint8_t trailer[CODEC_TRAILER_SIZE];
    codec_trailer_encode(trailer, &(struct codec_trailer){root, (uint64_t)bytes});
    int error = copy_hash(file, (uint64_t)bytes, trailer, trailer + CODEC_TRAILER_SIZE - CODEC_HASH_SIZE);
    if (error < 0)
        return error;
    const ssize_t wrote = SYS4(SYS_pwrite64, file, trailer, sizeof trailer, bytes);
    if (wrote != (ssize_t)sizeof trailer)
        return wrote < 0 ? (int)wrote : -ENOSPC;
    return 0;
}

/* May everybody know all that is in it? 1, 0 or -errno. */
static int copy_is_public(struct catalogue *c)
{
    struct codec_directory directory = {.is_public = true};
    MDB_cursor *cursor;
    MDB_val key, value;
    MDB_txn *txn;
    int code = environment_read(c, &txn);
    if (code < 0)
        return code;
    code = mdb_cursor_open(txn, c->directories, &cursor);
    if (code == 0) {
        while (directory.is_public && (code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
            if ((code = codec_directory_decode(&directory, value.mv_data, value.mv_size)) != 0)
                break;
        mdb_cursor_close(cursor);
    }
    environment_read_end(c, txn);
    return code == 0 || code == MDB_NOTFOUND ? directory.is_public : environment_error(code);
}

static int copy_write(struct catalogue *c, int file)
{
    int error = environment_error(mdb_env_copyfd2(c->env, file, MDB_CP_COMPACT));
    if (error == 0)
        error = copy_append_trailer(file, c->root);
    if (error == 0)
        error = copy_is_public(c);
    if (error >= 0)
        error = sys_fchmod(file, error == 1 ? COPY_MODE : COPY_PRIVATE);
    return error == 0 ? (int)SYS1(SYS_fsync, file) : error;
}

/* That the new name stays is not promised: without it the old copy is there, or none. */
static void copy_sync_directory(int directory)
{
    int fd = disk_reopen(directory);
    if (fd < 0)
        return;
    SYS1(SYS_fsync, fd);
    sys_close(fd);
}

int catalogue_copy(struct catalogue *c, int directory, const char *name)
{
    char temporary[COPY_NAME_MAX];
    struct text t;
    if (c->failed < 0)
        return c->failed;
    text_init(&t, temporary, sizeof temporary);
    text_add(&t, LAYOUT_CATALOGUE_NEW);
    text_number(&t, (uint64_t)sys_getpid(), 10);
    sys_unlinkat(directory, temporary, 0); /* of a process of that number that was killed */
    int file = sys_openat(directory, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return file;
    int error = copy_write(c, file);
    const int closed = sys_close(file);
    if (error == 0)
        error = closed;
    if (error == 0)
        error = sys_renameat2(directory, temporary, directory, name, 0);
    if (error < 0)
        sys_unlinkat(directory, temporary, 0);
    else
        copy_sync_directory(directory);
    return error;
}

/* The size of what precedes a good trailer of this root, in `bytes`. */
static int copy_verify(int file, struct dirid root, uint64_t *bytes)
{
    uint8_t trailer[CODEC_TRAILER_SIZE], hash[CODEC_HASH_SIZE];
    struct codec_trailer said;
    struct statx stat;
    int error = sys_statx(file, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &stat);
    if (error < 0)
        return error;
    if (!S_ISREG(stat.stx_mode) || stat.stx_size <= sizeof trailer)
        return -EBADMSG;
    *bytes = stat.stx_size - sizeof trailer;
    error = copy_read(file, trailer, sizeof trailer, *bytes);
    if (error == 0)
        error = codec_trailer_decode(&said, trailer, sizeof trailer);
    if (error == 0 && said.bytes != *bytes)
        error = -EBADMSG;
    if (error == 0 && !dirid_equal(said.root, root))
        error = -ESTALE;
    if (error == 0)
        error = copy_hash(file, *bytes, trailer, hash);
    if (error == 0 && memcmp(hash, trailer + CODEC_TRAILER_SIZE - CODEC_HASH_SIZE, sizeof hash) != 0)
        error = -EBADMSG;
    return error;
}

static int copy_move(int from, int to, uint8_t *piece)
{
    uint64_t offset = 0;
    for (;;) {
        ssize_t got = SYS4(SYS_pread64, from, piece, COPY_PIECE, offset);
        if (got == 0 || (got < 0 && got != -EINTR))
            return (int)got;
        ssize_t put = got > 0 ? SYS4(SYS_pwrite64, to, piece, got, offset) : 0;
        if (put < 0)
            return (int)put;
        offset += (uint64_t)put;
    }
}

/* NFS forgets a file that another client has removed, also one that is mapped here: there it is read into memory. A descriptor,
 * which may be another one. */
static int copy_hold(int file)
{
    struct statfs fs;
    if (!BROKEN("as-on-nfs") && (fstatfs(file, &fs) != 0 || fs.f_type != NFS_SUPER_MAGIC))
        return file;
    uint8_t *piece = malloc(COPY_PIECE);
    int memory = piece != NULL ? (int)SYS2(SYS_memfd_create, "catalogue", MFD_CLOEXEC) : -ENOMEM;
    int error = memory >= 0 ? copy_move(file, memory, piece) : memory;
    free(piece);
    sys_close(file);
    if (error == 0)
        return memory;
    if (memory >= 0)
        sys_close(memory);
    return error;
}

/* It has a descriptor for as long as it is open, and a root has any number of them: half of a process's are for all else. */
static int copy_leaves_room(struct catalogue *c)
{
    struct rlimit limit;
    int file;
    const int code = mdb_env_get_fd(c->env, &file);
    if (code != 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return environment_error(code);
    return (rlim_t)file < limit.rlim_cur / 2 ? 0 : -EMFILE;
}

/* By its descriptor, so that what was verified is what LMDB maps, whatever has the name meanwhile. */
static int copy_open(struct catalogue *c, int file, struct dirid root)
{
    char proc[DISK_PROC_SIZE];
    uint64_t bytes;
    int error = copy_verify(file, root, &bytes);
    if (error < 0)
        return error;
    disk_proc(proc, file);
    error = environment_open(c, proc, COPY_FLAGS, (size_t)bytes, root);
    return error == 0 ? copy_leaves_room(c) : error;
}

int catalogue_open_copy(struct catalogue **catalogue, int directory, const char *name, struct dirid root)
{
    struct catalogue *c;
    /* O_NONBLOCK: a FIFO in its place must not hold us. */
    int file = sys_openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (file < 0)
        return file == -ELOOP || file == -ENXIO ? -EBADMSG : file;
    if ((file = copy_hold(file)) < 0)
        return file;
    int error = environment_create(&c);
    if (error == 0) {
        c->is_copy = true;
        error = copy_open(c, file, root);
    }
    sys_close(file);
    if (error < 0)
        environment_close(c);
    else
        *catalogue = c;
    return error;
}
