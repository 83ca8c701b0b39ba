/* How those that share a lock and those that want it alone come to it and give it back, while
 * replies are lost, holders die and a reaper removes rows. What else goes on among those that want
 * it alone is in lock.pml. README.md says which function of the library each step is.
 *
 * Fences are compared, and nothing else. So after each draw all that are known are numbered anew,
 * in their order: states that differ by how many were drawn before are one. */

#ifndef SHARERS
#define SHARERS 1
#endif
#ifndef ALONE
#define ALONE 1
#endif
#ifndef ROUNDS
#define ROUNDS 1 /* acquisitions by each */
#endif
#ifndef FAULTS
#define FAULTS 0 /* replies that are lost */
#endif
#ifndef LEASES
#define LEASES 0 /* holders that die */
#endif
#ifndef REAPS
#define REAPS 0 /* batches of the reaper */
#endif

#define CALLERS (ALONE + SHARERS) /* those that want it alone come first, from 1 on */

/* ---- the table ----------------------------------------------------------------------------- */

/* Slot 0, and who has it: a caller, the reaper, or nobody (a header). */
#define NOBODY 0
#define REAPER 100
bool there;
byte owner, fence;
bool over; /* the lease of its owner has ended */

#define HELD (there && owner != NOBODY && !over)

byte rows; /* of sharers. Each has the fence f[] of its caller */
byte bell; /* who has the doorbell; 0: nobody */

/* ---- what callers know --------------------------------------------------------------------- */

byte f[CALLERS + 1];    /* the fence that was drawn last */
byte seen[CALLERS + 1]; /* by a sharer, before that: the fence of slot 0; 0: it was not there */
bool prompt[CALLERS + 1]; /* an answer that comes now would count as prompt */

/* ---- what is promised ---------------------------------------------------------------------- */

byte sharing, alone;         /* that hold the lock */
byte granted, granted_alone; /* the largest fences so far */
byte faults, leases;         /* so far */

inline hold_alone()
{
	printf("caller %d  HELD alone, fence %d; granted before: %d\n", me, f[me], granted);
	assert(sharing == 0 && alone == 0);
	assert(f[me] > granted);
	alone++;
	granted = f[me];
	granted_alone = f[me]
}

inline hold_shared()
{
	printf("caller %d  HELD shared, fence %d; granted alone before: %d\n", me, f[me],
	       granted_alone);
	assert(alone == 0);
	assert(f[me] > granted_alone);
#ifndef HARM /* that comes of it is asked for */
	assert(there);
#endif
	sharing++;
	granted = (f[me] > granted -> f[me] : granted)
}

/* ---- fences -------------------------------------------------------------------------------- */

byte top; /* the largest that anybody knows */
byte n, k, used;

inline close_gap(number)
{
	number = (number > n -> number - 1 : number)
}

inline number_anew()
{
	n = 1;
	do
	:: n <= top ->
		used = (fence == n || granted == n || granted_alone == n);
		for (k : 1 .. CALLERS) { used = used || f[k] == n || seen[k] == n }
		if
		:: used -> n++
		:: else ->
			close_gap(fence); close_gap(granted); close_gap(granted_alone);
			for (k : 1 .. CALLERS) { close_gap(f[k]); close_gap(seen[k]) }
			top--
		fi
	:: else -> break
	od;
	n = 0; k = 0; used = 0
}

inline draw(to)
{
	top++;
	to = top;
	number_anew()
}

/* ---- one that wants it alone --------------------------------------------------------------- */

/* So much time goes by that no answer that is yet to come is prompt. */
inline grow_late()
{
	for (k : 1 .. CALLERS) { prompt[k] = false }
	k = 0
}

inline be_owner()
{
	printf("caller %d  has slot 0\n", me);
	there = true; owner = me; over = false; fence = f[me]
}

inline drop_row()
{
	printf("slot 0 is deleted\n");
	there = false; owner = NOBODY; over = false; fence = 0
}

inline give_bell()
{
	bell = (bell == me -> 0 : bell)
}

/* Its row is there: its fence is drawn again, and it looks. */
inline draw_again()
{
	d_step {
		mine = there && owner == me && !over;
		if :: mine -> draw(fence); f[me] = fence :: else fi
	}
}

/* Without the doorbell: whoever has that may have drawn a smaller fence, and have no row yet. It must
 * not believe in it after us. */
inline outwait_rival()
{
	d_step {
		if
#ifndef MUTANT_RIVAL
		:: bell != 0 && bell != me -> grow_late()
#endif
		:: else
		fi
	}
}

