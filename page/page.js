// This script shows what clients have sent to the service, sets faults, and is a client itself.
//
// All that the page knows is in state. The function update changes it, and draws the parts of the
// page that show what has changed. Clients can send any text, so text is never set as HTML.

// Times, in milliseconds: between two readings, for which one request of the page may take, and for
// which a notice stays.
const interval = 500;
const timeLimit = 5000;
const noticeTime = 6000;

// The page keeps as many requests as the service does, and as many pets. Of an answer, the service
// keeps the first bytes.
const maxKept = 1000;
const maxAnswer = 1000;

// A page of pets, and the most pages that one reading asks for. The next reading goes on.
const pageSize = 100;
const maxPages = 10;

// How many requests that the page has sent may wait at a time, as the connections of a browser are
// few, and how many codes of a list the sign shows.
const maxSending = 2;
const maxCodes = 8;

// The presets, which are also the codes with a name. The result says what a code does. A code that
// is not here is shown by its name.
const skipping = [
  { code: "503", title: "503", hint: "unavailable" },
  { code: "429", title: "429", hint: "rate limit" },
  { code: "hangup", title: "Hang up", hint: "connection closed", result: "the connection closes" },
  { code: "rst", title: "TCP reset", hint: "connection reset", result: "the connection is reset" },
];
const performing = [
  { delay: "3", title: "Slow by 3 s", hint: "then the answer" },
  { code: "drip", title: "Slow body", hint: "a piece a second", result: "its body comes slowly" },
  { code: "lost", title: "Answer lost", hint: "connection closed", result: "its answer is lost" },
  { code: "truncate", title: "Answer cut", hint: "half of the body", result: "its answer is cut" },
  { code: "stall", title: "Answer stalls", hint: "half, then silence", result: "its answer stops" },
  { code: "html", title: "HTML page", hint: "with status 502", result: "its answer is HTML" },
];
const faults = [...skipping, ...performing];

// What the page sends as a client: the first request that it shows, and the pets that it adds.
const example = { method: "GET", url: "/v1/pets", headers: { Authorization: "Bearer <API_KEY>" } };
const samples = [
  { name: "Rex", categoryId: 1, status: "available" },
  { name: "Bella", categoryId: 2, status: "pending" },
  { name: "Zoë", categoryId: 3, status: "sold" },
  { name: "Мурка", categoryId: 2 },
];

// The elements of the page that have an id, by id.
const page = Object.fromEntries(
  [...document.querySelectorAll("[id]")].map((element) => [element.id, element]),
);

// State.

const state = {
  // The API key, or "" while the page asks for it, and why it asks.
  key: "",
  keyError: "",
  // Why the service does not answer, or "" while it does.
  trouble: "",
  // When the ids of the journal began, or "" before the first answer.
  since: "",
  // The standing fault and its counters, or {} for none.
  fault: {},
  // The last requests, the oldest first, the number of all, and those that pass the filter.
  requests: [],
  total: 0,
  visible: [],
  filter: "",
  // The requests that wait for a delay and are not among the others yet, as the service names them.
  waiting: [],
  // The request in the pane, or null.
  selected: null,
  // Whether the list follows its end.
  isFollowing: true,
  // The last pets, in ascending order of id, the number of those that were read, and whether there
  // are more to read.
  pets: [],
  petCount: 0,
  hasMorePets: false,
  // Why the service refuses what was typed, and the last news for the reader.
  refusal: "",
  notice: "",
  isError: false,
};

// views are the functions that draw, each with the names of the state that it shows.
const views = [
  { draw: drawFrame, shows: ["key", "keyError", "since", "trouble"] },
  { draw: drawSign, shows: ["key", "since", "trouble", "fault"] },
  { draw: drawFaults, shows: ["trouble", "fault"] },
  { draw: drawRefusal, shows: ["refusal"] },
  { draw: drawList, shows: ["visible", "waiting", "total", "since", "trouble"] },
  { draw: drawSelection, shows: ["visible", "selected"] },
  { draw: drawPane, shows: ["selected"] },
  { draw: drawNews, shows: ["visible", "isFollowing"] },
  { draw: drawPets, shows: ["since", "pets", "petCount", "hasMorePets"] },
  { draw: drawNotice, shows: ["notice", "isError"] },
];

// update changes the state and draws what has changed. A view that throws does not keep the others
// from being drawn; the notice, which is drawn last, says so.
function update(changes) {
  const changed = new Set(Object.keys(changes).filter((name) => changes[name] !== state[name]));
  Object.assign(state, changes);
  if (changed.has("requests") || changed.has("filter")) {
    state.visible = state.requests.filter(isVisible);
    changed.add("visible");
  }
  for (const { draw, shows } of views) {
    if (shows.some((name) => changed.has(name))) {
      try {
        draw();
      } catch (error) {
        reportError(error);
        state.notice = `This page has a bug: ${error.message}. The rest of it goes on.`;
        state.isError = true;
        changed.add("notice");
      }
    }
  }
}

function tell(notice, isError = false) {
  update({ notice, isError });
}

// Requests of the page. The service neither records nor delays them, and applies no fault to them.

// A ServiceError is an Error of the service, with its status, or the lack of an answer.
class ServiceError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

// call returns the body of an answer. It throws a ServiceError.
async function call(method, path) {
  const { key } = state;
  const headers = { Authorization: `Bearer ${key}`, "Petstore-Observer": "page" };
  let response;
  let text;
  try {
    const signal = AbortSignal.timeout(timeLimit);
    response = await fetch(path, { method, headers, signal });
    text = await response.text();
  } catch {
    throw new ServiceError("No answer has come.");
  }
  const isLate = key !== state.key; // the reader has entered another one since
  if (response.status === 401 && !isLate) {
    useKey("", "The service refuses this key.");
  }
  if (!response.ok) {
    throw new ServiceError(parse(text).message, response.status);
  }
  return text;
}

