/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "place.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

char name_255[256], name_255_new[256], name_256[257], name_256_below[259];

#define CORE NAME_CORE
#define PAIR NAME_PAIR
#define BOTH (NAME_CORE | NAME_PAIR)

const struct name names[] = {
    {"file", "file", BOTH},
    {"hard", "hard", PAIR},
    {"empty", "empty", PAIR},
    {"secret", "secret", 0},
    {"dir", "dir", BOTH},
    {"dir/", "dir/", PAIR},
    {"dir/.", "dir/.", 0},
    {"dir/..", "dir/..", 0},
    {"dir/inner", "dir/inner", BOTH},
    {"dir/sub", "dir/sub", PAIR},
    {"dir/absent", "dir/absent", PAIR},
    {"dir//inner", "dir//inner", 0},
    {"bare", "bare", BOTH},
    {"bare/", "bare/", PAIR},
    {"./file", "./file", 0},
    {"dir/../file", "dir/../file", CORE},
    {"dir/sub/.././inner", "dir/sub/.././inner", 0},
    {"file/", "file/", PAIR},
    {"file/.", "file/.", 0},
    {"file/..", "file/..", 0},
    {"file/x", "file/x", PAIR},
    {"absent", "absent", BOTH},
    {"absent/", "absent/", PAIR},
    {"absent/.", "absent/.", 0},
    {"absent/x", "absent/x", PAIR},
    {"./absent", "./absent", 0},
    {"dir/../absent", "dir/../absent", CORE},
    {"lfile", "lfile", BOTH},
    {"lfile/", "lfile/", 0},
    {"labs", "labs", 0},
    {"lchain", "lchain", 0},
    {"lup", "lup", 0},
    {"ldir", "ldir", PAIR},
    {"ldir/", "ldir/", PAIR},
    {"ldir/inner", "ldir/inner", CORE},
    {"ldir/absent", "ldir/absent", 0},
    {"ldir/../file", "ldir/../file", 0},
    {"lslash", "lslash", 0},
    {"lslash/inner", "lslash/inner", 0},
    {"lfile/x", "lfile/x", 0},
    {"ldangling", "ldangling", BOTH},
    {"ldangling/", "ldangling/", PAIR},
    {"ldangling-dir", "ldangling-dir", 0},
    {"lout", "lout", 0},
    {"loop", "loop", PAIR},
    {"loop/", "loop/", 0},
    {"loop/x", "loop/x", 0},
    {"loopa", "loopa", 0},
    {"fifo", "fifo", PAIR | NAME_FIFO},
    {"fifo/", "fifo/", 0},
    {"ro", "ro", 0},
    {"ro/f", "ro/f", PAIR},
    {"ro/new", "ro/new", PAIR},
    {"dark", "dark", 0},
    {"dark/f", "dark/f", PAIR},
    {".", ".", BOTH},
    {"./", "./", 0},
    {"..", "..", BOTH},
    {"../..", "../..", 0},
    {"../w/file", "../w/file", CORE},
    {"(empty)", "", PAIR | NAME_AS_IS},
    {"(NULL)", NULL, NAME_AS_IS},
    {"(255)", name_255, PAIR},
    {"(255 new)", name_255_new, CORE},
    {"(256)", name_256, PAIR},
    {"(256)/x", name_256_below, 0},
    {"odd", "\xff\xfe \x80\n\t'\"", PAIR},
    {"odd new", "\xc3\x28 new", 0},
    {"(filled to PATH_MAX)", "file", NAME_FILL, PATH_MAX - 1},
    {"(new, filled to PATH_MAX)", "absent", NAME_FILL, PATH_MAX - 1},
    {"(filled over PATH_MAX)", "file", NAME_FILL, PATH_MAX},
    {"(filled far over)", "file", NAME_FILL, 2 * PATH_MAX - 10},
    {"out/plain", "plain", PAIR | NAME_OUTSIDE},
    {"out/new", "new", PAIR | NAME_OUTSIDE},
    {"out/to-file", "to-file", PAIR | NAME_OUTSIDE},
    {"out/to-file/", "to-file/", NAME_OUTSIDE},
    {"out/to-new", "to-new", PAIR | NAME_OUTSIDE},
    {"out/to-dir", "to-dir", NAME_OUTSIDE},
    {"out/to-dir/", "to-dir/", NAME_OUTSIDE},
    {"out/to-dir/inner", "to-dir/inner", NAME_OUTSIDE},
    {"out/to-dir/absent", "to-dir/absent", NAME_OUTSIDE},
    {"out/to-bare/.", "to-bare/.", NAME_OUTSIDE},
    {"out/into", "into", NAME_OUTSIDE},
};
const size_t names_count = sizeof names / sizeof *names;

