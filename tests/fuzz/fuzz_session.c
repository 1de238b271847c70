/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <stdlib.h>

#include "fuzz.h"
#include "session/session.h"

static void must_be_whole(const struct session *session)
{
    uint16_t before = 0;
    fuzz_must(session->id != 0 && session->founded > 0 && session->founded <= session->epoch);
    for (size_t i = 0; i < session->count; i++) {
        const struct session_member *member = &session->members[i];
        fuzz_must(member->number > before && member->number < session->next && member->pid > 0);
        fuzz_must(layout_node_is_valid(member->node, strlen(member->node)));
        before = member->number;
    }
}

static void must_be_equal(const struct session_member *one, const struct session_member *other)
{
    fuzz_must(one->number == other->number && one->pid == other->pid && one->home == other->home);
    fuzz_must(strcmp(one->run_dir, other->run_dir) == 0 && strcmp(one->branch, other->branch) == 0);
    fuzz_must(one->address_size == other->address_size && memcmp(one->address, other->address, one->address_size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int count = session_count((const char *)data, size);
    fuzz_must(count < 0 || (size_t)count <= size);
    if (count < 0)
        return 0;
    size_t room = (size_t)count, most = session_text_max(room);
    struct session session = {.members = malloc(room * sizeof *session.members + 1), .room = room};
    struct session again = {.members = malloc(room * sizeof *again.members + 1), .room = room};
    char *text = malloc(most), words[512];
    if (session_parse(&session, (const char *)data, size) == 0) {
        must_be_whole(&session);
        ssize_t length = session_format(&session, text, most);
        fuzz_must(length > 0 && session_parse(&again, text, (size_t)length) == 0);
        fuzz_must(again.id == session.id && again.epoch == session.epoch && again.count == session.count);
        for (size_t i = 0; i < session.count; i++)
            must_be_equal(&session.members[i], &again.members[i]);
        session_describe(&session, NULL, words, sizeof words);
    }
    free(session.members);
    free(again.members);
    free(text);
    return 0;
}
