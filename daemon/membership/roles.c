/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/roles.h"

bool roles_is_home(uint8_t part)
{
    return part == SESSION_HOME || part == SESSION_LEAVING || part == SESSION_COMING;
}

bool roles_is_lost(uint8_t part)
{
    return part == SESSION_LOST;
}

static bool roles_was_home(uint8_t part)
{
    return part == SESSION_HOME || part == SESSION_LEAVING || part == SESSION_GOING;
}

static bool roles_is_moving(uint8_t part)
{
    return part == SESSION_COMING || part == SESSION_GOING;
}

static bool roles_is_leaving(uint8_t part)
{
    return part == SESSION_LEAVING || part == SESSION_GOING || part == SESSION_GONE;
}

static size_t roles_list(const struct session *session, bool (*is)(uint8_t), uint16_t *to)
{
    size_t count = 0;
    for (size_t i = 0; i < session->count; i++)
        if (is(session->members[i].home))
            to[count++] = session->members[i].number;
    return count;
}

static bool roles_anybody(const struct session *session, bool (*is)(uint8_t))
{
    for (size_t i = 0; i < session->count; i++)
        if (is(session->members[i].home))
            return true;
    return false;
}

bool roles_are_moving(const struct session *session)
{
    return roles_anybody(session, roles_is_moving);
}

bool roles_are_leaving(const struct session *session)
{
    return roles_anybody(session, roles_is_leaving);
}

bool roles_have_lost(const struct session *session)
{
    return roles_anybody(session, roles_is_lost);
}

/* The first of the members that were homes sees a migration through; where none is left, of those that are to be. */
uint16_t roles_first(const struct session *session)
{
    uint16_t homes[SESSION_MEMBERS_MAX];
    return roles_list(session, roles_was_home, homes) > 0 || roles_list(session, roles_is_home, homes) > 0 ? homes[0] : 0;
}

/* A home has died: none of those that are to be homes was one before. */
bool roles_begin_recovery(const struct session *session)
{
    uint16_t before[SESSION_MEMBERS_MAX];
    return roles_are_moving(session) && roles_list(session, roles_was_home, before) == 0;
}

void roles_finish(struct session *session)
{
    for (size_t i = 0; i < session->count; i++) {
        uint8_t *part = &session->members[i].home;
        *part = *part == SESSION_COMING ? SESSION_HOME : *part == SESSION_GOING ? SESSION_GONE : *part;
    }
}

/* Which members become homes, which cease to be. False: nothing changes. */
bool roles_change(struct session *session)
{
    bool stays = false, comes = false, goes = false;
    for (size_t i = 0; i < session->count; i++) {
        const struct session_member *member = &session->members[i];
        comes |= member->home == SESSION_GUEST && member->address_size > 0;
        goes |= member->home == SESSION_LEAVING;
        stays |= member->home == SESSION_HOME;
    }
    for (size_t i = 0; i < session->count; i++) {
        struct session_member *member = &session->members[i];
        if (member->home == SESSION_GUEST && member->address_size > 0)
            member->home = SESSION_COMING;
        if (member->home == SESSION_LEAVING)
            member->home = stays || comes ? SESSION_GOING : SESSION_GONE;
    }
    return comes || goes;
}

/* A home has died. Nothing is handed over: all that are homes from now on were none before. */
void roles_set_recovery(struct session *session)
{
    roles_change(session);
    for (size_t i = 0; i < session->count; i++) {
        uint8_t *part = &session->members[i].home;
        *part = *part == SESSION_HOME ? SESSION_COMING : *part == SESSION_GOING ? SESSION_GONE : *part;
    }
}

void roles_keep(const struct session *session, uint8_t parts[SESSION_MEMBERS_MAX])
{
    for (size_t i = 0; i < session->count; i++)
        parts[i] = session->members[i].home;
}

void roles_restore(struct session *session, const uint8_t parts[SESSION_MEMBERS_MAX])
{
    for (size_t i = 0; i < session->count; i++)
        session->members[i].home = parts[i];
}

size_t roles_now(const struct session *session, uint16_t *to)
{
    return roles_list(session, roles_is_home, to);
}

size_t roles_before(const struct session *session, uint16_t *to)
{
    return roles_list(session, roles_was_home, to);
}
