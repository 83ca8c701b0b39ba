# Sourced by server.sh and setup.sh: all that differs between the servers. One is called
# by the name of its program, mariadbd or mysqld.

has_mariadbd() {
	command -v mariadbd && command -v mariadb-install-db
} >/dev/null

# MariaDB has a program mysqld, too, which is another name of its own.
has_mysqld() {
	local file
	file=$(command -v mysqld) && [[ $(readlink -f "$file") != *mariadbd ]]
}

# The one to start: $BIZLOCK_TEST_SERVER, or what is installed. Fails if there is none.
server_program() {
	local name
	for name in ${BIZLOCK_TEST_SERVER:-mariadbd mysqld}; do
		"has_$name" || continue
		echo "$name"
		return
	done
	return 1
}

sql_client() {
	command -v mariadb || command -v mysql
}

# For a socket: a server may have no TLS, and MariaDB's client from 11.4 on insists on it.
without_tls() {
	if [[ $(sql_client) == *mariadb ]]; then
		echo --skip-ssl
	else
		echo --ssl-mode=DISABLED
	fi
}

# ---- file_NAME DIR: the program to run, with data below DIR ---------------------------------

file_mariadbd() {
	command -v mariadbd
}

# AppArmor may restrict the program to the folders of the system's own server. It looks at the
# program's path, so the same file under another name is not restricted.
file_mysqld() {
	local file
	file=$(command -v mysqld)
	if [[ -e /etc/apparmor.d/usr.sbin.mysqld &&
		$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null) == Y ]]; then
		[[ -e $1/mysqld ]] || ln "$file" "$1/mysqld" 2>/dev/null || cp "$file" "$1/mysqld"
		file=$1/mysqld
	fi
	echo "$file"
}

# ---- install_NAME DATA TMP SQL [OPTION...]: new data, with the users that SQL makes --------

install_mariadbd() {
	mariadb-install-db --no-defaults "${@:4}" --datadir="$1" --skip-test-db \
		--skip-name-resolve --auth-root-authentication-method=normal \
		--tmpdir="$2" --extra-file="$3"
}

# auto.cnf is the server's name: each that starts with a copy of the data makes its own.
install_mysqld() {
	"$(file_mysqld "$2")" --no-defaults "${@:4}" --datadir="$1" --tmpdir="$2" \
		--initialize-insecure --init-file="$3" $(options_mysqld)
	rm -f "$1/auto.cnf"
}

# ---- options_NAME: of every start ----------------------------------------------------------

options_mariadbd() {
	echo --innodb-log-file-size=32M --aria-pagecache-buffer-size=8M
}

options_mysqld() {
	echo --loose-innodb-redo-log-capacity=64M --loose-mysqlx=0 --secure-file-priv=NULL \
		--basedir="$(dirname "$(dirname "$(command -v mysqld)")")"
}

# The statement that takes away the binary log: MySQL has another name for it since 8.2.
reset_logs_mysqld() {
	local major minor
	read -r major minor < <(mysqld --version | sed -nE 's/.* ([0-9]+)\.([0-9]+)\.[0-9]+.*/\1 \2/p')
	if ((major * 100 + minor >= 802)); then
		echo "RESET BINARY LOGS AND GTIDS"
	else
		echo "RESET MASTER"
	fi
}

# ---- option_NAME OPTION: an option of MariaDB in the server's own words --------------------

option_mariadbd() {
	echo "$1"
}

option_mysqld() {
	case $1 in
	--skip-ssl) echo --tls-version= ;;
	--innodb-log-file-size=*) echo "--innodb-redo-log-capacity=${1#*=}" ;;
	*) echo "$1" ;;
	esac
}
