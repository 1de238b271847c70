/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A page of names, the text of an answer to LIST: for each, one after the other, the hash (8 bytes), the
 * inode number (8), the word of its branch (4; record_branch_word, 0: it is in the trunk), its leaf there (4), the type
 * (1), the state (1), the length of the name (1), the name. Numbers are little-endian. In the order of the hashes, none twice.
 * With a page goes its limit: up to which hash it holds all names.
 *
 * Pure; async-signal-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/record.h"

#define PAGE_NAME_FIXED 27
#define PAGE_MAX 65280      /* with what travels around it, it fits a frame, and a bulk buffer of the channel */
#define PAGE_LEAST 2048     /* what every answer has room for */
#define PAGE_ALL UINT64_MAX /* the limit of a page that has all names from where it begins */

struct page_name {
    uint64_t hash;
    const char *name; /* into the page, not terminated */
    size_t length;
    uint32_t branch;           /* its word; 0: the trunk */
    struct record_entry entry; /* but for the branch, which is 1 for any */
};

/* Adds a name at *used of `size` bytes; false: it does not fit any more. */
bool page_add(char *page, size_t size, size_t *used, const struct page_name *);
/* Reads the name at *at: 1, 0: there is none after the last, -EBADMSG: this is no page. */
int page_next(const char *page, size_t size, size_t *at, struct page_name *);

/* The order of a listing: by hash, then by name; below, at or above 0, as memcmp. */
int page_order(const struct page_name *, const struct page_name *);

/* Names of one directory as one of several knows them. */
struct page_part {
    const char *page;
    size_t size;
    uint64_t limit;
};
/* Two of them become one in `to`, of at most `size` bytes, as far as both go and as they fit: that far goes the answer,
 * the limit. A name that is in both is told once. */
uint64_t page_merge(char *to, size_t size, size_t *used, const struct page_part parts[2]);
