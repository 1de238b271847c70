/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "config/config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"

Test(config, an_empty_environment)
{
    struct config config;
    char *const nothing[] = {NULL};
    char *const *const blocks[] = {nothing, NULL};
    for (int i = 0; i < 2; i++) {
        config_read(&config, blocks[i]);
        cr_assert_null(config.roots);
        cr_assert_null(config.node);
        cr_assert_null(config.preload);
        cr_assert_null(config.bad);
        cr_assert_str_eq(config.run_base, "/dev/shm");
        cr_assert_eq(config.placement, CONFIG_AUTO);
        cr_assert_eq(config.leaf_full, 0);
        cr_assert_eq(config.deadline, 30 * CLOCK_SECOND);
        cr_assert_eq(config.stale, 15 * CLOCK_SECOND);
        cr_assert_eq(config.catalogue_quiet, 10 * CLOCK_SECOND);
        cr_assert_null(config.catalogue_base);
    }
}

Test(config, texts_that_outlive_the_environment)
{
    struct config config;
    char roots[] = "SHUNT_ROOT=/a:/b", preload[] = "LD_PRELOAD=/x.so", room[256];
    char *const environment[] = {roots, preload, NULL};
    config_read(&config, environment);
    const size_t size = config_texts_size(&config);
    cr_assert_leq(size, sizeof room);
    memset(room, '-', sizeof room);
    config_move_texts(&config, room);
    memset(roots, 't', sizeof roots);
    memset(preload, 't', sizeof preload);
    cr_assert_str_eq(config.roots, "/a:/b");
    cr_assert_str_eq(config.preload, "/x.so");
    cr_assert_str_eq(config.run_base, "/dev/shm");
    cr_assert_str_eq(config.fabric, "tcp");
    cr_assert_null(config.node);
    cr_assert_eq(room[size - 1], '\0');
    cr_assert_eq(room[size], '-');
}

Test(config, everything_said)
{
    struct config config;
    char *const environment[] = {"SHUNT_ROOT=/a:/b",
                                 "HOME=/root",
                                 "SHUNT_NODE=n017",
                                 "SHUNT_PLACEMENT=branch",
                                 "SHUNT_LEAF_FULL=1000",
                                 "SHUNT_RUN_DIR=/run",
                                 "SHUNT_DEADLINE=5",
                                 "LD_PRELOAD=/x.so /y.so",
                                 "SHUNT_STALE=90",
                                 "SHUNT_CATALOGUE_QUIET=3",
                                 "SHUNT_CATALOGUE_DIR=/scratch",
                                 "SHUNT_ROOT=/never/this",
                                 NULL};
    config_read(&config, environment);
    cr_assert_str_eq(config.roots, "/a:/b");
    cr_assert_eq(config.roots, environment[0] + 11, "it points into the block");
    cr_assert_str_eq(config.node, "n017");
    cr_assert_str_eq(config.run_base, "/run");
    cr_assert_str_eq(config.preload, "/x.so /y.so");
    cr_assert_eq(config.placement, CONFIG_BRANCH);
    cr_assert_eq(config.leaf_full, 1000);
    cr_assert_eq(config.deadline, 5 * CLOCK_SECOND);
    cr_assert_eq(config.stale, 90 * CLOCK_SECOND);
    cr_assert_eq(config.catalogue_quiet, 3 * CLOCK_SECOND);
    cr_assert_str_eq(config.catalogue_base, "/scratch");
    cr_assert_null(config.bad);
}

Test(config, names_that_only_begin_alike)
{
    struct config config;
    char *const environment[] = {"SHUNT_ROOTS=/a", "XSHUNT_ROOT=/b", "SHUNT_ROOT", "SHUNT_NODE=", NULL};
    config_read(&config, environment);
    cr_assert_null(config.roots);
    cr_assert_null(config.node, "an empty value is none");
}

static void check_bad(char *setting, const char *bad)
{
    struct config config;
    char *const environment[] = {setting, NULL};
    config_read(&config, environment);
    cr_assert_not_null(config.bad, "%s", setting);
    cr_assert_str_eq(config.bad, bad);
    cr_assert_eq(config.placement, CONFIG_AUTO);
    cr_assert_eq(config.leaf_full, 0);
    cr_assert_eq(config.deadline, 30 * CLOCK_SECOND);
    cr_assert_eq(config.stale, 15 * CLOCK_SECOND);
}

