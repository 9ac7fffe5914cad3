// How a job pings its check: the URL alone, and lines for the programs that run jobs. Pure.

import { crontabLine } from "./cron.js";
import { isLoopback } from "../shared/reach.js";

const CURL = "curl -fsS -m 10 --retry 5 --retry-connrefused -o /dev/null";
// BusyBox's wget has no retries.
const WGET = "for wait in 1 2 4 8 0; do wget -q -T 10 -O /dev/null URL && break; sleep $wait; done";

/** Of each recipe its name, `text(check)`, and a note. The reader replaces the example job. */
export const RECIPES = [
  {
    id: "url",
    name: "URL",
    text: ({ ping_url: url }) => url,
    note: "Request it by GET, HEAD or POST when the job has succeeded. Anyone who knows the URL can ping.",
  },
  {
    id: "crontab",
    name: "crontab",
    text: crontabLine,
    note: "Pings only when the job has succeeded. Put your own command and times in place. To be alerted at once when it fails, write ; for && and end the line with /$? after the URL.",
  },
  {
    id: "systemd",
    name: "systemd",
    text: systemdText,
    note: "Type “systemctl edit your-job.service” for the service that a timer starts. A failed job does not ping.",
  },
  {
    id: "powershell",
    name: "PowerShell",
    text: powershellText,
    note: "A script for Task Scheduler. It pings only when the job has ended with 0.",
  },
  {
    id: "python",
    name: "Python",
    text: pythonText,
    note: "Nothing but the standard library. An exception in the job means no ping.",
  },
  {
    id: "docker",
    name: "Docker",
    text: dockerText,
    note: "Pings only when the job has succeeded. Inside a container, localhost is the container itself.",
  },
];

// A service of the type oneshot runs its ExecStartPost only after its command has succeeded. With the dash, a ping that
// could not be sent does not fail the job. In a unit file a percent sign begins a specifier.
function systemdText({ ping_url: url }) {
  return `[Service]
Type=oneshot
ExecStartPost=-/usr/bin/${CURL} ${url.replaceAll("%", "%%")}`;
}

function powershellText({ ping_url: url }) {
  return `& 'C:\\path\\to\\job.exe'
if ($LASTEXITCODE -eq 0) {
    foreach ($try in 1..5) {
        try { Invoke-RestMethod -Uri '${url}' -TimeoutSec 10 | Out-Null; break }
        catch { Start-Sleep -Seconds (2 * $try) }
    }
}`;
}

function pythonText({ ping_url: url }) {
  return `import time
import urllib.request

job()

for wait in (1, 2, 4, 8, 0):
    try:
        urllib.request.urlopen("${url}", timeout=10).close()
        break
    except OSError:
        time.sleep(wait)`;
}

function dockerText(check) {
  return `# The host's crontab
${crontabLine(check, "docker run --rm your-image")}

# Or in the Dockerfile, with the wget of Alpine and BusyBox
CMD ["sh", "-c", "/path/to/job && ${WGET.replace("URL", check.ping_url)}"]`;
}

/** A warning if only the server's own host reaches its ping URLs; else "". */
export function reachText({ ping_url: url }) {
  const { hostname } = new URL(url);
  if (!isLoopback(hostname)) return "";
  return `Only jobs on the server's own host reach ${hostname}. For others, start the server with --base-url.`;
}
