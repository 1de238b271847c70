/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What libc reads when it first converts between character sets is where it finds it. Not callable in a signal handler. */
void wrap_files_prepare_conversions(void);
