/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Both ends of the channel: lib/request in this process, daemon/listen in a child that serves in place of a
 * daemon. */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "channel_memory.h"
#include "listen/predecessor.h"
#include "listen/listen.h"
#include "place.h"
#include "request/request.h"
#include "request/channel.h"

#define SOON (20 * CLOCK_SECOND) /* what must happen happens long before */

static const struct dirid dir = {4, 5};

/* The serving child. LOOKUP is answered with its own name, but for "slow", which is answered when "release"
 * is looked up; LIST is answered with a page of as many letters , and before that, if it says so, somebody
 * that is not there; COMMIT is counted; STATUS says what was counted; SETTLE ends it. */
struct server {
    struct listen *listen;
    uint64_t malformed, told, deaths, told_at_death;
    struct listen_request slow;
    bool has_slow, ended;
};

static bool answer_to(struct server *server, const struct listen_request *request, uint64_t client,
                      const struct message *answer)
{
    uint8_t bytes[REQUEST_ANSWER_MAX];
    size_t size = message_encode(bytes, sizeof bytes, answer);
    return listen_answer(server->listen, request->qp, client, answer->tag, bytes, size);
}

static void answer_with(struct server *server, const struct listen_request *request, const struct message *answer)
{
    answer_to(server, request, request->client, answer);
}

static void answer_name(struct server *server, const struct listen_request *request)
{
    struct message answer = {.type = MESSAGE_ANSWER, .tag = request->message.tag, .result = MESSAGE_EXISTS};
    answer.answer.place[0] = request->message.name;
    answer_with(server, request, &answer);
}

static void answer_counts(struct server *server, const struct listen_request *request)
{
    char text[200];
    int gave_up =
        server->has_slow && listen_gave_up(server->listen, server->slow.qp, server->slow.client, server->slow.message.tag);
    struct message answer = {.type = MESSAGE_TEXT_ANSWER, .tag = request->message.tag};
    const int length = snprintf(text, sizeof text, "%lu %lu %lu %lu %d %d", server->told, server->malformed, server->deaths,
                                server->told_at_death, server->has_slow, gave_up);
    answer.text_answer.text = message_text(text, (size_t)length);
    answer_with(server, request, &answer);
}

static void ops_lookup(struct server *server, const struct listen_request *request)
{
    const struct message *message = &request->message;
    if (message->name.length == 4 && memcmp(message->name.text, "slow", 4) == 0) {
        server->slow = *request;
        server->has_slow = true;
        return;
    }
    if (message->name.length == 7 && memcmp(message->name.text, "release", 7) == 0 && server->has_slow) {
        server->has_slow = false;
        cr_assert_eq(message_decode(&server->slow.message, server->slow.bytes, message_size(&server->slow.message)), 0);
        answer_name(server, &server->slow);
    }
    answer_name(server, request);
}

static void answer_page(struct server *server, const struct listen_request *request)
{
    static char page[PAGE_MAX];
    uint64_t client = request->client;
    memset(page, 'p', sizeof page);
    for (int nobody = request->message.list.room != 0; nobody >= 0; nobody--) {
        int bulk = listen_put_page(server->listen, client + (uint64_t)nobody, page, request->message.list.from);
        struct message answer = {.type = MESSAGE_TEXT_ANSWER,
                                 .flags = bulk >= 0 ? MESSAGE_BULK : 0,
                                 .tag = request->message.tag,
                                 .result = bulk < 0 ? bulk : 0,
                                 .text_answer.bulk = bulk >= 0 ? (uint32_t)bulk : 0};
        bool taken = answer_to(server, request, client + (uint64_t)nobody, &answer);
        cr_assert_eq(taken, nobody == 0);
        if (!taken && bulk >= 0)
            listen_take_back_page(server->listen, client + (uint64_t)nobody, bulk);
    }
}

/* How long the path is, and its sum. */
static void answer_path(struct server *server, const struct listen_request *request)
{
    const struct message_text *path = &request->message.load.path;
    const struct record_entry sum = {.type = DT_REG, .state = RECORD_LIVE, .ino = record_sum(path->text, path->length, 0)};
    answer_with(
        server, request,
        &(struct message){.type = MESSAGE_ANSWER, .tag = request->message.tag, .result = path->length, .answer.entry[0] = sum});
}

