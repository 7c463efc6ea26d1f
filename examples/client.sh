#!/bin/sh
# A test of a client of petstore, to start from, for dash, bash and zsh, with any
# curl. Copy this file into your own project, put the binary of petstore beside
# it, and run "sh client.sh".

PETSTORE=./petstore # the binary
[ -f "$PETSTORE" ] || {
	echo "there is no $PETSTORE: build petstore first, or change PETSTORE" >&2
	exit 1
}

# Start petstore. Its standard error is that of this script, and says why it
# cannot start. It stops when descriptor 3 is closed, which happens when this
# script has ended, also if it is killed.
export PETSTORE_API_KEY=test no_proxy=127.0.0.1 # which a proxy could not reach
dir=$(mktemp -d) || exit 1
mkfifo "$dir/in" "$dir/out"
"$PETSTORE" -addr 127.0.0.1:0 -stdin <"$dir/in" >"$dir/out" &
exec 3>"$dir/in"
read -r base <"$dir/out"
rm -r "$dir"
[ "$base" ] || exit 1
auth="Authorization: Bearer $PETSTORE_API_KEY"

# The client under test: put yours in its place. It tries up to four times.
# Without 3>&-, a program would keep petstore running as long as it runs itself.
create_pet() {
	for try in 1 2 3 4; do
		curl -sf -m 5 -H "$auth" -H 'Content-Type: application/json' -d "$1" "$base/pets" 3>&- && return
	done
	return 1
}

# admin sends a request of the test itself, which is not recorded and to which no
# fault is applied.
admin() { # method, path
	curl -sSf -m 10 -X "$1" -H "$auth" -H 'Petstore-Observer: test' "${base%/v1}$2" 3>&-
}

# The first request gets an error, the second a reset connection, and the third no
# answer, although its pet is added. So there are two pets.
admin PUT '/__admin/fault?code=503,rst,lost&operation=createPet' >/dev/null || exit 1

create_pet '{"name":"Rex","categoryId":7}' >/dev/null

# In strings of the journal, quotes have a backslash, so these are its statuses.
statuses=$(admin GET /__admin/requests | grep -o '"status":[0-9]*' | cut -d : -f 2 | xargs)
pets=$(admin GET '/v1/pets?limit=100' | grep -o '"id":' | grep -c .)
if [ "$statuses, $pets" != '503 0 0 201, 2' ]; then
	echo "FAILED - createPet is retried: the statuses are $statuses, and there are $pets pets"
	exit 1
fi
echo 'ok - createPet is retried'
