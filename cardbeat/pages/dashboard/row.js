// One check on the page: its line, and its details on demand. Its element lives as long as the check is shown.

import { explain, lastFailed } from "./answers.js";
import { copies } from "../shared/copy.js";
import { fromTemplate, part, setText, showText, showTime } from "../shared/dom.js";
import { splitName, stateOf } from "./groups.js";
import { daysOf, draw, historyText } from "./history.js";
import { keep, recall } from "../shared/keep.js";
import { receiverName } from "../editor/receivers.js";
import { RECIPES, reachText } from "./pings.js";
import { makeTabs } from "./tabs.js";
import { dayText, durationText, fromNow, parseTime, serverNow } from "../shared/time.js";

const STATUS = {
  failed: "Failed",
  overdue: "Overdue",
  snoozed: "Snoozed",
  waiting: "Waiting for its first ping",
  on_time: "On time",
};
const RECIPE_NAME = "cardbeat.recipe";
const ANSWER_MILLISECONDS = 60_000;
const DAYS = 30;
const QUARTER_DAYS = 90;

// A row begins with the recipe that was chosen last: users run most jobs in one way.
let lastRecipe = recall("localStorage", RECIPE_NAME) || "crontab";

export class Row {
  #answer = null;
  #answerAt = -Infinity;
  #usual = "";
  #history;
  #recipe = lastRecipe;
  #selectRecipe;

  /** `on` holds what the buttons do: edit, remove, test, snooze, openAlerts; each is called with this row. */
  constructor(on) {
    this.element = fromTemplate("check-row");
    this.part = (name) => part(this.element, name);
    copies(this.part("copy"), () => this.part("recipe").textContent);
    this.part("edit").addEventListener("click", () => on.edit(this));
    this.part("delete").addEventListener("click", () => on.remove(this));
    this.part("test").addEventListener("click", () => on.test(this));
    this.part("snooze").addEventListener("click", ({ target }) => {
      if (target.dataset.seconds) on.snooze(this, Number(target.dataset.seconds));
    });
    this.part("older").addEventListener("click", () => this.#showOlder());
    this.part("details").addEventListener("toggle", () => this.isOpen && this.#open(on));
    this.#selectRecipe = makeTabs(this.part("recipes"), this.part("recipe-panel"), RECIPES, (id) =>
      this.#chooseRecipe(id),
    );
  }

  get isOpen() {
    return this.part("details").open;
  }

  set isOpen(open) {
    this.part("details").open = open;
    if (open) this.#showRecipe();
  }

  /** Whether the last answer to its alerts is shown, or will be, and may be out of date. */
  get needsAlerts() {
    return this.isOpen || (this.check.delivery === "failing" && Date.now() - this.#answerAt > ANSWER_MILLISECONDS);
  }

  /** `isInGroup`: its heading shows the first part of its name already. `usual` is what most checks say of alerts. */
  show(check, isInGroup, usual) {
    this.check = check;
    this.#usual = usual;
    this.element.dataset.state = stateOf(check);
    this.element.toggleAttribute("data-failed", Boolean(check.failed_at));
    this.#showName(isInGroup);
    setText(this.part("status"), statusText(check));
    this.part("wake").hidden = !check.snoozed_until;
    this.#placeSetup();
    setText(this.part("every"), durationText(check.period_seconds));
    setText(this.part("schedule"), scheduleText(check));
    setText(this.part("pings"), String(check.ping_count));
    this.part("test").disabled = !check.webhook_url;
    this.#nameControls(check.name);
    this.#showDelivery();
    this.showTimes();
    if (this.#history) this.showHistory(this.#history);
    if (this.isOpen) this.#showRecipe();
  }

  /** Shows the last 30 days; `history` holds the check's outages and from when on they are known. */
  showHistory(history) {
    this.#history = history;
    draw(this.part("days"), daysOf(this.check, history, DAYS), historyText(this.check, history, DAYS));
  }

  /** Shows the last 90 days in the opened check. */
  showQuarter(history) {
    const text = historyText(this.check, history, QUARTER_DAYS);
    draw(this.part("quarter-days"), daysOf(this.check, history, QUARTER_DAYS), text);
    setText(this.part("quarter-text"), text);
    setText(this.part("quarter-from"), dayText(serverNow() - (QUARTER_DAYS - 1) * 86_400_000));
    this.part("quarter").hidden = false;
  }

  /** Shows the last answer, from the check's alerts. */
  showAnswer(alerts) {
    const failed = lastFailed(alerts);
    this.#answer = failed ? explain(failed) : null;
    this.#answerAt = Date.now();
    this.#showDelivery();
  }

  /** Updates the relative times. */
  showTimes() {
    this.#showTime("last", this.check.last_ping_at);
    this.#showTime("deadline", this.check.deadline_at);
    this.part("deadline").toggleAttribute("data-past", parseTime(this.check.deadline_at) < serverNow());
    if (this.isOpen) this.#showHappened();
  }

  #open(on) {
    this.#showRecipe();
    this.#showHappened();
    on.openAlerts(this);
  }

  #showName(isInGroup) {
    const { name } = this.check;
    const { rest } = splitName(name);
    const group = isInGroup ? name.slice(0, name.length - rest.length) : "";
    setText(this.part("group"), group);
    setText(this.part("name"), name.slice(group.length));
    this.part("name").title = name;
  }

  #showTime(name, text) {
    const node = this.part(name);
    showTime(node, text, text ? fromNow(parseTime(text)) : "never");
    showTime(this.part(`${name}-date`), text, text ? undefined : "Never");
  }

