/* How threads of clients come to a lock and give it back, while connections are lost and leases
 * end. README.md says which function of the library each step is. */

#ifndef THREADS
#define THREADS 2
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
#ifdef RENEWALS
#define RENEWER THREADS
#define CONNS (THREADS + 1) /* the renewer has a connection of its own */
#else
#define CONNS THREADS
#endif
#define SESSIONS (2 * CONNS)

/* ---- what the clients know ----------------------------------------------------------------- */

/* RELEASING: a call is at work on the hold, and its owner believes in it no more. OVER: the
 * same, when the lease has ended meanwhile. */
mtype = { IDLE, ACQUIRING, HELD, LOST, RELEASING, OVER };

mtype state[THREADS] = IDLE;
byte my_fence[THREADS];        /* of the hold; 0: none yet */
byte hold_bell[THREADS];       /* the connection that has the hold's doorbell; 0: none */
bool unsure[THREADS];          /* a reply was lost: the row may be there */
bool slow[THREADS];            /* its answer is late: others went past it */
bool slept[THREADS];           /* the whole lease is over since its statement was sent */
byte seen_fence[THREADS];      /* by its last look */
byte orphan_fence[THREADS];    /* a row that the janitor removes; 0: none */
byte orphan_bell[THREADS];     /* and its doorbell */
bool orphan_unknown[THREADS];  /* a row of this owner may be there, with whatever fence */
byte last_granted;
byte faults, losses;

/* Whoever draws a fence without the doorbell has waited for longer than any answer that counts
 * as prompt. */
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

/* What was sent on a lost connection arrives no more. */
inline end_lost_conns(t)
{
#ifndef MUTANT_KILL
	if
	:: sent[t + CONNS].what != NONE -> end_session(t + CONNS)
	:: else
	fi;
#endif
	skip
}

inline send(x, what_, who_, to_, fence_, rings_)
{
	sent[x].who = who_;
	sent[x].to = to_;
	sent[x].fence = fence_;
	sent[x].rings = rings_;
	sent[x].what = what_;
	printf("caller %d  sends %e by connection %d\n", who_, what_, x)
}

#define FREE(x) (sent[x].what == NONE)
#define REPLIED(x) (sent[x].what == ANSWERED || sent[x].what == GONE)

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
	byte x = t;      /* its connection */
	byte rounds; /* acquisitions so far */
	byte stuck;      /* the doorbell stood still there, at the last look */
	bool repeated;

idle:
end:	atomic {
		!orphan_unknown[t] && (!ROUNDS || rounds < ROUNDS) -> /* obstacle() */
		rounds = (ROUNDS -> rounds + 1 : 0);
		state[t] = ACQUIRING
	}
	goto attempt;

turn:	/* bl_attempt_look(), and what follows from it: bl_wait_next() */
	atomic {
		FREE(x) ->
		end_lost_conns(t);
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
			if
			:: stuck == bell -> stuck = 0; goto attempt_past
			:: else -> stuck = bell; goto sleep
			fi
		fi
	}

poll:	/* bl_attempt_pause(): nothing to look at before something has changed */
	if
	:: atomic { !row_owner || row_over || (unsure[t] && row_owner == t + 1) -> goto turn }
#ifndef LIVE
	:: goto refuse
#endif
	fi;

sleep:	/* bl_attempt_sleep(), on a connection that has no doorbell. One is left to the janitor: with
	 * the only one of this thread nobody sleeps while it is wanted. */
#define NO_CONN (hold_bell[t] || bell == x + 1 || orphan_fence[t] || orphan_bell[t])
	if
	:: atomic { FREE(x) && !NO_CONN ->
		end_lost_conns(t); send(x, WAIT_BELL, t + 1, 0, 0, false) }
	:: atomic { FREE(x) && NO_CONN -> goto poll }
	fi;
	if
	:: atomic { sent[x].what == ANSWERED ->
		hold_bell[t] = x + 1; clear(x); goto attempt_rung }
	:: atomic { sent[x].what == GONE -> clear(x); goto turn }
	/* The end of the lease, a doorbell that stands still, or one that is not the holder's. */
	:: atomic { sent[x].what == WAIT_BELL && (!row_owner || row_over || unsure[t]) ->
		clear(x); goto turn }
#ifndef LIVE
	:: atomic { sent[x].what == WAIT_BELL -> clear(x); goto refuse }
#endif
	fi;

