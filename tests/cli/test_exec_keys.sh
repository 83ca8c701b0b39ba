#!/usr/bin/env bash
# bizlock exec --and: several locks, all or none.
source "$(dirname "$0")/common.sh"

both() {
	"$program" exec "$@"
}

test_the_command_runs_under_all_its_locks_and_frees_them() {
	"$program" exec order 4711 --lease 9s --and stock 'a b' --and -t -i -- sleep 1000 &
	await held order 4711
	held stock 'a b' || fail "the second is not held"
	held -t -i || fail "the third is not held"
	kill $!
	exit_of $!
	free order 4711 || fail "the first is still held"
	free stock 'a b' || fail "the second is still held"
	free -t -i || fail "the third is still held"
}

test_the_child_knows_all_its_locks() {
	BIZLOCK_TYPE_3=old BIZLOCK_FENCE_17=1 expect 0 both --and stock 2 order 1 -- env
	expect_out '^BIZLOCK_TYPE=order$'
	expect_out '^BIZLOCK_ID=1$'
	expect_out '^BIZLOCK_TYPE_2=stock$'
	expect_out '^BIZLOCK_ID_2=2$'
	expect_out '^BIZLOCK_FENCE_2=[1-9][0-9]*$'
	expect_out '^BIZLOCK_TOOK_OVER_2=0$'
	! grep -qE '^BIZLOCK_[A-Z]+_(3|17)=' "$out" || fail "it has another command's variables"
	sql "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout, note, gmt_create, gmt_modified)
		VALUES ('stock', '2', 'exec@77.00112233aabbccdd@db-7', 1, UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE, '',
		UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"
	expect 0 both order 1 --and stock 2 -- sh -c 'echo $BIZLOCK_TOOK_OVER $BIZLOCK_TOOK_OVER_2'
	expect_out '^0 1$'
	expect_err 'stock/2 was taken over'
}

test_while_one_is_held_the_others_stay_free() {
	hold stock 2
	expect 75 both -n order 1 --and stock 2 -- true
	free order 1 || fail "half of the locks were taken"
	"$program" exec -v order 1 --and stock 2 -- echo mine >"$out" 2>"$err" &
	await file_says "$err" 'stock/2 is held by exec@'
	expect 0 both -n order 1 -- true
	kill "$holder"
	exit_of $!
	expect_equal "$code" 0
}

test_different_orders_do_not_wait_in_a_circle() {
	local i
	for i in 1 2 3 4 5; do
		both -w 60 order 1 --and stock 2 -- true &
		both -w 60 stock 2 --and order 1 -- true &
	done
	for i in $(jobs -p); do
		exit_of "$i"
		expect_equal "$code" 0
	done
}

test_the_loss_of_any_lock_ends_the_command() {
	"$program" exec --lease 3s order 1 --and stock 2 -- sleep 1000 2>"$err" &
	await held stock 2
	"$program" break --yes --fence "$(fence_of stock 2)" stock 2 >"$work/break"
	exit_of $!
	expect_equal "$code" 80
	expect_err '^bizlock: stock/2: the lock is lost; the command is killed$'
	expect_err 'order/1 \(with stock/2\) was not safely held to the end'
	free order 1 || fail "what was not lost is still held"
}

test_what_makes_no_sense_is_refused() {
	expect 64 both -s order 1 --and stock 2 -- true
	expect_err '--and takes exclusive locks, so --shared does not go with it'
	expect 64 both --limit 3 order 1 --and stock 2 -- true
	expect_err 'so --limit does not'
	expect 64 both --at-most-once-per 1h order 1 --and stock 2 -- true
	expect_err '--at-most-once-per is for one lock'
	expect 64 both --record order 1 --and stock 2 -- true
	expect_err '--record is for one lock'
	expect 64 both order 1 --and stock -- true
	expect_err '--and needs two values: BIZ_TYPE BIZ_ID'
	expect 64 both order 1 --and
	expect_err '--and needs a value: BIZ_TYPE BIZ_ID'
	expect 64 both order 1 --and stock 2 true
	expect 64 both order 1 stock 2 -- true
	expect 64 both order 1 --and order 1 -- true
	expect_err 'order/1'
	expect 64 "$program" list --and order 1
	# shellcheck disable=SC2046
	expect 64 both order 1 $(printf -- '--and stock %d ' {1..256}) -- true
	expect_err 'more than 256 locks'
	# shellcheck disable=SC2046
	expect 0 both order 1 $(printf -- '--and stock %d ' {1..255}) -- sh -c 'echo $BIZLOCK_ID_256'
	expect_out '^255$'
}

test_waiting_for_a_lock_of_an_exec_around_is_refused() {
	expect 81 both stock 2 -- "$program" exec order 1 --and stock 2 -- echo ran
	expect_err 'stock/2 is held by the exec that runs this one'
	expect_no_out
	expect 81 both order 1 --and stock 2 -- "$program" exec stock 2 -- echo ran
}

run_tests
