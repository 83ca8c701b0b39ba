/* The tables: applied and pending migrations, fences that are raised, routines, and who needs which
 * privilege. */
#include "client/admin/admin.h"

#include <stdlib.h>

#include "client/sources.h"
#include "store/hosts/failover.h"
#include "store/table/fences.h"
#include "store/table/routines.h"
#include "store/table/schema.h"

static int read_status(const struct bl_config *config, struct bl_applied *ret, struct bl_err *err)
{
	struct bl_session s;
	int rc = bl_failover_connect_once(config, false, &s, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_schema_status(&s, config->table_prefix, ret, err);
	bl_session_close(&s);
	return rc;
}

struct showing {
	int (*fn)(void *arg, const bizlock_migration *);
	void *arg;
	bool ended; /* fn wants no more */
};

static int show_migration(struct showing *to, const struct bl_migration *m,
                          const struct bl_applied *applied, const char *prefix, struct bl_err *err)
{
	struct bl_buf text = BL_BUF_INIT(1u << 20);
	bizlock_migration shown = {
	        .size = sizeof(shown),
	        .name = m->name,
	        .applied_at = applied->at,
	        .version = m->version,
	        .pending = applied->pending,
	};
	int rc = BIZLOCK_OK;

	bl_schema_text(m, prefix, &text);
	shown.sql = text.data;
	if (text.failed)
		rc = bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	else
		to->ended = to->fn(to->arg, &shown) != 0;
	bl_buf_free(&text);
	return rc;
}

/* If the tables need a newer library, shows the migrations, and then answers SCHEMA. */
static int show_migrations(struct showing *to, const struct bl_config *config, struct bl_err *err)
{
	struct bl_applied *applied = calloc(bl_migration_count, sizeof(*applied));
	struct bl_err mine;
	int rc, shown = BIZLOCK_OK;

	if (!applied)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = read_status(config, applied, err);
	if (rc == BIZLOCK_OK || rc == BIZLOCK_SCHEMA)
		for (size_t i = 0; shown == BIZLOCK_OK && !to->ended && i < bl_migration_count; i++)
			shown = show_migration(to, &bl_migrations[i], &applied[i],
			                       config->table_prefix, &mine);
	free(applied);
	if (shown == BIZLOCK_OK)
		return rc;
	*err = mine;
	return shown;
}

int bl_client_each_migration(struct bizlock *b, int (*fn)(void *arg, const bizlock_migration *),
                             void *arg, struct bl_err *err)
{
	struct showing to = {.fn = fn, .arg = arg};
	struct bl_config config;
	int rc = bl_client_config(b, &config, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = show_migrations(&to, &config, err);
	bl_config_free(&config);
	return rc;
}

typedef int table_work(struct bl_session *s, const char *prefix, void *arg, struct bl_err *err);

/* On a connection of its own, to a server that is not too old. */
static int work_on_tables(struct bizlock *b, table_work *work, void *arg, struct bl_err *err)
{
	struct bl_config config;
	struct bl_server server;
	struct bl_session s;
	int rc = bl_client_config(b, &config, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_failover_connect_once(&config, false, &s, err);
	if (rc == BIZLOCK_OK) {
		rc = bl_server_probe(&s, &server, err);
		if (rc == BIZLOCK_OK)
			rc = work(&s, config.table_prefix, arg, err);
		bl_session_close(&s);
	}
	bl_config_free(&config);
	return rc;
}

static int migrate(struct bl_session *s, const char *prefix, void *arg, struct bl_err *err)
{
	(void)arg;
	return bl_schema_migrate(s, prefix, err);
}

static int raise_fences(struct bl_session *s, const char *prefix, void *arg, struct bl_err *err)
{
	int rc = bl_schema_check(s, prefix, err);

	return rc == BIZLOCK_OK ? bl_fences_raise(s, prefix, arg, err) : rc;
}

/* Routines for tables that they do not know would take locks in another way than their clients. */
static int make_routines(struct bl_session *s, const char *prefix, void *arg, struct bl_err *err)
{
	int rc = bl_schema_check(s, prefix, err);

	(void)arg;
	return rc == BIZLOCK_OK ? bl_routines_make(s, prefix, err) : rc;
}

static int drop_routines(struct bl_session *s, const char *prefix, void *arg, struct bl_err *err)
{
	(void)arg;
	return bl_routines_drop(s, prefix, err);
}

int bl_client_migrate(struct bizlock *b, struct bl_err *err)
{
	return work_on_tables(b, migrate, NULL, err);
}

int bl_client_raise_fences(struct bizlock *b, uint64_t *ret, struct bl_err *err)
{
	return work_on_tables(b, raise_fences, ret, err);
}

int bl_client_migrate_routines(struct bizlock *b, struct bl_err *err)
{
	return work_on_tables(b, make_routines, NULL, err);
}

int bl_client_drop_routines(struct bizlock *b, struct bl_err *err)
{
	return work_on_tables(b, drop_routines, NULL, err);
}

int bl_client_grants(struct bizlock *b, const char *account, bool routines, struct bl_buf *ret,
                     struct bl_err *err)
{
	struct bl_config config;
	int rc = bl_client_config(b, &config, err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (routines)
		bl_routines_grant(ret, &config, account);
	for (size_t i = 0; !routines && i < BL_NEEDS; i++) {
		bl_grants_one(ret, &config, &bl_needs[i], account);
		bl_buf_adds(ret, ";\n");
	}
	bl_config_free(&config);
	return rc;
}
