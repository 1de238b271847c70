/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "session/session.h"

#include <sys/fsuid.h>
#include <sys/wait.h>

#include "place.h"
#include "session/run_dirs.h"
#include "session/stamp.h"
#include "session/store.h"

#define MANY 8

static void root_init(void)
{
    place_init();
    place_directory("r");
}

/* A member of this host, and a session that holds it. */
static struct session_member some_member(pid_t pid)
{
    struct session_member member;
    session_self(&member, "n017");
    member.number = 1;
    strcpy(member.branch, "n017.1");
    strcpy(member.job, "slurm:c:12:0:3:n017");
    member.pid = pid;
    member.started = session_process_started(pid);
    member.since = 1714566896123456789;
    strcpy(member.run_dir, "/dev/shm/shunt-1000/1-2-n017\n\\");
    memcpy(member.address, "\x02\x00\xab\xcd\x7f", 5);
    member.address_size = 5;
    member.home = true;
    return member;
}

static struct session_member named_member(const char *node)
{
    struct session_member member = some_member(getpid());
    snprintf(member.node, sizeof member.node, "%s", node);
    snprintf(member.branch, sizeof member.branch, "%s.1", node);
    return member;
}

static void make_distant(struct session_member *member)
{
    strcpy(member->host, "some.other.host");
    strcpy(member->boot, "another-boot");
}

static struct session some_session(struct session_member *members, size_t count)
{
    return (struct session){.id = 0x123456789abcdef0,
                            .epoch = 7,
                            .founded = 5,
                            .uid = geteuid(),
                            .user = "alice",
                            .root = {1234, 1700000000000000000},
                            .probe = {99, 0},
                            .system = 0xef53,
                            .since = 1714566896123456789,
                            .lease = SESSION_STALE,
                            .next = (uint32_t)count + 1,
                            .count = count,
                            .room = count,
                            .members = members};
}

static void assert_same_member(const struct session_member *a, const struct session_member *b)
{
    cr_assert(a->number == b->number && a->pid == b->pid && a->started == b->started && a->since == b->since &&
              a->home == b->home);
    cr_assert_str_eq(a->host, b->host);
    cr_assert_str_eq(a->boot, b->boot);
    cr_assert_str_eq(a->node, b->node);
    cr_assert_str_eq(a->branch, b->branch);
    cr_assert_str_eq(a->run_dir, b->run_dir);
    cr_assert(a->address_size == b->address_size && !memcmp(a->address, b->address, a->address_size));
}

static void assert_equal(const struct session *a, const struct session *b)
{
    cr_assert(a->id == b->id && a->epoch == b->epoch && a->founded == b->founded && a->uid == b->uid);
    cr_assert(a->since == b->since && a->next == b->next && a->system == b->system && a->count == b->count);
    cr_assert_eq(a->lease, b->lease);
    cr_assert(dirid_equal(a->root, b->root) && dirid_equal(a->probe, b->probe));
    cr_assert_str_eq(a->user, b->user);
    for (size_t i = 0; i < a->count; i++)
        assert_same_member(&a->members[i], &b->members[i]);
}

/* The text of an epoch. */

Test(epoch, survives)
{
    char text[8192];
    struct session_member members[2] = {some_member(getpid()), some_member(1)}, back_members[2];
    struct session session = some_session(members, 2), back = {.members = back_members, .room = 2};
    members[1].number = 2;
    members[1].boot[0] = members[1].host[0] = '\0';
    members[1].address_size = 0;
    members[1].home = false;
    ssize_t length = session_format(&session, text, sizeof text);
    cr_assert_gt(length, 0);
    cr_assert_eq(session_count(text, (size_t)length), 2);
    cr_assert_eq(session_parse(&back, text, (size_t)length), 0, "%s", text);
    assert_equal(&session, &back);
    back.room = 1;
    cr_assert_eq(session_parse(&back, text, (size_t)length), -E2BIG);
    session.user[0] = '\0';
    session.count = 0;
    length = session_format(&session, text, sizeof text);
    cr_assert_eq(session_parse(&back, text, (size_t)length), 0, "what cannot be told is empty");
    cr_assert_eq(back.count, 0);
    cr_assert_eq(session_format(&session, text, 50), -ENAMETOOLONG);
}

static void parse_any(const char *text, size_t length)
{
    int count = session_count(text, length);
    cr_assert(count == -EBADMSG || (count >= 0 && count <= SESSION_MEMBERS_MAX));
    if (count < 0)
        return;
    size_t room = (size_t)count;
    struct session_member *members = malloc(room * sizeof *members + 1);
    struct session_member *others = malloc(room * sizeof *others + 1);
    struct session session = {.members = members, .room = room}, again = {.members = others, .room = room};
    int answer = session_parse(&session, text, length);
    cr_assert(answer == 0 || answer == -EBADMSG);
    if (answer == 0) {
        char *copy = malloc(session_text_max(room));
        ssize_t size = session_format(&session, copy, session_text_max(room));
        cr_assert(size > 0 && session_parse(&again, copy, (size_t)size) == 0);
        assert_equal(&session, &again);
        free(copy);
    }
    free(members);
    free(others);
}

Test(epoch, hostile_text)
{
    char text[8192];
    struct session_member members[2] = {some_member(1), some_member(1)};
    const struct session session = some_session(members, 2);
    members[1].number = 2;
    ssize_t length = session_format(&session, text, sizeof text);
    place_mutate(text, (size_t)length, parse_any);
}

static const char good[] =
    "shunt-session 5\nid 1\nepoch 3\nfounded 2\nuid 3\nuser u\nmoved 2\nroot 1 2\nprobe 3 4\nsystem ef53\n"
    "since 4\nlease 5\nnext 9\nmembers 1\nmember 8\nnode n\nbranch n.1\nhost h\nboot b\njob j\npid 1\nstarted 2\n"
    "since 5\nrun /r\naddress 00ff\nhome yes\n";

Test(epoch, refuses_what_is_none)
{
    struct session_member members[2];
    struct session session = {.members = members, .room = 2};
    cr_assert_eq(session_parse(&session, good, sizeof good - 1), 0);
    for (size_t cut = 0; cut < sizeof good - 1; cut++)
        cr_assert_eq(session_parse(&session, good, cut), -EBADMSG, "%zu", cut);
    const char *const swaps[][2] = {{"session 5", "session 4"},
                                    {"job j\n", ""},
                                    {"job j", "job j k"},
                                    {"moved 2", "moved 4"},
                                    {"moved 2\n", ""},
                                    {"pid 1", "pid 0"},
                                    {"pid 1", "pid 2147483648"},
                                    {"uid 3", "uid 4294967296"},
                                    {"host h", "host h i"},
                                    {"node n", "node ../x"},
                                    {"branch n.1", "branch n"},
                                    {"yes\n", "yes\nmore x\n"},
                                    {"home yes\n", "home yes"},
                                    {"id 1\n", ""},
                                    {"id 1", "id 0"},
                                    {"founded 2", "founded 4"},
                                    {"founded 2", "founded 0"},
                                    {"lease 5\n", ""},
                                    {"members 1", "members 0"},
                                    {"members 1", "members 2"},
                                    {"members 1", "members 4097"},
                                    {"member 8", "member 0"},
                                    {"member 8", "member 9"},
                                    {"next 9", "next 65537"},
                                    {"address 00ff", "address 0"},
                                    {"address 00ff", "address 0g"},
                                    {"address 00ff\n", ""},
                                    {"home yes", "home maybe"},
                                    {"run /r", "run "}};
    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
        char bad[512];
        const char *at = strstr(good, swaps[i][0]);
        snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, swaps[i][1], at + strlen(swaps[i][0]));
        cr_assert_eq(session_parse(&session, bad, strlen(bad)), -EBADMSG, "%s", bad);
    }
}

Test(epoch, an_address_has_a_limit)
{
    char text[8192];
    struct session_member member = some_member(1), back_member;
    struct session session = some_session(&member, 1), back = {.members = &back_member, .room = 1};
    member.address_size = SESSION_ADDRESS_MAX;
    memset(member.address, 0xfe, sizeof member.address);
    ssize_t length = session_format(&session, text, sizeof text);
    cr_assert_eq(session_parse(&back, text, (size_t)length), 0);
    assert_equal(&session, &back);
    char *at = strstr(text, "address ");
    memmove(at + 10, at + 8, (size_t)length + 1 - (size_t)(at + 8 - text));
    memcpy(at + 8, "00", 2);
    cr_assert_eq(session_parse(&back, text, (size_t)length + 2), -EBADMSG);
}

