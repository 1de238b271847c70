/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "session/session.h"

#include <sys/wait.h>

#include "place.h"
#include "session/stamp.h"

static void root_init(void)
{
    place_init();
    place_directory("r");
}

static void boot_id(char to[40])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    cr_assert(file && fscanf(file, "%39s", to) == 1);
    fclose(file);
}

static struct session some_session(pid_t pid)
{
    struct session session = {.id = 0x123456789abcdef0,
                              .node = "n017",
                              .branch = "n017.1",
                              .pid = pid,
                              .started = session_process_started(pid),
                              .uid = 1000,
                              .user = "alice",
                              .since = 1714566896123456789,
                              .run_dir = "/dev/shm/shunt-1000/1-2-n017\n\\"};
    gethostname(session.host, sizeof session.host);
    boot_id(session.boot);
    return session;
}

static void assert_equal(const struct session *a, const struct session *b)
{
    cr_assert(a->id == b->id && a->pid == b->pid && a->started == b->started && a->uid == b->uid &&
              a->since == b->since);
    cr_assert_str_eq(a->host, b->host);
    cr_assert_str_eq(a->boot, b->boot);
    cr_assert_str_eq(a->node, b->node);
    cr_assert_str_eq(a->branch, b->branch);
    cr_assert_str_eq(a->user, b->user);
    cr_assert_str_eq(a->run_dir, b->run_dir);
}

Test(holder, survives)
{
    char text[4096];
    struct session session = some_session(getpid()), back;
    int length = session_format(&session, text, sizeof text);
    cr_assert_gt(length, 0);
    cr_assert_eq(session_parse(&back, text, (size_t)length), 0, "%s", text);
    assert_equal(&session, &back);
    session.user[0] = session.boot[0] = '\0';
    length = session_format(&session, text, sizeof text);
    cr_assert_eq(session_parse(&back, text, (size_t)length), 0, "what cannot be told is empty");
    cr_assert_eq(session_format(&session, text, 50), -ENAMETOOLONG);
}

static void parse_any(const char *text, size_t length)
{
    struct session session, again;
    char copy[2 * PATH_MAX + 1024];
    int answer = session_parse(&session, text, length);
    cr_assert(answer == 0 || answer == -EBADMSG);
    if (answer < 0)
        return;
    cr_assert_gt(session.pid, 0);
    int size = session_format(&session, copy, sizeof copy);
    cr_assert(size > 0 && session_parse(&again, copy, (size_t)size) == 0);
    assert_equal(&session, &again);
    session_describe(&session, copy, sizeof copy);
}

Test(holder, hostile_text)
{
    char text[4096];
    const struct session session = some_session(1);
    int length = session_format(&session, text, sizeof text);
    place_mutate(text, (size_t)length, parse_any);
}

Test(holder, refuses_what_is_none)
{
    struct session session;
    const char good[] =
        "shunt-session 1\nid 1\nhost h\nboot b\nnode n\nbranch n.1\npid 1\nstarted 2\nuid 3\nuser u\n"
        "since 4\nrun /r\n";
    cr_assert_eq(session_parse(&session, good, sizeof good - 1), 0);
    const char *const swaps[][2] = {{"session 1", "session 2"},  {"pid 1", "pid 0"},
                                    {"pid 1", "pid 2147483648"}, {"uid 3", "uid 4294967296"},
                                    {"host h", "host h i"},      {"node n", "node ../x"},
                                    {"branch n.1", "branch n"},  {"run /r\n", "run /r\nmore x\n"},
                                    {"run /r\n", "run /r"},      {"id 1\n", ""}};
    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
        char bad[256];
        const char *at = strstr(good, swaps[i][0]);
        snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, swaps[i][1], at + strlen(swaps[i][0]));
        cr_assert_eq(session_parse(&session, bad, strlen(bad)), -EBADMSG, "%s", bad);
    }
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
    struct session session = some_session(1234);
    strcpy(session.host, "login2");
    session_describe(&session, words, sizeof words);
    cr_assert_str_eq(words, "a session of alice holds it on host login2 (node n017, process 1234) since "
                            "2024-05-01 12:34:56 UTC");
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
        session_describe(&session, words, sizeof words);
        cr_assert(strstr(words, dates[i].date), "%s", words);
    }
    session_describe(&session, words, 10);
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
    struct session mine = some_session(getpid());
    cr_assert_gt(mine.started, 0);
    cr_assert_eq(session_lives(&mine), 1);
    mine.started++;
    cr_assert_eq(session_lives(&mine), 0, "the number was given to another process");
    mine.started = 0;
    cr_assert_eq(session_lives(&mine), 1, "not known when it began");
    mine = some_session(getpid());
    strcpy(mine.boot, "another-boot");
    cr_assert_eq(session_lives(&mine), 0);
    strcpy(mine.host, "some.other.host");
    cr_assert_eq(session_lives(&mine), -EREMOTE);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    struct session theirs = some_session(child);
    cr_assert_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    cr_assert_eq(session_lives(&theirs), 0, "a zombie serves nobody");
    waitpid(child, NULL, 0);
    cr_assert_eq(session_lives(&theirs), 0);
    cr_assert_eq(session_process_started(child), 0);
    cr_assert_eq(session_process_started(-1), 0);
}

