/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#define UNW_LOCAL_ONLY
#include "crash.h"

#include <libunwind.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"

static char alternate_stack[64 * 1024]; /* a stack that overflowed is no place to report from */

static void crash_say(const char *words, uint64_t number, unsigned base)
{
    char line[512];
    struct text t;
    text_init(&t, line, sizeof line);
    text_add(&t, words);
    text_number(&t, number, base);
    text_add(&t, "\n");
    if (write(STDERR_FILENO, line, t.length) < 0)
        return;
}

static void crash_frame(unw_cursor_t *cursor)
{
    char line[400];
    struct text t;
    unw_word_t offset = 0, address = 0;
    char name[256] = "?";
    unw_get_reg(cursor, UNW_REG_IP, &address);
    unw_get_proc_name(cursor, name, sizeof name, &offset);
    text_init(&t, line, sizeof line);
    text_add(&t, "  ");
    text_add(&t, name);
    text_add(&t, "+0x");
    text_number(&t, offset, 16);
    text_add(&t, " at 0x");
    crash_say(line, address, 16);
}

static void crash_report(int signal, siginfo_t *info, void *context)
{
    unw_cursor_t cursor;
    unw_context_t here;
    if (!log_has_room(LOG_LINE_MOST)) {
        raise(signal);
        return;
    }
    crash_say("shuntd crashed: signal ", (uint64_t)signal, 10);
    crash_say("  address 0x", (uint64_t)(uintptr_t)info->si_addr, 16);
    unw_getcontext(&here);
    unw_init_local(&cursor, &here);
    for (int i = 0; i < 64 && unw_step(&cursor) > 0; i++)
        crash_frame(&cursor);
    raise(signal); /* SA_RESETHAND: the default now */
}

void crash_report_init(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
    struct sigaction action = {.sa_sigaction = crash_report, .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_ONSTACK | SA_NODEFER};
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}
