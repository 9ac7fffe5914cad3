// The crontab line of a check: its job, and the ping after the job has succeeded.

/** The reader replaces the path of the job and the time. */
export function crontabLine({ period_seconds: seconds, ping_url: url }, job = "/path/to/job") {
  // In a crontab a percent sign ends the command.
  const escaped = url.replaceAll("%", "\\%");
  return `${schedule(seconds)} ${job} && curl -fsS -m 10 --retry 5 --retry-connrefused -o /dev/null ${escaped}`;
}

// As often as the check expects; more often if cron has no such interval, at most every minute.
function schedule(seconds) {
  const [days, hours, minutes] = [86_400, 3_600, 60].map((size) => Math.floor(seconds / size));
  if (days >= 31) return "30 2 1 * *";
  if (days >= 7) return "30 2 * * 0";
  if (days) return "30 2 * * *";
  return hours ? `30 ${steps(hours, 24)} * * *` : `${steps(minutes, 60)} * * * *`;
}

// Steps begin again each hour and each day: only those that divide it evenly have one length.
function steps(most, whole) {
  let step = Math.max(most, 1);
  while (whole % step) step -= 1;
  return step === 1 ? "*" : `*/${step}`;
}
