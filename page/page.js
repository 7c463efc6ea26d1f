// This script shows the standing fault, the journal and the pets, sets faults, and
// is a client itself. Clients can send any text, so text is never set as HTML.

import {
  capitalized, colourOf, comingOf, compare, counted, describe, durationOf, endOf, errorOf, excerpt, explain,
  extentOf, faultTextOf, hasFailed, isPreferred, isWaiting, labelOf, lineOf, meaningOf, mishapOf, outcomeOf, queryOf,
  repetitionOf, reveal, timeOf, verdictOf,
} from "./facts.js";

const interval = 250; // milliseconds between two readings
const timeLimit = 5000; // milliseconds for a request of the page for itself
const longLimit = 60_000; // the same, if the answer may be large
const quietTime = 3000; // milliseconds before something else is read aloud
const pointTime = 1000; // milliseconds for which the list stays for a pointer
const pace = 2500; // milliseconds between the steps of the story
const maxPets = 100; // as on a page of listPets
const maxRequests = 1000; // rows of what has ended, as many as the journal has
const maxHeard = 3; // requests that are read aloud one by one

// The faults that have a button, beside those of the words in openapi.json.
const presets = ["delay=3", "delay=30", "code=503", "code=429"];

// The elements of the page that have an id, by id.
const page = Object.fromEntries([...document.querySelectorAll("[id]")].map((one) => [one.id, one]));

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

// The key.

if (document.prerendering) { // and the storage is not yet that of the tab
  await new Promise((resolve) => document.addEventListener("prerenderingchange", resolve, { once: true }));
}

let storage = {}; // keeps the key until the tab is closed, if the browser lets it
try {
  storage = sessionStorage;
} catch {}

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

// What petstore says. It does not record the requests of this page for itself, and
// applies no fault to them.

// call returns the JSON of an answer. The error that stands for a refusal has its
// message and its status. If petstore does not answer, isSilence is true, although
// something else, such as a proxy, may have. Large integers are read as text, as
// numbers are exact to 2^53 only. Within a string, there is a backslash before each
// quote. Two tabs would wait for each other's answers, if these could be stored.
async function call(method, path, limit = timeLimit) {
  const headers = { Authorization: `Bearer ${storage.apiKey}` };
  const options = { method, headers, cache: "no-store", signal: AbortSignal.timeout(limit) };
  const [{ ok, status }, text] = await fetch(path, options)
    .then(async (response) => [response, await response.text()])
    .catch(() => [{}, ""]);
  let answer;
  try {
    answer = JSON.parse(text.replace(/"(\w+)":(\d{16,})/g, '"$1":"$2"') || "{}");
  } catch {} // it is not petstore's
  if (ok && answer) {
    return answer;
  }
  if (answer?.message && answer.status === status) {
    throw Object.assign(new Error(`${capitalized(answer.message)}.`), { status });
  }
  const instead = status ? `: what answers, with the status ${status}, is not petstore` : "";
  throw Object.assign(new Error(`Petstore does not answer${instead}.`), { isSilence: true });
}

// Numbers begin anew only when petstore is started again. Rows that were cleared are
// known, but not in the list.
let rows = new Map(); // since petstore was started, by the number of their request
let meta = { ended: 0, period: 0 }; // of the last journal

let reading = Promise.resolve(); // settled when all readings have ended
let timer = 0; // of the next one

// read reads what is new, after a reading under way, and again after a while.
function read() {
  reading = reading
    .then(() => storage.apiKey && readNews())
    .catch(showTrouble)
    .catch(console.error)
    .then(() => {
      follow();
      keepFocus();
      readAloud();
      clearTimeout(timer);
      timer = setTimeout(read, interval);
    });
  return reading;
}

