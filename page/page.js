// This script shows the standing fault, the journal and the pets, sets faults,
// and is a client itself. What faults there are, and what they mean, is in
// openapi.json. Clients can send any text, so text is never set as HTML.

const interval = 250; // milliseconds between two readings
const timeLimit = 5000; // milliseconds for a request of the page for itself
const longLimit = 60_000; // the same, if the answer may be late or large
const quietTime = 3000; // milliseconds before something else is read aloud
const maxPets = 100; // as on a page of listPets
const maxRequests = 1000; // rows of what has ended, as many as the journal has
const maxDrawn = 200; // rows that are drawn at once, or the page would freeze
const maxText = 4000; // bytes of a body that the journal keeps
const rounding = 1; // milliseconds by which the journal may put an end too late
const lateness = 20; // the same, if petstore had to notice that the client left
const clickTime = 300; // milliseconds in which a click follows a lifted finger
const pointTime = 2000; // milliseconds for which the list stays for a pointer
const pace = 2500; // milliseconds between the steps of the story

// The faults that have a button, beside those of the words in openapi.json.
const presets = ["delay=3", "delay=30", "code=503", "code=429"];

// The parameters that make requests wait, as the buttons say it.
const delays = { delay: "Wait", "answer-delay": "Answer after" };

// The elements of the page that have an id, by id.
const page = Object.fromEntries([...document.querySelectorAll("[id]")].map((one) => [one.id, one]));

if (document.prerendering) { // and the storage is not yet that of the tab
  await new Promise((resolve) => document.addEventListener("prerenderingchange", resolve, { once: true }));
}

let storage = {}; // keeps the key until the tab is closed, if the browser lets it
try {
  storage = sessionStorage;
} catch {}

// What is known of the service. A run is the time between two resets, or the like.

let description; // openapi.json
const runs = new Set(); // the since of each run that has begun
let meta = { total: 0 }; // of the journal of this run, the last one
let rows = new Map(); // of the requests of this run, by their number
let rowCount = 0; // of all runs
const undrawn = new Set(); // rows of which something is to be drawn
let pets = { count: 0, lastID: 0, isStale: true }; // that have been read
let discarded; // the rows of the run that a person ends on this page

// Requests of the page for itself. The service does not record them, and applies
// no fault to them.

// call returns the JSON of an answer. The error that stands for a refusal has its
// message and its status. If petstore does not answer, isSilence is true, although
// something else, such as a proxy, may have. Large integers are read as text, as
// numbers are exact to 2^53 only. Within a string, there is a backslash before
// each quote.
async function call(method, path, limit = timeLimit) {
  const headers = { Authorization: `Bearer ${storage.apiKey}` };
  const [{ ok, status }, text] = await fetch(path, { method, headers, signal: AbortSignal.timeout(limit) })
    .then(async (response) => [response, await response.text()])
    .catch(() => [{}, ""]);
  if (ok) {
    return JSON.parse(text.replace(/"(\w+)":(\d{16,})/g, '"$1":"$2"') || "{}");
  }
  let refusal;
  try {
    refusal = JSON.parse(text);
  } catch {} // it is not petstore's
  if (refusal?.message) {
    throw Object.assign(new Error(refusal.message), { status });
  }
  const instead = status ? `: what answers has the status ${status}` : "";
  throw Object.assign(new Error(`Petstore does not answer${instead}`), { isSilence: true });
}

const ends = []; // the journals of runs that have ended, in their order

// listen waits in the journal at all times, until the key changes, for more requests
// than there will be. So only the end of a run ends the wait before its time, with all
// that has ended in this run: nothing is lost, however soon the end comes.
async function listen() {
  const { apiKey } = storage;
  while (storage.apiKey === apiKey) {
    const path = `/__admin/requests?total=${Number.MAX_SAFE_INTEGER}`;
    const journal = await call("GET", path, longLimit).catch(() => undefined);
    if (journal?.meta) {
      ends.push(journal);
    } else {
      await pause(interval);
    }
  }
}

let reading = Promise.resolve(); // settled when all readings have ended
let timer = 0; // of the next one

// read reads what is new, after a reading under way, and again after a while,
// whatever goes wrong.
function read() {
  reading = reading
    .then(() => storage.apiKey && readNews())
    .catch(showTrouble)
    .catch(console.error)
    .then((isAll) => {
      readAloud();
      clearTimeout(timer);
      timer = setTimeout(read, isAll === false ? 0 : interval);
    });
  return reading;
}

let lastSince; // of the journal that was read last
let changes = 0; // readings in a row that have found another run

// readNews reads and draws what is new, and reports whether this is all. It draws
// nothing while a row is pressed, or the row might not be there when it is released,
// and, for two seconds, while runs end one after another, as the page cannot listen
// while it draws. If the run is that of the last reading, the end of the one before was
// heard.
async function readNews() {
  if (!description) {
    description = await call("GET", "/openapi.json");
    drawChoices();
  }
  const fault = await call("GET", "/__admin/fault"); // small: silence is soon noticed
  const query = new URLSearchParams({ since: meta.since ?? "", after: meta.total });
  const journal = await call("GET", `/__admin/requests?${query}`, longLimit);
  const { since } = journal.meta;
  const isSame = since === lastSince || runs.size === 0;
  lastSince = since;
  changes = isSame ? 0 : changes + 1;
  if (isTouched || page.rows.matches(":active") || changes % 8 > 0) {
    return true;
  }
  settle();
  ends.splice(0).forEach(takeRequests);
  if (isSame) {
    takeRequests(journal);
  }
  compareRows();
  removeRows();
  drawRows();
  filter();
  drawSign(fault);
  const isAll = !pets.isStale || (await readPets());
  return isAll && undrawn.size === 0;
}

