#include "store/connector.h"

#include <pthread.h>
#include <string.h>

/* A socket on the same machine needs no TLS; both connectors take no host and
 * "localhost" to mean it. */
static bool over_network(const char *host)
{
	return host && strcmp(host, "localhost") != 0;
}

static bool wants_tls(const struct bl_config *c, const char *host)
{
	return c->ssl_mode > BL_SSL_DISABLED ||
	       (c->ssl_mode == BL_SSL_PREFERRED && over_network(host));
}

#if defined(MARIADB_BASE_VERSION) || defined(MARIADB_PACKAGE_VERSION)

/* Connector/C verifies chain and name together or not at all, so verify_ca is
 * as strict as verify_identity here. */
static void set_tls(MYSQL *mysql, const struct bl_config *c, const char *host)
{
	my_bool on = 1;
	my_bool verify = c->ssl_mode >= BL_SSL_VERIFY_CA;

	if (wants_tls(c, host)) {
		mysql_ssl_set(mysql, c->ssl_key, c->ssl_cert, c->ssl_ca, NULL, NULL);
		mysql_optionsv(mysql, MYSQL_OPT_SSL_ENFORCE, &on);
	}
	mysql_optionsv(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
}

static void set_peculiar(MYSQL *mysql, const struct bl_config *c)
{
	my_bool off = 0;

	(void)c;
	mysql_optionsv(mysql, MYSQL_OPT_RECONNECT, &off);
}

bool bl_connector_reconnects(MYSQL *mysql)
{
	my_bool on = 0;

	return mysql_get_optionv(mysql, MYSQL_OPT_RECONNECT, &on) == 0 && on;
}

int bl_connector_fd(MYSQL *mysql)
{
	my_socket fd = mysql_get_socket(mysql);

	return fd == (my_socket)-1 ? -1 : (int)fd;
}

#else

static void set_tls(MYSQL *mysql, const struct bl_config *c, const char *host)
{
	static const unsigned modes[] = {
	        [BL_SSL_PREFERRED] = SSL_MODE_PREFERRED,
	        [BL_SSL_DISABLED] = SSL_MODE_DISABLED,
	        [BL_SSL_REQUIRED] = SSL_MODE_REQUIRED,
	        [BL_SSL_VERIFY_CA] = SSL_MODE_VERIFY_CA,
	        [BL_SSL_VERIFY_IDENTITY] = SSL_MODE_VERIFY_IDENTITY,
	};
	unsigned mode = modes[c->ssl_mode];

	if (wants_tls(c, host)) {
		mysql_options(mysql, MYSQL_OPT_SSL_KEY, c->ssl_key);
		mysql_options(mysql, MYSQL_OPT_SSL_CERT, c->ssl_cert);
		mysql_options(mysql, MYSQL_OPT_SSL_CA, c->ssl_ca);
	}
	mysql_options(mysql, MYSQL_OPT_SSL_MODE, &mode);
}

/* Automatic reconnection is off unless asked for. caching_sha2_password without TLS needs the
 * server's public key; Connector/C always asks the server for it, this connector only when told to.
 * We tell it only when the user chose to do without TLS: asked for over an untrusted network, the
 * key could be anybody's. */
static void set_peculiar(MYSQL *mysql, const struct bl_config *c)
{
	bool get_key = c->ssl_mode == BL_SSL_DISABLED;

	mysql_options(mysql, MYSQL_OPT_GET_SERVER_PUBLIC_KEY, &get_key);
}

/* Since 8.0.34 MYSQL_OPT_RECONNECT prints a warning on stderr, be it set or read. */
bool bl_connector_reconnects(MYSQL *mysql)
{
	return mysql->reconnect;
}

int bl_connector_fd(MYSQL *mysql)
{
	return mysql->net.vio ? (int)mysql->net.fd : -1;
}

#endif

static unsigned seconds(uint32_t ms)
{
	return (ms + 999) / 1000;
}

static void init_library(void)
{
	mysql_library_init(0, NULL, NULL);
}

MYSQL *bl_connector_new(const struct bl_config *c, const char *host)
{
	/* The first mysql_init() of a process initialises the connector, and is
	 * not safe against a second one in another thread. */
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	unsigned connect_s = seconds(c->connect_timeout_ms), io_s = seconds(c->io_timeout_ms);
	MYSQL *mysql;

	pthread_once(&once, init_library);
	mysql = mysql_init(NULL);
	if (!mysql)
		return NULL;
	mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
	mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &io_s);
	mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &io_s);
	mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	set_tls(mysql, c, host);
	set_peculiar(mysql, c);
	return mysql;
}

/* Connector/C goes on in the clear with a server that has no TLS, whatever it
 * was told, unless it verifies. */
bool bl_connector_tls_ok(MYSQL *mysql, const struct bl_config *c)
{
	return c->ssl_mode < BL_SSL_REQUIRED || mysql_get_ssl_cipher(mysql) != NULL;
}