static void stamp_any(const char *text, size_t length)
{
    struct stamp stamp;
    int answer = stamp_parse(&stamp, text, length);
    cr_assert(answer == 0 || answer == -EBADMSG);
}

Test(stamp, hostile_text)
{
    char text[STAMP_SIZE_MAX];
    const struct stamp stamp = {0x5f3a9c01d2e40718, {1234, 1700000000000000000}};
    struct stamp back;
    int length = stamp_format(&stamp, text, sizeof text);
    cr_assert_eq(stamp_parse(&back, text, (size_t)length), 0);
    cr_assert(back.id == stamp.id && dirid_equal(back.directory, stamp.directory));
    place_mutate(text, (size_t)length, stamp_any);
}

Test(session, is_described)
{
    char words[256];
    struct session_member members[3] = {some_member(1234), some_member(5), some_member(6)};
    struct session session = some_session(members, 1);
    strcpy(members[0].host, "login2");
    strcpy(members[1].host, "login3");
    session_describe(&session, NULL, words, sizeof words);
    cr_assert_str_eq(words, "held by a session of alice on host login2 (node n017, process 1234, Slurm job 12) since "
                            "2024-05-01 12:34:56 UTC");
    session.count = 3;
    session_describe(&session, &members[1], words, sizeof words);
    cr_assert_str_eq(words, "held by a session of alice on host login3 (node n017, process 5, Slurm job 12, and 2 other nodes) "
                            "since 2024-05-01 12:34:56 UTC");
    strcpy(members[1].job, "other::7.host:::");
    session_describe(&session, &members[1], words, sizeof words);
    cr_assert(strstr(words, "process 5, other job 7.host, and 2"), "%s", words);
    strcpy(members[1].job, "nonsense:");
    session_describe(&session, &members[1], words, sizeof words);
    cr_assert(strstr(words, "process 5, and 2"), "%s", words);
    const struct {
        uint64_t since;
        const char *date;
    } dates[] = {{0, "1970-01-01 00:00:00"},
                 {951782400, "2000-02-29 00:00:00"},
                 {4107542399, "2100-02-28 23:59:59"},
                 {4107542400, "2100-03-01 00:00:00"},
                 {1735689599, "2024-12-31 23:59:59"}};
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        session.since = dates[i].since * 1000000000;
        session_describe(&session, NULL, words, sizeof words);
        cr_assert(strstr(words, dates[i].date), "%s", words);
    }
    session_describe(&session, NULL, words, 10);
    cr_assert_lt(strlen(words), 10);
}

Test(session, run_dir)
{
    char path[64];
    struct text t;
    text_init(&t, path, sizeof path);
    session_run_dir(&t, "/dev/shm", 1000, 0xfe00, 0x1f, "n1");
    cr_assert_str_eq(path, "/dev/shm/shunt-1000/fe00-1f-n1");
}

Test(session, life)
{
    struct session_member mine = some_member(getpid());
    cr_assert_gt(mine.started, 0);
    cr_assert_eq(session_lives(&mine), 1);
    mine.started++;
    cr_assert_eq(session_lives(&mine), 0, "the number was given to another process");
    mine.started = 0;
    cr_assert_eq(session_lives(&mine), 1, "not known when it began");
    mine = some_member(getpid());
    strcpy(mine.boot, "another-boot");
    cr_assert_eq(session_lives(&mine), 0);
    strcpy(mine.host, "some.other.host");
    cr_assert_eq(session_lives(&mine), -EREMOTE);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    struct session_member theirs = some_member(child);
    cr_assert_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    cr_assert_eq(session_lives(&theirs), 0, "a zombie serves nobody");
    waitpid(child, NULL, 0);
    cr_assert_eq(session_lives(&theirs), 0);
    cr_assert_eq(session_process_started(child), 0);
    cr_assert_eq(session_process_started(-1), 0);
}

Test(session, who_of_it_lives)
{
    struct session_member members[3] = {some_member(getpid()), some_member(getpid()), some_member(getpid())};
    struct session session = some_session(members, 3);
    cr_assert_eq(session_living(&session), &members[0]);
    make_distant(&members[0]);
    cr_assert_eq(session_living(&session), &members[1], "the one that surely lives");
    members[1].started++;
    members[2].started++;
    cr_assert_eq(session_living(&session), &members[0], "the one that may live");
    members[0] = members[1];
    cr_assert_null(session_living(&session));
    session.count = 0;
    cr_assert_null(session_living(&session));
}

static mode_t session_mode(const char *path)
{
    return place_stat(path).st_mode & 07777;
}

Test(prepare, makes_everything_once, .init = root_init, .fini = place_finish)
{
    bool restamped = true;
    umask(0777 & ~0200);
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), 0);
    umask(022);
    cr_assert_not(restamped);
    cr_assert_eq(session_mode("r/.shunt"), 0755);
    cr_assert_eq(session_mode("r/.shunt/b"), 0755);
    cr_assert_eq(session_mode("r/.shunt/session"), 0755);
    cr_assert_eq(session_mode("r/.shunt/README"), 0644);
    cr_assert_eq(session_mode("r/.shunt/root"), 0644);
    cr_assert_eq(place_count("r/.shunt"), 4);
    cr_assert_eq(place_count("r/.shunt/session"), 0, "the probes are gone");
    struct stat before = place_stat("r/.shunt/root");
    place_file("r/.shunt/session/epoch.1", "x");
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), 0);
    cr_assert_not(restamped);
    cr_assert_eq(place_stat("r/.shunt/root").st_ino, before.st_ino);
    cr_assert(place_has("r/.shunt/session/epoch.1"));
}

Test(prepare, finishes_what_was_begun, .init = root_init, .fini = place_finish)
{
    bool restamped;
    place_directory("r/.shunt/session");
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), 0);
    cr_assert_not(restamped);
    cr_assert_eq(session_mode("r/.shunt/session"), 0755);
    cr_assert(place_has("r/.shunt/root") && place_has("r/.shunt/b"));
}

/* That it is not there would be taken for the work of an export, which ends. */
Test(prepare, where_no_directory_can_be_made_is_no_root)
{
    bool restamped;
    cr_assert_eq(session_prepare_root("/proc/self/task", &restamped), -EPERM);
}

Test(prepare, a_copied_root_is_stamped_again, .init = root_init, .fini = place_finish)
{
    bool restamped;
    char command[PATH_MAX * 2];
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), 0);
    for (int i = 0; i < 300; i++)
        place_file(place_path("r/.shunt/session/s%d", i) + strlen(place) + 1, "x");
    place_file("r/.shunt/b/kept", "x");
    snprintf(command, sizeof command, "cp -a %s/r %s/copy", place, place);
    cr_assert_eq(system(command), 0);
    cr_assert_eq(session_prepare_root(place_path("copy"), &restamped), 0);
    cr_assert(restamped);
    cr_assert_eq(place_count("copy/.shunt/session"), 0);
    cr_assert(place_has("copy/.shunt/b/kept"));
    cr_assert_eq(place_count("r/.shunt/session"), 300);
    struct stamp one, other;
    int a = place_open("r/.shunt"), b = place_open("copy/.shunt");
    cr_assert_eq(stamp_read(a, &one), 0);
    cr_assert_eq(stamp_read(b, &other), 0);
    cr_assert_neq(one.id, other.id);
    close(a);
    close(b);
    cr_assert_eq(session_prepare_root(place_path("copy"), &restamped), 0);
    cr_assert_not(restamped);
    cr_assert_eq(rename(place_path("copy"), place_path("moved")), 0);
    cr_assert_eq(session_prepare_root(place_path("moved"), &restamped), 0);
    cr_assert_not(restamped, "a root that moved is the same");
}

Test(prepare, refuses_a_root_in_a_root, .init = root_init, .fini = place_finish)
{
    bool restamped;
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), 0);
    place_directory("r/a/b");
    cr_assert_eq(session_prepare_root(place_path("r/a/b"), &restamped), -ELOOP);
    cr_assert_eq(symlink("r/a/b", place_path("link")), 0);
    cr_assert_eq(session_prepare_root(place_path("link"), &restamped), -ELOOP);
    cr_assert_eq(session_prepare_root(place_path("r/.shunt/b"), &restamped), -ELOOP);
    cr_assert_eq(place_count("r/a/b"), 0, "nothing is left behind");
}

static int prepare_as_another(void)
{
    bool restamped;
    if (geteuid() == 0 && (setgid(12345) || setuid(12345)))
        return 99;
    return -session_prepare_root(place_path("r"), &restamped);
}

Test(prepare, failures, .init = root_init, .fini = place_finish)
{
    bool restamped;
    int status;
    place_file("file", "");
    cr_assert_eq(session_prepare_root(place_path("none"), &restamped), -ENOENT);
    cr_assert_eq(session_prepare_root(place_path("file"), &restamped), -ENOTDIR);
    cr_assert(session_prepare_root("/proc", &restamped) < 0);
    place_file("r/.shunt", "not ours");
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), -ENOTDIR);
    cr_assert_eq(unlink(place_path("r/.shunt")), 0);
    cr_assert_eq(symlink("/tmp", place_path("r/.shunt")), 0);
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), -ENOTDIR, "no link is followed");
    cr_assert_eq(unlink(place_path("r/.shunt")), 0);
    place_directory("r/.shunt");
    place_file("r/.shunt/root", "shunt-root 1\nid");
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), -EBADMSG);
    cr_assert_eq(place_count("r/.shunt"), 1, "nothing is left behind");
    cr_assert_eq(unlink(place_path("r/.shunt/root")), 0);
    cr_assert_eq(rmdir(place_path("r/.shunt")), 0);
    cr_assert_eq(chmod(place, 0755), 0);
    cr_assert_eq(chmod(place_path("r"), 0555), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(prepare_as_another());
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(WEXITSTATUS(status), EACCES);
    cr_assert_eq(place_count("r"), 0);
}

static void prepared_init(void)
{
    bool restamped;
    root_init();
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), 0);
}

Test(claim, branches, .init = prepared_init, .fini = place_finish)
{
    char branch[LAYOUT_BRANCH_MAX];
    umask(077);
    cr_assert_eq(session_claim_branch(place_path("r"), "n1", branch), 0);
    cr_assert_str_eq(branch, "n1.1");
    cr_assert_eq(session_mode("r/.shunt/b/n1.1"), 0755);
    cr_assert_eq(session_claim_branch(place_path("r"), "n1", branch), 0);
    cr_assert_str_eq(branch, "n1.3", "even ones are of branches that were fenced");
    cr_assert_eq(session_claim_branch(place_path("r"), "n1.x", branch), 0);
    cr_assert_str_eq(branch, "n1.x.1");
    place_directory("r/.shunt/b/n1.42");
    cr_assert_eq(session_claim_branch(place_path("r"), "n1", branch), 0);
    cr_assert_str_eq(branch, "n1.43");
    place_directory("r/.shunt/b/n1.4294967293");
    cr_assert_eq(session_claim_branch(place_path("r"), "n1", branch), -EOVERFLOW, "it could not be fenced");
    place_directory("r/.shunt/b/n1.4294967295");
    cr_assert_eq(session_claim_branch(place_path("r"), "n1", branch), -EOVERFLOW);
    cr_assert_eq(session_claim_branch(place_path("r"), "../x", branch), -EINVAL);
    cr_assert_eq(session_claim_branch(place_path("r/.shunt"), "n1", branch), -ENOENT);
}

Test(claim, what_is_fenced_cannot_be_reached_by_its_path, .init = prepared_init, .fini = place_finish)
{
    char branch[LAYOUT_BRANCH_MAX], fenced[LAYOUT_BRANCH_MAX];
    cr_assert_eq(session_claim_branch(place_path("r"), "n1", branch), 0);
    place_file("r/.shunt/b/n1.1/f", "kept");
    cr_assert_not(session_is_fenced(place_path("r"), branch));
    cr_assert_eq(session_fence(place_path("r"), branch), 0);
    cr_assert(session_is_fenced(place_path("r"), branch));
    cr_assert_not(place_has("r/.shunt/b/n1.1"));
    cr_assert(place_has("r/.shunt/b/n1.2/f"));
    cr_assert(session_fenced_name(branch, fenced));
    cr_assert_str_eq(fenced, "n1.2");
    cr_assert_eq(session_fence(place_path("r"), branch), 0, "once more");
    cr_assert_eq(session_claim_branch(place_path("r"), "n1", branch), 0);
    cr_assert_str_eq(branch, "n1.3");
    place_directory("r/.shunt/b/n1.4");
    place_file("r/.shunt/b/n1.4/in-the-way", "");
    cr_assert_eq(session_fence(place_path("r"), branch), -ENOTEMPTY);
    cr_assert_eq(session_fence(place_path("r"), "n2.1"), 0, "there is none");
    cr_assert_not(session_is_fenced(place_path("r"), "n2.1"));
    cr_assert_eq(session_fence(place_path("r"), "n1.2"), -EINVAL, "nobody's");
    cr_assert_not(session_fenced_name("n1", fenced));
    cr_assert_not(session_fenced_name("n1.4294967295", fenced));
    cr_assert_not(session_is_fenced(place_path("none"), "n1.1"));
}

/* Sessions on disk. */

#define SESSION_SUITE(name) TestSuite(name, .init = prepared_init, .fini = place_finish, .timeout = 120)
SESSION_SUITE(found);
SESSION_SUITE(join);
SESSION_SUITE(leave);
SESSION_SUITE(race);
SESSION_SUITE(store);
SESSION_SUITE(key);
SESSION_SUITE(beat);

static char where[PATH_MAX];

static const char *root_path(void)
{
    snprintf(where, sizeof where, "%s/r", place);
    return where;
}

static int found_as(struct session_member *mine, struct session *session)
{
    return session_found(root_path(), "alice", mine, 0, SESSION_STALE, session);
}

static void must_found(struct session_member *mine, struct session *session)
{
    cr_assert_eq(found_as(mine, session), 0);
}

static void must_join(const char *node, struct session_member *mine, struct session *session)
{
    *mine = named_member(node);
    session_finish(session);
    cr_assert_eq(session_join(root_path(), mine, session), 0);
}

/* What is there, sorted: one word for each file, the session's id left out. */
static const char *session_files(void)
{
    static char words[4096];
    struct dirent **all;
    words[0] = '\0';
    int count = scandir(place_path("r/.shunt/session"), &all, NULL, alphasort);
    cr_assert_geq(count, 0);
    for (int i = 0; i < count; i++) {
        char *name = all[i]->d_name, *dash = strchr(name, '-');
        if (name[0] != '.' || (name[1] && name[1] != '.')) {
            if (dash && strlen(dash) >= 17)
                memmove(dash, dash + 17, strlen(dash + 17) + 1);
            strcat(strcat(words, *words ? " " : ""), name);
        }
        free(all[i]);
    }
    free(all);
    return words;
}

static void put_epoch(const struct session *session)
{
    size_t size = session_text_max(session->count);
    char *text = malloc(size), name[64];
    cr_assert_gt(session_format(session, text, size), 0);
    snprintf(name, sizeof name, "r/.shunt/session/epoch.%llu", (unsigned long long)session->epoch);
    place_file(name, text);
    free(text);
}

static struct session in_force(void)
{
    struct session session;
    cr_assert_eq(session_read(root_path(), &session), 0);
    return session;
}

static void assert_none(void)
{
    struct session session;
    cr_assert_eq(session_read(root_path(), &session), -ENOENT);
    cr_assert(session.count == 0 && !session.members);
}

