#include "core/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "core/hosts.h"
#include "core/spelling.h"

enum kind { TEXT, HOSTS, PREFIX, LIST, DIRECTORY, NUMBER, CHOICE }; /* the last two are uint32_t */

struct option {
	const char *name;
	size_t offset; /* in struct bl_config */
	enum kind kind;
	uint32_t min, max;   /* NUMBER: both included */
	const char *initial; /* NULL: not given */
	const char *const
	        *words; /* CHOICE: the value is the index. LIST: the allowed parts; NULL: names */
};

/* An option has the name of its field. */
#define FIELD(name) #name, offsetof(struct bl_config, name)

static const char *const ssl_modes[] = {"preferred", "disabled",        "required",
                                        "verify_ca", "verify_identity", NULL};
static const char *const queue_modes[] = {"off", "auto", NULL};
static const char *const tls_versions[] = {"TLSv1.2", "TLSv1.3", NULL};
static const char *const switches[] = {"off", "on", NULL};

/* Order and names as in bizlock.h, by bizlock_set(). */
static const struct option options[BL_OPT_COUNT] = {
        [BL_OPT_HOST] = {FIELD(host), HOSTS, 0, 0, NULL, NULL},
        [BL_OPT_PORT] = {FIELD(port), NUMBER, 1, 65535, NULL, NULL},
        [BL_OPT_SOCKET] = {FIELD(socket), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_USER] = {FIELD(user), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_PASSWORD] = {FIELD(password), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_DATABASE] = {FIELD(database), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_DEFAULTS_FILE] = {FIELD(defaults_file), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_DEFAULTS_GROUP] = {FIELD(defaults_group), TEXT, 0, 0, "bizlock", NULL},
        [BL_OPT_DEFAULTS_GROUP_SUFFIX] = {FIELD(defaults_group_suffix), TEXT, 0, 0, "", NULL},
        [BL_OPT_SSL_MODE] = {FIELD(ssl_mode), CHOICE, 0, 0, "preferred", ssl_modes},
        [BL_OPT_SSL_CA] = {FIELD(ssl_ca), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_SSL_CERT] = {FIELD(ssl_cert), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_SSL_KEY] = {FIELD(ssl_key), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_SSL_CAPATH] = {FIELD(ssl_capath), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_SSL_CRL] = {FIELD(ssl_crl), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_SSL_CRLPATH] = {FIELD(ssl_crlpath), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_SSL_CIPHER] = {FIELD(ssl_cipher), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_SSL_FP] = {FIELD(ssl_fp), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_SSL_FPLIST] = {FIELD(ssl_fplist), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_TLS_VERSION] = {FIELD(tls_version), LIST, 0, 0, NULL, tls_versions},
        [BL_OPT_TLS_CIPHERSUITES] = {FIELD(tls_ciphersuites), TEXT, 0, 0, NULL, NULL},
        [BL_OPT_AUTH_PLUGINS] = {FIELD(auth_plugins), LIST, 0, 0, "", NULL},
        [BL_OPT_TABLE_PREFIX] = {FIELD(table_prefix), PREFIX, 0, 0, "", NULL},
        [BL_OPT_LEASE_MS] = {FIELD(lease_ms), NUMBER, BIZLOCK_LEASE_MIN_MS, BIZLOCK_LEASE_MAX_MS,
                             "30000", NULL},
        [BL_OPT_RENEW] = {FIELD(renew), CHOICE, 0, 0, "on", switches},
        [BL_OPT_MAX_HOLD_MS] = {FIELD(max_hold_ms), NUMBER, 0, UINT32_MAX, "0", NULL},
        [BL_OPT_RELEASE_ON_CLOSE] = {FIELD(release_on_close), CHOICE, 0, 0, "on", switches},
        [BL_OPT_CONNECT_TIMEOUT_MS] = {FIELD(connect_timeout_ms), NUMBER, 1, 600000, "5000", NULL},
        [BL_OPT_OPEN_WAIT_MS] = {FIELD(open_wait_ms), NUMBER, 0, UINT32_MAX, "0", NULL},
        [BL_OPT_IO_TIMEOUT_MS] = {FIELD(io_timeout_ms), NUMBER, 1, 600000, "10000", NULL},
        [BL_OPT_MAX_CONNECTIONS] = {FIELD(max_connections), NUMBER, 1, 1000, "16", NULL},
        [BL_OPT_QUEUE] = {FIELD(queue), CHOICE, 0, 0, "auto", queue_modes},
        [BL_OPT_COMBINE] = {FIELD(combine), CHOICE, 0, 0, "on", switches},
        [BL_OPT_RUNTIME_DIR] = {FIELD(runtime_dir), DIRECTORY, 0, 0, NULL, NULL},
};

