// Two edits of one check: what was opened, what was saved in another place, what was typed. Pure.

export const FIELDS = ["name", "period_seconds", "grace_seconds", "repeat_seconds", "webhook_url"];

/** The fields of a check that can be changed. */
export const settingsOf = (check) => Object.fromEntries(FIELDS.map((field) => [field, check[field]]));

/** The fields of `settings` that differ from the check's. */
export function changes(check, settings) {
  return Object.fromEntries(FIELDS.filter((f) => settings[f] !== check[f]).map((f) => [f, settings[f]]));
}

export const isEmpty = (changed) => Object.keys(changed).length === 0;

/** For each field both values, whether they differ, and which one is chosen at first. */
export function compare(opened, theirs, mine) {
  return FIELDS.map((field) => ({
    field,
    theirs: theirs[field],
    mine: mine[field],
    differs: theirs[field] !== mine[field],
    take: mine[field] === opened[field] ? "theirs" : "mine",
  }));
}
