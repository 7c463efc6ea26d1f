// What is known of requests and faults, as values and texts. These functions know
// nothing of the page. What faults there are, and what they mean, is in
// openapi.json.

const maxText = 4000; // bytes of a body that the journal keeps
const rounding = 1; // milliseconds by which the journal may put an end too late
const lateness = 20; // the same, if petstore had to notice that the client left
const together = 10; // milliseconds between requests that may have been sent at once

let description; // openapi.json

// describe takes openapi.json, which the other functions need.
export function describe(openAPI) {
  description = openAPI;
}

// What is known of a request.

// isWaiting reports whether a request has not ended yet. The ended of a request of
// which nobody knows what has become is 0, on this page.
export function isWaiting({ ended }) {
  return ended === undefined;
}

// extentOf says how much of the body that has these headers a text is, if the body
// may be longer.
export function extentOf(text = "", headers = {}) {
  const size = new TextEncoder().encode(text).length;
  const length = headers["Content-Length"] ?? (size < maxText ? size : Infinity);
  if (length <= maxText && size >= length) { // what is no text is longer in UTF-8
    return "";
  }
  return size === 0 ? "without its body" : `the first ${Math.min(size, maxText)} bytes`;
}

// endOf returns when a request ended, in milliseconds, or Infinity if it waits.
export function endOf(request) {
  return isWaiting(request) ? Infinity : Date.parse(request.time) + request.seconds * 1000;
}

function hasLeft({ error = "" }) {
  return error.startsWith("the client left");
}

// mishapOf says what a fault did to the body of an answer that was sent, if it did.
export function mishapOf({ method, status, fault }) {
  return method !== "HEAD" && status > 0 && fault?.code && entryOf(fault.code)["x-body"];
}

// hasFailed reports whether a client got no answer, not all of it, or an error. The
// request must have ended.
export function hasFailed(request) {
  const { status } = request;
  return status === 0 || status >= 400 || hasLeft(request) || Boolean(mishapOf(request));
}

// outcomeOf says what has become of a request, in a word or two.
export function outcomeOf(request) {
  if (request.status === undefined) {
    return isWaiting(request) ? "waiting" : "was waiting";
  }
  const what = hasLeft(request) ? "client left" : mishapOf(request);
  return [request.status, what].filter(Boolean).join(", ") || "no answer";
}

// colourOf returns the class of an outcome: bad is what a fault did, and warn what a
// client did.
export function colourOf(request) {
  if (request.status === undefined) {
    return "waits";
  }
  if (!hasFailed(request)) {
    return "good";
  }
  const isOfClient = hasLeft(request) || (errorOf(request) && !mishapOf(request));
  return isOfClient ? "warn" : "bad";
}

// errorOf returns what was wrong with a request that got an answer: the message of
// an error that no fault asked for.
export function errorOf(request) {
  const { status, error, fault } = request;
  return status >= 400 && fault?.code !== String(status) && !hasLeft(request) ? error : undefined;
}

// explain says what a fault did to a request, unless less was done than is meant.
export function explain(request) {
  const { method, fault, error, ended } = request;
  if (ended === 0) {
    return "It waited when it was last in the journal. What became of it is not known.";
  }
  if (hasLeft(request)) {
    return `${capitalized(error)}.`;
  }
  return method !== "HEAD" && isFailure(fault) && meaningOf(fault);
}

// faultTextOf returns the fault of a request as the request or the standing fault has
// asked for it, unless its outcome says the same.
export function faultTextOf(request) {
  const { fault } = request;
  if (!isFailure(fault)) {
    return "";
  }
  const query = queryOf(fault).replaceAll("&", ", ");
  const code = query.replace(/^code=/, "");
  if (isPreferred(request)) {
    return `Prefer: ${query}`;
  }
  return outcomeOf(request).toLowerCase().split(", ").includes(code) ? "" : code;
}