// readNews reads and draws what is new. The request that ended last is read again, to
// see whether it is still the same.
async function readNews() {
  if (page.buttons.childElementCount === 0) {
    const openAPI = await call("GET", "/openapi.json");
    describe(openAPI);
    drawChoices(openAPI);
  }
  const fault = await call("GET", "/__admin/fault"); // small: silence is soon noticed
  const after = Math.max(0, meta.ended - 1);
  const journal = await call("GET", `/__admin/requests?history=true&after=${after}`, longLimit);
  const all = [...journal.requests, ...journal.waiting].sort((a, b) => a.arrived - b.arrived);
  const isOther = ({ arrived, time }) => rows.has(arrived) && rows.get(arrived).request.time !== time;
  if (journal.meta.ended < meta.ended || all.some(isOther)) {
    beginAnew();
    return;
  }
  settle();
  takeRequests(all);
  const isNewPeriod = journal.meta.period > meta.period;
  if (isNewPeriod) {
    emptyPets();
    if (meta.period > 0) {
      unheard.set("period", "Reset or cleared");
    }
  }
  pets.isStale ||= [...undrawn, ...waitingRows()].some(({ request }) => request.pet || !request.ended);
  meta = journal.meta;
  if (isNewPeriod || undrawn.size > 0) {
    compareRows();
    removeRows();
    drawRows();
  }
  for (const row of waitingRows()) {
    setText(row.firstChild.lastChild, durationOf(row.request));
  }
  drawSign(fault);
  while (pets.isStale) {
    await readPets();
  }
}

// beginAnew notes that petstore was started again.
function beginAnew() {
  waitingRows().forEach(lose);
  rows = new Map();
  meta = { ended: 0, period: 0 };
  unheard.set("period", "Petstore was started again");
}

// takeRequests notes what a journal says. That a request goes on waiting is not new.
function takeRequests(all) {
  const kindOf = ({ ended, body, fault } = {}) => JSON.stringify([ended, body, fault]);
  for (const request of all) {
    const row = rows.get(request.arrived) ?? addRow(request.arrived);
    const old = row.request;
    if (!old || isWaiting(old)) {
      row.request = request;
      if (kindOf(request) !== kindOf(old)) {
        row.line = lineOf(request);
        undrawn.add(row);
      }
    }
  }
  const known = new Set(all.map(({ arrived }) => arrived));
  waitingRows().filter(({ request }) => !known.has(request.arrived)).forEach(lose);
}

// lose notes that nobody knows what has become of a request: petstore was stopped, or
// more requests have ended than the journal keeps.
function lose(row) {
  row.request = { ...row.request, ended: 0 };
  undrawn.add(row);
}

function waitingRows() {
  return [...rows.values()].filter(({ request }) => isWaiting(request));
}

// countHeld counts the requests that a standing fault holds.
function countHeld() {
  return waitingRows().filter(({ request }) => request.fault && !isPreferred(request)).length;
}

// The pets. Until a reset, none is changed or removed.

let pets; // that have been read: their count and last id, and whether there may be more

function emptyPets() {
  pets = { count: 0, lastID: 0, isStale: true };
  page.petRows.replaceChildren();
}

// readPets reads and draws the next page of pets, the last of which stay.
async function readPets() {
  const added = await call("GET", `/__admin/pets?limit=${maxPets}&after=${pets.lastID}`, longLimit);
  for (const { id, name, status = "" } of added) {
    const cells = [["quiet", id], ["cut", excerpt(name)], ["quiet cut", excerpt(status)]];
    const parts = cells.map(([className, text]) => make("span", { className, title: text }, text));
    page.petRows.prepend(make("li", {}, ...parts));
    pets.count++;
    pets.lastID = id;
  }
  pets.isStale = added.length === maxPets;
  [...page.petRows.children].slice(maxPets).forEach((one) => one.remove());
  setText(page.petCount, pets.count > maxPets ? `the last ${maxPets} of ${pets.count}` : String(pets.count || "None"));
}

// The list follows its end, unless somebody reads, or aims at a row.

let follows = true; // whether it keeps its end in sight
let scrolledTo = 0; // where the script has scrolled to, of which the event may come late
let pointedAt = 0; // when the pointer last moved or pressed in it
let seen; // the last row, when the end was in sight

