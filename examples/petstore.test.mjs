// Tests of a client of petstore (Node.js 20 or newer). Copy this file into your own project,
// build petstore beside it, and run "node --test petstore.test.mjs" or "npx vitest run
// petstore.test". Then put your client in the place of the one below. With vitest, the file
// can import a client from a TypeScript file, and can be renamed to petstore.test.ts.
// @ts-nocheck
// @vitest-environment node
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const { describe, test } = await import(process.env.VITEST ? "vitest" : "node:test");

// Does your client repeat a POST of which it did not get the whole answer, so that a pet may
// be added twice? You decide, and the tests expect what this says.
const REPEATS_LOST_POST = false;

// newClient makes the client under test. Put yours in the place of everything from here down
// to the line, but keep the names newClient, createPet, listPets and id. The client tries each
// request up to this many times, and gives up a try after the timeout, in milliseconds. Its
// functions throw an error unless they got all that they return.
function newClient(base, key, tries, timeout) {
  // createPet adds a pet, and returns it with its id.
  async function createPet(name) {
    const { answer } = await send("POST", `${base}/pets`, { name, categoryId: 7 });
    return answer;
  }

  // listPets returns all pets. The header Link of a page has the path of the next one.
  async function listPets() {
    const pets = [];
    let url = `${base}/pets`;
    while (url) {
      const { answer, link } = await send("GET", url);
      pets.push(...answer);
      const next = /^<(.*)>; rel="next"$/.exec(link);
      url = next && new URL(next[1], url);
    }
    return pets;
  }

  // send sends a request until it succeeds, must not be repeated, or has no tries left.
  async function send(method, url, body) {
    for (let attempt = 1; ; attempt++) {
      let again = method === "GET" || REPEATS_LOST_POST;
      let wait = 50 * 2 ** attempt;
      try {
        const response = await fetch(url, {
          method,
          headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
          body: JSON.stringify(body),
          signal: AbortSignal.timeout(timeout), // for the whole answer
        });
        if (response.ok) {
          return { answer: await response.json(), link: response.headers.get("Link") };
        }
        const refused = response.status === 429 || response.status === 503; // and not performed
        again = refused || (again && response.status >= 500);
        wait = Math.max(wait, 1000 * Number(response.headers.get("Retry-After")) || 0);
        throw new Error(`${response.status} ${await response.text()}`);
      } catch (error) {
        if (!again || attempt === tries) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  return { createPet, listPets };
}

// ------------------------------ here ends the client under test ------------------------------

// The path of the binary. Windows finds petstore.exe by itself.
const PETSTORE = fileURLToPath(new URL("petstore", import.meta.url));

// The base URL of a petstore for all tests. If it is not set, each test starts its own.
const BASE = process.env.PETSTORE_URL;

// The key of that petstore, or of those that the tests start.
const KEY = process.env.PETSTORE_API_KEY || "test";

// A proxy of the environment could not reach petstore. Some clients read only one of these.
for (const name of ["no_proxy", "NO_PROXY"]) {
  process.env[name] = `127.0.0.1,localhost,${process.env[name] ?? ""}`;
}

describe("the client", { concurrency: !BASE, concurrent: !BASE }, () => {
  // The first request gets a 503, and the third a reset. The second, the fourth and the fifth add
  // their pets, but get no answer, a page of HTML, and half of the answer.
  testClient("lost answer", async (petstore) => {
    const fault = "code=503,lost,rst,html,truncate&operation=createPet";
    const client = await petstore.prepare({ fault, tries: 6, timeout: 5000 });
    const wants = REPEATS_LOST_POST
      ? ["success, stored pets: 4, statuses: [503 0 0 502 201 201]"]
      : [
          "error, stored pets: 1, statuses: [503 0]",
          "error, stored pets: 1, statuses: [503 0 0]",
          "error, stored pets: 2, statuses: [503 0 0 502]",
          "error, stored pets: 3, statuses: [503 0 0 502 201]",
        ];
    for (const want of wants) {
      await petstore.check(await outcome(client.createPet("Rex")), want);
    }
  });

  // The status 201 and half of the body arrive, and no more. After 30 seconds, petstore closes
  // the connection, and the client fails, too. So only the time shows that it gave up.
  testClient("stalled answer", async (petstore) => {
    const fault = "code=stall&times=2";
    const client = await petstore.prepare({ fault, tries: 2, timeout: 2000 });
    const want = REPEATS_LOST_POST
      ? "error, stored pets: 2, statuses: [201 201]"
      : "error, stored pets: 1, statuses: [201]";
    const result = await outcome(client.createPet("Rex"));
    await petstore.check(result, want);
    if (result.seconds > 10) {
      await petstore.fail(`createPet took ${result.seconds} s, want 2 s for each try`, result);
    }
  });

  // The first answer is late. The client gives up, although its pet has been added. The journal
  // says whether it sent the request again.
  testClient("late answer", async (petstore) => {
    const fault = "answer-delay=10&times=1";
    const client = await petstore.prepare({ fault, tries: 2, timeout: 2000 });
    const result = await outcome(client.createPet("Rex"));
    const repeated = (await petstore.requests()).some(({ repeats }) => repeats);
    if (repeated !== REPEATS_LOST_POST || result.succeeded !== REPEATS_LOST_POST) {
      await petstore.fail(`repeated: ${repeated}; want a repetition, or else an error`, result);
    }
  });

  // Each answer asks the client to wait for two seconds, which must be longer than any wait of
  // its own. It waits, tries again, and gives up after two tries.
  testClient("Retry-After", async (petstore) => {
    const fault = "code=503&times=2&retry-after=2";
    const client = await petstore.prepare({ fault, tries: 2, timeout: 5000 });
    const want = "error, stored pets: 0, statuses: [503 503]";
    const result = await outcome(client.createPet("Rex"));
    await petstore.check(result, want);
    const [first, second] = (await petstore.requests()).map(({ time }) => Date.parse(time));
    const gap = second - first;
    if (gap < 1900) {
      await petstore.fail(`the second request came after ${gap} ms, want 2000`, result);
    }
  });

  // A page has 20 pets. Half of the second page arrives, then half and no more for 30 seconds,
  // and then all of it. Instead of the third page, the connection is closed.
  testClient("all pages", async (petstore) => {
    const fault = "code=ok,truncate,stall,ok,hangup&operation=listPets";
    const client = await petstore.prepare({ pets: 45, fault, tries: 5, timeout: 2000 });
    const want = "success, stored pets: 45, statuses: [200 200 200 200 0 200]";
    const result = await outcome(client.listPets());
    await petstore.check(result, want);
    const ids = result.value.map(({ id }) => id);
    if (ids.length !== 45 || new Set(ids).size !== 45) {
      await petstore.fail(`listPets returned the ids ${ids}, want 1 to 45`, result);
    }
  });
});

// testClient defines a test with a petstore.
function testClient(name, run) {
  test(name, { timeout: 90_000 }, async ({ signal }) => {
    const petstore = new Petstore(name);
    try {
      if (!BASE) await petstore.start(signal);
      await run(petstore);
    } finally {
      petstore.stop();
    }
  });
}

// outcome waits for a call of the client, and returns its value or its error.
async function outcome(call) {
  const begin = performance.now();
  const [{ status, value, reason }] = await Promise.allSettled([call]);
  const seconds = Math.round(performance.now() - begin) / 1000;
  return { succeeded: status === "fulfilled", value, error: reason, seconds };
}

class Petstore {
  base = BASE; // the base URL of the API, such as http://127.0.0.1:54321/v1

  constructor(test) {
    this.test = test; // the name of the test, which its requests have in the journal
  }

  // start starts a process, which is killed if the test is aborted at its timeout.
  async start(signal) {
    this.process = spawn(PETSTORE, ["-addr", "127.0.0.1:0", "-stdin"], {
      env: { ...process.env, PETSTORE_API_KEY: KEY },
      stdio: ["pipe", "pipe", "inherit"], // on standard error, petstore says why it cannot start
      signal,
    });
    let problem = "standard error may say why";
    this.process.on("error", ({ message }) => {
      problem = `${message}: build petstore first, or change PETSTORE`;
    });
    const { value } = await createInterface(this.process.stdout)[Symbol.asyncIterator]().next();
    assert(value, `petstore did not start: ${problem}`);
    this.base = value;
  }

  // stop closes standard input, as also happens when this process is killed.
  stop() {
    this.process?.stdin.end(); // unless there is none
  }

  // prepare makes a client, and lets it add a pet: some HTTP libraries repeat a request by
  // themselves, but only on a connection that has carried another. Then it sets the pets and
  // the fault.
  async prepare({ pets = 0, fault, tries, timeout }) {
    const reset = `/__admin/reset?test=${encodeURIComponent(this.test)}`;
    await this.send("POST", reset, []);
    const client = newClient(this.base, KEY, tries, timeout);
    const result = await outcome(client.createPet("Ida"));
    const id = result.value?.id;
    if (id !== 1) await this.fail(`without a fault, createPet returned the id ${id}, want 1`, result);
    await this.send("POST", reset, Array(pets).fill({ name: "Rex", categoryId: 7 }));
    await this.send("PUT", `/__admin/fault?${fault}`);
    return client;
  }

  // check compares whether a call has succeeded, how many pets petstore has, and the statuses of
  // the requests, where 0 is no answer.
  async check(result, want) {
    const statuses = (await this.requests()).map(({ status }) => status).join(" ");
    const pets = await this.send("GET", "/__admin/pets?limit=100");
    const word = result.succeeded ? "success" : "error";
    const got = `${word}, stored pets: ${pets.length}, statuses: [${statuses}]`;
    if (got !== want) await this.fail(`got ${got}; want ${want}`, result);
  }

  // requests returns the requests of the client, once those that it gave up have ended.
  async requests() {
    return (await this.send("GET", "/__admin/requests?waiting=0")).requests;
  }

  // fail throws an error that shows what the client reported, what it sent, and a line that shows
  // all of it if petstore outlives the test.
  async fail(message, { error }) {
    message += `; REPEATS_LOST_POST is ${REPEATS_LOST_POST}\nthe error: ${error ?? "none"}`.trimEnd();
    for (const { method, url, body, status, fault } of await this.requests()) {
      message += `\n${method} ${url} ${body}: ${status} ${JSON.stringify(fault) ?? ""}`;
    }
    message += `\nwith PETSTORE_URL, all of it: curl -sSH "Authorization: Bearer $PETSTORE_API_KEY" `;
    message += `"\${PETSTORE_URL%v1}__admin/requests?history=true" | grep -F '"test":${JSON.stringify(this.test)}'`;
    throw new Error(message, { cause: error });
  }

  // send sends a request to /__admin.
  async send(method, path, body) {
    const response = await fetch(new URL(path, this.base), {
      method,
      headers: { Authorization: `Bearer ${KEY}` },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(40_000), // as petstore waits for up to 30 seconds
    });
    const answer = await response.text();
    assert(response.ok, `${method} ${path}: ${response.status} ${answer}`);
    return answer && JSON.parse(answer);
  }
}
