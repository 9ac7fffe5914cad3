// What a board looks like, for those who have none yet: jobs that do not exist, and how to make the first check.

import { byId } from "../shared/dom.js";
import { Row } from "./row.js";
import { serverNow } from "../shared/time.js";

const HOUR = 3_600;
const DAY = 24 * HOUR;
const CREATED = 100 * DAY;

// Of each its name, its period, the last ping, and its outages. All times are seconds ago.
const JOBS = [
  ["Nightly backup", DAY, 7 * HOUR, [[9.3 * DAY, 8.9 * DAY], [3 * DAY, 2.8 * DAY]]],
  ["Sync products from ERP", HOUR, 3 * HOUR, [[16 * DAY, 15.2 * DAY], [2 * HOUR, 0]]],
  ["Certificate renewal", 7 * DAY, 2 * DAY, []],
];

const ago = (seconds) => new Date(serverNow() - 1000 * seconds).toISOString().slice(0, 19).replace("T", " ");

function exampleRow([name, period, pinged, outages]) {
  const row = new Row({});
  const times = { last_ping_at: ago(pinged), deadline_at: ago(pinged - period), created_at: ago(CREATED) };
  const status = pinged > period ? "overdue" : "on_time";
  row.show({ name, period_seconds: period, ping_count: 0, status, ...times }, false, "no webhook");
  const spans = outages.map(([began, ended]) => ({ began_at: ago(began), ended_at: ago(ended) }));
  row.showHistory({ outages: spans, kept_since: times.created_at });
  return row.element;
}

export function showExamples() {
  byId("example").replaceChildren(...JOBS.map(exampleRow));
  byId("ghost").replaceChildren(exampleRow(JOBS[0]));
}

/** A command for curl that creates the first check. */
export const createCommand = (url) => `curl -fsS ${url} -H "Authorization: Bearer $CHECKS_KEY" \\
  -H 'Content-Type: application/json' -d '{"name": "Nightly backup", "period_seconds": 86400, "grace_seconds": 7200}'`;
