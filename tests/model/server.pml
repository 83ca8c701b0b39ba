/* The server of lock.pml: one row and one doorbell. Each step of a session is one step of the
 * server's that nobody sees half done; between two of them anything may happen. */

/* ---- what the server has ------------------------------------------------------------------- */

byte row_owner; /* 0: there is no row */
byte row_fence;
bool row_over;  /* its lease, by the server's clock */
bool row_ended; /* its lease was over once: no statement may undo that */
byte next_fence;
byte rung_by;   /* the fence of the hold whose release rang last */

/* ---- fences are numbered anew, so that there are few -------------------------------------- */

byte v, i, in_use; /* 0 between steps */

inline close_gap(number) { if :: number > v -> number-- :: else fi }
inline note_use(number) { in_use = in_use || number == v }

/* Only their order counts. A number that nobody has any more is taken out. */
inline renumber()
{
	v = 1;
	do
	:: v > next_fence -> break
	:: else ->
		in_use = false;
		note_use(row_fence); note_use(last_granted); note_use(rung_by);
		for (i : 0 .. THREADS - 1) {
			note_use(my_fence[i]); note_use(seen_fence[i]); note_use(orphan_fence[i])
		}
		for (i : 0 .. 2 * CONNS - 1) { note_use(sent[i].fence); note_use(sent[i].drawn) }
		if
		:: in_use -> v++
		:: else ->
			close_gap(row_fence); close_gap(last_granted); close_gap(rung_by);
			for (i : 0 .. THREADS - 1) {
				close_gap(my_fence[i]); close_gap(seen_fence[i]);
				close_gap(orphan_fence[i])
			}
			for (i : 0 .. 2 * CONNS - 1) {
				close_gap(sent[i].fence); close_gap(sent[i].drawn)
			}
			next_fence--
		fi
	od;
	v = 0; i = 0; in_use = false
}

/* ---- statements ---------------------------------------------------------------------------- */

inline draw(x, then)
{
	renumber();
	next_fence++;
	sent[x].drawn = next_fence;
	sent[x].what = then;
	printf("server    %e on %d draws fence %d\n", then, x, next_fence)
}

inline set_row(owner, fence_)
{
	row_owner = owner;
	row_fence = fence_;
	row_over = false;
	row_ended = false;
	printf("server    row: owner %d, fence %d\n", owner, fence_)
}

inline delete_row() { set_row(0, 0) }

#ifdef MUTANT_FENCE
#define MINE(x) (row_owner && row_owner == sent[x].who)
#else
#define MINE(x) (row_owner && row_owner == sent[x].who && row_fence == sent[x].fence)
#endif

/* The doorbell goes with the last statement of a release. */
inline ring(x)
{
	if
	:: bell == x + 1 ->
		bell = 0; rung_by = sent[x].fence;
		printf("server    the doorbell rings\n")
	:: else
	fi
}

inline drop_row(x)
{
	if
	:: MINE(x) -> delete_row(); sent[x].got = ALL
	:: else -> sent[x].got = NOTHING
	fi
}

/* GET_LOCK(bell, 0) and the fence come first: the row is reached later. */
inline begin_take(x)
{
	if
	:: sent[x].rings && bell && bell != x + 1 -> 
		printf("server    TAKE of %d: the doorbell is connection %d's\n", sent[x].who, bell - 1);
		answer(x, NOTHING)
	:: else ->
		if
		:: sent[x].rings -> bell = x + 1; rung_by = 0
		:: else -> hold_up_others(sent[x].who)
		fi;
		draw(x, TAKE_ROW)
	fi
}

inline take_row(x)
{
	if
	:: !row_owner || row_over -> set_row(sent[x].who, sent[x].drawn); answer(x, ALL)
	:: else -> answer(x, BELL)
	fi
}

inline begin_hand_over(x)
{
	if
	:: bell == x + 1
	:: else -> if :: HELD_UP(x) -> hold_up_others(sent[x].to) :: else fi
	fi;
	draw(x, HAND_OVER_ROW)
}

/* From hold to hold; where the row has gone, the statement inserts it. */
inline hand_over_row(x)
{
	if
	:: !row_owner -> set_row(sent[x].to, sent[x].drawn); answer(x, INSERTED)
	:: row_owner == sent[x].who && row_fence == sent[x].fence && !row_over ->
		set_row(sent[x].to, sent[x].drawn); answer(x, ALL)
	:: else -> answer(x, NOTHING)
	fi
}

inline sweep_row(x)
{
	if
	:: row_owner == sent[x].who && row_fence != sent[x].fence -> delete_row()
	:: else
	fi;
	answer(x, ALL)
}

/* ---- sessions ------------------------------------------------------------------------------ */

proctype session(byte x)
{
end:	do
	:: d_step { sent[x].what == TAKE -> begin_take(x) }
	:: d_step { sent[x].what == TAKE_ROW -> take_row(x) }
	:: d_step { sent[x].what == HAND_OVER -> begin_hand_over(x) }
	:: d_step { sent[x].what == HAND_OVER_ROW -> hand_over_row(x) }
#ifdef MUTANT_BELL
	:: d_step { sent[x].what == DROP -> ring(x); sent[x].what = DROP_BELL }
	:: d_step { sent[x].what == DROP_BELL -> drop_row(x); sent[x].what = ANSWERED }
#else
	:: d_step { sent[x].what == DROP -> drop_row(x); sent[x].what = DROP_BELL }
	:: d_step { sent[x].what == DROP_BELL -> ring(x); sent[x].what = ANSWERED }
#endif
	:: d_step { sent[x].what == SWEEP -> sweep_row(x) }
	:: d_step { sent[x].what == WAIT_BELL && !bell ->
		/* Whoever is rung does not find the row of the one that rang. */
		assert(!rung_by || row_fence != rung_by);
		bell = x + 1; rung_by = 0;
		answer(x, BELL) }
	/* Nobody reads what a lost connection answers. The server may notice that, or may not. */
	:: d_step { x >= CONNS && sent[x].what == ANSWERED -> end_session(x) }
#ifdef LIVE
	:: atomic { x >= CONNS && sent[x].what == ANSWERED -> goto unnoticed }
#endif
	od;

#ifdef LIVE
unnoticed:
	atomic { sent[x].what != ANSWERED -> goto end }
#endif
}
