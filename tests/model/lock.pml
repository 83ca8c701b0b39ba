/* How threads of clients come to a lock and give it back, while connections are lost and leases
 * end. README.md says which function of the library each step is. */

#ifndef PER
#define PER 1 /* threads, and connections, of a client */
#endif
#ifndef THREADS
#define THREADS (2 * PER)
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef ROUNDS
#define ROUNDS 0 /* acquisitions by each thread; 0: without end */
#endif
#ifndef LEASES
#define LEASES 0 /* how many holders may lose their lease */
#endif
#define CONNS (2 * PER)
#ifdef LIVE
#define PATIENT /* nobody gives up */
#endif

#include "session.pml"

/* ---- what the clients know ----------------------------------------------------------------- */

/* RELEASING: a call is at work on the hold, and its owner believes in it no more. OVER: the
 * same, when the lease has ended meanwhile. STOPPED: its process stands still, for ever. */
mtype = { IDLE, ACQUIRING, HELD, LOST, RELEASING, OVER, STOPPED };

/* The place in the wait queue. */
mtype = { NO_PLACE, WAITS, OFFERED, HOLDS, ASKS };

mtype state[THREADS] = IDLE;
mtype place[THREADS] = NO_PLACE;
byte first[2];                 /* in each client's queue, + 1; 0: nobody waits */
byte my_fence[THREADS];        /* of the hold; 0: none yet */
byte hold_bell[THREADS];       /* the connection that has the hold's doorbell, + 1; 0: none */
bool unsure[THREADS];          /* a reply was lost: the row may be there */
bool slow[THREADS];            /* its answer is late: others went past it */
bool slept[THREADS];           /* the whole lease is over since its statement was sent */
byte seen_fence[THREADS];      /* by its last look */
byte orphan_fence[THREADS];    /* a row that the janitor removes; 0: none */
byte orphan_bell[THREADS];     /* and its doorbell */
bool orphan_unknown[THREADS];  /* a row of this owner may be there, with whatever fence */
byte last_granted;
byte faults, losses;

/* Whoever draws a fence without the doorbell waits for longer than any answer that counts as prompt
 * (bl_attempt_outwait_rival()). */
#ifdef MUTANT_ADOPT
#define HELD_UP(x) sent[x].rings
#else
#define HELD_UP(x) true
#endif

inline hold_up_others(owner)
{
	for (i : 0 .. THREADS - 1) {
		slow[i] = slow[i] || (i + 1 != owner && state[i] == ACQUIRING)
	}
	i = 0
}

inline lost_bell(conn)
{
	for (i : 0 .. THREADS - 1) {
		if :: hold_bell[i] == conn -> hold_bell[i] = 0 :: else fi;
		if :: orphan_bell[i] == conn -> orphan_bell[i] = 0 :: else fi
	}
	i = 0
}

#include "server.pml"

/* ---- connections --------------------------------------------------------------------------- */

#define CLIENT(t) ((t) / PER)
#define FIRST(t) (CLIENT(t) * PER)         /* connection of the client, */
#define LAST(t) (FIRST(t) + PER - 1)       /* and the last one */
#define ANY_FREE(t) (FREE(FIRST(t)) || FREE(LAST(t)))
#define A_FREE(t) (FREE(FIRST(t)) -> FIRST(t) : LAST(t))
#define BELL_FREE(t) (hold_bell[t] && FREE(hold_bell[t] - 1))

/* lend() of client/conn/pool.c: ends what is left of the connections that the client has lost. So it is
 * if the connection is taken for its doorbell, by bl_pool_take_id(). */
inline lend(t)
{
#ifndef MUTANT_KILL
	end_lost_conn(FIRST(t));
#if PER > 1
	end_lost_conn(LAST(t))
#endif
#endif
	skip
}

/* bl_attempt_borrow(): the connection that has our doorbell, or any. It does not wait long for the
 * former: with BUSY, the threads of other keys keep it in use. */
