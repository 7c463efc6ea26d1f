"""Tests of a client of petstore, to start from (Python 3.10 and pytest, or newer).

Copy this file into your own project, put the binary of petstore beside it, and run
"pytest test_client.py". "python3 -m unittest" finds no test in it. With unittest,
remove "import pytest" and the two fixtures, start a Petstore in setUpClass, reset it
in setUp, and stop it in tearDownClass.
"""
import datetime
import http.client
import json
import os
import pathlib
import secrets
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

# The path of the binary. Windows finds petstore.exe by itself.
PETSTORE = pathlib.Path(__file__).with_name("petstore")

# The key of this run, so that no other petstore can answer.
KEY = secrets.token_hex()

# A proxy of the environment could not reach petstore.
os.environ["no_proxy"] = "127.0.0.1," + os.environ.get("no_proxy", os.environ.get("NO_PROXY", ""))


def create_pet(base, tries, timeout):
    """The client under test: put yours in its place.

    It tries up to this many times, and gives up a try if no byte arrives for the timeout.
    """
    body = json.dumps({"name": "Rex", "categoryId": 7}).encode()
    request = urllib.request.Request(base + "/pets", body)
    request.add_header("Authorization", "Bearer " + KEY)
    request.add_header("Content-Type", "application/json")
    for tries_left in reversed(range(tries)):
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return json.load(response)
        except (OSError, http.client.HTTPException) as error:
            if tries_left == 0:
                raise
            headers = getattr(error, "headers", {})  # those of the answer, if there is one
            time.sleep(int(headers.get("Retry-After", 0)))


def test_tries_again(petstore):
    # The first request gets an error, the second a reset connection, and the third no
    # answer, although its pet is added. So there are two pets, and a try is left.
    petstore.fault("code=503,rst,lost&operation=createPet")
    error = error_of(create_pet, petstore.base, tries=5, timeout=5)
    assert petstore.statuses() == [503, 0, 0, 201], f"the client raised {error!r}"
    assert error is None
    assert len(petstore.pets()) == 2


def test_gives_up_in_time(petstore):
    # The status 201 and half of the body arrive, and no more. After 30 seconds, petstore
    # closes the connection, and the client fails, too. So only the time shows that it
    # gave up.
    petstore.fault("code=stall&times=1")
    begin = time.monotonic()
    error = error_of(create_pet, petstore.base, tries=1, timeout=2)
    took = time.monotonic() - begin
    assert took < 10, f"create_pet took {took:.1f} s, want 2 s: {error!r}"
    assert petstore.statuses() == [201], f"the client raised {error!r}"
    assert error is not None, "the client raised nothing"


def test_tries_again_after_timeout(petstore):
    # The first answer is late. The client gives up, and tries again, although its first
    # pet was added.
    petstore.reset([{"name": "Ace", "categoryId": 9}])
    petstore.fault("answer-delay=10&times=1")
    error = error_of(create_pet, petstore.base, tries=2, timeout=2)
    assert petstore.statuses() == [0, 201], f"the client raised {error!r}"
    assert error is None
    assert len(petstore.pets()) == 3


def test_obeys_retry_after_and_gives_up(petstore):
    # Each answer asks the client to wait for two seconds, longer than any wait of its
    # own. It waits, tries again, and gives up after two tries.
    petstore.fault("code=503&times=2&retry-after=2")
    error = error_of(create_pet, petstore.base, tries=2, timeout=5)
    assert petstore.statuses() == [503, 503], f"the client raised {error!r}"
    assert error is not None, "the client raised nothing"
    first, second = (datetime.datetime.fromisoformat(r["time"].rstrip("Z")) for r in petstore.requests()[:2])
    gap = (second - first).total_seconds()
    assert gap > 1.9, f"the second request came after {gap} s, want 2 s"


def error_of(function, *args, **kwargs):
    """Calls a function, and returns the exception that it raises, or None."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return error


@pytest.fixture(scope="session")
def process():
    process = Petstore()
    yield process
    process.stop()


@pytest.fixture
def petstore(process):
    """A petstore without pets, without a fault and with an empty journal."""
    process.reset([])
    return process


class Petstore:
    """A petstore process."""

    def __init__(self):
        try:
            self.process = subprocess.Popen(
                [PETSTORE, "-addr", "127.0.0.1:0", "-stdin", "-log"],  # pytest shows the log if a test fails
                env={**os.environ, "PETSTORE_API_KEY": KEY},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
        except OSError as error:
            raise RuntimeError(f"{error}: build petstore first, or change PETSTORE") from None
        # The base URL of the API, such as http://127.0.0.1:54321/v1.
        self.base = self.process.stdout.readline().strip()
        if not self.base:
            raise RuntimeError("petstore did not start; standard error may say why")

    def stop(self):
        """Stops petstore, as also happens when this process is killed."""
        self.process.terminate()  # a forked process may keep the standard input open
        self.process.communicate()

    def reset(self, pets):
        """Replaces the pets, ends the fault, and clears the journal."""
        self.send("POST", "/__admin/reset", pets)

    def fault(self, query):
        self.send("PUT", "/__admin/fault?" + query)

    def pets(self):
        return self.send("GET", "/v1/pets?limit=100")

    def requests(self):
        """Returns the requests of clients in the order in which they arrived.

        It waits until none waits: one that was given up is recorded a moment later.
        """
        return self.send("GET", "/__admin/requests?waiting=0")["requests"]

    def statuses(self):
        """Returns the statuses of the requests, where 0 is no answer."""
        return [request["status"] for request in self.requests()]

    def send(self, method, path, body=None):
        """Sends a request of the test itself, which is not recorded and gets no fault."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(urllib.parse.urljoin(self.base, path), data, method=method)
        request.add_header("Authorization", "Bearer " + KEY)
        request.add_header("Petstore-Observer", "test")
        try:
            with urllib.request.urlopen(request, timeout=40) as response:  # as petstore waits for up to 30
                return json.loads(response.read() or "null")  # a 204 has no body
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.read().decode()}") from None
