#!/usr/bin/env bash
# Text of strangers in every kind of locale: cron, systemd and containers have C, or name one that
# is not installed.
source "$(dirname "$0")/common.sh"

# One of 8 bits, where few bytes are characters.
make_locale() {
	printf '%s\n' '<code_set_name> ISO-8859-6' '<escape_char> /' '<mb_cur_max> 1' CHARMAP \
		'<U0000>..<U007F> /x00 ASCII' '<U0623> /xc3 ALEF' 'END CHARMAP' >"$work/charmap"
	printf '%s\n' LC_CTYPE 'print <U0020>..<U007E>;<U0623>' 'END LC_CTYPE' >"$work/locale"
	mkdir -p "$work/locales"
	# It warns of the categories that are left out, and exits by 1.
	localedef --no-archive -c --quiet -i "$work/locale" -f "$work/charmap" "$work/locales/8bit" || true
	expect_equal "$(LOCPATH=$work/locales LC_ALL=8bit locale charmap)" ISO-8859-6
}

locales=(C 8bit xx_XX.UTF-8)

# within LOCALE COMMAND...: ends it if it does not end.
within() {
	LOCPATH=$work/locales LC_ALL=$1 timeout -s KILL 60 "${@:2}"
}

expect_ascii() {
	! LC_ALL=C grep -q '[^ -~]' "$out" "$err" || fail "not ASCII"
}

note() {
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1], encoding="utf-8"))["locks"][0]["note"] == "a naïve ۛ note")' "$out"
}

test_tables_end_in_every_locale() {
	local locale form
	make_locale
	hold job naïve --note 'a naïve ۛ note'
	for locale in "${locales[@]}"; do
		expect 0 within "$locale" "$program" list
		expect_out '^job +na\\xc3\\xafve +exclusive .* a na\\xc3\\xafve \\xdb\\x9b note$'
		expect_ascii
		expect 0 within "$locale" "$program" show job naïve
		expect_out '^note +a na\\xc3\\xafve \\xdb\\x9b note$'
		expect_ascii
		expect 0 within "$locale" "$program" list --json
		expect_equal "$(note)" True
		expect 0 within "$locale" "$program" show --json job naïve
		expect_equal "$(note)" True
		expect 64 within "$locale" "$program" break job naïve
		expect_err 'na\\xc3\\xafve'
		expect_ascii
		expect 75 within "$locale" "$program" exec -v -w 0 job naïve -- true
		expect_ascii
		for form in '' --json; do
			run within "$locale" "$program" doctor $form
			((code <= 1)) || fail "exit code $code: doctor $form"
		done
	done
	LOCPATH='' LC_ALL=C.UTF-8 expect 0 "$program" list
	expect_out '^job +naïve +exclusive .* a naïve ۛ note$'
}

test_watch_shows_and_ends_in_every_locale() {
	local locale
	make_locale
	hold job naïve --note 'a naïve note'
	terminal true 160
	for locale in "${locales[@]}"; do
		terminal_again "LOCPATH=$work/locales LC_ALL=$locale $program watch -n 100ms; echo code \$?; read x"
		await_screen '^job +na\\xc3\\xafve .* a na\\xc3\\xafve note'
		type_keys q
		await_screen '^code 0$'
	done
}

run_tests
