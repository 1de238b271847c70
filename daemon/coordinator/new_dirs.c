/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/new_dirs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "peer/peers.h"

struct new_dir {
    struct link link; /* of shuntd->new_dirs, the latest last */
    struct dirid id;
    uint64_t frame; /* in which word of it goes to that member */
    uint16_t member;
};

static bool new_dirs_has_arrived(const struct shuntd *shuntd, const struct new_dir *one)
{
    return peers_has_got(shuntd->peers, one->member, one->frame);
}

/* Those behind one that has not arrived are looked at again with it. */
static void new_dirs_drop_arrived(struct shuntd *shuntd)
{
    while (!list_empty(&shuntd->new_dirs)) {
        struct new_dir *oldest = LINK_OF(shuntd->new_dirs.next, struct new_dir, link);
        if (!new_dirs_has_arrived(shuntd, oldest))
            return;
        list_remove(&oldest->link);
        free(oldest);
    }
}

int new_dirs_note(struct shuntd *shuntd, struct dirid id, uint16_t member)
{
    struct new_dir *one = malloc(sizeof *one);
    if (one == NULL)
        return -ENOMEM;
    new_dirs_drop_arrived(shuntd);
    *one = (struct new_dir){.id = id, .member = member, .frame = peers_frame(shuntd->peers, member)};
    list_init(&one->link);
    list_append(&shuntd->new_dirs, &one->link);
    return 0;
}

bool new_dirs_are_told(struct shuntd *shuntd, struct dirid id)
{
    new_dirs_drop_arrived(shuntd);
    for (const struct link *link = shuntd->new_dirs.next; link != &shuntd->new_dirs; link = link->next) {
        const struct new_dir *one = LINK_OF(link, struct new_dir, link);
        if (dirid_equal(one->id, id) && !new_dirs_has_arrived(shuntd, one))
            return true;
    }
    return false;
}

void new_dirs_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->new_dirs)) != NULL;)
        free(LINK_OF(link, struct new_dir, link));
}
