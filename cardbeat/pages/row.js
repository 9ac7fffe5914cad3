// One check on the page. Its element lives as long as the check is shown and is changed in place.

import { copies } from "./copy.js";
import { crontabLine } from "./cron.js";
import { fromTemplate, part, setText } from "./dom.js";
import { dateText, durationText, fromNow, parseTime } from "./time.js";

const STATUS = { on_time: "On time", overdue: "Overdue" };

export class Row {
  /** `on` holds what the buttons do: edit, remove, test, openAlerts; each is called with this row. */
  constructor(on) {
    this.element = fromTemplate("check-row");
    this.part = (name) => part(this.element, name);
    copies(this.part("copy"), () => this.part("crontab").textContent);
    this.part("edit").addEventListener("click", () => on.edit(this));
    this.part("delete").addEventListener("click", () => on.remove(this));
    this.part("test").addEventListener("click", () => on.test(this));
    this.part("alerts").addEventListener("toggle", () => this.alertsOpen && on.openAlerts(this));
  }

  get alertsOpen() {
    return this.part("alerts").open;
  }

  show(check) {
    this.check = check;
    this.element.dataset.status = check.status;
    setText(this.part("status"), STATUS[check.status] ?? check.status);
    setText(this.part("name"), check.name);
    setText(this.part("schedule"), scheduleText(check));
    setText(this.part("crontab"), crontabLine(check));
    setText(this.part("target"), targetText(check));
    setText(this.part("delivery"), check.delivery === "failing" ? "and don't arrive" : "");
    this.part("test").disabled = !check.webhook_url;
    this.#nameControls(check.name);
    this.showTimes();
  }

  /** Says again how long ago and how soon. */
  showTimes() {
    this.#showTime("last", this.check.last_ping_at);
    this.#showTime("deadline", this.check.deadline_at);
  }

  #showTime(name, text) {
    const node = this.part(name);
    const time = text && parseTime(text);
    setText(node, time ? fromNow(time) : "Never");
    setText(this.part(`${name}-date`), time ? dateText(time) : "");
    node.dateTime = time ? `${text.replace(" ", "T")}Z` : "";
    node.title = time ? `${text} UTC` : "";
  }

  // Twenty buttons called "Edit" say nothing to who hears them in a list.
  #nameControls(name) {
    const labels = {
      edit: `Edit ${name}`,
      delete: `Delete ${name}`,
      test: `Send a test alert for ${name}`,
      "alerts-scroll": `Alerts of ${name}`,
    };
    for (const [control, label] of Object.entries(labels)) this.part(control).setAttribute("aria-label", label);
  }
}

function scheduleText(check) {
  const pings = check.ping_count === 1 ? "1 ping" : `${check.ping_count} pings`;
  const grace = check.grace_seconds ? `, ${durationText(check.grace_seconds)} grace` : "";
  return `Every ${durationText(check.period_seconds)}${grace} · ${pings}`;
}

function targetText({ webhook_url: url }) {
  if (!url) return "go nowhere: no webhook";
  return URL.canParse(url) ? `go to ${new URL(url).host}` : "";
}
