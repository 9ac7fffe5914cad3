// Getting in: with a key, or by registering for one.

import { call } from "./api.js";
import { copies } from "./copy.js";
import { byId, setText, showText } from "./dom.js";

const SECTIONS = ["access", "issued", "board"];
const NOT_A_KEY = "This is no key: it begins with sk_, and letters, digits, - and _ follow.";
const NOT_FOR_CHECKS = "This is a key for cards. It stands in public pages, so it opens no checks; get a checks key here.";

/** Shows one of the page's three sections. */
export function showSection(name) {
  for (const section of SECTIONS) byId(section).hidden = section !== name;
}

/** Makes the forms work; `open(key)` is called with each key that is good. */
export function setUpAccess(open) {
  onSubmit("sign-in", "key", async () => {
    const key = byId("key").value.trim();
    if (!/^[\w-]+$/.test(key)) throw new Error(NOT_A_KEY);
    const { scope } = await call("GET", "key", { key });
    if (scope !== "checks") throw new Error(NOT_FOR_CHECKS);
    byId("key").value = "";
    open(key);
  });
  onSubmit("register", "email", async () => {
    const issued = await call("POST", "register", { body: { email: byId("email").value.trim() } });
    setText(byId("new-key"), issued.key);
    setText(byId("new-secret"), issued.webhook_secret);
    showSection("issued");
    byId("issued-title").focus();
  });
  byId("saved").addEventListener("click", () => {
    const key = byId("new-key").textContent;
    for (const id of ["new-key", "new-secret"]) setText(byId(id), "");
    open(key);
  });
  copies(byId("copy-key"), () => byId("new-key").textContent);
  copies(byId("copy-secret"), () => byId("new-secret").textContent);
}

/** Says beside a field why it was not taken. */
export function refuse(field, error) {
  showText(byId(`${field}-error`), error?.message);
  byId(field).setAttribute("aria-invalid", String(Boolean(error)));
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
