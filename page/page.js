// This script shows what the journal and the standing fault of the service
// say, sets faults, and is a client itself. What can be asked of the service,
// and what that means, is in openapi.json. The function update changes the
// state, and draws what has changed. Clients can send any text, so text is
// never set as HTML.

const readingInterval = 500; // milliseconds
const timeLimit = 5000; // milliseconds for a request of the page
const maxPets = 100; // and no more on a page of listPets
const maxAnswer = 1000; // bytes of an answer that the journal has
const maxPending = 2; // requests of the page that wait, as a browser has six connections
const maxLanes = 3; // lines beside one another that join rows

// The faults that have a button, beside those of the words in openapi.json.
const presets = [
  { label: "Slow by 3 s", fault: { delay: "3" } },
  { label: "Hold", fault: { delay: "30" } },
  { label: "503", fault: { code: "503" } },
  { label: "429", fault: { code: "429" } },
];

// The values of the faults that the sign offers where their buttons are not in
// sight.
const offered = ["503", "lost", "30"];

// The parameters of a fault that make requests wait, with what the sign says of each.
const delays = { delay: "Slow", "answer-delay": "Answer slow" };

// What becomes of a body that is sent, but not as usual.
const mishaps = { truncate: "cut", stall: "stalled", drip: "dripped" };

// The members of the journal that have a place of their own in the pane. The
// others are listed there.
const placed = "method url headers body fault status error answer answerHeaders".split(" ");

// What the buttons listPets and addPet send: a listing, or a pet with one of
// these names.
const listing = { method: "GET", url: "/v1/pets", headers: { Authorization: "Bearer ***" } };
const petNames = ["Rex", "Bella", "Zoë", "Мурка"];

// The elements of the page that have an id, by id.
const page = Object.fromEntries(
  [...document.querySelectorAll("[id]")].map((element) => [element.id, element]),
);

// Whether the list and the pets stay in sight while the pane is open.
const hasPane = matchMedia("(width >= 48rem)");

// State.

const state = {
  key: null, // the API key, or "" while the page asks for it
  keyError: "", // why it asks
  trouble: "", // why nothing is known at the moment
  since: "", // when the ids of the journal began, or "" before the first answer
  isAnew: false, // whether they began while the page was open
  total: 0, // how many requests the journal had since
  fault: {}, // the standing fault, or {} for none
  requests: [], // the last ones
  waiting: [], // those that have no answer yet
  waited: "", // for how long they have waited
  selected: null, // the request in the pane
  isOpen: false, // whether the pane is in the place of other parts
  expected: null, // finds the request of the page that is to be selected
  sent: null, // the last request of the page that has been found
  pets: [], // the last ones, in ascending order of id
  refusal: "", // why a fault has not been set
  description: null, // what readDescription returns, or null before
  isBroken: false, // whether an error of the page itself has been met
  filter: "",
  visible: [], // the requests that have the words of the filter, in the order of their arrival
  followsEnd: true, // whether the list scrolls to new requests
  pending: 0, // how many requests of the page wait
  notice: "", // what has become of an action, above the list
  paneNotice: "", // and in the pane
  room: 8, // how many chips the sign has room for
};

// views are the functions that draw, each with names of the state. When one of
// these changes, it draws; what else it shows changes with them.
const views = [
  { draw: drawChoices, shows: ["description"] },
  { draw: drawFrame, shows: ["key", "keyError"] },
  { draw: drawSign, shows: ["fault", "since", "trouble", "isBroken", "room"] },
  { draw: drawList, shows: ["visible"] },
  { draw: drawWaiting, shows: ["waited"] },
  { draw: drawCount, shows: ["visible", "since", "total", "filter"] },
  { draw: drawPane, shows: ["selected", "isOpen"] },
  { draw: drawSelection, shows: ["visible", "selected"] },
  {
    draw: drawTexts,
    shows: ["refusal", "notice", "paneNotice", "visible", "selected", "isOpen", "sent"],
  },
  { draw: drawPets, shows: ["pets", "since"] },
];

// update changes the state and draws what has changed. What is hidden loses the
// focus to the list, or to the pane if that is in its place.
function update(changes) {
  const { activeElement } = document;
  const changed = new Set(Object.keys(changes).filter((name) => changes[name] !== state[name]));
  Object.assign(state, changes);
  if (["requests", "waiting", "filter"].some((name) => changed.has(name))) {
    const all = [...state.requests, ...state.waiting];
    all.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time));
    const { selected } = state;
    const known = selected?.same;
    compare(all);
    if (selected?.same !== known) {
      changed.add("selected"); // what it is the same as is in the pane
    }
    const words = state.filter.toLowerCase().split(/\s+/);
    state.visible = all.filter(({ text }) => words.every((word) => text.includes(word)));
    changed.add("visible");
  }
  const isStale = ({ shows }) => shows.some((name) => changed.has(name));
  views.filter(isStale).forEach(({ draw }) => draw());
  if (!activeElement.checkVisibility({ visibilityProperty: true })) {
    (hasPane.matches || !state.isOpen ? page.list : page.pane).focus({ preventScroll: true });
  }
}

// compare finds, for each request, one before it that failed, with the same client,
// keys, method, target and body, unless one like them has succeeded since: the last
// one that has changed something, or else the last one. U+FFFD stands for a byte
// that is not known.
function compare(requests) {
  const failed = new Map();
  for (const request of requests.filter(hasWholeBody)) {
    const { headers, status } = request;
    const client = `${headers["User-Agent"]} ${headers.Authorization} ${headers["Idempotency-Key"]}`;
    const line = `${client} ${request.line}`;
    if (line.includes("\uFFFD")) {
      continue;
    }
    request.same = failed.get(line);
    if (hasFailed(request)) {
      failed.set(line, !effectOf(request) && hasEffect(request.same) ? request.same : request);
    } else if (status !== undefined) {
      failed.delete(line);
    }
  }
}

// Requests of the page for itself. The service does not record them, and applies
// no fault to them.

