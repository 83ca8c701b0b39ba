/* One hold as time goes by: two threads of one owner re-enter it, release it, renew it and commit
 * by it, while the renewer renews it on a connection of its own, replies are lost, leases end,
 * and a rival takes what is free. How a contender comes to the row is lock.pml's question: here
 * one step does that. README.md says which function of the library each step is. */

#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef CALLS
#define CALLS 3 /* of both threads, but releases */
#endif
#ifndef RIVALS
#define RIVALS 1 /* how often somebody else takes the lock */
#endif

#define THREADS 2
#define RENEWER THREADS
#define CONNS (THREADS + 1)

#define LEASE 2 /* ticks */
#define SHORT 1

#include "session.pml"

#define US 1
#define RIVAL 2

/* ---- what the server has ------------------------------------------------------------------- */

byte row_owner; /* 0: there is no row */
byte row_fence;
byte row_left;  /* of its lease, in ticks */
byte row_depth;
bool row_ended; /* its lease was over once: no statement may undo that */
bool row_tx;    /* a transaction has fenced it */
byte next_fence;

/* ---- what the client knows ----------------------------------------------------------------- */

mtype = { NO_HOLD, HELD, LOST };

mtype state = NO_HOLD;
byte fence;
byte depth, stored; /* `stored`: the depth that the row has */
byte expires;       /* ticks until the holder believes in it no more */
byte hold_lease;
bool busy, stays, renewing;
byte orphan_fence;     /* a row that the janitor removes; 0: none */
byte age[CONNS];       /* ticks since that statement was sent */

/* ---- what the model keeps book of --------------------------------------------------------- */

byte calls;
byte levels;      /* acquisitions that were answered OK, and not given back yet */
bool dropping;    /* the last level is being given back */
bool depth_known; /* no change of it ended UNKNOWN */
byte faults;

#define ROW_OURS (row_owner == US && row_fence == fence && row_left > 0)
#define BELIEVES (state == HELD && expires > 0 && !dropping)

#define min(a, b) ((a) < (b) -> (a) : (b))
#define max(a, b) ((a) > (b) -> (a) : (b))

/* ---- statements ---------------------------------------------------------------------------- */

#ifdef MUTANT_FENCE
#define MINE(x) (row_owner == sent[x].who)
#else
#define MINE(x) (row_owner == sent[x].who && row_fence == sent[x].fence)
#endif
#ifdef MUTANT_TIMEOUT
#define LIVING true
#else
#define LIVING (row_left > 0)
#endif

inline set_row(owner, fence_, left)
{
	row_owner = owner;
	row_fence = fence_;
	row_left = left;
	row_depth = 1;
	row_ended = false;
	printf("server    row: owner %d, fence %d\n", owner, fence_)
}

inline delete_row()
{
	set_row(0, 0, 0);
	row_depth = 0
}

/* A level more or less is written as the depth that it leads to. */
#ifdef MUTANT_RELATIVE
#define NEW_DEPTH(x) (sent[x].lease -> row_depth + 1 : row_depth - 1)
#else
#define NEW_DEPTH(x) sent[x].depth
#endif

/* What a statement makes of the row, where its WHERE finds it. */
#define CHANGE_ROW(x, found, left, depth_) \
	if \
	:: found -> \
		row_left = left; \
		row_depth = depth_; \
		printf("server    row: %e of %d, %d ticks left\n", sent[x].what, x, row_left); \
		answer(x, ALL) \
	:: else -> answer(x, NOTHING) \
	fi

inline drop_row(x)
{
	if
	:: MINE(x) -> delete_row(); answer(x, ALL)
	:: else -> answer(x, NOTHING)
	fi
}

/* By GREATEST, the renewer and a level more or less shorten no lease. A call waits for a row that
 * is fenced; the renewer skips it. */
