#include "core/tls.h"

#include <string.h>
#include <strings.h>

/* A key without its prefix, and what the prefix means for a switch. */
struct key {
	const char *name; /* without the prefix */
	bool prefixed, off;
};

static bool skip_prefix(const char **name, const char *prefix)
{
	size_t len = strlen(prefix);

	if (strncmp(*name, prefix, len) != 0)
		return false;
	*name += len;
	return true;
}

static struct key read_key(const char *text)
{
	struct key key = {text, false, false};

	skip_prefix(&key.name, "loose_");
	key.off = skip_prefix(&key.name, "skip_") || skip_prefix(&key.name, "disable_");
	key.prefixed = key.off || skip_prefix(&key.name, "enable_");
	return key;
}

bool bl_tls_about(const char *key)
{
	const char *name = read_key(key).name;

	return skip_prefix(&name, "ssl") || skip_prefix(&name, "tls");
}

static struct bl_tls_switch *switch_of(struct bl_tls_words *words, const char *name)
{
	if (strcmp(name, "ssl") == 0 || strcmp(name, "ssl_enforce") == 0)
		return &words->ssl;
	return strcmp(name, "ssl_verify_server_cert") == 0 ? &words->verify : NULL;
}

static bool read_value(const char *value, bool *ret)
{
	static const char *const on[] = {"on", "1", "true"}, *const off[] = {"off", "0", "false"};

	for (int i = 0; i < 3; i++) {
		*ret = strcasecmp(value, on[i]) == 0;
		if (*ret || strcasecmp(value, off[i]) == 0)
			return true;
	}
	return false;
}

static int turn_switch(struct bl_tls_switch *s, const struct key *key, const char *value,
                       enum bl_source source, struct bl_err *err)
{
	bool on = true;

	if (value && key->prefixed)
		return bl_err_set(err, BIZLOCK_INVALID, "option %s takes no value here", key->name);
	if (value && !read_value(value, &on))
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "option %s: its value is none of on, off, 1, 0, true, false",
		                  key->name);
	if (!s->given || source >= s->source)
		*s = (struct bl_tls_switch){true, on && !key->off, source};
	return BIZLOCK_OK;
}

int bl_tls_take(struct bl_tls_words *words, struct bl_config *c, const char *text,
                const char *value, enum bl_source source, struct bl_err *err)
{
	struct key key = read_key(text);
	struct bl_tls_switch *s = switch_of(words, key.name);

	if (s)
		return turn_switch(s, &key, value, source, err);
	if (bl_config_known(key.name) && !key.prefixed)
		return bl_config_set(c, key.name, value, source, err);
	return bl_err_set(err, BIZLOCK_INVALID,
	                  "option %s is about TLS and not known here, so it cannot be honoured",
	                  text);
}

/* Never lowers ssl_mode. */
static int raise_mode(struct bl_config *c, enum bl_ssl_mode mode, const char *name,
                      enum bl_source source, struct bl_err *err)
{
	if (c->ssl_mode >= (uint32_t)mode)
		return BIZLOCK_OK;
	return bl_config_set(c, "ssl_mode", name, source, err);
}

static bool has_authority(const struct bl_config *c)
{
	return c->ssl_ca || c->ssl_capath || c->ssl_crl || c->ssl_crlpath;
}

/* `ssl` turns TLS off only if no other option of the same source asks for TLS. A CA without a mode
 * means that the server is verified, as in other clients. */
int bl_tls_apply(const struct bl_tls_words *words, struct bl_config *c, struct bl_err *err)
{
	const struct bl_tls_switch *ssl = &words->ssl, *verify = &words->verify;
	bool told = c->source[BL_OPT_SSL_MODE] > BL_FROM_DEFAULT;
	int rc = BIZLOCK_OK;

	if (ssl->given && !ssl->on && ssl->source > c->source[BL_OPT_SSL_MODE]) {
		rc = bl_config_set(c, "ssl_mode", "disabled", ssl->source, err);
		told = true;
	}
	if (rc == BIZLOCK_OK && ssl->on)
		rc = raise_mode(c, BL_SSL_REQUIRED, "required", ssl->source, err);
	if (rc == BIZLOCK_OK && verify->on)
		rc = raise_mode(c, BL_SSL_VERIFY_IDENTITY, "verify_identity", verify->source, err);
	if (rc == BIZLOCK_OK && !told && has_authority(c) && !(verify->given && !verify->on))
		rc = raise_mode(c, BL_SSL_VERIFY_CA, "verify_ca", c->source[BL_OPT_SSL_MODE], err);
	if (rc == BIZLOCK_OK && !told && (c->ssl_fp || c->ssl_fplist))
		rc = raise_mode(c, BL_SSL_REQUIRED, "required", c->source[BL_OPT_SSL_MODE], err);
	return rc;
}
