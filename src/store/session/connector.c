#define _GNU_SOURCE 1 /* dup3() */
#include "store/session/connector.h"

#include <errmsg.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A packet of the server's may be as long as this. The connectors would take a gigabyte. */
#define PACKET_MAX (16ul << 20)

/* Which plugins the server may ask for, Connector/C can be told since 3.3. */
#if defined(MARIADB_PACKAGE_VERSION_ID) && MARIADB_PACKAGE_VERSION_ID >= 30300
#define PLUGIN_REFUSED CR_PLUGIN_NOT_ALLOWED
#else
#define PLUGIN_REFUSED CR_AUTH_PLUGIN_CANNOT_LOAD
#endif

static bool refused_plugin(MYSQL *mysql)
{
	return mysql_errno(mysql) == PLUGIN_REFUSED;
}

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

/* Must the connection have TLS before anything is said to the server? Plugins that the user has
 * added may tell the server the password: they make "preferred" stricter. */
static bool insists(const struct bl_config *c, const char *host, bool with_tls)
{
	return c->ssl_mode > BL_SSL_DISABLED ||
	       (c->ssl_mode == BL_SSL_PREFERRED && over_network(host) &&
	        (with_tls || *c->auth_plugins));
}

#if defined(MARIADB_BASE_VERSION) || defined(MARIADB_PACKAGE_VERSION)

#if MARIADB_PACKAGE_VERSION_ID >= 30300

/* These plugins never tell the password, whatever the server asks. */
#define DISCREET "mysql_native_password,client_ed25519,parsec,auth_gssapi_client"

/* These tell the password when a server claims not to know it yet: in the clear if the connector
 * was told to use TLS, even where there is none, or else encrypted by a key that the server hands
 * out. */
#define OUTSPOKEN ",caching_sha2_password,sha256_password"

/* The server chooses the plugin, from all that are installed unless a list limits them: one sends
 * the password as it is, another prints what the server wants and reads standard input. */
static void restrict_plugins(MYSQL *mysql, const struct bl_config *c, const char *host, bool insist)
{
	bool secure = insist || !over_network(host);
	char list[BL_LIST_MAX + sizeof(DISCREET OUTSPOKEN ",")];

	snprintf(list, sizeof(list), "%s%s,%s", DISCREET, secure ? OUTSPOKEN : "", c->auth_plugins);
	mysql_optionsv(mysql, MARIADB_OPT_RESTRICTED_AUTH, list);
}

#else

/* Earlier ones load what the server asks for, if it is installed. So they find nothing to load, and
 * have what is built in, unless the user has named plugins: mysql_native_password, and
 * mysql_old_password, whose hash a server that asks for it can turn into the password. Nothing
 * keeps them from that: MYSQL_SECURE_AUTH does not. The folder is in the connector's message. */
static void restrict_plugins(MYSQL *mysql, const struct bl_config *c, const char *host, bool insist)
{
	(void)host;
	(void)insist;
	if (!*c->auth_plugins)
		mysql_optionsv(mysql, MYSQL_PLUGIN_DIR, "/dev/null/see/auth_plugins");
}

#endif

#if MARIADB_PACKAGE_VERSION_ID >= 30402

static int trust_server(void *tls, unsigned flags)
{
	(void)tls;
	(void)flags;
	return 0;
}

/* Since 3.4 Connector/C verifies all the rest, too, if a fingerprint is given, even an empty
 * one. */
static void trust_anybody(MYSQL *mysql)
{
	mysql_optionsv(mysql, MARIADB_OPT_TLS_VERIFICATION_CALLBACK, trust_server);
}

#else

static void trust_anybody(MYSQL *mysql)
{
	(void)mysql;
}

#endif

/* Connector/C logs in without TLS where the server has none, unless it verifies the server. With a
 * fingerprint to verify, it refuses such a server before it sends a byte. An empty fingerprint fits
 * all servers. */
