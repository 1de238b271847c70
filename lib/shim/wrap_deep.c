/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* dlopen. What is loaded with RTLD_DEEPBIND (PHP's extensions, Python's after sys.setdlopenflags) looks for symbols in what it
 * depends on before all that is preloaded, so it finds libc's functions themselves. Once it is there, the words through which
 * it calls them, where the loader has put their addresses or will, are led to the wrappers. Its constructors have run by then.
 */

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/program.h"
#include "shim/wrap.h"
#include "shim/wrap_exec.h"

#if defined(__x86_64__)
#define IS_ADDRESS(TYPE) ((TYPE) == R_X86_64_JUMP_SLOT || (TYPE) == R_X86_64_GLOB_DAT || (TYPE) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_ADDRESS(TYPE) ((TYPE) == R_AARCH64_JUMP_SLOT || (TYPE) == R_AARCH64_GLOB_DAT || (TYPE) == R_AARCH64_ABS64)
#endif

/* Of an object that was loaded. */
struct wrap_deep_object {
    void *handle; /* in whose order symbols are looked for */
    ElfW(Addr) base;
    const ElfW(Sym) * symbols;
    const char *strings;
    struct {
        const ElfW(Rela) * first;
        size_t size;
    } words[2];
    ElfW(Addr) guarded, guarded_end; /* what the loader has made read-only */
};

static void wrap_deep_read(struct wrap_deep_object *object, const struct link_map *map)
{
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        const ElfW(Addr) value = entry->d_un.d_ptr;
        const void *at = (const void *)(value < map->l_addr ? value + map->l_addr : value);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            object->symbols = at;
            break;
        case DT_STRTAB:
            object->strings = at;
            break;
        case DT_RELA:
            object->words[0].first = at;
            break;
        case DT_RELASZ:
            object->words[0].size = entry->d_un.d_val;
            break;
        case DT_JMPREL:
            object->words[1].first = at;
            break;
        case DT_PLTRELSZ:
            object->words[1].size = entry->d_un.d_val;
            break;
        }
    }
}

static int wrap_deep_find_guarded(struct dl_phdr_info *info, size_t size, void *context)
{
    struct wrap_deep_object *object = context;
    (void)size;
    if (info->dlpi_addr != object->base)
        return 0;
    const ElfW(Addr) page = (ElfW(Addr))getpagesize();
    for (const ElfW(Phdr) *part = info->dlpi_phdr; part < info->dlpi_phdr + info->dlpi_phnum; part++)
        if (part->p_type == PT_GNU_RELRO) { /* whole pages, as the loader has it */
            object->guarded = (object->base + part->p_vaddr) & ~(page - 1);
            object->guarded_end = (object->base + part->p_vaddr + part->p_memsz) & ~(page - 1);
        }
    return 1;
}

static int wrap_deep_guard(const struct wrap_deep_object *object, int protection)
{
    const size_t size = object->guarded_end - object->guarded;
    return size > 0 ? (int)SYS3(SYS_mprotect, object->guarded, size, protection) : 0;
}

/* The wrapper that stands for it; NULL: it is no such function, or not libc's, as far as this object is concerned. */
static void *wrap_deep_wrapper_of(const struct wrap_deep_object *object, const char *name)
{
    void *original, *wrapper = real_wrapper(name, &original);
    return wrapper != NULL && dlsym(object->handle, name) == original ? wrapper : NULL;
}

static void wrap_deep_lead_words(const struct wrap_deep_object *object, const ElfW(Rela) * first, size_t size)
{
    for (const ElfW(Rela) *word = first; word < first + size / sizeof *first; word++) {
        const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(word->r_info)];
        if (!IS_ADDRESS(ELF64_R_TYPE(word->r_info)) || symbol->st_shndx != SHN_UNDEF || word->r_addend != 0)
            continue;
        void *wrapper = wrap_deep_wrapper_of(object, object->strings + symbol->st_name);
        if (wrapper != NULL)
            __atomic_store_n((void **)(object->base + word->r_offset), wrapper, __ATOMIC_RELAXED);
    }
}

static void wrap_deep_lead(const struct link_map *map, void *handle)
{
    struct wrap_deep_object object = {.handle = handle, .base = map->l_addr};
    wrap_deep_read(&object, map);
    if (object.symbols == NULL || object.strings == NULL)
        return;
    dl_iterate_phdr(wrap_deep_find_guarded, &object);
    if (wrap_deep_guard(&object, PROT_READ | PROT_WRITE) != 0)
        return;
    for (size_t i = 0; i < 2; i++)
        wrap_deep_lead_words(&object, object.words[i].first, object.words[i].size);
    wrap_deep_guard(&object, PROT_READ);
}

/* What was loaded last into this namespace. */
static struct link_map *wrap_deep_last(void)
{
    Dl_info here;
    struct link_map *map = NULL;
    if (dladdr1(&shim_state, &here, (void **)&map, RTLD_DL_LINKMAP) == 0)
        return NULL;
    while (map != NULL && map->l_next != NULL)
        map = map->l_next;
    return map;
}

__attribute__((noinline)) static void *wrap_deep_open(const char *path, int flags)
{
    const struct link_map *last = wrap_deep_last();
    void *handle = REAL(dlopen)(path, flags);
    if (handle == NULL || last == NULL)
        return handle;
    for (const struct link_map *map = last->l_next; map != NULL; map = map->l_next)
        wrap_deep_lead(map, handle);
    dlerror(); /* it is not the program's */
    return handle;
}

static bool wrap_deep_has_path(const struct link_map *map)
{
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_RPATH || entry->d_tag == DT_RUNPATH)
            return true;
    return false;
}

/* Not inlined, so that the jump stays one. Must the loader see whose call it is, since the path is looked for by what that one
 * says? */
__attribute__((noinline)) static bool wrap_deep_is_of_caller(const char *path, const void *caller)
{
    Dl_info there;
    struct link_map *map = NULL;
    if (strchr(path, '$') != NULL)
        return true;
    return strchr(path, '/') == NULL &&
           (dladdr1(caller, &there, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL || wrap_deep_has_path(map));
}

/* But for that the call of the real dlopen is the last thing done, so that it is a jump and the loader still sees whose
 * call it was (for RUNPATH and namespaces; dlmopen: wrap_namespace.c). */
static void wrap_deep_promote(const char *path)
{
    if (path != NULL && strchr(path, '/') != NULL)
        exec_promote_file(path);
}

WRAPPER void *dlopen(const char *path, int flags)
{
    if (process_has_roots()) {
        wrap_deep_promote(path);
        if (path != NULL && (flags & RTLD_DEEPBIND) && !wrap_deep_is_of_caller(path, __builtin_return_address(0)))
            return wrap_deep_open(path, flags);
        if (path != NULL && (flags & RTLD_DEEPBIND))
            program_warn_of_library(path, "loaded with RTLD_DEEPBIND by a library with a search path of its own");
    }
    return REAL(dlopen)(path, flags);
}
