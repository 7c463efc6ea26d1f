// This script shows what the journal and the standing fault of the service say, sets faults, and
// is a client itself. What can be asked of the service, and what that means, is in openapi.json.
// The function update changes the state, and draws what has changed. Clients can send any text,
// so text is never set as HTML.

const readingInterval = 500; // milliseconds
const walkingInterval = 50; // milliseconds, while there are more pets to read
const timeLimit = 5000; // milliseconds for a request of the page
const maxRequests = 1000; // as many as the service keeps
const maxPets = 100; // and no more on a page of listPets
const maxAnswer = 1000; // bytes of an answer that the journal has
const maxSending = 2; // requests of the page that wait, as a browser has six connections
const maxLine = 1000; // bytes of a line for a shell; a terminal keeps 4,095

// The faults that have a button of their own.
const presets = [
  { label: "503", fault: { code: "503" } },
  { label: "429", fault: { code: "429" } },
  { label: "Slow by 3 s", fault: { delay: "3" } },
  { label: "Hold", fault: { delay: "30" } },
];

// What the page sends as a client: a listing, or a pet with one of these names.
const listing = { method: "GET", url: "/v1/pets", headers: { Authorization: "Bearer ***" } };
const petNames = ["Rex", "Bella", "Zoë", "Мурка"];

// The elements of the page that have an id, by id, and the rows of requests.
const page = Object.fromEntries(
  [...document.querySelectorAll("[id]")].map((element) => [element.id, element]),
);
const rows = new WeakMap();
let rowsMade = 0;

// State.

// What is known of a service that has not answered yet.
const nothingKnown = {
  trouble: "", // why nothing is known at the moment
  since: "", // when the ids of the journal began, or "" before the first answer
  total: 0, // how many requests the journal had since
  fault: {}, // the standing fault, or {} for none
  requests: [], // the last ones
  waiting: [], // those that have no answer yet
  waited: new Map(), // for how many seconds each of them has waited
  selected: null, // the request in the pane
  closed: null, // the one that was in the pane when it was closed
  pets: [], // the last ones, in ascending order of id
  hasMorePets: false, // whether there are more to read
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
  isRepetition: false, // whether the next one is to be selected when it has its answer
  notice: "", // the last news for the reader
};

// views are the functions that draw, each with the names of the state that it shows.
const views = [
  { draw: drawChoices, shows: ["description"] },
  { draw: drawFrame, shows: ["key", "keyError"] },
  { draw: drawSign, shows: ["fault", "since", "trouble"] },
  { draw: drawList, shows: ["visible"] },
  { draw: drawCount, shows: ["visible", "since", "total", "filter"] },
  { draw: drawPane, shows: ["selected"] },
  { draw: drawWaited, shows: ["waited", "visible", "selected"] },
  { draw: drawSelection, shows: ["visible", "selected"] },
  { draw: drawPets, shows: ["pets", "since", "hasMorePets"] },
  { draw: drawTexts, shows: ["refusal", "notice"] },
];

// update changes the state and draws what has changed.
function update(changes) {
  const changed = new Set(Object.keys(changes).filter((name) => changes[name] !== state[name]));
  Object.assign(state, changes);
  if (["requests", "waiting", "filter"].some((name) => changed.has(name))) {
    const all = [...state.requests, ...state.waiting];
    state.visible = all.filter(isVisible).sort((a, b) => (a.time < b.time ? -1 : a.time > b.time));
    changed.add("visible");
  }
  const isStale = ({ shows }) => shows.some((name) => changed.has(name));
  views.filter(isStale).forEach(({ draw }) => draw());
}

// Requests of the page. The service neither records nor delays them, and applies no fault to them.

const notPetstore = "Something other than petstore answers.";

// failure returns the error of a call, with the status of the answer, or 0 without one.
function failure(message, status) {
  return Object.assign(new Error(message), { status });
}

