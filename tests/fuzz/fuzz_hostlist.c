/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Input: a list of hosts, which is read as a file of nodes, too. */

#include "fuzz.h"
#include "launch/hostlist.h"

static int fuzz_hostlist_look(void *context, const char *name)
{
    size_t *count = context, length = strlen(name);
    fuzz_must(length > 0 && length <= HOSTLIST_NAME_MAX && name[0] != '-');
    fuzz_must(strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == length);
    return ++*count == 1000 ? 1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count = 0;
    int answer = hostlist_expand((const char *)data, size, fuzz_hostlist_look, &count);
    fuzz_must(answer <= 0 || count == 1000);
    count = 0;
    answer = hostlist_lines((const char *)data, size, fuzz_hostlist_look, &count);
    fuzz_must(answer <= 0 || count == 1000);
    return 0;
}
