/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Numbers of the kernel's that the headers of the oldest C library shunt is built with (glibc 2.31) do not have. System call
 * numbers from 424 on are the same on every architecture (Linux 5.1). A kernel without a call answers ENOSYS, which each caller
 * handles. */

#include <linux/magic.h>
#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif
#ifndef SYS_openat2
#define SYS_openat2 437 /* Linux 5.6 */
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439 /* Linux 5.8 */
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440 /* Linux 5.10 */
#endif
#ifndef SYS_open_tree
#define SYS_open_tree 428 /* Linux 5.2, as the next three */
#define SYS_move_mount 429
#define SYS_fsconfig 431
#define SYS_fspick 433
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442 /* Linux 5.12 */
#endif
#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000 /* Linux 6.14 */
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif
