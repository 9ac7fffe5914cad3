// Stores a text in the browser. Without browser storage the page works, but forgets it.

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
    // The page works without it.
  }
}