// call returns the body of an answer. It throws a failure whose message is to be told.
async function call(method, path) {
  const headers = { Authorization: `Bearer ${state.key}`, "Petstore-Observer": "page" };
  let response;
  let text;
  try {
    response = await fetch(path, { method, headers, signal: AbortSignal.timeout(timeLimit) });
    text = await response.text();
  } catch {
    throw failure("Petstore does not answer.", 0);
  }
  if (!response.ok) {
    const { message } = parse(text);
    throw failure(message ?? notPetstore, message ? response.status : 0);
  }
  return text;
}

function parse(text, reviver) {
  try {
    return Object(JSON.parse(text, reviver));
  } catch {
    throw failure(notPetstore, 0);
  }
}

// readDescription returns what the page uses of openapi.json, or throws an error if that is not
// there. A path with a server of its own is not one of the API.
async function readDescription() {
  const text = await call("GET", "/openapi.json");
  const { paths, components } = parse(text.replaceAll("`", "")); // which are around code
  const { schemas } = components;
  const ofAPI = Object.values(paths).filter(({ servers }) => !servers);
  const operations = ofAPI.flatMap(Object.values).map(({ operationId }) => operationId);
  return {
    operations: operations.filter(Boolean),
    codes: [...schemas.FaultCode.oneOf],
    parameters: [...paths["/__admin/fault"].put.parameters],
    counters: Object.assign({}, ...schemas.Fault.allOf.map(({ properties }) => properties)),
    members: ["id", ...Object.keys(schemas.NewPet.properties)],
  };
}

let reading = Promise.resolve(); // settled when all readings have ended
let nextReading = 0; // the timer of the next one

// read reads what is new, after a reading under way, and again after a while.
function read() {
  reading = reading.then(async () => {
    clearTimeout(nextReading);
    const { key } = state;
    if (key) {
      await readNews().catch((problem) => report(problem, key));
      const hasMore = state.hasMorePets && !state.trouble;
      nextReading = setTimeout(read, hasMore ? walkingInterval : readingInterval);
    }
  });
}

// report tells why a request with this key has failed. The reader may have entered another one.
function report(problem, key) {
  if (key === state.key && problem.status === 401) {
    useKey("", problem.message);
  } else if (key === state.key) {
    const trouble = problem.status === undefined ? notPetstore : problem.message;
    const selected = state.waiting.includes(state.selected) ? null : state.selected;
    update({ trouble, waiting: [], waited: new Map(), selected });
  }
}

// readNews updates the state. After a reset, the ids of the journal begin anew.
async function readNews() {
  const { key, since: known } = state;
  const readJournal = async (id) => parse(await call("GET", `/__admin/requests?after=${id}`));
  const description = state.description ?? (await readDescription());
  const fault = parse(await call("GET", "/__admin/fault"));
  let journal = await readJournal(state.requests.at(-1)?.id ?? 0);
  const isAnew = journal.meta.since !== known;
  if (isAnew && state.requests.length > 0) {
    journal = await readJournal(0);
  }
  const { total, since } = journal.meta;
  const pets = await readPets(isAnew);
  if (key !== state.key || known !== state.since) {
    return; // the reader has entered a key
  }

  const news = journal.requests.map(withText);
  const requests = [...(isAnew ? [] : state.requests), ...news].slice(-maxRequests);
  update({
    description,
    trouble: "",
    refusal: state.trouble ? "" : state.refusal,
    fault: newIfOther(state.fault, fault),
    since,
    total,
    requests: isAnew || news.length > 0 ? requests : state.requests,
    ...pets,
    ...matchWaiting(journal.waiting, news),
    ...(isAnew ? { selected: null, closed: null } : {}),
    notice: isAnew || news.some(isOfOthers) ? "" : state.notice,
  });
  const own = news.findLast((request) => !isOfOthers(request));
  if (state.isRepetition && own) {
    update({ isRepetition: false, selected: state.selected && own });
  }
}

function isOfOthers({ headers }) {
  return headers["User-Agent"] !== navigator.userAgent;
}

// newIfOther returns the news, or what was known if they are equal, and need not be drawn again.
function newIfOther(known, news) {
  return JSON.stringify(known) === JSON.stringify(news) ? known : news;
}

