// This script shows the standing fault, the journal and the pets, sets faults,
// and is a client itself. What faults there are, and what they mean, is in
// openapi.json. Clients can send any text, so text is never set as HTML.

const interval = 500; // milliseconds between two readings
const timeLimit = 5000; // milliseconds for a request of the page for itself
const maxPets = 100; // as on a page of listPets
const maxAnswer = 1000; // bytes of an answer that the journal keeps
const rounding = 1; // milliseconds by which the journal may put an end too late
const pace = 1000; // milliseconds between the steps of the story

// The faults that have a button, beside those of the words in openapi.json.
const presets = ["code=503", "code=429", "delay=3", "delay=30"];

// The parameters that make requests wait, as the buttons say it.
const delays = { delay: "Wait", "answer-delay": "Answer after" };

// What becomes of a body that is not sent as usual, while it is sent and after.
const mishaps = {
  truncate: { after: "cut", sent: "of which half was sent" },
  stall: { during: "stalling", after: "stalled", sent: "of which half was sent" },
  drip: { during: "dripping", after: "dripped", sent: "in pieces" },
  malformed: { after: "malformed" },
};

// The elements of the page that have an id, by id.
const page = Object.fromEntries([...document.querySelectorAll("[id]")].map((one) => [one.id, one]));

// What is known of the service.

let description = null; // what readDescription returns
let fault = {}; // the standing fault, or {} for none
let meta = { since: "", total: 0 }; // of the journal that has been read
let rows = []; // of requests, in the order of their arrival
let pets = []; // the last ones, in ascending order of id

// Requests of the page for itself. The service does not record them, and applies
// no fault to them.

// call returns the JSON of an answer. The error that stands for a refusal has its
// message and its status.
async function call(method, path, parse = JSON.parse) {
  const headers = { Authorization: `Bearer ${sessionStorage.apiKey}`, "Petstore-Observer": "page" };
  const response = await fetch(path, { method, headers, signal: AbortSignal.timeout(timeLimit) });
  const answer = parse((await response.text()) || "{}");
  if (!response.ok) {
    throw Object.assign(new Error(answer.message), { status: response.status });
  }
  return answer;
}

// readDescription returns what the page uses of openapi.json.
async function readDescription() {
  const withoutBackticks = (text) => JSON.parse(text.replaceAll("`", ""));
  const { paths, components } = await call("GET", "/openapi.json", withoutBackticks);
  const { FaultCode, FaultOperation } = components.schemas;
  const { parameters } = paths["/__admin/fault"].put;
  return { codes: FaultCode.oneOf, operations: FaultOperation.enum, parameters };
}

let reading = Promise.resolve(); // settled when all readings have ended
let timer = 0; // of the next one

// read reads what is new, after a reading under way, and again after a while.
function read() {
  reading = reading.then(async () => {
    clearTimeout(timer);
    if (sessionStorage.apiKey) {
      await readNews().catch(showTrouble);
      timer = setTimeout(read, interval);
    }
  });
  return reading;
}

// readNews reads what is new, and draws it. After a reset, the ids of the journal
// begin anew.
async function readNews() {
  if (!description) {
    description = await readDescription();
    drawChoices();
  }
  fault = await call("GET", "/__admin/fault");
  let journal = await call("GET", `/__admin/requests?after=${meta.total}`);
  const { since } = journal.meta;
  const isAnew = since !== meta.since;
  if (isAnew) {
    journal = await call("GET", "/__admin/requests?after=0");
    rows.forEach((row) => row.remove());
    rows = [];
    say(meta.since && `Cleared or restarted at ${since.slice(11, 19)} UTC`);
  }
  meta = journal.meta;
  const latest = await readPets(isAnew ? [] : pets);
  if (latest !== pets) {
    pets = latest;
    drawPets();
  }
  showDesk(true);
  drawSign(true);
  drawRequests(journal);
}

