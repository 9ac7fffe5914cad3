// The checks key that this browser holds: in this tab until it is closed, or on this device if the user chose that.

import { keep, recall } from "../shared/keep.js";

const NAME = "cardbeat.checks_key";
const STORES = ["sessionStorage", "localStorage"];

/** The key as `{ value, label, isReader, remembered }`; undefined if there is none. */
export function heldKey() {
  const store = STORES.find((store) => recall(store, NAME));
  try {
    return store && { ...JSON.parse(recall(store, NAME)), remembered: store === "localStorage" };
  } catch {
    return undefined;
  }
}

/** Holds a key in place of the one before. */
export function holdKey({ value, label, isReader, remembered }) {
  dropKey();
  keep(STORES[Number(remembered)], NAME, JSON.stringify({ value, label, isReader }));
}

export const dropKey = () => STORES.forEach((store) => keep(store, NAME, ""));

/** The name of a key where the key itself must not be shown: its e-mail address, if any, and its first characters. */
export const labelOf = ({ email = "Read-only", key, prefix = key.slice(0, 8) }) => `${email} · ${prefix}…`;
