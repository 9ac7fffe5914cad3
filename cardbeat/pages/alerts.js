// The alerts of one check and how their delivery went.

import { call } from "./api.js";
import { part, setText } from "./dom.js";
import { dateText, fromNow, parseTime } from "./time.js";

const TYPES = { "check.overdue": "Overdue", "check.recovered": "Recovered", "check.test": "Test" };
const STATES = { pending: "Waiting", delivered: "Delivered", failed: "Given up" };

/** Reads and shows the alerts in a check's row. Throws ApiError. */
export async function showAlerts(key, check, row) {
  const { alerts } = await call("GET", `checks/${check.id}/alerts`, { key });
  part(row, "alerts-scroll").hidden = alerts.length === 0;
  setText(part(row, "alerts-note"), alerts.length ? "" : noneText(check));
  fillRows(part(row, "alerts-rows"), alerts.map(cells));
}

const noneText = (check) =>
  check.webhook_url
    ? "No alerts so far."
    : "This check has no webhook, so nobody is alerted. Add one with Edit.";

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
  return state === "pending" && next ? `${text}, next try ${fromNow(parseTime(next))}` : text;
}

const answerText = ({ last_status: status, last_error: error }) => [status, error].filter(Boolean).join(": ") || "–";

// Rows that stay are changed in place, so that a selection in them survives a refresh.
function fillRows(body, rows) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((texts, index) => {
    const row = body.rows[index] ?? body.insertRow();
    texts.forEach((text, column) => setText(row.cells[column] ?? row.insertCell(), text));
  });
}
