// This script shows what the journal and the standing fault of the service say, sets faults, and
// is a client itself. What can be asked of the service, and what that means, is in openapi.json.
// The function update changes the state, and draws what has changed. Clients can send any text,
// so text is never set as HTML.

const readingInterval = 500; // milliseconds
const timeLimit = 5000; // milliseconds for a request of the page
const maxRequests = 1000; // as many as the service keeps
const maxPets = 100; // and no more on a page of listPets
const maxAnswer = 1000; // bytes of an answer that the journal has
const maxSending = 2; // requests of the page that wait, as a browser has six connections

// The faults that have a button of their own.
const presets = [
  { label: "503", fault: { code: "503" } },
  { label: "429", fault: { code: "429" } },
  { label: "Slow by 3 s", fault: { delay: "3" } },
  { label: "Hold", fault: { delay: "30" } },
];

// The parameters of a fault that make requests wait, with what the sign says of each.
const delays = { delay: "Slow", "answer-delay": "Answer slow" };

// What the buttons listPets and addPet send: a listing, or a pet with one of these names.
const listing = { method: "GET", url: "/v1/pets", headers: { Authorization: "Bearer ***" } };
const petNames = ["Rex", "Bella", "Zoë", "Мурка"];

// The elements of the page that have an id, by id.
const page = Object.fromEntries(
  [...document.querySelectorAll("[id]")].map((element) => [element.id, element]),
);

// State.

// What is known of a service that has not answered yet.
const nothingKnown = {
  trouble: "", // why nothing is known at the moment
  since: "", // when the ids of the journal began, or "" before the first answer
  total: 0, // how many requests the journal had since
  fault: {}, // the standing fault, or {} for none
  requests: [], // the last ones
  waiting: [], // those that have no answer yet
  selected: null, // the request in the pane
  pets: [], // the last ones, in ascending order of id
  refusal: "", // why the service has refused a fault
};

const state = {
  ...nothingKnown,
  description: null, // what readDescription returns, or null before
  key: null, // the API key, or "" while the page asks for it
  keyError: "", // why it asks
  filter: "",
  visible: [], // the requests that have the words of the filter, in the order of their arrival
  followsEnd: true, // whether the list scrolls to new requests
  sending: 0, // how many requests of the page wait
  notice: "", // the last news for the reader
};

// views are the functions that draw, each with the names of the state that it shows.
const views = [
  { draw: drawChoices, shows: ["description"] },
  { draw: drawFrame, shows: ["key", "keyError"] },
  { draw: drawSign, shows: ["fault", "since", "trouble"] },
  { draw: drawTexts, shows: ["refusal", "notice"] },
  { draw: drawList, shows: ["visible", "notice"] }, // as the notice takes room from the list
  { draw: drawCount, shows: ["visible", "since", "total", "filter"] },
  { draw: drawPane, shows: ["selected"] },
  { draw: drawSelection, shows: ["visible", "selected"] },
  { draw: drawPets, shows: ["pets", "since"] },
];

// update changes the state and draws what has changed. What is hidden loses the focus to the list.
function update(changes) {
  const { activeElement } = document;
  const changed = new Set(Object.keys(changes).filter((name) => changes[name] !== state[name]));
  Object.assign(state, changes);
  if (["requests", "waiting", "filter"].some((name) => changed.has(name))) {
    const words = state.filter.toLowerCase().split(/\s+/);
    const hasWords = ({ text }) => words.every((word) => text.includes(word));
    const found = [...state.requests, ...state.waiting].filter(hasWords);
    state.visible = found.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time));
    changed.add("visible");
  }
  const isStale = ({ shows }) => shows.some((name) => changed.has(name));
  views.filter(isStale).forEach(({ draw }) => draw());
  if (!activeElement.checkVisibility()) {
    page.list.focus();
  }
}

// Requests of the page for itself. The service does not record them, and applies no fault to them.

const notPetstore = "Something other than petstore answers.";

