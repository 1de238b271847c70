/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Before a system call that changes who this process is; async-signal-safe. */
void credentials_prepare(void);