// failure returns an error with a message to be told. An error without a status
// is one of the page.
function failure(message, status = 0) {
  return Object.assign(new Error(message), { status });
}

// demand throws an error unless an answer has what petstore would have sent.
function demand(isPetstore) {
  if (!isPetstore) {
    throw failure("Something other than petstore answers.");
  }
}

// call returns the JSON of an answer. Its errors have a message to be told, and
// the status of the answer, or 0 without one.
async function call(method, path, reviver) {
  const headers = { Authorization: `Bearer ${state.key}`, "Petstore-Observer": "page" };
  let response;
  let text;
  try {
    response = await fetch(path, { method, headers, signal: AbortSignal.timeout(timeLimit) });
    text = await response.text();
  } catch {
    throw failure("Petstore does not answer.");
  }
  let answer;
  try {
    answer = JSON.parse(text || "{}", reviver);
  } catch {
    // It is not JSON, and not petstore's.
  }
  demand(answer && (response.ok || answer.message));
  if (!response.ok) {
    throw failure(answer.message, response.status);
  }
  return answer;
}

// readDescription returns what the page uses of openapi.json, without the
// backticks around code. A path with a server of its own is not one of the API.
async function readDescription() {
  const plain = (name, value) => value?.replaceAll?.("`", "") ?? value;
  const { paths, components } = await call("GET", "/openapi.json", plain);
  demand(paths && components);
  const { schemas } = components;
  const ofAPI = Object.values(paths).filter(({ servers }) => !servers);
  const operations = ofAPI.flatMap(Object.values).map(({ operationId }) => operationId);
  const membersOf = ({ $ref = "", allOf = [], properties = {} }) => {
    const parts = $ref ? [schemas[$ref.split("/").at(-1)]] : allOf;
    return [...parts.flatMap(membersOf), ...Object.keys(properties)];
  };
  return {
    operations: operations.filter(Boolean),
    codes: schemas.FaultCode.oneOf,
    parameters: paths["/__admin/fault"].put.parameters,
    ofPet: ["id", ...membersOf(schemas.NewPet)],
    ofRequest: membersOf(schemas.SentRequest), // which are also in the journal while it waits
    ofEntry: membersOf(schemas.JournalEntry),
  };
}

let reading = Promise.resolve(); // settled when all readings have ended
let nextReading = 0; // the timer of the next one

// read reads what is new, after a reading under way, and again after a while.
// What it returns is settled when that is drawn.
function read() {
  reading = reading.then(async () => {
    clearTimeout(nextReading);
    if (state.key) {
      await readNews().catch(report);
      nextReading = setTimeout(read, readingInterval);
    }
  });
  return reading;
}

// report tells why a request of the page has failed, or that the page has.
function report(problem) {
  if (problem.status === undefined) {
    console.error(problem);
    update({ isBroken: true });
  } else if (problem.status === 401) {
    update({ key: "", keyError: problem.message, trouble: "", since: "", fault: {} });
  } else {
    update({ trouble: problem.message });
  }
}

// readNews updates the state. After a reset, the ids of the journal begin anew.
async function readNews() {
  const { since: known, total: soFar } = state;
  if (!state.description) {
    update({ description: await readDescription() });
  }
  const fault = await call("GET", "/__admin/fault");
  let journal = await readJournal(soFar);
  const isAnew = journal.meta.since !== known;
  if (isAnew && soFar > 0) {
    journal = await readJournal(0);
  }
  const { total, first, since } = journal.meta;
  const pets = await readPets(isAnew ? [] : state.pets);
  const news = journal.requests.map(withRow);
  const all = [...(isAnew ? [] : state.requests), ...news];
  const requests = all.filter(({ id }) => id >= first);
  const waiting = matchWaiting(journal.waiting);
  const { selected, isOpen, expected, sent, trouble } = state;
  const isNews = isAnew || news.length > 0;
  const isSameFault = parametersOf(fault) === parametersOf(state.fault);
  // One that waited is another object once it is recorded.
  const latest = (one) => news.find(({ identity }) => identity === one?.identity) ?? one;
  const arrived = expected && [...waiting, ...news].findLast(expected);
  update({
    trouble: "",
    fault: JSON.stringify(fault) === JSON.stringify(state.fault) ? state.fault : fault,
    since,
    isAnew: state.isAnew || (isAnew && known !== ""),
    total,
    pets,
    requests: isNews ? requests : state.requests,
    waiting,
    waited: waiting.map(({ seconds }) => seconds).join(),
    selected: arrived ?? latest(selected),
    isOpen: isOpen || Boolean(arrived && hasPane.matches),
    expected: arrived ? null : expected,
    sent: arrived ?? latest(sent),
    refusal: isSameFault && !trouble ? state.refusal : "",
  });
  showRow(arrived);
}

// readJournal returns the journal of the requests after the one with this id.
async function readJournal(id) {
  const journal = await call("GET", `/__admin/requests?after=${id}`);
  demand(journal.meta);
  return journal;
}

// readPets returns the last pets. Pages are in ascending order of id, in which
// pets are also added. Between resets, no pet is changed or removed.
async function readPets(known) {
  const path = `/v1/pets?limit=${maxPets}&after=${known.at(-1)?.id ?? 0}`;
  const news = await call("GET", path, (name, value, context) =>
    typeof value === "number" ? (context?.source ?? String(value)) : value,
  ); // as numbers are exact to 2^53
  demand(Array.isArray(news));
  const pets = news.length > 0 ? [...known, ...news].slice(-maxPets) : known;
  return news.length < maxPets ? pets : readPets(pets);
}

// matchWaiting returns the requests that wait. They have no id, so the page
// knows them by what was sent.
function matchWaiting(given) {
  const known = [...state.waiting];
  const waiting = given.map((one) => {
    const identity = identityOf(one);
    const i = known.findIndex((other) => other.identity === identity);
    return i < 0 ? withRow(one) : Object.assign(known.splice(i, 1)[0], { seconds: one.seconds });
  });
  const areSame = known.length === 0 && waiting.length === state.waiting.length;
  return areSame ? state.waiting : waiting;
}

