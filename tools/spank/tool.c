/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "spank/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

const char *tool_complain_roots(const char *list)
{
    size_t count = 0;
    for (const char *at = list; at; count++) {
        if (*at != '/')
            return "not an absolute path (give the whole path; a colon separates several)";
        if (strcspn(at, ":") >= PATH_MAX)
            return "too long (give a shorter path)";
        at = strchr(at, ':');
        at = at ? at + 1 : NULL;
    }
    return count > TOOL_ROOTS ? "too many directories (use one further up)" : NULL;
}

/* From 1 to a day, as shunt-launch takes them. */
static int tool_is_seconds(const char *text)
{
    char *end;
    const long seconds = strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && seconds >= 1 && seconds <= 86400;
}

const char *tool_complain_export(const char *when)
{
    static const char *const words[] = {"now", "background", "later", "later,submit", "never"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(when, words[i]))
            return NULL;
    if (!strncmp(when, "background,", 11) && tool_is_seconds(when + 11))
        return NULL;
    return "not " TOOL_EXPORT_WORDS;
}

static int tool_set_environment(struct tool *tool, char *const *environment, const char *node, int preloads)
{
    size_t count = 0, at = 0;
    while (environment && environment[count])
        count++;
    tool->environment = calloc(count + 2, sizeof *tool->environment);
    if (!tool->environment)
        return -1;
    for (size_t i = 0; i < count; i++)
        if ((preloads || strncmp(environment[i], "LD_PRELOAD=", 11) != 0) &&
            (!node || strncmp(environment[i], "SHUNT_NODE=", 11) != 0))
            tool->environment[at++] = environment[i];
    snprintf(tool->node, sizeof tool->node, "SHUNT_NODE=%s", node ? node : "");
    if (node)
        tool->environment[at] = tool->node;
    return 0;
}

int tool_init(struct tool *tool, const char *bin, const char *name, char *const *environment, const char *node, int preloads)
{
    *tool = (struct tool){0};
    int length = snprintf(tool->path, sizeof tool->path, "%s/%s", bin, name);
    if (length >= (int)sizeof tool->path || tool_set_environment(tool, environment, node, preloads) < 0)
        return -1;
    return tool_add(tool, name);
}

void tool_finish(struct tool *tool)
{
    for (size_t i = 0; i < tool->count; i++)
        free(tool->words[i]);
    free(tool->environment);
    *tool = (struct tool){0};
}

int tool_add(struct tool *tool, const char *word)
{
    char *copy = tool->count < TOOL_WORDS ? strdup(word) : NULL;
    if (!copy)
        return -1;
    tool->words[tool->count++] = copy;
    return 0;
}

int tool_add_roots(struct tool *tool, const char *list)
{
    char root[PATH_MAX];
    int error = 0;
    for (const char *at = list; at && error == 0;) {
        const size_t length = strcspn(at, ":");
        snprintf(root, sizeof root, "%.*s", (int)length, at);
        error = tool_add(tool, "--root") < 0 || tool_add(tool, root) < 0 ? -1 : 0;
        at = at[length] == ':' ? at + length + 1 : NULL;
    }
    return error;
}

int tool_add_export(struct tool *tool, const char *when)
{
    return tool_add(tool, "--export") < 0 || tool_add(tool, when) < 0 ? -1 : 0;
}

/* The descriptors of srun and slurmstepd, and what these block or ignore, are their own. */
void tool_become(const struct tool *tool, int output, int both)
{
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++)
        if (number != SIGHUP) /* nohup */
            signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (both)
        dup2(output, STDIN_FILENO);
    if (output >= 0)
        dup2(output, STDOUT_FILENO);
    syscall(SYS_close_range, 3, ~0u, 0);
    execve(tool->path, tool->words, tool->environment);
    fprintf(stderr, "shunt: %s: cannot be executed: %s (check bin= in plugstack.conf)\n", tool->path, strerror(errno));
}

static int tool_wait(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int tool_run(const struct tool *tool)
{
    const pid_t child = fork();
    if (child == 0) {
        tool_become(tool, -1, 0);
        _exit(127);
    }
    return child < 0 ? -1 : tool_wait(child);
}

static void tool_take_all(int from, void (*take)(void *, const char *), void *to)
{
    FILE *file = fdopen(from, "r");
    char *text = NULL;
    size_t size = 0;
    while (file && getdelim(&text, &size, '\0', file) > 0)
        take(to, text);
    free(text);
    if (file)
        fclose(file);
    else
        close(from);
}

int tool_read(const struct tool *tool, void (*take)(void *, const char *), void *to)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    const pid_t child = fork();
    if (child == 0) {
        tool_become(tool, ends[1], 0);
        _exit(127);
    }
    close(ends[1]);
    tool_take_all(ends[0], take, to);
    return child < 0 ? -1 : tool_wait(child);
}
