/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "base/clock.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/sys.h"

typedef int clock_function(clockid_t, struct timespec *);

/* Set once; two threads that look for it store the same. */
static clock_function *clock_asked;

#if defined(__x86_64__)
#define CLOCK_IN_VDSO "__vdso_clock_gettime"
#else
#define CLOCK_IN_VDSO "__kernel_clock_gettime"
#endif

static int clock_by_call(clockid_t which, struct timespec *to)
{
    return (int)SYS2(SYS_clock_gettime, which, to);
}

/* What the vDSO says of itself. */
struct clock_vdso {
    const char *base; /* plus an address of its own: where that is */
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *hash, *gnu_hash; /* recent kernels have the second alone */
};

static void clock_read_dynamic(struct clock_vdso *vdso, const ElfW(Dyn) * entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        const char *at = vdso->base + entry->d_un.d_ptr;
        switch (entry->d_tag) {
        case DT_SYMTAB:
            vdso->symbols = (const void *)at;
            break;
        case DT_STRTAB:
            vdso->names = at;
            break;
        case DT_HASH:
            vdso->hash = (const void *)at;
            break;
        case DT_GNU_HASH:
            vdso->gnu_hash = (const void *)at;
            break;
        default:
            break;
        }
    }
}

/* The last symbol is the last one of the chain that begins last. */
static size_t clock_count_by_gnu_hash(const uint32_t *table)
{
    const uint32_t buckets = table[0], first = table[1], filter = table[2];
    const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(table + 4) + filter), *chain = bucket + buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; i++)
        last = bucket[i] > last ? bucket[i] : last;
    if (last < first)
        return 0;
    while ((chain[last - first] & 1) == 0)
        last++;
    return last + 1;
}

static clock_function *clock_find_in(const struct clock_vdso *vdso)
{
    const size_t count = vdso->hash != NULL       ? vdso->hash[1]
                         : vdso->gnu_hash != NULL ? clock_count_by_gnu_hash(vdso->gnu_hash)
                                                  : 0;
    for (size_t i = 0; i < count && vdso->symbols != NULL && vdso->names != NULL; i++) {
        const ElfW(Sym) *symbol = &vdso->symbols[i];
        if (symbol->st_shndx != SHN_UNDEF && strcmp(vdso->names + symbol->st_name, CLOCK_IN_VDSO) == 0)
            return (clock_function *)(uintptr_t)(vdso->base + symbol->st_value);
    }
    return NULL;
}

static clock_function *clock_find(void)
{
    const ElfW(Ehdr) *header = (const void *)getauxval(AT_SYSINFO_EHDR);
    struct clock_vdso vdso = {0};
    const ElfW(Dyn) *dynamic = NULL;
    if (header == NULL)
        return NULL;
    const ElfW(Phdr) *part = (const void *)((const char *)header + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (part[i].p_type == PT_LOAD && vdso.base == NULL)
            vdso.base = (const char *)header + part[i].p_offset - part[i].p_vaddr;
        else if (part[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)((const char *)header + part[i].p_offset);
    if (vdso.base == NULL || dynamic == NULL)
        return NULL;
    clock_read_dynamic(&vdso, dynamic);
    return clock_find_in(&vdso);
}

/* An analyser of memory (valgrind) hides the vDSO from its program. */
__attribute__((noinline)) static clock_function *clock_look(void)
{
    clock_function *found = clock_find();
    if (found == NULL)
        found = clock_by_call;
    __atomic_store_n(&clock_asked, found, __ATOMIC_RELAXED);
    return found;
}

void clock_sleep(const struct timespec *pause)
{
    SYS2(SYS_nanosleep, pause, NULL);
}

uint64_t clock_of(clockid_t which)
{
    struct timespec now = {0};
    clock_function *ask = __atomic_load_n(&clock_asked, __ATOMIC_RELAXED);
    if (__builtin_expect(ask == NULL, 0))
        ask = clock_look();
    ask(which, &now);
    return (uint64_t)now.tv_sec * CLOCK_SECOND + (uint64_t)now.tv_nsec;
}
