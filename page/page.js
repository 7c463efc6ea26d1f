// This script shows what the journal and the standing fault of the service say, sets faults, and
// is a client itself. All that it knows is in state. The function update changes it, and draws
// what has changed. Clients can send any text, so text is never set as HTML.

const readingInterval = 500; // milliseconds
const timeLimit = 5000; // milliseconds for a request of the page
const maxRequests = 1000; // as many as the service keeps
const maxPets = 100; // and no more on a page of listPets
const maxAnswer = 1000; // bytes of an answer that the journal has
const maxSending = 2; // requests of the page that wait, as a browser has six connections
const maxLine = 1000; // bytes of a line for a shell; a terminal keeps 4,095

// What parameters of a fault ask for, whatever the client does.
const meanings = {
  status: "Instead of the operation, an error with this status is sent.",
  delay: "Before the operation, the request waits for up to this long.",
  "answer-delay": "Before the answer, the request waits for up to this long.",
};

// The faults that have a button.
const presets = [
  { delay: "3", label: "Slow by 3 s", when: "before", meaning: meanings.delay },
  { delay: "30", label: "Hold", when: "before", meaning: meanings.delay },
  { code: "503", label: "503", when: "instead", meaning: meanings.status },
  { code: "429", label: "429", when: "instead", meaning: meanings.status },
  { code: "hangup", label: "Hang up", when: "instead",
    meaning: "Instead of the operation, the connection is closed." },
  { code: "rst", label: "TCP reset", when: "instead",
    meaning: "Instead of the operation, the connection is reset (TCP RST)." },
  { code: "lost", label: "Answer lost", when: "after",
    meaning: "After the operation, the connection is closed without an answer." },
  { code: "truncate", label: "Answer cut", when: "after",
    meaning: "After the operation, half of the body is sent, and the connection is closed." },
  { code: "stall", label: "Answer stalls", when: "after",
    meaning: "After the operation, half of the body is sent, and nothing more for up to 30 s." },
  { code: "drip", label: "Slow body", when: "after",
    meaning: "After the operation, the body is sent in up to ten pieces, one a second." },
  { code: "html", label: "HTML", when: "after",
    meaning: "After the operation, a 502 with an HTML page is sent." },
];

// What the page sends as a client: a listing, or a pet with one of these names.
const listing = { method: "GET", url: "/v1/pets", headers: { Authorization: "Bearer ***" } };
const petNames = ["Rex", "Bella", "Zoë", "Мурка"];

// The elements of the page that have an id, by id, and the rows of requests.
const page = Object.fromEntries(
  [...document.querySelectorAll("[id]")].map((element) => [element.id, element]),
);
const rows = new WeakMap();

// State.

// What the page knows of a service that it has not asked yet.
const unknown = {
  trouble: "", // why nothing is known at the moment
  since: "", // when the ids of the journal began, or "" before the first answer
  total: 0, // how many requests the journal had since
  fault: {}, // the standing fault, or {} for none
  requests: [], // the last ones
  waiting: [], // those that have no answer yet
  waited: new Map(), // for how many seconds each of them has waited
  selected: null, // the request in the pane
  pets: [], // the last ones, in ascending order of id
  hasMorePets: false, // whether there are more to read
  refusal: "", // why the service has refused a fault
};

const state = {
  ...unknown,
  key: null, // the API key, or "" while the page asks for it
  keyError: "", // why it asks
  filter: "",
  visible: [], // the requests, and then those that wait, with the words of the filter
  followsEnd: true, // whether the list scrolls to new requests
  sending: 0, // how many requests of the page wait
  notice: "", // the last news for the reader
  reading: Promise.resolve(), // settled when all readings have ended
  nextReading: 0, // the timer of the next one
};

// views are the functions that draw, each with the names of the state that it shows.
const views = [
  { draw: drawFrame, shows: ["key", "keyError"] },
  { draw: drawSign, shows: ["fault", "since", "trouble"] },
  { draw: drawList, shows: ["visible"] },
  { draw: drawCount, shows: ["visible", "since", "total"] },
  { draw: drawPane, shows: ["selected"] },
  { draw: drawWaited, shows: ["waited", "visible", "selected"] },
  { draw: drawSelection, shows: ["visible", "selected"] },
  { draw: drawPets, shows: ["pets"] },
  { draw: drawTexts, shows: ["refusal", "notice"] },
];

