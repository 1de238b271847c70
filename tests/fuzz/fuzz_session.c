/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "fuzz.h"
#include "session/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[2 * PATH_MAX + 1024];
    struct session session, again;
    if (session_parse(&session, (const char *)data, size) != 0)
        return 0;
    fuzz_must(session.pid > 0 && layout_node_is_valid(session.node, strlen(session.node)));
    int length = session_format(&session, text, sizeof text);
    fuzz_must(length > 0 && session_parse(&again, text, (size_t)length) == 0);
    fuzz_must(again.id == session.id && again.pid == session.pid && again.since == session.since);
    fuzz_must(strcmp(again.run_dir, session.run_dir) == 0 && strcmp(again.branch, session.branch) == 0);
    session_describe(&session, text, sizeof text);
    return 0;
}
