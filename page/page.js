// This script shows the standing fault, the journal and the pets, sets faults, and
// is a client itself. Clients can send any text, so text is never set as HTML.

import {
  capitalized, colourOf, counted, curlOf, describe, durationOf, errorOf, excerpt, explain, extentOf, faultTextOf,
  hasFailed, isFailure, isPreferred, isWaiting, labelOf, meaningOf, mishapOf, neglectedOf, outcomeOf, pauseOf, queryOf,
  rangeOf, restOf, reveal, timeOf,
} from "./facts.js";

const interval = 250; // milliseconds between two readings
const timeLimit = 20_000; // milliseconds for a request of the page for itself, whose answer may be large
const quietTime = 3000; // milliseconds before something else is read aloud
const pointTime = 1000; // milliseconds for which the list stays for a pointer
const pace = 2500; // milliseconds between the steps of the story
const maxPets = 100; // as on a page of listPets
const maxRequests = 1000; // rows of what has ended, as many as the journal has
const maxHeard = 3; // texts that are read aloud at once

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
  storage.petstoreKey = key;
  try {
    storage.petstoreKey = decodeURIComponent(key);
  } catch {}
  history.replaceState(null, "", location.pathname);
}

function askForKey(reason = "") {
  delete storage.petstoreKey;
  setText(page.title, "Petstore");
  showDesk();
  page.keyError.textContent = reason;
  page.keyField.ariaInvalid = String(reason !== "");
  page.keyField.focus();
  page.keyField.select(); // so that typing replaces it
}

// showDesk shows the desk or, without a key, the question for it.
function showDesk() {
  const isOpen = Boolean(storage.petstoreKey);
  for (const one of [page.desk, page.how, page.resetAll]) {
    one.hidden = !isOpen;
  }
  page.key.hidden = isOpen;
}

// What petstore says. It does not record the requests of this page for itself, and
// applies no fault to them.

// call returns the JSON of an answer. The error that stands for a refusal has its
// message and its status. If something else answers, such as a proxy, or nothing does,
// the status is 0. Large integers are read as text, as numbers are exact to 2^53 only:
// within a string, there is a backslash before each quote. Two tabs would wait for each
// other's answers, if these could be stored.
async function call(method, path) {
  const headers = { Authorization: `Bearer ${storage.petstoreKey}` };
  const options = { method, headers, cache: "no-store", signal: AbortSignal.timeout(timeLimit) };
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
  throw Object.assign(new Error(`Petstore does not answer${instead}.`), { status: 0 });
}

const rows = new Map(); // by the number of their request, also those that were cleared
let meta = { ended: 0, period: 0, total: 0 }; // of the last journal
let endedBefore = 0; // the ended of the one before that

let reading = Promise.resolve(); // settled when all readings have ended
let timer = 0; // of the next reading

