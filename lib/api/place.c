/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "api/place.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "union/conflict.h"
#include "union/disk.h"

#define PLACE_LINKS_MAX 40 /* as the kernel */
#define PLACE_DIRECTORY (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* A path being resolved. */
struct route {
    char text[PATH_MAX];
    const char *last; /* the last component, in text; empty for `/`, `.` and `..`, which name a directory */
    bool slash;       /* it ended in one: a directory is meant */
    bool is_cut;      /* the kernel, which sees the trunk alone, finds nothing where it goes on after a part of it */
    unsigned links;
};

void place_init(struct place *place)
{
    place->rooted = false;
    place->known = NULL;
    place->folder.fd = -1;
    place->found = NULL;
}

static void place_leave_root(struct place *place)
{
    known_destroy(place->known);
    place->known = NULL;
    if (place->rooted)
        union_root_finish(&place->root);
    place->rooted = false;
}

void place_finish(struct place *place)
{
    folder_close(&place->folder);
    place_leave_root(place);
    place_init(place);
}

static int place_route_take(struct route *route, const char *path)
{
    struct text t;
    text_init(&t, route->text, sizeof route->text);
    text_add(&t, path);
    if (!text_ok(&t))
        return -ENAMETOOLONG;
    if (t.length == 0)
        return -ENOENT;
    route->slash = false;
    while (t.length > 1 && route->text[t.length - 1] == '/') {
        route->text[--t.length] = '\0';
        route->slash = true;
    }
    const char *slash = strrchr(route->text, '/');
    route->last = slash ? slash + 1 : route->text;
    if (!strcmp(route->last, ".") || !strcmp(route->last, ".."))
        route->last = "";
    return 0;
}

static int place_route_open_parent(const struct route *route)
{
    size_t length = (size_t)(route->last - route->text);
    char parent[PATH_MAX];
    memcpy(parent, route->text, length);
    memcpy(parent + length, ".", 2);
    return sys_openat(AT_FDCWD, parent, PLACE_DIRECTORY, 0);
}

/* The next path to resolve, if a link is what is there. Targets are relative to where the link lies. */
static int place_route_follow(struct route *route, int directory, const char *canonical, const char *link)
{
    char next[2 * PATH_MAX];
    struct text t;
    text_init(&t, next, sizeof next);
    char target[PATH_MAX];
    ssize_t length = sys_readlinkat(directory, link, target, sizeof target - 1);
    if (length < 0)
        return (int)length;
    if (++route->links > PLACE_LINKS_MAX)
        return -ELOOP;
    target[length] = '\0';
    if (target[0] != '/') {
        text_add(&t, canonical);
        text_add(&t, "/");
    }
    text_add(&t, target);
    if (route->slash)
        text_add(&t, "/");
    return place_route_take(route, next);
}

/* The place of a directory relative to the root that place->root is; NULL: outside of it. */
static const char *place_relative(const struct place *place, const char *canonical)
{
    size_t length = strcmp(place->root.path, "/") ? strlen(place->root.path) : 0;
    if (strncmp(canonical, place->root.path, length) != 0)
        return NULL;
    if (canonical[length] == '\0' || !strcmp(canonical + length, "/"))
        return ".";
    return canonical[length] == '/' ? canonical + length + 1 : NULL;
}

static bool place_is_own(const char *path)
{
    size_t length = sizeof LAYOUT_OWN - 1;
    return !strncmp(path, LAYOUT_OWN, length) && (path[length] == '\0' || path[length] == '/');
}

static int place_load_root(struct place *place, const char *canonical)
{
    place_leave_root(place);
    int error = union_root_init(&place->root, canonical, LISTING_FIND_ROOT);
    place->rooted = error == 0;
    if (error == 0 && known_create(&place->known, &place->root, NULL, 0) == 0)
        place->root.source = known_source(place->known);
    return error;
}

/* Makes `fd` the folder. It is taken over, also on failure. */
static int place_enter_dir(struct place *place, int fd, const char *canonical)
{
    const char *path = place->rooted ? place_relative(place, canonical) : NULL;
    if (path && place->folder.fd >= 0 && !strcmp(path, place->folder.path)) {
        sys_close(fd);
        return 0;
    }
    folder_close(&place->folder);
    int error = place_load_root(place, canonical);
    if (error == 0 && !(path = place_relative(place, canonical)))
        error = -ENOTUNIQ;
    if (error == 0)
        error = place_is_own(path) ? -EINVAL : folder_of(&place->folder, fd, path);
    if (error < 0)
        sys_close(fd);
    return error;
}

static int place_enter_path(struct place *place, int at, const char *path, int flags)
{
    char canonical[PATH_MAX];
    int fd = sys_openat(at, path, PLACE_DIRECTORY | flags, 0);
    if (fd < 0)
        return fd;
    int length = disk_canonical(fd, canonical, sizeof canonical);
    if (length < 0) {
        sys_close(fd);
        return length;
    }
    return place_enter_dir(place, fd, canonical);
}

