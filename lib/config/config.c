/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "config/config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"

static const char *config_value_of(char *const environment[], const char *name)
{
    size_t length = strlen(name);
    for (; environment != NULL && *environment != NULL; environment++)
        if ((*environment)[0] == name[0] && strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

const char *config_value(char *const environment[], const char *name, const char *otherwise)
{
    const char *value = config_value_of(environment, name);
    return value != NULL && *value != '\0' ? value : otherwise;
}

int config_placement_parse(const char *text, enum config_placement *placement)
{
    if (strcmp(text, "auto") == 0)
        *placement = CONFIG_AUTO;
    else if (strcmp(text, "branch") == 0)
        *placement = CONFIG_BRANCH;
    else
        return -EINVAL;
    return 0;
}

int config_static_parse(const char *text, enum config_static *statics)
{
    static const char names[][8] = {
        [CONFIG_STATIC_WARN] = "warn", [CONFIG_STATIC_SERVE] = "serve", [CONFIG_STATIC_REFUSE] = "refuse"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            *statics = (enum config_static)i;
            return 0;
        }
    return -EINVAL;
}

int config_number_parse(const char *text, uint64_t most, uint64_t *number)
{
    uint64_t sum = 0;
    if (*text == '\0')
        return -EINVAL;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || sum > most / 10)
            return -EINVAL;
        sum = sum * 10 + (uint64_t)(*text - '0');
    }
    if (sum == 0 || sum > most)
        return -EINVAL;
    *number = sum;
    return 0;
}

int config_size_parse(const char *text, uint64_t least, uint64_t *size)
{
    static const char units[] = "KMGT";
    char digits[24];
    const size_t length = strspn(text, "0123456789");
    const char unit = text[length] >= 'a' ? (char)(text[length] - 'a' + 'A') : text[length];
    const char *at = unit != '\0' ? strchr(units, unit) : NULL;
    const unsigned shift = at != NULL ? 10 * (unsigned)(at - units + 1) : 0;
    uint64_t number;
    if (length >= sizeof digits || (unit != '\0' && (at == NULL || text[length + 1] != '\0')))
        return -EINVAL;
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (config_number_parse(digits, INT64_MAX >> shift, &number) != 0 || number << shift < least)
        return -EINVAL;
    *size = number << shift;
    return 0;
}

static void config_read_number(struct config *config, char *const environment[], const char *name, uint64_t most, uint64_t *to)
{
    const char *value = config_value(environment, name, NULL);
    if (value != NULL && config_number_parse(value, most, to) != 0 && config->bad == NULL)
        config->bad = name;
}

/* A word, since it is to be written into a line of text. */
static void config_read_job(struct config *config, char *const environment[])
{
    const char *job = config_value(environment, "SHUNT_JOB", ""), *at = job;
    while ((unsigned char)*at > ' ' && *at != 0x7f)
        at++;
    const bool is_word = *at == '\0' && at - job < CONFIG_JOB_MAX;
    config->job = is_word ? job : "";
    if (!is_word && config->bad == NULL)
        config->bad = "SHUNT_JOB";
}

static void config_read_static(struct config *config, char *const environment[])
{
    config->statics = CONFIG_STATIC_SERVE;
    config->static_text = config_value(environment, "SHUNT_STATIC", "");
    config->static_helper = config_value(environment, "SHUNT_STATIC_HELPER", NULL);
    if (config->static_text[0] != '\0' && config_static_parse(config->static_text, &config->statics) != 0 &&
        config->bad == NULL)
        config->bad = "SHUNT_STATIC";
}

void config_read(struct config *config, char *const environment[])
{
    uint64_t full = 0, deadline = 30, stale = 15, quiet = 10;
    *config = (struct config){0};
    config->roots = config_value(environment, "SHUNT_ROOT", NULL);
    config->root_ids = config_value(environment, "SHUNT_ROOT_ID", "");
    config->node = config_value(environment, "SHUNT_NODE", NULL);
    config->slurm_node = config_value(environment, "SLURMD_NODENAME", NULL);
    config_read_job(config, environment);
    config_read_static(config, environment);
    config->served = config_value(environment, "SHUNT_SERVED", NULL) != NULL;
    config->fabric = config_value(environment, "SHUNT_FABRIC", CONFIG_FABRIC);
    config->run_base = config_value(environment, "SHUNT_RUN_DIR", "/dev/shm");
    if (config->run_base[0] != '/') { /* the daemon and each program would look for it somewhere else */
        config->run_base = "/dev/shm";
        config->bad = "SHUNT_RUN_DIR";
    }
    config->catalogue_base = config_value(environment, "SHUNT_CATALOGUE_DIR", NULL);
    if (config->catalogue_base != NULL && config->catalogue_base[0] != '/')
        config->bad = "SHUNT_CATALOGUE_DIR";
    config->preload = config_value(environment, "LD_PRELOAD", NULL);
    const char *placement = config_value(environment, "SHUNT_PLACEMENT", "auto");
    if (config_placement_parse(placement, &config->placement) != 0)
        config->bad = "SHUNT_PLACEMENT";
    config_read_number(config, environment, "SHUNT_LEAF_FULL", UINT32_MAX, &full);
    config_read_number(config, environment, "SHUNT_DEADLINE", 86400, &deadline);
    config_read_number(config, environment, "SHUNT_STALE", 86400, &stale);
    config_read_number(config, environment, "SHUNT_CATALOGUE_QUIET", 86400, &quiet);
    const char *limit = config_value(environment, "SHUNT_INDEX_LIMIT", NULL);
    if (limit != NULL && config_size_parse(limit, CONFIG_INDEX_LEAST, &config->index_limit) != 0)
        config->bad = "SHUNT_INDEX_LIMIT";
    config->catalogue_quiet = quiet * CLOCK_SECOND;
    config->leaf_full = (uint32_t)full;
    config->deadline = deadline * CLOCK_SECOND;
    config->stale = stale * CLOCK_SECOND;
}

static const size_t config_texts[] = {
    offsetof(struct config, roots),         offsetof(struct config, root_ids), offsetof(struct config, node),
    offsetof(struct config, slurm_node),    offsetof(struct config, job),      offsetof(struct config, catalogue_base),
    offsetof(struct config, run_base),      offsetof(struct config, preload),  offsetof(struct config, static_text),
    offsetof(struct config, static_helper), offsetof(struct config, fabric),   offsetof(struct config, bad),
};
#define CONFIG_TEXTS (sizeof config_texts / sizeof *config_texts)

static const char **config_text(struct config *config, size_t which)
{
    return (const char **)(void *)((char *)config + config_texts[which]);
}

size_t config_texts_size(struct config *config)
{
    size_t size = 0;
    for (size_t i = 0; i < CONFIG_TEXTS; i++)
        if (*config_text(config, i) != NULL)
            size += strlen(*config_text(config, i)) + 1;
    return size;
}

void config_move_texts(struct config *config, char *room)
{
    for (size_t i = 0; i < CONFIG_TEXTS; i++) {
        const char **text = config_text(config, i);
        if (*text == NULL)
            continue;
        const size_t size = strlen(*text) + 1;
        *text = memcpy(room, *text, size);
        room += size;
    }
}