// call returns the JSON of an answer. Its errors have a message to be told and the status of the
// answer, or 0 without one, unless the answer is not JSON.
async function call(method, path, reviver) {
  const headers = { Authorization: `Bearer ${state.key}`, "Petstore-Observer": "page" };
  let response;
  let text;
  try {
    response = await fetch(path, { method, headers, signal: AbortSignal.timeout(timeLimit) });
    text = await response.text();
  } catch {
    throw Object.assign(new Error("Petstore does not answer."), { status: 0 });
  }
  const answer = JSON.parse(text || "{}", reviver);
  if (!response.ok) {
    const { status } = response;
    throw Object.assign(new Error(answer.message ?? notPetstore), { status });
  }
  return answer;
}

// readDescription returns what the page uses of openapi.json, without the backticks around code. A
// path with a server of its own is not one of the API.
async function readDescription() {
  const plain = (name, value) => value?.replaceAll?.("`", "") ?? value;
  const { paths, components } = await call("GET", "/openapi.json", plain);
  const { schemas } = components;
  const ofAPI = Object.values(paths).filter(({ servers }) => !servers);
  const operations = ofAPI.flatMap(Object.values).map(({ operationId }) => operationId);
  return {
    operations: operations.filter(Boolean),
    codes: schemas.FaultCode.oneOf,
    parameters: paths["/__admin/fault"].put.parameters,
    members: ["id", ...Object.keys(schemas.NewPet.properties)],
  };
}

let reading = Promise.resolve(); // settled when all readings have ended
let nextReading = 0; // the timer of the next one

// read reads what is new, after a reading under way, and again after a while. What it returns is
// settled when that is drawn.
function read() {
  reading = reading.then(async () => {
    clearTimeout(nextReading);
    const { key } = state;
    if (key) {
      await readNews().catch((problem) => report(problem, key));
      nextReading = setTimeout(read, readingInterval);
    }
  });
  return reading;
}

// report tells why a request with this key has failed. The reader may have entered another one.
function report(problem, key) {
  if (key === state.key && problem.status === 401) {
    useKey("", problem.message);
  } else if (key === state.key) {
    update({ trouble: problem.status === undefined ? notPetstore : problem.message });
  }
}

// readNews updates the state. After a reset, the ids of the journal begin anew.
async function readNews() {
  const { key, since: known, total: soFar } = state;
  const readJournal = (id) => call("GET", `/__admin/requests?after=${id}`);
  const description = state.description ?? (await readDescription());
  const fault = await call("GET", "/__admin/fault");
  let journal = await readJournal(soFar);
  const isAnew = journal.meta.since !== known;
  if (isAnew && soFar > 0) {
    journal = await readJournal(0);
  }
  const { total, since } = journal.meta;
  const pets = await readPets(isAnew ? [] : state.pets);
  if (key !== state.key || known !== state.since) {
    return; // the reader has entered a key
  }

  const news = journal.requests.map(withRow);
  const isGap = news.length < total - soFar; // the service has dropped some
  const requests = [...(isAnew || isGap ? [] : state.requests), ...news].slice(-maxRequests);
  const { selected, notice, sending } = state;
  const ended = news.find(({ sent }) => sent === selected?.sent);
  update({
    description,
    trouble: "",
    fault: JSON.stringify(fault) === JSON.stringify(state.fault) ? state.fault : fault,
    since,
    total,
    pets,
    requests: isAnew || news.length > 0 ? requests : state.requests,
    waiting: matchWaiting(journal.waiting),
    selected: isAnew ? null : (ended ?? selected),
    notice: sending === 0 && (isAnew || news.length > 0) ? "" : notice,
  });
}

// readPets returns the last pets. Pages are in ascending order of id, in which pets are also added.
// Between resets, no pet is changed or removed.
async function readPets(known) {
  const textOfNumber = (name, value, { source }) => (typeof value === "number" ? source : value);
  const path = `/v1/pets?limit=${maxPets}&after=${known.at(-1)?.id ?? 0}`;
  const news = await call("GET", path, textOfNumber); // as numbers are exact to 2^53
  const pets = news.length > 0 ? [...known, ...news].slice(-maxPets) : known;
  return news.length < maxPets ? pets : readPets(pets);
}