static void serve_one(struct server *server, const struct listen_request *request)
{
    switch (request->message.type) {
    case MESSAGE_LOOKUP:
        ops_lookup(server, request);
        break;
    case MESSAGE_COMMIT:
        server->told++;
        break;
    case MESSAGE_STATUS:
        answer_counts(server, request);
        break;
    case MESSAGE_WATCH:
        listen_heed(server->listen, true);
        answer_name(server, request);
        break;
    case MESSAGE_LIST:
        answer_page(server, request);
        break;
    case MESSAGE_LOAD:
        answer_path(server, request);
        break;
    default:
        server->ended = true;
    }
}

static void serve_deaths(struct server *server)
{
    for (pid_t client; (client = listen_next_death(server->listen)) != 0;) {
        server->deaths++;
        server->told_at_death = server->told;
        listen_forget(server->listen, client);
    }
}

static void channel_serve(int ready)
{
    static struct server server;
    struct listen_request request;
    if (listen_create(&server.listen, place, 77, (struct dirid){2, 3}, 0) != 0 || write(ready, "", 1) != 1)
        _exit(1);
    while (!server.ended) {
        uint32_t rings = listen_rings(server.listen);
        while (!server.ended && listen_next(server.listen, &request, &server.malformed))
            serve_one(&server, &request);
        serve_deaths(&server);
        if (!server.ended)
            listen_wait(server.listen, rings, 0);
    }
    listen_destroy(server.listen);
    _exit(0);
}

static pid_t server;
static struct request_channel *channel;

static void start_server(void)
{
    int ready[2];
    char byte;
    cr_assert_eq(pipe(ready), 0);
    server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        channel_serve(ready[1]);
    }
    close(ready[1]);
    cr_assert_eq(read(ready[0], &byte, 1), 1, "the server did not start");
    close(ready[0]);
}

static void channel_init(void)
{
    place_init();
    start_server();
    cr_assert_eq(request_attach(&channel, place), 0);
}

/* Once only: the number of a process that was waited for may be another's. */
static void kill_server(void)
{
    if (server <= 0)
        return;
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    server = 0;
}

static void channel_finish(void)
{
    kill_server();
    place_finish();
}

TestSuite(channel, .init = channel_init, .fini = channel_finish, .timeout = 120);

static struct message channel_named(uint16_t type, const char *name)
{
    return (struct message){.type = type, .dir = dir, .name = message_text(name, strlen(name))};
}

/* Asks for a name: 0 if its answer came, else -errno or what the answer says. */
static int look_up(const char *name, uint64_t deadline)
{
    struct request_answer answer;
    struct message message = channel_named(MESSAGE_LOOKUP, name);
    int code = request_ask(channel, &message, &answer, deadline);
    if (code != 0)
        return code;
    const struct message *got = &answer.message;
    if (got->result != MESSAGE_EXISTS)
        return got->result;
    const struct message_text *told = &got->answer.place[0];
    return told->length == strlen(name) && memcmp(told->text, name, strlen(name)) == 0 ? 0 : -EILSEQ;
}

static int channel_tell(const char *name)
{
    struct message message = channel_named(MESSAGE_COMMIT, name);
    return request_tell(channel, &message);
}

struct counts {
    uint64_t told, malformed, deaths, told_at_death;
    int has_slow, gave_up;
};

static struct counts channel_counts(void)
{
    struct request_answer answer;
    struct counts is;
    char text[256];
    cr_assert_eq(request_ask(channel, &(struct message){.type = MESSAGE_STATUS}, &answer, SOON), 0);
    snprintf(text, sizeof text, "%.*s", answer.message.text_answer.text.length, answer.message.text_answer.text.text);
    cr_assert_eq(sscanf(text, "%lu %lu %lu %lu %d %d", &is.told, &is.malformed, &is.deaths, &is.told_at_death, &is.has_slow,
                        &is.gave_up),
                 6);
    return is;
}

/* The shared memory itself. */
static struct channel *channel_shared(void)
{
    return channel_memory(place_path("channel"));
}

Test(channel, attached)
{
    cr_assert_eq(request_session(channel), 77);
    cr_assert(dirid_equal(request_root(channel), (struct dirid){2, 3}));
    cr_assert(request_is_alive(channel));
    cr_assert_eq(request_has_redirected(channel), 0);
    uint64_t places = request_places(channel);
    request_raise_places(channel);
    cr_assert_neq(request_places(channel), places);
    request_abandon(channel);
}

Test(channel, ask_and_answer)
{
    char name[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "name.%d", i);
        cr_assert_eq(look_up(name, SOON), 0, "%s", name);
    }
    cr_assert_eq(channel_memory_qps(channel_shared(), getpid()), 1, "one thread needs one queue pair");
}