Test(found, one_holds_it)
{
    struct session_member mine = named_member("n1"), other = named_member("n2");
    struct session session, seen, theirs;
    assert_none();
    must_found(&mine, &session);
    cr_assert(session.epoch == 1 && session.founded == 1 && session.count == 1 && session.next == 2);
    cr_assert(session.uid == geteuid() && session.since == mine.since && mine.number == 1 && mine.home);
    cr_assert_str_eq(session.user, "alice");
    assert_same_member(&session.members[0], &mine);
    seen = in_force();
    assert_equal(&session, &seen);
    cr_assert_eq(found_as(&other, &theirs), -EBUSY);
    assert_equal(&session, &theirs);
    cr_assert_eq(session_mode("r/.shunt/session/epoch.1"), 0644);
    cr_assert_str_eq(session_files(), "beat.1.1 epoch.1 key.1 probe.1");
    session_finish(&session);
    session_finish(&session);
    session_finish(&seen);
    session_finish(&theirs);
}

Test(found, what_could_not_be_read_back_is_refused)
{
    struct session_member mine;
    struct session session;
    const size_t odd[] = {offsetof(struct session_member, node), offsetof(struct session_member, branch),
                          offsetof(struct session_member, host), offsetof(struct session_member, boot)};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        mine = named_member("n1");
        ((char *)&mine)[odd[i]] = ' ';
        cr_assert_eq(found_as(&mine, &session), -EINVAL);
    }
    mine = named_member("n1");
    mine.run_dir[0] = '\0';
    cr_assert_eq(found_as(&mine, &session), -EINVAL);
    mine = named_member("n1");
    cr_assert_eq(session_found(root_path(), "a b", &mine, 0, SESSION_STALE, &session), -EINVAL);
    cr_assert_eq(session_found(root_path(), "a-name-of-more-than-thirty-two-bytes", &mine, 0, SESSION_STALE, &session),
                 -EINVAL);
    cr_assert_str_eq(session_files(), "");
    cr_assert_eq(session_found(place_path("none"), "a", &mine, 0, SESSION_STALE, &session), -ENOENT);
}

Test(found, the_dead_are_superseded)
{
    struct session_member dead = named_member("n1"), mine = named_member("n2");
    struct session before, session;
    dead.started++;
    must_found(&dead, &before);
    must_found(&mine, &session);
    cr_assert(session.epoch == 2 && session.founded == 2 && session.count == 1 && session.id != before.id);
    cr_assert_str_eq(session_files(), "beat.2.1 epoch.1 epoch.2 key.2 probe.2", "the dead session's key is gone");
    cr_assert_eq(session_leave(root_path(), before.id, dead.number), 0, "it comes late");
    cr_assert_str_eq(session_files(), "beat.2.1 epoch.1 epoch.2 key.2 probe.2");
    session_finish(&before);
    session_finish(&session);
}

Test(found, the_distant_are_not_unless_they_were_silent)
{
    struct session_member distant = named_member("n1"), mine = named_member("n2");
    struct session session;
    make_distant(&distant);
    must_found(&distant, &session);
    session_finish(&session);
    cr_assert_eq(found_as(&mine, &session), -EBUSY);
    assert_same_member(&session.members[0], &distant);
    session_finish(&session);
    cr_assert_eq(session_found(root_path(), "alice", &mine, 2, SESSION_STALE, &session), -EBUSY, "of another epoch");
    session_finish(&session);
    cr_assert_eq(session_found(root_path(), "alice", &mine, 1, SESSION_STALE, &session), 0);
    cr_assert_eq(session.epoch, 2);
    session_finish(&session);
}

Test(found, who_lives_here_is_never_silent)
{
    struct session_member here = named_member("n1"), mine = named_member("n2");
    struct session session;
    must_found(&here, &session);
    session_finish(&session);
    cr_assert_eq(session_found(root_path(), "alice", &mine, 1, SESSION_STALE, &session), -EBUSY);
    session_finish(&session);
}

Test(found, what_is_no_epoch_stops_everybody)
{
    struct session_member mine = named_member("n1");
    struct session session;
    place_file("r/.shunt/session/epoch.3", "shunt-session 5\nid 12");
    cr_assert_eq(found_as(&mine, &session), -EBADMSG);
    cr_assert_eq(session_read(root_path(), &session), -EBADMSG);
    cr_assert_eq(session_join(root_path(), &mine, &session), -EBADMSG);
    place_file("r/.shunt/session/epoch.4", good);
    cr_assert_eq(session_read(root_path(), &session), -EBADMSG, "it says that it is epoch 3");
    cr_assert_eq(unlink(place_path("r/.shunt/session/epoch.4")), 0);
    cr_assert_eq(symlink("epoch.3", place_path("r/.shunt/session/epoch.4")), 0);
    cr_assert_eq(session_read(root_path(), &session), -EBADMSG, "no link is followed");
    cr_assert_eq(truncate(place_path("r/.shunt/session/epoch.3"), 1ll << 30), 0);
    cr_assert_eq(unlink(place_path("r/.shunt/session/epoch.4")), 0);
    cr_assert_eq(session_read(root_path(), &session), -EBADMSG, "no memory is taken for it");
}

Test(found, a_copied_session_is_none)
{
    char command[PATH_MAX * 2];
    struct session_member mine = named_member("n1"), other = named_member("n2");
    struct session session, copy;
    bool restamped;
    must_found(&mine, &session);
    snprintf(command, sizeof command, "cp -a %s/r %s/copy", place, place);
    cr_assert_eq(system(command), 0);
    cr_assert(place_has("copy/.shunt/session/epoch.1"));
    cr_assert_eq(session_read(place_path("copy"), &copy), -ENOENT);
    cr_assert_eq(session_join(place_path("copy"), &other, &copy), -ENOENT);
    cr_assert_eq(session_leave(place_path("copy"), session.id, mine.number), 0);
    cr_assert_eq(session_found(place_path("copy"), "bob", &other, 0, SESSION_STALE, &copy), 0);
    cr_assert(copy.epoch == 1 && copy.id != session.id);
    cr_assert_eq(place_count("copy/.shunt/session"), 4, "nothing of the first is left");
    session_finish(&copy);
    cr_assert_eq(session_prepare_root(place_path("copy"), &restamped), 0);
    cr_assert_not(restamped, "the founder did that");
    copy = in_force();
    assert_equal(&session, &copy);
    session_finish(&copy);
    session_finish(&session);
}

Test(join, one_after_the_other)
{
    struct session_member first = named_member("n1"), second, third;
    struct session session = {0};
    must_found(&first, &session);
    must_join("n2", &second, &session);
    cr_assert(session.epoch == 2 && session.founded == 1 && second.number == 2);
    must_join("n3", &third, &session);
    cr_assert(session.epoch == 3 && session.count == 3 && third.number == 3 && session.next == 4);
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(session.members[i].number, i + 1);
    cr_assert_eq(session_find(&session, 2), &session.members[1]);
    cr_assert_null(session_find(&session, 4));
    cr_assert_eq(session_find_node(&session, "n3"), &session.members[2]);
    cr_assert_str_eq(session_files(), "beat.1.1 beat.1.2 beat.1.3 epoch.2 epoch.3 key.1 probe.1",
                     "the one that joined has sent a heartbeat");
    uint64_t id = session.id;
    session_finish(&session);
    cr_assert_eq(session_leave(root_path(), id, second.number), 0);
    must_join("n2", &second, &session);
    cr_assert(second.number == 4 && session.epoch == 5, "no number is given twice");
    session_finish(&session);
}

Test(join, refusals)
{
    struct session_member mine = named_member("n1"), dead = named_member("n2"), again = named_member("n1");
    struct session session;
    cr_assert_eq(session_join(root_path(), &mine, &session), -ENOENT);
    dead.started++;
    must_found(&dead, &session);
    session_finish(&session);
    cr_assert_eq(session_join(root_path(), &mine, &session), -ENOENT, "nobody of it lives");
    must_found(&mine, &session);
    session_finish(&session);
    strcpy(again.branch, "n1.2");
    cr_assert_eq(session_join(root_path(), &again, &session), -EBUSY);
    cr_assert_eq(session.epoch, 2);
    session.uid++;
    put_epoch(&session);
    session_finish(&session);
    strcpy(again.node, "n3");
    cr_assert_eq(session_join(root_path(), &again, &session), -EACCES);
    cr_assert_eq(session.uid, geteuid() + 1);
    session_finish(&session);
    again.host[0] = ' ';
    cr_assert_eq(session_join(root_path(), &again, &session), -EINVAL);
}

