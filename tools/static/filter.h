/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The filter of this thread, and of all that it starts: the calls of calls.h wait for an answer of the listener's. A call that
 * is not among them costs nothing that can be measured (the kernel keeps a bitmap of them). A process takes no filter back.
 *
 * The listener's descriptor, close-on-exec; or -errno: EBUSY where there is a listener already. Without CAP_SYS_ADMIN it sets
 * no_new_privs, as the kernel demands. */
int filter_install(void);
