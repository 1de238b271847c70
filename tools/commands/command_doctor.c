/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/roots.h"
#include "doctor/doctor.h"
#include "launch/nodes.h"
#include "commands.h"

const struct choice command_doctor_choices[] = {
    {'r', "root", "DIR", "a directory to be shared; may be given again (default: SHUNT_ROOT)"},
    {'H', "host", "HOST", "another host of the job; may be given again"},
    {COMMAND_LONG + 1, "json", NULL, "an array of objects, one for each finding"},
    {0},
};

/* Without hosts that are named: those of the allocation, if this is within one. */
static void command_doctor_check_allocation(struct doctor *doctor)
{
    static struct nodes nodes;
    const struct line line = {.kind = LINE_PLAIN};
    nodes_init(&nodes);
    if (nodes_find(&nodes, NULL, &line) == 0 && nodes.count > 1)
        doctor_check_network(doctor, nodes.names, nodes.count);
    else
        doctor_check_network(doctor, NULL, 0);
    nodes_finish(&nodes);
}

static int command_doctor_check(struct roots *roots, char *const *hosts, size_t count, bool as_json)
{
    struct doctor doctor;
    const char *named = getenv("SHUNT_ROOT");
    if (roots->count == 0 && named != NULL && *named != '\0' && roots_default(roots) < 0)
        return STATUS_USAGE;
    doctor_begin(&doctor, as_json);
    doctor_check_host(&doctor);
    for (size_t i = 0; i < roots->count; i++)
        doctor_check_root(&doctor, roots->paths[i]);
    if (count > 0)
        doctor_check_network(&doctor, hosts, count);
    else
        command_doctor_check_allocation(&doctor);
    doctor_end(&doctor);
    return doctor.has_problem ? STATUS_FAILED : STATUS_OK;
}

/* There are as many `hosts` as arguments at most. */
static int command_doctor_of(const struct command *command, int argc, char **argv, char **hosts)
{
    struct roots roots;
    size_t count = 0;
    bool as_json = false;
    int end, wrong = 0;
    roots_init(&roots);
    while (wrong == 0 && (end = command_option(command, argc, argv)) >= 0)
        if (end == 'r')
            wrong = roots_add(&roots, optarg);
        else if (end == 'H')
            hosts[count++] = optarg;
        else
            as_json = true;
    int status = wrong ? STATUS_USAGE : command_status(end);
    if (!wrong && end == COMMAND_END && optind < argc)
        status = error_usage(command, "unexpected argument '%s', roots are given with --root", argv[optind]);
    else if (!wrong && end == COMMAND_END)
        status = command_doctor_check(&roots, hosts, count, as_json);
    roots_finish(&roots);
    return status;
}

int command_doctor(const struct command *command, int argc, char **argv)
{
    char **hosts = calloc((size_t)argc, sizeof *hosts);
    if (!hosts) {
        error_report("%s: not enough memory (free some and run this again)", argv[0]);
        return STATUS_FAILED;
    }
    int status = command_doctor_of(command, argc, argv, hosts);
    free(hosts);
    return status;
}
