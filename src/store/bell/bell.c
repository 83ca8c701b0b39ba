#include "store/bell/bell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rnd.h"
#include "store/session/errclass.h"

/* If an answer comes later than asked by more than this, the wait is over and the connection counts
 * as lost. */
#define LATE_MS 100

/* Bytes of the hash that a name has, as hexadecimal digits. Should two keys ever share a doorbell,
 * that costs order and wake-ups, never exclusion. */
#define HASH_BYTES 16

/* Each part is hashed with its NUL, so that "ab", "c" and "a", "bc" differ. */
struct bl_sha256 bl_bell_seed(const char *database, const char *prefix)
{
	struct bl_sha256 h;

	bl_sha256_start(&h);
	bl_sha256_add(&h, database, strlen(database) + 1);
	bl_sha256_add(&h, prefix, strlen(prefix));
	bl_sha256_add(&h, "biz_lock", sizeof("biz_lock"));
	return h;
}

/* SQL computes the same name: see sql/routines.sql. */
void bl_bell_name(char ret[BL_BELL_MAX + 1], struct bl_sha256 seed, const struct bl_key *key)
{
	static const char prefix[8] = {'b', 'i', 'z', 'l', 'o', 'c', 'k', ':'};
	static const char digits[] = "0123456789abcdef";
	unsigned char hash[BL_SHA256_BYTES];

	bl_sha256_add(&seed, key->type, key->type_len + 1u);
	bl_sha256_add(&seed, key->id, key->id_len + 1u);
	bl_sha256_end(&seed, hash);
	memcpy(ret, prefix, sizeof(prefix));
	ret += sizeof(prefix);
	for (unsigned i = 0; i < HASH_BYTES; i++) {
		*ret++ = digits[hash[i] >> 4];
		*ret++ = digits[hash[i] & 15];
	}
	*ret = '\0';
}

static int read_ring(struct bl_session *s, enum bl_heard *ret, struct bl_err *err)
{
	struct bl_rows *rows = NULL;
	MYSQL_ROW row;
	int rc = bl_session_await(s, err);

	if (rc == BIZLOCK_OK)
		rc = bl_session_answer(s, 1, &rows, err);
	if (rc != BIZLOCK_OK) {
		if (!bl_was_stopped(err))
			return rc;
		*ret = BL_HEARD_NONE;
		return BIZLOCK_OK;
	}
	row = bl_rows_next(rows);
	*ret = row && row[0] && strcmp(row[0], "1") == 0 ? BL_HEARD_RING : BL_HEARD_NONE;
	bl_rows_free(rows);
	return BIZLOCK_OK;
}

int bl_bell_sleep(struct bl_session *s, int64_t ms, int wake_fd, enum bl_heard *ret,
                  struct bl_err *err)
{
	enum bl_ready ready;

	if (bl_session_post(s, err) != BIZLOCK_OK)
		return err->code;
	ready = bl_session_poll(s, wake_fd, bl_deadline_in_ms(ms + LATE_MS));
	if (ready == BL_READY_ANSWER)
		return read_ring(s, ret, err);
	/* An answer may still come: nobody must read it as the answer to another statement. */
	if (ready == BL_READY_WAKE)
		bl_session_leave(s);
	s->gone = true;
	*ret = ready == BL_READY_WAKE ? BL_HEARD_WAKE : BL_HEARD_NONE;
	return BIZLOCK_OK;
}

int bl_bell_wait(struct bl_session *s, const char *bell, int64_t ms, int wake_fd,
                 enum bl_heard *ret, struct bl_err *err)
{
	bl_buf_reset(&s->text);
	bl_sql_wait_bell(s->sql, &s->text, bell, ms > 0 ? ms : 1); /* 0 is no limit to MySQL */
	return bl_bell_sleep(s, ms, wake_fd, ret, err);
}

/* With a name nobody else has: the answer must not depend on other clients. */
int bl_bell_try(struct bl_session *s, struct bl_err *err)
{
	uint64_t number = 0;
	struct bl_rows *rows;
	MYSQL_ROW row;
	char name[BL_BELL_MAX + 1], text[3 * BL_BELL_MAX + 96];
	int rc;

	if (!bl_random_bytes(&number, sizeof(number)))
		return bl_err_set(err, BIZLOCK_UNSUPPORTED, "the kernel gives no random numbers");
	snprintf(name, sizeof(name), "bizlock:probe:%" PRIx64, number);
	snprintf(text, sizeof(text),
	         "SELECT GET_LOCK('%s', 0), IS_USED_LOCK('%s'), RELEASE_LOCK('%s')", name, name,
	         name);
	rc = bl_session_query(s, text, 3, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	if (!row || !row[0] || strcmp(row[0], "1") != 0 || !row[1] || !row[2])
		rc = bl_err_set(err, BIZLOCK_DB, "a free name was not given");
	bl_rows_free(rows);
	return rc;
}