// beginAnew begins another run, at the start, and after a reset, a restart or a
// clear. The rows of before stay above a divider, unless they were discarded here.
// After a clear, the requests that wait are still in the journal.
function beginAnew({ waiting, meta: { since } }) {
  compareRows();
  const old = rows;
  rows = new Map();
  for (const row of [...old.values()].filter(({ request }) => !(request.ended > 0))) {
    const { arrived, time } = row.request;
    if (waiting.some((one) => one.arrived === arrived && one.time === time)) {
      row.run = rows;
      rows.set(arrived, row);
    } else {
      lose(row);
    }
  }
  if (discarded === old) {
    page.rows.replaceChildren(...rows.values());
    undrawn.clear();
    rows.forEach((row) => undrawn.add(row));
  } else if (meta.since) {
    page.notice.textContent = ""; // which was of before
    unheard.notice = `Reset, cleared or restarted at ${since.slice(11, 19)} UTC`;
    page.rows.querySelector(":scope > p:last-child")?.remove(); // nothing has followed it
    page.rows.append(make("p", { className: "quiet" }, unheard.notice));
  }
  runs.add(since);
  meta = { since, total: 0 };
  petNumber = 0;
  pets = { count: 0, lastID: 0, isStale: true };
  page.petRows.replaceChildren();
}

// readPets reads and draws the next page of pets, the last of which stay. It reports
// whether it was the last page. Within a run, no pet is changed or removed.
async function readPets() {
  const added = await call("GET", `/__admin/pets?limit=${maxPets}&after=${pets.lastID}`, longLimit);
  for (const { id, name, status = "" } of added) {
    const cells = [["quiet", id], ["grow cut", excerpt(name)], ["quiet cut", excerpt(status)]];
    const parts = cells.map(([className, text]) => make("span", { className, title: text }, text));
    page.petRows.prepend(make("li", { className: "bar" }, ...parts));
    pets = { ...pets, count: pets.count + 1, lastID: id };
  }
  pets.isStale = added.length === maxPets;
  [...page.petRows.children].slice(maxPets).forEach((one) => one.remove());
  setText(page.petCount, pets.count > maxPets ? `the last ${maxPets} of ${pets.count}` : String(pets.count || "None"));
  return !pets.isStale;
}

// showTrouble says what is wrong at the moment, or asks for the key.
function showTrouble(problem) {
  const { status, message, isSilence } = problem;
  if (status === 401) {
    askForKey(message);
    return;
  }
  console.error(problem);
  page.end.hidden = true;
  const headline = isSilence ? `${message}.` : "This page cannot show what petstore answers.";
  const sentences = ["This page goes on asking.", !isSilence && message, lastKnown];
  showSign("trouble", "", headline, sentences.filter(Boolean).join(" "));
}

function askForKey(reason = "") {
  delete storage.apiKey;
  setText(page.title, "Petstore");
  showDesk();
  page.keyError.textContent = reason;
  page.keyField.ariaInvalid = String(reason !== "");
  page.keyField.focus();
  page.keyField.select(); // so that typing replaces it
}

// showDesk shows the desk or, without a key, the question for it.
function showDesk() {
  const isOpen = Boolean(storage.apiKey);
  for (const one of [page.desk, page.how, page.resetAll]) {
    one.hidden = !isOpen;
  }
  page.key.hidden = isOpen;
}

// Actions.

// press marks a button for as long as its action takes, and tells what that returns.
// The focus does not stay on a button that is hidden by then.
async function press(button, action, place) {
  page.notice.textContent = "";
  page.refusal.textContent = "";
  story = undefined;
  button.ariaBusy = "true";
  tell(await action(), place);
  page.field.ariaInvalid = String(page.refusal.textContent !== "");
  button.ariaBusy = "false";
  if (!button.checkVisibility() && [button, document.body].includes(document.activeElement)) {
    [page.scope, page.more].find((one) => one.checkVisibility())?.focus({ preventScroll: true });
  }
}

let unheard = {}; // the last text of each kind that is to be read aloud
let heardAt = 0; // when some were read last

// readAloud says what is new to those who do not see it, but not all the time.
function readAloud() {
  const texts = Object.values(unheard).filter(Boolean);
  if (texts.length > 0 && Date.now() - heardAt > quietTime) {
    page.heard.replaceChildren(...texts.map((text) => make("p", {}, excerpt(text))));
    heardAt = Date.now();
    unheard = {};
  }
}

// tell shows a text, if there is one, and says it to those who do not see it.
function tell(text, place = page.notice) {
  if (text) {
    place.textContent = text;
    unheard.notice = text;
  }
}

// act changes something, and returns the message of a refusal, or else a text, if it
// ends the run. Then its rows go.
async function act(method, path, done = "") {
  discarded = done && rows;
  const text = await call(method, path).then(
    () => done,
    ({ message }) => message,
  );
  if (text !== done) {
    discarded = undefined;
  }
  await read();
  return text;
}

