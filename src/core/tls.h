/* What option files say about TLS in the words of other clients: `ssl`, `skip-ssl`,
 * `ssl-verify-server-cert`, with `loose-` or not. They raise ssl_mode; none is skipped, for a
 * line that hardens other clients must not leave this one soft. */
#ifndef BL_CORE_TLS_H
#define BL_CORE_TLS_H

#include "core/config.h"

/* A switch, by its last word: that of the highest source. */
struct bl_tls_switch {
	bool given, on;
	enum bl_source source;
};

struct bl_tls_words {
	struct bl_tls_switch ssl, verify;
};

/* Is this key of an option file about TLS? Of any group: what follows "ssl" or "tls". */
bool bl_tls_about(const char *key);

/* Takes such a line; `value` NULL: the key alone. Sets an option of ours, or a switch. INVALID:
 * neither, or a bad value. */
int bl_tls_take(struct bl_tls_words *words, struct bl_config *c, const char *text,
                const char *value, enum bl_source source, struct bl_err *err);

/* After the last line, and when all other sources are read: what the switches ask for, and a CA,
 * becomes ssl_mode, unless a higher source says what it is. */
int bl_tls_apply(const struct bl_tls_words *words, struct bl_config *c, struct bl_err *err);

#endif