static mode_t mode(const char *path)
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
    cr_assert_eq(mode("r/.shunt"), 0755);
    cr_assert_eq(mode("r/.shunt/b"), 0755);
    cr_assert_eq(mode("r/.shunt/session"), 0755);
    cr_assert_eq(mode("r/.shunt/README"), 0644);
    cr_assert_eq(mode("r/.shunt/root"), 0644);
    cr_assert_eq(place_count("r/.shunt"), 4);
    cr_assert_eq(place_count("r/.shunt/session"), 0, "the probes are gone");
    struct stat before = place_stat("r/.shunt/root");
    place_file("r/.shunt/session/holder", "x");
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), 0);
    cr_assert_not(restamped);
    cr_assert_eq(place_stat("r/.shunt/root").st_ino, before.st_ino);
    cr_assert(place_has("r/.shunt/session/holder"));
}

Test(prepare, finishes_what_was_begun, .init = root_init, .fini = place_finish)
{
    bool restamped;
    place_directory("r/.shunt/session");
    cr_assert_eq(session_prepare_root(place_path("r"), &restamped), 0);
    cr_assert_not(restamped);
    cr_assert_eq(mode("r/.shunt/session"), 0755);
    cr_assert(place_has("r/.shunt/root") && place_has("r/.shunt/b"));
}

Test(prepare, a_copied_root_is_stamped_anew, .init = root_init, .fini = place_finish)
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
    cr_assert_eq(mode("r/.shunt/b/n1.1"), 0755);
    cr_assert_eq(session_claim_branch(place_path("r"), "n1", branch), 0);
    cr_assert_str_eq(branch, "n1.2");
    cr_assert_eq(session_claim_branch(place_path("r"), "n1.x", branch), 0);
    cr_assert_str_eq(branch, "n1.x.1");
    place_directory("r/.shunt/b/n1.41");
    cr_assert_eq(session_claim_branch(place_path("r"), "n1", branch), 0);
    cr_assert_str_eq(branch, "n1.42");
    place_directory("r/.shunt/b/n1.4294967295");
    cr_assert_eq(session_claim_branch(place_path("r"), "n1", branch), -EOVERFLOW);
    cr_assert_eq(session_claim_branch(place_path("r"), "../x", branch), -EINVAL);
    cr_assert_eq(session_claim_branch(place_path("r/.shunt"), "n1", branch), -ENOENT);
}

