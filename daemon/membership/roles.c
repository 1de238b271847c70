/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/roles.h"

bool parts_is_home(uint8_t part)
{
    return part == SESSION_HOME || part == SESSION_LEAVING || part == SESSION_COMING;
}

bool parts_is_lost(uint8_t part)
{
    return part == SESSION_LOST;
}

static bool was_home(uint8_t part)
{
    return part == SESSION_HOME || part == SESSION_LEAVING || part == SESSION_GOING;
}

static bool is_moving(uint8_t part)
{
    return part == SESSION_COMING || part == SESSION_GOING;
}

static bool is_leaving(uint8_t part)
{
    return part == SESSION_LEAVING || part == SESSION_GOING || part == SESSION_GONE;
}

static size_t list(const struct session *session, bool (*is)(uint8_t), uint16_t *to)
{
    size_t count = 0;
    for (size_t i = 0; i < session->count; i++)
        if (is(session->members[i].home))
            to[count++] = session->members[i].number;
    return count;
}

static bool anybody(const struct session *session, bool (*is)(uint8_t))
{
    for (size_t i = 0; i < session->count; i++)
        if (is(session->members[i].home))
            return true;
    return false;
}

bool parts_are_moving(const struct session *session)
{
    return anybody(session, is_moving);
}

bool parts_are_leaving(const struct session *session)
{
    return anybody(session, is_leaving);
}

bool parts_have_lost(const struct session *session)
{
    return anybody(session, parts_is_lost);
}

/* The first of those who were homes sees a move through; where none is left, of those who are to be. */
uint16_t parts_first(const struct session *session)
{
    uint16_t homes[SESSION_MEMBERS_MAX];
    return list(session, was_home, homes) > 0 || list(session, parts_is_home, homes) > 0 ? homes[0] : 0;
}

/* A home has died: none of those that are to be homes was one before. */
bool parts_begin_anew(const struct session *session)
{
    uint16_t before[SESSION_MEMBERS_MAX];
    return parts_are_moving(session) && list(session, was_home, before) == 0;
}

void parts_finish(struct session *session)
{
    for (size_t i = 0; i < session->count; i++) {
        uint8_t *part = &session->members[i].home;
        *part = *part == SESSION_COMING ? SESSION_HOME : *part == SESSION_GOING ? SESSION_GONE : *part;
    }
}

/* Who comes, who goes. False: nothing changes. */
bool parts_change(struct session *session)
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

/* A home has died. Nobody hands anything over: all who are homes from now on were none before. */
void parts_set_anew(struct session *session)
{
    parts_change(session);
    for (size_t i = 0; i < session->count; i++) {
        uint8_t *part = &session->members[i].home;
        *part = *part == SESSION_HOME ? SESSION_COMING : *part == SESSION_GOING ? SESSION_GONE : *part;
    }
}

size_t parts_now(const struct session *session, uint16_t *to)
{
    return list(session, parts_is_home, to);
}

size_t parts_before(const struct session *session, uint16_t *to)
{
    return list(session, was_home, to);
}
