"""Tests of a client of petstore.

Run "go build" in ../.. once, and then here, with Python 3.10 or newer:

    python3 -m unittest test_client.py
"""
import concurrent.futures
import http.client
import json
import os
import re
import subprocess
import unittest
import urllib.parse
import urllib.request

if not os.path.exists("../../petstore"):
    raise SystemExit('build petstore first, with "go build"')


class Client:
    """The client under test: put yours in its place.

    It sends a request up to four times. It gives up when nothing more of an
    answer comes within its timeout, in seconds.
    """

    def __init__(self, base, timeout=20):
        self.base = base
        self.timeout = timeout

    def create_pet(self, pet):
        answer, _ = self.retry("POST", self.base + "/pets", pet)
        return answer

    def list_pets(self):
        pets = []
        url = self.base + "/pets?limit=2"
        while url:
            page, url = self.retry("GET", url)
            pets += page
        return pets

    def retry(self, method, url, body=None):
        for tries_left in 3, 2, 1, 0:
            try:
                return self.send(method, url, body)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                if tries_left == 0:
                    raise

    def send(self, method, url, body=None):
        request = urllib.request.Request(url, method=method)
        request.add_header("Authorization", "Bearer test")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=self.timeout) as response:
            answer = json.load(response)
            link = re.search('<(.*)>; rel="next"', response.headers.get("Link", ""))
        return answer, link and urllib.parse.urljoin(url, link[1])


REX = {"name": "Rex", "categoryId": 7}


class ClientTest(unittest.TestCase):
    def setUp(self):
        # Standard error is inherited: there petstore says why it cannot start.
        petstore = subprocess.Popen(
            ["../../petstore", "-addr", "127.0.0.1:0", "-stdin", "-log=false"],
            env={**os.environ, "PETSTORE_API_KEY": "test"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        # This closes its standard input, which stops petstore. The system does
        # the same if this process is killed.
        self.addCleanup(petstore.communicate)
        self.base = petstore.stdout.readline().rstrip("\n")
        self.assertTrue(self.base, "petstore did not start; standard error says why")

    def admin(self, method, path, body=None):
        """Sends a request of the test itself.

        It is not recorded, and no fault is applied to it.
        """
        request = urllib.request.Request(urllib.parse.urljoin(self.base, path), method=method)
        request.add_header("Authorization", "Bearer test")
        request.add_header("Petstore-Observer", "test")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as response:
            return json.loads(response.read() or "null")

    def check(self, statuses, pets):
        """Compares the statuses of the answers, and the number of pets.

        A request is recorded before its answer is sent, so check need not wait.
        """
        requests = self.admin("GET", "/__admin/requests")["requests"]
        self.assertEqual([request["status"] for request in requests], statuses)
        self.assertEqual(len(self.admin("GET", "/v1/pets")), pets)

    def test_create(self):
        Client(self.base).create_pet(REX)
        self.check([201], pets=1)
        request = self.admin("GET", "/__admin/requests")["requests"][0]
        got = request["method"], request["url"], json.loads(request["body"])
        self.assertEqual(got, ("POST", "/v1/pets", REX))

    def test_retry(self):
        # The first request gets an error, the second a reset connection, and the
        # third no answer, although its pet is added. So there are two pets in the
        # end.
        self.admin("PUT", "/__admin/fault?code=503,rst,lost&retry-after=0&operation=createPet")
        Client(self.base).create_pet(REX)
        self.check([503, 0, 0, 201], pets=2)

    def test_third_page_fails(self):
        self.admin("POST", "/__admin/reset", [REX] * 7)
        self.admin("PUT", "/__admin/fault?code=500&skip=2&times=1&operation=listPets")
        pets = Client(self.base).list_pets()
        self.assertEqual([pet["id"] for pet in pets], [1, 2, 3, 4, 5, 6, 7])
        self.check([200, 200, 500, 200, 200], pets=7)

    def test_slow_answer(self):
        # The answer comes in pieces, one a second, until the test ends the fault.
        # Then the rest comes at once.
        self.admin("POST", "/__admin/reset", [REX])
        self.admin("PUT", "/__admin/fault?code=drip&operation=listPets")
        with concurrent.futures.ThreadPoolExecutor() as executor:
            listed = executor.submit(Client(self.base).list_pets)
            self.admin("GET", "/__admin/requests?total=1")  # returns when the first piece is about to be sent
            self.assertFalse(listed.done(), "the client did not wait for the whole answer")
            self.admin("DELETE", "/__admin/fault")
            self.assertEqual(len(listed.result()), 1)
        self.check([200], pets=1)

    def test_give_up_before_operation(self):
        self.give_up("delay=30", [0], pets=0)

    def test_give_up_on_half_answer(self):
        # A client whose timeout covers only the headers waits for 30 seconds here.
        self.give_up("code=stall", [201], pets=1)

    def give_up(self, fault, statuses, pets):
        self.admin("PUT", f"/__admin/fault?operation=createPet&{fault}")
        with self.assertRaises(TimeoutError):
            Client(self.base, timeout=2).create_pet(REX)
        # petstore may record a request a moment after its client has left.
        self.admin("GET", "/__admin/requests?total=1")
        self.check(statuses, pets)
