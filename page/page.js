// This script shows the standing fault, the journal and the pets, sets faults,
// and is a client itself. What faults there are, and what they mean, is in
// openapi.json. Clients can send any text, so text is never set as HTML.

const interval = 250; // milliseconds between two readings
const timeLimit = 5000; // milliseconds for a request of the page for itself
const longLimit = 60_000; // milliseconds for the journal and the pets, which may be large, on a slow line
const quietTime = 2000; // milliseconds before something else is read aloud
const maxPets = 100; // as on a page of listPets
const maxRequests = 1000; // that have ended, which the journal keeps
const maxText = 4000; // bytes of a body and of an answer that the journal keeps
const rounding = 1; // milliseconds by which the journal may put an end too late
const lateness = 100; // milliseconds within which petstore usually notices that a client has left
const tolerance = 4; // pixels by which the list moves a row by itself, as it estimates what is out of sight
const pace = 1000; // milliseconds between the steps of the story

// What the two requests of the story prefer.
const story = ["code=lost", "code=ok"];

// The faults that have a button, beside those of the words in openapi.json.
const presets = ["code=503", "code=429", "delay=3", "delay=30"];

// The parameters that make requests wait, as the buttons say it.
const delays = { delay: "Wait", "answer-delay": "Answer after" };

// The elements of the page that have an id, by id.
const page = Object.fromEntries([...document.querySelectorAll("[id]")].map((one) => [one.id, one]));

// storage keeps the key for as long as the tab is open, unless the browser forbids it.
const storage = (() => {
  try {
    return sessionStorage;
  } catch {
    return {};
  }
})();

// What is known of the service.

const unread = { since: "", total: 0 }; // the meta of no journal
const noPets = { count: 0, last: [] };

let description = null; // openapi.json
let fault = {}; // the standing fault, or {} for none
let lastKnown = ""; // what the sign has said of it
let meta = unread; // of the journal that has been read
let rows = []; // of requests, in the order of their arrival
let pets = noPets; // that have been read, with the last ones in ascending order of id

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
    .catch(({ message }) => Promise.reject(Object.assign(new Error(message), { isSilence: true })));
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

// readNews reads what is new, and draws it. It reports whether this is all.
async function readNews() {
  fault = await call("GET", "/__admin/fault");
  await readJournal();
  return readPets();
}

// readJournal reads and draws the new requests, and draws the sign. After a clear, a reset or
// a restart, the total begins anew, and petstore may be another version of it.
async function readJournal() {
  let journal = await call("GET", `/__admin/requests?after=${meta.total}`, longLimit);
  const { since } = journal.meta;
  if (since !== meta.since) {
    description = await call("GET", "/openapi.json");
    const text = JSON.stringify(description);
    if (text !== drawnDescription) {
      drawnDescription = text;
      drawChoices();
    }
    if (meta.total > 0) {
      journal = await call("GET", "/__admin/requests?after=0", longLimit);
    }
    rows.forEach((row) => row.remove());
    rows = [];
    pets = noPets;
    drawnPets = undefined;
    page.petTable.hidden = true; // until they are read
    page.noPets.hidden = true;
    setText(page.petCount, "");
    if (meta.since) {
      tell(`Cleared or restarted at ${since.slice(11, 19)} UTC`);
    }
  }
  meta = journal.meta;
  showDesk(true);
  keepPlace(() => {
    drawRequests(journal);
    drawSign();
  });
}

// readPets reads the next page of pets, and draws the last pets once all are read. It
// reports whether they are. Between resets, no pet is changed or removed.
async function readPets() {
  const after = pets.last.at(-1)?.id ?? 0;
  const news = await call("GET", `/__admin/pets?limit=${maxPets}&after=${after}`, longLimit);
  if (news.length > 0) {
    pets = { count: pets.count + news.length, last: [...pets.last, ...news].slice(-maxPets) };
  }
  const isAll = news.length < maxPets;
  if (isAll && pets !== drawnPets) {
    drawPets();
  }
  return isAll;
}