proctype session(byte x)
{
end:	do
	:: d_step { sent[x].what == DROP && !row_tx -> drop_row(x) }
	:: d_step { sent[x].what == RENEW && !row_tx ->
		CHANGE_ROW(x, MINE(x) && LIVING, sent[x].lease, row_depth) }
	:: d_step { sent[x].what == DEPTH && !row_tx ->
		CHANGE_ROW(x, MINE(x) && LIVING, max(row_left, sent[x].lease), NEW_DEPTH(x)) }
	:: d_step { sent[x].what == RENEW_MANY ->
		CHANGE_ROW(x, MINE(x) && LIVING && !row_tx, max(row_left, sent[x].lease), row_depth) }
	:: d_step { sent[x].what == COUNT -> answer(x, NOTHING);
		sent[x].got = (MINE(x) && row_left -> ALL : NOTHING) }
	/* Nobody reads what a lost connection answers; the server notices that, some time. */
	:: d_step { x >= CONNS && sent[x].what == ANSWERED -> end_session(x) }
	od
}

/* ---- the hold ------------------------------------------------------------------------------ */

/* bl_hold_lose(), where the server has said so */
inline lose_gone()
{
	printf("owner 1   LOST: the server does not have it any more\n");
	assert(!ROW_OURS); /* LOST is right */
	state = LOST
}

/* bl_hold_begin() */
inline begin()
{
	busy = true;
	stays = false;
	state = (state == HELD && !expires -> LOST : state)
}

/* bl_hold_confirm(): the lease began when the statement was sent, at the latest. */
#ifdef MUTANT_SENT
#define CONFIRMED(x, lease) (lease)
#else
#define CONFIRMED(x, lease) ((lease) > age[x] -> (lease) - age[x] : 0)
#endif

inline confirm(x, lasts) { expires = max(expires, CONFIRMED(x, lasts)) }

/* bl_hold_remove(), bl_hold_orphan() */
inline end_hold()
{
	state = NO_HOLD;
	fence = 0; depth = 0; stored = 0; expires = 0; hold_lease = 0;
	dropping = false; busy = false; stays = false
}

inline orphan()
{
	printf("owner 1   fence %d is left to the janitor\n", fence);
	orphan_fence = fence;
	end_hold()
}

/* bl_acquire_begin() and what follows, of a hold that is new */
inline settle()
{
	next_fence++;
	set_row(US, next_fence, LEASE);
	state = HELD;
	fence = next_fence; depth = 1; stored = 1; expires = LEASE; hold_lease = LEASE;
	depth_known = true;
	printf("owner 1   HELD, fence %d\n", fence)
}

inline gone(x) { clear(x); age[x] = 0 }

inline send_now(x, what_, depth_, lease_)
{
#ifndef MUTANT_KILL
	end_lost_conn(0); end_lost_conn(1);
#endif
	age[x] = 0;
	sent[x].depth = depth_;
	sent[x].lease = lease_;
	send(x, what_, US, 0, fence, false)
}

/* ---- threads of the application: the same owner, which has a name -------------------------- */

#define IDLE_HOLD(s) (!busy && state == s)

