// This script reads from the service what clients have sent, shows it, and sets faults.
//
// All that the page knows is in state. The function update changes it, and draws the parts of the
// page that show what has changed. Clients can send any text, so text is never set as HTML.

// Times, in milliseconds: between two readings, also while the tab is hidden, for which one request
// of the page may take, and for which a notice stays.
const interval = 500;
const hiddenInterval = 10_000;
const timeLimit = 5000;
const noticeTime = 6000;

// The page keeps as many requests as the service does, and the last pets. Of an answer, the service
// keeps the first bytes.
const maxRequests = 1000;
const maxPets = 1000;
const maxAnswer = 1000;

// A page of pets, and the most pages that one reading asks for. The next reading goes on.
const pageSize = 100;
const maxPages = 10;

// The presets, which are also the codes with a name. A query is that of PUT /__admin/fault; the
// result says what a code does. A code that is not here is shown by its name.
const skipping = [
  { query: "code=503&times=1", title: "503 once", hint: "the next one fails" },
  { query: "code=503", title: "503 every time", hint: "until you end it" },
  { code: "hangup", title: "Hang up", hint: "connection closed", result: "the connection closes" },
  { code: "rst", title: "TCP reset", hint: "connection reset", result: "the connection is reset" },
];
const performing = [
  { query: "delay=3", title: "Slow by 3 s", hint: "then the answer" },
  { code: "drip", title: "Slow body", hint: "ten pieces in 9 s", result: "its answer takes 9 s" },
  { code: "lost", title: "Answer lost", hint: "connection closed", result: "its answer is lost" },
  { code: "truncate", title: "Answer cut", hint: "half of the body", result: "its answer is cut" },
  { code: "stall", title: "Answer stalls", hint: "half, then silence", result: "its answer stops" },
  { code: "html", title: "HTML page", hint: "with status 502", result: "its answer is HTML" },
];
const faults = [...skipping, ...performing].map((row) => ({ query: `code=${row.code}`, ...row }));

const samples = [
  { name: "Rex", categoryId: 1, status: "available" },
  { name: "Bella", categoryId: 2, status: "pending" },
  { name: "Zoë", categoryId: 3, status: "sold" },
  { name: "Bruno", categoryId: 4, status: "available" },
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
  isFailedOnly: false,
  // The request in the pane, or null.
  selected: null,
  // Whether the list follows its end.
  isFollowing: true,
  // The last pets, in ascending order of id, and the number of all.
  pets: [],
  petCount: 0,
  // The operation that the reader has chosen, or "" for all.
  operation: "",
  // Why the service refuses what was typed, and the last news for the reader.
  refusal: "",
  notice: "",
  isError: false,
};

// views are the functions that draw, each with the names of the state that it shows.
const views = [
  { draw: drawFrame, shows: ["key", "keyError", "since", "trouble"] },
  { draw: drawSign, shows: ["key", "trouble", "fault"] },
  { draw: drawFaults, shows: ["trouble", "fault", "operation"] },
  { draw: drawRefusal, shows: ["refusal"] },
  { draw: drawHeld, shows: ["fault", "trouble"] },
  { draw: drawList, shows: ["visible", "requests", "total", "trouble"] },
  { draw: drawSelection, shows: ["visible", "selected"] },
  { draw: drawPane, shows: ["selected"] },
  { draw: drawNews, shows: ["visible", "isFollowing"] },
  { draw: drawPets, shows: ["pets", "petCount"] },
  { draw: drawUsable, shows: ["trouble"] },
  { draw: drawNotice, shows: ["notice", "isError"] },
];

