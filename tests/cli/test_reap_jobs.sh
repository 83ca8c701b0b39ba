#!/usr/bin/env bash
# What cron and the systemd service run, with the environment that they give: the
# lines of src/pkg, with this build's paths instead of the installed ones.
source "$(dirname "$0")/common.sh"

reaper=$(dirname "$program")/bizlock-reaper

# runs_quietly COMMAND...: it purges a stale row, and has nothing to say.
runs_quietly() {
	sql "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, gmt_create, gmt_modified)
		SELECT 'gone', 'job', '1@1.1@h', 1, t, t, t FROM (SELECT UTC_TIMESTAMP(6) - INTERVAL 2 HOUR AS t) AS x"
	expect_equal "$(sql "SELECT COUNT(*) FROM biz_lock")" 1
	expect 0 "$@"
	expect_no_out
	expect_no_err
	expect_equal "$(sql "SELECT COUNT(*) FROM biz_lock")" 0
}

# The rest of a line of src/pkg, after the word that it begins with.
here() {
	sed -E "s,@CMAKE_INSTALL_FULL_BINDIR@/bizlock-reaper,$reaper,; s,(@CMAKE_INSTALL_FULL_SYSCONFDIR@/bizlock|\\$\{CREDENTIALS_DIRECTORY\}),$work,"
}

option_file() {
	cp "$work/client.cnf" "$work/reaper.cnf"
	printf '[bizlock]\ndatabase=%s\n' "$database" >>"$work/reaper.cnf"
	unset BIZLOCK_DEFAULTS_FILE BIZLOCK_DATABASE
}

test_the_line_for_cron_runs() {
	local command
	command=$(grep -v '^#' "$root/src/pkg/cron/bizlock-reaper.in" | cut -d ' ' -f 7- | here)
	option_file
	runs_quietly env -i HOME=/ LOGNAME=root SHELL=/bin/sh PATH=/usr/bin:/bin sh -c "$command"
}

test_the_service_runs() {
	local command
	command=$(sed -n 's/^ExecStart=//p' "$root/src/pkg/systemd/bizlock-reaper.service.in" | here)
	option_file
	read -ra words <<<"$command"
	runs_quietly env -i PATH=/usr/bin:/bin "${words[@]}"
}

run_tests
