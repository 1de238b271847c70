/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a benchmark reads from its command line, and what it makes of what was measured: nothing is measured
 * here. */

#include <errno.h>
#include <getopt.h>
#include <math.h>

#include "bench/conductor.h"
#include "bench/neighbour.h"
#include "bench/plan.h"
#include "bench/plot.h"
#include "bench/report.h"
#include "bench/results.h"
#include "bench/site.h"
#include "bench/talk.h"
#include "bench/verdict.h"
#include "bench/work.h"
#include "heard.h"
#include "place.h"

#include <sys/socket.h>

static int run_never(const struct command *command, int argc, char **argv)
{
    return 99;
}

static const struct command commands[] = {{"bench", "", "Measures.", plan_choices, 0, run_never}, {0}};

/* The command line. */

static const char *const launchers[] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",    "PMI_SIZE",
                                        "MV2_COMM_WORLD_RANK",  "FLUX_TASK_RANK",       "SLURM_PROCID"};

static int read_line(struct plan *plan, const char *line)
{
    static char copy[256], *words[32];
    int count = 0;
    char *rest = strcpy(copy, line);
    words[count++] = "bench";
    for (char *word; (word = strsep(&rest, " "));)
        words[count++] = word;
    words[count] = NULL;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        unsetenv(launchers[i]);
    optind = 0;
    hear();
    int end = plan_read(plan, commands, count, words);
    hear_end();
    return end;
}

Test(plan, has_defaults)
{
    struct plan plan;
    cr_assert_eq(read_line(&plan, "here"), COMMAND_END);
    cr_assert_str_eq(plan.directory, "here");
    cr_assert_eq(plan.processes, 2);
    cr_assert_eq(plan.fakes, 0);
    cr_assert_eq(plan.files, 1000);
    cr_assert_eq(plan.repetitions, 5);
    cr_assert_eq(plan.warm_up, 1);
    cr_assert_eq(plan.size_count, 1);
    cr_assert_eq(plan.sizes[0], 0);
    cr_assert_eq(plan.operations, 0x7f);
    cr_assert_eq(plan.neighbour, 0);
    cr_assert_eq(plan.configurations, 1u << PLAN_PRIVATE | 1u << PLAN_SHARED | 1u << PLAN_SHUNT);
    cr_assert_eq(plan.format, PLAN_TEXT);
}

Test(plan, takes_every_option)
{
    struct plan plan;
    cr_assert_eq(read_line(&plan, "-n 6 --fake-nodes 3 -f 7 -s 0,3901,4096 -o create,unlink -b unlink -c shared,shunt-private "
                                  "-r 3 -w 0 -p branch --leaf-full 9 --json --plot a.svg --plot b.png dir"),
                 COMMAND_END, "%s", heard_error.words);
    cr_assert(plan.processes == 6 && plan.fakes == 3 && plan.files == 7 && plan.repetitions == 3 && plan.warm_up == 0);
    cr_assert(plan.size_count == 3 && plan.sizes[0] == 0 && plan.sizes[1] == 3901 && plan.sizes[2] == 4096);
    cr_assert_eq(plan.operations, 1u << PLAN_CREATE | 1u << PLAN_UNLINK);
    cr_assert_eq(plan.neighbour, 1u << PLAN_UNLINK);
    cr_assert_eq(plan.configurations, 1u << PLAN_SHARED | 1u << PLAN_SHUNT_PRIVATE);
    cr_assert_str_eq(plan.placement, "branch");
    cr_assert_str_eq(plan.leaf_full, "9");
    cr_assert_eq(plan.format, PLAN_JSON);
    cr_assert_eq(plan.plot_count, 2);
}

