// Modal dialogs: opened with a promise of their outcome, closed by Escape or anything marked data-close.

import { byId, showText } from "./dom.js";

/**
 * Shows a dialog until `submit()` has succeeded or the person leaves. Gives what `submit` gave, undefined if left.
 * An error thrown by `submit` keeps the dialog open: `explain(error)` says what is wrong.
 */
export function ask(id, submit, explain = (error) => showText(byId(`${id}-error`), error.message)) {
  const dialog = byId(id);
  const form = dialog.querySelector("form");
  let outcome;
  showText(byId(`${id}-error`), "");

  async function send(event) {
    event.preventDefault();
    setBusy(form, true);
    try {
      outcome = await submit();
      dialog.close();
    } catch (error) {
      explain(error);
    } finally {
      setBusy(form, false);
    }
  }

  const leave = (event) => event.target.closest("[data-close]") && dialog.close();
  form.addEventListener("submit", send);
  dialog.addEventListener("click", leave);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        form.removeEventListener("submit", send);
        dialog.removeEventListener("click", leave);
        resolve(outcome);
      },
      { once: true },
    );
  });
}

function setBusy(form, busy) {
  form.querySelector("button:not([type])").disabled = busy;
}