// read reads what is new, after a reading under way, and again after a while.
function read() {
  reading = reading
    .then(() => storage.petstoreKey && readNews())
    .catch(showTrouble)
    .then(() => {
      follow();
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
  const fault = await call("GET", "/__admin/fault");
  const after = Math.max(0, endedBefore - 1);
  const journal = await call("GET", `/__admin/requests?history=true&after=${after}`);
  const all = [...journal.requests, ...journal.waiting].sort((a, b) => a.arrived - b.arrived);
  const isOther = ({ arrived, time }) => rows.has(arrived) && rows.get(arrived).request.time !== time;
  if (journal.meta.ended < meta.ended || all.some(isOther)) {
    location.reload(); // petstore was started again
    return;
  }
  const isFirst = !pets;
  const isNewPeriod = journal.meta.period > meta.period;
  if (isNewPeriod) {
    pets = { count: 0, lastID: 0 };
    page.petRows.replaceChildren();
    story = [];
    unsaid.push("Reset or cleared");
  }
  endedBefore = meta.ended;
  meta = journal.meta;
  const changed = takeRequests(all);
  if (isNewPeriod || changed.length > 0) {
    keepPlace(() => {
      removeRows(all);
      groupOf(meta);
      changed.forEach(drawRow);
      filter();
    });
  }
  for (const row of waitingRows()) {
    setText(row.querySelector(".duration"), durationOf(row.request));
  }
  if (isFirst) {
    unsaid = []; // what was there before is not new
  }
  drawSign(fault);
  await readPets();
}

// removeRows removes the rows of requests that wait and are not in the journal any more,
// and of those that have ended, all but the last thousand to end, and those in sight.
function removeRows(all) {
  const known = new Set(all.map(({ arrived }) => arrived));
  const lost = waitingRows().filter(({ request }) => !known.has(request.arrived));
  const ended = [...rows.values()].filter(({ request }) => !isWaiting(request));
  ended.sort((a, b) => a.request.ended - b.request.ended);
  const seen = rowsInSight();
  const old = ended.slice(0, -maxRequests).filter((row) => !seen.includes(row));
  for (const row of [...lost, ...old]) {
    rows.delete(row.request.arrived);
    row.remove();
  }
}

// takeRequests notes what a journal says, and returns the rows of which something has
// changed. That a request goes on waiting is not new.
function takeRequests(all) {
  const kindOf = ({ ended, body, fault, repeats } = {}) => JSON.stringify([ended, body, fault, repeats]);
  const changed = [];
  for (const request of all) {
    const row = rows.get(request.arrived) ?? addRow(request);
    const old = row.request;
    row.request = request;
    row.pet = request.pet ?? rows.get(request.repeats)?.pet;
    if (kindOf(request) !== kindOf(old)) {
      changed.push(row);
    }
    if (!old && !isOfPage(request.headers)) {
      story = [];
    }
  }
  return changed;
}

function waitingRows() {
  return [...rows.values()].filter(({ request }) => isWaiting(request));
}

// The pets. Until a reset, none is changed or removed.

let pets; // that have been read: their count and last id

// readPets reads and draws the pets that are new. The last ones stay.
async function readPets() {
  let added;
  do {
    added = await call("GET", `/__admin/pets?limit=${maxPets}&after=${pets.lastID}`);
    for (const { id, name, status = "" } of added) {
      const cells = [["quiet", id], ["cut", excerpt(name)], ["quiet cut", excerpt(status)]];
      const parts = cells.map(([className, text]) => make("span", { className, title: text }, text));
      page.petRows.prepend(make("li", {}, ...parts));
      pets.count++;
      pets.lastID = id;
    }
  } while (added.length === maxPets);
  [...page.petRows.children].slice(maxPets).forEach((one) => one.remove());
  setText(page.petCount, pets.count > maxPets ? `the last ${maxPets} of ${pets.count}` : String(pets.count || "None"));
}

// The list follows its end, unless somebody reads, or aims at a row.

let follows = true; // whether it goes to its end when a row is added
let scrolledTo = 0; // where the script has scrolled to
let pointedAt = 0; // when the pointer last moved or pressed in it

function isAtEnd() {
  const { scrollTop, clientHeight, scrollHeight } = page.list;
  return scrollTop + clientHeight > scrollHeight - 2; // as scrollTop may be a fraction
}

// isAimed reports whether somebody may be about to press a row, or presses it.
function isAimed() {
  return Date.now() - pointedAt < pointTime || page.rows.matches(":active");
}

// isRead reports whether somebody reads a row, or uses the keyboard there.
function isRead(row) {
  return row.matches("[open], :has(:focus-visible)");
}

function rowsInSight() {
  const list = page.list.getBoundingClientRect();
  return rowsIn(page.rows).filter((row) => {
    const { top, bottom } = row.getBoundingClientRect();
    return bottom > list.top && top < list.bottom;
  });
}

// noticeScroll notes whether somebody has scrolled. The event of that may come late.
function noticeScroll() {
  if (page.list.scrollTop !== scrolledTo) {
    follows = isAtEnd();
  }
}

// keepPlace calls change, which may change all that is above a row, and puts back the row
// in sight that somebody aims at, reads or, if there is none, sees first.
function keepPlace(change) {
  noticeScroll();
  const seen = rowsInSight();
  const aimed = isAimed() && seen.find((row) => row.matches(":hover, :active"));
  const row = aimed || seen.find(isRead) || seen[0];
  const top = row?.getBoundingClientRect().top;
  change();
  if (row?.checkVisibility()) {
    scrollList(page.list.scrollTop + row.getBoundingClientRect().top - top);
  }
}

function scrollList(top) {
  page.list.scrollTop = top;
  scrolledTo = page.list.scrollTop;
}

// follow shows the end of the list, if it follows. It does not while somebody reads.
function follow() {
  noticeScroll();
  follows = (follows || isAtEnd()) && !rowsInSight().some(isRead);
  if (follows && !isAimed()) {
    scrollList(page.list.scrollHeight);
  }
  page.below.hidden = isAtEnd() || (page.below.hidden && isAimed()); // or it might come below a finger
}

for (const type of ["pointermove", "pointerdown"]) {
  page.list.addEventListener(type, () => (pointedAt = Date.now()));
}
page.below.addEventListener("click", () => {
  follows = true;
  pointedAt = 0;
  scrollList(page.list.scrollHeight);
  page.list.focus({ preventScroll: true }); // as the button is hidden then
});

// The rows of a period are a group. A row has its request, and the last pet that this
// and those that it repeats have added. Once it is drawn, it has the text to be filtered,
// and whether it shows a problem.

// groupOf returns the group of a period, which may have the name of a test.
function groupOf({ period, test = "" }) {
  return [...page.rows.children].findLast((group) => group.period === period) ??
    page.rows.appendChild(make("section", { period, test, className: test && "named" }, make("h3", { className: "quiet cut" })));
}

// rowsIn returns the rows in an element of the list, in their order.
function rowsIn(element) {
  return [...element.querySelectorAll("details")];
}

function addRow(request) {
  const row = make("details", {}, make("summary", { className: "columns" }));
  row.addEventListener("toggle", () => {
    if (row.open) {
      showDetail(row);
      row.scrollIntoView({ block: "nearest" }); // if there is no room below it
    }
  });
  groupOf(request).append(row);
  rows.set(request.arrived, row);
  return row;
}

// drawRow draws what a request was, what has become of it, and what it changed.
function drawRow(row) {
  const { request } = row;
  const { arrived, time, method, url, headers, body, fault, ignored, pet, repeats } = request;
  const cell = (className, text) => make("span", { className }, excerpt(text));
  const note = (className, text) => text && cell(className, text);
  const error = errorOf(request);
  const earlier = rows.get(repeats); // or nothing, if it is not kept any more
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
      note("quiet", !repetition && !error && body)),
    cell("client cut quiet", isOfPage(headers) ? "petstore's page" : (headers.Origin ?? headers["User-Agent"] ?? "")),
  ];
  row.firstChild.title = new Date(time).toLocaleString();
  row.firstChild.replaceChildren(
    cell("quiet", String(arrived)),
    cell("quiet", timeOf(time)),
    ...cells,
    cell("quiet duration", durationOf(request)),
  );
  const fields = [headers, request.answerHeaders ?? {}].flatMap(Object.entries).map((field) => field.join(": "));
  const shown = cells.map((one) => one.textContent);
  const texts = [...shown, request.operation, request.test, request.client, url, ...fields, body, request.answer];
  row.text = texts.join("\n").toLowerCase();
  const isHeld = isWaiting(request) && isFailure(fault);
  row.hasProblem = isHeld || hasFailed(request) || Boolean(samePet || neglected);
  if (row.open) {
    showDetail(row);
  }
  if (hasFailed(request) || repetition) {
    unsaid.push([`Request ${arrived}: ${outcomeOf(request)}`, verdict, repetition].filter(Boolean).join(", "));
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
  const answer = method !== "HEAD" && request.answer;
  const fate = status === 0 ? "not sent" : mishapOf(request);
  const answerTitle = ["Answer", fate, method !== "HEAD" && extentOf(answer, answerHeaders)];
  const link = make("button", { type: "button" }, `Show request ${repeats}`);
  link.addEventListener("click", () => showRow(rows.get(repeats)));
  const line = curlOf(request, location.origin);
  const curl = make("button", { type: "button" }, "Copy as curl");
  curl.addEventListener("click", () => copy(curl, line));
  const parts = [
    make("p", {}, explain(request), " ", make("span", { className: "quiet" }, `From ${client}.`)),
    make("p", { className: "bar" }, line && curl, rows.get(repeats)?.isConnected && link),
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

// showRow opens a row, and ends the filter, so that it is in sight.
function showRow(row) {
  page.filter.value = "";
  page.failed.ariaPressed = "false";
  filter();
  row.open = true;
  row.firstChild.focus();
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
  filter();
}

page.clear.addEventListener("click", () => clear(({ request }) => !isWaiting(request)));

// The filter.

// filter shows the rows that have all words of the filter: in their text, but for the
// number and the times, or in what was sent and answered. It counts the rows.
function filter() {
  const words = page.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const isAny = page.failed.ariaPressed === "false";
  const all = rowsIn(page.rows);
  for (const row of all) {
    row.hidden = !((isAny || row.hasProblem) && words.every((word) => row.text.includes(word)));
  }
  for (const group of [...page.rows.children]) {
    drawGroup(group, isAny && words.length === 0);
  }
  const shown = all.filter((row) => !row.hidden).length;
  const waiting = all.filter(({ request }) => isWaiting(request)).length;
  const problems = all.filter(({ hasProblem }) => hasProblem).length;
  const found = shown < all.length ? `${shown} of ` : "";
  const rest = waiting > 0 ? `, ${waiting.toLocaleString("en")} waiting` : "";
  setText(page.count, all.length > 0 ? found + counted(all.length, "request") + rest : "Requests");
  setText(page.failed, problems > 0 ? `Problems only (${problems})` : "Problems only");
  page.start.hidden = all.length > 0 || meta.total > 0; // until there is a request
  page.noneFound.hidden = shown > 0 || !page.start.hidden;
}

// drawGroup says what is in a group. Only the last one stays if it is empty.
function drawGroup(group, isAll) {
  const all = rowsIn(group);
  if (all.length === 0 && group.nextElementSibling) {
    group.remove();
  }
  const problems = all.filter(({ hasProblem }) => hasProblem).length;
  const counts = counted(all.length, "request") + (problems > 0 ? `, ${counted(problems, "problem")}` : "");
  setText(group.firstChild, [`Period ${group.period}`, excerpt(group.test), counts].filter(Boolean).join(" · "));
  group.hidden = !isAll && all.every((row) => row.hidden);
}

// changeFilter keeps what was found in sight when the filter is gone.
function changeFilter() {
  keepPlace(filter);
  follows = isAtEnd();
  unsaid.push(page.count.textContent);
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
  const held = waitingRows().filter(({ request }) => request.fault && !isPreferred(request)).length;
  const [told, more] = story;
  let headline = told ?? `${held > 0 ? "New requests" : "Requests"} are answered as usual.`;
  let sentence = more ?? (applied > 0 ? `The fault is used up: ${counted(applied, "request")} got it.` : "");
  if (isToCome) {
    headline = [told, `${rangeOf(fault)}: ${labelOf(next)}.`].filter(Boolean).join(" ");
    sentence = restOf(fault) || meaningOf(next);
  }
  if (held > 0) {
    headline = `${counted(held, "request")} held. ${headline}`;
  }
  setText(page.end, held > 0 ? "End and release" : "End fault");
  page.end.hidden = !isToCome && held === 0;
  const query = isToCome ? queryOf(fault) : "";
  const isCalm = !isToCome && held === 0 && !told;
  const className = held > 0 || isFailure(next) ? "active" : isCalm ? "calm" : "";
  showSign({ className, headline, sentence, query, gist: [told, held > 0, query].join() });
}

// showTrouble says what is wrong at the moment, or asks for the key.
function showTrouble(problem) {
  const { status, message } = problem;
  if (status === 401) {
    askForKey(message);
    return;
  }
  console.error(problem);
  page.end.hidden = true;
  const isOfPetstore = status === undefined; // it is none of call
  const headline = isOfPetstore ? "This page cannot show what petstore answers." : message;
  const sentence = `This page goes on asking.${isOfPetstore ? ` ${message}` : ""}`;
  showSign({ className: "", headline, sentence, query: "", gist: headline });
}

let lastGist = ""; // of the sign

// showSign also has the sign read aloud, unless its gist is the same: that a number in
// it changes is not new.
function showSign({ className, headline, sentence, query, gist }) {
  if (gist !== lastGist) {
    unsaid.push(`${headline} ${sentence}`);
  }
  lastGist = gist;
  page.sign.className = className;
  setText(page.headline, headline);
  setText(page.sentence, sentence);
  setText(page.query, query);
  setText(page.title, className === "calm" ? "Petstore" : `${headline.replace(/[.:]$/, "")} – Petstore`);
}

// What is read aloud, to those who do not see it: not all the time, and not all of it.

let unsaid = []; // texts
let saidAt = 0; // when some were read last

function readAloud() {
  if (unsaid.length === 0 || Date.now() - saidAt < quietTime) {
    return;
  }
  const others = unsaid.length - maxHeard;
  const texts = [...unsaid.slice(-maxHeard), others > 0 && `and ${others} more`].filter(Boolean);
  page.heard.replaceChildren(...texts.map((text) => make("p", {}, excerpt(text))));
  saidAt = Date.now();
  unsaid = [];
}

// What a person does.

// press marks a button for as long as its action takes, in which it cannot be pressed
// again. If it fails, the sign says why.
async function press(button, action) {
  if (button.ariaBusy === "true") {
    return;
  }
  story = [];
  button.ariaBusy = "true";
  await action().catch(showTrouble);
  button.ariaBusy = "false";
}

// act changes something, and shows what came of it.
async function act(method, path) {
  await call(method, path);
  await read();
}

// setFault sets a fault for the requests that are chosen, unless it says for which.
async function setFault(text) {
  const query = new URLSearchParams(text);
  const isList = query.get("code")?.includes(","); // which has one request for each code
  for (const [name, value] of new URLSearchParams(page.scope.value)) {
    if (!query.has(name) && !(name === "times" && isList)) {
      query.set(name, value);
    }
  }
  await act("PUT", `/__admin/fault?${query}`);
}

// drawChoices draws the buttons of the faults, each below the moment when it acts,
// which is the beginning of its meaning.
function drawChoices({ components: { schemas: { FaultCode, FaultOperation } } }) {
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

// Another fault is a code, or a query as with curl. The browser shows a refusal beside
// the field.
page.another.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = page.field.value.trim();
  const refuse = ({ message }) => page.field.setCustomValidity(message);
  await press(event.submitter, () => setFault(text.includes("=") ? text : { code: text }).catch(refuse));
  page.field.reportValidity();
});
page.field.addEventListener("input", () => page.field.setCustomValidity(""));

page.end.addEventListener("click", async () => {
  await press(page.end, () => act("DELETE", "/__admin/fault"));
  page.saying.focus({ preventScroll: true }); // as the button is hidden then
});

page.resetAll.addEventListener("click", () => {
  if (confirm("Reset the pets and the fault for all clients, and clear this list?")) {
    press(page.resetAll, async () => {
      await act("POST", "/__admin/reset");
      clear(({ request }) => request.period < meta.period);
    });
  }
});

// addPet adds a pet as a client does: the request is recorded, and gets faults. What
// has become of it, its row says, unless petstore is not there.
async function addPet(pet, preferences = {}) {
  const headers = { Authorization: `Bearer ${storage.petstoreKey}`, "Content-Type": "application/json", ...preferences };
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
// unless there was a reset in between. Its requests have a Prefer, so the standing fault
// does not count them.
async function tellStory() {
  const pet = newPet();
  const { period } = meta;
  story = ["This page sent a pet, and got no answer.", "It will send it again."];
  await addPet(pet, { Prefer: "code=lost" });
  await new Promise((resolve) => setTimeout(resolve, pace));
  await read();
  if (meta.period === period) {
    story = [
      "The pet is there twice.",
      "It was added before the answer was lost. Now choose a fault, and press Add a pet, or Use curl.",
    ];
    await addPet(pet, { Prefer: "code=ok" });
  }
}

page.story.addEventListener("click", () => press(page.story, tellStory));

// How to call petstore.

page.base.textContent = `${location.origin}/v1`;
page.curl.textContent = `curl -H 'Authorization: Bearer ***' ${location.origin}/v1/pets`;
page.copy.addEventListener("click", () => copy(page.copy, page.curl.textContent));

// copy copies a line with the key, which is not shown. The button says so.
async function copy(button, line) {
  const word = `Bearer ${storage.petstoreKey}`.replaceAll("'", "'\\''");
  const text = line.replaceAll("Bearer ***", () => word);
  const isCopied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  button.textContent = isCopied ? "Copied, with the key" : "This browser lets no page copy here";
  unsaid.push(button.textContent);
}

// The start.

page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  const [, given] = /^\s*(?:Bearer\s)?\s*(.*)$/is.exec(page.keyField.value);
  const bare = given.replace(/[^!-~]/g, ""); // no key has a space
  storage.petstoreKey = bare.replace(/^(["'])(.+)\1$/, "$2");
  showDesk();
  page.saying.focus();
  press(event.submitter, read);
});

page.controls.open = matchMedia("(width >= 48rem)").matches;
document.addEventListener("visibilitychange", read);
window.addEventListener("hashchange", () => location.reload());

page.tooOld.hidden = CSS.supports("(color: light-dark(red, red)) and (width: round(1px, 1px))"); // newest of all
if (storage.petstoreKey) {
  showDesk();
  read();
} else {
  askForKey();
}
