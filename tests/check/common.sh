# Sourced by the gates, which run in the top folder and print what they object
# to as file:line: why.

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
objections=0

object() {
	echo "$*"
	objections=$((objections + 1))
}

verdict() {
	((objections == 0)) || echo "$objections objections"
	exit $((objections > 0))
}

# A tool is missing: 77 means "skipped" to the harness.
skip() {
	echo "$*"
	exit 77
}

# Of C, and of C++.
c_files() {
	find "$@" -name '*.[ch]' -o -name '*.[ch]pp' | sort
}

# The code alone: comments and the insides of literals become blanks; lines stay.
code_of() {
	awk '
	{
		out = ""
		for (i = 1; i <= length($0); i++) {
			two = substr($0, i, 2); one = substr($0, i, 1)
			if (state == "comment") {
				if (two == "*/") { state = ""; i++ }
				out = out " "
			} else if (state != "") {
				if (one == "\\") i++
				else if (one == state) state = ""
				out = out (one == "\\" ? "  " : one == "\"" ? "\"" : " ")
			} else if (two == "/*") { state = "comment"; out = out "  "; i++ }
			else if (two == "//") break
			else {
				if (one == "\"" || one == "\047") state = one
				out = out one
			}
		}
		if (state != "comment") state = ""
		print out
	}' "$1"
}