// changeFault sets or ends the fault, which releases what the old one holds.
async function changeFault(method, query = "") {
  const held = heldRows().length;
  const refusal = await act(method, `/__admin/fault?${query}`);
  if (held > 0 && !refusal) {
    tell(`${counted(held, "request")} released`);
  }
  return refusal;
}

// addPet adds a pet as a client does: the request is recorded, and gets faults. What
// has become of it, its row says, unless petstore is not there.
async function addPet(pet, preferences = {}) {
  const headers = { Authorization: `Bearer ${storage.apiKey}`, "Content-Type": "application/json", ...preferences };
  const text = await fetch("/v1/pets", { method: "POST", headers, body: pet })
    .then((response) => response.text())
    .then(() => "", () => act("GET", "/__admin/fault"));
  read();
  return text;
}

let petNumber = 0; // in the name of the last new pet

// newPet returns a pet that no request has sent, or it would seem to be sent again.
function newPet() {
  petNumber = Math.max(petNumber, meta.total) + 1;
  return JSON.stringify({ name: petNumber === 1 ? "Rex" : `Rex ${petNumber}`, categoryId: 7 });
}

function pause(time) {
  return new Promise((resolve) => setTimeout(resolve, time));
}

let story; // what the sign says of the story: its text, and what may come next

// tellStory adds a pet, loses the answer, and adds it again, as many clients do. It
// leaves the standing fault to others. What came of it, the journal says.
async function tellStory() {
  const pet = newPet();
  showAll();
  story = { text: "This page adds a pet, gets no answer, and will try again. " };
  await addPet(pet, { Prefer: "code=lost" });
  await pause(pace);
  const refusal = await addPet(pet, { Prefer: "code=ok" });
  await read();
  const ids = [...rows.values()].flatMap(({ request }) => (request.body === pet && request.pet) || []);
  const next = "Now set a fault, and send a request from your client.";
  story = ids.length > 1 ? { text: `The pet is there twice: ${ids.join(" and ")}. `, next } : undefined;
  await read();
  return refusal;
}

// What is known of requests.

// isWaiting reports whether a request has not ended yet.
function isWaiting({ ended }) {
  return ended === undefined;
}

// lose notes that a request is not in the journal any more, so that it is not known
// what has become of it.
function lose(row) {
  row.request = { ...row.request, ended: 0 };
  undrawn.add(row);
}

// extentOf says how much of the body that has these headers a text is, if it may be
// longer.
function extentOf(text = "", headers = {}) {
  const size = new TextEncoder().encode(text).length;
  const isOpen = size >= maxText || (size === 0 && "Transfer-Encoding" in headers);
  const length = headers["Content-Length"] ?? (isOpen ? Infinity : size);
  if (size >= length) {
    return "";
  }
  return size === 0 ? "without its body" : `the first ${Math.min(size, maxText)} bytes`;
}

function hasLeft({ error = "" }) {
  return error.startsWith("the client left");
}

// mishapOf says what a fault did to the body of an answer that was sent, if it did.
function mishapOf({ method, status, fault }) {
  return method !== "HEAD" && status > 0 && fault?.code && entryOf(fault.code)["x-body"];
}

// hasFailed reports whether a client got no answer, not all of it, or an error. The
// request must have ended.
function hasFailed(request) {
  const { status } = request;
  return status === 0 || status >= 400 || hasLeft(request) || Boolean(mishapOf(request));
}

// outcomeOf says what has become of a request, in a word or two.
function outcomeOf(request) {
  if (request.status === undefined) {
    return isWaiting(request) ? "waiting" : "was waiting";
  }
  const what = hasLeft(request) ? "client left" : mishapOf(request);
  return [request.status, what].filter(Boolean).join(", ") || "no answer";
}

// colourOf returns the class of an outcome: bad is what a fault did, and warn what a
// client did.
function colourOf(request) {
  if (request.status === undefined) {
    return "waits";
  }
  if (!hasFailed(request)) {
    return "good";
  }
  const isOfClient = hasLeft(request) || (errorOf(request) && !mishapOf(request));
  return isOfClient || !isFailure(request.fault) ? "warn" : "bad";
}

// errorOf returns what was wrong with a request that got an answer: the message of an
// error that no fault asked for.
function errorOf(request) {
  const { status, error, fault } = request;
  return status >= 400 && fault?.code !== String(status) && !hasLeft(request) ? error : undefined;
}

// lineOf returns a text that is the same for equal requests of a client. There is none
// for a request whose body is not known whole, or has bytes that are no text, which are
// U+FFFD in the journal.
function lineOf({ method, url, headers, body, client, error }) {
  const address = client.replace(/:\d+$/, "");
  const sender = ["User-Agent", "Authorization", "Origin", "Content-Type"].map((name) => headers[name]);
  const line = JSON.stringify([address, sender, method, url, body]);
  const isWhole = extentOf(body, headers) === "" && !/cut short/.test(error);
  return isWhole && !line.includes("\uFFFD") ? line : undefined;
}

