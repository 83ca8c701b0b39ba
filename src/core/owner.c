#include "core/owner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"

#define HOST_MAX 64

/* By ranges, not by <ctype.h>, which depends on the locale. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_host_byte(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
	       c == '_' || c == '-';
}

void bl_process_make(struct bl_process *ret, int64_t pid, const uint8_t nonce[8], const char *host)
{
	char clean[HOST_MAX + 1];
	uint64_t number = 0;
	size_t len;

	if (!host || !host[0])
		host = "localhost";
	len = strnlen(host, HOST_MAX);
	for (size_t i = 0; i < len; i++)
		clean[i] = is_host_byte(host[i]) ? host[i] : '_';
	clean[len] = '\0';
	for (size_t i = 0; i < 8; i++)
		number = number << 8 | nonce[i];
	ret->pid = pid;
	snprintf(ret->suffix, sizeof(ret->suffix), "@%" PRId64 ".%016" PRIx64 "@%s", pid, number,
	         clean);
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

bool bl_owner_is_export(const char *text, size_t *ret_len)
{
	size_t len = strlen(BL_OWNER_EXPORT), end = len + 16;

	if (strncmp(text, BL_OWNER_EXPORT, len) != 0)
		return false;
	while (len < end && is_hex(text[len]))
		len++;
	*ret_len = len;
	return len == end;
}

static int check_name(const char *name, size_t len, struct bl_err *err)
{
	size_t digits = 0, head;

	if (len == 0 || len > BIZLOCK_OWNER_NAME_MAX)
		return bl_err_set(err, BIZLOCK_INVALID, "owner is %s: 1 to %d bytes are needed",
		                  len == 0 ? "empty" : "too long", BIZLOCK_OWNER_NAME_MAX);
	for (size_t i = 0; i < len; i++) {
		if (name[i] < '!' || name[i] > '~' || name[i] == '@')
			return bl_err_set(err, BIZLOCK_INVALID,
			                  "owner has byte 0x%02x at offset %zu: only printable "
			                  "ASCII without space and '@' is allowed",
			                  (unsigned)(unsigned char)name[i], i);
		digits += is_digit(name[i]);
	}
	if (bl_owner_is_export(name, &head) && head == len)
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "owner \"%s\" is the name of an exported hold", name);
	if (digits == len)
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "owner \"%s\" has only digits: those names are for threads",
		                  name);
	return BIZLOCK_OK;
}

static void make_thread(struct bl_owner *ret)
{
	const struct bl_thread *self = bl_thread_self();

	ret->thread = self->serial;
	ret->name_len = self->name_len;
	memcpy(ret->name, self->name, sizeof(self->name));
}

int bl_owner_make(struct bl_owner *ret, const char *name, struct bl_err *err)
{
	size_t len;
	int rc;

	if (!name) {
		make_thread(ret);
		return BIZLOCK_OK;
	}
	len = strnlen(name, BIZLOCK_OWNER_NAME_MAX + 1);
	rc = check_name(name, len, err);
	if (rc != BIZLOCK_OK)
		return rc;
	memset(ret, 0, sizeof(*ret));
	ret->name_len = (uint8_t)len;
	memcpy(ret->name, name, len);
	return BIZLOCK_OK;
}

bool bl_owner_equal(const struct bl_owner *a, const struct bl_owner *b)
{
	if (a->thread != 0 || b->thread != 0)
		return a->thread == b->thread;
	return a->name_len == b->name_len && memcmp(a->name, b->name, a->name_len) == 0;
}

void bl_owner_full(const struct bl_owner *o, const struct bl_process *p, char ret[BL_OWNER_MAX + 1])
{
	const size_t suffix_len = strlen(p->suffix);

	_Static_assert(BIZLOCK_OWNER_NAME_MAX + sizeof(p->suffix) <= BL_OWNER_MAX + 1, "it fits");
	memcpy(ret, o->name, o->name_len);
	memcpy(ret + o->name_len, p->suffix, suffix_len + 1);
}
