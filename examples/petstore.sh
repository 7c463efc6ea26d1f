#!/bin/sh
# Tests of a client of petstore, with curl, for dash, bash, zsh and busybox. Copy this file into
# your project, build petstore beside it, and run "sh petstore.sh". Then put your client in the
# place of the one below. For each test, a line begins with "ok" or "not ok".

# This says whether your client repeats a POST of which it did not get the whole answer, so that
# a pet may be added twice. It is true or false: you decide, and the tests expect what it says.
REPEATS_LOST_POST=false

# create_pet and list_pets are the client under test. Put yours in the place of everything from
# here to the line, but give no function a name from below the line. They call the API at $base
# with the key $key, try each request up to $tries times, and give up a try after $timeout
# seconds. They print pets as JSON, and return 0 only if they got the whole answer and a success.

# create_pet adds a pet, and prints it.
create_pet() { # its name, without quotes and backslashes
	request POST "$base/pets" \
		-H 'Content-Type: application/json' -d "{\"name\":\"$1\",\"categoryId\":7}" &&
		print_body
}

# list_pets prints all pets, page by page. The header Link has the path of the next page.
list_pets() {
	next=/v1/pets
	while [ "$next" ]; do
		request GET "${base%/v1}$next" || return 1
		print_body
		next=$(header '[Ll]ink: <\(.*\)>; rel="next"')
	done
}

# request sends a request until it succeeds, must not be repeated, or has no tries left. Then
# $answer has the headers and the body of the last answer.
request() { # method, URL, options of curl
	try=1
	while :; do
		answer=$(curl -sSi --max-time "$timeout" -H "Authorization: Bearer $key" -X "$@")
		lost=$? # is 0 if the whole answer arrived
		code=${answer#* }
		code=${code%%[!0-9]*}
		case "$1 $lost $code" in
		*' 0 2'*) return 0 ;;
		*' 0 429' | *' 0 503') again=true ;; # it was refused, and not performed
		*' 0 3'* | *' 0 4'*) again=false ;;
		GET*) again=true ;;
		*) again=$REPEATS_LOST_POST ;;
		esac
		if [ "$again" = false ] || [ "$try" -ge "$tries" ]; then
			echo "$1 $2 failed, tries: $try, status: ${code:-0}" >&2
			return 1
		fi
		retry_after=$(header '[Rr]etry-[Aa]fter: \([0-9]*\)')
		sleep "${retry_after:-1}"
		try=$((try + 1))
	done
}

# header prints the part of a header that is in the group of a pattern.
header() { # pattern
	printf '%s\n' "$answer" | tr -d '\r' | sed -n -e '/^$/,$d' -e "s/^$1\$/\1/p"
}

print_body() { printf '%s\n' "$answer" | tr -d '\r' | sed '1,/^$/d'; }

# ------------------------------ here ends the client under test ------------------------------

# The requests get a 503, no answer, a reset connection, a page of HTML, and half of the answer. The
# second, the fourth and the fifth add their pets.
lost_answer() {
	prepare '[]' 'code=503,lost,rst,html,truncate&operation=createPet' 6 5
	call create_pet Rex
	if [ "$REPEATS_LOST_POST" = true ]; then
		check 'success, stored pets: 4, statuses: [503 0 0 502 201 201]'
	else
		check 'error, stored pets: 1, statuses: [503 0]'
		call create_pet Rex
		check 'error, stored pets: 1, statuses: [503 0 0]'
		call create_pet Rex
		check 'error, stored pets: 2, statuses: [503 0 0 502]'
		call create_pet Rex
		check 'error, stored pets: 3, statuses: [503 0 0 502 201]'
	fi
}

# The status 201 and half of the body arrive, and no more. After 30 seconds, petstore closes the
# connection, and the client gets an error, too. So only the time shows that it gave up.
stalled_answer() {
	prepare '[]' 'code=stall&times=2' 2 2
	begin=$(date +%s)
	call create_pet Rex
	took=$(($(date +%s) - begin))
	if [ "$REPEATS_LOST_POST" = true ]; then
		limit=10
		check 'error, stored pets: 2, statuses: [201 201]'
	else
		limit=5
		check 'error, stored pets: 1, statuses: [201]'
	fi
	[ "$took" -le "$limit" ] || fail "create_pet took $took s; want at most $limit s"
}

# The first answer is late. The client gives up, although its pet has been added.
late_answer() {
	prepare '[]' 'answer-delay=10&times=1' 2 2
	call create_pet Rex
	if [ "$REPEATS_LOST_POST" = true ]; then
		check 'success, stored pets: 2, statuses: [0 201]'
	else
		check 'error, stored pets: 1, statuses: [0]'
	fi
}