Test(plan, says_what_makes_no_sense)
{
    static const struct {
        const char *line, *words;
    } wrong[] = {{"-n 0 d", "--processes '0': not a number from 1 to 4096 ("},
                 {"-n 4097 d", "--processes '4097': not a number from 1 to 4096 ("},
                 {"-f 10000000 d", "--files '10000000': not a number from 1 to 9999999 ("},
                 {"-s 1,,2 d", "--size '1,,2': not numbers from 0 to 2^40 with commas between, from 1 to 8 of them ("},
                 {"-s 1,2,3,4,5,6,7,8,9 d", "9': not numbers "},
                 {"-s 99999999999999999999999999999999999999 d", "9': not numbers "},
                 {"-o create,creat d", "--operations 'create,creat': not a list of create,"},
                 {"-c shunt, d", "--configurations 'shunt,': not a list of private,shared,shunt,shunt-private ("},
                 {"-r 0 d", "--repetitions '0': not a number from 1 to 1000 ("},
                 {"-p trunk d", "--placement 'trunk': neither auto nor branch ("},
                 {"--plot a.pdf d", "--plot 'a.pdf': not a file that ends in .svg or .png, or more than 4 of them ("},
                 {"--rank 2/2 d", "--rank '2/2': not I/N with I from 0 to N - 1 and N from 1 to 4096 ("},
                 {"-w 1001 d", "--warm-up '1001': not a number from 0 to 1000 ("},
                 {"--leaf-full 4294967296 d", "--leaf-full '4294967296': not a number from 1 to 4294967295 ("},
                 {"-b all,all d", "--neighbour 'all,all': not a list of create,"},
                 {"--fake-nodes 0 d", "--fake-nodes '0': not a number from 1 to 4096 ("},
                 {"--json --csv d", "--json and --csv exclude each other"},
                 {"-n 2 --fake-nodes 3 d", "2 processes are too few for 3 nodes"},
                 {"-n 3 --rank 0/2 d", "this is one of 2 processes"},
                 {"-n 3", "exactly one directory is required"},
                 {"a b", "exactly one directory is required"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct plan plan;
        cr_assert_eq(read_line(&plan, wrong[i].line), COMMAND_WRONG, "%s", wrong[i].line);
        cr_assert(strstr(heard_error.words, wrong[i].words), "%s: %s", wrong[i].line, heard_error.words);
    }
}

Test(plan, every_second_repetition_runs_backwards)
{
    struct plan plan = {.configurations = 1u << PLAN_PRIVATE | 1u << PLAN_SHUNT | 1u << PLAN_SHUNT_PRIVATE};
    const unsigned forwards[] = {PLAN_PRIVATE, PLAN_SHUNT, PLAN_SHUNT_PRIVATE};
    cr_assert_eq(plan_turns(&plan), 3);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(plan_turn(&plan, 0, i), forwards[i]);
        cr_assert_eq(plan_turn(&plan, 1, i), forwards[2 - i]);
        cr_assert_eq(plan_turn(&plan, 2, i), forwards[i]);
    }
}

/* Ranks, and which is next to which. */

static struct rank bench_find(char *const environment[])
{
    struct rank rank = {0};
    rank_find(environment, 4096, &rank);
    return rank;
}

static void assert_rank(struct rank rank, uint32_t number, uint32_t count)
{
    cr_assert(rank.number == number && rank.count == count, "%u/%u, not %u/%u", rank.number, rank.count, number, count);
}

Test(rank, is_what_a_launcher_says)
{
    assert_rank(bench_find((char *[]){"A=1", NULL}), 0, 0);
    assert_rank(bench_find((char *[]){"PMI_RANK=3", "PMI_SIZE=4", NULL}), 3, 4);
    assert_rank(bench_find((char *[]){"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=0", NULL}), 0, 2);
    assert_rank(bench_find((char *[]){"SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=8", "PMI_RANK=1", "PMI_SIZE=2", NULL}), 1, 2);
    assert_rank(bench_find((char *[]){"FLUX_TASK_RANK=1", "FLUX_JOB_SIZE=3", NULL}), 1, 3);
}

Test(rank, of_a_batch_script_is_none)
{
    assert_rank(bench_find((char *[]){"SLURM_PROCID=0", "SLURM_NTASKS=8", NULL}), 0, 0);
    assert_rank(bench_find((char *[]){"PMI_RANK=3", NULL}), 0, 0);
    assert_rank(bench_find((char *[]){"PMI_RANK=3", "PMI_SIZE=3", NULL}), 0, 0);
    assert_rank(bench_find((char *[]){"PMI_RANK=x", "PMI_SIZE=3", NULL}), 0, 0);
}