// showTrouble says what is wrong at the moment, or asks for the key. What the page could
// not show is read once more, from the beginning.
function showTrouble(problem) {
  const { status, message, isSilence } = problem;
  if (status === 401) {
    askForKey(message);
    return;
  }
  console.error(problem);
  showDesk(true);
  if (!isSilence) {
    meta = unread;
    pets = noPets;
  }
  keepPlace(() => {
    page.end.hidden = true;
    const headline = isSilence ? "Petstore does not answer" : "This page cannot show what petstore answers";
    showSign("trouble", headline, `This page goes on asking. ${lastKnown}${isSilence ? "" : message}`);
  });
}

function askForKey(reason = "") {
  delete storage.apiKey;
  setText(page.title, "Petstore");
  showDesk(false);
  page.keyError.textContent = reason;
  page.keyField.focus();
}

// showDesk shows the desk, or the question for the key.
function showDesk(isShown) {
  page.desk.hidden = !isShown;
  page.resetAll.hidden = !isShown;
  page.keyForm.hidden = isShown;
  page.loading.hidden = true;
}

// Actions.

// press marks a button for as long as its action takes, and tells what that returns.
async function press(button, action) {
  button.ariaBusy = "true";
  tell(await action());
  button.ariaBusy = "false";
}

let unheard = {}; // the last headline of the sign and the last verdict that are to be read aloud
let heardAt = 0; // when some were read last

// readAloud says what is new to those who do not see it, but not all the time.
function readAloud() {
  if (Date.now() - heardAt > quietTime && (unheard.sign || unheard.verdict)) {
    page.heard.textContent = Object.values(unheard).join(". ");
    unheard = {};
    heardAt = Date.now();
  }
}

// tell shows a text, if there is one, and says it to those who do not see it.
function tell(text) {
  if (text) {
    page.notice.textContent = text;
    page.notice.title = text;
    page.heard.textContent = text;
    heardAt = Date.now();
  }
}

// act changes something, and returns the message of a refusal, or "". If there is no
// answer, the sign says so.
async function act(method, path) {
  const refusal = await call(method, path).then(
    () => "",
    ({ isSilence, message }) => (isSilence ? "" : message),
  );
  await read();
  return refusal;
}

function setFault(query) {
  return act("PUT", `/__admin/fault?${new URLSearchParams(query)}`);
}

let petsMade = 0;

// newPet returns a pet that no request has sent, or it would seem to be sent again.
function newPet() {
  let pet;
  do {
    petsMade++;
    pet = JSON.stringify({ name: petsMade === 1 ? "Rex" : `Rex ${petsMade}`, categoryId: 7 });
  } while (rows.some((row) => row.request.body === pet));
  return pet;
}

// addPet adds a pet as a client does: the request is recorded, and gets faults.
async function addPet(pet, preferences = {}) {
  const headers = { Authorization: `Bearer ${storage.apiKey}`, "Content-Type": "application/json", ...preferences };
  await fetch("/v1/pets", { method: "POST", headers, body: pet })
    .then((response) => response.text())
    .catch(() => ""); // the row says what has become of it
  await read();
}

// showStory adds a pet, loses the answer, and adds it again, as many clients do. It leaves
// the standing fault to others.
async function showStory() {
  const pet = newPet();
  page.story.disabled = true;
  await addPet(pet, { Prefer: story[0] });
  await new Promise((resolve) => setTimeout(resolve, pace));
  await addPet(pet, { Prefer: story[1] });
  page.story.disabled = false;
  if (document.activeElement === document.body) {
    tabStop?.firstChild.focus({ preventScroll: true }); // as the button, which had the focus, is hidden
  }
}

// What is known of requests.

// isWaiting reports whether a request is not over yet.
function isWaiting({ ended }) {
  return ended === undefined;
}

// isUnread reports whether a body was sent, by the headers, and could not be read.
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
function mishapOf({ method, fault }) {
  return method !== "HEAD" && fault?.code && entryOf(fault.code)["x-body"];
}

// hasFailed reports whether a client got no answer, not all of it, or an error. The
// request must be over.
function hasFailed(request) {
  const { status } = request;
  return status === 0 || status >= 400 || hasLeft(request) || Boolean(mishapOf(request));
}

