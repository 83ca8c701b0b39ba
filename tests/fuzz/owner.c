/* core/owner.h. The input is a process id and a random number of 8 bytes each, the name of
 * an owner, NUL, the name of a host. */
#include "core/owner.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/fuzz.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* What the header says of a name. */
static bool may_be_a_name(const char *name)
{
	size_t len = strlen(name), export = strlen(BL_OWNER_EXPORT);

	if (len == 0 || len > BIZLOCK_OWNER_NAME_MAX || strspn(name, DIGITS) == len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] >= 0x7f || name[i] == '@')
			return false;
	return strncmp(name, BL_OWNER_EXPORT, export) != 0 || len != export + 16 ||
	       strspn(name + export, DIGITS "abcdef") != 16;
}

/* "@pid.nonce@host", read again. */
static void check_process(const struct bl_process *p, int64_t pid, const uint8_t nonce[8],
                          const char *host)
{
	char *at = NULL, *want = NULL, digits[17];

	assert(strnlen(p->suffix, sizeof(p->suffix)) < sizeof(p->suffix));
	assert(p->suffix[0] == '@' && p->pid == pid);
	assert(strtoll(p->suffix + 1, &at, 10) == pid && *at++ == '.');
	for (size_t i = 0; i < 8; i++)
		snprintf(digits + 2 * i, 3, "%02x", nonce[i]);
	assert(strncmp(at, digits, 16) == 0 && at[16] == '@');
	at += 17;
	want = strndup(host[0] ? host : "localhost", 64);
	assert(want && strlen(want) == strlen(at));
	assert(at[strspn(at, LETTERS DIGITS "._-")] == '\0');
	for (size_t i = 0; want[i]; i++)
		assert(at[i] == want[i] || (at[i] == '_' && !strchr(LETTERS DIGITS ".-", want[i])));
	free(want);
}

static void check_full(const struct bl_owner *owner, const struct bl_process *p)
{
	size_t name = strlen(owner->name), head;
	char full[BL_OWNER_MAX + 1];

	bl_owner_full(owner, p, full);
	assert(strncmp(full, owner->name, name) == 0 && strcmp(full + name, p->suffix) == 0);
	assert(strcspn(full, "@") == name);
	/* Nobody may be called as an exported hold is. */
	assert(!bl_owner_is_export(full, &head) || full[head] != '@');
}

static void check_name(const char *name, const struct bl_process *p)
{
	struct bl_owner owner, again;
	struct bl_err err;
	int rc;

	fuzz_poison(&owner, sizeof(owner));
	rc = bl_owner_make(&owner, name, &err);
	assert((rc == BIZLOCK_OK) == may_be_a_name(name));
	if (rc != BIZLOCK_OK) {
		fuzz_check_error(&err, BIZLOCK_INVALID);
		assert(fuzz_poisoned(&owner, sizeof(owner)));
		return;
	}
	assert(owner.thread == 0 && owner.name_len == strlen(name));
	assert(strcmp(owner.name, name) == 0);
	assert(bl_owner_make(&again, owner.name, &err) == BIZLOCK_OK);
	assert(bl_owner_equal(&owner, &again));
	check_full(&owner, p);
}

static void check_export(const char *text)
{
	size_t len = strlen(text), head = len;

	if (bl_owner_is_export(text, &head))
		assert(head == strlen(BL_OWNER_EXPORT) + 16);
	assert(head <= len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bl_process process;
	char *name, *host;
	uint8_t nonce[8];
	int64_t pid;

	if (size < sizeof(pid) + sizeof(nonce))
		return 0;
	memcpy(&pid, data, sizeof(pid));
	memcpy(nonce, data + sizeof(pid), sizeof(nonce));
	data += sizeof(pid) + sizeof(nonce);
	size -= sizeof(pid) + sizeof(nonce);
	name = fuzz_next(&data, &size, '\0');
	host = fuzz_next(&data, &size, '\0');
	bl_process_make(&process, pid, nonce, host);
	check_process(&process, pid, nonce, host);
	check_name(name, &process);
	check_export(name);
	free(name);
	free(host);
	return 0;
}
