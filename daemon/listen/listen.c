/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "listen/listen.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cache_line.h"
#include "base/adaptive_spin.h"
#include "base/sys.h"
#include "listen/clients.h"
#include "listen/wakeups.h"
#include "request/lease_clock.h"
#include "request/request.h"
#include "request/channel.h"

#define BITS (CHANNEL_QPS / 64) /* words with a bit for each queue pair */

struct listen {
    struct channel *channel;
    struct clients *clients;
    char path[PATH_MAX];
    ino_t inode;            /* the channel's */
    uint64_t to_take[BITS]; /* queue pairs seen waiting, being emptied */
    uint32_t words;         /* which of its words are not zero */
    uint64_t visited[BITS]; /* queue pairs seen waiting that have grants, to be looked at */
    uint32_t visited_words;
    unsigned at;               /* the one to go on with */
    pid_t dying;               /* ended, its last messages are being taken */
    uint32_t bulks;            /* a bit for each bulk buffer whose memory is there */
    enum channel_sleep sleep;  /* for what it is left */
    struct adaptive_spin spin; /* before it begins */
    bool answered;             /* a client since it looked last, which may soon ask again */
    bool looked_for;           /* ... that was spinning for the answer, and so may ask at once */
    struct wakeups wakeups;
};

/* The mutex is robust and shared; its word is what clients look at. It is locked by main's thread, which
 * lives as long as the daemon does. */
static int listen_lock_life(struct channel *channel)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    int code = pthread_mutex_init(&channel->life, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return -(code != 0 ? code : pthread_mutex_lock(&channel->life));
}

/* What is used of it in any case; the rest when it is used: on a full tmpfs a page that is not there would be a SIGBUS, in an
 * application. */
static int listen_allocate_first(int fd)
{
    const off_t hints = offsetof(struct channel, location_hints), qps = offsetof(struct channel, qp);
    const size_t of_hints = CHANNEL_LOCATION_HINTS_FIRST * sizeof(struct channel_location_hint);
    if (ftruncate(fd, CHANNEL_SIZE) != 0)
        return -errno;
    int code = posix_fallocate(fd, 0, hints + (off_t)of_hints);
    return -(code != 0 ? code : posix_fallocate(fd, qps, CHANNEL_QPS_FIRST * sizeof(struct channel_qp)));
}

