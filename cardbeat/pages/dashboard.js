// The dashboard: who is in, what is shown, and keeping it fresh.

import { refuse, setUpAccess, showSection } from "./access.js";
import { showAlerts } from "./alerts.js";
import { call } from "./api.js";
import { Board } from "./board.js";
import { ask } from "./dialog.js";
import { byId, part, setText, showText } from "./dom.js";
import { createCheck, editCheck } from "./editor.js";
import { keep, recall } from "./keep.js";
import { dateText, serverNow } from "./time.js";

const KEY_NAME = "cardbeat.checks_key";
const LARGEST_PAGE = 1000;
const REFRESH_MILLISECONDS = 5000;
const REFRESH_MILLISECONDS_PER_CHECK = 10;

let key = recall("sessionStorage", KEY_NAME);
let refreshTimer;
let refreshes = 0;
let lastRefresh;

const board = new Board({ edit, remove, test, openAlerts });

function open(newKey) {
  key = newKey;
  keep("sessionStorage", KEY_NAME, key);
  showSection("board");
  refresh();
}

function leave(error) {
  key = "";
  lastRefresh = undefined;
  clearTimeout(refreshTimer);
  keep("sessionStorage", KEY_NAME, "");
  board.clear();
  showText(byId("trouble"), "");
  setText(byId("freshness"), "");
  showSection("access");
  refuse("key", error);
  byId("key").focus();
}

async function loadChecks() {
  const checks = [];
  let next = null;
  do {
    const after = next ? `&after=${next}` : "";
    const page = await call("GET", `checks?limit=${LARGEST_PAGE}${after}`, { key });
    checks.push(...page.checks);
    next = page.next;
  } while (next);
  return checks;
}

/** Reads everything anew, now and from then on, while somebody is looking. */
async function refresh() {
  clearTimeout(refreshTimer);
  if (!key || document.hidden) return;
  const turn = ++refreshes;
  const isStale = () => turn !== refreshes || !key;
  let wait = REFRESH_MILLISECONDS;
  try {
    const checks = await loadChecks();
    if (isStale()) return;
    board.show(checks);
    await Promise.all(board.rows.filter((row) => row.alertsOpen).map(openAlerts));
    lastRefresh = serverNow();
    wait += checks.length * REFRESH_MILLISECONDS_PER_CHECK;
    showText(byId("trouble"), "");
    setText(byId("freshness"), `As of ${dateText(lastRefresh)}. Refreshes itself.`);
  } catch (error) {
    if (isStale()) return;
    explainTrouble(error);
  }
  refreshTimer = setTimeout(refresh, wait);
}

function explainTrouble(error) {
  const refused = error.status === 401 || error.status === 403;
  if (refused && !lastRefresh) {
    leave(error);
    return;
  }
  const advice = refused ? "Use “Forget the key” and open another." : "Trying again.";
  const asOf = lastRefresh ? `What you see is from ${dateText(lastRefresh)}. ` : "";
  showText(byId("trouble"), `${error.message} ${asOf}${advice}`);
}

async function create() {
  const check = await createCheck(key);
  if (!check) return;
  board.put(check);
  part(board.reveal(check).element, "copy").focus();
  refresh();
}

async function edit(row) {
  const check = await editCheck(key, row.check);
  if (check) board.put(check);
  refresh();
}

async function remove(row) {
  const { check } = row;
  setText(byId("confirm-title"), `Delete “${check.name}”?`);
  const deleted = await ask("confirm", () => deleteCheck(check));
  if (!deleted) return;
  board.drop(check);
  byId("create").focus();
  refresh();
}

async function deleteCheck({ id }) {
  try {
    await call("DELETE", `checks/${id}`, { key });
  } catch (error) {
    // Somebody else was faster.
    if (error.status !== 404) throw error;
  }
  return true;
}

async function test(row) {
  const note = part(row.element, "alerts-note");
  try {
    await call("POST", `checks/${row.check.id}/test-alert`, { key });
    await loadAlerts(row);
    setText(note, "The test alert is on its way.");
  } catch (error) {
    setText(note, error.message);
  }
}

async function openAlerts(row) {
  try {
    await loadAlerts(row);
  } catch (error) {
    setText(part(row.element, "alerts-note"), error.message);
  }
}

const loadAlerts = (row) => showAlerts(key, row.check, row.element);

setUpAccess(open);
byId("create").addEventListener("click", create);
byId("create-first").addEventListener("click", create);
byId("leave").addEventListener("click", () => leave());
document.addEventListener("visibilitychange", refresh);
setInterval(() => document.hidden || board.rows.forEach((row) => row.showTimes()), 1000);
if (key) open(key);
else showSection("access");