attempt: /* bl_take() */
	if
	:: atomic { hold_bell[t] -> goto attempt_rung }
	:: atomic { !hold_bell[t] && FREE(x) ->
		end_lost_conns(t);
		slow[t] = false; slept[t] = false;
		send(x, TAKE, t + 1, 0, 0, true) }
	fi;
	goto taken;

attempt_rung:
	atomic {
		FREE(x) ->
		if
		:: !hold_bell[t] -> goto turn /* it went with its connection */
		:: else
		fi;
		slow[t] = false; slept[t] = false;
		sent[x].drawn = 0;
		send(x, TAKE, t + 1, 0, 0, true)
	}
	goto taken;

attempt_past:
	atomic {
		FREE(x) ->
		end_lost_conns(t);
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
		if
		:: sent[x].got != ALL -> clear(x); goto turn
		:: sent[x].got == ALL && slow[t] ->
			unsure[t] = true; seen_fence[t] = sent[x].drawn; clear(x); goto draw_again
		:: sent[x].got == ALL && !slow[t] && slept[t] ->
			unsure[t] = true; clear(x); goto turn
		:: sent[x].got == ALL && !slow[t] && !slept[t] ->
			settle(t, sent[x].drawn); clear(x); goto held
		fi }
	fi;

draw_again: /* bl_take_again(): a hand-over from the owner to itself */
	atomic {
		FREE(x) ->
		end_lost_conns(t);
		unsure[t] = true; slept[t] = false;
		send(x, HAND_OVER, t + 1, t + 1, seen_fence[t], false);
		seen_fence[t] = 0
	}
	if
	:: atomic { sent[x].what == GONE -> clear(x); goto turn }
	:: atomic { sent[x].what == ANSWERED ->
		if
		:: sent[x].got == ALL && !slept[t] -> settle(t, sent[x].drawn); clear(x); goto held
		:: else -> clear(x); goto turn
		fi }
	fi;

refuse:	/* BUSY, TIMEOUT, CONN, or UNKNOWN: the janitor sees to what is in doubt */
	atomic {
		printf("caller %d  gives up; unsure: %d\n", t + 1, unsure[t]);
		orphan_unknown[t] = unsure[t];
		orphan_bell[t] = hold_bell[t];
		end_call(t);
		goto idle
	}

held:	/* the application is at work, */
#ifdef TX
	if
	:: true
	/* bl_client_tx_commit(): the local check, */
	:: atomic { state[t] == HELD };
		/* the server's, by a share lock, */
		if
		:: atomic { !row_tx && ROW_OF(t) && row_fence == my_fence[t] ->
#ifndef MUTANT_SHARE
			row_tx = true
#endif
			skip };
			/* and COMMIT: nobody has been granted the lock since. */
			atomic { assert(row_owner == t + 1 && last_granted == my_fence[t]);
				printf("caller %d  COMMIT by fence %d\n", t + 1, my_fence[t]);
				row_tx = false }
		:: atomic { !(ROW_OF(t) && row_fence == my_fence[t]) -> skip } /* LOST: rolled back */
		fi
	fi;
#endif
	/* and gives it back */
	atomic {
		!orphan_fence[t] ->
		repeated = false;
		if
		:: state[t] == HELD -> state[t] = RELEASING
		:: state[t] == LOST -> orphan(t); goto idle
		fi
	}

drop:	/* bl_drop() */
	atomic {
		FREE(x) ->
		end_lost_conns(t);
		send(x, DROP, t + 1, 0, my_fence[t], false)
	}
	if
	:: atomic { sent[x].what == GONE -> clear(x); repeated = true; goto drop }
#ifndef LIVE
	:: atomic { sent[x].what == GONE -> clear(x); orphan(t); repeated = false; goto idle } /* UNKNOWN */
#endif
	:: atomic { sent[x].what == ANSWERED ->
		hold_bell[t] = 0;
		if
		:: sent[x].got == ALL || (repeated && state[t] == RELEASING) ->
			printf("caller %d  release OK\n", t + 1);
			clear(x); end_call(t)
		:: else -> clear(x); orphan(t) /* LOST */
		fi;
		repeated = false;
		goto idle }
	fi
}

/* ---- threads of the clients ---------------------------------------------------------------- */

