#!/usr/bin/env bash
# A server that is after passwords, and after the terminal: tests/support/rogue.py. What it gets.
source "$(dirname "$0")/common.sh"

PASSWORD=open-sesame
connector=$(ldd "$program" | grep -oE 'lib(mariadb|mysqlclient)' | head -n 1)
# Connector/C before 3.3 cannot be told which plugins a server may ask for.
limits_plugins() {
	[[ $connector == libmysqlclient ]] ||
		grep -q restricted-auth "$(ldd "$program" | sed -nE 's/.*libmariadb.* => ([^ ]+).*/\1/p')"
}
rogue=$work/rogue

# What it needs: a certificate by an authority of its own, which has revoked none, and later this
# one; a key; and an authority that has signed nothing.
make_rogue() {
	mkdir -p "$rogue"
	cd "$rogue" || return
	local name
	for name in ca other-ca; do
		openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$name" -keyout "$name-key.pem" \
			-out "$name.pem" || return
	done
	openssl req -newkey rsa:2048 -nodes -subj /CN=rogue -keyout key.pem -out rogue.csr &&
		openssl x509 -req -in rogue.csr -CA ca.pem -CAkey ca-key.pem -set_serial 1 -days 2 \
			-extfile <(echo subjectAltName=IP:127.0.0.1) -out cert.pem &&
		openssl rsa -in key.pem -pubout -out rsa.pem || return
	printf '%s\n' '[ca]' default_ca=a '[a]' database="$rogue/index" default_md=sha256 \
		default_crl_days=2 certificate="$rogue/ca.pem" private_key="$rogue/ca-key.pem" >ca.cnf
	: >index
	mkdir folder && cp ca.pem folder && openssl rehash folder &&
		openssl ca -config ca.cnf -gencrl -out none-revoked.pem &&
		openssl ca -config ca.cnf -revoke cert.pem &&
		openssl ca -config ca.cnf -gencrl -out revoked.pem
} >"$work/openssl.log" 2>&1

# start_rogue PLUGIN [OPTION...]: it listens, and the option file leads to it.
start_rogue() {
	rm -f "$rogue/port" "$rogue/heard"
	[[ -z ${rogue_pid:-} ]] || kill "$rogue_pid"
	python3 "$root/tests/support/rogue.py" "$rogue" "$@" </dev/null >"$work/rogue.log" 2>&1 &
	rogue_pid=$! child=$!
	disown # or the shell would tell of its end
	await test -s "$rogue/port"
	lead_to_it
}

# lead_to_it [LINE...]: more of the group [client].
lead_to_it() {
	printf '%s\n' '[client]' user=app "password=$PASSWORD" host=127.0.0.1 \
		"port=$(cat "$rogue/port")" "$@" >"$work/rogue.cnf"
	chmod 600 "$work/rogue.cnf"
}

# ask [OPTION...]: open a connection to it, with a line of standard input that is not its to read.
ask() {
	local line=
	: >"$rogue/heard"
	echo 'the line of the job' >"$work/stdin"
	exec 5<"$work/stdin"
	run env BIZLOCK_DEFAULTS_FILE="$work/rogue.cnf" BIZLOCK_DATABASE=any timeout -k 1 30 \
		"$program" list "$@" <&5
	read -r -u 5 line || true
	expect_equal "$line" 'the line of the job'
	((code == 69 || code == 76 || code == 78)) || fail "exit code $code"
	expect_no_out
	! grep -q $'\x1b\|Who goes' "$err" || fail 'it wrote to the terminal'
	await not_talking
}

# Every connection that it took has ended.
not_talking() {
	[[ -z $(ss_of_rogue) ]]
}

ss_of_rogue() {
	local port
	port=$(printf ':%04X' "$(cat "$rogue/port")")
	awk -v port="$port" '$4 == "01" && ($2 ~ port "$" || $3 ~ port "$")' /proc/net/tcp
}

heard() {
	grep -qE -- "$1" "$rogue/heard"
}

gets_nothing() {
	! heard '^(login|answer|by-key)' || fail "it heard: $(cat "$rogue/heard")"
}

gets_no_password() {
	! heard "$PASSWORD|^by-key" || fail "it heard: $(cat "$rogue/heard")"
}

ALL_PLUGINS='mysql_clear_password dialog caching_sha2_password sha256_password mysql_old_password'

test_without_tls_it_hears_nothing_where_tls_is_required() {
	local plugin greet mode
	for plugin in mysql_native_password $ALL_PLUGINS; do
		for greet in '' --greet; do
			start_rogue "$plugin" $greet
			for mode in required verify-ca verify-identity; do
				ask --ssl-mode="$mode"
				gets_nothing
			done
		done
	done
}

