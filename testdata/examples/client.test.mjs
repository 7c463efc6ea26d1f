// Tests of a client of petstore. Run "go build" in ../.. once, then in this folder: node --test
// (Node.js 18 or newer). With vitest, the two lines that say so differ.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test"; // vitest: from "vitest"

// The client under test: put yours in its place. It sends a request up to three times while the
// signal has not aborted it.
class Client {
  constructor(url, signal) {
    Object.assign(this, { url, signal });
  }

  async createPet(pet) {
    return (await this.retry("/v1/pets", { method: "POST", body: JSON.stringify(pet) })).answer;
  }

  async listPets() {
    const pets = [];
    let path = "/v1/pets?limit=2";
    while (path) {
      const { answer, link } = await this.retry(path);
      pets.push(...answer);
      path = link?.match(/^<(.*)>; rel="next"$/)[1]; // a page may have fewer pets than its limit
    }
    return pets;
  }

  async retry(path, init) {
    for (let tries = 1; ; tries++) {
      try {
        return await send(this.url + path, { signal: this.signal, ...init });
      } catch (error) {
        if (tries === 3 || this.signal?.aborted) throw error;
      }
    }
  }
}

async function send(url, init) {
  const headers = { Authorization: "Bearer test", "Content-Type": "application/json" };
  const response = await fetch(url, { headers, ...init });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const answer = response.status === 204 ? null : await response.json();
  return { answer, link: response.headers.get("Link") };
}

// start runs a petstore until the test t ends, or this process does: however it ends, it closes the
// pipe that is petstore's standard input. It returns its URL and two functions to drive it.
async function start(t) {
  const env = { ...process.env, PETSTORE_API_KEY: "test" };
  const petstore = spawn("../../petstore", ["-addr", "127.0.0.1:0", "-stdin"], { env });
  t.after(() => petstore.kill("SIGKILL")); // vitest: t.onTestFinished(…)
  let log = "";
  petstore.stderr.on("data", (data) => (log += data));
  const base = await new Promise((resolve, reject) => {
    petstore.stdout.once("data", resolve);
    petstore.on("error", reject);
    petstore.on("close", () => reject(new Error("petstore does not start: " + log)));
  });
  const { origin } = new URL(String(base));
  const admin = async (method, path, body) => (await send(origin + path, { method, body })).answer;
  const statuses = async () => (await admin("GET", "/__admin/requests")).requests.map((r) => r.status);
  return { url: origin, admin, statuses };
}

const rex = { name: "Rex", categoryId: 7 };

test("a pet is added once", async (t) => {
  const { url, statuses } = await start(t);
  await new Client(url).createPet(rex);
  assert.deepEqual(await statuses(), [201]);
});

test("two errors, then success", async (t) => {
  const { url, admin, statuses } = await start(t);
  await admin("PUT", "/__admin/fault?code=503&retry-after=0&times=2&operation=createPet");
  await new Client(url).createPet(rex);
  assert.deepEqual(await statuses(), [503, 503, 201]);
});

test("the third page fails once", async (t) => {
  const { url, admin, statuses } = await start(t);
  await admin("POST", "/__admin/reset", JSON.stringify(Array(7).fill(rex)));
  await admin("PUT", "/__admin/fault?code=500&skip=2&times=1&operation=listPets");
  const pets = await new Client(url).listPets();
  assert.deepEqual(pets.map((pet) => pet.id), [1, 2, 3, 4, 5, 6, 7]);
  assert.deepEqual(await statuses(), [200, 200, 500, 200, 200]);
});

test("the answer of a create is lost", async (t) => {
  const { url, admin, statuses } = await start(t);
  await admin("PUT", "/__admin/fault?code=truncate&times=1&operation=createPet");
  await new Client(url).createPet(rex);
  assert.deepEqual(await statuses(), [201, 201]); // so there are two pets
});

test("the client gives up, and nothing is done", async (t) => {
  const { url, admin, statuses } = await start(t);
  await admin("PUT", "/__admin/fault?delay=10&operation=createPet");
  await assert.rejects(new Client(url, AbortSignal.timeout(1000)).createPet(rex), { name: "TimeoutError" });
  const end = Date.now() + 5000; // petstore does not notice at once that the client has left
  while (!(await statuses()).length && Date.now() < end);
  assert.deepEqual(await statuses(), [0]);
  assert.deepEqual(await new Client(url).listPets(), []);
});
