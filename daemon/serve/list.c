/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* LIST: the names of a directory for who cannot look into this index, a page at a time. In the order of their
 * hashes, so that a name that is there throughout is told exactly once, whatever comes and goes meanwhile. */

#include "request/request.h"
#include "serve/serve.h"
#include "wire/page.h"

struct filling {
    char page[REQUEST_TEXT_MAX];
    size_t used;
};

/* 1: it does not fit any more. */
static int put(void *context, uint64_t hash, const char *name, size_t length,
               const struct record_entry *entry)
{
    struct filling *filling = context;
    const struct page_name one = {.hash = hash, .name = name, .length = length, .entry = *entry};
    return page_add(filling->page, sizeof filling->page, &filling->used, &one) ? 0 : 1;
}

int serve_list(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    struct filling filling = {.used = 0};
    int how;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    int code = index_list(shuntd->index, dir->id, request->message.child.ino, put, &filling);
    if (code < 0)
        return code;
    answer->result = code == 1 ? MESSAGE_MORE : 0;
    answer->text = filling.page;
    answer->text_length = (uint16_t)filling.used;
    code = serve_answer(shuntd, request, answer);
    return code == 0 ? SERVE_SILENT : code;
}
