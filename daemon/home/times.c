/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The times of directories that have names in mirrors. */

#include "base/hook.h"
#include "home/home.h"
#include "index/index.h"
#include "home/state.h"

static bool times_is_later(const struct home_times *word, const struct home_times *than)
{
    return word->changed != than->changed ? word->changed > than->changed : word->written && !than->written;
}

/* Change times of the trunk only grow, so the greater one is the one that was written last. */
bool home_times_merge(struct home_times *times, const struct home_times *word)
{
    const struct home_times before = *times;
    if (word->round < times->round)
        return false;
    if (word->round > times->round)
        *times = (struct home_times){.round = word->round};
    if (times_is_later(word, times)) {
        times->changed = word->changed;
        times->written = word->written;
    }
    if (word->settled > times->settled) {
        times->settled = word->settled;
        times->stood = word->stood;
    }
    return !home_times_equal(times, &before);
}

bool home_times_equal(const struct home_times *a, const struct home_times *b)
{
    return a->round == b->round && a->changed == b->changed && a->written == b->written && a->settled == b->settled &&
           a->stood == b->stood;
}

/* What this node's processes are to see. */
int home_dir_publish_times(struct home *home, struct home_dir *dir)
{
    const struct home_times *times = &dir->times;
    dir->record.flags &= ~(uint32_t)(RECORD_WRITTEN | RECORD_TELLING);
    dir->record.flags |= (times->written ? RECORD_WRITTEN : 0) | (dir->writing ? RECORD_TELLING : 0);
    dir->record.changed = times->changed;
    dir->record.settled = times->settled;
    dir->record.stood = times->stood;
    if (times->changed != 0)
        listen_set_redirected(home->uses.listen);
    return home_dir_store(home, dir);
}

static void times_wait_to_be_written(struct home *home, struct home_dir *dir)
{
    list_remove(&dir->unwritten);
    list_append(&home->unwritten, &dir->unwritten);
}

/* The first change that is not told counts, or a daemon that changes it all the time would never tell. */
void home_dir_announce(struct home *home, struct home_dir *dir)
{
    if (!list_empty(&dir->unannounced))
        return;
    dir->unannounced_since = *home->uses.now;
    list_append(&home->unannounced, &dir->unannounced);
}

int home_dir_note_change(struct home *home, struct home_dir *dir, uint64_t at)
{
    dir->changed_at = *home->uses.now;
    dir->change_count++;
    if (at <= dir->times.changed)
        return 0;
    dir->times.changed = at;
    dir->times.written = false;
    dir->times_source = 0;
    times_wait_to_be_written(home, dir);
    home_dir_announce(home, dir);
    return home_dir_publish_times(home, dir);
}

int home_dir_undo_change(struct home *home, struct home_dir *dir, uint64_t changed, bool written)
{
    dir->times.changed = changed;
    dir->times.written = written;
    if (changed == 0 || written)
        list_remove(&dir->unwritten);
    return home_dir_publish_times(home, dir);
}

/* A daemon that has changed it earlier waits longer than the last one, and then writes that one's time, should it be
 * gone. */
int home_dir_merge_times(struct home *home, struct home_dir *dir, const struct home_times *word, uint16_t teller)
{
    bool waits = !list_empty(&dir->unwritten);
    if (!home_times_merge(&dir->times, word))
        return 0;
    dir->times_source = home_times_equal(&dir->times, word) ? teller : 0;
    if (dir->times.changed == 0 || dir->times.written) {
        list_remove(&dir->unwritten);
    } else if (waits && dir->times.changed == word->changed) {
        dir->changed_at = *home->uses.now + HOME_TIMES_PATIENCE;
        times_wait_to_be_written(home, dir);
    }
    return home_dir_publish_times(home, dir);
}

void home_dir_forget_times(struct home_dir *dir)
{
    dir->times = (struct home_times){.round = 0};
    dir->misplaced = false;
    list_remove(&dir->unwritten);
    list_remove(&dir->unannounced);
}

int home_dir_times_written(struct home *home, struct home_dir *dir)
{
    dir->writing = false;
    list_move(&home->ready_collectives, &dir->blocked_collectives);
    const int code = home_dir_publish_times(home, dir);
    return code == 0 ? home_names_wake(home, dir) : code;
}

void home_dir_misplaced(struct home_dir *dir)
{
    HOOK("times-misplaced");
    dir->misplaced = true;
    list_remove(&dir->unwritten);
}

void home_dir_found(struct home *home, struct home_dir *dir)
{
    if (dir->misplaced && !BROKEN("times-dropped"))
        times_wait_to_be_written(home, dir);
    dir->misplaced = false;
}

/* The list is in the order of the last change whose time differed; the first is the longest quiet but for
 * ticks, and for those that others are to write. */
static struct home_dir *times_longest_quiet(const struct home *home)
{
    for (struct link *link = home->unwritten.next; link != &home->unwritten; link = link->next) {
        struct home_dir *dir = LINK_OF(link, struct home_dir, unwritten);
        if (!dir->writing && !dir->frozen)
            return dir;
    }
    return NULL;
}

struct home_dir *home_dir_next_to_write(struct home *home, uint64_t quiet)
{
    struct home_dir *dir = times_longest_quiet(home);
    return dir != NULL && dir->changed_at <= quiet ? dir : NULL;
}

static struct home_dir *times_longest_untold(const struct home *home)
{
    return list_empty(&home->unannounced) ? NULL : LINK_OF(home->unannounced.next, struct home_dir, unannounced);
}

struct home_dir *home_dir_next_to_announce(struct home *home, uint64_t since)
{
    struct home_dir *dir = times_longest_untold(home);
    if (dir == NULL || dir->unannounced_since > since)
        return NULL;
    list_remove(&dir->unannounced);
    return dir;
}

bool home_has_unwritten(const struct home *home)
{
    return !list_empty(&home->unwritten);
}

uint64_t home_times_due(const struct home *home, uint64_t pause, uint64_t quiet)
{
    const struct home_dir *untold = times_longest_untold(home), *unwritten = times_longest_quiet(home);
    uint64_t tell = untold != NULL ? untold->unannounced_since + pause : UINT64_MAX;
    uint64_t write = unwritten != NULL ? unwritten->changed_at + quiet : UINT64_MAX;
    return tell < write ? tell : write;
}
