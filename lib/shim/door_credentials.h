/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Before a system call that changes the user; async-signal-safe. */
void credentials_prepare(void);
