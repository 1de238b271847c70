/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "path/path.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct verdict {
    const char *root, *base, *path;
    enum path_verdict is;
};

static void path_check(const struct verdict *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(path_verdict(cases[i].root, cases[i].base, cases[i].path), cases[i].is, "%s from %s under %s",
                     cases[i].path, cases[i].base ? cases[i].base : "nowhere", cases[i].root);
}

#define CHECK(cases) path_check(cases, sizeof(cases) / sizeof *(cases))

Test(path, absolute)
{
    const struct verdict cases[] = {
        {"/s/run1", NULL, "/s/run1", PATH_IS_ROOT},
        {"/s/run1", NULL, "/s/run1/", PATH_IS_ROOT},
        {"/s/run1", NULL, "/s/run1/.", PATH_IS_ROOT},
        {"/s/run1", NULL, "//s///run1//", PATH_IS_ROOT},
        {"/s/run1", NULL, "/./s/./run1/./", PATH_IS_ROOT},
        {"/s/run1", NULL, "/s/run1/a", PATH_BENEATH},
        {"/s/run1", NULL, "/s/run1/a/b/c/", PATH_BENEATH},
        {"/s/run1", NULL, "/s/run1//./a", PATH_BENEATH},
        {"/s/run1", NULL, "/", PATH_FOREIGN},
        {"/s/run1", NULL, "/s", PATH_FOREIGN},
        {"/s/run1", NULL, "/s/", PATH_FOREIGN},
        {"/s/run1", NULL, "/run1", PATH_FOREIGN},
        {"/s/run1", NULL, "/t/s/run1", PATH_FOREIGN},
        {"/s/run1", "/s/run1", "/etc/passwd", PATH_FOREIGN},
    };
    CHECK(cases);
}

Test(path, look_alikes)
{
    const struct verdict cases[] = {
        {"/s/run1", NULL, "/s/run", PATH_FOREIGN},        {"/s/run1", NULL, "/s/run10", PATH_FOREIGN},
        {"/s/run1", NULL, "/s/run1.bak/a", PATH_FOREIGN}, {"/s/run1", NULL, "/s/Run1", PATH_FOREIGN},
        {"/s/run1", NULL, "/s/run1 /a", PATH_FOREIGN},    {"/s/run1", NULL, "/sx/run1", PATH_FOREIGN},
        {"/s/run1", NULL, "/s/.../run1", PATH_FOREIGN},   {"/s/..a", NULL, "/s/..a", PATH_IS_ROOT},
        {"/s/..a", NULL, "/s/..a/..b", PATH_BENEATH},     {"/s/.a", NULL, "/s/.a/...", PATH_BENEATH},
        {"/s/s", NULL, "/s/s/s", PATH_BENEATH},           {"/s/s", NULL, "/s/s/../s", PATH_IS_ROOT},
    };
    CHECK(cases);
}

Test(path, going_up)
{
    const struct verdict cases[] = {
        {"/s/run1", NULL, "/s/run1/..", PATH_FOREIGN},
        {"/s/run1", NULL, "/s/run1/a..", PATH_BENEATH},
        {"/s/run1", NULL, "/s/run1/a/..b", PATH_BENEATH},
        {"/s/run1", NULL, "/s/run1/..a", PATH_BENEATH},
        {"/s/run1", NULL, "/s/run1/a/..", PATH_IS_ROOT},
        {"/s/run1", NULL, "/s/run1/a/../..", PATH_FOREIGN},
        {"/s/run1", NULL, "/s/run1/../run1/a", PATH_BENEATH},
        {"/s/run1", NULL, "/s/run1/../../s/run1", PATH_IS_ROOT},
        {"/s/run1", NULL, "/s/run1/../run2/../run1/a", PATH_BENEATH},
        {"/s/run1", NULL, "/s/run1/../run2/a", PATH_FOREIGN},
        {"/s/run1", NULL, "/../../s/run1/a", PATH_BENEATH},
        {"/s/run1", NULL, "/s/x/../run1", PATH_IS_ROOT},
        {"/s/run1", NULL, "/s/x/run1/../../run1", PATH_IS_ROOT},
        {"/s/run1", NULL, "/s/run1/a/b/../../../run1/c", PATH_BENEATH},
        {"/s/run1", NULL, "/x/s/run1/../../../s", PATH_FOREIGN},
    };
    CHECK(cases);
}

