#include "cli/command/locks.h"

#include <stdlib.h>
#include <string.h>

static bool copy(struct cli_lock *to, const bizlock_info *info)
{
	*to = (struct cli_lock){
	        .biz_type = strdup(info->biz_type),
	        .biz_id = strdup(info->biz_id),
	        .owner = strdup(info->owner),
	        .note = strdup(info->note),
	        .fence = info->fence,
	        .left_ms = info->left_ms,
	        .held_ms = info->held_ms,
	        .depth = info->depth,
	        .flags = info->flags,
	        .slot = info->slot,
	        .limit = info->limit,
	};
	return to->biz_type && to->biz_id && to->owner && to->note;
}

static bool make_room(struct cli_locks *locks)
{
	size_t room = locks->room ? 2 * locks->room : 64;
	struct cli_lock *list;

	if (locks->count < locks->room)
		return true;
	list = reallocarray(locks->list, room, sizeof(*list));
	if (!list)
		return false;
	locks->list = list;
	locks->room = room;
	return true;
}

/* A contender that waits for sharers to leave has an owner, and depth 0. */
static bool is_held(const bizlock_info *info)
{
	return info->left_ms > 0 && *info->owner && info->depth > 0;
}

int cli_locks_keep(void *arg, const bizlock_info *info)
{
	struct cli_locks *locks = arg;

	if ((locks->stale_only && info->left_ms > 0) || (locks->held_only && !is_held(info)))
		return 0;
	locks->more = locks->max && locks->count == locks->max;
	if (locks->more)
		return 1;
	if (make_room(locks) && copy(&locks->list[locks->count++], info))
		return 0;
	locks->failed = true;
	return 1;
}

void cli_locks_free(struct cli_locks *locks)
{
	for (size_t i = 0; i < locks->count; i++) {
		free(locks->list[i].biz_type);
		free(locks->list[i].biz_id);
		free(locks->list[i].owner);
		free(locks->list[i].note);
	}
	free(locks->list);
	locks->list = NULL;
	locks->count = locks->room = 0;
}

static bool is_for(const struct cli_lock *lock, const bizlock_waiter *waiter)
{
	return lock->left_ms > 0 && strcmp(lock->biz_id, waiter->biz_id) == 0 &&
	       strcmp(lock->biz_type, waiter->biz_type) == 0;
}

/* Only the first row of a shared lock counts the waiters, so that sums are right. */
static int count_one(void *arg, const bizlock_waiter *waiter)
{
	struct cli_locks *locks = arg;

	for (size_t i = 0; i < locks->count; i++)
		if (is_for(&locks->list[i], waiter)) {
			locks->list[i].waiting++;
			return 0;
		}
	return 0;
}

int cli_locks_count_waiting(bizlock *lock, struct cli_locks *locks)
{
	bizlock_key *keys = calloc(locks->count + 1, sizeof(*keys));
	size_t n = 0;
	int rc = BIZLOCK_OK;

	if (!keys)
		return BIZLOCK_NOMEM;
	for (size_t i = 0; i < locks->count; i++)
		if (locks->list[i].left_ms > 0)
			keys[n++] = (bizlock_key){locks->list[i].biz_type, locks->list[i].biz_id};
	if (n > 0)
		rc = bizlock_waiters(lock, keys, n, count_one, locks);
	free(keys);
	return rc;
}

const char *cli_lock_state(const struct cli_lock *lock)
{
	if (lock->left_ms <= 0)
		return "stale";
	return *lock->owner ? "held" : "resting";
}

const char *cli_lock_mode(const struct cli_lock *lock)
{
	return lock->flags & BIZLOCK_SHARED ? "shared" : "exclusive";
}

bool cli_lock_has_slot(const struct cli_lock *lock)
{
	return lock->slot > 0 && lock->slot <= BIZLOCK_LIMIT_MAX;
}

static void cut(char *to, size_t size, const char *from, size_t len)
{
	len = len < size ? len : size - 1;
	memcpy(to, from, len);
	to[len] = '\0';
}

void cli_owner_read(const char *owner, struct cli_owner *ret)
{
	const char *at = strchr(owner, '@'), *last = strrchr(owner, '@');

	*ret = (struct cli_owner){"", "", ""};
	if (!at || at == last) {
		cut(ret->name, sizeof(ret->name), owner, strlen(owner));
		return;
	}
	cut(ret->name, sizeof(ret->name), owner, (size_t)(at - owner));
	cut(ret->pid, sizeof(ret->pid), at + 1, strspn(at + 1, "0123456789"));
	cut(ret->host, sizeof(ret->host), last + 1, strlen(last + 1));
}

/* As bizlock_export() names them; no other owner may have such a name. */
bool cli_owner_is_ticket(const struct cli_owner *o)
{
	static const char begin[] = "export-";
	size_t len = sizeof(begin) - 1;

	return strncmp(o->name, begin, len) == 0 && strlen(o->name) == len + 16 &&
	       strspn(o->name + len, "0123456789abcdef") == 16;
}