// timeOf returns a time of day, in the time zone of the browser, to the millisecond.
export function timeOf(time) {
  const date = new Date(time);
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

// durationOf returns the time that a request took, or has waited so far.
export function durationOf({ seconds, ended }) {
  if (ended === 0) {
    return "";
  }
  if (ended === undefined) {
    return `${seconds.toFixed(1)} s`;
  }
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(2)} s`;
}

// What is known of a request beside others.

// lineOf returns a text that is the same for equal requests of a client in a period.
// There is none for a request whose body is not known whole, or has bytes that are
// no text, which are U+FFFD in the journal.
export function lineOf({ period, method, url, headers, body, client, error }) {
  const address = client.replace(/:\d+$/, "");
  const sender = ["User-Agent", "Authorization", "Origin", "Content-Type"].map((name) => headers[name]);
  const line = JSON.stringify([period, address, sender, method, url, body]);
  const isWhole = extentOf(body, headers) === "" && !/cut short/.test(error);
  return isWhole && !line.includes("\uFFFD") ? line : undefined;
}

// compare returns what is so of each of equal requests, which are in the order of
// arrival, beside those before it. It names an earlier one: the last that had ended
// when it came, if that had failed. On the same connection, that is certain. Of equal
// requests that come at about the same time on several, nobody knows which is a
// repetition. The facts of each so far are given, as those that are final stay when
// older requests are not kept any more.
export function compare(equals) {
  const all = [];
  for (const { request, facts } of equals) {
    if (facts.isFinal) {
      all.push(facts);
      continue;
    }
    const { arrived, client, time, pet } = request;
    const start = Date.parse(time);
    const end = endOf(request);
    const last = all.findLast((one) => one.client === client || one.known <= start);
    const earlier = last?.hasFailed ? last : undefined;
    const isLater = earlier && (earlier.client === client || start - earlier.start >= together);
    all.push({
      arrived,
      client,
      start,
      end,
      known: end - (hasLeft(request) ? lateness : rounding), // to the client, at the earliest
      hasFailed: hasFailed(request),
      isFinal: !isWaiting(request) && (all.at(-1)?.isFinal ?? true), // as all before it have ended
      earlier: earlier?.arrived,
      isLater, // certainly, and not only perhaps
      pause: Math.max(0, Math.floor((start - earlier?.end) / 10) / 100), // less than a Retry-After that had not passed
      pet: pet ?? earlier?.pet, // the last that these have added
      same: pet && earlier?.pet, // that was added before its own
      patience: patienceOf(request, end) ?? earlier?.patience, // the last Retry-After that these have got
      early: isLater && start + rounding < earlier.patience?.end ? earlier.patience.text : undefined, // had not passed
    });
  }
  return all;
}

// patienceOf returns the Retry-After of an answer that was sent, and when it ends, in
// milliseconds, which is NaN if it is not valid.
function patienceOf({ status, answerHeaders }, sentAt) {
  const text = status > 0 ? answerHeaders?.["Retry-After"] : undefined;
  const isNumber = /^\d+$/.test(text);
  return text && { text: isNumber ? `${text} s` : text, end: isNumber ? sentAt + text * 1000 : Date.parse(text) };
}

// verdictOf says which pet a request has added, and whether it was there.
export function verdictOf({ pet }, { same, isLater }) {
  const what = same && `${isLater ? "" : "perhaps "}the same as pet ${same}`;
  return pet && [`adds pet ${pet}`, what].filter(Boolean).join(", ");
}

// repetitionOf says when a request came, as compared with the earlier one, if there is
// one, whose number is the first word.
export function repetitionOf({ earlier, isLater, pause, early }) {
  const pauseText = pause > 0 ? `${pause.toFixed(2)} s after its end` : "at once";
  const patience = early ? `. Retry-After ${early} had not passed` : "";
  return earlier && `${earlier}, ${isLater ? pauseText : "at about the same time"}${patience}`;
}

// What is known of faults.

// waitsOf returns the parameters of a fault that make requests wait: those that are
// numbers of seconds.
function waitsOf(fault = {}) {
  const { parameters } = description.paths["/__admin/fault"].put;
  return parameters.filter(({ name, schema }) => schema.type === "number" && fault[name] > 0);
}

// isPreferred reports whether a request has asked for its fault itself.
export function isPreferred({ headers, fault = {} }) {
  const asked = (headers.Prefer ?? "").split(/[,;]/).map((one) => one.split("=")[0].trim().toLowerCase());
  return asked.some((name) => name in fault);
}

// isFailure reports whether a fault does anything. The code ok and a delay of 0 do
// not.
export function isFailure(fault = {}) {
  const { code = "ok" } = fault;
  return code !== "ok" || waitsOf(fault).length > 0;
}

// entryOf returns what openapi.json says of a single code, which is a word or a
// status.
function entryOf(code) {
  const { oneOf } = description.components.schemas.FaultCode;
  return oneOf.find((one) => one.enum?.includes(code) ?? new RegExp(one.pattern).test(code));
}

// meaningOf says what a fault with a single code does.
export function meaningOf(fault) {
  const waits = waitsOf(fault).map(({ name, description }) => {
    return description.replace("this number of seconds", `${fault[name]} s`);
  });
  const { code = "ok" } = fault;
  const meaning = code !== "ok" && entryOf(code).description;
  return [...waits, meaning].filter(Boolean).join(" ").replaceAll("`", "");
}