// compare returns what is so of a request beside the equal ones, which are in the order
// of arrival. It names an earlier one: the last that had ended when it came, if that
// had failed. Of equal requests that come at once, nobody knows which is a repetition.
// - known: when the client may have known of the end, in milliseconds, at the earliest
// - pause: the seconds since the end of the earlier request, rounded down, so that it is
//   less than a Retry-After that had not passed
// - pet: the last that it or, from one to the next, an earlier one has added
// - same: the pet that was added before its own
// - patience: the last Retry-After that these have got
// - early: the Retry-After that had not passed
function compare(request, equals) {
  const { arrived, time, seconds, pet } = request;
  const start = Date.parse(time);
  const end = isWaiting(request) ? Infinity : start + seconds * 1000;
  const last = equals.findLast((row) => row.request.arrived < arrived && row.facts.known <= start);
  const earlier = last && hasFailed(last.request) ? last : undefined;
  const { patience } = earlier?.facts ?? {};
  return {
    end,
    known: end - (hasLeft(request) ? lateness : rounding),
    earlier: earlier?.request.arrived,
    pause: Math.floor((start - earlier?.facts.end) / 10) / 100,
    pet: pet ?? earlier?.facts.pet,
    same: pet && earlier?.facts.pet,
    patience: patienceOf(request, end) ?? patience,
    early: start + rounding < patience?.end ? patience.text : undefined,
  };
}

// patienceOf returns the Retry-After of an answer that was sent, and when it ends, in
// milliseconds, which is NaN if it is not valid.
function patienceOf({ status, answerHeaders }, sentAt) {
  const text = status > 0 ? answerHeaders?.["Retry-After"] : undefined;
  return text && { text, end: /^\d+$/.test(text) ? sentAt + text * 1000 : Date.parse(text) };
}

// What is known of faults.

// isPreferred reports whether a request has asked for its fault itself.
function isPreferred({ headers }) {
  return /(^|[,;])[ \t]*(code|delay|answer-delay)[ \t]*=/i.test(headers.Prefer ?? "");
}

// waitingRows returns the rows of the requests of this run that have not ended.
function waitingRows() {
  return [...rows.values()].filter(({ request }) => isWaiting(request));
}

// heldRows returns the rows of the requests that a standing fault holds.
function heldRows() {
  return waitingRows().filter(({ request }) => request.fault && !isPreferred(request));
}

// waitsOf returns the parameters of a fault that make requests wait.
function waitsOf(fault = {}) {
  return Object.keys(delays).filter((name) => fault[name] > 0);
}

// isFailure reports whether a fault does anything. The code ok and a delay of 0 do not.
function isFailure(fault = {}) {
  const { code = "ok" } = fault;
  return code !== "ok" || waitsOf(fault).length > 0;
}

// entryOf returns what openapi.json says of a single code, which is a word or a status.
function entryOf(code) {
  const { oneOf } = description.components.schemas.FaultCode;
  return oneOf.find((one) => one.enum?.includes(code) ?? new RegExp(one.pattern).test(code));
}

// meaningOf says what a fault with a single code does.
function meaningOf(fault) {
  const { parameters } = description.paths["/__admin/fault"].put;
  const waits = waitsOf(fault).map((name) => {
    const parameter = parameters.find((one) => one.name === name);
    return parameter.description.replace("this number of seconds", `${fault[name]} s`);
  });
  const { code = "ok" } = fault;
  const meaning = code !== "ok" && entryOf(code).description;
  return [...waits, meaning].filter(Boolean).join(" ").replaceAll("`", "");
}

// labelOf returns the name of a fault with a single code, as on its button.
function labelOf(fault) {
  const waits = waitsOf(fault).map((name) => `${delays[name]} ${fault[name]} s`);
  const { code = "ok" } = fault;
  const label = entryOf(code).enum ? entryOf(code).title : code;
  return [...waits, code !== "ok" && label].filter(Boolean).join(", ") || "as usual";
}

// queryOf returns the query that sets a fault.
function queryOf({ matched, applied, ...parameters }) {
  return decodeURIComponent(new URLSearchParams(parameters));
}

// comingOf returns the fault that the next request gets from a standing fault, and a
// range, which says how many get it, and what follows. It returns {} if the fault is
// used up.
function comingOf({ matched, applied, code = "ok", skip = 0, times = Infinity, operation = "", ...others }) {
  const isList = code.includes(","); // which has one request for each code
  const count = isList ? 1 : times - applied;
  const [next, ...later] = (isList ? code.split(",").slice(applied) : [code]).map((one) => ({ ...others, code: one }));
  if (!next || count <= 0) {
    return {};
  }
  const rangeOf = (number) => {
    const noun = `${operation} request`.trim();
    const many = number === 1 ? noun : counted(number, noun);
    return number === Infinity ? `for every ${noun}` : `for the next ${many}`;
  };
  const labels = count === Infinity ? [] : [...later.slice(0, later.findLastIndex(isFailure) + 1), {}].map(labelOf);
  const range = [rangeOf(count), ...labels].join(", then ");
  const before = skip - matched;
  return before > 0 ? { next: {}, range: `${rangeOf(before)}, then ${labelOf(next)} ${range}` } : { next, range };
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function capitalized(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// Views.

function make(tag, properties, ...content) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...content.filter(Boolean));
  return element;
}

// setText changes a text that is not the same, or what is selected would be lost.
function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