// matchWaiting returns the requests that wait. They have no id, so the page knows them by what was
// sent.
function matchWaiting(given) {
  const known = [...state.waiting];
  if (known.length + given.length === 0) {
    return state.waiting;
  }
  return given.map((one) => {
    const i = known.findIndex(({ sent }) => sent === sentText(one));
    return i < 0 ? withRow(one) : Object.assign(known.splice(i, 1)[0], { seconds: one.seconds });
  });
}

// Actions.

// act changes something, or shows why that was not done.
async function act(method, path) {
  const { key } = state;
  update({ notice: "", refusal: "" });
  try {
    await call(method, path);
  } catch (problem) {
    if (problem.status === 400) {
      update({ refusal: problem.message });
      page.refusal.scrollIntoView({ block: "nearest" });
    } else {
      report(problem, key);
    }
  }
  read();
}

// setFault sets a fault. What is empty is not given.
function setFault(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value);
  act("PUT", `/__admin/fault?${new URLSearchParams(given)}`);
}

// send sends a request as a client: it is recorded, and faults are applied to it.
async function send(request) {
  if (state.sending === maxSending) {
    update({ notice: `Not sent: ${maxSending} requests of this page still wait.` });
    return;
  }
  update({ sending: state.sending + 1, followsEnd: true, notice: "Waiting for an answer." });
  let result = "no answer, or not all of it";
  try {
    const response = await fetch(requestOf(request));
    await response.text();
    result = response.status;
  } catch {
    // The result says so.
  }
  await read();
  update({ sending: state.sending - 1, notice: `This browser got ${result}.` });
}

function addPet() {
  const headers = { ...listing.headers, "Content-Type": "application/json" };
  const name = petNames[state.pets.length % petNames.length];
  const body = JSON.stringify({ name, categoryId: 7, status: "available" });
  send({ method: "POST", url: "/v1/pets", headers, body });
}

async function copy() {
  const line = curlLine(state.selected);
  const hasKey = state.selected.headers.Authorization === "Bearer ***";
  const notice = hasKey ? "Copied, with the key." : "Copied.";
  try {
    await navigator.clipboard.writeText(line);
    update({ notice });
  } catch {
    prompt("This browser does not let the page copy. The line:", line);
  }
}

// useKey uses a key until the tab is closed. Without one, the page asks for it, for a reason.
function useKey(text, keyError = "") {
  const key = text.replace(/[^!-~]/g, ""); // as no key has other characters
  sessionStorage.apiKey = key;
  update({ ...nothingKnown, key, keyError, notice: "" });
  read();
}

// enter uses the key in the address, as in /#key=abc, and removes it there, or that of the tab.
function enter() {
  const fragment = location.hash.slice(1).replaceAll("+", "%2B"); // or it would be a space
  const key = new URLSearchParams(fragment).get("key");
  if (key) {
    history.replaceState(null, "", location.pathname);
  }
  if (key || !state.key) {
    useKey(key || (sessionStorage.apiKey ?? ""));
  }
}

// Requests and faults as text.

// sentText returns a text of all that was sent, and of the fault.
function sentText({ time, method, url, operation, headers, body, fault }) {
  return JSON.stringify([time, method, url, operation, headers, body, fault]);
}

// withRow returns a request with what was sent, its row, and the text that the filter searches.
function withRow(request) {
  const { method, url, operation, headers, body, error, answer, answerHeaders } = request;
  const shown = [request.time, outcomeOf(request), faultText(request.fault), clientOf(headers)];
  const notes = [notesOf(request), headers, answerHeaders].flatMap((values) => linesOf(values));
  const texts = [method, url, operation, ...shown, error, body, answer, ...notes];
  const text = texts.join("\n").toLowerCase();
  return { ...request, sent: sentText(request), row: makeRow(request), text };
}

// notesOf returns what the journal remarks on a request.
function notesOf({ ignored, beyond }) {
  const notes = Object.entries({ ignored, beyond }).filter(([, names]) => names);
  return Object.fromEntries(notes.map(([name, names]) => [name, names.join(", ")]));
}