static void require_tls(MYSQL *mysql, const struct bl_config *c)
{
	if (c->ssl_fp || c->ssl_fplist)
		return;
	mysql_optionsv(mysql, MARIADB_OPT_SSL_FP, "");
	if (c->ssl_mode < BL_SSL_VERIFY_CA)
		trust_anybody(mysql);
}

/* Connector/C verifies chain and name together or not at all, so verify_ca is
 * as strict as verify_identity here. */
static void set_security(MYSQL *mysql, const struct bl_config *c, const char *host, bool insist)
{
	my_bool on = 1;
	my_bool verify = c->ssl_mode >= BL_SSL_VERIFY_CA;

	if (wants_tls(c, host)) {
		mysql_ssl_set(mysql, c->ssl_key, c->ssl_cert, c->ssl_ca, c->ssl_capath,
		              c->ssl_cipher);
		mysql_optionsv(mysql, MYSQL_OPT_SSL_CRL, c->ssl_crl);
		mysql_optionsv(mysql, MYSQL_OPT_SSL_CRLPATH, c->ssl_crlpath);
		mysql_optionsv(mysql, MARIADB_OPT_TLS_VERSION, c->tls_version);
		mysql_optionsv(mysql, MARIADB_OPT_SSL_FP, c->ssl_fp);
		mysql_optionsv(mysql, MARIADB_OPT_SSL_FP_LIST, c->ssl_fplist);
		mysql_optionsv(mysql, MYSQL_OPT_SSL_ENFORCE, &on);
	}
	mysql_optionsv(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
	if (insist)
		require_tls(mysql, c);
	restrict_plugins(mysql, c, host, insist);
}

static void set_peculiar(MYSQL *mysql, const struct bl_config *c)
{
	my_bool off = 0;

	(void)c;
	mysql_optionsv(mysql, MYSQL_OPT_RECONNECT, &off);
}

/* Since 3.4 Connector/C takes any certificate at these addresses, unless a CA or a fingerprint is
 * given. */
static bool takes_anybody(const struct bl_config *c, const char *host)
{
	return c->ssl_mode >= BL_SSL_VERIFY_CA && host &&
	       (strcmp(host, "127.0.0.1") == 0 || strcmp(host, "::1") == 0) && !c->ssl_ca &&
	       !c->ssl_capath && !c->ssl_fp && !c->ssl_fplist;
}

int bl_connector_check(const struct bl_config *c, const char *host, struct bl_err *err)
{
	if (c->tls_ciphersuites)
		return bl_err_set(
		        err, BIZLOCK_INVALID,
		        "option tls_ciphersuites: MariaDB Connector/C has only ssl_cipher");
	if (takes_anybody(c, host))
		return bl_err_set(err, BIZLOCK_CONN,
		                  "connect: to verify %s takes the option ssl_ca", host);
	return BIZLOCK_OK;
}

/* Connector/C's text for a refused plugin reads the plugin's name from memory that has been
 * freed. */
static const char *error_text(MYSQL *mysql)
{
	return refused_plugin(mysql)
	               ? "the server asks for an authentication plugin that it is not offered"
	               : mysql_error(mysql);
}

bool bl_connector_needs_tls(MYSQL *mysql, const struct bl_config *c, const char *host)
{
	return refused_plugin(mysql) && !insists(c, host, false) && insists(c, host, true);
}

/* To see whether an error 65535 is a report of progress, Connector/C looks at the server's version,
 * even where the error comes in the place of a greeting, and there is no version yet. So it gets an
 * empty version. Without a greeting Connector/C frees this version; with a greeting it forgets it.
 * The thread's id, which Connector/C reads next, shows which of the two happened. */
static bool dial(MYSQL *mysql, const struct bl_config *c, const char *host, unsigned port,
                 const char *database, unsigned long flags)
{
	char *version = strdup("");
	bool connected;

	if (!version)
		return false;
	mysql->server_version = version;
	mysql->thread_id = ULONG_MAX;
	connected = mysql_real_connect(mysql, host, c->user, c->password, database, port, c->socket,
	                               flags);
	if (mysql->thread_id != ULONG_MAX)
		free(version);
	return connected;
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

static bool is_added(const struct bl_config *c, const char *plugin)
{
	size_t len = strlen(plugin);

	for (const char *at = c->auth_plugins; (at = strstr(at, plugin)); at += len)
		if ((at == c->auth_plugins || at[-1] == ',') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

/* This connector refuses before it sends anything, and sends the password in the clear only if told
 * to. Nothing keeps it from asking the server for a key to encrypt the password with
 * (sha256_password, without TLS). */
static void set_security(MYSQL *mysql, const struct bl_config *c, const char *host, bool insist)
{
	static const unsigned modes[] = {
	        [BL_SSL_PREFERRED] = SSL_MODE_PREFERRED,
	        [BL_SSL_DISABLED] = SSL_MODE_DISABLED,
	        [BL_SSL_REQUIRED] = SSL_MODE_REQUIRED,
	        [BL_SSL_VERIFY_CA] = SSL_MODE_VERIFY_CA,
	        [BL_SSL_VERIFY_IDENTITY] = SSL_MODE_VERIFY_IDENTITY,
	};
	bool stricter = insist && c->ssl_mode == BL_SSL_PREFERRED;
	unsigned mode = modes[stricter ? BL_SSL_REQUIRED : c->ssl_mode];
	bool in_the_clear = is_added(c, "mysql_clear_password");

	if (wants_tls(c, host)) {
		mysql_options(mysql, MYSQL_OPT_SSL_KEY, c->ssl_key);
		mysql_options(mysql, MYSQL_OPT_SSL_CERT, c->ssl_cert);
		mysql_options(mysql, MYSQL_OPT_SSL_CA, c->ssl_ca);
		mysql_options(mysql, MYSQL_OPT_SSL_CAPATH, c->ssl_capath);
		mysql_options(mysql, MYSQL_OPT_SSL_CIPHER, c->ssl_cipher);
		mysql_options(mysql, MYSQL_OPT_SSL_CRL, c->ssl_crl);
		mysql_options(mysql, MYSQL_OPT_SSL_CRLPATH, c->ssl_crlpath);
		mysql_options(mysql, MYSQL_OPT_TLS_VERSION, c->tls_version);
		mysql_options(mysql, MYSQL_OPT_TLS_CIPHERSUITES, c->tls_ciphersuites);
	}
	mysql_options(mysql, MYSQL_OPT_SSL_MODE, &mode);
	mysql_options(mysql, MYSQL_ENABLE_CLEARTEXT_PLUGIN, &in_the_clear);
}

int bl_connector_check(const struct bl_config *c, const char *host, struct bl_err *err)
{
	(void)host;
	if (c->ssl_fp || c->ssl_fplist)
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "option %s: libmysqlclient knows no fingerprints",
		                  c->ssl_fp ? "ssl_fp" : "ssl_fplist");
	return BIZLOCK_OK;
}

static const char *error_text(MYSQL *mysql)
{
	return mysql_error(mysql);
}

/* This connector chooses by itself: it reveals a password only with TLS. */
bool bl_connector_needs_tls(MYSQL *mysql, const struct bl_config *c, const char *host)
{
	(void)mysql;
	(void)c;
	(void)host;
	return false;
}

static bool dial(MYSQL *mysql, const struct bl_config *c, const char *host, unsigned port,
                 const char *database, unsigned long flags)
{
	return mysql_real_connect(mysql, host, c->user, c->password, database, port, c->socket,
	                          flags);
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

static void set_connecting(MYSQL *mysql, const struct bl_config *c, const char *host, bool with_tls)
{
	mysql_options(mysql, MYSQL_SET_CHARSET_NAME, BL_CONNECTOR_CHARSET);
	set_security(mysql, c, host, insists(c, host, with_tls));
	set_peculiar(mysql, c);
}

static void init_library(void)
{
	mysql_library_init(0, NULL, NULL);
}

MYSQL *bl_connector_new(const struct bl_config *c, const char *host, bool with_tls, uint32_t io_ms)
{
	/* The first mysql_init() of a process initialises the connector, and is
	 * not safe against a second one in another thread. */
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	unsigned connect_s = seconds(c->connect_timeout_ms);
	unsigned io_s = seconds(io_ms);
	unsigned long packet_max = PACKET_MAX;
	unsigned none = 0;
	MYSQL *mysql;

	pthread_once(&once, init_library);
	mysql = mysql_init(NULL);
	if (!mysql)
		return NULL;
	mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
	mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &io_s);
	mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &io_s);
	mysql_options(mysql, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet_max);
	/* A server may ask for any file in the place of a result. */
	mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &none);
	set_connecting(mysql, c, host, with_tls);
	return mysql;
}

/* Has the program set no such timeout? */
static bool is_unset(MYSQL *mysql, enum mysql_option timeout)
{
	unsigned s = 0;

	return mysql_get_option(mysql, timeout, &s) != 0 || s == 0;
}

void bl_connector_prepare(MYSQL *mysql, const struct bl_config *c, const char *host, bool with_tls)
{
	unsigned connect_s = seconds(c->connect_timeout_ms);
	unsigned io_s = seconds(c->io_timeout_ms);

	if (is_unset(mysql, MYSQL_OPT_CONNECT_TIMEOUT))
		mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
	if (is_unset(mysql, MYSQL_OPT_READ_TIMEOUT))
		mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &io_s);
	if (is_unset(mysql, MYSQL_OPT_WRITE_TIMEOUT))
		mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &io_s);
	set_connecting(mysql, c, host, with_tls);
}