function parse(text, reviver) {
  try {
    return JSON.parse(text, reviver);
  } catch {
    throw new ServiceError("Something other than petstore answers.");
  }
}

// asText keeps a number as it is written: the ids of pets are int64, and a number of JavaScript is
// exact up to 2^53 only.
function asText(name, value, context) {
  return typeof value === "number" ? (context?.source ?? String(value)) : value;
}

let polling = Promise.resolve();
let nextPoll;

// poll reads what is new, now and again after a while. It waits for a reading under way and then
// starts another, so that readings do not overlap, and the last one includes what was done before.
function poll() {
  polling = polling.then(async () => {
    clearTimeout(nextPoll);
    if (state.key) {
      await read();
      nextPoll = setTimeout(poll, state.hasMorePets && !state.trouble ? 0 : interval);
    }
  });
  return polling;
}

async function read() {
  const { key } = state;
  try {
    const news = await readNews();
    if (key === state.key) {
      update(news);
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) {
      reportError(error);
      tell(`This page has a bug: ${error.message}. It goes on asking.`, true);
    } else if (key === state.key) {
      update({ trouble: error.message });
    }
  }
}

// readNews returns the changes of the state. When the ids of the journal have begun anew, the page
// knows nothing that still holds, but keeps the request that is being read.
async function readNews() {
  let { requests, pets, petCount } = state;
  let [fault, journal] = await Promise.all([
    call("GET", "/__admin/fault"),
    readJournal(requests.at(-1)?.id ?? 0),
  ]);
  const isAnew = journal.meta.since !== state.since;
  if (isAnew) {
    if (requests.length > 0) {
      journal = await readJournal(0);
    }
    [requests, pets, petCount] = [[], [], 0];
  }
  const newPets = await readPets(pets.at(-1)?.id ?? 0);

  const { waiting, meta } = journal;
  const hasMorePets = newPets.length === maxPages * pageSize;
  const changes = { trouble: "", since: meta.since, total: meta.total, hasMorePets };
  for (const [name, value] of Object.entries({ fault: parse(fault), waiting })) {
    if (JSON.stringify(value) !== JSON.stringify(state[name])) {
      changes[name] = value;
    }
  }
  if (isAnew || journal.requests.length > 0) {
    changes.requests = append(requests, journal.requests);
  }
  if (isAnew || newPets.length > 0) {
    changes.pets = [...pets, ...newPets].slice(-maxKept);
    changes.petCount = petCount + newPets.length;
  }
  if (isAnew) {
    changes.isFollowing = true;
  }
  return changes;
}

async function readJournal(after) {
  return parse(await call("GET", `/__admin/requests?after=${after}`));
}

async function readPets(after) {
  const pets = [];
  for (let i = 0; i < maxPages; i++) {
    const text = await call("GET", `/v1/pets?after=${pets.at(-1)?.id ?? after}&limit=${pageSize}`);
    const more = parse(text, asText);
    pets.push(...more);
    if (more.length < pageSize) {
      break;
    }
  }
  return pets;
}

// Actions.

let acting = Promise.resolve();

// act runs an action, after those before it, and shows the result or a notice. While the service
// does not answer, nothing is done, now or later.
function act(action, notice = "") {
  if (state.trouble) {
    tell("Petstore does not answer, so nothing was done.");
    return;
  }
  tell("");
  acting = acting.then(async () => {
    try {
      await action();
      await poll();
      update({ refusal: "" });
      if (notice) {
        tell(notice);
      }
    } catch (error) {
      poll();
      if (!(error instanceof ServiceError)) {
        reportError(error);
      }
      if (fieldNamedIn(error.message)) {
        update({ refusal: error.message });
      } else if (error.status === 0) {
        tell(`${error.message} Whether it was done is not known.`, true);
      } else if (error.status !== 401) {
        tell(error.message, true);
      }
    }
  });
}

// fieldNamedIn returns the field that a message of the service begins with, or null.
function fieldNamedIn(message) {
  const [name] = /^[a-z-]*/.exec(message);
  return page.another.querySelector(`[name="${name}"]`);
}

// setFault sets a fault. A parameter that is empty is not given.
async function setFault(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value);
  await call("PUT", `/__admin/fault?${new URLSearchParams(given)}`);
}

// setPreset sets the fault of a preset, for the operation and as often as the reader has chosen.
function setPreset({ code, delay }) {
  const { operation, often } = page.faultForm.elements;
  const parameters = { code, delay, operation: operation.value, times: often.value };
  act(() => setFault(parameters));
}

// setTyped sets the fault of the fields, and closes them.
function setTyped() {
  const { operation, often } = page.faultForm.elements;
  const parameters = { operation: operation.value };
  for (const { name, value } of page.another.querySelectorAll("input")) {
    parameters[name] = value.trim().replace(/[\s,]+/g, ","); // "503 lost" is a list, too
  }
  parameters.times ||= parameters.code.includes(",") ? "" : often.value; // or the list counts
  act(async () => {
    await setFault(parameters);
    if (page.another.contains(document.activeElement)) {
      page.anotherTitle.focus(); // as what is hidden loses the focus
    }
    page.another.open = false;
  });
}

function resetAll() {
  act(async () => {
    await call("POST", "/__admin/reset");
    page.faultForm.reset();
    page.filter.value = "";
    added = 0;
    update({ filter: "", selected: null });
  }, "All is reset.");
}

// ask runs an action when the reader has confirmed it.
function ask(question, consequence, label, action) {
  page.question.textContent = question;
  page.consequence.textContent = consequence;
  page.confirm.textContent = label;
  page.confirm.onclick = action;
  page.dialog.showModal();
}

let sending = 0;

