// Tests of a client of petstore (Node.js 20 or newer). Copy this file into your
// own project, put the binary of petstore beside it, and run
// "node --test client.test.mjs" or vitest. With petstore.d.ts, which a command in
// examples/README.md of petstore makes, NewPet below is typed.
// @vitest-environment node
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const { test } = await import(process.env.VITEST ? "vitest" : "node:test");

// The path of the binary.
const PETSTORE = fileURLToPath(
  new URL(process.platform === "win32" ? "petstore.exe" : "petstore", import.meta.url),
);

/** @typedef {import("./petstore.js").components["schemas"]["NewPet"]} NewPet */

/** @type {NewPet} */
const rex = { name: "Rex", categoryId: 7 };

// createPet is the client under test: put yours in its place. It tries up to
// four times, unless a try takes too long.
async function createPet(base, /** @type {NewPet} */ pet, timeout = 5000) {
  for (let tries = 1; ; tries++) {
    try {
      return await send("POST", `${base}/pets`, pet, { signal: AbortSignal.timeout(timeout) });
    } catch (error) {
      if (tries === 4 || error.name === "TimeoutError") throw error;
    }
  }
}

// The first request gets an error, the second a reset connection, and the third
// no answer, although its pet is added. So there are two pets.
testClient("createPet is retried", async (base) => {
  await admin(base, "PUT", "/__admin/fault?code=503,rst,lost&operation=createPet");
  await createPet(base, rex);
  await check(base, [503, 0, 0, 201], 2);
});

testClient("a client gives up before its pet is added", (base) => giveUp(base, "delay=30", [0], 1));

// A timeout that covers only the headers lets the client wait for 30 seconds.
testClient("a client gives up on half of the answer", (base) => giveUp(base, "code=stall", [201], 2));

async function giveUp(base, fault, statuses, pets) {
  await admin(base, "POST", "/__admin/reset", [rex]); // the pets of the test
  await admin(base, "PUT", `/__admin/fault?${fault}`);
  await assert.rejects(createPet(base, rex, 1000), { name: "TimeoutError" });
  // petstore may record a request a moment after its client has left.
  await admin(base, "GET", "/__admin/requests?total=1");
  await check(base, statuses, pets);
}

// testClient runs a test with a petstore of its own, so that tests may run at once.
// base is the base URL of the API, such as http://127.0.0.1:54321/v1.
function testClient(name, run) {
  test(name, async () => {
    const isBuilt = statSync(PETSTORE, { throwIfNoEntry: false })?.isFile();
    assert(isBuilt, `there is no ${PETSTORE}: build petstore first, or change PETSTORE`);
    const petstore = spawn(PETSTORE, ["-addr", "127.0.0.1:0", "-stdin"], {
      env: { ...process.env, PETSTORE_API_KEY: "test" },
      stdio: ["pipe", "pipe", "inherit"], // on standard error, petstore reports why it cannot start
    });
    try {
      const lines = createInterface({ input: petstore.stdout });
      const { value: base } = await lines[Symbol.asyncIterator]().next();
      assert(base, "petstore did not start; standard error says why");
      await run(base);
    } finally {
      petstore.stdin.end(); // petstore stops, as it does when this process is killed
    }
  });
}

// check compares the statuses of the answers, and the number of pets. A request is
// recorded before its answer is sent, so check need not wait.
async function check(base, statuses, pets) {
  assert.equal((await admin(base, "GET", "/v1/pets?limit=100")).length, pets);
  const { requests } = await admin(base, "GET", "/__admin/requests");
  assert.deepEqual(requests.map((request) => request.status), statuses);
}

// admin sends a request of the test itself, which is not recorded and to which no
// fault is applied.
function admin(base, method, path, body) {
  const headers = { "Petstore-Observer": "test" };
  return send(method, new URL(path, base), body, { headers, signal: AbortSignal.timeout(10_000) });
}

async function send(method, url, body, { headers = {}, signal }) {
  const response = await fetch(url, {
    method,
    headers: { Authorization: "Bearer test", "Content-Type": "application/json", ...headers },
    body: body && JSON.stringify(body),
    signal,
  });
  const answer = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${answer}`);
  return answer && JSON.parse(answer);
}
