/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What shunt-launch reads of nodes and launch lines, and what it makes of them: nothing is run. */

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/signal_wait.h"
#include "launch/agents.h"
#include "launch/arguments.h"
#include "launch/hostlist.h"
#include "launch/line.h"
#include "launch/line_options.h"
#include "launch/nodes.h"
#include "programs/capture.h"
#include "programs/rank.h"
#include "place.h"

/* Lists of hosts. */

static char names[1 << 20];
static size_t count, used;

static int launch_collect(void *context, const char *name)
{
    count++;
    if (used + strlen(name) + 2 < sizeof names)
        used += (size_t)sprintf(names + used, "%s%s", used ? " " : "", name);
    return context ? *(int *)context : 0;
}

/* In memory of exactly its size, so that a sanitizer sees a read beyond. */
static int launch_walk(int (*with)(const char *, size_t, hostlist_each *, void *), const char *text)
{
    size_t length = strlen(text);
    char *exact = malloc(length ? length : 1);
    memcpy(exact, text, length);
    names[0] = '\0';
    count = used = 0;
    int error = with(exact, length, launch_collect, NULL);
    free(exact);
    return error;
}

static void assert_list(const char *text, const char *expected)
{
    cr_assert_eq(launch_walk(hostlist_expand, text), 0, "%s", text);
    cr_assert_str_eq(names, expected, "%s: %s", text, names);
}

Test(hostlist, multiplies_brackets_out)
{
    assert_list("", "");
    assert_list("a", "a");
    assert_list("a,b.c,d-e_f", "a b.c d-e_f");
    assert_list("a[01-03,7]b", "a01b a02b a03b a7b");
    assert_list("n[8-11]", "n8 n9 n10 n11");
    assert_list("n[098-101],x", "n098 n099 n100 n101 x");
    assert_list("r[1-2]n[3,5]", "r1n3 r1n5 r2n3 r2n5");
    assert_list("[1-2]", "1 2");
    assert_list("n[0]", "n0");
}

Test(hostlist, takes_blanks_and_slots)
{
    assert_list("a a a b b\n", "a a a b b");
    assert_list("a:2,b:16,c", "a b c");
    assert_list(" ,a,, b,", "a b");
}