Test(join, the_dead_give_their_name_away)
{
    struct session_member first = named_member("n1"), dead = named_member("n2"), mine, distant = named_member("n3");
    struct session session = {0};
    must_found(&first, &session);
    session_finish(&session);
    dead.started++;
    cr_assert_eq(session_join(root_path(), &dead, &session), 0);
    mine = named_member("n2");
    strcpy(mine.branch, "n2.2");
    session_finish(&session);
    cr_assert_eq(session_join(root_path(), &mine, &session), 0);
    cr_assert(session.count == 2 && mine.number == 3 && session.members[1].number == 3);
    session_finish(&session);
    make_distant(&distant);
    cr_assert_eq(session_join(root_path(), &distant, &session), 0);
    session_finish(&session);
    mine = named_member("n3");
    strcpy(mine.branch, "n3.2");
    cr_assert_eq(session_join(root_path(), &mine, &session), -EBUSY, "who knows");
    session_finish(&session);
}

/* Of one that was silent, and may be at work still. */
Test(join, who_is_lost_gives_nothing_away_before_it_is_dropped)
{
    struct session_member first = named_member("n1"), lost = named_member("n2"), mine;
    struct session session = {0};
    must_found(&first, &session);
    session_finish(&session);
    lost.started++;
    cr_assert_eq(session_join(root_path(), &lost, &session), 0);
    uint64_t id = session.id;
    session.members[1].home = SESSION_LOST;
    cr_assert_eq(session_revise(root_path(), &session), 0);
    mine = named_member("n2");
    strcpy(mine.branch, "n2.3");
    session_finish(&session);
    cr_assert_eq(session_join(root_path(), &mine, &session), -EINPROGRESS);
    session_finish(&session);
    cr_assert_eq(session_leave(root_path(), id, lost.number), 0);
    cr_assert_eq(session_drop(root_path(), id, first.number), 0);
    session = in_force();
    cr_assert_eq(session.count, 2, "it does not leave by itself, nor is another dropped");
    session_finish(&session);
    cr_assert_eq(session_drop(root_path(), id, lost.number), 0);
    cr_assert_eq(session_join(root_path(), &mine, &session), 0);
    cr_assert_eq(mine.number, 3);
    session_finish(&session);
}

Test(join, a_lease_grows_with_the_members_and_stays)
{
    struct session_member first = named_member("n1"), second;
    struct session session = {0};
    cr_assert_eq(session_found(root_path(), "alice", &first, 0, CLOCK_SECOND, &session), 0);
    cr_assert_eq(session.lease, SESSION_LEASE_BEATS * SESSION_BEAT);
    session.count = 1;
    session_finish(&session);
    must_join("n2", &second, &session);
    cr_assert_eq(session.lease, SESSION_LEASE_BEATS * SESSION_BEAT);
    session.lease = 100 * CLOCK_SECOND;
    put_epoch(&session);
    uint64_t id = session.id;
    session_finish(&session);
    cr_assert_eq(session_leave(root_path(), id, second.number), 0);
    session = in_force();
    cr_assert_eq(session.lease, 100 * CLOCK_SECOND);
    session_finish(&session);
}

Test(join, as_many_as_there_may_be)
{
    enum { ALL = SESSION_MEMBERS_MAX };
    struct session_member *members = calloc(ALL, sizeof *members), mine = named_member("late");
    struct session session, back;
    struct session_member first = named_member("n1");
    must_found(&first, &session);
    for (int i = 0; i < ALL; i++) {
        members[i] = first;
        members[i].number = (uint16_t)(i + 1);
        snprintf(members[i].node, sizeof members[i].node, "n%d", i + 1);
        snprintf(members[i].branch, sizeof members[i].branch, "n%d.1", i + 1);
    }
    struct session full = session;
    full.members = members;
    full.count = ALL - 1;
    full.next = ALL + 1;
    full.epoch = 2;
    put_epoch(&full);
    cr_assert_eq(session_join(root_path(), &mine, &back), 0);
    cr_assert(back.count == ALL && mine.number == ALL + 1 && back.members[ALL - 1].number == ALL + 1);
    session_finish(&back);
    struct session_member more = named_member("more");
    cr_assert_eq(session_join(root_path(), &more, &back), -EUSERS);
    full.epoch = 4;
    full.next = UINT16_MAX + 1;
    put_epoch(&full);
    cr_assert_eq(session_join(root_path(), &more, &back), -EOVERFLOW);
    session_finish(&session);
    free(members);
}

Test(join, another_file_system)
{
    struct session_member first = named_member("n1"), mine = named_member("n2");
    struct session session, theirs, changed;
    must_found(&first, &session);
    char *const probe = strdup(place_path("r/.shunt/session/probe.1-%016llx", (unsigned long long)session.id));
    for (int i = 0; i < 4; i++) {
        changed = session;
        changed.epoch = 2;
        uint64_t *const told[] = {&changed.root.ino, &changed.root.birth, &changed.probe.ino, &changed.system};
        ++*told[i];
        put_epoch(&changed);
        cr_assert_eq(session_join(root_path(), &mine, &theirs), -EXDEV, "%d", i);
        session_finish(&theirs);
    }
    cr_assert_eq(unlink(place_path("r/.shunt/session/epoch.2")), 0);
    FILE *file = fopen(probe, "r+");
    cr_assert(file && fputs("shunt-probe 2", file) > 0 && fclose(file) == 0);
    cr_assert_eq(session_join(root_path(), &mine, &theirs), -EXDEV, "other contents");
    session_finish(&theirs);
    cr_assert_eq(unlink(probe), 0);
    cr_assert_eq(session_join(root_path(), &mine, &theirs), -EXDEV, "no probe");
    session_finish(&theirs);
    cr_assert_str_eq(session_files(), "beat.1.1 epoch.1 key.1");
    session_finish(&session);
    free(probe);
}

Test(leave, the_last_one_ends_it)
{
    struct session_member first = named_member("n1"), second;
    struct session session = {0};
    must_found(&first, &session);
    must_join("n2", &second, &session);
    uint64_t id = session.id;
    cr_assert_eq(session_beat(root_path(), &session, first.number), 0);
    cr_assert_eq(session_beat(root_path(), &session, second.number), 0);
    cr_assert_str_eq(session_files(), "beat.1.1 beat.1.2 epoch.1 epoch.2 key.1 probe.1");
    cr_assert_eq(session_leave(root_path(), id + 1, first.number), 0, "of another session");
    cr_assert_eq(session_leave(root_path(), id, 9), 0, "nobody");
    session_finish(&session);
    session = in_force();
    cr_assert_eq(session.epoch, 2);
    session_finish(&session);
    cr_assert_eq(session_leave(root_path(), id, first.number), 0);
    cr_assert_str_eq(session_files(), "beat.1.2 epoch.2 epoch.3 key.1 probe.1");
    session = in_force();
    cr_assert(session.count == 1 && session.members[0].number == 2 && session.epoch == 3);
    session_finish(&session);
    cr_assert_eq(session_leave(root_path(), id, second.number), 0);
    assert_none();
    cr_assert_str_eq(session_files(), "epoch.3 epoch.4");
    cr_assert_eq(session_leave(root_path(), id, second.number), 0);
    cr_assert_str_eq(session_files(), "epoch.3 epoch.4");
    must_found(&first, &session);
    cr_assert(session.epoch == 5 && session.founded == 5 && session.id != id, "numbers only grow");
    session_finish(&session);
    cr_assert_eq(session_leave(place_path("none"), id, 1), -ENOENT);
}

Test(leave, homes)
{
    struct session_member first = named_member("n1"), second;
    struct session session = {0}, old, seen;
    must_found(&first, &session);
    second = named_member("n2");
    second.home = false;
    session_finish(&session);
    cr_assert_eq(session_join(root_path(), &second, &session), 0);
    cr_assert(session.members[0].home && !session.members[1].home);
    old = in_force();
    session.members[0].home = false;
    cr_assert_eq(session_revise(root_path(), &session), -EINVAL, "no home is left");
    session.members[1].home = true;
    cr_assert_eq(session_revise(root_path(), &session), 0);
    cr_assert_eq(session.epoch, 3);
    seen = in_force();
    assert_equal(&session, &seen);
    cr_assert_eq(session_revise(root_path(), &old), -ESTALE);
    cr_assert_eq(old.epoch, 2);
    session_finish(&seen);
    seen = in_force();
    assert_equal(&session, &seen);
    session_finish(&seen);
    session_finish(&old);
    session_finish(&session);
}