#ifdef BUSY
#define CAN_BORROW(t) (BELL_FREE(t) || ANY_FREE(t))
#else
#define CAN_BORROW(t) (BELL_FREE(t) || (!hold_bell[t] && ANY_FREE(t)))
#endif

inline borrow(t)
{
	if
	:: BELL_FREE(t) -> x = hold_bell[t] - 1;
#ifndef MUTANT_KILL_AT_BELL
		lend(t)
#endif
	:: !hold_bell[t] -> x = A_FREE(t); lend(t)
#ifdef BUSY
	:: hold_bell[t] && FREE(FIRST(t)) && FIRST(t) != hold_bell[t] - 1 -> x = FIRST(t); lend(t)
	:: hold_bell[t] && FREE(LAST(t)) && LAST(t) != hold_bell[t] - 1 -> x = LAST(t); lend(t)
#endif
	fi
}

/* bl_pool_take_for_bell(): one that has no doorbell, and one always remains. A client with one
 * connection would not sleep; here it does, but not while the janitor needs that one. */
#if PER > 1
#define CAN_SLEEP(conn) (FREE(conn) && bell != (conn) + 1)
#define SLEEPABLE(t) (CAN_SLEEP(FIRST(t)) -> FIRST(t) : LAST(t))
#define MAY_SLEEP(t) ((CAN_SLEEP(FIRST(t)) || CAN_SLEEP(LAST(t))) && \
	sent[FIRST(t)].what != WAIT_BELL && sent[LAST(t)].what != WAIT_BELL && !hold_bell[t])
#else
#define SLEEPABLE(t) t
#define MAY_SLEEP(t) (FREE(t) && bell != (t) + 1 && !hold_bell[t] && !orphan_fence[t] && \
	!orphan_bell[t])
#endif

/* ---- the wait queue ------------------------------------------------------------------------ */

#if PER > 1
#define OTHER(t) (2 * FIRST(t) + 1 - (t)) /* the other thread of the client */
#define BOTH(what, t) (what[FIRST(t)] || (LAST(t) < THREADS && what[LAST(t) % THREADS]))
#define NEXT(t) (OTHER(t) < THREADS && place[OTHER(t) % THREADS] != NO_PLACE -> OTHER(t) + 1 : 0)
#else
#define BOTH(what, t) what[t]
#define NEXT(t) 0
#endif

inline join_queue(t)
{
	place[t] = WAITS;
	first[CLIENT(t)] = (first[CLIENT(t)] -> first[CLIENT(t)] : t + 1)
}

/* bl_queue_leave(): the next one is the first. */
inline leave_queue(t)
{
	place[t] = NO_PLACE;
#ifndef MUTANT_SIGNAL
	first[CLIENT(t)] = (first[CLIENT(t)] == t + 1 -> NEXT(t) : first[CLIENT(t)])
#endif
}

/* ---- a hold -------------------------------------------------------------------------------- */

/* bl_hold_settle() */
inline settle(t, fence_)
{
	for (i : 0 .. THREADS - 1) { assert(state[i] != HELD) }
	i = 0;
	printf("caller %d  HELD, fence %d; granted before: %d\n", t + 1, fence_, last_granted);
	assert(fence_ > last_granted);
	last_granted = fence_;
	my_fence[t] = fence_;
	state[t] = HELD;
	unsure[t] = false;
	slow[t] = false;
	seen_fence[t] = 0
}

/* bl_hold_orphan(), of a hold whose fence is known. */
inline orphan(t)
{
	orphan_fence[t] = my_fence[t];
	orphan_bell[t] = hold_bell[t];
	printf("caller %d  LOST or UNKNOWN: fence %d is left to the janitor\n", t + 1, my_fence[t]);
	end_call(t)
}

