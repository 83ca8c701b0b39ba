/* One call: its identity, its deadlines, and how it sleeps. */
#include "base/rnd.h"
#include "client/state.h"
#include "core/hosts.h"

void bl_call_begin(struct bl_call *call, struct bizlock *b, const struct bl_key *key,
                   const struct bl_owner *owner, int64_t wait_ms, struct bl_err *err)
{
	/* Twice io_timeout: when a reply never comes, there is time left to ask again. With several
	 * hosts three times: a cluster may take another 10 s or 20 s to go on without a silent
	 * member. */
	int times = bl_hosts_several(b->config.host) ? 3 : 2;
	bl_time io_deadline = bl_deadline_in_ms(times * (int64_t)b->config.io_timeout_ms);

	call->client = b;
	call->key = *key;
	call->owner = *owner;
	bl_owner_full(owner, &b->process, call->owner_full);
	call->bell[0] = '\0';
	call->deadline = bl_deadline_in_ms(wait_ms);
	call->io_deadline = bl_later(call->deadline, io_deadline);
	/* In this order: a stop that comes between the two reads is seen in `stopped`, or changes
	 * `wakes` later. */
	atomic_init(&call->wakes, atomic_load(&b->wakes));
	call->wakes -= atomic_load(&b->stopped);
	call->comes_again = false;
	call->err = err;
}

const char *bl_call_bell(struct bl_call *call)
{
	if (!call->bell[0])
		bl_bell_name(call->bell, call->client->bell_seed, &call->key);
	return call->bell;
}

/* The state counts, too: a call that entered just before bizlock_close() may have read `wakes`
 * after the interrupt of the close. */
static bool is_woken(const struct bl_call *call)
{
	return atomic_load(&call->client->wakes) != atomic_load(&call->wakes) ||
	       call->client->state == BL_CLIENT_CLOSING;
}

bool bl_call_interrupted(const struct bl_call *call)
{
	return !bl_passed(call->deadline) && is_woken(call);
}

int bl_call_check(const struct bl_call *call)
{
	if (!is_woken(call))
		return BIZLOCK_OK;
	return bl_err_set(call->err, BIZLOCK_CANCELLED, "the wait was interrupted");
}

void bl_call_interrupt(struct bl_call *call)
{
	atomic_store(&call->wakes, atomic_load(&call->client->wakes) - 1);
}

static bool is_over(const struct bl_call *call)
{
	return bl_call_interrupted(call) || call->client->state == BL_CLIENT_CLOSING;
}

static void sleep_unless(const struct bl_call *call, bl_time until,
                         bool (*over)(const struct bl_call *))
{
	bl_time end = bl_earlier(until, call->io_deadline), left;

	while ((left = end - bl_now()) > 0 && !over(call)) {
		bl_unlock(call->client);
		bl_sleep(left < BL_WAKE_NS ? left : BL_WAKE_NS);
		bl_lock(call->client);
	}
}

void bl_call_sleep(const struct bl_call *call, bl_time until)
{
	sleep_unless(call, until, is_woken);
}

void bl_call_pause(const struct bl_call *call, bl_time until)
{
	sleep_unless(call, until, is_over);
}

uint64_t bl_random(struct bizlock *b)
{
	return bl_rnd_next(&b->jitter);
}

void bl_hide_life(struct bizlock *b)
{
	if (!b->life.has_file)
		return;
	bl_unlock(b);
	bl_life_hide(&b->life);
	bl_lock(b);
}
