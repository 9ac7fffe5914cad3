// The outages of a check by days: a bar for each, red by its share of the day. Pure, but for `draw`.

import { dayText, durationText, parseTime, serverNow } from "../shared/time.js";

const HIGH = 16;
const LEAST_HIGH = 3;
const SVG = "http://www.w3.org/2000/svg";

/** The midnights before each of the last days in the browser's zone, oldest first, and the one after today. */
function midnights(count, now) {
  return Array.from({ length: count + 1 }, (_, index) => {
    const day = new Date(now);
    day.setDate(day.getDate() - count + 1 + index);
    return day.setHours(0, 0, 0, 0);
  });
}

/** Begin and end of each outage. One that goes on ends now. */
const spansOf = (outages, now) =>
  outages.map(({ began_at: began, ended_at: ended }) => [parseTime(began), ended ? parseTime(ended) : now]);

/** From when on all outages of a check are known. */
const knownFrom = (check, keptSince) => Math.max(parseTime(keptSince), parseTime(check.created_at));

/** The last days: `{ share, state }`, where state is "good", "unknown" or "snoozed". */
export function daysOf(check, { outages, kept_since: keptSince }, count, now = serverNow()) {
  const starts = midnights(count, now);
  const spans = spansOf(outages, now);
  const known = knownFrom(check, keptSince);
  // The last change of a check that is snoozed, nearly always the snooze itself.
  const snoozed = check.snoozed_until ? parseTime(check.updated_at) : Infinity;
  return starts.slice(0, -1).map((start, index) => {
    const end = starts[index + 1];
    const during = ([from, to]) => Math.max(0, Math.min(to, end) - Math.max(from, start));
    const share = Math.min(1, spans.reduce((sum, span) => sum + during(span), 0) / (end - start));
    const state = end <= known ? "unknown" : "good";
    return { share, state: end > snoozed ? "snoozed" : state };
  });
}

/** "2 outages in 30 days, 3 hours 10 minutes in all, longest 2 hours 40 minutes (5 Nov)". */
export function historyText(check, { outages, kept_since: keptSince }, count, now = serverNow()) {
  const [start] = midnights(count, now);
  const known = knownFrom(check, keptSince);
  const when = known > start ? `since ${dayText(known)}` : `in ${count} days`;
  const spans = spansOf(outages, now).filter(([, to]) => to > start);
  if (!spans.length) return `No outage ${when}`;
  const lengths = spans.map(([from, to]) => (to - from) / 1000);
  const longest = Math.max(...lengths);
  const sum = durationText(lengths.reduce((all, seconds) => all + seconds, 0), 2);
  const began = `(${dayText(spans[lengths.indexOf(longest)][0])})`;
  if (spans.length === 1) return `1 outage ${when}, ${sum} ${began}`;
  return `${spans.length} outages ${when}, ${sum} in all, longest ${durationText(longest, 2)} ${began}`;
}

/** Draws days into an <svg>, with a text for those who do not see it. */
export function draw(svg, days, text) {
  const paths = { good: "", unknown: "", snoozed: "", bad: "" };
  days.forEach(({ share, state }, index) => {
    const bar = (high) => `M${index * 6} ${HIGH}v-${high}h5v${high}z`;
    paths[state] += bar(HIGH);
    if (share) paths.bad += bar(Math.max(LEAST_HIGH, Math.round(share * HIGH)));
  });
  svg.setAttribute("viewBox", `0 0 ${days.length * 6 - 1} ${HIGH}`);
  svg.setAttribute("aria-label", text);
  const drawn = Object.entries(paths).filter(([, shape]) => shape);
  svg.replaceChildren(...drawn.map(([name, shape]) => pathOf(name, shape)));
}

function pathOf(name, shape) {
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("class", name);
  path.setAttribute("d", shape);
  if (name === "snoozed") path.setAttribute("fill", "url(#hatch)");
  return path;
}
