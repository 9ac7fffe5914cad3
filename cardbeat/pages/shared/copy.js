// Copying text, also on pages served without HTTPS, where browsers have no clipboard interface.

import { setText } from "./dom.js";

const SHOWN_MILLISECONDS = 2000;

/** Makes a button copy what `text()` returns, and say so for a moment. */
export function copies(button, text) {
  const label = button.textContent;
  let timer;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    const copied = await copyText(text(), button.parentElement);
    setText(button, copied ? "Copied" : "Select and copy it by hand");
    clearTimeout(timer);
    timer = setTimeout(() => setText(button, label), SHOWN_MILLISECONDS);
  });
}

async function copyText(text, near) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text, near);
  }
}

// Beside the button, because everything outside an open dialog is inert.
function copyBySelection(text, near) {
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  near.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return copied;
}