function linesOf(values = {}, separator = ": ") {
  return Object.entries(values).map((pair) => pair.join(separator));
}

function faultText(fault) {
  return linesOf(fault, "=").join(" ");
}

function outcomeOf({ status }) {
  return status === undefined ? "waiting" : String(status || "no answer");
}

// outcomeClass returns the class that gives an outcome its colour.
function outcomeClass({ status = -1 }) {
  return status < 0 ? "waits" : status === 0 ? "error" : status < 400 ? "succeeded" : "refused";
}

// secondsOf returns the time until the answer was ready. Its body may then have been sent slowly.
function secondsOf({ method, seconds, status, fault }) {
  const isSlow = fault?.code === "stall" || (fault?.code === "drip" && method !== "HEAD");
  return status === undefined ? undefined : `${isSlow ? "> " : ""}${seconds.toFixed(3)}`;
}

// clientOf returns the User-Agent of a request, or a short name for that of a browser.
function clientOf({ "User-Agent": agent = "" }) {
  const [, name, version] = /^Mozilla.*(Edg|Firefox|Chrome|Version)\/(\d+)/.exec(agent) ?? [];
  const names = { Edg: "Edge", Version: "Safari" };
  return name ? `${names[name] ?? name} ${version}` : agent;
}

// entryOf returns what openapi.json says of a single code, which is a word or a status.
function entryOf(code) {
  const isFor = (entry) => entry.enum?.includes(code) ?? new RegExp(entry.pattern).test(code);
  return state.description.codes.find(isFor);
}

// meaningOf says what a fault with a single code does.
function meaningOf(fault = {}) {
  const { parameters } = state.description;
  const ofDelay = (name) => fault[name] > 0 && parameters.find((one) => one.name === name);
  const parts = [...Object.keys(delays).map(ofDelay), entryOf(fault.code)];
  return parts.map((part) => (part ? part.description : "")).join(" ").trim();
}

// isFailure reports whether a fault does anything. The code ok and a delay of 0 do not.
function isFailure({ code = "ok", ...others } = {}) {
  const isDelay = (name) => others[name] > 0;
  return code.split(",").some((one) => one !== "ok") || Object.keys(delays).some(isDelay);
}

// indent returns JSON on several lines, with its numbers unrounded, and another text as it is.
function indent(text) {
  const keepNumber = (key, value, { source }) =>
    typeof value === "number" ? JSON.rawJSON(source) : value;
  try {
    return JSON.stringify(JSON.parse(text, keepNumber), null, 2);
  } catch {
    return text;
  }
}

// Repetitions of a request.

// What a terminal acts on or nobody sees, except in emoji, and what stands for an invalid byte.
const unsafe = /[\p{Cc}\p{Zl}\p{Zp}\uFFFD[\p{Default_Ignorable_Code_Point}--[\u200D\uFE0F]]]/gv;

// reveal shows unsafe characters as their numbers, but for newlines.
function reveal(text) {
  const number = (char) => `⟨U+${char.codePointAt(0).toString(16).padStart(4, "0")}⟩`;
  return text.replace(unsafe, (char) => (char === "\n" ? char : number(char)));
}

