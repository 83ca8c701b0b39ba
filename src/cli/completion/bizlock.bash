# bash completion for bizlock(1) and bizlock-reaper(8)

_bizlock_connection='--host --port --socket --user --password --database --defaults-file
	--defaults-group-suffix --ssl-mode --ssl-ca --ssl-cert --ssl-key --table-prefix --trace --help --version'

# The options of a command.
_bizlock_options() {
	case $1 in
	exec) echo --wait --nonblock --lease --shared --exclusive --and --limit --note --at-most-once-per --retry-failed --max-hold --record \
		--conflict-exit-code --verbose ;;
	acquire) echo --wait --nonblock --lease --shared --exclusive --limit --note --verbose ;;
	renew) echo --lease ;;
	list) echo --type --held --stale --json ;;
	show) echo --json ;;
	runs) echo --json ;;
	overdue) echo --within ;;
	watch) echo --type --interval ;;
	metrics) echo --output ;;
	break) echo --fence --yes ;;
	reap) echo --older-than --batch --pause --max --dry-run --json --quiet ;;
	migrate) echo --dry-run --status --raise-fences --routines --drop-routines ;;
	grants) echo --routines ;;
	doctor) echo --json ;;
	esac
}

_bizlock_takes_value() {
	case $1 in
	-n) [[ $2 != exec && $2 != acquire ]] ;; # there it is --nonblock
	-[hPSuDwEt] | --host | --port | --socket | --user | --database | --defaults-file | \
		--defaults-group-suffix | --ssl-mode | --ssl-ca | --ssl-cert | --ssl-key | --table-prefix | \
		--wait | --timeout | --lease | --and | --limit | --note | --at-most-once-per | --max-hold | --conflict-exit-code | --type | --interval | \
		--within | --fence | --older-than | --batch | --pause | --max | --output) ;;
	*) return 1 ;;
	esac
}

_bizlock() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' i
	COMPREPLY=()
	[[ ${COMP_WORDS[0]##*/} != bizlock-reaper ]] || command=reap
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- && $command == exec ]]; then
			# What follows is a command line of its own.
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			else
				COMPREPLY=($(compgen -c -- "$cur"))
			fi
			return
		fi
		if _bizlock_takes_value "${COMP_WORDS[i]}" "$command"; then
			i=$((i + 1))
		elif [[ ${COMP_WORDS[i]} != -* && -z $command ]]; then
			command=${COMP_WORDS[i]}
		fi
	done
	case $prev in
	-S | --socket | --defaults-file | --ssl-ca | --ssl-cert | --ssl-key | --output)
		COMPREPLY=($(compgen -f -- "$cur"))
		return
		;;
	--ssl-mode)
		COMPREPLY=($(compgen -W 'disabled preferred required verify-ca verify-identity' -- "$cur"))
		return
		;;
	-w | --wait | --timeout)
		COMPREPLY=($(compgen -W 'forever 0' -- "$cur"))
		return
		;;
	esac
	if _bizlock_takes_value "$prev" "$command"; then
		return
	elif [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$(_bizlock_options "$command") $_bizlock_connection" -- "$cur"))
	elif [[ -z $command ]]; then
		COMPREPLY=($(compgen -W 'exec acquire renew release list show watch runs overdue metrics break reap migrate grants doctor help' -- "$cur"))
	elif [[ $command == help ]]; then
		COMPREPLY=($(compgen -W 'exec acquire renew release list show watch runs overdue metrics break reap migrate grants doctor help
			connection exit-codes' -- "$cur"))
	fi
}

complete -F _bizlock bizlock bizlock-reaper