// readPets returns the last pets. Between resets, no pet is changed or removed.
// Ids are read as text, as numbers are exact to 2^53 only. Within a string, the
// quotes of "id": would be escaped.
async function readPets(known) {
  const path = `/v1/pets?limit=${maxPets}&after=${known.at(-1)?.id ?? 0}`;
  const withTextIds = (text) => JSON.parse(text.replace(/"id":(\d+)/g, '"id":"$1"'));
  const news = await call("GET", path, withTextIds);
  if (news.length === 0) {
    return known;
  }
  const all = [...known, ...news].slice(-maxPets);
  return news.length < maxPets ? all : readPets(all);
}

// showTrouble tells that nothing is known at the moment, or asks for the key.
function showTrouble(problem) {
  if (problem.status === 401) {
    askForKey(problem.message);
    return;
  }
  console.error(problem);
  showDesk(true);
  drawSign(false);
}

function askForKey(reason = "") {
  sessionStorage.removeItem("apiKey");
  document.title = "Petstore";
  showDesk(false);
  page.keyError.textContent = reason;
  page.keyField.focus();
}

// showDesk shows the desk, or the question for the key.
function showDesk(isShown) {
  page.desk.hidden = !isShown;
  page.addPet.hidden = !isShown;
  page.keyForm.hidden = isShown;
}

// Actions.

function say(text) {
  page.notice.textContent = text;
  page.notice.title = text;
}

// act changes something, or shows the refusal below the field for faults. If there is
// no answer, the sign says so.
async function act(method, path) {
  let refusal = "";
  await call(method, path).catch(({ status, message }) => {
    refusal = status === 400 ? message : "";
  });
  say("");
  page.refusal.textContent = refusal;
  await read();
}

function setFault(query) {
  return act("PUT", `/__admin/fault?${new URLSearchParams(query)}`);
}

// send sends a request as a client: it is recorded, and gets faults.
async function send(request) {
  say("");
  const outcome = await fetch(requestOf(request))
    .then((response) => response.text().then(() => response.status))
    .catch(() => "no whole answer");
  await read();
  say(`This page got ${outcome}`);
}

let petsSent = 0;

// newPet returns a request that adds a pet with another name than the last one.
function newPet() {
  petsSent++;
  const name = petsSent === 1 ? "Rex" : `Rex ${petsSent}`;
  return {
    method: "POST",
    url: "/v1/pets",
    headers: { Authorization: "Bearer ***", "Content-Type": "application/json" },
    body: JSON.stringify({ name, categoryId: 7 }),
  };
}

function addPet() {
  page.list.scrollTop = page.list.scrollHeight;
  send(newPet());
}

// showStory adds a pet, loses the answer, and adds it again, as many clients do.
async function showStory() {
  const request = newPet();
  await setFault("code=lost&times=1&operation=createPet");
  for (let i = 0; i < 2; i++) {
    await new Promise((resolve) => setTimeout(resolve, pace));
    await send(request);
  }
  tabStop?.firstChild.focus(); // as the button is hidden
}

// The names of the headers that browsers send by themselves.
const ofBrowser =
  /^(Accept|Cache-Control|Connection|Content-Length|Host|Origin|Pragma|Priority|Referer|User-Agent|(Accept|Sec)-.*)$/;

// requestOf returns a request to this service, with the key in its place.
function requestOf({ method, url, headers, body }) {
  const given = Object.entries(headers).filter(([name]) => !ofBrowser.test(name));
  const withKey = ([name, value]) => [
    name,
    name === "Authorization" ? value.replace("***", () => sessionStorage.apiKey) : value,
  ];
  return new Request(location.origin + url, {
    method,
    headers: given.map(withKey),
    body: body ? new TextEncoder().encode(body) : null, // a text would be given a type
    cache: "no-store",
    credentials: "omit",
  });
}

