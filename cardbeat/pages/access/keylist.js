// A list of the keys in this browser: one to open, each to forget.

import { fromTemplate, part, setText } from "../shared/dom.js";
import { allKeys, forgetKey } from "./keyring.js";

/** Fills `list` with the keys; `open(value)` is called for the one that is chosen, `changed()` when one was forgotten. */
export function showKeys(list, current, { open, changed }) {
  const keys = allKeys();
  list.replaceChildren(...keys.map((key) => item(key, current, open, changed)));
  return keys.length;
}

function item({ value, label, remembered }, current, open, changed) {
  const element = fromTemplate("key-item");
  const isCurrent = value === current;
  setText(part(element, "label"), label);
  setText(part(element, "kept"), `${isCurrent ? "open now, " : ""}${remembered ? "remembered here" : "in this tab only"}`);
  part(element, "open").hidden = isCurrent;
  part(element, "open").setAttribute("aria-label", `Open ${label}`);
  part(element, "open").addEventListener("click", () => open(value));
  part(element, "forget").setAttribute("aria-label", `Forget ${label}`);
  part(element, "forget").addEventListener("click", () => {
    forgetKey(value);
    changed(value);
  });
  return element;
}
