/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Is this a build with AddressSanitizer (GCC, Clang)? It defines SANITIZER_IS_ADDRESS then. */

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZER_IS_ADDRESS
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZER_IS_ADDRESS
#endif

#ifdef SANITIZER_IS_ADDRESS
void __asan_handle_no_return(void);
#endif

/* The calls under way on this stack may never return: a vfork child begins a program on the stack of its parent, for which what
 * AddressSanitizer marks around their variables would stay. (It does this in vfork itself where its wrapper of that comes
 * before libc's, which it does not for a program that is not built with it.) Async-signal-safe. */
static inline void sanitizer_abandon_frames(void)
{
#ifdef SANITIZER_IS_ADDRESS
    __asan_handle_no_return();
#endif
}
