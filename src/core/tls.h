/* The TLS options of other clients in option files: `ssl`, `skip-ssl`, `ssl-verify-server-cert`,
 * with `loose-` or not. They set ssl_mode. None is skipped: a line that makes other clients
 * demand TLS must not leave bizlock without it. */
#ifndef BL_CORE_TLS_H
#define BL_CORE_TLS_H

#include "core/config.h"

/* A switch, as the highest source has it. */
struct bl_tls_switch {
	bool given, on;
	enum bl_source source;
};

struct bl_tls_words {
	struct bl_tls_switch ssl, verify;
};

/* Is this key of an option file, of any group, about TLS? It begins with "ssl" or "tls". */
bool bl_tls_about(const char *key);

/* Takes a line about TLS; `value` NULL: the key alone. Sets an option of bizlock, or a switch.
 * INVALID: the key is neither, or the value is bad. */
int bl_tls_take(struct bl_tls_words *words, struct bl_config *c, const char *text,
                const char *value, enum bl_source source, struct bl_err *err);

/* Sets ssl_mode to what the switches, or a CA, ask for, unless a higher source has set ssl_mode. To
 * be called when all sources are read. */
int bl_tls_apply(const struct bl_tls_words *words, struct bl_config *c, struct bl_err *err);

#endif