function isAtEnd() {
  const { scrollTop, clientHeight, scrollHeight } = page.list;
  return scrollTop + clientHeight > scrollHeight - 2; // as scrollTop may be a fraction
}

// settle decides whether the list follows. It does not while somebody reads: a row in
// sight is open or has the focus.
function settle() {
  const list = page.list.getBoundingClientRect();
  const isRead = [...page.rows.querySelectorAll("[open], :focus-visible")].some((one) => {
    const { top, bottom } = one.getBoundingClientRect();
    return bottom > list.top && top < list.bottom;
  });
  follows = (follows || isAtEnd()) && !isRead;
  page.list.className = follows ? "" : "still"; // so that the browser keeps what is in sight
}

// isAimedAt reports whether somebody may be about to press a row, or presses it.
function isAimedAt() {
  return Date.now() - pointedAt < pointTime || page.rows.matches(":active");
}

// follow shows the end of the list, if it follows.
function follow() {
  if (follows && !isAimedAt()) {
    page.list.scrollTop = page.list.scrollHeight;
    scrolledTo = page.list.scrollTop;
  }
  look();
}

// look says how many rows have come since the end of the list was in sight.
function look() {
  const all = allRows();
  seen = isAtEnd() ? all.at(-1) : seen;
  const below = all.slice(all.indexOf(seen) + 1).filter((row) => !row.hidden).length;
  setText(page.below, `${below} new below`);
  page.below.hidden = below === 0;
}

page.list.addEventListener("scroll", () => {
  if (page.list.scrollTop !== scrolledTo) {
    follows = isAtEnd();
  }
});
for (const type of ["pointermove", "pointerdown"]) {
  page.list.addEventListener(type, () => (pointedAt = Date.now()));
}
page.below.addEventListener("click", () => {
  follows = true;
  pointedAt = 0;
  follow();
  page.list.focus({ preventScroll: true }); // as the button is hidden then
});

// A row has its request, the facts of it beside others, the line that equal requests
// share, its run, which is the rows since petstore was started, and, once it is drawn,
// the text to be filtered.

const undrawn = new Set(); // rows of which something is to be drawn

// allRows returns the rows of the list, in their order.
function allRows() {
  return [...page.rows.children];
}

function addRow(arrived) {
  const row = make("details", { run: rows, facts: {} }, make("summary", { className: "columns" }));
  row.addEventListener("toggle", () => {
    if (row.open) {
      showDetail(row);
      row.scrollIntoView({ block: "nearest" }); // if there is no room below it
    }
  });
  page.rows.append(row);
  rows.set(arrived, row);
  return row;
}

// compareRows notes what follows from new requests, also for earlier and later ones.
function compareRows() {
  for (const equals of Map.groupBy(rows.values(), (row) => row.line ?? row).values()) {
    compare(equals).forEach((facts, index) => {
      const row = equals[index];
      if (JSON.stringify(facts) !== JSON.stringify(row.facts)) {
        row.facts = facts;
        undrawn.add(row);
      }
    });
  }
}

// removeRows removes the rows that are too many, unless they are open: those that
// ended first. Twice as many are left while somebody reads, as what is read would move
// if nothing were above it any more, and all while somebody aims.
function removeRows() {
  const ended = [...new Set([...allRows(), ...rows.values()])].filter(({ request }) => !isWaiting(request));
  ended.sort((a, b) => endOf(a.request) - endOf(b.request));
  const old = isAimedAt() ? [] : ended.slice(0, -maxRequests * (follows ? 1 : 2));
  for (const row of old.filter(({ open }) => !open)) {
    row.run.delete(row.request.arrived);
    row.remove();
  }
}

// drawRows draws what is new, but for a row that is pressed, whose click would be
// lost.
function drawRows() {
  for (const row of undrawn) {
    if (!row.matches(":active")) {
      drawRow(row);
      undrawn.delete(row);
    }
  }
  drawStart();
  filter();
}

