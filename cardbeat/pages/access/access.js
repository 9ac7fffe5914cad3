// Signing in with a key, or registering for one; and values that are shown once.

import { call } from "../shared/api.js";
import { copies } from "../shared/copy.js";
import { byId, setText, showText } from "../shared/dom.js";
import { holdKey, labelOf } from "./keyring.js";

const SECTIONS = ["access", "issued", "board"];
const NOT_A_KEY = "That is not a key. A key begins with sk_, followed by letters, digits, - and _.";
const NOT_KNOWN = "This server does not know this key, or it was revoked. Get a checks key here.";
const NOT_AN_ADDRESS = "Give an e-mail address such as you@example.com, of at most 254 characters.";
const NOT_FOR_CHECKS = "That is a cards key. It is public, so it opens no checks. Get a checks key here.";
const FOR_ALL = "Opens this dashboard and the API. Treat it like a password.";
const FOR_READING = "Opens this dashboard and the API to look. It changes nothing, and shows no ping URL and no webhook.";
const ISSUED = { key: "new-key", webhook_secret: "new-secret" };

let openSaved = () => {};

/** Shows one of the page's three sections. */
export function showSection(name) {
  for (const section of SECTIONS) byId(section).hidden = section !== name;
}

/** Makes the forms work; `open()` is called when this browser holds a key that the server has accepted. */
export function setUpAccess(open) {
  onSubmit("sign-in", "key", () => signIn(open));
  onSubmit("register", "email", () => register(open));
  byId("issued-form").addEventListener("submit", (event) => {
    event.preventDefault();
    for (const id of Object.values(ISSUED)) setText(byId(id), "");
    byId("issued-password").value = "";
    openSaved(byId("issued-remember").checked);
  });
  copies(byId("copy-key"), () => byId("new-key").textContent);
  copies(byId("copy-secret"), () => byId("new-secret").textContent);
}

async function signIn(open) {
  const value = byId("key").value.trim();
  if (!/^[\w-]+$/.test(value)) throw new Error(NOT_A_KEY);
  const about = await call("GET", "key", { key: value });
  if (about.scope === "cards") throw new Error(NOT_FOR_CHECKS);
  byId("key-owner").value = about.email ?? "";
  holdKey({ value, label: labelOf(about), isReader: about.scope === "read", remembered: byId("remember").checked });
  byId("key").value = "";
  byId("remember").checked = false;
  open();
}

async function register(open) {
  const issued = await call("POST", "register", { body: { email: byId("email").value.trim() } });
  showIssued("Save these two now", issued, false, (remembered) => {
    holdKey({ value: issued.key, label: labelOf(issued), remembered });
    open();
  });
}

/** Shows a new key, a read-only key, a new webhook secret, or a key and a secret, until they are saved; `saved(remembered)` is called then. */
export function showIssued(title, issued, remembered, saved) {
  setText(byId("issued-title"), title);
  for (const [field, id] of Object.entries(ISSUED)) {
    setText(byId(id), issued[field] ?? "");
    byId(`${id}-block`).hidden = !issued[field];
  }
  const isReader = issued.scope === "read";
  setText(byId("new-key-kind"), isReader ? "Read-only key" : "Checks key");
  setText(byId("new-key-hint"), isReader ? FOR_READING : FOR_ALL);
  byId("issued-keep").hidden = !issued.key || isReader;
  byId("issued-remember").checked = remembered;
  byId("issued-owner").value = issued.email ?? "";
  byId("issued-password").value = issued.key ?? "";
  setText(byId("saved"), issued.key && issued.webhook_secret ? "I have saved both" : "I have saved it");
  openSaved = saved;
  showSection("issued");
  byId("issued-title").focus();
}

/** Shows beside a field why it was refused. */
export function refuse(field, error) {
  showText(byId(`${field}-error`), error && inWords(error, field).message);
  byId(field).setAttribute("aria-invalid", String(Boolean(error)));
}

/** An error whose sentence speaks of this page's fields and buttons, not of the API. */
function inWords(error, field) {
  if (error.status === 401) return new Error(NOT_KNOWN);
  return error.field === field ? new Error(NOT_AN_ADDRESS) : error;
}

function onSubmit(form, field, action) {
  byId(form).addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = byId(form).querySelector("button");
    button.disabled = true;
    refuse(field, null);
    try {
      await action();
    } catch (error) {
      refuse(field, error);
      byId(field).focus();
    } finally {
      button.disabled = false;
    }
  });
}
