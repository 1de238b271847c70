/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/prefilter.h"

#include <fcntl.h>

#include "base/sys.h"

/* What the text says with respect to all roots. A root that was given through a symbolic link is known by
 * both texts. */
enum path_verdict prefilter_text(const char *base, const char *path)
{
    enum path_verdict verdict = PATH_FOREIGN;
    for (unsigned i = 0; i < shim_state.process.count && verdict == PATH_FOREIGN; i++) {
        const struct names_root *root = &shim_state.roots[i];
        verdict = root->sight == NAMES_PART ? PATH_BENEATH : path_verdict(root->path, base, path);
        if (verdict == PATH_FOREIGN && root->given[0] != '\0')
            verdict = path_verdict(root->given, base, path);
    }
    return verdict;
}

struct names_root *prefilter_root(const char *base, const char *path)
{
    for (unsigned i = 0; i < shim_state.process.count; i++) {
        struct names_root *root = &shim_state.roots[i];
        if (path_verdict(root->path, base, path) != PATH_FOREIGN ||
            (root->given[0] != '\0' && path_verdict(root->given, base, path) != PATH_FOREIGN))
            return root;
    }
    return NULL;
}

int prefilter_hidden(struct scratch *scratch, int at, const char *path)
{
    char *base = scratch != NULL ? scratch->text[0] : NULL;
    for (unsigned i = 0; i < shim_state.process.count; i++) {
        struct names_root *root = &shim_state.roots[i];
        if (root->sight == NAMES_SEEN ||
            (path[0] != '/' && (at != AT_FDCWD || base == NULL || !process_working_directory(base))))
            continue;
        if (path_verdict(root->path, base, path) != PATH_FOREIGN)
            return names_attach(root);
    }
    return 0;
}

static bool prefilter_is_plainly_beneath(const char *path)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        if (path_is_plainly_beneath(shim_state.roots[i].path, path))
            return true;
    return false;
}

/* Next to all roots: from there a relative path comes to one by `..` alone. */
static bool prefilter_is_apart(const char *base)
{
    for (unsigned i = 0; i < shim_state.process.head_count; i++)
        if (!path_is_apart(shim_state.process.heads[i], base))
            return false;
    return true;
}

/* A path seen from a descriptor says nothing by its text: the kernel must be asked. */
enum path_verdict prefilter(struct scratch **scratch, int at, const char *path)
{
    if (path[0] == '/' && prefilter_is_plainly_beneath(path))
        return PATH_BENEATH;
    if (path[0] == '/')
        return prefilter_is_plainly_foreign(path) ? PATH_FOREIGN : prefilter_text(NULL, path);
    if (at != AT_FDCWD)
        return PATH_BENEATH;
    if (shim_thread.works_within && path[0] != '.' && !path_goes_up(path))
        return PATH_BENEATH;
    if (*scratch == NULL && (*scratch = scratch_take()) == NULL)
        return PATH_BENEATH;
    char *base = (*scratch)->text[0];
    if (!process_working_directory(base))
        return PATH_FOREIGN;
    if (prefilter_is_apart(base))
        return path_goes_up(path) ? prefilter_text(base, path) : PATH_FOREIGN;
    shim_thread.works_within = prefilter_text(NULL, base) != PATH_FOREIGN;
    return prefilter_text(base, path);
}