// labelOf returns the name of a fault with a single code, as on its button.
export function labelOf(fault) {
  const waits = waitsOf(fault).map(({ name, schema }) => `${schema.title} ${fault[name]} s`);
  const { code = "ok" } = fault;
  const label = entryOf(code).enum ? entryOf(code).title : code;
  return [...waits, code !== "ok" && label].filter(Boolean).join(", ") || "as usual";
}

// queryOf returns the query that sets a fault.
export function queryOf({ matched, applied, next, ...parameters }) {
  return decodeURIComponent(new URLSearchParams(parameters));
}

// comingOf says what the next requests get from a standing fault: the first failure
// that is to come, whether the next request gets it, and which requests get what,
// such as "for the next request, then as usual". There is no failure if the fault is
// used up, or does nothing.
export function comingOf({ matched, applied, next, code = "ok", skip = 0, times = Infinity, operation = "", ...others }) {
  const codes = code.split(",");
  const isList = codes.length > 1; // which has one request for each code
  const usual = { fault: {}, count: Infinity };
  const steps = [
    { ...usual, count: skip - matched },
    ...codes.slice(isList ? applied : 0).map((one) => ({
      fault: { ...others, code: one },
      count: isList ? 1 : times - applied,
    })),
    usual,
  ];
  const runs = []; // of steps that do the same
  for (const { fault, count } of steps.filter((step) => step.count > 0)) {
    const label = labelOf(fault);
    if (runs.at(-1)?.label !== label) {
      runs.push({ label, fault, count: 0 });
    }
    runs.at(-1).count += count;
  }
  runs.length = runs.findIndex(({ count }) => count === Infinity) + 1;
  const failure = runs.map(({ fault }) => fault).find(isFailure);
  const isNext = failure === runs[0].fault;
  const noun = `${operation} request`.trim();
  const texts = runs.map(({ label, fault, count }, index) => {
    const many = count === 1 ? noun : counted(count, noun);
    const range = count === Infinity ? `for every ${noun}` : `for the next ${many}`;
    const isShort = index > 0 && (count === 1 || (count === Infinity && !isFailure(fault)));
    return [index === 0 && isNext ? "" : label, isShort ? "" : range].filter(Boolean).join(" ");
  });
  return { failure, isNext, range: texts.join(", then ") };
}

// Texts.

export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function capitalized(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// reveal shows what nobody sees, or what turns a text around, as numbers, but for
// emoji.
export function reveal(text) {
  const unseen = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\n\u200D\uFE0F]]/gv;
  return text.replace(unseen, (char) => `⟨U+${char.codePointAt(0).toString(16).padStart(4, "0")}⟩`);
}

// excerpt returns the beginning of a text, without half a character.
export function excerpt(text) {
  const start = text.slice(0, 200).replace(/[\uD800-\uDBFF]$/, "");
  return reveal(start) + (start.length < text.length ? "…" : "");
}
