// This script shows the standing fault, the journal and the pets, sets faults,
// and is a client itself. What faults there are, and what they mean, is in
// openapi.json. Clients can send any text, so text is never set as HTML.

const interval = 250; // milliseconds between two readings
const timeLimit = 5000; // milliseconds for a request of the page for itself
const longLimit = 60_000; // milliseconds for the journal and the pets, which may be large, on a slow line
const quietTime = 3000; // milliseconds before something else is read aloud
const maxPets = 100; // as on a page of listPets
const maxRequests = 1000; // that have ended, which the journal keeps
const maxDrawn = 200; // rows that are drawn at once, or the page would not answer meanwhile
const maxText = 4000; // bytes of a body and of an answer that the journal keeps
const rounding = 1; // milliseconds by which the journal may put an end too late
const lateness = 20; // milliseconds within which petstore usually notices that a client has left
const clickTime = 100; // milliseconds within which a click follows a finger that is lifted
const pace = 1000; // milliseconds between the steps of the story

// The faults that have a button, beside those of the words in openapi.json.
const presets = ["delay=3", "delay=30", "code=503", "code=429"];

// The parameters that make requests wait, as the buttons say it.
const delays = { delay: "Wait", "answer-delay": "Answer after" };

// The elements of the page that have an id, by id.
const page = Object.fromEntries([...document.querySelectorAll("[id]")].map((one) => [one.id, one]));

if (document.prerendering) { // and the storage is not yet that of the tab
  await new Promise((resolve) => document.addEventListener("prerenderingchange", resolve, { once: true }));
}

let storage = {}; // keeps the key for as long as the tab is open, unless the browser forbids it
try {
  storage = sessionStorage;
} catch {}

// What is known of the service.

let description; // openapi.json
let meta = { since: "", total: 0 }; // of the journal that has been read
const rows = new Map(); // of requests, by their number, in the order of their arrival
const undrawn = new Set(); // rows of which something is to be drawn
let pets = { count: 0, lastID: 0 }; // that have been read

// Requests of the page for itself. The service does not record them, and applies
// no fault to them.

// call returns the JSON of an answer. The error that stands for a refusal has its
// message and its status, and isSilence says that one stands for no answer. Large integers
// are read as text, as numbers are exact to 2^53 only. Within a string, there is a
// backslash before each quote.
async function call(method, path, limit = timeLimit) {
  const headers = { Authorization: `Bearer ${storage.apiKey}` };
  const [{ ok, status }, text] = await fetch(path, { method, headers, signal: AbortSignal.timeout(limit) })
    .then(async (response) => [response, await response.text()])
    .catch(() => Promise.reject(Object.assign(new Error("Petstore does not answer"), { isSilence: true })));
  const answer = JSON.parse(text.replace(/"(\w+)":(\d{16,})/g, '"$1":"$2"') || "{}");
  if (!ok) {
    throw Object.assign(new Error(answer.message ?? status), { status });
  }
  return answer;
}

let reading = Promise.resolve(); // settled when all readings have ended
let timer = 0; // of the next one

// read reads what is new, after a reading under way, and again after a while, whatever
// goes wrong.
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

// readNews reads and draws what is new. It reports whether this is all. It draws nothing
// while a row is pressed, or the row might not be there any more when it is released.
async function readNews() {
  const fault = await call("GET", "/__admin/fault"); // which is small, so that silence is soon noticed
  const journal = await call("GET", `/__admin/requests?after=${meta.total}`, longLimit);
  if (isTouched || page.rows.matches(":active")) {
    return true;
  }
  if (journal.meta.since !== meta.since) {
    await beginAnew(journal.meta.since);
    return false;
  }
  takeRequests(journal);
  drawRows();
  meta = journal.meta;
  filter();
  drawSign(fault);
  return (await readPets()) && undrawn.size === 0;
}

