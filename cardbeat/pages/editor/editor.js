// Creating and editing a check. The fields are those of the form: a new one is a control of its name in dashboard.html,
// with a place for its error.

import { ApiError, call } from "../shared/api.js";
import { ask } from "../shared/dialog.js";
import { byId, setText, showText } from "../shared/dom.js";
import { RECEIVERS } from "./receivers.js";
import { durationText, inLargestUnit } from "../shared/time.js";

const NO_AMOUNT = { count: "", size: 3_600 };
const CONFLICTS = [409, 412];

const controls = byId("editor-form").elements;
/** The names of the fields, in the form's order. */
const FIELDS = [...controls].map(({ name }) => name).filter((name) => name && byId(`${name}-error`));
/** The control of the unit, for a field that is a number of seconds. */
const unitOf = (field) => controls[`${field}_unit`];
/** Of each field the label that the form has for it. */
const labelOf = (field) => controls[field].ariaLabel ?? controls[field].labels[0].firstChild.textContent.trim();

let action;
let before;

/** `{ check, wantsTest }` of the created check, or undefined. */
export async function createCheck(key) {
  byId("editor-form").reset();
  open("New check", "Create", { webhook_url: null });
  const create = async () => ({ wantsTest: wantsTest(), ...(await call("POST", "checks", { key, body: read() })) });
  return ask("editor", create, explain);
}

/** `{ check, wantsTest }` of the check after the change, or undefined if nothing was saved. */
export async function editCheck(key, check) {
  let opened = check;
  fill("Edit check", "Save", opened);
  const path = `checks/${check.id}`;
  const save = async () => {
    const body = changes(opened, read());
    if (!Object.keys(body).length) return undefined;
    const tests = wantsTest();
    try {
      return { wantsTest: tests, ...(await call("PATCH", path, { key, body, version: opened.version })) };
    } catch (error) {
      if (!CONFLICTS.includes(error.status)) throw error;
      const theirs = (await call("GET", path, { key })).check;
      const told = conflictText(opened, theirs);
      opened = theirs;
      fill("Edit check", "Save", { ...theirs, ...body }, theirs);
      throw new Error(told);
    }
  };
  return ask("editor", save, explain);
}

/** What was saved in another place. The form has those values now, and the user's own where the user typed some. */
function conflictText(opened, theirs) {
  const saved = Object.entries(changes(opened, theirs)).map(([field, value]) => fieldText(field, value));
  return `This check was changed in another place while you edited it. Saved there: ${saved.join("; ") || "nothing else"}. Your own changes are in the form. Look at it, and save again.`;
}

function fill(title, saveText, settings, saved = settings) {
  for (const field of FIELDS) {
    controls[field].value = settings[field] ?? "";
    if (!unitOf(field)) continue;
    const { count, size } = settings[field] === null ? NO_AMOUNT : inLargestUnit(settings[field]);
    controls[field].value = count;
    unitOf(field).value = size;
  }
  open(title, saveText, saved);
}

function open(title, saveText, saved) {
  [action, before] = [saveText, saved];
  setText(byId("editor-title"), title);
  controls.test.checked = true;
  byId("receivers").open = false;
  FIELDS.forEach(clear);
  showMeaning();
}

/** The values of the form. What is no amount stays a text: the server refuses it, together with all other fields. */
function read() {
  FIELDS.forEach(clear);
  return Object.fromEntries(FIELDS.map((field) => [field, valueOf(field)]));
}

/** A number of seconds, or a text; null for an empty field that may stay empty. */
function valueOf(field) {
  const { value, required } = controls[field];
  const text = value.trim();
  if (!text && !required) return null;
  return unitOf(field) && /^[0-9]{1,9}$/.test(text) ? Number(text) * Number(unitOf(field).value) : text;
}

/** The fields of `settings` that differ from the check's. */
const changes = (check, settings) =>
  Object.fromEntries(FIELDS.filter((field) => settings[field] !== check[field]).map((field) => [field, settings[field]]));

/** A field and its value in words: `Runs every: 1 hour`. */
function fieldText(field, value) {
  const words = unitOf(field) && value !== null ? durationText(value) : value;
  return `${labelOf(field)}: ${words ?? "none"}`;
}

/** The server's sentence about a field, in the words of the form: labels for names, durations for seconds. */
const inWords = (field, sentence) =>
  sentence
    .replace(`The field ${field}`, `“${labelOf(field)}”`)
    .replace(/an integer from ([\d,]+) to ([\d,]+) \(seconds\)/, (_, ...limits) =>
      `a whole number, ${limits.slice(0, 2).map((text) => durationText(Number(text.replaceAll(",", "")))).join(" to ")}`,
    );

// A test is offered only for another receiver than before.
const offersTest = () => valueOf("webhook_url") !== null && valueOf("webhook_url") !== before.webhook_url;
const wantsTest = () => offersTest() && controls.test.checked;

function showMeaning() {
  const amounts = ["period_seconds", "grace_seconds"].map(valueOf);
  const isWhole = amounts.every(Number.isInteger);
  showText(byId("editor-meaning"), isWhole && `Overdue after ${durationText(amounts[0] + amounts[1])} without a ping.`);
  byId("test-offer").hidden = !offersTest();
  setText(byId("editor-save"), wantsTest() ? `${action} and send a test alert` : action);
}

/** Shows the sentence beside each wrong field, and goes to the first; above the form if it is about none. */
function explain({ status, message, field, fields = [{ field, error: message }] }) {
  const known = fields.filter((one) => FIELDS.includes(one.field));
  const gone = status === 404 && "This check was deleted while you edited it, so nothing was saved.";
  showText(byId("editor-error"), known.length ? "" : gone || message);
  for (const { field, error } of known) {
    controls[field].setAttribute("aria-invalid", "true");
    showText(byId(`${field}-error`), inWords(field, error));
  }
  if (known.length) controls[known[0].field].focus();
  else byId("editor-error").scrollIntoView({ block: "nearest" });
}

function clear(field) {
  controls[field].removeAttribute("aria-invalid");
  showText(byId(`${field}-error`), "");
}

function receiverRow({ name, heading = name, url }) {
  const row = document.createElement("tr");
  const [head, code] = ["th", "code"].map((tag) => document.createElement(tag));
  Object.assign(head, { scope: "row", textContent: heading });
  Object.assign(code, { className: "code", textContent: url });
  row.insertCell().append(code);
  row.prepend(head);
  return row;
}

byId("receiver-rows").replaceChildren(...RECEIVERS.map(receiverRow));
byId("editor-form").addEventListener("input", showMeaning);