// reveal shows what nobody sees, or what turns a text around, as numbers, but for emoji.
function reveal(text) {
  const unseen = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\n\u200D\uFE0F]]/gv;
  return text.replace(unseen, (char) => `⟨U+${char.codePointAt(0).toString(16).padStart(4, "0")}⟩`);
}

// excerpt returns the beginning of a text, without half a character.
function excerpt(text) {
  const start = text.slice(0, 200).replace(/[\uD800-\uDBFF]$/, "");
  return reveal(start) + (start.length < text.length ? "…" : "");
}

// drawChoices draws the buttons of the faults, each below the moment when it acts,
// which is the beginning of its meaning.
function drawChoices() {
  const { FaultCode, FaultOperation } = description.components.schemas;
  const words = FaultCode.oneOf.flatMap((one) => one.enum ?? []).filter((code) => code !== "ok");
  let lastMoment;
  for (const query of [...presets, ...words.map((code) => `code=${code}`)]) {
    const fault = Object.fromEntries(new URLSearchParams(query));
    const meaning = meaningOf(fault);
    const [moment] = meaning.split(",");
    const code = fault.code === labelOf(fault) ? "" : make("small", { className: "mono" }, fault.code ?? query);
    const button = make("button", { type: "button", title: `${query}: ${meaning}` }, labelOf(fault), " ", code);
    button.addEventListener("click", () => press(button, () => changeFault("PUT", `${query}&${page.scope.value}`)));
    page.buttons.append(moment === lastMoment ? "" : make("h3", { className: "quiet" }, moment), button);
    lastMoment = moment;
  }
  for (const operation of FaultOperation.enum) {
    page.scope.append(
      make("option", { value: `times=1&operation=${operation}` }, `The next ${operation}`),
      make("option", { value: `operation=${operation}` }, `Every ${operation}`),
    );
  }
}

let lastKnown = ""; // what the sign has said of petstore

// drawSign says what the next request gets, how many are held, and what the story does.
function drawSign(fault) {
  const isSet = fault.applied !== undefined;
  const { next, range } = isSet ? comingOf(fault) : {};
  const held = heldRows().length;
  const heldText = held > 0 ? `${counted(held, "request")} held. ` : "";
  const told = page.start.hidden ? {} : (story ?? {});
  const before = (told.text ?? "") + heldText;
  let className = told.text ? "told" : "calm";
  let headline = `${before ? "New requests" : "Requests"} are answered as usual.`;
  let sentence = isSet ? `The last fault is used up: it was applied to ${counted(fault.applied, "request")}.` : "";
  if (next) {
    headline = capitalized(labelOf(next));
    sentence = `${range}. ${isFailure(next) ? meaningOf(next) : ""}`;
  }
  if (held > 0 || isFailure(next)) {
    className = "active";
  }
  lastKnown = `Last known: ${heldText}${headline} ${sentence}`;
  setText(page.end, held > 0 ? "End and release" : "End");
  page.end.hidden = !next && held === 0;
  showSign(className, before, headline, (!next && told.next) || sentence, isSet ? queryOf(fault) : "");
}

// showSign also has the sign read aloud, unless only a number in it has changed.
function showSign(className, before, headline, sentence, query = "") {
  const kindOf = (text) => text.replace(/\S+ requests? held/, "held");
  const isNew = page.headline.textContent !== headline || page.query.textContent !== query;
  if (unheard.sign || isNew || kindOf(page.held.textContent) !== kindOf(before)) {
    unheard.sign = `${before}${headline} ${sentence}`;
  }
  page.sign.className = className;
  setText(page.held, before);
  setText(page.headline, headline);
  setText(page.sentence, sentence);
  setText(page.query, query);
  setText(page.title, className === "calm" ? "Petstore" : `${before}${headline.replace(/\.$/, "")} – Petstore`);
}

let follows = true; // whether the list keeps its end in sight
let isStill = false; // whether nothing in sight moves at the moment
let scrolledTo = 0; // where the script has scrolled to
let pointedAt = 0; // when the pointer last moved over the list
let seen = 0; // the place of the last row that has been in sight
let isTouched = false; // whether a finger presses a row
let selected = ""; // the text that was selected when a row was pressed

function isAtEnd() {
  const { scrollTop, clientHeight, scrollHeight } = page.list;
  return scrollTop + clientHeight > scrollHeight - 2; // as scrollTop may be a fraction
}

// isRead reports whether a row in sight is open or has the focus.
function isRead() {
  const list = page.list.getBoundingClientRect();
  return [...page.rows.querySelectorAll("[open], :focus-visible")].some((one) => {
    const { top, bottom } = one.getBoundingClientRect();
    return bottom > list.top && top < list.bottom;
  });
}

// settle decides whether the list moves. It does not while somebody reads, or aims.
function settle() {
  follows = (follows || isAtEnd()) && !isRead();
  isStill = !follows || Date.now() - pointedAt < pointTime;
}

// look notes which rows have been in sight, and says how many are below them.
function look() {
  const { bottom } = page.list.getBoundingClientRect();
  const shown = allRows().filter((row) => !row.hidden);
  const last = shown.findLast((row) => row.getBoundingClientRect().top < bottom);
  seen = Math.max(seen, last?.place ?? 0);
  const below = shown.filter(({ place }) => place > seen).length;
  setText(page.below, `${below} new below`);
  page.below.disabled = below === 0;
}

