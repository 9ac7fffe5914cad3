// A check that was changed from two places: both versions side by side, and a choice for each field.

import { call } from "../shared/api.js";
import { ask } from "../shared/dialog.js";
import { byId, setText, showText } from "../shared/dom.js";
import { changes, compare, isEmpty } from "./merge.js";
import { durationText } from "../shared/time.js";

const LABELS = {
  name: "Name",
  period_seconds: "Runs every",
  grace_seconds: "May be late by",
  repeat_seconds: "Remind every",
  webhook_url: "Webhook",
};

const SHOWN = {
  name: (name) => name,
  period_seconds: durationText,
  grace_seconds: durationText,
  repeat_seconds: (seconds) => (seconds === null ? "none" : durationText(seconds)),
  webhook_url: (url) => url ?? "none",
};

/** The message for an error that kept a check from being saved. */
export const whyNotSaved = ({ status, message }) =>
  status === 404 ? "This check was deleted while you edited it, so nothing was saved." : message;

/** Saves the values chosen from what was saved in another place and what was typed. Returns the saved check. */
export async function resolveConflict(key, opened, theirs, mine) {
  let rows = show(opened, theirs, mine);
  const save = async () => {
    const body = changes(theirs, chosen(rows));
    if (isEmpty(body)) return theirs;
    try {
      return (await call("PATCH", `checks/${theirs.id}`, { key, body, version: theirs.version })).check;
    } catch (error) {
      if (error.status !== 409 && error.status !== 412) throw error;
      theirs = (await call("GET", `checks/${theirs.id}`, { key })).check;
      rows = show(opened, theirs, mine);
      throw new Error("This check was changed again just now, so nothing was saved. Look at the new values, and choose again.");
    }
  };
  return (await ask("conflict", save, (error) => showText(byId("conflict-error"), whyNotSaved(error)))) ?? theirs;
}

// Escape does not close the dialog, because the input would be lost: two buttons save or discard it.
byId("conflict").addEventListener("cancel", (event) => event.preventDefault());

function show(opened, theirs, mine) {
  const rows = compare(opened, theirs, mine);
  byId("conflict-rows").replaceChildren(...rows.map(tableRow));
  return rows;
}

function chosen(rows) {
  const choice = new FormData(byId("conflict-form"));
  return Object.fromEntries(rows.map((row) => [row.field, row[choice.get(row.field) ?? "theirs"]]));
}

function tableRow(row) {
  const line = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  setText(head, LABELS[row.field]);
  line.append(head, cell(row, "theirs"), cell(row, "mine"));
  return line;
}

function cell(row, side) {
  const data = document.createElement("td");
  const text = SHOWN[row.field](row[side]);
  if (!row.differs) {
    setText(data, text);
    return data;
  }
  const label = document.createElement("label");
  const radio = document.createElement("input");
  Object.assign(radio, { type: "radio", name: row.field, value: side });
  radio.defaultChecked = row.take === side;
  label.append(radio, text);
  data.append(label);
  return data;
}