Test(path, relative)
{
    const struct verdict cases[] = {
        {"/s/run1", "/s/run1", "a", PATH_BENEATH},
        {"/s/run1", "/s/run1", "", PATH_IS_ROOT},
        {"/s/run1", "/s/run1", ".", PATH_IS_ROOT},
        {"/s/run1", "/s/run1", "..", PATH_FOREIGN},
        {"/s/run1", "/s/run1/a", "..", PATH_IS_ROOT},
        {"/s/run1", "/s/run1/a/b", "../../..", PATH_FOREIGN},
        {"/s/run1", "/s/run1/a/b", "../../../run1/c", PATH_BENEATH},
        {"/s/run1", "/s", "run1", PATH_IS_ROOT},
        {"/s/run1", "/s", "run1/a", PATH_BENEATH},
        {"/s/run1", "/s", "run10/a", PATH_FOREIGN},
        {"/s/run1", "/", "s/run1/a", PATH_BENEATH},
        {"/s/run1", "/s/ru", "n1", PATH_FOREIGN},
        {"/s/run1", "/t", "../s//run1/./x", PATH_BENEATH},
    };
    CHECK(cases);
}

Test(path, the_root_of_all)
{
    const struct verdict cases[] = {
        {"/", NULL, "/", PATH_IS_ROOT},  {"/", NULL, "//", PATH_IS_ROOT},      {"/", NULL, "/..", PATH_IS_ROOT},
        {"/", NULL, "/a", PATH_BENEATH}, {"/", NULL, "/a/..", PATH_IS_ROOT},   {"/", "/", "a", PATH_BENEATH},
        {"/", "/a", "..", PATH_IS_ROOT}, {"/", "/a", "../../b", PATH_BENEATH},
    };
    CHECK(cases);
}

/* A plain statement of the same: normalise, then compare. */
static void path_normalise(char *to, const char *base, const char *path)
{
    char all[512], *rest = all;
    size_t depth = 0, ends[128];
    snprintf(all, sizeof all, "%s/%s", path[0] == '/' ? "" : base, path);
    size_t length = 0;
    for (char *part; (part = strsep(&rest, "/")) != NULL;) {
        if (*part == '\0' || strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0) {
            length = depth > 0 ? ends[--depth] : 0;
            continue;
        }
        ends[depth++] = length;
        length += (size_t)sprintf(to + length, "/%s", part);
    }
    to[length] = '\0';
}

static enum path_verdict plain_verdict(const char *root, const char *base, const char *path)
{
    char whole[1024];
    size_t length = strlen(root);
    path_normalise(whole, base, path);
    if (strncmp(whole, root, length) != 0)
        return PATH_FOREIGN;
    return whole[length] == '\0' ? PATH_IS_ROOT : whole[length] == '/' ? PATH_BENEATH : PATH_FOREIGN;
}

static void random_path(char *to, unsigned *seed, bool absolute)
{
    static const char *const parts[] = {"a", "b", "ab", "..", ".", "", "a", "b", "...", ".a", "..b", ".a"};
    strcpy(to, absolute ? "/" : "");
    *seed = *seed * 1664525u + 1013904223u;
    for (unsigned i = 0, count = *seed >> 29; i < count; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        strcat(to, parts[(*seed >> 8) % (sizeof parts / sizeof *parts)]);
        strcat(to, (*seed >> 20) % 4 == 0 && i + 1 == count ? "" : "/");
    }
    if (!absolute && to[0] == '/')
        to[0] = 'a';
}

Test(path, agrees_with_plain_normalisation)
{
    char base[64], path[64], whole[1024];
    unsigned seed = 1;
    static const char *const roots[] = {"/a/b", "/.a", "/a/..b", "/.a/.a"};
    for (int i = 0; i < 400000; i++) {
        const char *root = roots[i / 2 % (sizeof roots / sizeof *roots)];
        random_path(base, &seed, true);
        random_path(path, &seed, i % 2);
        enum path_verdict is = path_verdict(root, base, path);
        cr_assert_eq(is, plain_verdict(root, base, path), "%s from %s", path, base);
        cr_assert(is == PATH_FOREIGN || !path_is_plainly_foreign(root, path), "%s and %s", root, path);
        path_normalise(whole, "/", base);
        cr_assert(is == PATH_FOREIGN || path[0] == '/' || !path_is_apart(root, whole) || path_goes_up(path),
                  "%s and %s from %s", root, path, base);
    }
}

Test(path, apart)
{
    cr_assert(path_is_apart("/scratch/run1", "/scratch/run2"));
    cr_assert(path_is_apart("/scratch/run1", "/scratch/r/a"));
    cr_assert(path_is_apart("/scratch/run1", "/tmp"));
    cr_assert_not(path_is_apart("/scratch/run1", "/scratch"));
    cr_assert_not(path_is_apart("/scratch/run1", "/"));
    cr_assert_not(path_is_apart("/scratch/run1", "/scratch/run1"));
    cr_assert_not(path_is_apart("/scratch/run1", "/scratch/run1/out"));
}