// readPets reads the next page of pets and returns the changes. Pages are in ascending order of
// id, in which pets are also added. Between resets, no pet is changed or removed.
async function readPets(isAnew) {
  const known = isAnew ? [] : state.pets;
  const path = `/v1/pets?limit=${maxPets}&after=${known.at(-1)?.id ?? 0}`;
  const news = parse(await call("GET", path), textOfNumber); // as numbers are exact to 2^53
  const pets = newIfOther(state.pets, [...known, ...news].slice(-maxPets));
  return { pets, hasMorePets: news.length === maxPets };
}

function textOfNumber(name, value, { source }) {
  return typeof value === "number" ? source : value;
}

// matchWaiting returns the changes of the requests that wait. They have no id, so the page knows
// them by what was sent. A selected one stays selected when it has its answer.
function matchWaiting(given, news) {
  const known = [...state.waiting];
  const waited = new Map();
  for (const one of given) {
    const i = known.findIndex((old) => sentText(old) === sentText(one));
    const [request] = i < 0 ? [withText(one)] : known.splice(i, 1);
    waited.set(request, one.seconds);
  }
  const { selected } = state;
  const hasEnded = known.includes(selected);
  const ended = news.find((one) => hasEnded && sentText(one) === sentText(selected));
  const waiting = newIfOther(state.waiting, [...waited.keys()]);
  return { waiting, waited, selected: hasEnded ? (ended ?? null) : selected };
}

// Actions.

// act changes something, or shows why that was not done.
async function act(method, path) {
  const { key } = state;
  update({ notice: "", refusal: "" });
  const problem = await call(method, path).then(() => null, (reason) => reason);
  if (problem?.status === 400 && key === state.key) {
    update({ refusal: problem.message });
    page.refusal.scrollIntoView({ block: "nearest" });
  } else if (problem) {
    report(problem, key);
  }
  read();
}

// setFault sets a fault. What is empty is not given.
function setFault(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value);
  act("PUT", `/__admin/fault?${new URLSearchParams(given)}`);
}

// send sends a request as a client: it is recorded, and faults are applied to it.
async function send(request, isRepetition = false) {
  if (state.sending === maxSending) {
    update({ notice: `Not sent: ${maxSending} requests of this page still wait.` });
    return;
  }
  update({ sending: state.sending + 1, notice: "", followsEnd: true, isRepetition });
  let result = "got no answer";
  try {
    const response = await fetch(requestOf(request));
    result = `got ${response.status}, and not the whole body`;
    await response.text();
    result = `got ${response.status}`;
  } catch {
    // The result says how far it came.
  }
  update({ sending: state.sending - 1, notice: `This browser ${result}.` });
  read();
}

function addPet() {
  const headers = { ...listing.headers, "Content-Type": "application/json" };
  const name = petNames[state.pets.length % petNames.length];
  const body = JSON.stringify({ name, categoryId: 7, status: "available" });
  send({ method: "POST", url: "/v1/pets", headers, body });
}

