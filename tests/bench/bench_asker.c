/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* bench_asker DIRECTORY PROCESSES RUN_DIR WAITING: agents (workers.h) whose calls are questions to the daemon of that run
 * directory, about names that a process under shunt finds in the index by itself and so does not ask about. A call `waiting`
 * is so many questions in so many queue pairs, all of which lie there before the daemon looks at the first one. */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/adaptive_spin.h"
#include "base/sys.h"
#include "base/text.h"
#include "workers.h"
#include "request/request.h"
#include "request/channel.h"

#define DEADLINE (30 * CLOCK_SECOND)
#define PAUSE (10 * SPIN / 1000) /* us: too seldom for either side to spin */

static struct request_channel *channel;
static struct channel *doorbell; /* the same, to ring it oneself */
static struct dirid dir;
static unsigned waiting_at_once;

static struct channel *map_doorbell(const char *run_dir)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/channel", run_dir);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *mapped = fd != -1 ? mmap(NULL, sizeof *doorbell, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (mapped == MAP_FAILED)
        err(1, "%s", path);
    close(fd);
    return mapped;
}

static void asker_attach(int argc, char *argv[])
{
    struct statx stat;
    if (argc < 5)
        errx(2, "usage: bench_asker DIRECTORY PROCESSES RUN_DIR WAITING");
    errno = -request_attach(&channel, argv[3]);
    if (errno == 0)
        errno = -sys_statx(AT_FDCWD, argv[1], 0, STATX_INO | STATX_BTIME, &stat);
    if (errno != 0)
        err(1, "%s", argv[3]);
    dir = dirid_of(&stat);
    doorbell = map_doorbell(argv[3]);
    waiting_at_once = (unsigned)atoi(argv[4]);
}

static struct message lookup_of(const char *name)
{
    return (struct message){.type = MESSAGE_LOOKUP, .dir = dir, .name = message_text(name, strlen(name))};
}

/* The status of a call. */
static int asker_found(int code, int result)
{
    errno = code != 0 ? -code : result == MESSAGE_EXISTS ? 0 : ENOENT;
    return errno == 0 ? 0 : -1;
}

static int look_up(const char *name)
{
    const struct message lookup = lookup_of(name);
    int result, code = request_result(channel, &lookup, &result, DEADLINE);
    return asker_found(code, result);
}

static int make_lookup(const char *directory, const char *path)
{
    return look_up(strrchr(path, '/') + 1);
}

/* A process's name with that number, whatever the number in the path. */
static void asker_numbered(char name[NAME_MAX + 1], const char *path, unsigned number)
{
    const char *first = strrchr(path, '/') + 1;
    struct text text;
    text_init(&text, name, NAME_MAX + 1);
    text_bytes(&text, first, (size_t)(strrchr(first, '-') + 1 - first));
    text_number(&text, number, 10);
}

static int make_again(const char *directory, const char *path)
{
    char name[NAME_MAX + 1];
    asker_numbered(name, path, 0);
    return look_up(name);
}

/* Until the doorbell is rung the daemon sleeps, and is taken for awake: nobody rings. */
static void hold_doorbell(void)
{
    while (__atomic_load_n(&doorbell->asleep, __ATOMIC_SEQ_CST) == CHANNEL_AWAKE)
        usleep(PAUSE);
    usleep(PAUSE);
    __atomic_store_n(&doorbell->asleep, CHANNEL_AWAKE, __ATOMIC_SEQ_CST);
}

static void ring_doorbell(void)
{
    __atomic_add_fetch(&doorbell->doorbell, 1, __ATOMIC_SEQ_CST);
    sys_futex_wake(&doorbell->doorbell, 1);
}

struct waiting {
    const char *path;
    unsigned next, end; /* numbers of the names that are left to be asked for before the first answer is waited for */
    int status;
};

/* Each is asked while the one before it is on its way. */
static void ask_one_more(void *context)
{
    struct waiting *waiting = context;
    struct request_hold hold = {.meanwhile = ask_one_more, .context = waiting};
    struct request_answer answer;
    char name[NAME_MAX + 1];
    if (waiting->next == waiting->end) {
        ring_doorbell();
        return;
    }
    asker_numbered(name, waiting->path, waiting->next++);
    const struct message lookup = lookup_of(name);
    int code = request_hold(channel, &lookup, &answer, DEADLINE, &hold);
    request_let_go(&hold);
    if (asker_found(code, code == 0 ? answer.message.result : 0) != 0)
        waiting->status = -1;
}

static int make_waiting(const char *directory, const char *path)
{
    const unsigned row = (unsigned)atoi(strrchr(path, '-') + 1);
    struct waiting waiting = {.path = path, .next = row * waiting_at_once, .end = (row + 1) * waiting_at_once};
    hold_doorbell();
    ask_one_more(&waiting);
    return waiting.status;
}

int main(int argc, char *argv[])
{
    static const struct agents_call calls[] = {{"lookup", make_lookup}, {"again", make_again}, {"waiting", make_waiting}, {0}};
    return agents_main(argc, argv, calls, asker_attach);
}