// canSend reports whether a browser can send a request again as it was.
function canSend(request) {
  const { method, url, headers } = request;
  const isASCII = /^[ -~]*$/.test(JSON.stringify(headers));
  if (!/^\/[^#]*$/.test(url) || !isASCII || !isWhole(request)) {
    return false;
  }
  try {
    const copy = requestOf(request);
    const isKept = (name) => ofBrowser.test(name) || copy.headers.has(name);
    const areKept = Object.keys(headers).every(isKept);
    return copy.method === method && copy.url === location.origin + url && areKept;
  } catch {
    return false;
  }
}

// What is known of requests.

// isWhole reports whether the journal has all of what a client sent. It has no body
// that was not read to its end, and U+FFFD in the place of bytes that are no text.
function isWhole({ url, headers, body }) {
  const hasBody = headers["Content-Length"] > 0 || "Transfer-Encoding" in headers;
  const text = [url, body, ...Object.values(headers)].join();
  return (body !== "" || !hasBody) && !text.includes("\uFFFD");
}

// isWaiting reports whether a request is not over yet.
function isWaiting({ status }) {
  return status === undefined;
}

function hasLeft({ error = "" }) {
  return error.startsWith("the client left");
}

// hasFailed reports whether a client got no answer, not all of it, or an error. The
// request must be over.
function hasFailed(request) {
  const { method, status, fault } = request;
  const isPart = method !== "HEAD" && ["truncate", "stall", "malformed"].includes(fault?.code);
  return status === 0 || status >= 400 || hasLeft(request) || isPart;
}

// outcomeOf says what has become of a request, in a word or two.
function outcomeOf(request) {
  const { status, method, fault } = request;
  const mishap = method === "HEAD" ? undefined : mishaps[fault?.code];
  if (isWaiting(request)) {
    const isSent = !waitsOf(fault).length;
    return (isSent && mishap?.during) || "waiting";
  }
  if (hasLeft(request)) {
    return status > 0 ? `${status}, client left` : "client left";
  }
  if (status === 0) {
    return "no answer";
  }
  return mishap ? `${status}, ${mishap.after}` : String(status);
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
  return hasLeft(request) || errorOf(request) || !isFailure(request.fault) ? "warn" : "bad";
}

// errorOf returns the message of an error that a client got, unless it is that of a
// fault.
function errorOf(request) {
  const { status, error, fault } = request;
  const isOfFault = ["html", String(status)].includes(fault?.code);
  return status >= 400 && !isOfFault && !hasLeft(request) ? error : undefined;
}

// compare finds the request that one repeats: the last equal one of the same client
// that had ended when this one came, if it had failed. It also collects the pets that
// both have added, by id, or "?" where the answer does not have it.
function compare(request) {
  const { method, url, headers, body, operation, status, fault, error, answerHeaders = {} } = request;
  const names = ["User-Agent", "Authorization", "Origin", "Idempotency-Key"];
  const client = names.map((name) => headers[name]);
  request.start = Date.parse(request.time);
  request.end = isWaiting(request) ? Infinity : request.start + request.seconds * 1000;
  request.line = JSON.stringify([client, method, url, body]);
  const hadEnded = (one) => one.start <= request.start && one.end - rounding <= request.start;
  const last = rows.findLast((row) => row.request.line === request.line && hadEnded(row.request))?.request;
  const isAgain = last && hasFailed(last) && isWhole(last) && isWhole(request);
  request.pause = isAgain ? Math.max(0, request.start - last.end) / 1000 : undefined;
  request.adds = isAgain ? [...last.adds] : [];

  const [, id] = /\/(\d+)$/.exec(answerHeaders.Location) ?? [];
  const isHidden = status === 502 && fault?.code === "html" && !error;
  request.hasAdded = operation === "createPet" && (id !== undefined || isHidden);
  if (request.hasAdded) {
    request.adds.push(id ?? "?");
  }
}

// verdictOf says what a request has added.
function verdictOf({ adds, hasAdded }) {
  if (!hasAdded) {
    return "";
  }
  if (adds.length > 1) {
    return `adds it again: pets ${new Intl.ListFormat("en").format(adds)}`;
  }
  return adds[0] === "?" ? "adds a pet" : `adds pet ${adds[0]}`;
}

// What is known of faults.

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
  return description.codes.find((one) => one.enum?.includes(code) ?? new RegExp(one.pattern).test(code));
}

