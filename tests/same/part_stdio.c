/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* fopen and freopen in all their modes. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

static const char *const modes[] = {"r",  "w", "a", "r+", "w+",      "a+",       "wx",     "w+x", "rb",     "re",
                                    "ae", "z", "",  "rx", "wbbbbb+", "wbbbbbb+", "rbcme+", "r,+", "wbbbbx", "wbbbbbbx"};

static void use_stream(FILE *stream)
{
    char text[8];
    size_t count = fread(text, 1, sizeof text, stream);
    detail(" at %ld read", ftell(stream));
    detail_bytes(text, count);
    clearerr(stream);
    fseek(stream, 0, SEEK_CUR);
    size_t wrote = fwrite("more", 1, 4, stream);
    detail(" wrote %zu flushed %d fd-flags %d", wrote, fflush(stream), fcntl(fileno(stream), F_GETFD));
}

static long stdio_streamed(FILE *stream)
{
    if (!stream)
        return -1;
    use_stream(stream);
    fclose(stream);
    errno = 0;
    return 0;
}

static long by_fopen(const struct place *place, long mode)
{
    detail(" \"%s\"", modes[mode]);
    return stdio_streamed(fopen(place->path, modes[mode]));
}

static long by_fopen64(const struct place *place, long mode)
{
    detail(" \"%s\"", modes[mode]);
    return stdio_streamed(fopen64(place->path, modes[mode]));
}

static FILE *some_stream(void)
{
    FILE *stream = fopen("/dev/null", "r");
    if (!stream)
        give_up("cannot open", "/dev/null");
    return stream;
}

static long by_freopen(const struct place *place, long mode)
{
    FILE *stream = some_stream();
    int fd = fileno(stream);
    errno = 0;
    FILE *again = freopen(place->path, modes[mode], stream);
    detail(" \"%s\"", modes[mode]);
    if (again)
        detail(" %s stream, %s descriptor", again == stream ? "same" : "another", fileno(again) == fd ? "same" : "another");
    return stdio_streamed(again);
}

static long by_freopen64(const struct place *place, long mode)
{
    errno = 0;
    return stdio_streamed(freopen64(place->path, modes[mode], some_stream()));
}

#define STDIO (CALL_CHANGES | CALL_WAITS | CALL_NO_NULL)

void part_stdio(void)
{
    for (long mode = 0; mode < (long)(sizeof modes / sizeof *modes); mode++) {
        const struct call calls[] = {
            {"fopen", STDIO, by_fopen, mode},
            {"freopen", STDIO, by_freopen, mode},
        };
        CASES(calls, false);
    }
    static const struct call others[] = {
        {"fopen64(w+)", STDIO, by_fopen64, 4},
        {"freopen64(r)", STDIO, by_freopen64, 0},
    };
    CASES(others, false);
}