inline end_call(t)
{
	my_fence[t] = 0;
	hold_bell[t] = 0;
	unsure[t] = false;
	seen_fence[t] = 0;
	slow[t] = false;
	slept[t] = false;
	state[t] = IDLE
}

/* The row is this thread's, and its lease is not over. */
#define ROW_OF(t) (row_owner == (t) + 1 && !row_over)

/* ---- threads of the application ------------------------------------------------------------ */

proctype caller(byte t)
{
	byte x = t;   /* the connection that is lent to it */
	byte rounds;  /* acquisitions so far */
	byte stuck;   /* the doorbell stood still there, at the last look */
	bool repeated;

idle:
end:	atomic {
		!BOTH(orphan_unknown, t) && (!ROUNDS || rounds < ROUNDS) -> /* obstacle() */
		rounds = (ROUNDS -> rounds + 1 : 0);
		state[t] = ACQUIRING;
		join_queue(t)
	}

	if	/* stand_in_line(), bl_handoff_hope() */
	:: atomic { place[t] == HOLDS -> leave_queue(t); goto held }
	:: atomic { (place[t] == WAITS || place[t] == ASKS) && first[CLIENT(t)] == t + 1 ->
		place[t] = ASKS;
		if
		:: unsure[t] || hold_bell[t] -> goto turn
		:: else -> goto attempt
		fi }
#ifndef PATIENT
	:: atomic { place[t] == WAITS -> place[t] = ASKS; goto refuse }
#endif
	fi;

turn:	/* bl_attempt_look(), and what follows from it: bl_wait_next() */
#ifdef STOPS
	if
	:: atomic { t == 0 && hold_bell[t] -> goto stopped }
	:: true
	fi;
#endif
	atomic {
		CAN_BORROW(t) ->
		borrow(t);
		if
		:: unsure[t] && ROW_OF(t) && row_fence != orphan_fence[t] -> /* owns() */
			seen_fence[t] = row_fence; stuck = 0; goto draw_again
		:: else
		fi;
		if
		:: row_owner && !row_over -> stuck = 0; goto sleep
		:: (!row_owner || row_over) && (!bell || bell == hold_bell[t]) ->
			stuck = 0; goto attempt
		:: else -> /* another contender's doorbell */
#ifndef MUTANT_PAST
			if
			:: stuck == bell -> stuck = 0; goto attempt_past
			:: else -> stuck = bell; goto sleep
			fi
#else
			goto sleep
#endif
		fi
	}

poll:	/* bl_contest_pause(): nothing to look at before something has changed */
	if
	:: atomic { !row_owner || row_over || (unsure[t] && row_owner == t + 1) -> goto turn }
#ifndef PATIENT
	:: goto refuse
#endif
	fi;

sleep:	/* bl_contest_sleep() */
	if
	:: atomic { MAY_SLEEP(t) ->
		x = SLEEPABLE(t); lend(t); send(x, WAIT_BELL, t + 1, 0, 0, false) }
	:: atomic { ANY_FREE(t) && !MAY_SLEEP(t) -> goto poll }
	fi;
	if
	:: atomic { sent[x].what == ANSWERED ->
		hold_bell[t] = x + 1; clear(x); goto attempt_rung }
	:: atomic { sent[x].what == GONE -> clear(x); goto turn }
#ifndef MUTANT_BOUND
	/* The end of the lease, a doorbell that stands still, or one that is not the holder's. */
	:: atomic { sent[x].what == WAIT_BELL && (!row_owner || row_over || unsure[t]) ->
		clear(x); goto turn }
#endif
#ifndef PATIENT
	:: atomic { sent[x].what == WAIT_BELL -> clear(x); goto refuse }
#endif
	fi;

attempt: /* bl_take() */
	if
	:: atomic { hold_bell[t] -> goto attempt_rung }
	:: atomic { !hold_bell[t] && ANY_FREE(t) ->
		x = A_FREE(t); lend(t);
		if
		:: bell == x + 1 -> goto turn /* bl_held_has_bell(): another owner's */
		:: else -> slow[t] = false; slept[t] = false; send(x, TAKE, t + 1, 0, 0, true)
		fi }
	fi;
	goto taken;

attempt_rung:
	atomic {
		CAN_BORROW(t) ->
		if
		:: !hold_bell[t] -> goto turn /* it went with its connection */
		:: else
		fi;
		borrow(t);
		slept[t] = false;
		slow[t] = (x + 1 != hold_bell[t]);
		send(x, TAKE, t + 1, 0, 0, x + 1 == hold_bell[t])
	}
	goto taken;

attempt_past:
	atomic {
		CAN_BORROW(t) ->
		borrow(t);
		slow[t] = true; slept[t] = false;
		send(x, TAKE, t + 1, 0, 0, false)
	}

taken:	/* the answer */
	if
	:: atomic { sent[x].what == GONE ->
		clear(x);
#ifndef MUTANT_LOOK
		unsure[t] = true;
#endif
		goto turn }
	:: atomic { sent[x].what == ANSWERED ->
		if
		:: sent[x].got != NOTHING && sent[x].rings -> hold_bell[t] = x + 1
		:: else
		fi;
#ifdef MUTANT_PROMPT
		slow[t] = false;
#endif
		if
		:: sent[x].got != ALL -> clear(x); goto turn
		:: sent[x].got == ALL && slow[t] ->
			unsure[t] = true; seen_fence[t] = sent[x].drawn; clear(x); goto draw_again
		:: sent[x].got == ALL && !slow[t] && slept[t] ->
			unsure[t] = true; clear(x); goto turn
		:: sent[x].got == ALL && !slow[t] && !slept[t] ->
			settle(t, sent[x].drawn); clear(x); leave_queue(t); goto held
		fi }
	fi;

draw_again: /* bl_take_again(): a hand-over from the owner to itself */
	atomic {
		CAN_BORROW(t) ->
		borrow(t);
		unsure[t] = true; slept[t] = false;
		send(x, HAND_OVER, t + 1, t + 1, seen_fence[t], slow[t]);
		seen_fence[t] = 0
	}
	if
	:: atomic { sent[x].what == GONE -> clear(x); goto turn }
	:: atomic { sent[x].what == ANSWERED ->
		if
		:: sent[x].got == ALL && !slept[t] ->
			settle(t, sent[x].drawn); clear(x); leave_queue(t); goto held
		:: else -> clear(x); goto turn
		fi }
	fi;

refuse:	/* BUSY, TIMEOUT, CONN, or UNKNOWN: the janitor sees to what is in doubt */
	atomic {
		!orphan_bell[t] ->
		printf("caller %d  gives up; unsure: %d\n", t + 1, unsure[t]);
		leave_queue(t);
		orphan_unknown[t] = unsure[t];
		orphan_bell[t] = hold_bell[t];
		end_call(t);
		stuck = 0;
		goto idle
	}

held:	/* the application is at work, and gives it back */
#ifdef STOPS
	if
	:: atomic { t == 0 -> goto stopped }
	:: true
	fi;
#endif
	atomic {
		!orphan_fence[t] && !orphan_bell[t] ->
		repeated = false;
		if
		:: state[t] == HELD -> state[t] = RELEASING
		:: state[t] == LOST -> orphan(t); goto idle
		fi
	}

#if PER > 1
	/* bl_handoff(), if there is a next one */
	if
	:: atomic { state[t] == RELEASING && BELL_FREE(t) && NEXT(t) &&
		first[CLIENT(t)] == NEXT(t) && place[OTHER(t)] == WAITS ->
		place[OTHER(t)] = OFFERED; x = hold_bell[t] - 1;
		slept[OTHER(t)] = false;
		send(x, HAND_OVER, t + 1, OTHER(t) + 1, my_fence[t], false) }
	:: atomic { goto drop }
	fi;
	if
	:: atomic { sent[x].what == GONE ->
		clear(x); repeated = true; unsure[OTHER(t)] = true; place[OTHER(t)] = ASKS }
	:: atomic { sent[x].what == ANSWERED && sent[x].got == NOTHING ->
		clear(x); place[OTHER(t)] = ASKS }
	:: atomic { sent[x].what == ANSWERED && sent[x].got != NOTHING -> /* take_over() */
		hold_bell[OTHER(t)] = hold_bell[t]; hold_bell[t] = 0;
		if
#ifdef MUTANT_FROM_HOLD
		:: !slept[OTHER(t)] ->
#else
		:: sent[x].got == ALL && !slept[OTHER(t)] ->
#endif
			settle(OTHER(t), sent[x].drawn); place[OTHER(t)] = HOLDS
		:: else -> unsure[OTHER(t)] = true; place[OTHER(t)] = ASKS
		fi;
		if
		:: sent[x].got == ALL ->
			printf("caller %d  release OK\n", t + 1);
			clear(x); end_call(t); goto idle
		:: else -> clear(x)
		fi }
	fi;
#endif

drop:	/* bl_drop(), by the connection of the doorbell; where that is busy, by any */
	atomic {
		BELL_FREE(t) || ANY_FREE(t) ->
		if
		:: BELL_FREE(t) -> x = hold_bell[t] - 1
		:: else -> x = A_FREE(t); lend(t)
		fi;
		send(x, DROP, t + 1, 0, my_fence[t], false)
	}
	if
	:: atomic { sent[x].what == GONE -> clear(x); repeated = true; goto drop }
#ifndef PATIENT
	:: atomic { sent[x].what == GONE -> clear(x); orphan(t); repeated = false; goto idle } /* UNKNOWN */
#endif
	:: atomic { sent[x].what == ANSWERED ->
		hold_bell[t] = (hold_bell[t] == x + 1 -> 0 : hold_bell[t]);
		if
		:: sent[x].got == ALL || (repeated && state[t] == RELEASING) ->
			printf("caller %d  release OK\n", t + 1);
			orphan_bell[t] = hold_bell[t];
			clear(x); end_call(t)
		:: else -> clear(x); orphan(t) /* LOST */
		fi;
		repeated = false;
		goto idle }
	fi

#ifdef STOPS
stopped: atomic { state[t] = STOPPED; printf("caller %d  stands still\n", t + 1) }
end_stopped:
	false
#endif
}

