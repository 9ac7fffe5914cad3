// One check on the page: its line, and its details on demand. Its element lives as long as the check is shown.

import { explain, lastFailed } from "./answers.js";
import { copies } from "../shared/copy.js";
import { fromTemplate, part, setText, showText } from "../shared/dom.js";
import { splitName, stateOf } from "./groups.js";
import { keep, recall } from "../shared/keep.js";
import { receiverName } from "../editor/receivers.js";
import { RECIPES, reachText } from "./pings.js";
import { makeTabs } from "./tabs.js";
import { dateText, durationText, fromNow, parseTime } from "../shared/time.js";

const STATUS = { overdue: "Overdue", waiting: "Waiting for its first ping", on_time: "On time" };
const RECIPE_NAME = "cardbeat.recipe";
const CHANGES = ["edit", "delete", "test"];
const ANSWER_MILLISECONDS = 60_000;

// A row begins with the recipe that was chosen last: users run most jobs in one way.
let lastRecipe = recall("localStorage", RECIPE_NAME) || "crontab";

export class Row {
  #answer = null;
  #answerAt = -Infinity;
  #recipe = lastRecipe;
  #selectRecipe;

  /** `on` holds what the buttons do: edit, remove, test, openAlerts; each is called with this row. */
  constructor(on) {
    this.element = fromTemplate("check-row");
    this.part = (name) => part(this.element, name);
    copies(this.part("copy"), () => this.part("recipe").textContent);
    this.part("edit").addEventListener("click", () => on.edit(this));
    this.part("delete").addEventListener("click", () => on.remove(this));
    this.part("test").addEventListener("click", () => on.test(this));
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

  /** `isInGroup`: its heading shows the first part of its name already. */
  show(check, isInGroup) {
    this.check = check;
    this.element.dataset.state = stateOf(check);
    this.#showName(isInGroup);
    setText(this.part("status"), STATUS[stateOf(check)]);
    setText(this.part("schedule"), scheduleText(check));
    setText(this.part("pings"), String(check.ping_count));
    for (const name of CHANGES) this.part(name).disabled = name === "test" && !check.webhook_url;
    this.#nameControls(check.name);
    this.#showDelivery();
    this.showTimes();
    if (this.isOpen) this.#showRecipe();
  }

  /** Disables all changes of the check until it is shown again. */
  disable() {
    for (const name of CHANGES) this.part(name).disabled = true;
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
  }

  #open(on) {
    this.#showRecipe();
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
    const time = text && parseTime(text);
    setText(node, time ? fromNow(time) : "never");
    setText(this.part(`${name}-date`), time ? dateText(time) : "Never");
    node.dateTime = time ? `${text.replace(" ", "T")}Z` : "";
    node.title = time ? `${text} UTC` : "";
  }

  #showDelivery() {
    const { webhook_url: url, delivery } = this.check;
    const answer = delivery === "failing" ? this.#answer : null;
    const [label, text] = deliveryTexts(this.check, answer);
    this.element.dataset.delivery = url ? (delivery ?? "untried") : "none";
    setText(this.part("delivery-label"), label);
    setText(this.part("delivery"), text);
    setText(this.part("target"), url ? `to ${receiverText(this.check)}` : "go nowhere: this check has no webhook");
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

function scheduleText({ period_seconds: period, grace_seconds: grace }) {
  const late = grace ? `, may be ${durationText(grace)} late` : "";
  return `Every ${durationText(period)}${late}`;
}

/** The text on alerts in a check's line, with a label where no column has a heading. */
function deliveryTexts(check, answer) {
  if (!check.webhook_url) return ["", "no webhook"];
  if (check.delivery !== "failing") return ["Alerts to ", receiverText(check)];
  return ["Alerts ", `don't arrive${answer ? `: ${answer.short}` : ""}`];
}

const receiverText = ({ webhook_url: url, delivery }) => `${receiverName(url)}${delivery ? "" : ", untested"}`;
