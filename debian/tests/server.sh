# Sourced by the tests beside it: a private server, with an empty database.

export TMPDIR=$AUTOPKGTEST_TMP
server=$AUTOPKGTEST_TMP/server
end_server() {
	bash tests/support/server.sh kill "$server"
}
trap end_server EXIT
bash tests/support/server.sh start "$server"
eval "$(bash tests/support/server.sh env "$server")"
export BIZLOCK_HOST=localhost BIZLOCK_SOCKET=$BIZLOCK_TEST_SOCKET BIZLOCK_USER=$BIZLOCK_TEST_USER
export BIZLOCK_PASSWORD=$BIZLOCK_TEST_PASSWORD BIZLOCK_DATABASE=shop

sql() {
	MYSQL_PWD=$BIZLOCK_PASSWORD mariadb --no-defaults --socket="$BIZLOCK_SOCKET" \
		--user="$BIZLOCK_USER" --skip-ssl "$@"
}
sql -e 'CREATE DATABASE shop'

die() {
	echo "$*" >&2
	exit 1
}