Test(config, a_bad_value_is_the_default_and_named)
{
    check_bad("SHUNT_PLACEMENT=Branch", "SHUNT_PLACEMENT");
    check_bad("SHUNT_PLACEMENT=branch ", "SHUNT_PLACEMENT");
    check_bad("SHUNT_STALE=0", "SHUNT_STALE");
    check_bad("SHUNT_INDEX_LIMIT=many", "SHUNT_INDEX_LIMIT");
    check_bad("SHUNT_INDEX_LIMIT=1023K", "SHUNT_INDEX_LIMIT");
    check_bad("SHUNT_INDEX_LIMIT=-1G", "SHUNT_INDEX_LIMIT");
    check_bad("SHUNT_CATALOGUE_QUIET=soon", "SHUNT_CATALOGUE_QUIET");
    check_bad("SHUNT_CATALOGUE_DIR=scratch", "SHUNT_CATALOGUE_DIR");
    check_bad("SHUNT_RUN_DIR=run", "SHUNT_RUN_DIR");
    check_bad("SHUNT_STALE=1 s", "SHUNT_STALE");
    check_bad("SHUNT_LEAF_FULL=0", "SHUNT_LEAF_FULL");
    check_bad("SHUNT_LEAF_FULL=-1", "SHUNT_LEAF_FULL");
    check_bad("SHUNT_LEAF_FULL=4294967296", "SHUNT_LEAF_FULL");
    check_bad("SHUNT_DEADLINE=1.5", "SHUNT_DEADLINE");
    check_bad("SHUNT_DEADLINE=86401", "SHUNT_DEADLINE");
    check_bad("SHUNT_DEADLINE= 5", "SHUNT_DEADLINE");
}

Test(config, the_first_bad_variable_is_named)
{
    struct config config;
    char *const environment[] = {"SHUNT_DEADLINE=x", "SHUNT_LEAF_FULL=y", "SHUNT_PLACEMENT=z", NULL};
    config_read(&config, environment);
    cr_assert_str_eq(config.bad, "SHUNT_PLACEMENT");
}

Test(config, numbers)
{
    static const char *const bad[] = {
        "", "0", "00", "-1", "+1", " 1", "1 ", "0x10", "1e3", "18446744073709551616", "99999999999999999999999"};
    uint64_t number = 77;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(config_number_parse(bad[i], UINT64_MAX, &number), -EINVAL, "%s", bad[i]);
    cr_assert_eq(number, 77, "a bad text leaves it alone");
    cr_assert_eq(config_number_parse("18446744073709551615", UINT64_MAX, &number), 0);
    cr_assert_eq(number, UINT64_MAX);
    cr_assert_eq(config_number_parse("007", 7, &number), 0);
    cr_assert_eq(number, 7);
    cr_assert_eq(config_number_parse("8", 7, &number), -EINVAL);
    cr_assert_eq(config_number_parse("1", 1, &number), 0);
}

Test(config, placements)
{
    enum config_placement placement = CONFIG_AUTO;
    cr_assert_eq(config_placement_parse("branch", &placement), 0);
    cr_assert_eq(placement, CONFIG_BRANCH);
    cr_assert_eq(config_placement_parse("auto", &placement), 0);
    cr_assert_eq(placement, CONFIG_AUTO);
    cr_assert_eq(config_placement_parse("", &placement), -EINVAL);
    cr_assert_eq(config_placement_parse("branches", &placement), -EINVAL);
}

static void check_size(const char *text, uint64_t size)
{
    uint64_t read = 0;
    cr_assert_eq(config_size_parse(text, 1024, &read), size != 0 ? 0 : -EINVAL, "%s", text);
    cr_assert_eq(read, size, "%s is %lu", text, read);
}

Test(config, sizes)
{
    check_size("1024", 1024);
    check_size("1023", 0);
    check_size("1K", 1024);
    check_size("128M", 128ull << 20);
    check_size("128m", 128ull << 20);
    check_size("3g", 3ull << 30);
    check_size("2T", 2ull << 40);
    check_size("8388607T", 8388607ull << 40);
    check_size("8388608T", 0);
    check_size("99999999999999999999999999", 0);
    check_size("", 0);
    check_size("M", 0);
    check_size("0M", 0);
    check_size("1MB", 0);
    check_size("1 M", 0);
    check_size("1.5M", 0);
    check_size("1E", 0);
    check_size("-1M", 0);
}

Test(config, the_limit_of_the_index)
{
    struct config config;
    char *const environment[] = {"SHUNT_INDEX_LIMIT=128M", NULL}, *const none[] = {NULL};
    config_read(&config, environment);
    cr_assert_null(config.bad);
    cr_assert_eq(config.index_limit, 128ull << 20);
    config_read(&config, none);
    cr_assert_eq(config.index_limit, 0, "that is for the daemon to say");
}
