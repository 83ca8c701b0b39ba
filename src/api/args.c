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
#define OLDER_THAN_MAX_MS INT64_C(3153600000000) /* 100 years */
#define BATCH_MAX 10000u
#define SIZE_MAX_SANE 4096u /* a size beyond this is a struct nobody initialised */

/* A struct of the caller's that begins with its size. */
struct kind {
	const char *name;
	size_t first; /* its size in 1.0, up to its last member there: none is smaller */
	size_t known; /* its size here */
};

#define KIND(type, last_in_1_0)                                                                    \
	{                                                                                          \
#type, offsetof(type, last_in_1_0) + sizeof(((type *)NULL)->last_in_1_0),          \
		        sizeof(type)                                                               \
	}

static const struct kind acquire_opts = KIND(bizlock_acquire_opts, reserved);
static const struct kind a_grant = KIND(bizlock_grant, slot);
static const struct kind numbers = KIND(bizlock_numbers, renew_fenced);
static const struct kind reap_opts = KIND(bizlock_reap_opts, arg);
static const struct kind reap_result = KIND(bizlock_reap_result, passed_over);
static const struct kind run_result = KIND(bizlock_run_result, reserved);

static int check_size(const struct kind *kind, size_t size, struct bl_err *err)
{
	if (size >= kind->first && size <= SIZE_MAX_SANE)
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_INVALID, "%s.size is %zu: set it to sizeof(%s), %zu or more",
	                  kind->name, size, kind->name, kind->first);
}

/* *ret has the defaults, which an older program's struct leaves as they are where it ends. A newer
 * program may have fields that this library does not know: it must leave them zero. */
static int take_struct(const struct kind *kind, const void *given, void *ret, struct bl_err *err)
{
	const unsigned char *bytes = given;
	size_t size;
	int rc;

	memcpy(&size, given, sizeof(size));
	rc = check_size(kind, size, err);
	for (size_t i = kind->known; rc == BIZLOCK_OK && i < size; i++)
		if (bytes[i] != 0)
			return bl_err_set(err, BIZLOCK_INVALID,
			                  "%s.size: this library knows %zu bytes, and byte %zu is "
			                  "not zero",
			                  kind->name, kind->known, i);
	if (rc == BIZLOCK_OK)
		memcpy(ret, given, size < kind->known ? size : kind->known);
	return rc;
}

/* A later version may give the member a meaning, and 0 must then mean what it means now. */
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

int bl_args_acquire(const bizlock_acquire_opts *opts, const bizlock_grant *ret,
                    bizlock_acquire_opts *ret_opts, struct bl_err *err)
{
	bizlock_acquire_opts o = BIZLOCK_ACQUIRE_OPTS_INIT;
	int rc = opts ? take_struct(&acquire_opts, opts, &o, err) : BIZLOCK_OK;

	if (rc == BIZLOCK_OK)
		rc = check_values(&o, err);
	if (rc == BIZLOCK_OK)
		rc = check_limit(&o, err);
	if (rc == BIZLOCK_OK)
		rc = check_reserved(o.reserved, err);
	if (rc == BIZLOCK_OK && ret)
		rc = check_size(&a_grant, ret->size, err);
	if (rc == BIZLOCK_OK)
		*ret_opts = o;
	return rc;
}

int bl_args_grant(const bizlock_grant *ret, struct bl_err *err)
{
	int rc = bl_args_given(ret, "ret", err);

	return rc == BIZLOCK_OK ? check_size(&a_grant, ret->size, err) : rc;
}

int bl_args_numbers(const bizlock_numbers *ret, struct bl_err *err)
{
	int rc = bl_args_given(ret, "ret", err);

	return rc == BIZLOCK_OK ? check_size(&numbers, ret->size, err) : rc;
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
	int rc = opts ? take_struct(&reap_opts, opts, &o, err) : BIZLOCK_OK;

	if (rc == BIZLOCK_OK)
		rc = check_reap(&o, err);
	if (rc == BIZLOCK_OK && ret)
		rc = check_size(&reap_result, ret->size, err);
	if (rc == BIZLOCK_OK)
		*ret_opts = o;
	return rc;
}

static int check_result(const bizlock_run_result *result, struct bl_err *err)
{
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

int bl_args_result(const bizlock_run_result *result, bizlock_run_result *ret, struct bl_err *err)
{
	bizlock_run_result r = BIZLOCK_RUN_RESULT_INIT;
	int rc = bl_args_given(result, "result", err);

	if (rc == BIZLOCK_OK)
		rc = take_struct(&run_result, result, &r, err);
	if (rc == BIZLOCK_OK)
		rc = check_result(&r, err);
	if (rc == BIZLOCK_OK)
		*ret = r;
	return rc;
}

void bl_args_give(void *ret, const void *known, size_t known_size)
{
	size_t size;

	memcpy(&size, ret, sizeof(size));
	memset(ret, 0, size);
	memcpy(ret, known, size < known_size ? size : known_size);
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
	uint32_t most_ms = bl_config_max_hold_ms(config, opts->max_hold_ms);
	uint32_t most_lease_ms = most_ms ? bl_lease_for(most_ms * BL_NS_PER_MS) : lease_ms;

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