// Actions.

// act changes something, or shows why that was not done.
async function act(method, path) {
  update({ notice: "", paneNotice: "", refusal: "" });
  try {
    await call(method, path);
  } catch (problem) {
    if (problem.status !== 400) {
      report(problem);
    }
    update({ refusal: problem.message });
    page.refusal.scrollIntoView({ block: "nearest" });
  }
  read();
}

// setFault sets a fault. What is empty is not given.
function setFault(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value);
  act("PUT", `/__admin/fault?${new URLSearchParams(given)}`);
}

// sendAsClient sends a request as a client: it is recorded, and faults are
// applied to it. It is selected once it is listed, and its row says what becomes
// of it. If no row is found, as petstore does not answer or has been reset, a place
// of the state says that nothing is known.
async function sendAsClient(request, place) {
  if (state.pending === maxPending) {
    update({ [place]: `Not sent, as ${maxPending} requests of this page had not ended.` });
    return;
  }
  const known = new Set([...state.requests, ...state.waiting].map(({ identity }) => identity));
  const isOwn = ({ headers }) => headers["User-Agent"] === navigator.userAgent;
  const expected = (one) => one.line === lineOf(request) && isOwn(one) && !known.has(one.identity);
  update({ pending: state.pending + 1, followsEnd: true, expected, notice: "", paneNotice: "" });
  try {
    const response = await fetch(requestOf(request));
    await response.text();
  } catch {
    // What became of it is in its row.
  }
  await read();
  update({ pending: state.pending - 1 });
  if (state.expected === expected) {
    update({ expected: null, [place]: "It is not known what became of what was sent." });
  }
}

// addPet adds a pet. Its name differs from those of the pets that it is shown
// with, and of those that wait to be added.
function addPet() {
  const headers = { ...listing.headers, "Content-Type": "application/json" };
  const last = BigInt(state.pets.at(-1)?.id ?? 0) + BigInt(state.pending);
  const count = BigInt(petNames.length);
  const name = petNames[last % count] + (last < count ? "" : ` ${last + 1n}`);
  const body = JSON.stringify({ name, categoryId: 7, status: "available" });
  sendAsClient({ method: "POST", url: "/v1/pets", headers, body }, "notice");
}

// copyText copies a text, and says so in a place of the state.
async function copyText(text, hasKey, place) {
  try {
    await navigator.clipboard.writeText(text);
    update({ [place]: hasKey ? "Copied, with the key." : "Copied." });
  } catch {
    prompt("This browser does not let the page copy. The line:", text);
  }
}

function copySelected() {
  const { selected } = state;
  copyText(curlLine(selected), selected.headers.Authorization === "Bearer ***", "paneNotice");
}

// takeKey takes the key in the address, as in /#key=abc, and removes it there.
function takeKey() {
  const fragment = location.hash.slice(1).replaceAll("+", "%2B"); // or it would be a space
  const key = new URLSearchParams(fragment).get("key");
  if (key) {
    keepKey(key);
    history.replaceState(null, "", location.pathname);
  }
}

// keepKey keeps a key until the tab is closed.
function keepKey(text) {
  sessionStorage.apiKey = text.replace(/[^!-~]/g, ""); // as no key has other characters
}

// Requests and faults as text.

// identityOf returns a text of what a request has while it waits and once it is
// recorded, but for the seconds so far.
function identityOf(request) {
  const names = state.description.ofRequest.filter((name) => name !== "seconds");
  return JSON.stringify(names.map((name) => request[name]));
}

// lineOf returns a text of what makes requests the same.
function lineOf({ method, url, body = "" }) {
  return `${method} ${url}\n${body}`;
}

