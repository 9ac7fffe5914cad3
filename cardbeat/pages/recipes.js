// How a job pings its check: the bare URL, and the lines for what runs jobs. Pure.

import { crontabLine } from "./cron.js";

const CURL = "curl -fsS -m 10 --retry 5 --retry-connrefused -o /dev/null";

/** For each recipe its name, `text(check)`, and a note. What stands in for the job is the reader's to change. */
export const RECIPES = [
  {
    id: "url",
    name: "URL",
    text: ({ ping_url: url }) => url,
    note: "GET, HEAD or POST, as the last step of a run that went well. Whoever has the URL can ping.",
  },
  {
    id: "crontab",
    name: "crontab",
    text: crontabLine,
    note: "Pings only when the job has succeeded. Put your own command and times in place.",
  },
  { id: "systemd", name: "systemd", text: systemdText, note: "“systemctl edit your-job.service”, for the service that a timer starts." },
  { id: "powershell", name: "PowerShell", text: powershellText, note: "At the end of the script that Task Scheduler runs." },
  { id: "python", name: "Python", text: pythonText, note: "Standard library only. An exception in the job means no ping." },
  { id: "docker", name: "Docker", text: dockerText, note: "For the host's crontab, which sees whether the container succeeded." },
];

// A service of the type oneshot starts its ExecStartPost only when its command has succeeded; the dash lets a ping that
// could not be sent not fail the job. A percent sign begins a specifier there.
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
  return crontabLine(check, "docker run --rm your-image");
}

/** What to know where only the server's own host reaches its ping URLs; "" where it is not so. */
export function reachText({ ping_url: url }) {
  const { hostname } = new URL(url);
  if (!/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)) return "";
  return `Only jobs on the server's own host reach ${hostname}. For others, start the server with --base-url.`;
}
