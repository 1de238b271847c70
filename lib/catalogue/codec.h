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

#define CATALOGUE_FORMAT 2 /* raised when what is in the file changes its meaning */

#define CODEC_ABOUT_SIZE 28
#define CODEC_LIST_SIZE 8
#define CODEC_DIRECTORY_KEY_SIZE 16
#define CODEC_DIRECTORY_SIZE 56
#define CODEC_NAME_KEY_MAX (CODEC_LIST_SIZE + RECORD_NAME_MAX)
#define CODEC_NAME_SIZE 9
#define CODEC_MARKER_FIXED 56 /* before the name of its mirrors */
#define CODEC_MARKER_MAX (CODEC_MARKER_FIXED + RECORD_MIRROR_MAX)
#define CODEC_HASH_SIZE 16
#define CODEC_TRAILER_SIZE 64

/* The record that says what the file is: its magic, format and root. */
void codec_about_encode(uint8_t to[CODEC_ABOUT_SIZE], struct dirid root);
int codec_about_decode(struct dirid *root, const void *bytes, size_t size);

#define CODEC_COUNT_MAX (1ull << 40) /* of names in a directory */

struct codec_directory {
    int64_t mtime, ctime;
    uint64_t list;   /* where its names are; 0: it has none */
    bool is_public;  /* everybody may list it */
    uint64_t count;  /* of its names */
    uint64_t length; /* of all its names together */
    uint64_t sum;    /* codec_sum over all of them, in order */
};
void codec_directory_key(uint8_t to[CODEC_DIRECTORY_KEY_SIZE], struct dirid);
void codec_directory_encode(uint8_t to[CODEC_DIRECTORY_SIZE], const struct codec_directory *);
int codec_directory_decode(struct codec_directory *, const void *bytes, size_t size);

/* A single component of a path: 1 to 255 bytes, neither `.` nor `..`, no slash and no zero. */
bool codec_name_is_valid(const char *name, size_t length);

struct codec_name {
    uint64_t list;
    const char *name; /* not terminated */
    size_t length;
    uint64_t ino;
    uint8_t type; /* DT_* */
};
/* What all keys of a list begin with. */
void codec_list(uint8_t to[CODEC_LIST_SIZE], uint64_t list);
/* The size of the key. The name must be valid. */
size_t codec_name_encode(uint8_t key[CODEC_NAME_KEY_MAX], uint8_t value[CODEC_NAME_SIZE], const struct codec_name *);
/* The name points into `key`. */
int codec_name_decode(struct codec_name *, const void *key, size_t key_size, const void *value, size_t size);
/* Goes on with a sum, which begins as 0, by one more name. */
uint64_t codec_sum(uint64_t sum, const struct codec_name *);

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
