// Times as the API gives them, and as people read them.

const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const absolute = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

let aheadMilliseconds = 0;

/** Sets the clock by the server's `Date`, so that a wrong clock in the browser moves no deadline. */
export function setServerTime(date) {
  const ahead = Date.parse(date) - Date.now();
  // The header has whole seconds, so small differences are ignored.
  if (!Number.isNaN(ahead)) aheadMilliseconds = Math.abs(ahead) < 2000 ? 0 : ahead;
}

export const serverNow = () => Date.now() + aheadMilliseconds;

/** Milliseconds from `YYYY-MM-DD HH:MM:SS`, which is UTC. */
export const parseTime = (text) => Date.parse(`${text.replace(" ", "T")}Z`);

/** "in 5 minutes", "3 hours ago", "now". */
export function fromNow(time, now = serverNow()) {
  const seconds = Math.round((time - now) / 1000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS.at(-1);
  return relative.format(Math.round(seconds / size), unit);
}

/** The date, the time of day and the name of the browser's time zone. */
export const dateText = (time) => absolute.format(time);

/** The day and month, such as "5 Nov". */
export const dayText = (time) => day.format(time);

/** "1 day 12 hours", in at most so many units. */
export function durationText(seconds, units = UNITS.length) {
  const parts = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(seconds / size);
    seconds %= size;
    if (count) parts.push(`${count} ${unit}${count === 1 ? "" : "s"}`);
  }
  return parts.slice(0, units).join(" ") || "0 seconds";
}

/** The largest unit that divides a number of seconds without remainder: `{count, size}`. */
export function inLargestUnit(seconds) {
  const [, size] = UNITS.find(([, size]) => seconds >= size && seconds % size === 0) ?? UNITS.at(-1);
  return { count: seconds / size, size };
}
