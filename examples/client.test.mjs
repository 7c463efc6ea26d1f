// Tests of a client of petstore, to start from (Node.js 20 or newer). Copy this file
// into your own project, put the binary of petstore beside it, and run
// "node --test client.test.mjs" or vitest.
// @vitest-environment node
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { inspect, isDeepStrictEqual } from "node:util";

const { describe, test } = await import(process.env.VITEST ? "vitest" : "node:test");

// The path of the binary. Windows finds petstore.exe by itself.
const PETSTORE = fileURLToPath(new URL("petstore", import.meta.url));

// The key of this run, so that no other petstore can answer.
const KEY = randomUUID();

// createPet is the client under test: put yours in its place. It tries up to this many
// times, and gives up each try after the timeout, in milliseconds. It throws an error
// unless it got the pet.
async function createPet(base, { tries, timeout }) {
  for (;;) {
    let retryAfter = 0;
    try {
      const response = await fetch(`${base}/pets`, {
        method: "POST",
        headers: { Authorization: `Bearer ${KEY}`, "Content-Type": "application/json" },
        body: JSON.stringify({ name: "Rex", categoryId: 7 }),
        signal: AbortSignal.timeout(timeout), // for the whole answer
      });
      retryAfter = Number(response.headers.get("Retry-After"));
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
      return await response.json();
    } catch (error) {
      tries--;
      if (tries === 0) throw error;
      await sleep(retryAfter * 1000);
    }
  }
}

describe("the client", { concurrency: true, concurrent: true }, () => {
  // The first request gets an error, the second a reset connection, and the third no
  // answer, although its pet is added. So there are two pets, and a try is left.
  testClient("tries again", async (petstore) => {
    await petstore.fault("code=503,rst,lost&operation=createPet");
    const error = await errorOf(createPet(petstore.base, { tries: 5, timeout: 5000 }));
    equal("the statuses", await petstore.statuses(), [503, 0, 0, 201], error);
    equal("the error", error, undefined);
    equal("the number of pets", (await petstore.pets()).length, 2);
  });

  // The status 201 and half of the body arrive, and no more. After 30 seconds, petstore
  // closes the connection, and the client fails, too. So only the time shows that it gave up.
  testClient("gives up in time", async (petstore) => {
    await petstore.fault("code=stall&times=1");
    const begin = performance.now();
    const error = await errorOf(createPet(petstore.base, { tries: 1, timeout: 2000 }));
    const seconds = (performance.now() - begin) / 1000;
    assert(seconds < 10, `createPet took ${seconds.toFixed(1)} s, want 2 s`);
    equal("the statuses", await petstore.statuses(), [201], error);
    assert(error, "createPet succeeded, want an error");
  });

  // The first answer is late. The client gives up, and tries again, although its first
  // pet was added.
  testClient("tries again after a timeout", async (petstore) => {
    await petstore.reset([{ name: "Ace", categoryId: 9 }]);
    await petstore.fault("answer-delay=10&times=1");
    const error = await errorOf(createPet(petstore.base, { tries: 2, timeout: 2000 }));
    equal("the statuses", await petstore.statuses(), [0, 201], error);
    equal("the error", error, undefined);
    equal("the number of pets", (await petstore.pets()).length, 3);
  });

  // Each answer asks the client to wait for two seconds, longer than any wait of its own.
  // It waits, tries again, and gives up after two tries.
  testClient("obeys Retry-After, and gives up", async (petstore) => {
    await petstore.fault("code=503&times=2&retry-after=2");
    const error = await errorOf(createPet(petstore.base, { tries: 2, timeout: 5000 }));
    equal("the statuses", await petstore.statuses(), [503, 503], error);
    assert(error, "createPet succeeded, want an error");
    const [first, second] = (await petstore.requests()).map(({ time }) => Date.parse(time));
    const seconds = (second - first) / 1000;
    assert(seconds > 1.9, `the second request came after ${seconds} s, want 2 s`);
  });
});

// testClient defines a test with a petstore of its own, so that tests can run at once.
function testClient(name, run) {
  test(name, { timeout: 90_000 }, async ({ signal }) => {
    const petstore = new Petstore();
    signal?.addEventListener("abort", () => petstore.stop()); // at the timeout, or node would wait
    try {
      await petstore.start();
      await run(petstore);
    } finally {
      petstore.stop();
    }
  });
}

// errorOf returns the error that a promise is rejected with, or undefined.
function errorOf(promise) {
  return promise.then(() => undefined, (error) => error);
}

// equal compares a result. If it is not as wanted, the error of the client may say why.
function equal(what, got, want, error) {
  const message = `${what}: got ${inspect(got)}, want ${inspect(want)}`;
  assert(isDeepStrictEqual(got, want), error ? `${message}\n${inspect(error)}` : message);
}

class Petstore {
  async start() {
    this.process = spawn(PETSTORE, ["-addr", "127.0.0.1:0", "-stdin"], {
      env: { ...process.env, PETSTORE_API_KEY: KEY },
      stdio: ["pipe", "pipe", "inherit"], // on standard error, petstore says why it cannot start
    });
    let problem = "standard error may say why";
    this.process.on("error", ({ message }) => {
      problem = `${message}: build petstore first, or change PETSTORE`;
    });
    const { value } = await createInterface(this.process.stdout)[Symbol.asyncIterator]().next();
    assert(value, `petstore did not start: ${problem}`);
    this.base = value; // the base URL of the API, such as http://127.0.0.1:54321/v1
  }

  // stop closes standard input, as happens when this process is killed.
  stop() {
    this.process?.stdin.end(); // unless spawn has failed
  }

  // reset replaces the pets, ends the fault, and clears the journal.
  reset(pets) {
    return this.send("POST", "/__admin/reset", pets);
  }

  fault(query) {
    return this.send("PUT", `/__admin/fault?${query}`);
  }

  pets() {
    return this.send("GET", "/v1/pets?limit=100");
  }

  // requests returns the requests of clients in the order in which they arrived. It waits
  // until none waits: one that was given up is recorded a moment later.
  async requests() {
    return (await this.send("GET", "/__admin/requests?waiting=0")).requests;
  }

  // statuses returns the statuses of the requests, where 0 is no answer.
  async statuses() {
    return (await this.requests()).map(({ status }) => status);
  }

  // send sends a request of the test itself, which is not recorded and gets no fault.
  async send(method, path, body) {
    const response = await fetch(new URL(path, this.base), {
      method,
      headers: { Authorization: `Bearer ${KEY}`, "Petstore-Observer": "test" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(40_000), // as petstore waits for up to 30 seconds
    });
    const answer = await response.text();
    assert(response.ok, `${method} ${path}: ${response.status} ${answer}`);
    return answer && JSON.parse(answer);
  }
}