// send sends a request as a client: it is recorded, and faults are applied to it. A fault may hold
// it for long, so it has no time limit, and no action waits for it.
async function send(request) {
  if (state.trouble) {
    tell("Petstore does not answer, so nothing was sent.");
    return;
  }
  if (sending === maxSending) {
    tell(`Nothing was sent: ${maxSending} requests of this page still wait for their answers.`);
    return;
  }
  let got = "no answer";
  sending++;
  try {
    const response = await fetch(sendable(request));
    got = `a ${response.status}, but not the whole answer`;
    await response.text();
    got = `a ${response.status}`;
  } catch {
    // Its row says what became of it.
  }
  sending--;
  tell(`This browser got ${got}.`);
  poll();
}

let added = 0;

function addPet() {
  const headers = { ...example.headers, "Content-Type": "application/json" };
  const sample = { ...samples[added % samples.length] };
  if (++added > samples.length) {
    sample.name += ` ${added}`; // or it would be "again" after a failure
  }
  send({ ...example, method: "POST", headers, body: JSON.stringify(sample) });
}

// The key.

// useKey uses a key until the tab is closed. Without one, the page asks for it, for a reason.
function useKey(key, reason = "") {
  if (/[^!-~]/.test(key)) {
    useKey("", "This is no key: it has characters other than visible ASCII.");
    return;
  }
  sessionStorage.apiKey = key;
  update({ key, keyError: reason, trouble: "", since: "", notice: "" });
  if (key) {
    poll();
  } else {
    page.keyField.focus();
  }
}

// enter uses the key in the fragment of the address, as in /#key=abc, and hides it there. Otherwise
// it uses the key of the tab.
function enter() {
  let key = /^#key=(.+)/.exec(location.hash)?.[1] ?? "";
  if (key) {
    history.replaceState(null, "", location.pathname);
  }
  try {
    key = decodeURIComponent(key);
  } catch {
    // The key is not percent-encoded.
  }
  if (key || !state.key) {
    useKey(key.trim() || (sessionStorage.apiKey ?? ""));
  }
}

// Faults in words.

// isActive reports whether a fault stands that is not used up.
function isActive({ times = Infinity, applied }) {
  return applied < times; // which is false for undefined
}

// isList reports whether a fault has a list of codes. Its times are the length of the list.
function isList({ code }) {
  return code?.includes(",") === true;
}

// kindOf returns the preset that has the words for a code, or undefined.
function kindOf(code) {
  return code && faults.find((preset) => preset.code === code);
}

function isStatus(code) {
  return /^\d+$/.test(code);
}

// titleOf returns a code in short, such as "Answer lost".
function titleOf(code) {
  return kindOf(code)?.title ?? code;
}

// nounOf returns what a fault is for, such as "createPet requests".
function nounOf({ operation }, count) {
  const noun = operation ? `${operation} request` : "request";
  return count === 1 ? noun : `${noun}s`;
}

// slowness returns the delays of a fault.
function slowness({ delay, "answer-delay": answerDelay }) {
  const parts = [delay && `Slow by ${delay} s`, answerDelay && `Answer slow by ${answerDelay} s`];
  return parts.filter(Boolean).join(", ");
}

// effectOf says what a fault with one code or none does to an operation and to its answer.
function effectOf(fault, operation = "The operation") {
  const { code, delay, "answer-delay": answerDelay, "retry-after": retryAfter } = fault;
  const kind = kindOf(code);
  let effect = `meets “${code}”, a code that this page does not know`;
  if (!code) {
    effect = delay ? "is performed" : "is performed at once";
  } else if (isStatus(code)) {
    effect = `is not performed: the client gets a ${code}`;
  } else if (kind) {
    effect = `is ${skipping.includes(kind) ? "not performed:" : "performed, but"} ${kind.result}`;
  }
  const sentences = [
    `${operation} ${delay ? `waits ${delay} s, then ` : ""}${effect}.`,
    answerDelay && `The answer waits ${answerDelay} s.`,
    isStatus(code) && retryAfter && `Retry-After is ${retryAfter} s.`,
  ];
  return sentences.filter(Boolean).join(" ");
}

// nextEffectOf says what a standing fault does to the next request that it is applied to.
function nextEffectOf(fault) {
  const { code, applied, operation, held } = fault;
  if (!isActive(fault)) {
    return `Used up${held ? ", but it still holds requests" : ". Requests are answered as usual"}.`;
  }
  const next = isList(fault) ? code.split(",")[applied] : code;
  return `${isList(fault) ? "Next: " : ""}${effectOf({ ...fault, code: next }, operation)}`;
}

// Requests in words.

// append adds entries of the journal to the requests that the page keeps. They are new to the
// reader unless they were there before the page was.
function append(requests, entries) {
  const all = [...requests];
  for (const entry of entries) {
    all.push({ ...newRequest(entry, all), isNew: state.since !== "" });
  }
  return all.slice(-maxKept);
}

// newWaiting returns a request that waits, in the form of the others.
function newWaiting({ time, method, url, operation = "" }) {
  const [outcome, reason] = ["waiting", "held by a delay"];
  const text = [method, url, operation, outcome, reason].join("\n").toLowerCase();
  return { time, method, url, outcome, reason, isWaiting: true, text };
}

// newRequest adds to an entry of the journal what the page says about it, and the text to search.
function newRequest(entry, earlier) {
  const { method, url, headers, status, seconds, answerHeaders = {}, fault, ignored = [] } = entry;
  const agent = headers["User-Agent"] ?? "";
  const isHalf = status !== 0 && ["truncate", "stall"].includes(fault?.code);
  const isGradual = method !== "HEAD" && ["drip", "stall"].includes(fault?.code); // goes on later
  const request = {
    ...entry,
    answerHeaders,
    ignored: ignored.join(", "),
    client: agent.startsWith("Mozilla/") ? "browser" : agent,
    isHalf,
    outcome: status === 0 ? "no answer" : `${status}${isHalf ? ", half" : ""}`,
    hasFailed: status === 0 || status >= 400 || isHalf,
    mayPass: [0, 408, 429].includes(status) || status >= 500 || isHalf,
    injected: fault ? injectedBy(fault, answerHeaders) : "",
    effect: fault ? effectOn(entry) : "",
    again: sinceFailure(entry, earlier),
    took: `${duration(seconds)}${isGradual ? " …" : ""}`,
  };
  const { operation, client, outcome, injected, effect, error, body, answer } = request;
  const texts = [method, url, operation, client, outcome, injected, effect, error, body, answer];
  texts.push(request.ignored && `ignored: ${request.ignored}`, request.again && "again");
  texts.push(...linesOf(headers), ...linesOf(answerHeaders));
  request.text = texts.join("\n").toLowerCase();
  return request;
}

