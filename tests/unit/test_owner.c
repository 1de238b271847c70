/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "leaving/owner.h"

static const struct owner_order order = {
    .epoch = 12, .branch = "n1.3", .mirror = "out-5f3a9c01d2e4", .root = "/scratch/a run", .path = "out/of it"};
static struct owner_order parsed;

Test(owner, an_order_is_a_line)
{
    char line[OWNER_LINE_MAX];
    cr_assert_gt(owner_order_format(&order, line, sizeof line), 0);
    cr_assert_str_eq(line, "rename\t12\tn1.3\tout-5f3a9c01d2e4\t/scratch/a run\tout/of it");
    cr_assert_eq(owner_order_parse(&parsed, line), 0);
    cr_assert(parsed.epoch == 12 && strcmp(parsed.branch, order.branch) == 0 && strcmp(parsed.mirror, order.mirror) == 0);
    cr_assert(strcmp(parsed.root, order.root) == 0 && strcmp(parsed.path, order.path) == 0);
}

Test(owner, a_path_that_no_line_holds_is_refused)
{
    char line[OWNER_LINE_MAX];
    static const char *const paths[] = {"a\nb", "a\tb", "\x01"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct owner_order one = order;
        strcpy(one.path, paths[i]);
        cr_assert_eq(owner_order_format(&one, line, sizeof line), -EINVAL);
    }
    cr_assert_eq(owner_order_format(&order, line, 20), -EINVAL);
}

Test(owner, no_other_line_is_an_order)
{
    static const char *const lines[] = {"",
                                        "rename",
                                        "rename\t12\tn1.3\tout-5f3a\t/r",
                                        "rename\t12\tn1.3\tout-5f3a\t/r\t",
                                        "rename\t12\tn1.3\tout-5f3a\t/r\tout\t",
                                        "rename\t12\tn1.3\tout-5f3a\t/r\tout\tmore",
                                        "rename\t12\tn1.3\tout-5f3a\tr\tout",
                                        "rename\t12\tn1.3\tout/5f3a\t/r\tout",
                                        "rename\t12\tn1\tout-5f3a\t/r\tout",
                                        "rename\t0\tn1.3\tout-5f3a\t/r\tout",
                                        "rename\tx\tn1.3\tout-5f3a\t/r\tout",
                                        "renames\t12\tn1.3\tout-5f3a\t/r\tout",
                                        "remove\t12\tn1.3\tout-5f3a\t/r\tout"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_assert_eq(owner_order_parse(&parsed, lines[i]), -EBADMSG, "%s", lines[i]);
    char line[2 * OWNER_LINE_MAX];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    cr_assert_eq(owner_order_parse(&parsed, line), -EBADMSG);
}