// update changes the state and draws what has changed.
function update(changes) {
  const changed = new Set(Object.keys(changes).filter((name) => changes[name] !== state[name]));
  Object.assign(state, changes);
  if (["requests", "waiting", "filter"].some((name) => changed.has(name))) {
    state.visible = [...state.requests, ...state.waiting].filter(isVisible);
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

function parse(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    throw failure(notPetstore, 0);
  }
}

// read reads what is new, after a reading under way, and again after a while.
function read() {
  const reading = state.reading.then(async () => {
    clearTimeout(state.nextReading);
    const { key } = state;
    if (key) {
      await readNews().catch((problem) => report(problem, key));
      const pause = state.hasMorePets && !state.trouble ? 0 : readingInterval;
      update({ nextReading: setTimeout(read, pause) });
    }
  });
  update({ reading });
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
  const fault = parse(await call("GET", "/__admin/fault"));
  let journal = await readJournal(state.requests.at(-1)?.id ?? 0);
  const isAnew = journal.meta.since !== known;
  if (isAnew && state.requests.length > 0) {
    journal = await readJournal(0);
  }
  const { total, since } = journal.meta;
  const pets = await readPets(isAnew, total !== state.total);
  if (key !== state.key || known !== state.since) {
    return; // the reader has entered a key
  }

  const news = journal.requests.map(withText);
  const requests = [...(isAnew ? [] : state.requests), ...news].slice(-maxRequests);
  update({
    trouble: "",
    refusal: state.trouble ? "" : state.refusal,
    fault: keep(state.fault, fault),
    since,
    total,
    requests: isAnew || news.length > 0 ? requests : state.requests,
    ...pets,
    ...readWaiting(journal.waiting, news),
    notice: isAnew ? "" : state.notice,
  });
}

// keep returns what was known if the news are equal, so that nothing is drawn again.
function keep(known, news) {
  return JSON.stringify(known) === JSON.stringify(news) ? known : news;
}

// readPets returns the changes of the pets. New requests may have removed some that are shown.
async function readPets(isAnew, hasNewRequests) {
  const known = isAnew ? [] : state.pets;
  const isAgain = hasNewRequests && !state.hasMorePets && known.length > 0;
  const after = isAgain ? BigInt(known[0].id) - 1n : (known.at(-1)?.id ?? 0);
  const text = await call("GET", `/v1/pets?limit=${maxPets}&after=${after}`);
  const news = parse(text.replace(/"id":(\d+)/g, '"id":"$1"')); // numbers are exact to 2^53
  const pets = isAgain ? news : [...known, ...news].slice(-maxPets);
  return { pets: keep(state.pets, pets), hasMorePets: news.length === maxPets };
}

// readWaiting returns the changes of the requests that wait. They have no id, so the page knows
// them by what was sent. A selected one stays selected when it has its answer.
function readWaiting(given, news) {
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
  return {
    waiting: keep(state.waiting, [...waited.keys()]),
    waited,
    selected: hasEnded ? (ended ?? null) : selected,
  };
}

// Actions.

// act changes something. It returns whether that was done, or else shows why it was not.
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
  return !problem;
}

// setFault sets a fault. What is empty is not given.
function setFault(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value);
  return act("PUT", `/__admin/fault?${new URLSearchParams(given)}`);
}