Test(claim, one_holds_it, .init = prepared_init, .fini = place_finish)
{
    struct session mine = some_session(getpid()), other = mine, holder;
    other.id++;
    cr_assert_eq(session_read(place_path("r"), &holder), -ENOENT);
    cr_assert_eq(session_claim(place_path("r"), &mine, &holder), 0);
    assert_equal(&mine, &holder);
    cr_assert_eq(session_claim(place_path("r"), &other, &holder), -EBUSY);
    assert_equal(&mine, &holder);
    session_release(place_path("r"), &other);
    cr_assert_eq(session_read(place_path("r"), &holder), 0, "not theirs to withdraw");
    cr_assert_eq(mode("r/.shunt/session/holder"), 0644);
    session_release(place_path("r"), &mine);
    cr_assert_eq(session_read(place_path("r"), &holder), -ENOENT);
    session_release(place_path("r"), &mine);
    cr_assert_eq(place_count("r/.shunt/session"), 0);
    mine.host[0] = ' ';
    cr_assert_eq(session_claim(place_path("r"), &mine, &holder), -EINVAL);
}

Test(claim, the_dead_are_replaced_and_the_distant_are_not, .init = prepared_init, .fini = place_finish)
{
    struct session dead = some_session(getpid()), mine = dead, distant = dead, holder;
    dead.started++;
    mine.id++;
    cr_assert_eq(session_claim(place_path("r"), &dead, &holder), 0);
    cr_assert_eq(session_claim(place_path("r"), &mine, &holder), 0);
    assert_equal(&mine, &holder);
    session_release(place_path("r"), &mine);
    strcpy(distant.host, "some.other.host");
    strcpy(distant.boot, "another-boot");
    cr_assert_eq(session_claim(place_path("r"), &distant, &holder), 0);
    cr_assert_eq(session_claim(place_path("r"), &mine, &holder), -EBUSY);
    assert_equal(&distant, &holder);
    place_file("r/.shunt/session/holder", "shunt-session 1\nid 12");
    cr_assert_eq(session_claim(place_path("r"), &mine, &holder), -EBADMSG);
    cr_assert_eq(session_read(place_path("r"), &holder), -EBADMSG);
}

Test(claim, a_copied_session_is_none, .init = prepared_init, .fini = place_finish)
{
    char command[PATH_MAX * 2];
    struct session mine = some_session(getpid()), other = mine, holder;
    bool restamped;
    other.id++;
    cr_assert_eq(session_claim(place_path("r"), &mine, &holder), 0);
    snprintf(command, sizeof command, "cp -a %s/r %s/copy", place, place);
    cr_assert_eq(system(command), 0);
    cr_assert(place_has("copy/.shunt/session/holder"));
    cr_assert_eq(session_read(place_path("copy"), &holder), -ENOENT);
    cr_assert_eq(session_claim(place_path("copy"), &other, &holder), 0);
    cr_assert_eq(session_read(place_path("copy"), &holder), 0);
    assert_equal(&other, &holder);
    cr_assert_eq(session_prepare_root(place_path("copy"), &restamped), 0);
    cr_assert_not(restamped, "the claim did that");
    cr_assert_eq(session_read(place_path("r"), &holder), 0);
    assert_equal(&mine, &holder);
}

/* A dead session in place, many want it at the same time: one gets it. */
Test(claim, many_at_once, .init = prepared_init, .fini = place_finish)
{
    enum { MANY = 16 };
    struct session dead = some_session(getpid()), holder;
    dead.started++;
    int gate[2], won = 0;
    pid_t children[MANY];
    char byte;
    cr_assert_eq(session_claim(place_path("r"), &dead, &holder), 0);
    cr_assert_eq(pipe(gate), 0);
    for (int i = 0; i < MANY; i++)
        if ((children[i] = fork()) == 0) {
            struct session mine = some_session(getppid());
            mine.id += (uint64_t)i + 1;
            close(gate[1]);
            _exit(read(gate[0], &byte, 1) < 0 ? 99 : -session_claim(place_path("r"), &mine, &holder));
        }
    close(gate[1]);
    for (int i = 0; i < MANY; i++) {
        int status;
        cr_assert_eq(waitpid(children[i], &status, 0), children[i]);
        cr_assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EBUSY, "%d", WEXITSTATUS(status));
        won += WEXITSTATUS(status) == 0;
    }
    cr_assert_eq(won, 1);
    cr_assert_eq(place_count("r/.shunt/session"), 1);
}