// outcomeOf says what has become of a request, in a word or two.
function outcomeOf(request) {
  const { status } = request;
  if (isWaiting(request)) {
    return "waiting";
  }
  if (status === 0 && !hasLeft(request)) {
    return "no answer";
  }
  const what = hasLeft(request) ? "client left" : mishapOf(request);
  return [status, what].filter(Boolean).join(", ");
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

// compare returns what follows from a request and the rows of earlier ones:
// - end, in milliseconds
// - line, by which equal requests of a client are found, unless it is not known whole
// - pause, in seconds, if it repeats a request: the last equal one that was over when this
//   one came, if it had failed. Requests that a client sends at once cannot be told from
//   repetitions if one of them has failed by then.
// - isEarly, if that one had a Retry-After, and the client did not wait for so long
// - hasAdded, if it added a pet
// - adds, the pets that it and those that it repeats have added, by id, or "?" where the
//   answer does not have it
function compare(request, earlier) {
  const { time, method, url, headers, body, seconds, operation, fault, error, answer, answerHeaders = {} } = request;
  const start = Date.parse(time);
  const end = isWaiting(request) ? Infinity : start + seconds * 1000;
  const names = ["User-Agent", "Authorization", "Origin", "Idempotency-Key", "Content-Type"];
  const client = names.map((name) => headers[name]);
  const text = JSON.stringify([client, method, url, body]);
  // Bytes that are no text are U+FFFD.
  const line = isUnread(request) || isCut(body, headers) || text.includes("\uFFFD") ? undefined : text;
  const wasOver = (row) => row.facts.end - (hasLeft(row.request) ? lateness : rounding) <= start;
  const last = line && earlier.findLast((row) => row.facts.line === line && wasOver(row));
  const isAgain = last && hasFailed(last.request);
  const pause = isAgain ? Math.max(0, start - last.facts.end) / 1000 : undefined;
  const isEarly = isAgain && start + rounding < dueOf(last);

  const [, id] = /\/(\d+)$/.exec(answerHeaders.Location) ?? [];
  const isHidden = fault?.code === "html" && answer && (!error || hasLeft(request));
  const hasAdded = operation === "createPet" && Boolean(id || isHidden);
  const adds = [...(isAgain ? last.facts.adds : []), ...(hasAdded ? [id ?? "?"] : [])];
  return { end, line, pause, isEarly, hasAdded, adds };
}

// dueOf returns the time before which a request is not to be repeated, by the Retry-After of
// an answer that was sent, in milliseconds. It may be NaN.
function dueOf({ request: { status, answerHeaders }, facts: { end } }) {
  const after = status > 0 ? answerHeaders?.["Retry-After"] : undefined;
  return /^\d+$/.test(after) ? end + after * 1000 : Date.parse(after);
}

// verdictOf says what a request has added.
function verdictOf({ request, facts: { adds, hasAdded } }) {
  if (!hasAdded) {
    return "";
  }
  if (adds.at(-1) === "?" && hasLeft(request)) {
    return "may add a pet"; // or it was refused, before the client left
  }
  if (adds.length === 1) {
    return adds[0] === "?" ? "adds a pet" : `adds pet ${adds[0]}`;
  }
  if (adds.includes("?")) {
    return `adds it again, ${adds.length} times now`;
  }
  const ids = adds.length > 4 ? [...adds.slice(0, 3), `${adds.length - 3} more`] : adds;
  return `adds it again: pets ${new Intl.ListFormat("en").format(ids)}`;
}

// What is known of faults.

// isPreferred reports whether a request has asked for its fault itself.
function isPreferred({ headers }) {
  return /(^|[,;])[ \t]*(code|delay|answer-delay)[ \t]*=/i.test(headers.Prefer ?? "");
}

// isHeld reports whether a request waits, and a standing fault was applied to it.
function isHeld(request) {
  return isWaiting(request) && request.fault && !isPreferred(request);
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

// entryOf returns what openapi.json says of a single code, which is a word or a status. A
// code that it does not have is shown as it is.
function entryOf(code) {
  const { oneOf } = description.components.schemas.FaultCode;
  const entry = oneOf.find((one) => one.enum?.includes(code) ?? new RegExp(one.pattern).test(code));
  return entry ?? { title: code, description: "", enum: [code] };
}

// meaningOf says what a fault with a single code does.
function meaningOf(fault) {
  const { parameters } = description.paths["/__admin/fault"].put;
  const waits = waitsOf(fault).map((name) => {
    const parameter = parameters.find((one) => one.name === name);
    return parameter.description.replace("this number of seconds", `${fault[name]} s`);
  });
  const meaning = fault.code && entryOf(fault.code).description;
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

// stepsOf returns what the requests to come get from a standing fault, and how many of
// them get it in turn. The last step is for all that follow. There are no steps if there
// is no fault, or if it is used up.
function stepsOf({ matched, applied, code, operation, skip = 0, times = Infinity, ...others }) {
  const bounded = (count) => (count > Number.MAX_SAFE_INTEGER ? Infinity : count); // which is as good
  const codes = code?.split(",") ?? [code];
  const isList = codes.length > 1; // which has one request for each code
  const count = isList ? 1 : bounded(times - applied);
  const coming = (isList ? codes.slice(applied) : codes).map((one) => ({ step: { ...others, code: one }, count }));
  const left = [{ step: {}, count: bounded(skip - matched) }, ...coming].filter((one) => one.count > 0);
  const usual = { step: {}, count: Infinity };
  const steps = [];
  for (const { step, count } of left.length > 0 ? [...left, usual] : []) {
    const label = labelOf(step);
    if (steps.at(-1)?.label !== label) {
      steps.push({ step, label, count: 0 });
    }
    steps.at(-1).count += count;
    if (count === Infinity) {
      break;
    }
  }
  return steps;
}

// sentenceOf says which requests get the first step, and what the others get.
function sentenceOf([first, ...later], operation = "") {
  const noun = `${operation} request`.trim();
  const rangeOf = (count) => {
    if (count === Infinity) {
      return `every ${noun}`;
    }
    return count === 1 ? `the next ${noun}` : `the next ${counted(count, noun)}`;
  };
  const then = ({ step, label, count }) => {
    const needsRange = count === Infinity ? isFailure(step) : count > 1;
    return `then ${label}${needsRange ? ` for ${rangeOf(count)}` : ""}`;
  };
  return [`for ${rangeOf(first.count)}`, ...later.map(then)].join(", ");
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

// setText changes a text, unless it is the same: what is selected would be lost, and what
// has a role would be read aloud again.
function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

// reveal shows what nobody sees, or what turns a text around, as numbers.
function reveal(text) {
  const unseen = /[\p{Cc}\p{Zl}\p{Zp}[\p{Default_Ignorable_Code_Point}--[\u200D\uFE0F]]]/gv;
  const number = (char) => `⟨U+${char.codePointAt(0).toString(16).padStart(4, "0")}⟩`;
  return text.replace(unseen, (char) => (char === "\n" ? char : number(char)));
}

// excerpt returns the beginning of a text, without half a character.
function excerpt(text) {
  const start = text.slice(0, 200).replace(/[\uD800-\uDBFF]$/, "");
  return reveal(start) + (start.length < text.length ? "…" : "");
}

let drawnDescription; // as text

// drawChoices draws the buttons of the faults, each below the moment when it acts,
// which is the beginning of its meaning.
function drawChoices() {
  const { FaultCode, FaultOperation } = description.components.schemas;
  const words = FaultCode.oneOf.flatMap((one) => one.enum ?? []).filter((code) => code !== "ok");
  const faults = [...presets, ...words.map((code) => `code=${code}`)].map((query) => {
    const one = Object.fromEntries(new URLSearchParams(query));
    const meaning = meaningOf(one);
    const button = make("button", { type: "button", title: `${query}: ${meaning}` }, labelOf(one));
    button.addEventListener("click", () => press(button, () => setFault(`${query}&${page.scope.value}`)));
    return { button, moment: meaning.split(",")[0] };
  });
  const moments = Object.groupBy(faults, ({ moment }) => moment);
  page.buttons.replaceChildren();
  page.scope.length = 2; // the first two are in the document
  for (const [moment, ofMoment] of Object.entries(moments)) {
    page.buttons.append(make("h3", { className: "quiet" }, moment), ...ofMoment.map(({ button }) => button));
  }
  for (const operation of FaultOperation.enum) {
    page.scope.append(
      make("option", { value: `times=1&operation=${operation}` }, `The next ${operation}`),
      make("option", { value: `operation=${operation}` }, `Every ${operation}`),
    );
  }
}

// drawSign says what the next request gets.
function drawSign() {
  const { matched, applied, operation } = fault;
  const isSet = matched !== undefined;
  const steps = stepsOf(fault);
  const next = steps[0];
  const held = rows.filter(({ request }) => isHeld(request)).length;
  const isActive = held > 0 || isFailure(next?.step);
  let headline = held > 0 ? "New requests are answered as usual" : "Requests are answered as usual";
  let sentence = isSet ? `The last fault is used up: it was applied to ${counted(applied, "request")}.` : "";
  if (next) {
    headline = capitalized(next.label);
    sentence = `${sentenceOf(steps, operation)}. ${isFailure(next.step) ? meaningOf(next.step) : ""}`;
  }
  if (held > 0) {
    headline = `${counted(held, "request")} held. ${headline}`;
  }
  showSign(isActive ? "active" : "calm", headline, sentence);
  setText(page.query, isSet ? queryOf(fault) : "");
  setText(page.end, held > 0 ? "End and release" : "End");
  page.end.hidden = !(next || held > 0);
  lastKnown = `Last known: ${headline}${next ? "" : "."} ${sentence} `;
}

function showSign(className, headline, sentence) {
  page.sign.className = className;
  if (page.headline.textContent !== headline) {
    page.headline.textContent = headline;
    unheard.sign = headline;
  }
  setText(page.sentence, sentence);
  setText(page.title, className === "calm" ? "Petstore" : `${headline} – Petstore`);
}

let place = {}; // of the row that is being read

// keepPlace draws what is new, and keeps the place of a row that is in sight and is open or has
// the focus, as far as the list or, on a phone, the page can be scrolled.
function keepPlace(draw) {
  const list = page.list.getBoundingClientRect();
  const isInSight = (one) => {
    const { top, bottom } = one.getBoundingClientRect();
    return bottom > list.top && top < list.bottom;
  };
  const candidates = [...page.rows.querySelectorAll("details:is([open]:not([hidden]), :has(:focus-visible))")];
  const row = candidates.find(isInSight) ?? candidates[0];
  const top = () => row?.getBoundingClientRect().top;
  const scrolled = () => page.list.scrollTop + scrollY;
  const isByUser = scrolled() !== place.scrolled && Math.abs(top() - place.top) > tolerance;
  if (row !== place.row || isByUser || !place.isInSight) {
    place = { row, top: top() };
  }
  place.isInSight = row && isInSight(row);
  draw();
  if (place.isInSight && row.checkVisibility()) {
    page.list.scrollTop += top() - place.top;
    scrollBy(0, top() - place.top);
  }
  place.scrolled = scrolled();
}

// drawRequests draws the rows of new requests, and of those that wait. A request that
// waited keeps its row. The row that is being read stays even if the journal has dropped
// its request.
function drawRequests({ requests, waiting }) {
  const waited = rows.filter(({ request }) => isWaiting(request));
  const known = ({ body, fault }) => JSON.stringify([body, fault]);
  for (const request of [...requests, ...waiting]) {
    const i = waited.findIndex((row) => row.request.arrived === request.arrived);
    const [row] = i < 0 ? [] : waited.splice(i, 1);
    if (row && isWaiting(request) && known(request) === known(row.request)) {
      row.seconds.textContent = inSeconds(request.seconds);
    } else {
      drawRequest(row ?? addRow(request), request);
    }
  }
  const last = rows.indexOf(place.row); // which stays, as do those above it, or it would move
  const isDropped = ({ ended }) => ended <= meta.total - maxRequests;
  const gone = rows.filter((row, i) => waited.includes(row) || (isDropped(row.request) && i > last));
  gone.forEach((row) => row.remove());
  rows = rows.filter((row) => !gone.includes(row));
  page.list.hidden = rows.length === 0;
  const isOfStory = ({ request: { headers } }, i) => isOfPage(headers) && headers.Prefer === story[i];
  page.start.hidden = rows.length > story.length || !rows.every(isOfStory);
  filter();
}

// addRow returns a new row in its place, by the order of arrival.
function addRow(request) {
  const row = make("details", { name: "request", request, facts: {} }, make("summary", { tabIndex: -1 }));
  const place = rows.findLastIndex((other) => other.request.arrived < request.arrived) + 1;
  page.rows.insertBefore(row, rows[place] ?? null);
  rows.splice(place, 0, row);
  return row;
}

// drawRequest draws what is new of a request, also in the later rows that may repeat it.
// What cannot be drawn does not keep others from being drawn.
function drawRequest(row, request) {
  row.request = request;
  try {
    fillRow(row);
    if (row.open) {
      showDetail(row);
    }
    const later = rows.slice(rows.indexOf(row) + 1);
    later.filter((one) => one.facts.line === row.facts.line).forEach(fillRow);
    if (row.facts.hasAdded && row.facts.adds.length > 1) {
      unheard.verdict = `Request ${request.arrived} ${verdictOf(row)}`;
    }
  } catch (problem) {
    row.firstChild.replaceChildren(`Request ${request.arrived} cannot be shown: ${problem.message}`);
  }
}

// fillRow draws what a request was, what has become of it, and what it changed.
function fillRow(row) {
  const { request } = row;
  row.facts = compare(request, rows.slice(0, rows.indexOf(row)));
  const { time, method, url, headers, body, seconds, fault, ignored } = request;
  const { pause, isEarly, adds } = row.facts;
  const error = errorOf(request);
  const origin = isPreferred(request) ? "Prefer: " : "";
  const faultText = fault && origin + queryOf(fault).replace(/^code=/, "").replaceAll("&", " ");
  const isNotable = hasFailed(request) || adds.length > 1;
  const again = pause < 0.01 ? "again, at once" : `again, after ${pause?.toFixed(2)} s`;
  const note = (className, text) => text && make("span", { className }, text);
  const notes = [
    note("mono", excerpt(url)),
    note(isFailure(fault) ? "mono bad" : "mono quiet", faultText),
    note(isNotable ? "verdict bad" : "verdict quiet", verdictOf(row)),
    note(isEarly ? "verdict warn" : "verdict quiet", pause !== undefined && again + (isEarly ? ", before Retry-After" : "")),
    note("warn", error && excerpt(error)),
    note("warn", ignored && excerpt(`ignored: ${ignored.join(", ")}`)),
    note("body quiet", !error && pause === undefined && excerpt(body)),
  ].filter(Boolean);
  row.className = isWaiting(request) ? "waiting" : "";
  row.seconds = make("span", { className: "quiet" }, inSeconds(seconds));
  row.firstChild.replaceChildren(
    make("span", { className: "mono quiet" }, time.slice(11)),
    make("span", { className: "mono cut" }, excerpt(method)),
    make("span", { className: `chip ${colourOf(request)}` }, outcomeOf(request)),
    make("span", { className: "what cut" }, ...notes.flatMap((one) => [one, " "])),
    make(
      "span",
      { className: "client cut quiet", title: excerpt(headers["User-Agent"] ?? "") },
      excerpt(clientOf(headers)),
    ),
    row.seconds,
  );
}

// isOfPage reports whether this page has sent the request with these headers.
function isOfPage({ Origin: origin }) {
  return origin === location.origin;
}

// clientOf returns the name of a client. A browser says that it is many.
function clientOf(headers) {
  if (isOfPage(headers)) {
    return "petstore's page";
  }
  const { "User-Agent": agent = "" } = headers;
  const [, name, version] = /^Mozilla.*(Edg|Firefox|Chrome|Version)\/(\d+)/.exec(agent) ?? [];
  return name ? `${name.replace("Version", "Safari")} ${version}` : agent;
}

function inSeconds(seconds) {
  return seconds >= 0.1 ? `${seconds.toFixed(1)} s` : "";
}

// The details of the row that was opened last: a text, what was sent, and what was answered.
const detail = make("div", { className: "detail" }, make("p"), make("p"), make("p"));

// showDetail shows what was sent, beside what was answered.
function showDetail(row) {
  const { request } = row;
  const { arrived, time, method, url, headers, body, seconds, status, fault, error } = request;
  const { answer, answerHeaders } = request;
  const isDone = method !== "HEAD" && !hasLeft(request); // or less was done than is meant
  const notes = [
    isFailure(fault) && isDone && meaningOf(fault),
    hasLeft(request) && `${capitalized(error)}.`,
  ];
  const facts = isWaiting(request) ? "" : `Request ${arrived}, ${time}, ${seconds.toFixed(3)} s`;
  const beginning = `the first ${maxText} bytes`;
  const title = ["Sent", isUnread(request) ? "without its body" : isCut(body, headers) && beginning];
  const answerTitle = [
    "Answer",
    status === 0 ? "not sent" : mishapOf(request),
    method !== "HEAD" && isCut(answer, answerHeaders) && beginning,
  ];
  const parts = [
    make("p", {}, notes.filter(Boolean).join(" "), " ", make("small", {}, facts)),
    part(title.filter(Boolean).join(", "), `${method} ${url}`, body, headers),
    answer || status > 0
      ? part(answerTitle.filter(Boolean).join(", "), status, method !== "HEAD" && answer, answerHeaders)
      : make("section", { hidden: true }),
  ];
  parts.forEach((one, i) => {
    const old = detail.children[i];
    if (!old.isEqualNode(one)) { // or what is selected there would be lost
      old.replaceWith(one);
    }
  });
  if (row.lastChild !== detail) {
    row.append(detail);
  }
}

// part returns a message: its first line, its body and its headers. A long one scrolls.
function part(title, line, body, headers) {
  const names = Object.entries(headers).flatMap(([name, value]) => [
    make("dt", {}, reveal(name)),
    make("dd", {}, reveal(value)),
  ]);
  const text = [line, body].filter(Boolean).join("\n\n");
  return make(
    "section",
    {},
    make("h3", {}, title),
    make("pre", { tabIndex: 0 }, reveal(text)),
    make("dl", {}, ...names),
  );
}

// filter shows the rows that have all words of the filter in what they show, or in what was
// sent and answered, and counts the rows.
function filter() {
  const words = page.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const isFound = ({ firstChild, request }) => {
    const { operation, url, headers, body, answer, answerHeaders = {} } = request;
    const cells = [...firstChild.children].map((cell) => cell.textContent);
    const fields = [...Object.entries(headers), ...Object.entries(answerHeaders)].map((field) => field.join(": "));
    const text = [...cells, operation, url, ...fields, body, answer].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  for (const row of rows) {
    row.hidden = words.length > 0 && !isFound(row);
  }
  const shown = shownRows();
  const waiting = rows.filter(({ request }) => isWaiting(request)).length;
  const recorded = Math.min(meta.total, maxRequests);
  const counts = [
    recorded < meta.total ? `the last ${recorded} of ${meta.total}` : recorded > 0 && String(recorded),
    waiting > 0 && `${waiting} waiting`,
  ];
  const found = shown.length < rows.length ? `: ${shown.length} found` : "";
  setText(page.count, counts.filter(Boolean).join(" and ") + found);
  page.noneFound.hidden = shown.length > 0;
  setTabStop(shown.includes(chosen) ? chosen : shown.at(-1));
}

function shownRows() {
  return rows.filter((row) => !row.hidden);
}

let chosen; // the row that had the focus last
let tabStop; // the row that Tab leads to, from which the arrow keys lead on: the chosen one, or the newest

function setTabStop(row) {
  tabStop?.firstChild.setAttribute("tabindex", -1);
  row?.firstChild.setAttribute("tabindex", 0);
  tabStop = row;
}

let drawnPets; // what pets was when it was drawn last

function drawPets() {
  const { count, last } = pets;
  const cells = ({ id, name, status = "" }) =>
    [id, excerpt(name), status].map((text) => make("td", { className: "cut", title: text }, text));
  page.petRows.replaceChildren(...last.toReversed().map((pet) => make("tr", {}, ...cells(pet))));
  page.petTable.hidden = count === 0;
  page.noPets.hidden = count > 0;
  setText(page.petCount, count > maxPets ? `the last ${maxPets} of ${count}` : String(count || ""));
  drawnPets = pets;
}

// Events.

// A row opens where it is, although another one above it may close. If there is no room
// below it, it is scrolled up, as far as it stays in sight.
page.rows.addEventListener("click", (event) => {
  const summary = event.target.closest("summary");
  if (!summary) {
    return;
  }
  event.preventDefault();
  const row = summary.parentElement;
  const place = (element) => element.getBoundingClientRect();
  const { top } = place(summary);
  if (!row.open) {
    showDetail(row);
  }
  row.open = !row.open;
  page.list.scrollTop += place(summary).top - top;
  scrollBy(0, place(summary).top - top);
  const below = place(row).bottom - place(page.list).bottom;
  const above = place(summary).top - Math.max(0, place(page.sign).bottom, place(page.list).top);
  page.list.scrollTop += Math.max(0, Math.min(below, above));
});

page.rows.addEventListener("keydown", (event) => {
  const shown = shownRows();
  const i = shown.findIndex((row) => row.firstChild === event.target);
  const targets = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: shown.length - 1 };
  const row = i < 0 ? undefined : shown[targets[event.key]];
  if (row) {
    event.preventDefault();
    row.firstChild.focus();
  }
});

page.rows.addEventListener("focusin", (event) => {
  chosen = event.target.closest("details");
  setTabStop(chosen);
});

page.another.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = page.field.value.trim();
  press(event.submitter ?? page.another, async () => {
    page.field.setCustomValidity(await setFault(text.includes("=") ? text : `code=${text}`));
    page.field.reportValidity();
  });
});

page.field.addEventListener("input", () => page.field.setCustomValidity(""));

page.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  storage.apiKey = page.keyField.value.replace(/[^!-~]/g, ""); // no key has a space
  press(event.submitter ?? page.keyForm, async () => {
    await read();
    page.scope.focus({ preventScroll: true });
  });
});