# libmysqlclient has no means against sha256_password there: see bizlock(7).
test_without_tls_it_gets_no_password() {
	local plugin greet
	for plugin in $ALL_PLUGINS; do
		[[ $connector == libmariadb || $plugin != sha256_password ]] || continue
		for greet in '' --greet; do
			start_rogue "$plugin" $greet
			ask
			gets_no_password
			! heard '^answer.*line of the job' || fail "it heard: $(cat "$rogue/heard")"
		done
	done
}

# libmysqlclient encrypts by a key that the server hands out then: see bizlock_set(3).
test_with_tls_off_it_gets_no_password() {
	local plugin
	for plugin in $ALL_PLUGINS; do
		[[ $connector == libmariadb || $plugin != *sha2* ]] || continue
		start_rogue "$plugin"
		ask --ssl-mode=disabled
		gets_no_password
	done
}

AN_ANSWER="^answer b.[^']" # an old connector that finds no plugin sends an empty one

# What nobody asked for, TLS or not.
test_with_tls_it_gets_no_plugin_that_was_not_added() {
	local plugin mode
	for plugin in mysql_clear_password dialog mysql_old_password; do
		start_rogue "$plugin" --tls
		for mode in preferred required; do
			ask --ssl-mode="$mode"
			heard '^tls TLSv1' || fail "no TLS: $(cat "$rogue/heard")"
			gets_no_password
			if [[ $plugin == mysql_old_password ]] && ! limits_plugins; then
				heard "$AN_ANSWER" || fail 'no old hash: say so no more in bizlock_set(3) and docs/operations.md'
			else
				! heard "$AN_ANSWER" || fail "it heard: $(cat "$rogue/heard")"
			fi
		done
	done
}

test_a_client_that_verifies_tells_it_nothing() {
	local plugin mode
	for plugin in mysql_native_password $ALL_PLUGINS; do
		start_rogue "$plugin" --tls
		lead_to_it "ssl-ca=$rogue/other-ca.pem"
		for mode in verify-ca verify-identity; do
			ask --ssl-mode="$mode"
			gets_nothing
		done
		ask # and a CA alone says the same
		gets_nothing
		lead_to_it
		ask --ssl-mode=verify-identity # no CA: nobody is trusted
		gets_nothing
	done
}

# A password that no hash protects goes by TLS. Connector/C 3.4.10 wants to know the server, too.
hears_it_or_is_not_trusted() {
	if [[ $(<"$err") == *'Failed to verify the server certificate'* ]]; then
		gets_no_password
	else
		heard "^answer .*$PASSWORD" || fail "it heard: $(cat "$rogue/heard")"
	fi
}

# Without TLS nothing is sent; a message points at the option.
test_an_added_plugin_is_used_with_tls_alone() {
	start_rogue mysql_clear_password
	export BIZLOCK_AUTH_PLUGINS=mysql_clear_password
	ask
	gets_nothing
	start_rogue mysql_clear_password --tls
	ask
	hears_it_or_is_not_trusted
	unset BIZLOCK_AUTH_PLUGINS
	ask
	gets_no_password
	expect_err "auth_plugins|Failed to verify the server certificate"
}

# Servers of MySQL ask for it, and whoever asks for TLS without a CA trusts any certificate. A second
# connection may be needed with "preferred".
test_the_plugin_of_mysql_is_used_with_tls() {
	local mode
	limits_plugins || export BIZLOCK_AUTH_PLUGINS=caching_sha2_password
	start_rogue caching_sha2_password --greet --tls
	for mode in preferred required; do
		ask --ssl-mode="$mode"
		hears_it_or_is_not_trusted
		[[ $(grep -c '^login' "$rogue/heard") == 1 ]] || fail "it heard: $(cat "$rogue/heard")"
	done
}

# What libmysqlclient cannot be kept from: see bizlock(7).
test_its_own_key_shows_it_the_password_of_libmysqlclient_alone() {
	start_rogue sha256_password
	ask
	on_libmysqlclient_it_is_by_key
	start_rogue caching_sha2_password
	ask --ssl-mode=disabled
	on_libmysqlclient_it_is_by_key
}

on_libmysqlclient_it_is_by_key() {
	if [[ $connector == libmysqlclient ]]; then
		heard '^by-key' || fail 'not by a key: say so no more in bizlock(7) and bizlock_set(3)'
	else
		gets_no_password
	fi
}

test_it_gets_no_file() {
	echo 'private words' >"$rogue/private"
	start_rogue mysql_native_password --let-in
	ask
	heard '^command' || fail "it heard: $(cat "$rogue/heard")"
	! heard 'private words' || fail "it heard: $(cat "$rogue/heard")"
}

