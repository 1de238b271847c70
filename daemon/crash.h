/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* On SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT: the signal and a backtrace to standard error (the log), by
 * libunwind; then the signal takes its usual course. */
void crash_report_init(void);