page.filter.addEventListener("input", () => {
  filter();
  page.heard.textContent = page.filter.value.trim() && `${shownRows().length} found`;
});
page.addPet.addEventListener("click", () => {
  // One waits at most, as the tabs of a browser share six connections to a service.
  if (page.addPet.ariaBusy !== "true") {
    press(page.addPet, () => addPet(newPet()));
  }
});
page.story.addEventListener("click", showStory); // which disables it
page.end.addEventListener("click", () =>
  press(page.end, async () => {
    const refusal = await act("DELETE", "/__admin/fault");
    page.scope.focus({ preventScroll: true }); // as the button is hidden
    return refusal;
  }),
);
page.clear.addEventListener("click", () => {
  if (rows.length === 0 || confirm("Remove all recorded requests, for all clients?")) {
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

// takeKey takes the key in the address, as in /#key=abc, and removes it there.
function takeKey() {
  const fragment = location.hash.slice(1).replaceAll("+", "%2B"); // or it would be a space
  const key = new URLSearchParams(fragment).get("key");
  if (key) {
    storage.apiKey = key;
    history.replaceState(null, "", location.pathname);
  }
}

page.tooOld.hidden = CSS.supports("color", "light-dark(red, red)"); // as in all that are named there
page.base.textContent = `${location.origin}/v1`;
page.curl.textContent = `curl -H "Authorization: Bearer $PETSTORE_API_KEY" ${location.origin}/v1/pets`;
takeKey();
if (storage.apiKey) {
  page.loading.hidden = false;
  read();
} else {
  askForKey();
}