/* ---- threads of the clients ---------------------------------------------------------------- */

#define OWN_BELL_FREE(t) (orphan_bell[t] && FREE(orphan_bell[t] - 1))

/* Of each owner what its calls have left: clean_orphan() of client/giveback/janitor.c. */
proctype janitor(byte t)
{
	byte x = t;

end:	do
	:: atomic { orphan_unknown[t] && ANY_FREE(t) ->
		x = A_FREE(t); lend(t);
		send(x, SWEEP, t + 1, 0, orphan_fence[t], false) };
		if
		:: atomic { sent[x].what == GONE -> clear(x) }
		:: atomic { sent[x].what == ANSWERED -> clear(x); orphan_unknown[t] = false }
		fi
	:: atomic { !orphan_unknown[t] && !orphan_fence[t] && OWN_BELL_FREE(t) ->
		if :: bell == orphan_bell[t] -> bell = 0 :: else fi;
		orphan_bell[t] = 0 }
	:: atomic { orphan_fence[t] && (OWN_BELL_FREE(t) || (!orphan_bell[t] && ANY_FREE(t))) ->
		if
		:: OWN_BELL_FREE(t) -> x = orphan_bell[t] - 1
		:: else -> x = A_FREE(t); lend(t)
		fi;
		send(x, DROP, t + 1, 0, orphan_fence[t], false) };
		if
		:: atomic { sent[x].what == GONE -> clear(x) }
		:: atomic { sent[x].what == ANSWERED -> clear(x);
			orphan_fence[t] = 0; orphan_bell[t] = 0 }
		fi
	od
}

