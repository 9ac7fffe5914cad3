// The preview: the card, the progress of drawing it, or what prevents it.

import { request } from "../shared/api.js";
import { byId, setText, showText } from "../shared/dom.js";

const RETRIED = new Set([0, 429, 502, 503, 504]);
const RETRY_SECONDS = 5;

export class Preview {
  #url;
  #onAnswer;
  #abort = new AbortController();
  #retry;
  #picture;

  /** `onAnswer(url, refusal)` is called with each answer: null if the server drew the card, or an ApiError. */
  constructor(onAnswer) {
    this.#onAnswer = onAnswer;
  }

  /** Draws this URL, in place of one that is being drawn. */
  async draw(url) {
    if (url === this.#url) return;
    this.stop();
    this.#url = url;
    this.#abort = new AbortController();
    byId("stage").dataset.state = "drawing";
    try {
      const response = await request(url, { signal: this.#abort.signal });
      const picture = await response.blob();
      this.#onAnswer(url, null);
      this.#show(picture, Number(response.headers.get("X-Missing-Glyphs")));
      byId("left-out").hidden = response.headers.get("X-Left-Out") === null;
    } catch (error) {
      if (error.name !== "AbortError") this.#fail(error, url);
    }
  }

  stop() {
    this.#abort.abort();
    clearTimeout(this.#retry);
    this.#url = undefined;
  }

  /** Shows what to do before a card can be drawn; `getKey` and `draw` show the button for it. */
  ask(title, text, { getKey = false, draw = false } = {}) {
    byId("stage").dataset.state = "asking";
    setText(byId("cover-title"), title);
    setText(byId("cover-text"), text);
    byId("get-key").hidden = !getKey;
    byId("draw").hidden = !draw;
    setText(byId("status"), "");
    byId("missing").hidden = true;
    byId("left-out").hidden = true;
  }

  #show(blob, missing) {
    const before = this.#picture;
    this.#picture = URL.createObjectURL(blob);
    for (const image of document.querySelectorAll("#card, [data-crop]")) {
      image.src = this.#picture;
      image.hidden = false;
    }
    if (before) URL.revokeObjectURL(before);
    byId("stage").dataset.state = "shown";
    byId("crops").hidden = false;
    setText(byId("status"), `PNG, 1200 × 630, ${(blob.size / 1000).toFixed(1)} KB`);
    showText(byId("missing"), missing && missingText(missing));
  }

  #fail(error, url) {
    this.#url = undefined;
    if (!RETRIED.has(error.status)) {
      error.message = reasonText(error);
      this.#onAnswer(url, error);
      this.ask("This card can’t be drawn", error.message, { getKey: error.refusesKey });
      return;
    }
    const seconds = error.retryAfterSeconds ?? RETRY_SECONDS;
    this.ask("Not drawn yet", `${error.message} Trying again in ${seconds} s.`);
    this.#retry = setTimeout(() => this.draw(url), seconds * 1000);
  }
}

function reasonText({ status, code, field, message }) {
  if (code === "wrong_scope") return "That is a secret checks key. Click Get a cards key.";
  if (status === 414) return "Its texts are too long together for an image URL. Shorten them.";
  if (field === "title") return "Its title has no visible character.";
  return message;
}

const missingText = (count) =>
  count === 1
    ? "One character of this card is in none of the fonts, so nothing is drawn for it."
    : `${count} characters of this card are in none of the fonts, so nothing is drawn for them.`;
