/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A daemon whose clients are the test: a struct shuntd on the root `r` of a place, with everything real but
 * the channel. Requests are handed to serve(); the answers are taken from the queue at the commit, when the
 * daemon would send them. */

#include <semaphore.h>

#include "base/clock.h"
#include "base/sys.h"
#include "disk/disk.h"
#include "home/home.h"
#include "home_fixture.h"
#include "place.h"
#include "request/channel.h"
#include "prefetch/prefetch.h"
#include "rpc/collective.h"
#include "membership/homes.h"
#include "membership/migration.h"
#include "prefetch/grant.h"
#include "reply/answer_queue.h"
#include "rpc/peer_rpc.h"
#include "coordinator/coordinator.h"
#include "ops/ops.h"
#include "ops/completion.h"
#include "rooms.h"
#include "rpc/deferred.h"
#include "rpc/home_rpc.h"
#include "rpc/receive.h"
#include "coordinator/placement.h"
#include "coordinator/load.h"
#include "membership/session_view.h"
#include "home/route.h"

#define ME 100 /* process ids of clients; nobody asks whether they live */
#define YOU 200

static struct shuntd shuntd;
static sem_t rung;

/* Answers by their tags, in the order in which they were given. */
#define REPLIES 512
struct reply {
    uint16_t request; /* its type */
    unsigned turn;    /* 0: none yet */
    struct message message;
    uint8_t bytes[REQUEST_ANSWER_MAX];
};
static struct reply replies[REPLIES];
static uint32_t last_tag;
static unsigned last_turn;

static inline void serving_ring(struct shuntd *unused)
{
    sem_post(&rung);
}

static inline void serving_root(void)
{
    bool restamped;
    place_directory("r/out");
    place_directory("r/in");
    place_directory("run");
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), 0);
    place_directory("r/.shunt/b/n2.1");
    cr_assert_eq(session_claim_branch(place_path("r"), "n1", shuntd.me.branch), 0);
    cr_assert_eq(union_root_init(&shuntd.root, place_path("r"), 0), 0);
    cr_assert_eq(shuntd.root.branch_count, 2);
    cr_assert_str_eq(shuntd.root.branches[0], "n1.1");
    shuntd.branch = 1;
    strcpy(shuntd.branch_path, place_path("r/.shunt/b/n1.1"));
}

/* A root with the directories `out` and `in`, this node's branch n1.1 (number 1) and another's, n2.1 (2).
 * Every regular file goes to a branch. */
static inline void serving_init(void)
{
    place_init();
    memset(&shuntd, 0, sizeof shuntd);
    sem_init(&rung, 0, 0);
    serving_root();
    struct index_stamp stamp = {.session = 1, .root = shuntd.root.id};
    cr_assert_eq(index_create(&shuntd.index, place_path("run"), 16u << 20, &stamp), 0);
    cr_assert_eq(answer_queue_create(&shuntd.answers), 0);
    cr_assert_eq(prefetch_create(&shuntd.prefetch), 0);
    cr_assert_eq(grant_create(&shuntd.grants), 0);
    cr_assert_eq(listen_create(&shuntd.listen, place_path("run"), 1, shuntd.root.id, 0), 0);
    home_fixture_create(&shuntd);
    cr_assert_eq(disk_create(&shuntd.disk, &shuntd, 2, serving_ring, NULL), 0);
    cr_assert_eq(peers_create(&shuntd.peers), 0);
    shuntd_init(&shuntd);
    rooms_connect(&shuntd);
    homes_found(&shuntd);
    shuntd.options.placement = CONFIG_BRANCH;
    shuntd.options.leaf_full = 1000;
}

/* Transactions, as main's thread has them. */

static inline void serving_woken(void)
{
    struct listen_request request;
    for (struct blocked_request *blocked; (blocked = home_next_retry(shuntd.home)) != NULL;) {
        home_restore_request(blocked, &request);
        cr_assert_eq(ops_serve(&shuntd, &request), 0);
        free(blocked);
    }
    cr_assert_eq(ops_resume(&shuntd), 0);
}

static inline void serving_end(void)
{
    serving_woken();
    for (size_t i = 0; i < shuntd.answers->count; i++) {
        const struct queued *queued = &shuntd.answers->answers[i];
        struct message answer;
        cr_assert_eq(message_decode(&answer, queued->bytes, queued->size), 0);
        cr_assert(answer.tag > 0 && answer.tag <= last_tag, "an answer that nobody waits for");
        struct reply *reply = &replies[answer.tag];
        cr_assert_eq(reply->turn, 0, "answered twice");
        reply->turn = ++last_turn;
        memcpy(reply->bytes, queued->bytes, queued->size);
        cr_assert_eq(message_decode(&reply->message, reply->bytes, queued->size), 0);
        cr_assert(reply->message.type == MESSAGE_ANSWER || reply->message.type == message_answer_type(reply->request),
                  "type %u answers a request of type %u", reply->message.type, reply->request);
    }
    shuntd.answers->count = 0;
}