// beginAnew forgets what has been read, at the start, and after a reset, a restart or a clear.
async function beginAnew(since) {
  if (!description) {
    description = await call("GET", "/openapi.json");
    drawChoices();
  }
  unheard = {};
  if (meta.since) {
    tell(`Cleared or restarted at ${since.slice(11, 19)} UTC`);
  }
  meta = { since, total: 0 };
  rows.clear();
  undrawn.clear();
  seen = 0;
  pets = { count: 0, lastID: 0 };
  page.rows.replaceChildren();
  page.petRows.replaceChildren();
}

// readPets reads and draws the next page of pets, the last of which stay. It reports whether
// it was the last page. Between resets, no pet is changed or removed.
async function readPets() {
  const news = await call("GET", `/__admin/pets?limit=${maxPets}&after=${pets.lastID}`, longLimit);
  for (const { id, name, status = "" } of news) {
    const cells = [id, excerpt(name), status].map((text) => make("td", { className: "cut", title: text }, text));
    page.petRows.prepend(make("tr", {}, ...cells));
    pets = { count: pets.count + 1, lastID: id };
  }
  [...page.petRows.children].slice(maxPets).forEach((one) => one.remove());
  setText(page.petCount, pets.count > maxPets ? `the last ${maxPets} of ${pets.count}` : String(pets.count || "None"));
  return news.length < maxPets;
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
  const headline = isSilence ? message : "This page cannot show what petstore answers";
  const sentences = ["This page goes on asking.", !isSilence && message, lastKnown];
  showSign("trouble", "", headline, sentences.filter(Boolean).join(" "));
}

function askForKey(reason = "") {
  delete storage.apiKey;
  setText(page.title, "Petstore");
  showDesk();
  page.keyError.textContent = reason;
  page.keyField.focus();
}

// showDesk shows the desk or, without a key, the question for it.
function showDesk() {
  const isOpen = Boolean(storage.apiKey);
  page.desk.hidden = !isOpen;
  page.resetAll.hidden = !isOpen;
  page.key.hidden = isOpen;
}

// Actions.

// press marks a button for as long as its action takes, and tells what that returns. The
// focus does not stay on a button that is hidden by then.
async function press(button, action, place) {
  page.notice.textContent = "";
  page.refusal.textContent = "";
  button.ariaBusy = "true";
  tell(await action(), place);
  button.ariaBusy = "false";
  if (!button.checkVisibility() && [button, document.body].includes(document.activeElement)) {
    page.scope.focus({ preventScroll: true });
  }
}

let unheard = {}; // the last texts of the sign, a verdict, a notice and the filter that are to be read aloud
let heardAt = 0; // when some were read last