bool bl_connector_dial(MYSQL *mysql, const struct bl_config *c, const char *host, unsigned port,
                       const char *database, unsigned long flags)
{
	bool connected = dial(mysql, c, host, port, database, flags);

	if (connected)
		fcntl(bl_connector_fd(mysql), F_SETFD, FD_CLOEXEC);
	return connected;
}

bool bl_connector_failed(MYSQL *mysql)
{
	return mysql_errno(mysql) != 0 || *mysql_error(mysql);
}

bool bl_connector_speaks(MYSQL *mysql)
{
	struct pollfd fd = {.fd = bl_connector_fd(mysql), .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

/* Puts a socket that has ended in the place of the connection's. The connector, which may be in the
 * middle of an answer, sees the end of the connection and nothing else. */
bool bl_connector_cut(MYSQL *mysql)
{
	int nowhere[2], fd = bl_connector_fd(mysql);

	if (fd < 0)
		return true;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, nowhere) != 0)
		return false;
	close(nowhere[1]);
	dup3(nowhere[0], fd, O_CLOEXEC);
	close(nowhere[0]);
	return true;
}

bool bl_connector_has_tls(MYSQL *mysql)
{
	return mysql_get_ssl_cipher(mysql) != NULL;
}

/* Both connectors clear the text when connecting fails, and keep it when a connection is lost. */
bool bl_connector_was_used(MYSQL *mysql)
{
	return mysql_get_host_info(mysql) != NULL;
}

static int refuse(MYSQL *mysql, struct bl_err *err)
{
	/* No native number: a native number counts as a statement that was sent. */
	bl_err_set(err, BIZLOCK_CONN, "connect: %s (%u)%s", error_text(mysql), mysql_errno(mysql),
	           refused_plugin(mysql) ? "; see the options auth_plugins and ssl_mode" : "");
	err->refused = mysql_errno(mysql);
	return err->code;
}

/* By now both connectors have refused a connection that is not encrypted as it should be. If a
 * later version of theirs does not, no statement is sent. */
int bl_connector_judge(MYSQL *mysql, const struct bl_config *c, bool connected, struct bl_err *err)
{
	if (!mysql || (!connected && mysql_errno(mysql) == 0))
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (!connected)
		return refuse(mysql, err);
	if (c->ssl_mode >= BL_SSL_REQUIRED && !bl_connector_has_tls(mysql))
		return bl_err_set(err, BIZLOCK_CONN,
		                  "connect: ssl_mode asks for TLS, the server has none");
	return BIZLOCK_OK;
}
