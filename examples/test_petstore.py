"""Tests of an HTTP client of petstore, for Python 3.10 or newer with pytest.

Copy this file and the binary petstore into a folder of your project. The tests pass with the sample
client below. Then put your own client in its place.
"""
import datetime
import http.client
import json
import os
import pathlib
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

# Says whether your client repeats a POST of which it did not get the whole answer. Such a client
# may add a pet twice. The tests expect what you choose here.
REPEATS_LOST_POST = False


def new_client(base, key, tries, timeout):
    """Makes the client under test.

    The client sends a request up to this many times, each with the timeout in seconds. Replace all
    from here to the line where the client ends. The tests use new_client, the methods create_pet
    and list_pets of what it returns, and the "id" of a pet.
    """
    return Client(base, key, tries, timeout)


class Client:
    def __init__(self, base, key, tries, timeout):
        self.base = base  # such as http://127.0.0.1:54321/v1
        self.key = key
        self.tries = tries
        self.timeout = timeout

    def create_pet(self, name):
        """Adds a pet, and returns it with its id."""
        pet, _ = self._send("POST", self.base + "/pets", {"name": name, "categoryId": 7})
        return pet

    def list_pets(self):
        """Returns the pets of all pages."""
        pets = []
        url = self.base + "/pets"
        while True:
            page, headers = self._send("GET", url)
            pets += page
            link = re.fullmatch('<(.+)>; rel="next"', headers.get("Link", ""))
            if not link:
                return pets
            url = urllib.parse.urljoin(url, link[1])

    def _send(self, method, url, body=None):
        """Sends a request until it succeeds, must not be repeated, or has no tries left."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": "Bearer " + self.key, "Content-Type": "application/json"}
        request = urllib.request.Request(url, data, headers, method=method)
        repeats = method == "GET" or REPEATS_LOST_POST
        for attempt in range(1, self.tries + 1):
            wait = 0.05 * 2**attempt
            try:
                # The timeout of urllib is for each read, so a slow answer may take longer.
                with urllib.request.urlopen(request, timeout=self.timeout) as response:
                    return json.load(response), response.headers
            except urllib.error.HTTPError as error:
                error.close()
                not_performed = error.code in (429, 503)
                repeat = not_performed or repeats and error.code >= 500
                if not repeat or attempt == self.tries:
                    raise
                retry_after = error.headers.get("Retry-After", "")
                if retry_after.isdigit():
                    wait = max(wait, int(retry_after))
            except (OSError, http.client.HTTPException):
                if not repeats or attempt == self.tries:
                    raise
            time.sleep(wait)


# ------------------------------ here ends the client under test ------------------------------


def test_lost_answer(petstore):
    # The first request gets a 503, and the third a reset. The second, the fourth and the fifth add
    # their pets, but get no answer, a page of HTML, and half of the answer.
    fault = "code=503,lost,rst,html,truncate&operation=createPet"
    client = petstore.client(0, fault, tries=6, timeout=5)
    wants = [
        "error, stored pets: 1, statuses: [503, 0]",
        "error, stored pets: 1, statuses: [503, 0, 0]",
        "error, stored pets: 2, statuses: [503, 0, 0, 502]",
        "error, stored pets: 3, statuses: [503, 0, 0, 502, 201]",
    ]
    if REPEATS_LOST_POST:
        wants = ["success, stored pets: 4, statuses: [503, 0, 0, 502, 201, 201]"]
    for want in wants:
        _, error = outcome(client.create_pet, "Rex")
        petstore.check(error, want)


def test_stalled_answer(petstore):
    # The pet is added, but only the status 201 and half of the body arrive. After 30 seconds,
    # petstore closes the connection, which is an error for the client, too. So only the time shows
    # that the client gave up. It has two tries, so that a repetition is noticed in any case.
    client = petstore.client(0, "code=stall&times=2", tries=2, timeout=2)
    begin = time.monotonic()
    _, error = outcome(client.create_pet, "Rex")
    took = time.monotonic() - begin
    if REPEATS_LOST_POST:
        petstore.check(error, "error, stored pets: 2, statuses: [201, 201]")
    else:
        petstore.check(error, "error, stored pets: 1, statuses: [201]")
    if took > 10:
        petstore.fail(f"create_pet took {took:.1f} s, want 2 s for each try", error)


def test_late_answer(petstore):
    # The first request adds its pet, but its answer comes after the timeout. The journal says
    # whether the client sent the request again.
    client = petstore.client(0, "answer-delay=10&times=1", tries=2, timeout=2)
    _, error = outcome(client.create_pet, "Rex")
    repeated = any(request.get("repeats") for request in petstore.requests())
    if repeated != REPEATS_LOST_POST or (error is None) != REPEATS_LOST_POST:
        petstore.fail(f"repeated: {repeated}; want a repetition, or else an error", error)


def test_obeys_retry_after(petstore):
    # Both answers ask the client to wait for two seconds, which must be longer than it waits
    # without Retry-After. The client waits, tries again, and gives up after two tries.
    client = petstore.client(0, "code=503&times=2&retry-after=2", tries=2, timeout=5)
    _, error = outcome(client.create_pet, "Rex")
    petstore.check(error, "error, stored pets: 0, statuses: [503, 503]")
    times = [request["time"].rstrip("Z") for request in petstore.requests()]
    first, second = map(datetime.datetime.fromisoformat, times)  # takes no Z before Python 3.11
    gap = (second - first).total_seconds()
    if gap < 1.9:
        petstore.fail(f"the second request came {gap:.1f} s after the first, want 2 s", error)


def test_lists_all_pages(petstore):
    # A page has 20 pets. Half of the second page arrives, then half and no more for 30 seconds, and
    # then all of it. Instead of the third page, the connection is closed.
    fault = "code=ok,truncate,stall,ok,hangup&operation=listPets"
    client = petstore.client(45, fault, tries=5, timeout=2)
    pets, error = outcome(client.list_pets)
    petstore.check(error, "success, stored pets: 45, statuses: [200, 200, 200, 200, 0, 200]")
    ids = [pet["id"] for pet in pets]
    if sorted(ids) != list(range(1, 46)):
        petstore.fail(f"list_pets returned the ids {ids}, want 1 to 45", error)


# The path of the binary. Windows finds petstore.exe by itself.
PETSTORE = pathlib.Path(__file__).with_name("petstore")

# The key of the petstore of PETSTORE_URL, or of those that the tests start.
KEY = os.environ.get("PETSTORE_API_KEY") or "test"

# A proxy of the environment could not reach petstore. Some clients read only one of these.
for name in "no_proxy", "NO_PROXY":
    os.environ[name] = "127.0.0.1,localhost," + os.environ.get(name, "")


def outcome(function, *args):
    """Calls a function, and returns its result and the exception that it raised."""
    try:
        return function(*args), None
    except Exception as error:
        return None, error


@pytest.fixture
def petstore(request):
    """The petstore of PETSTORE_URL or, if that is not set, one that runs until its test ends."""
    test = request.node.name
    if base := os.environ.get("PETSTORE_URL"):
        yield Petstore(base, test)
        return
    try:
        process = subprocess.Popen(
            [PETSTORE, "-addr", "127.0.0.1:0", "-stdin"],
            env={**os.environ, "PETSTORE_API_KEY": KEY},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    except OSError as error:
        raise RuntimeError(f"{error}: build petstore first, or change PETSTORE") from None
    # Petstore stops when its standard input is closed, so also when pytest is killed.
    with process:
        base = process.stdout.readline().strip()
        if not base:
            raise RuntimeError("petstore did not start; its standard error says why")
        yield Petstore(base, test)
        process.terminate()  # a forked process may keep the standard input open


class Petstore:
    def __init__(self, base, test):
        self.base = base  # the base URL of the API, such as http://127.0.0.1:54321/v1
        self.test = test  # the name of the test, which its requests have in the journal

    def client(self, pets, fault, tries, timeout):
        """Makes a client, and sets the number of pets and the fault.

        The client adds a pet first, because some libraries repeat a request by themselves only if
        its connection has been used before.
        """
        reset = "/__admin/reset?test=" + urllib.parse.quote(self.test)
        self.send("POST", reset, [])
        client = new_client(self.base, KEY, tries, timeout)
        ida, error = outcome(client.create_pet, "Ida")
        if error or ida["id"] != 1:
            self.fail(f"without a fault, create_pet returned {ida}, want the id 1", error)
        self.send("POST", reset, [{"name": "Rex", "categoryId": 7}] * pets)
        self.send("PUT", "/__admin/fault?" + fault)
        return client

    def check(self, error, want):
        """Fails unless the outcome, the number of pets and the statuses are what the test wants.

        A status of 0 is no answer.
        """
        __tracebackhide__ = True
        statuses = [request["status"] for request in self.requests()]
        pets = self.send("GET", "/__admin/pets?limit=100")
        result = "success" if error is None else "error"
        got = f"{result}, stored pets: {len(pets)}, statuses: {statuses}"
        if got != want:
            self.fail(f"got {got}; want {want}", error)

    def requests(self):
        """Returns the requests of the client, once those that it gave up have ended."""
        return self.send("GET", "/__admin/requests?waiting=0")["requests"]

    def fail(self, message, error):
        """Fails, and shows what the client reported and sent, and a line that shows all of it."""
        __tracebackhide__ = True
        message += f"; REPEATS_LOST_POST is {REPEATS_LOST_POST}\nthe error of the client: {error!r}"
        for r in self.requests():
            message += f"\n{r['method']} {r['url']} {r['body']}: {r['status']} {r.get('fault', '')}"
        message += '\nwith PETSTORE_URL, all of it: curl -sSH "Authorization: Bearer $PETSTORE_API_KEY" '
        message += '"${PETSTORE_URL%v1}__admin/requests?history=true" | grep -F '
        pytest.fail(message + f"'\"test\":{json.dumps(self.test, ensure_ascii=False)}'")

    def send(self, method, path, body=None):
        """Sends a request to /__admin."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": "Bearer " + KEY}
        url = urllib.parse.urljoin(self.base, path)
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            # With waiting=0, petstore answers after up to 30 seconds.
            with urllib.request.urlopen(request, timeout=40) as response:
                return json.loads(response.read() or "null")  # a 204 has no body
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.read().decode()}") from None