/* Many at once. */

static int gate[2];

/* Children that begin together; each answers its exit status. */
static void run_many(int (*work)(int), int answers[MANY])
{
    pid_t children[MANY];
    char byte;
    cr_assert_eq(pipe(gate), 0);
    for (int i = 0; i < MANY; i++)
        if ((children[i] = fork()) == 0) {
            close(gate[1]);
            _exit(read(gate[0], &byte, 1) < 0 ? 99 : work(i));
        }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < MANY; i++) {
        cr_assert_eq(waitpid(children[i], &answers[i], 0), children[i]);
        cr_assert(WIFEXITED(answers[i]));
        answers[i] = WEXITSTATUS(answers[i]);
    }
}

static struct session_member parents_member(int i)
{
    char node[16];
    snprintf(node, sizeof node, "m%d", i);
    struct session_member member = named_member(node);
    member.pid = getppid();
    member.started = session_process_started(member.pid);
    return member;
}

static int found_in_race(int i)
{
    struct session_member mine = parents_member(i);
    struct session session;
    return -found_as(&mine, &session);
}

static void assert_one_founder(uint64_t epoch)
{
    int answers[MANY], won = -1;
    uint8_t key[SESSION_KEY_SIZE];
    run_many(found_in_race, answers);
    for (int i = 0; i < MANY; i++) {
        cr_assert(answers[i] == 0 || answers[i] == EBUSY, "%d", answers[i]);
        cr_assert(answers[i] != 0 || won < 0, "two founders");
        won = answers[i] == 0 ? i : won;
    }
    cr_assert_geq(won, 0);
    struct session session = in_force();
    cr_assert_eq(session.epoch, epoch);
    cr_assert_eq(session.members[0].node[1], '0' + won, "it is the winner's");
    cr_assert_eq(session_key(root_path(), &session, key), 0, "its key was not taken away");
    cr_assert_eq(probe_check(place_open("r/.shunt/session"), &session), 0);
    session.probe.birth++; /* another client's */
    cr_assert_eq(probe_check(place_open("r/.shunt/session"), &session), 0);
    session.probe.ino++;
    cr_assert_eq(probe_check(place_open("r/.shunt/session"), &session), -EXDEV);
    cr_assert_eq(place_count("r/.shunt/session"), epoch == 1 ? 4 : 5, "%s", session_files());
    session_finish(&session);
}

Test(race, founders)
{
    enum { ROUNDS = 60 };
    uint64_t epoch = 1;
    for (int round = 0; round < ROUNDS; round++, epoch++) {
        assert_one_founder(epoch);
        struct session session = in_force();
        /* It ends in good order, or its process is gone. */
        if (round % 2 == 0) {
            cr_assert_eq(session_leave(root_path(), session.id, 1), 0);
            epoch++;
        } else {
            session.members[0].started++;
            put_epoch(&session);
        }
        session_finish(&session);
    }
}

static int join_in_race(int i)
{
    struct session_member mine = parents_member(i);
    struct session session;
    int error = session_join(root_path(), &mine, &session);
    return error < 0 || !session_find(&session, mine.number) ? 100 : mine.number;
}

static int leave_in_race(int i)
{
    struct session session;
    char node[16];
    snprintf(node, sizeof node, "m%d", i);
    if (session_read(root_path(), &session) < 0 || !session_find_node(&session, node))
        return 100;
    return -session_leave(root_path(), session.id, session_find_node(&session, node)->number);
}

Test(race, joiners_and_leavers)
{
    enum { ROUNDS = 20 };
    struct session_member first = named_member("n1");
    struct session session;
    int answers[MANY];
    must_found(&first, &session);
    session_finish(&session);
    for (int round = 0; round < ROUNDS; round++) {
        bool given[MANY] = {false};
        int from = 2 + MANY * round;
        run_many(join_in_race, answers);
        for (int i = 0; i < MANY; i++) {
            cr_assert(answers[i] >= from && answers[i] < from + MANY && !given[answers[i] - from], "%d", answers[i]);
            given[answers[i] - from] = true;
        }
        session = in_force();
        cr_assert_eq(session.count, MANY + 1);
        cr_assert_eq(session.epoch, 1 + (uint64_t)(2 * round + 1) * MANY, "no epoch was left out");
        for (int i = 0; i < MANY; i++)
            cr_assert_eq(session.members[answers[i] - from + 1].node[1], '0' + i);
        session_finish(&session);
        run_many(leave_in_race, answers);
        for (int i = 0; i < MANY; i++)
            cr_assert_eq(answers[i], 0);
        session = in_force();
        cr_assert(session.count == 1 && session.members[0].number == 1);
        cr_assert_eq(session.epoch, 1 + (uint64_t)(2 * round + 2) * MANY);
        session_finish(&session);
        cr_assert_eq(place_count("r/.shunt/session"), 5, "%s", session_files());
    }
}

/* Each comes and goes on its own, the session ends and is founded again. */
static int come_and_go(int i)
{
    enum { ROUNDS = 50 };
    struct session session = {0};
    for (int round = 0; round < ROUNDS; round++) {
        struct session_member mine = parents_member(i);
        int error;
        do {
            session_finish(&session);
            error = session_join(root_path(), &mine, &session);
            if (error == -ENOENT)
                error = found_as(&mine, &session);
        } while (error == -EBUSY);
        const struct session_member *me = session_find(&session, mine.number);
        if (error < 0 || !me || strcmp(me->node, mine.node) != 0)
            return 1;
        uint64_t id = session.id, epoch = session.epoch;
        session_finish(&session);
        if (session_read(root_path(), &session) < 0 || session.id != id || session.epoch < epoch)
            return 2;
        me = session_find(&session, mine.number);
        if (!me || strcmp(me->node, mine.node) != 0)
            return 3;
        if (session_leave(root_path(), id, mine.number) < 0)
            return 4;
    }
    return 0;
}

Test(race, coming_and_going)
{
    int answers[MANY];
    run_many(come_and_go, answers);
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(answers[i], 0, "%d", answers[i]);
    assert_none();
    for (const char *at = session_files(); *at; at += strcspn(at, " "), at += *at == ' ')
        cr_assert(strncmp(at, "epoch.", 6) == 0 || strncmp(at, "key.", 4) == 0 || strncmp(at, "probe.", 6) == 0, "%s",
                  session_files());
}

/* What a crash leaves. */

Test(store, leftovers_are_passed_over_and_swept)
{
    struct session_member mine = named_member("n1");
    struct session session;
    place_file("r/.shunt/session/.epoch-0123456789abcdef", "shunt-session 5\nid");
    place_file("r/.shunt/session/epoch.", "x");
    place_file("r/.shunt/session/epoch.01", "x");
    place_file("r/.shunt/session/epoch.1x", "x");
    place_file("r/.shunt/session/key.0-0123456789abcdef", "x");
    place_file("r/.shunt/session/probe.0-0123456789abcdef", "x");
    place_file("r/.shunt/session/key.1-0123456789abcdef", "one who bid for the same epoch");
    place_file("r/.shunt/session/mine", "x");
    assert_none();
    must_found(&mine, &session);
    cr_assert_eq(session.epoch, 1);
    cr_assert_str_eq(session_files(), "beat.1.1 epoch. epoch.01 epoch.1 epoch.1x key.1 key.1 mine probe.1");
    session_finish(&session);
}

Test(store, an_end_without_words)
{
    struct session_member mine = named_member("n1");
    struct session session;
    must_found(&mine, &session);
    session_finish(&session);
    place_file("r/.shunt/session/epoch.2", "");
    assert_none();
    cr_assert_eq(session_join(root_path(), &mine, &session), -ENOENT);
    must_found(&mine, &session);
    cr_assert_eq(session.epoch, 3);
    session_finish(&session);
}

