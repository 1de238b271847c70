/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Private to this room: what index.c and view.c share. */

#include <lmdb.h>

#include "index/index.h"

/* Two records stand under the directory id 0/0, which no directory has: the stamp (hash 0) and the branches
 * (hash = number). */
#define STORE_STAMP_SIZE 32
void store_stamp_encode(uint8_t to[STORE_STAMP_SIZE], const struct index_stamp *);
/* 0; -EBADMSG: not an index of this format; -ESTALE: another session's or root's. */
int store_stamp_check(const MDB_val *, const struct index_stamp *expected);
void store_branch_key(struct record_key *, uint16_t number);
/* Hands a name's record to `each`: its answer, or -EBADMSG. */
int store_each(const MDB_val *key, const MDB_val *value, index_each *each, void *context);
/* LMDB's code as -errno. */
int store_error(int code);
