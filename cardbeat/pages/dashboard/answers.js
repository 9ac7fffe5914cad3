// The result of an attempt to send an alert, in words that say what to do. Pure.

const NOT_LET_IN = ["not let in", "The receiver refuses this URL: its token is missing, wrong or withdrawn."];

// By status, or by its class: the text in a check's line, and the text in its details.
const ANSWERS = {
  400: [
    "message refused",
    "The receiver does not take this message at this URL. Edit shows each receiver's URL under “Which URL do I need?”.",
  ],
  401: NOT_LET_IN,
  403: NOT_LET_IN,
  404: [
    "no such webhook",
    "There is no webhook at this URL: it was removed, or a part of the URL is missing. Copy it from the receiver again.",
  ],
  405: ["no webhook there", "Nothing takes alerts at this URL. It may be that of a page, not of a webhook."],
  410: [
    "webhook removed",
    "The receiver has removed this webhook for good. Make a new one there and give this check its URL.",
  ],
  429: ["too many messages", "The receiver gets more messages than it takes. The alert is tried again."],
  3: [
    "moved",
    "The receiver names another URL, and alerts are not sent on. Give this check that one; often it begins with https.",
  ],
  4: ["refused", "The receiver refused the alert. Look whether the URL is complete."],
  5: ["receiver failed", "The receiver has a failure of its own. The alert is tried again."],
};

/** `{ short, long }` of the last attempt to deliver an alert; null if it arrived or none was made. */
export function explain({ last_status: status, last_error: error }) {
  if (!error) return null;
  // The status may be that of an earlier attempt: a later one without an answer does not clear it.
  if (!error.includes(`answered ${status}`)) return { short: "no answer", long: error };
  const [short, long] = ANSWERS[status] ?? ANSWERS[Math.floor(status / 100)] ?? ["refused", error];
  return { short: `${short} (${status})`, long: `The receiver answered ${status}. ${long}` };
}

/** The newest alert whose last attempt failed. `alerts` are in the order of the API: the newest first. */
export const lastFailed = (alerts) => alerts.find((alert) => alert.attempts > 0 && explain(alert));