/* The directory lies in no root. The name may still be a root, or a link into one: then `route` goes on. */
static int place_from_outside(struct place *place, struct route *route, int parent, const char *canonical)
{
    int error = place_enter_path(place, parent, route->last, O_NOFOLLOW);
    if (error != -ENOTDIR && error != -ELOOP)
        return error;
    error = place_route_follow(route, parent, canonical, route->last);
    if (error == -EINVAL)
        return -ENOTUNIQ;
    return error < 0 ? error : 1;
}

/* A name of the folder's trunk, which may be searched but not listed. */
static int place_look_unlisted(struct place *place, const char *name)
{
    struct statx stat;
    const unsigned flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    const int error = sys_statx(place->folder.fd, name, (int)flags, STATX_TYPE | STATX_INO, &stat);
    const char *kept = error == 0 ? listing_keep(&place->folder.listing, name, strlen(name)) : NULL;
    if (kept == NULL)
        return error < 0 ? error : -ENOMEM;
    place->unlisted =
        (struct union_name){.name = kept, .on_disk = kept, .type = (uint8_t)IFTODT(stat.stx_mode), .ino = stat.stx_ino};
    return 0;
}

static int place_look_in_folder(struct place *place, const char *name, const struct union_name **found)
{
    int error = folder_list(&place->folder, &place->root, 0);
    if (error < 0)
        return error;
    *found = listing_find(&place->folder.listing, name, strlen(name));
    if (*found != NULL)
        return 0;
    error = place->folder.listing.trunk_unlisted ? place_look_unlisted(place, name) : -ENOENT;
    *found = &place->unlisted;
    return error;
}

/* The name in the folder: 0, or 1 if `route` goes on with a link's target. */
static int place_look_up(struct place *place, struct route *route, unsigned flags)
{
    if (layout_is_ours(route->last, strlen(route->last), !strcmp(place->folder.path, ".")))
        return -EINVAL;
    const struct union_name *found;
    int error = place_look_in_folder(place, route->last, &found);
    if (error < 0)
        return error;
    if (found->type == DT_LNK && (flags & PLACE_FOLLOW || route->slash)) {
        char canonical[PATH_MAX];
        error = folder_where(&place->folder, &place->root, NULL, canonical, sizeof canonical);
        if (error == 0)
            error = place_route_follow(route, place->folder.fd, canonical, route->last);
        return error < 0 ? error : 1;
    }
    if (found->type == DT_DIR && flags & PLACE_ENTER)
        return place_enter_path(place, place->folder.fd, route->last, O_NOFOLLOW);
    place->found = found;
    return route->slash && found->type != DT_DIR ? -ENOTDIR : 0;
}

/* One step: as look_up. */
static int place_step(struct place *place, struct route *route, unsigned flags)
{
    route->is_cut = true;
    if (*route->last == '\0')
        return place_enter_path(place, AT_FDCWD, route->text, 0);
    int parent = place_route_open_parent(route);
    if (parent < 0)
        return parent;
    route->is_cut = false;
    char canonical[PATH_MAX];
    int error = disk_canonical(parent, canonical, sizeof canonical);
    if (error >= 0)
        error = place_enter_path(place, parent, ".", 0);
    if (error == -ENOTUNIQ)
        error = place_from_outside(place, route, parent, canonical);
    else if (error == 0)
        error = place_look_up(place, route, flags);
    sys_close(parent);
    return error;
}

static int place_walk(struct place *place, struct route *route, unsigned flags)
{
    int error;
    do
        error = place_step(place, route, flags);
    while (error == 1);
    return error;
}

/* Takes the last component away. False: there is no other one. */
static bool place_route_shorten(struct route *route)
{
    char *slash = strrchr(route->text, '/');
    if (slash == NULL)
        return false;
    while (slash > route->text && slash[-1] == '/')
        slash--;
    if (slash == route->text)
        return false;
    *slash = '\0';
    char text[PATH_MAX];
    memcpy(text, route->text, (size_t)(slash - route->text) + 1);
    return place_route_take(route, text) == 0;
}

/* What is the matter with a path that the kernel finds nothing at the end of a part of? -ENOTDIR if that is a file in a branch.
 */
static int place_why_cut(struct place *place, struct route *route)
{
    int error = -ENOENT;
    while (error == -ENOENT && route->is_cut && place_route_shorten(route))
        error = place_walk(place, route, PLACE_FOLLOW);
    if (error == 0 && place->found != NULL && place->found->type != DT_DIR)
        error = -ENOTDIR;
    place->found = NULL;
    return error == -ENOTDIR ? error : -ENOENT;
}

int place_find(struct place *place, const char *path, unsigned flags)
{
    struct route route = {.links = 0};
    place->found = NULL;
    int error = place_route_take(&route, path);
    if (error == 0)
        error = place_walk(place, &route, flags);
    return error == -ENOENT && route.is_cut ? place_why_cut(place, &route) : error;
}
