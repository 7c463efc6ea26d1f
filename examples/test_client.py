"""A test of a client of petstore, to start from (Python 3.10 or newer).

Copy this file into your own project, put the binary of petstore beside it, and
run one of these:

    python3 -m unittest test_client.py
    pytest
"""
import http.client
import json
import os
import pathlib
import subprocess
import unittest
import urllib.error
import urllib.parse
import urllib.request

# The path of the binary.
PETSTORE = pathlib.Path(__file__).with_name("petstore.exe" if os.name == "nt" else "petstore")

# A proxy of the environment could not reach petstore.
os.environ["no_proxy"] = "127.0.0.1"

REX = {"name": "Rex", "categoryId": 7}


def create_pet(base, pet):
    """The client under test: put yours in its place. It tries up to four times."""
    request = urllib.request.Request(base + "/pets", json.dumps(pet).encode())
    request.add_header("Authorization", "Bearer test")
    request.add_header("Content-Type", "application/json")
    for tries_left in 3, 2, 1, 0:
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                return json.load(response)
        except (OSError, http.client.HTTPException):
            if tries_left == 0:
                raise


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.assertTrue(PETSTORE.is_file(), f"there is no {PETSTORE}: build petstore first, or change PETSTORE")
        # Standard error is inherited: there petstore says why it cannot start.
        petstore = subprocess.Popen(
            [PETSTORE, "-addr", "127.0.0.1:0", "-stdin"],
            env={**os.environ, "PETSTORE_API_KEY": "test"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        # petstore stops when its standard input is closed, as when this process is killed.
        # A forked process would keep it open, so terminate runs, and then communicate.
        self.addCleanup(petstore.communicate)
        self.addCleanup(petstore.terminate)
        self.base = petstore.stdout.readline().rstrip("\n")
        self.assertTrue(self.base, "petstore did not start; standard error says why")

    def admin(self, method, path):
        """Sends a request of the test itself.

        It is not recorded, and no fault is applied to it.
        """
        request = urllib.request.Request(urllib.parse.urljoin(self.base, path), method=method)
        request.add_header("Authorization", "Bearer test")
        request.add_header("Petstore-Observer", "test")
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return json.loads(response.read() or "null")  # a 204 has no body
        except urllib.error.HTTPError as error:
            self.fail(f"{method} {path}: {error.read().decode()}")

    def test_create_is_retried(self):
        # The first request gets an error, the second a reset connection, and the
        # third no answer, although its pet is added. So there are two pets.
        self.admin("PUT", "/__admin/fault?code=503,rst,lost&operation=createPet")

        create_pet(self.base, REX)

        requests = self.admin("GET", "/__admin/requests")["requests"]
        self.assertEqual([request["status"] for request in requests], [503, 0, 0, 201])
        self.assertEqual([json.loads(request["body"]) for request in requests], [REX] * 4)
        self.assertEqual(len(self.admin("GET", "/v1/pets?limit=100")), 2)


if __name__ == "__main__":
    unittest.main()
