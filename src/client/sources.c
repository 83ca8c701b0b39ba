/* Of values from several sources, that of the higher source wins (core/config.h), whatever is read
 * first. */
#include "client/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/optfile.h"
#include "core/tls.h"

#define GROUP_MAX 256 /* of a group's name, with its end */

static int from_environment(struct bl_config *config, struct bl_err *err)
{
	for (int i = 0; i < BL_OPT_COUNT; i++) {
		const char *option = bl_option_name((enum bl_option)i), *value;
		char name[64] = "BIZLOCK_";
		size_t len = strlen(name);

		for (size_t j = 0; option[j] && len < sizeof(name) - 1; j++)
			name[len++] = option[j] == '_' ? '_' : (char)(option[j] - 'a' + 'A');
		name[len] = '\0';
		value = secure_getenv(name);
		if (value && bl_config_set(config, option, value, BL_FROM_ENV, err) != BIZLOCK_OK)
			return err->code;
	}
	return BIZLOCK_OK;
}

/* The groups that are read; those with the suffix are "" when there is none. */
struct groups {
	struct bl_config *config;
	struct bl_tls_words *tls;
	char client[GROUP_MAX], own[GROUP_MAX], client_suffix[GROUP_MAX], own_suffix[GROUP_MAX];
};

static enum bl_source source_of(const struct groups *g, const char *group)
{
	if (strcmp(group, g->client_suffix) == 0)
		return BL_FROM_CLIENT_SUFFIX;
	if (strcmp(group, g->own_suffix) == 0)
		return BL_FROM_OWN_SUFFIX;
	return strcmp(group, g->client) == 0 ? BL_FROM_CLIENT_GROUP : BL_FROM_OWN_GROUP;
}

/* [client] is shared with programs of all kinds: names that are not ours are ignored there, except
 * those about TLS. In our own group an unknown name is a mistake, and refused. */
static int from_entry(void *arg, const char *group, const char *key, const char *value,
                      struct bl_err *err)
{
	const struct groups *g = arg;
	enum bl_source source = source_of(g, group);
	bool shared = source == BL_FROM_CLIENT_GROUP || source == BL_FROM_CLIENT_SUFFIX;

	if (bl_tls_about(key))
		return bl_tls_take(g->tls, g->config, key, value, source, err);
	if (shared && (!bl_config_known(key) || !value))
		return BIZLOCK_OK;
	return bl_config_set(g->config, key, value, source, err);
}

/* Copies the names: an entry that is read may replace the options they come from. */
static int name_groups(struct groups *ret, struct bl_config *config, struct bl_tls_words *tls,
                       struct bl_err *err)
{
	const char *own = config->defaults_group, *suffix = config->defaults_group_suffix;

	*ret = (struct groups){config, tls, "client", "", "", ""};
	if (strlen(own) + strlen(suffix) + strlen(ret->client) >= GROUP_MAX)
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "options defaults_group and defaults_group_suffix: longer than "
		                  "%d bytes",
		                  GROUP_MAX - 1);
	snprintf(ret->own, GROUP_MAX, "%s", own);
	if (*suffix) {
		snprintf(ret->client_suffix, GROUP_MAX, "client%s", suffix);
		snprintf(ret->own_suffix, GROUP_MAX, "%s%s", own, suffix);
	}
	return BIZLOCK_OK;
}

/* "" and /dev/null (as in `mysql --defaults-file=/dev/null`) mean no file at all. */
static int from_file(const char *path, const char *const *names, struct groups *g,
                     struct bl_err *err)
{
	if (!*path || strcmp(path, "/dev/null") == 0)
		return BIZLOCK_OK;
	return bl_optfile_read(path, true, names, from_entry, g, err);
}

static int from_files(struct bl_config *config, struct bl_tls_words *tls, struct bl_err *err)
{
	struct groups g;
	const char *names[] = {g.client, g.own, g.client_suffix, g.own_suffix, NULL};
	const char *home = secure_getenv("HOME");
	char in_home[4096] = "";
	const char *files[] = {"/etc/my.cnf", "/etc/mysql/my.cnf", in_home};
	int rc = name_groups(&g, config, tls, err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (!*g.own_suffix)
		names[2] = NULL; /* else "[]" would be ours */
	if (home && *home)
		snprintf(in_home, sizeof(in_home), "%s/.my.cnf", home);
	if (config->defaults_file)
		return from_file(config->defaults_file, names, &g, err);
	for (size_t i = 0; rc == BIZLOCK_OK && i < 3 && *files[i]; i++)
		rc = bl_optfile_read(files[i], false, names, from_entry, &g, err);
	return rc;
}

static int read_sources(struct bl_config *config, struct bl_err *err)
{
	struct bl_tls_words tls = {0};
	int rc = from_environment(config, err);

	if (rc == BIZLOCK_OK)
		rc = from_files(config, &tls, err);
	if (rc == BIZLOCK_OK)
		rc = bl_tls_apply(&tls, config, err);
	if (rc == BIZLOCK_OK && !config->database)
		rc = bl_err_set(err, BIZLOCK_INVALID,
		                "option database: not given; it names where the tables are");
	return rc;
}

/* Options from environment and files go into a copy: bizlock_set() may be called again after a
 * failed open, and by another thread meanwhile. */
int bl_client_config(struct bizlock *b, struct bl_config *ret, struct bl_err *err)
{
	struct bl_config config;
	int rc;

	memset(&config, 0, sizeof(config));
	bl_lock(b);
	rc = bl_config_copy(&config, b->state >= BL_CLIENT_OPEN ? &b->config : &b->set, err);
	bl_unlock(b);
	if (rc == BIZLOCK_OK)
		rc = read_sources(&config, err);
	if (rc == BIZLOCK_OK)
		*ret = config;
	else
		bl_config_free(&config);
	return rc;
}

int bl_client_password(struct bizlock *b, const char *value, struct bl_err *err)
{
	int rc;

	bl_lock(b);
	rc = bl_config_set(&b->config, bl_option_name(BL_OPT_PASSWORD), value, BL_FROM_SET, err);
	if (rc == BIZLOCK_OK)
		rc = bl_failover_password(b->failover, value, err);
	bl_unlock(b);
	return rc;
}

void bl_client_reread_password(void *client)
{
	struct bizlock *b = client;
	struct bl_config config;
	enum bl_source source;
	struct bl_err ignored;

	bl_lock(b);
	source = b->config.source[BL_OPT_PASSWORD];
	bl_unlock(b);
	if (source == BL_FROM_ENV || source == BL_FROM_SET)
		return;
	if (bl_client_config(b, &config, &ignored) != BIZLOCK_OK)
		return;
	bl_lock(b);
	if (b->config.source[BL_OPT_PASSWORD] ==
	    source) /* bizlock_set() was not called meanwhile */
		bl_failover_password(b->failover, config.password, &ignored);
	bl_unlock(b);
	bl_config_free(&config);
}
