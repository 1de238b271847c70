/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/share.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "disk/disk.h"
#include "home/home.h"
#include "home/route.h"
#include "rpc/peer_rpc.h"
#include "wire/page.h"

#define BRANCHES_ALONE 4 /* so many are opened as quickly as others are asked (docs/performance.md) */

/* Which member lists a branch: the one whose node's it is, of any session, or 0: that node is absent. */
static uint16_t share_of_node(const struct shuntd *shuntd, const uint16_t *members, size_t count, const char *branch)
{
    uint32_t incarnation;
    size_t length = layout_branch_node(branch, strlen(branch), &incarnation);
    for (size_t i = 0; i < count; i++) {
        const char *node = session_find(&shuntd->session, members[i])->node;
        if (strlen(node) == length && memcmp(node, branch, length) == 0)
            return members[i];
    }
    return 0;
}

bool share_pays(const struct shuntd *shuntd)
{
    uint16_t members[SESSION_MEMBERS_MAX];
    return shuntd->root.branch_count > BRANCHES_ALONE && collective_members(shuntd, members) > 1;
}

void share_count_all(struct shuntd *shuntd)
{
    uint16_t members[SESSION_MEMBERS_MAX];
    size_t count = collective_members(shuntd, members);
    for (size_t i = 0; i < shuntd->root.branch_count; i++) {
        uint16_t member = share_of_node(shuntd, members, count, shuntd->root.branches[i]);
        shuntd->counts.mirrors_own += member == shuntd->me.number;
        shuntd->counts.mirrors_absent += member == 0;
        shuntd->counts.mirrors_others += member != 0 && member != shuntd->me.number;
    }
}

/* The page: each home, and how many names it was sent, in the order of their numbers. */

#define SENT_SIZE 6

struct sent {
    uint16_t member;
    uint32_t names;
};

static void share_put_sent(char *to, const struct sent *sent)
{
    const uint16_t member = htole16(sent->member);
    const uint32_t names = htole32(sent->names);
    memcpy(to, &member, 2);
    memcpy(to + 2, &names, 4);
}

static struct sent share_take_sent(const char *from)
{
    struct sent sent;
    memcpy(&sent.member, from, 2);
    memcpy(&sent.names, from + 2, 4);
    return (struct sent){.member = le16toh(sent.member), .names = le32toh(sent.names)};
}

/* Homes are members, which stand in the order of their numbers. */
static size_t share_write_page(const struct shuntd *shuntd, char *to, const uint32_t *expected)
{
    size_t used = 0;
    for (size_t i = 0; i < shuntd->session.count && used + SENT_SIZE <= PAGE_MAX; i++) {
        const uint16_t member = shuntd->session.members[i].number;
        if (expected[member] == 0)
            continue;
        share_put_sent(to + used, &(struct sent){member, expected[member]});
        used += SENT_SIZE;
    }
    return used;
}

static void share_read_page(uint32_t *expected, const char *page, size_t size)
{
    for (size_t at = 0; at + SENT_SIZE <= size; at += SENT_SIZE) {
        const struct sent sent = share_take_sent(page + at);
        expected[sent.member] += sent.names;
    }
}

/* Two pages in order make one in order. */
size_t share_add_page(char *to, size_t used, const char *from, size_t size)
{
    char merged[PAGE_MAX] = {0};
    size_t a = 0, b = 0, length = 0;
    while ((a + SENT_SIZE <= used || b + SENT_SIZE <= size) && length + SENT_SIZE <= sizeof merged) {
        struct sent one = a + SENT_SIZE <= used ? share_take_sent(to + a) : (struct sent){UINT16_MAX, 0};
        const struct sent other = b + SENT_SIZE <= size ? share_take_sent(from + b) : (struct sent){UINT16_MAX, 0};
        a += one.member <= other.member ? SENT_SIZE : 0;
        b += other.member <= one.member ? SENT_SIZE : 0;
        one.names = one.member == other.member ? one.names + other.names : one.member < other.member ? one.names : other.names;
        one.member = one.member < other.member ? one.member : other.member;
        share_put_sent(merged + length, &one);
        length += SENT_SIZE;
    }
    memcpy(to, merged, length);
    return length;
}

