/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/parent_cache.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/owner.h"
#include "base/sys.h"
#include "shim/cwd.h"
#include "shim/fdcache.h"
#include "shim/scratch.h"
#include "shim/state.h"

#define OFTEN 8
#define FAR_SPIN (CLOCK_SECOND / 4)

void parent_cache_forget(void)
{
    __atomic_add_fetch(&shim_state.parent_cache.identities, 1, __ATOMIC_ACQ_REL);
}

/* As long as the clock stands still; where a look is a message to a server, longer. A test that shows what asking for the place
 * is good for must not depend on the time that passes. */
static uint64_t parent_cache_spin_of(const struct names_root *root)
{
    if (BROKEN("place-unasked"))
        return 60 * CLOCK_SECOND;
    return names_is_slow_lookup(root) ? FAR_SPIN : 0;
}

static uint64_t parent_cache_from_word(int at, const char *path)
{
    const uint64_t cwd = path[0] == '/' ? 1 : at == AT_FDCWD ? cwd_now() : 0;
    return cwd != 0 ? cwd ^ __atomic_load_n(&shim_state.parent_cache.identities, __ATOMIC_ACQUIRE) << 48 : 0;
}

struct parent_cache_path parent_cache_words(int at, const char *path, size_t length)
{
    struct parent_cache_path words = {.from = parent_cache_from_word(at, path), .path = path, .length = length};
    if (words.from != 0)
        words.word = (record_hash(path, length) ^ words.from) | 1;
    words.now = clock_of(CLOCK_MONOTONIC_COARSE);
    return words;
}

static struct parent_cache_entry *parent_cache_find(uint64_t word)
{
    for (unsigned i = 0; i < PARENT_CACHE_ENTRIES; i++)
        if (shim_thread.parent_cache.entries[i].word == word)
            return &shim_thread.parent_cache.entries[i];
    return NULL;
}

/* Of the coarse clock, and of the channel's places as they were before it was looked at. */
static uint64_t parent_cache_stamp_of(uint64_t from, uint64_t now, uint64_t places)
{
    const uint64_t all[] = {from, now, places};
    return record_sum(all, sizeof all, 0) | 1;
}

/* A process may enter a time namespace whose clock is behind. */
static bool parent_cache_is_within(const struct parent_cache_entry *one, uint64_t now)
{
    return now >= one->since && now <= one->until;
}

bool parent_cache_recall(const struct parent_cache_path *words, struct parent *to, uint64_t *stamp)
{
    const struct parent_cache_entry *one = words->word != 0 ? parent_cache_find(words->word) : NULL;
    if (one == NULL || !parent_cache_is_within(one, words->now))
        return false;
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    *to = one->parent;
    const uint64_t places = one->places;
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    *stamp = parent_cache_stamp_of(words->from, words->now, places);
    return one->word == words->word && parent_cache_is_within(one, words->now) && names_places(to->root) == places;
}

bool parent_cache_is_now(const struct names_root *root, const char *path, uint64_t stamp)
{
    const uint64_t from = parent_cache_from_word(AT_FDCWD, path);
    return from != 0 && parent_cache_stamp_of(from, clock_of(CLOCK_MONOTONIC_COARSE), names_places(root)) == stamp;
}

/* Begins with `path`, then ends or goes on after a slash: what is after, else NULL. */
static const char *parent_cache_behind(const char *text, const char *path)
{
    const size_t length = strlen(path);
    if (strncmp(text, path, length) != 0 || (text[length] != '/' && text[length] != '\0'))
        return NULL;
    return text + length + (text[length] == '/');
}

/* Are the words, without the slashes at their end, where the directory is? */
static bool parent_cache_are_its_place(const struct parent_cache_path *words, const char *place)
{
    size_t length = words->length;
    while (length > 1 && words->path[length - 1] == '/')
        length--;
    return strlen(place) == length && memcmp(place, words->path, length) == 0;
}

