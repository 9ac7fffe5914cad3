// The dashboard: the open key, the sections shown, and the refresh.

import { refuse, setUpAccess, showSection } from "../access/access.js";
import { setAccount, setUpAccount } from "../access/account.js";
import { sendTest, showAlerts } from "./alerts.js";
import { call } from "../shared/api.js";
import { Board } from "./board.js";
import { copies } from "../shared/copy.js";
import { closeDialogs, confirm } from "../shared/dialog.js";
import { byId, part, setText, showText } from "../shared/dom.js";
import { createCheck, editCheck } from "../editor/editor.js";
import { dropKey, heldKey } from "../access/keyring.js";
import { createCommand, showExamples } from "./example.js";
import { dateText, serverNow } from "../shared/time.js";

const LARGEST_PAGE = 1000;
const REFRESH_MILLISECONDS = 5000;
const REFRESH_MILLISECONDS_PER_CHECK = 10;
const HISTORY_DAYS = 30;
const HISTORY_MILLISECONDS = 300_000;
// The server queues at most a hundred requests of a key.
const ALERTS_AT_ONCE = 20;

let key = "";
let refreshTimer;
let refreshes = 0;
let lastRefresh;
let shownHistory = { of: "", at: 0 };

const board = new Board({ edit, remove, test, snooze, openAlerts });

/** Opens the held key. */
function open() {
  close();
  key = heldKey().value;
  // What only a key that may change is for, has the attribute data-owner.
  document.body.toggleAttribute("data-reader", isReader());
  setAccount(key);
  showSection("board");
  refresh();
}

const isReader = () => Boolean(heldKey()?.isReader);

/** Opens the held key, hides the forms, and moves the focus out of them. Without a key the forms stay. */
function enter() {
  if (!heldKey()) return leave();
  open();
  byId(isReader() ? "account-open" : "create").focus();
}

/** Closes the open key on the page; it stays stored. */
function close() {
  key = "";
  setAccount("");
  lastRefresh = undefined;
  shownHistory = { of: "", at: 0 };
  clearTimeout(refreshTimer);
  closeDialogs();
  board.clear();
  showText(byId("trouble"), "");
  showText(byId("stray"), "");
  setText(byId("freshness"), "");
}

function leave(error) {
  close();
  // A value that is shown once stays until the user has saved it.
  if (!byId("issued").hidden) return;
  showSection("access");
  refuse("key", error);
  byId("key").focus();
}

function signOut() {
  dropKey();
  leave();
}

/** The first page of a list, with the items of all pages. */
async function loadAll(path, name) {
  const first = await call("GET", path, { key });
  for (let { next } = first; next; ) {
    const page = await call("GET", `${path}&after=${next}`, { key });
    first[name].push(...page[name]);
    next = page.next;
  }
  return first;
}

const loadOutages = () => loadAll(`checks/outages?days=${HISTORY_DAYS}&limit=${LARGEST_PAGE}`, "outages");

/** Shows the outages: those that were read beside the checks, or newer ones where a check has changed since. */
async function showHistory(checks, loaded) {
  const of = checks.map((check) => `${check.id}${check.status}${check.failed_at}`).join();
  const isFresh = of === shownHistory.of && Date.now() - shownHistory.at < HISTORY_MILLISECONDS;
  if (isFresh || !checks.length) return;
  board.showHistory(loaded ?? (await loadOutages()));
  shownHistory = { of, at: Date.now() };
}

/** Reads everything now, and again at intervals while the page is visible. */
async function refresh() {
  clearTimeout(refreshTimer);
  if (!key || document.hidden) return;
  const turn = ++refreshes;
  const isStale = () => turn !== refreshes || !key;
  let wait = REFRESH_MILLISECONDS;
  try {
    const asked = [loadAll(`checks?limit=${LARGEST_PAGE}`, "checks"), shownHistory.at ? null : loadOutages()];
    const [{ checks }, outages] = await Promise.all(asked);
    if (isStale()) return;
    showFresh(checks);
    await showHistory(checks, outages);
    if (isStale()) return;
    await Promise.all(board.rows.filter((row) => row.needsAlerts).slice(0, ALERTS_AT_ONCE).map(openAlerts));
    wait += checks.length * REFRESH_MILLISECONDS_PER_CHECK;
  } catch (error) {
    if (isStale()) return;
    explainTrouble(error);
  }
  if (!isStale()) refreshTimer = setTimeout(refresh, wait);
}