// injectedBy returns the fault of a request in short, such as "Simulated, Slow by 1 s". With a
// header, the service confirms a fault that the request itself has asked for.
function injectedBy(fault, answerHeaders) {
  const { code } = fault;
  const name = code && (isStatus(code) ? "Simulated" : titleOf(code));
  const text = [name, slowness(fault)].filter(Boolean).join(", ");
  return answerHeaders["Preference-Applied"] ? `Prefer: ${text}` : text;
}

// effectOn says what a fault did to a request. It returns "" if the request has failed for another
// reason: then its error says what became of it. A fault that ends lets a request go earlier.
function effectOn({ method, operation, status, seconds, fault, error }) {
  if (error && (!isStatus(fault.code) || status === 0)) {
    return "";
  }
  const { code, delay = 0, "answer-delay": answerDelay = 0 } = fault;
  const isEarly = seconds < Number(delay) + Number(answerDelay);
  const isAtOnce = method === "HEAD" && code === "drip"; // as there is no body
  const effect = effectOf(isAtOnce ? { ...fault, code: "" } : fault, operation);
  return isEarly ? `${effect} It was let go after ${duration(seconds)}.` : effect;
}

// sinceFailure returns the time between a request and the last equal one of the same client, if
// that one has met a failure that may pass, and had ended before. Otherwise it returns "".
function sinceFailure(entry, earlier) {
  const last = earlier.findLast(
    ({ method, url, headers, body }) =>
      method === entry.method &&
      url === entry.url &&
      body === entry.body &&
      headers["User-Agent"] === entry.headers["User-Agent"] &&
      headers.Authorization === entry.headers.Authorization,
  );
  const pause = last && (new Date(entry.time) - new Date(last.time)) / 1000;
  const hasEnded = pause + 0.001 > last?.seconds; // as times are whole milliseconds
  return last?.mayPass && hasEnded ? duration(pause) : "";
}

// isVisible reports whether a request passes the filter. A method and a status are compared as a
// whole: "503" is not to find what was sent at 10:15:03.
function isVisible({ method, status, text, hasFailed }) {
  const words = state.filter.toLowerCase().split(/\s+/);
  return words.every((word) => {
    if (word === "failed") {
      return hasFailed;
    }
    if (/^(connect|delete|get|head|options|patch|post|put|trace)$/.test(word)) {
      return method.toLowerCase() === word;
    }
    return /^[1-5]\d\d$/.test(word) ? String(status) === word : text.includes(word);
  });
}

function linesOf(headers) {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}

// Words.

function number(count) {
  return count.toLocaleString("en");
}

function duration(seconds) {
  if (seconds < 0.001) {
    return "<1 ms";
  }
  return seconds < 0.9995 ? `${Math.round(seconds * 1000)} ms` : `${Number(seconds.toFixed(2))} s`;
}

const clock = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
});

// clip shortens a text to a number of characters, and never to half of a surrogate pair.
function clip(text, length) {
  const isLong = text.length > length;
  return reveal(isLong ? `${text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "")}…` : text);
}

// indent formats JSON, or the beginning of it: a member or an element of the outermost value a
// line. It works on the text, so that numbers and repeated members stay as they are.
function indent(json) {
  let text = "";
  let depth = 0;
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"?|\S/g)) {
    if (/[\]}]/.test(token[0]) && --depth === 0) {
      text += "\n";
    }
    text += token;
    if (/[[{]/.test(token[0]) && ++depth === 1) {
      text += "\n  ";
    } else if (token === ",") {
      text += depth === 1 ? "\n  " : " ";
    } else if (token === ":") {
      text += " ";
    }
  }
  return text.replace(/^([[{])\s+([\]}])$/, "$1$2");
}

// Lines for a shell.

// pathOf returns the path and query of a request target without the host that the client named:
// /v1/pets for http://pets.test/v1/pets. What it returns always begins with a slash. Any client can
// send a target such as a:@evil.test/steal, which behind the origin of this page would turn that
// origin into a user name, and the line would send the key to evil.test.
function pathOf(url) {
  return url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?]*/i, "").replace(/^(?!\/)/, "/");
}

