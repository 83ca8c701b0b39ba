#!/usr/bin/env bash
# Options, help, and the messages about mistakes.
source "$(dirname "$0")/common.sh"

commands() {
	"$program" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'
}

# screen_of COMMAND...: its output fits a terminal of 80 x 24, with the prompt.
fits_a_screen() {
	expect 0 "$@"
	expect_no_err
	(($(wc -l <"$out") <= 23)) || fail "more than 23 lines: $*"
	(($(wc -L <"$out") <= 80)) || fail "wider than 80 columns: $*"
}

test_every_help_fits_a_screen() {
	local name
	fits_a_screen "$program" --help
	fits_a_screen "$program" help
	fits_a_screen "$program" help connection
	fits_a_screen "$program" help exit-codes
	[[ -n $(commands) ]] || fail "no commands"
	for name in $(commands); do
		fits_a_screen "$program" "$name" --help
		expect_out "^Usage: bizlock $name"
		fits_a_screen "$program" help "$name"
	done
}

# As flock(1) has them.
test_the_modes_of_a_lock_have_the_words_of_flock() {
	expect 0 "$program" exec --help
	expect_out '^  -s, --shared +a shared \(read\) lock$'
	expect_out '^  -x, --exclusive +an exclusive \(write\) lock, the default$'
	expect_out '^  -n, --nonblock +fail rather than wait'
}

test_the_version_is_that_of_the_header() {
	expect 0 "$program" --version
	expect_out "^bizlock $(sed -n 's/^#define BIZLOCK_VERSION "\(.*\)"/\1/p' "$root/include/bizlock.h"),"
	expect 0 "$program" help -V
}

test_mistakes_go_to_stderr_with_a_hint() {
	expect 64 "$program"
	expect_no_out
	expect_err "Try 'bizlock --help'"
	expect 64 "$program" help one two
	expect_err '"two" is one word too many'
	expect_err "Try 'bizlock help --help'"
	expect_no_out
}

test_the_nearest_command_and_option_are_suggested() {
	expect 64 "$program" hlep
	expect_err 'unknown command "hlep", did you mean "help"\?'
	expect 64 "$program" --prot=3306 help
	expect_err 'unknown option --prot, did you mean --port\?'
	expect 64 "$program" help --usr x
	expect_err 'did you mean --user\?'
	expect 64 "$program" help --entirely-different
	expect_err 'unknown option --entirely-different$'
	expect 64 "$program" help -Z
	expect_err 'unknown option -Z'
	expect 64 "$program" --ssl x help
	expect_err 'more than one option begins like this'
	expect 64 "$program" help --help=yes
	expect_err 'takes no value'
	expect 64 "$program" help --port
	expect_err 'needs a value'
}

test_bad_values_name_their_limits() {
	for option in --port -P; do
		expect 64 "$program" "$option" abc help
		expect_err '"abc" is not a whole number \(1 to 65535\)'
	done
	expect 64 "$program" help --ssl-mode=perhaps
	expect_err 'verify_identity'
}

# Whether --lease, which takes 1000 ms to a day, takes it.
takes() {
	run "$program" exec "--lease=$1"
	grep -q 'exec needs' "$err"
}

# Each at the end of the range, so that it is neither more nor less.
test_durations_are_read_exactly() {
	local text
	for text in 1 1.0 01 1s 1000ms .9991 0.9991s 999.1ms 0.017m 0.017min 0.0003h 0.0003hour 0.00002d \
		86400 86400s 1440m 1440min 24h 24hour 1d 1.0d 86399.999999999; do
		takes "$text" || fail "refused: $text"
	done
	for text in .999 0.999s 999.0ms 999ms 0.0166m 0.0002h 0.00001d 86400.000000001 86400.1s 1440.1min \
		24.001hour 1.00001d 2d 18446744073709551615 18446744073709551616s 9223372036854775.807; do
		! takes "$text" || fail "taken: $text"
	done
	for text in '' . 1. s .s 1.s 1..5 1.5.5 1,5 '1 s' ' 1' -1 +1 1x 1S 1e3 0x10 inf 1h30m 1.1234567890; do
		! takes "$text" || fail "taken: $text"
		grep -qF "\"$text\" is not a duration such as 10 (seconds), 500ms" "$err" || fail "no reason: $text"
	done
	expect 64 "$program" exec -w ever
	expect_err '"ever" is not a duration such as .* or "forever"'
}

# As in flock, sleep and timeout.
test_a_bare_number_is_seconds() {
	local began
	hold job a
	began=$(now_us)
	expect 124 "$program" exec -w 1 job a -- true
	(($(now_us) - began >= 900000)) || fail "it gave up after $(($(now_us) - began)) us"
	expect 0 "$program" exec --at-most-once-per 5000 job once -- true
	expect 0 "$program" show job once
	expect_out '^rest +1h 2[0-9]m'
	sql "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout, note, gmt_create, gmt_modified)
		VALUES ('job', 'dead', 'x@1.00@h', 1, UTC_TIMESTAMP(6) - INTERVAL 10 SECOND, '', UTC_TIMESTAMP(6),
		UTC_TIMESTAMP(6))"
	expect 0 "$program" reap --older-than 5000
	expect_out '^purged 0 '
	expect 0 "$program" reap --older-than 5
	expect_out '^purged 1 '
	expect 64 "$program" watch -n 2
	expect_err 'watch needs a terminal'
}

test_options_may_stand_before_the_command() {
	expect 0 "$program" --host=db1 --port 3307 -u me -D shop -S /x --ssl-mode=verify-ca help
	expect 0 "$program" help -hdb1,db2:3307 -P3307 -ume --table-prefix x_ --defaults-group-suffix=_x
}

test_a_password_is_no_argument() {
	for word in -psecret --password=secret --passw=secret; do
		expect 64 "$program" "$word" help
		expect_err 'can be seen by everybody'
		! grep -q secret "$err" || fail "the password is shown"
	done
}

test_what_can_not_be_written_is_noticed() {
	code=0
	"$program" --help >/dev/full 2>"$err" || code=$?
	expect_equal "$code" 74
	expect_err 'standard output: No space left'
	code=0
	"$program" --help >&- 2>"$err" || code=$?
	expect_equal "$code" 74
}

test_a_reader_that_goes_early_ends_it_in_silence() {
	set +e
	{
		"$program" --help 2>"$err"
		echo $? >"$work/code"
	} | true
	# Either the command was faster than the other end, or SIGPIPE ended it, as it ends filters.
	[[ $(cat "$work/code") == 0 || $(cat "$work/code") == 141 ]] || fail "exit code $(cat "$work/code")"
	expect_no_err
	(
		trap '' PIPE
		"$program" --help 2>"$err"
		echo $? >"$work/code"
	) | true
	[[ $(cat "$work/code") == 0 ]] || expect_err 'standard output'
}

test_words_of_strangers_do_no_harm_to_the_terminal() {
	expect 64 "$program" $'\e[2Jclear\xe2\x80\xae' # U+202E, whatever the shell's locale is
	expect_err '"\\x1b\[2Jclear\\xe2\\x80\\xae"'
}

run_tests
