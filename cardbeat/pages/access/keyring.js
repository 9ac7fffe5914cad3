// The checks keys that this browser holds: in this tab until it is closed, or on this device if the user chose that.

import { keep, recall } from "../shared/keep.js";

const CURRENT = "cardbeat.checks_key";
const KEYS = "cardbeat.checks_keys";
const STORES = ["localStorage", "sessionStorage"];

/** All keys as `{ value, label, isReader, remembered }`: those of this device first, the newest first. */
export function allKeys() {
  const onDevice = read("localStorage").map((key) => ({ ...key, remembered: true }));
  const inTab = read("sessionStorage").map((key) => ({ ...key, remembered: false }));
  return [...onDevice, ...inTab.filter(({ value }) => !onDevice.some((key) => key.value === value))];
}

export const findKey = (value) => allKeys().find((key) => key.value === value);

/** The key that this tab has open, else the remembered key if there is just one, else "". */
export function currentKey() {
  const keys = allKeys();
  return recall("sessionStorage", CURRENT) || (keys.length === 1 ? keys[0].value : "");
}

/** Makes a key the open one; with "" none is open. */
export const openKey = (value) => keep("sessionStorage", CURRENT, value);

/** Stores a key, or moves it. It is always stored somewhere: other tabs take a missing key for a sign-out. */
export function addKey({ value, label, isReader, remembered }) {
  const [store, other] = remembered ? STORES : STORES.toReversed();
  write(store, [{ value, label, isReader }, ...without(value, store)]);
  write(other, without(value, other));
}

/** Removes the key from this tab and from this device. */
export function forgetKey(value) {
  for (const store of STORES) write(store, without(value, store));
  if (recall("sessionStorage", CURRENT) === value) openKey("");
}

/** The name of a key where the key itself must not be shown: its e-mail address, if any, and its first characters. */
export const labelOf = ({ email = "Read-only", key, prefix = key.slice(0, 8) }) => `${email} · ${prefix}…`;

function read(store) {
  try {
    return JSON.parse(recall(store, KEYS) || "[]").filter(({ value, label }) => value && label);
  } catch {
    return [];
  }
}

const without = (value, store) => read(store).filter((key) => key.value !== value);

const write = (store, keys) => keep(store, KEYS, keys.length ? JSON.stringify(keys) : "");
