/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A path that is seen from a descriptor says nothing by its words: its parent says whether it may be ours. */

#include "shim/target.h"

#include <errno.h>
#include <fcntl.h>

#include "base/sys.h"
#include "shim/beside.h"
#include "shim/dead_end.h"
#include "shim/interrupts.h"
#include "shim/root_of.h"

int target_see_parent(struct scratch *s, int at, bool may_pin)
{
    const char *text = s->text[0];
    const int pin = may_pin && target_pin_is_likely() && !interrupts_may_do_harm()
                        ? sys_openat(at, text, O_PATH | O_DIRECTORY | O_CLOEXEC, 0)
                        : -1;
    const int code = pin >= 0 ? root_of_see(s, pin, "", AT_EMPTY_PATH) : root_of_see(s, at, text, 0);
    s->seen.pin = pin < 0 ? -1 : pin;
    return code;
}

void target_give_seen(struct scratch *s)
{
    if (s != NULL && s->seen.pin >= 0)
        sys_close(s->seen.pin);
    scratch_give(s);
}

bool target_has_no_name(const struct path_parts *parts)
{
    return parts->last == PATH_NONE || (parts->last == PATH_DOTS && parts->parent_length == 0) ||
           parts->length > RECORD_NAME_MAX || parts->parent_length + parts->length >= PATH_MAX;
}

/* Where a link would be followed: what it leads to is to be looked for. */
static inline bool target_first_look_ends(struct scratch *s)
{
    const unsigned want = s->look.want;
    if (!(want & (TARGET_MAKES | TARGET_ALIAS)) || s->look.parts.last != PATH_NAME)
        return true;
    if (s->look.parts.slash)
        return want & TARGET_MAKES;
    return !(want & TARGET_FOLLOW) || sys_readlinkat(s->look.at, s->look.path, s->real, PATH_MAX) < 0;
}

static inline bool target_first_look_is_beside(struct scratch *s)
{
    if (s->seen.pin >= 0)
        return beside_is_directory(s, s->seen.pin, "", 0);
    return beside_is_directory(s, s->look.at, s->look.parts.parent_length == 0 ? "" : s->text[0], 0);
}

/* Of the parent, for which `code` was the answer. */
static bool target_first_look_judges(struct scratch *s, int code)
{
    if (code == -ENOENT && s->look.parts.parent_length > 0)
        return dead_end(s->look.at, s->look.path, s->look.want);
    if (code != 0) /* the native call meets the same error, or this says nothing of where it leads */
        return sys_is_about_path(code) && !sys_may_be_refused(code);
    if (s->look.parts.last == PATH_DOTS)
        return true;
    return target_first_look_is_beside(s) && target_first_look_ends(s);
}

/* Nothing but the scratch stands on the stack of this one while the next is at work. Gives it back unless it has been handed
 * on: then it is in *seen. */
static bool target_first_look_with(struct scratch *s, struct scratch **seen)
{
    path_parent_text(s->look.path, s->look.parts.parent_length, s->text[0]);
    const int code = target_see_parent(s, s->look.at, s->look.want & TARGET_MAKES);
    const bool is_foreign = target_first_look_judges(s, code);
    if (is_foreign || code != 0 || seen == NULL)
        target_give_seen(s);
    else
        *seen = s;
    return is_foreign;
}

bool target_first_look(int at, const char *path, unsigned want, struct scratch **seen)
{
    struct scratch *s = target_way_changes() ? NULL : scratch_take();
    if (s == NULL)
        return false;
    s->seen.pin = -1;
    s->look.at = at;
    s->look.path = path;
    s->look.want = want;
    s->look.is_at_parent = true;
    path_split(&s->look.parts, path);
    if (!target_has_no_name(&s->look.parts))
        return target_first_look_with(s, seen);
    scratch_give(s);
    return true;
}
