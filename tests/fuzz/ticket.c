/* core/ticket.h. The input is a ticket. It is read twice: as it is, and as what stands
 * behind a right CHECK, which libFuzzer would not find. */
#include "core/ticket.h"

#include <stdio.h>

#include "base/hash.h"
#include "common/fuzz.h"

static void check_fields(const struct bl_ticket *t)
{
	size_t len = strnlen(t->owner, sizeof(t->owner)), head;

	assert(t->fence > 0);
	assert(t->depth > 0 && t->depth <= BIZLOCK_DEPTH_MAX);
	assert(t->lease_ms >= BIZLOCK_LEASE_MIN_MS && t->lease_ms <= BIZLOCK_LEASE_MAX_MS);
	assert(len <= BL_OWNER_MAX && bl_owner_is_export(t->owner, &head));
	assert(t->owner[head] == '@');
	assert(t->key.type_len > 0 && strlen(t->key.type) == t->key.type_len);
	assert(t->key.id_len > 0 && strlen(t->key.id) == t->key.id_len);
	assert(fuzz_utf8(t->key.type, t->key.type_len) && fuzz_utf8(t->key.id, t->key.id_len));
}

/* Written into a buffer that just holds it, and into one that just does not. */
static void check_written(const struct bl_ticket *t, const char *text)
{
	size_t size = strlen(text) + 1;
	char *ret = malloc(size);
	struct bl_err err;

	assert(ret && size <= BIZLOCK_EXPORT_MAX);
	fuzz_poison(ret, size);
	assert(bl_ticket_write(t, ret, size - 1, &err) == BIZLOCK_LIMIT);
	fuzz_check_error(&err, BIZLOCK_LIMIT);
	assert(fuzz_poisoned(ret, size));
	assert(bl_ticket_write(t, ret, size, &err) == BIZLOCK_OK);
	assert(strcmp(ret, text) == 0);
	free(ret);
}

static void check_text(const char *text)
{
	struct bl_ticket ticket;
	struct bl_err err;

	fuzz_poison(&ticket, sizeof(ticket));
	if (bl_ticket_read(text, &ticket, &err) == BIZLOCK_OK) {
		check_fields(&ticket);
		check_written(&ticket, text);
	} else {
		fuzz_check_error(&err, BIZLOCK_INVALID);
		assert(fuzz_poisoned(&ticket, sizeof(ticket)));
	}
}

/* On the heap, and freed by the caller. */
static char *with_check(const char *head, const char *rest)
{
	size_t size = strlen(head) + 33 + strlen(rest) + 1;
	struct bl_hash hash = bl_hash_start();
	char *ret = malloc(size), hex[33];

	assert(ret);
	bl_hash_add(&hash, rest, strlen(rest));
	bl_hash_hex(&hash, hex);
	snprintf(ret, size, "%s%s:%s", head, hex, rest);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *plain = with_check("bizlock1:", text),
	     *shared = with_check("bizlock2:", text);

	check_text(text);
	check_text(plain);
	check_text(shared);
	free(text);
	free(plain);
	free(shared);
	return 0;
}
