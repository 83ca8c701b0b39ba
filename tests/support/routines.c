#include "routines.h"

#include <bizlock_ops.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

void world_migrate_routines(const struct world *w)
{
	bizlock *b = client_new(w, NULL);

	must_work(b, bizlock_migrate(b), "migrate");
	must_work(b, bizlock_migrate_routines(b), "migrate_routines");
	bizlock_close(b);
}

static struct granted read_grant(MYSQL *db)
{
	char *text = db_text(db, "SELECT IFNULL(@fence, 0), @left_ms, @holder");
	struct granted ret = {0};

	if (sscanf(text, "%" SCNu64 "|%" SCNd64 "|%191[^\n]", &ret.fence, &ret.left_ms,
	           ret.holder) < 2)
		die("no grant: %s", text);
	free(text);
	return ret;
}

struct granted routine_try(MYSQL *db, bizlock_key key, const char *owner, int64_t lease_ms)
{
	db_run(db, "CALL biz_lock_try(%s, %s, '%s', %" PRId64 ", @fence, @holder, @left_ms)",
	       db_literal(key.biz_type), db_literal(key.biz_id), owner, lease_ms);
	return read_grant(db);
}

struct granted routine_wait(MYSQL *db, bizlock_key key, const char *owner, int64_t lease_ms,
                            int64_t wait_ms)
{
	int64_t end = now_ms() + wait_ms, left = wait_ms;
	struct granted ret;

	do {
		db_run(db, "CALL biz_lock_wait(%s, %s, %" PRId64 ")", db_literal(key.biz_type),
		       db_literal(key.biz_id), left);
		ret = routine_try(db, key, owner, lease_ms);
		left = end - now_ms();
	} while (!ret.fence && left > 0);
	return ret;
}

bool routine_renew(MYSQL *db, bizlock_key key, const char *owner, uint64_t fence, int64_t lease_ms)
{
	db_run(db, "CALL biz_lock_renew(%s, %s, '%s', %" PRIu64 ", %" PRId64 ", @ok)",
	       db_literal(key.biz_type), db_literal(key.biz_id), owner, fence, lease_ms);
	return db_number(db, "SELECT @ok") == 1;
}

bool routine_release(MYSQL *db, bizlock_key key, const char *owner, uint64_t fence)
{
	db_run(db, "CALL biz_lock_release(%s, %s, '%s', %" PRIu64 ", @ok)",
	       db_literal(key.biz_type), db_literal(key.biz_id), owner, fence);
	return db_number(db, "SELECT @ok") == 1;
}