// meaningOf says what a fault with a single code does.
function meaningOf(fault) {
  const waits = waitsOf(fault).map((name) => {
    const parameter = description.parameters.find((one) => one.name === name);
    return parameter.description.replace("this number of seconds", `${fault[name]} s`);
  });
  const meaning = fault.code && entryOf(fault.code).description;
  return [...waits, meaning].filter(Boolean).join(" ");
}

// labelOf returns the name of a fault with a single code, as on its button.
function labelOf(fault) {
  const waits = waitsOf(fault).map((name) => `${delays[name]} ${fault[name]} s`);
  const { code = "ok" } = fault;
  const label = entryOf(code).enum ? entryOf(code).title : code;
  return [...waits, code !== "ok" && label].filter(Boolean).join(", ") || "as usual";
}

// queryOf returns the query that sets a fault.
function queryOf({ matched, applied, held, ...parameters }) {
  return decodeURIComponent(new URLSearchParams(parameters));
}

// stepsOf returns what the requests to come get from a standing fault, and how many
// of them.
function stepsOf({ matched, applied, held, code, operation, skip = 0, times = Infinity, ...others }) {
  if (matched === undefined) {
    return [];
  }
  const codes = code?.split(",") ?? [code];
  const isList = codes.length > 1; // which has one request for each code
  const coming = isList ? codes.slice(applied) : codes;
  const count = isList ? 1 : times - applied;
  const steps = coming.map((one) => ({ step: { ...others, code: one }, count }));
  const skipped = { step: {}, count: skip - matched };
  return [skipped, ...steps].filter((one) => one.count > 0);
}

// sentenceOf says which requests get a label, and what the others get.
function sentenceOf(steps, operation = "") {
  const noun = `${operation} request`.trim();
  const range = (count) => {
    if (count === Infinity) {
      return `every ${noun}`;
    }
    return count === 1 ? `the next ${noun}` : `the next ${counted(count, noun)}`;
  };
  const [first, ...later] = steps;
  const near = later.slice(0, 5).map(({ step, count }) => {
    const label = `then ${labelOf(step)}`;
    return count > 1 ? `${label} for ${range(count)}` : label;
  });
  const more = later.length - near.length;
  const last = steps.at(-1);
  const isOver = last.count < Infinity && (more > 0 || isFailure(last.step));
  const parts = [
    `for ${range(first.count)}`,
    ...near,
    more > 0 && `then ${counted(more, "more code")}`,
    isOver && "then as usual",
  ];
  return parts.filter(Boolean).join(", ");
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
function excerpt(text, length = 200) {
  const start = text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "");
  return reveal(start) + (start.length < text.length ? "…" : "");
}

// drawChoices draws the buttons of the faults, each below the moment when it acts,
// which is the beginning of its meaning.
function drawChoices() {
  const { codes, operations } = description;
  const words = codes.flatMap((one) => one.enum ?? []).filter((code) => code !== "ok");
  const faults = [...presets, ...words.map((code) => `code=${code}`)].map((query) => {
    const one = Object.fromEntries(new URLSearchParams(query));
    const meaning = meaningOf(one);
    const button = make("button", { type: "button", title: `${query}: ${meaning}` }, labelOf(one));
    button.addEventListener("click", () => {
      const scope = page.scope.value;
      setFault(scope ? `${query}&${scope}` : query);
    });
    return { button, moment: meaning.split(",")[0] };
  });
  const moments = Object.groupBy(faults, ({ moment }) => moment);
  for (const [moment, ofMoment] of Object.entries(moments)) {
    page.another.before(make("h3", { className: "quiet" }, moment));
    page.another.before(...ofMoment.map(({ button }) => button));
  }
  for (const operation of operations) {
    page.scope.append(
      make("option", { value: `times=1&operation=${operation}` }, `The next ${operation}`),
      make("option", { value: `operation=${operation}` }, `Every ${operation}`),
    );
  }
}

