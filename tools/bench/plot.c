/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/plot.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "programs/capture.h"

#define WIDTH 900
#define HEIGHT 420 /* of the bars of one size */

/* gnuplot would say so only in the end. */
static int plot_check_place(const char *path)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const size_t length = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    if (length >= sizeof directory)
        return error_report("%s: the path is too long (give a shorter one)", path), -1;
    memcpy(directory, slash != NULL ? path : ".", slash != NULL ? length : 1);
    directory[slash != NULL ? length : 1] = '\0';
    if (access(directory, W_OK | X_OK) == 0)
        return 0;
    error_report("%s: cannot be written in %s: %s (give a file in another directory)", path, directory, strerror(errno));
    return -1;
}

int plot_check(const struct plan *plan)
{
    char *const words[] = {"gnuplot", "--version", NULL};
    char version[64];
    for (size_t i = 0; i < plan->plot_count; i++)
        if (plot_check_place(plan->plots[i]) < 0)
            return -1;
    if (plan->plot_count == 0 || capture(words, version, sizeof version) == 0)
        return 0;
    error_report("gnuplot: command not found (install it, or leave --plot out)");
    return -1;
}

/* In single quotes gnuplot takes everything as it is but a quote, which is doubled. */
static void plot_write_quoted(const char *text, FILE *to)
{
    fputc('\'', to);
    for (; *text; text++)
        fputs(*text == '\'' ? "''" : (const char[]){*text, '\0'}, to);
    fputc('\'', to);
}

static void plot_write_head(const struct plan *plan, const char *path, FILE *to)
{
    const char *terminal = strcmp(strrchr(path, '.'), ".svg") ? "pngcairo" : "svg";
    fprintf(to, "set terminal %s size %d,%zu noenhanced background '#ffffff'\nset output ", terminal, WIDTH,
            HEIGHT * plan->size_count);
    plot_write_quoted(path, to);
    fprintf(to,
            "\nset style data histograms\nset style histogram errorbars gap 1 linewidth 1\n"
            "set style fill solid 0.8 border -1\nset bars front\nset logscale y\nset ylabel 'operations/s'\n"
            "set grid ytics\nset key outside top center horizontal\nset multiplot layout %zu,1\n",
            plan->size_count);
}

/* A line for each operation: its name, then median, lowest and highest of each configuration. */
static void plot_write_data(struct results *results, size_t size, FILE *to)
{
    const struct plan *plan = results->plan;
    fprintf(to, "$size%zu << END\n", size);
    for (unsigned operation = 0; operation < PLAN_OPERATIONS; operation++) {
        if (!plan_has(plan->operations, operation))
            continue;
        fprintf(to, "%s", plan_operations[operation]);
        for (unsigned c = 0; c < PLAN_CONFIGURATIONS; c++)
            if (plan_has(plan->configurations, c)) {
                struct spread rate = results_rates(results, c, size, operation);
                fprintf(to, " %.3f %.3f %.3f", rate.median, rate.lowest, rate.highest);
            }
        fprintf(to, "\n");
    }
    fprintf(to, "END\n");
}

static void plot_write_bars(const struct plan *plan, size_t size, FILE *to)
{
    size_t column = 2;
    fprintf(to, "set title 'files of %" PRIu64 " bytes, %" PRIu64 " processes'\nplot", plan->sizes[size], plan->processes);
    for (unsigned c = 0; c < PLAN_CONFIGURATIONS; c++)
        if (plan_has(plan->configurations, c)) {
            fprintf(to, "%s $size%zu using %zu:%zu:%zu:xtic(1) title '%s'", column > 2 ? "," : "", size, column, column + 1,
                    column + 2, plan_configurations[c]);
            column += 3;
        }
    fprintf(to, "\n");
}

void plot_write(struct results *results, const char *path, FILE *to)
{
    const struct plan *plan = results->plan;
    for (size_t size = 0; size < plan->size_count; size++)
        plot_write_data(results, size, to);
    plot_write_head(plan, path, to);
    for (size_t size = 0; size < plan->size_count; size++)
        plot_write_bars(plan, size, to);
    fprintf(to, "unset multiplot\nset output\n");
}

static int plot_draw(struct results *results, const char *path)
{
    FILE *gnuplot = popen("exec gnuplot >&2", "we");
    if (gnuplot)
        plot_write(results, path, gnuplot);
    if (gnuplot && pclose(gnuplot) == 0)
        return 0;
    error_report("%s: gnuplot failed (its message is above)", path);
    return -1;
}

int plot_all(struct results *results)
{
    int error = 0;
    for (size_t i = 0; i < results->plan->plot_count; i++)
        if (plot_draw(results, results->plan->plots[i]) < 0)
            error = -1;
    return error;
}
