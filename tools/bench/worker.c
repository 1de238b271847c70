/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/worker.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/site.h"
#include "bench/talk.h"
#include "bench/work.h"

int worker(const struct command *command, int argc, char **argv)
{
    static struct talk_answer answer;
    struct talk_order order;
    if (argc != 2 || strlen(argv[1]) > SITE_TOP_MAX)
        return error_usage(command, "internal subcommand of 'shunt bench'");
    while (talk_receive(STDIN_FILENO, &order, sizeof order) == 0) {
        work_do(argv[1], STDIN_FILENO, &order, &answer);
        if (talk_send(STDIN_FILENO, &answer, sizeof answer) < 0)
            break;
    }
    return STATUS_OK;
}