// replayOf returns what sends a request to this service again.
function replayOf({ method, url, headers, body = "", status, fault }, key = state.key) {
  const path = pathOf(url).replace(/[^!-~]|#/gu, encodeURIComponent);
  const hasKey = isKeyed(path, headers, status, fault);
  const kept = Object.entries(headers).filter(
    ([name]) => !ownHeaders.test(name) && !(hasKey && name === "Authorization"),
  );
  if (hasKey) {
    kept.unshift(["Authorization", `Bearer ${key}`]);
  }
  return { method, path, headers: kept, body: method === "HEAD" ? "" : body };
}

// sendable returns what sends a request again from this browser, or null if a browser would refuse
// or change it: some methods, headers and paths, a header beyond ASCII, a body of GET. Without
// cookies, browsers use other connections than those that the page reads with.
function sendable(request) {
  const { method, path, headers, body } = replayOf(request);
  const url = location.origin + path;
  const given = headers.filter(([name]) => !browserHeaders.test(name));
  const init = { method, headers: given, cache: "no-store", credentials: "omit" };
  if (body) {
    init.body = new TextEncoder().encode(body); // a text would be given a type
  }
  try {
    const sent = new Request(url, init);
    const isKept = ([name, value]) => sent.headers.get(name) === value && !/[^ -~]/.test(value);
    return sent.method === method && sent.url === url && given.every(isKept) ? sent : null;
  } catch {
    return null;
  }
}

// curl returns the line that sends a request to this service again, with the key or a text for it.
function curl(request, key = state.key) {
  const { method, path, headers, body } = replayOf(request, key);
  const line = ["curl -i"];
  if (method === "HEAD") {
    line.push("-I");
  } else if (method !== (body ? "POST" : "GET")) {
    line.push("-X", quote(method));
  }
  if (/[[\]{}]/.test(path)) {
    line.push("-g"); // or curl takes them for a range or a set
  }
  if (/\/(\.|%2e){1,2}(\/|$)/i.test(path.split("?")[0])) {
    line.push("--path-as-is");
  }
  for (const [name, value] of headers) {
    line.push("-H", quote(value ? `${name}: ${value}` : `${name};`)); // curl drops "name:"
  }
  if (body && request.headers["Content-Type"] === undefined) {
    line.push("-H", quote("Content-Type:")); // or curl sends one
  }
  if (body) {
    line.push("--data-raw", quote(body));
  }
  line.push(quote(location.origin + path));
  return line.join(" ");
}

// Headers that curl and browsers send themselves, or that mean nothing to the service, and those
// that only browsers send.
const ownHeaders =
  /^(Accept.*|Cache-Control|Connection|Content-Length|Expect|Host|Pragma|Priority|Referer|Sec-.*|Transfer-Encoding|User-Agent)$/;
const browserHeaders = /^(Cookie|Dnt|Origin)$/;

// isKeyed reports whether a request had the key. Elsewhere than under /v1, nothing has checked what
// the header says, and a 401 that no fault has caused means that it was wrong.
function isKeyed(path, headers, status, fault) {
  const isAccepted = status !== 401 || fault !== undefined;
  const hasKey = /^Bearer +<API_KEY>$/i.test(headers.Authorization);
  return hasKey && isAccepted && /^\/v1(\/|\?|$)/.test(path);
}

// quote quotes a text for sh, dash, bash, zsh and fish. Each quote and each backslash is outside of
// the quotes, behind a backslash: fish takes \' within quotes for a quote.
function quote(text) {
  return `'${text.replace(/['\\]/g, (char) => `'\\${char}'`)}'`;
}

// What a terminal acts on or does not show, and a byte that was not UTF-8. A newline does no harm.
const unsafe = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\uFFFD]/gu;

// reveal shows unsafe characters as their numbers.
function reveal(text) {
  return text.replace(unsafe, (char) => `⟨U+${char.codePointAt(0).toString(16).padStart(4, "0")}⟩`);
}

async function copy(request, place) {
  const line = curl(request);
  try {
    await navigator.clipboard.writeText(line);
    tell("Copied.");
  } catch {
    place.textContent = line;
    place.hidden = false;
    tell("The browser does not let this page copy. The line is shown for you to copy.");
  }
}

// Views. Each shows a part of the state, and changes only what is different now, so that nothing
// moves or is read aloud without a reason.

function make(tag, properties, ...content) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...content);
  return element;
}

function set(element, property, value) {
  if (element[property] !== value) {
    element[property] = value;
  }
}

function drawFrame() {
  const { key, keyError, since, trouble } = state;
  const hadFocus = page.keyForm.contains(document.activeElement);
  const isReady = Boolean(key && (since || trouble || !hadFocus)); // a typed key may be wrong
  page.keyForm.hidden = isReady;
  page.desk.hidden = !isReady;
  page.reset.hidden = !isReady;
  set(page.keyError, "textContent", keyError);
  set(page.keyField, "ariaInvalid", String(keyError !== ""));
  if (hadFocus && isReady) {
    page.sign.focus();
  }
}

function drawSign() {
  const { key, since, trouble, fault } = state;
  const isSet = fault.applied !== undefined && !trouble;
  let look = "unknown";
  let headline = ["Petstore has not answered yet"];
  let effect = "This page is waiting for its first answer.";
  if (!key) {
    headline = ["A key is needed"];
  } else if (trouble) {
    headline = ["Petstore does not answer"];
    effect = `${trouble} This page goes on asking.`;
  } else if (isSet) {
    look = isActive(fault) || fault.held > 0 ? "active" : "calm";
    headline = headlineOf(fault); // the same when it is used up, so that nothing moves
    effect = nextEffectOf(fault);
  } else if (since) {
    look = "calm";
    headline = ["No fault"];
    effect = "Requests are answered as usual.";
  }
  set(page.sign, "className", `line ${look}`);
  const wanted = make("h2", { id: "headline" }, ...headline);
  if (!wanted.isEqualNode(page.headline)) {
    page.headline.replaceChildren(...wanted.childNodes);
  }
  set(page.effect, "textContent", effect);
  if (!isSet && document.activeElement === page.end) {
    page.sign.focus(); // as what is hidden loses the focus
  }
  page.end.hidden = !isSet;
  page.counts.hidden = !isSet;
  if (isSet) {
    drawCounts(fault);
  }
  const title = page.headline.textContent;
  set(document, "title", look === "calm" ? "Petstore" : `${title} – Petstore`);
  set(page.icon, "href", icons[look]);
  set(page.mark, "src", icons[look]);
}

// headlineOf returns a fault in short, as parts of the headline. A list shows which codes are done,
// and which is next. Of a long one, it is the part around the next one.
function headlineOf(fault) {
  const { code, times, applied } = fault;
  const on = fault.operation ? ` on ${fault.operation}` : "";
  if (!isList(fault)) {
    const often = times === 1 ? " once" : times ? `, ${number(times)} times` : " every time";
    return [`${code ? titleOf(code) : slowness(fault)}${often}${on}`];
  }
  const codes = code.split(",").map((one, i) => {
    const tag = i < applied ? "s" : i === applied ? "strong" : "span";
    return make(tag, {}, titleOf(one));
  });
  const begin = Math.max(0, Math.min(applied - maxCodes / 2, codes.length - maxCodes));
  const shown = codes.slice(begin, begin + maxCodes);
  const more = codes.length - begin - shown.length;
  return [
    begin > 0 ? `${begin} done, ` : "",
    ...shown.flatMap((part, i) => (i > 0 ? [", ", part] : [part])),
    more > 0 ? ` and ${number(more)} more` : "",
    on,
  ];
}

