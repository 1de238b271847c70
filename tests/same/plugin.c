/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A shared object to be loaded from beneath a root. */
int plugin_answer(void);

int plugin_answer(void)
{
    return 42;
}