// drawRow draws what a request was, what has become of it, and what it changed.
function drawRow(row) {
  const { request, facts } = row;
  const { arrived, time, method, url, headers, body, ignored } = request;
  const cell = (className, text) => make("span", { className }, excerpt(text));
  const note = (className, text) => text && cell(className, text);
  const error = errorOf(request);
  const verdict = verdictOf(request, facts);
  const doubt = facts.isLater ? "verdict bad" : "warn";
  const repetition = facts.earlier && `same as request ${repetitionOf(facts)}`;
  const cells = [
    cell(`chip ${colourOf(request)}`, outcomeOf(request)),
    make("span", { className: "what" },
      cell("mono cut", `${method} ${url}`),
      note("mono bad", faultTextOf(request)),
      note(facts.same ? doubt : hasFailed(request) ? colourOf(request) : "quiet", verdict),
      note(facts.early ? "warn" : "quiet", repetition),
      note("warn", error),
      note("warn", ignored && `ignored: ${ignored.join(", ")}`),
      note("body quiet cut", !repetition && !error && body)),
    cell("client cut quiet", isOfPage(headers) ? "petstore's page" : (headers.Origin ?? headers["User-Agent"] ?? "")),
  ];
  row.firstChild.replaceChildren(
    cell("quiet", String(arrived)),
    cell("quiet", timeOf(time)),
    ...cells,
    cell("quiet", durationOf(request)),
  );
  const fields = [headers, request.answerHeaders ?? {}].flatMap(Object.entries).map((field) => field.join(": "));
  const texts = [...cells.map((one) => one.textContent), request.operation, url, ...fields, body, request.answer];
  row.text = texts.join("\n").toLowerCase();
  if (row.open) {
    showDetail(row);
  }
  if (hasFailed(request) || repetition) {
    unheard.set(row, [`Request ${arrived}: ${outcomeOf(request)}`, verdict, repetition].filter(Boolean).join(", "));
  }
}

// isOfPage reports whether this page has sent a request, by its headers.
function isOfPage({ Origin: origin }) {
  return origin === location.origin;
}

// showDetail shows what was sent, beside what was answered.
function showDetail(row) {
  const { request, facts } = row;
  const { method, url, headers, body, status, answer, answerHeaders, client } = request;
  const hasBody = method !== "HEAD";
  const fate = status === 0 ? "not sent" : mishapOf(request);
  const answerTitle = ["Answer", fate, hasBody && extentOf(answer, answerHeaders)];
  const earlier = row.run.get(facts.earlier);
  const link = make("button", { type: "button" }, `Show request ${facts.earlier}`);
  link.addEventListener("click", () => {
    showAll();
    earlier.open = true;
    earlier.firstChild.focus();
  });
  row.querySelector(".detail")?.remove();
  row.append(make("div", { className: "detail" },
    make("p", {}, explain(request), " ", make("span", { className: "quiet" }, `From ${client}.`)),
    earlier?.isConnected && make("p", {}, link),
    makePart(["Sent", extentOf(body, headers)], `${method} ${url}`, headers, body),
    (answer || status > 0) && makePart(answerTitle, status || "", answerHeaders, hasBody && answer)));
}

// makePart returns a message: its first line and its body, and its headers, which may
// be many. A long one scrolls.
function makePart(title, line, headers = {}, body) {
  const fields = Object.entries(headers).map((field) => field.join(": "));
  const text = `${[line, body].filter(Boolean).join("\n").trimEnd()}\n\n`;
  const quiet = make("span", { className: "quiet" }, reveal(fields.join("\n")));
  const heading = title.filter(Boolean).join(", ");
  const message = make("pre", { tabIndex: 0, role: "group", ariaLabel: heading }, reveal(text), quiet);
  return make("section", {}, make("h3", {}, heading), message);
}

// clear takes rows out of the list, of this page only.
function clear(isCleared) {
  allRows().filter(isCleared).forEach((row) => row.remove());
  drawRows();
}

page.clear.addEventListener("click", () => clear(({ request }) => !isWaiting(request)));

// The filter.

