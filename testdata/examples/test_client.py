"""Tests of a client of petstore. Run "go build" in ../.. once, then in this folder:

python3 -m unittest test_client.py        (Python 3.10 or newer)
"""
import http.client
import json
import os
import re
import subprocess
import time
import unittest
import urllib.error
import urllib.request

if not os.path.exists("../../petstore"):
    raise SystemExit('No petstore: run "go build" in ../.. first')

REX = {"name": "Rex", "categoryId": 7}


class Client:
    """The client under test: put yours in its place. It sends a request up to three times, and
    gives up when nothing comes for as long as its patience, in seconds."""

    def __init__(self, url, patience=10):
        self.url, self.patience = url, patience

    def create_pet(self, pet):
        return self.retry("POST", "/v1/pets", pet)[0]

    def list_pets(self):
        pets, path = [], "/v1/pets?limit=2"
        while path:
            page, headers = self.retry("GET", path)
            pets += page
            link = re.match("<(.*)>", headers.get("Link", ""))
            path = link and link[1]
        return pets

    def retry(self, method, path, body=None):
        for tries_left in 2, 1, 0:
            try:
                return send(method, self.url + path, body, self.patience)
            except (urllib.error.HTTPError, http.client.HTTPException):
                if not tries_left:
                    raise


def send(method, url, body=None, timeout=10):
    headers = {"Authorization": "Bearer test", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=timeout) as response:
        answer = response.read()
        return json.loads(answer) if answer else None, response.headers  # a 204 has no body


class ClientTest(unittest.TestCase):
    def setUp(self):
        petstore = subprocess.Popen(
            ["../../petstore", "-addr", "127.0.0.1:0", "-stdin"],
            env={**os.environ, "PETSTORE_API_KEY": "test"}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        # Ends it by closing its standard input, as the system does however this process ends.
        self.addCleanup(petstore.communicate)
        self.url = petstore.stdout.readline().removesuffix("/v1\n")
        if not self.url:
            self.fail("petstore does not start: " + petstore.stderr.read())

    def admin(self, method, path, body=None):
        return send(method, self.url + "/__admin/" + path, body)[0]

    def saw(self, statuses, pets):
        """Checks the statuses in the journal and the number of pets."""
        got, end = [], time.monotonic() + 10  # petstore does not notice at once that a client has left
        while len(got) < len(statuses) and time.monotonic() < end:
            got = [request["status"] for request in self.admin("GET", "requests")["requests"]]
        self.assertEqual(got, statuses)
        self.assertEqual(len(send("GET", self.url + "/v1/pets")[0]), pets)

    def test_a_pet_is_added_once(self):
        Client(self.url).create_pet(REX)
        self.saw([201], pets=1)

    def test_two_errors_then_success(self):
        self.admin("PUT", "fault?code=503&retry-after=0&times=2&operation=createPet")
        Client(self.url).create_pet(REX)
        self.saw([503, 503, 201], pets=1)

    def test_the_third_page_fails_once(self):
        self.admin("POST", "reset", [REX] * 7)
        self.admin("PUT", "fault?code=500&skip=2&times=1&operation=listPets")
        pets = Client(self.url).list_pets()
        self.assertEqual([pet["id"] for pet in pets], [1, 2, 3, 4, 5, 6, 7])
        self.saw([200, 200, 500, 200, 200], pets=7)

    def test_the_answer_of_a_create_is_lost(self):
        # urllib raises RemoteDisconnected and repeats nothing. So it is retry that sends the pet
        # again, and there are two.
        self.admin("PUT", "fault?code=lost&times=1&operation=createPet")
        Client(self.url).create_pet(REX)
        self.saw([0, 201], pets=2)

    def test_the_client_gives_up_and_nothing_is_done(self):
        self.give_up("delay=10", [0], pets=0)

    def test_the_client_gives_up_on_half_an_answer(self):
        # A client whose timeout ends when the headers have come waits for the body for 30 seconds.
        self.give_up("code=stall&times=1", [201], pets=1)

    def give_up(self, fault, statuses, pets):
        self.admin("PUT", f"fault?{fault}&operation=createPet")
        with self.assertRaises(TimeoutError):
            Client(self.url, patience=2).create_pet(REX)
        self.saw(statuses, pets)
