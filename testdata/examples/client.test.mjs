// Tests of a client of petstore. Run "go build" in ../.. once, then in this folder: node --test
// (Node.js 18 or newer). With vitest, the two lines that say so differ; if its globalSetup starts
// one petstore for all files, it must return a function that ends it, or vitest waits for it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test"; // vitest: from "vitest"

if (!existsSync("../../petstore")) throw 'No petstore: run "go build" in ../.. first';

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
    for (let path = "/v1/pets?limit=2"; path; ) {
      const { answer, link } = await this.retry(path);
      pets.push(...answer);
      path = link?.match(/^<(.*)>; rel="next"$/)[1];
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
// pipe that is petstore's standard input. It returns its URL and two functions: admin drives
// it, and saw checks the statuses in its journal and the number of its pets.
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
  const saw = async (statuses, pets) => {
    const end = Date.now() + 10000; // petstore does not notice at once that a client has left
    let seen = [];
    while (seen.length < statuses.length && Date.now() < end)
      seen = (await admin("GET", "/__admin/requests")).requests.map((request) => request.status);
    assert.deepEqual(seen, statuses);
    assert.equal((await admin("GET", "/v1/pets")).length, pets);
  };
  return { url: origin, admin, saw };
}

const rex = { name: "Rex", categoryId: 7 };

test("a pet is added once", async (t) => {
  const { url, saw } = await start(t);
  await new Client(url).createPet(rex);
  await saw([201], 1);
});

test("two errors, then success", async (t) => {
  const { url, admin, saw } = await start(t);
  await admin("PUT", "/__admin/fault?code=503&retry-after=0&times=2&operation=createPet");
  await new Client(url).createPet(rex);
  await saw([503, 503, 201], 1);
});

test("the third page fails once", async (t) => {
  const { url, admin, saw } = await start(t);
  await admin("POST", "/__admin/reset", JSON.stringify(Array(7).fill(rex)));
  await admin("PUT", "/__admin/fault?code=500&skip=2&times=1&operation=listPets");
  const pets = await new Client(url).listPets();
  assert.deepEqual(pets.map((pet) => pet.id), [1, 2, 3, 4, 5, 6, 7]);
  await saw([200, 200, 500, 200, 200], 7);
});

// The fetch of Node.js rejects and repeats nothing; in Chromium, it repeats a POST on a connection
// that it has used before. Here it is retry that sends it again, and there are two pets.
test("the answer of a create is lost", async (t) => {
  const { url, admin, saw } = await start(t);
  await admin("PUT", "/__admin/fault?code=lost&times=1&operation=createPet");
  await new Client(url).createPet(rex);
  await saw([0, 201], 2);
});

test("the client gives up, and nothing is done", (t) => giveUp(t, "delay=10", [0], 0));
// A client whose timeout ends when the headers have come waits for the body for 30 seconds.
test("the client gives up on half an answer", (t) => giveUp(t, "code=stall&times=1", [201], 1));

async function giveUp(t, fault, statuses, pets) {
  const { url, admin, saw } = await start(t);
  await admin("PUT", `/__admin/fault?${fault}&operation=createPet`);
  await assert.rejects(new Client(url, AbortSignal.timeout(2000)).createPet(rex), { name: "TimeoutError" });
  await saw(statuses, pets);
}
