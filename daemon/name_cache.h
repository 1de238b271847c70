/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

#include <stdbool.h>

/* May this node's kernel go by a name below `root` that another node has changed since? So it may on NFS, for as long as it
 * takes a directory's attributes for true, unless it is mounted with lookupcache=none or noac. */
bool name_cache_is_kept(const char *root);
