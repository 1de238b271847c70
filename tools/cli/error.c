/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "cli/command.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/describe.h"

const char *error_program = "shunt";

/* A name in it may have control characters. */
static void error_print(const char *format, va_list arguments)
{
    va_list again;
    char *text = NULL;
    va_copy(again, arguments);
    if (isatty(STDERR_FILENO) && vasprintf(&text, format, again) >= 0) {
        describe_print_for_terminal(text, stderr);
        free(text);
    } else {
        vfprintf(stderr, format, arguments);
    }
    va_end(again);
}

static void error_say(const char *format, va_list arguments, const char *end)
{
    fflush(stdout);
    flockfile(stderr);
    fprintf(stderr, "%s: ", error_program);
    error_print(format, arguments);
    fputs(end, stderr);
    funlockfile(stderr);
}

void error_report(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error_say(format, arguments, "\n");
    va_end(arguments);
}

int error_usage(const struct command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error_say(format, arguments, "");
    va_end(arguments);
    fprintf(stderr, " (see '%s%s --help')\n", command->flags & COMMAND_ALONE ? "" : "shunt ", command->name);
    return STATUS_USAGE;
}

static void error_goes_on(int number)
{
}

void error_outlast_reader(void)
{
    struct sigaction now, action = {.sa_handler = error_goes_on, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        sigaction(SIGPIPE, &action, NULL);
}

static const struct {
    int error;
    const char *sentence;
} sentences[] = {
    {ENOENT, "no such file or directory in the union"},
    {ENOTUNIQ, "in no root of shunt, since no directory above it has a .shunt (list it with 'ls')"},
    {EINVAL, "belongs to shunt and is not part of the union (list it with 'ls')"},
    {EBADMSG, "its .shunt-dir is damaged, so its mirrors are not known (run 'shunt fsck' on the root)"},
    {EACCES, "permission denied (ask its owner, or run this as its owner)"},
    {EPERM, "not permitted (run this as its owner)"},
    {EROFS, "the file system is read-only (mount it for writing first)"},
    {ENOSPC, "no space left on the file system (make room and run this again)"},
    {EDQUOT, "the quota is used up (make room and run this again)"},
    {ENAMETOOLONG, "the path is too long (change to a directory further down and give a shorter one)"},
    {EMULTIHOP, "a root inside another root (name it by itself, and give only one of the two to 'shunt start')"},
    {EXDEV, "on another file system than the branch (move it by hand)"},
    {EIO, "input/output error (look at the file system, then run this again)"},
    {ESTALE, "stale file handle (look at its mount, then run this again)"},
    {EINTR, "interrupted system call (run this again)"},
    {ENOMEM, "no memory (run this again when there is more)"},
    {EMFILE, "too many open files (raise the limit with 'ulimit -n', then run this again)"},
    {ENFILE, "too many open files in the system (run this again when there are fewer)"},
};

const char *error_name(const char *path)
{
    return *path != '\0' ? path : "''";
}

const char *error_words(int error)
{
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if (sentences[i].error == -error)
            return sentences[i].sentence;
    return strerror(-error);
}

void error_report_path(const char *path, int error)
{
    error_report("%s: %s", error_name(path), error_words(error));
}