// readAloud says what is new to those who do not see it, but not all the time.
function readAloud() {
  const texts = Object.values(unheard).filter(Boolean);
  if (texts.length > 0 && Date.now() - heardAt > quietTime) {
    page.heard.replaceChildren(...texts.map((text) => make("p", {}, text)));
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

// act changes something, and returns the message of a refusal, or "".
async function act(method, path) {
  const refusal = await call(method, path).then(
    () => "",
    ({ message }) => message,
  );
  await read();
  return refusal;
}

// changeFault sets or ends the fault, which releases the requests that the old one holds.
async function changeFault(method, query = "") {
  const held = heldRows().length;
  const refusal = await act(method, `/__admin/fault?${query}`);
  if (held > 0 && !refusal) {
    tell(`${counted(held, "request")} released`);
  }
  return refusal;
}

// setFault sets the fault of a query. What that does not say of the requests that get the
// fault, the choice above the buttons does. A list of codes says how many get it.
function setFault(text) {
  const query = new URLSearchParams(text);
  const isList = query.get("code")?.includes(",");
  for (const [name, value] of new URLSearchParams(page.scope.value)) {
    if (!query.has(name) && !(name === "times" && isList)) {
      query.set(name, value);
    }
  }
  return changeFault("PUT", query);
}

// addPet adds a pet as a client does: the request is recorded, and gets faults.
async function addPet(pet, preferences = {}) {
  const headers = { Authorization: `Bearer ${storage.apiKey}`, "Content-Type": "application/json", ...preferences };
  await fetch("/v1/pets", { method: "POST", headers, body: pet })
    .then((response) => response.text())
    .catch(() => ""); // the row says what has become of it
  await read();
}

// newPet returns a pet that no request has sent, or it would seem to be sent again.
function newPet() {
  const number = meta.total + 1;
  return JSON.stringify({ name: number === 1 ? "Rex" : `Rex ${number}`, categoryId: 7 });
}

// tellStory adds a pet, loses the answer, and adds it again, as many clients do. It leaves
// the standing fault to others.
async function tellStory() {
  const pet = newPet();
  await addPet(pet, { Prefer: "code=lost" });
  await new Promise((resolve) => setTimeout(resolve, pace));
  await addPet(pet, { Prefer: "code=ok" });
}

// What is known of requests.

// isWaiting reports whether a request has not ended yet.
function isWaiting({ ended }) {
  return ended === undefined;
}

// isUnread reports whether a body was sent, by the headers, that petstore has not read.
function isUnread({ headers, body }) {
  return !body && (headers["Content-Length"] > 0 || "Transfer-Encoding" in headers);
}

// isCut reports whether a text is only the beginning of the body that has these headers. One
// without a Content-Length may be longer than its beginning.
function isCut(text = "", headers = {}) {
  return (headers["Content-Length"] ?? new TextEncoder().encode(text).length + 1) > maxText;
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
  const what = hasLeft(request) ? "client left" : mishapOf(request);
  return isWaiting(request) ? "waiting" : [request.status, what].filter(Boolean).join(", ") || "no answer";
}

// colourOf returns the class of an outcome: bad is what a fault did, and warn what a
// client did.
function colourOf(request) {
  if (isWaiting(request)) {
    return "waits";
  }
  if (!hasFailed(request)) {
    return "good";
  }
  const isOfClient = hasLeft(request) || (errorOf(request) && !mishapOf(request));
  return isOfClient || !isFailure(request.fault) ? "warn" : "bad";
}

// errorOf returns what was wrong with a request that got an answer: the message of an error
// that no fault asked for.
function errorOf(request) {
  const { status, error, fault } = request;
  return status >= 400 && fault?.code !== String(status) && !hasLeft(request) ? error : undefined;
}

// lineOf returns a text that is the same for equal requests of a client. There is none for a
// request that the journal does not have whole, in which bytes that are no text are U+FFFD.
function lineOf(request) {
  const { method, url, headers, body } = request;
  const client = ["User-Agent", "Authorization", "Origin", "Content-Type"].map((name) => headers[name]);
  const line = JSON.stringify([client, method, url, body]);
  return isUnread(request) || isCut(body, headers) || line.includes("\uFFFD") ? undefined : line;
}

// compare returns what follows from a request and the equal ones, which are in the order of
// arrival. It repeats the last one that had ended when it came, if that one had failed. Requests
// that a client sends at once cannot be told from repetitions if one of them has failed by then.
// - end, in milliseconds
// - known, when the client may have known of the end at the earliest
// - pause, in seconds, after what it repeats, or NaN
// - patience, the last Retry-After that it, or what it repeats, has got
// - early, the Retry-After for whose end it did not wait
// - pets that it and what it repeats have added, by id
function compare(request, equals) {
  const { arrived, time, seconds, pet } = request;
  const start = Date.parse(time);
  const end = isWaiting(request) ? Infinity : start + seconds * 1000;
  const last = equals.findLast((row) => row.request.arrived < arrived && row.facts.known <= start);
  const repeated = last && hasFailed(last.request) ? last.facts : { pets: [] };
  return {
    end,
    known: end - (hasLeft(request) ? lateness : rounding),
    pause: Math.max(0, start - repeated.end) / 1000,
    patience: patienceOf(request, end) ?? repeated.patience,
    early: start + rounding < repeated.patience?.end ? repeated.patience.text : undefined,
    pets: [...repeated.pets, ...(pet ? [pet] : [])],
  };
}

// patienceOf returns the Retry-After of an answer that was sent, and when it ends, in
// milliseconds, which is NaN if it is not valid.
function patienceOf({ status, answerHeaders }, sentAt) {
  const text = status > 0 ? answerHeaders?.["Retry-After"] : undefined;
  return text && { text, end: /^\d+$/.test(text) ? sentAt + text * 1000 : Date.parse(text) };
}

// verdictOf says what a request has added, if anything.
function verdictOf({ request: { pet }, facts: { pets } }) {
  const ids = pets.length > 4 ? [...pets.slice(0, 3), `${pets.length - 3} more`] : pets;
  const list = () => new Intl.ListFormat("en").format(ids.map(String));
  return pet && (pets.length > 1 ? `adds it again: pets ${list()}` : `adds pet ${pet}`);
}

// repetitionOf says how soon a request is the same as one that has failed, if it is.
function repetitionOf({ facts: { pause, early } }) {
  const when = pause < 0.01 ? "at once" : `after ${pause.toFixed(2)} s`;
  return pause >= 0 && `repeated ${when}${early ? `, before Retry-After ${early}` : ""}`;
}

// What is known of faults.

// isPreferred reports whether a request has asked for its fault itself.
function isPreferred({ headers }) {
  return /(^|[,;])[ \t]*(code|delay|answer-delay)[ \t]*=/i.test(headers.Prefer ?? "");
}

// heldRows returns the rows of the requests that a standing fault holds.
function heldRows() {
  return [...rows.values()].filter(({ request }) => isWaiting(request) && request.fault && !isPreferred(request));
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

// comingOf returns the fault that the next request gets from a standing fault, and a range,
// which says how many get it, and what follows. It returns {} if the fault is used up.
function comingOf({ matched, applied, code = "ok", skip = 0, times = Infinity, operation = "", ...others }) {
  const isList = code.includes(","); // which has one request for each code
  const count = isList ? 1 : times - applied;
  const [next, ...later] = (isList ? code.split(",").slice(applied) : [code]).map((one) => ({ ...others, code: one }));
  if (!next || count <= 0) {
    return {};
  }
  const rangeOf = (number) => {
    const noun = `${operation} request`.trim();
    return number === Infinity ? `for every ${noun}` : `for the next ${number === 1 ? noun : counted(number, noun)}`;
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

// setText changes a text, unless it is the same, or what is selected there would be lost.
function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

// reveal shows what nobody sees, or what turns a text around, as numbers. Within emoji, it is
// as usual.
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
    const button = make("button", { type: "button", title: `${query}: ${meaning}` }, labelOf(fault));
    button.addEventListener("click", () => press(button, () => setFault(query)));
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

// drawSign says what the next request gets, and how many are held.
function drawSign(fault) {
  const isSet = fault.applied !== undefined;
  const { next, range } = isSet ? comingOf(fault) : {};
  const held = heldRows().length;
  const heldText = held > 0 ? `${counted(held, "request")} held. ` : "";
  let headline = held > 0 ? "New requests are answered as usual" : "Requests are answered as usual";
  let sentence = isSet ? `The last fault is used up: it was applied to ${counted(fault.applied, "request")}.` : "";
  if (next) {
    headline = capitalized(labelOf(next));
    sentence = `${range}. ${isFailure(next) ? meaningOf(next) : ""}`;
  }
  setText(page.end, held > 0 ? "End and release" : "End");
  page.end.hidden = !next && held === 0;
  showSign(held > 0 || isFailure(next) ? "active" : "calm", heldText, headline, sentence, isSet ? queryOf(fault) : "");
  lastKnown = `Last known: ${heldText}${headline}${next ? "" : "."} ${sentence}`;
}

// showSign also has the sign read aloud, but not each time that a number in it changes.
function showSign(className, held, headline, sentence, query = "") {
  const isNews = page.headline.textContent !== headline || page.query.textContent !== query;
  if (unheard.sign || isNews || Boolean(held) !== Boolean(page.held.textContent)) {
    unheard.sign = `${held}${headline} ${sentence}`;
  }
  page.sign.className = className;
  setText(page.held, held);
  setText(page.headline, headline);
  setText(page.sentence, sentence);
  setText(page.query, query);
  setText(page.title, className === "calm" ? "Petstore" : `${held}${headline} – Petstore`);
}

let follows = true; // whether the list keeps its end in sight
let seen = 0; // the number of the last request that has been in sight
let isTouched = false; // whether a finger presses a row

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

// look notes which rows have been in sight, and says how many are below them.
function look() {
  const { bottom } = page.list.getBoundingClientRect();
  const shown = shownRows();
  const last = shown.findLast((row) => row.getBoundingClientRect().top < bottom);
  seen = Math.max(seen, last?.request.arrived ?? 0);
  const below = shown.filter(({ request }) => request.arrived > seen).length;
  setText(page.below, `${below} new below`);
  page.below.disabled = below === 0;
}

// takeRequests notes what is new of requests, and what follows from it for later equal ones.
function takeRequests(journal) {
  const { requests, waiting } = journal;
  follows = (follows || isAtEnd()) && !isRead();
  const known = ({ body, fault } = {}) => JSON.stringify([body, fault]);
  const changed = new Set();
  for (const request of [...requests, ...waiting].sort((a, b) => a.arrived - b.arrived)) {
    const row = rows.get(request.arrived) ?? addRow(request);
    const isKnown = isWaiting(request) && known(request) === known(row.request);
    row.request = request;
    if (!isKnown) {
      row.line = lineOf(request);
      changed.add(row);
    } else if (!undrawn.has(row)) {
      row.firstChild.lastChild.textContent = inSeconds(request.seconds);
    }
  }
  for (const equals of Map.groupBy(rows.values(), (row) => row.line ?? row).values()) {
    const first = equals.findIndex((row) => changed.has(row));
    for (const row of first < 0 ? [] : equals.slice(first)) {
      const old = JSON.stringify(row.facts);
      row.facts = compare(row.request, equals);
      if (changed.has(row) || JSON.stringify(row.facts) !== old) {
        undrawn.add(row);
      }
    }
  }
  removeRows(journal);
}

// drawRows draws what is new of rows.
function drawRows() {
  for (const row of [...undrawn].slice(0, maxDrawn)) {
    drawRow(row);
    undrawn.delete(row);
  }
  page.start.hidden = ![...rows.values()].every(({ request }) => isOfPage(request.headers) && isPreferred(request));
}

function addRow(request) {
  const row = make("details", {}, make("summary"));
  row.addEventListener("toggle", () => {
    if (row.open) {
      showDetail(row);
      row.scrollIntoView({ block: "nearest" }); // if there is no room below it
      row.firstChild.scrollIntoView({ block: "nearest" }); // if there is no room for all of it
    }
  });
  page.rows.append(row);
  rows.set(request.arrived, row);
  return row;
}

// removeRows removes the rows of requests that the journal does not have any more. But what is
// above a row does not change unless the list follows its end: else, what has been seen stays.
function removeRows({ waiting, meta: { total } }) {
  const numbers = new Set(waiting.map(({ arrived }) => arrived));
  for (const [arrived, row] of rows) {
    const { request } = row;
    const isDropped = request.ended <= total - maxRequests && (follows || arrived > seen);
    if (isDropped || (isWaiting(request) && !numbers.has(arrived))) {
      rows.delete(arrived);
      undrawn.delete(row);
      row.remove();
    }
  }
}

// drawRow draws what a request was, what has become of it, and what it changed.
function drawRow(row) {
  const { request } = row;
  const { arrived, time, method, url, headers, body, seconds, fault, ignored } = request;
  const { pets, early } = row.facts;
  const verdict = verdictOf(row);
  const repetition = repetitionOf(row);
  const error = errorOf(request);
  const isNotable = hasFailed(request) || pets.length > 1;
  const notes = [
    ["mono cut", url],
    [
      isFailure(fault) ? "mono bad" : "mono quiet",
      fault && (isPreferred(request) ? "Prefer: " : "") + queryOf(fault).replace("code=", "").replaceAll("&", " "),
    ],
    [isNotable ? "verdict bad" : "quiet", verdict],
    [early ? "verdict warn" : "quiet", repetition],
    ["warn", error],
    ["warn", ignored && `ignored: ${ignored.join(", ")}`],
    ["body quiet cut", !error && !repetition && body],
  ];
  const cell = (className, text) => make("span", { className }, excerpt(text));
  row.className = isWaiting(request) ? "waiting" : "";
  row.firstChild.replaceChildren(
    cell("mono quiet", time.slice(11)),
    cell(`chip ${colourOf(request)}`, outcomeOf(request)),
    cell("mono cut", method),
    make("span", { className: "what" }, ...notes.map(([className, text]) => text && cell(className, text))),
    cell("client cut quiet", clientOf(headers)),
    cell("quiet", inSeconds(seconds)),
  );
  if (row.open) {
    showDetail(row);
  }
  if (isNotable || repetition) {
    unheard.verdict = [`Request ${arrived}: ${outcomeOf(request)}`, verdict, repetition].filter(Boolean).join(", ");
  }
}

// isOfPage reports whether this page has sent the request with these headers.
function isOfPage({ Origin: origin }) {
  return origin === location.origin;
}

// clientOf returns the name of a client: of an app in a browser, its origin.
function clientOf(headers) {
  return isOfPage(headers) ? "petstore's page" : (headers.Origin ?? headers["User-Agent"] ?? "");
}

function inSeconds(seconds) {
  return seconds >= 0.1 ? `${seconds.toFixed(1)} s` : "";
}

// showDetail shows what was sent, beside what was answered.
function showDetail(row) {
  const { request } = row;
  const { arrived, time, method, url, headers, body, seconds, status, fault, error, answer, answerHeaders } = request;
  const isDone = method !== "HEAD" && !hasLeft(request); // or less was done than is meant
  const meaning = isFailure(fault) && isDone && meaningOf(fault);
  const duration = isWaiting(request) ? "" : `, ${seconds.toFixed(3)} s`; // as what is drawn stays
  const facts = make("small", {}, `Request ${arrived}, ${time}${duration}`);
  const beginning = `the first ${maxText} bytes`;
  const title = ["Sent", isUnread(request) ? "without its body" : isCut(body, headers) && beginning];
  const answerTitle = [
    "Answer",
    status === 0 ? "not sent" : mishapOf(request),
    method !== "HEAD" && isCut(answer, answerHeaders) && beginning,
  ];
  const parts = [
    make("p", {}, meaning || (hasLeft(request) && `${capitalized(error)}.`), " ", facts),
    part(title, `${method} ${url}`, headers, body),
    (answer || status > 0) && part(answerTitle, status || "", answerHeaders, method !== "HEAD" && answer),
  ];
  row.querySelector(".detail")?.remove();
  row.append(make("div", { className: "detail" }, ...parts));
}

// part returns a message as it was sent: its first line, its headers and its body. A long one
// scrolls.
function part(title, line, headers, body) {
  const fields = Object.entries(headers).map((field) => field.join(": "));
  const text = [line, ...fields, "", body || ""].join("\n").trim();
  return make(
    "section",
    {},
    make("h3", {}, title.filter(Boolean).join(", ")),
    make("pre", { tabIndex: 0 }, reveal(text)),
  );
}

// filter shows the rows that have all words of the filter in what they show, or in what was
// sent and answered, and counts the rows.
function filter() {
  const words = page.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const isFound = ({ firstChild, request }) => {
    const { operation, url, headers, body, answer, answerHeaders = {} } = request;
    const cells = [...firstChild.querySelectorAll("span")].map((one) => one.textContent);
    const fields = [...Object.entries(headers), ...Object.entries(answerHeaders)].map((field) => field.join(": "));
    const text = [...cells, operation, url, ...fields, body, answer].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  for (const row of rows.values()) {
    row.hidden = words.length > 0 && !isFound(row);
  }
  const shown = shownRows();
  const waiting = [...rows.values()].filter(({ request }) => isWaiting(request)).length;
  const ended = rows.size - waiting;
  const counts = [
    ended < meta.total ? `${ended} of ${meta.total}` : ended > 0 && String(ended),
    waiting > 0 && `${waiting} waiting`,
  ];
  const found = shown.length < rows.size ? `: ${shown.length} found` : "";
  setText(page.count, counts.filter(Boolean).join(" and ") + found);
  unheard.found &&= `${shown.length} found`;
  page.noneFound.hidden = rows.size === 0 || shown.length > 0;
  if (follows) {
    page.list.scrollTop = page.list.scrollHeight;
  }
  look();
}

function shownRows() {
  return [...rows.values()].filter((row) => !row.hidden);
}

// Events.

page.list.addEventListener("scroll", () => {
  follows = isAtEnd();
  look();
});

// What a finger presses, a browser may not take as active.
page.rows.addEventListener("pointerdown", ({ pointerType }) => {
  isTouched = pointerType !== "mouse";
});
for (const type of ["pointerup", "pointercancel"]) {
  window.addEventListener(type, () => setTimeout(() => (isTouched = false), clickTime));
}

page.below.addEventListener("click", () => {
  page.list.scrollTop = page.list.scrollHeight;
  page.list.focus({ preventScroll: true }); // as the button has nothing to do then
});

page.another.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = page.field.value.trim();
  press(event.submitter, () => setFault(text.includes("=") ? text : `code=${text}`), page.refusal);
});

page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  storage.apiKey = page.keyField.value.replace(/[^!-~]/g, ""); // no key has a space
  showDesk();
  press(event.submitter, read);
});

page.filter.addEventListener("input", () => {
  unheard.found = page.filter.value; // until they are counted
  filter();
  if (!page.filter.value) {
    page.rows.querySelector("[open]")?.scrollIntoView({ block: "nearest" });
  }
});

for (const [button, action] of [[page.addPet, () => addPet(newPet())], [page.story, tellStory]]) {
  button.addEventListener("click", () => button.ariaBusy === "true" || press(button, action)); // one at a time
}
page.end.addEventListener("click", () => press(page.end, () => changeFault("DELETE")));
page.clear.addEventListener("click", () => {
  if (rows.size === 0 || confirm("Remove all requests that have ended, for all clients?")) {
    press(page.clear, () => act("DELETE", "/__admin/requests"));
  }
});
page.resetAll.addEventListener("click", () => {
  if (confirm("Reset pets, fault and requests, for all clients?")) {
    press(page.resetAll, () => act("POST", "/__admin/reset"));
  }
});
document.addEventListener("visibilitychange", read);
window.addEventListener("hashchange", () => location.reload());

page.tooOld.hidden = CSS.supports("color", "light-dark(red, red)"); // as in all that are named there
page.base.textContent = `${location.origin}/v1`;
page.curl.textContent = `curl -H "Authorization: Bearer $PETSTORE_API_KEY" ${location.origin}/v1/pets`;
// The key is taken from the address, as in /#key=abc, and removed there.
const fragment = location.hash.slice(1).replaceAll("+", "%2B"); // or it would be a space
const key = new URLSearchParams(fragment).get("key");
if (key) {
  storage.apiKey = key;
  history.replaceState(null, "", location.pathname);
}
if (storage.apiKey) {
  showDesk();
  read();
} else {
  askForKey();
}