Test(path, goes_up)
{
    static const char *const up[] = {"..", "../a", "a/..", "a/../b", "a//..//b"};
    static const char *const on[] = {"", "a", ".", "./a", "..a", "a..", "a../b", "a/..b", "...", "a/.../b"};
    for (size_t i = 0; i < sizeof up / sizeof *up; i++)
        cr_assert(path_goes_up(up[i]), "%s", up[i]);
    for (size_t i = 0; i < sizeof on / sizeof *on; i++)
        cr_assert_not(path_goes_up(on[i]), "%s", on[i]);
}

Test(path, components)
{
    static const char *const parts[] = {"a", "bc", "d"}, *const none[] = {"", "b", "c", "bcd", "a/bc", "/"};
    static const char *const paths[] = {"/a/bc/d", "a/bc/d", "//a//bc/d/"};
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < sizeof parts / sizeof *parts; j++)
            cr_assert(path_has_component(paths[i], parts[j], strlen(parts[j])), "%s in %s", parts[j], paths[i]);
        for (size_t j = 0; j < sizeof none / sizeof *none; j++)
            cr_assert_not(path_has_component(paths[i], none[j], strlen(none[j])), "%s in %s", none[j], paths[i]);
    }
    cr_assert(path_has_component("/a/bc", "bcd", 2) && !path_has_component("", "a", 1) && !path_has_component("/", "", 0));
}

Test(path, plainly_foreign)
{
    static const char *const plain[] = {"/usr/lib/libc.so", "/scratch/run", "/scratch/run2/a", "/",
                                        "/scratch/run/.hidden/a..b//c."};
    static const char *const doubtful[] = {
        "/scratch/run1",  "/scratch/run1/a",  "/scratch//run1",  "/./scratch/run1", "/usr/../scratch/run1",
        "//scratch/run1", "/scratch/run/./a", "/scratch/run/..", "/scratch/./run1", "a"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        cr_assert(path_is_plainly_foreign("/scratch/run1", plain[i]), "%s", plain[i]);
    for (size_t i = 0; i < sizeof doubtful / sizeof *doubtful; i++)
        cr_assert_not(path_is_plainly_foreign("/scratch/run1", doubtful[i]), "%s", doubtful[i]);
}

Test(path, shortened)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"a", "a"},
        {"/", "/"},
        {"///", "/"},
        {"a//b", "a/b"},
        {"//a///b//", "/a/b/"},
        {"./a", "a"},
        {"/./a", "/a"},
        {"a/./b", "a/b"},
        {".", "."},
        {"./", "./"},
        {"././.", "."},
        {"a/.", "a/."},
        {"a/./", "a/./"},
        {"..", ".."},
        {"a/../b", "a/../b"},
        {".//./..//.a/./..b", "../.a/..b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        strcpy(text, cases[i][0]);
        cr_assert_eq(path_shorten(text), strlen(cases[i][1]), "%s", cases[i][0]);
        cr_assert_str_eq(text, cases[i][1], "%s", cases[i][0]);
    }
}

static void check_split(const char *path, enum path_last last, const char *name, size_t parent, bool slash)
{
    struct path_parts parts;
    path_split(&parts, path);
    cr_assert_eq(parts.last, last, "%s", path);
    cr_assert_eq(parts.length, strlen(name), "%s", path);
    cr_assert_eq(memcmp(parts.name, name, parts.length), 0, "%s", path);
    cr_assert_eq(parts.parent_length, parent, "%s", path);
    cr_assert_eq(parts.slash, slash, "%s", path);
}

Test(path, split)
{
    check_split("a", PATH_NAME, "a", 0, false);
    check_split("a/", PATH_NAME, "a", 0, true);
    check_split("/a", PATH_NAME, "a", 1, false);
    check_split("/a/b", PATH_NAME, "b", 3, false);
    check_split("/a//b///", PATH_NAME, "b", 4, true);
    check_split("a/.b", PATH_NAME, ".b", 2, false);
    check_split("a/..b", PATH_NAME, "..b", 2, false);
    check_split("a/...", PATH_NAME, "...", 2, false);
    check_split(".", PATH_DOTS, ".", 0, false);
    check_split("..", PATH_DOTS, "..", 0, false);
    check_split("a/./", PATH_DOTS, ".", 2, true);
    check_split("/a/..//", PATH_DOTS, "..", 3, true);
    check_split("", PATH_NONE, "", 0, false);
    check_split("/", PATH_NONE, "", 0, true);
    check_split("///", PATH_NONE, "", 0, true);
}
