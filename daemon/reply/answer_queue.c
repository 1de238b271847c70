/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "reply/answer_queue.h"

#include <errno.h>
#include <stdlib.h>

int queue_create(struct serve_queue **to)
{
    *to = calloc(1, sizeof **to);
    return *to != NULL ? 0 : -ENOMEM;
}

void queue_destroy(struct serve_queue *queue)
{
    if (queue == NULL)
        return;
    free(queue->answers);
    free(queue);
}

struct queued *queue_add(struct serve_queue *queue)
{
    if (queue->count == queue->room) {
        size_t room = queue->room > 0 ? queue->room * 2 : 16;
        struct queued *answers = realloc(queue->answers, room * sizeof *answers);
        if (answers == NULL)
            return NULL;
        queue->answers = answers;
        queue->room = room;
    }
    return &queue->answers[queue->count++];
}