Test(rank, is_parsed)
{
    struct rank rank = {0};
    cr_assert_eq(rank_parse("0/1", 10, &rank), 0);
    assert_rank(rank, 0, 1);
    cr_assert_eq(rank_parse("9/10", 10, &rank), 0);
    assert_rank(rank, 9, 10);
    static const char *const wrong[] = {"", "/", "1", "1/", "/1", "1/1", "10/10", "0/11", "-1/2", "0/0", "00000000000000001/2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_eq(rank_parse(wrong[i], 10, &rank), -EINVAL, "%s", wrong[i]);
}

Test(neighbour, every_process_is_the_neighbour_of_one_on_another_node)
{
    static const uint32_t nodes[][6] = {{0, 1, 0, 1, 0, 1}, {0, 0, 0, 1, 1, 1}, {0, 0, 1, 1, 2, 2}};
    for (size_t i = 0; i < 3; i++) {
        uint32_t next[6], seen = 0;
        cr_assert_eq(neighbour_of(nodes[i], 6, next), 0);
        for (uint32_t rank = 0; rank < 6; rank++) {
            seen |= 1u << next[rank];
            cr_assert_neq(nodes[i][next[rank]], nodes[i][rank], "%zu: %u -> %u", i, rank, next[rank]);
        }
        cr_assert_eq(seen, 0x3f);
    }
}

Test(neighbour, on_uneven_nodes_and_alone)
{
    const uint32_t node[] = {0, 0, 0, 1}, same[] = {0, 0, 0};
    uint32_t next[4], seen = 0;
    cr_assert_eq(neighbour_of(node, 4, next), 0);
    for (uint32_t rank = 0; rank < 4; rank++)
        seen |= 1u << next[rank];
    cr_assert_eq(seen, 0xf);
    cr_assert_eq(next[0], 3);
    cr_assert_eq(neighbour_of(same, 3, next), 0);
    cr_assert(next[0] == 1 && next[1] == 2 && next[2] == 0);
    cr_assert_eq(neighbour_of(same, 1, next), 0);
    cr_assert_eq(next[0], 0, "a lone rank is its own neighbour");
}

/* Statistics. */

Test(spread, has_the_middle)
{
    struct spread odd = spread_of((double[]){3, 1, 2}, 3), even = spread_of((double[]){4, 1, 3, 2}, 4),
                  none = spread_of(NULL, 0);
    cr_assert(odd.median == 2 && odd.lowest == 1 && odd.highest == 3);
    cr_assert(even.median == 2.5 && even.lowest == 1 && even.highest == 4);
    cr_assert(none.median == 0 && none.lowest == 0 && none.highest == 0);
}

static struct histogram histogram, other;

Test(histogram, small_numbers_are_exact)
{
    for (uint64_t ns = 1; ns <= 60; ns++)
        histogram_add(&histogram, ns);
    cr_assert_eq(histogram_at(&histogram, 0.5), 30);
    cr_assert_eq(histogram_at(&histogram, 0.9), 54);
    cr_assert_eq(histogram_at(&histogram, 1), 60);
    cr_assert_eq(histogram_at(&histogram, 0), 1);
    cr_assert_eq(histogram_at(&other, 0.5), 0, "of nothing");
}

Test(histogram, large_numbers_are_right_to_two_percent)
{
    for (uint64_t ns = 1; ns < 1ull << 41; ns += ns / 3 + 1) {
        memset(&histogram, 0, sizeof histogram);
        histogram_add(&histogram, ns);
        histogram_add(&histogram, UINT64_MAX); /* lest the highest corrects it */
        double found = (double)histogram_at(&histogram, 0.5);
        cr_assert(fabs(found - (double)ns) <= 0.02 * (double)ns, "%.0f for %lu", found, ns);
    }
}

Test(histogram, many_are_one)
{
    for (int i = 0; i < 90; i++)
        histogram_add(&histogram, 1000);
    for (int i = 0; i < 10; i++)
        histogram_add(&other, 5000000);
    histogram_merge(&histogram, &other);
    cr_assert_eq(histogram.count, 100);
    cr_assert_eq(histogram.highest, 5000000);
    cr_assert_float_eq((double)histogram_at(&histogram, 0.9), 1000, 20);
    cr_assert_float_eq((double)histogram_at(&histogram, 0.91), 5e6, 1e5);
    cr_assert_leq(histogram_at(&histogram, 1), 5000000, "nothing is said that did not happen");
}

/* Results: three repetitions; private 300, 330, 270 creates a second, shared 100 each, shunt 250, 300, 200.
 */

static struct plan plan;
static struct results results;
static struct conductor_peer peers[2] = {{.leads = true, .name = "n0"}, {.leads = true, .name = "n1"}};
static struct conductor conductor = {.plan = &plan, .directory = "/d", .count = 2, .nodes = 2, .clients = 2, .peers = peers};
static struct site site = {.kind = "ceph"};
static struct report report = {&results, &conductor, &site};

static void bench_add(unsigned configuration, double rate)
{
    memset(&histogram, 0, sizeof histogram);
    histogram_add(&histogram, 2000);
    results_add(&results, configuration, 0, PLAN_CREATE, 1000, 1000 / rate, &histogram);
}

static void bench_fill(void)
{
    const double private[] = {300, 330, 270}, shunt[] = {250, 300, 200};
    plan = (struct plan){.processes = 2,
                         .files = 500,
                         .repetitions = 3,
                         .warm_up = 1,
                         .size_count = 1,
                         .operations = 1u << PLAN_CREATE,
                         .configurations = 7};
    cr_assert_eq(results_init(&results, &plan), 0);
    for (int i = 0; i < 3; i++) {
        bench_add(PLAN_PRIVATE, private[i]);
        bench_add(PLAN_SHARED, 100);
        bench_add(PLAN_SHUNT, shunt[i]);
    }
}

static void bench_drop(void)
{
    results_finish(&results);
}

TestSuite(results, .init = bench_fill, .fini = bench_drop);
TestSuite(report, .init = bench_fill, .fini = bench_drop);

Test(results, ratios_are_of_pairs)
{
    struct spread costs = results_ratio(&results, PLAN_PRIVATE, PLAN_SHARED, 0, PLAN_CREATE);
    struct spread gives = results_ratio(&results, PLAN_SHUNT, PLAN_PRIVATE, 0, PLAN_CREATE);
    cr_assert_float_eq(costs.median, 3, 1e-9);
    cr_assert_float_eq(costs.lowest, 2.7, 1e-9);
    cr_assert_float_eq(costs.highest, 3.3, 1e-9);
    cr_assert_float_eq(gives.lowest, 200. / 270, 1e-9, "not the lowest of one by the lowest of all");
    cr_assert_float_eq(gives.highest, 300. / 330, 1e-9);
    cr_assert_eq(results_ratio(&results, PLAN_SHUNT_PRIVATE, PLAN_PRIVATE, 0, PLAN_CREATE).median, 0, "not measured");
}

Test(results, export_is_counted_in)
{
    cr_assert_eq(results_gain_with_export(&results, 0), 0, "not measured");
    results.export_seconds = 6;
    results.exported = 1000; /* 4 ms a create and 6 a file, where it takes 10 natively */
    cr_assert_float_eq(results_gain_with_export(&results, 0), 1, 1e-9);
}

static const char *words_of(double costs, double gives, double with_export)
{
    static char words[VERDICT_MAX];
    struct verdict verdict = {"create", {costs, costs, costs}, {gives, gives, gives}, with_export};
    verdict_words(&verdict, words, sizeof words);
    return words;
}

Test(verdict, in_one_sentence)
{
    cr_assert_str_eq(words_of(3, 2.9, 0), "create: a shared directory costs 3.00x here; shunt would give 2.90x back");
    cr_assert_str_eq(words_of(3, 2.9, 1.5), "create: a shared directory costs 3.00x here; shunt would give 2.90x back (1.50x "
                                            "with the export counted in)");
    cr_assert_str_eq(words_of(1.01, 0.2, 0.1), "create: a shared directory costs nothing beyond the noise here: 1.01x; shunt "
                                               "would not help: it takes 5.00 times as long");
    cr_assert_str_eq(words_of(3, 1, 0), "create: a shared directory costs 3.00x here; shunt would change nothing beyond the "
                                        "noise: 1.00x");
    cr_assert_str_eq(words_of(0, 2, 0), "create: shunt would give 2.00x");
    cr_assert_str_eq(words_of(2, 0, 0), "create: a shared directory costs 2.00x here");
    cr_assert_str_empty(words_of(0, 0, 0));
}

static const char *words_of_spreads(struct spread costs, struct spread gives)
{
    static char words[VERDICT_MAX];
    struct verdict verdict = {"stat", costs, gives, 0};
    verdict_words(&verdict, words, sizeof words);
    return words;
}

Test(verdict, has_the_interval)
{
    cr_assert_str_eq(words_of_spreads((struct spread){3, 2.5, 3.5}, (struct spread){0.5, 0.4, 0.8}),
                     "stat: a shared directory costs 3.00x (2.50..3.50) here; shunt would not help: it takes 2.00 times "
                     "(1.25..2.50) as long");
    cr_assert_str_eq(words_of_spreads((struct spread){1, 0.9, 1.1}, (struct spread){1.01, 0.85, 1.2}),
                     "stat: a shared directory costs nothing beyond the noise here: 1.00x (0.90..1.10); shunt would change "
                     "nothing beyond the noise: 1.01x (0.85..1.20)");
}

Test(verdict, what_one_repetition_denies_is_not_certain)
{
    cr_assert_str_eq(
        words_of_spreads((struct spread){3.35, 0.9, 4}, (struct spread){0.5, 0.4, 1.1}),
        "stat: a shared directory costs 3.35x (0.90..4.00) here; shunt would give 0.50x (0.40..1.10); not certain: "
        "repeat with -r");
    cr_assert_str_eq(words_of_spreads((struct spread){2, 1.5, 3}, (struct spread){1, 0.5, 2}),
                     "stat: a shared directory costs 2.00x (1.50..3.00) here; shunt would give 1.00x (0.50..2.00); not "
                     "certain: repeat with -r");
}

Test(report, text_ends_with_the_verdict)
{
    static const char end[] =
        "\ncreate: a shared directory costs 3.00x (2.70..3.30) here; shunt would give 2.50x (2.00..3.00) back\n";
    hear();
    report_text(&report);
    hear_end();
    cr_assert(strstr(heard_out.words, "2 processes on 2 nodes with 2 mounts of the file system (ceph); each 500 files\n"), "%s",
              heard_out.words);
    cr_assert(strstr(heard_out.words, "300 (270..330)") && strstr(heard_out.words, "3.00 (2.70..3.30)"), "%s", heard_out.words);
    cr_assert(heard_out.length > sizeof end && !strcmp(heard_out.words + heard_out.length - sizeof end + 1, end), "%s",
              heard_out.words);
    cr_assert_null(strstr(heard_out.words, "one mount"));
}

Test(report, one_mount_is_told)
{
    conductor.clients = 1;
    hear();
    report_text(&report);
    hear_end();
    cr_assert(strstr(heard_out.words, "All processes use one mount"), "%s", heard_out.words);
}

Test(report, csv_has_a_line_for_each_measurement)
{
    hear();
    report_csv(&report);
    hear_end();
    cr_assert_eq(heard_lines(heard_out.words), 10);
    cr_assert(strstr(heard_out.words, "\n2,private,0,create,own,1000,3.030303030,330.000,2000,2000,2000,2000\n"), "%s",
              heard_out.words);
}

Test(report, json_says_all)
{
    results.export_seconds = 6;
    results.exported = 1000;
    hear();
    report_json(&report);
    hear_end();
    static const char *const parts[] = {"\"nodes\": [\n    \"n0\",\n    \"n1\"\n  ]",
                                        "\"mounts\": 2",
                                        "\"of\": \"shunt\",\n      \"to\": \"shared\"",
                                        "\"p99\": 2000",
                                        "\"create_ratio_with_export\": 1",
                                        "shunt would give 2.50x (2.00..3.00) back (1.00x with"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_assert(strstr(heard_out.words, parts[i]), "%s is not in %s", parts[i], heard_out.words);
}

Test(report, plot_is_told_the_rates_and_where_to_draw)
{
    char *words;
    size_t size;
    FILE *to = open_memstream(&words, &size);
    plot_write(&results, "/tmp/it's.svg", to);
    fclose(to);
    cr_assert(strstr(words, "set terminal svg") && strstr(words, "set output '/tmp/it''s.svg'\n"), "%s", words);
    cr_assert(strstr(words, "\ncreate 300.000 270.000 330.000 100.000 100.000 100.000 250.000 200.000 300.000\n"), "%s", words);
    cr_assert(strstr(words, "using 8:9:10:xtic(1) title 'shunt'"), "%s", words);
    free(words);
}

/* Where files are made, and the calls. */

TestSuite(site, .init = place_init, .fini = place_finish);
TestSuite(work, .init = place_init, .fini = place_finish);

Test(site, is_left_as_it_was)
{
    struct site made = {0};
    place_file("mine", "words");
    cr_assert_eq(site_make(&made, place), 0);
    cr_assert_eq(place_count("."), 2);
    cr_assert_eq(strncmp(made.top, place, strlen(place)), 0);
    cr_assert_eq(strncmp(made.name, "shunt-bench.", 12), 0);
    cr_assert(place_has(place_path("%s/native", made.name) + strlen(place) + 1));
    place_file(place_path("%s/root/x", made.name) + strlen(place) + 1, "");
    cr_assert_eq(site_remove(&made), 0);
    cr_assert_eq(place_count("."), 1);
    cr_assert_eq(site_remove(&made), 0, "again");
}

static void assert_refused(const char *path, const char *why)
{
    char to[PATH_MAX];
    hear();
    int error = site_check(path, to);
    hear_end();
    cr_assert_eq(error, -1, "%s", path);
    cr_assert(strstr(heard_error.words, why), "%s: %s", path, heard_error.words);
}

Test(site, dangerous_places_are_refused)
{
    char to[PATH_MAX];
    place_directory("root/.shunt");
    place_directory("root/out");
    place_directory("with:colon");
    place_file("file", "");
    assert_refused(place_path("root"), "inside a root of shunt");
    assert_refused(place_path("root/out"), "inside a root of shunt");
    assert_refused(place_path("with:colon"), "has a colon");
    assert_refused(place_path("file"), "not a directory");
    assert_refused(place_path("missing"), "No such file");
    cr_assert_eq(site_check(place_path("root/.."), to), 0);
    cr_assert_str_eq(to, place);
}

static struct talk_answer answer;
static int ends[2];

static int bench_tell(struct talk_order order)
{
    return work_do(place, ends[0], &order, &answer);
}

Test(work, does_what_is_measured)
{
    struct talk_order order = {
        .what = TALK_MAKE, .configuration = PLAN_PRIVATE, .pass = 4, .owner = 3, .files = 12, .size = 70000};
    place_directory("native");
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    cr_assert_eq(bench_tell(order), 0, "%s", answer.words);
    order.what = TALK_MAKE_OWN;
    cr_assert_eq(bench_tell(order), 0, "%s", answer.words);
    order.what = TALK_WORK;
    for (order.operation = 0; order.operation < PLAN_OPERATIONS; order.operation++) {
        cr_assert_eq(bench_tell(order), 0, "%s: %d", answer.words, answer.error);
        cr_assert_eq(answer.done, 12);
        cr_assert_eq(answer.latency.count, order.operation == PLAN_READDIR ? 1 : 12);
        if (order.operation == PLAN_CREATE)
            cr_assert_eq(place_stat("native/p4/r3/f3-0000011").st_size, 70000);
        if (order.operation == PLAN_UTIME)
            cr_assert_eq(place_stat("native/p4/r3/f3-0000011").st_mtim.tv_sec, 1000000000);
        if (order.operation == PLAN_RENAME)
            cr_assert(place_has("native/p4/r3/r3-0000000") && !place_has("native/p4/r3/f3-0000000"));
        order.renamed |= order.operation == PLAN_RENAME;
    }
    order.what = TALK_REMOVE_OWN;
    cr_assert_eq(bench_tell(order), 0, "%s", answer.words);
    order.what = TALK_REMOVE;
    cr_assert_eq(bench_tell(order), 0, "%s", answer.words);
    cr_assert_eq(place_count("native"), 0);
}

Test(work, says_what_failed)
{
    struct talk_order order = {.what = TALK_WORK, .configuration = PLAN_SHUNT, .operation = PLAN_STAT, .owner = 1, .files = 1};
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    cr_assert_eq(bench_tell(order), -ENOENT);
    cr_assert(strstr(answer.words, "stat of ") && strstr(answer.words, "/root/p0/f1-0000000"), "%s", answer.words);
}

Test(work, ends_when_the_conductor_is_gone)
{
    struct talk_order order = {.what = TALK_MAKE, .configuration = PLAN_SHARED, .files = 9999999};
    place_directory("native");
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    cr_assert_eq(bench_tell(order), 0);
    close(ends[1]);
    order.what = TALK_WORK;
    cr_assert_eq(bench_tell(order), -ECANCELED);
    cr_assert_lt(answer.done, order.files);
}