/* Of each owner what its calls have left. */
proctype janitor(byte t)
{
	byte x = t;

end:	do
	:: atomic { orphan_unknown[t] && FREE(x) ->
		end_lost_conns(t);
		send(x, SWEEP, t + 1, 0, orphan_fence[t], false) };
		if
		:: atomic { sent[x].what == GONE -> clear(x) }
		:: atomic { sent[x].what == ANSWERED -> clear(x); orphan_unknown[t] = false;
			if :: orphan_bell[t] && bell == orphan_bell[t] -> bell = 0 :: else fi;
			orphan_bell[t] = 0 }
		fi
	:: atomic { !orphan_unknown[t] && orphan_bell[t] && !orphan_fence[t] && FREE(x) ->
		if :: bell == orphan_bell[t] -> bell = 0 :: else fi;
		orphan_bell[t] = 0 }
	:: atomic { orphan_fence[t] && FREE(x) ->
		end_lost_conns(t);
		send(x, DROP, t + 1, 0, orphan_fence[t], false) };
		if
		:: atomic { sent[x].what == GONE -> clear(x) }
		:: atomic { sent[x].what == ANSWERED -> clear(x);
			orphan_fence[t] = 0; orphan_bell[t] = 0 }
		fi
	od
}

#ifdef RENEWALS
/* Of the first thread; bl_renewal_run(). Nobody kills what it has lost: its statement names the
 * fence, and a lease that is not over. */
proctype renewer()
{
	byte fence;

end:	do
	:: atomic { state[0] == HELD && FREE(RENEWER) ->
		fence = my_fence[0];
		send(RENEWER, RENEW, 1, 0, fence, false) }
		if
		:: atomic { sent[RENEWER].what == ANSWERED ->
			if
			:: sent[RENEWER].got == NOTHING && state[0] == HELD && my_fence[0] == fence ->
				state[0] = LOST
			:: else
			fi;
			clear(RENEWER); fence = 0 }
		fi
	od
}
#endif

/* ---- what nobody decides ------------------------------------------------------------------- */

/* Does the owner of the row believe in it, or may it still? */
#define BELIEVED(t) ((state[t] == HELD || state[t] == RELEASING) && my_fence[t] == row_fence)

/* A lease ends earlier for its holder than for the server. */
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
	:: atomic { state[0] == HELD && losses < LEASES -> losses++; state[0] = LOST }
	:: atomic { state[1] == HELD && losses < LEASES -> losses++; state[1] = LOST }
	:: atomic { state[0] == RELEASING && losses < LEASES -> losses++; state[0] = OVER }
	:: atomic { state[1] == RELEASING && losses < LEASES -> losses++; state[1] = OVER }
	od
}

proctype network()
{
end:	do
	:: atomic { faults < FAULTS && sent[0 + CONNS].what == NONE && sent[0].what != GONE ->
		faults++; lose(0) }
	:: atomic { faults < FAULTS && sent[1 + CONNS].what == NONE && sent[1].what != GONE ->
		faults++; lose(1) }
	od
}

/* ---- what must hold ------------------------------------------------------------------------ */

/* Whoever was told OK has the row, while its own clock lets it believe so. */
#define OK_IS_RIGHT(t) (state[t] != HELD || (ROW_OF(t) && row_fence == my_fence[t]))

/* Whoever was told anything else has none, or it is being removed. */
#define NO_IS_RIGHT(t) (state[t] != IDLE || !ROW_OF(t) || orphan_unknown[t] || \
	orphan_fence[t] == row_fence)

#define ENDED_IS_ENDED (!row_owner || row_over || !row_ended)

proctype monitor()
{
end:	if
	:: atomic { !OK_IS_RIGHT(0) || !OK_IS_RIGHT(1) ->
		printf("broken: OK_IS_RIGHT\n"); assert(false) }
	:: atomic { !NO_IS_RIGHT(0) || !NO_IS_RIGHT(1) ->
		printf("broken: NO_IS_RIGHT\n"); assert(false) }
	:: atomic { !ENDED_IS_ENDED ->
		printf("broken: ENDED_IS_ENDED\n"); assert(false) }
	fi
}

#ifdef LIVE
/* Without patience that ends, a lock that nobody holds is got by somebody who wants it. */
#define WANTED (state[0] == ACQUIRING || state[1] == ACQUIRING)
#define BELIEVED_BY_ANY (state[0] == HELD || state[1] == HELD)

ltl got { [] (WANTED -> <> (BELIEVED_BY_ANY || !WANTED)) }
#endif

init
{
	byte n;

	atomic {
		for (n : 0 .. THREADS - 1) { run caller(n); run janitor(n) }
		for (n : 0 .. SESSIONS - 1) { run session(n) }
#if LEASES
		run clock();
#endif
#ifdef RENEWALS
		run renewer();
#endif
		run network();
		run monitor()
	}
}
