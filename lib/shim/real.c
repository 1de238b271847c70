/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* To ask dlsym for all of them would cost every process 25 us at its start, and it could not be asked later:
 * it takes locks and memory. So each is looked for when it is first wanted, in the hash tables of the
 * libraries that the program started with: these are never unloaded, so nothing that is read here changes.
 * What is found is what dlsym(RTLD_NEXT) finds, the default version in the first of the libraries after this
 * one. (Before glibc 2.36 dlsym finds the oldest version there.)
 *
 * If one of them has no such table, or is a filter, which changes the order of search, or if they are too
 * many, dlsym is asked for all at the start after all. */

#include "shim/real.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/real_missing.h"

#define COUNT (sizeof(struct real) / sizeof(void *))
#define LIBRARIES 256
#define HIDDEN 0x8000 /* of a version: not the default one */
#define WORD_BITS (8 * sizeof(ElfW(Addr)))

/* The names, and where each begins: pointers to them would have to be relocated first. */
static const struct names {
#define SYMBOL(group, name, result, arguments) char name[sizeof #name];
#include "shim/table.h"
#undef SYMBOL
} names = {
#define SYMBOL(group, name, result, arguments) #name,
#include "shim/table.h"
#undef SYMBOL
};
static const uint16_t starts[] = {
#define SYMBOL(group, name, result, arguments) offsetof(struct names, name),
#include "shim/table.h"
#undef SYMBOL
};

/* What a library's dynamic section says of its symbols; the hash table in its parts, as `ld --hash-style=gnu`
 * lays them out. */
struct library {
    ElfW(Addr) base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Half) * versions; /* NULL: it has none */
    uint32_t bucket_count, first_symbol, bloom_mask, bloom_shift;
    const ElfW(Addr) * bloom;
    const uint32_t *buckets, *chains;
};

struct real real;
/* Those after this one, in the order of search. */
static struct library libraries[LIBRARIES];
static unsigned library_count;
static bool started;

static void real_open_table(struct library *l, const uint32_t *table)
{
    l->bucket_count = table[0];
    l->first_symbol = table[1];
    l->bloom_mask = table[2] - 1;
    l->bloom_shift = table[3];
    l->bloom = (const ElfW(Addr) *)&table[4];
    l->buckets = (const uint32_t *)&l->bloom[table[2]];
    l->chains = l->buckets + l->bucket_count;
}

/* False: its symbols cannot be found in this way. The loader has made addresses of the section's offsets, but
 * not in those that it may not write to (the vDSO). */
static bool real_open_library(struct library *l, const struct link_map *map)
{
    const uint32_t *table = NULL;
    *l = (struct library){.base = map->l_addr};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        ElfW(Addr) value = entry->d_un.d_ptr;
        const void *at = (const void *)(value < l->base ? value + l->base : value);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            l->symbols = at;
            break;
        case DT_STRTAB:
            l->strings = at;
            break;
        case DT_VERSYM:
            l->versions = at;
            break;
        case DT_GNU_HASH:
            table = at;
            break;
        case DT_FILTER:
        case DT_AUXILIARY:
            return false;
        }
    }
    if (table == NULL || l->symbols == NULL || l->strings == NULL || table[0] == 0)
        return false;
    real_open_table(l, table);
    return true;
}

static uint32_t real_hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name != '\0'; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static bool real_may_have(const struct library *l, uint32_t hash)
{
    ElfW(Addr) word = l->bloom[hash / WORD_BITS & l->bloom_mask];
    return word >> hash % WORD_BITS & word >> (hash >> l->bloom_shift) % WORD_BITS & 1;
}

static bool real_is_granted(const struct library *l, uint32_t index)
{
    const ElfW(Sym) *symbol = &l->symbols[index];
    unsigned char visibility = ELF64_ST_VISIBILITY(symbol->st_other);
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED) &&
           (l->versions == NULL || !(l->versions[index] & HIDDEN));
}

/* Not by strcmp: this is callable before that was relocated. */
static bool real_is_same(const char *one, const char *two)
{
    while (*one == *two && *one != '\0')
        one++, two++;
    return *one == *two;
}

static const ElfW(Sym) * real_resolve(const struct library *l, const char *name, uint32_t hash)
{
    uint32_t index = real_may_have(l, hash) ? l->buckets[hash % l->bucket_count] : 0;
    if (index < l->first_symbol)
        return NULL;
    for (;; index++) {
        uint32_t chained = l->chains[index - l->first_symbol]; /* the lowest bit says that it is the last */
        if ((chained | 1) == (hash | 1) && real_is_granted(l, index) &&
            real_is_same(l->strings + l->symbols[index].st_name, name))
            return &l->symbols[index];
        if (chained & 1)
            return NULL;
    }
}

/* An IFUNC must be called to know; dlsym does that, with what the resolver is to be told. */
static void *real_search(const char *name)
{
    uint32_t hash = real_hash_of(name);
    for (unsigned i = 0; i < library_count; i++) {
        const struct library *l = &libraries[i];
        const ElfW(Sym) *symbol = real_resolve(l, name, hash);
        if (symbol != NULL)
            return ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ? dlsym(RTLD_NEXT, name)
                                                                   : (void *)(l->base + symbol->st_value);
    }
    return NULL;
}

static void real_set(size_t index, void *function)
{
    __atomic_store_n((void **)&real + index, function, __ATOMIC_RELAXED);
}

void *real_find(size_t index)
{
    real_start();
    void *function = real_search((const char *)&names + starts[index]);
    if (function == NULL)
        function = ((void **)&real)[index];
    if (function == NULL)
        function = real_missing(index);
    if (function != NULL)
        real_set(index, function);
    return function;
}

static size_t real_index_of(const char *name)
{
    size_t index = 0;
    while (index < COUNT && !real_is_same((const char *)&names + starts[index], name))
        index++;
    return index;
}

void *real_wrapper(const char *name, void **original)
{
    Dl_info here;
    struct library own;
    struct link_map *map = NULL;
    const size_t index = real_index_of(name);
    if (index == COUNT || dladdr1(&real, &here, (void **)&map, RTLD_DL_LINKMAP) == 0 || !real_open_library(&own, map))
        return NULL;
    const ElfW(Sym) *symbol = real_resolve(&own, name, real_hash_of(name));
    void *found = ((void **)&real)[index];
    *original = found != NULL ? found : real_find(index);
    return symbol != NULL ? (void *)(own.base + symbol->st_value) : NULL;
}

static bool real_note_libraries(void)
{
    const struct link_map *map = _r_debug.r_map;
    while (map != NULL && map->l_ld != _DYNAMIC)
        map = map->l_next;
    while (map != NULL && (map = map->l_next) != NULL)
        if (library_count == LIBRARIES || !real_open_library(&libraries[library_count++], map))
            return false;
    return library_count > 0;
}

void real_start(void)
{
    if (started)
        return;
    started = true;
    if (real_note_libraries())
        return;
    library_count = 0;
    for (size_t i = 0; i < COUNT; i++)
        real_set(i, dlsym(RTLD_NEXT, (const char *)&names + starts[i]));
}