/* Lets the jobs on the disk end, and whatever follows from it. */
static inline void serving_settle(void)
{
    while (disk_is_busy(shuntd.disk)) {
        sem_wait(&rung);
        for (struct disk_job *job; (job = disk_next_done(shuntd.disk)) != NULL;)
            cr_assert_eq(job->finish(job, &shuntd), 0);
        serving_end();
    }
}

static inline void serving_finish(void)
{
    serving_settle();
    disk_destroy(shuntd.disk);
    peers_destroy(shuntd.peers);
    collective_free(&shuntd);
    coordinator_free(&shuntd);
    rpc_deferred_free(&shuntd);
    listen_destroy(shuntd.listen);
    home_destroy(shuntd.home);
    answer_queue_destroy(shuntd.answers);
    prefetch_destroy(shuntd.prefetch);
    grant_destroy(shuntd.grants);
    index_destroy(shuntd.index);
    union_root_finish(&shuntd.root);
    place_finish();
}

/* Where this process looks for a queue pair first; others are as if they had one of those that are not there at first. */
static inline uint32_t serving_qp(pid_t client)
{
    return client == getpid() ? (uint32_t)client % CHANNEL_QPS_FIRST
                              : CHANNEL_QPS_FIRST + (uint32_t)client % (CHANNEL_QPS - CHANNEL_QPS_FIRST);
}

/* Hands over a message; jobs that it starts are under way afterwards. */
static inline void serving_hand(pid_t client, uint32_t tag, const struct message *message)
{
    struct listen_request request = {.client = client, .qp = serving_qp(client)};
    struct message tagged = *message;
    tagged.tag = tag;
    request.size = (uint32_t)message_encode(request.bytes, sizeof request.bytes, &tagged);
    cr_assert_eq(message_decode(&request.message, request.bytes, request.size), 0);
    cr_assert_eq(ops_serve(&shuntd, &request), 0);
    serving_end();
}

/* Sends a request: its tag. */
static inline uint32_t post(pid_t client, struct message message)
{
    cr_assert_lt(last_tag, REPLIES - 1);
    uint32_t tag = ++last_tag;
    replies[tag].request = message.type;
    serving_hand(client, tag, &message);
    return tag;
}

/* The answer to it, or NULL: it waits. */
static inline const struct message *answer_to(uint32_t tag)
{
    return replies[tag].turn != 0 ? &replies[tag].message : NULL;
}

static inline bool waits(uint32_t tag)
{
    return answer_to(tag) == NULL;
}

/* What a request that was answered was told. */
static inline int result_of(uint32_t tag)
{
    cr_assert(!waits(tag), "no answer to request %u", tag);
    return answer_to(tag)->result;
}

/* Sends a request and lets the disk work on it. */
static inline const struct message *ask(pid_t client, struct message message)
{
    uint32_t tag = post(client, message);
    serving_settle();
    cr_assert(!waits(tag), "no answer to a message of type %d", message.type);
    return answer_to(tag);
}

static inline int result(pid_t client, struct message message)
{
    return ask(client, message)->result;
}

/* Sends a notice. */
static inline void tell(pid_t client, struct message message)
{
    serving_hand(client, 0, &message);
    serving_settle();
}

/* What main does when a client ends: what it began is settled by the disk. */
static inline void client_ends(pid_t client)
{
    cr_assert_eq(completion_settle_client(&shuntd, (uint64_t)client), 0);
    serving_end();
    serving_settle();
}

/* Messages. */

/* Below the root; "." is the root itself. */
static inline const char *in_root(const char *path)
{
    return strcmp(path, ".") == 0 ? place_path("r") : place_path("r/%s", path);
}

static inline struct dirid id_of(const char *directory)
{
    struct statx stat;
    cr_assert_eq(sys_statx(AT_FDCWD, in_root(directory), 0, STATX_INO | STATX_BTIME, &stat), 0, "%s", directory);
    return dirid_of(&stat);
}

static inline struct message about(uint16_t type, const char *directory)
{
    return (struct message){.type = type, .dir = id_of(directory)};
}

static inline struct message named(uint16_t type, const char *directory, const char *name)
{
    struct message message = about(type, directory);
    message.name = message_text(name, strlen(name));
    return message;
}

/* CREATE, COMMIT, ADOPT, VANISHED. */
static inline struct message with_entry(struct message message, uint8_t type, uint64_t ino)
{
    const struct record_entry entry = {.type = type, .state = RECORD_LIVE, .ino = ino};
    if (message.type == MESSAGE_CREATE)
        message.create.entry = entry;
    else if (message.type == MESSAGE_COMMIT)
        message.commit.entry = entry;
    else
        message.found.entry = entry;
    return message;
}

static inline struct message reserve(const char *directory, const char *name, uint8_t type)
{
    struct message message = with_entry(named(MESSAGE_CREATE, directory, name), type, 0);
    message.create.entry.state = RECORD_PENDING;
    return message;
}

static inline struct message two_names(uint16_t type, const char *from, const char *old, const char *to, const char *new)
{
    struct message message = named(type, from, old);
    message.rename.to_dir = id_of(to);
    message.rename.to_name = message_text(new, strlen(new));
    return message;
}