test_on_a_terminal_it_neither_writes_nor_reads() {
	start_rogue dialog
	terminal "BIZLOCK_DEFAULTS_FILE=$work/rogue.cnf BIZLOCK_DATABASE=any $program list; echo code \$?; read x; echo got \$x"
	await_screen '^code (69|78)$'
	type_keys -l 'a line'
	type_keys Enter
	await_screen '^got a line$'
	! screen_shows 'Who goes' || fail 'it was heard'
	! heard 'a line' || fail "it heard: $(cat "$rogue/heard")"
}

# ---- what option files say of TLS ---------------------------------------------------------

test_versions_and_ciphers_of_an_option_file_are_kept() {
	start_rogue mysql_native_password --tls
	lead_to_it ssl tls-version=TLSv1.2 ssl-cipher=ECDHE-RSA-AES128-GCM-SHA256
	ask
	heard '^tls ' || fail 'no TLS'
	grep '^tls' "$rogue/heard" | grep -qx 'tls TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256' ||
		fail "it heard: $(cat "$rogue/heard")"
	lead_to_it ssl tls_version=TLSv1.3
	ask
	heard '^tls TLSv1.3' || fail "it heard: $(cat "$rogue/heard")"
}

test_a_switch_of_an_option_file_is_kept() {
	local line
	start_rogue mysql_native_password
	for line in ssl ssl=1 ssl=ON loose-ssl enable-ssl ssl-verify-server-cert \
		loose_ssl_verify_server_cert=true ssl-ca=/etc/ssl/none.pem ssl-capath=/etc/ssl/none \
		ssl-crl=/etc/ssl/none.pem ssl-mode=REQUIRED; do
		lead_to_it "$line"
		ask
		gets_nothing
	done
	for line in skip-ssl ssl=0 disable-ssl ssl-mode=DISABLED; do
		start_rogue mysql_native_password --tls
		lead_to_it "$line"
		ask
		heard '^login' && ! heard '^tls' || fail "$line: it heard: $(cat "$rogue/heard")"
	done
}

test_authorities_of_an_option_file_are_kept() {
	local good=("ssl-ca=$rogue/ca.pem" "ssl-capath=$rogue/folder" "ssl-crl=$rogue/none-revoked.pem")
	start_rogue mysql_native_password --tls
	for line in "${good[@]:0:2}"; do
		lead_to_it "$line" ssl-verify-server-cert
		ask
		heard '^login' || fail "$line: $(cat "$err")"
	done
	lead_to_it "${good[0]}" "${good[2]}"
	ask
	heard '^login' || fail "$(cat "$err")"
	for line in "ssl-ca=$rogue/other-ca.pem" "ssl-capath=$rogue" "ssl-crl=$rogue/revoked.pem"; do
		lead_to_it "${good[0]}" "$line" ssl-verify-server-cert
		[[ $line == ssl-crl* ]] || lead_to_it "$line" ssl-verify-server-cert
		ask
		gets_nothing
	done
}

test_a_fingerprint_of_an_option_file_is_kept_or_refused() {
	local print
	start_rogue mysql_native_password --tls
	print=$(openssl x509 -in "$rogue/cert.pem" -noout -fingerprint -sha1)
	lead_to_it "ssl-fp=${print#*=}"
	ask
	if [[ $connector == libmariadb ]]; then
		heard '^login' || fail "the right one: $(cat "$err")"
		lead_to_it ssl-fp=00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33
		ask
	else
		expect_err 'ssl_fp'
	fi
	gets_nothing
	start_rogue mysql_native_password
	lead_to_it "ssl-fp=${print#*=}"
	ask
	gets_nothing
}

test_what_is_not_known_about_tls_is_refused() {
	local line
	start_rogue mysql_native_password --tls
	for line in ssl-fips-mode=ON loose-ssl-fips-mode=ON tls-sni-servername=a ssl=maybe skip-ssl=1 \
		ssl-mode ssl-ca tls-version=TLSv1.1 tls-version= ssl-verify ssl-verify-server-cert=2 \
		skip-ssl-ca; do
		lead_to_it "$line"
		ask
		expect_err 'ssl|tls'
		expect_equal "$code" 78
		gets_nothing
	done
	lead_to_it tls-ciphersuites=TLS_AES_128_GCM_SHA256
	ask
	[[ $connector == libmysqlclient ]] || {
		expect_err tls_ciphersuites
		gets_nothing
	}
}

(make_rogue) || {
	cat "$work/openssl.log"
	exit 1
}
run_tests
