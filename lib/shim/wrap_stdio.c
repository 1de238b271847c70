/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"
#include "shim/fdcache.h"
#include "shim/wrap.h"
#include "shim/wrap_files.h"
#include "shim/wrap_open.h"

#define MODIFIERS 6 /* so many letters after the first does fopen look at; fdopen at fewer */

#define ANY_FILE "/dev/null"

/* Newer libcs look at no letter after a comma, where a character set is named (glibc 2.41 does so, 2.36 does not). */
static bool wrap_stdio_ends_at_comma(void)
{
    const int saved = errno;
    FILE *file = REAL(fopen)(ANY_FILE, "r,+");
    const bool ends = file != NULL && (SYS3(SYS_fcntl, fileno(file), F_GETFL, 0) & O_ACCMODE) == O_RDONLY;
    if (file != NULL)
        fclose(file);
    errno = saved;
    return ends;
}

/* So many letters of a mode count for how a file is opened. */
static size_t wrap_stdio_letters(const char *mode)
{
    const size_t length = strnlen(mode, MODIFIERS + 1);
    const char *comma = memchr(mode, ',', length);
    const bool matters = comma != NULL && strpbrk(comma, "+xe") != NULL;
    return matters && wrap_stdio_ends_at_comma() ? (size_t)(comma - mode) : length;
}

/* The flags that fopen gives open (POSIX, and glibc's x and e). -1: no mode, which the real function is to
 * say. */
static int wrap_stdio_flags_of(const char *mode)
{
    int flags;
    switch (*mode) {
    case 'r':
        flags = 0;
        break;
    case 'w':
        flags = O_CREAT | O_TRUNC;
        break;
    case 'a':
        flags = O_CREAT | O_APPEND;
        break;
    default:
        return -1;
    }
    bool both = false;
    const size_t letters = wrap_stdio_letters(mode);
    for (size_t i = 1; i < letters; i++) {
        both |= mode[i] == '+';
        flags |= mode[i] == 'x' ? O_EXCL : mode[i] == 'e' ? O_CLOEXEC : 0;
    }
    return flags | (both ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY);
}

/* The same mode without x: the file has been made already. No letter comes to another place. */
static void wrap_stdio_without_x(const char *mode, char *to, size_t size)
{
    size_t length = 0;
    bool is_name = false; /* of a character set */
    for (; *mode != '\0' && length + 1 < size; mode++) {
        is_name = is_name || *mode == ',';
        to[length++] = *mode == 'x' && !is_name ? 'b' : *mode;
    }
    to[length] = '\0';
}

/* The same mode for fdopen, in as few letters as it looks at. */
static void wrap_stdio_short_mode(const char *mode, int flags, char to[8])
{
    *to++ = mode[0];
    if ((flags & O_ACCMODE) == O_RDWR)
        *to++ = '+';
    const size_t length = strnlen(mode, MODIFIERS + 1);
    if (memchr(mode, 'm', length) != NULL)
        *to++ = 'm';
    if (memchr(mode, 'c', length) != NULL)
        *to++ = 'c';
    *to = '\0';
}

/* freopen keeps its FILE, and of a character set fopen alone knows, so libc must open by itself: it is given another file, and
 * what it opened is replaced by the descriptor of the right one, which is opened once, as a new file may have to be, whose mode
 * forbids it. */
#define MODE_SIZE 64

/* As fopen and freopen do. */
static void wrap_stdio_go_to_end(int fd, int flags)
{
    if ((flags & (O_APPEND | O_ACCMODE)) == (O_APPEND | O_WRONLY))
        sys_lseek(fd, 0, SEEK_END);
}

/* By a copy, as freopen does: the stream keeps its number. */
static FILE *wrap_stdio_replace(FILE *stream, int fd, int flags)
{
    const int to = fileno(stream);
    long code = SYS3(SYS_dup3, fd, to, flags & O_CLOEXEC);
    if (code < 0) {
        fclose(stream);
        errno = (int)-code;
        return NULL;
    }
    wrap_stdio_go_to_end(to, flags);
    return stream;
}

static bool wrap_stdio_converts(const char *mode)
{
    return text_find(mode, ",ccs=") != NULL;
}

/* With the descriptor itself: to close any of the file would lose the locks that the process has there (fcntl). */
static FILE *wrap_stdio_converted(int fd, const char *mode)
{
    char plain[MODE_SIZE];
    wrap_stdio_without_x(mode, plain, sizeof plain);
    FILE *stream = REAL(fopen)(ANY_FILE, plain);
    int saved = errno;
    sys_close(stream != NULL ? fileno(stream) : fd);
    errno = saved;
    if (stream == NULL)
        return NULL;
    stream->_fileno = fd;
    wrap_stdio_go_to_end(fd, wrap_stdio_flags_of(mode));
    return stream;
}

/* The stream is made on the open descriptor: fdopen takes the same modes, but for a character set, and opens nothing. */
static FILE *wrap_stdio_stream_on(int fd, const char *mode)
{
    if (fd < 0) {
        errno = -fd;
        return NULL;
    }
    if (wrap_stdio_converts(mode))
        return wrap_stdio_converted(fd, mode);
    char plain[8];
    const int flags = wrap_stdio_flags_of(mode);
    wrap_stdio_short_mode(mode, flags, plain);
    wrap_stdio_go_to_end(fd, flags);
    FILE *stream = fdopen(fd, plain);
    if (stream == NULL)
        sys_close(fd);
    return stream;
}