static int listen_map_new(struct listen *listen, const char *path)
{
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    struct stat stat = {0};
    int code = listen_allocate_first(fd);
    if (code == 0 && fstat(fd, &stat) != 0)
        code = -errno;
    void *mapped = code == 0 ? mmap(NULL, CHANNEL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (code == 0 && mapped == MAP_FAILED)
        code = -errno;
    close(fd);
    if (code == 0) {
        listen->channel = mapped;
        listen->inode = stat.st_ino;
    }
    return code;
}

/* Ready before it is in its place: there, a process finds the channel of a daemon that lives or of one that crashed. */
static int listen_make_channel(struct listen *listen, uint64_t session, struct dirid root, pid_t supervisor)
{
    char path[sizeof listen->path + 4];
    snprintf(path, sizeof path, "%s.new", listen->path);
    int code = listen_map_new(listen, path);
    if (code != 0)
        return code;
    listen->sleep = CHANNEL_FOR_REQUESTS;
    wakeups_init(&listen->wakeups, listen->channel);
    listen->channel->version = CHANNEL_VERSION;
    listen->channel->qps = CHANNEL_QPS;
    listen->channel->session = session;
    listen->channel->root = root;
    listen->channel->supervisor = supervisor;
    listen->channel->lease = CHANNEL_FOR_EVER;
    listen->channel->places = CHANNEL_PLACES;
    listen->channel->pid_namespace = request_pid_namespace();
    request_boot_id(listen->channel->boot, sizeof listen->channel->boot);
    listen->channel->time_namespace = lease_clock_namespace();
    listen->channel->there[0] = (1ull << CHANNEL_QPS_FIRST) - 1;
    listen->channel->hints = CHANNEL_LOCATION_HINTS_FIRST - 1;
    code = listen_lock_life(listen->channel);
    __atomic_store_n(&listen->channel->magic, CHANNEL_MAGIC, __ATOMIC_RELEASE);
    return code != 0 ? code : rename(path, listen->path) == 0 ? 0 : -errno;
}

static void listen_ring_for_client(void *context)
{
    listen_ring(context);
}

int listen_create(struct listen **to, const char *run_dir, uint64_t session, struct dirid root, pid_t supervisor)
{
    struct listen *listen = calloc(1, sizeof *listen);
    if (listen == NULL)
        return -ENOMEM;
    snprintf(listen->path, sizeof listen->path, "%s/channel", run_dir);
    int code = listen_make_channel(listen, session, root, supervisor);
    if (code == 0)
        code = clients_create(&listen->clients, listen_ring_for_client, listen);
    if (code != 0) {
        listen_destroy(listen);
        return code;
    }
    *to = listen;
    return 0;
}

void listen_wake(struct listen *listen)
{
    wakeups_wake_due(&listen->wakeups);
}

void listen_wake_all(struct listen *listen)
{
    wakeups_wake_all(&listen->wakeups);
}

/* One of a daemon that serves another root with the inode number of this one, which was removed, may be at that path by now. */
static void listen_unlink(const struct listen *listen)
{
    struct stat stat = {0};
    if (lstat(listen->path, &stat) == 0 && stat.st_ino == listen->inode)
        unlink(listen->path);
}

void listen_destroy(struct listen *listen)
{
    if (listen == NULL)
        return;
    clients_destroy(listen->clients);
    if (listen->channel != NULL) {
        pthread_mutex_unlock(&listen->channel->life);
        wakeups_wake_everybody(&listen->wakeups);
        listen_unlink(listen);
        munmap(listen->channel, CHANNEL_SIZE);
    }
    free(listen);
}

void listen_ring(struct listen *listen)
{
    __atomic_add_fetch(&listen->channel->doorbell, 1, __ATOMIC_SEQ_CST);
    uint32_t asleep = __atomic_load_n(&listen->channel->asleep, __ATOMIC_SEQ_CST);
    if (asleep != CHANNEL_AWAKE)
        sys_futex_wake(&listen->channel->doorbell, 1);
}

#define LINE 8         /* words that are read together */
#define LAST_LOOKUP 64 /* looks, some 2 us */

/* Two words at once: what they say is looked at again before it is gone by. */
typedef uint64_t two_words __attribute__((vector_size(16), may_alias));

static inline two_words listen_line_of(const uint64_t *words)
{
    const volatile two_words *line = (const volatile two_words *)words;
    return (line[0] | line[1]) | (line[2] | line[3]);
}

static bool listen_is_any_set(const uint64_t words[BITS])
{
    two_words all = listen_line_of(words);
    for (unsigned i = LINE; i < BITS; i += LINE)
        all |= listen_line_of(words + i);
    return (all[0] | all[1]) != 0;
}

/* What a message is read from, and its answer is written to, but for the line that its client looks at. */
static void listen_call_for_qp(const struct channel_qp *qp)
{
    cache_line_to_read(qp, FETCH_LINE);
    cache_line_to_read(&qp->slots[qp->taken % CHANNEL_SLOTS], CHANNEL_USUAL);
    cache_line_to_write((const char *)&qp->reply + FETCH_LINE, CHANNEL_USUAL - FETCH_LINE);
}

/* Moves bits that clients set to our own. The first queue pair's lines come together with the word. */
static void listen_collect_from(struct listen *listen, uint64_t words[BITS])
{
    if (!listen_is_any_set(words))
        return;
    for (unsigned i = 0; i < BITS; i++) {
        const uint64_t bits = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
        if (bits == 0)
            continue;
        listen_call_for_qp(&listen->channel->qp[i * 64 + (unsigned)__builtin_ctzll(bits)]);
        listen->to_take[i] |= __atomic_exchange_n(&words[i], 0, __ATOMIC_SEQ_CST);
        listen->words |= 1u << i;
    }
}

/* True: there are queue pairs to be emptied. */
static bool listen_collect(struct listen *listen)
{
    listen_collect_from(listen, listen->channel->asked);
    listen_collect_from(listen, listen->channel->told);
    return listen->words != 0;
}

uint32_t listen_rings(struct listen *listen)
{
    return __atomic_load_n(&listen->channel->doorbell, __ATOMIC_SEQ_CST);
}

void listen_heed(struct listen *listen, bool notices)
{
    listen->sleep = notices ? CHANNEL_FOR_ALL : CHANNEL_FOR_REQUESTS;
}

/* Since it was rung so often somebody else has rung, or a client has come, or there is something left to be taken. */
static bool listen_is_called(const struct listen *listen, uint32_t rings)
{
    const struct channel *channel = listen->channel;
    return __atomic_load_n(&channel->doorbell, __ATOMIC_RELAXED) != rings || listen->words != 0 ||
           listen_is_any_set(channel->asked) || (listen->sleep == CHANNEL_FOR_ALL && listen_is_any_set(channel->told));
}

/* A client that took its answer without a wakeup may ask again at once. */
static bool listen_last_lookup(struct listen *listen, uint32_t rings)
{
    bool called = listen_is_called(listen, rings);
    for (unsigned i = 0; i < LAST_LOOKUP && listen->looked_for && !called; i++, called = listen_is_called(listen, rings))
        adaptive_spin_pause();
    listen->looked_for &= called;
    return called;
}

/* While nobody comes, the next ones are woken. */
static bool listen_look_and_wake(struct listen *listen, uint32_t rings)
{
    bool called = listen_is_called(listen, rings);
    while (!called && !wakeups_are_none(&listen->wakeups)) {
        called = listen_last_lookup(listen, rings);
        if (!called)
            wakeups_wake_next(&listen->wakeups);
    }
    return called;
}

/* A request has come meanwhile, or comes soon. A client that uses its grants is not waited for: it does not come
 * soon. */
static bool listen_has_work(struct listen *listen, uint32_t rings)
{
    if (listen_look_and_wake(listen, rings))
        return true;
    if (!listen->answered || !adaptive_spin_pays(&listen->spin))
        return false;
    listen->answered = false;
    bool called = SPIN_LOOK(listen_is_called(listen, rings));
    adaptive_spin_was(&listen->spin, !called);
    return called;
}

/* The first one's lines are on their way while the daemon does what comes before its message. */
static void listen_call_for_first(const struct listen *listen)
{
    for (unsigned i = 0; i < BITS; i++) {
        const uint64_t bits = __atomic_load_n(&listen->channel->asked[i], __ATOMIC_RELAXED);
        if (bits == 0)
            continue;
        listen_call_for_qp(&listen->channel->qp[i * 64 + (unsigned)__builtin_ctzll(bits)]);
        return;
    }
}

/* Clients ring only while `asleep` stands, so their bits are looked at after it was raised. */
bool listen_rest(struct listen *listen, uint32_t rings)
{
    listen_wake(listen);
    if (listen_has_work(listen, rings)) {
        listen_call_for_first(listen);
        return false;
    }
    __atomic_store_n(&listen->channel->asleep, listen->sleep, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return !listen_collect(listen);
}

void listen_sleep(struct listen *listen, uint32_t rings, uint64_t limit)
{
    struct timespec wait = clock_split(limit);
    sys_futex_wait(&listen->channel->doorbell, rings, limit > 0 ? &wait : NULL);
}

/* Clients read both whenever they ask: what has not changed is not written. */
void listen_rise(struct listen *listen)
{
    struct channel *channel = listen->channel;
    const uint32_t processor = (uint32_t)sched_getcpu();
    if (channel->asleep != CHANNEL_AWAKE)
        __atomic_store_n(&channel->asleep, CHANNEL_AWAKE, __ATOMIC_RELAXED);
    if (channel->processor != processor)
        __atomic_store_n(&channel->processor, processor, __ATOMIC_RELAXED);
}

void listen_wait(struct listen *listen, uint32_t rings, uint64_t limit)
{
    if (listen_rest(listen, rings))
        listen_sleep(listen, rings, limit);
    listen_rise(listen);
}

bool listen_has_more(struct listen *listen)
{
    return listen_collect(listen);
}

/* False: nobody waits for it any more. */
static bool listen_put_answer(struct listen *listen, uint32_t number, uint32_t tag, const void *bytes, size_t size)
{
    struct channel_qp *qp = &listen->channel->qp[number];
    memcpy(qp->answer, bytes, size);
    qp->answer_size = (uint32_t)size;
    listen->answered = true;
    const uint32_t before = __atomic_exchange_n(&qp->reply, CHANNEL_ANSWERED(tag), __ATOMIC_SEQ_CST);
    if (before & CHANNEL_SLEEPS)
        wakeups_add(&listen->wakeups, number);
    else
        listen->looked_for = true;
    return !(before & CHANNEL_GAVE_UP);
}

/* Copies a message and decodes the copy. The text, if it has one, lies in the queue pair. */
static int listen_decode(const struct channel_qp *qp, const struct channel_slot *slot, struct listen_request *request)
{
    const uint32_t size = __atomic_load_n(&slot->size, __ATOMIC_RELAXED); /* once: another process writes there */
    memset(request->bytes, 0, MESSAGE_FIXED);                             /* no tag of the message before, for refuse */
    if (size < MESSAGE_FIXED || size > sizeof slot->bytes)
        return -EBADMSG;
    memcpy(request->bytes, slot->bytes, size);
    const uint16_t text_length = message_text_length(request->bytes);
    if (text_length > MESSAGE_TEXT_MAX)
        return -EBADMSG;
    memcpy(request->bytes + size, qp->text, text_length);
    request->size = size + text_length;
    return message_decode(&request->message, request->bytes, request->size);
}

static void listen_refuse(struct listen *listen, const struct listen_request *request)
{
    struct message answer = {.type = MESSAGE_ANSWER, .result = -EBADMSG};
    uint8_t bytes[MESSAGE_FIXED + MESSAGE_BODY_MAX];
    memcpy(&answer.tag, request->bytes + MESSAGE_TAG_AT, sizeof answer.tag);
    if (answer.tag != 0)
        listen_put_answer(listen, request->qp, answer.tag, bytes, message_encode(bytes, sizeof bytes, &answer));
}

/* Takes one message of a queue pair: 1, 0 if it is empty. */
static int listen_take(struct listen *listen, uint32_t number, struct listen_request *request, uint64_t *malformed)
{
    struct channel_qp *qp = &listen->channel->qp[number];
    while (qp->taken != __atomic_load_n(&qp->written, __ATOMIC_ACQUIRE)) {
        request->qp = number;
        pid_t client = (pid_t)__atomic_load_n(&qp->owner, __ATOMIC_ACQUIRE);
        request->client = (uint64_t)client;
        int code = listen_decode(qp, &qp->slots[qp->taken % CHANNEL_SLOTS], request);
        clients_watch(listen->clients, client);
        __atomic_store_n(&qp->taken, qp->taken + 1, __ATOMIC_RELEASE);
        if (code == 0)
            return 1;
        ++*malformed;
        listen_refuse(listen, request);
    }
    return 0;
}

static void listen_note_visit(struct listen *listen, uint32_t number)
{
    if (listen->channel->qp[number].grants == 0)
        return;
    listen->visited[number / 64] |= 1ull << number % 64;
    listen->visited_words |= 1u << number / 64;
}

int listen_next_visited(struct listen *listen)
{
    if (listen->visited_words == 0)
        return -1;
    const unsigned at = (unsigned)__builtin_ctz(listen->visited_words);
    uint64_t *word = &listen->visited[at];
    const unsigned bit = (unsigned)__builtin_ctzll(*word);
    *word &= *word - 1;
    if (*word == 0)
        listen->visited_words &= ~(1u << at);
    return (int)(at * 64 + bit);
}

/* In turn, so that the last one gets its turn, too. */
static unsigned listen_next_word(const struct listen *listen)
{
    uint32_t from_here = listen->words & (UINT32_MAX << listen->at);
    return (unsigned)__builtin_ctz(from_here != 0 ? from_here : listen->words);
}

int listen_next(struct listen *listen, struct listen_request *request, uint64_t *malformed)
{
    while (listen->words != 0 || listen_collect(listen)) {
        listen->at = listen_next_word(listen);
        uint64_t *word = &listen->to_take[listen->at];
        for (; *word != 0; *word &= *word - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(*word);
            listen_note_visit(listen, listen->at * 64 + bit);
            if (listen_take(listen, listen->at * 64 + bit, request, malformed))
                return 1;
        }
        listen->words &= ~(1u << listen->at);
    }
    return 0;
}

static bool listen_is_qp_of(const struct listen *listen, unsigned number, pid_t client)
{
    return channel_qp_is_there(listen->channel, number) && (pid_t)listen->channel->qp[number].owner == client;
}

static bool listen_has_messages(struct listen *listen, pid_t client)
{
    for (unsigned i = 0; i < CHANNEL_QPS; i++) {
        struct channel_qp *qp = &listen->channel->qp[i];
        if (listen_is_qp_of(listen, i, client) && qp->taken != __atomic_load_n(&qp->written, __ATOMIC_ACQUIRE))
            return true;
    }
    return false;
}

/* What it wrote and did not announce is announced here, so that listen_next takes it first. */
static void listen_announce(struct listen *listen, pid_t client)
{
    for (unsigned i = 0; i < CHANNEL_QPS; i++)
        if (listen_is_qp_of(listen, i, client)) {
            listen->to_take[i / 64] |= 1ull << (i % 64);
            listen->words |= 1u << i / 64;
        }
}

bool listen_follows_all(const struct listen *listen)
{
    return clients_are_followed(listen->clients);
}

void listen_look(struct listen *listen)
{
    clients_look(listen->clients);
}

pid_t listen_next_death(struct listen *listen)
{
    if (listen->dying == 0 && (listen->dying = clients_next_death(listen->clients)) != 0)
        listen_announce(listen, listen->dying);
    if (listen->dying == 0 || listen_has_messages(listen, listen->dying))
        return 0;
    pid_t client = listen->dying;
    listen->dying = 0;
    return client;
}

static void listen_free_bulk(struct channel_bulk *bulk)
{
    __atomic_store_n(&bulk->owner, 0, __ATOMIC_RELEASE);
}

void listen_forget(struct listen *listen, pid_t client)
{
    for (unsigned i = 0; i < CHANNEL_QPS; i++) {
        struct channel_qp *qp = &listen->channel->qp[i];
        if (!listen_is_qp_of(listen, i, client))
            continue;
        qp->holding = 0;
        __atomic_and_fetch(&qp->reply, CHANNEL_ANSWERED(CHANNEL_TAG_MAX), __ATOMIC_RELAXED);
        __atomic_store_n(&qp->owner, 0, __ATOMIC_RELEASE);
    }
    for (unsigned i = 0; i < CHANNEL_BULKS && listen->bulks >> i & 1; i++)
        if ((pid_t)__atomic_load_n(&listen->channel->bulks[i].owner, __ATOMIC_RELAXED) == client)
            listen_free_bulk(&listen->channel->bulks[i]);
}

bool listen_is_there(struct listen *listen, uint32_t qp, uint64_t client)
{
    return (uint64_t)__atomic_load_n(&listen->channel->qp[qp].owner, __ATOMIC_ACQUIRE) == client;
}

bool listen_gave_up(struct listen *listen, uint32_t qp, uint64_t client, uint32_t tag)
{
    return tag != 0 &&
           __atomic_load_n(&listen->channel->qp[qp].reply, __ATOMIC_ACQUIRE) == (CHANNEL_ANSWERED(tag) | CHANNEL_GAVE_UP);
}

bool listen_answer(struct listen *listen, uint32_t number, uint64_t client, uint32_t tag, const void *bytes, size_t size)
{
    return listen_is_there(listen, number, client) && listen_put_answer(listen, number, tag, bytes, size);
}

/* Its memory is there, or can be made now. */
static bool listen_make_bulk(struct listen *listen, int number)
{
    struct channel_bulk *bulk = &listen->channel->bulks[number];
    if ((listen->bulks >> number & 1) == 0 && sys_populate(bulk, sizeof *bulk) == 0)
        listen->bulks |= 1u << number;
    return (listen->bulks >> number & 1) != 0;
}

/* The first one that is free, so that those that are there are the first ones. What is written before the answer is, nobody
 * looks at. */
int listen_put_page(struct listen *listen, uint64_t client, const char *page, size_t size)
{
    for (int i = 0; i < CHANNEL_BULKS && listen_make_bulk(listen, i); i++) {
        struct channel_bulk *bulk = &listen->channel->bulks[i];
        if (__atomic_load_n(&bulk->owner, __ATOMIC_ACQUIRE) != 0)
            continue;
        memcpy(bulk->text, page, size);
        bulk->size = (uint32_t)size;
        __atomic_store_n(&bulk->owner, (uint32_t)client, __ATOMIC_RELEASE);
        return i;
    }
    return -ENOBUFS;
}

/* If that client is gone, it may be another one's by now. */
void listen_take_back_page(struct listen *listen, uint64_t client, int bulk)
{
    uint32_t owner = (uint32_t)client;
    __atomic_compare_exchange_n(&listen->channel->bulks[bulk].owner, &owner, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static struct channel_grant *listen_grant_of(struct listen *listen, uint32_t qp, unsigned slot)
{
    return &listen->channel->qp[qp].grant[slot];
}

static void listen_count_grants(struct listen *listen, uint32_t number, int32_t change)
{
    struct channel_qp *qp = &listen->channel->qp[number];
    const uint32_t before = qp->grants, now = before + (uint32_t)change;
    if ((before == 0) != (now == 0))
        __atomic_store_n(&listen->channel->granting, listen->channel->granting + (now == 0 ? -1u : 1u), __ATOMIC_SEQ_CST);
    __atomic_store_n(&qp->grants, now, __ATOMIC_RELAXED);
}

/* A number that no grant in this slot had before. */
static uint64_t listen_next_word_of(const struct channel_grant *grant)
{
    return (grant->word | ((1u << CHANNEL_GRANT_BITS) - 1)) + 1 + CHANNEL_GRANTED;
}

/* Up to the leaf. */
static size_t listen_common_part(const struct listen_grant *what)
{
    const char *leaf = memrchr(what->place, '/', what->place_length);
    return leaf != NULL ? (size_t)(leaf - what->place) + 1 : 0;
}

/* While a process may read it, it is not changed. */
static bool listen_set_place(struct channel_qp *qp, const char *place, size_t length)
{
    if (length == 0 || length > sizeof qp->place)
        return false;
    if (qp->grants > 0)
        return qp->place_length == length && memcmp(qp->place, place, length) == 0;
    memcpy(qp->place, place, length);
    qp->place_length = (uint16_t)length;
    return true;
}

bool listen_grant(struct listen *listen, uint32_t qp, unsigned slot, const struct listen_grant *what)
{
    struct channel_grant *grant = listen_grant_of(listen, qp, slot);
    if (what->name_length + what->to_length > sizeof grant->name ||
        !listen_set_place(&listen->channel->qp[qp], what->place, listen_common_part(what)))
        return false;
    grant->type = what->type;
    grant->calls = what->calls;
    grant->dir = what->dir;
    grant->entry = what->entry;
    grant->name_length = (uint16_t)what->name_length;
    grant->to_length = (uint16_t)what->to_length;
    memcpy(grant->name, what->name, what->name_length);
    if (what->to_length > 0)
        memcpy(&grant->name[what->name_length], what->to, what->to_length);
    listen_count_grants(listen, qp, 1);
    __atomic_store_n(&grant->word, listen_next_word_of(grant), __ATOMIC_SEQ_CST);
    return true;
}

void listen_end_grant(struct listen *listen, uint32_t qp, unsigned slot)
{
    struct channel_grant *grant = listen_grant_of(listen, qp, slot);
    __atomic_store_n(&grant->word, grant->word & ~(uint64_t)((1u << CHANNEL_GRANT_BITS) - 1), __ATOMIC_RELEASE);
    listen_count_grants(listen, qp, -1);
}

static const enum channel_granted listen_state[] = {[LISTEN_GRANTED] = CHANNEL_GRANTED,
                                                    [LISTEN_TAKEN] = CHANNEL_TAKEN,
                                                    [LISTEN_DONE] = CHANNEL_DONE,
                                                    [LISTEN_MOVING] = CHANNEL_MOVING,
                                                    [LISTEN_MOVED] = CHANNEL_MOVED};

bool listen_close_grant(struct listen *listen, uint32_t qp, unsigned slot, enum listen_granted what)
{
    struct channel_grant *grant = listen_grant_of(listen, qp, slot);
    const enum channel_granted state = listen_state[what];
    uint64_t word = __atomic_load_n(&grant->word, __ATOMIC_ACQUIRE);
    if (CHANNEL_GRANT_STATE(word) != state ||
        !__atomic_compare_exchange_n(&grant->word, &word, word - state, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
        return false;
    listen_count_grants(listen, qp, -1);
    return true;
}

bool listen_is_taken(const struct listen *listen, uint32_t qp, unsigned slot)
{
    const uint64_t word = __atomic_load_n(&listen->channel->qp[qp].grant[slot].word, __ATOMIC_ACQUIRE);
    return CHANNEL_GRANT_STATE(word) != CHANNEL_GRANTED;
}

/* A word that says anything else than these was written by the process itself: to it that is taken, until it ends. */
enum listen_granted listen_granted(struct listen *listen, uint32_t qp, unsigned slot, uint64_t *taken_at, uint64_t *made)
{
    struct channel_grant *grant = listen_grant_of(listen, qp, slot);
    const enum channel_granted state = CHANNEL_GRANT_STATE(__atomic_load_n(&grant->word, __ATOMIC_ACQUIRE));
    if (state == CHANNEL_GRANTED)
        return LISTEN_GRANTED;
    *taken_at = __atomic_load_n(&grant->taken_at, __ATOMIC_RELAXED);
    *made = __atomic_load_n(&grant->made, __ATOMIC_RELAXED);
    for (enum listen_granted what = LISTEN_DONE; what <= LISTEN_MOVED; what++)
        if (state == listen_state[what])
            return what;
    return LISTEN_TAKEN;
}

void listen_raise_rename_generation(struct listen *listen, uint32_t count)
{
    uint64_t *places = &listen->channel->places, before = __atomic_load_n(places, __ATOMIC_RELAXED), now;
    do
        now = (before & ~(CHANNEL_PLACES - 1)) + CHANNEL_PLACES + count;
    while (!__atomic_compare_exchange_n(places, &before, now, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

void listen_set_redirected(struct listen *listen)
{
    __atomic_store_n(&listen->channel->redirected, 1, __ATOMIC_RELEASE);
}

void listen_set_branch(struct listen *listen, uint16_t branch)
{
    __atomic_store_n(&listen->channel->branch, branch, __ATOMIC_RELAXED);
}

void listen_set_lease(struct listen *listen, uint64_t until)
{
    __atomic_store_n(&listen->channel->lease, until, __ATOMIC_RELEASE);
}

void listen_add_stall(struct listen *listen)
{
    __atomic_add_fetch(&listen->channel->stalls, 1, __ATOMIC_RELAXED);
}

void listen_set_clock(struct listen *listen)
{
    __atomic_store_n(&listen->channel->clock, clock_boot(), __ATOMIC_RELEASE);
}

uint64_t listen_lease(const struct listen *listen)
{
    return __atomic_load_n(&listen->channel->lease, __ATOMIC_ACQUIRE);
}

void listen_set_slow_lookup(struct listen *listen)
{
    __atomic_store_n(&listen->channel->far, 1, __ATOMIC_RELAXED);
}

bool listen_is_slow_lookup(const struct listen *listen)
{
    return listen->channel->far != 0;
}

void listen_set_keeps_names(struct listen *listen, bool keeps)
{
    __atomic_store_n(&listen->channel->keeps_names, keeps, __ATOMIC_RELEASE);
}

void listen_count_loss(struct listen *listen)
{
    __atomic_add_fetch(&listen->channel->losses, 1, __ATOMIC_SEQ_CST);
}

void listen_set_homes(struct listen *listen, const uint64_t homes[RECORD_SHARDS / 64])
{
    uint64_t all = UINT64_MAX, gained = 0, lost = 0;
    for (unsigned i = 0; i < RECORD_SHARDS / 64; i++) {
        all &= homes[i];
        gained |= homes[i] & ~listen->channel->homes[i];
        lost |= listen->channel->homes[i] & ~homes[i];
    }
    if (gained != 0)
        __atomic_add_fetch(&listen->channel->gains, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&listen->channel->sole, all == UINT64_MAX, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < RECORD_SHARDS / 64; i++)
        __atomic_store_n(&listen->channel->homes[i], homes[i], __ATOMIC_SEQ_CST);
    if (lost != 0) /* a client that counted before that may have used the old bits */
        listen_count_loss(listen);
}
