// Modal dialogs: opened with a promise of their result, closed by Escape or by any element marked data-close.

import { byId, setText, showText } from "./dom.js";

/** Closes all open dialogs; their promises give undefined. */
export const closeDialogs = () => document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());

/** Asks before an action that can't be undone; the dialog's button says `action`. Otherwise like `ask`. */
export function confirm({ title, text, action }, submit) {
  setText(byId("confirm-title"), title);
  setText(byId("confirm-text"), text);
  setText(byId("confirm-do"), action);
  return ask("confirm", submit);
}

/**
 * Shows a dialog until `submit()` has succeeded or the user closes it. Returns the result of `submit`, undefined if
 * closed. A `submit` that runs then runs on, and must itself store what must not be lost.
 * An error thrown by `submit` keeps the dialog open, with the text of `explain(error)`.
 */
export async function ask(id, submit, explain = (error) => showText(byId(`${id}-error`), error.message)) {
  const dialog = byId(id);
  const form = dialog.querySelector("form");
  const shown = new AbortController();
  const whileShown = { signal: shown.signal };
  let outcome;
  form.addEventListener("submit", send, whileShown);
  dialog.addEventListener("click", (event) => event.target.closest("[data-close]") && dialog.close(), whileShown);
  showText(byId(`${id}-error`), "");
  dialog.showModal();
  await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
  shown.abort();
  return outcome;

  async function send(event) {
    event.preventDefault();
    const button = form.querySelector("button:not([type])");
    button.disabled = true;
    try {
      outcome = await submit();
      // If it was closed before, the dialog may show something else now.
      if (!shown.signal.aborted) dialog.close();
    } catch (error) {
      if (!shown.signal.aborted) explain(error);
    } finally {
      button.disabled = false;
    }
  }
}