Test(channel, a_text_goes_along)
{
    char longest[2000];
    struct request_answer answer;
    memset(longest, 'q', sizeof longest);
    const struct message load = {.type = MESSAGE_LOAD, .dir = dir, .load.path = message_text(longest, 2000)};
    cr_assert_eq(channel_tell("a"), 0, "a message without text lies before it");
    cr_assert_eq(request_ask(channel, &load, &answer, SOON), 0);
    cr_assert_eq(answer.message.result, 2000);
    cr_assert_eq(answer.message.answer.entry[0].ino, record_sum(longest, 2000, 0));
    cr_assert_eq(look_up("b", SOON), 0, "and one after it");
    cr_assert_eq(channel_counts().told, 1);
}

/* Long answers. */

static unsigned bulks_of(const struct channel *memory, pid_t pid)
{
    unsigned count = 0;
    for (unsigned i = 0; i < CHANNEL_BULKS; i++)
        count += __atomic_load_n(&memory->bulks[i].owner, __ATOMIC_ACQUIRE) == (uint32_t)pid;
    return count;
}

static int channel_list(struct request_answer *answer, size_t size, bool nobody)
{
    const struct message message = {.type = MESSAGE_LIST, .dir = dir, .list = {.from = size, .room = nobody}};
    int code = request_ask(channel, &message, answer, SOON);
    return code != 0 ? code : answer->message.result;
}

Test(channel, a_long_answer_lies_in_a_bulk_until_it_was_read)
{
    struct request_answer answers[CHANNEL_BULKS + 1];
    struct channel *memory = channel_shared();
    for (unsigned i = 0; i < CHANNEL_BULKS; i++) {
        cr_assert_eq(channel_list(&answers[i], PAGE_MAX - i, false), 0);
        cr_assert_eq(bulks_of(memory, getpid()), i + 1);
    }
    cr_assert_eq(channel_list(&answers[CHANNEL_BULKS], PAGE_MAX, false), -ENOBUFS);
    for (unsigned i = 0; i < CHANNEL_BULKS; i++) {
        const struct message *got = &answers[i].message;
        cr_assert_eq(got->text_answer.text.length, PAGE_MAX - i);
        cr_assert(got->text_answer.text.text[0] == 'p' && got->text_answer.text.text[PAGE_MAX - i - 1] == 'p');
        request_read(&answers[i]);
    }
    cr_assert_eq(bulks_of(memory, getpid()), 0);
    for (unsigned i = 0; i <= CHANNEL_BULKS; i++) {
        cr_assert_eq(channel_list(&answers[0], 1, false), 0);
        request_read(&answers[0]);
        request_read(&answers[0]);
    }
}

Test(channel, a_long_answer_that_nobody_takes_leaves_no_bulk)
{
    struct request_answer answer;
    struct channel *memory = channel_shared();
    for (unsigned i = 0; i <= CHANNEL_BULKS; i++) {
        cr_assert_eq(channel_list(&answer, 5, true), 0);
        request_read(&answer);
    }
    cr_assert_eq(bulks_of(memory, 0), CHANNEL_BULKS);
}

Test(channel, bulks_come_back_from_a_dead_client)
{
    int status;
    pid_t client = fork();
    if (client == 0) {
        struct request_answer answer;
        _exit(request_inherit(channel) != 0 || channel_list(&answer, 5, false) != 0 ||
              bulks_of(channel_shared(), getpid()) != 1);
    }
    cr_assert_eq(waitpid(client, &status, 0), client);
    cr_assert_eq(status, 0);
    while (channel_counts().deaths < 1)
        usleep(1000);
    cr_assert_eq(bulks_of(channel_shared(), 0), CHANNEL_BULKS);
}

Test(channel, tell_does_not_wake)
{
    struct channel *memory = channel_shared();
    cr_assert_eq(look_up("a", SOON), 0);
    while (__atomic_load_n(&memory->asleep, __ATOMIC_SEQ_CST) == 0)
        usleep(1000);
    uint32_t doorbell = __atomic_load_n(&memory->doorbell, __ATOMIC_SEQ_CST);
    for (int i = 0; i < CHANNEL_SLOTS; i++)
        cr_assert_eq(channel_tell("a"), 0);
    cr_assert_eq(__atomic_load_n(&memory->doorbell, __ATOMIC_SEQ_CST), doorbell);
    cr_assert_eq(channel_counts().told, CHANNEL_SLOTS, "what was told is read before the next answer");
}