proctype caller(byte t)
{
	byte mine;        /* levels that this thread is to give back */
	mtype what;       /* the statement of this call */
	byte lease, to_depth, tx; /* what it asks for; the fence of its transaction */
	bool repeated;    /* a reply was lost */

idle:
end:	if
	:: atomic { calls < CALLS && IDLE_HOLD(NO_HOLD) && !orphan_fence && !row_tx &&
			(!row_owner || !row_left) ->
		calls++; settle(); mine++; levels++; goto idle }
#ifdef REENTRY
	:: atomic { calls < CALLS && IDLE_HOLD(HELD) && depth < 3 -> /* bl_reenter() */
		calls++; begin();
		if
		:: state != HELD -> goto done
		:: state == HELD -> stays = true; what = DEPTH; lease = LEASE; to_depth = depth + 1
		:: state == HELD && expires -> /* BIZLOCK_LOCAL_REENTRY */
			depth++; mine++; levels++; goto done
		fi }
#endif
#ifdef RENEWALS
	:: atomic { calls < CALLS && IDLE_HOLD(HELD) -> /* bl_client_renew() */
		calls++; begin();
		if
		:: state != HELD -> goto done
		:: state == HELD -> lease = LEASE; what = RENEW
#ifdef SHORTER
		:: state == HELD -> lease = SHORT; what = RENEW
#endif
		fi }
#endif
#ifdef TX
	:: atomic { calls < CALLS && state == HELD -> calls++; tx = fence; goto commit }
#endif
	:: atomic { mine && !busy -> /* bl_client_release(), bl_release_level() */
		assert(state != NO_HOLD);
		begin(); mine--; levels--;
		if
		:: state == LOST && depth == 1 && !orphan_fence -> orphan(); goto idle
		:: state == LOST && depth > 1 -> depth--; goto done
		:: state == HELD && depth == 1 && !orphan_fence -> dropping = true; what = DROP
		:: state == HELD && depth > 1 && stored < depth -> depth--; goto done
		:: state == HELD && depth > 1 && stored == depth ->
			stays = true; depth--; what = DEPTH; to_depth = depth
		fi }
	fi;

	if
	:: atomic { what == RENEW && !renewing -> /* wait_for_renewer() */
		if
		:: state == LOST -> goto done
		:: else -> stays = (lease >= hold_lease)
		fi;
#ifndef MUTANT_LOWER
		expires = min(expires, lease)
#endif
		}
	:: atomic { what != RENEW -> skip }
	fi;

change:	/* bl_hold_change(), bl_drop(): sent again as long as nobody knows */
	atomic { FREE(t) ->
		send_now(t, what, to_depth, lease) }
	if
	:: atomic { sent[t].what == GONE && (what == DROP || state == HELD) ->
		gone(t); repeated = true; goto change }
	:: atomic { sent[t].what == GONE -> gone(t); goto unknown }
	:: atomic { sent[t].what == ANSWERED ->
		if
		:: what == DROP && (sent[t].got == ALL || (repeated && state == HELD && expires)) ->
			printf("caller %d  release OK\n", t);
			gone(t); end_hold(); goto over
		:: what == DROP && !(sent[t].got == ALL || (repeated && state == HELD && expires)) ->
			gone(t); dropping = false;
			if :: state == HELD -> lose_gone() :: else fi;
			orphan(); goto over
		:: what != DROP && sent[t].got == NOTHING ->
			gone(t); stored = (lease -> stored : depth);
			if :: state == HELD -> lose_gone() :: else fi
		:: what == DEPTH && sent[t].got == ALL && !lease -> gone(t); stored = depth
		:: what != DROP && sent[t].got == ALL && lease && state == LOST -> gone(t)
		:: what == DEPTH && sent[t].got == ALL && lease && state == HELD ->
			confirm(t, lease); gone(t);
			depth++; stored = depth; mine++; levels++;
			depth_known = true
		:: what == RENEW && sent[t].got == ALL && state == HELD ->
			confirm(t, lease); gone(t); hold_lease = lease
		fi }
	fi;

done:	atomic { busy = false; stays = false }
over:	atomic { what = NONE; lease = 0; to_depth = 0; repeated = false; goto idle }

unknown: /* the time of the call is over */
	atomic {
		printf("caller %d  %e ends UNKNOWN\n", t, what);
		if
		:: what == DROP -> dropping = false; orphan(); goto over
		:: what == DEPTH -> stored = (lease -> stored : depth); depth_known = false; goto done
		:: what == RENEW ->
#ifndef MUTANT_SHORTER
			hold_lease = min(hold_lease, lease);
#endif
			goto done
		fi
	}

commit:	/* bl_client_tx_commit(): the server's word, by a share lock, */
	if
	:: atomic { !row_tx && row_owner == US && row_fence == tx && row_left ->
#ifndef MUTANT_SHARE
		row_tx = true
#endif
		};
		/* and COMMIT: nobody has been granted the lock since. */
		atomic { printf("caller %d  COMMIT by fence %d\n", t, tx);
			assert(next_fence == tx);
			row_tx = false; tx = 0 }
	:: atomic { !(row_owner == US && row_fence == tx && row_left) ->
		if :: state == HELD && fence == tx -> lose_gone() :: else fi;
		tx = 0 }
	fi;
	goto idle
}

/* ---- threads of the client ----------------------------------------------------------------- */

#define IS_TAKEN (busy && !stays)

