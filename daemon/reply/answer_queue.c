/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "reply/answer_queue.h"

#include <errno.h>
#include <stdlib.h>

int answer_queue_create(struct answer_queue **to)
{
    *to = calloc(1, sizeof **to);
    return *to != NULL ? 0 : -ENOMEM;
}

void answer_queue_destroy(struct answer_queue *queue)
{
    if (queue == NULL)
        return;
    free(queue->answers);
    free(queue);
}

struct queued *answer_queue_add(struct answer_queue *queue)
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