/* Somebody stopped before link(2) for so long that his number was given, followed and removed. */
Test(store, a_number_of_the_past_is_not_in_force)
{
    struct session_member mine = named_member("n1"), late;
    struct session session = {0}, seen;
    must_found(&mine, &session);
    for (int i = 0; i < 4; i++) {
        char node[8];
        snprintf(node, sizeof node, "j%d", i);
        must_join(node, &late, &session);
    }
    cr_assert_str_eq(session_files(), "beat.1.1 beat.1.2 beat.1.3 beat.1.4 beat.1.5 epoch.4 epoch.5 key.1 probe.1");
    struct session past = session;
    past.epoch = 2;
    past.count = 1;
    int directory = store_open(root_path());
    cr_assert_eq(store_publish(directory, &past), 0, "the number is free");
    seen = in_force();
    assert_equal(&session, &seen);
    session_finish(&seen);
    past.epoch = 5;
    cr_assert_eq(store_publish(directory, &past), -EAGAIN);
    close(directory);
    must_join("j9", &late, &session);
    cr_assert_str_eq(session_files(), "beat.1.1 beat.1.2 beat.1.3 beat.1.4 beat.1.5 beat.1.6 epoch.5 epoch.6 key.1 probe.1",
                     "it is removed with the others");
    session_finish(&session);
}

/* The key. */

static char key_path[PATH_MAX];

static struct session session_keyed(void)
{
    struct session_member mine = named_member("n1");
    struct session session;
    must_found(&mine, &session);
    snprintf(key_path, sizeof key_path, "%s/r/.shunt/session/key.1-%016llx", place, (unsigned long long)session.id);
    return session;
}

static int key_of(const struct session *session)
{
    uint8_t key[SESSION_KEY_SIZE];
    return session_key(root_path(), session, key);
}

Test(key, is_its_users_alone)
{
    struct session session = session_keyed();
    struct stat stat;
    uint8_t one[SESSION_KEY_SIZE], other[SESSION_KEY_SIZE];
    cr_assert_eq(lstat(key_path, &stat), 0);
    cr_assert_eq(stat.st_mode & 07777, 0600);
    cr_assert_eq(session_key(root_path(), &session, one), 0);
    const mode_t bad[] = {0644, 0640, 0620, 0601};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(chmod(key_path, bad[i]), 0);
        cr_assert_eq(key_of(&session), -EPERM, "%o", bad[i]);
    }
    cr_assert_eq(chmod(key_path, 0400), 0);
    cr_assert_eq(key_of(&session), 0);
    if (geteuid() == 0) {
        cr_assert_eq(chown(key_path, 12345, (gid_t)-1), 0);
        cr_assert_eq(key_of(&session), -EPERM);
    }
    cr_assert_eq(session_leave(root_path(), session.id, 1), 0);
    cr_assert_eq(key_of(&session), -ENOENT);
    session_finish(&session);
    struct session_member mine = named_member("n1");
    must_found(&mine, &session);
    cr_assert_eq(session_key(root_path(), &session, other), 0);
    cr_assert_neq(memcmp(one, other, sizeof one), 0, "a new session has a new key");
    session_finish(&session);
}

/* As on an NFS server that maps users: what this process makes belongs to that user. */
Test(key, may_be_of_the_user_for_whom_the_file_system_takes_this_one)
{
    if (geteuid() != 0)
        return;
    cr_assert_eq(chmod(place, 0755), 0);
    cr_assert_eq(chown(place_path("r/.shunt/session"), 12345, (gid_t)-1), 0);
    setfsuid(12345);
    cr_assert_eq(setfsuid((uid_t)-1), 12345);
    struct session session = session_keyed();
    struct stat stat;
    const int files = place_count("r/.shunt/session");
    cr_assert_eq(lstat(key_path, &stat), 0);
    cr_assert_eq(stat.st_uid, 12345);
    cr_assert_eq(key_of(&session), 0);
    cr_assert_eq(place_count("r/.shunt/session"), files, "%s", session_files());
    setfsuid(0);
    cr_assert_eq(chown(key_path, 23456, (gid_t)-1), 0);
    cr_assert_eq(key_of(&session), -EPERM);
    session_finish(&session);
}

Test(key, is_no_link_and_no_fifo)
{
    struct session session = session_keyed();
    cr_assert_eq(rename(key_path, place_path("real")), 0);
    cr_assert_eq(symlink(place_path("real"), key_path), 0);
    cr_assert_eq(key_of(&session), -EPERM);
    cr_assert_eq(unlink(key_path), 0);
    cr_assert_eq(mkfifo(key_path, 0600), 0);
    cr_assert_eq(key_of(&session), -EPERM);
    cr_assert_eq(unlink(key_path), 0);
    cr_assert_eq(mkdir(key_path, 0700), 0);
    cr_assert_eq(key_of(&session), -EPERM);
    cr_assert_eq(rmdir(key_path), 0);
    session_finish(&session);
}

static void write_key(const char *words, size_t length)
{
    FILE *file = fopen(key_path, "w");
    cr_assert(file && fwrite(words, 1, length, file) == length && fclose(file) == 0);
}

Test(key, is_whole_and_of_this_session)
{
    struct session session = session_keyed();
    char words[256];
    FILE *file = fopen(key_path, "r");
    size_t length = file ? fread(words, 1, sizeof words - 2, file) : 0;
    cr_assert(length > 2 * SESSION_KEY_SIZE && fclose(file) == 0);
    for (size_t cut = 0; cut < length; cut++) {
        write_key(words, cut);
        cr_assert_eq(key_of(&session), -EBADMSG, "%zu", cut);
    }
    write_key(words, length);
    cr_assert_eq(key_of(&session), 0);
    strcpy(words + length, "x");
    write_key(words, length + 1);
    cr_assert_eq(key_of(&session), -EBADMSG);
    words[length - 2] = 'g';
    write_key(words, length);
    cr_assert_eq(key_of(&session), -EBADMSG);
    char *digit = strchr(words, '\n') - 1;
    *digit = *digit == '1' ? '2' : '1';
    write_key(words, length);
    cr_assert_eq(key_of(&session), -ESTALE);
    session_finish(&session);
}

/* Heartbeats. */

Test(beat, only_time_between_reads_counts)
{
    struct session_pulse pulse = {0};
    const uint64_t second = CLOCK_SECOND;
    session_pulse_count(&pulse, 5, 100 * second, 101 * second);
    cr_assert_eq(pulse.still, 0, "one read says nothing");
    session_pulse_count(&pulse, 5, 102 * second, 103 * second);
    cr_assert_eq(pulse.still, second);
    session_pulse_count(&pulse, 5, 103 * second, 203 * second);
    session_pulse_count(&pulse, 5, 204 * second, 204 * second);
    cr_assert_eq(pulse.still, 2 * second, "not the time in which the file system stalled");
    session_pulse_count(&pulse, 5, 500 * second, 500 * second);
    cr_assert_eq(pulse.still, 2 * second + SESSION_BEAT, "not the time in which the observer was stopped");
    pulse.read = 0;
    session_pulse_count(&pulse, 5, 501 * second, 501 * second);
    cr_assert_eq(pulse.still, 2 * second + SESSION_BEAT, "not the time in which reads failed");
    session_pulse_count(&pulse, 4, 502 * second, 502 * second);
    cr_assert_eq(pulse.still, 0, "any change is a beat: clocks differ");
    session_pulse_count(&pulse, 4, 501 * second, 503 * second);
    cr_assert_eq(pulse.still, 0);
}

/* From the first look at a heartbeat: the file system stalls for so long, then two-second looks follow, and so many work. What
 * the member wrote so much later is seen after the stall. */
static struct session_pulse pulse_after_stall(uint64_t stall, int looks, uint64_t later)
{
    struct session_pulse pulse = {0};
    const uint64_t beat = 5 * CLOCK_SECOND;
    uint64_t now = 100 * CLOCK_SECOND;
    session_pulse_count(&pulse, beat, now, now);
    session_pulse_count(&pulse, beat + later, now + SESSION_BEAT, now + SESSION_BEAT + stall);
    now += SESSION_BEAT + stall;
    for (int i = 0; i < looks; i++, now += SESSION_BEAT)
        session_pulse_count(&pulse, beat + later, now, now);
    return pulse;
}