Test(channel, tell_wakes_a_daemon_that_heeds)
{
    struct message heed = {.type = MESSAGE_WATCH, .dir = dir};
    struct channel *memory = channel_shared();
    int result;
    cr_assert_eq(request_result(channel, &heed, &result, SOON), 0);
    while (__atomic_load_n(&memory->asleep, __ATOMIC_SEQ_CST) != CHANNEL_FOR_ALL)
        usleep(1000);
    uint32_t doorbell = __atomic_load_n(&memory->doorbell, __ATOMIC_SEQ_CST);
    cr_assert_eq(channel_tell("a"), 0);
    cr_assert_eq(__atomic_load_n(&memory->doorbell, __ATOMIC_SEQ_CST), doorbell + 1);
}

Test(channel, a_full_ring_is_emptied)
{
    for (int i = 0; i < 2000; i++)
        cr_assert_eq(channel_tell("a"), 0);
    cr_assert_eq(channel_counts().told, 2000);
}

/* Threads. */

static void *look_often(void *context)
{
    char name[32];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "%p.%d", context, i);
        if (i % 5 == 0 && channel_tell(name) != 0)
            return (void *)1;
        if (look_up(name, SOON) != 0)
            return (void *)2;
    }
    return NULL;
}

Test(channel, many_threads)
{
    pthread_t threads[64];
    for (size_t i = 0; i < 64; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, look_often, (void *)(i + 1)), 0);
    for (int i = 0; i < 64; i++) {
        void *wrong;
        cr_assert_eq(pthread_join(threads[i], &wrong), 0);
        cr_assert_null(wrong, "thread %d", i);
    }
    cr_assert_eq(channel_counts().told, 64 * 40);
    cr_assert_leq(channel_memory_qps(channel_shared(), getpid()), 65);
}

/* The end of the daemon. */

struct waiting {
    pthread_t thread;
    int code;
    uint64_t ended;
};

static void *wait_for_slow(void *context)
{
    struct waiting *waiting = context;
    waiting->code = look_up("slow", 100 * CLOCK_SECOND);
    waiting->ended = clock_monotonic();
    return NULL;
}

static void begin_waiting(struct waiting *waiting)
{
    cr_assert_eq(pthread_create(&waiting->thread, NULL, wait_for_slow, waiting), 0);
    while (!channel_counts().has_slow)
        usleep(1000);
}

static void check_gone(struct waiting *waiting, uint64_t since)
{
    struct request_channel *again;
    pthread_join(waiting->thread, NULL);
    cr_assert_eq(waiting->code, -EHOSTDOWN);
    cr_assert_lt(waiting->ended - since, 5 * CLOCK_SECOND, "noticed at once");
    cr_assert_not(request_is_alive(channel));
    cr_assert_eq(look_up("a", SOON), -EHOSTDOWN);
    cr_assert_eq(channel_tell("a"), -EHOSTDOWN);
    cr_assert_lt(request_attach(&again, place), 0);
}

Test(channel, a_killed_daemon_is_noticed)
{
    struct waiting waiting;
    struct request_channel *again;
    begin_waiting(&waiting);
    uint64_t since = clock_monotonic();
    kill_server();
    check_gone(&waiting, since);
    cr_assert_eq(request_attach(&again, place), -EHOSTDOWN);
}

Test(channel, a_stopped_daemon_is_noticed)
{
    struct waiting waiting;
    struct request_channel *again;
    begin_waiting(&waiting);
    uint64_t since = clock_monotonic();
    cr_assert_eq(request_tell(channel, &(struct message){.type = MESSAGE_SETTLE}), 0);
    cr_assert_lt(look_up("a", SOON), 0, "wakes it");
    cr_assert_eq(waitpid(server, NULL, 0), server);
    server = 0;
    check_gone(&waiting, since);
    cr_assert_eq(request_attach(&again, place), -ENOENT);
    start_server();
    cr_assert_eq(request_attach(&again, place), 0, "and a new one is found");
}

/* A ring that nobody empties any more. */
Test(channel, telling_a_killed_daemon)
{
    int code = 0;
    kill(server, SIGSTOP);
    for (int i = 0; i < CHANNEL_SLOTS; i++)
        cr_assert_eq(channel_tell("a"), 0);
    kill_server();
    for (int i = 0; i < 2 && code == 0; i++)
        code = channel_tell("a");
    cr_assert_eq(code, -EHOSTDOWN);
}