  // What a person needs who was woken: what is wrong, since when, and until when nothing more is said.
  #showHappened() {
    const { status, failed_at: failedAt, deadline_at: deadlineAt, snoozed_until: until } = this.check;
    this.part("snoozed").hidden = !until;
    if (until) showTime(this.part("snoozed-until"), until);
    this.part("happened").hidden = !failedAt && status !== "overdue";
    if (this.part("happened").hidden) return;
    const since = failedAt ?? deadlineAt;
    const seconds = Math.max(0, (serverNow() - parseTime(since)) / 1000);
    const lasts = durationText(seconds, 2);
    // A snooze or a longer period may have moved the deadline.
    const isKnown = failedAt || seconds > 0;
    const what = failedAt ? `The job failed ${lasts} ago:` : `Late for ${lasts}, since`;
    setText(this.part("what"), isKnown ? what : "Overdue until its next ping.");
    this.part("since").hidden = !isKnown;
    showTime(this.part("since"), since);
  }

  // How to ping comes first until the first ping, then what happened. Moved only if needed: it may have the focus.
  #placeSetup() {
    const [setup, alerts] = [this.part("setup"), this.part("alerts")];
    const [first, second] = stateOf(this.check) === "waiting" ? [setup, alerts] : [alerts, setup];
    if (first.nextElementSibling !== second) second.before(first);
  }

  #showDelivery() {
    const { webhook_url: url, delivery } = this.check;
    const answer = delivery === "failing" ? this.#answer : null;
    this.element.dataset.delivery = url ? (delivery ?? "untried") : "none";
    const own = targetText(this.check);
    const usual = own === this.#usual ? "" : own;
    setText(this.part("delivery"), delivery === "failing" ? failingText(answer) : usual);
    const untested = delivery ? "" : ", untested";
    setText(this.part("target"), url ? `${own}${untested}` : "go nowhere: this check has no webhook");
    const failure = `Alerts of this check don't arrive. ${answer?.long ?? ""}`.trim();
    showText(this.part("failure"), delivery === "failing" && failure);
  }

  #chooseRecipe(id) {
    this.#recipe = lastRecipe = id;
    keep("localStorage", RECIPE_NAME, id);
    this.#showRecipe();
  }

  #showRecipe() {
    // A read-only key sees no ping URL.
    if (!this.check.ping_url) return;
    const recipe = RECIPES.find(({ id }) => id === this.#recipe) ?? RECIPES[0];
    this.#selectRecipe(recipe.id);
    setText(this.part("recipe"), recipe.text(this.check));
    setText(this.part("recipe-note"), recipe.note);
    showText(this.part("reach"), reachText(this.check));
  }

  #showOlder() {
    this.part("alerts-table").dataset.older = "";
    this.part("older").hidden = true;
  }

  // A screen reader that lists the buttons must not read "Edit" twenty times.
  #nameControls(name) {
    for (const button of this.part("snooze").querySelectorAll("[data-seconds]")) {
      const words = button.dataset.seconds === "0" ? `End the snooze of ${name}` : `Snooze ${name} for ${button.textContent}`;
      button.setAttribute("aria-label", words);
    }
    const labels = {
      edit: `Edit ${name}`,
      delete: `Delete ${name}`,
      test: `Send a test alert for ${name}`,
      recipes: `How ${name} pings`,
      "alerts-table": `Alerts of ${name}`,
    };
    for (const [control, label] of Object.entries(labels)) this.part(control).setAttribute("aria-label", label);
  }
}

function statusText(check) {
  const isOverdue = check.status === "overdue";
  // A job that fails during a snooze turns its check overdue only if no ping follows in time.
  const more = isOverdue ? check.snoozed_until && "snoozed" : check.failed_at && "failed";
  return [STATUS[stateOf(check)], more].filter(Boolean).join(", ");
}

function scheduleText({ period_seconds: period, grace_seconds: grace, repeat_seconds: repeat }) {
  const late = grace ? `, may be ${durationText(grace)} late` : "";
  return `Every ${durationText(period)}${late}${repeat ? `; reminds every ${durationText(repeat)}` : ""}`;
}

const failingText = (answer) => `alerts don't arrive${answer ? `: ${answer.short}` : ""}`;

/** Where the alerts of a check go, in a check's line. */
export const targetText = ({ webhook_url: url }) => (url ? `to ${receiverName(url)}` : "no webhook");
