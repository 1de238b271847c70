/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "request/request.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/helper_process.h"
#include "base/clock.h"
#include "base/cache_line.h"
#include "base/hook.h"
#include "base/adaptive_spin.h"
#include "base/owner.h"
#include "base/sys.h"
#include "base/text.h"
#include "request/grant.h"
#include "request/lease_clock.h"
#include "request/channel.h"
#include "request/users.h"

#define QPS_HELD 256 /* as many threads of one process can be under way at once */
#define QPS_KEPT 8   /* of them for requests that end what others may be waiting for */
#define PULSE                                                                                                                  \
    (50 * CLOCK_MILLISECOND) /* a waiting client looks this often whether the daemon still lives                               \
                              */

enum { QP_FREE = 0, QP_BUSY, QP_GIVEN_UP };

/* The queue pairs this process has taken, in private memory; a thread has one while it is not free. */
struct held_qp {
    uint32_t busy;   /* one of the above */
    uint32_t number; /* 1 + the queue pair's, 0: not taken yet */
    uint32_t tag;    /* of its last request */
    uint32_t grant;  /* the slot after the grant that was taken last: the next one is likely to be there */
};

struct request_channel {
    struct channel *channel;
    pid_t owner;
    uint32_t given;            /* counts the queue pairs that were given back */
    uint32_t wanting;          /* threads that wait for one */
    bool full;                 /* there was no memory for the one that was claimed last */
    bool hints_tried;          /* for all location hints there is memory, or there was none when this process wanted it */
    struct adaptive_spin spin; /* before a thread goes to sleep */
    struct lease_clock lease_clock;
    struct held_qp held[QPS_HELD];
};