// update changes the state and draws what has changed. A view that throws does not keep the others
// from being drawn; the notice, which is drawn last, says so.
function update(changes) {
  const changed = new Set(Object.keys(changes).filter((name) => changes[name] !== state[name]));
  Object.assign(state, changes);
  if (["requests", "filter", "isFailedOnly"].some((name) => changed.has(name))) {
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

// tell shows a notice to the reader.
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
async function call(method, path, body) {
  const { key } = state;
  const headers = { Authorization: `Bearer ${key}`, "Petstore-Observer": "page" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
  }
  let response;
  let text;
  try {
    const signal = AbortSignal.timeout(timeLimit);
    response = await fetch(path, { method, headers, body, signal });
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

// parse parses the JSON of an answer.
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
      nextPoll = setTimeout(poll, document.hidden ? hiddenInterval : interval);
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
// knows nothing that still holds.
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
  fault = parse(fault);

  const changes = { trouble: "", since: journal.meta.since, total: journal.meta.total };
  if (JSON.stringify(fault) !== JSON.stringify(state.fault)) {
    changes.fault = fault;
  }
  if (isAnew || journal.requests.length > 0) {
    changes.requests = append(requests, journal.requests);
  }
  if (isAnew || newPets.length > 0) {
    changes.pets = [...pets, ...newPets].slice(-maxPets);
    changes.petCount = petCount + newPets.length;
  }
  if (isAnew) {
    Object.assign(changes, { selected: null, isFollowing: true });
  }
  if (isAnew && state.since) {
    const notice = "The requests were cleared, or petstore was restarted.";
    Object.assign(changes, { notice, isError: false });
  } else if (state.trouble) {
    Object.assign(changes, { notice: "Petstore answers again.", isError: false });
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

// act runs an action, after those before it, and shows the result. The action may return a notice.
function act(action) {
  acting = acting.then(async () => {
    try {
      const notice = await action();
      await poll();
      update({ notice: notice ?? "", isError: false, refusal: "" });
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

// fieldNamedIn returns the field of another fault that a message of the service begins with, or null.
function fieldNamedIn(message) {
  const [name] = /^[a-z-]*/.exec(message);
  return page.another.querySelector(`[name="${name}"]`);
}

function setFault(parameters, operation = aimOf(state)) {
  const query = new URLSearchParams(parameters);
  if (operation) {
    query.set("operation", operation);
  }
  update({ operation });
  act(async () => {
    await call("PUT", `/__admin/fault?${query}`);
  });
}

// setTyped sets the fault of the fields.
function setTyped() {
  const parameters = {};
  for (const { name, value } of page.another.querySelectorAll("input")) {
    if (value.trim()) {
      parameters[name] = value.trim().replace(/[\s,]+/g, ","); // "503 lost" is a list, too
    }
  }
  setFault(parameters);
}

// aim chooses the operation of the next fault, and aims the fault that stands anew.
function aim(operation) {
  if (state.trouble) {
    drawFaults(); // checks the one that was checked before
  } else if (isActive(state.fault)) {
    setFault(parametersOf(state.fault), operation);
  } else {
    update({ operation });
  }
}

function endFault() {
  act(async () => {
    await call("DELETE", "/__admin/fault");
  });
}

function clearRequests() {
  act(async () => {
    await call("DELETE", "/__admin/requests");
    return "The requests are removed.";
  });
}

function resetAll() {
  act(async () => {
    await call("POST", "/__admin/reset");
    update({ operation: "" });
    return "All is reset.";
  });
}

function addSamples() {
  act(async () => {
    for (const pet of samples) {
      await call("POST", "/v1/pets", JSON.stringify(pet));
    }
    return `${samples.length} pets are added.`;
  });
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

// remaining returns how many requests a fault is still to be applied to.
function remaining({ times = Infinity, applied }) {
  return times - applied;
}

// isActive reports whether a fault stands that is not used up.
function isActive(fault) {
  return fault.applied !== undefined && remaining(fault) > 0;
}

// aimOf returns the operation of the fault that stands or else of the next one.
function aimOf({ fault, operation }) {
  return isActive(fault) ? (fault.operation ?? "") : operation;
}

// isList reports whether a fault has a list of codes. Its times are the length of the list.
function isList({ code }) {
  return code?.includes(",") === true;
}

// codesOf returns the codes of a fault: of a list that is not used up, those to come.
function codesOf(fault) {
  const codes = fault.code?.split(",") ?? [];
  return isList(fault) && isActive(fault) ? codes.slice(fault.applied) : codes;
}

// parametersOf returns the parameters that would set a fault, or what is to come of a list, without
// the operation.
function parametersOf(fault) {
  const { operation, matched, applied, held, ...parameters } = fault;
  if (applied > 0) {
    delete parameters.skip; // they have been let through
  }
  if (isList(fault)) {
    const codes = codesOf(fault);
    parameters.code = codes.join(",");
    if (codes.length > 1) {
      delete parameters.times;
    } else {
      parameters.times = 1; // or the last code would be applied every time
    }
  }
  return parameters;
}

// presetOf returns the preset that would set a fault, wherever it is aimed, or undefined.
function presetOf(fault) {
  const query = String(new URLSearchParams(parametersOf(fault)));
  return faults.find((preset) => preset.query === query);
}

// kindOf returns the preset that has the words for a code, or undefined.
function kindOf(code) {
  return code && faults.find((preset) => preset.code === code);
}

// isSkipped reports whether a preset keeps the operation from being performed.
function isSkipped(preset) {
  return faults.indexOf(preset) < skipping.length;
}

function isStatus(code) {
  return /^\d+$/.test(code);
}

// titleOf returns a fault in short, such as "503 once" or "503 ×2, Answer lost".
function titleOf(fault) {
  const preset = presetOf(fault);
  if (preset) {
    return preset.title;
  }
  const { code, times } = fault;
  const parts = [
    code ? shorten(codesOf(fault)) : slowness(fault),
    !isList(fault) && times && (times === 1 ? "once" : `${times} times`),
  ];
  return parts.filter(Boolean).join(", ");
}

// slowness returns the delays of a fault.
function slowness({ delay, "answer-delay": answerDelay }) {
  const parts = [delay && `Slow by ${delay} s`, answerDelay && `Answer slow by ${answerDelay} s`];
  return parts.filter(Boolean).join(", ");
}

// shorten returns the names of at most four codes, with repeated codes as one, and how many follow.
function shorten(codes) {
  const runs = [];
  for (const code of codes) {
    if (runs.at(-1)?.code === code) {
      runs.at(-1).count++;
    } else {
      runs.push({ code, count: 1 });
    }
  }
  const names = runs.map(({ code, count }) => {
    const name = kindOf(code)?.title ?? code;
    return count > 1 ? `${name} ×${count}` : name;
  });
  return names.length > 4
    ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more`
    : names.join(", ");
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
    effect = `is ${isSkipped(kind) ? "not performed:" : "performed, but"} ${kind.result}`;
  }
  const sentences = [
    `${operation} ${delay ? `waits ${delay} s, then ` : ""}${effect}.`,
    answerDelay && `The answer waits ${answerDelay} s.`,
    isStatus(code) && retryAfter && `Retry-After is ${retryAfter} s.`,
  ];
  return sentences.filter(Boolean).join(" ");
}

// nextEffectOf says what the standing fault does to the next request that it is applied to.
function nextEffectOf(fault) {
  const [code] = codesOf(fault);
  return `${isList(fault) ? "Next: " : ""}${effectOf({ ...fault, code }, fault.operation)}`;
}

// Requests in words.

// append adds entries of the journal to the requests that the page keeps.
function append(requests, entries) {
  const all = [...requests];
  for (const entry of entries) {
    all.push(newRequest(entry, all));
  }
  return all.slice(-maxRequests);
}

// newRequest adds to an entry of the journal what the page says about it, and the text to search.
function newRequest(entry, earlier) {
  const { method, url, headers, status, seconds, answerHeaders = {}, fault, ignored = [] } = entry;
  const isHalf = status !== 0 && ["truncate", "stall"].includes(fault?.code);
  const isGradual = ["drip", "stall"].includes(fault?.code); // the answer goes on after the seconds
  const request = {
    ...entry,
    answerHeaders,
    ignored: ignored.join(", "),
    operation: operationOf(entry),
    client: clientOf(headers["User-Agent"]),
    isHalf,
    outcome: status === 0 ? "no answer" : `${status}${isHalf ? ", half" : ""}`,
    hasFailed: status === 0 || status >= 400 || isHalf,
    mayPass: [0, 408, 429].includes(status) || status >= 500 || isHalf,
    injected: fault ? injectedBy(fault, answerHeaders) : "",
    effect: fault ? effectOn(entry) : "",
    again: sinceFailure(entry, earlier),
    took: isGradual ? "–" : duration(seconds),
  };
  const { operation, outcome, injected, effect, error, body, answer } = request;
  const texts = [method, url, operation, outcome, injected, effect, error, request.ignored];
  texts.push(body, answer, ...linesOf(headers), ...linesOf(answerHeaders));
  request.text = texts.join("\n").toLowerCase();
  return request;
}

// injectedBy returns the fault of a request in short, such as "Simulated, Slow by 1 s". With a header,
// the service confirms a fault that the request itself has asked for.
function injectedBy(fault, answerHeaders) {
  const { code } = fault;
  const name = code && (isStatus(code) ? "Simulated" : (kindOf(code)?.title ?? code));
  const text = [name, slowness(fault)].filter(Boolean).join(", ");
  return answerHeaders["Preference-Applied"] ? `Prefer: ${text}` : text;
}

// effectOn says what a fault did to a request. It returns "" if the request has failed for another
// reason: then its error says what became of it.
function effectOn(entry) {
  const { fault, error, status, seconds } = entry;
  if (error && (!isStatus(fault.code) || status === 0)) {
    return "";
  }
  const effect = effectOf(fault, operationOf(entry) || undefined);
  const wait = Number(fault.delay ?? 0) + Number(fault["answer-delay"] ?? 0);
  return seconds < wait ? `${effect} It was let go earlier.` : effect;
}

// sinceFailure returns the seconds between a request and the last equal one of the same client, if
// that one has met a failure that may pass, and had ended before. Otherwise it returns undefined.
function sinceFailure(entry, earlier) {
  const last = earlier.findLast(
    ({ method, url, headers, body }) =>
      method === entry.method &&
      url === entry.url &&
      body === entry.body &&
      headers["User-Agent"] === entry.headers["User-Agent"],
  );
  const pause = last && (new Date(entry.time) - new Date(last.time)) / 1000;
  return last?.mayPass && pause > last.seconds ? pause : undefined;
}

// operationOf returns the name of the operation that a request is for, or "".
function operationOf({ method, url }) {
  const [path] = pathOf(url).split("?");
  const isRead = method === "GET" || method === "HEAD";
  if (path === "/v1/pets") {
    return isRead ? "listPets" : method === "POST" ? "createPet" : "";
  }
  return isRead && /^\/v1\/pets\/[^/]+$/.test(path) ? "getPet" : "";
}

// clientOf returns a User-Agent in short: the browser, or the first word.
function clientOf(agent = "") {
  if (!agent.startsWith("Mozilla/")) {
    return agent.split(" ")[0];
  }
  const names = ["Edg", "OPR", "Firefox", "Chrome", "Safari"]; // Edge claims to be Chrome, too
  const versions = names.map((name) => new RegExp(`\\b${name}/\\d+`).exec(agent)?.[0]);
  return versions.find(Boolean) ?? agent;
}

// isVisible reports whether a request passes the filter. A method and a status are compared as a
// whole: "503" is not to find what was sent at 10:15:03.
function isVisible(request) {
  const { method, status, text, hasFailed } = request;
  const words = state.filter.toLowerCase().split(/\s+/);
  return (
    (hasFailed || !state.isFailedOnly) &&
    words.every((word) => {
      if (/^(get|head|post|put|patch|delete)$/.test(word)) {
        return method.toLowerCase() === word;
      }
      return /^[1-5]\d\d$/.test(word) ? String(status) === word : text.includes(word);
    })
  );
}

function linesOf(headers) {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}

// Words.

function plural(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

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

// clip shortens a text to 200 characters, and never to half of a surrogate pair.
function clip(text) {
  const isLong = text.length > 200;
  return reveal(isLong ? `${text.slice(0, 200).replace(/[\uD800-\uDBFF]$/, "")}…` : text);
}

// indent formats JSON, or the beginning of it: a member or an element of the outermost value a line.
// It works on the text, so that numbers and repeated members stay as they are.
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

// curl returns the line that sends a request to this service again.
function curl({ method, url, headers, body, status, fault }) {
  const path = pathOf(url).replace(/[^!-~]|#/gu, encodeURIComponent);
  const sent = method === "HEAD" ? "" : body;
  const hasKey = isKeyed(path, headers, status, fault);
  const line = ["curl -i"];
  if (method === "HEAD") {
    line.push("-I");
  } else if (method !== (sent ? "POST" : "GET")) {
    line.push("-X", quote(method));
  }
  if (/[[\]{}]/.test(path)) {
    line.push("-g"); // or curl takes them for a range or a set
  }
  if (/\/(\.|%2e){1,2}(\/|$)/i.test(path.split("?")[0])) {
    line.push("--path-as-is");
  }
  if (hasKey) {
    line.push("-H", quote(`Authorization: Bearer ${state.key}`));
  }
  for (const [name, value] of Object.entries(headers)) {
    if (!ownHeaders.test(name) && !(hasKey && name === "Authorization")) {
      line.push("-H", quote(value ? `${name}: ${value}` : `${name};`)); // curl drops "name:"
    }
  }
  if (sent && headers["Content-Type"] === undefined) {
    line.push("-H", quote("Content-Type:")); // or curl sends one
  }
  if (sent) {
    line.push("--data-raw", quote(sent));
  }
  line.push(quote(location.origin + path));
  return line.join(" ");
}

// Headers that curl sends itself, or that mean nothing to the service.
const ownHeaders =
  /^(Accept.*|Connection|Content-Length|Expect|Host|Priority|Referer|Sec-.*|Transfer-Encoding|User-Agent)$/;

// isKeyed reports whether a request had the key. Elsewhere than under /v1, nothing has checked what
// the header says, and a 401 that no fault has caused means that it was wrong.
function isKeyed(path, headers, status, fault) {
  const isAccepted = status !== 401 || fault !== undefined;
  const hasKey = /^Bearer +<API_KEY>$/i.test(headers.Authorization);
  return hasKey && isAccepted && /^\/v1(\/|\?|$)/.test(path);
}

// quote quotes a text for sh, dash, bash and zsh.
function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// What a terminal acts on or does not show, and a byte that was not UTF-8. A newline does no harm.
const unsafe = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\uFFFD]/gu;

// reveal shows unsafe characters as their numbers.
function reveal(text) {
  return text.replace(unsafe, (char) => `⟨U+${char.codePointAt(0).toString(16).padStart(4, "0")}⟩`);
}

async function copy(line, place) {
  try {
    await navigator.clipboard.writeText(line);
    tell("Copied.");
  } catch {
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
  const isReady = state.key !== "" && (state.since !== "" || state.trouble !== "");
  const hadFocus = page.keyForm.contains(document.activeElement);
  page.keyForm.hidden = isReady || (state.key !== "" && !hadFocus);
  page.desk.hidden = !isReady;
  page.reset.hidden = !isReady;
  set(page.keyError, "textContent", state.keyError);
  set(page.keyField, "ariaInvalid", String(state.keyError !== ""));
  set(page.example, "textContent", state.key ? curl(exampleRequest) : "");
  if (hadFocus && isReady) {
    page.sign.focus();
  }
}

const exampleRequest = {
  method: "GET",
  url: "/v1/pets",
  headers: { Authorization: "Bearer <API_KEY>" },
};

function drawSign() {
  const { key, trouble, fault } = state;
  const aim = fault.operation ? ` on ${fault.operation}` : "";
  let look = "calm";
  let headline = "No fault";
  let effect = "Requests are answered as usual.";
  if (!key) {
    look = "unknown";
    headline = "A key is needed";
  } else if (trouble) {
    look = "unknown";
    headline = "Petstore does not answer";
    effect = `${trouble} This page goes on asking.`;
  } else if (isActive(fault)) {
    look = "active";
    headline = titleOf(fault) + aim;
    effect = nextEffectOf(fault);
  } else if (fault.applied !== undefined) {
    look = fault.held > 0 ? "active" : "calm";
    headline = `Used up: ${titleOf(fault)}${aim}`;
    effect = "New requests are answered as usual.";
  }
  set(page.sign, "className", `line ${look}`);
  set(page.headline, "textContent", headline);
  set(page.effect, "textContent", effect);
  if (look !== "active" && document.activeElement === page.end) {
    page.sign.focus(); // as a hidden button loses the focus
  }
  page.end.hidden = look !== "active";
  drawCounts();
  set(document, "title", look === "calm" ? "Petstore" : `${headline} – Petstore`);
  set(page.icon, "href", icons[look]);
  set(page.mark, "src", icons[look]);
}

function drawCounts() {
  const { operation, skip = 0, matched, applied, held } = state.fault;
  const isShown = matched !== undefined && !state.trouble;
  page.counts.hidden = !isShown;
  if (!isShown) {
    return;
  }
  const left = remaining(state.fault);
  const more = [
    held > 0 && `${number(held)} held now`,
    matched < skip && `${number(skip - matched)} more let through first`,
    left > 0 && left < Infinity && `${number(left)} to come`,
  ];
  const noun = operation ? `${operation} request` : "request";
  const hit = matched > 0 ? `of ${plural(matched, noun)} hit` : `No ${noun} yet`;
  set(page.applied, "textContent", matched > 0 ? number(applied) : "");
  set(page.tally, "textContent", `${hit}\n${more.filter(Boolean).join(", ")}`);
}

// icons are the mark of the page, in the color of each look of the sign.
const colors = getComputedStyle(document.documentElement);
const icons = { calm: icon("--calm"), active: icon("--alarm"), unknown: icon("--unknown") };

function icon(name) {
  const svg = [
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="white">',
    `<rect width="32" height="32" rx="8" fill="${colors.getPropertyValue(name)}"/>`,
    '<ellipse cx="16" cy="21" rx="6.5" ry="5.5"/>',
    '<circle cx="7.5" cy="14.5" r="2.8"/>',
    '<circle cx="12.7" cy="9" r="3"/>',
    '<circle cx="19.3" cy="9" r="3"/>',
    '<circle cx="24.5" cy="14.5" r="2.8"/>',
    "</svg>",
  ];
  return `data:image/svg+xml,${encodeURIComponent(svg.join(""))}`;
}

const presetButtons = faults.map((preset) => {
  const button = make("button", { type: "button" }, make("b", {}, preset.title), preset.hint);
  button.dataset.acts = "";
  onPress(button, () => setFault(preset.query));
  (isSkipped(preset) ? page.skipping : page.performing).append(button);
  return button;
});

function drawFaults() {
  const isKnown = isActive(state.fault) && !state.trouble;
  const current = isKnown ? presetOf(state.fault) : undefined;
  for (const [i, button] of presetButtons.entries()) {
    set(button, "ariaCurrent", String(faults[i] === current));
  }
  for (const radio of page.operations.querySelectorAll("input")) {
    set(radio, "checked", radio.value === aimOf(state));
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

function drawHeld() {
  const { held = 0 } = state.fault;
  page.held.hidden = held === 0 || state.trouble !== "";
  set(page.held, "textContent", `${plural(held, "request")} held`);
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
  const { id, time, method, outcome, client, took, injected } = request;
  const row = make(
    "div",
    { id: `request-${id}`, role: "option", className: "row", ariaSelected: "false" },
    make("span", { className: "time" }, clock.format(new Date(time))),
    make("span", { className: "method" }, method),
    make("span", { className: `status ${toneOf(request)}` }, outcome),
    whatOf(request),
    make("span", { className: "client" }, client),
    make("span", { className: "took" }, took),
  );
  row.classList.toggle("fault", injected !== "");
  return row;
}

// toneOf returns the class for the color of an outcome.
function toneOf({ hasFailed, fault }) {
  if (!hasFailed) {
    return "good";
  }
  return fault ? "bad" : "refused";
}

// whatOf shows what was requested and what was special about it. The message of a simulated error
// says no more than the tag.
function whatOf({ url, injected, again, ignored, error, effect, body }) {
  const parts = [
    ["tag injected", injected],
    ["again", again !== undefined && `again, +${duration(again)}`],
    ["tag ignored", ignored && `ignored: ${ignored}`],
    ["excerpt", error && !effect ? error : body],
  ];
  const what = make("span", { className: "what" }, make("code", {}, clip(url)));
  for (const [className, text] of parts.filter(([, text]) => text)) {
    what.append(make("span", { className }, clip(text)));
  }
  return what;
}

function drawList() {
  const { visible, requests, total, trouble } = state;
  const wanted = visible.map(rowOf);
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
  page.list.hidden = visible.length === 0;
  page.none.hidden = visible.length > 0 || requests.length === 0;
  page.first.hidden = requests.length > 0 || trouble !== "";
  page.columns.hidden = visible.length === 0;
  const isFiltered = visible.length < requests.length;
  const count = `${number(visible.length)} of ${number(requests.length)}`;
  set(page.known, "textContent", isFiltered ? count : lastOf(requests.length, total));
  follow();
}

// lastOf says how many the page knows of all.
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
  const { visible, selected } = state;
  const row = visible.includes(selected) ? rowOf(selected) : null;
  for (const other of page.list.children) {
    set(other, "ariaSelected", String(other === row));
  }
  page.list.setAttribute("aria-activedescendant", row?.id ?? "");
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
  page.pane.classList.toggle("empty", selected === null);
  page.pane.replaceChildren(...(selected ? detailsOf(selected) : [nothing]));
  page.pane.scrollTop = 0;
}

const nothing = make(
  "div",
  { className: "message" },
  make("h2", { id: "paneTitle" }, "No request is selected"),
  make("p", {}, "Select one to see what was sent, what was answered, and what a fault did to it."),
);

// detailsOf returns what the pane shows of a request.
function detailsOf(request) {
  const { id, time, method, url, headers, body, seconds, error, ignored, again } = request;
  const close = make("button", { type: "button", className: "close", ariaLabel: "Close" }, "×");
  close.addEventListener("click", closePane);
  const isUnread = body === "" && (headers["Content-Length"] > 0 || headers["Transfer-Encoding"]);
  return [
    make(
      "div",
      { className: "head line" },
      make("h2", { id: "paneTitle" }, request.operation || "Request"),
      make("span", { className: `status ${toneOf(request)}` }, request.outcome),
      close,
    ),
    make("pre", {}, `${method} ${reveal(url)}`),
    facts([
      ["Fault", request.injected],
      ["Effect", request.effect],
      ["Error", request.effect ? "" : error],
      ["Ignored", ignored],
      ["Again", again !== undefined && `${duration(again)} after an equal request`],
      ["Client", headers["User-Agent"] ?? "not named"],
      ["Arrived", `${clock.format(new Date(time))}, as request ${number(id)}`],
      ["Took", `${duration(seconds)} until the answer was ready`],
    ]),
    ...repeaterOf(request, isUnread),
    make("h3", {}, "Answer", make("span", { className: "quiet" }, ...noteOf(request))),
    textOf(answerOf(request), "No body"),
    facts(Object.entries(request.answerHeaders)),
    make("h3", {}, "Sent"),
    textOf(body, isUnread ? "The body was not kept" : "No body"),
    facts(Object.entries(headers)),
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

function answerOf({ answer, answerHeaders }) {
  const isCut = Number(answerHeaders["Content-Length"]) > maxAnswer;
  const text = isCut ? `${answer.replace(/\uFFFD+$/, "")}…` : answer; // cut within a character
  return answerHeaders["Content-Type"] === "application/json" ? indent(text) : text;
}

// repeaterOf returns the button that copies the line for a shell. A line with unsafe characters is
// shown in its place.
function repeaterOf(request, isUnread) {
  const line = curl(request);
  const text = make("pre", { hidden: true }, reveal(line));
  if (line.search(unsafe) >= 0) {
    text.hidden = false;
    const why = "As a line for curl, not to be copied: it has control characters.";
    return [make("p", { className: "quiet" }, why), text];
  }
  const button = make("button", { type: "button" }, "Copy as curl");
  button.addEventListener("click", () => copy(line, text));
  const note = `for sh, dash, bash and zsh${isUnread ? ", without the body" : ""}`;
  return [
    make("p", { className: "line" }, button, make("span", { className: "quiet" }, note)),
    text,
  ];
}

function drawPets() {
  const { pets, petCount } = state;
  set(page.petCount, "textContent", lastOf(pets.length, petCount));
  page.petScroll.hidden = pets.length === 0;
  const newestFirst = [...pets].reverse();
  page.petRows.replaceChildren(
    ...newestFirst.map(({ id, name, categoryId, status = "–" }) => {
      const cells = [id, clip(name), categoryId, status];
      return make("tr", {}, ...cells.map((text) => make("td", {}, text)));
    }),
  );
}

// drawUsable marks what can do nothing while the service does not answer. It keeps the focus, which
// a disabled element would lose.
function drawUsable() {
  for (const element of [page.operations, ...document.querySelectorAll("[data-acts]")]) {
    set(element, "ariaDisabled", String(state.trouble !== ""));
  }
}

let fading;

function drawNotice() {
  clearTimeout(fading);
  set(page.notice, "textContent", state.notice);
  set(page.notice, "className", state.isError ? "error" : "");
  if (state.notice && !state.isError) {
    fading = setTimeout(tell, noticeTime, "");
  }
}

// Events.

function onPress(button, action) {
  button.addEventListener("click", () => {
    if (button.ariaDisabled !== "true") {
      action();
    }
  });
}

// select shows a request in the pane. Its row stays in sight: the list stops following its end.
function select(request) {
  if (request) {
    update({ selected: request, isFollowing: false });
    rowOf(request).scrollIntoView({ block: "nearest" });
    lastTop = page.list.scrollTop;
  }
}

function closePane() {
  update({ selected: null });
  update({ isFollowing: isEndInSight() });
  (page.list.hidden ? page.filter : page.list).focus();
}

page.list.addEventListener("click", ({ target }) => {
  const row = target.closest("[role=option]");
  if (row) {
    select(state.visible.find((request) => rowOf(request) === row));
    page.pane.scrollIntoView({ block: "nearest" });
  }
});

page.list.addEventListener("keydown", (event) => {
  const { visible, selected } = state;
  const keys = {
    ArrowDown: () => visible.find(({ id }) => id > selected?.id) ?? visible.at(-1),
    ArrowUp: () => (selected ? visible.findLast(({ id }) => id < selected.id) : visible.at(-1)),
    Home: () => visible[0],
    End: () => visible.at(-1),
  };
  if (event.key in keys) {
    event.preventDefault();
    select(keys[event.key]());
  } else if (event.key === "Enter" && selected) {
    page.pane.focus();
  } else if (event.key === "Escape") {
    closePane();
  }
});

page.pane.addEventListener("keydown", ({ key }) => {
  if (key === "Escape") {
    closePane();
  }
});

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
  drawNews();
}).observe(page.list);

page.news.addEventListener("click", () => {
  page.list.focus();
  update({ isFollowing: true });
  follow();
});

page.filter.addEventListener("input", () => update({ filter: page.filter.value.trim() }));
page.failed.addEventListener("change", () => update({ isFailedOnly: page.failed.checked }));
page.showAll.addEventListener("click", () => {
  page.filter.value = "";
  page.failed.checked = false;
  update({ filter: "", isFailedOnly: false });
  page.filter.focus();
});

page.another.addEventListener("toggle", () => page.another.scrollIntoView({ block: "nearest" }));
page.operations.addEventListener("change", ({ target }) => aim(target.value));
page.faultForm.addEventListener("input", () => update({ refusal: "" }));
page.faultForm.addEventListener("submit", (event) => {
  event.preventDefault();
  if (page.another.open && !state.trouble) {
    setTyped();
  }
});
page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  const key = page.keyField.value.trim();
  page.keyForm.reset();
  useKey(key);
});

onPress(page.end, endFault);
onPress(page.clear, clearRequests);
onPress(page.add, addSamples);
onPress(page.reset, () => page.resetDialog.showModal());
page.confirmReset.addEventListener("click", resetAll);
page.copyExample.addEventListener("click", () => copy(page.example.textContent, page.example));

window.addEventListener("hashchange", enter);
document.addEventListener("visibilitychange", poll);

page.base.textContent = `${location.origin}/v1`;
for (const { code } of faults.filter(({ code }) => code)) {
  page.codes.append(make("option", { value: code }));
}
for (const { draw } of views) {
  draw();
}
enter();
