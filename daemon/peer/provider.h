/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* libfabric, loaded and opened: from a setting to an endpoint that can send and receive. For fabric.c. */

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

struct provider {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *peers;
    struct fid_cq *received; /* completions of receives; can be waited for */
    struct fid_cq *sent;     /* of sends; nobody is woken for them */
    struct fid_ep *endpoint;
    void (*free_info)(struct fi_info *);
};

/* Answers as fabric_open says. After an error there is nothing to be closed. */
int provider_open(struct provider *, const char *setting, size_t completions);
void provider_close(struct provider *);

/* What libfabric answered as 0, a positive answer, or -errno: its own codes lie after errno's. */
static inline long provider_code(long answer)
{
    return answer <= -FI_ERRNO_OFFSET ? -FI_EIO : answer;
}