function drawCounts(fault) {
  const { skip = 0, times = Infinity, matched, applied, held } = fault;
  const left = times - applied;
  let hit = `of ${number(matched)} ${nounOf(fault, matched)} hit`;
  if (left === 0) {
    hit = `${nounOf(fault, applied)} hit`;
  } else if (matched === 0) {
    hit = `No ${nounOf(fault, 1)} hit yet`;
  }
  const more = [
    held > 0 && `${number(held)} held now`,
    matched < skip && `${number(skip - matched)} more let through`,
    left > 0 && left < Infinity && `${number(left)} to come`,
  ];
  set(page.applied, "textContent", matched > 0 ? number(applied) : "");
  set(page.tally, "textContent", `${hit}\n${more.filter(Boolean).join(", ")}`);
  set(page.end, "textContent", left > 0 || held > 0 ? "End the fault" : "Dismiss");
}

// icons are the mark of the page, in the color of each look of the sign.
const colors = getComputedStyle(document.documentElement);
const icons = { calm: icon("--calm"), active: icon("--alarm"), unknown: icon("--unknown") };

function icon(name) {
  const svg = [
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="white">',
    `<rect width="32" height="32" rx="8" fill="${colors.getPropertyValue(name)}"/>`,
    '<ellipse cx="16" cy="21" rx="6.5" ry="5.5"/>',
    '<circle cx="7.5" cy="14.5" r="2.8"/><circle cx="24.5" cy="14.5" r="2.8"/>',
    '<circle cx="12.7" cy="9" r="3"/><circle cx="19.3" cy="9" r="3"/>',
    "</svg>",
  ];
  return `data:image/svg+xml,${encodeURIComponent(svg.join(""))}`;
}

const presetButtons = faults.map((preset) => {
  const properties = { type: "button", onclick: () => setPreset(preset) };
  const button = make("button", properties, make("b", {}, preset.title), preset.hint);
  (skipping.includes(preset) ? page.skipping : page.performing).append(button);
  return button;
});

function drawFaults() {
  const { fault, trouble } = state;
  const isKnown = isActive(fault) && !trouble && !fault["answer-delay"];
  for (const [i, button] of presetButtons.entries()) {
    const isCurrent = isKnown && faults[i].code === fault.code && faults[i].delay === fault.delay;
    set(button, "ariaCurrent", String(isCurrent));
  }
}

// drawRefusal shows at the field why the service refuses it.
function drawRefusal() {
  const refused = fieldNamedIn(state.refusal);
  for (const field of page.another.querySelectorAll("input")) {
    set(field, "ariaInvalid", String(field === refused));
    field.removeAttribute("aria-describedby");
  }
  set(page.fieldError, "textContent", state.refusal);
  refused?.setAttribute("aria-describedby", "fieldError");
  refused?.focus();
  page.fieldError.scrollIntoView({ block: "nearest" });
}

// The rows of the list, by request.
const rows = new WeakMap();

function rowOf(request) {
  if (!rows.has(request)) {
    rows.set(request, newRow(request));
  }
  return rows.get(request);
}

function newRow(request) {
  const { id, time, method, outcome, client, took = "", injected, isNew, isWaiting } = request;
  const row = make(
    "div",
    { role: "option", className: "row", ariaSelected: "false" },
    make("span", { className: "time" }, clock.format(new Date(time))),
    cut("method", method),
    make("span", { className: `status ${toneOf(request)}` }, outcome),
    whatOf(request),
    cut("client", client),
    make("span", { className: "took" }, took),
  );
  row.classList.toggle("fault", Boolean(injected));
  row.classList.toggle("arrived", Boolean(isNew));
  if (isWaiting) {
    row.ariaDisabled = "true"; // there is nothing to show in the pane yet
  } else {
    row.id = `request-${id}`;
  }
  return row;
}

// cut returns an element whose text may be cut. Its title is longer.
function cut(className, text = "", tag = "span", length = 200) {
  return make(tag, { className, title: clip(text, 1000) }, clip(text, length));
}

// toneOf returns the class for the color of an outcome.
function toneOf({ hasFailed, fault, isWaiting }) {
  if (isWaiting) {
    return "quiet";
  }
  return hasFailed ? (fault ? "bad" : "refused") : "good";
}

// whatOf shows what was requested and what was special about it. The message of a simulated error
// says no more than the tag.
function whatOf({ url, injected, again, ignored, error, effect, body, reason }) {
  const parts = [
    ["tag injected", injected],
    ["tag again", again && `again, +${again}`],
    ["tag ignored", ignored && `ignored: ${ignored}`],
    ["excerpt", reason ?? (error && !effect ? error : body)],
  ];
  const known = parts.filter(([, text]) => text);
  const code = cut("", url, "code");
  return make("span", { className: "what" }, code, ...known.map((part) => cut(...part)));
}

function drawList() {
  const { visible, requests, waiting, total, selected, since, trouble } = state;
  const waitingRows = waiting.map(newWaiting).filter(isVisible).map(newRow);
  const wanted = [...visible.map(rowOf), ...waitingRows];
  const isWanted = new Set(wanted);
  for (const row of [...page.list.children]) {
    if (!isWanted.has(row)) {
      row.remove();
    }
  }
  let next = page.list.firstElementChild;
  for (const row of wanted) {
    if (row === next) {
      next = next.nextElementSibling;
    } else {
      page.list.insertBefore(row, next);
    }
  }
  const isEmpty = wanted.length === 0;
  const hasNone = requests.length === 0 && waiting.length === 0;
  if (isEmpty && document.activeElement === page.list) {
    (selected ? page.pane : page.filter).focus(); // as what is hidden loses the focus
  }
  page.list.hidden = isEmpty;
  page.columns.hidden = isEmpty;
  page.none.hidden = !isEmpty || hasNone;
  if (!isEmpty && page.first.contains(document.activeElement)) {
    page.list.focus(); // as what is hidden loses the focus
  }
  page.first.hidden = !hasNone || !since || trouble !== "";
  const isFiltered = visible.length < requests.length;
  const count = `${number(visible.length)} of ${number(requests.length)}`;
  set(page.known, "textContent", isFiltered ? count : since && lastOf(requests.length, total));
  follow();
}

