/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Input: two pages of names, one after the other, as two homes may answer. A byte says which of them have a limit, two
 * more how long the first is. What they become is a page again, in order, and holds nothing that was in neither. */

#include "fuzz.h"
#include "wire/page.h"

#define MERGED 512
#define LIMIT (1ull << 62)

static size_t names_in(const char *page, size_t size)
{
    struct page_name name;
    size_t at = 0, count = 0;
    int code;
    while ((code = page_next(page, size, &at, &name)) == 1) {
        fuzz_must(at <= size && name.name + name.length == page + at && name.length > 0);
        count++;
    }
    fuzz_must(code == 0 ? at == size : at < size);
    return count;
}

static void fuzz_page_copy(const char *page, size_t size)
{
    struct page_name name;
    char *again = malloc(size + 1);
    size_t used = 0, at = 0;
    while (page_next(page, size, &at, &name) == 1)
        fuzz_must(page_add(again, size, &used, &name));
    fuzz_must(used == at && memcmp(again, page, used) == 0);
    free(again);
}

static void fuzz_page_merge(const struct page_part parts[2])
{
    char *to = malloc(MERGED);
    size_t used;
    uint64_t limit = page_merge(to, MERGED, &used, parts);
    fuzz_must(used <= MERGED && limit <= parts[0].limit && limit <= parts[1].limit);
    fuzz_must(names_in(to, used) <= names_in(parts[0].page, parts[0].size) + names_in(parts[1].page, parts[1].size));
    free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    size_t rest = size - 3, first = (data[1] | (size_t)data[2] << 8) % (rest + 1);
    char *pages[2] = {malloc(first + 1), malloc(rest - first + 1)}; /* of exactly their sizes but one */
    memcpy(pages[0], data + 3, first);
    memcpy(pages[1], data + 3 + first, rest - first);
    const struct page_part parts[2] = {{pages[0], first, data[0] & 1 ? LIMIT : PAGE_ALL},
                                       {pages[1], rest - first, data[0] & 2 ? LIMIT : PAGE_ALL}};
    for (int i = 0; i < 2; i++)
        fuzz_page_copy(parts[i].page, parts[i].size);
    fuzz_page_merge(parts);
    free(pages[0]);
    free(pages[1]);
    return 0;
}
