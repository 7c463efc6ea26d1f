#!/bin/sh
# Tests of a client of petstore. Run "go build" in ../.. once, then in this folder: sh client.sh
# (dash, bash or zsh, and curl 7.82 or newer)

# A petstore of its own. It stops when its standard input ends: descriptor 3 is closed when this
# script and all that it started have ended, however they ended.
[ -x ../../petstore ] || { echo 'No petstore: run "go build" in ../.. first' >&2; exit 1; }
export PETSTORE_API_KEY=test
dir=$(mktemp -d)
mkfifo "$dir/in" "$dir/out"
../../petstore -addr 127.0.0.1:0 -stdin <"$dir/in" >"$dir/out" 2>"$dir/log" &
exec 3>"$dir/in"
read -r base <"$dir/out" || cat "$dir/log" >&2
rm -r "$dir"
[ "$base" ] || exit 1
url=${base%/v1} auth="Authorization: Bearer $PETSTORE_API_KEY"

# The client under test: put yours in place of these three functions. It sends a request up to
# three times, and gives up when an answer takes longer than $patience seconds.
patience=10
send() {
	for try in 1 2 3; do
		answer=$(curl -sf --max-time "$patience" -H "$auth" "$@") && return
		[ $? = 28 ] && return 28 # curl's exit code of a timeout
	done
	return 1
}
create_pet() { send "$url/v1/pets" --json '{"name":"Rex","categoryId":7}'; }
list_pets() { # prints the ids
	next='/v1/pets?limit=2'
	while [ "$next" ] && send -i "$url$next"; do
		printf '%s\n' "$answer" | grep -o '"id":[0-9]*'
		next=$(printf '%s\n' "$answer" | sed -n 's/^Link: <\(.*\)>.*/\1/p')
	done
}

# What the tests use.
call() { curl -sSf -H "$auth" "$@"; }
fault() { call -X POST "$url/__admin/reset" && call -X PUT "$url/__admin/fault?$1" >/dev/null; }
statuses() { # of the requests with this method, in the order of their answers
	call "$url/__admin/requests" | sed -n "s/.*\"method\":\"$1\".*\"status\":\([0-9]*\).*/\1/p" | xargs
}
pets() { call "$url/v1/pets" | grep -o '"id"' | grep -c .; } # how many there are
failed=0
check() { # name, got, want
	[ "$2" = "$3" ] && echo "ok - $1" && return
	echo "FAILED - $1: got '$2', want '$3'"
	failed=1
}

create_pet
check 'a pet is added once' "$(statuses POST)" '201'

fault 'code=503&retry-after=0&times=2&operation=createPet'
create_pet
check 'two errors, then success' "$(statuses POST)" '503 503 201'

fault 'code=500&skip=2&times=1&operation=listPets'
for pet in 1 2 3 4 5 6 7; do create_pet; done
ids=$(list_pets | tr -dc 0-9)
check 'the third page fails once' "$ids, $(statuses GET)" '1234567, 200 200 500 200 200'

# curl fails with 52, and repeats a request by itself only on a connection that it has used before.
# So it is send that repeats this one, and there are two pets.
fault 'code=lost&times=1&operation=createPet'
create_pet
check 'the answer of a create is lost' "$(statuses POST), $(pets)" '0 201, 2'

patience=2
fault 'delay=10&operation=createPet'
create_pet
code=$? polls=0
until [ "$(statuses POST)" ] || [ $((polls += 1)) -gt 100 ]; do :; done # until petstore has noticed it
check 'the client gives up, and nothing is done' "$code, $(statuses POST), $(pets)" '28, 0, 0'

fault 'code=stall&times=1&operation=createPet'
create_pet
check 'the client gives up on half an answer' "$?, $(statuses POST), $(pets)" '28, 201, 1'

exit $failed
