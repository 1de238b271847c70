/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "home/sequence.h"

#include <string.h>

#define DIGITS_MAX 18 /* such a number, and some steps more, are below 2^63 */

static bool sequence_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t sequence_count_digits(const char *name, size_t length, size_t at)
{
    size_t end = at;
    while (end < length && sequence_is_digit(name[end]))
        end++;
    return end - at;
}

static int64_t sequence_number_at(const char *at, size_t digits)
{
    int64_t number = 0;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (at[i] - '0');
    return number;
}

/* Where the number begins in which they differ first, if they do in one. */
static size_t sequence_find_number(const struct sequence *before, const char *name, size_t length)
{
    size_t at = 0;
    while (at < before->length && at < length && before->name[at] == name[at])
        at++;
    while (at > 0 && sequence_is_digit(name[at - 1]))
        at--;
    return at;
}

static bool sequence_is_padded(const char *digits, size_t count)
{
    return count > 1 && digits[0] == '0';
}

/* By which step a name follows another, 0: it does not; sets where its number is. */
static int64_t sequence_step_to(struct sequence *next, const struct sequence *before)
{
    const size_t at = sequence_find_number(before, next->name, next->length);
    const size_t count = sequence_count_digits(next->name, next->length, at);
    const size_t old_count = sequence_count_digits(before->name, before->length, at);
    const size_t rest = next->length - at - count;
    if (count == 0 || old_count == 0 || count > DIGITS_MAX || old_count > DIGITS_MAX ||
        rest != before->length - at - old_count || memcmp(next->name + at + count, before->name + at + old_count, rest) != 0)
        return 0;
    next->padded = sequence_is_padded(next->name + at, count) || sequence_is_padded(before->name + at, old_count);
    if (next->padded && count != old_count)
        return 0;
    next->at = (uint16_t)at;
    next->digits = (uint16_t)count;
    next->number = sequence_number_at(next->name + at, count);
    return next->number - sequence_number_at(before->name + at, old_count);
}

unsigned sequence_add(struct sequence *sequence, const char *name, size_t length)
{
    struct sequence next = {.length = (uint16_t)length};
    memcpy(next.name, name, length);
    next.step = sequence_step_to(&next, sequence);
    if (next.step != 0 && next.step == sequence->step && next.at == sequence->at)
        next.run = sequence->run + 1;
    *sequence = next;
    return next.run;
}

/* The digits of a number, at least so many: how many, 0: they are too many. */
static size_t sequence_put_number(char to[DIGITS_MAX], uint64_t number, size_t least)
{
    char digits[DIGITS_MAX];
    size_t count = 0;
    for (; (number > 0 || count < least) && count < DIGITS_MAX; number /= 10)
        digits[count++] = (char)('0' + number % 10);
    for (size_t i = 0; i < count; i++)
        to[i] = digits[count - 1 - i];
    return number == 0 ? count : 0;
}

size_t sequence_predict(const struct sequence *sequence, unsigned ahead, char to[RECORD_NAME_MAX])
{
    const char *behind = sequence->name + sequence->at + sequence->digits;
    const size_t rest = sequence->length - (size_t)sequence->at - sequence->digits;
    char digits[DIGITS_MAX];
    int64_t way, number;
    if (sequence->step == 0 || __builtin_mul_overflow(sequence->step, (int64_t)ahead, &way) ||
        __builtin_add_overflow(sequence->number, way, &number) || number < 0)
        return 0;
    const size_t count = sequence_put_number(digits, (uint64_t)number, sequence->padded ? sequence->digits : 1);
    if (count == 0 || sequence->at + count + rest > RECORD_NAME_MAX)
        return 0;
    memcpy(to, sequence->name, sequence->at);
    memcpy(to + sequence->at, digits, count);
    memcpy(to + sequence->at + count, behind, rest);
    return sequence->at + count + rest;
}
