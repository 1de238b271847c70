/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Is this process run by valgrind? It follows what system calls read, and tells its user of those that it does not know. The
 * question is the client request RUNNING_ON_VALGRIND of valgrind.h, which is part of its ABI: instructions that have no effect
 * natively. Async-signal-safe. */

#include <stdbool.h>
#include <stdint.h>

#define VALGRIND_RUNNING 0x1001

static inline bool valgrind_is_there(void)
{
    static const uint64_t question[6] = {VALGRIND_RUNNING};
#if defined(__x86_64__)
    uint64_t answer = 0;
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(question)
                     : "cc", "memory");
    return answer != 0;
#elif defined(__aarch64__)
    register uint64_t x3 __asm__("x3") = 0;
    register const uint64_t *x4 __asm__("x4") = question;
    __asm__ volatile("ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61; orr x10, x10, x10"
                     : "+r"(x3)
                     : "r"(x4)
                     : "cc", "memory");
    return x3 != 0;
#endif
}
