// The alerts of one check with the results of their delivery; and a test alert, watched until it has a result.

import { explain } from "./answers.js";
import { call } from "../shared/api.js";
import { setText, showText, showTime } from "../shared/dom.js";
import { receiverName } from "../editor/receivers.js";
import { fromNow, parseTime, serverNow } from "../shared/time.js";

const TYPES = {
  "check.overdue": "Overdue",
  "check.reminder": "Reminder",
  "check.recovered": "Recovered",
  "check.test": "Test",
};
const STATES = { pending: "Waiting", delivered: "Delivered", failed: "Given up" };
const SHOWN = 5;
const WATCHED_MILLISECONDS = 15_000;
const LOOK_MILLISECONDS = 500;

/** Reads, shows and returns the alerts of a row's check. Throws ApiError. */
export async function showAlerts(key, row) {
  const { alerts } = await call("GET", `checks/${row.check.id}/alerts`, { key });
  row.showAnswer(alerts);
  row.part("alerts-table").hidden = alerts.length === 0;
  showText(row.part("alerts-note"), alerts.length ? "" : noneText(row.check));
  const shown = shownFirst(alerts);
  fillRows(row.part("alerts-rows"), alerts, shown);
  showOlder(row, alerts.length - shown.size);
  return alerts;
}

/** The alerts that are shown at once: the newest of outages, and of tests one only, because they must bury none. */
export function shownFirst(alerts) {
  const isTest = ({ type }) => type === "check.test";
  const outages = alerts.filter((alert) => !isTest(alert)).slice(0, SHOWN);
  return new Set([...outages, ...alerts.filter(isTest).slice(0, outages.length ? 1 : SHOWN)]);
}

/** Sends a test alert and shows in the row whether it has arrived, as soon as that is known. */
export async function sendTest(key, row) {
  const note = row.part("test-note");
  const say = (state, text) => {
    note.dataset.state = state;
    setText(note, text);
  };
  say("pending", "Sending a test alert…");
  try {
    const before = new Map((await showAlerts(key, row)).map(({ id, attempts }) => [id, attempts]));
    await call("POST", `checks/${row.check.id}/test-alert`, { key });
    const test = await triedTest(key, row, before);
    say(outcomeOf(test), resultText(test, row.check));
  } catch (error) {
    say("failed", error.message);
  }
}

/** How the last attempt went, for the eye: "delivered", "failed" or "pending". */
function outcomeOf(alert) {
  if (alert?.state === "delivered") return "delivered";
  return alert?.attempts && explain(alert) ? "failed" : "pending";
}

/**
 * The newest test alert once it was tried, or after some seconds in any case. Earlier ones that wait are tried before
 * it: if one fails again, that one. `before` holds the attempts of those that there were, by id.
 */
async function triedTest(key, row, before) {
  const until = Date.now() + WATCHED_MILLISECONDS;
  const isTried = (test) => test.attempts > (before.get(test.id) ?? 0) && (!before.has(test.id) || explain(test));
  for (;;) {
    const tests = (await showAlerts(key, row)).filter(({ type }) => type === "check.test");
    const tried = tests.find(isTried);
    if (tried || Date.now() > until) return tried ?? tests[0];
    await new Promise((looked) => setTimeout(looked, LOOK_MILLISECONDS));
  }
}

function resultText(test, { webhook_url: url }) {
  const receiver = receiverName(url ?? "");
  if (!test?.attempts) return "The test alert is not delivered yet. The table shows each attempt.";
  const answer = explain(test);
  if (answer) return `The test alert did not arrive: ${answer.short}.`;
  return `The test alert arrived: ${receiver} took it. Look there for it.`;
}

const noneText = (check) =>
  check.webhook_url
    ? "No alerts so far."
    : `This check has no webhook, so no alerts are sent.${check.ping_url ? " Add one with Edit." : ""}`;

function showOlder(row, count) {
  const button = row.part("older");
  const isDone = "older" in row.part("alerts-table").dataset;
  button.hidden = isDone || count < 1;
  setText(button, `Show ${count} more`);
}

function stateText(alert) {
  const { state, next_attempt_at: next } = alert;
  if (state !== "pending") return STATES[state] ?? state;
  const text = outcomeOf(alert) === "failed" ? "Not taken" : STATES.pending;
  if (!next) return text;
  const at = parseTime(next);
  return `${text}, ${at > serverNow() ? `next try ${fromNow(at)}` : "due now"}`;
}

function answerText(alert) {
  const answer = explain(alert);
  if (answer) return answer.short === "no answer" ? answer.long : capitalized(answer.short);
  return alert.state === "delivered" ? `Taken (${alert.last_status})` : "–";
}

const capitalized = (text) => text[0].toUpperCase() + text.slice(1);

// By the headings of the columns. "Raised" holds a <time>.
const TEXTS = {
  Alert: ({ type }) => TYPES[type] ?? type,
  Raised: null,
  Delivery: stateText,
  Attempts: ({ attempts }) => String(attempts),
  "Last answer": answerText,
};

// Existing rows are changed in place, so that a selection in them survives a refresh.
function fillRows(body, alerts, shown) {
  while (body.rows.length > alerts.length) body.deleteRow(-1);
  alerts.forEach((alert, index) => {
    const row = body.rows[index] ?? newRow(body);
    row.dataset.isOlder = String(!shown.has(alert));
    row.dataset.state = outcomeOf(alert);
    for (const cell of row.cells) {
      const text = TEXTS[cell.dataset.head];
      if (text) setText(cell, text(alert));
      else showTime(cell.firstChild, alert.created_at);
    }
  });
}

// With explicit roles: on a phone they are shown as blocks, and browsers then drop the roles of a table.
function newRow(body) {
  const row = body.insertRow();
  row.setAttribute("role", "row");
  for (const [head, text] of Object.entries(TEXTS)) {
    const cell = row.insertCell();
    cell.setAttribute("role", "cell");
    cell.dataset.head = head;
    if (!text) cell.append(document.createElement("time"));
  }
  return row;
}
