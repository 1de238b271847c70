/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/nodes.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "config/config.h"
#include "launch/hostlist.h"
#include "launch/line_options.h"
#include "programs/capture.h"

#define TEXT_MAX (4 << 20)

void nodes_init(struct nodes *nodes)
{
    nodes->count = 0;
    nodes->group = 0;
    nodes->source = "";
}

void nodes_finish(struct nodes *nodes)
{
    while (nodes->count > 0)
        free(nodes->names[--nodes->count]);
}

bool nodes_is_same(const char *one, const char *other)
{
    size_t length = strcspn(one, ".");
    return length == strcspn(other, ".") && !strncmp(one, other, length);
}

const char *nodes_here(void)
{
    static char host[256];
    gethostname(host, sizeof host - 1);
    return host;
}

bool nodes_is_here(const char *name)
{
    const char *slurm = getenv("SLURMD_NODENAME"); /* which may have several nodes on one host */
    return !strcmp(name, "localhost") || nodes_is_same(name, slurm && *slurm ? slurm : nodes_here());
}

/* Files of nodes name one as often as it has processors, mostly one time after the other. */
static bool nodes_is_known(const struct nodes *nodes, const char *name)
{
    for (size_t i = nodes->count; i-- > 0;)
        if (!strcmp(nodes->names[i], name))
            return true;
    return false;
}

static int nodes_add(void *context, const char *name)
{
    struct nodes *nodes = context;
    if (nodes_is_known(nodes, name))
        return 0;
    if (nodes->count == NODES_MAX)
        return -E2BIG;
    nodes->names[nodes->count] = strdup(name);
    if (!nodes->names[nodes->count])
        return -ENOMEM;
    nodes->groups[nodes->count++] = nodes->group;
    return 0;
}

static int nodes_complain_list(const char *source, const char *text, int error)
{
    if (error == -E2BIG)
        error_report("%s: more than %d nodes (use fewer)", source, NODES_MAX);
    else if (error == -EBADMSG)
        error_report("%s: '%.60s' is not a list of nodes (name them in a file with --hosts)", source, text);
    else
        error_report("%s: the nodes cannot be read: %s (name them in a file with --hosts)", source, strerror(-error));
    return -1;
}

static int nodes_take_list(struct nodes *nodes, const char *source, const char *text)
{
    nodes->source = source;
    int error = hostlist_expand(text, strlen(text), nodes_add, nodes);
    return error < 0 ? nodes_complain_list(source, text, error) : 0;
}

static char *nodes_read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(TEXT_MAX + 1) : NULL;
    if (text) {
        size_t length = fread(text, 1, TEXT_MAX, file);
        text[length] = '\0';
    }
    const int error = errno; /* of fread, as of a directory */
    if (text && ferror(file)) {
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    errno = error;
    return text;
}

static int nodes_take_file(struct nodes *nodes, const char *source, const char *path)
{
    char *text = nodes_read_file(path);
    if (!text) {
        error_report("%s: the file of nodes cannot be read: %s (check its path)", error_name(path), strerror(errno));
        return -1;
    }
    nodes->source = source;
    int error = hostlist_lines(text, strlen(text), nodes_add, nodes);
    if (error < 0)
        nodes_complain_list(path, text, error);
    free(text);
    return error < 0 ? -1 : 0;
}

/* What we cannot read ourselves (there are clusters whose names count in base 36), Slurm can. */
static int nodes_ask_scontrol(struct nodes *nodes, const char *list)
{
    char *const words[] = {"scontrol", "show", "hostnames", (char *)list, NULL};
    char *text = malloc(TEXT_MAX);
    int status = text ? capture(words, text, TEXT_MAX) : -ENOMEM;
    int answer = status == 0 ? nodes_take_list(nodes, "scontrol show hostnames", text)
                             : nodes_complain_list("SLURM_JOB_NODELIST", list, -EBADMSG);
    free(text);
    return answer;
}

static int nodes_from_slurm_list(struct nodes *nodes, const char *list)
{
    const size_t before = nodes->count;
    nodes->source = "SLURM_JOB_NODELIST";
    int error = hostlist_expand(list, strlen(list), nodes_add, nodes);
    if (error != -EBADMSG)
        return error < 0 ? nodes_complain_list(nodes->source, list, error) : 0;
    while (nodes->count > before)
        free(nodes->names[--nodes->count]);
    return nodes_ask_scontrol(nodes, list);
}

