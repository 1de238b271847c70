/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The home protocol as a model for spin: tests/model/check.sh says how it is checked, with which of the sizes and faults
 * below. The comment behind an inline names the functions that it models.
 *
 * Two names of one directory, three nodes, a process on each. The home of one name is node 3, that of the other node 1:
 * a rename goes across homes. Node 3 may be lost: it dies at once, or is cut off, or is only slow, so that it goes on as if
 * nothing were. Nodes 1 and 2 then hold the majority; node 2 is the name's next home.
 *
 * What is promised (README.md, Guarantees) is asserted where it could break:
 *   O_EXCL is exact, no two places for one name      disk_create, disk_rename
 *   absent is said only of what was absent           said_absent: at some moment between the call and its return
 *   there is said only of what was there             said_there: likewise. Both together: names are linearizable, since
 *                                                    each change takes effect at one moment, its one real call; so a
 *                                                    rename is never seen half done either
 *   no file is lost                                  disk_unlink, disk_rename: what goes is what was meant;
 *                                                    must_agree: what homes know in the end is what the disk holds
 *   nobody decides on both sides                     decide
 *   what waits is answered                           must_agree, and spin's search for invalid end states
 *
 * Left out: all that concerns a directory as a whole (coordinator/), promotion and adoption, leaves, shards that move between
 * homes that live (membership/migration.c), several processes of a node at one name (of an operation's name its node has no
 * other).
 *
 * A name that is reserved before its process asks (prefetch/prefetch.h), or granted to it (prefetch/grant.h), is here a create,
 * an unlink or a rename that begins late, and with DEATHS one that is given back: which of the two, a single swap decides. With
 * KEEPS a create's claim goes on (prefetch/rename_ahead.c) until the file is renamed, or the name is given back.
 *
 * A rename claims its names one after the other, in the order of their keys; with AT_ONCE it asks for both at once first, which
 * no home lets wait.
 *
 * One thing is assumed. A process whose node was lost meanwhile, and which was told that it may begin, is kept by
 * the fence from doing so in its own branch alone. Elsewhere (a create in the trunk, the removal or rename of a file in
 * another's branch) nothing stops it: there its one real call is assumed to be made before its node's lease has ended.
 * With LATE it need not be, and names break.
 *
 * With OVERLAP a create in the own branch is another one, which shunt does not have (rpc/RPC.md says why): the file is made
 * while its home is still asked, and removed again where that refuses. */

/* What the process of a node may do: a sum of these; and how often. */
#define CREATE 1
#define UNLINK 2
#define RENAME 4
#define LOOK 8
#define LISTS 16 /* the name of a listing, which waits for no create or unlink of it */
#define KEEP 32  /* what it creates stays claimed until it is renamed, or is given back */
#ifndef OPERATIONS_1
#define OPERATIONS_1 15
#endif
#ifndef TIMES_1
#define TIMES_1 (OPERATIONS_1 != 0)
#endif
#ifndef OPERATIONS_2
#define OPERATIONS_2 15
#endif
#ifndef TIMES_2
#define TIMES_2 (OPERATIONS_2 != 0)
#endif
#ifndef OPERATIONS_3
#define OPERATIONS_3 15
#endif
#ifndef TIMES_3
#define TIMES_3 (OPERATIONS_3 != 0)
#endif

#define A 0 /* names, in the order of their keys */
#define B 1
#define OF(n, x) ((n) * 2 + (x))
#define TRUNK 0 /* places: the trunk, or the branch of that node */

/* What an index says of a name (enum record_state). */
#define NONE 0
#define LIVE 1
#define PENDING 2
#define DYING 3

/* Answers. */
#define GRANTED 1 /* 0, of RESERVE and MARK */
#define EXISTS 2
#define ABSENT 3
#define BUSY 4

/* Questions (enum name_op): HOLD is CLAIM, HOLD_ANYHOW with NAME_EVEN_ABSENT; what ends in NOW with NAME_NONBLOCK, by a rename
 * that asks for both names at once: OLD_NOW makes what it is given dying, NEW_NOW pending, also what is absent. */
mtype = { NOTHING, LOOKUP, RESERVE, HOLD, HOLD_ANYHOW, OLD_NOW, NEW_NOW, MARK, PEEK };
#define IS_NOW(op) ((op) == OLD_NOW || (op) == NEW_NOW)
#define IS_ANYHOW(op) ((op) == HOLD_ANYHOW || (op) == NEW_NOW)
#define IS_HOLD(op) ((op) == HOLD || (op) == HOLD_ANYHOW || IS_NOW(op))
/* Items between daemons (RPC.md). HELD is a claim in RPC_MIGRATE: a daemon whose process is at work on a name tells so to the
 * next home of it (migration_send_claim, migration_take_claim). */
mtype = { ASK, END, HELD, REPLY };

/* The file system: the inode number of a name at a place, 0: none. The path of node 3's branch is another one once it is
 * fenced: what is named by the old one is not there. */
byte at[8];
#ifdef OVERLAP
bool ahead[8]; /* what is there was not reserved: it is no name's file yet */
#define IS_AHEAD(f) (ahead[f])
#else
#define IS_AHEAD(f) (false)
#endif
bool fenced;
bool published; /* the epoch without node 3 */

/* Each daemon. */
bool adopted[4]; /* it knows that epoch. Node 3 stops with that */
bool complete[4];
byte state[8], place[8], ino[8]; /* its index, by OF(daemon, name) */
byte held[8];                    /* by the process of that node */
bool changed[8];                 /* since it began to load */
bool lease;                      /* node 3's. The others keep theirs */
bool dead;                       /* node 3 */
byte telling;                    /* HELD items on their way */

/* Each operation, by OF(node, name). */
mtype asking[8] = NOTHING;
byte asked[8];                         /* which daemon */
byte meanwhile[8], to[8], told_ino[8]; /* the entry in its question, as it is put when it is marked */
bool waiting[8];                       /* the question waits at its home */
byte result[8];
bool mine[8];              /* its home gave it the name */
bool marked[8];            /* readers know */
bool before[8];            /* there was a file, */
byte from[8], from_ino[8]; /* there */
bool newer[8];             /* its place was told in the newer epoch, and so names the branch as it is then */
#ifdef KEEPS
bool kept[8];              /* its create has ended, and a rename of it may follow (prefetch/rename_ahead.c) */
#define IS_KEPT(f) (kept[f])
#else
#define IS_KEPT(f) (false)
#endif

/* What is only watched: since a process's call began, was the name absent, or there? */
bool was_absent[8] = true, was_there[8] = true;
bool outside; /* node 3's process may begin outside of its own branch */
bool decided_again[2];
byte finished;

chan frames[6] = [4] of { mtype, byte, mtype, byte, byte, byte, bool };
#define FRAMES(m, n) frames[(m) * 2 + (n) - ((n) > (m)) - 3]

#define IN_EPOCH(e, x) (1 + ((x) == LOST_NAME) * (2 - (e))) /* node 3, or then 2; else node 1 */
#ifndef LOST_NAME /* the name whose home is lost */
#define LOST_NAME A
#endif
#define HOME(n, x) IN_EPOCH(adopted[n], x) /* route_of_name */
#ifdef OVERLAP
#define IS_AT(p, x) (at[OF(p, x)] != 0 && !IS_AHEAD(OF(p, x)))
#define IS_ON_DISK(x) (IS_AT(0, x) || IS_AT(1, x) || IS_AT(2, x) || IS_AT(3, x))
#else
#define IS_ON_DISK(x) (at[OF(0, x)] + at[OF(1, x)] + at[OF(2, x)] + at[OF(3, x)] > 0)
#endif
#ifdef FAULT_NO_FENCE /* the branch of the lost node keeps its name */
#define LEADS_THERE(p, is_newer) (true)
#else
#define LEADS_THERE(p, is_newer) ((p) != 3 || (is_newer) == fenced)
#endif

#ifdef FAULT_NO_LEASE /* a home decides without one */
#define MAY_DECIDE(n) (true)
#else
#define MAY_DECIDE(n) ((n) != 3 || (lease && !adopted[3]))
#endif

/* The file system. */

inline note(x) /* a real call was made: the name is, or is not, from this moment on */
{
    was_absent[OF(1, x)] = was_absent[OF(1, x)] || !IS_ON_DISK(x);
    was_absent[OF(2, x)] = was_absent[OF(2, x)] || !IS_ON_DISK(x);
    was_absent[OF(3, x)] = was_absent[OF(3, x)] || !IS_ON_DISK(x);
    was_there[OF(1, x)] = was_there[OF(1, x)] || IS_ON_DISK(x);
    was_there[OF(2, x)] = was_there[OF(2, x)] || IS_ON_DISK(x);
    was_there[OF(3, x)] = was_there[OF(3, x)] || IS_ON_DISK(x)
}

inline disk_create(p, is_newer, x, number, ok) /* open(2) with O_EXCL */
{
    ok = LEADS_THERE(p, is_newer) && at[OF(p, x)] == 0;
    if
    :: ok ->
        assert(!IS_ON_DISK(x)); /* O_EXCL is exact: nobody else has that name, here or elsewhere */
        at[OF(p, x)] = number;
        note(x)
    :: else
    fi
}

#ifdef OVERLAP
inline disk_create_ahead(p, x, number) /* open(2) with O_EXCL, before anybody knows of it */
{
    if
    :: at[OF(p, x)] == 0 ->
        at[OF(p, x)] = number;
        ahead[OF(p, x)] = true
    :: else
    fi
}

inline become_name(p, x, number, ok) /* it was reserved: what was made is the name's file from this moment on */
{
    ok = at[OF(p, x)] == number;
    if
    :: ok ->
        assert(!IS_ON_DISK(x)); /* O_EXCL is exact */
        ahead[OF(p, x)] = false;
        note(x)
    :: else
    fi
}

inline disk_undo(p, x, number) /* unlink(2), of a file that was its own when it looked */
{
    assert(at[OF(p, x)] == number); /* no other file is lost by it */
    at[OF(p, x)] = 0;
    ahead[OF(p, x)] = false
}
#endif

inline disk_unlink(p, is_newer, x, number, ok) /* unlink(2) */
{
    ok = LEADS_THERE(p, is_newer) && at[OF(p, x)] != 0;
    if
    :: ok ->
        assert(at[OF(p, x)] == number); /* no other file is lost by it */
        at[OF(p, x)] = 0;
        note(x)
    :: else
    fi
}

inline disk_rename(p, p_newer, x, q, q_newer, y, replaced, ok) /* renameat2(2) */
{
    ok = LEADS_THERE(p, p_newer) && LEADS_THERE(q, q_newer) && at[OF(p, x)] != 0;
    if
    :: ok ->
        assert(at[OF(q, y)] == replaced || IS_AHEAD(OF(q, y))); /* no other file is lost by it */
        at[OF(q, y)] = 0;
#ifdef OVERLAP
        ahead[OF(q, y)] = false;
#endif
        assert(!IS_ON_DISK(y)); /* no two places for one name */
        at[OF(q, y)] = at[OF(p, x)];
        at[OF(p, x)] = 0;
        note(x);
        note(y)
    :: else
    fi
}

/* A home. */

inline end_operation(f) /* operation_end */
{
    d_step {
        asking[f] = NOTHING;
        asked[f] = 0;
        meanwhile[f] = 0;
        to[f] = 0;
        told_ino[f] = 0;
        waiting[f] = false;
        result[f] = 0;
        mine[f] = false;
        marked[f] = false;
        before[f] = false;
        from[f] = 0;
        from_ino[f] = 0;
        newer[f] = false;
#ifdef KEEPS
        kept[f] = false
#endif
    }
}

inline put(h, x, s, p, i) /* names_put, index_put_entry: of nothing no place is kept */
{
    state[OF(h, x)] = s;
    place[OF(h, x)] = (s == NONE -> 0 : p);
    ino[OF(h, x)] = (s == NONE -> 0 : i);
    changed[OF(h, x)] = adopted[h] && !complete[h]
}

inline answered(c, x, what, s, p, i, is_newer) /* home_rpc_answered, home_rpc_note */
{
    if
    :: asking[OF(c, x)] == LOOKUP || asking[OF(c, x)] == PEEK || what == EXISTS || what == ABSENT || asking[OF(c, x)] == RESERVE ->
        newer[OF(c, x)] = is_newer
    :: else
    fi;
    if
    :: asking[OF(c, x)] == MARK -> marked[OF(c, x)] = true
    :: IS_HOLD(asking[OF(c, x)]) && what == EXISTS ->
        before[OF(c, x)] = true;
        mine[OF(c, x)] = true;
        if
        :: IS_NOW(asking[OF(c, x)]) -> /* readers know by now, of the place that was told */
            marked[OF(c, x)] = true;
            to[OF(c, x)] = p;
            told_ino[OF(c, x)] = i
        :: else
        fi
    :: IS_ANYHOW(asking[OF(c, x)]) && what == ABSENT ->
        mine[OF(c, x)] = true;
        marked[OF(c, x)] = asking[OF(c, x)] == NEW_NOW
    :: asking[OF(c, x)] == RESERVE && what == GRANTED ->
        mine[OF(c, x)] = true;
        marked[OF(c, x)] = true
    :: else
    fi;
    if
    :: what == EXISTS ->
        from[OF(c, x)] = p;
        from_ino[OF(c, x)] = i
    :: else
    fi;
    asking[OF(c, x)] = NOTHING;
    asked[OF(c, x)] = 0;
    waiting[OF(c, x)] = false;
    result[OF(c, x)] = what
}

inline reply(h, c, x, what, s, p, i) /* home_rpc_reply, RPC_HOME_REPLY */
{
    if
    :: h == c -> answered(c, x, what, s, p, i, adopted[h])
    :: else ->
        assert(nfull(FRAMES(h, c)));
        FRAMES(h, c)!REPLY,x,NOTHING,what,p,i,adopted[h]
    fi
}

inline reserve(h, c, x, p) /* names_reserve: held by the node that asks, pending */
{
    held[OF(h, x)] = c;
    put(h, x, PENDING, p, 0);
    reply(h, c, x, GRANTED, PENDING, p, 0)
}

inline take(h, c, x, op, s, p) /* names_take: NAME_CLAIM */
{
    if
    :: state[OF(h, x)] != NONE ->
        held[OF(h, x)] = c;
        reply(h, c, x, EXISTS, LIVE, place[OF(h, x)], ino[OF(h, x)]);
        if
        :: s != NONE -> put(h, x, s, place[OF(h, x)], ino[OF(h, x)])
        :: else
        fi
    :: else ->
        if
        :: IS_ANYHOW(op) -> held[OF(h, x)] = c
        :: else
        fi;
        if
        :: op == NEW_NOW -> put(h, x, PENDING, p, 0)
        :: else
        fi;
        reply(h, c, x, ABSENT, NONE, 0, 0)
    fi
}

inline decide(h, c, x, op, s, p) /* names_decide: of a name that nobody holds */
{
    assert(h != 3 || !decided_again[x]); /* nobody decides on both sides */
    decided_again[x] = decided_again[x] || adopted[h];
    if
    :: IS_HOLD(op) -> take(h, c, x, op, s, p)
    :: op == MARK -> reply(h, c, x, GRANTED, NONE, 0, 0)
    :: op == LOOKUP || op == PEEK || op == RESERVE ->
        if
#ifdef FAULT_NO_CAS
        :: state[OF(h, x)] != NONE && op == LOOKUP
#else
        :: state[OF(h, x)] != NONE
#endif
            -> reply(h, c, x, EXISTS, state[OF(h, x)], place[OF(h, x)], ino[OF(h, x)])
        :: else ->
            if
            :: op == LOOKUP || op == PEEK -> reply(h, c, x, ABSENT, NONE, 0, 0)
            :: else -> reserve(h, c, x, p)
            fi
        fi
    fi
}

/* home_ask, but for END: what is asked of a directory that is not complete, or of a name that is held, is `waiting` (names_wait)
 * until look_again. */
inline home_ask(h, c, x, op, s, p, i)
{
    if
    :: op == MARK && held[OF(h, x)] == c ->
        put(h, x, s, p, i);
        reply(h, c, x, GRANTED, NONE, 0, 0)
    :: op == PEEK && complete[h] && MAY_DECIDE(h) && held[OF(h, x)] != 0 && state[OF(h, x)] == PENDING && ino[OF(h, x)] == 0 ->
        reply(h, c, x, EXISTS, PENDING, place[OF(h, x)], 0) /* names_peek */
#ifdef FAULT_ABSENT_UNLOADED
    :: op == LOOKUP && !complete[h] -> reply(h, c, x, ABSENT, NONE, 0, 0)
#endif
#ifdef FAULT_ABSENT_WHILE_PENDING
    :: op == LOOKUP && complete[h] && MAY_DECIDE(h) && held[OF(h, x)] != 0 -> reply(h, c, x, ABSENT, NONE, 0, 0)
#endif
    :: complete[h] && held[OF(h, x)] == 0 && MAY_DECIDE(h) -> decide(h, c, x, op, s, p)
#ifndef FAULT_WAITS_HOLDING
    :: !(complete[h] && held[OF(h, x)] == 0 && MAY_DECIDE(h)) && IS_NOW(op) -> reply(h, c, x, BUSY, NONE, 0, 0)
#endif
    :: else -> waiting[OF(c, x)] = waiting[OF(c, x)] || asked[OF(c, x)] == h
    fi
}

inline home_end(h, c, x, s, p, i) /* home_ask, NAME_END: names_end, names_end_of_nothing */
{
    if
    :: held[OF(h, x)] == c ->
        held[OF(h, x)] = 0;
        put(h, x, s, p, i)
    :: held[OF(h, x)] != c && s != NONE && state[OF(h, x)] == NONE -> put(h, x, s, p, i)
    :: else
    fi
}

/* The daemon of a process's node. */

inline ask_home(n, x, op, s, p, i) /* home_rpc_request, rpc_home_request */
{
    asking[OF(n, x)] = op;
    asked[OF(n, x)] = HOME(n, x);
    meanwhile[OF(n, x)] = s;
    to[OF(n, x)] = p;
    told_ino[OF(n, x)] = i;
    result[OF(n, x)] = 0;
    if
    :: asked[OF(n, x)] == n -> home_ask(n, n, x, op, s, p, i)
    :: else ->
        assert(nfull(FRAMES(n, asked[OF(n, x)])));
        FRAMES(n, asked[OF(n, x)])!ASK,x,op,s,p,i,adopted[n]
    fi
}

inline tell_end(n, x, s, p, i) /* home_rpc_end, rpc_home_release */
{
    if
    :: mine[OF(n, x)] && HOME(n, x) == n -> home_end(n, n, x, s, p, i)
    :: mine[OF(n, x)] && HOME(n, x) != n ->
        assert(nfull(FRAMES(n, HOME(n, x))));
        FRAMES(n, HOME(n, x))!END,x,NOTHING,s,p,i,adopted[n]
    :: else
    fi;
    end_operation(OF(n, x))
}

inline abort_claim(n, x) /* home_rpc_abort: all is as before */
{
    tell_end(n, x, before[OF(n, x)] * LIVE, from[OF(n, x)], from_ino[OF(n, x)])
}

/* What the daemon of a process that is at work on a name tells the next home of it: which node has it, and what readers are to
 * meet meanwhile. */
inline tell_held(n, x)
{
    it_state = (marked[OF(n, x)] -> meanwhile[OF(n, x)] : (before[OF(n, x)] -> LIVE : NONE));
    it_place = (marked[OF(n, x)] -> to[OF(n, x)] : from[OF(n, x)]);
    it_ino = (marked[OF(n, x)] -> told_ino[OF(n, x)] : from_ino[OF(n, x)]);
    if
    :: HOME(n, x) == n ->
        held[OF(n, x)] = n;
        put(n, x, it_state, it_place, it_ino)
    :: else ->
        telling++;
        assert(nfull(FRAMES(n, HOME(n, x))));
        FRAMES(n, HOME(n, x))!HELD,x,NOTHING,it_state,it_place,it_ino,true
    fi
}

/* Another epoch. */

inline forget(n, x) /* recovery_forget, completion_settle_member: what processes of those that are left are at work on stays */
{
    if
    :: held[OF(n, x)] == 3 -> held[OF(n, x)] = 0
    :: else
    fi;
    if
    :: asked[OF(3, x)] == n -> waiting[OF(3, x)] = false
    :: else
    fi;
    if
#ifndef FAULT_MARKS_FORGOTTEN
    :: held[OF(n, x)] != 0 -> changed[OF(n, x)] = true
#endif
    :: else ->
        put(n, x, NONE, 0, 0);
        changed[OF(n, x)] = false
    fi
}

inline begin_again(n, x) /* recovery_report, home_rpc_repeat: what was asked of the lost home */
{
    if
#ifdef KEEPS
    :: IS_KEPT(OF(n, x)) -> end_operation(OF(n, x)) /* prefetch_forget: what was made is on disk, and is read again */
#endif
#ifndef FAULT_CONFIRM_LOST
    :: mine[OF(n, x)] && !IS_KEPT(OF(n, x)) -> tell_held(n, x)
#endif
    :: else
    fi;
    if
    :: asking[OF(n, x)] != NOTHING ->
        waiting[OF(n, x)] = false;
        ask_home(n, x, asking[OF(n, x)], meanwhile[OF(n, x)], to[OF(n, x)], told_ino[OF(n, x)])
    :: else
    fi
}

inline homes_adopt(n) /* homes_adopt */
{
    adopted[n] = true;
    complete[n] = false;
    forget(n, A);
    forget(n, B);
    begin_again(n, LOST_NAME)
}

/* What has come from another daemon. */

inline take_item(m, n) /* home_rpc_take_request, home_rpc_take_reply, migration_take_claim */
{
    if
    :: kind == ASK -> home_ask(n, m, it_name, it_op, it_state, it_place, it_ino)
    :: kind == END -> home_end(n, m, it_name, it_state, it_place, it_ino)
    :: kind == HELD ->
        telling--;
        held[OF(n, it_name)] = m;
        put(n, it_name, it_state, it_place, it_ino)
    :: kind == REPLY && asking[OF(n, it_name)] != NOTHING && asked[OF(n, it_name)] == m -> answered(n, it_name, it_state, it_state, it_place, it_ino, is_newer)
#ifdef FAULT_OLD_FRAMES
    :: kind == REPLY && asking[OF(n, it_name)] != NOTHING && m == 3 -> answered(n, it_name, it_state, it_state, it_place, it_ino, is_newer)
#endif
    :: else
    fi
}

/* A frame of an older epoch is refused; one of a newer epoch is taken once the receiver has adopted it. What those that
 * are left had said to each other before, is said again then (peers.c). */
inline hear(m, n)
{
    if
    :: m == 3 && adopted[n] ->
#ifdef FAULT_OLD_FRAMES
        take_item(m, n)
#else
        skip
#endif
    :: else -> take_item(m, n)
    fi;
    kind = NOTHING;
    it_name = 0;
    it_op = NOTHING;
    it_state = 0;
    it_place = 0;
    it_ino = 0;
    is_newer = false
}

#define HEARS(m, n) ((m) != (n) && nempty(FRAMES(m, n)) && ((m) == 3 || ((n) == 3 && !adopted[3]) || ((n) != 3 && adopted[m] == adopted[n])))
#define WAITS(n, c, x) (waiting[OF(c, x)] && asked[OF(c, x)] == n && complete[n] && held[OF(n, x)] == 0 && MAY_DECIDE(n))

inline look_again(n, c, name) /* home_next_question, home_rpc_answer_waiting */
{
    waiting[OF(c, name)] = false;
    decide(n, c, name, asking[OF(c, name)], meanwhile[OF(c, name)], to[OF(c, name)])
}

proctype daemon(byte me)
{
    mtype kind = NOTHING, it_op = NOTHING;
    byte it_name, it_state, it_place, it_ino;
    bool is_newer;
    {
end:
        do
        :: atomic { HEARS(1, me) ->
               FRAMES(1, me)?kind,it_name,it_op,it_state,it_place,it_ino,is_newer; hear(1, me) }
        :: atomic { HEARS(2, me) ->
               FRAMES(2, me)?kind,it_name,it_op,it_state,it_place,it_ino,is_newer; hear(2, me) }
        :: atomic { HEARS(3, me) ->
               FRAMES(3, me)?kind,it_name,it_op,it_state,it_place,it_ino,is_newer; hear(3, me) }
        :: atomic { WAITS(me, 1, A) -> look_again(me, 1, A) }
        :: atomic { WAITS(me, 2, A) -> look_again(me, 2, A) }
        :: atomic { WAITS(me, 3, A) -> look_again(me, 3, A) }
        :: atomic { WAITS(me, 1, B) -> look_again(me, 1, B) }
        :: atomic { WAITS(me, 2, B) -> look_again(me, 2, B) }
        :: atomic { WAITS(me, 3, B) -> look_again(me, 3, B) }
        :: atomic { me != 3 && published && !adopted[me] ->
               homes_adopt(me); it_state = 0; it_place = 0; it_ino = 0 }
        :: atomic { me == 3 && published && !adopted[3] -> adopted[3] = true }
        od
    } unless { me == 3 && dead }
}

/* A process: what its operation asks, does and says (lib/shim). */

inline begin_call(n)
{
    was_absent[OF(n, A)] = !IS_ON_DISK(A);
    was_there[OF(n, A)] = IS_ON_DISK(A);
    was_absent[OF(n, B)] = !IS_ON_DISK(B);
    was_there[OF(n, B)] = IS_ON_DISK(B)
}

inline end_call(n)
{
    was_absent[OF(n, A)] = true;
    was_there[OF(n, A)] = true;
    was_absent[OF(n, B)] = true;
    was_there[OF(n, B)] = true
}

#define said_absent(n, x) assert(was_absent[OF(n, x)])
#define said_there(n, x) assert(was_there[OF(n, x)])

/* request_ask: the answer, or EIO where the node has lost its lease. */
inline await(n, x)
{
    if
    :: atomic { result[OF(n, x)] != 0 && (n != 3 || lease) }
    :: n == 3 && (!lease || adopted[3]) -> goto failed
    fi
}

inline begins(n, p) /* its real call, of what lies there */
{
    outside = (n == 3 && (p) != 3)
}

inline operate_create(n, x) /* create_reserve, operate_open_make_file, create_commit */
{
    atomic {
        begin_call(n);
        if
        :: spot = n
#ifdef TRUNK_CREATES
        :: spot = TRUNK
#endif
        fi;
        ask_home(n, x, RESERVE, PENDING, spot, 0)
    }
    await(n, x);
    if
    :: atomic { result[OF(n, x)] == EXISTS ->
           said_there(n, x);
           end_operation(OF(n, x)) }
    :: atomic { result[OF(n, x)] == GRANTED -> begins(n, spot) }
       if
       :: atomic { disk_create(spot, n != 3 && newer[OF(n, x)], x, number, ok); outside = false }
#ifdef DEATHS
       :: atomic { ok = false; outside = false } /* it died: completion_settle_by_disk */
#endif
       fi;
       atomic {
           if
#ifdef KEEPS
           :: ok && (operations & KEEP) -> keep(n, x, spot, number)
#endif
           :: ok && !(operations & KEEP) -> tell_end(n, x, LIVE, spot, number)
           :: !ok -> abort_claim(n, x)
           fi;
           ok = false
       }
    fi;
    atomic { spot = 0; end_call(n) }
}

#ifdef OVERLAP
inline operate_create_ahead(n, x)
{
    atomic { begin_call(n); ask_home(n, x, RESERVE, PENDING, n, 0) }
    atomic { disk_create_ahead(n, x, number) }
    await(n, x);
    if
    :: atomic { result[OF(n, x)] == GRANTED ->
           become_name(n, x, number, ok);
           if
           :: ok -> tell_end(n, x, LIVE, n, number)
           :: else -> abort_claim(n, x)
           fi;
           ok = false }
    :: atomic { result[OF(n, x)] == EXISTS ->
           said_there(n, x);
           ok = at[OF(n, x)] == number }
       atomic {
           if
           :: ok -> disk_undo(n, x, number)
           :: else
           fi;
           ok = false;
           end_operation(OF(n, x))
       }
    fi;
    end_call(n)
}
#endif

inline operate_unlink(n, x) /* operate_remove_unlink_held */
{
    atomic {
        begin_call(n);
        again = true
    }
    do
    :: atomic { again -> ask_home(n, x, HOLD, DYING, 0, 0) }
        await(n, x);
        if
        :: atomic { result[OF(n, x)] == ABSENT ->
               said_absent(n, x);
               end_operation(OF(n, x));
               again = false }
        :: atomic { result[OF(n, x)] == EXISTS -> begins(n, from[OF(n, x)]) }
           if
           :: atomic { disk_unlink(from[OF(n, x)], newer[OF(n, x)], x, from_ino[OF(n, x)], ok); outside = false }
#ifdef DEATHS
           :: atomic { ok = false; again = false; outside = false }
#endif
           fi;
           atomic {
               if
#ifdef FAULT_FENCED_IS_GONE
               :: true ->
                   again = false;
#else
               :: ok ->
                   again = false;
#endif
                   tell_end(n, x, NONE, 0, 0)
               :: else -> abort_claim(n, x) /* its branch was fenced meanwhile: the file is there, by another path */
               fi;
               ok = false
           }
        fi
    :: else -> break
    od;
    atomic { again = false; end_call(n) }
}

/* Both names are held, and readers know: the real call, and the end (rename_give_leave, completion_pair). */
inline rename_both(n, x, y)
{
    atomic { begins(n, from[OF(n, x)]) }
    if
    :: atomic { disk_rename(from[OF(n, x)], newer[OF(n, x)], x, spot,
                            newer[OF(n, goal)], y,
                            from_ino[OF(n, y)], ok); outside = false }
#ifdef DEATHS
    :: atomic { ok = false; again = false; outside = false }
#endif
    fi;
    atomic {
        if
        :: ok ->
            again = false;
            number = from_ino[OF(n, x)];
            tell_end(n, x, NONE, 0, 0);
            tell_end(n, y, LIVE, spot, number)
        :: else ->
            abort_claim(n, A);
            abort_claim(n, B)
        fi;
        ok = false;
        spot = 0;
        goal = 0;
        number = 0
    }
}

#if defined(AT_ONCE) || defined(KEEPS)
/* rename_hold_at_once, rename_both_answered: the process expects the file in its own branch, and the names are claimed in any
 * order, since none is waited for. */
inline rename_at_once(n, x, y)
{
    atomic {
        if
#ifdef KEEPS
        :: IS_KEPT(OF(n, x)) -> kept[OF(n, x)] = false
#endif
        :: !IS_KEPT(OF(n, x)) -> ask_home(n, x, OLD_NOW, DYING, 0, 0)
        fi;
        ask_home(n, y, NEW_NOW, PENDING, n, 0)
    }
    await(n, x);
    await(n, y);
    if
    :: atomic { result[OF(n, x)] == BUSY || result[OF(n, y)] == BUSY -> /* rename_not_at_once */
           abort_claim(n, x);
           abort_claim(n, y) }
    :: atomic { result[OF(n, x)] != BUSY && result[OF(n, y)] != BUSY && !before[OF(n, x)] ->
           said_absent(n, x);
           abort_claim(n, x);
           abort_claim(n, y);
           again = false }
    :: atomic { result[OF(n, x)] != BUSY && result[OF(n, y)] != BUSY && before[OF(n, x)] ->
           goal = (before[OF(n, y)] -> y : x);
           spot = from[OF(n, goal)];
           if
#ifndef FAULT_UNMARKED
           :: !before[OF(n, y)] && spot != n -> ask_home(n, y, MARK, PENDING, spot, 0)
#endif
           :: else
           fi }
       await(n, y);
       rename_both(n, x, y)
    fi
}
#endif

/* rename_hold_in_order, rename_held, rename_both_held, rename_mark; operate_rename_held. */
inline operate_rename(n, x, y)
{
    atomic {
        begin_call(n);
        again = true
    }
#if defined(AT_ONCE) || defined(KEEPS)
    rename_at_once(n, x, y);
#endif
    do
    :: atomic { again -> ask_home(n, A, HOLD_ANYHOW, NONE, 0, 0) }
        await(n, A);
        atomic { ask_home(n, B, HOLD_ANYHOW, NONE, 0, 0) }
        await(n, B);
        if
        :: atomic { !before[OF(n, x)] ->
               said_absent(n, x);
               abort_claim(n, A);
               abort_claim(n, B);
               again = false }
        :: atomic { before[OF(n, x)] ->
               goal = (before[OF(n, y)] -> y : x); /* to the place of what is replaced, else it stays where it is */
               spot = from[OF(n, goal)];
               ask_home(n, x, MARK, DYING, from[OF(n, x)], from_ino[OF(n, x)]);
               ask_home(n, y, MARK, PENDING, spot, from_ino[OF(n, y)]) }
#ifndef FAULT_UNMARKED
           await(n, x);
           await(n, y);
#endif
           rename_both(n, x, y)
        fi
    :: else -> break
    od;
    atomic { again = false; end_call(n) }
}

#ifdef KEEPS
/* prefetch_keep: its create has ended, and the claim goes on, as pending; then it is renamed, or given back. */
inline keep(n, x, p, i)
{
    before[OF(n, x)] = true;
    from[OF(n, x)] = p;
    from_ino[OF(n, x)] = i;
    result[OF(n, x)] = EXISTS;
    kept[OF(n, x)] = true
}

inline end_kept(n, x)
{
    if
    :: IS_KEPT(OF(n, x)) -> operate_rename(n, x, 1 - x)
    :: atomic { IS_KEPT(OF(n, x)) -> tell_end(n, x, LIVE, from[OF(n, x)], from_ino[OF(n, x)]) }
    :: else
    fi
}
#endif

/* May a process of the node trust its index where that has nothing? names_has_all: in names that its node is home of,
 * under a lease whose end it knows itself, since its daemon may be stopped. */
#ifdef FAULT_INDEX_WITHOUT_LEASE
#define HAS_ALL(n, x) (HOME(n, x) == n && complete[n])
#else
#define HAS_ALL(n, x) (HOME(n, x) == n && complete[n] && MAY_DECIDE(n))
#endif

inline operate_look(n, x) /* target_look, names_find, ops_lookup */
{
    atomic {
        begin_call(n);
        again = true
    }
    do
    :: atomic { again && HAS_ALL(n, x) && state[OF(n, x)] == NONE ->
           said_absent(n, x);
           again = false }
    :: atomic { again && HAS_ALL(n, x) && state[OF(n, x)] == LIVE && at[OF(place[OF(n, x)], x)] == ino[OF(n, x)] ->
           again = false }
    :: atomic { again && !(HAS_ALL(n, x) && (state[OF(n, x)] == NONE ||
                           (state[OF(n, x)] == LIVE && at[OF(place[OF(n, x)], x)] == ino[OF(n, x)]))) ->
           ask_home(n, x, LOOKUP, NONE, 0, 0) }
        await(n, x);
        atomic {
            if
            :: result[OF(n, x)] == ABSENT ->
                said_absent(n, x);
                again = false
            :: else -> /* it holds if the inode is the entry's: else the home is asked again */
                again = !(LEADS_THERE(from[OF(n, x)], newer[OF(n, x)]) && at[OF(from[OF(n, x)], x)] == from_ino[OF(n, x)])
            fi;
            end_operation(OF(n, x))
        }
    :: else -> break
    od;
    end_call(n)
}

/* What is known of the name: by its home, or by an index that has all. */
inline peek(n, x)
{
    if
    :: atomic { HAS_ALL(n, x) ->
           result[OF(n, x)] = (state[OF(n, x)] == NONE -> ABSENT : EXISTS);
           from[OF(n, x)] = place[OF(n, x)];
           from_ino[OF(n, x)] = ino[OF(n, x)];
           newer[OF(n, x)] = adopted[n];
           now = state[OF(n, x)] }
    :: atomic { !HAS_ALL(n, x) -> ask_home(n, x, PEEK, NONE, 0, 0) }
        await(n, x);
        now = (from_ino[OF(n, x)] == 0 -> PENDING : LIVE)
    fi
}

#define IS_THE_SAME(n, x) (now == goal && from[OF(n, x)] == spot && from_ino[OF(n, x)] == number && (spot != 3 || newer[OF(n, x)] == ok))

inline operate_list(n, x) /* A name is there if it is found where it is known to be; else what is known is asked for again. */
{
    atomic {
        begin_call(n);
        again = true
    }
    do
    :: again ->
        peek(n, x);
        atomic {
            if
            :: result[OF(n, x)] == ABSENT || IS_THE_SAME(n, x) ->
                said_absent(n, x);
                again = false
            :: else ->
                goal = now;
                spot = from[OF(n, x)];
                number = from_ino[OF(n, x)];
                ok = newer[OF(n, x)]
            fi;
            end_operation(OF(n, x))
        }
        atomic {
            if
            :: again && LEADS_THERE(spot, ok) && at[OF(spot, x)] != 0 && !IS_AHEAD(OF(spot, x)) ->
                said_there(n, x);
                again = false
#ifdef FAULT_PEEKED_ONCE
            :: again && !(LEADS_THERE(spot, ok) && at[OF(spot, x)] != 0 && !IS_AHEAD(OF(spot, x))) ->
                said_absent(n, x);
                again = false
#endif
            :: else
            fi;
            now = NONE
        }
    :: else -> break
    od;
    atomic {
        goal = 0;
        spot = 0;
        number = 0;
        ok = false;
        end_call(n)
    }
}

proctype process(byte me; byte operations; byte times)
{
    byte name, spot, goal, number, now;
    bool ok, again;
    {
        do
        :: times > 0 ->
            atomic {
                times--;
                if
                :: name = LOST_NAME
#ifndef ONE_NAME /* renames concern both all the same */
                :: name = 1 - LOST_NAME
#endif
                fi
            }
            if
            :: operations & CREATE ->
                number = 2 + me * 2 + times;
#ifdef OVERLAP
                operate_create_ahead(me, name);
#else
                operate_create(me, name);
#endif
                number = 0;
#ifdef KEEPS
                end_kept(me, name)
#endif
            :: operations & UNLINK -> operate_unlink(me, name)
            :: operations & RENAME -> operate_rename(me, name, 1 - name)
            :: operations & LOOK -> operate_look(me, name)
            :: operations & LISTS -> operate_list(me, name)
            fi;
            name = 0
        :: else -> goto ended
        od;
failed: /* EIO, and its node serves nobody any more */
        atomic {
            end_operation(OF(me, A));
            end_operation(OF(me, B));
            outside = false;
            end_call(me)
        }
ended:
        skip
    } unless { me == 3 && dead };
    finished++
}

/* Those that are left agree that node 3 is lost (membership/failure_detector.h), and read again what it was home of
 * (coordinator_load, listing_init, hand_out, load_known). */

inline lose_everything(n)
{
    end_operation(OF(n, A));
    end_operation(OF(n, B));
    d_step {
        dead = true;
        complete[n] = false;
        held[OF(n, A)] = 0;
        held[OF(n, B)] = 0;
        put(n, A, NONE, 0, 0);
        put(n, B, NONE, 0, 0);
        outside = false;
        end_call(n)
    }
}

inline note_listed(p, x)
{
    if
    :: at[OF(p, x)] != 0 ->
        twice[x] = listed[x] != 0;
        listed[x] = at[OF(p, x)];
        listed_at[x] = p
    :: else
    fi
}

#define LIST(p) atomic { note_listed(p, A); note_listed(p, B) }

inline know(h, x) /* load_known: what changed since the directory was marked as loading beats what was listed */
{
    if
    :: HOME(h, x) == h && !changed[OF(h, x)] ->
        assert(!twice[x]);
        put(h, x, (listed[x] != 0) * LIVE, listed_at[x], listed[x])
    :: else
    fi;
    changed[OF(h, x)] = false
}

proctype survivors()
{
    byte listed[2], listed_at[2];
    bool twice[2];
    published = true; /* link(2): an epoch of the majority */
#ifndef FAULT_NO_WAIT
    !lease;
#endif
    fenced = true; /* rename(2) of its branch */
#ifndef FAULT_LISTED_EARLY
    adopted[1] && adopted[2] && telling == 0; /* nobody begins any more what no home knows */
#endif
    LIST(TRUNK);
    LIST(1);
    LIST(2);
    LIST(3);
    adopted[1] && adopted[2];
    atomic { know(1, A); know(1, B); complete[1] = true }
    atomic { know(2, A); know(2, B); complete[2] = true; d_step {
        listed[A] = 0; listed[B] = 0; listed_at[A] = 0; listed_at[B] = 0; twice[A] = false; twice[B] = false } }
}

proctype fate()
{
end:
    if
    :: atomic { published -> lose_everything(3) }
    fi
}

proctype time()
{
    if
#ifdef LATE
    :: atomic { published -> lease = false }
#else
    :: atomic { published && !outside -> lease = false }
#endif
    fi
}

/* When nothing moves any more: nobody waits, and the home of each name knows what is on disk. */
inline must_agree(h, x)
{
    assert(held[OF(h, x)] == 0);
    assert((state[OF(h, x)] == LIVE) == IS_ON_DISK(x) && (state[OF(h, x)] == LIVE || state[OF(h, x)] == NONE));
    assert(state[OF(h, x)] == NONE || at[OF(place[OF(h, x)], x)] == ino[OF(h, x)])
}

inline is_there(p)
{
    at[OF(p, A)] = 1;
    put(IN_EPOCH(false, A), A, LIVE, p, 1)
}

init {
    atomic {
        lease = true;
        complete[1] = true;
        complete[2] = true;
        complete[3] = true;
#ifdef START_OTHER /* a file of the other name, too */
        at[OF(START_OTHER, B)] = 12;
        put(IN_EPOCH(false, B), B, LIVE, START_OTHER, 12);
#endif
#ifdef START /* one file is there */
        is_there(START);
#elif !defined(NO_START)
        if
        :: skip
        :: is_there(TRUNK)
        :: is_there(1)
        :: is_there(3)
        fi;
#endif
        run daemon(1);
        run daemon(2);
        run daemon(3);
        run process(1, OPERATIONS_1, TIMES_1);
        run process(2, OPERATIONS_2, TIMES_2);
        run process(3, OPERATIONS_3, TIMES_3);
#ifdef LOSS
        run survivors();
#ifdef DEATHS
        run fate();
#endif
        run time()
#endif
    }
    timeout;
    assert(finished == 3);
    must_agree(IN_EPOCH(published, A), A);
    must_agree(IN_EPOCH(published, B), B)
}