/* What the coordinator does. */

/* Branches that do not fit one message go with the next collective. */
struct share {
    struct hand_out load;
    char mirror[RECORD_MIRROR_MAX];
    uint32_t epoch;
    size_t next;   /* branch */
    size_t absent; /* branches of absent nodes so far */
    uint32_t *expected;
    share_done *done;
    void *context;
};

static size_t share_fill(const struct shuntd *shuntd, struct share *share, char *to, size_t size)
{
    uint16_t members[SESSION_MEMBERS_MAX];
    size_t count = collective_members(shuntd, members), used = 0;
    for (; share->next < shuntd->root.branch_count; share->next++) {
        const char *branch = shuntd->root.branches[share->next];
        const size_t length = strlen(branch) + 1;
        if (size - used < 2 + length)
            break;
        uint16_t member = share_of_node(shuntd, members, count, branch);
        if (member == 0)
            member = members[share->absent++ % count];
        const uint16_t number = htole16(member);
        memcpy(to + used, &number, 2);
        memcpy(to + used + 2, branch, length);
        used += 2 + length;
    }
    return used;
}

static int share_go_on(struct shuntd *, struct share *);

static int share_answered(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct share *share = context;
    const bool begins_again = end->lost || share->epoch != shuntd->route.epoch;
    share_read_page(share->expected, end->page, end->used);
    if (end->result == 0 && !begins_again && share->next < shuntd->root.branch_count)
        return share_go_on(shuntd, share);
    int code = share->done(shuntd, share->context, end->result == 0 && begins_again ? MESSAGE_REMOTE : end->result);
    free(share);
    return code;
}

static int share_go_on(struct shuntd *shuntd, struct share *share)
{
    char branches[MESSAGE_TEXT_MAX];
    const size_t used = share_fill(shuntd, share, branches, sizeof branches);
    const struct message message = {.type = MESSAGE_SHARE,
                                    .epoch = share->epoch,
                                    .dir = share->load.dir,
                                    .share = {.load_number = share->load.number,
                                              .mirror = message_text(share->mirror, strlen(share->mirror)),
                                              .branches = message_text(branches, used)}};
    return collective_begin(shuntd, &message, NULL, share_answered, share);
}

int share_begin(struct shuntd *shuntd, const struct hand_out *load, const char *mirror, uint32_t *expected, share_done *done,
                void *context)
{
    struct share *share = calloc(1, sizeof *share);
    if (share == NULL)
        return -ENOMEM;
    share->load = *load;
    share->epoch = shuntd->route.epoch;
    share->expected = expected;
    share->done = done;
    share->context = context;
    strcpy(share->mirror, mirror);
    return share_go_on(shuntd, share);
}

/* What each daemon does. */

struct share_job {
    struct disk_job job;
    struct collective *collective;
    struct hand_out load;
    uint32_t epoch; /* of the route */
    char mirror[RECORD_MIRROR_MAX];
    uint16_t own; /* branch */
    struct listing listing;
    int result;
    size_t count;
    uint16_t branches[];
};

static void share_carry_out(struct disk_job *base, const struct shuntd *shuntd)
{
    struct share_job *job = (struct share_job *)base;
    HOOK("share-begun");
    job->result = listing_init_mirrors(&job->listing, &shuntd->root, job->mirror, job->branches, job->count, job->own);
    HOOK("share-listed");
}

