/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Says on standard error if a root that nobody serves holds files of directories that are gone, or something that may be a
 * branch or a mirror under another name: before a session starts. Quiet if there are none, and of files if that is not known
 * after two seconds; `shunt fsck` looks at all. */
void orphans_report(const char *root);
