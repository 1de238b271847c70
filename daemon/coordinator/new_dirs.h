/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Word of new directories (DIR_CREATED) that is on its way to their coordinators. It says that a directory is empty, so it must
 * not come after the directory was used, and forgotten by all (evict.h): its sender agrees to that only when the word has
 * arrived. An answer to that goes another way than the word, over other daemons, and would come before one that the network has
 * lost once. */

#include "index/record.h"
#include "shuntd.h"

/* What was put last for that member is word of that directory. 0 or -ENOMEM. */
int new_dirs_note(struct shuntd *, struct dirid, uint16_t member);
/* Is there some that may not have arrived? */
bool new_dirs_are_told(struct shuntd *, struct dirid);
void new_dirs_free(struct shuntd *);