// lastOf says how many are known of all.
function lastOf(known, total) {
  return known < total ? `the last ${number(known)} of ${number(total)}` : number(known);
}

// Where the list was after the last scrolling.
let lastTop = 0;

// follow scrolls to the end of the list, unless the reader has scrolled up or selected a request.
function follow() {
  if (state.isFollowing) {
    page.list.scrollTop = page.list.scrollHeight;
    lastTop = page.list.scrollTop;
  }
}

function isEndInSight() {
  const { scrollTop, clientHeight, scrollHeight } = page.list;
  return scrollTop + clientHeight > scrollHeight - 8;
}

function drawSelection() {
  const { visible, requests, selected } = state;
  const row = visible.includes(selected) ? rowOf(selected) : null;
  for (const other of page.list.children) {
    set(other, "ariaSelected", String(other === row));
  }
  page.list.setAttribute("aria-activedescendant", row?.id ?? "");
  gone.hidden = requests.includes(selected);
}

// The last id while the end of the list was in sight.
let seenID = 0;

function drawNews() {
  const { visible, requests, isFollowing } = state;
  if (isFollowing || isEndInSight()) {
    seenID = requests.at(-1)?.id ?? 0;
  }
  const count = visible.filter(({ id }) => id > seenID).length;
  page.news.hidden = count === 0;
  set(page.news, "textContent", `${number(count)} new ↓`);
}

function drawPane() {
  const { selected } = state;
  page.pane.hidden = selected === null;
  page.pane.replaceChildren(...(selected ? detailsOf(selected) : []));
  page.pane.scrollTop = 0;
}

const gone = make("p", { className: "gone" }, "This request is no longer in the list.");

// detailsOf returns what the pane shows of a request.
function detailsOf(request) {
  const { id, time, method, url, headers, body, seconds, error, ignored, again } = request;
  const closing = { type: "button", className: "close", ariaLabel: "Close", onclick: closePane };
  const isUnread = body === "" && (headers["Content-Length"] > 0 || headers["Transfer-Encoding"]);
  return [
    make(
      "div",
      { className: "head line" },
      make("h2", { id: "paneTitle" }, request.operation || "Request"),
      make("span", { className: `status ${toneOf(request)}` }, request.outcome),
      make("button", closing, "×"),
    ),
    make("pre", {}, `${method} ${reveal(url)}`),
    facts([
      ["Fault", request.injected],
      ["Effect", request.effect],
      ["Error", request.effect ? "" : error],
      ["Ignored", ignored],
      ["Again", again && `${again} after an equal request`],
      ["Client", request.client || "not named"],
      ["Arrived", `${clock.format(new Date(time))}; recorded as request ${number(id)}`],
      ["Took", `${duration(seconds)} until the answer was ready`],
    ]),
    ...repeaterOf(request, isUnread),
    make("h3", {}, "Answer", make("span", { className: "quiet" }, ...noteOf(request))),
    textOf(answerOf(request), "No body"),
    facts(Object.entries(request.answerHeaders)),
    make("h3", {}, "Sent"),
    textOf(indentSent(body), isUnread ? "The body was not kept" : "No body"),
    facts(Object.entries(headers)),
    gone,
  ];
}

// facts returns a list of names and values, without those that have no value.
function facts(entries) {
  const known = entries.filter(([, value]) => value);
  const terms = known.flatMap(([name, value]) => [
    make("dt", {}, name),
    make("dd", {}, reveal(value)),
  ]);
  return make("dl", {}, ...terms);
}

function textOf(text, none) {
  return text ? make("pre", {}, reveal(text)) : make("p", { className: "quiet" }, none);
}

// noteOf says how much of an answer the client got, and how much of it the journal has.
function noteOf({ method, status, isHalf, answer, answerHeaders }) {
  const length = Number(answerHeaders["Content-Length"]);
  const notes = [
    status === 0 && answer && "which the client did not get",
    isHalf && "of which the client got half",
    method === "HEAD" && status !== 0 && answer && "which HEAD leaves out",
    length > maxAnswer && `the first ${number(maxAnswer)} of ${number(length)} bytes`,
  ];
  return notes.filter(Boolean).map((note) => `, ${note}`);
}

// indentSent formats what was sent if it is JSON.
function indentSent(body) {
  try {
    JSON.parse(body);
    return indent(body);
  } catch {
    return body;
  }
}

function answerOf({ answer, answerHeaders }) {
  const isCut = Number(answerHeaders["Content-Length"]) > maxAnswer;
  const text = isCut ? `${answer.replace(/\uFFFD+$/, "")}…` : answer; // cut within a character
  return answerHeaders["Content-Type"] === "application/json" ? indent(text) : text;
}