/* In two steps, since a path would take more room than a signal's stack has. */
static int request_open_channel(const char *run_dir)
{
    int dir = sys_openat(AT_FDCWD, run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0)
        return dir;
    int fd = sys_openat(dir, "channel", O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    sys_close(dir);
    return fd;
}

struct mapping {
    const char *run_dir;
    struct channel *channel;
};

static int request_map_channel(void *context)
{
    struct mapping *mapping = context;
    struct statx stat;
    int fd = request_open_channel(mapping->run_dir);
    if (fd < 0)
        return fd;
    int code = sys_statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &stat);
    if (code == 0 && stat.stx_size != CHANNEL_SIZE)
        code = -EPROTO;
    void *mapped = code == 0 ? sys_mmap(NULL, CHANNEL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;
    sys_close(fd);
    if (code == 0 && sys_is_error(mapped))
        code = (int)(long)mapped;
    if (code == 0)
        mapping->channel = mapped;
    return code;
}

/* Answers name files that will be opened: nobody else may have made what is mapped here. */
static int request_check_owner(const char *run_dir)
{
    struct statx stat;
    int code = sys_statx(AT_FDCWD, run_dir, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_MODE | STATX_UID, &stat);
    if (code != 0)
        return code;
    bool own = S_ISDIR(stat.stx_mode) && stat.stx_uid == owner_uid() && (stat.stx_mode & 077) == 0;
    return own ? 0 : -EPERM;
}

uint64_t request_pid_namespace(void)
{
    struct statx stat;
    return sys_statx(AT_FDCWD, "/proc/self/ns/pid", 0, STATX_INO, &stat) == 0 ? stat.stx_ino : 0;
}

void request_boot_id(char *id, size_t size)
{
    int fd = sys_openat(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC, 0);
    ssize_t length = fd >= 0 ? sys_read(fd, id, size - 1) : 0;
    if (fd >= 0)
        sys_close(fd);
    id[length > 0 ? length : 0] = '\0';
}

bool request_is_of_this_boot(const struct channel *channel)
{
    char boot[CHANNEL_BOOT];
    request_boot_id(boot, sizeof boot);
    return channel->boot[0] == '\0' || boot[0] == '\0' || strncmp(channel->boot, boot, sizeof boot) == 0;
}

/* One that has ended may still have a number, where nobody asks how it ended. */
static bool request_is_running(pid_t pid)
{
    struct pollfd end = {.fd = (int)SYS2(SYS_pidfd_open, pid, 0), .events = POLLIN};
    const struct timespec now = {0, 0};
    if (end.fd < 0)
        return end.fd != -ESRCH && end.fd != -EINVAL;
    bool has_ended = SYS5(SYS_ppoll, &end, 1, &now, NULL, 0) > 0;
    sys_close(end.fd);
    return !has_ended;
}

static pid_t request_supervisor_of(const struct channel *channel)
{
    pid_t pid = __atomic_load_n(&channel->supervisor, __ATOMIC_ACQUIRE);
    return pid > 0 && request_is_running(pid) ? pid : 0;
}

/* The supervisor has ended, too, and had not given up: a user of the daemon starts another one. */
static bool request_is_killed(const struct channel *channel, const char *run_dir)
{
    return __atomic_load_n(&channel->supervisor, __ATOMIC_ACQUIRE) > 0 && users_are_there(run_dir);
}

/* Will another daemon be there soon? */
static bool request_is_restarted(const struct channel *channel, const char *run_dir)
{
    return channel_has_crashed(channel) && (request_supervisor_of(channel) != 0 || request_is_killed(channel, run_dir));
}

static int request_check_channel(const struct channel *channel, const char *run_dir)
{
    if (!channel_is_known(channel))
        return -EPROTO;
    if (!request_is_of_this_boot(channel))
        return -EHOSTDOWN;
    const uint64_t namespace = request_pid_namespace();
    if (channel->pid_namespace != namespace)
        return !channel_is_alive(channel) ? -EHOSTDOWN : namespace != 0 ? -EXDEV : -ESRCH;
    return channel_is_alive(channel) ? 0 : request_is_restarted(channel, run_dir) ? -EINPROGRESS : -EHOSTDOWN;
}

int request_attach(struct request_channel **to, const char *run_dir)
{
    struct mapping mapping = {.run_dir = run_dir};
    int code = request_check_owner(run_dir);
    if (code == 0)
        code = request_map_channel(&mapping);
    if (code == -EMFILE)
        code = helper_run(request_map_channel, &mapping, -1);
    if (code != 0)
        return code;
    struct channel *channel = mapping.channel;
    struct request_channel *mine = NULL;
    code = request_check_channel(channel, run_dir);
    if (code == 0) {
        mine = sys_mmap(NULL, sizeof *mine, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        code = sys_is_error(mine) ? (int)(long)mine : 0;
    }
    if (code != 0) {
        sys_munmap(channel, CHANNEL_SIZE);
        return code;
    }
    mine->channel = channel;
    mine->owner = owner_pid();
    *to = mine;
    return 0;
}

static pid_t request_process_of(const char *run_dir, pid_t (*which)(const struct channel *))
{
    struct mapping mapping = {.run_dir = run_dir};
    if (request_check_owner(run_dir) != 0 || request_map_channel(&mapping) != 0)
        return 0;
    struct channel *channel = mapping.channel;
    const bool means_something =
        channel_is_known(channel) && request_is_of_this_boot(channel) && channel->pid_namespace == request_pid_namespace();
    const pid_t pid = means_something ? which(channel) : 0;
    sys_munmap(channel, CHANNEL_SIZE);
    return pid;
}

pid_t request_supervisor(const char *run_dir)
{
    return request_process_of(run_dir, request_supervisor_of);
}

pid_t request_daemon(const char *run_dir)
{
    return request_process_of(run_dir, channel_daemon);
}

pid_t request_serving_process(const char *run_dir)
{
    const pid_t supervisor = request_supervisor(run_dir);
    return supervisor != 0 ? supervisor : request_daemon(run_dir);
}

static pid_t request_former(const struct channel *channel)
{
    return channel_has_crashed(channel) ? __atomic_load_n(&channel->supervisor, __ATOMIC_ACQUIRE) : 0;
}

bool request_was_killed(const char *run_dir)
{
    return request_process_of(run_dir, request_former) != 0 && request_supervisor(run_dir) == 0;
}

int request_inherit(struct request_channel *mine)
{
    memset(mine->held, 0, sizeof mine->held);
    mine->given = mine->wanting = 0;
    mine->lease_clock = (struct lease_clock){0};
    mine->owner = owner_pid();
    const uint64_t namespace = request_pid_namespace(); /* 0: it cannot be known, as in a chroot without /proc */
    if (namespace != 0 && namespace != mine->channel->pid_namespace)
        return -EXDEV;
    return channel_is_alive(mine->channel) ? 0 : -EHOSTDOWN;
}

void request_abandon(struct request_channel *mine)
{
    sys_munmap(mine->channel, CHANNEL_SIZE);
    sys_munmap(mine, sizeof *mine);
}

uint64_t request_session(const struct request_channel *mine)
{
    return mine->channel->session;
}

struct dirid request_root(const struct request_channel *mine)
{
    return mine->channel->root;
}

bool request_is_alive(const struct request_channel *mine)
{
    return channel_is_alive(mine->channel);
}

uint32_t request_stalls(const struct request_channel *mine)
{
    return __atomic_load_n(&mine->channel->stalls, __ATOMIC_RELAXED);
}

bool request_has_lease(const struct request_channel *mine)
{
    uint64_t lease = __atomic_load_n(&mine->channel->lease, __ATOMIC_ACQUIRE);
    if (lease == CHANNEL_FOR_EVER)
        return true;
    const uint64_t now = clock_boot();
    return lease_clock_has(&mine->lease_clock, lease, now, clock_files());
}

bool request_has_redirected(const struct request_channel *mine)
{
    return __atomic_load_n(&mine->channel->redirected, __ATOMIC_RELAXED) != 0;
}

bool request_has_grants(const struct request_channel *mine)
{
    return __atomic_load_n(&mine->channel->granting, __ATOMIC_SEQ_CST) != 0;
}

bool request_is_home(const struct request_channel *mine, uint32_t shard)
{
    return (__atomic_load_n(&mine->channel->homes[shard / 64], __ATOMIC_ACQUIRE) >> shard % 64 & 1) != 0;
}

uint16_t request_branch(const struct request_channel *mine)
{
    return __atomic_load_n(&mine->channel->branch, __ATOMIC_RELAXED);
}

bool request_is_sole_home(const struct request_channel *mine)
{
    return __atomic_load_n(&mine->channel->sole, __ATOMIC_ACQUIRE) != 0;
}

uint32_t request_gains(const struct request_channel *mine)
{
    return __atomic_load_n(&mine->channel->gains, __ATOMIC_ACQUIRE);
}

_Static_assert(sizeof(struct channel_location_hint) == REQUEST_LOCATION_HINT, "what is promised is there");

void *request_location_hints(struct request_channel *mine, uint64_t key)
{
    const uint32_t there = __atomic_load_n(&mine->channel->hints, __ATOMIC_ACQUIRE) & (CHANNEL_LOCATION_HINTS - 1);
    return &mine->channel->location_hints[key * REQUEST_ALIKE & there];
}

_Static_assert(sizeof(struct channel_trunk_times) == REQUEST_TRUNK_TIMES, "what is promised is there");

void *request_trunk_times(struct request_channel *mine, uint64_t key)
{
    return &mine->channel->trunk_times[key % CHANNEL_TRUNK_TIMES];
}

void request_make_location_hints(struct request_channel *mine)
{
    struct channel *channel = mine->channel;
    if (__atomic_load_n(&mine->hints_tried, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&mine->hints_tried, true, __ATOMIC_RELAXED);
    if (__atomic_load_n(&channel->hints, __ATOMIC_RELAXED) != CHANNEL_LOCATION_HINTS - 1 &&
        sys_populate(channel->location_hints, sizeof channel->location_hints) == 0)
        __atomic_store_n(&channel->hints, CHANNEL_LOCATION_HINTS - 1, __ATOMIC_RELEASE);
}

uint32_t request_losses(const struct request_channel *mine)
{
    return __atomic_load_n(&mine->channel->losses, __ATOMIC_ACQUIRE);
}

bool request_is_slow_lookup(const struct request_channel *mine)
{
    return __atomic_load_n(&mine->channel->far, __ATOMIC_RELAXED) != 0;
}

bool request_keeps_names(const struct request_channel *mine)
{
    return __atomic_load_n(&mine->channel->keeps_names, __ATOMIC_ACQUIRE) != 0;
}

uint64_t request_places(const struct request_channel *mine)
{
    return __atomic_load_n(&mine->channel->places, __ATOMIC_ACQUIRE);
}

void request_raise_places(struct request_channel *mine)
{
    __atomic_add_fetch(&mine->channel->places, CHANNEL_PLACES, __ATOMIC_ACQ_REL);
}

/* One that is there. A new owner goes on where the queue pair's counters stand. */
static bool request_own_qp(struct request_channel *mine, uint32_t number)
{
    struct channel_qp *qp = &mine->channel->qp[number];
    uint32_t nobody = 0;
    return __atomic_load_n(&qp->owner, __ATOMIC_RELAXED) == 0 &&
           __atomic_compare_exchange_n(&qp->owner, &nobody, (uint32_t)mine->owner, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Several processes may do so at once with one queue pair, which changes nothing in it. */
static bool request_make_qp(struct request_channel *mine, uint32_t number)
{
    struct channel *channel = mine->channel;
    const bool made = sys_populate(&channel->qp[number], sizeof channel->qp[number]) == 0;
    if (made)
        __atomic_fetch_or(&channel->there[number / 64], 1ull << number % 64, __ATOMIC_ACQ_REL);
    __atomic_store_n(&mine->full, !made, __ATOMIC_RELAXED);
    return made;
}

/* Takes a queue pair of the node for this process, of those that are there or of the others; its number + 1, or 0. Starting
 * from the process id, so that processes do not try the same ones, and neighbours are in a row. */
static uint32_t request_claim_qp_of(struct request_channel *mine, bool there)
{
    uint32_t start = there ? (uint32_t)mine->owner % CHANNEL_QPS_FIRST : (uint32_t)mine->owner;
    for (uint32_t i = 0; i < CHANNEL_QPS; i++) {
        uint32_t number = (start + i) % CHANNEL_QPS;
        if (channel_qp_is_there(mine->channel, number) != there)
            continue;
        if (!there && !request_make_qp(mine, number))
            return 0;
        if (request_own_qp(mine, number))
            return number + 1;
    }
    return 0;
}

/* Once for each: apart, so that it takes no register of what each request goes through. */
__attribute__((noinline)) static uint32_t request_claim_qp(struct request_channel *mine)
{
    __atomic_store_n(&mine->full, false, __ATOMIC_RELAXED);
    const uint32_t number = request_claim_qp_of(mine, true);
    return number != 0 ? number : request_claim_qp_of(mine, false);
}

/* Why there was none. */
static int request_explain_no_qp(const struct request_channel *mine)
{
    if (!channel_is_alive(mine->channel))
        return -EHOSTDOWN;
    return __atomic_load_n(&mine->full, __ATOMIC_RELAXED) ? -ENOSPC : -EUSERS;
}

static bool request_is_answered(const struct channel_qp *qp, uint32_t tag)
{
    return __atomic_load_n(&qp->reply, __ATOMIC_ACQUIRE) == CHANNEL_ANSWERED(tag);
}

/* A queue pair whose sender gave up is free again when the answer has come after all. */
static bool request_qp_try(struct request_channel *mine, struct held_qp *held)
{
    uint32_t seen = __atomic_load_n(&held->busy, __ATOMIC_ACQUIRE);
    if (seen == QP_BUSY)
        return false;
    if (seen == QP_GIVEN_UP && !request_is_answered(&mine->channel->qp[held->number - 1], held->tag))
        return false;
    return __atomic_compare_exchange_n(&held->busy, &seen, QP_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The next message is written to where the daemon has just read one of before. */
static void request_call_for_slot(const struct channel_qp *qp)
{
    cache_line_to_write(qp, FETCH_LINE);
    cache_line_to_write(&qp->slots[qp->written % CHANNEL_SLOTS], CHANNEL_USUAL);
}

static void request_qp_give(struct request_channel *mine, struct held_qp *held, uint32_t state)
{
    if (held->number != 0)
        request_call_for_slot(&mine->channel->qp[held->number - 1]);
    __atomic_store_n(&held->busy, state, __ATOMIC_RELEASE);
    __atomic_add_fetch(&mine->given, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&mine->wanting, __ATOMIC_SEQ_CST) != 0)
        sys_futex_wake(&mine->given, 1);
}

/* A thread that holds a name and is about to give it back must find a queue pair even if all that may wait do wait, and for
 * that very name. */
static unsigned request_qps_open_to(const struct message *message)
{
    switch (message->type) {
    case MESSAGE_COMMIT:
    case MESSAGE_ABORT:
    case MESSAGE_UNLINKED:
    case MESSAGE_RENAMED:
        return QPS_HELD;
    default:
        return QPS_HELD - QPS_KEPT;
    }
}

/* Once there is none to be claimed, those that have been claimed are left. */
static struct held_qp *request_qp_try_all(struct request_channel *mine, unsigned count)
{
    bool claims = true;
    for (unsigned i = 0; i < count; i++) {
        struct held_qp *held = &mine->held[i];
        if ((!claims && __atomic_load_n(&held->number, __ATOMIC_ACQUIRE) == 0) || !request_qp_try(mine, held))
            continue;
        if (held->number != 0)
            return held;
        __atomic_store_n(&held->number, request_claim_qp(mine), __ATOMIC_RELEASE);
        if (held->number != 0) {
            held->tag = __atomic_load_n(&mine->channel->qp[held->number - 1].reply, __ATOMIC_ACQUIRE) >> CHANNEL_REPLY_BITS;
            return held;
        }
        __atomic_store_n(&held->busy, QP_FREE, __ATOMIC_RELEASE);
        claims = false;
    }
    return NULL;
}

/* Any of them counts: of threads that claim one each at once, the one with the first may come too late. A thread that is about
 * to claim one (busy, without a number yet) has one. */
static bool request_has_no_qp(const struct request_channel *mine, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct held_qp *held = &mine->held[i];
        if (__atomic_load_n(&held->busy, __ATOMIC_ACQUIRE) != QP_FREE || __atomic_load_n(&held->number, __ATOMIC_ACQUIRE) != 0)
            return false;
    }
    return true;
}

/* A process with more threads than queue pairs: they wait for each other. One that has no queue pair at all would wait
 * for other processes, which keep what they have. */
static struct held_qp *request_qp_take(struct request_channel *mine, const struct message *message, uint64_t deadline)
{
    struct timespec pulse = clock_split(PULSE);
    const unsigned count = request_qps_open_to(message);
    for (uint64_t end = 0;;) {
        uint32_t seen = __atomic_load_n(&mine->given, __ATOMIC_SEQ_CST);
        struct held_qp *held = channel_is_alive(mine->channel) ? request_qp_try_all(mine, count) : NULL;
        if (held != NULL || request_has_no_qp(mine, count) || !channel_is_alive(mine->channel))
            return held;
        const uint64_t now = clock_monotonic();
        if (end == 0)
            end = clock_after(now, deadline);
        else if (now > end)
            return NULL;
        __atomic_add_fetch(&mine->wanting, 1, __ATOMIC_SEQ_CST);
        sys_futex_wait(&mine->given, seen, &pulse);
        __atomic_sub_fetch(&mine->wanting, 1, __ATOMIC_SEQ_CST);
    }
}

/* The daemon's count is looked at only where there may be no room. */
static bool request_qp_is_full(struct channel_qp *qp)
{
    if (qp->written - qp->emptied >= CHANNEL_SLOTS)
        qp->emptied = __atomic_load_n(&qp->taken, __ATOMIC_ACQUIRE);
    return qp->written - qp->emptied >= CHANNEL_SLOTS;
}

/* The order matters: the message, then its count, then the bit, then a look at whether the daemon sleeps. The
 * daemon raises `asleep`, then looks at the bits: one of the two sees the other. */
static void request_ring(struct channel *channel, uint32_t number, enum channel_sleep what)
{
    uint64_t *bits = what == CHANNEL_FOR_REQUESTS ? channel->asked : channel->told;
    __atomic_fetch_or(&bits[number / 64], 1ull << (number % 64), __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&channel->asleep, __ATOMIC_SEQ_CST) < what)
        return;
    __atomic_add_fetch(&channel->doorbell, 1, __ATOMIC_SEQ_CST);
    sys_futex_wake(&channel->doorbell, 1);
}

/* A ring is full only when many messages without an answer came in a row: the daemon is woken, and empties
 * it. */
static int request_wait_for_slot(struct channel *channel, uint32_t number)
{
    struct channel_qp *qp = &channel->qp[number];
    struct timespec pulse = clock_split(CLOCK_MILLISECOND);
    while (request_qp_is_full(qp)) {
        uint32_t taken = __atomic_load_n(&qp->taken, __ATOMIC_ACQUIRE);
        if (!channel_is_alive(channel))
            return -EHOSTDOWN;
        request_ring(channel, number, CHANNEL_FOR_REQUESTS);
        if (request_qp_is_full(qp))
            sys_futex_wait(&qp->taken, taken, &pulse);
    }
    return 0;
}

static int request_put(struct channel *channel, uint32_t number, const struct message *message, enum channel_sleep what)
{
    struct channel_qp *qp = &channel->qp[number];
    struct message without_text = *message;
    struct message_text *text = message_text_of(&without_text);
    const uint16_t text_length = text != NULL ? text->length : 0;
    int code = request_wait_for_slot(channel, number);
    if (code != 0)
        return code;
    struct channel_slot *slot = &qp->slots[qp->written % CHANNEL_SLOTS];
    if (text_length > MESSAGE_TEXT_MAX)
        return -EINVAL;
    if (text_length > 0) {
        memcpy(qp->text, text->text, text_length);
        text->length = 0;
    }
    slot->size = (uint32_t)message_encode(slot->bytes, sizeof slot->bytes, &without_text);
    if (slot->size == 0)
        return -EINVAL;
    message_set_text_length(slot->bytes, text_length);
    __atomic_store_n(&qp->written, qp->written + 1, __ATOMIC_RELEASE);
    request_ring(channel, number, what);
    return 0;
}

/* What the queue pair says until the request is answered. */
static uint32_t request_reply_before(const struct channel_qp *qp)
{
    return __atomic_load_n(&qp->reply, __ATOMIC_ACQUIRE);
}

/* False: it says something else by now: there is the answer. */
static bool request_reply_change(struct channel_qp *qp, uint32_t before, uint32_t to)
{
    return __atomic_compare_exchange_n(&qp->reply, &before, to, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
}

/* The order matters: the row's word is read, then the queue pair says that its client sleeps. The daemon finds that when it
 * answers, then raises the word. */
static void request_sleep_for_answer(struct channel *channel, uint32_t number, uint32_t before, uint64_t until)
{
    struct channel_qp *qp = &channel->qp[number];
    const uint32_t *row = &channel->answers[number / CHANNEL_ROW];
    const struct timespec end = clock_split(until);
    uint32_t seen = __atomic_load_n(row, __ATOMIC_SEQ_CST);
    if (!request_reply_change(qp, before, before | CHANNEL_SLEEPS))
        return;
    sys_futex_wait_bits(row, seen, &end, 1u << number % CHANNEL_ROW);
    request_reply_change(qp, before | CHANNEL_SLEEPS, before);
}

static void request_look_for_answer(struct request_channel *mine, uint32_t number, uint32_t tag)
{
    const struct channel_qp *qp = &mine->channel->qp[number];
    if ((int)__atomic_load_n(&mine->channel->processor, __ATOMIC_RELAXED) != sched_getcpu() && adaptive_spin_pays(&mine->spin))
        adaptive_spin_was(&mine->spin, !SPIN_LOOK(request_is_answered(qp, tag)));
}

static int request_wait_for_answer(struct request_channel *mine, uint32_t number, uint32_t tag, uint32_t before,
                                   uint64_t deadline)
{
    struct channel *channel = mine->channel;
    const struct channel_qp *qp = &channel->qp[number];
    request_look_for_answer(mine, number, tag);
    for (uint64_t end = 0, stalls = 0; !request_is_answered(qp, tag);) {
        const uint64_t now = clock_monotonic();
        if (end == 0 || stalls != request_stalls(mine))
            end = clock_after(now, deadline);
        stalls = request_stalls(mine);
        HOOK("unanswered");
        if (!channel_is_alive(channel)) /* the last that it did may have been this answer */
            return request_is_answered(qp, tag) && !BROKEN("last-answer-unseen") ? 0 : -EHOSTDOWN;
        if (now > end)
            return -ETIMEDOUT;
        request_sleep_for_answer(channel, number, before, now + PULSE);
    }
    return 0;
}

/* The asking thread sees the body that belongs to its request; one that says the result alone has nothing in it. */
static int request_check_type(struct message *answer, uint16_t wanted)
{
    if (answer->type == wanted)
        return 0;
    if (answer->type != MESSAGE_ANSWER)
        return -EPROTO;
    *answer = (struct message){.type = wanted, .tag = answer->tag, .result = answer->result};
    return 0;
}

/* The rest of it lies in a bulk buffer. */
static int request_read_bulk(struct channel *channel, struct request_answer *answer)
{
    struct message *message = &answer->message;
    if (message->type != MESSAGE_TEXT_ANSWER || !(message->flags & MESSAGE_BULK))
        return 0;
    if (message->text_answer.bulk >= CHANNEL_BULKS)
        return -EPROTO;
    answer->bulk = &channel->bulks[message->text_answer.bulk];
    const uint32_t size = __atomic_load_n(&answer->bulk->size, __ATOMIC_RELAXED);
    message->text_answer.text = message_text(answer->bulk->text, size < PAGE_MAX ? size : PAGE_MAX);
    return 0;
}

static int request_read_answer(struct channel *channel, const struct channel_qp *qp, uint16_t wanted,
                               struct request_answer *answer)
{
    const uint32_t size = __atomic_load_n(&qp->answer_size, __ATOMIC_RELAXED); /* once: another process writes there */
    answer->bulk = NULL;
    if (size > REQUEST_ANSWER_MAX)
        return -EPROTO;
    memcpy(answer->bytes, qp->answer, size);
    if (message_decode(&answer->message, answer->bytes, size) != 0 || request_check_type(&answer->message, wanted) != 0)
        return -EPROTO;
    return request_read_bulk(channel, answer);
}

/* What the answer's texts point at is the queue pair's. */
static int request_read_result(const struct channel_qp *qp, uint16_t wanted, int *result)
{
    struct message message;
    const uint32_t size = __atomic_load_n(&qp->answer_size, __ATOMIC_RELAXED);
    if (size > REQUEST_ANSWER_MAX || message_decode(&message, qp->answer, size) != 0 ||
        request_check_type(&message, wanted) != 0)
        return -EPROTO;
    *result = message.result;
    return 0;
}

/* One of `answer` and `result` is NULL. */
static int request_exchange(struct request_channel *mine, const struct message *message, struct request_answer *answer,
                            int *result, uint64_t deadline, struct request_hold *hold)
{
    struct message tagged = *message;
    struct held_qp *held = request_qp_take(mine, message, deadline);
    if (held == NULL)
        return request_explain_no_qp(mine);
    struct channel_qp *qp = &mine->channel->qp[held->number - 1];
    const uint32_t before = request_reply_before(qp);
    held->tag = held->tag < CHANNEL_TAG_MAX ? held->tag + 1 : 1;
    tagged.tag = held->tag;
    if (hold != NULL) { /* before the daemon can answer, hence while it lives */
        hold->channel = mine;
        hold->qp = held->number;
        __atomic_add_fetch(&qp->holding, 1, __ATOMIC_SEQ_CST);
    }
    int code = request_put(mine->channel, held->number - 1, &tagged, CHANNEL_FOR_REQUESTS);
    if (code == 0 && hold != NULL && hold->meanwhile != NULL)
        hold->meanwhile(hold->context);
    if (code == 0)
        code = request_wait_for_answer(mine, held->number - 1, tagged.tag, before, deadline);
    if (code == -ETIMEDOUT && !request_reply_change(qp, before, CHANNEL_ANSWERED(tagged.tag) | CHANNEL_GAVE_UP))
        code = 0;
    if (code == 0)
        code = answer != NULL ? request_read_answer(mine->channel, qp, message_answer_type(message->type), answer)
                              : request_read_result(qp, message_answer_type(message->type), result);
    /* The answer may still come: until then nobody else may find it there. */
    request_qp_give(mine, held, code == -ETIMEDOUT ? QP_GIVEN_UP : QP_FREE);
    if (code != 0 && hold != NULL)
        request_let_go(hold);
    return code;
}

int request_ask(struct request_channel *mine, const struct message *message, struct request_answer *answer, uint64_t deadline)
{
    return request_exchange(mine, message, answer, NULL, deadline, NULL);
}

/* In a queue pair of this process: the daemon may be dead by then, and its successor not wait for this process any more. */
static int request_take_from(struct request_channel *mine, struct held_qp *held, const struct message *message,
                             struct request_answer *answer, struct request_hold *hold)
{
    struct channel_qp *qp = &mine->channel->qp[held->number - 1];
    const int slot = grant_find(qp, message, __atomic_load_n(&held->grant, __ATOMIC_RELAXED));
    if (slot < 0)
        return -ENOENT;
    hold->channel = mine;
    hold->qp = held->number;
    __atomic_add_fetch(&qp->holding, 1, __ATOMIC_SEQ_CST);
    hold->word = grant_take(qp, (unsigned)slot, message, &answer->message, answer->bytes);
    if (hold->word != 0 && channel_is_alive(mine->channel)) {
        hold->grant = (uint32_t)slot + 1;
        __atomic_store_n(&held->grant, ((uint32_t)slot + 1) % CHANNEL_GRANTS, __ATOMIC_RELAXED);
        HOOK("grant-taken");
        return 0;
    }
    const int code = hold->word != 0 ? -EHOSTDOWN : -ENOENT;
    request_let_go(hold);
    return code;
}

/* Queue pairs of this process, the first ones: those after them were never taken. */
static const struct held_qp *request_qp_with(const struct request_channel *mine, unsigned i)
{
    const struct held_qp *held = i < QPS_HELD ? &mine->held[i] : NULL;
    return held != NULL && __atomic_load_n(&held->number, __ATOMIC_ACQUIRE) != 0 ? held : NULL;
}

/* -ENOENT: nothing like that is granted. */
static int request_take_grant(struct request_channel *mine, const struct message *message, struct request_answer *answer,
                              struct request_hold *hold)
{
    int code = -ENOENT;
    hold->grant = 0;
    answer->bulk = NULL;
    for (unsigned i = 0; code == -ENOENT && request_qp_with(mine, i) != NULL; i++)
        code = request_take_from(mine, &mine->held[i], message, answer, hold);
    if (code == 0 && hold->meanwhile != NULL)
        hold->meanwhile(hold->context);
    return code;
}

int request_hold(struct request_channel *mine, const struct message *message, struct request_answer *answer, uint64_t deadline,
                 struct request_hold *hold)
{
    int code = request_take_grant(mine, message, answer, hold);
    return code == -ENOENT ? request_exchange(mine, message, answer, NULL, deadline, hold) : code;
}

bool request_end(struct request_hold *hold, const struct message *message)
{
    bool calls;
    if (hold->qp == 0 || hold->grant == 0 ||
        !grant_end(&hold->channel->channel->qp[hold->qp - 1], hold->grant - 1, hold->word, message, &calls))
        return false;
    request_ring(hold->channel->channel, hold->qp - 1, calls ? CHANNEL_FOR_REQUESTS : CHANNEL_FOR_ALL);
    return true;
}

bool request_has_granted(const struct request_channel *mine, struct dirid dir, const struct message_text *name, bool is_new)
{
    const struct held_qp *held;
    for (unsigned i = 0; (held = request_qp_with(mine, i)) != NULL; i++)
        if (grant_has_name(&mine->channel->qp[held->number - 1], __atomic_load_n(&held->grant, __ATOMIC_RELAXED), dir, name,
                           is_new))
            return true;
    return false;
}

void request_let_go(struct request_hold *hold)
{
    if (hold->qp != 0)
        __atomic_sub_fetch(&hold->channel->channel->qp[hold->qp - 1].holding, 1, __ATOMIC_SEQ_CST);
    hold->qp = 0;
}

int request_result(struct request_channel *mine, const struct message *message, int *result, uint64_t deadline)
{
    return request_exchange(mine, message, NULL, result, deadline, NULL);
}

/* What another namespace's clock is behind is asked again as long as it seems that there is no lease: an answer that took its
 * time let it seem more. */
int request_learn_clock(struct request_channel *mine, uint64_t deadline)
{
    const uint64_t namespace = mine->channel->time_namespace, before = clock_boot();
    uint64_t ahead = 0;
    bool asks = false;
    if (lease_clock_is_known(&mine->lease_clock, before, clock_files()) && mine->lease_clock.ahead == 0)
        return 0;
    if (namespace != 0 && namespace != lease_clock_namespace()) {
        asks = true;
        int result, code = request_result(mine, &(struct message){.type = MESSAGE_PING}, &result, deadline);
        if (code != 0)
            return code;
        ahead = __atomic_load_n(&mine->channel->clock, __ATOMIC_ACQUIRE) - before;
    }
    const uint64_t now = clock_boot();
    lease_clock_learn(&mine->lease_clock, ahead, now, clock_files());
    return asks;
}

void request_read(struct request_answer *answer)
{
    if (answer->bulk != NULL)
        __atomic_store_n(&answer->bulk->owner, 0, __ATOMIC_RELEASE);
    answer->bulk = NULL;
}

/* How something went can wait until somebody asks. Another node's leaf that was looked into does not: each file that is
 * made there meanwhile costs the file system a question. */
int request_tell(struct request_channel *mine, const struct message *message)
{
    const enum channel_sleep what = message->type == MESSAGE_VISITED ? CHANNEL_FOR_REQUESTS : CHANNEL_FOR_ALL;
    struct held_qp *held = request_qp_take(mine, message, UINT64_MAX);
    if (held == NULL)
        return request_explain_no_qp(mine);
    int code = request_put(mine->channel, held->number - 1, message, what);
    request_qp_give(mine, held, QP_FREE);
    return code;
}