/* bl_renewal_run(). Nobody kills what it has lost. */
proctype renewer()
{
	byte of_fence; /* of the hold that it renews */

end:	do
	:: atomic { state == HELD && !IS_TAKEN ->
		renewing = true; of_fence = fence; age[RENEWER] = 0;
		sent[RENEWER].lease = hold_lease;
		send(RENEWER, RENEW_MANY, US, 0, of_fence, false) }
		if
		:: atomic { sent[RENEWER].what == ANSWERED && sent[RENEWER].got == ALL ->
			if
			:: state == HELD && fence == of_fence -> confirm(RENEWER, sent[RENEWER].lease)
			:: else
			fi;
			goto renewed }
		:: atomic { sent[RENEWER].what == GONE -> goto renewed }
		:: atomic { sent[RENEWER].what == ANSWERED && sent[RENEWER].got == NOTHING ->
			gone(RENEWER);
			send(RENEWER, COUNT, US, 0, of_fence, false) } /* not_renewed() */
			if
			:: atomic { sent[RENEWER].what == ANSWERED && sent[RENEWER].got == NOTHING &&
				state == HELD && fence == of_fence && !IS_TAKEN ->
				assert(!dropping); /* a hold that is given back is not lost */
				lose_gone(); goto renewed }
			:: atomic { sent[RENEWER].what == GONE || (sent[RENEWER].what == ANSWERED &&
				!(sent[RENEWER].got == NOTHING && state == HELD && fence == of_fence &&
				!IS_TAKEN)) -> goto renewed }
			fi
		fi;
renewed:	atomic { gone(RENEWER); renewing = false; of_fence = 0 }
	od
}

/* clean_orphan(), by the first thread's connection; look_at_hold() of the loss watch */
proctype janitor()
{
end:	do
	:: atomic { orphan_fence && FREE(0) ->
		send_now(0, DROP, 0, 0);
		sent[0].fence = orphan_fence };
		if
		:: atomic { sent[0].what == GONE -> gone(0) }
		:: atomic { sent[0].what == ANSWERED -> gone(0); orphan_fence = 0 }
		fi
	:: atomic { state == HELD && !expires -> state = LOST;
		printf("owner 1   LOST: the lease is over\n") }
	od
}

/* ---- what nobody decides ------------------------------------------------------------------- */

#define OLDER(x) (FREE(x) -> 0 : min(age[x] + 1, LEASE))

proctype world()
{
	byte rivals;

end:	do
	:: d_step { row_left || expires -> /* a tick */
		row_ended = row_ended || (row_owner && row_left <= 1);
		row_left = (row_left -> row_left - 1 : 0);
		expires = (expires -> expires - 1 : 0);
		age[0] = OLDER(0); age[1] = OLDER(1); age[RENEWER] = OLDER(RENEWER);
		printf("clock     row %d, holder %d\n", row_left, expires) }
	:: d_step { rivals < RIVALS && !row_tx && (!row_owner || !row_left) ->
		rivals++; next_fence++;
		set_row(RIVAL, next_fence, LEASE) }
	:: d_step { row_owner == RIVAL -> delete_row() }
	:: d_step { faults < FAULTS && CAN_BE_LOST(0) && !FREE(0) -> faults++; lose_conn(0) }
	:: d_step { faults < FAULTS && CAN_BE_LOST(1) && !FREE(1) -> faults++; lose_conn(1) }
	:: d_step { faults < FAULTS && CAN_BE_LOST(RENEWER) && !FREE(RENEWER) ->
		faults++; lose_conn(RENEWER) }
	od
}

/* ---- what must hold ------------------------------------------------------------------------ */

#define OK_IS_RIGHT (!BELIEVES || ROW_OURS)
#define NO_IS_RIGHT (state != NO_HOLD || row_owner != US || !row_left || row_fence == orphan_fence)
#define ENDED_IS_ENDED (!row_ended || !row_left)
#define COUNT_IS_RIGHT (busy || (depth == levels && (state != HELD || !expires || !depth_known || \
	row_depth == stored)))

proctype monitor()
{
end:	if
	:: atomic { !OK_IS_RIGHT -> printf("broken: OK_IS_RIGHT\n"); assert(false) }
	:: atomic { !NO_IS_RIGHT -> printf("broken: NO_IS_RIGHT\n"); assert(false) }
	:: atomic { !ENDED_IS_ENDED -> printf("broken: ENDED_IS_ENDED\n"); assert(false) }
	:: atomic { !COUNT_IS_RIGHT -> printf("broken: COUNT_IS_RIGHT\n"); assert(false) }
	fi
}

init
{
	byte n;

	atomic {
		for (n : 0 .. THREADS - 1) { run caller(n) }
		for (n : 0 .. 2 * CONNS - 1) { run session(n) }
		run renewer();
		run janitor();
		run world();
		run monitor()
	}
}
