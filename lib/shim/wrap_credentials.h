/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Before a system call that changes the identity of this process; async-signal-safe. */
void credentials_prepare(void);