// isKnown reports whether all that was sent is known, and the target is a path. Behind the origin
// of the page, @evil.test/ would lead to another host, with the key. *** and U+FFFD stand for what
// the journal does not have, but a client whose key is wrong may have sent ***.
function isKnown(request) {
  const { url, status, fault, headers } = request;
  const isWrongKey = status === 401 && !fault && headers.Authorization === "Bearer ***";
  const isWhole = hasWholeBody(request) && !/\*{3}|\uFFFD/.test(curlLine(request));
  return /^\/[^#]*$/.test(url) && isWhole && !isWrongKey;
}

// hasWholeBody reports whether the body is known, which is empty if it was not read to its end.
function hasWholeBody({ headers, body }) {
  return body || !(headers["Content-Length"] > 0 || headers["Transfer-Encoding"]);
}

// isKept reports whether a browser sends a request as it was. It normalizes methods and targets,
// and drops some headers, such as Cookie.
function isKept(request) {
  try {
    const { method, url, headers } = requestOf(request);
    const isSame = ([name, value]) => /^[ -~]*$/.test(value) && headers.get(name) === value;
    const hasSameLine = method === request.method && url === location.origin + request.url;
    return hasSameLine && clientHeaders(request.headers).every(isSame);
  } catch {
    return false;
  }
}

// Headers that curl and browsers send themselves, beside those that begin with Sec.
const ownHeaders =
  "Accept Accept-Encoding Accept-Language Cache-Control Connection Content-Length Expect Host " +
  "Origin Pragma Priority Referer Transfer-Encoding User-Agent";

// clientHeaders returns the other headers, with the key in its place.
function clientHeaders(headers) {
  const isOwn = (name) => name.startsWith("Sec-") || ownHeaders.split(" ").includes(name);
  const others = Object.entries(headers).filter(([name]) => !isOwn(name));
  const isKey = (name, value) => name === "Authorization" && value === "Bearer ***";
  return others.map(([name, value]) => [name, isKey(name, value) ? `Bearer ${state.key}` : value]);
}

// requestOf returns a request to this service. It throws an error if no browser can send it.
function requestOf({ method, url, headers, body }) {
  const bytes = body ? new TextEncoder().encode(body) : null; // a text would be given a type
  const given = { method, headers: clientHeaders(headers), body: bytes };
  return new Request(location.origin + url, { ...given, cache: "no-store", credentials: "omit" });
}

// curlLine returns a line that sends a request to this service, and to no other host. A terminal
// would act on control characters in it, and a shell would run what follows a newline.
function curlLine({ method, url, headers, body }) {
  const line = ["curl --noproxy '*' --path-as-is -g -i"];
  line.push(method === "HEAD" ? "-I" : `-X ${quote(method)}`);
  for (const [name, value] of clientHeaders(headers)) {
    line.push("-H", quote(value ? `${name}: ${value}` : `${name};`)); // curl drops "name:"
  }
  if (body) {
    line.push(headers["Content-Type"] ? "--data-raw" : "-H Content-Type: --data-raw", quote(body));
  }
  return [...line, quote(location.origin + url)].join(" ");
}

// quote quotes a text for sh, bash, zsh and fish, which do not agree on a backslash within quotes.
function quote(text) {
  return /^\w+$/.test(text) ? text : `'${text.replace(/['\\]/g, (char) => `'\\${char}'`)}'`;
}

// Views.

function make(tag, properties, ...content) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...content);
  return element;
}

// cut returns an element whose text may be cut. Its title is longer.
function cut(className, text = "", tag = "span", whole = text) {
  const title = reveal(whole.slice(0, 1000));
  const start = text.slice(0, 200).replace(/[\uD800-\uDBFF]$/, ""); // no half of a character
  return make(tag, { className: `cut ${className}`, title }, reveal(start));
}

// facts returns a list of names and values, without those that have no value.
function facts(values = {}) {
  const known = Object.entries(values).filter(([, value]) => value !== undefined);
  const parts = known.map(([name, value]) => [make("dt", {}, name), make("dd", {}, reveal(value))]);
  return make("dl", {}, ...parts.flat());
}

function drawFrame() {
  const { key, keyError } = state;
  page.keyForm.hidden = key !== "";
  page.desk.hidden = key === "";
  page.keyError.textContent = keyError;
  page.keyField.focus(); // if it is shown
}

// drawChoices draws the choices of a fault and the titles of the table of pets, once.
function drawChoices() {
  const { operations, codes, parameters, members } = state.description;
  for (const value of operations) {
    const input = make("input", { type: "radio", name: "operation", value });
    page.operations.append(make("label", {}, input, make("span", {}, value)));
  }
  const words = codes.filter(({ enum: values }) => values?.length === 1 && values[0] !== "ok");
  page.presetButtons.append(...presets.map(faultButton));
  page.codeButtons.append(
    ...words.map(({ title, enum: [code] }) => faultButton({ label: title, fault: { code } })),
  );
  page.anotherForm.prepend(...parameters.map(fieldOf));
  page.petTitles.append(...members.map((name) => cut("", name, "th")));
}