#define NAME_MAX_LEN 32 /* longer than any option's name */
#define SHOWN_MAX 64
#define ANSWER_MIN_MS 2000

/* A value in a message: quoted, and short enough to leave room for the limits. */
struct shown {
	char text[SHOWN_MAX + sizeof("\"\"...")];
};

/* `value` is valid UTF-8, and is cut between characters. */
static struct shown show_value(const char *value)
{
	struct shown ret;
	size_t len = strnlen(value, SHOWN_MAX + 1);
	bool cut = len > SHOWN_MAX;

	while (len > SHOWN_MAX || (cut && ((unsigned char)value[len] & 0xc0) == 0x80))
		len--;
	snprintf(ret.text, sizeof(ret.text), "\"%.*s\"%s", (int)len, value, cut ? "..." : "");
	return ret;
}

static bool holds_text(const struct option *o)
{
	return o->kind < NUMBER;
}

static void *field_of(struct bl_config *c, const struct option *o)
{
	return (char *)c + o->offset;
}

static void free_text(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text)); /* it may be the password */
	free(text);
}

static const struct option *find_option(const char *name)
{
	for (size_t i = 0; name && i < BL_OPT_COUNT; i++)
		if (strcmp(options[i].name, name) == 0)
			return &options[i];
	return NULL;
}

static const char *name_at(size_t i)
{
	return options[i].name;
}

static void suggest(const char *name, struct bl_err *err)
{
	const char *near = bl_nearest(name, name_at, BL_OPT_COUNT);

	bl_err_set(err, BIZLOCK_INVALID, "unknown option %s%s%s%s", show_value(name).text,
	           near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

static void unknown(const char *name, struct bl_err *err)
{
	if (!name)
		bl_err_set(err, BIZLOCK_INVALID, "the option's name is NULL");
	else if (!bl_utf8_valid(name, strlen(name)))
		bl_err_set(err, BIZLOCK_INVALID, "the option's name is not valid UTF-8");
	else
		suggest(name, err);
}

static int check_number(const struct option *o, const char *value, uint32_t *ret,
                        struct bl_err *err)
{
	size_t digits = strspn(value, "0123456789");
	uint64_t number = 0;

	if (digits == 0 || value[digits])
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "option %s: %s is not a whole number (%u to %u)", o->name,
		                  show_value(value).text, o->min, o->max);
	for (size_t i = 0; i < digits && number <= o->max; i++)
		number = 10 * number + (uint64_t)(value[i] - '0');
	if (number < o->min || number > o->max)
		return bl_err_set(err, BIZLOCK_INVALID, "option %s: %s is out of range %u to %u",
		                  o->name, show_value(value).text, o->min, o->max);
	*ret = (uint32_t)number;
	return BIZLOCK_OK;
}

/* Ignores case, and '-' is '_': MySQL's option files write VERIFY-CA for verify_ca. */
static bool same_word(const char *value, const char *word)
{
	for (; *value && *word; value++, word++) {
		char c = *value == '-' ? '_' : *value;

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (c != *word)
			return false;
	}
	return *value == *word;
}

static int check_choice(const struct option *o, const char *value, uint32_t *ret,
                        struct bl_err *err)
{
	const char *const *words = o->words;

	for (uint32_t i = 0; words[i]; i++) {
		if (same_word(value, words[i])) {
			*ret = i;
			return BIZLOCK_OK;
		}
	}
	bl_err_set(err, BIZLOCK_INVALID, "option %s: %s is none of %s", o->name,
	           show_value(value).text, words[0]);
	for (size_t i = 1; words[i]; i++)
		bl_err_set(err, BIZLOCK_INVALID, "%s, %s", err->msg, words[i]);
	return BIZLOCK_INVALID;
}

/* Only characters that need no quoting anywhere, and short enough for a table's name. */
static int check_prefix(const struct option *o, const char *value, struct bl_err *err)
{
	size_t len = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                           "0123456789_");

	if (!value[len] && len <= BL_PREFIX_MAX)
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_INVALID, "option %s: %s is not 0 to %d of [A-Za-z0-9_]",
	                  o->name, show_value(value).text, BL_PREFIX_MAX);
}

