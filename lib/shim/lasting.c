/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/lasting.h"

#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "shim/process.h"
#include "shim/real.h"

/* The kernel maps nothing else that near to the stack's end (mmap_base: its limit and stack_guard_gap lie between), so a stack
 * pointer there is in that stack, which has no hole above it. */
#define LASTING_STACK ((size_t)1 << 20)

static uintptr_t lasting_page(uintptr_t at)
{
    return at & ~(uintptr_t)(PROCESS_PAGE - 1);
}

/* Without the program headers' own segment it is not known where the others are: a program that the loader was given. */
static void lasting_find_segments(struct lasting_state *lasting)
{
    const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
    const size_t count = headers != NULL ? getauxval(AT_PHNUM) : 0;
    size_t i = 0, found = 0;
    while (i < count && headers[i].p_type != PT_PHDR)
        i++;
    if (i == count)
        return;
    const uintptr_t base = (uintptr_t)headers - headers[i].p_vaddr;
    for (i = 0; i < count && found < LASTING_SEGMENTS; i++)
        if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_R)) {
            lasting->segments[found].from = base + headers[i].p_vaddr;
            lasting->segments[found++].end = base + headers[i].p_vaddr + headers[i].p_memsz;
        }
}

/* The path by which the program was executed is the last thing on the stack. */
void lasting_start(void)
{
    struct lasting_state *lasting = &shim_state.lasting;
    const char *last = (const char *)getauxval(AT_EXECFN);
    lasting->stack_end = last != NULL ? (uintptr_t)last + strlen(last) + 1 : 0;
    lasting->heap = (uintptr_t)REAL(sbrk)(0);
    if (lasting->heap == UINTPTR_MAX)
        lasting->heap = 0;
    lasting_find_segments(lasting);
}

static uintptr_t lasting_word(const uintptr_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static uintptr_t lasting_end_of_heap(void)
{
    const uintptr_t end = (uintptr_t)REAL(sbrk)(0);
    return end != UINTPTR_MAX ? end : 0;
}

size_t lasting_room(const void *at)
{
    const struct lasting_state *lasting = &shim_state.lasting;
    const uintptr_t from = (uintptr_t)at, frame = (uintptr_t)__builtin_frame_address(0);
    const uintptr_t stack_end = lasting_word(&lasting->stack_end), heap = lasting_word(&lasting->heap);
    if (from >= frame && from < stack_end)
        return stack_end - frame < LASTING_STACK ? stack_end - from : 0;
    for (size_t i = 0; i < LASTING_SEGMENTS; i++) {
        const uintptr_t end = lasting_word(&lasting->segments[i].end);
        if (from < end && from >= lasting->segments[i].from)
            return end - from;
    }
    const uintptr_t end = heap != 0 && from >= heap ? lasting_end_of_heap() : 0;
    return from < end ? end - from : 0;
}

static void lasting_end(uintptr_t *word)
{
    __atomic_store_n(word, 0, __ATOMIC_RELAXED);
}

/* By whole pages, since the kernel takes them. */
void lasting_taken(const void *at, size_t size)
{
    struct lasting_state *lasting = &shim_state.lasting;
    const uintptr_t from = lasting_page((uintptr_t)at), to = from + size + PROCESS_PAGE;
    const uintptr_t end = to > from ? to : UINTPTR_MAX;
    const uintptr_t stack_end = lasting_word(&lasting->stack_end), heap = lasting_word(&lasting->heap);
    if (stack_end != 0 && end > stack_end - LASTING_STACK && from < stack_end)
        lasting_end(&lasting->stack_end);
    if (heap != 0 && end > lasting_page(heap) && from < lasting_end_of_heap())
        lasting_end(&lasting->heap);
    for (size_t i = 0; i < LASTING_SEGMENTS; i++)
        if (end > lasting_page(lasting->segments[i].from) && from < lasting_word(&lasting->segments[i].end))
            lasting_end(&lasting->segments[i].end);
}
