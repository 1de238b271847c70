/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/marker.h"

#include "place.h"

static struct marker some_marker(const char *path)
{
    struct marker marker = {
        .id = 0x5f3a9c01d2e4, .directory = {1234, 1700000000000000000}, .root = {1200, 1690000000000000000}};
    snprintf(marker.path, sizeof marker.path, "%s", path);
    marker_name(&marker);
    return marker;
}

static void assert_equal(const struct marker *a, const struct marker *b)
{
    cr_assert_eq(a->id, b->id);
    cr_assert_str_eq(a->mirror, b->mirror);
    cr_assert_str_eq(a->path, b->path);
    cr_assert(dirid_equal(a->directory, b->directory));
    cr_assert(dirid_equal(a->root, b->root));
}

Test(marker, names_its_mirror)
{
    char longest[300] = {0};
    cr_assert_str_eq(some_marker("out").mirror, "out-5f3a9c01d2e4");
    cr_assert_str_eq(some_marker("a/b c\n\xc3\xa4-x_y.z").mirror, "b_c___-x_y.z-5f3a9c01d2e4");
    cr_assert_str_eq(some_marker(".").mirror, "root-5f3a9c01d2e4");
    cr_assert_str_eq(some_marker(".git").mirror, ".git-5f3a9c01d2e4");
    memset(longest, 'l', 255);
    cr_assert_eq(strlen(some_marker(longest).mirror), 64 + 13);
    struct marker small = {.id = 1, .path = "x"};
    marker_name(&small);
    cr_assert_str_eq(small.mirror, "x-000000000001");
}

Test(marker, survives)
{
    const char *const paths[] = {".", "out", "a/b/c", ".git", "a\nb/\\n", "sp ace/\x01\xff", "..."};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const struct marker marker = some_marker(paths[i]);
        struct marker back;
        char text[MARKER_SIZE_MAX];
        int length = marker_format(&marker, text, sizeof text);
        cr_assert_gt(length, 0);
        cr_assert_eq(marker_parse(&back, text, (size_t)length), 0, "%s", text);
        assert_equal(&marker, &back);
    }
}

Test(marker, need_not_say_its_root)
{
    struct marker marker;
    for (int i = 0; i < 2; i++) {
        const char *text = i == 0 ? "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath out\n\nwords\n"
                                  : "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath out\nroot x\n";
        memset(&marker, 1, sizeof marker);
        cr_assert_eq(marker_parse(&marker, text, strlen(text)), 0);
        cr_assert(dirid_equal(marker.root, (struct dirid){0}));
    }
}

Test(marker, the_longest_path_fits)
{
    struct marker marker = some_marker("x"), back;
    char text[MARKER_SIZE_MAX];
    memset(marker.path, '\\', PATH_MAX - 1);
    int length = marker_format(&marker, text, sizeof text);
    cr_assert_gt(length, 0);
    cr_assert_eq(marker_parse(&back, text, (size_t)length), 0);
    assert_equal(&marker, &back);
    cr_assert_eq(marker_format(&marker, text, 100), -ENAMETOOLONG);
}

Test(marker, refuses_what_is_none)
{
    const char *const bad[] = {
        "",
        "shunt-dir 1\n",
        "shunt-dir 2\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath out\n",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath out",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath \n",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath /etc\n",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath a/../b\n",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath ..\n",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath a//b\n",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath a/\n",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath a\\x\n",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath a\\\n",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1\npath out\n",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 18446744073709551616\npath out\n",
        "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory -1 2\npath out\n",
        "shunt-dir 1\nmirror out-5F3A9C01D2E4\ndirectory 1 2\npath out\n",
        "shunt-dir 1\nmirror out-000000000000\ndirectory 1 2\npath out\n",
        "shunt-dir 1\nmirror ../x-5f3a9c01d2e4\ndirectory 1 2\npath out\n",
        "shunt-dir 1\nmirror -5f3a9c01d2e4\ndirectory 1 2\npath out\n",
        "shunt-dir 1\nmirror o\xff-5f3a9c01d2e4\ndirectory 1 2\npath out\n",
        "shunt-dir 1\ndirectory 1 2\nmirror out-5f3a9c01d2e4\npath out\n",
    };
    struct marker marker;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(marker_parse(&marker, bad[i], strlen(bad[i])), -EBADMSG, "%s", bad[i]);
    const char zero[] = "shunt-dir 1\nmirror out-5f3a9c01d2e4\ndirectory 1 2\npath o\0t\n";
    cr_assert_eq(marker_parse(&marker, zero, sizeof zero - 1), -EBADMSG);
}

static void parse_any(const char *text, size_t length)
{
    struct marker marker, again;
    int answer = marker_parse(&marker, text, length);
    cr_assert(answer == 0 || answer == -EBADMSG);
    if (answer < 0)
        return;
    /* What is taken is taken whole: it stays below the root, and it can be written again. */
    char copy[MARKER_SIZE_MAX];
    cr_assert(marker.path[0] != '/' && strcmp(marker.path, "..") != 0 && !strchr(marker.mirror, '/'));
    int size = marker_format(&marker, copy, sizeof copy);
    cr_assert(size > 0 && marker_parse(&again, copy, (size_t)size) == 0);
}

Test(marker, hostile_text)
{
    char text[MARKER_SIZE_MAX];
    const struct marker marker = some_marker("a/b\nc\\d");
    int length = marker_format(&marker, text, sizeof text);
    place_mutate(text, (size_t)length, parse_any);
    place_mutate(text, strlen("shunt-dir 1\nmirror b_c_d-5f3a9c01d2e4\ndirectory 1234 1700000000000000000\npath a"), parse_any);
}

Test(marker, is_written_once_and_replaced, .init = place_init, .fini = place_finish)
{
    umask(077);
    int fd = place_open("");
    struct marker marker = some_marker("out"), back;
    cr_assert_eq(marker_read(fd, &back), -ENOENT);
    cr_assert_eq(marker_write(fd, &marker), 0);
    cr_assert_eq(marker_write(fd, &marker), -EEXIST);
    cr_assert_eq(marker_read(fd, &back), 0);
    assert_equal(&marker, &back);
    strcpy(marker.path, "elsewhere");
    cr_assert_eq(marker_replace(fd, &marker), 0);
    cr_assert_eq(marker_read(fd, &back), 0);
    assert_equal(&marker, &back);
    cr_assert_eq(place_count(""), 1, "no temporary file is left");
    cr_assert_eq(place_stat(".shunt-dir").st_mode, S_IFREG | 0644, "whatever the umask");
    close(fd);
}

Test(marker, other_things_of_that_name, .init = place_init, .fini = place_finish)
{
    struct marker back;
    int fd = place_open("");
    place_file(".shunt-dir", "");
    cr_assert_eq(marker_read(fd, &back), -EBADMSG);
    unlink(place_path(".shunt-dir"));
    cr_assert_eq(symlink("/etc/passwd", place_path(".shunt-dir")), 0);
    cr_assert_eq(marker_read(fd, &back), -EBADMSG);
    unlink(place_path(".shunt-dir"));
    cr_assert_eq(mkfifo(place_path(".shunt-dir"), 0666), 0);
    cr_assert_eq(marker_read(fd, &back), -EBADMSG);
    unlink(place_path(".shunt-dir"));
    place_directory(".shunt-dir");
    cr_assert_eq(marker_read(fd, &back), -EBADMSG);
    close(fd);
}
