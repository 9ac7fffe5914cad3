// The list of checks, in sections, with a filter and a search by name; a hundred on a page.

import { byId, setText, showText } from "../shared/dom.js";
import { arrange, countKinds, kindOf, summaryOf } from "./groups.js";
import { Row, targetText } from "./row.js";
import { Section, place } from "./section.js";

const PAGE_CHECKS = 100;
const FILTERED_FROM = 5;

export class Board {
  #checks = [];
  #rows = new Map();
  #sections = new Map();
  #page = 0;
  #usual = "";
  #history;
  #on;

  /** `on` holds the actions of a row's buttons. */
  constructor(on) {
    this.#on = on;
    byId("filters").addEventListener("input", () => this.#turnTo(0));
    byId("previous").addEventListener("click", () => this.#turnTo(this.#page - 1));
    byId("next").addEventListener("click", () => this.#turnTo(this.#page + 1));
  }

  /** The rows on the page now. */
  get rows() {
    return [...this.#rows.values()];
  }

  /** Shows all checks of a key, given oldest first, and announces those whose status changed. */
  show(checks) {
    const before = new Map(this.#checks.map((check) => [check.id, check]));
    const news = checks.map((check) => newsText(before.get(check.id) ?? check, check)).filter(Boolean);
    if (news.length) setText(byId("news"), news.join(" "));
    this.#checks = checks;
    this.#usual = mostFrequent(checks.map(targetText));
    this.#render();
  }

  /** Shows the outages of all checks, known from `kept_since` on. */
  showHistory({ outages, kept_since }) {
    const byCheck = Map.groupBy(outages, ({ check_id: id }) => id);
    this.#history = (id) => ({ outages: byCheck.get(id) ?? [], kept_since });
    for (const [id, row] of this.#rows) row.showHistory(this.#history(id));
  }

  /** Shows the present state of one check. */
  put(check) {
    const at = this.#checks.findIndex(({ id }) => id === check.id);
    this.show(at < 0 ? [...this.#checks, check] : this.#checks.with(at, check));
  }

  drop(check) {
    this.show(this.#checks.filter(({ id }) => id !== check.id));
  }

  /** Clears the search, opens a check in its place, and returns its row. */
  reveal(check) {
    byId("search").value = "";
    document.querySelector('input[name="kind"]').checked = true;
    this.#turnTo(Math.floor(this.#found().findIndex(({ id }) => id === check.id) / PAGE_CHECKS));
    const row = this.#rows.get(check.id);
    row.element.closest("details").open = true;
    row.isOpen = true;
    return row;
  }

  clear() {
    this.#page = 0;
    this.#checks = [];
    this.#history = undefined;
    this.#rows.clear();
    this.#render();
  }

  #turnTo(page) {
    this.#page = page;
    this.#render();
  }

  #render() {
    const found = this.#found();
    this.#page = Math.max(0, Math.min(this.#page, Math.ceil(found.length / PAGE_CHECKS) - 1));
    const first = this.#page * PAGE_CHECKS;
    this.#place(found.slice(first, first + PAGE_CHECKS));
    this.#showSummary();
    byId("none").hidden = this.#checks.length > 0;
    byId("no-match").hidden = found.length > 0 || this.#checks.length === 0;
    byId("filters").hidden = this.#checks.length < FILTERED_FROM;
    showPager(first, found.length);
  }

  // In the order of the page, across all sections.
  #found() {
    const kind = document.querySelector('input[name="kind"]:checked').value;
    const words = byId("search").value.trim().toLowerCase();
    const found = this.#checks.filter(
      (check) => (!kind || kindOf(check) === kind) && check.name.toLowerCase().includes(words),
    );
    return arrange(found, this.#checks).flatMap(({ checks }) => checks);
  }

  // Elements are kept and moved only where their order changed, so the focus stays.
  #place(checks) {
    const focused = document.activeElement;
    const shown = new Set(checks.map(({ id }) => id));
    for (const id of this.#rows.keys()) {
      if (!shown.has(id)) this.#rows.delete(id);
    }
    place(byId("checks"), arrange(checks, this.#checks).map((section) => this.#section(section)));
    if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
  }

  #section(arranged) {
    const name = `${arranged.isGroup}${arranged.title}`;
    if (!this.#sections.has(name)) this.#sections.set(name, new Section());
    const section = this.#sections.get(name);
    section.show(arranged, (check, isInGroup) => this.#row(check, isInGroup));
    return section.element;
  }

  #row(check, isInGroup) {
    const isNew = !this.#rows.has(check.id);
    if (isNew) this.#rows.set(check.id, new Row(this.#on));
    const row = this.#rows.get(check.id);
    row.show(check, isInGroup, this.#usual);
    if (isNew && this.#history) row.showHistory(this.#history(check.id));
    return row;
  }

  #showSummary() {
    const counts = countKinds(this.#checks);
    const { attention } = counts;
    showSummary(summaryOf(this.#checks));
    for (const [kind, count] of Object.entries(counts)) {
      const number = byId(`count-${kind || "all"}`);
      setText(number, String(count));
      const label = number.closest("label");
      label.hidden = kind === "snoozed" && !count && !label.querySelector("input").checked;
    }
    document.title = `${attention ? `(${attention}) ` : ""}Checks · cardbeat`;
  }
}

function mostFrequent(texts) {
  const counts = [...Map.groupBy(texts, (text) => text)].map(([text, all]) => [all.length, text]);
  return counts.sort(([a], [b]) => b - a)[0]?.[1] ?? "";
}

// Only what needs attention is coloured.
function showSummary(parts) {
  if (byId("summary").textContent === parts.map(({ text }) => text).join(" · ")) return;
  const nodes = parts.flatMap(({ text, isBad }) => {
    const node = document.createElement(isBad ? "b" : "span");
    node.textContent = text;
    return [" · ", node];
  });
  byId("summary").replaceChildren(...nodes.slice(1));
}

function newsText(before, { name, status, delivery }) {
  if (before.status !== status) return status === "overdue" ? `${name} is overdue.` : `${name} has recovered.`;
  return before.delivery !== delivery && delivery === "failing" ? `Alerts of ${name} don't arrive.` : "";
}

function showPager(first, count) {
  const last = Math.min(first + PAGE_CHECKS, count);
  byId("pager").hidden = count <= PAGE_CHECKS;
  setText(byId("range"), `${first + 1}–${last} of ${count}`);
  byId("previous").disabled = first === 0;
  byId("next").disabled = last === count;
}