typedef FILE *fopen_function(const char *, const char *);

/* More: flags of open that the mode does not have. */
static FILE *wrap_stdio_open_with(fopen_function *original, const char *path, const char *mode, int more)
{
    struct target *t = NULL;
    struct scratch *seen = NULL;
    int flags = mode != NULL && process_has_roots() ? wrap_stdio_flags_of(mode) : -1;
    if (flags != -1)
        flags |= more;
    int how = flags != -1 ? TARGET_FIND(t, seen, AT_FDCWD, path, wrap_open_want(flags)) : TARGET_FOREIGN;
    if (how == TARGET_MANAGED)
        return wrap_stdio_stream_on(operate_open(t, flags, 0666), mode);
    if (how < 0)
        return wrap_answer(how), NULL;
    FILE *stream = original(path, mode);
    if (stream == NULL && errno == ENOENT && flags != -1 && !(flags & O_CREAT) &&
        !target_is_dead_end(AT_FDCWD, path, wrap_open_want(flags)) &&
        target_find_alias(t = t != NULL ? t : TARGET_ROOM, AT_FDCWD, path, wrap_open_want(flags)) == TARGET_MANAGED)
        return wrap_stdio_stream_on(operate_open(t, flags, 0666), mode);
    return stream;
}

/* By the outermost call: it takes as much stack as a listing. */
static void wrap_stdio_prepare(const char *mode)
{
    if (mode != NULL && process_has_roots() && wrap_stdio_converts(mode))
        wrap_files_prepare_conversions();
}

static FILE *wrap_stdio_open_stream(fopen_function *original, const char *path, const char *mode)
{
    wrap_stdio_prepare(mode);
    return wrap_stdio_open_with(original, path, mode, 0);
}

WRAPPER FILE *fopen(const char *path, const char *mode)
{
    return wrap_stdio_open_stream(REAL(fopen), path, mode);
}

WRAPPER FILE *fopen64(const char *path, const char *mode)
{
    return wrap_stdio_open_stream(REAL(fopen64), path, mode);
}

FILE *_IO_fopen(const char *path, const char *mode);
WRAPPER FILE *_IO_fopen(const char *path, const char *mode)
{
    return wrap_stdio_open_stream(REAL(_IO_fopen), path, mode);
}

/* A stream that one thread uses, as libc makes it. */
static FILE *wrap_stdio_open_table(fopen_function *original, const char *path, const char *mode)
{
    FILE *stream = wrap_stdio_open_with(original, path, mode, O_CLOEXEC);
    if (stream != NULL)
        __fsetlocking(stream, FSETLOCKING_BYCALLER);
    return stream;
}

WRAPPER FILE *setmntent(const char *path, const char *mode)
{
    return wrap_stdio_open_table(REAL(setmntent), path, mode);
}

FILE *__setmntent(const char *path, const char *mode);
WRAPPER FILE *__setmntent(const char *path, const char *mode)
{
    return wrap_stdio_open_table(REAL(__setmntent), path, mode);
}

static FILE *wrap_stdio_reopen_ours(struct target *t, int flags, const char *mode, FILE *stream, size_t which)
{
    char plain[MODE_SIZE];
    int fd = operate_open(t, flags | O_CLOEXEC, 0666);
    if (fd < 0) {
        fclose(stream); /* as freopen does when it fails */
        errno = -fd;
        return NULL;
    }
    wrap_stdio_without_x(mode, plain, sizeof plain);
    FILE *again = which == 64 ? REAL(freopen64)(ANY_FILE, plain, stream) : REAL(freopen)(ANY_FILE, plain, stream);
    if (again != NULL)
        again = wrap_stdio_replace(again, fd, flags);
    int saved = errno;
    sys_close(fd);
    errno = saved;
    return again;
}

static FILE *wrap_stdio_reopen(const char *path, const char *mode, FILE *stream, size_t which)
{
    struct target *t = NULL;
    int flags = mode != NULL && process_has_roots() && process_check_path(path) == 0 ? wrap_stdio_flags_of(mode) : -1;
    int how = TARGET_FOREIGN;
    if (flags != -1 && !target_is_dead_end(AT_FDCWD, path, wrap_open_want(flags)))
        how = target_find_alias(t = TARGET_ROOM, AT_FDCWD, path, wrap_open_want(flags));
    if (how == TARGET_MANAGED)
        return wrap_stdio_reopen_ours(t, flags, mode, stream, which);
    if (how < 0) {
        fclose(stream);
        return wrap_answer(how), NULL;
    }
    return which == 64 ? REAL(freopen64)(path, mode, stream) : REAL(freopen)(path, mode, stream);
}

WRAPPER FILE *freopen(const char *path, const char *mode, FILE *stream)
{
    wrap_stdio_prepare(mode);
    return wrap_stdio_reopen(path, mode, stream, 0);
}

WRAPPER FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
    wrap_stdio_prepare(mode);
    return wrap_stdio_reopen(path, mode, stream, 64);
}