// faultButton returns a button that sets a fault with the choices, which are then as at the start.
function faultButton({ label, fault }) {
  const title = `${faultText(fault)}: ${meaningOf(fault)}`;
  const button = make("button", { type: "button", title }, label);
  button.addEventListener("click", () => {
    const { operation, times } = page.presets.elements;
    setFault({ ...fault, operation: operation.value, times: times.value });
    page.presets.reset();
  });
  return button;
}

// fieldOf returns a field for a parameter of a fault, and what it means.
function fieldOf({ name, description, example = "" }) {
  const meaning = make("p", { id: `about-${name}`, className: "quiet" }, description);
  const input = make("input", { name, placeholder: example });
  input.setAttribute("aria-describedby", meaning.id);
  return make("div", {}, make("label", {}, name, input), meaning);
}

// signNow returns what the sign says. Of a list of codes, that is the next one, and those after it.
function signNow() {
  const { trouble, since, fault } = state;
  if (trouble) {
    const meaning = "What follows is what was last known. This page goes on asking.";
    return { kind: "trouble", headline: trouble, meaning };
  }
  const { applied, matched, held, ...parameters } = fault;
  if (matched === undefined) {
    return { kind: "calm", headline: since && "No fault" };
  }
  const { code, skip = 0, times = Infinity } = fault;
  const codes = code?.split(",") ?? [];
  const next = codes.length > 1 ? codes.slice(applied) : codes; // one code may be for all requests
  const isUsedUp = applied === times && held === 0;
  const words = [
    ...Object.keys(delays).map((name) => fault[name] && `${delays[name]} by ${fault[name]} s`),
    ...next.map((one) => (entryOf(one).enum ? entryOf(one).title : one)),
  ];
  const isActive = held > 0 || (!isUsedUp && isFailure({ ...fault, code: next.join() || "ok" }));
  return {
    kind: isActive ? "active" : "idle",
    headline: isUsedUp ? "Used up" : words.filter(Boolean).join(", ") || "Used up, requests held",
    meaning: isUsedUp ? "" : meaningOf({ ...fault, code: next[0] }),
    parameters: faultText(parameters),
    counters: { applied, matched, held, "to come": times - applied, "to skip": skip - matched },
  };
}

function drawSign() {
  const { kind, headline, meaning = "", parameters = "", counters = {} } = signNow();
  const isShown = ([name, count]) => count < Infinity && (name !== "to skip" || count > 0);
  const shown = Object.entries(counters).filter(isShown);
  page.sign.className = kind;
  page.parameters.textContent = parameters;
  page.meaning.textContent = meaning;
  page.counters.replaceChildren(
    ...shown.map(([name, count]) => make("div", {}, make("dt", {}, name), make("dd", {}, count))),
  );
  page.end.hidden = shown.length === 0;
  page.end.textContent = state.fault.held > 0 ? "End and release" : "End the fault";
  document.title = kind === "calm" ? "Petstore" : `${headline} – Petstore`;
  if (page.headline.textContent !== headline) {
    page.headline.textContent = headline; // or it would be read aloud again
  }
}

let rowsMade = 0;

function makeRow(request) {
  const { time, method, url, headers, body, status, fault, error } = request;
  const isFaulty = isFailure(fault);
  const tags = [
    fault ? cut(isFaulty ? "code tag injected" : "code tag", faultText(fault)) : "",
    ...linesOf(notesOf(request)).map((note) => cut("code tag", note)),
  ];
  const isSimulated = fault?.code === String(status); // the error then says nothing of the request
  rowsMade++;
  return make(
    "div",
    { id: `row-${rowsMade}`, role: "option", className: isFaulty ? "row faulty" : "row" },
    make("span", { className: "time" }, time.slice(11, 23)),
    cut("code method", method),
    make("b", { className: outcomeClass(request) }, outcomeOf(request)),
    make(
      "span",
      { className: "what" },
      cut("code url", url),
      ...tags,
      cut("excerpt grow", (!isSimulated && error) || body),
    ),
    cut("client", clientOf(headers), "span", headers["User-Agent"]),
    make("span", { className: "pause" }),
    make("span", { className: "seconds" }, secondsOf(request) ?? ""),
  );
}