/* Requests that are given up, or make no sense. */

Test(channel, a_request_given_up)
{
    cr_assert_eq(look_up("slow", 20 * CLOCK_MILLISECOND), -ETIMEDOUT);
    struct counts is = channel_counts();
    cr_assert(is.has_slow && is.gave_up, "the daemon can see it");
    for (int i = 0; i < 10; i++)
        cr_assert_eq(look_up("a", SOON), 0, "the next has a lane of its own");
    cr_assert_eq(look_up("release", SOON), 0);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(look_up("b", SOON), 0, "the late answer is nobody's");
}

Test(channel, malformed_messages_are_answered)
{
    cr_assert_eq(look_up("a/b", SOON), -EBADMSG);
    cr_assert_eq(look_up("..", SOON), -EBADMSG);
    cr_assert_eq(look_up("", SOON), -EBADMSG);
    cr_assert_eq(look_up("a", SOON), 0);
    cr_assert_eq(channel_tell("c/d"), 0, "nobody waits for this one");
    struct counts is = channel_counts();
    cr_assert_eq(is.malformed, 4);
    cr_assert_eq(is.told, 0);
}

Test(channel, what_does_not_fit_is_not_sent)
{
    char name[RECORD_NAME_MAX + 2];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    cr_assert_eq(look_up(name, SOON), -EINVAL);
    cr_assert_eq(channel_tell(name), -EINVAL);
    name[RECORD_NAME_MAX] = '\0';
    cr_assert_eq(look_up(name, SOON), 0);
    cr_assert_eq(channel_counts().malformed, 0);
}

/* Sizes that another process scribbled. */
Test(channel, hostile_slots)
{
    static const uint32_t sizes[] = {0, 1, MESSAGE_FIXED - 1, MESSAGE_SHORT + 1, UINT32_MAX};
    struct channel *memory = channel_shared();
    struct channel_qp *qp = &memory->qp[CHANNEL_QPS - 1];
    qp->owner = (uint32_t)getpid();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        qp->slots[i % CHANNEL_SLOTS].size = sizes[i];
        memset(qp->slots[i % CHANNEL_SLOTS].bytes, 0xff, MESSAGE_SHORT);
    }
    __atomic_store_n(&qp->written, (uint32_t)(sizeof sizes / sizeof *sizes), __ATOMIC_RELEASE);
    __atomic_fetch_or(&memory->asked[(CHANNEL_QPS - 1) / 64], 1ull << 63, __ATOMIC_SEQ_CST);
    cr_assert_eq(look_up("a", SOON), 0);
    while (channel_counts().malformed < sizeof sizes / sizeof *sizes)
        usleep(1000);
    cr_assert_eq(qp->reply, 0, "there was no tag to answer");
}

/* As many threads wait as may, for a name that one of them holds, say, which then tells how it went. */

#define WAITERS 300

static unsigned waiters_ended;

