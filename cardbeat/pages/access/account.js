// The dialog of the open key: its limits, its replacement, its read-only key and its webhook secret.

import { showIssued } from "./access.js";
import { call } from "../shared/api.js";
import { closeDialogs, confirm } from "../shared/dialog.js";
import { byId, setText, showText } from "../shared/dom.js";
import { heldKey, holdKey, labelOf } from "./keyring.js";
import { durationText } from "../shared/time.js";

const REPLACE = {
  title: "Replace this key?",
  text: "The present key stops working at once, wherever it is used, and so does its read-only key. Jobs go on: their ping URLs stay the same.",
  action: "Replace the key",
};
const RENEW = {
  title: "Make a new webhook secret?",
  text: "For 24 hours alerts are signed with both the new secret and the one before it, then only with the new one.",
  action: "Make a new secret",
};

const SHARE = {
  title: "Make another read-only key?",
  text: "The present read-only key stops working at once.",
  action: "Make another one",
};
const END = {
  title: "End the read-only key?",
  text: "It stops working at once, wherever it is used.",
  action: "End the read-only key",
};
const NO_READER = "A second key that shows the checks and changes nothing: for a wall display, a colleague or Prometheus.";

let value = "";
let hasReader = false;

/** Makes the dialog work. `open()` shows the checks of the held key again, after something was issued. */
export function setUpAccount(open) {
  byId("account-open").addEventListener("click", show);
  byId("account-remember").addEventListener("change", () => {
    holdKey({ ...heldKey(), remembered: byId("account-remember").checked });
  });
  byId("account-replace").addEventListener("click", () => confirm(REPLACE, () => replace(open)));
  byId("account-renew").addEventListener("click", () => confirm(RENEW, () => renew(open)));
  byId("account-share").addEventListener("click", () => share(open));
  byId("account-end").addEventListener("click", () => confirm(END, endReader));
  byId("account").addEventListener("click", (event) => event.target.closest("[data-close]") && byId("account").close());
}

/** Sets the open key; "" if there is none. */
export function setAccount(current) {
  value = current;
}

async function show() {
  const key = heldKey();
  setText(byId("account-label"), key?.label ?? "");
  byId("account-remember").checked = Boolean(key?.remembered);
  showText(byId("account-error"), "");
  byId("account").showModal();
  try {
    showUse(await call("GET", "key", { key: value }));
  } catch (error) {
    showText(byId("account-error"), error.message);
  }
}

function showUse({ tier, limits, usage, read_only_prefix: reader }) {
  hasReader = Boolean(reader);
  setText(byId("account-reader"), hasReader ? `There is one, ${reader}…` : NO_READER);
  byId("account-end").hidden = !hasReader;
  setText(byId("account-tier"), tier);
  setText(byId("account-period"), durationText(limits.min_period_seconds));
  showMeter("checks", usage.checks, limits.max_checks);
  showMeter("tests", usage.test_alerts, limits.test_alerts_per_hour);
}

function showMeter(name, used, most) {
  setText(byId(`account-${name}`), most === null ? `${used}, no limit` : `${used} of ${most}`);
  const meter = byId(`account-${name}-meter`);
  meter.hidden = most === null;
  Object.assign(meter, { max: most || 1, value: used });
}

// These three show what was issued themselves: the dialog that asks may be closed before the answer comes.

function showOnce(title, issued, remembered, saved) {
  closeDialogs();
  showIssued(title, issued, remembered, saved);
}

async function replace(open) {
  const old = value;
  const issued = await call("POST", "key/rotate", { key: old });
  const kept = heldKey();
  const hold = (remembered) => holdKey({ value: issued.key, label: labelOf(issued), remembered });
  // Stored at once, because the value is shown only here. After a sign-out nothing is stored.
  if (kept?.value === old) hold(kept.remembered);
  showOnce("Save the new key now", issued, Boolean(kept?.remembered), (remembered) => {
    hold(remembered);
    open();
  });
}

async function renew(open) {
  const issued = await call("POST", "key/webhook-secret", { key: value });
  showOnce("Save the new webhook secret now", issued, false, open);
}

async function share(open) {
  const make = async () => showOnce("Save the read-only key now", await call("POST", "key/read-only", { key: value }), false, open);
  try {
    // The dialog may not show yet whether there is one, which would end without a question.
    showUse(await call("GET", "key", { key: value }));
    await (hasReader ? confirm(SHARE, make) : make());
  } catch (error) {
    showText(byId("account-error"), error.message);
  }
}

async function endReader() {
  await call("DELETE", "key/read-only", { key: value });
  showUse(await call("GET", "key", { key: value }));
}
