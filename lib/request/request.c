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
#include "request/channel.h"

#define LANES_HELD 256 /* as many threads of one process can be under way at once */
#define LANES_KEPT 8   /* of them for those who end what others may be waiting for */
#define PULSE                                                                                                                  \
    (50 * CLOCK_MILLISECOND) /* a waiting client looks this often whether the daemon still lives                               \
                              */

enum { LANE_FREE = 0, LANE_BUSY, LANE_GIVEN_UP };

/* The lanes this process has taken, in private memory; a thread has one while it is not free. */
struct held_lane {
    uint32_t busy;   /* one of the above */
    uint32_t number; /* 1 + the lane's, 0: not taken yet */
    uint32_t tag;    /* of its last request */
    uint32_t offer;  /* the slot behind the offer that was taken last: the next one is likely to be there */
};

struct request_road {
    struct road *road;
    pid_t owner;
    uint32_t given;       /* counts the lanes that were given back */
    uint32_t wanting;     /* threads that wait for one */
    struct moment moment; /* before a thread goes to sleep */
    struct held_lane held[LANES_HELD];
};

/* In two steps, since a path would take more room than a signal's stack has. */
static int open_road(const char *run_dir)
{
    int dir = sys_openat(AT_FDCWD, run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0)
        return dir;
    int fd = sys_openat(dir, "road", O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    sys_close(dir);
    return fd;
}

struct mapping {
    const char *run_dir;
    struct road *road;
};

static int map_road(void *context)
{
    struct mapping *mapping = context;
    struct statx stat;
    int fd = open_road(mapping->run_dir);
    if (fd < 0)
        return fd;
    int code = sys_statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &stat);
    if (code == 0 && stat.stx_size != ROAD_SIZE)
        code = -EPROTO;
    void *mapped = code == 0 ? sys_mmap(NULL, ROAD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;
    sys_close(fd);
    if (code == 0 && sys_is_error(mapped))
        code = (int)(long)mapped;
    if (code == 0)
        mapping->road = mapped;
    return code;
}

/* Answers name files that will be opened: nobody else may have made what is mapped here. */
static int check_owner(const char *run_dir)
{
    struct statx stat;
    int code = sys_statx(AT_FDCWD, run_dir, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_MODE | STATX_UID, &stat);
    if (code != 0)
        return code;
    bool own = S_ISDIR(stat.stx_mode) && stat.stx_uid == (uid_t)SYS0(SYS_geteuid) && (stat.stx_mode & 077) == 0;
    return own ? 0 : -EPERM;
}

uint64_t request_pid_namespace(void)
{
    struct statx stat;
    return sys_statx(AT_FDCWD, "/proc/self/ns/pid", 0, STATX_INO, &stat) == 0 ? stat.stx_ino : 0;
}

/* One that has ended may still have a number, where nobody asks how it ended. */
static bool is_running(pid_t pid)
{
    struct pollfd end = {.fd = (int)SYS2(SYS_pidfd_open, pid, 0), .events = POLLIN};
    const struct timespec now = {0, 0};
    if (end.fd < 0)
        return end.fd != -ESRCH && end.fd != -EINVAL;
    bool has_ended = SYS5(SYS_ppoll, &end, 1, &now, NULL, 0) > 0;
    sys_close(end.fd);
    return !has_ended;
}

static pid_t supervisor_of(const struct road *road)
{
    pid_t pid = __atomic_load_n(&road->supervisor, __ATOMIC_ACQUIRE);
    return pid > 0 && is_running(pid) ? pid : 0;
}

/* Will another daemon be there soon? */
static bool is_restarted(const struct road *road)
{
    return road_has_crashed(road) && supervisor_of(road) != 0;
}

static int check_road(const struct road *road)
{
    if (!road_is_known(road))
        return -EPROTO;
    if (road->pid_namespace != request_pid_namespace())
        return road_is_alive(road) ? -EXDEV : -EHOSTDOWN;
    return road_is_alive(road) ? 0 : is_restarted(road) ? -EINPROGRESS : -EHOSTDOWN;
}

int request_attach(struct request_road **to, const char *run_dir)
{
    struct mapping mapping = {.run_dir = run_dir};
    int code = check_owner(run_dir);
    if (code == 0)
        code = map_road(&mapping);
    if (code == -EMFILE)
        code = apart_run(map_road, &mapping, -1);
    if (code != 0)
        return code;
    struct road *road = mapping.road;
    struct request_road *mine = NULL;
    code = check_road(road);
    if (code == 0) {
        mine = sys_mmap(NULL, sizeof *mine, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        code = sys_is_error(mine) ? (int)(long)mine : 0;
    }
    if (code != 0) {
        sys_munmap(road, ROAD_SIZE);
        return code;
    }
    mine->road = road;
    mine->owner = owner_pid();
    *to = mine;
    return 0;
}

pid_t request_supervisor(const char *run_dir)
{
    struct mapping mapping = {.run_dir = run_dir};
    if (check_owner(run_dir) != 0 || map_road(&mapping) != 0)
        return 0;
    struct road *road = mapping.road;
    pid_t pid = road_is_known(road) && road->pid_namespace == request_pid_namespace() ? supervisor_of(road) : 0;
    sys_munmap(road, ROAD_SIZE);
    return pid;
}

int request_inherit(struct request_road *mine)
{
    memset(mine->held, 0, sizeof mine->held);
    mine->given = mine->wanting = 0;
    mine->owner = owner_pid();
    const uint64_t namespace = request_pid_namespace(); /* 0: it cannot be known, as in a chroot without /proc */
    if (namespace != 0 && namespace != mine->road->pid_namespace)
        return -EXDEV;
    return road_is_alive(mine->road) ? 0 : -EHOSTDOWN;
}

void request_abandon(struct request_road *mine)
{
    sys_munmap(mine->road, ROAD_SIZE);
    sys_munmap(mine, sizeof *mine);
}

uint64_t request_session(const struct request_road *mine)
{
    return mine->road->session;
}

struct dirid request_root(const struct request_road *mine)
{
    return mine->road->root;
}

bool request_is_alive(const struct request_road *mine)
{
    return road_is_alive(mine->road);
}

bool request_has_lease(const struct request_road *mine)
{
    uint64_t lease = __atomic_load_n(&mine->road->lease, __ATOMIC_ACQUIRE);
    return lease == ROAD_FOR_EVER || clock_boot() < lease;
}

bool request_has_redirected(const struct request_road *mine)
{
    return __atomic_load_n(&mine->road->redirected, __ATOMIC_RELAXED) != 0;
}

bool request_has_offers(const struct request_road *mine)
{
    return __atomic_load_n(&mine->road->offering, __ATOMIC_SEQ_CST) != 0;
}

bool request_is_home(const struct request_road *mine, uint32_t shard)
{
    return (__atomic_load_n(&mine->road->homes[shard / 64], __ATOMIC_ACQUIRE) >> shard % 64 & 1) != 0;
}

uint16_t request_branch(const struct request_road *mine)
{
    return __atomic_load_n(&mine->road->branch, __ATOMIC_RELAXED);
}

bool request_is_sole_home(const struct request_road *mine)
{
    return __atomic_load_n(&mine->road->sole, __ATOMIC_ACQUIRE) != 0;
}

uint32_t request_gains(const struct request_road *mine)
{
    return __atomic_load_n(&mine->road->gains, __ATOMIC_ACQUIRE);
}

_Static_assert(sizeof(struct road_sighting) == REQUEST_SIGHTING, "what is promised is there");

void *request_sightings(struct request_road *mine, uint64_t key)
{
    return &mine->road->sightings[key * REQUEST_ALIKE & (ROAD_SIGHTINGS - 1)];
}

uint32_t request_losses(const struct request_road *mine)
{
    return __atomic_load_n(&mine->road->losses, __ATOMIC_ACQUIRE);
}

bool request_is_far(const struct request_road *mine)
{
    return __atomic_load_n(&mine->road->far, __ATOMIC_RELAXED) != 0;
}

uint64_t request_places(const struct request_road *mine)
{
    return __atomic_load_n(&mine->road->places, __ATOMIC_ACQUIRE);
}

void request_raise_places(struct request_road *mine)
{
    __atomic_add_fetch(&mine->road->places, ROAD_PLACES, __ATOMIC_ACQ_REL);
}

/* Takes a lane of the node for this process; its number + 1, or 0. Starting from the process id, so that
 * processes do not try the same ones, and neighbours are in a row. A new owner goes on where the lane's counters stand. */
static uint32_t claim_lane(struct request_road *mine)
{
    uint32_t start = (uint32_t)mine->owner;
    for (uint32_t i = 0; i < ROAD_LANES; i++) {
        uint32_t number = (start + i) % ROAD_LANES, nobody = 0;
        struct road_lane *lane = &mine->road->lane[number];
        if (__atomic_load_n(&lane->owner, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&lane->owner, &nobody, (uint32_t)mine->owner, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return number + 1;
    }
    return 0;
}

static bool is_answered(const struct road_lane *lane, uint32_t tag)
{
    return __atomic_load_n(&lane->reply, __ATOMIC_ACQUIRE) == ROAD_ANSWERED(tag);
}

/* A lane whose sender gave up is free again when the answer has come after all. */
static bool lane_try(struct request_road *mine, struct held_lane *held)
{
    uint32_t seen = __atomic_load_n(&held->busy, __ATOMIC_ACQUIRE);
    if (seen == LANE_BUSY)
        return false;
    if (seen == LANE_GIVEN_UP && !is_answered(&mine->road->lane[held->number - 1], held->tag))
        return false;
    return __atomic_compare_exchange_n(&held->busy, &seen, LANE_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The next message is written to where the daemon has just read one of before. */
static void call_for_slot(const struct road_lane *lane)
{
    fetch_to_write(lane, FETCH_LINE);
    fetch_to_write(&lane->slots[lane->written % ROAD_SLOTS], ROAD_USUAL);
}

static void lane_give(struct request_road *mine, struct held_lane *held, uint32_t state)
{
    if (held->number != 0)
        call_for_slot(&mine->road->lane[held->number - 1]);
    __atomic_store_n(&held->busy, state, __ATOMIC_RELEASE);
    __atomic_add_fetch(&mine->given, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&mine->wanting, __ATOMIC_SEQ_CST) != 0)
        sys_futex_wake(&mine->given, 1);
}

/* Who holds a name and is about to give it back must find a lane even if all that may wait do wait, and for
 * that very name. */
static unsigned lanes_open_to(const struct message *message)
{
    switch (message->type) {
    case MESSAGE_CONFIRM:
    case MESSAGE_WITHDRAW:
    case MESSAGE_GONE:
    case MESSAGE_RENAMED:
        return LANES_HELD;
    default:
        return LANES_HELD - LANES_KEPT;
    }
}

static struct held_lane *lane_try_all(struct request_road *mine, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct held_lane *held = &mine->held[i];
        if (!lane_try(mine, held))
            continue;
        if (held->number != 0)
            return held;
        __atomic_store_n(&held->number, claim_lane(mine), __ATOMIC_RELEASE);
        if (held->number != 0) {
            held->tag = __atomic_load_n(&mine->road->lane[held->number - 1].reply, __ATOMIC_ACQUIRE) >> ROAD_REPLY_BITS;
            return held;
        }
        lane_give(mine, held, LANE_FREE);
        return NULL;
    }
    return NULL;
}

/* The first lane is the last to be missed: who is about to claim it (busy, without a number yet) is not one without. */
static bool has_no_lane(const struct request_road *mine)
{
    const struct held_lane *first = &mine->held[0];
    return __atomic_load_n(&first->busy, __ATOMIC_ACQUIRE) == LANE_FREE &&
           __atomic_load_n(&first->number, __ATOMIC_ACQUIRE) == 0;
}

/* A process with more threads than lanes: they wait for each other. One that has no lane at all would wait
 * for other processes, which keep what they have. */
static struct held_lane *lane_take(struct request_road *mine, const struct message *message, uint64_t deadline)
{
    struct timespec pulse = clock_split(PULSE);
    for (uint64_t end = 0;;) {
        uint32_t seen = __atomic_load_n(&mine->given, __ATOMIC_SEQ_CST);
        struct held_lane *held = road_is_alive(mine->road) ? lane_try_all(mine, lanes_open_to(message)) : NULL;
        if (held != NULL || has_no_lane(mine) || !road_is_alive(mine->road))
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
static bool lane_is_full(struct road_lane *lane)
{
    if (lane->written - lane->emptied >= ROAD_SLOTS)
        lane->emptied = __atomic_load_n(&lane->taken, __ATOMIC_ACQUIRE);
    return lane->written - lane->emptied >= ROAD_SLOTS;
}

/* The order matters: the message, then its count, then the bit, then a look at whether the daemon sleeps. The
 * daemon raises `asleep`, then looks at the bits: one of the two sees the other. */
static void ring(struct road *road, uint32_t number, enum road_sleep what)
{
    uint64_t *bits = what == ROAD_FOR_REQUESTS ? road->asked : road->told;
    __atomic_fetch_or(&bits[number / 64], 1ull << (number % 64), __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&road->asleep, __ATOMIC_SEQ_CST) < what)
        return;
    __atomic_add_fetch(&road->bell, 1, __ATOMIC_SEQ_CST);
    sys_futex_wake(&road->bell, 1);
}

/* A ring is full only when many messages without an answer came in a row: the daemon is woken, and empties
 * it. */
static int wait_for_slot(struct road *road, uint32_t number)
{
    struct road_lane *lane = &road->lane[number];
    struct timespec pulse = clock_split(CLOCK_MILLISECOND);
    while (lane_is_full(lane)) {
        uint32_t taken = __atomic_load_n(&lane->taken, __ATOMIC_ACQUIRE);
        if (!road_is_alive(road))
            return -EHOSTDOWN;
        ring(road, number, ROAD_FOR_REQUESTS);
        if (lane_is_full(lane))
            sys_futex_wait(&lane->taken, taken, &pulse);
    }
    return 0;
}

static int put(struct road *road, uint32_t number, const struct message *message, enum road_sleep what)
{
    struct road_lane *lane = &road->lane[number];
    struct message without_text = *message;
    int code = wait_for_slot(road, number);
    if (code != 0)
        return code;
    struct road_slot *slot = &lane->slots[lane->written % ROAD_SLOTS];
    if (message->text_length > 0)
        memcpy(lane->text, message->text, message->text_length);
    if (lane->text_length != message->text_length)
        lane->text_length = message->text_length;
    without_text.text_length = 0;
    slot->size = (uint32_t)message_encode(slot->bytes, sizeof slot->bytes, &without_text);
    if (slot->size == 0)
        return -EINVAL;
    __atomic_store_n(&lane->written, lane->written + 1, __ATOMIC_RELEASE);
    ring(road, number, what);
    return 0;
}

/* What the lane says until the request is answered. */
static uint32_t reply_before(const struct road_lane *lane)
{
    return __atomic_load_n(&lane->reply, __ATOMIC_ACQUIRE);
}

/* False: it says something else by now: there is the answer. */
static bool reply_change(struct road_lane *lane, uint32_t before, uint32_t to)
{
    return __atomic_compare_exchange_n(&lane->reply, &before, to, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
}

/* The order matters: the row's word is read, then the lane says that its client sleeps. The daemon finds that when it
 * answers, then raises the word. */
static void sleep_for_answer(struct road *road, uint32_t number, uint32_t before, uint64_t until)
{
    struct road_lane *lane = &road->lane[number];
    const uint32_t *row = &road->answers[number / ROAD_ROW];
    const struct timespec end = clock_split(until);
    uint32_t seen = __atomic_load_n(row, __ATOMIC_SEQ_CST);
    if (!reply_change(lane, before, before | ROAD_SLEEPS))
        return;
    sys_futex_wait_bits(row, seen, &end, 1u << number % ROAD_ROW);
    reply_change(lane, before | ROAD_SLEEPS, before);
}

static void look_for_answer(struct request_road *mine, uint32_t number, uint32_t tag)
{
    const struct road_lane *lane = &mine->road->lane[number];
    if ((int)__atomic_load_n(&mine->road->processor, __ATOMIC_RELAXED) != sched_getcpu() && moment_pays(&mine->moment))
        moment_was(&mine->moment, !MOMENT_LOOK(is_answered(lane, tag)));
}

static int wait_for_answer(struct request_road *mine, uint32_t number, uint32_t tag, uint32_t before, uint64_t deadline)
{
    struct road *road = mine->road;
    const struct road_lane *lane = &road->lane[number];
    look_for_answer(mine, number, tag);
    for (uint64_t end = 0; !is_answered(lane, tag);) {
        const uint64_t now = clock_monotonic();
        if (end == 0)
            end = clock_after(now, deadline);
        HOOK("unanswered");
        if (!road_is_alive(road)) /* the last that it did may have been this answer */
            return is_answered(lane, tag) && !BROKEN("last-answer-unseen") ? 0 : -EHOSTDOWN;
        if (now > end)
            return -ETIMEDOUT;
        sleep_for_answer(road, number, before, now + PULSE);
    }
    return 0;
}

/* The rest of it lies in a bay. */
static int read_bay(struct road *road, struct request_answer *answer)
{
    struct message *message = &answer->message;
    if (!(message->flags & MESSAGE_BAY))
        return 0;
    if (message->child.birth >= ROAD_BAYS)
        return -EPROTO;
    answer->bay = &road->bays[message->child.birth];
    message->text = answer->bay->text;
    message->text_length = (uint16_t)(answer->bay->size < PAGE_MAX ? answer->bay->size : PAGE_MAX);
    return 0;
}

static int read_answer(struct road *road, const struct road_lane *lane, struct request_answer *answer)
{
    uint32_t size = lane->answer_size;
    answer->bay = NULL;
    if (size > REQUEST_ANSWER_MAX)
        return -EPROTO;
    memcpy(answer->bytes, lane->answer, size);
    return message_decode(&answer->message, answer->bytes, size) == 0 ? read_bay(road, answer) : -EPROTO;
}

/* What the answer's texts point at is the lane's. */
static int read_result(const struct road_lane *lane, int *result)
{
    struct message message;
    if (lane->answer_size > REQUEST_ANSWER_MAX || message_decode(&message, lane->answer, lane->answer_size) != 0)
        return -EPROTO;
    *result = message.result;
    return 0;
}

/* One of `answer` and `result` is NULL. */
static int ask(struct request_road *mine, const struct message *message, struct request_answer *answer, int *result,
               uint64_t deadline, struct request_hold *hold)
{
    struct message tagged = *message;
    struct held_lane *held = lane_take(mine, message, deadline);
    if (held == NULL)
        return road_is_alive(mine->road) ? -EUSERS : -EHOSTDOWN;
    struct road_lane *lane = &mine->road->lane[held->number - 1];
    const uint32_t before = reply_before(lane);
    held->tag = held->tag < ROAD_TAG_MAX ? held->tag + 1 : 1;
    tagged.tag = held->tag;
    if (hold != NULL) { /* before the daemon can answer, hence while it lives */
        hold->road = mine;
        hold->lane = held->number;
        __atomic_add_fetch(&lane->holding, 1, __ATOMIC_SEQ_CST);
    }
    int code = put(mine->road, held->number - 1, &tagged, ROAD_FOR_REQUESTS);
    if (code == 0 && hold != NULL && hold->meanwhile != NULL)
        hold->meanwhile(hold->context);
    if (code == 0)
        code = wait_for_answer(mine, held->number - 1, tagged.tag, before, deadline);
    if (code == -ETIMEDOUT && !reply_change(lane, before, ROAD_ANSWERED(tagged.tag) | ROAD_GAVE_UP))
        code = 0;
    if (code == 0)
        code = answer != NULL ? read_answer(mine->road, lane, answer) : read_result(lane, result);
    /* The answer may still come: until then nobody else may find it there. */
    lane_give(mine, held, code == -ETIMEDOUT ? LANE_GIVEN_UP : LANE_FREE);
    if (code != 0 && hold != NULL)
        request_let_go(hold);
    return code;
}

int request_ask(struct request_road *mine, const struct message *message, struct request_answer *answer, uint64_t deadline)
{
    return ask(mine, message, answer, NULL, deadline, NULL);
}

/* In a lane of this process: the daemon may be dead by then, and its successor not wait for this process any more. */
static int take_from(struct request_road *mine, struct held_lane *held, const struct message *message,
                     struct request_answer *answer, struct request_hold *hold)
{
    struct road_lane *lane = &mine->road->lane[held->number - 1];
    const int slot = offer_find(lane, message, __atomic_load_n(&held->offer, __ATOMIC_RELAXED));
    if (slot < 0)
        return -ENOENT;
    hold->road = mine;
    hold->lane = held->number;
    __atomic_add_fetch(&lane->holding, 1, __ATOMIC_SEQ_CST);
    hold->word = offer_take(lane, (unsigned)slot, message, &answer->message, answer->bytes);
    if (hold->word != 0 && road_is_alive(mine->road)) {
        hold->offer = (uint32_t)slot + 1;
        __atomic_store_n(&held->offer, ((uint32_t)slot + 1) % ROAD_OFFERS, __ATOMIC_RELAXED);
        HOOK("offer-taken");
        return 0;
    }
    const int code = hold->word != 0 ? -EHOSTDOWN : -ENOENT;
    request_let_go(hold);
    return code;
}

/* Lanes of this process, the first ones: those behind them were never taken. */
static const struct held_lane *lane_with(const struct request_road *mine, unsigned i)
{
    const struct held_lane *held = i < LANES_HELD ? &mine->held[i] : NULL;
    return held != NULL && __atomic_load_n(&held->number, __ATOMIC_ACQUIRE) != 0 ? held : NULL;
}

/* -ENOENT: nothing like that is offered. */
static int take_offer(struct request_road *mine, const struct message *message, struct request_answer *answer,
                      struct request_hold *hold)
{
    int code = -ENOENT;
    hold->offer = 0;
    answer->bay = NULL;
    for (unsigned i = 0; code == -ENOENT && lane_with(mine, i) != NULL; i++)
        code = take_from(mine, &mine->held[i], message, answer, hold);
    if (code == 0 && hold->meanwhile != NULL)
        hold->meanwhile(hold->context);
    return code;
}

int request_hold(struct request_road *mine, const struct message *message, struct request_answer *answer, uint64_t deadline,
                 struct request_hold *hold)
{
    int code = take_offer(mine, message, answer, hold);
    return code == -ENOENT ? ask(mine, message, answer, NULL, deadline, hold) : code;
}

bool request_end(struct request_hold *hold, const struct message *message)
{
    bool calls;
    if (hold->lane == 0 || hold->offer == 0 ||
        !offer_end(&hold->road->road->lane[hold->lane - 1], hold->offer - 1, hold->word, message, &calls))
        return false;
    ring(hold->road->road, hold->lane - 1, calls ? ROAD_FOR_REQUESTS : ROAD_FOR_ALL);
    return true;
}

bool request_is_offered(const struct request_road *mine, const struct message *message)
{
    const struct held_lane *held;
    for (unsigned i = 0; (held = lane_with(mine, i)) != NULL; i++)
        if (offer_find(&mine->road->lane[held->number - 1], message, __atomic_load_n(&held->offer, __ATOMIC_RELAXED)) >= 0)
            return true;
    return false;
}

void request_let_go(struct request_hold *hold)
{
    if (hold->lane != 0)
        __atomic_sub_fetch(&hold->road->road->lane[hold->lane - 1].holding, 1, __ATOMIC_SEQ_CST);
    hold->lane = 0;
}

int request_result(struct request_road *mine, const struct message *message, int *result, uint64_t deadline)
{
    return ask(mine, message, NULL, result, deadline, NULL);
}

void request_read(struct request_answer *answer)
{
    if (answer->bay != NULL)
        __atomic_store_n(&answer->bay->owner, 0, __ATOMIC_RELEASE);
    answer->bay = NULL;
}

/* How something went can wait until somebody asks. Another node's leaf that was looked into does not: each file that is
 * made there meanwhile costs the file system a question. */
int request_tell(struct request_road *mine, const struct message *message)
{
    const enum road_sleep what = message->type == MESSAGE_LOOKED ? ROAD_FOR_REQUESTS : ROAD_FOR_ALL;
    struct held_lane *held = lane_take(mine, message, UINT64_MAX);
    if (held == NULL)
        return road_is_alive(mine->road) ? -EUSERS : -EHOSTDOWN;
    int code = put(mine->road, held->number - 1, message, what);
    lane_give(mine, held, LANE_FREE);
    return code;
}