static const char *const base_labels[BASES] = {
    "absolute", "inside", "above", "below", "link", "link-cwd", "dirfd", "proc", "no-fd", "file-fd", "absolute-no-fd",
};

const char *base_label(enum place_base base)
{
    return base_labels[base];
}

static bool base_is_wrong_fd(enum place_base base)
{
    return base == BASE_NO_FD || base == BASE_FILE_FD || base == BASE_ABSOLUTE_NO_FD;
}

bool place_exists(enum place_base base, const struct name *name, bool takes_descriptor)
{
    if ((base == BASE_DIRFD || base_is_wrong_fd(base)) && !takes_descriptor)
        return false;
    if (base_is_wrong_fd(base) && !(name->traits & (NAME_CORE | NAME_AS_IS)))
        return false;
    if (name->traits & NAME_AS_IS)
        return base == BASE_INSIDE || base == BASE_DIRFD || base == BASE_NO_FD || base == BASE_FILE_FD;
    if (name->traits & NAME_OUTSIDE)
        return base == BASE_ABSOLUTE;
    return true;
}

/* What comes before the name, and where it starts from. */
static size_t place_before(char *text, size_t size, enum place_base base, int fd, const char **cwd)
{
    *cwd = "/";
    switch (base) {
    case BASE_INSIDE:
        *cwd = fixture.work;
        break;
    case BASE_ABOVE:
        *cwd = fixture.above;
        return (size_t)snprintf(text, size, "%s/w/", fixture.root_name);
    case BASE_BELOW:
        *cwd = joined(fixture.work, "dir");
        return (size_t)snprintf(text, size, "../");
    case BASE_LINK:
        return (size_t)snprintf(text, size, "%s/into/w/", fixture.outside);
    case BASE_LINK_CWD:
        *cwd = joined(fixture.outside, "into/w");
        break;
    case BASE_PROC:
        return (size_t)snprintf(text, size, "/proc/self/fd/%d/", fd);
    case BASE_ABSOLUTE:
    case BASE_ABSOLUTE_NO_FD:
        return (size_t)snprintf(text, size, "%s/", fixture.work);
    default:
        break;
    }
    text[0] = '\0';
    return 0;
}

static int place_fd(enum place_base base)
{
    int fd = AT_FDCWD;
    if (base == BASE_NO_FD || base == BASE_ABSOLUTE_NO_FD)
        return 9999;
    if (base == BASE_DIRFD || base == BASE_PROC)
        fd = open(fixture.work, O_RDONLY | O_DIRECTORY);
    else if (base == BASE_FILE_FD)
        fd = open(joined(fixture.work, "file"), O_RDONLY);
    if (fd == -1)
        give_up("cannot open", fixture.work);
    return fd;
}

static void place_fill(char *text, size_t size, size_t before, const struct name *name)
{
    size_t length = strlen(name->text);
    size_t at = before;
    if (at == 0 && name->traits & NAME_FILL)
        text[at++] = '.';
    while ((name->traits & NAME_FILL) && at + length < name->fill)
        text[at++] = '/';
    snprintf(text + at, size - at, "%s", name->text);
}

void place_enter(struct place *place, enum place_base base, const struct name *name)
{
    const char *cwd;
    place->at = place_fd(base);
    size_t before = place_before(place->text, sizeof place->text, base, place->at, &cwd);
    if (name->traits & NAME_OUTSIDE)
        before = (size_t)snprintf(place->text, sizeof place->text, "%s/", fixture.outside);
    place->path = name->traits & NAME_AS_IS ? name->text : place->text;
    if (!(name->traits & NAME_AS_IS))
        place_fill(place->text, sizeof place->text, before, name);
    if (chdir(cwd) < 0)
        give_up("cannot enter", cwd);
}

void place_leave(struct place *place)
{
    if (place->at >= 0 && place->at != 9999)
        close(place->at);
    if (chdir("/") < 0)
        give_up("cannot enter", "/");
}
