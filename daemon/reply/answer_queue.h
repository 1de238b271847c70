/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Answers that go out together, at the end of a batch. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "request/request.h"

struct queued {
    uint32_t lane;
    uint64_t client;
    uint32_t tag;
    uint32_t size;
    uint8_t bytes[REQUEST_ANSWER_MAX];
};

struct serve_queue {
    size_t count, room;
    struct queued *answers;
};

int queue_create(struct serve_queue **);
void queue_destroy(struct serve_queue *);
/* Room for one more, or NULL. */
struct queued *queue_add(struct serve_queue *);
