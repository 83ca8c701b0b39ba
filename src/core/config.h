/* The options of a client, from one table: parse, check, default. Pure: reads no environment and
 * no files. */
#ifndef BL_CORE_CONFIG_H
#define BL_CORE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define BL_PREFIX_MAX 32
#define BL_LIST_MAX 255 /* bytes of a list's value */

enum bl_ssl_mode {
	BL_SSL_PREFERRED,
	BL_SSL_DISABLED,
	BL_SSL_REQUIRED,
	BL_SSL_VERIFY_CA,
	BL_SSL_VERIFY_IDENTITY
};

/* Where a value came from. A lower source never overwrites the value of a higher one. */
enum bl_source {
	BL_FROM_DEFAULT,
	BL_FROM_CLIENT_GROUP,
	BL_FROM_OWN_GROUP,
	BL_FROM_CLIENT_SUFFIX, /* group [client<defaults_group_suffix>] */
	BL_FROM_OWN_SUFFIX,
	BL_FROM_ENV,
	BL_FROM_SET
};

enum bl_option {
	BL_OPT_HOST,
	BL_OPT_PORT,
	BL_OPT_SOCKET,
	BL_OPT_USER,
	BL_OPT_PASSWORD,
	BL_OPT_DATABASE,
	BL_OPT_DEFAULTS_FILE,
	BL_OPT_DEFAULTS_GROUP,
	BL_OPT_DEFAULTS_GROUP_SUFFIX,
	BL_OPT_SSL_MODE,
	BL_OPT_SSL_CA,
	BL_OPT_SSL_CERT,
	BL_OPT_SSL_KEY,
	BL_OPT_SSL_CAPATH,
	BL_OPT_SSL_CRL,
	BL_OPT_SSL_CRLPATH,
	BL_OPT_SSL_CIPHER,
	BL_OPT_SSL_FP,
	BL_OPT_SSL_FPLIST,
	BL_OPT_TLS_VERSION,
	BL_OPT_TLS_CIPHERSUITES,
	BL_OPT_AUTH_PLUGINS,
	BL_OPT_TABLE_PREFIX,
	BL_OPT_LEASE_MS,
	BL_OPT_RENEW,
	BL_OPT_MAX_HOLD_MS,
	BL_OPT_RELEASE_ON_CLOSE,
	BL_OPT_CONNECT_TIMEOUT_MS,
	BL_OPT_OPEN_WAIT_MS,
	BL_OPT_IO_TIMEOUT_MS,
	BL_OPT_MAX_CONNECTIONS,
	BL_OPT_QUEUE,
	BL_OPT_COMBINE,
	BL_OPT_RUNTIME_DIR,
	BL_OPT_COUNT
};

struct bl_config {
	char *host, *socket, *user, *password, *database; /* NULL: not given. host: a list */
	char *defaults_file, *defaults_group, *defaults_group_suffix;
	char *ssl_ca, *ssl_cert, *ssl_key, *ssl_capath, *ssl_crl, *ssl_crlpath, *ssl_cipher;
	char *ssl_fp, *ssl_fplist, *tls_version, *tls_ciphersuites, *auth_plugins; /* "": none */
	char *table_prefix;
	char *runtime_dir; /* NULL: the first of the usual ones; "": none */
	uint32_t port;     /* 0: not given */
	uint32_t lease_ms, max_hold_ms, connect_timeout_ms, io_timeout_ms, max_connections;
	uint32_t open_wait_ms;
	uint32_t ssl_mode;                                /* enum bl_ssl_mode */
	uint32_t queue, combine, renew, release_on_close; /* 0: off */
	enum bl_source source[BL_OPT_COUNT];
};

/* All defaults. NOMEM. */
int bl_config_init(struct bl_config *c, struct bl_err *err);

/* Overwrites the password before it frees. Takes an all-zero struct. */
void bl_config_free(struct bl_config *c);

/* Copies src over an all-zero ret. NOMEM. */
int bl_config_copy(struct bl_config *ret, const struct bl_config *src, struct bl_err *err);

/* Names are taken as [a-z_]. A value from a lower source than the present one
 * is checked and ignored. INVALID: unknown option (with the nearest name, if
 * one is near), value NULL, not UTF-8, not a number, out of range; the message
 * names option, limits and source, never the value of `password`. */
int bl_config_set(struct bl_config *c, const char *option, const char *value, enum bl_source source,
                  struct bl_err *err);

bool bl_config_known(const char *option);

/* How long a server may take for one answer: io_timeout_ms. With several hosts, at most a sixth of
 * the lease: the lease has to outlive a server that stands still, a look at another server, and the
 * time that a cluster takes to exclude the first. But 2 s at least, because a row may be locked for
 * 1 s. */
uint32_t bl_config_answer_ms(const struct bl_config *c);

/* How long a hold may last: `asked`, a call's max_hold_ms, or the option if that is 0. A limit is
 * 100 ms at least. 0: for ever, for which a caller may also write UINT32_MAX. */
uint32_t bl_config_max_hold_ms(const struct bl_config *c, uint32_t asked);

/* connect_timeout_ms in nanoseconds, rounded up to seconds: the connectors know no finer unit. */
int64_t bl_config_connect_ns(const struct bl_config *c);

/* "lease_ms" for BL_OPT_LEASE_MS. */
const char *bl_option_name(enum bl_option option);

#endif