// takeRequests notes what a journal says, which may be the first of a run. The end of a
// run may be heard late. That a request goes on waiting is not new. One that is not there
// any more has ended after a clear, or with too many others.
function takeRequests(journal) {
  const { requests, waiting } = journal;
  const { since } = journal.meta;
  if (since !== meta.since) {
    if (runs.has(since)) {
      return;
    }
    beginAnew(journal);
  }
  const kindOf = ({ ended, body, fault } = {}) => JSON.stringify([ended, body, fault]);
  const all = [...requests, ...waiting].sort((a, b) => a.arrived - b.arrived);
  for (const request of all) {
    const row = rows.get(request.arrived) ?? addRow(request);
    const old = row.request;
    if (old?.ended > 0) {
      continue;
    }
    row.request = request;
    if (kindOf(request) !== kindOf(old)) {
      row.line = lineOf(request);
      undrawn.add(row);
    }
  }
  const known = new Set(all.map(({ arrived }) => arrived));
  const gone = waitingRows().filter(({ request }) => !known.has(request.arrived));
  gone.forEach(lose);
  pets.isStale ||= all.length + gone.length > 0; // as each may have added one
  meta = journal.meta;
}

function addRow({ arrived }) {
  const row = make("details", {}, make("summary"));
  row.place = ++rowCount;
  row.run = rows;
  row.facts = {};
  row.addEventListener("toggle", () => {
    if (row.open) {
      showDetail(row);
      row.scrollIntoView({ block: "nearest" }); // if there is no room below it
      row.firstChild.scrollIntoView({ block: "nearest" }); // if it is too high
    }
  });
  page.rows.append(row);
  rows.set(arrived, row);
  return row;
}

// compareRows notes what follows from new requests, also for later ones.
function compareRows() {
  for (const equals of Map.groupBy(rows.values(), (row) => row.line ?? row).values()) {
    const first = equals.findIndex((row) => undrawn.has(row));
    for (const row of equals.slice(first < 0 ? equals.length : first)) {
      const facts = compare(row.request, equals);
      if (JSON.stringify(facts) !== JSON.stringify(row.facts)) {
        row.facts = facts;
        undrawn.add(row);
      }
    }
  }
}

// removeRows removes the rows that are too many, those from before a reset first. While
// the list is still, what has been seen stays.
function removeRows() {
  const orderOf = ({ run, request }) => (run === rows ? request.ended : 0);
  const ended = allRows()
    .filter(({ request, place }) => !isWaiting(request) && !(isStill && place <= seen))
    .sort((a, b) => orderOf(a) - orderOf(b));
  for (const row of ended.slice(0, -maxRequests)) {
    row.run.delete(row.request.arrived);
    undrawn.delete(row);
    row.remove();
  }
  while (page.rows.firstChild?.matches("p")) {
    page.rows.firstChild.remove(); // as nothing is above it any more
  }
}

// drawRows draws what is new. The story is offered until a client has sent something.
function drawRows() {
  for (const row of [...undrawn].slice(0, maxDrawn)) {
    drawRow(row);
    undrawn.delete(row);
  }
  for (const row of waitingRows().filter((one) => !undrawn.has(one))) {
    setText(row.firstChild.lastChild, inSeconds(row.request));
  }
  const isOfStory = ({ run, request }) => run === rows && isOfPage(request.headers) && isPreferred(request);
  page.start.hidden = !allRows().every(isOfStory);
  page.offer.hidden = rows.size > 0;
}

// allRows returns the rows in their order, those from before a reset first.
function allRows() {
  return [...page.rows.getElementsByTagName("details")];
}

// drawRow draws what a request was, what has become of it, and what it changed.
function drawRow(row) {
  const { request } = row;
  const { earlier, same } = row.facts;
  const { arrived, time, method, url, headers, body, fault, pet, ignored } = request;
  const cell = (className, text) => make("span", { className }, excerpt(text));
  const note = (className, text) => text && cell(className, text);
  const origin = isPreferred(request) ? "Prefer: " : "";
  const faultText = fault && origin + queryOf(fault).replace("code=", "").replaceAll("&", " ");
  const verdict = pet && [`adds pet ${pet}`, same && `the same as pet ${same}`].filter(Boolean).join(", ");
  const verdictColour = hasFailed(request) ? colourOf(request) : "quiet";
  const reference = earlier && referTo(row, "span");
  const error = errorOf(request);
  const what = [
    note("mono cut", url),
    note(`mono ${isFailure(fault) ? "bad" : "quiet"}`, faultText),
    note(same ? "verdict bad" : verdictColour, verdict),
    reference,
    note("error warn", error),
    note("warn", ignored && `ignored: ${ignored.join(", ")}`),
    note("body quiet cut", !error && !earlier && body),
  ];
  row.className = isWaiting(request) ? "waiting" : "";
  row.firstChild.replaceChildren(
    cell("mono quiet at", String(arrived)),
    cell("mono quiet at", time.slice(11, 19)),
    cell(`chip ${colourOf(request)}`, outcomeOf(request)),
    cell("mono cut", method),
    make("span", { className: "what" }, ...what),
    cell("client cut quiet", clientOf(headers)),
    cell("quiet", inSeconds(request)),
  );
  if (row.open) {
    showDetail(row);
  }
  if (hasFailed(request) || earlier) {
    const facts = [`Request ${arrived}: ${outcomeOf(request)}`, verdict, reference?.textContent];
    unheard.verdict = facts.filter(Boolean).join(", ");
  }
}

