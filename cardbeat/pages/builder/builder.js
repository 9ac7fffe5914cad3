// The card builder: the form, the key, and the HTML to copy.

import { call } from "../shared/api.js";
import { FIELDS, TEXTS, cardUrl } from "./card.js";
import { byId, onPause, setText } from "../shared/dom.js";
import { keep, recall } from "../shared/keep.js";
import { Output } from "./output.js";
import { Preview } from "./preview.js";

const PAUSE_MILLISECONDS = 500;
const LONG_URL_CHARACTERS = 2000;
const KEY_NAME = "cardbeat.cards_key";
const OWN_NAME = "cardbeat.own_card";

const EXAMPLE = "Designing reliable background jobs with nothing but SQLite";

const form = byId("form");
const output = new Output();
const preview = new Preview(judge);
const drawSoon = onPause(draw, PAUSE_MILLISECONDS);

/** The values of the form, each on one line: some programs delete line breaks from the URL of an image. */
function readCard() {
  const fields = Object.fromEntries(new FormData(form));
  for (const name of TEXTS) fields[name] = fields[name].replace(/\s+/g, " ").trim();
  const [template, theme] = fields.look.split("-");
  return { ...fields, template, theme };
}

const readKey = () => byId("key").value.trim();

function refresh() {
  const card = readCard();
  const key = readKey();
  const url = urlOf(card, key);
  showOutput(url, card);
  if (url) drawSoon();
  else drawSoon.now();
}

const urlOf = (card, key) => key && card.title && cardUrl(document.baseURI, card, key);

function draw() {
  const card = readCard();
  const key = readKey();
  const url = urlOf(card, key);
  remember(card);
  if (!key) keepKey("");
  if (url) preview.draw(url);
  else askForWhatIsMissing(card);
}

/** A card from a link is drawn only on demand: drawing it uses up the visitor's limit. */
function waitForTheVisitor(url) {
  drawSoon.never();
  preview.stop();
  const text = "The text came with a link. Draw it, or change it first.";
  if (url) preview.ask("Draw this card?", text, { draw: true });
  else askForWhatIsMissing(readCard());
}

/** Without a title there is an example to see, and nothing to ask for. */
function askForWhatIsMissing({ title, look }) {
  preview.stop();
  const text = "One click, no account. The key will be in the HTML of your pages. It can only draw cards.";
  if (title) preview.ask("Draw your card", text, { getKey: true });
  else preview.example(look);
}

function showOutput(url, card) {
  byId("long").hidden = !(url?.length > LONG_URL_CHARACTERS);
  output.show(url ? card : null, readKey());
  for (const node of document.querySelectorAll("[data-title]")) setText(node, card.title || EXAMPLE);
  for (const node of document.querySelectorAll("[data-domain]")) setText(node, card.domain || location.host);
}

/** Stores the key in this browser. */
const keepKey = (key) => keep("localStorage", KEY_NAME, key);
const keptKey = () => recall("localStorage", KEY_NAME);

/** Stores a key that has drawn a card. A refused key may be one for checks, which this page must not store. */
function judge(url, refusal) {
  output.judge(url, refusal);
  const key = new URL(url).searchParams.get("key");
  if (!refusal) keepKey(key);
  else if (refusal.refusesKey && key === keptKey()) keepKey("");
}

/** Puts the card into the page's own URL, so that it can be bookmarked. */
function remember(card) {
  const fields = FIELDS.map((name) => [name, card[name]]);
  history.replaceState(null, "", `#${new URLSearchParams(fields)}`);
  keep("sessionStorage", OWN_NAME, location.hash);
}

/** Whether the page's URL holds a card that was not made in this tab. */
function cameByLink() {
  const card = new URLSearchParams(location.hash.slice(1));
  return card.has("title") && location.hash !== recall("sessionStorage", OWN_NAME);
}

/** Fills in the card of the page's URL, else the last one of this tab. */
function restore() {
  byId("key").value = keptKey();
  const card = new URLSearchParams((location.hash || recall("sessionStorage", OWN_NAME)).slice(1));
  if (!card.has("title")) return;
  for (const name of TEXTS) form.elements[name].value = card.get(name) ?? "";
  const look = `${card.get("template") || "default"}-${card.get("theme") || "dark"}`;
  for (const radio of form.elements.look) radio.checked = radio.value === look;
  if (!form.elements.look.value) form.elements.look[0].checked = true;
}

function start() {
  restore();
  const card = readCard();
  const url = urlOf(card, readKey());
  showOutput(url, card);
  if (cameByLink()) waitForTheVisitor(url);
  else drawSoon.now();
}

/** Draws at once, and moves the focus from the button, which hides. */
function drawNow() {
  refresh();
  drawSoon.now();
  byId("title").focus({ preventScroll: true });
}

async function getKey() {
  const button = byId("get-key");
  button.disabled = true;
  try {
    byId("key").value = (await call("POST", "register")).key;
    keepKey(byId("key").value);
    drawNow();
  } catch (error) {
    explainNoKey(error);
  } finally {
    button.disabled = false;
  }
}

function explainNoKey(error) {
  const closed = error.status === 403;
  const help = closed ? "Paste it into the field “Cards key”." : "";
  preview.ask("No key was issued", `${error.message} ${help}`.trim(), { getKey: !closed });
}

for (const input of [form, byId("looks")]) input.addEventListener("input", refresh);
form.addEventListener("submit", (event) => event.preventDefault());
byId("get-key").addEventListener("click", getKey);
byId("draw").addEventListener("click", drawNow);
window.addEventListener("hashchange", start);
// The pictures get the accent's hue, as cards do.
document.body.style.setProperty("--tint", byId("accent")?.textContent ?? "transparent");
start();