# Each answer asks the client to wait for two seconds, longer than any wait of its own. It waits,
# tries again, and gives up after two tries.
obeys_retry_after() {
	prepare '[]' 'code=503&times=2&retry-after=2' 2 5
	call create_pet Rex
	check 'error, stored pets: 0, statuses: [503 503]'
	gap=$(printf '%s\n' "$journal" | members time | awk -F '[T:.Z]' '
		{ last = now; now = (($3 * 60 + $4) * 60 + $5) * 1000 + $6 }
		END { print now - last + (now < last ? 86400000 : 0) } # midnight may lie between them
	')
	[ "$gap" -ge 1900 ] || fail "the second request came after $gap ms; want 2000 ms"
}

# Pages have 20 pets. Half of the second page arrives, then half and no more for 30 seconds, and then
# all of it. Instead of the third, the connection is closed. In the end, each pet must have been
# listed once.
lists_all_pages() {
	pet='{"name":"Rex","categoryId":7}'
	five=$pet,$pet,$pet,$pet,$pet
	fifteen=$five,$five,$five
	prepare "[$fifteen,$fifteen,$fifteen]" 'code=ok,truncate,stall,ok,hangup&operation=listPets' 5 2
	call list_pets
	ids=$(printf '%s\n' "$output" | members id)
	listed=$(echo "$ids" | grep -c .)
	different=$(echo "$ids" | sort -u | grep -c .)
	[ "$outcome" = error ] || [ "$listed $different" = '45 45' ] ||
		fail "list_pets printed $listed pets with $different ids; want 45 with 45"
	check 'success, stored pets: 45, statuses: [200 200 200 200 0 200]'
}

# prepare sets the pets, the fault, and the variables of the client. The client adds no pet
# before: curl keeps no connection from one call to the next, so each request has a new one.
prepare() { # pets, fault, tries, timeout
	send -d "$1" "$admin/reset" || exit 1
	send -X PUT "$admin/fault?$2" >/dev/null || exit 1
	tries=$3
	timeout=$4
}

# call calls the client, and keeps what it prints, errors included, and whether it succeeds.
call() { # function, arguments
	output=$("$@" 2>&1) && outcome=success || outcome=error
}

# check compares what the client reported, how many pets petstore has, and the statuses of the
# requests, where 0 is no answer. It waits until those that the client has given up have ended.
check() { # what is wanted
	journal=$(send "$admin/requests?waiting=0") || exit 1
	pets=$(send "$admin/pets?limit=100" | members id | grep -c .)
	statuses=$(printf '%s\n' "$journal" | members status | tr -dc '0-9\n' | xargs)
	got="$outcome, stored pets: $pets, statuses: [$statuses]"
	[ "$got" = "$1" ] || fail "got $got; want $1"
}

# fail ends the test, and prints why, what the client printed, and a line for each request.
fail() { # message
	echo "$1; REPEATS_LOST_POST is $REPEATS_LOST_POST"
	printf 'the client printed: %s\n' "$output" | cut -c 1-200
	send "$admin/requests?waiting=0" | members 'method|url|fault|status' |
		awk '{ printf "%s%s", $0, /^"status"/ ? "\n" : " " }'
	exit 1
}

# send sends a request to /__admin. Petstore may wait for 30 seconds before it answers.
send() { # arguments of curl
	curl -sSf --max-time 40 -H "Authorization: Bearer $key" "$@"
}

# members prints members of JSON, one on each line. It finds nothing in strings, where quotes
# have a backslash.
members() { # names with | between them
	grep -oE "\"($1)\": *(\"[^\"]*\"|\{[^}]*\}|[0-9]+)"
}

petstore=$(dirname "$0")/petstore # the binary
[ -f "$petstore" ] || {
	echo "there is no $petstore: build petstore first, or change its path in this file" >&2
	exit 1
}

# The key is that of this run, so that no other petstore can answer. A proxy of the environment
# could not reach this one.
key=test-$$
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1

# Petstore stops when descriptor 3 is closed, which happens even if this script is killed.
dir=$(mktemp -d) || exit 1
mkfifo "$dir/in" "$dir/out" || exit 1
PETSTORE_API_KEY=$key "$petstore" -addr 127.0.0.1:0 -stdin <"$dir/in" >"$dir/out" &
exec 3>"$dir/in"
read -r base <"$dir/out"
rm -r "$dir"
[ "$base" ] || {
	echo "petstore did not start; standard error may say why" >&2
	exit 1
}
admin=${base%/v1}/__admin

# Each test runs in a subshell, which closes descriptor 3, or petstore would run as long as it.
failed=0
for test in lost_answer stalled_answer late_answer obeys_retry_after lists_all_pages; do
	if report=$(exec 3>&- 2>&1 && "$test"); then
		echo "ok - $test"
	else
		echo "not ok - $test"
		printf '%s\n' "$report" | sed 's/^/  /'
		failed=1
	fi
done
exec 3>&-
wait
exit "$failed"