/* A heterogeneous job has a list for each of its groups; the one without a number is the first of them, or all. */
static int nodes_from_slurm(struct nodes *nodes, const char *list)
{
    const size_t before = nodes->count;
    uint64_t groups = 0;
    char name[64];
    int error = 0;
    config_number_parse(config_value(environ, "SLURM_HET_SIZE", "0"), NODES_MAX, &groups);
    for (int i = 0; i < (int)groups && error == 0; i++) {
        snprintf(name, sizeof name, "SLURM_JOB_NODELIST_HET_GROUP_%d", i);
        const char *of_group = config_value(environ, name, NULL);
        nodes->group = i + 1;
        error = of_group ? nodes_from_slurm_list(nodes, of_group) : 0;
    }
    if (nodes->count > before || error < 0)
        return error;
    nodes->group = 0;
    return nodes_from_slurm_list(nodes, list);
}

static int nodes_from_pbs(struct nodes *nodes, const char *path)
{
    return nodes_take_file(nodes, "PBS_NODEFILE", path);
}

static int nodes_from_lsf_file(struct nodes *nodes, const char *path)
{
    return nodes_take_file(nodes, "LSB_DJOB_HOSTFILE", path);
}

static int nodes_from_lsf(struct nodes *nodes, const char *list)
{
    return nodes_take_list(nodes, "LSB_HOSTS", list);
}

/* HOST NUMBER HOST NUMBER ... */
static int nodes_from_lsf_pairs(struct nodes *nodes, const char *list)
{
    char name[256];
    int error = 0, taken;
    bool is_host = true;
    nodes->source = "LSB_MCPU_HOSTS";
    for (const char *at = list; error == 0 && sscanf(at, "%255s%n", name, &taken) == 1; at += taken) {
        if (is_host)
            error = hostlist_expand(name, strlen(name), nodes_add, nodes);
        else if (name[strspn(name, "0123456789")] != '\0')
            error = -EBADMSG;
        is_host = !is_host;
    }
    return error < 0 ? nodes_complain_list(nodes->source, list, error) : 0;
}

static int nodes_from_grid_engine(struct nodes *nodes, const char *path)
{
    return nodes_take_file(nodes, "PE_HOSTFILE", path);
}

static int nodes_from_cobalt(struct nodes *nodes, const char *path)
{
    return nodes_take_file(nodes, "COBALT_NODEFILE", path);
}

static int nodes_from_flux(struct nodes *nodes, const char *uri)
{
    char *const words[] = {"flux", "getattr", "hostlist", NULL};
    char *text = malloc(TEXT_MAX);
    int status = text ? capture(words, text, TEXT_MAX) : -ENOMEM;
    int answer = -1;
    if (status == 0)
        answer = nodes_take_list(nodes, "flux getattr hostlist", text);
    else
        error_report("FLUX_URI: is set, but 'flux getattr hostlist' fails (name the nodes in a file with --hosts)");
    free(text);
    return answer;
}

static const struct {
    const char *variable;
    int (*take)(struct nodes *, const char *value);
} allocations[] = {{"FLUX_URI", nodes_from_flux}, /* which may run in a job of another one */
                   {"SLURM_JOB_NODELIST", nodes_from_slurm},
                   {"PBS_NODEFILE", nodes_from_pbs},
                   {"LSB_DJOB_HOSTFILE", nodes_from_lsf_file},
                   {"LSB_HOSTS", nodes_from_lsf},
                   {"LSB_MCPU_HOSTS", nodes_from_lsf_pairs},
                   {"PE_HOSTFILE", nodes_from_grid_engine},
                   {"COBALT_NODEFILE", nodes_from_cobalt}};

static int nodes_from_allocation(struct nodes *nodes)
{
    for (size_t i = 0; i < sizeof allocations / sizeof *allocations; i++) {
        const char *value = getenv(allocations[i].variable);
        if (value && *value)
            return allocations[i].take(nodes, value);
    }
    return 0;
}

/* NULL: it is of another kind. */
static const void *nodes_bytes_of(const struct sockaddr *address, size_t *size)
{
    const int family = address != NULL ? address->sa_family : AF_UNSPEC;
    *size = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
    if (family == AF_INET)
        return &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    return family == AF_INET6 ? &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr : NULL;
}

static bool nodes_is_mine(const struct sockaddr *address, const struct ifaddrs *mine)
{
    size_t size, own;
    const unsigned char *bytes = nodes_bytes_of(address, &size);
    if (bytes != NULL && address->sa_family == AF_INET && bytes[0] == IN_LOOPBACKNET)
        return true;
    for (; bytes != NULL && mine != NULL; mine = mine->ifa_next) {
        const void *at = nodes_bytes_of(mine->ifa_addr, &own);
        if (at != NULL && own == size && memcmp(at, bytes, size) == 0)
            return true;
    }
    return false;
}

/* Is it an address of this host, or another name of it? */
static bool nodes_leads_here(const char *name, const struct ifaddrs *mine)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    bool leads = false;
    if (getaddrinfo(name, NULL, &wanted, &found) != 0)
        return false;
    for (const struct addrinfo *at = found; at != NULL && !leads; at = at->ai_next)
        leads = nodes_is_mine(at->ai_addr, mine);
    freeaddrinfo(found);
    return leads;
}

