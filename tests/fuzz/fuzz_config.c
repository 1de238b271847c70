/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Input: an environment, a variable a line. */

#include "config/config.h"
#include "fuzz.h"

#define MOST 32

static void try_value(const char *text)
{
    static const uint64_t limits[] = {1, 9, 10, 86400, UINT32_MAX, UINT64_MAX};
    enum config_placement placement;
    uint64_t number;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        fuzz_must(config_number_parse(text, limits[i], &number) != 0 || (number >= 1 && number <= limits[i]));
    if (config_placement_parse(text, &placement) == 0)
        fuzz_must(placement == CONFIG_AUTO || placement == CONFIG_BRANCH);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *at = data, *end = data + size;
    char *environment[MOST + 1];
    struct config config;
    size_t count = 0;
    while (at < end && count < MOST)
        environment[count++] = fuzz_line(&at, end);
    environment[count] = NULL;
    config_read(&config, environment);
    fuzz_must(config.run_base != NULL && config.run_base[0] != '\0' && config.deadline > 0);
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(environment[i], '=');
        try_value(equals != NULL ? equals + 1 : environment[i]);
        free(environment[i]);
    }
    return 0;
}
