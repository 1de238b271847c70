/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The helper is two processes. One answers; the other does nothing but wait for its end, and has the listener too. If the
 * first one dies, the second answers every call with EIO, those that were under way included: never does one go on in the trunk
 * alone. If both are killed, the kernel answers with ENOSYS. */

#include "config/config.h"

/* Starts the helper of this process, which is no child of it, and waits until it is there. A socket: the listener is to be sent
 * there. Or -errno. */
int guard_start(const struct config *);
/* Sends it, and waits until calls are answered. 0 or -errno. Closes both. */
int guard_hand_over(int socket, int listener);