// drawSign says what the next request gets or, if petstore does not answer, what was
// last known of that.
function drawSign(isAnswering) {
  const { matched, applied, held, operation } = fault;
  const isSet = matched !== undefined;
  const steps = description ? stepsOf(fault) : [];
  const isHeld = held > 0;
  const next = steps[0]?.step;
  const isActive = isHeld || isFailure(next);
  let headline = isHeld ? "New requests are answered as usual" : "Requests are answered as usual";
  let sentence = isSet ? `The last fault is used up: it was applied to ${counted(applied, "request")}.` : "";
  if (next) {
    headline = capitalized(labelOf(next));
    sentence = `${sentenceOf(steps, operation)}. ${isFailure(next) ? meaningOf(next) : ""}`;
  }
  if (isHeld) {
    headline = `${counted(held, "request")} held. ${headline}`;
  }
  page.sign.className = isActive ? "active" : "calm";
  if (!isAnswering) {
    const known = description ? `Last known: ${headline}${next ? "" : "."} ${sentence} ` : "";
    sentence = `This page goes on asking. ${known}`;
    headline = "Petstore does not answer";
    page.sign.className = "trouble";
  }
  setText(page.headline, headline);
  setText(page.sentence, sentence);
  setText(page.query, isSet ? excerpt(queryOf(fault)) : "");
  page.end.hidden = !isAnswering || !(next || isHeld);
  page.end.textContent = isHeld ? "End and release" : "End";
  document.title = page.sign.className === "calm" ? "Petstore" : `${headline} – Petstore`;
}

// drawRequests draws the rows of new requests, and of those that wait. A request that
// waited has no id, and may have had no body, but it keeps its row.
function drawRequests({ requests, waiting }) {
  const waited = rows.filter(({ request }) => isWaiting(request));
  const known = ({ body, fault }) => JSON.stringify([body, fault]);
  for (const request of [...requests, ...waiting]) {
    const { time, method, url, headers, seconds } = request;
    const identity = JSON.stringify([time, method, url, headers]);
    const i = waited.findIndex((row) => row.identity === identity);
    if (i < 0) {
      addRow(request, identity);
      continue;
    }
    const [row] = waited.splice(i, 1);
    if (isWaiting(request) && known(request) === known(row.request)) {
      row.seconds.textContent = inSeconds(seconds);
      continue;
    }
    fillRow(row, request);
    if (row.open) {
      showDetail(row);
    }
  }
  const isGone = (row) => waited.includes(row) || row.request.id < meta.first;
  rows.filter(isGone).forEach((row) => row.remove());
  rows = rows.filter((row) => !isGone(row));
  page.list.hidden = rows.length === 0;
  page.start.hidden = rows.length > 0;
  filter();
}

// addRow puts a new row in its place, by the time of its arrival.
function addRow(request, identity) {
  const row = make("details", { name: "request", identity }, make("summary", { tabIndex: -1 }));
  fillRow(row, request);
  const place = rows.findLastIndex((other) => other.request.time <= request.time) + 1;
  page.rows.insertBefore(row, rows[place] ?? null);
  rows.splice(place, 0, row);
}

