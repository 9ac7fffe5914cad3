// Creating and editing a check.

import { ApiError, call } from "../shared/api.js";
import { resolveConflict, whyNotSaved } from "./conflict.js";
import { ask } from "../shared/dialog.js";
import { byId, setText, showText } from "../shared/dom.js";
import { FIELDS, changes, isEmpty, settingsOf } from "./merge.js";
import { RECEIVERS } from "./receivers.js";
import { durationText, inLargestUnit } from "../shared/time.js";

const NEW = { name: "", period_seconds: 86_400, grace_seconds: 3_600, repeat_seconds: null, webhook_url: null };
const AMOUNTS = ["period_seconds", "grace_seconds", "repeat_seconds"];
const NO_AMOUNT = { count: "", size: 3_600 };
const CONFLICTS = [409, 412];

const controls = () => byId("editor-form").elements;

let action;
let before;

/** `{ check, wantsTest }` of the created check, or undefined. */
export async function createCheck(key) {
  fill("New check", "Create", NEW);
  const create = async () => ({ wantsTest: wantsTest(), ...(await call("POST", "checks", { key, body: read() })) });
  return ask("editor", create, explain);
}

/** `{ check, wantsTest }` of the check after the change, or undefined if nothing was saved. */
export async function editCheck(key, opened) {
  fill("Edit check", "Save", opened);
  const path = `checks/${opened.id}`;
  let typed;
  const save = async () => {
    typed = read();
    const body = changes(opened, typed);
    if (isEmpty(body)) return undefined;
    const tests = wantsTest();
    try {
      return { wantsTest: tests, ...(await call("PATCH", path, { key, body, version: opened.version })) };
    } catch (error) {
      if (!CONFLICTS.includes(error.status)) throw error;
      return { wantsTest: tests, conflict: (await call("GET", path, { key })).check };
    }
  };
  const saved = await ask("editor", save, explain);
  if (!saved?.conflict) return saved;
  const check = await resolveConflict(key, settingsOf(opened), saved.conflict, typed);
  return { check, wantsTest: saved.wantsTest && check.webhook_url === typed.webhook_url };
}

function fill(title, saveText, settings) {
  [action, before] = [saveText, settings];
  setText(byId("editor-title"), title);
  controls().name.value = settings.name;
  controls().webhook_url.value = settings.webhook_url ?? "";
  controls().test.checked = true;
  byId("receivers").open = false;
  for (const field of AMOUNTS) {
    const { count, size } = settings[field] === null ? NO_AMOUNT : inLargestUnit(settings[field]);
    controls()[field].value = count;
    controls()[`${field}_unit`].value = size;
  }
  FIELDS.forEach(clear);
  showMeaning();
}

/** The values of the form. Throws ApiError for a name or an amount that is none; the server checks the rest. */
function read() {
  FIELDS.forEach(clear);
  const { length } = [...controls().name.value.trim()];
  if (length < 1 || length > 100) throw new ApiError(400, "Enter a name of up to 100 characters.", { field: "name" });
  const amounts = Object.fromEntries(AMOUNTS.map((field) => [field, readSeconds(field)]));
  return { name: controls().name.value.trim(), ...amounts, webhook_url: webhookUrl() };
}

const webhookUrl = () => controls().webhook_url.value.trim() || null;

// A test is offered only for another receiver than before.
const offersTest = () => webhookUrl() !== null && webhookUrl() !== before.webhook_url;
const wantsTest = () => offersTest() && controls().test.checked;

function readSeconds(field) {
  const text = controls()[field].value.trim();
  if (!text && field === "repeat_seconds") return null;
  if (/^[0-9]{1,9}$/.test(text)) return Number(text) * Number(controls()[`${field}_unit`].value);
  throw new ApiError(400, "Enter a whole number, such as 5.", { field });
}

function showMeaning() {
  let text = "";
  try {
    text = `Overdue after ${durationText(readSeconds("period_seconds") + readSeconds("grace_seconds"))} without a ping.`;
  } catch {
    // The field shows this error when it is saved.
  }
  showText(byId("editor-meaning"), text);
  byId("test-offer").hidden = !offersTest();
  setText(byId("editor-save"), wantsTest() ? `${action} and send a test alert` : action);
}

function explain(error) {
  const field = FIELDS.includes(error.field) ? error.field : null;
  showText(byId("editor-error"), field ? "" : whyNotSaved(error));
  if (!field) return;
  const control = controls()[field];
  control.setAttribute("aria-invalid", "true");
  showText(byId(`${field}-error`), error.message);
  control.focus();
}

function clear(field) {
  controls()[field].removeAttribute("aria-invalid");
  showText(byId(`${field}-error`), "");
}

function receiverRow({ name, heading = name, url, source }) {
  const row = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.append(heading);
  const cell = row.insertCell();
  cell.append(withClass("code", "code", url), withClass("span", "hint", source));
  row.prepend(head);
  return row;
}

function withClass(tag, className, text) {
  const element = document.createElement(tag);
  Object.assign(element, { className, textContent: text });
  return element;
}

byId("receiver-rows").replaceChildren(...RECEIVERS.map(receiverRow));
byId("editor-form").addEventListener("input", showMeaning);
