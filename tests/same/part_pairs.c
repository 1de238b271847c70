/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The calls that take two names: rename and link, over all pairs of names. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"

struct pair_call {
    const char *name;
    long (*run)(const struct place *from, const struct place *to, unsigned flags);
    unsigned flags;
};

static long by_rename(const struct place *from, const struct place *to, unsigned flags)
{
    return rename(from->path, to->path);
}

static long by_renameat(const struct place *from, const struct place *to, unsigned flags)
{
    return renameat(from->at, from->path, to->at, to->path);
}

static long by_renameat2(const struct place *from, const struct place *to, unsigned flags)
{
    return renameat2(from->at, from->path, to->at, to->path, flags);
}

static long by_link(const struct place *from, const struct place *to, unsigned flags)
{
    return link(from->path, to->path);
}

static long by_linkat(const struct place *from, const struct place *to, unsigned flags)
{
    return linkat(from->at, from->path, to->at, to->path, (int)flags);
}

static void pair_run(const struct pair_call *call, enum place_base from_base, const struct name *from, enum place_base to_base,
                     const struct name *to)
{
    static struct place first, second;
    char where[200];
    if (!case_is_due())
        return;
    place_enter(&first, from_base, from);
    place_enter(&second, to_base, to);
    errno = 0;
    long result = call->run(&first, &second, call->flags);
    int error = errno;
    place_leave(&second);
    place_leave(&first);
    snprintf(where, sizeof where, "%s:%s %s:%s", base_label(from_base), from->label, base_label(to_base), to->label);
    case_told(call->name, where, result, error, true);
}

static const struct pair_call calls[] = {
    {"rename", by_rename, 0},
    {"renameat2(NOREPLACE)", by_renameat2, RENAME_NOREPLACE},
    {"renameat2(EXCHANGE)", by_renameat2, RENAME_EXCHANGE},
    {"link", by_link, 0},
    {"linkat(FOLLOW)", by_linkat, AT_SYMLINK_FOLLOW},
};

/* Fewer pairs are enough for what only spells the same differently. */
static const struct pair_call spellings[] = {
    {"renameat", by_renameat, 0},
    {"renameat2(0)", by_renameat2, 0},
    {"renameat2(NOREPLACE|EXCHANGE)", by_renameat2, RENAME_NOREPLACE | RENAME_EXCHANGE},
    {"renameat2(wrong flag)", by_renameat2, 64},
    {"linkat(0)", by_linkat, 0},
    {"linkat(wrong flag)", by_linkat, 64},
};

/* Bases that need the working directory for themselves are paired with such as do not care for it. */
static const enum place_base bases[][2] = {
    {BASE_DIRFD, BASE_ABSOLUTE}, {BASE_ABSOLUTE, BASE_INSIDE}, {BASE_LINK, BASE_BELOW},
    {BASE_ABSOLUTE, BASE_DIRFD}, {BASE_DIRFD, BASE_DIRFD},     {BASE_PROC, BASE_LINK_CWD},
};

static void all_pairs(const struct pair_call *call, enum place_base from, enum place_base to, unsigned trait,
                      bool takes_descriptor)
{
    for (size_t i = 0; i < names_count; i++)
        for (size_t j = 0; j < names_count; j++)
            if (names[i].traits & trait && names[j].traits & trait &&
                (place_exists(from, &names[i], takes_descriptor) || names[i].traits & NAME_AS_IS) &&
                (place_exists(to, &names[j], takes_descriptor) || names[j].traits & NAME_AS_IS))
                pair_run(call, from, &names[i], to, &names[j]);
}

void part_pairs(void)
{
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        all_pairs(&calls[c], BASE_ABSOLUTE, BASE_ABSOLUTE, NAME_PAIR, false);
    for (size_t c = 0; c < sizeof spellings / sizeof *spellings; c++)
        for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
            all_pairs(&spellings[c], bases[b][0], bases[b][1], NAME_CORE, true);
}
