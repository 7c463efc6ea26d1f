// This script shows the standing fault, the journal and the pets, sets faults, and
// is a client itself. Clients can send any text, so text is never set as HTML.

import {
  capitalized, colourOf, counted, describe, durationOf, endOf, errorOf, excerpt, explain, extentOf, faultTextOf,
  hasFailed, isFailure, isPreferred, isWaiting, labelOf, meaningOf, mishapOf, neglectedOf, outcomeOf, pauseOf, queryOf,
  rangeOf, restOf, reveal, sentOf, timeOf,
} from "./facts.js";

const interval = 250; // milliseconds between two readings
const timeLimit = 5000; // milliseconds for a request of the page for itself
const longLimit = 60_000; // the same, if the answer may be large
const quietTime = 3000; // milliseconds before something else is read aloud
const noticeTime = 10_000; // milliseconds for which a notice stays
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
let meta = { ended: 0, period: 0, total: 0 }; // of the last journal
let endedBefore = 0; // the ended of the one before that

let reading = Promise.resolve(); // settled when all readings have ended
let timer = 0; // of the next reading

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

// readNews reads and draws what is new. It reads the news of the last reading again, as
// repeats may come late, and the one request before them: if its time differs, petstore
// was started again.
async function readNews() {
  if (page.buttons.childElementCount === 0) {
    const openAPI = await call("GET", "/openapi.json");
    describe(openAPI);
    drawChoices(openAPI);
  }
  const fault = await call("GET", "/__admin/fault"); // small: silence is soon noticed
  const after = Math.max(0, endedBefore - 1);
  const journal = await call("GET", `/__admin/requests?history=true&after=${after}`, longLimit);
  const all = [...journal.requests, ...journal.waiting].sort((a, b) => a.arrived - b.arrived);
  const isOther = ({ arrived, time }) => rows.has(arrived) && rows.get(arrived).request.time !== time;
  if (journal.meta.ended < meta.ended || all.some(isOther)) {
    beginAnew();
    return;
  }
  const putBack = settle();
  takeRequests(all);
  let isFirst = false;
  const isNewPeriod = journal.meta.period > meta.period;
  if (isNewPeriod) {
    isFirst = !pets;
    emptyPets();
    if (meta.period > 0) {
      story = [];
      news.set("period", "Reset or cleared");
    }
  }
  // A request that waits may have added its pet already.
  pets.isStale ||= [...undrawn, ...waitingRows()].some(({ request }) => request.pet || !request.ended);
  endedBefore = meta.ended;
  meta = journal.meta;
  if (isNewPeriod || undrawn.size > 0) {
    groupOf(meta.period);
    removeRows();
    drawRows();
    putBack();
    if (isFirst) {
      news.clear(); // what was there before is not new
    }
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
  meta = { ended: 0, period: 0, total: 0 };
  endedBefore = 0;
  story = [];
  news.set("period", "Petstore was started again");
}

// takeRequests notes what a journal says. That a request goes on waiting is not new.
// When the journal drops an earlier request, it drops repeats, too. This page keeps it.
function takeRequests(all) {
  const kindOf = ({ ended, body, fault, repeats } = {}) => JSON.stringify([ended, body, fault, repeats]);
  for (const request of all) {
    const row = rows.get(request.arrived) ?? addRow(request);
    const old = row.request;
    request.repeats ??= old?.repeats;
    row.request = request;
    row.pet = request.pet ?? rows.get(request.repeats)?.pet;
    if (kindOf(request) !== kindOf(old)) {
      undrawn.add(row);
    }
    if (!old && !isOfPage(request.headers)) {
      story = [];
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

// The list follows its end, unless somebody reads, or aims at a row. What is in sight
// then stays where it is.

let follows = true; // whether it scrolls to its end when a row is added
let scrolledTo = 0; // where the script has scrolled to, of which the event may come late
let pointedAt = 0; // when the pointer last moved or pressed in it

function isAtEnd() {
  const { scrollTop, clientHeight, scrollHeight } = page.list;
  return scrollTop + clientHeight > scrollHeight - 2; // as scrollTop may be a fraction
}

// isAimed reports whether somebody may be about to press a row, or presses it.
function isAimed() {
  return Date.now() - pointedAt < pointTime || page.rows.matches(":active");
}

// isStill reports whether the list must not move.
function isStill() {
  return !follows || isAimed();
}

// settle decides whether the list follows: it does not while a row in sight is open or
// has the focus. It returns a function to be called when the list was drawn, which puts
// back the row that somebody aims at, reads or sees first.
function settle() {
  const list = page.list.getBoundingClientRect();
  const isInSight = (row) => {
    const { top, bottom } = row.getBoundingClientRect();
    return bottom > list.top && top < list.bottom;
  };
  const find = (selector) => [...page.rows.querySelectorAll(`details${selector}`)].find(isInSight);
  const inUse = find(":has(:focus-visible)") ?? find("[open]");
  const aimed = isAimed() ? find(":active") ?? find(":hover") : undefined;
  follows = (follows || isAtEnd()) && !inUse;
  const row = aimed ?? inUse ?? find("");
  const top = row?.getBoundingClientRect().top;
  return () => {
    if (isStill() && row?.checkVisibility()) {
      scrollList(page.list.scrollTop + row.getBoundingClientRect().top - top);
    }
  };
}

function scrollList(top) {
  page.list.scrollTop = top;
  scrolledTo = page.list.scrollTop;
}

// follow shows the end of the list, if it follows. It says how many rows have come
// since the end was in sight.
function follow() {
  if (!isStill()) {
    scrollList(page.list.scrollHeight);
  }
  const all = rowsIn(page.rows);
  if (isAtEnd()) {
    all.forEach((row) => (row.isSeen = true));
  }
  const below = all.filter((row) => !row.isSeen && !row.hidden).length;
  setText(page.below, `${below} new below`);
  page.below.hidden = below === 0 || (page.below.hidden && isAimed()); // or it might come below a finger
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

// The rows of a period are a group. The run of a group and of its rows is the map of
// rows that belong to one process of petstore. A row has its request, and the last pet
// that this and those that it repeats have added. Once it is drawn, it has the text to
// be filtered, and whether it shows a problem, or a pet that is there twice.

const undrawn = new Set(); // rows of which something is to be drawn

// groupOf returns the group of a period of this run.
function groupOf(period) {
  const isIt = (group) => group.run === rows && group.period === period;
  return [...page.rows.children].findLast(isIt) ??
    page.rows.appendChild(make("section", { run: rows, period }, make("h3", { className: "quiet" })));
}

// rowsIn returns the rows in an element of the list, in their order.
function rowsIn(element) {
  return [...element.querySelectorAll("details")];
}

function addRow({ arrived, period }) {
  const row = make("details", { run: rows }, make("summary", { className: "columns" }));
  row.addEventListener("toggle", () => {
    if (row.open) {
      showDetail(row);
      row.scrollIntoView({ block: "nearest" }); // if there is no room below it
    }
  });
  groupOf(period).append(row);
  rows.set(arrived, row);
  return row;
}

// removeRows removes rows of requests that have ended, in the order of their ends, so
// that the last thousand stay. If the list must not move, what is above its lower edge
// stays, too.
function removeRows() {
  const ended = [...new Set([...rowsIn(page.rows), ...rows.values()])].filter(({ request }) => !isWaiting(request));
  ended.sort((a, b) => endOf(a.request) - endOf(b.request));
  const edge = isStill() ? page.list.getBoundingClientRect().bottom : -Infinity;
  const isFree = (row) => !row.matches("[open], :focus-within") && row.getBoundingClientRect().top >= edge;
  for (const row of ended.slice(0, -maxRequests).filter(isFree)) {
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
  filter();
}

// drawRow draws what a request was, what has become of it, and what it changed.
function drawRow(row) {
  const { request } = row;
  const { arrived, time, method, url, headers, body, ignored, pet, repeats } = request;
  const cell = (className, text) => make("span", { className }, excerpt(text));
  const note = (className, text) => text && cell(className, text);
  const error = errorOf(request);
  const earlier = row.run.get(repeats); // or nothing, if it is not kept any more
  const samePet = pet && earlier?.pet;
  const verdict = pet && `adds pet ${pet}${samePet ? `, the same as pet ${samePet}` : ""}`;
  const neglected = earlier && neglectedOf(request, earlier.request);
  const repetition = repeats && [
    `same as request ${repeats}`,
    earlier && `, ${pauseOf(request, earlier.request)}`,
    neglected && `. Retry-After ${neglected} had not passed`,
  ].filter(Boolean).join("");
  const cells = [
    cell(`chip ${colourOf(request)}`, outcomeOf(request)),
    make("span", { className: "what" },
      cell("mono cut", `${method} ${url}`),
      note("mono bad", faultTextOf(request)),
      note(samePet ? "verdict bad" : hasFailed(request) ? colourOf(request) : "quiet", verdict),
      note(neglected ? "warn" : "quiet", repetition),
      note("warn", error),
      note("warn", ignored && `ignored: ${ignored.join(", ")}`),
      note("body quiet cut", !repetition && !error && body)),
    cell("client cut quiet", isOfPage(headers) ? "petstore's page" : (headers.Origin ?? headers["User-Agent"] ?? "")),
  ];
  row.firstChild.replaceChildren(
    cell("quiet", String(arrived)),
    make("span", { className: "quiet", title: new Date(time).toLocaleString() }, timeOf(time)),
    ...cells,
    cell("quiet", durationOf(request)),
  );
  const fields = [headers, request.answerHeaders ?? {}].flatMap(Object.entries).map((field) => field.join(": "));
  const texts = [...cells.map((one) => one.textContent), request.operation, url, ...fields, body, request.answer];
  row.text = texts.join("\n").toLowerCase();
  row.isDouble = Boolean(samePet);
  row.hasProblem = hasFailed(request) || row.isDouble || Boolean(neglected);
  if (isWaiting(request)) {
    row.className = "waited";
  }
  if (row.open) {
    showDetail(row);
  }
  if (hasFailed(request) || repetition) {
    news.set(row, [`Request ${arrived}: ${outcomeOf(request)}`, verdict, repetition].filter(Boolean).join(", "));
  }
}

// isOfPage reports whether this page has sent a request, by its headers.
function isOfPage({ Origin: origin }) {
  return origin === location.origin;
}

// showDetail shows what was sent, beside what was answered. What it shows already
// stays, or it would lose the focus, and what is selected.
function showDetail(row) {
  const { request } = row;
  const { method, url, headers, body, status, answerHeaders, client, repeats } = request;
  const answer = method !== "HEAD" && sentOf(request);
  const fate = status === 0 ? "not sent" : mishapOf(request);
  const answerTitle = ["Answer", fate, method !== "HEAD" && extentOf(answer, answerHeaders)];
  const link = make("button", { type: "button" }, `Show request ${repeats}`);
  link.addEventListener("click", () => showEarlier(row));
  const parts = [
    make("p", {}, explain(request), " ", make("span", { className: "quiet" }, `From ${client}.`)),
    make("p", {}, repeats && link),
    makePart(["Sent", extentOf(body, headers)], `${method} ${url}`, headers, body),
    (answer || status > 0) && makePart(answerTitle, status || "", answerHeaders, answer),
  ];
  const detail = row.querySelector(".detail") ?? row.appendChild(make("div", { className: "detail" }));
  parts.filter(Boolean).forEach((part, i) => {
    const old = detail.children[i];
    if (!old) {
      detail.append(part);
    } else if (!old.isEqualNode(part)) {
      old.replaceWith(part);
    }
  });
}

// showEarlier shows the request that the one of a row repeats.
function showEarlier({ run, request: { repeats } }) {
  const earlier = run.get(repeats);
  if (!earlier?.isConnected) {
    tell(`Request ${repeats} is not in this list any more.`);
    return;
  }
  page.filter.value = ""; // so that it is in sight
  page.failed.ariaPressed = "false";
  filter();
  earlier.open = true;
  earlier.firstChild.focus();
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
  rowsIn(page.rows).filter(isCleared).forEach((row) => row.remove());
  drawRows();
}

page.clear.addEventListener("click", () => clear(({ request }) => !isWaiting(request)));

// The arrows lead from row to row, as Tab does.
page.rows.addEventListener("keydown", (event) => {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (step && event.target.matches("summary")) {
    const shown = rowsIn(page.rows).filter((row) => !row.hidden);
    shown[shown.indexOf(event.target.parentElement) + step]?.firstChild.focus();
    event.preventDefault(); // or the list would scroll
  }
});

// The filter.

// filter shows the rows that have all words of the filter: in their text, but for the
// number and the times, or in what was sent and answered. It counts the rows.
function filter() {
  const words = page.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const isAny = page.failed.ariaPressed === "false";
  const isAll = isAny && words.length === 0;
  const all = rowsIn(page.rows);
  all.forEach((row, i) => {
    row.hidden = !((isAny || row.hasProblem) && words.every((word) => row.text?.includes(word)));
    noteGap(all[i - 1], row);
  });
  for (const group of [...page.rows.children]) {
    drawGroup(group);
    group.hidden = !isAll && rowsIn(group).every((row) => row.hidden);
  }
  const shown = all.filter((row) => !row.hidden).length;
  const waiting = all.filter(({ request }) => isWaiting(request)).length;
  const found = shown < all.length ? `${shown} of ` : "";
  const which = all.length - waiting < maxRequests ? "" : "the last "; // as older ones are gone
  const rest = waiting > 0 ? `, ${waiting.toLocaleString("en")} waiting` : "";
  const counts = found + which + counted(all.length, "request") + rest;
  setText(page.count, all.length > 0 ? counts : "Requests");
  page.noneFound.hidden = all.length === 0 || shown > 0;
  page.start.hidden = all.length > 0 || meta.total > 0; // until there is a request
  follow();
}

// noteGap says how many requests are missing between two rows: they were removed, or
// ended while the browser let this page sleep, and the journal has dropped them.
function noteGap(above, { run, request, dataset }) {
  const missing = above?.run === run && !run.has(request.arrived - 1) ? request.arrived - above.request.arrived - 1 : 0;
  dataset.gap = missing > 0 ? `${counted(missing, "request")} not kept` : "";
}

// drawGroup says what came between a group and the one above it, and what is in it. Only
// the last group stays if it is empty.
function drawGroup(group) {
  const { run, period, previousElementSibling: above, firstElementChild: heading } = group;
  const all = rowsIn(group);
  if (all.length === 0 && group.nextElementSibling) {
    group.remove();
  }
  const event = (above?.run ?? run) === run ? "Reset or cleared" : "Petstore was started again";
  const problems = all.filter(({ hasProblem }) => hasProblem).length;
  const rest = problems > 0 ? `, ${counted(problems, "problem")}` : "";
  const text = `period ${period} · ${counted(all.length, "request")}${rest}`;
  setText(heading, above ? `${event}: ${text}` : capitalized(text));
}

// changeFilter keeps what is read in sight when the filter is gone.
function changeFilter() {
  filter();
  news.set("found", page.count.textContent);
  if (!page.filter.value) {
    page.rows.querySelector("[open]:not([hidden])")?.scrollIntoView({ block: "nearest" });
  }
}

page.filter.addEventListener("input", changeFilter);
page.failed.addEventListener("click", () => {
  page.failed.ariaPressed = String(page.failed.ariaPressed === "false");
  changeFilter();
});

// The sign.

// drawSign says which requests get what, how many are held, and what the story tells.
function drawSign(fault) {
  const { next, applied, matched, skip = 0 } = fault; // or nothing, if no fault is set
  const isToCome = Boolean(next) || matched < skip;
  const held = countHeld();
  const heldText = held > 0 && `${counted(held, "request")} held.`;
  const [told, more] = story;
  const before = [isToCome && told, heldText].filter(Boolean).join(" ");
  let headline = `${held > 0 ? "New requests" : "Requests"} are answered as usual.`;
  let sentence = applied > 0 ? `The fault is used up: ${counted(applied, "request")} got it.` : "";
  if (isToCome) {
    headline = `${rangeOf(fault)}: ${labelOf(next)}.`;
    sentence = restOf(fault) || meaningOf(next);
  } else if (told) {
    headline = told;
    sentence = more;
  }
  setText(page.end, held > 0 ? "End and release" : "End fault");
  page.end.hidden = !isToCome && held === 0;
  const query = isToCome ? queryOf(fault) : "";
  const isCalm = !isToCome && held === 0 && !told;
  const className = held > 0 || isFailure(next) ? "active" : isCalm ? "calm" : "";
  const gist = [told, held > 0, labelOf(next), query].join();
  showSign({ className, before, headline, sentence, query, gist });
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
  const sentences = ["This page goes on asking.", !isSilence && message];
  showSign({ headline, sentence: sentences.filter(Boolean).join(" "), gist: headline });
}

let lastGist = ""; // of the sign

// showSign also has the sign read aloud, unless its gist is the same: that a number in
// it changes is not new.
function showSign({ className = "", before = "", headline, sentence, query = "", gist }) {
  const saying = `${before} ${headline}`.trim();
  if (gist !== lastGist || news.has("sign")) {
    news.set("sign", `${saying} ${sentence}`);
  }
  lastGist = gist;
  page.sign.className = className;
  setText(page.before, before);
  setText(page.headline, headline);
  setText(page.sentence, sentence);
  setText(page.query, query);
  setText(page.title, className === "calm" ? "Petstore" : `${saying.replace(/[.:]$/, "")} – Petstore`);
}

// What is read aloud, to those who do not see it.

const news = new Map(); // texts to be read aloud, by their row or, if they are of no request, their kind
let heardAt = 0; // when some were read last

// readAloud has what is new read aloud, in the order in which it has come, but not all
// the time. Of many requests it reads a few, first those that add a pet twice. What was
// there when the page was opened is not new.
function readAloud() {
  if (news.size === 0 || Date.now() - heardAt < quietTime) {
    return;
  }
  const requests = [...news.keys()].filter((key) => key.request);
  requests.sort((a, b) => b.isDouble - a.isDouble);
  const unread = requests.slice(maxHeard);
  unread.forEach((row) => news.delete(row));
  const rest = unread.length > 0 && `and ${counted(unread.length, "other request")}`;
  const texts = [...news.values(), rest].filter(Boolean);
  page.heard.replaceChildren(...texts.map((text) => make("p", {}, excerpt(text))));
  heardAt = Date.now();
  news.clear();
}

let fading = 0; // the timer of the notice

// tell shows a text for a while, if there is one, and has it read aloud.
function tell(text, place = page.notice) {
  if (text) {
    place.textContent = text;
    place.scrollIntoView({ block: "nearest" });
    news.set("notice", text);
    clearTimeout(fading);
    fading = setTimeout(() => (place.textContent = ""), noticeTime);
  }
}

// What an action was answered goes with the next one, whatever that is for: at its
// click, before it acts, as nothing must move while it is pressed.
for (const type of ["click", "input"]) {
  const forget = () => {
    page.notice.textContent = "";
    page.copied.textContent = "";
    page.field.setCustomValidity("");
  };
  window.addEventListener(type, forget, { capture: true });
}

// What a person does.

// press marks a button for as long as its action takes, in which it cannot be pressed
// again, and tells what that returns, or why it was refused.
async function press(button, action) {
  if (button.ariaBusy === "true") {
    return;
  }
  story = [];
  button.ariaBusy = "true";
  tell(await action().catch(({ message }) => message));
  button.ariaBusy = "false";
}

let focused = document.body; // what has had the focus last
let isFocusShown = false;

// keepFocus moves the focus from what is hidden, and shows it only if it was shown.
function keepFocus() {
  if (!focused.checkVisibility()) {
    const options = { preventScroll: true, focusVisible: isFocusShown };
    [page.scope, page.more].find((one) => one.checkVisibility())?.focus(options);
  }
}

window.addEventListener("focusin", ({ target }) => {
  focused = target;
  isFocusShown = target.matches(":focus-visible");
});

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

// Another fault is a code, for the requests that are chosen, or a whole query, as with
// curl. The browser shows a refusal beside the field.
page.another.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = page.field.value.trim();
  const isCode = !text.includes("=");
  const query = new URLSearchParams(isCode ? page.scope.value : text);
  if (isCode) {
    query.set("code", text);
  }
  if (isCode && text.includes(",")) {
    query.delete("times"); // as a list has one request for each code
  }
  const refuse = ({ message }) => page.field.setCustomValidity(message);
  await press(event.submitter, () => changeFault("PUT", query).catch(refuse));
  if (page.field.reportValidity()) {
    page.controls.hidePopover();
  }
});

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

let story = []; // its first sentence on the sign, and the others, while it is told

// tellStory adds a pet, loses the answer, and adds it again, as many clients do,
// unless there was a reset or a new start in between. Its requests have a Prefer, so
// the standing fault does not count them. What came of it, the journal says.
async function tellStory() {
  const pet = newPet();
  const { period } = meta;
  const run = rows;
  story = ["This page sent a pet, and got no answer.", "It will send it again."];
  await addPet(pet, { Prefer: "code=lost" });
  await new Promise((resolve) => setTimeout(resolve, pace));
  await read();
  if (rows === run && meta.period === period) {
    await addPet(pet, { Prefer: "code=ok" });
    const sent = [...rows.values()].filter(({ request }) => request.period === period && request.body === pet);
    const ids = sent.flatMap(({ request }) => request.pet ?? []);
    story = ids.length > 1 ? [
      `The pet is there twice: ${ids.join(" and ")}.`,
      "Petstore had added it before the answer was lost. Now press a fault, and send a request.",
    ] : [];
    await read();
  }
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
  event.clipboardData.setData("text/plain", String(getSelection()).replaceAll("Bearer ***", () => word));
  event.preventDefault();
});
for (const button of page.call.querySelectorAll(".copy")) {
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(button.previousElementSibling);
    tell(document.execCommand("copy") ? "Copied, with the key" : "Selected: copy it with the keyboard", page.copied);
  });
}

// The start.

page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  storage.apiKey = page.keyField.value.replace(/[^!-~]/g, ""); // no key has a space
  showDesk();
  press(event.submitter, read);
});

matchMedia("(width < 48rem), (height < 32rem)").addEventListener("change", () => page.controls.hidePopover());
document.addEventListener("visibilitychange", read);
window.addEventListener("hashchange", () => location.reload());

page.tooOld.hidden = CSS.supports("(color: light-dark(red, red)) and (width: round(1px, 1px))"); // newest of all
if (storage.apiKey) {
  showDesk();
  read();
} else {
  askForKey();
}
