/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/state.h"

/* Common memory lies after all other, so that the large tables at the struct's end separate nothing: what is written at a
 * process's start is on fewer pages. */
__attribute__((common)) struct shim_state shim_state;
__thread struct shim_thread shim_thread;