static inline struct message load_message(struct dirid id, const char *path)
{
    return (struct message){.type = MESSAGE_LOAD, .dir = id, .load.path = message_text(path, strlen(path))};
}

static inline void load(const char *directory)
{
    cr_assert_eq(result(ME, load_message(id_of(directory), directory)), 0, "%s", directory);
}

/* What the index says. */

static inline int entry_of(const char *directory, const char *name, struct record_entry *entry)
{
    return index_get_entry(shuntd.index, id_of(directory), name, strlen(name), entry);
}

static inline bool is_unknown(const char *directory, const char *name)
{
    struct record_entry entry;
    int code = entry_of(directory, name, &entry);
    cr_assert(code == 0 || code == -ENOENT);
    return code == -ENOENT;
}

/* branch and leaf, as 1000 * branch + leaf */
static inline void assert_entry(const char *directory, const char *name, enum record_state state, unsigned branch_and_leaf,
                                uint64_t ino)
{
    struct record_entry entry;
    cr_assert_eq(entry_of(directory, name, &entry), 0, "%s/%s is not in the index", directory, name);
    cr_assert_eq(entry.state, state, "%s/%s: state %d", directory, name, entry.state);
    cr_assert_eq(entry.branch * 1000u + entry.leaf, branch_and_leaf, "%s/%s: branch %d, leaf %u", directory, name, entry.branch,
                 entry.leaf);
    cr_assert_eq(entry.ino, ino, "%s/%s: inode %lu", directory, name, entry.ino);
}

static inline int record_of(struct dirid id, struct record_dir *record)
{
    return index_get_dir(shuntd.index, id, record);
}

static inline struct home_dir *home_of(const char *directory)
{
    return home_dir_find(shuntd.home, id_of(directory));
}

/* How many names a leaf of this node's mirror is taken to hold. */
static inline uint32_t leaf_holds(const char *directory, uint32_t leaf)
{
    const struct home_leaves *share = &home_of(directory)->leaves;
    return leaf < share->count ? share->name_counts[leaf] : 0;
}

/* The client's part: files. */

/* Where an answer says that a name is. */
static inline const char *place_of(const struct message *answer, int which, const char *directory, const char *name)
{
    const struct message_text *told = &answer->answer.place[which];
    if (told->length == 0)
        return place_path("r/%s/%s", directory, name);
    return place_path("r/.shunt/b/%.*s/%s", told->length, told->text, name);
}

static inline uint64_t ino_at(const char *path)
{
    struct stat stat;
    cr_assert(lstat(path, &stat) == 0, "%s: %m", path);
    return stat.st_ino;
}

static inline uint64_t make_at(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    cr_assert(fd >= 0, "%s: %m", path);
    close(fd);
    return ino_at(path);
}

static inline void confirm(pid_t client, const char *directory, const char *name, uint64_t ino)
{
    tell(client, with_entry(named(MESSAGE_COMMIT, directory, name), DT_REG, ino));
}

/* A client reserves, makes and confirms a file: its inode number. */
static inline uint64_t born_by(pid_t client, const char *directory, const char *name)
{
    const struct message *answer = ask(client, reserve(directory, name, DT_REG));
    cr_assert_eq(answer->result, 0, "%s/%s: %d", directory, name, answer->result);
    uint64_t ino = make_at(place_of(answer, 0, directory, name));
    confirm(client, directory, name, ino);
    return ino;
}

static inline uint64_t born(const char *directory, const char *name)
{
    return born_by(ME, directory, name);
}

/* The same in the trunk. */
static inline uint64_t born_in_trunk(const char *directory, const char *name)
{
    struct message message = reserve(directory, name, DT_REG);
    message.flags = MESSAGE_TRUNK;
    cr_assert_eq(result(ME, message), 0);
    uint64_t ino = make_at(place_path("r/%s/%s", directory, name));
    confirm(ME, directory, name, ino);
    return ino;
}

/* A file in the other node's branch. */
static inline uint64_t foreign(const char *directory, const char *name, uint32_t leaf)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "r/.shunt/b/n2.1/%s/%u", home_of(directory)->record.mirror, leaf);
    place_directory(path);
    uint64_t ino = make_at(place_path("%s/%s", path, name));
    const struct record_entry entry = {.type = DT_REG, .state = RECORD_LIVE, .branch = 2, .leaf = leaf, .ino = ino};
    cr_assert_eq(index_put_entry(shuntd.index, id_of(directory), name, strlen(name), &entry), 0);
    serving_end();
    return ino;
}

/* ... a directory in `directory`. */
static inline void born_directory(const char *directory, const char *name)
{
    char path[PATH_MAX];
    bool in_top = strcmp(directory, ".") == 0;
    snprintf(path, sizeof path, "%s%s%s", in_top ? "" : directory, in_top ? "" : "/", name);
    cr_assert_eq(result(ME, reserve(directory, name, DT_DIR)), 0);
    cr_assert_eq(mkdir(in_root(path), 0755), 0);
    struct message message = with_entry(named(MESSAGE_COMMIT, directory, name), DT_DIR, ino_at(in_root(path)));
    message.commit.child = id_of(path);
    tell(ME, message);
}