/* May the part stand in the list of this option? */
static bool is_part(const struct option *o, const char *part, size_t len)
{
	if (!o->words)
		return len > 0 && strspn(part, "abcdefghijklmnopqrstuvwxyz0123456789_") >= len;
	for (const char *const *word = o->words; *word; word++)
		if (strlen(*word) == len && strncmp(*word, part, len) == 0)
			return true;
	return false;
}

/* Parts with commas between. A connector would skip parts that it does not know. */
static int check_list(const struct option *o, const char *value, struct bl_err *err)
{
	const char *at = value;
	size_t len;

	if (!*value && !o->words)
		return BIZLOCK_OK;
	do {
		len = strcspn(at, ",");
		if (!is_part(o, at, len) || strlen(value) > BL_LIST_MAX)
			return bl_err_set(err, BIZLOCK_INVALID, "option %s: %s is not a list of %s",
			                  o->name, show_value(value).text,
			                  o->words ? "TLSv1.2, TLSv1.3" : "names: a,b");
		at += len;
	} while (*at++ == ',');
	return BIZLOCK_OK;
}

/* A relative name would be another directory after chdir(). */
static int check_directory(const struct option *o, const char *value, struct bl_err *err)
{
	if (!*value || *value == '/')
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_INVALID, "option %s: %s does not begin with a '/'", o->name,
	                  show_value(value).text);
}

static int check_value(const struct option *o, const char *value, uint32_t *number,
                       struct bl_err *err)
{
	if (!value)
		return bl_err_set(err, BIZLOCK_INVALID, "option %s has no value", o->name);
	if (!bl_utf8_valid(value, strlen(value)))
		return bl_err_set(err, BIZLOCK_INVALID, "option %s is not valid UTF-8", o->name);
	switch (o->kind) {
	case TEXT:
		return BIZLOCK_OK;
	case HOSTS:
		return bl_hosts_check(value, err);
	case PREFIX:
		return check_prefix(o, value, err);
	case LIST:
		return check_list(o, value, err);
	case DIRECTORY:
		return check_directory(o, value, err);
	case NUMBER:
		return check_number(o, value, number, err);
	case CHOICE:
		break;
	}
	return check_choice(o, value, number, err);
}

static int store_text(char **field, const char *value, struct bl_err *err)
{
	char *copy = strdup(value);

	if (!copy)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	free_text(*field);
	*field = copy;
	return BIZLOCK_OK;
}

static int store(struct bl_config *c, const struct option *o, const char *value, uint32_t number,
                 struct bl_err *err)
{
	if (holds_text(o))
		return store_text(field_of(c, o), value, err);
	*(uint32_t *)field_of(c, o) = number;
	return BIZLOCK_OK;
}

/* Adds to the message where the value came from. */
static int add_source(const struct bl_config *c, const char *name, enum bl_source source,
                      struct bl_err *err)
{
	char upper[NAME_MAX_LEN] = "";

