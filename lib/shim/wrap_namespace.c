/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Code that is loaded into a namespace of its own (dlmopen with LM_ID_NEWLM) has a C library of its own, which nothing is
 * preloaded into. The loader looks for the symbols of a namespace in what was loaded first there, then in the object's own
 * dependencies (glibc): so this library is loaded first, as another instance, with its own state and its own part in the
 * channel.
 *
 * It stays loaded when the program closes what it loaded, and so does the namespace. A thread uses its last one again if there
 * is nothing else in it any more: programs that try one library after the other would use up all (16). */

#include <link.h>
#include <string.h>

#include "shim/program.h"
#include "shim/wrap.h"
#include "shim/wrap_exec.h"

static unsigned wrap_namespace_size(const struct link_map *first)
{
    unsigned size = 0;
    for (; first != NULL; first = first->l_next)
        size++;
    return size;
}

/* Does the instance there serve what this one serves? It reads the environment as it is now. Then it is told of this one. */
static bool wrap_namespace_is_served(const struct link_map *there, const Dl_info *here)
{
    const uintptr_t offset = (uintptr_t)&shim_state - (uintptr_t)here->dli_fbase;
    struct shim_state *theirs = (struct shim_state *)(there->l_addr + offset);
    uint32_t *first = shim_state.process.first_is_filtered;
    if (theirs->process.count != shim_state.process.count)
        return false;
    theirs->interrupts.are_seen = false; /* handlers are the process's, and each instance sees those of its own libc */
    theirs->process.first_is_filtered = first != NULL ? first : &shim_state.process.is_filtered;
    return true;
}

/* A namespace with this library and nothing of the program's in it; NULL: none can be made. */
static struct link_map *wrap_namespace_make(void)
{
    Dl_info here;
    struct link_map *first;
    if (dladdr(&shim_state, &here) == 0 || here.dli_fname == NULL)
        return NULL;
    void *library = REAL(dlmopen)(LM_ID_NEWLM, here.dli_fname, RTLD_NOW);
    if (library != NULL && dlinfo(library, RTLD_DI_LINKMAP, &first) == 0 && wrap_namespace_is_served(first, &here))
        return first;
    if (library != NULL)
        dlclose(library);
    dlerror(); /* it is not the program's */
    return NULL;
}

static Lmid_t wrap_namespace_prepared(const char *path)
{
    Lmid_t space;
    struct link_map *first = shim_thread.space.first;
    if (first == NULL || wrap_namespace_size(first) != shim_thread.space.size) {
        first = wrap_namespace_make();
        shim_thread.space.first = first;
        shim_thread.space.size = wrap_namespace_size(first);
    }
    if (first != NULL && dlinfo(first, RTLD_DI_LMID, &space) == 0)
        return space;
    program_warn_of_library(path, "loaded with a C library of its own");
    return LM_ID_NEWLM;
}

/* The real call is the last thing done, so that it is a jump: the loader sees whose call it was. */
WRAPPER void *dlmopen(Lmid_t space, const char *path, int flags)
{
    if (path != NULL && process_has_roots()) {
        if (strchr(path, '/') != NULL)
            exec_promote_file(path);
        if (space == LM_ID_NEWLM) {
            interrupts_will_be_handled(); /* by another libc, for all that is seen here */
            space = wrap_namespace_prepared(path);
        }
    }
    return REAL(dlmopen)(space, path, flags);
}