/* ---- what nobody decides ------------------------------------------------------------------- */

/* Does the owner of the row believe in it, or may it still? */
#define BELIEVED(t) ((state[t] == HELD || state[t] == RELEASING) && my_fence[t] == row_fence)

/* A lease ends earlier for its holder than for the server. */
#define LEASE_ENDS(t) \
	:: atomic { losses < LEASES && state[t] == HELD -> losses++; state[t] = LOST } \
	:: atomic { losses < LEASES && state[t] == RELEASING -> losses++; state[t] = OVER }

proctype clock()
{
end:	do
	:: d_step { row_owner && !row_over && !BELIEVED(row_owner - 1) &&
		(losses < LEASES || state[row_owner - 1] != ACQUIRING) ->
		losses = losses + (state[row_owner - 1] == ACQUIRING -> 1 : 0);
		row_over = true;
		row_ended = true;
		printf("clock     the lease of %d, fence %d, is over\n", row_owner, row_fence);
		slept[row_owner - 1] = state[row_owner - 1] == ACQUIRING }
	LEASE_ENDS(0)
	LEASE_ENDS(1)
#if THREADS > 2
	LEASE_ENDS(2) /* the 2 threads of a client are alike */
#endif
	od
}

/* To lose a connection that has nothing and waits for nothing means nothing. */
#define LOSE(x) \
	atomic { x < CONNS && faults < FAULTS && CAN_BE_LOST(x) && (!FREE(x) || bell == x + 1) -> \
		faults++; lose_conn(x); lost_bell(x + 1) }