static void *wait_long(void *unused)
{
    look_up("slow", 5 * CLOCK_SECOND);
    __atomic_add_fetch(&waiters_ended, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

Test(channel, a_notice_finds_a_qp_when_all_wait)
{
    struct channel *memory = channel_shared();
    pthread_t threads[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, wait_long, NULL), 0);
    for (unsigned before = 0, now = 0; now < 200 || now != before; now = channel_memory_qps(memory, getpid())) {
        before = now;
        usleep(200000);
    }
    cr_assert_eq(channel_tell("a"), 0);
    cr_assert_eq(__atomic_load_n(&waiters_ended, __ATOMIC_SEQ_CST), 0, "it waited for one that waits");
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
}

/* The end of a client. */

static void be_a_client(void)
{
    if (request_inherit(channel) != 0 || look_up("a", SOON) != 0)
        _exit(1);
    for (int i = 0; i < 5; i++)
        channel_tell("a");
    _exit(0);
}

Test(channel, qps_come_back_from_a_dead_client)
{
    struct channel *memory = channel_shared();
    for (uint64_t i = 1; i <= 20; i++) {
        int status;
        pid_t client = fork();
        if (client == 0)
            be_a_client();
        cr_assert_eq(waitpid(client, &status, 0), client);
        cr_assert_eq(status, 0);
        while (channel_counts().deaths < i)
            usleep(1000);
        cr_assert_eq(channel_memory_qps(memory, client), 0);
        cr_assert_eq(channel_counts().told_at_death, 5 * i, "its last words were heard first");
    }
    cr_assert_eq(channel_memory_qps(memory, getpid()), 1);
}

static void wait_and_be_killed(void)
{
    if (request_inherit(channel) == 0)
        look_up("slow", 100 * CLOCK_SECOND);
    _exit(1);
}

static const struct channel_qp *qp_of(const struct channel *memory, pid_t pid)
{
    unsigned i = 0;
    while (i + 1 < CHANNEL_QPS &&
           !(channel_qp_is_there(memory, i) && __atomic_load_n(&memory->qp[i].owner, __ATOMIC_ACQUIRE) == (uint32_t)pid))
        i++;
    return &memory->qp[i];
}

Test(channel, a_client_killed_while_it_waits)
{
    pid_t client = fork();
    if (client == 0)
        wait_and_be_killed();
    while (!channel_counts().has_slow)
        usleep(1000);
    const struct channel_qp *qp = qp_of(channel_shared(), client);
    while (!(__atomic_load_n(&qp->reply, __ATOMIC_ACQUIRE) & CHANNEL_SLEEPS))
        usleep(1000);
    kill(client, SIGKILL);
    waitpid(client, NULL, 0);
    while (channel_counts().deaths < 1)
        usleep(1000);
    cr_assert_eq(channel_memory_qps(channel_shared(), client), 0);
    cr_assert_eq(qp->reply & (CHANNEL_SLEEPS | CHANNEL_GAVE_UP), 0, "its next owner starts afresh");
    cr_assert_eq(look_up("release", SOON), 0, "its answer goes nowhere");
    cr_assert_eq(look_up("a", SOON), 0);
}

/* A channel of another make. */

static int attach_with(size_t at, uint8_t byte)
{
    struct request_channel *again;
    uint8_t *memory = (uint8_t *)channel_shared();
    uint8_t before = memory[at];
    memory[at] = byte;
    int code = request_attach(&again, place);
    memory[at] = before;
    return code;
}

Test(channel, another_version)
{
    struct request_channel *again;
    cr_assert_eq(attach_with(offsetof(struct channel, magic), 0), -EPROTO);
    cr_assert_eq(attach_with(offsetof(struct channel, version), CHANNEL_VERSION + 1), -EPROTO);
    cr_assert_eq(attach_with(offsetof(struct channel, qps) + 1, 0), -EPROTO);
    cr_assert_eq(request_attach(&again, place), 0);
    cr_assert_eq(request_attach(&again, place_path("missing")), -ENOENT);
    place_directory("short");
    place_file("short/channel", "not a channel");
    cr_assert_eq(request_attach(&again, place_path("short")), -EPERM, "a directory that others may enter");
    cr_assert_eq(chmod(place_path("short"), 0700), 0);
    cr_assert_eq(request_attach(&again, place_path("short")), -EPROTO);
}

/* A daemon that crashed. */

Test(channel, what_is_held_when_the_daemon_crashes_is_seen_by_the_next)
{
    struct request_hold hold = {0};
    struct request_answer answer;
    struct message message = channel_named(MESSAGE_LOOKUP, "a");
    cr_assert_eq(request_hold(channel, &message, &answer, SOON, &hold), 0);
    cr_assert_eq(predecessor_holder(place), 0, "it lives, and knows itself");
    kill_server();
    cr_assert_eq(predecessor_holder(place), getpid());
    cr_assert_eq(predecessor_holder_of_any(place), getpid());
    request_let_go(&hold);
    request_let_go(&hold);
    cr_assert_eq(predecessor_holder(place), 0);
    cr_assert_eq(request_hold(channel, &message, &answer, SOON, &hold), -EHOSTDOWN);
    cr_assert_eq(predecessor_holder(place), 0, "what is not answered is not held");
}

static void channel_count(void *context)
{
    ++*(int *)context;
}

Test(channel, who_waits_for_leave_does_something_meanwhile)
{
    int times = 0;
    struct request_hold hold = {.meanwhile = channel_count, .context = &times};
    struct request_answer answer;
    struct message message = channel_named(MESSAGE_LOOKUP, "a");
    cr_assert_eq(request_hold(channel, &message, &answer, SOON, &hold), 0);
    cr_assert_eq(times, 1);
    request_let_go(&hold);
    message = channel_named(MESSAGE_LOOKUP, "slow");
    cr_assert_eq(request_hold(channel, &message, &answer, 10 * CLOCK_MILLISECOND, &hold), -ETIMEDOUT);
    cr_assert_eq(times, 2, "before the answer");
}

Test(channel, a_question_that_is_given_up_holds_nothing)
{
    struct request_hold hold = {0};
    struct request_answer answer;
    struct message message = channel_named(MESSAGE_LOOKUP, "slow");
    cr_assert_eq(request_hold(channel, &message, &answer, 10 * CLOCK_MILLISECOND, &hold), -ETIMEDOUT);
    kill_server();
    cr_assert_eq(predecessor_holder(place), 0);
}

Test(channel, what_a_process_held_that_is_gone_is_not_waited_for)
{
    pid_t client = fork();
    if (client == 0) {
        struct request_hold hold = {0};
        struct request_answer answer;
        struct message message = channel_named(MESSAGE_LOOKUP, "a");
        _exit(request_inherit(channel) != 0 || request_hold(channel, &message, &answer, SOON, &hold) != 0);
    }
    int status;
    cr_assert_eq(waitpid(client, &status, 0), client);
    cr_assert_eq(status, 0);
    kill_server();
    cr_assert_eq(predecessor_holder(place), 0);
}

Test(channel, a_daemon_that_crashed_is_started_again_by_who_lives)
{
    struct request_channel *again;
    struct channel *memory = channel_shared();
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    memory->supervisor = getpid();
    cr_assert_eq(request_supervisor(place), getpid());
    kill_server();
    cr_assert_eq(request_attach(&again, place), -EINPROGRESS);
    siginfo_t end;
    cr_assert_eq(waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT), 0);
    memory->supervisor = child; /* which has ended, though nobody has asked how */
    cr_assert_eq(request_supervisor(place), 0);
    cr_assert_eq(request_attach(&again, place), -EHOSTDOWN);
    memory->supervisor = getpid();
    predecessor_abandon(place);
    cr_assert_eq(request_attach(&again, place), -EHOSTDOWN);
    waitpid(child, NULL, 0);
    munmap(memory, CHANNEL_SIZE);
}

