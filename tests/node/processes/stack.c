/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* stack PATH: how many bytes of stack calls on that path take. Each is made on a painted stack of its own. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#define SIZE 65536
#define PAINT 0xa5

static unsigned char stack[SIZE] __attribute__((aligned(64)));
static ucontext_t back, there;
static const char *path;

static void call_nothing(void)
{
}

static void call_stat(void)
{
    static struct stat to;
    stat(path, &to);
}

static void call_open(void)
{
    close(open(path, O_RDONLY));
}

static void call_access(void)
{
    access(path, F_OK);
}

static void call_absent(void)
{
    static struct stat to;
    stat("/proc/self/absent", &to);
}

static size_t stack_used(void (*call)(void))
{
    size_t at = 0;
    memset(stack, PAINT, SIZE);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = SIZE;
    there.uc_link = &back;
    makecontext(&there, call, 0);
    swapcontext(&back, &there);
    while (at < SIZE && stack[at] == PAINT)
        at++;
    return SIZE - at;
}

int main(int argc, char *argv[])
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {{"stat", call_stat}, {"open", call_open}, {"access", call_access}, {"absent", call_absent}};
    path = argv[1];
    size_t nothing = stack_used(call_nothing);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        stack_used(calls[i].call); /* the loader's own business is done */
        printf("%s %zu\n", calls[i].name, stack_used(calls[i].call) - nothing);
    }
    return argc != 2;
}