/* Seen from where: another mount or directory there, and the same path leads elsewhere. 0: that cannot be told. */
static uint64_t parent_cache_place_word(const char *place)
{
    struct statx top;
    if (sys_statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &top) != 0)
        return 0;
    const uint64_t from[] = {top.stx_mnt_id, top.stx_ino};
    return record_sum(from, sizeof from, record_hash(place, strlen(place))) | 1;
}

/* Is it the directory, and `scratch->real` where it is without a link on the way? The working directory is where it is. */
static bool parent_cache_lies_straight(const struct parent_cache_path *words, const struct parent *parent, int fd,
                                       struct scratch *scratch)
{
    struct statx stat;
    const char *place = scratch->real;
    if (sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_BTIME, &stat) != 0 ||
        !dirid_equal(dirid_of(&stat), parent->dir) || names_read_place(fd, scratch->real) != 0)
        return false;
    if (words->length > 0 && words->path[0] != '/' &&
        (sys_getcwd(scratch->text[0], PATH_MAX) <= 0 || (place = parent_cache_behind(place, scratch->text[0])) == NULL))
        return false;
    return words->length == 0 || parent_cache_are_its_place(words, place);
}

/* Do they lead to the directory itself? If so, and if that is quicker than to ask again, it is kept open, and *place says
 * where it is. But not through another mount, which would be busy as long as this process lives. */
static bool parent_cache_lead_straight(const struct parent_cache_path *words, const struct parent *parent,
                                       struct scratch *scratch, uint64_t *place)
{
    const bool is_far = names_is_slow_lookup(parent->root);
    if (words->length == 0 && !is_far)
        return true;
    int fd = sys_openat(AT_FDCWD, scratch->text[0], O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    const bool straight = parent_cache_lies_straight(words, parent, fd, scratch);
    if (straight && is_far && parent_cache_behind(scratch->real, parent->root->path) != NULL) {
        *place = parent_cache_place_word(scratch->real);
        fdcache_keep_trunk(parent->root, parent->dir, fd);
    } else {
        sys_close(fd);
    }
    return straight;
}

bool parent_cache_are_there(const struct parent *parent, struct scratch *scratch)
{
    return parent->place != 0 && (BROKEN("place-unasked") || (fdcache_trunk_place(parent->root, parent->dir, scratch->real) &&
                                                              parent_cache_place_word(scratch->real) == parent->place));
}

static struct parent_cache_entry *parent_cache_find_room(uint64_t word)
{
    struct parent_cache_entry *one = parent_cache_find(word);
    if (one == NULL) {
        one = &shim_thread.parent_cache.entries[shim_thread.parent_cache.next++ % PARENT_CACHE_ENTRIES];
        one->until = 0;
        __atomic_signal_fence(__ATOMIC_RELEASE);
        one->word = word;
        one->since = 0;
    }
    return one;
}

static void parent_cache_ask_kernel(const struct parent_cache_path *words, const struct parent *parent, struct scratch *scratch)
{
    struct parent_cache_entry *one = parent_cache_find_room(words->word);
    if (words->now < one->since || words->now > one->since + parent_cache_spin_of(parent->root)) {
        one->since = words->now;
        one->times = 0;
        one->until = 0;
    }
    const uint64_t places = names_places(parent->root);
    uint64_t place = 0;
    if (++one->times != OFTEN || !request_are_places_kept(places) || sys_getpid() != owner_pid() ||
        !parent_cache_lead_straight(words, parent, scratch, &place))
        return;
    one->parent = *parent;
    one->parent.place = place;
    one->places = places;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    one->until = words->now + parent_cache_spin_of(parent->root);
}

void parent_cache_learn(const struct parent_cache_path *words, const struct parent *parent, struct scratch *scratch)
{
    if (words->word == 0 || shim_thread.parent_cache.writing)
        return;
    shim_thread.parent_cache.writing = true;
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    parent_cache_ask_kernel(words, parent, scratch);
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    shim_thread.parent_cache.writing = false;
}
