#!/bin/sh
# Tests of a client of petstore, to start from, for dash, bash and zsh, with curl 7.71 or
# newer. Copy this file into your own project, put the binary of petstore beside it, and
# run "sh client.sh".

PETSTORE=./petstore # the binary
[ -f "$PETSTORE" ] || {
	echo "there is no $PETSTORE: build petstore first, or change PETSTORE" >&2
	exit 1
}

# Start petstore, with a key of this run. It stops when descriptor 3 is closed, which
# happens when this script has ended, also if it is killed. If the script fails, it shows
# the log of petstore.
export PETSTORE_API_KEY="test-$$" no_proxy="127.0.0.1,${no_proxy-${NO_PROXY-}}" # a proxy could not reach it
dir=$(mktemp -d) || exit 1
trap '[ "$?" = 0 ] || cat "$dir/log" >&2; rm -r "$dir"' EXIT
trap 'exit 1' HUP INT TERM
mkfifo "$dir/in" "$dir/out"
"$PETSTORE" -addr 127.0.0.1:0 -stdin -log <"$dir/in" >"$dir/out" 2>"$dir/log" &
exec 3>"$dir/in"
read -r base <"$dir/out" || {
	echo "petstore did not start; its log may say why" >&2
	exit 1
}
auth="Authorization: Bearer $PETSTORE_API_KEY"

# create_pet is the client under test: put yours in its place. It tries up to this many
# times, and gives up each try after this number of seconds.
create_pet() { # tries, seconds
	curl -sf --retry "$(($1 - 1))" --retry-all-errors --max-time "$2" -H "$auth" \
		-H 'Content-Type: application/json' -d '{"name":"Rex","categoryId":7}' \
		"$base/pets" >/dev/null
}

# send sends a request of the test itself, which is not recorded and gets no fault.
send() { # method, path, options of curl
	method=$1 target=${base%/v1}$2
	shift 2
	curl -sSf -m 40 -X "$method" -H "$auth" -H 'Petstore-Observer: test' "$@" "$target" 3>&-
}

# reset replaces the pets, ends the fault, and clears the journal.
reset() { send POST /__admin/reset -d "$1"; }

fault() { send PUT "/__admin/fault?$1" >/dev/null; }

# requests prints a member of the requests, such as status, in the order in which they
# arrived. It waits until none waits: one that was given up is recorded a moment later.
# In strings of the journal, quotes have a backslash.
requests() {
	send GET '/__admin/requests?waiting=0' | grep -o "\"$1\":[^,}]*" | cut -d : -f 2- | tr -d '"'
}

# statuses prints the statuses of the requests, where 0 is no answer.
statuses() { requests status | xargs; }

pets() { send GET '/v1/pets?limit=100' | grep -o '"id":' | grep -c .; }

# outcome calls the client, and prints if it succeeds. It is called in a subshell, which
# closes descriptor 3, or petstore would run as long as the client does.
outcome() {
	exec 3>&-
	create_pet "$@" && echo success || echo error
}

# check compares a result with what is wanted.
failed=0
check() { # name, got, want
	[ "$2" = "$3" ] && echo "ok - $1" && return
	echo "FAILED - $1: got $2, want $3"
	failed=1
}

# The first request gets an error, the second a reset connection, and the third no
# answer, although its pet is added. So there are two pets, and a try is left.
reset '[]'
fault 'code=503,rst,lost&operation=createPet'
outcome=$(outcome 5 5)
check 'the client tries again' "$outcome, $(statuses), $(pets) pets" 'success, 503 0 0 201, 2 pets'

# The status 201 and half of the body arrive, and no more. After 30 seconds, petstore
# closes the connection, and the client fails, too. So only the time shows that it gave up.
reset '[]'
fault 'code=stall&times=1'
begin=$(date +%s)
outcome=$(outcome 1 2)
took=$(($(date +%s) - begin))
[ "$took" -ge 10 ] || took=2 # which is soon enough
check 'the client gives up in time' "$outcome after $took s, $(statuses)" 'error after 2 s, 201'

# The first answer is late. The client gives up, and tries again, although its first pet
# was added.
reset '[{"name":"Ace","categoryId":9}]'
fault 'answer-delay=10&times=1'
outcome=$(outcome 2 2)
check 'the client tries again after a timeout' "$outcome, $(statuses), $(pets) pets" 'success, 0 201, 3 pets'

# Each answer asks the client to wait for two seconds, longer than any wait of its own. It
# waits, tries again, and gives up after two tries.
reset '[]'
fault 'code=503&times=2&retry-after=2'
outcome=$(outcome 2 5)
gap=$(requests time | awk -F '[T:Z]' '
	{ now = ($2 * 60 + $3) * 60 + $4; gap = now - last + (now < last ? 86400 : 0); last = now }
	END { print NR < 2 ? "?" : gap < 1.9 ? gap : 2 } # 2 is late enough
')
check 'the client obeys Retry-After, and gives up' "$outcome, $(statuses), $gap s apart" 'error, 503 503, 2 s apart'

exit "$failed"