Test(channel, a_daemon_that_ended_on_purpose_is_not_waited_for)
{
    struct request_channel *again;
    struct channel *memory = channel_shared();
    memory->supervisor = getpid();
    request_tell(channel, &(struct message){.type = MESSAGE_SETTLE});
    cr_assert_eq(look_up("a", SOON), -EHOSTDOWN);
    cr_assert_neq(request_attach(&again, place), -EINPROGRESS);
    munmap(memory, CHANNEL_SIZE);
}

/* A run directory that is full, on a file system of its own. Where none may be mounted there is nothing to see. */

#define SMALL_SIZE "size=2m"

static bool small_is_mounted;

static void small_init(void)
{
    place_init();
    small_is_mounted = unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) == 0 &&
                       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                       mount("none", place, "tmpfs", 0, SMALL_SIZE) == 0;
    cr_assert_eq(chmod(place, 0700), 0);
    start_server();
    cr_assert_eq(request_attach(&channel, place), 0);
}

static void small_finish(void)
{
    kill_server();
    if (small_is_mounted)
        umount2(place, MNT_DETACH);
    place_finish();
}

TestSuite(small, .init = small_init, .fini = small_finish, .timeout = 120);

static void small_fill(void)
{
    static const char block[4096];
    int fd = open(place_path("fill"), O_WRONLY | O_CREAT | O_EXCL, 0600);
    while (write(fd, block, sizeof block) == sizeof block)
        ;
    cr_assert_eq(errno, ENOSPC);
    close(fd);
}

static void small_make_room(void)
{
    cr_assert_eq(unlink(place_path("fill")), 0);
}

static uint64_t small_used(void)
{
    return (uint64_t)place_stat("channel").st_blocks * 512;
}

/* As if other processes had them. */
static void small_take_first_qps(struct channel *memory)
{
    for (unsigned i = 0; i < CHANNEL_QPS_FIRST; i++)
        memory->qp[i].owner = 1;
}