// referTo says of which earlier request one is the same, with a link there: within a
// summary, which is a button itself, a span for pointers, and in the detail a button.
function referTo({ run, facts: { earlier, pause, early } }, tag) {
  const link = make(tag, { className: "link" }, `request ${earlier}`);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const row = run.get(earlier);
    if (!row) {
      tell(`Request ${earlier} is not in the list any more`);
      return;
    }
    if (row.hidden) {
      showAll();
    }
    row.open = true;
    row.firstChild.focus();
  });
  const isLater = pause > 0; // else the client may have sent both at once
  const when = isLater ? `${pause.toFixed(2)} s after its end` : "at its end";
  const patience = isLater && early && `. Retry-After ${early} had not passed`;
  const className = patience ? "warn" : "quiet";
  return make("span", { className }, "same as ", link, `, ${when}`, patience);
}

// isOfPage reports whether this page has sent the request with these headers.
function isOfPage({ Origin: origin }) {
  return origin === location.origin;
}

// clientOf returns the name of a client: of an app in a browser, its origin.
function clientOf(headers) {
  return isOfPage(headers) ? "petstore's page" : (headers.Origin ?? headers["User-Agent"] ?? "");
}

// inSeconds returns the time that a request took, or waits so far.
function inSeconds({ seconds, ended }) {
  return seconds >= 0.1 && ended !== 0 ? `${seconds.toFixed(1)} s` : "";
}

// showDetail shows what was sent, beside what was answered.
function showDetail(row) {
  const { request } = row;
  const { arrived, time, method, url, headers, body, seconds, status, error, answer, answerHeaders, client } = request;
  const isOver = request.ended > 0; // until then, what is drawn here stays
  const duration = isOver ? `, ${seconds.toFixed(3)} s` : "";
  const facts = make("small", {}, `Request ${arrived}, ${time}${duration}, from ${client}`);
  const hasBody = method !== "HEAD";
  const fate = status === 0 ? "not sent" : mishapOf(request);
  const answerTitle = ["Answer", fate, hasBody && extentOf(answer, answerHeaders)];
  const parts = [
    make("p", {}, explain(request), " ", facts),
    row.facts.earlier && make("p", {}, referTo(row, "button")),
    part(["Sent", extentOf(body, headers)], `${method} ${url}`, headers, body),
    (answer || status > 0) && part(answerTitle, status || "", answerHeaders, hasBody && answer),
  ];
  row.querySelector(".detail")?.remove();
  row.append(make("div", { className: "detail" }, ...parts));
}

// explain says what a fault did to a request, unless less was done than is meant.
function explain(request) {
  const { method, fault, error, ended } = request;
  if (ended === 0) {
    return "It waited when it was last in the journal. What became of it is not known.";
  }
  if (hasLeft(request)) {
    return `${capitalized(error)}.`;
  }
  return method !== "HEAD" && isFailure(fault) && meaningOf(fault);
}

// part returns a message: its first line and its body, and its headers, which may be
// many. A long one scrolls.
function part(title, line, headers = {}, body) {
  const fields = Object.entries(headers).map((field) => field.join(": "));
  const text = `${[line, body].filter(Boolean).join("\n").trimEnd()}\n\n`;
  const quiet = make("span", { className: "quiet" }, reveal(fields.join("\n")));
  const heading = make("h3", {}, title.filter(Boolean).join(", "));
  return make("section", {}, heading, make("pre", { tabIndex: 0 }, reveal(text), quiet));
}

