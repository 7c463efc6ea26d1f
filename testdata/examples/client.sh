#!/bin/sh
# Tests of a client of petstore. Run "go build" in ../.. once, and then
# "sh client.sh" here (dash, bash or zsh, with any curl).

[ -x ../../petstore ] || { echo 'build petstore first, with "go build"' >&2; exit 1; }

# Start petstore. Its standard error is that of this script, and says why it
# cannot start. It stops when descriptor 3 is closed, which happens when this
# script has ended, also if it is killed.
export PETSTORE_API_KEY=test
dir=$(mktemp -d)
mkfifo "$dir/in" "$dir/out"
../../petstore -addr 127.0.0.1:0 -stdin -log=false <"$dir/in" >"$dir/out" &
exec 3>"$dir/in"
read -r base <"$dir/out" || echo 'petstore did not start' >&2
rm -r "$dir"
[ "$base" ] || exit 1
auth="Authorization: Bearer $PETSTORE_API_KEY"

# The client under test: put yours in place of these functions. It sends a
# request up to four times. It gives up when an answer takes longer than $timeout
# seconds.
timeout=20
send() {
	for try in 1 2 3 4; do
		answer=$(curl -sf --max-time "$timeout" -H "$auth" "$@") && return
		[ $? = 28 ] && return 28 # curl's exit code for a timeout
	done
	return 1
}
create_pet() {
	send "$base/pets" -H 'Content-Type: application/json' -d '{"name":"Rex","categoryId":7}'
}
list_pets() { # prints the ids
	next='/v1/pets?limit=2'
	while [ "$next" ] && send -i "${base%/v1}$next"; do
		printf '%s\n' "$answer" | grep -o '"id":[0-9]*'
		next=$(printf '%s\n' "$answer" | sed -n 's/^Link: <\(.*\)>.*/\1/p')
	done
}

# admin sends a request of the test itself, which is not recorded and to which no
# fault is applied.
admin() { # method, path, curl's options
	method=$1 url=${base%/v1}$2
	shift 2
	curl -sSf -X "$method" -H "$auth" -H 'Petstore-Observer: test' "$@" "$url"
}
# start_test replaces the pets, the fault and the journal of the test before.
start_test() { # pets, fault
	admin POST /__admin/reset -H 'Content-Type: application/json' -d "$1"
	[ -z "$2" ] || admin PUT "/__admin/fault?$2" >/dev/null
}
# statuses prints the statuses of the answers. A request is recorded before its
# answer is sent, so statuses need not wait.
statuses() {
	admin GET /__admin/requests | sed -n 's/.*"status":\([0-9]*\),"seconds.*/\1/p' | xargs
}
sent() { # prints the method, the URL and the body of each request
	admin GET /__admin/requests |
		sed -n 's/.*"method":"\(.*\)","url":"\(.*\)","headers.*"body":"\(.*\)","status.*/\1 \2 \3/p' |
		sed 's/\\"/"/g'
}
pets() { # prints the number of pets
	admin GET /v1/pets | grep -o '"id"' | grep -c .
}
failed=0
check() { # name, got, want
	if [ "$2" = "$3" ]; then
		echo "ok - $1"
	else
		echo "FAILED - $1: got '$2', want '$3'"
		failed=1
	fi
}
rex='{"name":"Rex","categoryId":7}'

start_test '[]' ''
create_pet
check 'a pet is added once' "$(statuses), $(pets), $(sent)" "201, 1, POST /v1/pets $rex"

# The first request gets an error, the second a reset connection, and the third no
# answer, although its pet is added. So there are two pets in the end.
start_test '[]' 'code=503,rst,lost&retry-after=0&operation=createPet'
create_pet
check 'createPet is retried' "$(statuses), $(pets)" '503 0 0 201, 2'

start_test "[$rex,$rex,$rex,$rex,$rex,$rex,$rex]" 'code=500&skip=2&times=1&operation=listPets'
ids=$(list_pets | tr -dc 0-9)
check 'the third page fails once' "$ids, $(statuses)" '1234567, 200 200 500 200 200'

# The answer comes in pieces, one a second, until the test ends the fault. Then the
# rest comes at once.
start_test "[$rex]" 'code=drip&operation=listPets'
file=$(mktemp)
list_pets >"$file" &
list=$!
admin GET '/__admin/requests?total=1' >/dev/null # returns when the first piece is about to be sent
check 'the client waits for a slow answer' "$(cat "$file")" ''
admin DELETE /__admin/fault
wait "$list"
check 'a slow answer is read to its end' "$(cat "$file"), $(statuses)" '"id":1, 200'
rm "$file"

timeout=2
give_up() { # name, fault, want
	start_test '[]' "$2&operation=createPet"
	create_pet
	code=$?
	# petstore may record a request a moment after its client has left.
	admin GET '/__admin/requests?total=1' >/dev/null
	check "$1" "$code, $(statuses), $(pets)" "$3"
}
give_up 'the client gives up before the operation' 'delay=30' '28, 0, 0'

# A client whose timeout covers only the headers waits for 30 seconds here.
give_up 'the client gives up on half an answer' 'code=stall' '28, 201, 1'

exit $failed
