// The checks keys that this browser holds: in this tab until it is closed, or on this device where that was chosen.

import { keep, recall } from "../shared/keep.js";

const CURRENT = "cardbeat.checks_key";
const KEYS = "cardbeat.checks_keys";
const STORES = ["localStorage", "sessionStorage"];

/** All keys as `{ value, label, remembered }`, those of this device first, and the one added last before others. */
export function allKeys() {
  const onDevice = read("localStorage").map((key) => ({ ...key, remembered: true }));
  const inTab = read("sessionStorage").map((key) => ({ ...key, remembered: false }));
  return [...onDevice, ...inTab.filter(({ value }) => !onDevice.some((key) => key.value === value))];
}

export const findKey = (value) => allKeys().find((key) => key.value === value);

/** The key that this tab has open, else the only one that is remembered; "" if there is none. */
export function currentKey() {
  const keys = allKeys();
  return recall("sessionStorage", CURRENT) || (keys.length === 1 ? keys[0].value : "");
}

/** `value` "" opens none. */
export const openKey = (value) => keep("sessionStorage", CURRENT, value);

/** Holds a key, or holds it elsewhere than before; at no time nowhere, which other tabs would take for a sign-out. */
export function addKey({ value, label, remembered }) {
  const [store, other] = remembered ? STORES : STORES.toReversed();
  write(store, [{ value, label }, ...without(value, store)]);
  write(other, without(value, other));
}

/** Nothing of the key stays, neither in this tab nor on this device. */
export function forgetKey(value) {
  for (const store of STORES) write(store, without(value, store));
  if (recall("sessionStorage", CURRENT) === value) openKey("");
}

/** How a key is called where it must not be read: by its e-mail address and how it begins, as the API's answers tell. */
export const labelOf = ({ email, key, prefix = key.slice(0, 8) }) => `${email} · ${prefix}…`;

function read(store) {
  try {
    return JSON.parse(recall(store, KEYS) || "[]").filter(({ value, label }) => value && label);
  } catch {
    return [];
  }
}

const without = (value, store) => read(store).filter((key) => key.value !== value);

const write = (store, keys) => keep(store, KEYS, keys.length ? JSON.stringify(keys) : "");
