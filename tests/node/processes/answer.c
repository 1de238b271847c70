/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A shared object to be loaded. */

int answer(void);
__attribute__((visibility("default"))) int answer(void)
{
    return 42;
}
