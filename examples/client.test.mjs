// Tests of a client of petstore. Run "go build" in .. once, and then
// "node --test client.test.mjs" here (Node.js 18 or newer). With vitest, change the two lines
// that mention it. If its globalSetup starts one petstore for all files, it must
// return a function that stops petstore, or else vitest waits for it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test"; // vitest: from "vitest"
import { fileURLToPath } from "node:url";

const binary = fileURLToPath(new URL("../petstore", import.meta.url));

// Client is the client under test: put yours in its place. It sends a request
// up to four times, unless its signal aborts it first.
class Client {
  constructor(base, signal) {
    this.base = base;
    this.signal = signal;
  }

  async createPet(pet) {
    const response = await this.retry(`${this.base}/pets`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(pet),
    });
    return response.answer;
  }

  async listPets() {
    const pets = [];
    let url = `${this.base}/pets?limit=2`;
    while (url) {
      const { answer, next } = await this.retry(url);
      pets.push(...answer);
      url = next;
    }
    return pets;
  }

  async retry(url, init) {
    for (let tries = 1; ; tries++) {
      try {
        return await this.send(url, init);
      } catch (error) {
        if (tries === 4 || this.signal?.aborted) throw error;
      }
    }
  }

  async send(url, init) {
    const headers = { Authorization: "Bearer test", ...init?.headers };
    const response = await fetch(url, { signal: this.signal, ...init, headers });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    const link = response.headers.get("Link")?.match(/<(.*)>; rel="next"/);
    return { answer: await response.json(), next: link && new URL(link[1], url).href };
  }
}

// start runs a petstore until the test t ends. It returns the base URL of the
// API, and two functions.
async function start(t) {
  const isBuilt = statSync(binary, { throwIfNoEntry: false })?.isFile();
  assert(isBuilt, `there is no ${binary}: build petstore first, with "go build"`);
  const petstore = spawn(binary, ["-addr", "127.0.0.1:0", "-stdin"], {
    env: { ...process.env, PETSTORE_API_KEY: "test" },
    stdio: ["pipe", "pipe", "inherit"], // on standard error, petstore reports why it cannot start
  });
  // petstore also stops when this process is killed, as that closes the pipe.
  t.after(() => petstore.kill("SIGKILL")); // vitest: t.onTestFinished(…)
  const lines = createInterface({ input: petstore.stdout });
  const { value: base } = await lines[Symbol.asyncIterator]().next();
  assert(base, "petstore did not start; standard error says why");

  // admin sends a request of the test itself, which is not recorded and to which
  // no fault is applied.
  async function admin(method, path, body) {
    const headers = {
      Authorization: "Bearer test",
      "Content-Type": "application/json",
      "Petstore-Observer": "test",
    };
    const response = await fetch(new URL(path, base), { method, headers, body });
    const answer = await response.text();
    assert(response.ok, `${method} ${path}: ${response.status} ${answer}`);
    return answer && JSON.parse(answer);
  }

  // check compares the statuses of the answers, and the number of pets, which is
  // at most 100. A request is recorded before its answer is sent, so check need not
  // wait. A request that still waits is one that the client has given up.
  async function check(statuses, count) {
    const pets = await admin("GET", "/v1/pets?limit=100");
    assert.equal(pets.length, count);
    const { requests, waiting } = await admin("GET", "/__admin/requests");
    assert.deepEqual(requests.map((request) => request.status), statuses);
    assert.deepEqual(waiting, []);
  }

  return { base, admin, check };
}

const rex = { name: "Rex", categoryId: 7 };

test("a pet is added once", async (t) => {
  const { base, admin, check } = await start(t);
  await new Client(base).createPet(rex);
  await check([201], 1);
  const { requests } = await admin("GET", "/__admin/requests");
  assert.equal(requests[0].operation, "createPet");
  assert.deepEqual(JSON.parse(requests[0].body), rex);
});

// The first request gets an error, the second a reset connection, and the third
// no answer, although its pet is added. So there are two pets in the end.
test("createPet is retried", async (t) => {
  const { base, admin, check } = await start(t);
  await admin("PUT", "/__admin/fault?code=503,rst,lost&operation=createPet");
  await new Client(base).createPet(rex);
  await check([503, 0, 0, 201], 2);
});

test("the third page fails once", async (t) => {
  const { base, admin, check } = await start(t);
  await admin("POST", "/__admin/reset", JSON.stringify(Array(7).fill(rex)));
  await admin("PUT", "/__admin/fault?code=500&skip=2&times=1&operation=listPets");
  const pets = await new Client(base).listPets();
  assert.deepEqual(pets.map((pet) => pet.id), [1, 2, 3, 4, 5, 6, 7]);
  await check([200, 200, 500, 200, 200], 7);
});

// The answer comes in pieces, one a second, until the test ends the fault. Then
// the rest comes at once.
test("a slow answer is read to its end", async (t) => {
  const { base, admin, check } = await start(t);
  await admin("POST", "/__admin/reset", JSON.stringify([rex]));
  await admin("PUT", "/__admin/fault?code=drip&operation=listPets");
  let isLoading = true;
  const listed = new Client(base).listPets().finally(() => (isLoading = false));
  await admin("GET", "/__admin/requests?total=1"); // returns when the first piece is about to be sent
  assert(isLoading, "the client did not wait for the whole answer");
  await admin("DELETE", "/__admin/fault");
  assert.equal((await listed).length, 1);
  await check([200], 1);
});

test("the client gives up before the operation", (t) => giveUp(t, "delay=30", [0], 0));

// A client whose timeout covers only the headers waits for 30 seconds here.
test("the client gives up on half an answer", (t) => giveUp(t, "code=stall", [201], 1));

async function giveUp(t, fault, statuses, count) {
  const { base, admin, check } = await start(t);
  await admin("PUT", `/__admin/fault?operation=createPet&${fault}`);
  const client = new Client(base, AbortSignal.timeout(2000));
  await assert.rejects(client.createPet(rex), { name: "TimeoutError" });
  // petstore may record a request a moment after its client has left.
  await admin("GET", "/__admin/requests?total=1");
  await check(statuses, count);
}
