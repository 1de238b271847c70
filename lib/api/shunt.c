/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "shunt/shunt.h"

#include <errno.h>
#include <stdlib.h>

#include "api/place.h"
#include "union/disk.h"
#include "union/mirror.h"

struct shunt_list {
    struct place place;
    size_t at;
};

const char *shunt_version(void)
{
    return SHUNT_VERSION;
}

/* A place is too large for the stack that the header promises to do with. */
static int shunt_find(const char *path, unsigned flags, struct place **place)
{
    *place = malloc(sizeof **place);
    if (!*place)
        return -ENOMEM;
    place_init(*place);
    return place_find(*place, path, flags);
}

static void shunt_forget(struct place *place)
{
    if (!place)
        return;
    place_finish(place);
    free(place);
}

/* errno is the program's: malloc changes it even when it succeeds, if the kernel has refused it a larger heap. */
int shunt_where(const char *path, char *to, size_t size)
{
    struct place *place;
    int saved = errno;
    int error = shunt_find(path, PLACE_FOLLOW, &place);
    if (error == 0)
        error = folder_where(&place->folder, &place->root, place->found, to, size);
    shunt_forget(place);
    errno = saved;
    return error;
}

int shunt_list_open(struct shunt_list **list, const char *path)
{
    int saved = errno;
    struct shunt_list *made = malloc(sizeof *made);
    *list = NULL;
    errno = saved;
    if (!made)
        return -ENOMEM;
    made->at = 0;
    place_init(&made->place);
    int error = place_find(&made->place, path, PLACE_FOLLOW | PLACE_ENTER);
    if (error == 0)
        error = made->place.found ? -ENOTDIR : folder_list(&made->place.folder, &made->place.root, 0);
    if (error < 0)
        shunt_list_close(made);
    else
        *list = made;
    errno = saved;
    return error;
}

int shunt_list_next(struct shunt_list *list, struct shunt_entry *entry)
{
    const struct listing *listing = &list->place.folder.listing;
    if (list->at == listing->count)
        return listing->trunk_unlisted ? -EACCES : 0;
    const struct union_name *name = &listing->names[list->at++];
    *entry = (struct shunt_entry){.name = name->name, .ino = name->ino, .leaf = name->leaf, .type = name->type};
    if (name->branch > 0)
        entry->branch = list->place.root.branches[name->branch - 1];
    return 1;
}

void shunt_list_close(struct shunt_list *list)
{
    int saved = errno;
    if (!list)
        return;
    place_finish(&list->place);
    free(list);
    errno = saved;
}

static int shunt_sync_path(int at, const char *path)
{
    int fd = sys_openat(at, path, DISK_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    int error = (int)SYS1(SYS_fsync, fd);
    sys_close(fd);
    return error;
}

static int shunt_sync_mirrors(const struct place *place)
{
    const struct listing *listing = &place->folder.listing;
    int first = 0;
    for (size_t i = 0; listing->marked && i < place->root.branch_count; i++) {
        char branch[PATH_MAX];
        struct text t;
        text_init(&t, branch, sizeof branch);
        text_add(&t, place->root.path);
        text_add(&t, "/" LAYOUT_BRANCHES "/");
        text_add(&t, place->root.branches[i]);
        int error = text_ok(&t) ? mirror_sync(branch, listing->marker.mirror) : -ENAMETOOLONG;
        if (first == 0)
            first = error;
    }
    return first;
}

int shunt_sync(const char *path)
{
    struct place *place;
    int saved = errno;
    int error = shunt_find(path, PLACE_FOLLOW | PLACE_ENTER, &place);
    if (error == 0)
        error = folder_list(&place->folder, &place->root, 0);
    if (error == 0)
        error = shunt_sync_path(place->folder.fd, ".");
    if (error == 0)
        error = shunt_sync_mirrors(place);
    shunt_forget(place);
    errno = saved;
    return error;
}
