// Remembering a text in the browser. Where storage is switched off, the page works and only forgets.

/** `store` is "localStorage" (this browser) or "sessionStorage" (this tab). */
export function recall(store, name) {
  try {
    return window[store].getItem(name) ?? "";
  } catch {
    return "";
  }
}

export function keep(store, name, text) {
  try {
    if (text) window[store].setItem(name, text);
    else window[store].removeItem(name);
  } catch {
    // Nothing is lost but the convenience.
  }
}