// send sends a request as a client: it is recorded, and faults are applied to it.
async function send({ method, url, headers, body }) {
  if (state.sending === maxSending) {
    update({ notice: `Not sent: ${maxSending} requests of this page still wait.` });
    return;
  }
  update({ sending: state.sending + 1, notice: "" });
  let result = "cannot send this request";
  try {
    const bytes = body ? new TextEncoder().encode(body) : null; // a text would be given a type
    const given = { method, headers: clientHeaders(headers), body: bytes };
    const init = { ...given, cache: "no-store", credentials: "omit" };
    const request = new Request(location.origin + url, init);
    result = "got no answer";
    const response = await fetch(request);
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
  update({ ...unknown, key, keyError, notice: "" });
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
  const { method, url, operation, headers, body, error, ignored, answer, answerHeaders } = request;
  const texts = [method, url, operation, outcomeOf(request), faultText(request.fault), error];
  texts.push(ignored, body, answer, ...linesOf(headers), ...linesOf(answerHeaders));
  return { ...request, text: texts.join("\n").toLowerCase() };
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

function outcomeOf({ status }) {
  return status === undefined ? "waiting" : String(status || "no answer");
}

// outcomeClass returns the class that gives an outcome its colour.
function outcomeClass({ status = -1 }) {
  return status < 0 ? "waits" : status === 0 ? "failed" : status < 400 ? "succeeded" : "refused";
}

// secondsOf returns the time until the answer was ready, unless its body was then sent slowly.
function secondsOf({ method, seconds, status, fault }) {
  const isSlow = method !== "HEAD" && ["stall", "drip"].includes(fault?.code);
  return status === undefined || isSlow ? undefined : seconds.toFixed(3);
}

// presetOf returns the preset of a code. Every status means the same.
function presetOf(code) {
  const known = presets.find((preset) => preset.code === code);
  return known ?? { label: code, meaning: /^\d+$/.test(code) ? meanings.status : "" };
}

// meaningOf says what a fault asks for. A list of codes says it by itself.
function meaningOf(fault = {}) {
  const parts = [
    fault.delay > 0 && meanings.delay,
    fault.code && presetOf(fault.code).meaning,
    fault["answer-delay"] > 0 && meanings["answer-delay"],
  ];
  return parts.filter(Boolean).join(" ");
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

// What a terminal acts on or does not show, and what stands for a byte that is not UTF-8.
const unsafe = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\uFFFD]/gu;

// reveal shows unsafe characters as their numbers, but for newlines.
function reveal(text) {
  const number = (char) => `⟨U+${char.codePointAt(0).toString(16).padStart(4, "0")}⟩`;
  return text.replace(unsafe, (char) => (char === "\n" ? char : number(char)));
}

// obstacleToSending says why the page cannot send a request again, or returns "". Behind the
// origin of the page, a target such as @evil.test/ would lead to another host, with the key.
function obstacleToSending({ method, url, headers, body }) {
  if (!body && (headers["Content-Length"] > 0 || headers["Transfer-Encoding"])) {
    return "The journal does not have its body.";
  }
  if (!/^\/[^#]*$/.test(url)) {
    return "Its target does not begin with a slash, or has a #.";
  }
  const sent = [method, url, body, ...linesOf(headers)].join("\n");
  return sent.includes("\uFFFD") ? "It has bytes that are not UTF-8." : "";
}

// obstacleToCopying says why a request cannot be a line for a shell, or returns "". A terminal
// acts on control characters, and a shell runs what follows a newline.
function obstacleToCopying(request) {
  const line = curlLine(request);
  if (line.search(unsafe) >= 0) {
    return "It has newlines or control characters, so it is no line for a shell.";
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
  const withKey = (value) => value.replaceAll("***", () => state.key);
  return others.map(([name, value]) => [name, name === "Authorization" ? withKey(value) : value]);
}

// curlLine returns a line that sends a request to this service, and to no other host.
function curlLine({ method, url, headers, body }) {
  const line = ["curl --path-as-is -g -i", method === "HEAD" ? "-I" : `-X ${quote(method)}`];
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
function cut(className, text = "", tag = "span") {
  const title = reveal(text.slice(0, 1000));
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
  page.desk.hidden = page.reset.hidden = key === "";
  page.keyError.textContent = keyError;
  if (hadFocus || key === "") {
    (key ? page.list : page.keyField).focus();
  }
}

// signNow returns what the sign says, with a class for the next and the used codes of a list.
function signNow() {
  const { trouble, since, fault } = state;
  if (trouble) {
    return { kind: "trouble", words: [[trouble]], meaning: "This page goes on asking." };
  }
  const { applied, matched, held, ...parameters } = fault;
  if (matched === undefined) {
    return { kind: "calm", words: since ? [["No fault"]] : [] };
  }
  const { code, times = Infinity, delay, "answer-delay": answerDelay } = fault;
  const codes = code?.split(",") ?? [];
  const isList = codes.length > 1;
  if (isList) {
    delete parameters.times; // the number of its codes
  }
  const isUsedUp = applied === times && held === 0;
  const slow = presets.find((preset) => preset.delay === delay)?.label ?? `Slow by ${delay} s`;
  const progress = (i) => (i < applied ? "used" : i === applied ? "next" : "");
  const words = [
    isUsedUp ? ["Used up"] : [],
    delay > 0 ? [slow] : [],
    ...codes.map((one, i) => [presetOf(one).label, isList ? progress(i) : ""]),
    answerDelay > 0 ? [`Answer slow by ${answerDelay} s`] : [],
  ];
  return {
    kind: isUsedUp ? "over" : "active",
    words: words.filter(([text]) => text),
    meaning: isUsedUp ? "" : meaningOf(fault),
    parameters: faultText(parameters),
    counters: Object.entries({ applied, matched, held, "to come": times - applied }),
  };
}

function drawSign() {
  const { kind, words, meaning = "", parameters = "", counters = [] } = signNow();
  page.sign.className = kind;
  page.parameters.textContent = parameters;
  page.meaning.textContent = meaning;
  const known = counters.filter(([, count]) => count < Infinity);
  page.counters.replaceChildren(
    ...known.map(([name, count]) => make("div", {}, make("dt", {}, name), make("dd", {}, count))),
  );
  drawHeadline(words);
  drawEnd(counters.length > 0);
  document.title = kind === "calm" ? "Petstore" : `${textOf(words)} – Petstore`;
}

function textOf(words) {
  return words.map(([text]) => text).join(", ");
}

// drawHeadline replaces the words only if they are others, or they would be read aloud again.
function drawHeadline(words) {
  if (page.headline.textContent !== textOf(words)) {
    const parts = words.map(([text]) => make("span", {}, text));
    page.headline.replaceChildren(...parts.flatMap((part, i) => (i > 0 ? [", ", part] : [part])));
  }
  [...page.headline.children].forEach((part, i) => (part.className = words[i][1] ?? ""));
  page.headline.scrollTop = page.headline.querySelector(".next")?.offsetTop ?? 0;
}

function drawEnd(isSet) {
  if (!isSet && document.activeElement === page.end) {
    page.list.focus(); // as what is hidden loses the focus
  }
  page.end.hidden = !isSet;
  page.end.textContent = state.fault.held > 0 ? "Release" : "End the fault";
}

// rowOf returns the row of a request, which it makes once.
function rowOf(request) {
  if (!rows.has(request)) {
    rows.set(request, makeRow(request));
  }
  return rows.get(request);
}

function makeRow(request) {
  const { time, method, url, headers, body, fault, ignored, error } = request;
  const tags = [
    fault ? cut("tag injected", faultText(fault)) : "",
    ignored ? cut("tag", `ignored: ${ignored.join(", ")}`) : "",
  ];
  return make(
    "div",
    { id: `row-${Math.random()}`, role: "option", className: fault ? "row faulty" : "row" },
    make("span", { className: "time" }, time.slice(11, 23)),
    cut("method", method),
    make("b", { className: outcomeClass(request) }, outcomeOf(request)),
    make("span", { className: "what" }, cut("url", url), ...tags, cut("excerpt", error || body)),
    cut("client", headers["User-Agent"]),
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

// pauseBetween returns the seconds between two arrivals, which may have been in the other order.
function pauseBetween(before, { time }) {
  const pause = (Date.parse(time) - Date.parse(before?.time)) / 1000;
  return before ? `${pause < 0 ? "−" : "+"}${Math.abs(pause).toFixed(3)}` : "";
}

function drawCount() {
  const { visible, requests, waiting, total, since } = state;
  const all = total + waiting.length;
  const count = !since ? "" : visible.length < all ? `${visible.length} of ${all}` : all;
  page.count.textContent = waiting.length > 0 ? `${count}, ${waiting.length} waiting` : count;
  page.noRequests.hidden = !since || requests.length + waiting.length > 0;
}

// drawWaited shows for how many seconds requests wait, in their rows and in the pane.
function drawWaited() {
  for (const [request, seconds] of state.waited) {
    const text = `waiting ${Math.floor(seconds)} s`;
    rowOf(request).querySelector("b").textContent = text;
    if (request === state.selected) {
      page.result.firstChild.textContent = text;
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
  page.pane.hidden = !selected;
  if (!selected) {
    return;
  }
  const { time, method, url, operation, headers, body, fault, ignored, answerHeaders } = selected;
  page.paneTitle.replaceChildren(cut("", `${method} ${url}`, "div"));
  const outcome = make("b", { className: outcomeClass(selected) }, outcomeOf(selected));
  page.result.replaceChildren(outcome, " ", reveal(selected.error ?? ""));
  drawRepetitions();
  const parameters = make("code", {}, faultText(fault));
  const meaning = make("p", {}, meaningOf(fault));
  page.details.replaceChildren(
    make("div", { className: "asked", hidden: !fault }, parameters, meaning),
    facts({ ignored: ignored?.join(", "), time, seconds: secondsOf(selected), operation }),
    make("h3", {}, "Sent"),
    make("pre", {}, reveal(`${method} ${url}${body ? `\n\n${body}` : ""}`)),
    ...answerParts(selected),
    ...headerParts("Headers sent", headers),
    ...headerParts("Headers of the answer", answerHeaders),
  );
  page.pane.scrollTop = 0;
  showRow(selected);
}

function drawRepetitions() {
  const toSending = obstacleToSending(state.selected);
  const toCopying = toSending || obstacleToCopying(state.selected);
  page.sendAgain.hidden = toSending !== "";
  page.copy.hidden = toCopying !== "";
  const what = toSending ? "It can neither be sent again nor copied." : "It cannot be copied.";
  page.obstacle.textContent = toCopying && `${toCopying} ${what}`;
}

// answerParts returns what the pane shows of the body of an answer.
function answerParts(request) {
  const { status, answer } = request;
  if (status === undefined) {
    return [];
  }
  return [make("h3", {}, answerTitle(request)), make("pre", {}, reveal(indent(answer)))];
}

// headerParts returns what the pane shows of headers, without those of CORS.
function headerParts(title, headers = {}) {
  const shown = Object.entries(headers).filter(([name]) => !name.startsWith("Access-Control-"));
  return shown.length > 0 ? [make("h3", {}, title), facts(Object.fromEntries(shown))] : [];
}

// answerTitle says how much of the answer was sent.
function answerTitle({ method, status, answer, answerHeaders, fault }) {
  if (status === 0) {
    return answer ? "Answer, which the client did not get" : "No answer was sent";
  }
  const length = Number(answerHeaders["Content-Length"] ?? 0);
  const portions = { truncate: "of which half was sent", stall: "of which half was sent" };
  const notes = [
    method === "HEAD" ? "sent without its body" : portions[fault?.code],
    length > maxAnswer && `here its first ${maxAnswer} of ${length} bytes`,
  ];
  return ["Answer", ...notes.filter(Boolean)].join(", ");
}

function drawPets() {
  const { pets } = state;
  page.petTable.hidden = pets.length === 0;
  const newestFirst = pets.toReversed().map(({ id, name, status }) => {
    return make("tr", {}, cut("", id, "td"), cut("", name, "td"), cut("", status, "td"));
  });
  page.petRows.replaceChildren(...newestFirst);
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
  update({ selected: null });
  page.list.focus();
}

page.list.addEventListener("click", ({ target }) => {
  const row = target.closest(".row");
  const selected = state.visible.find((request) => rowOf(request) === row) ?? state.selected;
  update({ selected });
  page.pane.scrollIntoView({ block: "nearest" });
});

page.list.addEventListener("keydown", (event) => {
  const { visible, selected } = state;
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 };
  const step = { ...steps, Home: -Infinity, End: Infinity }[event.key];
  if (step && visible.length > 0) {
    event.preventDefault();
    const from = visible.includes(selected) ? visible.indexOf(selected) : visible.length;
    update({ selected: visible[Math.max(0, Math.min(visible.length - 1, from + step))] });
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
  page.found.textContent = `${page.count.textContent} requests`;
  showRow(state.selected);
});

for (const { code, delay, label, when, meaning } of presets) {
  const name = code ? `code=${code}` : `delay=${delay}`;
  const button = make("button", { type: "button", title: meaning }, label, make("code", {}, name));
  button.addEventListener("click", () => {
    const { operation, times } = page.presets.elements;
    setFault({ code, delay, operation: operation.value, times: times.value });
  });
  page[when].append(button);
}

page.anotherForm.addEventListener("submit", async (event) => {
  event.preventDefault();
  const entries = [...new FormData(page.anotherForm)];
  const given = entries.map(([name, value]) => [name, value.replace(/\s/g, "")]);
  if (await setFault(Object.fromEntries(given))) {
    page.anotherForm.reset();
  }
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
page.close.addEventListener("click", closePane);
page.end.addEventListener("click", () => act("DELETE", "/__admin/fault"));
for (const [button, question, method, path] of [
  [page.clear, "Remove all requests, for everybody?", "DELETE", "/__admin/requests"],
  [page.reset, "Reset all? The pets will be those of the start.", "POST", "/__admin/reset"],
]) {
  button.addEventListener("click", () => {
    if (confirm(question)) {
      update({ selected: null });
      act(method, path);
    }
  });
}

window.addEventListener("hashchange", enter);
document.addEventListener("visibilitychange", read);
page.base.textContent = `${location.origin}/v1`;
enter();
