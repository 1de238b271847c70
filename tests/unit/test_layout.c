/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/layout.h"

#include <criterion/criterion.h>

static bool node_is_valid(const char *node)
{
    return layout_node_is_valid(node, strlen(node));
}

static size_t branch_node(const char *branch, uint32_t *incarnation)
{
    return layout_branch_node(branch, strlen(branch), incarnation);
}

Test(layout, node_names)
{
    char longest[LAYOUT_NODE_MAX + 2] = {0}, node[LAYOUT_NODE_MAX + 1];
    memset(longest, 'n', LAYOUT_NODE_MAX);
    cr_assert(node_is_valid("n") && node_is_valid("0") && node_is_valid("n017.cluster-1_b") && node_is_valid(longest));
    longest[LAYOUT_NODE_MAX] = 'n';
    const char *const bad[] = {"", ".", "..", ".n", "-n", "_n", "a/b", "a b", "a\n", "n\xc3\xa4", longest};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_not(node_is_valid(bad[i]), "%s", bad[i]);
    cr_assert_not(layout_node_is_valid("a\0b", 3));
    static const char *const hosts[][2] = {{"n017", "n017"},
                                           {"n017.cluster.org", "n017"},
                                           {"my_host-1", "my_host-1"},
                                           {"a b,c", "a-b-c"},
                                           {"_x", "nx"},
                                           {"", "node"},
                                           {".x", "node"},
                                           {"-", "n"}};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        layout_node_of_host(hosts[i][0], node);
        cr_assert_str_eq(node, hosts[i][1]);
    }
}

Test(layout, branches_come_apart_at_the_last_dot)
{
    uint32_t incarnation = 0;
    cr_assert_eq(branch_node("n017.1", &incarnation), 4);
    cr_assert_eq(incarnation, 1);
    cr_assert_eq(branch_node("n017.rack.2.4294967295", &incarnation), 11);
    cr_assert_eq(incarnation, 4294967295u);
}

Test(layout, no_branches)
{
    uint32_t incarnation;
    char longest[LAYOUT_BRANCH_MAX + 2] = {0};
    memset(longest, 'n', sizeof longest - 1);
    memcpy(longest + 68, ".1", 2);
    const char *const bad[] = {"",    "n",    ".1",   "n.",   "n.0", "n.01", "n.1x", "n.-1", "n.4294967296", "n.99999999999",
                               "..1", ".n.1", "n/.1", longest};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(branch_node(bad[i], &incarnation), 0, "%s", bad[i]);
}

Test(layout, numbers)
{
    uint32_t number;
    cr_assert(layout_number("0", 1, &number) && number == 0);
    cr_assert(layout_number("4294967295x", 10, &number) && number == UINT32_MAX);
    cr_assert_not(layout_number("", 0, &number));
    cr_assert_not(layout_number("00", 2, &number));
    cr_assert_not(layout_number(".new-1-0", 8, &number));
    cr_assert_not(layout_number("4294967296", 10, &number));
}

Test(layout, what_is_ours)
{
    cr_assert(layout_is_ours(".shunt", 6, true));
    cr_assert_not(layout_is_ours(".shunt", 6, false));
    cr_assert(layout_is_ours(".shunt-dir", 10, false));
    cr_assert(layout_is_ours(".shunt-dir.0123456789abcdef", 27, false));
    cr_assert_not(layout_is_ours(".shunt-dir.bak", 14, true));
    cr_assert_not(layout_is_ours(".shunt-dir.before-the-crash", 27, true));
    cr_assert_not(layout_is_ours(".shunt-dir.0123456789ABCDEF", 27, true));
    cr_assert_not(layout_is_ours(".shunt-dir-0123456789abcdef", 27, true));
    cr_assert_not(layout_is_ours("a.shunt-conflict-n1", 19, true));
    cr_assert_not(layout_is_ours(".shunt2", 7, true));
    cr_assert_not(layout_is_ours("", 0, true));
}

Test(layout, places)
{
    char path[64];
    struct text t;
    text_init(&t, path, sizeof path);
    layout_leaf(&t, "/r", "n1.1", "out-5f3a9c01d2e4", 12);
    cr_assert(text_ok(&t));
    cr_assert_str_eq(path, "/r/.shunt/b/n1.1/out-5f3a9c01d2e4/12");
    text_init(&t, path, 20);
    layout_leaf(&t, "/r", "n1.1", "out-5f3a9c01d2e4", 12);
    cr_assert_not(text_ok(&t));
}
