/* Where options come from besides bizlock_set(): environment and option files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/optfile.h"
#include "client/client.h"

static int from_environment(struct bl_config *config, struct bl_err *err)
{
	for (int i = 0; i < BL_OPT_COUNT; i++) {
		const char *option = bl_option_name((enum bl_option)i), *value;
		char name[64] = "BIZLOCK_";
		size_t len = strlen(name);

		for (size_t j = 0; option[j] && len < sizeof(name) - 1; j++)
			name[len++] = option[j] == '_' ? '_' : (char)(option[j] - 'a' + 'A');
		name[len] = '\0';
		value = getenv(name);
		if (value && bl_config_set(config, option, value, BL_FROM_ENV, err) != BIZLOCK_OK)
			return err->code;
	}
	return BIZLOCK_OK;
}

/* [client] is shared with programs of all kinds: what is not ours is theirs. In
 * our own group an unknown name is a mistake worth hearing about. */
static int from_entry(void *arg, const char *group, const char *key, const char *value,
                      struct bl_err *err)
{
	bool shared = strcmp(group, "client") == 0;

	if (shared && (!bl_config_known(key) || !value))
		return BIZLOCK_OK;
	return bl_config_set(arg, key, value, shared ? BL_FROM_CLIENT_GROUP : BL_FROM_OWN_GROUP,
	                     err);
}

static int from_files(struct bl_config *config, struct bl_err *err)
{
	/* Copied: the entries read may replace the option itself. */
	char *own_group = strdup(config->defaults_group);
	const char *groups[] = {"client", own_group, NULL};
	const char *home = getenv("HOME");
	char in_home[4096] = "";
	const char *files[] = {"/etc/my.cnf", "/etc/mysql/my.cnf", in_home};
	int rc = BIZLOCK_OK;

	if (!own_group)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (home && *home)
		snprintf(in_home, sizeof(in_home), "%s/.my.cnf", home);
	if (config->defaults_file) {
		rc = bl_optfile_read(config->defaults_file, true, groups, from_entry, config, err);
	} else {
		for (size_t i = 0; rc == BIZLOCK_OK && i < 3 && *files[i]; i++)
			rc = bl_optfile_read(files[i], false, groups, from_entry, config, err);
	}
	free(own_group);
	return rc;
}

int bl_sources_read(struct bl_config *config, struct bl_err *err)
{
	int rc = from_environment(config, err);

	if (rc == BIZLOCK_OK)
		rc = from_files(config, err);
	if (rc == BIZLOCK_OK && !config->database)
		rc = bl_err_set(err, BIZLOCK_INVALID,
		                "option database: not given; it names where the tables are");
	return rc;
}
