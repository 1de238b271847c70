/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Quotas of directories (CephFS): what is in such a directory counts, and nothing is renamed into it or out of it. Mirrors lie
 * outside. Project quotas are inherit.h's. Blocking; thread-safe; allocates nothing. */

/* Does the directory `trunk` (a descriptor; may be O_PATH), or one above it and below the root at that path, have one?
 * RECORD_WHY_DEVICE, or 0. A file system without such quotas is asked once, CephFS for each of these directories. A quota of
 * the root or above it counts the branches, too. */
int quota_of_directory(int trunk, const char *root);
