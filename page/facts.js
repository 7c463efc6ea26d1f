// What is known of requests and faults, as values and texts. These functions know
// nothing of the page. What faults there are, and what they mean, is in
// openapi.json.

const maxText = 4000; // bytes of a body that the journal keeps
const rounding = 1; // milliseconds by which a time or a duration may be rounded

let description; // openapi.json

// describe takes openapi.json, which the other functions need.
export function describe(openAPI) {
  description = openAPI;
}

// What is known of a request.

// isWaiting reports whether a request has not ended yet.
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
  const whole = length < Infinity ? ` of ${length}` : "";
  return size === 0 ? "without its body" : `the first ${Math.min(size, maxText)}${whole} bytes`;
}

// endOf returns when a request ended, in milliseconds.
function endOf({ time, seconds }) {
  return Date.parse(time) + seconds * 1000;
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
  if (isWaiting(request)) {
    return "waiting";
  }
  const what = hasLeft(request) ? "client left" : mishapOf(request);
  return [request.status, what].filter(Boolean).join(", ") || "no answer";
}

// colourOf returns the class of an outcome: bad is what a fault did, and warn what a
// client did.
export function colourOf(request) {
  if (isWaiting(request)) {
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
  const isAsked = fault?.code && isStatus(fault.code);
  return status >= 400 && !isAsked && !hasLeft(request) ? error : undefined;
}

// explain says what a fault did to a request. It returns nothing for a HEAD, as its
// answer has no body to be cut.
export function explain(request) {
  const { method, fault, error } = request;
  if (hasLeft(request)) {
    return `${capitalized(error)}.`;
  }
  return method !== "HEAD" && isFailure(fault) && meaningOf(fault);
}

// faultTextOf returns what a request has of a fault, as the request itself or the
// standing fault has asked for it, and whether a wait was ended before its time. A code
// that the standing fault gave is left out if the status says it.
export function faultTextOf(request) {
  const { fault, status, seconds, ended } = request;
  if (!isFailure(fault)) {
    return "";
  }
  const { code, ...others } = fault;
  const query = queryOf(code === String(status) && !isPreferred(request) ? others : fault).replaceAll("&", ", ");
  const text = isPreferred(request) ? `Prefer: ${query}` : query.replace(/^code=/, "");
  const wait = waitsOf(fault).reduce((sum, { name }) => sum + Number(fault[name]), 0);
  const isReleased = ended > 0 && !hasLeft(request) && seconds * 1000 + rounding < wait * 1000;
  return isReleased ? `${text}, released` : text;
}

// curlOf returns a line for sh that sends a request again to this origin, or nothing if
// what was sent is not known, or cannot be pasted. It has *** in place of the key.
export function curlOf({ method, url, headers, body }, origin) {
  if (extentOf(body, headers) || reveal(body) !== body) {
    return "";
  }
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const isOwn = (name) => /^(Accept-Encoding|Connection|Content-Length|Host|Transfer-Encoding|User-Agent)$/.test(name);
  const fields = Object.entries(headers).filter(([name]) => !isOwn(name));
  return [
    "curl -g",
    method === "HEAD" ? "-I" : `-X ${method}`,
    quoted(origin + url),
    ...fields.map((field) => `-H ${quoted(field.join(": "))}`),
    body && `--data-raw ${quoted(body)}`,
  ].filter(Boolean).join(" ");
}

// timeOf returns a time of day, in the time zone of the browser, to the millisecond.
export function timeOf(time) {
  return new Date(time).toTimeString().slice(0, 8) + time.slice(19, 23); // no zone moves the milliseconds
}

// durationOf returns the time that a request took, or has waited so far.
export function durationOf({ seconds, ended }) {
  if (ended === undefined) {
    return `${seconds.toFixed(1)} s`;
  }
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(2)} s`;
}

// What is known of a request beside the one that it repeats. This may not be known.

// pauseOf says when a request came, after the end of the earlier one.
export function pauseOf({ time }, earlier) {
  const pause = Math.floor((Date.parse(time) - endOf(earlier)) / 10) / 100; // rounded up, it might be a Retry-After
  return pause > 0 ? `${pause.toFixed(2)} s after its end` : "at once";
}

// neglectedOf returns the Retry-After of the answer to the earlier request, as a text,
// if it had not passed when the later one came.
export function neglectedOf({ time }, earlier) {
  const text = earlier.status > 0 ? earlier.answerHeaders?.["Retry-After"] : undefined;
  const isNumber = /^\d+$/.test(text);
  const end = isNumber ? endOf(earlier) + text * 1000 : Date.parse(text); // which may be NaN
  return Date.parse(time) + rounding < end ? text + (isNumber ? " s" : "") : "";
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
  return asked.some((name) => Object.hasOwn(fault, name));
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

// isStatus reports whether a single code is that of an error, and not a word.
function isStatus(code) {
  return !entryOf(code).enum;
}

// meaningOf says what a fault with a single code does.
export function meaningOf(fault) {
  const waits = waitsOf(fault).map((wait) => wait.description.replace("this number of seconds", `${fault[wait.name]} s`));
  const { code = "ok" } = fault;
  const meaning = code !== "ok" && entryOf(code).description;
  return [...waits, meaning].filter(Boolean).join(" ").replaceAll("`", "");
}

