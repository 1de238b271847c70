/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/parents.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/owner.h"
#include "base/sys.h"
#include "shim/cwd.h"
#include "shim/scratch.h"

#define REMEMBERED 4 /* a power of two */
#define OFTEN 8

/* A handler may interrupt whoever reads or writes here: what was read counts if the word is the same behind it, and who is
 * interrupted while he writes is left alone. */
static __thread struct {
    uint64_t word;
    uint64_t places; /* the road's, when it was learnt */
    struct parent parent;
    uint64_t tried; /* the words that were used last, and how often */
    uint32_t times;
} remembered[REMEMBERED];
static __thread bool writing;
static uint64_t people; /* whom this process has been */

void parents_forget(void)
{
    __atomic_add_fetch(&people, 1, __ATOMIC_ACQ_REL);
}

static uint64_t now(void)
{
    return clock_of(CLOCK_MONOTONIC_COARSE) + (__atomic_load_n(&people, __ATOMIC_ACQUIRE) << 40);
}

struct parents_words parents_words(int at, const char *path, size_t length)
{
    struct parents_words words = {.path = path, .length = length};
    const uint64_t cwd = path[0] == '/' ? 1 : at == AT_FDCWD ? cwd_now() : 0;
    if (cwd != 0)
        words.word = (record_hash(path, length) ^ cwd ^ now() * 0x9e3779b97f4a7c15ull) | 1;
    return words;
}

static unsigned slot_of(uint64_t word)
{
    return (unsigned)(word >> 32) % REMEMBERED;
}

bool parents_recall(const struct parents_words *words, struct parent *to)
{
    const unsigned slot = slot_of(words->word);
    if (words->word == 0 || remembered[slot].word != words->word)
        return false;
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    *to = remembered[slot].parent;
    const uint64_t places = remembered[slot].places;
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    return remembered[slot].word == words->word && names_places(to->root) == places;
}

/* Begins with `path`, then ends or goes on behind a slash: what is behind, else NULL. */
static const char *behind(const char *text, const char *path)
{
    const size_t length = strlen(path);
    if (strncmp(text, path, length) != 0 || (text[length] != '/' && text[length] != '\0'))
        return NULL;
    return text + length + (text[length] == '/');
}

/* Are the words, without the slashes at their end, where the directory is? */
static bool are_its_place(const struct parents_words *words, const char *place)
{
    size_t length = words->length;
    while (length > 1 && words->path[length - 1] == '/')
        length--;
    return strlen(place) == length && memcmp(place, words->path, length) == 0;
}

/* Do they lead to the directory itself, without a link on the way? The working directory is where it is. */
static bool lead_straight(const struct parents_words *words, const struct parent *parent, struct scratch *scratch)
{
    struct statx stat;
    const char *place = scratch->real;
    if (words->length == 0)
        return true;
    int fd = sys_openat(AT_FDCWD, scratch->text[0], O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool straight = sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_BTIME, &stat) == 0 &&
                    dirid_equal(dirid_of(&stat), parent->dir) && names_read_place(fd, scratch->real) == 0;
    sys_close(fd);
    if (straight && words->path[0] != '/')
        straight = sys_getcwd(scratch->text[0], PATH_MAX) > 0 && (place = behind(place, scratch->text[0])) != NULL;
    return straight && are_its_place(words, place);
}

static void remember(unsigned slot, const struct parents_words *words, const struct parent *parent, uint64_t places)
{
    remembered[slot].word = 0;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    remembered[slot].parent = *parent;
    remembered[slot].places = places;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    remembered[slot].word = words->word;
}

void parents_learn(const struct parents_words *words, const struct parent *parent, struct scratch *scratch)
{
    const unsigned slot = slot_of(words->word);
    if (words->word == 0 || writing)
        return;
    writing = true;
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    if (remembered[slot].tried != words->word) {
        remembered[slot].tried = words->word;
        remembered[slot].times = 0;
    }
    const uint64_t places = names_places(parent->root);
    if (++remembered[slot].times == OFTEN && request_are_places_kept(places) && sys_getpid() == owner_pid() &&
        lead_straight(words, parent, scratch))
        remember(slot, words, parent, places);
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    writing = false;
}