// filter shows the rows that have all words of the filter in what they show, but for
// their number and times, or in what was sent and answered. It counts the rows, and
// draws a line between those that have a reset between them.
function filter() {
  const words = page.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const isAny = page.failed.ariaPressed === "false";
  const all = allRows();
  let above; // the last row that is shown
  for (const row of all) {
    const { request, facts, text } = row;
    const isFound = (isAny || hasFailed(request) || facts.same || facts.early) && words.every((word) => text?.includes(word));
    row.hidden = !isFound;
    if (isFound) {
      row.dataset.divider = dividerOf(above, row);
      above = row;
    }
  }
  setText(page.last, dividerOf(above, { run: rows, request: meta }));
  const shown = all.filter((row) => !row.hidden).length;
  const waiting = all.filter(({ request }) => isWaiting(request)).length;
  const found = shown < all.length ? `${shown} of ` : "";
  const which = all.length - waiting < maxRequests ? "" : "the last "; // as older ones are gone
  const rest = waiting > 0 ? `, ${waiting.toLocaleString("en")} waiting` : "";
  const counts = found + which + counted(all.length, "request") + rest;
  setText(page.count, all.length > 0 ? counts : "Requests");
  page.noneFound.hidden = all.length === 0 || shown > 0;
  follow();
}

// dividerOf says what was between two requests.
function dividerOf(above = {}, below) {
  if (!above.run || (above.run === below.run && above.request.period === below.request.period)) {
    return "";
  }
  return above.run === below.run ? "Reset or cleared" : "Petstore was started again";
}

// changeFilter keeps what is read in sight when the filter is gone.
function changeFilter() {
  filter();
  unheard.set("found", page.count.textContent);
  if (!page.filter.value) {
    page.rows.querySelector("[open]:not([hidden])")?.scrollIntoView({ block: "nearest" });
  }
}

// showAll ends the filter.
function showAll() {
  page.filter.value = "";
  page.failed.ariaPressed = "false";
  filter();
}

page.filter.addEventListener("input", changeFilter);
page.failed.addEventListener("click", () => {
  page.failed.ariaPressed = String(page.failed.ariaPressed === "false");
  changeFilter();
});

// The sign.

let lastKnown = ""; // what it has said of petstore

// drawSign says what the next request gets, how many are held, and what the story
// does.
function drawSign(fault) {
  const { applied } = fault; // or nothing, if no fault is set
  const { failure, isNext, range } = applied === undefined ? {} : comingOf(fault);
  const held = countHeld();
  const heldText = held > 0 ? `${counted(held, "request")} held. ` : "";
  const before = (page.start.hidden ? "" : story) + heldText;
  let headline = `${before ? "New requests" : "Requests"} are answered as usual.`;
  let sentence = applied > 0 ? `The last fault was applied to ${counted(applied, "request")}.` : "";
  if (failure) {
    headline = capitalized(labelOf(failure)) + (isNext ? "" : " to come:");
    sentence = `${range}. ${meaningOf(failure)}`;
  }
  lastKnown = `Last known: ${heldText}${headline} ${sentence}`;
  setText(page.end, held > 0 ? "End and release" : "End fault");
  page.end.hidden = !failure && held === 0;
  const isCalm = !before && !failure;
  const className = held > 0 || isNext ? "active" : isCalm ? "calm" : "";
  showSign(className, before, headline, sentence, failure ? queryOf(fault) : "");
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
  const headline = isSilence ? message : "This page cannot show what petstore answers.";
  const sentences = ["This page goes on asking.", !isSilence && message, lastKnown];
  showSign("", "", headline, sentences.filter(Boolean).join(" "), "");
}

// showSign also has the sign read aloud. That its sentence alone changes, such as a
// number in it, is not new.
function showSign(className, before, headline, sentence, query) {
  const isShown = Object.entries({ before, headline, query }).every(([id, text]) => page[id].textContent === text);
  if (!isShown || unheard.has("sign")) {
    unheard.set("sign", `${before}${headline} ${sentence}`);
  }
  page.sign.className = className;
  setText(page.before, before);
  setText(page.headline, headline);
  setText(page.sentence, sentence);
  setText(page.query, query);
  setText(page.title, className === "calm" ? "Petstore" : `${before}${headline.replace(/[.:]$/, "")} – Petstore`);
}

