/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "membership/roles.h"

#include <criterion/criterion.h>
#include <string.h>

static struct session_member members[8];
static struct session session = {.members = members};

/* One word for each member, as epochs have them; `here` is one who can be reached. */
static void roles_are(const char *words)
{
    char text[128], *rest = text;
    strcpy(text, words);
    session.count = 0;
    for (char *word; (word = strsep(&rest, " ")) != NULL; session.count++) {
        struct session_member *member = &members[session.count];
        *member = (struct session_member){.number = (uint16_t)(session.count + 1), .address_size = 1};
        if (strcmp(word, "no") == 0)
            member->address_size = 0;
        while (strcmp(word, "no") != 0 && strcmp(word, "here") != 0 && strcmp(word, session_part_word(member->home)) != 0)
            cr_assert_lt(++member->home, SESSION_PARTS, "%s", word);
    }
}

static const char *roles_words(void)
{
    static char text[128];
    text[0] = '\0';
    for (size_t i = 0; i < session.count; i++) {
        if (i > 0)
            strcat(text, " ");
        strcat(text, session_part_word(members[i].home));
    }
    return text;
}

static const char *roles_numbers(size_t (*list)(const struct session *, uint16_t *))
{
    static char text[64];
    uint16_t to[SESSION_MEMBERS_MAX];
    size_t count = list(&session, to);
    for (size_t i = 0; i < count; i++)
        text[i] = (char)('0' + to[i]);
    text[count] = '\0';
    return text;
}

Test(parts, who_comes_takes_over_and_who_wants_to_end_hands_over)
{
    roles_are("yes here no leaving yes");
    cr_assert_not(roles_are_moving(&session));
    cr_assert(roles_change(&session));
    cr_assert_str_eq(roles_words(), "yes coming no going yes");
    cr_assert(roles_are_moving(&session));
    cr_assert_not(roles_begin_recovery(&session));
    cr_assert_str_eq(roles_numbers(roles_before), "145");
    cr_assert_str_eq(roles_numbers(roles_now), "125");
    cr_assert_eq(roles_first(&session), 1);
    roles_finish(&session);
    cr_assert_str_eq(roles_words(), "yes yes no gone yes");
    cr_assert_not(roles_change(&session), "all is as it is to be");
}

Test(parts, the_last_one_has_nobody_to_hand_over_to)
{
    roles_are("no leaving leaving");
    cr_assert(roles_change(&session));
    cr_assert_str_eq(roles_words(), "no gone gone");
    cr_assert_eq(roles_first(&session), 0);
}

Test(parts, without_a_home_nobody_was_one)
{
    roles_are("lost yes leaving going here coming no");
    roles_set_recovery(&session);
    cr_assert_str_eq(roles_words(), "lost coming gone gone coming coming no",
                     "a member that wanted to end has nothing to hand over");
    cr_assert(roles_begin_recovery(&session));
    cr_assert_str_eq(roles_numbers(roles_before), "");
    cr_assert_str_eq(roles_numbers(roles_now), "256");
    cr_assert_eq(roles_first(&session), 2, "of those that are to be");
    roles_finish(&session);
    cr_assert_str_eq(roles_words(), "lost yes gone gone yes yes no", "the lost one is dropped by the member that fences it");
}

/* Of which parts is the question true, if one member has it next to a guest and a home? */
static const char *parts_of(bool (*question)(const struct session *))
{
    static char text[128];
    text[0] = '\0';
    for (uint8_t part = 0; part < SESSION_PARTS; part++) {
        roles_are("no yes no");
        members[2].home = part;
        if (question(&session))
            strcat(strcat(text, session_part_word(part)), " ");
    }
    return text;
}

Test(parts, one_member_is_enough_to_say_what_is_under_way)
{
    cr_assert_str_eq(parts_of(roles_are_moving), "coming going ");
    cr_assert_str_eq(parts_of(roles_are_leaving), "leaving going gone ");
    cr_assert_str_eq(parts_of(roles_have_lost), "lost ");
    roles_are("yes gone no");
    cr_assert(roles_are_leaving(&session), "wherever it stands among the members");
    session.count = 0;
    cr_assert_not(roles_are_leaving(&session) || roles_have_lost(&session) || roles_are_moving(&session));
}

Test(parts, who_is_lost_is_home_of_nothing)
{
    roles_are("lost yes");
    cr_assert_str_eq(roles_numbers(roles_now), "2");
    cr_assert_str_eq(roles_numbers(roles_before), "2");
    cr_assert_not(roles_change(&session));
}
