#!/bin/sh
# A test of a client of petstore, to start from. Run "go build" in .. once, and
# then "sh client.sh" here (dash, bash or zsh, with any curl).

petstore=$(dirname "$0")/../petstore
[ -f "$petstore" ] || { echo "there is no $petstore: build petstore first, with \"go build\"" >&2; exit 1; }

# Start petstore. Its standard error is that of this script, and says why it
# cannot start. It stops when descriptor 3 is closed, which happens when this
# script has ended, also if it is killed.
export PETSTORE_API_KEY=test
dir=$(mktemp -d) || exit 1
mkfifo "$dir/in" "$dir/out"
"$petstore" -addr 127.0.0.1:0 -stdin <"$dir/in" >"$dir/out" &
exec 3>"$dir/in"
read -r base <"$dir/out" || echo 'petstore did not start' >&2
rm -r "$dir"
[ "$base" ] || exit 1
auth="Authorization: Bearer $PETSTORE_API_KEY"
rex='{"name":"Rex","categoryId":7}'

# The client under test: put yours in its place. It tries up to four times.
create_pet() {
	for try in 1 2 3 4; do
		curl -sf -H "$auth" -H 'Content-Type: application/json' -d "$1" "$base/pets" 3>&- && return
	done
	return 1
}

# admin sends a request of the test itself, which is not recorded and to which no
# fault is applied.
admin() { # method, path
	curl -sSf -X "$1" -H "$auth" -H 'Petstore-Observer: test' "${base%/v1}$2" 3>&-
}

# The first request gets an error, the second a reset connection, and the third no
# answer, although its pet is added.
admin PUT '/__admin/fault?code=503,rst,lost&operation=createPet' >/dev/null || exit 1

create_pet "$rex" >/dev/null

pets=$(admin GET '/v1/pets?limit=100' | grep -o '"id"' | grep -c .)
statuses=$(admin GET /__admin/requests | sed -n 's/.*"status":\([0-9]*\),"seconds.*/\1/p' | xargs)
if [ "$statuses, $pets" = '503 0 0 201, 2' ]; then
	echo 'ok - createPet is retried'
else
	echo "FAILED - createPet is retried: the statuses are $statuses, and there are $pets pets"
	exit 1
fi
