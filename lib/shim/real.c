/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Every process pays for this at its start, most of them for nothing. With dlsym it took 25 us, with a look
 * into the libraries' own hash tables it takes half of that. What is found is what dlsym(RTLD_NEXT) finds, the default
 * version in the first of the libraries behind this one; what it would have to call first to know (an IFUNC),
 * what lies in a library without such a table, and all where a filter library changes the order of search, it
 * is asked for. Before other threads and before anything is loaded besides what the program started with, so
 * nobody else changes the list of libraries. */

#include "shim/real.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct real real;
static bool unresolved = true;

#define COUNT (sizeof real / sizeof(void *))
#define HIDDEN 0x8000 /* of a version: not the default one */
#define WORD_BITS (8 * sizeof(ElfW(Addr)))

/* One after the other, each with its zero: an array of pointers would have to be relocated first. */
static const char names[] =
#define SYMBOL(group, name, result, arguments) #name "\0"
#include "shim/table.h"
#undef SYMBOL
    ;

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

static void open_table(struct library *l, const uint32_t *table)
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
static bool open_library(struct library *l, const struct link_map *map)
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
    open_table(l, table);
    return true;
}

struct wanted {
    uint32_t hash;
    uint16_t name; /* where it begins in `names` */
};

static void want_all(struct wanted wanted[COUNT])
{
    const char *at = names;
    for (struct wanted *w = wanted; w < wanted + COUNT; w++, at++) {
        *w = (struct wanted){.hash = 5381, .name = (uint16_t)(at - names)};
        for (; *at != '\0'; at++)
            w->hash = w->hash * 33 + (unsigned char)*at;
    }
}

static bool may_have(const struct library *l, uint32_t hash)
{
    ElfW(Addr) word = l->bloom[hash / WORD_BITS & l->bloom_mask];
    return word >> hash % WORD_BITS & word >> (hash >> l->bloom_shift) % WORD_BITS & 1;
}

static bool is_offered(const struct library *l, uint32_t index)
{
    const ElfW(Sym) *symbol = &l->symbols[index];
    unsigned char visibility = ELF64_ST_VISIBILITY(symbol->st_other);
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
           ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED) &&
           (l->versions == NULL || !(l->versions[index] & HIDDEN));
}

static const ElfW(Sym) * find(const struct library *l, const struct wanted *w)
{
    uint32_t index = may_have(l, w->hash) ? l->buckets[w->hash % l->bucket_count] : 0;
    if (index < l->first_symbol)
        return NULL;
    for (;; index++) {
        uint32_t chained = l->chains[index - l->first_symbol]; /* the lowest bit says that it is the last */
        if ((chained | 1) == (w->hash | 1) && is_offered(l, index) &&
            strcmp(l->strings + l->symbols[index].st_name, names + w->name) == 0)
            return &l->symbols[index];
        if (chained & 1)
            return NULL;
    }
}

static void set(size_t index, void *function)
{
    memcpy((char *)&real + index * sizeof function, &function, sizeof function);
}

static bool is_set(size_t index)
{
    void *function;
    memcpy(&function, (char *)&real + index * sizeof function, sizeof function);
    return function != NULL;
}

/* What this library has of what none before it had. How many are missing then. */
static unsigned take(const struct library *l, const struct wanted wanted[COUNT])
{
    unsigned missing = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const ElfW(Sym) *symbol = is_set(i) ? NULL : find(l, &wanted[i]);
        if (symbol != NULL)
            set(i, ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ? dlsym(RTLD_NEXT, names + wanted[i].name)
                                                                   : (void *)(l->base + symbol->st_value));
        missing += !is_set(i);
    }
    return missing;
}

static void search_libraries(const struct wanted wanted[COUNT])
{
    struct library library;
    const struct link_map *map = _r_debug.r_map;
    while (map != NULL && map->l_ld != _DYNAMIC)
        map = map->l_next;
    for (map = map != NULL ? map->l_next : NULL; map != NULL && open_library(&library, map);
         map = map->l_next)
        if (take(&library, wanted) == 0)
            break;
}

void real_resolve(void)
{
    struct wanted wanted[COUNT];
    if (!unresolved)
        return;
    real = (struct real){0}; /* written first: to look at fresh memory and then to write it are two page faults */
    want_all(wanted);
    search_libraries(wanted);
    for (size_t i = 0; i < COUNT; i++)
        if (!is_set(i))
            set(i, dlsym(RTLD_NEXT, names + wanted[i].name));
    unresolved = false;
}