function showFresh(checks) {
  board.show(checks);
  followLink(checks);
  lastRefresh = serverNow();
  showText(byId("trouble"), "");
  setText(byId("freshness"), `As of ${dateText(lastRefresh)}. Refreshes itself.`);
}

/** Opens the check that the page's address names by the beginning of its id, as the link in an alert does. */
function followLink(checks) {
  const [, start] = /^#([0-9a-f]{8,32})$/.exec(location.hash) ?? [];
  const check = start && checks.find(({ id }) => id.startsWith(start));
  showText(byId("stray"), start && !check && `This key has no check ${start}…: it was deleted, or it is another key's.`);
  if (!check) return;
  // So that the same link opens it again.
  history.replaceState(null, "", location.pathname + location.search);
  const { element } = board.reveal(check);
  element.scrollIntoView();
  element.querySelector("summary").focus({ preventScroll: true });
}

/** A key that is refused, also one that was revoked since, leads back to the forms. All else is tried again. */
function explainTrouble(error) {
  if (error.refusesKey) {
    dropKey();
    leave(error);
    return;
  }
  const asOf = lastRefresh ? `What you see is from ${dateText(lastRefresh)}. ` : "";
  showText(byId("trouble"), `${error.message} ${asOf}Trying again.`);
}

async function create() {
  const asked = key;
  const made = await createCheck(asked);
  if (!made || key !== asked) return;
  board.put(made.check);
  const row = board.reveal(made.check);
  part(row.element, "copy").focus();
  if (made.wantsTest) await test(row);
  else refresh();
}

async function edit(row) {
  const asked = key;
  const saved = await editCheck(asked, row.check);
  if (key !== asked) return;
  if (saved) board.put(saved.check);
  // Its new name may not match the search.
  if (!row.element.isConnected) byId("create").focus();
  if (saved?.wantsTest) await test(row);
  else refresh();
}

async function remove(row) {
  const { check } = row;
  const question = {
    title: `Delete “${check.name}”?`,
    text: "Its ping URL stops working, and alerts that are still on their way are dropped. This can't be undone.",
    action: "Delete",
  };
  const deleted = await confirm(question, () => deleteCheck(check));
  if (!deleted) return;
  board.drop(check);
  byId("create").focus();
  refresh();
}

async function deleteCheck({ id }) {
  try {
    await call("DELETE", `checks/${id}`, { key });
  } catch (error) {
    // Another user has deleted it before.
    if (error.status !== 404) throw error;
  }
  return true;
}

async function test(row) {
  await sendTest(key, row);
  refresh();
}

/** Snoozes a check for so many seconds from now; 0 ends its snooze. */
async function snooze(row, seconds) {
  const asked = key;
  const [method, body] = seconds ? ["PUT", { seconds }] : ["DELETE"];
  try {
    const { check } = await call(method, `checks/${row.check.id}/snooze`, { key, body });
    if (key !== asked) return;
    showText(row.part("snooze-error"), "");
    // The button that ends it goes away with it.
    if (!seconds) row.part("snooze").querySelector("button").focus();
    board.put(check);
  } catch (error) {
    showText(row.part("snooze-error"), error.message);
  }
  refresh();
}

async function openAlerts(row) {
  try {
    const quarter = row.isOpen && call("GET", `checks/${row.check.id}/outages`, { key });
    await showAlerts(key, row);
    if (quarter) row.showQuarter(await quarter);
  } catch (error) {
    showText(row.part("alerts-note"), error.message);
  }
}

setUpAccess(enter);
setUpAccount(enter);
showExamples();
setText(byId("create-curl"), createCommand(new URL("checks", document.baseURI)));
copies(byId("copy-curl"), () => byId("create-curl").textContent);
byId("create").addEventListener("click", create);
byId("create-first").addEventListener("click", create);
byId("leave").addEventListener("click", signOut);
document.addEventListener("visibilitychange", refresh);
addEventListener("hashchange", refresh);
// A sign-out in one tab signs out all tabs.
addEventListener("storage", () => key && heldKey()?.value !== key && leave());
setInterval(() => document.hidden || board.rows.forEach((row) => row.showTimes()), 1000);
if (heldKey()) open();
else showSection("access");
