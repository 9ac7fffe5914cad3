// Helpers to read and change the page. Texts are never parsed as HTML.

import { dateText, parseTime } from "./time.js";

export const byId = (id) => document.getElementById(id);

/** The descendant of `root` with this `data-part`. */
export const part = (root, name) => root.querySelector(`[data-part="${name}"]`);

/** A copy of the one element inside a <template>. */
export const fromTemplate = (id) => byId(id).content.firstElementChild.cloneNode(true);

/** Sets the text of a node. Does nothing if it is the same: a selection in it, or a screen reader, goes on. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Shows a time of the API in a <time>, in words or as a date; hovering tells it in UTC. */
export function showTime(node, text, words = dateText(parseTime(text))) {
  setText(node, words);
  node.dateTime = text ? `${text.replace(" ", "T")}Z` : "";
  node.title = text ? `${text} UTC` : "";
}

/** Shows the text in the node, or hides the node when there is none. */
export function showText(node, text) {
  setText(node, text ?? "");
  node.hidden = !text;
}

/** Runs `action` once it has not been called for this long; `now` runs it at once, `never` cancels it. */
export function onPause(action, milliseconds) {
  let timer;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
  later.never = () => clearTimeout(timer);
  later.now = () => {
    later.never();
    action();
  };
  return later;
}