/* Where its files are, if this daemon does not know better. */
static int share_count_leaves(struct shuntd *shuntd, const struct share_job *job)
{
    if (job->listing.leaves == 0)
        return 0;
    struct home_dir *dir = home_dir_find(shuntd->home, job->load.dir);
    if (dir == NULL && (dir = home_dir_add(shuntd->home, job->load.dir, "")) == NULL)
        return -ENOMEM;
    return dir->leaves.count == 0 ? hand_out_leaf_counts(dir, &job->listing) : 0;
}

static int share_hand_out(struct shuntd *shuntd, struct share_job *job)
{
    uint32_t *expected = calloc(UINT16_MAX + 1, sizeof *expected);
    char page[PAGE_MAX];
    int code = expected == NULL ? -ENOMEM : hand_out(shuntd, &job->load, &job->listing, expected);
    if (code == 0)
        code = share_count_leaves(shuntd, job);
    if (code == 0)
        code = collective_page(shuntd, job->collective, page, share_write_page(shuntd, page, expected), PAGE_ALL);
    free(expected);
    job->result = code == -ESTALE ? MESSAGE_REMOTE : 0;
    return code == -ESTALE ? 0 : code;
}

static int share_finish(struct disk_job *base, struct shuntd *shuntd)
{
    struct share_job *job = (struct share_job *)base;
    int code = 0;
    if (job->result == 0 && job->epoch != shuntd->route.epoch)
        job->result = MESSAGE_REMOTE;
    if (job->result == 0)
        code = share_hand_out(shuntd, job);
    if (code == 0)
        code = collective_finish(shuntd, job->collective, job->result);
    listing_finish(&job->listing);
    free(job);
    return code;
}

/* Those that are its own. 0, -EBADMSG or a fatal -errno. */
static int share_take_branches(struct shuntd *shuntd, struct share_job *job, const struct message_text *text)
{
    char branch[LAYOUT_BRANCH_MAX];
    uint32_t incarnation;
    for (size_t at = 0, length; at < text->length; at += 2 + length + 1) {
        uint16_t member;
        length = text->length - at > 2 ? strnlen(text->text + at + 2, text->length - at - 2) : text->length;
        if (at + 2 + length + 1 > text->length || length >= sizeof branch ||
            layout_branch_node(text->text + at + 2, length, &incarnation) == 0)
            return -EBADMSG;
        memcpy(&member, text->text + at, 2);
        memcpy(branch, text->text + at + 2, length + 1);
        if (le16toh(member) != shuntd->me.number)
            continue;
        int number = rpc_branch_number(shuntd, branch);
        if (number < 0)
            return number;
        job->branches[job->count++] = (uint16_t)number;
    }
    return 0;
}

static void share_count(struct shuntd *shuntd, const struct share_job *job)
{
    for (size_t i = 0; i < job->count; i++) {
        const bool own = share_of_node(shuntd, &shuntd->me.number, 1, shuntd->root.branches[job->branches[i] - 1]) != 0;
        shuntd->counts.mirrors_own += own;
        shuntd->counts.mirrors_absent += !own;
    }
}

int share_part(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    if (message->epoch != shuntd->route.epoch || session_find(&shuntd->session, shuntd->me.number) == NULL)
        return MESSAGE_REMOTE;
    if (message->share.mirror.length >= RECORD_MIRROR_MAX)
        return -EBADMSG;
    struct share_job *job = calloc(1, sizeof *job + message->share.branches.length / 2 * sizeof *job->branches);
    if (job == NULL)
        return -ENOMEM;
    job->job = (struct disk_job){.carry_out = share_carry_out, .finish = share_finish};
    job->collective = collective;
    job->load = (struct hand_out){.dir = message->dir, .number = message->share.load_number};
    job->epoch = message->epoch;
    job->own = shuntd->branch;
    message_copy_path(job->mirror, &message->share.mirror);
    int code = share_take_branches(shuntd, job, &message->share.branches);
    if (code != 0 || job->count == 0) {
        free(job);
        return code;
    }
    share_count(shuntd, job);
    disk_submit(shuntd->disk, &job->job);
    return COLLECTIVE_WORKS;
}
