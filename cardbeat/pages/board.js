// The list of checks: the overdue ones first, found by status and name, a hundred on a page.

import { byId, setText, showText } from "./dom.js";
import { Row } from "./row.js";

const PAGE_CHECKS = 100;
const FILTERED_FROM = 5;

export class Board {
  #checks = [];
  #rows = new Map();
  #page = 0;
  #on;

  /** `on` is what a row's buttons do. */
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

  /** Shows all checks of a key, given oldest first, and announces those that turned. */
  show(checks) {
    const before = new Map(this.#checks.map((check) => [check.id, check.status]));
    const turned = checks.filter(({ id, status }) => before.has(id) && before.get(id) !== status);
    if (turned.length) setText(byId("news"), turned.map(turnedText).join(" "));
    this.#checks = checks;
    this.#render();
  }

  /** Takes one check as it now stands. */
  put(check) {
    const at = this.#checks.findIndex(({ id }) => id === check.id);
    this.show(at < 0 ? [...this.#checks, check] : this.#checks.with(at, check));
  }

  drop(check) {
    this.show(this.#checks.filter(({ id }) => id !== check.id));
  }

  /** Turns to the page where a check is, whatever was being searched, and gives its row. */
  reveal(check) {
    byId("search").value = "";
    document.querySelector('input[name="status"]').checked = true;
    this.#turnTo(Math.floor(this.#found().findIndex(({ id }) => id === check.id) / PAGE_CHECKS));
    return this.#rows.get(check.id);
  }

  clear() {
    this.#page = 0;
    this.#checks = [];
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

  #found() {
    const status = document.querySelector('input[name="status"]:checked').value;
    const words = byId("search").value.trim().toLowerCase();
    const found = this.#checks.filter(
      (check) => (!status || check.status === status) && check.name.toLowerCase().includes(words),
    );
    return found.sort((a, b) => (b.status === "overdue") - (a.status === "overdue"));
  }

  // Elements stay and only move where their order changed, and what has the focus keeps it.
  #place(checks) {
    const list = byId("checks");
    const focused = document.activeElement;
    const shown = new Set(checks.map(({ id }) => id));
    for (const [id, row] of this.#rows) {
      if (!shown.has(id)) this.#remove(id, row);
    }
    checks.forEach((check, index) => {
      const { element } = this.#row(check);
      if (list.children[index] !== element) list.insertBefore(element, list.children[index] ?? null);
    });
    if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
  }

  #row(check) {
    if (!this.#rows.has(check.id)) this.#rows.set(check.id, new Row(this.#on));
    const row = this.#rows.get(check.id);
    row.show(check);
    return row;
  }

  #remove(id, row) {
    row.element.remove();
    this.#rows.delete(id);
  }

  #showSummary() {
    const overdue = this.#checks.filter(({ status }) => status === "overdue").length;
    const all = this.#checks.length;
    const state = overdue ? `${overdue} of ${all} overdue` : `${all === 1 ? "It is" : `All ${all} are`} on time`;
    showText(byId("summary"), all && state);
    byId("summary").dataset.status = overdue ? "overdue" : "on_time";
    document.title = `${overdue ? `(${overdue}) ` : ""}Checks · cardbeat`;
  }
}

const turnedText = ({ name, status }) => (status === "overdue" ? `${name} is overdue.` : `${name} has recovered.`);

function showPager(first, count) {
  const last = Math.min(first + PAGE_CHECKS, count);
  byId("pager").hidden = count <= PAGE_CHECKS;
  setText(byId("range"), `${first + 1}–${last} of ${count}`);
  byId("previous").disabled = first === 0;
  byId("next").disabled = last === count;
}