Test(hostlist, refuses_what_is_none)
{
    static const char *const wrong[] = {"n[",      "n[1",   "n]",    "n[]",           "n[1-]",    "n[-1]", "n[3-1]",
                                        "n[1,,2]", "n[a]",  "n[1-2", "n[1234567890]", "n[1-2-3]", "-oX",   "a b;c",
                                        "a/b",     "a[1]]", "$(x)",  "[[1]]",         "a,\001",   ":2",    "n[1 2]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_eq(launch_walk(hostlist_expand, wrong[i]), -EBADMSG, "%s", wrong[i]);
}

Test(hostlist, is_bounded)
{
    char longest[HOSTLIST_NAME_MAX + 2];
    memset(longest, 'a', sizeof longest);
    longest[HOSTLIST_NAME_MAX] = '\0';
    cr_assert_eq(launch_walk(hostlist_expand, longest), 0);
    longest[HOSTLIST_NAME_MAX] = 'a';
    longest[HOSTLIST_NAME_MAX + 1] = '\0';
    cr_assert_eq(launch_walk(hostlist_expand, longest), -EBADMSG);
    cr_assert_eq(launch_walk(hostlist_expand, "n[1-65536]"), 0);
    cr_assert_eq(count, HOSTLIST_MAX);
    cr_assert_eq(launch_walk(hostlist_expand, "n[0-999999999]"), -E2BIG);
    cr_assert_eq(launch_walk(hostlist_expand, "n[0-255]m[0-255],x"), -E2BIG);
}

Test(hostlist, ends_when_it_is_told)
{
    int answer = -ENOMEM;
    count = used = 0;
    cr_assert_eq(hostlist_expand("n[1-9],m", 8, launch_collect, &answer), -ENOMEM);
    cr_assert_eq(count, 1);
}

Test(hostlist, files_of_nodes)
{
    cr_assert_eq(launch_walk(hostlist_lines, "# all\nn1 slots=4\n\n  n2:8 # two\nn[3-4]\nn1\r\n#n5\nlast"), 0);
    cr_assert_str_eq(names, "n1 n2 n3 n4 n1 last");
    cr_assert_eq(launch_walk(hostlist_lines, "n1\nn2;rm\n"), -EBADMSG);
    cr_assert_eq(launch_walk(hostlist_lines, ""), 0);
    cr_assert_eq(count, 0);
}

/* Launch lines. */

static char *split[256];

static char *const *split_words(const char *text)
{
    static char copy[8192];
    char *rest = strcpy(copy, text);
    size_t words = 0;
    for (char *word; (word = strsep(&rest, " "));)
        if (*word)
            split[words++] = word;
    split[words] = NULL;
    return split;
}

static bool is_app(const char *word)
{
    return strstr(word, "app") != NULL;
}

static struct line line;

static int launch_parse(const char *text)
{
    char *const *words = split_words(text);
    return line_parse(&line, line_kind(words), words, is_app);
}

static char *quoted;

static const struct line_variable passed[] = {{"LD_PRELOAD", "SHIM"}, {"SHUNT_ROOT", "/r"}, {"SHUNT_DEADLINE", "9"}};

static const char *launch_composed(const char *text)
{
    struct arguments wrapper, to;
    cr_assert_eq(launch_parse(text), 0, "%s", text);
    arguments_init(&wrapper);
    arguments_init(&to);
    arguments_add(&wrapper, "W");
    arguments_add(&wrapper, "--");
    line_compose(&line, &wrapper, passed, 3, &to);
    cr_assert_not(to.full);
    free(quoted);
    quoted = arguments_quoted(&to);
    arguments_finish(&wrapper);
    arguments_finish(&to);
    return quoted;
}

static enum line_kind kind_of(const char *text)
{
    return line_kind(split_words(text));
}

Test(line, knows_launchers_by_name)
{
    cr_assert_eq(kind_of("srun -n 1 app"), LINE_SRUN);
    cr_assert_eq(kind_of("/usr/bin/srun"), LINE_SRUN);
    cr_assert_eq(kind_of("/opt/x/mpirun -n 1 app"), LINE_UNTOLD);
    cr_assert_eq(kind_of("mpiexec"), LINE_UNTOLD);
    cr_assert_eq(kind_of("mpirun.openmpi"), LINE_OPENMPI);
    cr_assert_eq(kind_of("mpiexec.hydra"), LINE_HYDRA);
    cr_assert_eq(kind_of("flux run app"), LINE_FLUX);
    cr_assert_eq(kind_of("flux"), LINE_PLAIN);
    cr_assert_eq(kind_of("python3 srun"), LINE_PLAIN);
}

static size_t launcher_at(const char *text)
{
    return line_launcher_at(split_words(text));
}

Test(line, finds_the_launcher_after_what_runs_it)
{
    cr_assert_eq(launcher_at("env A=1 B=2 srun app"), 3);
    cr_assert_eq(launcher_at("/usr/bin/time -p nice mpirun -n 2 app"), 3);
    cr_assert_eq(launcher_at("numactl --cpunodebind 0 flux run app"), 3);
    cr_assert_eq(launcher_at("srun env mpirun"), 0);
    cr_assert_eq(launcher_at("grep srun file"), 0);
    cr_assert_eq(launcher_at("env A=1 app"), 0);
}

Test(line, knows_mpirun_by_its_version)
{
    cr_assert_eq(line_kind_of_version("mpirun (Open MPI) 4.1.4\n"), LINE_OPENMPI);
    cr_assert_eq(line_kind_of_version("mpirun.openmpi (OpenRTE) 4.1.4"), LINE_OPENMPI);
    cr_assert_eq(line_kind_of_version("HYDRA build details:\n"), LINE_HYDRA);
    cr_assert_eq(line_kind_of_version("Intel(R) MPI Library for Linux"), LINE_HYDRA);
    cr_assert_eq(line_kind_of_version("something else"), LINE_UNTOLD);
}

Test(line, of_openmpi)
{
#define OPENMPI "mpirun.openmpi -x LD_PRELOAD=SHIM -x SHUNT_ROOT -x SHUNT_DEADLINE "
    cr_assert_str_eq(launch_composed("mpirun.openmpi -n 8 ./app -n 3 -x y"), OPENMPI "-n 8 W -- ./app -n 3 -x y");
    cr_assert_str_eq(launch_composed("mpirun.openmpi --oversubscribe --mca a b -x A=1 -np 2 app"),
                     OPENMPI "--oversubscribe --mca a b -x A=1 -np 2 W -- app");
    cr_assert_str_eq(launch_composed("mpirun.openmpi app"), OPENMPI "W -- app");
    cr_assert_str_eq(launch_composed("mpirun.openmpi --map-by=core app"), OPENMPI "--map-by=core W -- app");
}

Test(line, of_several_programs)
{
    cr_assert_str_eq(launch_composed("mpirun.openmpi -n 1 app1 x : -n 2 app2"),
                     OPENMPI "-n 1 W -- app1 x : -x LD_PRELOAD=SHIM -x SHUNT_ROOT -x SHUNT_DEADLINE -n 2 W -- "
                             "app2");
    cr_assert_str_eq(launch_composed("mpiexec.hydra -n 1 app1 : -n 2 app2 y"),
                     "mpiexec.hydra -genv LD_PRELOAD SHIM -genv SHUNT_ROOT /r -genv SHUNT_DEADLINE 9 -n 1 W -- "
                     "app1 : -n 2 W -- app2 y");
    cr_assert_eq(launch_parse("mpirun.openmpi -n 1 app :"), -ENOEXEC);
    cr_assert_eq(launch_parse("mpirun.openmpi -n 1 : app"), -ENOEXEC);
}

Test(line, of_hydra)
{
#define HYDRA "mpiexec.hydra -genv LD_PRELOAD SHIM -genv SHUNT_ROOT /r -genv SHUNT_DEADLINE 9 "
    cr_assert_str_eq(launch_composed("mpiexec.hydra -n 2 app"), HYDRA "-n 2 W -- app");
    cr_assert_str_eq(launch_composed("mpiexec.hydra -genv A 1 -env B=2 -hosts a,b -n 2 app"),
                     HYDRA "-genv A 1 -env B=2 -hosts a,b -n 2 W -- app");
}

Test(line, of_srun)
{
#define EXPORT ",LD_PRELOAD=SHIM,SHUNT_ROOT,SHUNT_DEADLINE "
    cr_assert_str_eq(launch_composed("srun -n4 -N 2 --exclusive ./app a"),
                     "srun --export=ALL" EXPORT "-n4 -N 2 --exclusive W -- ./app a");
    cr_assert_str_eq(launch_composed("srun --ntasks=4 --nodes 2 -- app"),
                     "srun --export=ALL" EXPORT "--ntasks=4 --nodes 2 -- W -- app");
    cr_assert_str_eq(launch_composed("srun --export=A,B=1 app"), "srun --export=A,B=1" EXPORT "W -- app");
    cr_assert_str_eq(launch_composed("srun --export NONE app"),
                     "srun --export=LD_PRELOAD=SHIM,SHUNT_ROOT,SHUNT_DEADLINE W -- app");
    cr_assert_str_eq(launch_composed("srun -n1 app1 : -n2 --export=C app2"),
                     "srun --export=ALL" EXPORT "-n1 W -- app1 : --export=C" EXPORT "-n2 W -- app2");
}

Test(line, letters_share_a_word)
{
    cr_assert_str_eq(launch_composed("srun -ln 4 prog"), "srun --export=ALL" EXPORT "-ln 4 W -- prog");
    cr_assert_str_eq(launch_composed("srun -ln4 prog"), "srun --export=ALL" EXPORT "-ln4 W -- prog");
    cr_assert_str_eq(launch_composed("srun -vvv prog"), "srun --export=ALL" EXPORT "-vvv W -- prog");
    cr_assert_str_eq(launch_composed("srun -lK1 prog"), "srun --export=ALL" EXPORT "-lK1 W -- prog");
    cr_assert_str_eq(launch_composed("flux run -lN 2 prog"), "flux run --env=LD_PRELOAD=SHIM --env=SHUNT_ROOT=/r "
                                                             "--env=SHUNT_DEADLINE=9 -lN 2 W -- prog");
}

Test(line, exports_what_slurm_was_told_to)
{
    char list[LINE_EXPORT_MAX];
    cr_assert(line_export("NONE", passed, 3, list));
    cr_assert_str_eq(list, "LD_PRELOAD=SHIM,SHUNT_ROOT,SHUNT_DEADLINE");
    cr_assert(line_export("A,LD_PRELOAD=x,B", passed, 3, list));
    cr_assert_str_eq(list, "A,B,LD_PRELOAD=SHIM,SHUNT_ROOT,SHUNT_DEADLINE");
    memset(list, 'a', sizeof list);
    list[sizeof list - 1] = '\0';
    char *to = malloc(LINE_EXPORT_MAX);
    cr_assert_not(line_export(list, passed, 3, to));
    free(to);
}

Test(line, of_flux)
{
    cr_assert_str_eq(launch_composed("flux run -n 4 -o x=y app :"),
                     "flux run --env=LD_PRELOAD=SHIM --env=SHUNT_ROOT=/r --env=SHUNT_DEADLINE=9 -n 4 -o x=y W -- "
                     "app :");
}

Test(line, without_a_launcher)
{
    cr_assert_str_eq(launch_composed("python3 -c 'x'"), "W -- python3 -c ''\\''x'\\'''");
}

static void assert_own_preload(const char *text, const char *own, const char *without)
{
    const char *made = launch_composed(text);
    cr_assert_not_null(line.preload, "%s", text);
    cr_assert_eq(line.preload_length, strlen(own));
    cr_assert_eq(memcmp(line.preload, own, line.preload_length), 0, "%s", line.preload);
    cr_assert_str_eq(made, without);
}

Test(line, gives_the_users_own_preload)
{
    assert_own_preload("mpirun.openmpi -x LD_PRELOAD=/a.so:/b.so -n 1 app", "/a.so:/b.so", OPENMPI "-n 1 W -- app");
    assert_own_preload("mpiexec.hydra -genv LD_PRELOAD /a.so -n 1 app", "/a.so", HYDRA "-n 1 W -- app");
    assert_own_preload("mpiexec.hydra -n 1 -env LD_PRELOAD=/a.so app", "/a.so", HYDRA "-n 1 W -- app");
    assert_own_preload("srun --export=ALL,LD_PRELOAD=/a.so,B app", "/a.so", "srun --export=ALL,B" EXPORT "W -- app");
    assert_own_preload("flux run --env=LD_PRELOAD=/a.so app", "/a.so",
                       "flux run --env=LD_PRELOAD=SHIM --env=SHUNT_ROOT=/r --env=SHUNT_DEADLINE=9 W -- app");
}

Test(line, a_preload_by_name_is_the_environments)
{
    cr_assert_str_eq(launch_composed("mpirun.openmpi -x LD_PRELOAD -n 1 app"), OPENMPI "-n 1 W -- app");
    cr_assert_null(line.preload);
    cr_assert_str_eq(launch_composed("mpirun.openmpi -x LD_PRELOADED=1 -n 1 app"), OPENMPI "-x LD_PRELOADED=1 -n 1 W -- app");
    cr_assert_null(line.preload);
}

Test(line, an_unknown_option_takes_what_is_no_program)
{
    cr_assert_str_eq(launch_composed("mpirun.openmpi --novelty 5 -n 1 app x"), OPENMPI "--novelty 5 -n 1 W -- app x");
    cr_assert_str_eq(launch_composed("mpirun.openmpi --novelty app x"), OPENMPI "--novelty W -- app x");
    cr_assert_str_eq(launch_composed("mpirun.openmpi --novelty=5 prog x"), OPENMPI "--novelty=5 W -- prog x");
    cr_assert_str_eq(launch_composed("mpirun.openmpi --novelty prog"), OPENMPI "--novelty W -- prog");
}

static int take_value(void *to, const char *value)
{
    strcat(strcat(to, " "), value);
    return 0;
}

/* Of all parts. */
static const char *values_of(const char *text, unsigned what)
{
    static char values[256];
    values[0] = '\0';
    cr_assert_eq(launch_parse(text), 0, "%s", text);
    for (size_t i = 0; i < line.parts; i++)
        cr_assert_geq(line_each_value(&line, &line.part[i], what, take_value, values), 0);
    return values;
}

Test(line, names_hosts_of_its_own)
{
    cr_assert_str_eq(values_of("mpirun.openmpi --host a,b:2 -n 1 app", LINE_HOSTS), " a,b:2");
    cr_assert_str_eq(values_of("mpirun.openmpi -machinefile f -n 1 app -H no", LINE_HOST_FILE), " f");
    cr_assert_str_eq(values_of("mpirun.openmpi -machinefile f -n 1 app -H no", LINE_HOSTS), "");
    cr_assert_str_eq(values_of("mpiexec.hydra -f f -n 1 app", LINE_HOST_FILE), " f");
    cr_assert_str_eq(values_of("mpiexec.hydra -hosts x -n 1 app", LINE_HOSTS), " x");
    cr_assert_str_eq(values_of("mpirun.openmpi --host a --host=b -n 1 app : -H c app", LINE_HOSTS), " a b c");
}

Test(line, refuses)
{
    cr_assert_eq(launch_parse("srun -n 4"), -ENOEXEC);
    cr_assert_eq(launch_parse("srun"), -ENOEXEC);
    cr_assert_eq(launch_parse("mpirun.openmpi -n"), -ENOEXEC);
    cr_assert_eq(launch_parse("flux run"), -ENOEXEC);
    cr_assert_eq(launch_parse("srun --multi-prog file"), -EOPNOTSUPP);
    cr_assert_eq(launch_parse("mpirun.openmpi --app file"), -EOPNOTSUPP);
    cr_assert_eq(launch_parse("mpiexec.hydra -configfile file"), -EOPNOTSUPP);
    char many[1024] = "mpirun.openmpi app";
    for (int i = 1; i < LINE_PARTS_MAX; i++)
        strcat(many, " : app");
    cr_assert_eq(launch_parse(many), 0);
    cr_assert_eq(line.parts, LINE_PARTS_MAX);
    cr_assert_eq(launch_parse(strcat(many, " : app")), -E2BIG);
}

/* Bringing agents to nodes. */

static const char *agents_words(enum agents_means means, const char *text, size_t of)
{
    static char *hosts[] = {"n1", "n2", "n3"};
    struct nodes nodes = {.count = 3};
    struct arguments keep, to;
    memcpy(nodes.names, hosts, sizeof hosts);
    cr_assert_eq(launch_parse(text), 0);
    arguments_init(&keep);
    arguments_init(&to);
    arguments_add(&keep, "keep");
    arguments_add(&keep, "a b");
    agents_compose(&(struct agents_plan){means, &line, &keep, false}, &nodes, 1, of, &to);
    free(quoted);
    quoted = arguments_quoted(&to);
    arguments_finish(&keep);
    arguments_finish(&to);
    return quoted;
}

Test(agents, of_a_group_of_a_heterogeneous_job)
{
    static struct nodes nodes;
    static struct agents agents;
    struct arguments keep;
    arguments_init(&keep);
    arguments_add(&keep, "keep");
    setenv("SLURM_HET_SIZE", "3", 1);
    setenv("SLURM_JOB_NODELIST", "h1", 1);
    setenv("SLURM_JOB_NODELIST_HET_GROUP_0", "h1", 1);
    setenv("SLURM_JOB_NODELIST_HET_GROUP_1", "h[2-3]", 1);
    setenv("SLURM_JOB_NODELIST_HET_GROUP_2", "h3,h4", 1);
    setenv("SLURMD_NODENAME", "h1", 1);
    nodes_init(&nodes);
    cr_assert_eq(launch_parse("srun app"), 0);
    cr_assert_eq(nodes_find(&nodes, NULL, &line), 0);
    cr_assert_eq(nodes.count, 4);
    cr_assert_eq(agents_init(&agents, &nodes, &(struct agents_plan){AGENTS_SRUN, &line, &keep, false}), 0);
    cr_assert_eq(agents.count, 3);
    cr_assert_str_eq(agents.members[0].words.at[0], "keep");
    for (size_t i = 1; i < 3; i++) {
        char *words = arguments_quoted(&agents.members[i].words);
        cr_assert(strstr(words, i == 1 ? "--het-group=1 --nodes=2 --ntasks=2 --nodelist=h2,h3 keep"
                                       : "--het-group=2 --nodes=1 --ntasks=1 --nodelist=h4 keep") != NULL,
                  "%s", words);
        free(words);
    }
    agents_finish(&agents);
    nodes_finish(&nodes);
    arguments_finish(&keep);
}

Test(agents, by_the_launchers_own_means)
{
    cr_assert_str_eq(agents_words(AGENTS_SRUN, "srun app", 2),
                     "srun --overlap --mem=0 --input=all --output=all --error=all --kill-on-bad-exit=0 --no-kill --wait=0 "
                     "--export=ALL --ntasks-per-node=1 --quiet --nodes=2 --ntasks=2 --nodelist=n2,n3 keep 'a b'");
    cr_assert_str_eq(agents_words(AGENTS_OPENMPI, "mpirun.openmpi -n 9 --mca a b -x Q --allow-run-as-root app", 2),
                     "mpirun.openmpi --mca a b --allow-run-as-root -n 2 --map-by ppr:1:node --stdin all --host "
                     "n2,n3 keep 'a b'");
    cr_assert_str_eq(agents_words(AGENTS_HYDRA, "mpiexec.hydra -launcher ssh -genv A 1 -n 9 app", 1),
                     "mpiexec.hydra -launcher ssh -n 1 -ppn 1 -hosts n2 keep 'a b'");
    cr_assert_str_eq(agents_words(AGENTS_SSH, "app", 1), "ssh -o BatchMode=yes -o ConnectTimeout=30 n2 'keep '\\''a b'\\'''");
}

/* The nodes that were asked for; the last of them is this host. */
static size_t launch_members(enum agents_means means, bool pretend, struct agents *agents)
{
    static char *hosts[] = {"localhost", "x1", "x2", "x3"};
    static struct nodes nodes = {.count = 4};
    static struct arguments keep;
    memcpy(nodes.names, hosts, sizeof hosts);
    cr_assert_eq(launch_parse("mpirun.openmpi app"), 0);
    arguments_finish(&keep);
    arguments_add(&keep, "keep");
    cr_assert_eq(agents_init(agents, &nodes, &(struct agents_plan){means, &line, &keep, pretend}), 0);
    arguments_finish(&keep);
    return agents->count;
}

Test(agents, one_command_for_each_node_or_for_all)
{
    struct agents agents;
    cr_assert_eq(launch_members(AGENTS_OPENMPI, false, &agents), 2);
    cr_assert_eq(agents.members[0].words.count, 1, "this host needs no launcher");
    cr_assert_eq(agents.members[1].count, 3);
    agents_finish(&agents);
    cr_assert_eq(launch_members(AGENTS_SSH, false, &agents), 4);
    cr_assert_str_eq(agents.members[3].words.at[5], "x3");
    agents_finish(&agents);
    cr_assert_eq(launch_members(AGENTS_SRUN, true, &agents), 4);
    cr_assert_str_eq(agents.members[2].words.at[1], "--node");
    cr_assert_str_eq(agents.members[2].words.at[2], "x2");
    agents_finish(&agents);
}

/* Nodes. */

static void clear_allocation(void)
{
    static const char *const variables[] = {"SLURM_JOB_NODELIST", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "LSB_HOSTS",
                                            "LSB_MCPU_HOSTS",     "PE_HOSTFILE",  "COBALT_NODEFILE",   "FLUX_URI"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
}

static const char *nodes_of(const char *file, const char *text)
{
    static char joined[4096];
    struct nodes nodes;
    nodes_init(&nodes);
    cr_assert_eq(launch_parse(text), 0);
    joined[0] = '\0';
    if (nodes_find(&nodes, file, &line) < 0)
        strcpy(joined, "refused");
    for (size_t i = 0; i < nodes.count && *joined != 'r'; i++)
        strcat(strcat(joined, i ? " " : ""), nodes.names[i]);
    nodes_finish(&nodes);
    return joined;
}

static const char *write_nodes(const char *text)
{
    FILE *file = fopen(place_path("nodes"), "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    return place_path("nodes");
}

TestSuite(nodes, .init = place_init, .fini = place_finish);

Test(nodes, of_an_allocation)
{
    clear_allocation();
    cr_assert_str_eq(nodes_of(NULL, "app"), nodes_here());
    setenv("COBALT_NODEFILE", write_nodes("c1\nc2\n"), 1);
    cr_assert_str_eq(nodes_of(NULL, "app"), "c1 c2");
    setenv("PE_HOSTFILE", write_nodes("g1 8 all.q@g1 UNDEFINED\ng2 8 all.q@g2 UNDEFINED\n"), 1);
    cr_assert_str_eq(nodes_of(NULL, "app"), "g1 g2");
    setenv("LSB_MCPU_HOSTS", "m1 4 m2 8 ", 1);
    cr_assert_str_eq(nodes_of(NULL, "app"), "m1 m2");
    setenv("LSB_MCPU_HOSTS", "m1 4 -oProxyCommand=true 8", 1);
    cr_assert_str_eq(nodes_of(NULL, "app"), "refused");
    setenv("LSB_HOSTS", "l1 l1 l2", 1);
    cr_assert_str_eq(nodes_of(NULL, "app"), "l1 l2");
    setenv("LSB_DJOB_HOSTFILE", write_nodes("d1\nd1\nd2\n"), 1);
    cr_assert_str_eq(nodes_of(NULL, "app"), "d1 d2");
    setenv("PBS_NODEFILE", write_nodes("p1\np2\np1\n"), 1);
    cr_assert_str_eq(nodes_of(NULL, "app"), "p1 p2");
    setenv("SLURM_JOB_NODELIST", "s[1-2]", 1);
    cr_assert_str_eq(nodes_of(NULL, "app"), "s1 s2");
    cr_assert_str_eq(nodes_of(NULL, "mpirun.openmpi -H h1:2,h2 app"), "h1 h2", "the line is narrower");
    cr_assert_str_eq(nodes_of(write_nodes("f1\n"), "mpirun.openmpi -H h1:2,h2 app"), "f1");
    clear_allocation();
}

Test(nodes, of_several_programs)
{
    clear_allocation();
    cr_assert_str_eq(nodes_of(NULL, "mpirun.openmpi -H a -n 1 app : --host b,a -n 1 app"), "a b");
    cr_assert_str_eq(nodes_of(NULL, "mpirun.openmpi --host a --host b -n 1 app"), "a b");
    const char *file = write_nodes("f1 slots=2\nf2\n");
    char text[4096];
    snprintf(text, sizeof text, "mpirun.openmpi --hostfile %s -H f2 -n 1 app : -H a -n 1 app", file);
    cr_assert_str_eq(nodes_of(NULL, text), "f2 a", "a list chooses among those of a file");
    snprintf(text, sizeof text, "mpirun.openmpi -H a -n 1 app : --hostfile %s -n 1 app", file);
    cr_assert_str_eq(nodes_of(NULL, text), "a f1 f2");
    setenv("SLURM_JOB_NODELIST", "s[1-2]", 1);
    cr_assert_str_eq(nodes_of(NULL, "mpirun.openmpi -H s2 -n 1 app : -n 1 app"), "s2 s1", "the second one is on all");
    cr_assert_str_eq(nodes_of(NULL, "mpiexec.hydra -hosts s2 -n 1 app : -n 1 app"), "s2");
    cr_assert_str_eq(nodes_of(NULL, "mpiexec.hydra -n 1 app : -hosts s2 -n 1 app"), "s2");
    clear_allocation();
}

Test(nodes, of_openmpi_this_host_has_one_name)
{
    clear_allocation();
    cr_assert_str_eq(nodes_of(NULL, "mpirun.openmpi -H 127.0.0.1:2 app"), nodes_here());
    cr_assert_str_eq(nodes_of(NULL, "mpirun.openmpi -H 127.0.0.1,127.0.1.1,localhost app"), "localhost");
    cr_assert_str_eq(nodes_of(write_nodes("127.0.0.1\nfar.invalid\n"), "mpirun.openmpi app") + strlen(nodes_here()),
                     " far.invalid");
    cr_assert_str_eq(nodes_of(NULL, "mpiexec.hydra -hosts 127.0.0.1 app"), "127.0.0.1");
}

Test(nodes, this_host_is_the_first)
{
    char text[512];
    clear_allocation();
    snprintf(text, sizeof text, "a\nb\n%s\nc\n", nodes_here());
    const char *found = nodes_of(write_nodes(text), "app");
    cr_assert(!strncmp(found, nodes_here(), strlen(nodes_here())), "%s", found);
    cr_assert_str_eq(found + strlen(nodes_here()), " a b c");
}

Test(nodes, refused)
{
    int before = dup(STDERR_FILENO);
    close(STDERR_FILENO);
    clear_allocation();
    cr_assert_str_eq(nodes_of(place_path("missing"), "app"), "refused");
    cr_assert_str_eq(nodes_of(write_nodes("# none\n"), "app"), "refused");
    cr_assert_str_eq(nodes_of(write_nodes("n[0-4096]\n"), "app"), "refused");
    cr_assert_str_eq(nodes_of(NULL, "mpirun.openmpi -H +n0 app"), "refused");
    dup2(before, STDERR_FILENO);
    close(before);
}

Test(nodes, one_host_by_two_names)
{
    cr_assert(nodes_is_same("a", "a.example.org"));
    cr_assert(nodes_is_same("a.x", "a.y"));
    cr_assert_not(nodes_is_same("a", "ab"));
    cr_assert_not(nodes_is_same("a1.x", "a.x"));
    cr_assert(nodes_is_here("localhost"));
}

/* Words, ranks, captures. */

Test(words, are_quoted_for_a_shell)
{
    struct arguments words;
    arguments_init(&words);
    static const char *const some[] = {"plain-1", "", "a b", "it's", "$HOME", "x=/y:z,@%"};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        arguments_add(&words, some[i]);
    char *text = arguments_quoted(&words);
    cr_assert_str_eq(text, "plain-1 '' 'a b' 'it'\\''s' '$HOME' x=/y:z,@%");
    free(text);
    for (int i = 0; i < 1000; i++)
        arguments_format(&words, "%d", i);
    cr_assert_eq(words.count, 1006);
    cr_assert_str_eq(words.at[1005], "999");
    cr_assert_null(words.at[1006]);
    arguments_finish(&words);
}

Test(rank, is_what_the_launcher_says)
{
    cr_assert_eq(rank_number((char *[]){"A=1", NULL}), -1);
    cr_assert_eq(rank_number((char *[]){"SLURM_PROCID=0", "PMI_RANK=5", NULL}), 5);
    cr_assert_eq(rank_number((char *[]){"SLURM_PROCID=3", NULL}), 3);
    cr_assert_eq(rank_number((char *[]){"PMI_RANK=5", "PMIX_RANK=6", "OMPI_COMM_WORLD_RANK=7", NULL}), 7);
    cr_assert_eq(rank_number((char *[]){"FLUX_TASK_RANK=8", "SLURM_PROCID=0", NULL}), 8);
    cr_assert_eq(rank_number((char *[]){"PMI_RANK=x", "SLURM_PROCID=-2", NULL}), -1);
    cr_assert_eq(rank_number((char *[]){"MV2_COMM_WORLD_RANK=2", "SLURM_PROCID=0", NULL}), 2);
}

Test(capture, what_a_command_says)
{
    char text[8];
    cr_assert_eq(capture((char *[]){"sh", "-c", "echo 0123456789; exit 3", NULL}, text, sizeof text), 3);
    cr_assert_str_eq(text, "0123456");
    cr_assert_eq(capture((char *[]){"sh", "-c", "kill -9 $$", NULL}, text, sizeof text), 137);
    cr_assert_eq(capture((char *[]){"/nowhere/at/all", NULL}, text, sizeof text), 127);
    cr_assert_str_empty(text);
}

Test(watch, what_was_ignored_before_still_is)
{
    struct signal_wait watch;
    signal(SIGHUP, SIG_IGN);
    cr_assert_eq(signal_wait_init(&watch), 0);
    raise(SIGHUP);
    cr_assert_eq(signal_wait_next(&watch, NULL, 0, 0), 0, "nohup was said");
    raise(SIGTERM);
    cr_assert_eq(signal_wait_next(&watch, NULL, 0, 0), SIGTERM);
    signal_wait_finish(&watch);
}
