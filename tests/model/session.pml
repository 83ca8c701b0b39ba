/* Connections, and the sessions that the server has for them. A connection that the client has
 * given up goes on as a session of its own: x + CONNS is what is left of x. */

mtype = { NONE, ANSWERED, GONE, /* what a caller sees of its connection */
	TAKE, TAKE_ROW, HAND_OVER, HAND_OVER_ROW, DROP, DROP_BELL, SWEEP, RENEW, RENEW_MANY,
	DEPTH, COUNT, WAIT_BELL };

/* What a statement brought. */
mtype = { NOTHING, BELL, ALL, INSERTED };

typedef statement {
	mtype what = NONE;
	mtype got = NOTHING;
	byte who;   /* owner in its WHERE, or who takes; 0: nobody */
	byte to;    /* HAND_OVER: whose the row becomes */
	byte depth; /* DEPTH: the new one */
	byte lease; /* RENEW, RENEW_MANY, DEPTH: in ticks */
	byte fence; /* in its WHERE */
	byte drawn; /* by AUTO_INCREMENT, when the statement began */
	bool rings; /* TAKE: it goes for the doorbell, too */
};

statement sent[2 * CONNS];
byte bell; /* the connection that has the doorbell, + 1; 0: none */

#define FREE(x) (sent[x].what == NONE)

inline send(x, what_, who_, to_, fence_, rings_)
{
	sent[x].who = who_;
	sent[x].to = to_;
	sent[x].fence = fence_;
	sent[x].rings = rings_;
	sent[x].what = what_;
	printf("owner %d   sends %e by connection %d\n", who_, what_, x)
}

inline answer(x, brought)
{
	sent[x].got = brought;
	sent[x].what = ANSWERED
}

inline clear(x)
{
	sent[x].what = NONE;
	sent[x].got = NOTHING;
	sent[x].who = 0;
	sent[x].to = 0;
	sent[x].depth = 0;
	sent[x].lease = 0;
	sent[x].fence = 0;
	sent[x].drawn = 0;
	sent[x].rings = false
}

inline end_session(x)
{
	clear(x);
	if :: bell == x + 1 -> bell = 0 :: else fi
}

/* bl_lost_conns_end(): what was sent on that connection arrives no more. */
inline end_lost_conn(x)
{
	if
	:: sent[x + CONNS].what != NONE ->
		printf("owner     kills what is left of connection %d\n", x);
		end_session(x + CONNS)
	:: else
	fi
}

/* A connection can be lost where nothing is left of it from before. */
#define CAN_BE_LOST(x) (sent[x + CONNS].what == NONE && sent[x].what != GONE)

/* Before, in, or after what it was sent. */
inline lose_conn(x)
{
	sent[x + CONNS].what = (sent[x].what == NONE -> ANSWERED : sent[x].what);
	sent[x + CONNS].who = sent[x].who;
	sent[x + CONNS].to = sent[x].to;
	sent[x + CONNS].depth = sent[x].depth;
	sent[x + CONNS].lease = sent[x].lease;
	sent[x + CONNS].fence = sent[x].fence;
	sent[x + CONNS].drawn = sent[x].drawn;
	sent[x + CONNS].rings = sent[x].rings;
	if :: bell == x + 1 -> bell = x + CONNS + 1 :: else fi;
	printf("network   connection %d is lost: %e\n", x, sent[x].what);
	if
	:: sent[x].what == NONE
	:: else -> clear(x); sent[x].what = GONE
	fi
}
