// The alerts of one check with the results of their delivery; and a test alert, watched until it has a result.

import { explain } from "./answers.js";
import { call } from "../shared/api.js";
import { setText, showText } from "../shared/dom.js";
import { receiverName } from "../editor/receivers.js";
import { dateText, fromNow, parseTime, serverNow } from "../shared/time.js";

const TYPES = { "check.overdue": "Overdue", "check.recovered": "Recovered", "check.test": "Test" };
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
  fillRows(row.part("alerts-rows"), alerts.map(cells));
  showOlder(row, alerts.length - SHOWN);
  return alerts;
}

/** Sends a test alert and shows in the row whether it has arrived, as soon as that is known. */
export async function sendTest(key, row) {
  const note = row.part("test-note");
  setText(note, "Sending a test alert…");
  try {
    await call("POST", `checks/${row.check.id}/test-alert`, { key });
    setText(note, resultText(await triedTest(key, row), row.check));
  } catch (error) {
    setText(note, error.message);
  }
}

/** The newest test alert once it was tried, or after some seconds in any case. */
async function triedTest(key, row) {
  const until = Date.now() + WATCHED_MILLISECONDS;
  for (;;) {
    const alerts = await showAlerts(key, row);
    const test = alerts.find(({ type }) => type === "check.test");
    if (!test || test.attempts || Date.now() > until) return test;
    await new Promise((looked) => setTimeout(looked, LOOK_MILLISECONDS));
  }
}

function resultText(test, { webhook_url: url }) {
  const receiver = receiverName(url ?? "");
  if (!test?.attempts) return "The test alert is still on its way; the table shows how it goes on.";
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
  setText(button, `Show ${count} older`);
}

function cells(alert) {
  return [
    TYPES[alert.type] ?? alert.type,
    dateText(parseTime(alert.created_at)),
    stateText(alert),
    String(alert.attempts),
    answerText(alert),
  ];
}

function stateText({ state, next_attempt_at: next }) {
  const text = STATES[state] ?? state;
  if (state !== "pending" || !next) return text;
  const at = parseTime(next);
  return `${text}, ${at > serverNow() ? `next try ${fromNow(at)}` : "due now"}`;
}

function answerText(alert) {
  const answer = explain(alert);
  if (answer) return answer.short === "no answer" ? answer.long : capitalized(answer.short);
  return alert.state === "delivered" ? `Taken (${alert.last_status})` : "–";
}

const capitalized = (text) => text[0].toUpperCase() + text.slice(1);

const HEADS = ["Alert", "Raised", "Delivery", "Attempts", "Last answer"];

// Existing rows are changed in place, so that a selection in them survives a refresh.
function fillRows(body, rows) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((texts, index) => {
    const row = body.rows[index] ?? newRow(body);
    texts.forEach((text, column) => setText(row.cells[column], text));
  });
}

// With explicit roles: on a phone they are shown as blocks, and browsers then drop the roles of a table.
function newRow(body) {
  const row = body.insertRow();
  row.setAttribute("role", "row");
  for (const head of HEADS) {
    const cell = row.insertCell();
    cell.setAttribute("role", "cell");
    cell.dataset.head = head;
  }
  return row;
}
