/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Answers that go out together, at the end of a batch. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "request/request.h"

struct queued {
    uint32_t qp;
    uint64_t client;
    uint32_t tag;
    uint32_t size;
    uint8_t bytes[REQUEST_ANSWER_MAX];
};

struct answer_queue {
    size_t count, room;
    struct queued *answers;
};

int answer_queue_create(struct answer_queue **);
void answer_queue_destroy(struct answer_queue *);
/* Room for one more, or NULL. */
struct queued *answer_queue_add(struct answer_queue *);
