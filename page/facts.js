// What is known of requests and faults, as values and texts, without the page. What
// faults there are, and what they mean, is in openapi.json.

const maxText = 4000; // bytes of a body that the journal keeps
const rounding = 1; // milliseconds by which the journal may put an end too late
const lateness = 20; // the same, if petstore had to notice that the client left
const together = 10; // milliseconds between requests that may have been sent at once

// The parameters that make requests wait, as the buttons say it.
const delays = { delay: "Wait", "answer-delay": "Answer after" };

let description; // openapi.json

// describe takes openapi.json, on which the functions about faults depend.
export function describe(openAPI) {
  return (description = openAPI);
}

// What is known of requests.

// isWaiting reports whether a request has not ended yet. The ended of a request that is
// not in the journal any more, so that its outcome is not known, is 0 on this page.
export function isWaiting({ ended }) {
  return ended === undefined;
}

// extentOf says how much of the body that has these headers a text is, if it may be
// longer.
export function extentOf(text = "", headers = {}) {
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
  return isOfClient || !isFailure(request.fault) ? "warn" : "bad";
}

// errorOf returns what was wrong with a request that got an answer: the message of an
// error that no fault asked for.
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

// timeOf returns a time of day, in the time zone of the browser, to the millisecond.
export function timeOf(time) {
  const date = new Date(time);
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

// durationOf returns the time that a request took, or waits so far.
export function durationOf({ seconds, ended }) {
  if (seconds < 1 && ended > 0) {
    return `${Math.round(seconds * 1000)} ms`;
  }
  return ended === 0 ? "" : `${seconds.toFixed(ended > 0 ? 2 : 1)} s`;
}

// lineOf returns a text that is the same for equal requests of a client in a period.
// There is none for a request whose body is not known whole, or has bytes that are no
// text, which are U+FFFD in the journal.
export function lineOf({ period, method, url, headers, body, client, error }) {
  const address = client.replace(/:\d+$/, "");
  const sender = ["User-Agent", "Authorization", "Origin", "Content-Type"].map((name) => headers[name]);
  const line = JSON.stringify([period, address, sender, method, url, body]);
  const isWhole = extentOf(body, headers) === "" && !/cut short/.test(error);
  return isWhole && !line.includes("\uFFFD") ? line : undefined;
}

// compare returns the facts of rows with equal requests, which are in the order of arrival:
// what is so of each beside those before it. It names an earlier one: the last that had
// ended when it came, if that had failed. On the same connection, that is certain. Of equal
// requests that come at about the same time on several, nobody knows which is a repetition.
// - isFinal: whether it and those before it have ended, so that its facts change no more,
//   also if those are too old to be kept
// - known: when the client may have known of the end, in milliseconds, at the earliest
// - isLater: whether it was certainly sent after the earlier request
// - pause: the seconds since the end of the earlier request, rounded down, so that it is
//   less than a Retry-After that had not passed
// - pet: the last that it or, from one to the next, an earlier one has added
// - same: the pet that was added before its own
// - patience: the last Retry-After that these have got
// - early: the Retry-After that had not passed
export function compare(equals) {
  const all = [];
  for (const { request, facts } of equals) {
    if (facts.isFinal) {
      all.push(facts);
      continue;
    }
    const { arrived, client, time, seconds, pet } = request;
    const start = Date.parse(time);
    const end = isWaiting(request) ? Infinity : start + seconds * 1000;
    const last = all.findLast((one) => one.client === client || one.known <= start);
    const earlier = last?.hasFailed ? last : undefined;
    const isLater = earlier && (earlier.client === client || start - earlier.start >= together);
    all.push({
      arrived,
      isFinal: !isWaiting(request) && (all.at(-1)?.isFinal ?? true),
      client,
      start,
      end,
      known: end - (hasLeft(request) ? lateness : rounding),
      hasFailed: hasFailed(request),
      earlier: earlier?.arrived,
      isLater,
      pause: Math.max(0, Math.floor((start - earlier?.end) / 10) / 100),
      pet: pet ?? earlier?.pet,
      same: pet && earlier?.pet,
      patience: patienceOf(request, end) ?? earlier?.patience,
      early: isLater && start + rounding < earlier.patience?.end ? earlier.patience.text : undefined,
    });
  }
  return all;
}

// patienceOf returns the Retry-After of an answer that was sent, and when it ends, in
// milliseconds, which is NaN if it is not valid.
function patienceOf({ status, answerHeaders }, sentAt) {
  const text = status > 0 ? answerHeaders?.["Retry-After"] : undefined;
  return text && { text, end: /^\d+$/.test(text) ? sentAt + text * 1000 : Date.parse(text) };
}

// pauseOf says when a request came, as compared with the earlier one.
export function pauseOf({ isLater, pause }) {
  if (!isLater) {
    return "at about the same time";
  }
  return pause > 0 ? `${pause.toFixed(2)} s after its end` : "at once";
}

// verdictOf says which pet a request has added, and whether it was there.
export function verdictOf({ pet }, { same, isLater }) {
  const what = same && `${isLater ? "" : "perhaps "}the same as pet ${same}`;
  return pet && [`adds pet ${pet}`, what].filter(Boolean).join(", ");
}

// What is known of faults.

// isPreferred reports whether a request has asked for its fault itself.
export function isPreferred({ headers }) {
  return /(^|[,;])[ \t]*(code|delay|answer-delay)[ \t]*=/i.test(headers.Prefer ?? "");
}

// waitsOf returns the parameters of a fault that make requests wait.
function waitsOf(fault = {}) {
  return Object.keys(delays).filter((name) => fault[name] > 0);
}

// isFailure reports whether a fault does anything. The code ok and a delay of 0 do not.
export function isFailure(fault = {}) {
  const { code = "ok" } = fault;
  return code !== "ok" || waitsOf(fault).length > 0;
}

// entryOf returns what openapi.json says of a single code, which is a word or a status.
function entryOf(code) {
  const { oneOf } = description.components.schemas.FaultCode;
  return oneOf.find((one) => one.enum?.includes(code) ?? new RegExp(one.pattern).test(code));
}

// meaningOf says what a fault with a single code does.
export function meaningOf(fault) {
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
export function labelOf(fault) {
  const waits = waitsOf(fault).map((name) => `${delays[name]} ${fault[name]} s`);
  const { code = "ok" } = fault;
  const label = entryOf(code).enum ? entryOf(code).title : code;
  return [...waits, code !== "ok" && label].filter(Boolean).join(", ") || "as usual";
}

// queryOf returns the query that sets a fault.
export function queryOf({ matched, applied, ...parameters }) {
  return decodeURIComponent(new URLSearchParams(parameters));
}

// comingOf returns the fault that the next request gets from a standing fault, the first
// failure to come, and a range, which says how many get the next, and what follows. It
// returns {} if the fault is used up.
export function comingOf({ matched, applied, code = "ok", skip = 0, times = Infinity, operation = "", ...others }) {
  const isList = code.includes(","); // which has one request for each code
  const count = isList ? 1 : times > Number.MAX_SAFE_INTEGER ? Infinity : times - applied;
  const faults = (isList ? code.split(",").slice(applied) : [code]).map((one) => ({ ...others, code: one }));
  const [next, ...later] = faults;
  if (!next || count <= 0) {
    return {};
  }
  const failure = faults.find(isFailure);
  const rangeOf = (number) => {
    const noun = `${operation} request`.trim();
    const many = number === 1 ? noun : counted(number, noun);
    return number === Infinity ? `for every ${noun}` : `for the next ${many}`;
  };
  const labels = count === Infinity ? [] : [...later.slice(0, later.findLastIndex(isFailure) + 1), {}].map(labelOf);
  const range = [rangeOf(count), ...labels].join(", then ");
  const before = skip - matched;
  if (before > 0) {
    return { next: {}, failure, range: `${rangeOf(before)}, then ${labelOf(next)} ${range}` };
  }
  return { next, failure, range };
}

// Texts.

export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function capitalized(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// reveal shows what nobody sees, or what turns a text around, as numbers, but for emoji.
export function reveal(text) {
  const unseen = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\n\u200D\uFE0F]]/gv;
  return text.replace(unseen, (char) => `⟨U+${char.codePointAt(0).toString(16).padStart(4, "0")}⟩`);
}

// excerpt returns the beginning of a text, without half a character.
export function excerpt(text) {
  const start = text.slice(0, 200).replace(/[\uD800-\uDBFF]$/, "");
  return reveal(start) + (start.length < text.length ? "…" : "");
}
