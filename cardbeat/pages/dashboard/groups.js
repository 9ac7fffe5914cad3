// The order and the headings of the checks: those that need attention first. Pure.

/** "failed" or "overdue"; else "snoozed", "waiting" (for its first ping) or "on_time". */
export function stateOf(check) {
  if (check.status === "overdue") return check.failed_at ? "failed" : "overdue";
  if (check.snoozed_until) return "snoozed";
  return check.last_ping_at ? "on_time" : "waiting";
}

/** A check's name in the filter: "attention" if it is overdue, it failed or alerts don't arrive; else its state. */
export function kindOf(check) {
  const needsAttention = check.status === "overdue" || check.delivery === "failing" || failedUntold(check);
  return needsAttention ? "attention" : stateOf(check);
}

// It failed during a snooze that has ended: no alert says so before its deadline.
const failedUntold = (check) => check.status !== "overdue" && check.failed_at && !check.snoozed_until;

/** `db1: backup` is the check `backup` of the group `db1`; without a group it is "". */
export function splitName(name) {
  const [, group, rest] = /^([^:]{1,40}): +(.+)$/u.exec(name) ?? [];
  return group ? { group: group.trim(), rest } : { group: "", rest: name };
}

export function countKinds(checks) {
  const counts = { "": checks.length, attention: 0, snoozed: 0, waiting: 0, on_time: 0 };
  for (const check of checks) counts[kindOf(check)] += 1;
  return counts;
}

const ORDER = ["overdue", "attention", "waiting", "on_time"];
const ATTENTION = "Needs attention";
const collator = new Intl.Collator(undefined, { numeric: true });

/**
 * The checks in sections `{ title, isGroup, checks }`: first all that need attention, then each group of two or more,
 * then the others. `all` determine the groups; of these, `found` are shown.
 */
export function arrange(found, all) {
  const named = groupBy(all, ({ name }) => splitName(name).group);
  const isGroup = (group) => group !== "" && named.get(group).length > 1;
  const sections = groupBy(found, (check) => {
    if (kindOf(check) === "attention") return ATTENTION;
    const { group } = splitName(check.name);
    return isGroup(group) ? `: ${group}` : "";
  });
  return [...sections].sort(([a], [b]) => placeOf(a) - placeOf(b) || collator.compare(a, b)).map(section);

  function section([key, checks]) {
    const title = key.startsWith(": ") ? key.slice(2) : key || restTitle(sections.size);
    return { title, isGroup: key.startsWith(": "), checks: checks.sort(byNeed) };
  }
}

function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

const placeOf = (key) => (key === ATTENTION ? 0 : key ? 1 : 2);
const restTitle = (sections) => (sections > 1 ? "All others" : "All checks");

// The newest outage first, and those that are snoozed after all that need attention; the others by name.
function byNeed(a, b) {
  const newest = a.status === "overdue" ? collator.compare(beganAt(b), beganAt(a)) : 0;
  return rankOf(a) - rankOf(b) || newest || collator.compare(a.name, b.name);
}

const beganAt = (check) => check.failed_at ?? check.deadline_at;

// What is snoozed, overdue or not, stands behind what is not.
function rankOf(check) {
  const kind = check.status === "overdue" ? "overdue" : kindOf(check);
  return ORDER.indexOf(kind) + (check.snoozed_until ? ORDER.length : 0);
}

/** One line about all checks, in parts `{ text, isBad }`, such as "3 overdue" and "12 in all". */
export function summaryOf(checks) {
  const count = (isOne) => checks.filter(isOne).length;
  const all = checks.length;
  const failing = count(({ delivery }) => delivery === "failing");
  const parts = [
    [count(({ status }) => status === "overdue"), "overdue", true],
    [count(failedUntold), "failed during a snooze", true],
    [failing, `${failing === 1 ? "check's" : "checks'"} alerts don't arrive`, true],
    [count(({ snoozed_until: until }) => until), "snoozed"],
    [count((check) => stateOf(check) === "waiting"), "waiting"],
  ];
  const shown = parts.filter(([count]) => count).map(([count, words, isBad]) => ({ text: `${count} ${words}`, isBad }));
  const rest = shown.length ? `${all} in all` : all === 1 ? "It is on time" : `All ${all} are on time`;
  return all ? [...shown, { text: rest }] : [];
}