// fillRow draws what a request was, what has become of it, and what it changed.
function fillRow(row, request) {
  const all = JSON.stringify(request).replaceAll('\\"', '"');
  compare(request);
  const { time, method, url, headers, body, seconds, fault, ignored, pause, adds } = request;
  const { answerHeaders = {} } = request;
  const error = errorOf(request);
  const origin = "Preference-Applied" in answerHeaders ? "Prefer: " : "";
  const faultText = fault && origin + queryOf(fault).replace(/^code=/, "").replaceAll("&", " ");
  const isNotable = hasFailed(request) || adds.length > 1;
  const note = (className, text) => text && make("span", { className }, text);
  const notes = [
    note("mono", excerpt(url, 40)),
    note(isFailure(fault) ? "mono bad" : "mono quiet", faultText),
    note(isNotable ? "verdict bad" : "verdict quiet", verdictOf(request)),
    note("verdict quiet", pause !== undefined && `again, after ${pause.toFixed(2)} s`),
    note("warn", error && excerpt(error)),
    note("warn", ignored && excerpt(`ignored: ${ignored.join(", ")}`)),
    note("body quiet", !error && pause === undefined && excerpt(body)),
  ].filter(Boolean);
  const agent = headers["User-Agent"] ?? "";
  const browser = /^Mozilla.*(Edg|Firefox|Chrome|Version)\/(\d+).*/.exec(agent);
  row.request = request;
  row.className = isWaiting(request) ? "waiting" : "";
  row.seconds = make("span", { className: "quiet" }, inSeconds(seconds));
  row.firstChild.replaceChildren(
    make("span", { className: "mono quiet" }, time.slice(11)),
    make("span", { className: "mono cut" }, excerpt(method)),
    make("span", { className: `chip ${colourOf(request)}` }, outcomeOf(request)),
    make("span", { className: "what cut" }, ...notes.flatMap((one) => [one, " "])),
    make(
      "span",
      { className: "client cut quiet", title: excerpt(agent) },
      browser ? `${browser[1].replace("Version", "Safari")} ${browser[2]}` : excerpt(agent),
    ),
    row.seconds,
  );
  row.text = `${row.firstChild.textContent} ${all}`.toLowerCase();
}

function inSeconds(seconds) {
  return seconds >= 0.1 ? `${seconds.toFixed(1)} s` : "";
}

const detail = make("div", { className: "detail" }); // of the row that was opened last

// showDetail shows what was sent, beside what was answered.
function showDetail(row) {
  const { request } = row;
  const { id, time, method, url, headers, body, seconds, status, fault, error, beyond } = request;
  const { answer, answerHeaders } = request;
  const again = make("button", { type: "button", disabled: !canSend(request) }, "Send again");
  again.title = again.disabled ? "A browser cannot send it as it was." : "";
  again.addEventListener("click", () => send(request));
  const isDone = method !== "HEAD" && !hasLeft(request); // or less was done than is meant
  const notes = [
    isFailure(fault) && isDone && meaningOf(fault),
    hasLeft(request) && `${capitalized(error)}.`,
    beyond && `Not in the contract: ${beyond.join(", ")}.`,
  ];
  const facts = id ? `Request ${id}, ${time}, ${seconds.toFixed(3)} s` : "";
  const sentTitle = isWhole(request) ? "Sent" : "Sent, as far as it is known";
  detail.replaceChildren(
    make(
      "div",
      { className: "bar" },
      make("p", { className: "grow" }, notes.filter(Boolean).join(" "), " ", make("small", {}, facts)),
      again,
    ),
    part(sentTitle, `${method} ${url}`, body, headers),
  );
  if (answer || status > 0) {
    detail.append(part(answerTitle(request), status, indent(answer), answerHeaders));
  }
  row.append(detail);
}

// answerTitle says how much of an answer was sent, and how much of that is shown.
function answerTitle(request) {
  const { method, status, fault, answerHeaders } = request;
  const { sent } = mishaps[fault?.code] ?? {};
  const parts = ["Answer"];
  if (status === 0) {
    parts.push("not sent");
  } else {
    parts.push(method === "HEAD" ? "without its body" : sent);
  }
  if (answerHeaders["Content-Length"] > maxAnswer) {
    parts.push(`the first ${maxAnswer} bytes`);
  }
  return parts.filter(Boolean).join(", ");
}

// part returns a message: its first line, its body and its headers.
function part(title, line, body, headers) {
  const names = Object.entries(headers).flatMap(([name, value]) => [
    make("dt", {}, reveal(name)),
    make("dd", {}, reveal(value)),
  ]);
  const text = [line, body].filter(Boolean).join("\n\n");
  return make("section", {}, make("h3", {}, title), make("pre", {}, reveal(text)), make("dl", {}, ...names));
}