proctype caller_alone(byte me)
{
	byte rounds;
	bool mine;

begin:	if
	:: rounds < ROUNDS -> rounds++
	:: else -> goto end
	fi;
	/* It rings the doorbell, and draws a fence. */
	if
	:: atomic { bell == 0 && !HELD -> d_step { bell = me; prompt[me] = true; draw(f[me]) } }
		printf("caller %d  has the doorbell, and draws a fence\n", me)
	:: atomic { !HELD -> d_step { draw(f[me]) } }
		printf("caller %d  draws a fence\n", me)
	fi;
	/* The row is there later, or refused. */
	if
	:: atomic { !there -> d_step { be_owner(); mine = prompt[me]; prompt[me] = false } }
		if
		:: mine -> goto has
		:: !mine -> goto late
		:: faults < FAULTS -> faults++; goto back
		fi
	:: atomic { HELD -> prompt[me] = false } goto back
	:: atomic { there && !HELD -> prompt[me] = false }
	fi;
	/* A row that is free, or over: it is among those that share the lock from now on. It takes the
	 * row, and then looks at theirs. */
	d_step { draw(f[me]) }
	if
	:: atomic { !HELD -> d_step { be_owner() } }
		if
		:: true
		:: faults < FAULTS -> faults++; goto back
		fi
	:: atomic { HELD } goto back
	fi;
look:	draw_again();
	if
	:: !mine -> goto back
	:: mine && rows == 0
#ifdef MUTANT_ALONE
	:: mine && rows > 0
#else
	:: mine && rows > 0 ->
		if
		:: rows == 0 -> goto look
		:: true -> goto back
		fi
#endif
	fi;
	outwait_rival();
	goto has;
late:	draw_again();
	if
	:: mine
	:: !mine -> goto back
	fi;
	outwait_rival();
has:	atomic {
		mine = false;
		if
		:: there && owner == me && !over && fence == f[me] -> hold_alone()
		:: else -> goto back
		fi
	}
	if
	:: leases < LEASES ->
		d_step {
			leases++; alone--; give_bell(); f[me] = 0;
			over = (there && owner == me -> true : over)
		}
		goto end
	:: true
	fi;
	/* Nobody can have come to share it meanwhile. */
	d_step {
		alone--;
		if :: there && owner == me && fence == f[me] -> drop_row() :: else fi;
		give_bell();
		f[me] = 0
	}
	goto begin;
	/* Those that share it may have come before: slot 0 stays, free. */
back:	atomic {
		if
		:: there && owner == me ->
#ifdef MUTANT_CLEAN_UP
			drop_row()
#else
			owner = NOBODY; over = false
#endif
		:: else
		fi;
		give_bell();
		f[me] = 0; mine = false
	}
	goto begin;
end:	rounds = 0; mine = false
}

/* ---- one that shares it -------------------------------------------------------------------- */

#ifdef MUTANT_OLDER
#define IS_NEWEST (f[me] > fence)
#else
#define IS_NEWEST (seen[me] == fence && f[me] > fence)
#endif

proctype caller_sharing(byte me)
{
	byte rounds;

begin:	if
	:: rounds < ROUNDS -> rounds++
	:: else -> goto end
	fi;
	/* It looks; draws a fence; has a row; and looks again. */
	atomic { !HELD -> seen[me] = (there -> fence : 0) }
	d_step { draw(f[me]) }
	d_step { rows++; printf("caller %d  has a sharer's row\n", me) }
	if
	:: true
	:: faults < FAULTS -> faults++; goto back
	fi;
#ifdef MUTANT_LOOK
	if :: seen[me] > 0 -> goto has :: else fi;
#endif
look:	atomic {
		if
		:: HELD -> goto back
		:: there && owner != NOBODY && over -> goto clear
#ifdef MUTANT_HEADER
		:: !there -> goto has
#else
		:: !there -> goto make
#endif
		:: there && owner == NOBODY && !IS_NEWEST -> seen[me] = fence; goto again
		:: there && owner == NOBODY && IS_NEWEST -> goto has
		fi
	}
	/* The row of somebody who died. */
clear:	atomic { if :: there && over -> owner = NOBODY; over = false :: else fi }
	goto look;
	/* A header: drawn first, and there later. */
make:	atomic { draw(seen[me]) }
	atomic {
		if
		:: !there ->
			there = true; owner = NOBODY; over = false; fence = seen[me];
			printf("caller %d  has made a header\n", me)
		:: else
		fi;
		seen[me] = 0
	}
	goto look;
again:	atomic { draw(f[me]) }
	goto look;
has:	atomic { hold_shared() }
	if
	:: leases < LEASES -> leases++ /* somebody clears its row */
	:: true
	fi;
	d_step { sharing-- }
back:	atomic { rows--; f[me] = 0; seen[me] = 0 }
	goto begin;
end:	rounds = 0
}

/* ---- the reaper ---------------------------------------------------------------------------- */

proctype reaper()
{
	byte reaps;
	bool met;

	do
	:: reaps < REAPS ->
		reaps++;
#ifndef MUTANT_MARK
		/* It makes a header its own, as if it wanted the lock alone and had died. */
		d_step { if :: there && owner == NOBODY -> owner = REAPER; over = true :: else fi;
			printf("the reaper has slot 0\n") };
#ifndef MUTANT_HASTE
		/* Whoever has drawn a fence before, and makes slot 0 behind its back, is late. */
		d_step { grow_late() };
#endif
#endif
		met = rows > 0;
		d_step {
			if
#ifdef MUTANT_MARK
			:: !met && there && (owner == NOBODY || over) -> drop_row()
#else
			:: !met && there && owner != NOBODY && over -> drop_row()
#endif
			:: else
			fi;
			met = false
		}
	:: else -> break
	od;
	reaps = 0
}

init
{
	atomic {
		for (k : 1 .. ALONE) { run caller_alone(k) }
		for (k : ALONE + 1 .. CALLERS) { run caller_sharing(k) }
		run reaper();
		k = 0
	}
}
