/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/birth.h"

#include <dirent.h>
#include <errno.h>

#include "base/sys.h"

int birth_reserve(struct target *t, uint8_t type, uint16_t flags)
{
    struct message reserve = {
        .type = MESSAGE_RESERVE, .flags = flags, .entry[0] = {.type = type, .state = RECORD_PENDING}};
    int code = target_ask(t, &reserve);
    const struct message *answer = &t->scratch->answer.message;
    if (code == 0)
        return target_place_at(t, answer->name[0], answer->name_length[0]);
    if (code != MESSAGE_EXISTS)
        return code < 0 ? code : -EIO;
    code = target_look(t);
    return code == 0 ? -EAGAIN : code;
}

void birth_confirm(struct target *t, const struct statx *stat)
{
    struct message confirm = {.type = MESSAGE_CONFIRM,
                              .entry[0] = {.type = (uint8_t)(stat->stx_mode >> 12 & 15),
                                           .state = RECORD_LIVE,
                                           .ino = stat->stx_ino}};
    if (confirm.entry[0].type == DT_DIR)
        confirm.child = dirid_of(stat);
    target_tell(t, &confirm);
}

void birth_withdraw(struct target *t)
{
    struct message withdraw = {.type = MESSAGE_WITHDRAW};
    target_tell(t, &withdraw);
}
