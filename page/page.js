// This script shows the standing fault, the journal and the pets, sets faults, and is a
// client itself. Clients can send any text, so text is never set as HTML.

import {
  capitalized, colourOf, comingOf, compare, counted, describe, durationOf, errorOf, excerpt, explain, extentOf,
  hasFailed, isFailure, isPreferred, isWaiting, labelOf, lineOf, meaningOf, mishapOf, outcomeOf, pauseOf, queryOf,
  reveal, timeOf, verdictOf,
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

if (document.prerendering) { // and the storage is not yet that of the tab
  await new Promise((resolve) => document.addEventListener("prerenderingchange", resolve, { once: true }));
}

let storage = {}; // keeps the key until the tab is closed, if the browser lets it
try {
  storage = sessionStorage;
} catch {}

// What is known of the service. The numbers of requests and periods begin anew only when
// petstore is started again. Rows that were cleared are known, and not in the list.

let rows = new Map(); // since petstore was started, by the number of their request
let meta = { ended: 0, period: 0 }; // of the last journal
let pets = { count: 0, lastID: 0, isStale: true }; // that have been read
const undrawn = new Set(); // rows of which something is to be drawn

// Requests of the page for itself. The service does not record them, and applies no fault
// to them.

// call returns the JSON of an answer. The error that stands for a refusal has its message
// and its status. If petstore does not answer, isSilence is true, although something else,
// such as a proxy, may have. Large integers are read as text, as numbers are exact to 2^53
// only. Within a string, there is a backslash before each quote. Two tabs would wait for
// each other's answers, if these could be stored.
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

// readNews reads and draws what is new, and reports whether this is all. The request that
// ended last is read again, to see whether it is still the same.
async function readNews() {
  if (page.buttons.childElementCount === 0) {
    drawChoices(describe(await call("GET", "/openapi.json")));
  }
  const fault = await call("GET", "/__admin/fault"); // small: silence is soon noticed
  const after = Math.max(0, meta.ended - 1);
  const journal = await call("GET", `/__admin/requests?history=true&after=${after}`, longLimit);
  const all = [...journal.requests, ...journal.waiting].sort((a, b) => a.arrived - b.arrived);
  const isOther = ({ arrived, time }) => rows.has(arrived) && rows.get(arrived).request.time !== time;
  if (journal.meta.ended < meta.ended || all.some(isOther)) {
    beginAnew();
    return false;
  }
  settle();
  const isNew = journal.meta.period > meta.period;
  takeRequests(all, journal.meta);
  if (isNew || undrawn.size > 0) {
    compareRows();
    removeRows();
    drawRows();
  }
  for (const row of waitingRows()) {
    setText(row.firstChild.lastChild, durationOf(row.request));
  }
  drawSign(fault);
  follow();
  return !pets.isStale || readPets();
}

// beginAnew notes that petstore was started again. What had not ended has no outcome.
function beginAnew() {
  waitingRows().forEach(lose);
  drawRows();
  rows = new Map();
  meta = { ended: 0, period: 0 };
  seen = 0;
  divide("Petstore was started again");
}

// takeRequests notes what a journal says. That a request goes on waiting is not new.
function takeRequests(all, now) {
  const kindOf = ({ ended, body, fault } = {}) => JSON.stringify([ended, body, fault]);
  for (const request of all) {
    const row = rows.get(request.arrived) ?? addRow(request);
    const old = row.request;
    if (!(old?.ended > 0)) {
      row.request = request;
      if (kindOf(request) !== kindOf(old)) {
        row.line = lineOf(request);
        undrawn.add(row);
      }
    }
  }
  const known = new Set(all.map(({ arrived }) => arrived));
  waitingRows().filter(({ request }) => !known.has(request.arrived)).forEach(lose);
  if (now.period > meta.period) {
    if (meta.period > 0 && now.period > (allRows().at(-1)?.request.period ?? Infinity)) {
      divide(`Reset or cleared at ${timeOf(now.since)}`);
    }
    pets = { count: 0, lastID: 0, isStale: true };
    page.petRows.replaceChildren();
  }
  pets.isStale ||= undrawn.size + waitingRows().length > 0; // as each may have added one
  meta = now;
}

// divide draws a line below the rows, or changes the last one, if nothing has followed it.
function divide(text) {
  if (page.rows.lastChild?.matches("p")) {
    page.rows.lastChild.remove();
  }
  if (page.rows.lastChild) {
    page.rows.append(make("p", { className: "quiet" }, text));
    unheard.period = text;
  }
}

// lose notes that it is not known what has become of a request, as when petstore was
// stopped, or more requests have ended than the journal keeps.
function lose(row) {
  row.request = { ...row.request, ended: 0 };
  undrawn.add(row);
}

// readPets reads and draws the next page of pets, the last of which stay. It reports
// whether it was the last page. Until a reset, no pet is changed or removed.
async function readPets() {
  const added = await call("GET", `/__admin/pets?limit=${maxPets}&after=${pets.lastID}`, longLimit);
  for (const { id, name, status = "" } of added) {
    const cells = [["quiet", id], ["cut", excerpt(name)], ["quiet cut", excerpt(status)]];
    const parts = cells.map(([className, text]) => make("span", { className, title: text }, text));
    page.petRows.prepend(make("li", {}, ...parts));
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
  const headline = isSilence ? message : "This page cannot show what petstore answers.";
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

// press marks a button for as long as its action takes, in which it cannot be pressed
// again, and tells what that returns. The focus does not stay on a button that is hidden by
// then.
async function press(button, action, place) {
  if (button.ariaBusy === "true") {
    return;
  }
  const focused = document.activeElement;
  page.notice.textContent = "";
  page.refusal.textContent = "";
  story = undefined;
  button.ariaBusy = "true";
  tell(await action(), place);
  page.field.ariaInvalid = String(page.refusal.textContent !== "");
  button.ariaBusy = "false";
  if (!focused.checkVisibility()) {
    [page.scope, page.more].find((one) => one.checkVisibility())?.focus({ preventScroll: true });
  }
}

let unheard = {}; // the last text of each kind that is to be read aloud
const unheardRows = new Map(); // what is to be said of requests, by their row
let heardAt = 0; // when some were read last

// readAloud says what is new to those who do not see it, but not all the time. Pets that are
// there twice come first.
function readAloud() {
  const said = [...unheardRows].sort(([a], [b]) => Boolean(b.facts.same) - Boolean(a.facts.same));
  const others = said.length - maxHeard;
  const texts = [...said.slice(0, maxHeard).map(([, text]) => text), others > 0 && `and ${others} others`];
  const all = [...texts, ...Object.values(unheard)].filter(Boolean);
  if (all.length > 0 && Date.now() - heardAt > quietTime) {
    page.heard.replaceChildren(...all.map((text) => make("p", {}, excerpt(text))));
    heardAt = Date.now();
    unheard = {};
    unheardRows.clear();
  }
}

// tell shows a text, if there is one, and says it to those who do not see it.
function tell(text, place = page.notice) {
  if (text) {
    place.textContent = text;
    place.scrollIntoView({ block: "nearest" });
    unheard.notice = text;
  }
}

// act changes something, and returns the message of a refusal.
async function act(method, path) {
  const refusal = await call(method, path).then(() => "", ({ message }) => message);
  await read();
  return refusal;
}

// changeFault sets or ends the fault, which releases what the old one holds.
async function changeFault(method, query = "") {
  const held = heldRows().length;
  const refusal = await act(method, `/__admin/fault?${query}`);
  return refusal || (held > 0 && `${counted(held, "request")} released`);
}

// addPet adds a pet as a client does: the request is recorded, and gets faults. What has
// become of it, its row says, unless petstore is not there.
async function addPet(pet, preferences = {}) {
  const headers = { Authorization: `Bearer ${storage.apiKey}`, "Content-Type": "application/json", ...preferences };
  await fetch("/v1/pets", { method: "POST", headers, body: pet })
    .then((response) => response.text())
    .catch(() => {});
  return act("GET", "/__admin/fault");
}

// newPet returns a pet that no request since the reset has sent, or it would seem to be sent
// again.
function newPet() {
  const number = meta.total + waitingRows().length + 1;
  return JSON.stringify({ name: number === 1 ? "Rex" : `Rex ${number}`, categoryId: 7 });
}

let story; // what the sign says of the story: its text, and what may come next

// tellStory adds a pet, loses the answer, and adds it again, as many clients do, unless there
// was a reset in between. It leaves the standing fault to others. What came of it, the
// journal says.
async function tellStory() {
  const pet = newPet();
  const { period } = meta;
  showAll();
  story = { text: "This page adds a pet, gets no answer, and will try again. " };
  await addPet(pet, { Prefer: "code=lost" });
  await new Promise((resolve) => setTimeout(resolve, pace));
  await read();
  const refusal = meta.period === period && (await addPet(pet, { Prefer: "code=ok" }));
  const told = [...rows.values()].map(({ request }) => request).filter(({ body }) => body === pet);
  const ids = told.flatMap((request) => (request.period === meta.period && request.pet) || []);
  const next = "Now set a fault, and send a request from your client.";
  story = ids.length > 1 ? { text: `The pet is there twice: ${ids.join(" and ")}. `, next } : undefined;
  await read();
  return refusal;
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

// drawChoices draws the buttons of the faults, each below the moment when it acts, which is
// the beginning of its meaning.
function drawChoices(openAPI) {
  const { FaultCode, FaultOperation } = openAPI.components.schemas;
  const words = FaultCode.oneOf.flatMap((one) => one.enum ?? []).filter((code) => code !== "ok");
  let lastMoment;
  for (const query of [...presets, ...words.map((code) => `code=${code}`)]) {
    const fault = Object.fromEntries(new URLSearchParams(query));
    const meaning = meaningOf(fault);
    const [moment] = meaning.split(",");
    const button = make("button", { type: "button", title: `${query}: ${meaning}` }, labelOf(fault));
    button.addEventListener("click", async () => {
      await press(button, () => changeFault("PUT", [query, page.scope.value].filter(Boolean).join("&")));
      page.controls.hidePopover(); // what it does is below
    });
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
  const { next, failure, range } = isSet ? comingOf(fault) : {};
  const held = heldRows().length;
  const heldText = held > 0 ? `${counted(held, "request")} held. ` : "";
  const told = page.start.hidden ? {} : (story ?? {});
  const before = (told.text ?? "") + heldText;
  let className = told.text || failure ? "told" : "calm";
  let headline = `${before ? "New requests" : "Requests"} are answered as usual.`;
  let sentence = isSet ? `The last fault is used up: it was applied to ${counted(fault.applied, "request")}.` : "";
  if (next) {
    const isNow = !failure || isFailure(next);
    headline = capitalized(labelOf(isNow ? next : failure)) + (isNow ? "" : " to come:");
    sentence = `${isNow ? "" : "as usual "}${range}. ${failure ? meaningOf(failure) : ""}`;
  }
  if (held > 0 || isFailure(next)) {
    className = "active";
  }
  lastKnown = `Last known: ${heldText}${headline} ${sentence}`;
  setText(page.end, held > 0 ? "End and release" : "End fault");
  page.end.hidden = !next && held === 0;
  showSign(className, before, headline, (!next && told.next) || sentence, next ? queryOf(fault) : "");
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
  setText(page.title, className === "calm" ? "Petstore" : `${before}${headline.replace(/[.:]$/, "")} – Petstore`);
}

// The list.

let follows = true; // whether the list keeps its end in sight
let scrolledTo = 0; // where the script has scrolled to, of which the event may come late
let pointedAt = 0; // when the pointer last moved or pressed in the list
let seen = 0; // the number of the last request, when the end was in sight

function isAtEnd() {
  const { scrollTop, clientHeight, scrollHeight } = page.list;
  return scrollTop + clientHeight > scrollHeight - 2; // as scrollTop may be a fraction
}

// settle decides whether the list follows its end. It does not while somebody reads: a row
// in sight is open or has the focus.
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

// follow shows the end of the list, unless somebody aims at a row.
function follow() {
  if (follows && !isAimedAt()) {
    page.list.scrollTop = page.list.scrollHeight;
    scrolledTo = page.list.scrollTop;
  }
  look();
}

// look says how many rows have come since the end of the list was in sight.
function look() {
  const numbers = allRows().filter((row) => row.run === rows && !row.hidden).map(({ request }) => request.arrived);
  seen = isAtEnd() ? Math.max(seen, ...numbers) : seen;
  const below = numbers.filter((number) => number > seen).length;
  setText(page.below, `${below} new below`);
  page.below.hidden = below === 0;
}

// allRows returns the rows of the list, in their order.
function allRows() {
  return [...page.rows.getElementsByTagName("details")];
}

// waitingRows returns the rows of the requests that have not ended.
function waitingRows() {
  return [...rows.values()].filter(({ request }) => isWaiting(request));
}

// heldRows returns the rows of the requests that a standing fault holds.
function heldRows() {
  return waitingRows().filter(({ request }) => request.fault && !isPreferred(request));
}

function addRow({ arrived, period }) {
  const row = make("details", {}, make("summary", { className: "columns" }));
  row.run = rows;
  row.facts = {};
  row.addEventListener("toggle", () => {
    if (row.open) {
      showDetail(row);
      row.scrollIntoView({ block: "nearest" }); // if there is no room below it
      row.firstChild.scrollIntoView({ block: "nearest" }); // if it is too high
    }
  });
  const last = page.rows.lastChild;
  if (last?.request && last.request.period !== period) {
    divide("Reset or cleared");
  }
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

// removeRows removes the rows that are too many, unless they are open, those from before a
// restart first, and the dividers that have no row above them. While somebody reads or aims at
// a row, it would move: more are left.
function removeRows() {
  const orderOf = ({ run, request }) => (run === rows ? request.ended : 0);
  const ended = [...new Set([...allRows(), ...rows.values()])].filter(({ request }) => !isWaiting(request));
  ended.sort((a, b) => orderOf(a) - orderOf(b));
  const old = isAimedAt() ? [] : ended.slice(0, -maxRequests * (follows ? 1 : 2));
  for (const row of old.filter(({ open }) => !open)) {
    row.run.delete(row.request.arrived);
    row.remove();
  }
  page.rows.querySelectorAll(":scope > p:has(+ p)").forEach((one) => one.remove());
  page.rows.querySelector(":scope > p:first-child")?.remove();
}

// clear takes rows out of the list, of this page only.
function clear(isCleared) {
  allRows().filter(isCleared).forEach((row) => row.remove());
  removeRows();
  drawRows();
}

// drawRows draws what is new. The story is offered until a client has sent something.
function drawRows() {
  undrawn.forEach((row) => {
    if (!row.matches(":active")) { // or the click would be lost
      drawRow(row);
      undrawn.delete(row);
    }
  });
  const isOfStory = ({ run, request }) =>
    run === rows && request.period === meta.period && isOfPage(request.headers) && isPreferred(request);
  page.start.hidden = !allRows().every(isOfStory);
  page.offer.hidden = allRows().length > 0;
  filter();
}

// drawRow draws what a request was, what has become of it, and what it changed.
function drawRow(row) {
  const { request, facts } = row;
  const { arrived, time, method, url, headers, body, fault, ignored } = request;
  const cell = (className, text) => make("span", { className }, excerpt(text));
  const note = (className, text) => text && cell(className, text);
  const query = fault && queryOf(fault).replaceAll("&", " ");
  const isSilent = isPreferred(request) && !isFailure(fault); // as the page's own code=ok is
  const faultText = isPreferred(request) ? `Prefer: ${query}` : query?.replace("code=", "");
  const verdict = verdictOf(request, facts);
  const doubt = facts.isLater ? "verdict bad" : "warn";
  const error = errorOf(request);
  const cells = [
    cell(`chip ${colourOf(request)}`, outcomeOf(request)),
    make("span", { className: "what" },
      cell("mono cut", `${method} ${url}`),
      note(`mono ${isFailure(fault) ? "bad" : "quiet"}`, !isSilent && faultText),
      note(facts.same ? doubt : hasFailed(request) ? colourOf(request) : "quiet", verdict),
      facts.earlier && referTo(row, "span"),
      note("error warn", error),
      note("warn", ignored && `ignored: ${ignored.join(", ")}`),
      note("body quiet cut", !error && !facts.earlier && body)),
    cell("client cut quiet", isOfPage(headers) ? "petstore's page" : (headers.Origin ?? headers["User-Agent"] ?? "")),
  ];
  row.className = isWaiting(request) ? "waiting" : "";
  row.firstChild.replaceChildren(
    cell("mono quiet", String(arrived)),
    cell("mono quiet", timeOf(time)),
    ...cells,
    cell("quiet", durationOf(request)),
  );
  const fields = [headers, request.answerHeaders ?? {}].flatMap(Object.entries).map((field) => field.join(": "));
  const texts = [...cells.map((one) => one.textContent), request.operation, url, ...fields, body, request.answer];
  row.text = texts.join("\n").toLowerCase();
  if (row.open) {
    showDetail(row);
  }
  if (hasFailed(request) || facts.earlier) {
    const reference = facts.earlier && referTo(row, "span").textContent;
    const said = [`Request ${arrived}: ${outcomeOf(request)}`, verdict, reference];
    unheardRows.set(row, said.filter(Boolean).join(", "));
  }
}

// isOfPage reports whether this page has sent the request with these headers.
function isOfPage({ Origin: origin }) {
  return origin === location.origin;
}

// referTo says of which earlier request one is the same, with a link there: within a summary,
// which is a button itself, a span for pointers, and in the detail a button.
function referTo({ run, facts }, tag) {
  const { earlier, early } = facts;
  const link = make(tag, { className: "link" }, `request ${earlier}`);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const row = run.get(earlier);
    if (!row?.isConnected) {
      tell(`Request ${earlier} is not in the list any more`);
      return;
    }
    if (row.hidden) {
      showAll();
    }
    row.open = true;
    row.firstChild.focus();
  });
  const patience = early && `. Retry-After ${early} had not passed`;
  const className = patience ? "warn" : "quiet";
  return make("span", { className }, "same as ", link, `, ${pauseOf(facts)}`, patience);
}

// showDetail shows what was sent, beside what was answered.
function showDetail(row) {
  const { request, facts } = row;
  const { time, method, url, headers, body, status, answer, answerHeaders, client, ignored = [] } = request;
  const hasBody = method !== "HEAD";
  const fate = status === 0 ? "not sent" : mishapOf(request);
  const answerTitle = ["Answer", fate, hasBody && extentOf(answer, answerHeaders)];
  const quiet = make("small", {}, `${time.replace("T", " ").replace("Z", " UTC")}, from ${client}`);
  const parts = [
    make("p", {}, explain(request), " ", quiet),
    ignored.length > 0 && make("p", {}, reveal(`Ignored: ${ignored.join(", ")}`)),
    facts.earlier && make("p", {}, referTo(row, "button")),
    part(["Sent", extentOf(body, headers)], `${method} ${url}`, headers, body),
    (answer || status > 0) && part(answerTitle, status || "", answerHeaders, hasBody && answer),
  ];
  row.querySelector(".detail")?.remove();
  row.append(make("div", { className: "detail" }, ...parts));
}

// part returns a message: its first line and its body, and its headers, which may be many. A
// long one scrolls.
function part(title, line, headers = {}, body) {
  const fields = Object.entries(headers).map((field) => field.join(": "));
  const text = `${[line, body].filter(Boolean).join("\n").trimEnd()}\n\n`;
  const quiet = make("span", { className: "quiet" }, reveal(fields.join("\n")));
  const heading = title.filter(Boolean).join(", ");
  const message = make("pre", { tabIndex: 0, role: "group", ariaLabel: heading }, reveal(text), quiet);
  return make("section", {}, make("h3", {}, heading), message);
}

// filter shows the rows that have all words of the filter in what they show, but for their
// number and times, or in what was sent and answered, and counts the rows. A divider is shown
// if a row above it is.
function filter() {
  const words = page.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const isAny = page.failed.ariaPressed === "false";
  const numbers = { shown: 0, ended: 0, waiting: 0, past: 0 };
  let isEmpty = true; // since the last divider
  for (const one of page.rows.children) {
    if (one.matches("p")) {
      one.hidden = isEmpty;
      isEmpty = true;
    } else {
      const { request, run, facts, text } = one;
      const isFound = (isAny || hasFailed(request) || facts.same) && words.every((word) => text?.includes(word));
      const isPast = run !== rows || request.period < meta.period;
      one.hidden = !isFound;
      isEmpty &&= one.hidden;
      numbers.shown += isFound ? 1 : 0;
      numbers[isWaiting(request) ? "waiting" : isPast ? "past" : "ended"]++;
    }
  }
  const { shown, ended, waiting, past } = numbers;
  const all = ended + waiting + past;
  const which = ended + past < maxRequests ? "" : "the last "; // as older ones are gone
  const now = [ended > 0 && String(ended), waiting > 0 && `${waiting} waiting`].filter(Boolean).join(" and ");
  const counts = [now, past > 0 && `${past} before the reset`].filter(Boolean).join(", and ");
  setText(page.count, (all > 0 ? which : "") + counts + (shown < all ? `: ${shown} found` : ""));
  unheard.found &&= `${shown} found`;
  page.noneFound.hidden = all === 0 || shown > 0;
  follow();
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
for (const type of ["pointermove", "pointerdown"]) {
  page.list.addEventListener(type, () => (pointedAt = Date.now()));
}

page.below.addEventListener("click", () => {
  follows = true;
  pointedAt = 0;
  follow();
  page.list.focus({ preventScroll: true }); // as the button is hidden then
});

page.another.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = page.field.value.trim();
  await press(event.submitter, () => changeFault("PUT", new URLSearchParams(text.includes("=") ? text : { code: text })), page.refusal);
  page.refusal.textContent || page.controls.hidePopover();
});

page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  storage.apiKey = page.keyField.value.replace(/[^!-~]/g, ""); // no key has a space
  showDesk();
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

page.addPet.addEventListener("click", () => press(page.addPet, () => addPet(newPet())));
page.story.addEventListener("click", () => press(page.story, tellStory));
page.end.addEventListener("click", () => press(page.end, () => changeFault("DELETE")));
page.clear.addEventListener("click", () => clear(({ request }) => !isWaiting(request)));
page.resetAll.addEventListener("click", () => {
  if (confirm("Reset pets, fault and requests, for all clients?")) {
    press(page.resetAll, async () => {
      const refusal = await act("POST", "/__admin/reset");
      if (!refusal) {
        clear(({ run, request }) => run !== rows || request.period < meta.period);
      }
      return refusal || "Reset";
    });
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

// The key is taken from the address, as in /#key=abc, and removed there. One that is not
// percent-encoded is taken as it is.
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
  read();
} else {
  askForKey();
}