// withRow returns a request with its row, and the text that the filter searches.
function withRow(request) {
  const lines = (value) => (typeof value === "object" ? linesOf(value) : value);
  const texts = [
    outcomeOf(request),
    effectOf(request),
    clientOf(request.headers),
    faultText(request.fault),
    request.fault && labelOf(request.fault),
    ...linesOf(notesOf(request)),
    ...Object.values(request).flatMap(lines),
  ];
  const text = texts.join("\n").toLowerCase();
  const identity = identityOf(request);
  return { ...request, ...makeRow(request), identity, line: lineOf(request), text };
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

// parametersOf returns the text of a standing fault without its counters.
function parametersOf({ matched, applied, held, ...parameters }) {
  return faultText(parameters);
}

// hasLeft reports whether the client of a request has not waited for its whole answer.
function hasLeft({ error = "" }) {
  return error.startsWith("the client left");
}

// errorOf returns the message of the error that a client got. What a fault sends
// or loses says nothing of the request.
function errorOf(request) {
  const { status, fault, error } = request;
  const isTold = status > 0 && !hasLeft(request) && ![String(status), "html"].includes(fault?.code);
  return (isTold && error) || "";
}

function clock({ time }) {
  return time.slice(11, 23);
}

function outcomeOf(request) {
  const { status } = request;
  if (!status) {
    return status === undefined ? "waiting" : hasLeft(request) ? "client left" : "no answer";
  }
  return [status, mishapOf(request)].filter(Boolean).join(", ");
}

// mishapOf says what became of the body of an answer. One to HEAD has none.
function mishapOf({ method, fault }) {
  return method === "HEAD" ? undefined : mishaps[fault?.code];
}

// hasFailed reports whether a client got no answer, not all of it, or an error.
function hasFailed({ status, fault }) {
  const isCut = status > 0 && ["truncate", "stall"].includes(fault?.code);
  return status === 0 || status >= 400 || isCut;
}

// outcomeClass returns the class that gives an outcome its colour.
function outcomeClass(request) {
  const { status } = request;
  if (status === undefined) {
    return "waits";
  }
  if (hasFailed(request)) {
    return (status === 0 && hasLeft(request)) || (status >= 400 && status < 500) ? "refused" : "broken";
  }
  return mishapOf(request) ? "refused" : "succeeded";
}

// effectOf says what a request has changed, as far as the journal says so. The
// answer of a gateway has no header of the operation.
function effectOf({ operation, status, fault, answerHeaders = {}, error }) {
  const [, id] = /\/(\d+)$/.exec(answerHeaders.Location) ?? [];
  if (operation === "createPet" && id) {
    return `adds pet ${id}`;
  }
  const isOfGateway = status === 502 && fault?.code === "html";
  return operation === "createPet" && isOfGateway && !error ? "adds a pet" : "";
}

// hasEffect reports whether a request has changed something. There may be none.
function hasEffect(request) {
  return Boolean(request && effectOf(request));
}

// secondsOf returns the time until a request was over.
function secondsOf({ seconds, status }) {
  return status === undefined ? undefined : seconds.toFixed(3);
}

// clientOf returns the User-Agent of a request, or a short name for that of a browser.
function clientOf({ "User-Agent": agent = "" }) {
  const [, name, version] = /^Mozilla.*(Edg|Firefox|Chrome|Version)\/(\d+)/.exec(agent) ?? [];
  const names = { Edg: "Edge", Version: "Safari" };
  return name ? `${names[name] ?? name} ${version}` : agent;
}

// entryOf returns what openapi.json says of a single code, which is a word or a
// status.
function entryOf(code) {
  const isFor = (entry) => entry.enum?.includes(code) ?? new RegExp(entry.pattern).test(code);
  return state.description.codes.find(isFor);
}

// meaningOf says what a fault with a single code does.
function meaningOf(fault) {
  const { parameters } = state.description;
  const waits = Object.keys(delays).map((name) => {
    const { description } = parameters.find((one) => one.name === name);
    const ofFault = description.replace("this number of seconds", `${fault[name]} s`);
    return fault[name] > 0 && ofFault;
  });
  return [...waits, fault.code && entryOf(fault.code).description].filter(Boolean).join(" ");
}

// factOf says what the fault of a request has done. If its client has left, that
// is not known. Most faults speak of a body, and HEAD gets none.
function factOf(request) {
  const { method, fault } = request;
  const isKnown = fault && method !== "HEAD" && !hasLeft(request);
  return isKnown ? factAndQuestion(meaningOf(fault))[0] : "";
}

// factAndQuestion splits a meaning into what happens and what a tester asks.
function factAndQuestion(meaning) {
  const [, fact, question = ""] = /^(.*?)( [^.]*\?)?$/.exec(meaning);
  return [fact, question];
}

// isFailure reports whether a fault does anything. The code ok and a delay of 0
// do not.
function isFailure({ code = "ok", ...others } = {}) {
  return code !== "ok" || Object.keys(delays).some((name) => others[name] > 0);
}

// isPreferred reports whether the fault of a request is one that it asked for
// itself. The standing fault is not applied to such a request.
function isPreferred({ fault, headers }) {
  const preferences = (headers.Prefer ?? "").toLowerCase().split(/[,;]/);
  const names = preferences.map((one) => one.split("=")[0].trim());
  return Boolean(fault) && ["code", ...Object.keys(delays)].some((name) => names.includes(name));
}

// labelOf returns the name of a fault with a single code, as its button has it.
function labelOf(fault) {
  const waits = Object.entries(delays).map(([name, word]) => {
    const isSame = (one) => name === "delay" && Number(one.fault.delay) === Number(fault.delay);
    return fault[name] > 0 && (presets.find(isSame)?.label ?? `${word} by ${fault[name]} s`);
  });
  const { code = "ok" } = fault;
  const word = code !== "ok" && (entryOf(code).enum ? entryOf(code).title : code);
  return [...waits, word].filter(Boolean).join(", ") || "As usual";
}

// queueOf returns what requests get from a standing fault, as runs of the same:
// those that are used, and those to come.
function queueOf({ matched, applied, code, skip = 0, times = Infinity, ...others }) {
  const codes = code?.split(",") ?? [code];
  const each = codes.length > 1 ? 1 : times;
  const all = codes.map((one) => ({ fault: { ...others, code: one }, count: each }));
  const used = [];
  const coming = [];
  let left = Math.min(matched, skip) + applied;
  for (const { fault, count } of [{ fault: {}, count: skip }, ...all]) {
    const done = Math.min(count, left);
    left -= done;
    extend(used, fault, done);
    extend(coming, fault, count - done);
  }
  return { used, coming };
}

// extend appends requests that get a fault to the last run, or as a new one.
function extend(runs, fault, count) {
  const last = runs.at(-1);
  if (last && labelOf(last.fault) === labelOf(fault)) {
    last.count += count;
  } else if (count > 0) {
    runs.push({ fault, count });
  }
}

// indent returns JSON on several lines, and another text as it is. Its numbers
// are exact, where the browser can do that.
function indent(text) {
  const exact = (key, value, context) =>
    typeof value === "number" && context && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
  try {
    return JSON.stringify(JSON.parse(text, exact), null, 2);
  } catch {
    return text;
  }
}

// Repetitions of a request.

// What a terminal acts on or nobody sees, except in emoji, and what stands for
// an invalid byte.
const unsafe = /[\p{Cc}\p{Zl}\p{Zp}\uFFFD[\p{Default_Ignorable_Code_Point}--[\u200D\uFE0F]]]/gv;

// reveal shows unsafe characters as their numbers, but for newlines.
function reveal(text) {
  const number = (char) => `⟨U+${char.codePointAt(0).toString(16).padStart(4, "0")}⟩`;
  return text.replace(unsafe, (char) => (char === "\n" ? char : number(char)));
}

// obstacleOf says why a request cannot be sent as it was by this browser, or in
// a terminal, or returns "". Behind the origin of the page, @evil.test/ would
// lead to another host, with the key. *** and U+FFFD stand for what the journal
// does not have, but a client whose key is wrong may have sent ***. curl refuses
// -I together with a body.
function obstacleOf(request, isForBrowser) {
  const { method, url, status, fault, headers, body } = request;
  const line = curlLine(request);
  const isWrongKey = status === 401 && !fault && headers.Authorization === "Bearer ***";
  if (!/^\/[^#]*$/.test(url)) {
    return "Its target is not a path.";
  }
  if (!hasWholeBody(request) || isWrongKey || /\*{3}|\uFFFD/.test(line)) {
    return "The journal may not have all that was sent.";
  }
  if (method === "HEAD" && body) {
    return "A HEAD request with a body cannot be sent again.";
  }
  if (!isForBrowser) {
    return line.search(unsafe) < 0 ? "" : "A terminal would act on a character in it.";
  }
  try {
    const kept = requestOf(request);
    const isKept = ([name, value]) => /^[ -~]*$/.test(value) && kept.headers.get(name) === value;
    const areKept = clientHeaders(headers).every(isKept);
    const isSame = kept.method === method && kept.url === location.origin + url && areKept;
    return isSame ? "" : "A browser would change it.";
  } catch {
    return "A browser cannot send it.";
  }
}

// hasWholeBody reports whether the body is known. The journal has none that was
// not read to its end.
function hasWholeBody({ headers, body }) {
  return body || !(headers["Content-Length"] > 0 || headers["Transfer-Encoding"]);
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

// requestOf returns a request to this service. It throws an error if no browser
// can send it.
function requestOf({ method, url, headers, body }) {
  const bytes = body ? new TextEncoder().encode(body) : null; // a text would be given a type
  const given = { method, headers: clientHeaders(headers), body: bytes };
  return new Request(location.origin + url, { ...given, cache: "no-store", credentials: "omit" });
}

// curlLine returns a line that sends a request to this service, and to no other
// host. A terminal would act on control characters in it, and a shell would run
// what follows a newline.
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

// quote quotes a text for sh, bash, zsh and fish, which do not agree on a
// backslash within quotes.
function quote(text) {
  return /^\w+$/.test(text) ? text : `'${text.replace(/['\\]/g, (char) => `'\\${char}'`)}'`;
}

// Views.

function numeral(number) {
  return number.toLocaleString("en");
}

// setText changes a text, unless it is the same: drawing it would take time, and
// it would be read aloud again.
function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

function make(tag, properties, ...content) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...content);
  return element;
}

// cut returns an element whose text may be cut. Its title is longer.
function cut(className, text = "", tag = "span", whole = text) {
  const title = reveal(whole.slice(0, 1000)) + (whole.length > 1000 ? "…" : "");
  const start = text.slice(0, 200).replace(/[\uD800-\uDBFF]$/, ""); // no half of a character
  const end = start.length < text.length ? "…" : "";
  return make(tag, { className: `cut ${className}`, title }, reveal(start) + end);
}

// facts returns a list of names and values, without those that have no value.
function facts(values = {}) {
  const known = Object.entries(values).filter(([, value]) => value !== undefined);
  const parts = known.map(([name, value]) => {
    const content = value instanceof Node ? value : reveal(String(value));
    return [make("dt", {}, name), make("dd", {}, content)];
  });
  return make("dl", {}, ...parts.flat());
}

function drawFrame() {
  const { key, keyError } = state;
  page.keyForm.hidden = key !== "";
  page.desk.hidden = key === "";
  page.keyError.textContent = keyError;
  page.keyField.focus(); // if it is shown
}

// drawChoices draws the choices of a fault and the titles of the table of pets,
// once. A meaning begins with the moment when the fault acts, and a comma.
function drawChoices() {
  const { operations, codes, parameters, ofPet } = state.description;
  for (const value of operations) {
    const input = make("input", { type: "radio", name: "operation", value });
    page.operations.append(make("label", {}, input, make("span", {}, value)));
  }
  const words = codes.filter(({ enum: values }) => values?.length === 1 && values[0] !== "ok");
  const ofWord = ({ title, enum: [code] }) => ({ label: title, fault: { code } });
  const all = [...presets, ...words.map(ofWord)];
  const byMoment = Object.groupBy(all, ({ fault }) => meaningOf(fault).split(",")[0]);
  for (const [moment, ofMoment] of Object.entries(byMoment)) {
    const buttons = make("div", { className: "buttons" }, ...ofMoment.map((preset) => faultButton(preset)));
    page.presets.append(make("fieldset", {}, make("legend", {}, moment), buttons));
  }
  const isOffered = ({ fault }) => offered.includes(fault.code ?? fault.delay);
  page.offers.append(...all.filter(isOffered).map((preset) => faultButton(preset, { times: 1 })));
  page.anotherForm.prepend(...parameters.map(fieldOf));
  page.petTitles.append(...ofPet.map((name) => cut("", name, "th")));
}

// faultButton returns a button that sets a fault, with these parameters or with
// the choices.
function faultButton({ label, fault }, parameters) {
  const title = `${faultText(fault)}: ${meaningOf(fault)}`;
  const button = make("button", { type: "button", title }, label);
  button.addEventListener("click", () => {
    const { operation, times } = page.presets.elements;
    const choices = { operation: operation.value, times: times.value };
    setFault({ ...fault, ...(parameters ?? choices) });
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

// signNow returns what the sign says. It is red while the fault does something
// to requests to come.
function signNow() {
  const { trouble, isBroken, since, fault } = state;
  if (isBroken) {
    const scope = `Petstore may be well. Load the page again. ${page.needs.textContent}`;
    return { kind: "trouble", headline: "This page failed.", scope };
  }
  if (trouble) {
    const scope = "What is shown was last known. This page goes on asking.";
    return { kind: "trouble", headline: trouble, scope };
  }
  if (fault.matched === undefined) {
    const meaning = "Requests are answered as usual, unless a header Prefer asks for a fault.";
    return { kind: "calm", headline: since && "No standing fault", meaning, isOver: true };
  }
  const queue = queueOf(fault);
  const [{ fault: next } = { fault: {} }] = queue.coming;
  const operation = fault.operation ? `${fault.operation} only` : "Requests under /v1";
  const hasStatus = queue.coming.some((run) => run.fault.code > 0);
  const retryAfter = hasStatus && fault["retry-after"];
  const held = fault.held > 0 ? `, ${numeral(fault.held)} held` : "";
  if (queue.coming.length === 0) {
    const isOver = fault.held === 0;
    return { kind: "idle", headline: `Fault used up${held}`, queue, label: labelOf(next), isOver };
  }
  return {
    kind: queue.coming.some((run) => isFailure(run.fault)) ? "active" : "idle",
    headline: `Standing fault${held}`,
    scope: retryAfter ? `${operation}, Retry-After ${retryAfter}` : operation,
    queue,
    label: labelOf(next),
    meaning: meaningOf(next),
  };
}

function drawSign() {
  const { kind, headline, scope = "", queue, label = headline, meaning = "", isOver } = signNow();
  const { held = 0 } = state.fault;
  const [fact, question] = factAndQuestion(meaning);
  page.sign.className = kind;
  page.band.hidden = !headline;
  page.headline.textContent = headline;
  page.scope.textContent = scope;
  page.queue.replaceChildren(...(queue ? chipsOf(queue) : []));
  page.meaning.replaceChildren(fact, make("span", { className: "quiet" }, question));
  page.next.hidden = !queue && !meaning;
  page.meaning.hidden = !meaning;
  page.offers.hidden = !isOver;
  page.ending.hidden = !queue || isOver;
  page.end.textContent = held > 0 ? "End and release" : "End fault";
  document.title = isOver ? "Petstore" : `${held > 0 ? headline : label} – Petstore`;
  page.mark.setAttribute("fill", kind === "active" || (queue && held > 0) ? "#d1352b" : "#748090");
  page.icon.href = `data:image/svg+xml,${encodeURIComponent(page.mark.outerHTML)}`;
  const subject = [headline, scope].filter(Boolean).join(kind === "trouble" ? " " : ", ");
  setText(page.spoken, queue ? `${subject}. The next one: ${label}` : subject);
}

// chipsOf returns the chips of a queue: as many as there is room for, and how
// many others there are.
function chipsOf({ used, coming }) {
  const runs = coming.length > 0 ? coming : [{ fault: {}, count: Infinity }];
  const [{ fault, count }, ...later] = runs;
  const rest = count > 1 && count < Infinity ? [{ fault, count: count - 1 }] : [];
  const future = [...rest, ...later];
  const room = state.room - 1;
  const split = Math.max(0, used.length - Math.max(Math.floor(room / 2), room - future.length));
  const before = used.slice(0, split);
  const past = used.slice(split);
  const near = future.slice(0, state.room - past.length);
  const sum = (some) => numeral(some.reduce((total, run) => total + run.count, 0));
  const word = (text) => make("li", { className: "quiet" }, text);
  const chip = (kind, run, times = run.count) => {
    const number = times > 1 && times < Infinity ? ` × ${numeral(times)}` : "";
    const name = labelOf(run.fault) + number;
    const className = `chip ${kind} ${isFailure(run.fault) ? "" : "good"}`;
    return make("li", { className, title: meaningOf(run.fault) }, kind === "used" ? `✓ ${name}` : name);
  };
  const next = chip("next", { fault }, 1);
  next.ariaCurrent = "step";
  const distant = future.slice(near.length);
  return [
    before.length > 0 ? word(`✓ ${sum(before)} before`) : "",
    ...past.map((run) => chip("used", run)),
    next,
    ...near.map((run) => chip("", run)),
    distant.length > 0 ? word(`and ${sum(distant)} more,`) : "",
    coming.length > 0 && word(runs.at(-1).count === Infinity ? "every time" : "then as usual"),
  ].filter(Boolean);
}

let rowsMade = 0;

// makeRow returns a row, and the cells of it that change.
function makeRow(request) {
  const { time, method, url, headers, body, status, fault, seconds } = request;
  const error = errorOf(request);
  const cells = {
    effect: make("span", { className: "fact" }, effectOf(request)),
    same: make("span", { className: "fact same cut", title: "The same method, target, body, User-Agent, Authorization and Idempotency-Key as this earlier request, which failed" }),
    pause: make("span", { className: "pause" }),
    seconds: make("span", {}, secondsOf(request) ?? ""),
  };
  const row = make(
    "div",
    { id: `row-${++rowsMade}`, role: "option", ariaSelected: "false", className: "row" },
    make("span", { className: "time" }, clock(request)),
    cut("code method", method),
    make("b", { className: outcomeClass(request) }, outcomeOf(request)),
    make(
      "span",
      { className: "what" },
      make("span", {}, cut("code url", url), fault ? tagOf(request) : "", cells.effect),
      make(
        "span",
        {},
        cells.same,
        ...linesOf(notesOf(request)).map((note) => cut("code tag note", note)),
        error ? cut("excerpt", error) : cut("excerpt body", body),
      ),
    ),
    cut("client", clientOf(headers), "span", headers["User-Agent"]),
    cells.pause,
    make("span", { className: "seconds" }, make("i"), cells.seconds),
  );
  row.classList.toggle("held", status === undefined);
  row.style.setProperty("--seconds", seconds);
  return { row, cells };
}

// tagOf returns a mark for the fault of a request, which may be one of its own.
function tagOf(request) {
  const text = faultText(request.fault).replace(/^code=/, "");
  const className = isFailure(request.fault) ? "code tag injected" : "code tag";
  const isOwn = isPreferred(request);
  return cut(isOwn ? `${className} preferred` : className, isOwn ? `Prefer: ${text}` : text);
}

// drawList puts the rows in order. Of a row that is there, only what has changed
// is drawn.
function drawList() {
  const { visible } = state;
  const wanted = new Set(visible.map(({ row }) => row));
  const unwanted = [...page.list.querySelectorAll(".row")].filter((row) => !wanted.has(row));
  unwanted.forEach((row) => row.remove());
  let next = page.lines.nextElementSibling;
  visible.forEach((request, i) => {
    const { row, cells, time, same, fault } = request;
    const pause = (Date.parse(time) - Date.parse(visible[i - 1]?.time)) / 1000;
    setText(cells.pause, i > 0 ? `+${pause.toFixed(3)}` : "");
    setText(cells.same, same ? `same as ${clock(same)}` : "");
    cells.effect.classList.toggle("told", hasEffect(same) || isFailure(fault) || hasFailed(request));
    if (row === next) {
      next = next.nextElementSibling;
    } else {
      page.list.insertBefore(row, next);
    }
  });
  drawLines();
  followEnd();
}

function followEnd() {
  if (state.followsEnd) {
    page.list.scrollTop = page.list.scrollHeight;
  }
}

// drawLines joins each row with the one that it is the same as. Lines from the
// same row share a lane, and the shortest lines are next to the rows. A line that
// finds no lane is left out.
function drawLines() {
  const { visible } = state;
  const rows = new Map(visible.map((request, i) => [request, i]));
  const joins = visible.map(({ same }, i) => [rows.get(same), i]).filter(([start]) => start >= 0);
  const lanes = Array.from({ length: maxLanes }, () => []);
  const lines = [];
  for (const [start, end] of joins.sort(([a, b], [c, d]) => b - a - (d - c))) {
    const lane = lanes.findIndex((line) => line.every(([from, to]) => start === from || end <= from || to <= start));
    if (lane >= 0) {
      lanes[lane].push([start, end]);
      const style = `--start: ${start}; --length: ${end - start}; --lane: ${lane}`;
      lines.push(make("i", { style }));
    }
  }
  page.lines.replaceChildren(...lines);
}

// drawWaiting draws how long requests have waited, with a bar.
function drawWaiting() {
  for (const { row, cells, seconds } of state.waiting) {
    setText(cells.seconds, seconds.toFixed(1));
    row.style.setProperty("--seconds", seconds);
  }
}

// drawCount counts the requests that are there. With a filter, the number found
// is also read aloud.
function drawCount() {
  const { visible, requests, waiting, total, since, isAnew, filter } = state;
  const there = requests.length + waiting.length;
  const recorded = numeral(requests.length);
  const ofAll = requests.length < total ? `The last ${recorded} of ${numeral(total)}` : recorded;
  const found = filter ? `${numeral(visible.length)} of ${numeral(there)}` : "";
  const count = `${ofAll} recorded${waiting.length > 0 ? `, ${waiting.length} waiting` : ""}`;
  const began = `${isAnew ? "Cleared or restarted at" : "Since"} ${since.slice(11, 19)} UTC`;
  page.count.textContent = since ? found || count : "";
  page.began.textContent = since ? began : "";
  page.found.textContent = found && `${found} requests`;
  page.clear.hidden = requests.length === 0;
  page.list.tabIndex = visible.length > 0 ? 0 : -1;
  page.titles.hidden = there === 0;
  page.noRequests.hidden = !since || there > 0;
  page.noMatch.hidden = there === 0 || visible.length > 0;
}

function drawSelection() {
  const { visible, selected } = state;
  const row = visible.includes(selected) ? selected.row : null;
  page.list.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
  row?.setAttribute("aria-selected", "true");
  page.list.setAttribute("aria-activedescendant", row?.id ?? "");
}

function drawPane() {
  const { selected, isOpen, description } = state;
  page.desk.classList.toggle("open", isOpen);
  page.selection.hidden = !selected;
  page.noSelection.hidden = Boolean(selected);
  if (!selected) {
    return;
  }
  const { method, url, headers, body, status, fault, same, answer, answerHeaders } = selected;
  page.paneTitle.replaceChildren(cut("", `${method} ${url}`, "div"));
  const outcome = make("b", { className: outcomeClass(selected) }, outcomeOf(selected));
  const effect = make("span", { className: "fact told" }, effectOf(selected));
  page.result.replaceChildren(outcome, effect, make("span", {}, reveal(errorOf(selected))));
  const obstacles = [obstacleOf(selected, true), obstacleOf(selected, false)];
  page.sendAgain.disabled = obstacles[0] !== "";
  page.copy.disabled = obstacles[1] !== "";
  page.obstacle.textContent = [...new Set(obstacles)].join(" ").trim();
  const className = isFailure(fault) ? "asked faulty" : "asked";
  const origin = isPreferred(selected) ? "Asked for by Prefer. " : "";
  const asked = [make("code", {}, faultText(fault)), make("p", {}, (origin + factOf(selected)).trim())];
  const names = description.ofEntry.filter((name) => !placed.includes(name));
  const labels = { id: "request id" }; // or it would be taken for that of a pet
  const others = Object.fromEntries(names.map((name) => [labels[name] ?? name, selected[name]]));
  const earlier = same && make("button", { type: "button", className: "link" }, clock(same));
  earlier?.addEventListener("click", () => select(same));
  const sentTitle = hasWholeBody(selected) ? "Sent" : "Sent; no body is recorded";
  page.details.replaceChildren(
    make("div", { className, hidden: !fault }, ...asked),
    facts({
      ...others,
      ...notesOf(selected),
      seconds: secondsOf(selected),
      "error, not sent": status > 0 && fault?.code === "html" ? selected.error : undefined,
      "same as": earlier,
    }),
    ...part(sentTitle, make("pre", {}, reveal(`${method} ${url}${body && `\n\n${body}`}`))),
    ...part(answerTitle(selected), answer && make("pre", {}, reveal(indent(answer)))),
    ...part("Headers sent", facts(headers)),
    ...part("Headers of the answer", status > 0 && facts(answerHeaders)),
  );
  page.pane.scrollTop = 0;
  showRow(selected);
}

// part returns a part of the pane, unless there is nothing in it.
function part(title, content) {
  return content ? [make("h3", {}, title), content] : [];
}

// answerTitle says how much of the answer is shown, and how it was sent.
function answerTitle({ method, status, answerHeaders = {}, fault }) {
  const length = answerHeaders["Content-Length"];
  const what = length > maxAnswer ? `; the first ${maxAnswer} of ${length} bytes are shown` : "";
  if (status === 0 || method === "HEAD") {
    return `Body of the answer, not sent${what}`;
  }
  const parts = { truncate: " (half was sent)", stall: " (half was sent)", drip: " (in pieces, if the client waited)" };
  return `Body of the answer${parts[fault?.code] ?? ""}${what}`;
}

function drawPets() {
  const { pets, since, description } = state;
  page.petsTitle.textContent = pets.length < maxPets ? "Pets" : `Pets, the last ${maxPets}`;
  page.petTable.hidden = pets.length === 0;
  page.noPets.hidden = !since || pets.length > 0;
  const rowOfPet = (pet) =>
    make("tr", {}, ...description.ofPet.map((name) => cut("", String(pet[name] ?? ""), "td")));
  page.petRows.replaceChildren(...pets.toReversed().map(rowOfPet));
}

// drawTexts draws short texts. What became of the last request of the page is in
// its row, and is read aloud.
function drawTexts() {
  const { refusal, notice, paneNotice, requests, waiting, visible, selected, sent } = state;
  const isThere = requests.includes(selected) || waiting.includes(selected);
  const isHidden = isThere && !visible.includes(selected);
  const hidden = isHidden ? "The filter hides the selected request." : "";
  const isGone = selected && !isThere;
  setText(page.absence, isGone ? "This request is no longer in the journal." : "");
  setText(page.refusal, refusal);
  setText(page.paneNotice, paneNotice);
  setText(page.notice, `${notice} ${hidden}`.trim());
  const hasEnded = sent?.status !== undefined;
  setText(page.sent, hasEnded ? `${clock(sent)}: ${outcomeOf(sent)} ${effectOf(sent)}`.trim() : "");
  if (isGone && selected.status === undefined) {
    page.result.firstChild.textContent = "was waiting"; // what became of it is not known
  }
}

// Events.

function select(request, isOpen = true) {
  update({ selected: request, isOpen, notice: "", paneNotice: "" });
  showRow(request); // also if it was selected before
}

function showRow(request) {
  if (state.visible.includes(request)) {
    request.row.scrollIntoView({ block: "nearest" });
  }
}

page.list.addEventListener("click", ({ target }) => {
  const clicked = state.visible.find(({ row }) => row.contains(target));
  if (clicked) {
    select(clicked);
  }
});

page.list.addEventListener("keydown", (event) => {
  const { visible, selected } = state;
  const rowsInSight = Math.floor(page.list.clientHeight / visible[0]?.row.offsetHeight);
  const inSight = Math.max(1, rowsInSight - 1);
  const steps = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: inSight,
    PageUp: -inSight,
    Home: -Infinity,
    End: Infinity,
  };
  const step = steps[event.key];
  if (step && visible.length > 0) {
    event.preventDefault();
    const current = visible.indexOf(selected);
    const next = (current < 0 ? visible.length : current) + step;
    const found = visible[Math.max(0, Math.min(visible.length - 1, next))];
    select(found, state.isOpen || hasPane.matches); // or the list would be covered
  } else if (event.key === "Enter" && selected) {
    update({ isOpen: true });
    page.pane.focus();
  }
});

// closePane leaves the request selected, so that the arrow keys go on from it.
function closePane() {
  if (page.pane.contains(document.activeElement)) {
    page.list.focus({ preventScroll: true });
  }
  update({ isOpen: false });
}

document.addEventListener("keydown", ({ key, target }) => {
  if (key === "Escape" && !target.closest("input:not([type=radio])")) {
    closePane();
  }
});

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

page.another.addEventListener("toggle", () => page.another.scrollIntoView({ block: "nearest" }));

page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  keepKey(page.keyField.value);
  location.reload();
});

page.listPets.addEventListener("click", () => sendAsClient(listing, "notice"));
page.addPet.addEventListener("click", addPet);
page.sendAgain.addEventListener("click", () => sendAsClient(state.selected, "paneNotice"));
page.copy.addEventListener("click", copySelected);
page.close.addEventListener("click", closePane);
page.end.addEventListener("click", () => act("DELETE", "/__admin/fault"));
page.clear.addEventListener("click", () => {
  if (confirm("Remove all recorded requests, for all clients?")) {
    update({ selected: null, isOpen: false });
    act("DELETE", "/__admin/requests");
  }
});
page.resetAll.addEventListener("click", () => {
  if (confirm("Reset pets, fault and requests, for all clients?")) {
    page.presets.reset();
    update({ selected: null, isOpen: false });
    act("POST", "/__admin/reset");
  }
});

// commandsWith returns the first commands of a reader, with a key.
function commandsWith(key) {
  const curl = `curl -sSH ${quote(`Authorization: Bearer ${key}`)}`;
  return [
    `${curl} -X PUT '${location.origin}/__admin/fault?code=lost&times=1'`,
    `${curl} --retry 1 --retry-all-errors ${location.origin}/v1/pets --json '{"name":"Rex","categoryId":7}'`,
  ];
}

[page.firstCommand, page.secondCommand].forEach((element, i) => {
  element.textContent = commandsWith("***")[i];
  const button = element.nextElementSibling;
  button.addEventListener("click", () => copyText(commandsWith(state.key)[i], true, "notice"));
});

// What the sign has room for depends on its width: a chip has some 9 rem. In a
// narrow window, what is in focus is scrolled to below the sign. Rows may have got
// another height.
new ResizeObserver(() => {
  const { style } = document.documentElement;
  style.setProperty("--sign", `${page.sign.offsetHeight}px`);
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  update({ room: Math.max(2, Math.floor(page.sign.clientWidth / rem / 9 - 2)) });
  followEnd();
}).observe(page.sign);

window.addEventListener("error", ({ error }) => error && report(error));
window.addEventListener("unhandledrejection", ({ reason }) => report(reason));
window.addEventListener("hashchange", () => location.hash.startsWith("#key=") && location.reload());
document.addEventListener("visibilitychange", read);
page.base.textContent = `${location.origin}/v1`;
page.needs.hidden = true;
takeKey();
update({ key: sessionStorage.apiKey ?? "" });
read();
