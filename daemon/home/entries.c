/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Where the names that this daemon is home of are: in the index, which processes read in place, or, of a directory that alone
 * is above the limit of the index, in a file of LMDB (catalogue/spill.h). Then processes ask for them, as for those of another
 * home (RECORD_SPILLED). */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "catalogue/spill.h"
#include "home/home.h"
#include "home/state.h"
#include "index/index.h"
#include "listen/listen.h"

/* There are few. */
static struct spill *entries_spill_of(struct home *home, struct dirid id)
{
    for (const struct link *link = home->spilled.next; link != &home->spilled; link = link->next)
        if (dirid_equal(LINK_OF(link, struct home_dir, spilled)->id, id))
            return LINK_OF(link, struct home_dir, spilled)->spill;
    return NULL;
}

int home_get_entry(struct home *home, struct dirid id, const char *name, size_t length, struct record_entry *entry)
{
    struct spill *spill = entries_spill_of(home, id);
    return spill != NULL ? spill_get(spill, name, length, entry) : index_get_entry(home->uses.index, id, name, length, entry);
}

int home_put_entry(struct home *home, struct dirid id, const char *name, size_t length, const struct record_entry *entry)
{
    struct spill *spill = entries_spill_of(home, id);
    return spill != NULL ? spill_put(spill, name, length, entry) : index_put_entry(home->uses.index, id, name, length, entry);
}

int home_add_entry(struct home *home, struct dirid id, const char *name, size_t length, struct record_entry *entry)
{
    struct spill *spill = entries_spill_of(home, id);
    return spill != NULL ? spill_add(spill, name, length, entry) : index_add_entry(home->uses.index, id, name, length, entry);
}

int home_del_entry(struct home *home, struct dirid id, const char *name, size_t length)
{
    struct spill *spill = entries_spill_of(home, id);
    return spill != NULL ? spill_del(spill, name, length) : index_del_entry(home->uses.index, id, name, length);
}

int home_make_room(struct home *home, struct dirid id, const char *name, size_t length)
{
    struct spill *spill = entries_spill_of(home, id);
    return spill != NULL ? spill_make_room(spill) : index_make_room(home->uses.index, id, name, length);
}

int home_has_entries(struct home *home, struct dirid id)
{
    struct spill *spill = entries_spill_of(home, id);
    return spill != NULL ? spill_has_names(spill) : index_has_names(home->uses.index, id);
}

int home_list_entries(struct home *home, struct dirid id, uint64_t from, index_each *each, void *context)
{
    struct spill *spill = entries_spill_of(home, id);
    return spill != NULL ? spill_list(spill, from, each, context) : index_list(home->uses.index, id, from, each, context);
}

int home_del_entries(struct home *home, struct dirid id, index_is_meant *is_meant, void *context)
{
    struct spill *spill = entries_spill_of(home, id);
    return spill != NULL ? spill_del_names(spill, is_meant, context) : index_del_names(home->uses.index, id, is_meant, context);
}

void home_end_spill(struct home_dir *dir)
{
    if (dir->spill == NULL)
        return;
    spill_destroy(dir->spill);
    dir->spill = NULL;
    dir->record.flags &= ~(uint32_t)RECORD_SPILLED;
    list_remove(&dir->spilled);
}

int home_del_dir(struct home *home, struct home_dir *dir)
{
    home_end_spill(dir);
    return index_del_dir(home->uses.index, dir->id);
}

static int entries_to_spill(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    (void)hash;
    return spill_append(context, name, length, entry);
}

/* Until there is one, names stay in the index. */
static int entries_begin_spill(struct home *home, struct home_dir *dir)
{
    char path[sizeof home->spill_base + 24];
    struct spill *spill;
    snprintf(path, sizeof path, "%s.%llu", home->spill_base, (unsigned long long)++home->spill_number);
    int code = spill_create(&spill, path);
    if (code != 0) {
        home->spill_above = 0;
        log_warning("%s: the names of directories above the limit of the index stay in it: %s", path, strerror(-code));
        return 0;
    }
    code = index_list(home->uses.index, dir->id, 0, entries_to_spill, spill);
    if (code != 0) { /* the index has them still */
        spill_destroy(spill);
        return code == -ENOSPC ? 0 : code;
    }
    dir->spill = spill;
    dir->record.flags |= RECORD_SPILLED;
    list_append(&home->spilled, &dir->spilled);
    if (dir->record.flags & RECORD_LOADED) /* before they go: a process that does not find one asks */
        code = index_put_dir(home->uses.index, dir->id, &dir->record);
    listen_count_loss(home->uses.listen);
    return code == 0 ? index_del_names(home->uses.index, dir->id, NULL, NULL) : code;
}

int home_spill(struct home *home, struct home_dir *dir)
{
    dir->listed_names++;
    if (dir->spill != NULL || home->spill_above == 0 ||
        index_size_of(dir->listed_names, dir->listed_bytes) <= home->spill_above)
        return 0;
    return entries_begin_spill(home, dir);
}

int home_spill_now(struct home *home, struct home_dir *dir)
{
    return home->spill_above > 0 && dir->spill == NULL ? entries_begin_spill(home, dir) : 0;
}

struct entries_back {
    struct home *home;
    struct dirid id;
};

static int entries_to_index(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    const struct entries_back *back = context;
    (void)hash;
    return index_put_entry(back->home->uses.index, back->id, name, length, entry);
}

int home_unspill(struct home *home, struct home_dir *dir)
{
    struct entries_back back = {home, dir->id};
    const int code = dir->spill != NULL ? spill_list(dir->spill, 0, entries_to_index, &back) : 0;
    home_end_spill(dir);
    return code;
}

void home_set_spill(struct home *home, uint64_t above, const char *base)
{
    const int length = snprintf(home->spill_base, sizeof home->spill_base, "%s", base);
    home->spill_above = length > 0 && (size_t)length < sizeof home->spill_base ? above : 0;
}

bool home_can_spill(const struct home *home)
{
    return home->spill_above > 0;
}

uint64_t home_spilled(struct home *home, uint64_t *bytes)
{
    uint64_t count = 0;
    *bytes = 0;
    for (const struct link *link = home->spilled.next; link != &home->spilled; link = link->next, count++)
        *bytes += spill_bytes(LINK_OF(link, struct home_dir, spilled)->spill);
    return count;
}