function drawList() {
  const { visible } = state;
  const wanted = new Set(visible.map(({ row }) => row));
  const unwanted = [...page.list.children].filter((row) => !wanted.has(row));
  unwanted.forEach((row) => row.remove());
  let next = page.list.firstElementChild;
  visible.forEach(({ row, time, status, seconds }, i) => {
    const pause = (Date.parse(time) - Date.parse(visible[i - 1]?.time)) / 1000;
    row.querySelector(".pause").textContent = i > 0 ? `+${pause.toFixed(3)}` : "";
    if (status === undefined) {
      row.querySelector("b").textContent = `waiting ${Math.floor(seconds)} s`;
    }
    if (row === next) {
      next = next.nextElementSibling;
    } else {
      page.list.insertBefore(row, next);
    }
  });
  if (state.followsEnd) {
    page.list.scrollTop = page.list.scrollHeight;
  }
}

// drawCount counts the requests that are there. With a filter, the number found is also read aloud.
function drawCount() {
  const { visible, requests, waiting, total, since, filter } = state;
  const numeral = (number) => number.toLocaleString("en");
  const there = requests.length + waiting.length;
  const all = total + waiting.length;
  const ofAll = there < all ? `the last ${numeral(there)} of ${numeral(all)}` : numeral(there);
  const found = filter ? `${numeral(visible.length)} of ${numeral(there)}` : "";
  const count = waiting.length > 0 ? `${ofAll}, ${waiting.length} waiting` : ofAll;
  page.count.textContent = since ? found || count : "";
  page.found.textContent = found && `${found} requests`;
  page.noRequests.hidden = !since || there > 0;
  page.noMatch.hidden = there === 0 || visible.length > 0;
}

function drawSelection() {
  const { visible, selected } = state;
  const selectedRow = visible.includes(selected) ? selected.row : null;
  for (const row of page.list.children) {
    row.ariaSelected = String(row === selectedRow);
  }
  page.list.setAttribute("aria-activedescendant", selectedRow?.id ?? "");
}

function drawPane() {
  const { selected } = state;
  page.pane.hidden = !selected;
  if (!selected) {
    return;
  }
  const { time, method, url, operation, headers, body, fault } = selected;
  const { status, answer, answerHeaders } = selected;
  page.paneTitle.replaceChildren(cut("", `${method} ${url}`, "div"));
  const outcome = make("b", { className: outcomeClass(selected) }, outcomeOf(selected));
  page.result.replaceChildren(outcome, " ", reveal(selected.error ?? ""));
  page.sendAgain.hidden = !isKnown(selected) || !isKept(selected);
  page.copy.hidden = !isKnown(selected) || curlLine(selected).search(unsafe) >= 0;
  page.obstacle.hidden = !page.sendAgain.hidden && !page.copy.hidden;
  const className = isFailure(fault) ? "asked faulty" : "asked";
  const sentTitle = hasWholeBody(selected) ? "Sent" : "Sent, with a body that is not known";
  const ofHead = method === "HEAD" ? " An answer to HEAD has no body." : "";
  const parts = [make("code", {}, faultText(fault)), make("p", {}, meaningOf(fault) + ofHead)];
  page.details.replaceChildren(
    make("div", { className, hidden: !fault }, ...parts),
    facts({ ...notesOf(selected), time, seconds: secondsOf(selected), operation }),
    ...part(sentTitle, make("pre", {}, reveal(`${method} ${url}${body && `\n\n${body}`}`))),
    ...part(answerTitle(selected), answer && make("pre", {}, reveal(indent(answer)))),
    ...part("Headers of the answer", status > 0 && facts(answerHeaders)),
    ...part("Headers sent", facts(headers)),
  );
  page.pane.scrollTop = 0;
  showRow(selected);
}