Test(small, memory_is_there_when_it_is_used)
{
    struct channel *memory = channel_shared();
    struct request_answer answer;
    if (!small_is_mounted)
        return;
    const uint64_t first = small_used();
    cr_assert_lt(first, 700000, "%lu bytes", first);
    cr_assert_eq(look_up("a", SOON), 0);
    cr_assert_eq(small_used(), first, "the first queue pairs are there");
    small_take_first_qps(memory);
    pid_t client = fork();
    if (client == 0)
        be_a_client();
    waitpid(client, NULL, 0);
    while (channel_counts().deaths < 1)
        usleep(1000);
    cr_assert_eq(small_used(), first + sizeof(struct channel_qp), "one more");
    cr_assert_eq(channel_list(&answer, PAGE_MAX, false), 0);
    cr_assert_eq(small_used(), first + sizeof(struct channel_qp) + sizeof(struct channel_bulk));
    request_read(&answer);
    kill_server();
    cr_assert_eq(predecessor_holder(place), 0);
    cr_assert_eq(small_used(), first + sizeof(struct channel_qp) + sizeof(struct channel_bulk), "a look makes none");
}

Test(small, a_qp_that_is_there_is_taken_again)
{
    struct channel *memory = channel_shared();
    if (!small_is_mounted)
        return;
    const uint64_t first = small_used();
    for (unsigned i = 1; i <= 100; i++) {
        pid_t client = fork();
        if (client == 0)
            be_a_client();
        waitpid(client, NULL, 0);
        while (channel_counts().deaths < i)
            usleep(1000);
    }
    cr_assert_eq(small_used(), first);
    cr_assert_eq(channel_memory_qps(memory, getpid()), 1);
}

Test(small, no_room_for_a_qp_is_an_error)
{
    struct channel *memory = channel_shared();
    if (!small_is_mounted)
        return;
    small_take_first_qps(memory);
    small_fill();
    const uint64_t used = small_used();
    cr_assert_eq(look_up("a", SOON), -ENOSPC);
    cr_assert_eq(channel_tell("a"), -ENOSPC);
    cr_assert_eq(small_used(), used);
    memory->qp[5].owner = 0;
    cr_assert_eq(look_up("a", SOON), 0, "another has ended");
    small_make_room();
    cr_assert_eq(look_up("a", SOON), 0);
    cr_assert_eq(channel_memory_qps(memory, getpid()), 1);
}

/* Threads of one process wait for each other, if there is no room for more. */
Test(small, many_threads_without_room)
{
    struct channel *memory = channel_shared();
    pthread_t threads[16];
    void *wrong;
    if (!small_is_mounted)
        return;
    small_take_first_qps(memory);
    memory->qp[3].owner = memory->qp[4].owner = 0;
    small_fill();
    for (size_t i = 0; i < 16; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, look_often, (void *)(i + 1)), 0);
    for (size_t i = 0; i < 16; i++) {
        cr_assert_eq(pthread_join(threads[i], &wrong), 0);
        cr_assert_null(wrong, "thread %zu", i);
    }
    cr_assert_leq(channel_memory_qps(memory, getpid()), 2);
}

Test(small, no_room_for_a_bulk_means_no_bulk)
{
    struct request_answer answer;
    if (!small_is_mounted)
        return;
    cr_assert_eq(look_up("a", SOON), 0);
    small_fill();
    cr_assert_eq(channel_list(&answer, PAGE_MAX, false), -ENOBUFS);
    small_make_room();
    cr_assert_eq(channel_list(&answer, PAGE_MAX, false), 0);
    request_read(&answer);
}

static uint64_t hints_in_use(struct request_channel *mine)
{
    const char *first = request_location_hints(mine, 0), *last = first;
    for (uint64_t key = 0; key < CHANNEL_LOCATION_HINTS; key++)
        if ((const char *)request_location_hints(mine, key) > last)
            last = request_location_hints(mine, key);
    return (uint64_t)(last - first) / REQUEST_LOCATION_HINT + REQUEST_ALIKE;
}

Test(small, no_room_for_location_hints_means_few)
{
    struct request_channel *again;
    if (!small_is_mounted)
        return;
    cr_assert_eq(hints_in_use(channel), CHANNEL_LOCATION_HINTS_FIRST);
    small_fill();
    request_make_location_hints(channel);
    cr_assert_eq(hints_in_use(channel), CHANNEL_LOCATION_HINTS_FIRST);
    memset(request_location_hints(channel, 3), 1, REQUEST_ALIKE * REQUEST_LOCATION_HINT);
    small_make_room();
    cr_assert_eq(mount("none", place, NULL, MS_REMOUNT, "size=8m"), 0);
    cr_assert_eq(request_attach(&again, place), 0);
    request_make_location_hints(again);
    cr_assert_eq(hints_in_use(again), CHANNEL_LOCATION_HINTS);
    cr_assert_eq(hints_in_use(channel), CHANNEL_LOCATION_HINTS, "other processes have them, too");
}