// What is read aloud, to those who do not see it.

const unheard = new Map(); // texts by their row or, if they are of no request, their kind
let heardAt = 0; // when some were read last

// readAloud says what is new, in the order in which it has come, but not all the time.
// Of many requests, it prefers those that add a pet twice. What was there when the
// page was opened is not new.
function readAloud() {
  if (unheard.size === 0 || Date.now() - heardAt < quietTime) {
    return;
  }
  const all = [...unheard.keys()].filter((key) => key.facts);
  all.sort((a, b) => Boolean(b.facts.same) - Boolean(a.facts.same));
  const others = all.slice(heardAt === 0 ? 0 : maxHeard);
  others.forEach((row) => unheard.delete(row));
  const rest = heardAt > 0 && others.length > 0 && `and ${counted(others.length, "other request")}`;
  const texts = [...unheard.values(), rest].filter(Boolean);
  page.heard.replaceChildren(...texts.map((text) => make("p", {}, excerpt(text))));
  heardAt = Date.now();
  unheard.clear();
}

// tell shows a text, if there is one, and has it read aloud.
function tell(text, place = page.notice) {
  if (text) {
    place.textContent = text;
    place.scrollIntoView({ block: "nearest" });
    unheard.set("notice", text);
  }
}

// What an action was answered goes with the next one, whatever that is for.
for (const type of ["pointerdown", "keydown"]) {
  window.addEventListener(type, () => (page.notice.textContent = ""));
}

// What a person does.

// press marks a button for as long as its action takes, in which it cannot be pressed
// again, and tells what that returns, or why it was refused.
async function press(button, action) {
  if (button.ariaBusy === "true") {
    return;
  }
  story = "";
  button.ariaBusy = "true";
  tell(await action().catch(({ message }) => message));
  button.ariaBusy = "false";
}

let focused = page.scope; // what has had the focus last

// keepFocus moves the focus from what is hidden.
function keepFocus() {
  if (!focused.checkVisibility()) {
    [page.scope, page.more].find((one) => one.checkVisibility())?.focus({ preventScroll: true });
  }
}

window.addEventListener("focusin", ({ target }) => (focused = target));

// act changes something, and shows what came of it.
async function act(method, path) {
  await call(method, path);
  await read();
}

// changeFault sets or ends the fault, which releases what the old one holds.
async function changeFault(method, query = "") {
  const held = countHeld();
  await act(method, `/__admin/fault?${query}`);
  return held > 0 && `${counted(held, "request")} released`;
}

// drawChoices draws the buttons of the faults, each below the moment when it acts,
// which is the beginning of its meaning. They are for the requests that are chosen.
function drawChoices({ components: { schemas: { FaultCode, FaultOperation } } }) {
  const words = FaultCode.oneOf.flatMap((one) => one.enum ?? []).filter((code) => code !== "ok");
  let lastMoment;
  for (const query of [...presets, ...words.map((code) => `code=${code}`)]) {
    const fault = Object.fromEntries(new URLSearchParams(query));
    const meaning = meaningOf(fault);
    const [moment] = meaning.split(",");
    const button = make("button", { type: "button", title: `${query}: ${meaning}` }, labelOf(fault));
    button.addEventListener("click", async () => {
      await press(button, () => changeFault("PUT", query + page.scope.value));
      page.controls.hidePopover(); // what it does is below
    });
    page.buttons.append(moment === lastMoment ? "" : make("h3", { className: "quiet" }, moment), button);
    lastMoment = moment;
  }
  for (const operation of FaultOperation.enum) {
    page.scope.append(
      make("option", { value: `&times=1&operation=${operation}` }, `The next ${operation}`),
      make("option", { value: `&operation=${operation}` }, `Every ${operation}`),
    );
  }
}

