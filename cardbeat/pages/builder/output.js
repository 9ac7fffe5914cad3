// The HTML to copy, for one page or for a static site generator; only with a key that the server has accepted and for
// a card that it has not refused.

import { cardUrl, imageLines, wholeHead } from "./card.js";
import { copies } from "../shared/copy.js";
import { byId, setText, showText } from "../shared/dom.js";
import { isLoopback, isPrivate } from "../shared/reach.js";
import { RECIPES, siteOf } from "./recipes.js";

const OF_ONE_PAGE = "Each URL is drawn once and then stored. Another text makes another URL, and so another card.";
const OF_A_SITE = "Each page’s card has its own texts, not those typed here. Template, theme and key are the ones chosen here.";
const REFUSED = "There is nothing to copy with this key: the server draws no card with it.";
const REFUSED_CARD = "There is nothing to copy: the server does not draw this card.";
const UNTRIED = "You can copy it when the server has drawn the card with this key.";

const FOR_ONE_PAGE = {
  lines: { where: "Put it into the `<head>` of a page that has its own title.", text: imageLines },
  head: { where: "The `<head>` of a page that has none yet.", text: wholeHead },
  url: { where: "The URL of the image alone, as `og:image` takes it.", text: (url) => url },
};

export class Output {
  #card = null;
  #key = "";
  #takenKey;
  #refusals = new Map();
  #refusedUrl;

  constructor() {
    copies(byId("copy"), () => byId("code").textContent);
    byId("output").addEventListener("change", () => this.#showText());
    showText(byId("unreachable"), reachText(new URL(document.baseURI)));
  }

  /** Shows the HTML of this card; null if there is none to copy. */
  show(card, key) {
    this.#card = card;
    this.#key = key;
    byId("output").hidden = !card;
    if (card) this.#showText();
    this.#showKey();
  }

  /** Notes the server's answer to a card's URL: null if it drew the card, or an ApiError. */
  judge(url, refusal) {
    const ofKey = !refusal || refusal.refusesKey;
    this.#refusedUrl = !ofKey && refusal.status < 500 ? url : undefined;
    if (ofKey) this.#judgeKey(new URL(url).searchParams.get("key"), refusal?.message);
    this.#showKey();
  }

  #judgeKey(key, refusal) {
    if (!refusal) {
      this.#takenKey = key;
      this.#refusals.delete(key);
    } else {
      this.#refusals.set(key, refusal);
      if (this.#takenKey === key) this.#takenKey = undefined;
    }
  }

  #showText() {
    const form = chosenForm();
    const { where, text } = RECIPES[form] ?? FOR_ONE_PAGE[form];
    const made = [document.baseURI, this.#card, this.#key];
    showWithCode(byId("where"), where);
    setText(byId("code"), form in RECIPES ? text(siteOf(...made)) : text(cardUrl(...made), this.#card));
    this.#showHint();
  }

  #showKey() {
    const refusal = this.#refusals.get(this.#key);
    byId("copy").disabled = this.#key !== this.#takenKey || this.#isRefused();
    showText(byId("key-error"), refusal);
    byId("key").setAttribute("aria-invalid", String(Boolean(refusal)));
    this.#showHint();
  }

  #showHint() {
    const usual = chosenForm() in RECIPES ? OF_A_SITE : OF_ONE_PAGE;
    setText(byId("copy-hint"), byId("copy").disabled ? this.#inTheWay() : usual);
  }

  #inTheWay() {
    if (this.#refusals.has(this.#key)) return REFUSED;
    return this.#isRefused() ? REFUSED_CARD : UNTRIED;
  }

  #isRefused() {
    return this.#card !== null && this.#refusedUrl === cardUrl(document.baseURI, this.#card, this.#key);
  }
}

const chosenForm = () => document.querySelector('input[name="form"]:checked').value;

/** The nodes of a text that has code between backticks. */
function showWithCode(node, text) {
  const parts = text.split("`").map((part, place) => (place % 2 ? codeOf(part) : part));
  if (node.textContent !== text.replaceAll("`", "")) node.replaceChildren(...parts);
}

function codeOf(text) {
  const code = document.createElement("code");
  code.className = "code";
  code.textContent = text;
  return code;
}

function reachText({ host, hostname }) {
  if (!isPrivate(hostname)) return "";
  const who = isLoopback(hostname) ? "only this computer" : "only its own network";
  return `Chats and networks can’t fetch a card from ${host}: ${who} reaches that address. Open this page at the server’s public address before you copy.`;
}
