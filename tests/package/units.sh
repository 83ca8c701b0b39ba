#!/usr/bin/env bash
# The reaper's units and its line for cron, as installed: systemd takes them, the
# service keeps its locks on the doors, and the command that both run is there.
set -euo pipefail
source "$(dirname "$0")/common.sh"
units=$prefix/lib/systemd/system
cron=$prefix/share/bizlock/cron.d/bizlock-reaper

if [[ ! -x $prefix/bin/bizlock-reaper ]]; then
	echo "bizlock was built without its command"
	exit 77
fi

step "cron"
line=$(grep -v '^#' "$cron")
read -r _ hour _ _ _ user command option _ <<<"$line"
[[ $hour == '*' && $user == root && $command == "$prefix/bin/bizlock-reaper" &&
	$option == --defaults-file=* ]] || die "the line for cron is: $line"

step "systemd"
if ! command -v systemd-analyze >/dev/null; then
	echo "[SKIP] package: systemd-analyze is not installed"
	exit 0
fi
exec_start=$(sed -n 's/^ExecStart=//p' "$units/bizlock-reaper.service")
[[ ${exec_start%% *} == "$command" ]] || die "the service runs $exec_start"
logged systemd-analyze verify --man=no "$units"/bizlock-reaper.{service,timer}
[[ ! -s $work/log ]] || die "$(cat "$work/log")"
# 0 means a service that may do nothing, 10 one that may do everything.
[[ $(systemd-analyze --help) != *--offline* ]] ||
	logged systemd-analyze security --offline=yes --threshold=20 "$units/bizlock-reaper.service"