// indent returns JSON of petstore on several lines, and another text as it is, also where
// numbers would not be exact.
function indent(text) {
  const exact = (key, value, context) =>
    typeof value === "number" ? JSON.rawJSON(context.source) : value;
  try {
    return JSON.stringify(JSON.parse(text, exact), null, 2);
  } catch {
    return text;
  }
}

// filter shows the rows that have all words of the filter, and counts the rows.
function filter() {
  const words = page.filter.value.toLowerCase().split(/\s+/);
  for (const row of rows) {
    row.hidden = !words.every((word) => row.text.includes(word));
  }
  const shown = shownRows();
  const recorded = rows.filter(({ request }) => !isWaiting(request)).length;
  const waiting = rows.length - recorded;
  const counts = [
    recorded < meta.total ? `the last ${recorded} of ${meta.total}` : recorded,
    waiting > 0 && `${waiting} waiting`,
    shown.length < rows.length && `${shown.length} found`,
  ];
  setText(page.count, counts.filter((one) => one !== false).join(", "));
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

function drawPets() {
  const cells = ({ id, name, status = "" }) =>
    [id, excerpt(name), status].map((text) => make("td", { className: "cut", title: text }, text));
  page.petRows.replaceChildren(...pets.toReversed().map((pet) => make("tr", {}, ...cells(pet))));
  page.petTable.hidden = pets.length === 0;
  page.noPets.hidden = pets.length > 0;
  page.petsTitle.textContent = pets.length < maxPets ? "Pets" : `Pets, the last ${maxPets}`;
}

// Events.

// A row opens where it is: what is above it may close, and the list must not scroll.
page.rows.addEventListener("click", (event) => {
  const summary = event.target.closest("summary");
  if (!summary) {
    return;
  }
  event.preventDefault();
  const row = summary.parentElement;
  const { top } = summary.getBoundingClientRect();
  if (!row.open) {
    showDetail(row);
  }
  row.open = !row.open;
  page.list.scrollTop += summary.getBoundingClientRect().top - top;
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

page.faults.addEventListener("submit", (event) => {
  event.preventDefault();
  setFault(page.anotherField.value);
});

page.keyForm.addEventListener("submit", async (event) => {
  event.preventDefault();
  sessionStorage.apiKey = page.keyField.value.replace(/[^!-~]/g, ""); // no key has a space
  await read();
  page.scope.focus();
});

page.copy.addEventListener("click", async () => {
  await navigator.clipboard.writeText(page.base.textContent);
  say("Copied");
});

page.filter.addEventListener("input", filter);
page.addPet.addEventListener("click", addPet);
page.story.addEventListener("click", showStory);
page.end.addEventListener("click", async () => {
  await act("DELETE", "/__admin/fault");
  page.scope.focus(); // as the button is hidden
});
page.clear.addEventListener("click", () => {
  if (confirm("Remove all recorded requests, for all clients?")) {
    act("DELETE", "/__admin/requests");
  }
});
page.resetAll.addEventListener("click", () => {
  if (confirm("Reset pets, fault and requests, for all clients?")) {
    act("POST", "/__admin/reset");
  }
});
document.addEventListener("visibilitychange", read);
window.addEventListener("hashchange", () => location.reload());

// takeKey takes the key in the address, as in /#key=abc, and removes it there.
function takeKey() {
  const fragment = location.hash.slice(1).replaceAll("+", "%2B"); // or it would be a space
  const key = new URLSearchParams(fragment).get("key");
  if (key) {
    sessionStorage.apiKey = key;
    history.replaceState(null, "", location.pathname);
  }
}

page.base.textContent = `${location.origin}/v1`;
page.copy.hidden = !navigator.clipboard; // which is for loopback and https only
takeKey();
if (sessionStorage.apiKey) {
  read();
} else {
  askForKey();
}
