#include "api/args.h"

#include <inttypes.h>
#include <string.h>

#include "core/key.h"
#include "core/lease.h"
#include "store/row/take.h"

#define KNOWN_FLAGS                                                                                \
	(BIZLOCK_NO_RENEW | BIZLOCK_RENEW | BIZLOCK_LOCAL_REENTRY | BIZLOCK_NO_QUEUE |             \
	 BIZLOCK_SHARED)
#define BOTH_RENEWALS (BIZLOCK_NO_RENEW | BIZLOCK_RENEW)
/* The sizes of this struct in earlier versions. */
#define OPTS_SIZE_FIRST offsetof(bizlock_acquire_opts, min_hold_ms)
#define OPTS_SIZE_SECOND offsetof(bizlock_acquire_opts, limit)
#define OLDER_THAN_MAX_MS INT64_C(3153600000000) /* 100 years */
#define BATCH_MAX 10000u
#define SIZE_MAX_SANE 4096u /* a size beyond this is a struct nobody initialised */

static int check_size(const char *name, size_t size, size_t known, struct bl_err *err)
{
	if (size >= known && size <= SIZE_MAX_SANE)
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_INVALID, "%s.size is %zu: set it to sizeof(%s), %zu or more",
	                  name, size, name, known);
}

/* A newer program may have fields that this library does not know: it must leave them zero. */
static int check_struct(const char *name, const void *opts, size_t known, struct bl_err *err)
{
	const unsigned char *bytes = opts;
	size_t size;
	int rc;

	memcpy(&size, opts, sizeof(size));
	rc = check_size(name, size, known, err);
	for (size_t i = known; rc == BIZLOCK_OK && i < size; i++)
		if (bytes[i] != 0)
			return bl_err_set(err, BIZLOCK_INVALID,
			                  "%s.size: this library knows %zu bytes, and byte %zu is "
			                  "not zero",
			                  name, known, i);
	return rc;
}

/* It is there for a later version, which may give it a meaning: 0 must then mean what it does now.
 */
static int check_reserved(uint32_t reserved, struct bl_err *err)
{
	if (reserved == 0)
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_INVALID, "reserved is %" PRIu32 ": must be 0", reserved);
}

int bl_args_given(bool given, const char *name, struct bl_err *err)
{
	return given ? BIZLOCK_OK : bl_err_set(err, BIZLOCK_INVALID, "%s is NULL", name);
}

int bl_args_keys(const bizlock_key *keys, size_t n, struct bl_err *err)
{
	if (n < 1 || n > BL_TAKE_MAX)
		return bl_err_set(err, BIZLOCK_INVALID, "n is %zu: 1 to %d keys", n, BL_TAKE_MAX);
	return bl_args_given(keys, "keys", err);
}

int bl_args_lease(uint32_t lease_ms, struct bl_err *err)
{
	if (lease_ms == 0 || (lease_ms >= BIZLOCK_LEASE_MIN_MS && lease_ms <= BIZLOCK_LEASE_MAX_MS))
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_INVALID, "lease_ms is %" PRIu32 ": must be 0 or %u to %u",
	                  lease_ms, BIZLOCK_LEASE_MIN_MS, BIZLOCK_LEASE_MAX_MS);
}

static int check_values(const bizlock_acquire_opts *opts, struct bl_err *err)
{
	int rc = bl_args_lease(opts->lease_ms, err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (opts->wait_ms < -1)
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "wait_ms is %" PRId64 ": must be -1 (for ever), 0 or more",
		                  opts->wait_ms);
	if (opts->flags & ~KNOWN_FLAGS)
		return bl_err_set(err, BIZLOCK_INVALID, "flags has unknown bits: 0x%" PRIx32,
		                  opts->flags & ~KNOWN_FLAGS);
	if ((opts->flags & BOTH_RENEWALS) == BOTH_RENEWALS)
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "flags: BIZLOCK_RENEW with BIZLOCK_NO_RENEW");
	return bl_note_check(opts->note, err);
}

static int check_limit(const bizlock_acquire_opts *opts, struct bl_err *err)
{
	if (opts->limit > BIZLOCK_LIMIT_MAX)
		return bl_err_set(err, BIZLOCK_INVALID, "limit is %" PRIu32 ": must be 0 to %u",
		                  opts->limit, BIZLOCK_LIMIT_MAX);
	if (!opts->limit || opts->flags & BIZLOCK_SHARED)
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_INVALID, "limit is %" PRIu32 ": of use with BIZLOCK_SHARED",
	                  opts->limit);
}

int bl_args_alone(const bizlock_acquire_opts *opts, const char *what, struct bl_err *err)
{
	if (!(opts->flags & BIZLOCK_SHARED))
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_INVALID, "flags: %s with BIZLOCK_SHARED", what);
}

static int check_opts(const bizlock_acquire_opts *opts, struct bl_err *err)
{
	bool earlier = opts->size == OPTS_SIZE_FIRST || opts->size == OPTS_SIZE_SECOND;
	int rc = earlier ? BIZLOCK_OK
	                 : check_struct("bizlock_acquire_opts", opts, sizeof(*opts), err);

	return rc == BIZLOCK_OK ? check_values(opts, err) : rc;
}

int bl_args_acquire(const bizlock_acquire_opts *opts, const bizlock_grant *ret,
                    bizlock_acquire_opts *ret_opts, struct bl_err *err)
{
	static const bizlock_acquire_opts defaults = BIZLOCK_ACQUIRE_OPTS_INIT;
	int rc = opts ? check_opts(opts, err) : BIZLOCK_OK;

	if (rc != BIZLOCK_OK)
		return rc;
	*ret_opts = opts && opts->size >= sizeof(*opts) ? *opts : defaults;
	if (opts && opts->size < sizeof(*opts))
		memcpy(ret_opts, opts, opts->size);
	rc = check_limit(ret_opts, err);
	if (rc == BIZLOCK_OK)
		rc = check_reserved(ret_opts->reserved, err);
	return rc == BIZLOCK_OK && ret ? check_size("bizlock_grant", ret->size, sizeof(*ret), err)
	                               : rc;
}