Test(beat, a_stall_counts_where_the_cluster_ends_it)
{
    const uint64_t lease = 15 * CLOCK_SECOND, stall = 60 * CLOCK_SECOND, ocfs2 = 0x7461636f, gfs2 = 0x01161970, nfs = 0x6969;
    struct session_pulse pulse = pulse_after_stall(stall, 1, 0);
    cr_assert_not(session_pulse_is_over(&pulse, ocfs2, lease), "its heartbeat was held up as long as the look was");
    pulse = pulse_after_stall(stall, 4, 0);
    cr_assert(session_pulse_is_over(&pulse, ocfs2, lease) && session_pulse_is_over(&pulse, gfs2, lease));
    cr_assert_not(session_pulse_is_over(&pulse, nfs, lease), "what the other one called for may be carried out yet");
    cr_assert_not(session_pulse_is_over(&pulse, ocfs2, stall + lease), "the lease itself is waited for");
    pulse = pulse_after_stall(stall, 4, SESSION_BEAT);
    cr_assert(session_pulse_is_over(&pulse, ocfs2, lease), "one that was written before the stall is seen after it");
    pulse = pulse_after_stall(stall, 4, stall);
    cr_assert_not(session_pulse_is_over(&pulse, ocfs2, lease), "one that was written in it is young");
    pulse = pulse_after_stall(stall, 9, 0);
    cr_assert(session_pulse_is_over(&pulse, nfs, lease));
    pulse = pulse_after_stall(0, 7, 0);
    cr_assert_not(session_pulse_is_over(&pulse, ocfs2, lease) || session_pulse_is_over(&pulse, nfs, lease));
    session_pulse_count(&pulse, 6, 200 * CLOCK_SECOND, 200 * CLOCK_SECOND);
    session_pulse_count(&pulse, 6, 300 * CLOCK_SECOND, 300 * CLOCK_SECOND);
    cr_assert_not(session_pulse_is_over(&pulse, ocfs2, lease), "nor does a stop of the observer");
}

Test(beat, is_seen)
{
    struct session_member mine = named_member("n1");
    struct session session;
    struct session_pulse pulse = {0};
    must_found(&mine, &session);
    cr_assert_eq(session_observe(root_path(), &session, 1, &pulse), 0);
    cr_assert(pulse.beat != 0 && pulse.read > 0, "it has beaten when the session was founded");
    uint64_t first = pulse.beat;
    for (uint64_t last = clock_files(); clock_files() == last;)
        usleep(1000);
    cr_assert_eq(session_observe(root_path(), &session, 1, &pulse), 0);
    cr_assert(pulse.beat == first && pulse.still > 0);
    cr_assert_eq(session_beat(root_path(), &session, 1), 0);
    cr_assert_eq(session_observe(root_path(), &session, 1, &pulse), 0);
    cr_assert(pulse.beat != first && pulse.still == 0);
    cr_assert_eq(rename(place_path("r/.shunt"), place_path("away")), 0);
    cr_assert_eq(session_observe(root_path(), &session, 1, &pulse), -ENOENT);
    cr_assert_eq(pulse.read, 0);
    cr_assert_eq(session_beat(root_path(), &session, 1), -ENOENT);
    session_finish(&session);
}

/* The batch job. */

static void assert_job(char *const environment[], const char *scheduler, const char *id, const char *step)
{
    struct session_job job, parsed;
    char text[256];
    size_t length = 0;
    for (char *const *one = environment; *one != NULL; one++) {
        strcpy(text + length, *one);
        length += strlen(*one) + 1;
    }
    cr_assert_eq(session_job_read(&job, environment), scheduler != NULL);
    cr_assert_eq(session_job_parse(&parsed, text, length), scheduler != NULL);
    cr_assert(scheduler != NULL ? !strcmp(job.scheduler, scheduler) : job.scheduler == NULL);
    cr_assert_str_eq(job.id, id);
    cr_assert_str_eq(job.step, step);
    cr_assert_eq(parsed.scheduler, job.scheduler);
    cr_assert_str_eq(parsed.id, id);
    cr_assert_str_eq(parsed.step, step);
}

Test(session, job_of_an_environment)
{
    assert_job((char *[]){"HOME=/", NULL}, NULL, "", "");
    assert_job((char *[]){"SLURM_JOB_ID=1234", "SLURM_STEP_ID=0", NULL}, "slurm", "1234", "0");
    assert_job((char *[]){"SLURM_JOB_ID_MORE=1", "SLURM_JOBID=77", NULL}, "slurm", "77", "");
    assert_job((char *[]){"PBS_JOBID=12[3].server.example.org", NULL}, "pbs", "12[3].server.example.org", "");
    assert_job((char *[]){"LSB_JOBINDEX=4", "LSB_JOBID=9", NULL}, "lsf", "9", "4");
    assert_job((char *[]){"SLURM_JOB_ID=1", "FLUX_JOB_ID=f2ab", NULL}, "flux", "f2ab", "");
    assert_job((char *[]){"JOB_ID=5", NULL}, NULL, "", "");
    assert_job((char *[]){"JOB_ID=5", "SGE_TASK_ID=undefined", NULL}, "sge", "5", "undefined");
    assert_job((char *[]){"SLURM_JOB_ID=", NULL}, NULL, "", "");
    assert_job((char *[]){"SLURM_JOB_ID=1 2", NULL}, NULL, "", "");
    assert_job((char *[]){"SLURM_JOB_ID=1\n2", "PBS_JOBID=8", NULL}, "pbs", "8", "");
}

Test(session, job_of_a_text_that_is_cut)
{
    struct session_job job;
    cr_assert_not(session_job_parse(&job, "", 0));
    cr_assert_not(session_job_parse(&job, "SLURM_JOB_ID=123", 16), "it may go on");
    cr_assert(session_job_parse(&job, "SLURM_JOB_ID=123", 17));
}

/* Run directories. */

static int count_run_dir(void *context, const char *run_dir)
{
    char *all = context;
    strcat(strcat(all, strrchr(run_dir, '/')), strcmp(strrchr(run_dir, '/'), "/2-2-n1") == 0 ? "" : " ");
    return strstr(run_dir, "stop") != NULL ? 7 : 0;
}

static int each_that_begins(const char *with, char all[256])
{
    all[0] = '\0';
    return run_dirs_each(place_path("%s", with), count_run_dir, all);
}

Test(session, run_dirs_each, .init = place_init, .fini = place_finish)
{
    char all[256];
    place_directory("shunt-1");
    place_directory("shunt-1/.hidden");
    place_directory("shunt-1/1-1-n1");
    place_directory("shunt-1/2-2-n1");
    place_directory("shunt-2");
    place_directory("shunt-2/stop");
    cr_assert_eq(each_that_begins("shunt-1/1-", all), 0);
    cr_assert_str_eq(all, "/1-1-n1 ");
    cr_assert_eq(each_that_begins("shunt-1/", all), 0);
    cr_assert_eq(strlen(all), strlen("/1-1-n1 /2-2-n1"));
    cr_assert_eq(each_that_begins("shunt-2/", all), 7);
    cr_assert_eq(each_that_begins("shunt-3/", all), -ENOENT);
    cr_assert_eq(each_that_begins("shunt-1/9", all), 0);
    cr_assert_str_eq(all, "");
}

Test(session, run_dirs_about, .init = place_init, .fini = place_finish)
{
    struct run_dirs_about about = {.root = "/scratch/a\nb", .node = "n017", .since = 12, .scheduler = "slurm", .job = "99"},
                          read;
    int dir = open(place, O_RDONLY | O_DIRECTORY);
    cr_assert_eq(run_dirs_about_read(dir, &read), -ENOENT);
    for (int again = 0; again < 2; again++)
        cr_assert_eq(run_dirs_about_write(place, &about), 0);
    cr_assert_eq(run_dirs_about_read(dir, &read), 0);
    cr_assert_str_eq(read.root, about.root);
    cr_assert_str_eq(read.node, "n017");
    cr_assert_str_eq(read.job, "99");
    cr_assert_str_eq(read.step, "");
    cr_assert_eq(read.since, 12);
    cr_assert_eq(run_dirs_about_parse(&read, "shunt-run 1\nroot /\n", 19), -EBADMSG);
    close(dir);
}