	for (size_t i = 0; name && name[i] && i < sizeof(upper) - 1; i++)
		upper[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
	switch (source) {
	case BL_FROM_DEFAULT:
		break;
	case BL_FROM_CLIENT_GROUP:
		return bl_err_set(err, err->code, "%s (from group [client])", err->msg);
	case BL_FROM_OWN_GROUP:
		return bl_err_set(err, err->code, "%s (from group [%s])", err->msg,
		                  c->defaults_group);
	case BL_FROM_CLIENT_SUFFIX:
		return bl_err_set(err, err->code, "%s (from group [client%s])", err->msg,
		                  c->defaults_group_suffix);
	case BL_FROM_OWN_SUFFIX:
		return bl_err_set(err, err->code, "%s (from group [%s%s])", err->msg,
		                  c->defaults_group, c->defaults_group_suffix);
	case BL_FROM_ENV:
		return bl_err_set(err, err->code, "%s (from environment%s%s)", err->msg,
		                  name ? " BIZLOCK_" : "", upper);
	case BL_FROM_SET:
		return bl_err_set(err, err->code, "%s (from bizlock_set)", err->msg);
	}
	return err->code;
}

int bl_config_set(struct bl_config *c, const char *option, const char *value, enum bl_source source,
                  struct bl_err *err)
{
	const struct option *o = find_option(option);
	uint32_t number = 0;
	int rc;

	if (!o) {
		unknown(option, err);
		return add_source(c, NULL, source, err);
	}
	rc = check_value(o, value, &number, err);
	if (rc != BIZLOCK_OK)
		return add_source(c, o->name, source, err);
	if (source < c->source[o - options])
		return BIZLOCK_OK;
	rc = store(c, o, value, number, err);
	if (rc == BIZLOCK_OK)
		c->source[o - options] = source;
	return rc;
}

int bl_config_init(struct bl_config *c, struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < BL_OPT_COUNT && rc == BIZLOCK_OK; i++)
		if (options[i].initial)
			rc = bl_config_set(c, options[i].name, options[i].initial, BL_FROM_DEFAULT,
			                   err);
	if (rc != BIZLOCK_OK)
		bl_config_free(c);
	return rc;
}

void bl_config_free(struct bl_config *c)
{
	for (size_t i = 0; i < BL_OPT_COUNT; i++)
		if (holds_text(&options[i]))
			free_text(*(char **)field_of(c, &options[i]));
	memset(c, 0, sizeof(*c));
}

int bl_config_copy(struct bl_config *ret, const struct bl_config *src, struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	*ret = *src;
	for (size_t i = 0; i < BL_OPT_COUNT; i++) {
		char **field, *text;

		if (!holds_text(&options[i]))
			continue;
		field = field_of(ret, &options[i]);
		text = *field;
		*field = NULL; /* never a pointer of src, even without memory */
		if (text && rc == BIZLOCK_OK)
			rc = store_text(field, text, err);
	}
	if (rc != BIZLOCK_OK)
		bl_config_free(ret);
	return rc;
}

bool bl_config_known(const char *option)
{
	return find_option(option) != NULL;
}

const char *bl_option_name(enum bl_option option)
{
	return options[option].name;
}

uint32_t bl_config_answer_ms(const struct bl_config *c)
{
	uint32_t several = c->lease_ms / 6 > ANSWER_MIN_MS ? c->lease_ms / 6 : ANSWER_MIN_MS;

	return bl_hosts_several(c->host) && several < c->io_timeout_ms ? several : c->io_timeout_ms;
}

uint32_t bl_config_max_hold_ms(const struct bl_config *c, uint32_t asked)
{
	uint32_t ms = asked ? asked : c->max_hold_ms;

	if (ms == 0 || ms == UINT32_MAX)
		return 0;
	return ms > BIZLOCK_LEASE_MIN_MS ? ms : BIZLOCK_LEASE_MIN_MS;
}

int64_t bl_config_connect_ns(const struct bl_config *c)
{
	return ((int64_t)c->connect_timeout_ms + 999) / 1000 * 1000000000;
}
