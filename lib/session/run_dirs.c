/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "session/run_dirs.h"

#include <errno.h>
#include <sys/mman.h>

#include "union/disk.h"
#include "union/lines.h"

#define RUN_DIRS_HEAD "shunt-run 1"
#define RUN_DIRS_TEXT_MAX (2 * PATH_MAX + 512)
#define RUN_DIRS_SCAN 8192

int run_dirs_each(const char *beginning, int (*each)(void *context, const char *run_dir), void *context)
{
    char path[SESSION_RUN_MAX + NAME_MAX + 2];
    uint64_t buffer[RUN_DIRS_SCAN / sizeof(uint64_t)];
    struct disk_scan scan;
    const struct disk_name *name;
    struct text t;
    const char *part = strrchr(beginning, '/') + 1;
    const size_t above = (size_t)(part - beginning), length = strlen(part);
    text_init(&t, path, sizeof path);
    text_bytes(&t, beginning, above);
    int code = text_ok(&t) ? disk_scan_init(&scan, AT_FDCWD, path, buffer, sizeof buffer) : -ENAMETOOLONG;
    if (code < 0)
        return code;
    while ((code = disk_scan_next(&scan, &name)) > 0) {
        if (strncmp(name->name, part, length) != 0 || name->name[0] == '.')
            continue;
        text_init(&t, path, sizeof path);
        text_bytes(&t, beginning, above);
        text_add(&t, name->name);
        code = text_ok(&t) ? each(context, path) : 0;
        if (code != 0)
            break;
    }
    disk_scan_finish(&scan);
    return code;
}

/* One line each, in this order. */
enum about_line { ROOT, NODE, SINCE, SCHEDULER, JOB, STEP, ABOUT_LINES };
static const char *const keys[ABOUT_LINES] = {"root", "node", "since", "scheduler", "job", "step"};

int run_dirs_about_parse(struct run_dirs_about *about, const char *text, size_t length)
{
    struct lines lines = {text, length};
    struct lines_value values[ABOUT_LINES];
    *about = (struct run_dirs_about){0};
    if (!lines_expect(&lines, RUN_DIRS_HEAD))
        return -EBADMSG;
    for (int i = 0; i < ABOUT_LINES; i++)
        if (!lines_take(&lines, keys[i], &values[i]))
            return -EBADMSG;
    const bool is_one =
        lines_path(values[ROOT], about->root, sizeof about->root) &&
        lines_word(values[NODE], about->node, sizeof about->node) && lines_number(values[SINCE], 10, &about->since) &&
        lines_word(values[SCHEDULER], about->scheduler, sizeof about->scheduler) &&
        lines_word(values[JOB], about->job, sizeof about->job) && lines_word(values[STEP], about->step, sizeof about->step);
    return is_one ? 0 : -EBADMSG;
}

int run_dirs_about_read(int run_dir, struct run_dirs_about *about)
{
    char text[RUN_DIRS_TEXT_MAX];
    ssize_t length = disk_read(run_dir, RUN_DIRS_ABOUT, text, sizeof text);
    return length < 0 ? (int)length : run_dirs_about_parse(about, text, (size_t)length);
}

int run_dirs_about_write(const char *run_dir, const struct run_dirs_about *about)
{
    char text[RUN_DIRS_TEXT_MAX];
    struct text t;
    text_init(&t, text, sizeof text);
    text_add(&t, RUN_DIRS_HEAD "\n");
    lines_add_path(&t, keys[ROOT], about->root);
    lines_add(&t, keys[NODE], about->node);
    lines_add_number(&t, keys[SINCE], about->since, 10);
    lines_add(&t, keys[SCHEDULER], about->scheduler);
    lines_add(&t, keys[JOB], about->job);
    lines_add(&t, keys[STEP], about->step);
    if (!text_ok(&t))
        return -ENAMETOOLONG;
    int dir = sys_openat(AT_FDCWD, run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0)
        return dir;
    sys_unlinkat(dir, RUN_DIRS_ABOUT, 0);
    int code = disk_write_new(dir, RUN_DIRS_ABOUT, text, t.length, 0600);
    sys_close(dir);
    return code;
}
