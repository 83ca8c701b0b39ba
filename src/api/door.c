#include "api/door.h"

#include "base/thread.h"
#include "store/table/schema.h"

/* Like errno: each thread has its own, so that one thread's error never speaks
 * for another's. */
static _Thread_local struct {
	uint64_t client; /* its serial, 0: none. An address may be used again */
	struct bl_err err;
} last;

struct bl_err *bl_door_error(void)
{
	static _Thread_local struct bl_err scratch;

	bl_err_clear(&scratch);
	return &scratch;
}

int bl_door_finish(const bizlock *b, const char *what, struct bl_err *err, int rc)
{
	if (rc == BIZLOCK_OK)
		return rc;
	rc = bl_err_missing(err, rc);
	bl_err_wrap(err, "%s", what);
	last.client = b ? b->serial : 0;
	last.err = *err;
	return rc;
}

int bl_door_process(const bizlock *b, struct bl_err *err)
{
	if (!b)
		return bl_err_set(err, BIZLOCK_INVALID, "the client is NULL");
	if (!bl_process_is(b->stamp))
		return bl_err_set(err, BIZLOCK_MISUSE,
		                  "this client belongs to the parent process: open another one "
		                  "after fork");
	return BIZLOCK_OK;
}

static int out_of_order(enum bl_client_state state, struct bl_err *err)
{
	static const char *const is[] = {
	        [BL_CLIENT_NEW] = "not open",
	        [BL_CLIENT_OPENING] = "being opened by another thread",
	        [BL_CLIENT_OPEN] = "open already",
	        [BL_CLIENT_CLOSING] = "being closed",
	};

	return bl_err_set(err, BIZLOCK_MISUSE, "the client is %s", is[state]);
}

static _Thread_local struct {
	unsigned calls;
	int before;
} shield;

void bl_door_shield(void)
{
	if (shield.calls++ == 0)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &shield.before);
}

void bl_door_unshield(void)
{
	if (--shield.calls == 0)
		pthread_setcancelstate(shield.before, NULL);
}

int bl_door_new(const bizlock *b, struct bl_err *err)
{
	return b->state == BL_CLIENT_NEW ? BIZLOCK_OK : out_of_order(b->state, err);
}

/* Lets a call in if the client is in one of `states`, a bit for each. opens: this call is to open
 * the client, which becomes OPENING at the same moment. */
static int come_in(bizlock *b, unsigned states, bool opens, struct bl_err *err)
{
	int rc = bl_door_process(b, err);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_lock(b);
	if (states & 1u << b->state) {
		b->calls++;
		bl_door_shield();
		if (opens)
			b->state = BL_CLIENT_OPENING;
	} else {
		rc = out_of_order(b->state, err);
	}
	bl_unlock(b);
	return rc;
}

int bl_door_enter(bizlock *b, struct bl_err *err)
{
	return come_in(b, 1u << BL_CLIENT_OPEN, false, err);
}

int bl_door_open(bizlock *b, struct bl_err *err)
{
	return come_in(b, 1u << BL_CLIENT_NEW, true, err);
}

void bl_door_opened(bizlock *b, bool open)
{
	bl_lock(b);
	b->state = open ? BL_CLIENT_OPEN : BL_CLIENT_NEW;
	b->calls--;
	pthread_cond_broadcast(&b->changed);
	bl_unlock(b);
	bl_door_unshield();
}

void bl_door_leave(bizlock *b)
{
	bl_lock(b);
	if (--b->calls == 0)
		pthread_cond_broadcast(&b->changed);
	bl_unlock(b);
	bl_door_unshield();
}

int bl_door_in(bizlock *b, const char *what, struct bl_err *err, int rc)
{
	return bl_door_finish(b, what, err, rc == BIZLOCK_OK ? bl_door_enter(b, err) : rc);
}

int bl_door_visit(bizlock *b, const char *what, struct bl_err *err, int rc)
{
	if (rc == BIZLOCK_OK)
		rc = come_in(b, ~(1u << BL_CLIENT_CLOSING), false, err);
	return bl_door_finish(b, what, err, rc);
}

int bl_door_out(bizlock *b, const char *what, struct bl_err *err, int rc)
{
	rc = bl_door_finish(b, what, err, rc);
	bl_door_leave(b);
	return rc;
}

int bl_door_name(const bizlock *b, bizlock_key key, const char *owner, struct bl_key *ret_key,
                 struct bl_owner *ret_owner, struct bl_err *err)
{
	int rc = bl_door_process(b, err);

	if (rc == BIZLOCK_OK)
		rc = bl_key_make(ret_key, key, err);
	return rc == BIZLOCK_OK ? bl_owner_make(ret_owner, owner, err) : rc;
}

int bl_door_begin(struct bl_call *call, bizlock *b, const struct bl_key *key,
                  const struct bl_owner *owner, int64_t wait_ms, const char *what,
                  struct bl_err *err)
{
	int rc = bl_door_in(b, what, err, BIZLOCK_OK);

	if (rc == BIZLOCK_OK)
		bl_call_begin(call, b, key, owner, wait_ms, err);
	return rc;
}

int bl_door_call(struct bl_call *call, bizlock *b, bizlock_key key, const char *owner,
                 const char *what)
{
	struct bl_err *err = bl_door_error();
	struct bl_key checked;
	struct bl_owner who;
	int rc = bl_door_name(b, key, owner, &checked, &who, err);

	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, what, err, rc);
	return bl_door_begin(call, b, &checked, &who, 0, what, err);
}

int bl_door_called(struct bl_call *call, const char *what, int rc)
{
	if (rc != BIZLOCK_OK)
		bl_err_wrap(call->err, "%s/%s", call->key.type, call->key.id);
	return bl_door_out(call->client, what, call->err, rc);
}

static int check_member(struct bl_member *m, bizlock_key key, struct bl_err *err)
{
	int rc = bl_key_make(&m->call.key, key, err);

	return rc == BIZLOCK_OK ? bl_key_check_taken(&m->call.key, err) : rc;
}

int bl_door_members(struct bl_member *members, bizlock *b, const bizlock_key *keys, size_t n,
                    const char *owner, int64_t wait_ms, struct bl_err *err)
{
	struct bl_owner who;
	int rc = bl_owner_make(&who, owner, err);

	for (size_t i = 0; i < n && rc == BIZLOCK_OK; i++) {
		rc = check_member(&members[i], keys[i], err);
		if (rc != BIZLOCK_OK && n > 1)
			bl_err_wrap(err, "keys[%zu]", i);
	}
	if (rc == BIZLOCK_OK)
		rc = bl_door_enter(b, err);
	for (size_t i = 0; i < n && rc == BIZLOCK_OK; i++) {
		struct bl_key key = members[i].call.key;

		members[i].index = i;
		bl_call_begin(&members[i].call, b, &key, &who, wait_ms, err);
	}
	return rc;
}

const char *bizlock_errmsg(const bizlock *b)
{
	return last.client == (b ? b->serial : 0) ? last.err.msg : "";
}
