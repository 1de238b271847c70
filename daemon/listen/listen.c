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
#include "request/request.h"
#include "request/channel.h"

#define BITS (ROAD_LANES / 64) /* words with a bit for each lane */

struct listen {
    struct road *road;
    struct clients *clients;
    char path[PATH_MAX];
    uint64_t to_take[BITS]; /* lanes seen waiting, being emptied */
    uint32_t words;         /* which of its words are not zero */
    uint64_t visited[BITS]; /* lanes seen waiting that have offers, to be looked at */
    uint32_t visited_words;
    unsigned at;           /* the one to go on with */
    pid_t dying;           /* ended, its last messages are being taken */
    enum road_sleep sleep; /* for what it is left */
    struct moment moment;  /* before it begins */
    bool answered;         /* somebody, since it looked last, who may soon ask again */
    bool looked_for;       /* ... who looked for the answer, and so may ask at once */
    struct sleepers sleepers;
};

/* The mutex is robust and shared; its word is what clients look at. It is locked by main's thread, which
 * lives as long as the daemon does. */
static int lock_life(struct road *road)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    int code = pthread_mutex_init(&road->life, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return -(code != 0 ? code : pthread_mutex_lock(&road->life));
}

static int map_new(struct listen *listen, const char *path)
{
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    /* All of it now: on a full tmpfs a page that is not there yet would be a SIGBUS in an application. */
    int code = -posix_fallocate(fd, 0, ROAD_SIZE);
    void *mapped = code == 0 ? mmap(NULL, ROAD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (code == 0 && mapped == MAP_FAILED)
        code = -errno;
    close(fd);
    if (code == 0)
        listen->road = mapped;
    return code;
}

/* Ready before it is in its place: there, a process finds the road of a daemon that lives or of one that crashed. */
static int make_road(struct listen *listen, uint64_t session, struct dirid root, pid_t supervisor)
{
    char path[sizeof listen->path + 4];
    snprintf(path, sizeof path, "%s.new", listen->path);
    int code = map_new(listen, path);
    if (code != 0)
        return code;
    listen->sleep = ROAD_FOR_REQUESTS;
    sleepers_init(&listen->sleepers, listen->road);
    listen->road->version = ROAD_VERSION;
    listen->road->lanes = ROAD_LANES;
    listen->road->session = session;
    listen->road->root = root;
    listen->road->supervisor = supervisor;
    listen->road->lease = ROAD_FOR_EVER;
    listen->road->places = ROAD_PLACES;
    listen->road->pid_namespace = request_pid_namespace();
    code = lock_life(listen->road);
    __atomic_store_n(&listen->road->magic, ROAD_MAGIC, __ATOMIC_RELEASE);
    return code != 0 ? code : rename(path, listen->path) == 0 ? 0 : -errno;
}

static void ring_for_client(void *context)
{
    listen_ring(context);
}

int listen_create(struct listen **to, const char *run_dir, uint64_t session, struct dirid root, pid_t supervisor)
{
    struct listen *listen = calloc(1, sizeof *listen);
    if (listen == NULL)
        return -ENOMEM;
    snprintf(listen->path, sizeof listen->path, "%s/road", run_dir);
    int code = make_road(listen, session, root, supervisor);
    if (code == 0)
        code = clients_create(&listen->clients, ring_for_client, listen);
    if (code != 0) {
        listen_destroy(listen);
        return code;
    }
    *to = listen;
    return 0;
}

void listen_wake(struct listen *listen)
{
    sleepers_wake_due(&listen->sleepers);
}

void listen_wake_all(struct listen *listen)
{
    sleepers_wake_all(&listen->sleepers);
}

void listen_destroy(struct listen *listen)
{
    if (listen == NULL)
        return;
    clients_destroy(listen->clients);
    if (listen->road != NULL) {
        pthread_mutex_unlock(&listen->road->life);
        sleepers_wake_everybody(&listen->sleepers);
        unlink(listen->path);
        munmap(listen->road, ROAD_SIZE);
    }
    free(listen);
}

void listen_ring(struct listen *listen)
{
    __atomic_add_fetch(&listen->road->bell, 1, __ATOMIC_SEQ_CST);
    uint32_t asleep = __atomic_load_n(&listen->road->asleep, __ATOMIC_SEQ_CST);
    if (asleep != ROAD_AWAKE)
        sys_futex_wake(&listen->road->bell, 1);
}

#define LINE 8    /* words that are read together */
#define GLANCE 64 /* looks, some 2 us */

/* Two words at once: what they say is looked at again before it is gone by. */
typedef uint64_t two_words __attribute__((vector_size(16), may_alias));

static inline two_words line_of(const uint64_t *words)
{
    const volatile two_words *line = (const volatile two_words *)words;
    return (line[0] | line[1]) | (line[2] | line[3]);
}

static bool is_any_set(const uint64_t words[BITS])
{
    two_words all = line_of(words);
    for (unsigned i = LINE; i < BITS; i += LINE)
        all |= line_of(words + i);
    return (all[0] | all[1]) != 0;
}

/* What a message is read from, and its answer is written to, but for the line that its client looks at. */
static void call_for_lane(const struct road_lane *lane)
{
    fetch_to_read(lane, FETCH_LINE);
    fetch_to_read(&lane->slots[lane->taken % ROAD_SLOTS], ROAD_USUAL);
    fetch_to_write((const char *)&lane->reply + FETCH_LINE, ROAD_USUAL - FETCH_LINE);
}

/* Moves bits that clients set to our own. The first lane's lines come together with the word. */
static void collect_from(struct listen *listen, uint64_t words[BITS])
{
    if (!is_any_set(words))
        return;
    for (unsigned i = 0; i < BITS; i++) {
        const uint64_t bits = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
        if (bits == 0)
            continue;
        call_for_lane(&listen->road->lane[i * 64 + (unsigned)__builtin_ctzll(bits)]);
        listen->to_take[i] |= __atomic_exchange_n(&words[i], 0, __ATOMIC_SEQ_CST);
        listen->words |= 1u << i;
    }
}

/* True: there are lanes to be emptied. */
static bool collect(struct listen *listen)
{
    collect_from(listen, listen->road->asked);
    collect_from(listen, listen->road->told);
    return listen->words != 0;
}

uint32_t listen_rings(struct listen *listen)
{
    return __atomic_load_n(&listen->road->bell, __ATOMIC_SEQ_CST);
}

void listen_heed(struct listen *listen, bool notices)
{
    listen->sleep = notices ? ROAD_FOR_ALL : ROAD_FOR_REQUESTS;
}

/* Since it was rung so often somebody else has rung, or a client has come, or there is something left to be taken. */
static bool is_called(const struct listen *listen, uint32_t rings)
{
    const struct road *road = listen->road;
    return __atomic_load_n(&road->bell, __ATOMIC_RELAXED) != rings || listen->words != 0 || is_any_set(road->asked) ||
           (listen->sleep == ROAD_FOR_ALL && is_any_set(road->told));
}

/* Who had his answer without a wake may ask again at once. */
static bool glance(struct listen *listen, uint32_t rings)
{
    bool called = is_called(listen, rings);
    for (unsigned i = 0; i < GLANCE && listen->looked_for && !called; i++, called = is_called(listen, rings))
        moment_pause();
    listen->looked_for &= called;
    return called;
}

/* While nobody comes, the next ones are woken. */
static bool look_and_wake(struct listen *listen, uint32_t rings)
{
    bool called = is_called(listen, rings);
    while (!called && !sleepers_are_none(&listen->sleepers)) {
        called = glance(listen, rings);
        if (!called)
            sleepers_wake_next(&listen->sleepers);
    }
    return called;
}

/* Somebody has come meanwhile, or did so in a moment. Who takes what he was offered is not waited for: he does not come
 * soon. */
static bool look(struct listen *listen, uint32_t rings)
{
    if (look_and_wake(listen, rings))
        return true;
    if (!listen->answered || !moment_pays(&listen->moment))
        return false;
    listen->answered = false;
    bool called = MOMENT_LOOK(is_called(listen, rings));
    moment_was(&listen->moment, !called);
    return called;
}

/* The first one's lines are on their way while the daemon does what comes before its message. */
static void call_for_first(const struct listen *listen)
{
    for (unsigned i = 0; i < BITS; i++) {
        const uint64_t bits = __atomic_load_n(&listen->road->asked[i], __ATOMIC_RELAXED);
        if (bits == 0)
            continue;
        call_for_lane(&listen->road->lane[i * 64 + (unsigned)__builtin_ctzll(bits)]);
        return;
    }
}

/* Clients ring only while `asleep` stands, so their bits are looked at after it was raised. */
bool listen_rest(struct listen *listen, uint32_t rings)
{
    listen_wake(listen);
    if (look(listen, rings)) {
        call_for_first(listen);
        return false;
    }
    __atomic_store_n(&listen->road->asleep, listen->sleep, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return !collect(listen);
}

void listen_sleep(struct listen *listen, uint32_t rings, uint64_t limit)
{
    struct timespec wait = clock_split(limit);
    sys_futex_wait(&listen->road->bell, rings, limit > 0 ? &wait : NULL);
}

/* Clients read both whenever they ask: what has not changed is not written. */
void listen_rise(struct listen *listen)
{
    struct road *road = listen->road;
    const uint32_t processor = (uint32_t)sched_getcpu();
    if (road->asleep != ROAD_AWAKE)
        __atomic_store_n(&road->asleep, ROAD_AWAKE, __ATOMIC_RELAXED);
    if (road->processor != processor)
        __atomic_store_n(&road->processor, processor, __ATOMIC_RELAXED);
}

void listen_wait(struct listen *listen, uint32_t rings, uint64_t limit)
{
    if (listen_rest(listen, rings))
        listen_sleep(listen, rings, limit);
    listen_rise(listen);
}

bool listen_has_more(struct listen *listen)
{
    return collect(listen);
}

/* False: nobody waits for it any more. */
static bool put_answer(struct listen *listen, uint32_t number, uint32_t tag, const void *bytes, size_t size)
{
    struct road_lane *lane = &listen->road->lane[number];
    memcpy(lane->answer, bytes, size);
    lane->answer_size = (uint32_t)size;
    listen->answered = true;
    const uint32_t before = __atomic_exchange_n(&lane->reply, ROAD_ANSWERED(tag), __ATOMIC_SEQ_CST);
    if (before & ROAD_SLEEPS)
        sleepers_add(&listen->sleepers, number);
    else
        listen->looked_for = true;
    return !(before & ROAD_GAVE_UP);
}

/* Copies a message and decodes the copy. The text, if the type has one, lies in the lane. */
static int decode(const struct road_lane *lane, const struct road_slot *slot, struct listen_request *request)
{
    uint32_t size = slot->size;
    uint16_t text_length = lane->text_length;
    memset(request->bytes, 0, MESSAGE_FIXED); /* no tag of the message before, for refuse */
    if (size < MESSAGE_FIXED || size > sizeof slot->bytes || text_length > MESSAGE_TEXT_MAX)
        return -EBADMSG;
    memcpy(request->bytes, slot->bytes, size);
    if (text_length > 0) {
        memcpy(request->bytes + size, lane->text, text_length);
        memcpy(request->bytes + MESSAGE_FIXED - 4, &text_length, sizeof text_length);
    }
    return message_decode(&request->message, request->bytes, size + text_length);
}

static void refuse(struct listen *listen, const struct listen_request *request)
{
    struct message answer = {.type = MESSAGE_ANSWER, .result = -EBADMSG};
    uint8_t bytes[MESSAGE_FIXED];
    memcpy(&answer.tag, request->bytes + 8, sizeof answer.tag);
    if (answer.tag != 0)
        put_answer(listen, request->lane, answer.tag, bytes, message_encode(bytes, sizeof bytes, &answer));
}

/* Takes one message of a lane: 1, 0 if it is empty. */
static int take(struct listen *listen, uint32_t number, struct listen_request *request, uint64_t *malformed)
{
    struct road_lane *lane = &listen->road->lane[number];
    while (lane->taken != __atomic_load_n(&lane->written, __ATOMIC_ACQUIRE)) {
        request->lane = number;
        pid_t client = (pid_t)__atomic_load_n(&lane->owner, __ATOMIC_ACQUIRE);
        request->client = (uint64_t)client;
        int code = decode(lane, &lane->slots[lane->taken % ROAD_SLOTS], request);
        clients_watch(listen->clients, client);
        __atomic_store_n(&lane->taken, lane->taken + 1, __ATOMIC_RELEASE);
        if (code == 0)
            return 1;
        ++*malformed;
        refuse(listen, request);
    }
    return 0;
}

static void note_visit(struct listen *listen, uint32_t number)
{
    if (listen->road->lane[number].offers == 0)
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
static unsigned next_word(const struct listen *listen)
{
    uint32_t from_here = listen->words & (UINT32_MAX << listen->at);
    return (unsigned)__builtin_ctz(from_here != 0 ? from_here : listen->words);
}

int listen_next(struct listen *listen, struct listen_request *request, uint64_t *malformed)
{
    while (listen->words != 0 || collect(listen)) {
        listen->at = next_word(listen);
        uint64_t *word = &listen->to_take[listen->at];
        for (; *word != 0; *word &= *word - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(*word);
            note_visit(listen, listen->at * 64 + bit);
            if (take(listen, listen->at * 64 + bit, request, malformed))
                return 1;
        }
        listen->words &= ~(1u << listen->at);
    }
    return 0;
}

static bool has_messages(struct listen *listen, pid_t client)
{
    for (unsigned i = 0; i < ROAD_LANES; i++) {
        struct road_lane *lane = &listen->road->lane[i];
        if ((pid_t)lane->owner == client && lane->taken != __atomic_load_n(&lane->written, __ATOMIC_ACQUIRE))
            return true;
    }
    return false;
}

/* What it wrote and did not announce is announced here, so that listen_next takes it first. */
static void announce(struct listen *listen, pid_t client)
{
    for (unsigned i = 0; i < ROAD_LANES; i++)
        if ((pid_t)listen->road->lane[i].owner == client) {
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
        announce(listen, listen->dying);
    if (listen->dying == 0 || has_messages(listen, listen->dying))
        return 0;
    pid_t client = listen->dying;
    listen->dying = 0;
    return client;
}

static void free_bay(struct road_bay *bay)
{
    __atomic_store_n(&bay->owner, 0, __ATOMIC_RELEASE);
}

void listen_forget(struct listen *listen, pid_t client)
{
    for (unsigned i = 0; i < ROAD_LANES; i++) {
        struct road_lane *lane = &listen->road->lane[i];
        if ((pid_t)lane->owner != client)
            continue;
        lane->holding = 0;
        __atomic_and_fetch(&lane->reply, ROAD_ANSWERED(ROAD_TAG_MAX), __ATOMIC_RELAXED);
        __atomic_store_n(&lane->owner, 0, __ATOMIC_RELEASE);
    }
    for (unsigned i = 0; i < ROAD_BAYS; i++)
        if ((pid_t)__atomic_load_n(&listen->road->bays[i].owner, __ATOMIC_RELAXED) == client)
            free_bay(&listen->road->bays[i]);
}

bool listen_is_there(struct listen *listen, uint32_t lane, uint64_t client)
{
    return (uint64_t)__atomic_load_n(&listen->road->lane[lane].owner, __ATOMIC_ACQUIRE) == client;
}

bool listen_gave_up(struct listen *listen, uint32_t lane, uint64_t client, uint32_t tag)
{
    return tag != 0 &&
           __atomic_load_n(&listen->road->lane[lane].reply, __ATOMIC_ACQUIRE) == (ROAD_ANSWERED(tag) | ROAD_GAVE_UP);
}

bool listen_answer(struct listen *listen, uint32_t number, uint64_t client, uint32_t tag, const void *bytes, size_t size)
{
    return listen_is_there(listen, number, client) && put_answer(listen, number, tag, bytes, size);
}

/* What is written before the answer is, nobody looks at. */
int listen_put_page(struct listen *listen, uint64_t client, const char *page, size_t size)
{
    for (int i = 0; i < ROAD_BAYS; i++) {
        struct road_bay *bay = &listen->road->bays[i];
        if (__atomic_load_n(&bay->owner, __ATOMIC_ACQUIRE) != 0)
            continue;
        memcpy(bay->text, page, size);
        bay->size = (uint32_t)size;
        __atomic_store_n(&bay->owner, (uint32_t)client, __ATOMIC_RELEASE);
        return i;
    }
    return -ENOBUFS;
}

/* If that client is gone, it may be another one's by now. */
void listen_take_back_page(struct listen *listen, uint64_t client, int bay)
{
    uint32_t owner = (uint32_t)client;
    __atomic_compare_exchange_n(&listen->road->bays[bay].owner, &owner, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static struct road_offer *offer_of(struct listen *listen, uint32_t lane, unsigned slot)
{
    return &listen->road->lane[lane].offer[slot];
}

static void count_offers(struct listen *listen, uint32_t number, int32_t change)
{
    struct road_lane *lane = &listen->road->lane[number];
    const uint32_t before = lane->offers, now = before + (uint32_t)change;
    if ((before == 0) != (now == 0))
        __atomic_store_n(&listen->road->offering, listen->road->offering + (now == 0 ? -1u : 1u), __ATOMIC_SEQ_CST);
    __atomic_store_n(&lane->offers, now, __ATOMIC_RELAXED);
}

/* A number that no offer in this slot had before. */
static uint64_t next_word_of(const struct road_offer *offer)
{
    return (offer->word | ((1u << ROAD_OFFER_BITS) - 1)) + 1 + ROAD_OFFERED;
}

/* Up to the leaf. */
static size_t common_part(const struct listen_offer *what)
{
    const char *leaf = memrchr(what->place, '/', what->place_length);
    return leaf != NULL ? (size_t)(leaf - what->place) + 1 : 0;
}

/* While a process may read it, it is not changed. */
static bool set_place(struct road_lane *lane, const char *place, size_t length)
{
    if (length == 0 || length > sizeof lane->place)
        return false;
    if (lane->offers > 0)
        return lane->place_length == length && memcmp(lane->place, place, length) == 0;
    memcpy(lane->place, place, length);
    lane->place_length = (uint16_t)length;
    return true;
}

bool listen_offer(struct listen *listen, uint32_t lane, unsigned slot, const struct listen_offer *what)
{
    struct road_offer *offer = offer_of(listen, lane, slot);
    if (what->name_length > sizeof offer->name || !set_place(&listen->road->lane[lane], what->place, common_part(what)))
        return false;
    offer->type = what->type;
    offer->calls = what->calls;
    offer->dir = what->dir;
    offer->entry = what->entry;
    offer->name_length = (uint16_t)what->name_length;
    memcpy(offer->name, what->name, what->name_length);
    count_offers(listen, lane, 1);
    __atomic_store_n(&offer->word, next_word_of(offer), __ATOMIC_SEQ_CST);
    return true;
}

void listen_end_offer(struct listen *listen, uint32_t lane, unsigned slot)
{
    struct road_offer *offer = offer_of(listen, lane, slot);
    __atomic_store_n(&offer->word, offer->word & ~(uint64_t)((1u << ROAD_OFFER_BITS) - 1), __ATOMIC_RELEASE);
    count_offers(listen, lane, -1);
}

bool listen_take_back_offer(struct listen *listen, uint32_t lane, unsigned slot)
{
    struct road_offer *offer = offer_of(listen, lane, slot);
    uint64_t word = __atomic_load_n(&offer->word, __ATOMIC_ACQUIRE);
    if (ROAD_OFFER_STATE(word) != ROAD_OFFERED ||
        !__atomic_compare_exchange_n(&offer->word, &word, word - ROAD_OFFERED, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
        return false;
    count_offers(listen, lane, -1);
    return true;
}

bool listen_is_taken(const struct listen *listen, uint32_t lane, unsigned slot)
{
    const uint64_t word = __atomic_load_n(&listen->road->lane[lane].offer[slot].word, __ATOMIC_ACQUIRE);
    return ROAD_OFFER_STATE(word) != ROAD_OFFERED;
}

/* A word that says anything else than these was written by the process itself: to it that is taken, until it ends. */
enum listen_offered listen_offered(struct listen *listen, uint32_t lane, unsigned slot, uint64_t *taken_at, uint64_t *made)
{
    struct road_offer *offer = offer_of(listen, lane, slot);
    const enum road_offered state = ROAD_OFFER_STATE(__atomic_load_n(&offer->word, __ATOMIC_ACQUIRE));
    if (state == ROAD_OFFERED)
        return LISTEN_OFFERED;
    *taken_at = __atomic_load_n(&offer->taken_at, __ATOMIC_RELAXED);
    *made = __atomic_load_n(&offer->made, __ATOMIC_RELAXED);
    return state == ROAD_DONE ? LISTEN_DONE : LISTEN_TAKEN;
}

void listen_set_moving(struct listen *listen, uint32_t count)
{
    uint64_t *places = &listen->road->places, before = __atomic_load_n(places, __ATOMIC_RELAXED), now;
    do
        now = (before & ~(ROAD_PLACES - 1)) + ROAD_PLACES + count;
    while (!__atomic_compare_exchange_n(places, &before, now, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

void listen_set_redirected(struct listen *listen)
{
    __atomic_store_n(&listen->road->redirected, 1, __ATOMIC_RELEASE);
}

void listen_set_branch(struct listen *listen, uint16_t branch)
{
    __atomic_store_n(&listen->road->branch, branch, __ATOMIC_RELAXED);
}

void listen_set_lease(struct listen *listen, uint64_t until)
{
    __atomic_store_n(&listen->road->lease, until, __ATOMIC_RELEASE);
}

uint64_t listen_lease(const struct listen *listen)
{
    return listen->road->lease;
}

void listen_set_far(struct listen *listen)
{
    __atomic_store_n(&listen->road->far, 1, __ATOMIC_RELAXED);
}

bool listen_is_far(const struct listen *listen)
{
    return listen->road->far != 0;
}

void listen_count_loss(struct listen *listen)
{
    __atomic_add_fetch(&listen->road->losses, 1, __ATOMIC_SEQ_CST);
}

void listen_set_homes(struct listen *listen, const uint64_t homes[RECORD_SHARDS / 64])
{
    uint64_t all = UINT64_MAX, gained = 0, lost = 0;
    for (unsigned i = 0; i < RECORD_SHARDS / 64; i++) {
        all &= homes[i];
        gained |= homes[i] & ~listen->road->homes[i];
        lost |= listen->road->homes[i] & ~homes[i];
    }
    if (gained != 0)
        __atomic_add_fetch(&listen->road->gains, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&listen->road->sole, all == UINT64_MAX, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < RECORD_SHARDS / 64; i++)
        __atomic_store_n(&listen->road->homes[i], homes[i], __ATOMIC_SEQ_CST);
    if (lost != 0) /* who counted before that may still have gone by the bits of before */
        listen_count_loss(listen);
}
