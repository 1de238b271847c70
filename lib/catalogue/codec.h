/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The keys and values of a catalogue, and the trailer of a copy. FORMAT.md next to this file is the document.
 *
 * Pure: no I/O, no allocation, callable anywhere, async-signal-safe. Decoding checks sizes and ranges and answers 0, or
 * -EBADMSG. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/record.h"

#define CATALOGUE_FORMAT 3 /* raised when what is in the file changes its meaning */

#define CODEC_ABOUT_SIZE 28
#define CODEC_TOTAL_SIZE 8
#define CODEC_DIRECTORY_KEY_SIZE 16
#define CODEC_DIRECTORY_SIZE 56
#define CODEC_LIST_SIZE 8 /* what all keys of a list begin with */
#define CODEC_BLOCK_KEY_SIZE (CODEC_LIST_SIZE + 4)
#define CODEC_BLOCK_MAX 998   /* bytes of names: of such blocks four fill a page of LMDB's of 4 KiB, to the last byte */
#define CODEC_NAME_FIXED 10   /* bytes of a name in a block, before the name itself */
#define CODEC_MARKER_FIXED 56 /* before the name of its mirrors */
#define CODEC_MARKER_MAX (CODEC_MARKER_FIXED + RECORD_MIRROR_MAX)
#define CODEC_HASH_SIZE 16
#define CODEC_TRAILER_SIZE 64

/* The record that says what the file is: its magic, format and root. */
void codec_about_encode(uint8_t to[CODEC_ABOUT_SIZE], struct dirid root);
int codec_about_decode(struct dirid *root, const void *bytes, size_t size);

/* The record that says how many names all lists have together. */
void codec_total_encode(uint8_t to[CODEC_TOTAL_SIZE], uint64_t total);
int codec_total_decode(uint64_t *total, const void *bytes, size_t size);

#define CODEC_COUNT_MAX (1ull << 40) /* of names in a directory */

struct codec_directory {
    int64_t mtime, ctime;
    uint64_t list;   /* where its names are; 0: it has none */
    bool is_public;  /* everybody may list it */
    uint64_t count;  /* of its names */
    uint64_t blocks; /* that have them */
    uint64_t sum;    /* codec_sum over all of them, in order */
};
void codec_directory_key(uint8_t to[CODEC_DIRECTORY_KEY_SIZE], struct dirid);
void codec_directory_encode(uint8_t to[CODEC_DIRECTORY_SIZE], const struct codec_directory *);
int codec_directory_decode(struct codec_directory *, const void *bytes, size_t size);

/* A single component of a path: 1 to 255 bytes, neither `.` nor `..`, no slash and no zero. */
bool codec_name_is_valid(const char *name, size_t length);

struct codec_name {
    const char *name; /* not terminated */
    size_t length;
    uint64_t ino;
    uint8_t type; /* DT_* */
};
void codec_list(uint8_t to[CODEC_LIST_SIZE], uint64_t list);
void codec_block_key(uint8_t to[CODEC_BLOCK_KEY_SIZE], uint64_t list, uint32_t number);
int codec_block_key_decode(uint64_t *list, uint32_t *number, const void *bytes, size_t size);
/* Puts a name, which must be valid, behind the first `used` bytes of a block. How many are used then; 0: it does not fit. */
size_t codec_block_add(uint8_t block[CODEC_BLOCK_MAX], size_t used, const struct codec_name *);
/* The name at *at, which points into the block; *at is moved behind it. */
int codec_block_next(struct codec_name *, const uint8_t *block, size_t size, size_t *at);
/* Goes on with a sum, which begins as 0, by one more block. */
uint64_t codec_sum(uint64_t sum, const void *block, size_t size);

struct codec_marker {
    int64_t mtime, ctime; /* of its file */
    uint64_t id;
    struct dirid directory, root;
    const char *mirror; /* not terminated */
    size_t length;
};
/* The size. The name of the mirrors must be valid, and shorter than RECORD_MIRROR_MAX. */
size_t codec_marker_encode(uint8_t to[CODEC_MARKER_MAX], const struct codec_marker *);
/* The name points into `bytes`. */
int codec_marker_decode(struct codec_marker *, const void *bytes, size_t size);

struct codec_trailer {
    struct dirid root;
    uint64_t bytes; /* before the trailer */
};
/* All but the hash, which is over everything before it and becomes the last CODEC_HASH_SIZE bytes. */
void codec_trailer_encode(uint8_t to[CODEC_TRAILER_SIZE], const struct codec_trailer *);
/* -EBADMSG also where a machine of another byte order or word size wrote it. The hash is the caller's to check. */
int codec_trailer_decode(struct codec_trailer *, const void *bytes, size_t size);
