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
    } catch (error) {
      if (error.name !== "AbortError") this.#fail(error, url);
    }
  }

  stop() {
    this.#abort.abort();
    clearTimeout(this.#retry);
    this.#url = undefined;
  }

  /** Shows the picture of a look, on its own and cropped, until there is a title. */
  example(look) {
    this.#put(`pages/looks/${look}.png`, "example");
    byId("card").alt = "An example of a card";
    setText(byId("status"), "An example. Type a title to see your own card.");
    byId("missing").hidden = true;
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
  }

  #show(blob, missing) {
    const before = this.#picture;
    this.#picture = URL.createObjectURL(blob);
    this.#put(this.#picture, "shown");
    byId("card").alt = "The drawn card";
    if (before) URL.revokeObjectURL(before);
    setText(byId("status"), `PNG, 1200 × 630, ${(blob.size / 1000).toFixed(1)} KB`);
    showText(byId("missing"), missing && missingText(missing));
  }

  #put(picture, state) {
    for (const image of document.querySelectorAll("[data-shown]")) image.src = picture;
    byId("stage").dataset.state = state;
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
  if (code === "wrong_scope") return "That is a secret checks key. Click “Get a key and draw it”.";
  if (code === "key_unknown") return "This server does not know this key, or it was revoked. Click “Get a key and draw it”.";
  if (status === 414) return "Its texts are too long together for an image URL. Shorten them.";
  if (field === "title") return "Its title has no visible character.";
  return message;
}

const missingText = (count) =>
  count === 1
    ? "One character of this card is in none of the fonts, so nothing is drawn for it."
    : `${count} characters of this card are in none of the fonts, so nothing is drawn for them.`;