// part returns a part of the pane, unless there is nothing in it.
function part(title, content) {
  return content ? [make("h3", {}, title), content] : [];
}

// answerTitle says how much of the answer is shown, and was sent.
function answerTitle({ method, status, answerHeaders = {}, fault }) {
  const length = answerHeaders["Content-Length"];
  const what = length > maxAnswer ? `, the first ${maxAnswer} of ${length} bytes` : "";
  if (status === 0 || method === "HEAD") {
    return `Body of the answer, not sent${what}`;
  }
  const sent = { truncate: " (half was sent)", stall: " (half was sent)", drip: " (in pieces)" };
  return `Body of the answer${sent[fault?.code] ?? ""}${what}`;
}

function drawPets() {
  const { pets, since, description } = state;
  page.petsTitle.textContent = pets.length < maxPets ? "Pets" : `Pets, the last ${maxPets}`;
  page.petTable.hidden = pets.length === 0;
  page.noPets.hidden = !since || pets.length > 0;
  const rowOfPet = (pet) =>
    make("tr", {}, ...description.members.map((name) => cut("", String(pet[name] ?? ""), "td")));
  page.petRows.replaceChildren(...pets.toReversed().map(rowOfPet));
}

function drawTexts() {
  page.notice.textContent = state.notice;
  page.refusal.textContent = state.refusal;
  if (state.notice) {
    page.notice.scrollIntoView({ block: "nearest" });
  }
}

// Events.

function showRow(request) {
  if (state.visible.includes(request)) {
    request.row.scrollIntoView({ block: "nearest" });
  }
}

page.list.addEventListener("click", ({ target }) => {
  const selected = state.visible.find(({ row }) => row.contains(target));
  update({ selected: selected ?? state.selected });
  page.pane.scrollIntoView({ block: "nearest" });
});

page.list.addEventListener("keydown", (event) => {
  const { visible, selected } = state;
  const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
  if (step && visible.length > 0) {
    event.preventDefault();
    const current = visible.indexOf(selected);
    const next = (current < 0 ? visible.length : current) + step;
    update({ selected: visible[Math.max(0, Math.min(visible.length - 1, next))] });
    showRow(state.selected); // also if it was selected before
  } else if (event.key === "Enter" && selected) {
    page.pane.focus({ preventScroll: true });
    page.pane.scrollIntoView({ block: "start" }); // also if it is higher than the window
  }
});

for (const part of [page.list, page.pane]) {
  part.addEventListener("keydown", ({ key }) => key === "Escape" && page.close.click());
}

page.list.addEventListener("scroll", () => {
  const { scrollTop, clientHeight, scrollHeight } = page.list;
  update({ followsEnd: scrollTop + clientHeight > scrollHeight - 8 });
});

page.filter.addEventListener("input", () => {
  update({ filter: page.filter.value.trim() });
  showRow(state.selected);
});

page.anotherForm.addEventListener("submit", (event) => {
  event.preventDefault();
  setFault(Object.fromEntries(new FormData(page.anotherForm)));
});

page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(page.keyField.value);
  page.keyForm.reset();
});

page.listPets.addEventListener("click", () => send(listing));
page.addPet.addEventListener("click", addPet);
page.sendAgain.addEventListener("click", () => send(state.selected));
page.copy.addEventListener("click", copy);
page.close.addEventListener("click", () => update({ selected: null }));
page.end.addEventListener("click", () => act("DELETE", "/__admin/fault"));
for (const [button, question, method, path] of [
  [page.clear, "Remove all recorded requests, for all clients?", "DELETE", "/__admin/requests"],
  [page.reset, "Reset pets, fault and requests, for all clients?", "POST", "/__admin/reset"],
]) {
  button.addEventListener("click", () => confirm(question) && act(method, path));
}

// In a narrow window, what is in focus is scrolled to below the sign.
new ResizeObserver(() => {
  document.documentElement.style.setProperty("--sign", `${page.sign.offsetHeight}px`);
}).observe(page.sign);

window.addEventListener("hashchange", enter);
document.addEventListener("visibilitychange", read);
page.base.textContent = `${location.origin}/v1`;
enter();