async function copy() {
  const line = curlLine(state.selected);
  const notice = line.includes(state.key) ? "Copied, with the key." : "Copied.";
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

// withText returns a request with the text that the filter searches.
function withText(request) {
  const { method, url, operation, headers, body, error, answer, answerHeaders } = request;
  const texts = [method, url, operation, outcomeOf(request), faultText(request.fault), error];
  const notes = [notesOf(request), headers, answerHeaders].flatMap((values) => linesOf(values));
  return { ...request, text: [...texts, body, answer, ...notes].join("\n").toLowerCase() };
}

// notesOf returns what the journal remarks on a request.
function notesOf({ ignored, beyond }) {
  const notes = Object.entries({ ignored, beyond }).filter(([, names]) => names);
  return Object.fromEntries(notes.map(([name, names]) => [name, names.join(", ")]));
}

function isVisible({ text }) {
  const words = state.filter.toLowerCase().split(/\s+/);
  return words.every((word) => text.includes(word));
}

function linesOf(values = {}, separator = ": ") {
  return Object.entries(values).map((pair) => pair.join(separator));
}

function faultText(fault) {
  return linesOf(fault, "=").join(" ");
}

function outcomeOf(request) {
  const { status, seconds } = request;
  const waited = Math.floor(state.waited.get(request) ?? seconds);
  return status === undefined ? `waiting ${waited} s` : String(status || "no answer");
}

// outcomeClass returns the class that gives an outcome its colour.
function outcomeClass({ status = -1 }) {
  return status < 0 ? "waits" : status === 0 ? "error" : status < 400 ? "succeeded" : "refused";
}

// secondsOf returns the time until the answer was ready. Its body may then have been sent slowly.
function secondsOf({ method, seconds, status, fault }) {
  const isSlow = method !== "HEAD" && ["stall", "drip"].includes(fault?.code);
  return status === undefined ? undefined : `${isSlow ? "> " : ""}${seconds.toFixed(3)}`;
}

// clientOf returns the User-Agent of a request, or a short name for that of a browser.
function clientOf({ "User-Agent": agent = "" }) {
  const [, name, version] = /^Mozilla.*(Edg|Firefox|Chrome|Version)\/(\d+)/.exec(agent) ?? [];
  const names = { Edg: "Edge", Version: "Safari" };
  return name ? `${names[name] ?? name} ${version}` : agent;
}

// entryOf returns what openapi.json says of a code, which is one of a list, or a status.
function entryOf(code) {
  const isFor = (entry) => entry.enum?.includes(code) ?? new RegExp(entry.pattern).test(code);
  return state.description.codes.find(isFor) ?? { title: code, description: "" };
}

// labelOf returns the title of a code. That of a status is the status itself.
function labelOf(code) {
  const { enum: codes, title } = entryOf(code);
  return codes ? title : code;
}

// meaningOf says what a fault with a single code does.
function meaningOf({ code, delay, "answer-delay": answerDelay } = {}) {
  const ofParameter = (one) => state.description.parameters.find(({ name }) => name === one);
  const parts = [
    delay > 0 && ofParameter("delay"),
    code && entryOf(code),
    answerDelay > 0 && ofParameter("answer-delay"),
  ];
  return parts.map((part) => (part ? part.description : "")).join(" ").trim();
}

// isFailure reports whether a fault does anything. The code ok and a delay of 0 do not.
function isFailure({ code = "ok", delay, "answer-delay": answerDelay } = {}) {
  return code.split(",").some((one) => one !== "ok") || delay > 0 || answerDelay > 0;
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

// What a terminal acts on or nobody sees, and what stands for a byte that is not UTF-8.
const unsafe = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u00AD\u200B\uFEFF\uFFFD]/gu;

// reveal shows unsafe characters as their numbers, but for newlines.
function reveal(text) {
  const number = (char) => `⟨U+${char.codePointAt(0).toString(16).padStart(4, "0")}⟩`;
  return text.replace(unsafe, (char) => (char === "\n" ? char : number(char)));
}

// obstacleToBoth says why a request can neither be sent again nor copied, or returns "". Behind the
// origin of the page, a target such as @evil.test/ would lead to another host, with the key.
function obstacleToBoth({ method, url, headers, body }) {
  if (!body && (headers["Content-Length"] > 0 || headers["Transfer-Encoding"])) {
    return "The journal does not have its body.";
  }
  if (headers.Authorization?.includes("***") && headers.Authorization !== "Bearer ***") {
    return "The journal does not have its header Authorization.";
  }
  if (!/^\/[^#]*$/.test(url)) {
    return "Its target does not begin with a slash, or has a #.";
  }
  const sent = [method, url, body, ...linesOf(headers)].join("\n");
  return sent.includes("\uFFFD") ? "It has bytes that are not UTF-8." : "";
}

// obstacleToSending says why a request cannot be sent again, or returns "". A browser normalizes
// methods and targets, and drops some headers, such as Cookie.
function obstacleToSending(request) {
  const obstacle = "A browser cannot send it as it was.";
  try {
    const { method, url, headers } = requestOf(request);
    const isKept = ([name, value]) => /^[ -~]*$/.test(value) && headers.get(name) === value;
    const isSame = method === request.method && url === location.origin + request.url;
    return isSame && clientHeaders(request.headers).every(isKept) ? "" : obstacle;
  } catch {
    return obstacle;
  }
}

// obstacleToCopying says why a request cannot be a line for a shell, or returns "". A terminal
// acts on control characters, and a shell runs what follows a newline.
function obstacleToCopying(request) {
  const line = curlLine(request);
  if (line.search(unsafe) >= 0) {
    return "It has newlines or invisible characters, so it is no line for a shell.";
  }
  if (request.method === "HEAD" && request.body) {
    return "curl sends no body with HEAD.";
  }
  const size = new TextEncoder().encode(line).length;
  return size > maxLine ? `A line for a shell would have more than ${maxLine} bytes.` : "";
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

// curlLine returns a line that sends a request to this service, and to no other host.
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
  const hadFocus = page.keyForm.contains(document.activeElement);
  page.keyForm.hidden = key !== "";
  page.desk.hidden = key === "";
  page.keyError.textContent = keyError;
  if (hadFocus || key === "") {
    (key ? page.list : page.keyField).focus();
  }
}

// drawChoices draws what openapi.json offers, once.
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

// signNow returns what the sign says, with the words "used" and "next" for the codes of a list.
function signNow() {
  const { trouble, since, fault } = state;
  if (trouble) {
    return { kind: "trouble", words: [[trouble]], meaning: "This page goes on asking." };
  }
  const { applied, matched, held, ...parameters } = fault;
  if (matched === undefined) {
    return { kind: "calm", words: since ? [["No fault"]] : [] };
  }
  const { code, skip = 0, times = Infinity, delay, "answer-delay": answerDelay } = fault;
  const codes = code?.split(",") ?? [];
  const isList = codes.length > 1;
  if (isList) {
    delete parameters.times; // the number of its codes
  }
  const isUsedUp = applied === times && held === 0;
  const toSkip = Math.max(0, skip - matched);
  const slow = presets.find((one) => delay && one.fault.delay === delay)?.label;
  const progress = (i) => (i < applied ? "used" : i === applied && toSkip === 0 ? "next" : "");
  const words = [
    [delay ? (slow ?? `Slow by ${delay} s`) : ""],
    ...codes.map((one, i) => [labelOf(one), isList && !isUsedUp ? progress(i) : ""]),
    [answerDelay ? `Answer slow by ${answerDelay} s` : ""],
  ].filter(([text]) => text);
  return {
    kind: isUsedUp || !isFailure(fault) ? "idle" : "active",
    words: isUsedUp ? [[`Used up: ${textOf(words)}`]] : words,
    meaning: isUsedUp ? "" : meaningOf({ ...fault, code: codes[isList ? applied : 0] }),
    parameters: faultText(parameters),
    counters: { applied, matched, held, "to come": times - applied, "to skip": toSkip || Infinity },
  };
}

function drawSign() {
  const { kind, words, meaning = "", parameters = "", counters = {} } = signNow();
  page.sign.className = kind;
  page.parameters.textContent = parameters;
  page.meaning.textContent = meaning;
  const known = Object.entries(counters).filter(([, count]) => count < Infinity);
  page.counters.replaceChildren(
    ...known.map(([name, count]) => {
      const title = state.description.counters[name]?.description ?? "";
      return make("div", { title }, make("dt", {}, name), make("dd", {}, count));
    }),
  );
  drawHeadline(words);
  drawEnd(known.length > 0);
  document.title = kind === "calm" ? "Petstore" : `${textOf(words)} – Petstore`;
}

function textOf(words) {
  return words.map(([text]) => text).join(", ");
}

// drawHeadline replaces the words only if they are others, or they would be read aloud again.
function drawHeadline(words) {
  const parts = words.flatMap(([text, progress], i) => [
    i > 0 ? ", " : "",
    make("span", { className: progress ?? "" }, text),
    progress ? make("span", { className: "heard" }, ` (${progress})`) : "",
  ]);
  const headline = make("p", {}, ...parts);
  if (page.headline.textContent !== headline.textContent) {
    page.headline.replaceChildren(...headline.childNodes);
    page.headline.scrollTop = page.headline.querySelector(".next")?.offsetTop ?? 0;
  }
}

function drawEnd(isSet) {
  if (!isSet && document.activeElement === page.end) {
    page.list.focus(); // as what is hidden loses the focus
  }
  page.end.hidden = !isSet;
  page.end.textContent = state.fault.held > 0 ? "End and release" : "End the fault";
}

// rowOf returns the row of a request, which it makes once.
function rowOf(request) {
  if (!rows.has(request)) {
    rows.set(request, makeRow(request));
  }
  return rows.get(request);
}

function makeRow(request) {
  const { time, method, url, headers, body, status, fault, error } = request;
  const isFaulty = isFailure(fault);
  const tags = [
    fault ? cut(isFaulty ? "code tag injected" : "code tag", faultText(fault)) : "",
    ...linesOf(notesOf(request)).map((note) => cut("code tag", note)),
  ];
  const isSimulated = fault?.code === String(status); // so only the body tells what was sent
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
  const wanted = new Set(visible.map(rowOf));
  const unwanted = [...page.list.children].filter((row) => !wanted.has(row));
  unwanted.forEach((row) => row.remove());
  let next = page.list.firstElementChild;
  visible.forEach((request, i) => {
    const row = rowOf(request);
    row.querySelector(".pause").textContent = pauseBetween(visible[i - 1], request);
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

// pauseBetween returns the seconds between two arrivals.
function pauseBetween(before, { time }) {
  return before ? `+${((Date.parse(time) - Date.parse(before.time)) / 1000).toFixed(3)}` : "";
}

// drawCount counts the requests that are there. With a filter, the number found is also read aloud.
function drawCount() {
  const { visible, requests, waiting, total, since, filter } = state;
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

function numeral(number) {
  return number.toLocaleString("en");
}

// drawWaited shows for how many seconds requests wait, in their rows and in the pane.
function drawWaited() {
  for (const request of state.waiting) {
    rowOf(request).querySelector("b").textContent = outcomeOf(request);
    if (request === state.selected) {
      page.result.firstChild.textContent = outcomeOf(request);
    }
  }
}

function drawSelection() {
  const { visible, selected } = state;
  const selectedRow = visible.includes(selected) ? rowOf(selected) : null;
  for (const row of page.list.children) {
    row.ariaSelected = String(row === selectedRow);
  }
  page.list.setAttribute("aria-activedescendant", selectedRow?.id ?? "");
}

function drawPane() {
  const { selected } = state;
  if (!selected && page.pane.contains(document.activeElement)) {
    page.list.focus(); // as what is hidden loses the focus
  }
  page.pane.hidden = !selected;
  if (!selected) {
    return;
  }
  const { time, method, url, operation, headers, body, fault } = selected;
  const { status, answer, answerHeaders } = selected;
  page.paneTitle.replaceChildren(cut("", `${method} ${url}`, "div"));
  const outcome = make("b", { className: outcomeClass(selected) }, outcomeOf(selected));
  page.result.replaceChildren(outcome, " ", reveal(selected.error ?? ""));
  drawRepetitions();
  const className = isFailure(fault) ? "asked faulty" : "asked";
  const meaning = method === "HEAD" ? "An answer to HEAD has no body." : meaningOf(fault);
  const parts = [make("code", {}, faultText(fault)), make("p", {}, meaning)];
  page.details.replaceChildren(
    make("div", { className, hidden: !fault }, ...parts),
    facts({ ...notesOf(selected), time, seconds: secondsOf(selected), operation }),
    ...part("Sent", lines(`${method} ${url}${body ? `\n\n${body}` : ""}`)),
    ...part(answerTitle(selected), status === undefined ? null : lines(indent(answer))),
    ...part("Headers of the answer", answerHeaders && facts(answerHeaders)),
    ...part("Headers sent", facts(headers)),
  );
  page.pane.scrollTop = 0;
  showRow(selected);
}

function drawRepetitions() {
  const toBoth = obstacleToBoth(state.selected);
  const toSending = toBoth || obstacleToSending(state.selected);
  const toCopying = toBoth || obstacleToCopying(state.selected);
  page.sendAgain.hidden = toSending !== "";
  page.copy.hidden = toCopying !== "";
  page.obstacle.textContent = [...new Set([toSending, toCopying])].join(" ").trim();
}

// part returns a part of the pane, unless there is nothing in it.
function part(title, content) {
  return content ? [make("h3", {}, title), content] : [];
}

function lines(text) {
  return make("pre", {}, reveal(text));
}

// answerTitle says how much of the answer is shown, and was sent.
function answerTitle({ method, status, answer, answerHeaders = {} }) {
  if (status === 0) {
    return answer ? "Answer, which the client did not get" : "No answer was sent";
  }
  const length = Number(answerHeaders["Content-Length"] ?? 0);
  const notes = [
    method === "HEAD" && "sent without its body",
    length > maxAnswer && `here its first ${maxAnswer} of ${length} bytes`,
  ];
  return ["Answer", ...notes.filter(Boolean)].join(", ");
}

function drawPets() {
  const { pets, since, hasMorePets, description } = state;
  const portion = hasMorePets ? ", still being read" : `, the last ${maxPets}`;
  page.petsTitle.textContent = pets.length < maxPets ? "Pets" : `Pets${portion}`;
  page.petTable.hidden = pets.length === 0;
  page.noPets.hidden = !since || pets.length > 0;
  const rowOfPet = (pet) =>
    make("tr", {}, ...description.members.map((name) => cut("", String(pet[name] ?? ""), "td")));
  page.petRows.replaceChildren(...pets.toReversed().map(rowOfPet));
}

function drawTexts() {
  page.notice.textContent = state.notice;
  page.refusal.textContent = state.refusal;
}

// Events.

function showRow(request) {
  if (state.visible.includes(request)) {
    rowOf(request).scrollIntoView({ block: "nearest" });
  }
}

function closePane() {
  update({ selected: null, closed: state.selected ?? state.closed });
}

page.list.addEventListener("click", ({ target }) => {
  const row = target.closest(".row");
  const selected = state.visible.find((request) => rowOf(request) === row) ?? state.selected;
  update({ selected });
  page.pane.scrollIntoView({ block: "nearest" });
});

page.list.addEventListener("keydown", (event) => {
  const { visible, selected, closed } = state;
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 };
  const step = { ...steps, Home: -Infinity, End: Infinity }[event.key];
  if (step && visible.length > 0) {
    event.preventDefault();
    const current = visible.indexOf(selected ?? closed);
    const next = (current < 0 ? visible.length : current) + step;
    update({ selected: visible[Math.max(0, Math.min(visible.length - 1, next))] });
  } else if (event.key === "Enter" && selected) {
    page.pane.focus();
  }
});

for (const part of [page.list, page.pane]) {
  part.addEventListener("keydown", ({ key }) => key === "Escape" && closePane());
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
  const entries = [...new FormData(page.anotherForm)];
  const given = entries.map(([name, value]) => [name, value.replace(/\s/g, "")]);
  setFault(Object.fromEntries(given));
});

page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(page.keyField.value);
  page.keyForm.reset();
});

page.listPets.addEventListener("click", () => send(listing));
page.addPet.addEventListener("click", addPet);
page.sendAgain.addEventListener("click", () => send(state.selected, true));
page.copy.addEventListener("click", copy);
page.close.addEventListener("click", closePane);
page.end.addEventListener("click", () => act("DELETE", "/__admin/fault"));
for (const [button, question, method, path] of [
  [page.clear, "Remove all requests, for all clients?", "DELETE", "/__admin/requests"],
  [page.reset, "Reset all, for all clients, to the pets of the start?", "POST", "/__admin/reset"],
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