static void nodes_drop(struct nodes *nodes, size_t at)
{
    free(nodes->names[at]);
    const size_t after = --nodes->count - at;
    memmove(nodes->names + at, nodes->names + at + 1, after * sizeof *nodes->names);
    memmove(nodes->groups + at, nodes->groups + at + 1, after * sizeof *nodes->groups);
}

/* Open MPI starts what is for this host itself, whatever the line calls it, and its mpirun 4.1 does not end then
 * (agents_plan.c): no agent is to come here that way. */
static int nodes_call_here_by_name(struct nodes *nodes)
{
    struct ifaddrs *mine = NULL;
    bool is_here = false;
    if (getifaddrs(&mine) != 0)
        return 0;
    for (size_t i = nodes->count; i-- > 0;)
        if (!nodes_is_here(nodes->names[i]) && nodes_leads_here(nodes->names[i], mine)) {
            nodes_drop(nodes, i);
            is_here = true;
        }
    freeifaddrs(mine);
    for (size_t i = 0; i < nodes->count && is_here; i++)
        is_here = !nodes_is_here(nodes->names[i]);
    const int error = is_here ? nodes_add(nodes, nodes_here()) : 0;
    return error < 0 ? nodes_complain_list(nodes->source, nodes_here(), error) : 0;
}

/* This host's first: the others are then in one piece. */
static void nodes_put_here_first(struct nodes *nodes)
{
    size_t here = 0;
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes_is_here(nodes->names[i])) {
            char *name = nodes->names[i];
            const int group = nodes->groups[i];
            memmove(nodes->names + here + 1, nodes->names + here, (i - here) * sizeof *nodes->names);
            memmove(nodes->groups + here + 1, nodes->groups + here, (i - here) * sizeof *nodes->groups);
            nodes->names[here] = name;
            nodes->groups[here++] = group;
        }
}

static int nodes_from_line_list(void *nodes, const char *list)
{
    return nodes_take_list(nodes, "the launch line", list);
}

static int nodes_from_line_file(void *nodes, const char *path)
{
    return nodes_take_file(nodes, "the launch line's file", path);
}

/* Hydra goes by it before it looks for an allocation (HYD_uii_get_params of MPICH 4.0). 1, 0: it is not set, -1. */
static int nodes_from_hydras_file(struct nodes *nodes)
{
    const char *path = getenv("HYDRA_HOST_FILE");
    if (path == NULL)
        return 0;
    return nodes_take_file(nodes, "HYDRA_HOST_FILE", path) < 0 ? -1 : 1;
}

/* A list is a choice of those of a file. Hydra has one list or file for all programs; of other launchers a program without any
 * runs on the whole allocation. */
static int nodes_from_line(struct nodes *nodes, const struct line *line)
{
    int error = 0;
    size_t with = 0;
    for (size_t i = 0; i < line->parts && error >= 0; i++) {
        error = line_each_value(line, &line->part[i], LINE_HOSTS, nodes_from_line_list, nodes);
        if (error == 0)
            error = line_each_value(line, &line->part[i], LINE_HOST_FILE, nodes_from_line_file, nodes);
        with += error > 0;
    }
    if (error < 0 || (with > 0 && (with == line->parts || line->kind == LINE_HYDRA)))
        return error < 0 ? -1 : 0;
    if (line->kind == LINE_HYDRA && (error = nodes_from_hydras_file(nodes)) != 0)
        return error < 0 ? -1 : 0;
    const char *source = nodes->source;
    error = nodes_from_allocation(nodes);
    nodes->source = *source ? source : nodes->source;
    return error;
}

int nodes_find(struct nodes *nodes, const char *file, const struct line *line)
{
    int error = file ? nodes_take_file(nodes, "--hosts", file) : nodes_from_line(nodes, line);
    if (error >= 0 && line->kind == LINE_OPENMPI && getenv("SLURM_JOB_ID") == NULL) /* there, srun brings the agents */
        error = nodes_call_here_by_name(nodes);
    nodes_put_here_first(nodes);
    if (error < 0 || nodes->count > 0)
        return error;
    if (file)
        error_report("%s: names no node (write one a line)", error_name(file));
    else if (*nodes->source)
        error_report("%s: names no node (name them in a file with --hosts)", nodes->source);
    if (file || *nodes->source)
        return -1;
    return nodes_take_list(nodes, "this host, since there is no allocation", nodes_here());
}

int nodes_pretend(struct nodes *nodes, size_t count)
{
    char name[32];
    nodes->source = "--fake-nodes";
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, NODES_FAKE, i);
        int error = nodes_add(nodes, name);
        if (error < 0)
            return nodes_complain_list(nodes->source, name, error);
    }
    return 0;
}