// filter shows the rows that have all words of the filter in what they show, but for
// their number and time, or in what was sent and answered, and counts the rows. A
// divider is shown if a row above it is.
function filter() {
  const words = page.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const hasWords = ({ firstChild, request }) => {
    const { operation, url, headers, body, answer, answerHeaders = {} } = request;
    const cells = [...firstChild.querySelectorAll("span:not(.at)")].map((one) => one.textContent);
    const fields = [...Object.entries(headers), ...Object.entries(answerHeaders)].map((field) => field.join(": "));
    const text = [...cells, operation, url, ...fields, body, answer].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const all = allRows();
  let isEmpty = true; // since the last divider
  for (const one of page.rows.children) {
    if (one.matches("p")) {
      one.hidden = isEmpty;
      isEmpty = true;
    } else {
      const isFound = page.failed.ariaPressed === "false" || hasFailed(one.request) || one.facts.same;
      one.hidden = !isFound || (words.length > 0 && !hasWords(one));
      isEmpty &&= one.hidden;
    }
  }
  const shown = all.filter((row) => !row.hidden).length;
  const waiting = waitingRows().length;
  const ended = rows.size - waiting;
  const past = all.length - rows.size;
  const which = all.length < maxRequests ? "" : "the last "; // as older ones are gone
  const counts = [
    ended < meta.total ? `${ended} of ${meta.total}` : ended > 0 && String(ended),
    waiting > 0 && `${waiting} waiting`,
    past > 0 && `${which}${past} from before`,
  ];
  const found = shown < all.length ? `: ${shown} found` : "";
  setText(page.count, counts.filter(Boolean).join(" and ") + found);
  unheard.found &&= `${shown} found`;
  page.noneFound.hidden = all.length === 0 || shown > 0;
  if (!isStill) {
    page.list.scrollTop = page.list.scrollHeight;
    scrolledTo = page.list.scrollTop;
  }
  look();
}

// showAll ends the filter.
function showAll() {
  page.filter.value = "";
  page.failed.ariaPressed = "false";
  filter();
}

// Events.

page.list.addEventListener("scroll", () => {
  if (page.list.scrollTop !== scrolledTo) {
    follows = isAtEnd();
  }
  look();
});

page.list.addEventListener("pointermove", () => (pointedAt = Date.now()));

// What a finger presses, a browser may not take as active. The end of one touch does
// not end the next.
let touchEnd = 0; // a timer
page.rows.addEventListener("pointerdown", ({ pointerType }) => {
  clearTimeout(touchEnd);
  isTouched = pointerType !== "mouse";
  selected = String(getSelection());
});
for (const type of ["pointerup", "pointercancel"]) {
  window.addEventListener(type, () => {
    clearTimeout(touchEnd);
    touchEnd = setTimeout(() => (isTouched = false), clickTime);
  });
}

// Whoever selects a text in a row does not want to open it.
page.rows.addEventListener("click", (event) => {
  if (event.detail > 0 && !["", selected].includes(String(getSelection()))) {
    event.preventDefault();
  }
});

page.below.addEventListener("click", () => {
  follows = true;
  isStill = false;
  filter();
  page.list.focus({ preventScroll: true }); // as the button has nothing to do then
});

page.another.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = page.field.value.trim();
  const query = new URLSearchParams(text.includes("=") ? text : { code: text });
  press(event.submitter, () => changeFault("PUT", query), page.refusal);
});

page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  storage.apiKey = page.keyField.value.replace(/[^!-~]/g, ""); // no key has a space
  showDesk();
  listen();
  press(event.submitter, read);
});

page.filter.addEventListener("input", changeFilter);
page.failed.addEventListener("click", () => {
  page.failed.ariaPressed = String(page.failed.ariaPressed === "false");
  changeFilter();
});

// What is read is in sight again when the filter is gone.
function changeFilter() {
  unheard.found = "until they are counted";
  filter();
  if (!page.filter.value) {
    page.rows.querySelector("[open]:not([hidden])")?.scrollIntoView({ block: "nearest" });
  }
}

// Each press adds a pet, one after another, as a browser has few connections.
let adding = Promise.resolve();
page.addPet.addEventListener("click", () => {
  adding = adding.then(() => press(page.addPet, () => addPet(newPet())));
});
page.story.addEventListener("click", () => page.story.ariaBusy === "true" || press(page.story, tellStory));
page.end.addEventListener("click", () => press(page.end, () => changeFault("DELETE")));
page.clear.addEventListener("click", () => {
  if (allRows().length === 0 || confirm("Remove all requests that have ended, for all clients?")) {
    press(page.clear, () => act("DELETE", "/__admin/requests", "Cleared"));
  }
});
page.resetAll.addEventListener("click", () => {
  if (confirm("Reset pets, fault and requests, for all clients?")) {
    press(page.resetAll, () => act("POST", "/__admin/reset", "Reset"));
  }
});

// A line is copied with the key, which is not shown, also if a person copies it by the
// keyboard, as where the clipboard is not for scripts.
page.call.addEventListener("copy", (event) => {
  const word = `Bearer ${storage.apiKey}`.replaceAll("'", "'\\''");
  event.clipboardData.setData("text/plain", String(getSelection()).replace("Bearer ***", () => word));
  event.preventDefault();
});
for (const button of page.call.querySelectorAll(".copy")) {
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(button.previousElementSibling);
    tell(document.execCommand("copy") ? "Copied" : "Selected: copy it with the keyboard", page.copied);
  });
}

// What an action was answered goes with the next one, whatever that is for.
for (const type of ["pointerdown", "keydown"]) {
  window.addEventListener(type, () => (page.notice.textContent = ""));
}

matchMedia("(width < 48rem)").addEventListener("change", () => page.controls.hidePopover());
document.addEventListener("visibilitychange", read);
window.addEventListener("hashchange", () => location.reload());

page.tooOld.hidden = CSS.supports("color", "light-dark(red, red)"); // newest of all
page.base.textContent = `${location.origin}/v1`;
page.curl.textContent = `curl -H 'Authorization: Bearer ***' ${location.origin}/v1/pets`;
const json = `-H 'Content-Type: application/json' -d '${JSON.stringify({ name: "Tom", categoryId: 7 })}'`;
page.curlPost.textContent = `${page.curl.textContent} ${json}`;

// The key is taken from the address, as in /#key=abc, and removed there. One that is
// not percent-encoded is taken as it is.
const [, key] = location.hash.split(/^#key=/);
if (key) {
  storage.apiKey = key;
  try {
    storage.apiKey = decodeURIComponent(key);
  } catch {}
  history.replaceState(null, "", location.pathname);
}
if (storage.apiKey) {
  showDesk();
  listen();
  read();
} else {
  askForKey();
}