proctype network()
{
end:	do
	:: LOSE(0)
	:: LOSE(1) /* of 2 clients, or of one */
	od
}

/* ---- what must hold ------------------------------------------------------------------------ */

/* Whoever was told OK has the row, while its own clock lets it believe so. */
#define OK_IS_RIGHT(t) (state[t] != HELD || (ROW_OF(t) && row_fence == my_fence[t]))

/* Whoever was told anything else has none, or it is being removed. */
#define NO_IS_RIGHT(t) (state[t] != IDLE || !ROW_OF(t) || orphan_unknown[t] || \
	orphan_fence[t] == row_fence)

#define IS_RIGHT(t) (OK_IS_RIGHT(t) && NO_IS_RIGHT(t))

#define ENDED_IS_ENDED (!row_owner || row_over || !row_ended)

proctype monitor()
{
end:	if
	:: atomic { !IS_RIGHT(0) || !IS_RIGHT(1) -> printf("broken: IS_RIGHT\n"); assert(false) }
#if THREADS > 2
	:: atomic { !IS_RIGHT(2) -> printf("broken: IS_RIGHT\n"); assert(false) }
#endif
#if THREADS > 3
	:: atomic { !IS_RIGHT(3) -> printf("broken: IS_RIGHT\n"); assert(false) }
#endif
	:: atomic { !ENDED_IS_ENDED -> printf("broken: ENDED_IS_ENDED\n"); assert(false) }
	fi
}

#ifdef LIVE
/* Without patience that ends, a lock that nobody holds is got by somebody who wants it. */
#define WANTED (state[0] == ACQUIRING || state[1] == ACQUIRING || state[THREADS - 1] == ACQUIRING)
#define BELIEVED_BY_ANY (state[0] == HELD || state[1] == HELD || state[THREADS - 1] == HELD)

ltl got { [] (WANTED -> <> (BELIEVED_BY_ANY || !WANTED)) }
#endif

init
{
	byte n;

	atomic {
		for (n : 0 .. THREADS - 1) { run caller(n); run janitor(n) }
		for (n : 0 .. 2 * CONNS - 1) { run session(n) }
#if LEASES
		run clock();
#endif
		run network();
		run monitor()
	}
}