int bl_args_grant(const bizlock_grant *ret, struct bl_err *err)
{
	int rc = bl_args_given(ret, "ret", err);

	return rc == BIZLOCK_OK ? check_size("bizlock_grant", ret->size, sizeof(*ret), err) : rc;
}

int bl_args_numbers(const bizlock_numbers *ret, struct bl_err *err)
{
	int rc = bl_args_given(ret, "ret", err);

	return rc == BIZLOCK_OK ? check_size("bizlock_numbers", ret->size, sizeof(*ret), err) : rc;
}

static int check_reap(const bizlock_reap_opts *opts, struct bl_err *err)
{
	if (opts->older_than_ms < 0 || opts->older_than_ms > OLDER_THAN_MAX_MS)
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "older_than_ms is %" PRId64 ": must be 0 to %" PRId64,
		                  opts->older_than_ms, OLDER_THAN_MAX_MS);
	if (opts->batch < 1 || opts->batch > BATCH_MAX)
		return bl_err_set(err, BIZLOCK_INVALID, "batch is %" PRIu32 ": must be 1 to %u",
		                  opts->batch, BATCH_MAX);
	if (opts->flags & ~BIZLOCK_REAP_DRY_RUN)
		return bl_err_set(err, BIZLOCK_INVALID, "flags has unknown bits: 0x%" PRIx32,
		                  opts->flags & ~BIZLOCK_REAP_DRY_RUN);
	return check_reserved(opts->reserved, err);
}

int bl_args_reap(const bizlock_reap_opts *opts, const bizlock_reap_result *ret,
                 bizlock_reap_opts *ret_opts, struct bl_err *err)
{
	bizlock_reap_opts o = BIZLOCK_REAP_OPTS_INIT;
	int rc = opts ? check_struct("bizlock_reap_opts", opts, sizeof(*opts), err) : BIZLOCK_OK;

	if (rc == BIZLOCK_OK && opts)
		rc = check_reap(opts, err);
	if (rc == BIZLOCK_OK && ret)
		rc = check_size("bizlock_reap_result", ret->size, sizeof(*ret), err);
	if (rc == BIZLOCK_OK)
		*ret_opts = opts ? *opts : o;
	return rc;
}

int bl_args_result(const bizlock_run_result *result, struct bl_err *err)
{
	int rc = bl_args_given(result, "result", err);

	if (rc == BIZLOCK_OK)
		rc = check_struct("bizlock_run_result", result, sizeof(*result), err);
	if (rc != BIZLOCK_OK)
		return rc;
	if (result->outcome < BIZLOCK_RUN_DONE || result->outcome > BIZLOCK_RUN_LOST)
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "outcome is %" PRIu32 ": must be BIZLOCK_RUN_DONE, "
		                  "BIZLOCK_RUN_FAILED or BIZLOCK_RUN_LOST",
		                  result->outcome);
	if (result->exit_code < -1)
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "exit_code is %" PRId32 ": must be -1 (none), 0 or more",
		                  result->exit_code);
	return check_reserved(result->reserved, err);
}

void bl_args_give(void *ret, const void *known, size_t known_size)
{
	size_t size;

	memcpy(&size, ret, sizeof(size));
	memset(ret, 0, size);
	memcpy(ret, known, known_size);
	memcpy(ret, &size, sizeof(size));
}

void bl_args_grants(const bizlock_grant *grants, size_t n, bizlock_grant *ret)
{
	size_t size = ret->size;

	for (size_t i = 0; i < n; i++) {
		bizlock_grant *one = (bizlock_grant *)(void *)((char *)ret + i * size);

		one->size = size;
		bl_args_give(one, &grants[i], sizeof(grants[i]));
	}
}

/* A hold whose max_hold_ms is shorter than its lease gets a shorter lease. */
struct bl_request bl_args_request(const bizlock_acquire_opts *opts, const struct bl_config *config)
{
	uint32_t lease_ms = opts->lease_ms ? opts->lease_ms : config->lease_ms;
	uint32_t most_ms = opts->max_hold_ms ? opts->max_hold_ms : config->max_hold_ms;
	uint32_t most_lease_ms;

	if (most_ms == UINT32_MAX)
		most_ms = 0;
	if (most_ms && most_ms < BIZLOCK_LEASE_MIN_MS)
		most_ms = BIZLOCK_LEASE_MIN_MS;
	most_lease_ms = most_ms ? bl_lease_for(most_ms * BL_NS_PER_MS) : lease_ms;
	return (struct bl_request){
	        .lease_ms = lease_ms < most_lease_ms ? lease_ms : most_lease_ms,
	        .min_hold_ms = opts->min_hold_ms,
	        .max_hold_ms = most_ms,
	        .own_max_hold = opts->max_hold_ms > 0 && most_ms > 0,
	        .flags = opts->flags,
	        .limit = opts->limit,
	        .note = opts->note,
	        .once = opts->wait_ms == 0,
	};
}

int bl_args_text(const struct bl_buf *text, char *ret, size_t size, size_t *ret_len,
                 struct bl_err *err)
{
	if (text->failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (ret_len)
		*ret_len = text->len;
	if (text->len >= size)
		return bl_err_set(err, BIZLOCK_LIMIT, "size is %zu: %zu is needed", size,
		                  text->len + 1);
	memcpy(ret, text->data, text->len + 1);
	return BIZLOCK_OK;
}