// repeaterOf returns the buttons that send a request again and that copy the line for a shell, as
// far as they would send the same.
function repeaterOf(request, isUnread) {
  const { method, url, headers, body = "" } = request;
  const sent = [method, url, body, ...linesOf(headers)].join("\n");
  const isExact = !sent.includes("\uFFFD"); // which may stand for any byte
  const line = make("pre", { hidden: true }, reveal(curl(request, "<API_KEY>")));
  const buttons = make("p", { className: "line" });
  const notes = [];
  if (isUnread) {
    notes.push("Without the body, which was not kept.");
  } else if (isExact && sendable(request)) {
    notes.push(page.sendNote.textContent);
    buttons.append(make("button", { type: "button", onclick: () => send(request) }, "Send"));
  } else if (isExact) {
    notes.push("A browser cannot send this request.");
  }
  if (sent.search(unsafe) < 0) {
    const properties = { type: "button", onclick: () => copy(request, line) };
    buttons.append(make("button", properties, "Copy as curl"));
  } else {
    const why = isExact ? "a terminal acts on control characters" : "it cannot have each byte";
    notes.push(`The line for curl is not to be copied: ${why}.`);
    line.hidden = false;
  }
  return [buttons, make("p", { className: "quiet" }, notes.join(" ")), line];
}

function drawPets() {
  const { since, pets, petCount, hasMorePets } = state;
  const count = hasMorePets ? `${number(petCount)} so far` : lastOf(pets.length, petCount);
  set(page.petCount, "textContent", since && count);
  page.petTable.hidden = pets.length === 0;
  const newestFirst = pets
    .toReversed()
    .map(({ id, name, categoryId, status = "–" }) =>
      make("tr", {}, ...[id, name, categoryId, status].map((text) => cut("", text, "td", 60))),
    );
  page.petRows.replaceChildren(...newestFirst);
}

let fading;

function drawNotice() {
  const { notice, isError } = state;
  clearTimeout(fading);
  set(page.noticeText, "textContent", notice);
  set(page.notice, "className", isError ? "error" : "");
  page.closeNotice.hidden = !isError;
  if (notice && !isError) {
    fading = setTimeout(tell, noticeTime, "");
  }
}

// Events.

// The request that was selected last, where the arrow keys begin.
let lastSelected = null;

// select shows a request in the pane. Its row stays in sight: the list stops following its end.
function select(request) {
  if (request) {
    lastSelected = request;
    update({ selected: request, isFollowing: false });
    showSelected();
  }
}

// showSelected scrolls the list, and nothing else, until the selected request is in sight.
function showSelected() {
  const { visible, selected, isFollowing } = state;
  if (visible.includes(selected) && !isFollowing) {
    const { offsetTop, offsetHeight } = rowOf(selected);
    const lowest = offsetTop + offsetHeight - page.list.clientHeight;
    page.list.scrollTop = Math.min(offsetTop, Math.max(lowest, page.list.scrollTop));
    lastTop = page.list.scrollTop;
  }
}

function closePane() {
  update({ selected: null });
  update({ isFollowing: isEndInSight() });
  (page.list.hidden ? page.filter : page.list).focus();
}

page.list.addEventListener("click", ({ target }) => {
  const row = target.closest(".row");
  select(state.visible.find((request) => rowOf(request) === row));
  page.pane.scrollIntoView({ block: "nearest" });
});

// A row that has flashed does not do so again when a filter has hidden it.
page.list.addEventListener("animationend", ({ target }) => target.classList.remove("arrived"));

page.list.addEventListener("keydown", (event) => {
  const { visible, requests, selected } = state;
  const from = requests.includes(lastSelected) ? lastSelected.id : Infinity;
  const keys = {
    ArrowDown: () => visible.find(({ id }) => id > from) ?? visible.at(-1),
    ArrowUp: () => visible.findLast(({ id }) => id < from),
    Home: () => visible[0],
    End: () => visible.at(-1),
  };
  if (event.key in keys) {
    event.preventDefault();
    select(keys[event.key]());
    page.list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  } else if (event.key === "Enter" && selected) {
    page.pane.focus();
  }
});

for (const part of [page.list, page.pane]) {
  part.addEventListener("keydown", ({ key }) => key === "Escape" && closePane());
}

// A reader who scrolls down to the end wants to follow it, and one who scrolls up does not. A list
// that changes its height says nothing.
page.list.addEventListener("scroll", () => {
  const { scrollTop } = page.list;
  if (scrollTop > lastTop && isEndInSight()) {
    update({ isFollowing: true });
  } else if (scrollTop < lastTop && !isEndInSight()) {
    update({ isFollowing: false });
  }
  lastTop = scrollTop;
  drawNews();
});

new ResizeObserver(() => {
  follow();
  showSelected();
  drawNews();
}).observe(page.list);

page.news.addEventListener("click", () => {
  page.list.focus();
  update({ isFollowing: true });
  follow();
});

page.filter.addEventListener("input", () => {
  update({ filter: page.filter.value.trim() });
  showSelected();
});

page.another.addEventListener("toggle", () => page.another.scrollIntoView({ block: "nearest" }));
page.faultForm.addEventListener("input", () => update({ refusal: "" }));
page.faultForm.addEventListener("submit", (event) => {
  event.preventDefault();
  if (page.another.open) {
    setTyped();
  }
});
page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  const key = page.keyField.value.trim();
  page.keyForm.reset();
  useKey(key);
});

page.end.addEventListener("click", () => act(() => call("DELETE", "/__admin/fault")));
page.add.addEventListener("click", addPet);
page.clear.addEventListener("click", () => {
  const clear = () => act(() => call("DELETE", "/__admin/requests"), "The requests are removed.");
  ask("Clear the requests?", "They are removed for all who read them.", "Clear", clear);
});
page.reset.addEventListener("click", () => {
  const consequence =
    "The fault ends. Requests and pets are removed. The pets of -seed come back, if there are any.";
  ask("Reset all?", consequence, "Reset all", resetAll);
});
page.closeNotice.addEventListener("click", () => tell(""));
page.sendExample.addEventListener("click", () => send(example));
page.copyExample.addEventListener("click", () => copy(example, page.example));

window.addEventListener("hashchange", enter);
document.addEventListener("visibilitychange", poll);

page.base.textContent = `${location.origin}/v1`;
page.example.textContent = curl(example, "<API_KEY>");
for (const { code } of faults.filter(({ code }) => code)) {
  page.codes.append(make("option", { value: code }));
}
for (const { draw } of views) {
  draw();
}
enter();