// Another fault is set by its query, as with curl. A word is a code. The browser shows
// a refusal beside the field.
page.another.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = page.field.value.trim();
  const query = new URLSearchParams(text.includes("=") ? text : { code: text });
  const refuse = ({ message }) => page.field.setCustomValidity(message);
  await press(event.submitter, () => changeFault("PUT", query).catch(refuse));
  if (page.field.reportValidity()) {
    page.controls.hidePopover();
  }
});
page.field.addEventListener("input", () => page.field.setCustomValidity(""));

page.end.addEventListener("click", () => press(page.end, () => changeFault("DELETE")));

page.resetAll.addEventListener("click", () => {
  if (confirm("Reset the pets and the fault for all clients, and clear this list?")) {
    press(page.resetAll, async () => {
      await act("POST", "/__admin/reset");
      clear(({ run, request }) => run !== rows || request.period < meta.period);
    });
  }
});

// addPet adds a pet as a client does: the request is recorded, and gets faults. What
// has become of it, its row says, unless petstore is not there.
async function addPet(pet, preferences = {}) {
  const headers = { Authorization: `Bearer ${storage.apiKey}`, "Content-Type": "application/json", ...preferences };
  await fetch("/v1/pets", { method: "POST", headers, body: pet })
    .then((response) => response.text())
    .catch(() => {});
  await act("GET", "/__admin/fault");
}

// newPet returns a pet that no request since the reset has sent, or it would seem to
// be sent again.
function newPet() {
  const number = meta.total + 1;
  return JSON.stringify({ name: number === 1 ? "Rex" : `Rex ${number}`, categoryId: 7 });
}

page.addPet.addEventListener("click", () => press(page.addPet, () => addPet(newPet())));

// The story of a lost answer.

let story = ""; // what the sign says of it

// tellStory adds a pet, loses the answer, and adds it again, as many clients do,
// unless there was a reset in between. It leaves the standing fault to others. What
// came of it, the journal says.
async function tellStory() {
  const pet = newPet();
  const { period } = meta;
  story = "This page adds a pet, gets no answer, and will try again. ";
  await addPet(pet, { Prefer: "code=lost" });
  await new Promise((resolve) => setTimeout(resolve, pace));
  await read();
  if (meta.period === period) {
    await addPet(pet, { Prefer: "code=ok" });
    const told = [...rows.values()].filter(({ request }) => request.period === period && request.body === pet);
    const ids = told.flatMap(({ request }) => request.pet ?? []);
    story = ids.length > 1 ? `The pet is there twice: ${ids.join(" and ")}. ` : "";
    await read();
  }
}

// drawStart offers the story until a client has sent something.
function drawStart() {
  const all = allRows();
  const isOfStory = ({ run, request }) =>
    run === rows && request.period === meta.period && isOfPage(request.headers) && isPreferred(request);
  page.start.hidden = !all.every(isOfStory);
  page.offer.hidden = all.length > 0;
}

page.story.addEventListener("click", () => press(page.story, tellStory));

// How to call petstore.

page.base.textContent = `${location.origin}/v1`;
page.curl.textContent = `curl -H 'Authorization: Bearer ***' ${location.origin}/v1/pets`;
const json = `-H 'Content-Type: application/json' -d '${JSON.stringify({ name: "Tom", categoryId: 7 })}'`;
page.curlPost.textContent = `${page.curl.textContent} ${json}`;

// A line is copied with the key, which is not shown, also if a person copies it by
// the keyboard, as where the clipboard is not for scripts.
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

// The start.

page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  storage.apiKey = page.keyField.value.replace(/[^!-~]/g, ""); // no key has a space
  showDesk();
  press(event.submitter, read);
});

matchMedia("(width < 48rem)").addEventListener("change", () => page.controls.hidePopover());
document.addEventListener("visibilitychange", read);
window.addEventListener("hashchange", () => location.reload());

page.tooOld.hidden = CSS.supports("color", "light-dark(red, red)"); // newest of all
if (storage.apiKey) {
  showDesk();
  read();
} else {
  askForKey();
}