// labelOf returns the name of a fault with a single code, as on its button.
export function labelOf(fault = {}) {
  const waits = waitsOf(fault).map(({ name, schema }) => `${schema.title} ${fault[name]} s`);
  const { code = "ok" } = fault;
  const label = isStatus(code) ? code : entryOf(code).title;
  return [...waits, code !== "ok" && label].filter(Boolean).join(" + ") || "as usual";
}

// queryOf returns the query that sets a fault.
export function queryOf({ matched, applied, next, ...parameters }) {
  return decodeURIComponent(new URLSearchParams(parameters));
}

// rangeOf says which requests get the next of a standing fault.
export function rangeOf({ code = "", operation = "", skip = 0, times, matched, applied }) {
  const noun = `${operation} request`.trim();
  const left = code.includes(",") ? 1 : (times ?? Infinity) - applied; // a list has one for each code
  const count = matched < skip ? skip - matched : left;
  if (count === Infinity) {
    return `Every ${noun}`;
  }
  return `Next ${count === 1 ? noun : counted(count, noun)}`;
}

// restOf says what the requests after those get, if it is known.
export function restOf(fault) {
  const { code = "ok", skip = 0, times, matched, applied } = fault;
  const isSkipping = matched < skip;
  const codes = code.split(",").slice(isSkipping ? 0 : applied + 1);
  const all = codes.map((one) => ({ ...fault, code: one }));
  const labels = all.map(labelOf).join(", then ");
  if (!isSkipping || code.includes(",")) {
    return labels && `Then ${labels}, then as usual.`;
  }
  return `Then ${labels}, ${times ? counted(times, "time") : "each time"}.`;
}

// Texts.

export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function capitalized(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// reveal shows what nobody sees, or what turns a text around, as numbers, but for what
// emoji and scripts are made of: joiners, variation selectors, and the tags of flags.
export function reveal(text) {
  const seen = /[\n\u200C\u200D\uFE00-\uFE0F\u{E0020}-\u{E007F}]/u;
  const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
  const numberOf = (char) => `⟨U+${char.codePointAt(0).toString(16).padStart(4, "0")}⟩`;
  return text.replace(unseen, (char) => (seen.test(char) ? char : numberOf(char)));
}

// excerpt returns the beginning of a text, without half a character.
export function excerpt(text) {
  const start = text.slice(0, 200).replace(/[\uD800-\uDBFF]$/, "");
  return reveal(start) + (start.length < text.length ? "…" : "");
}
