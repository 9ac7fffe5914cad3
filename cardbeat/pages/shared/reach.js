// Who can reach a host. Pure.

const PRIVATE_NAMES = /^[^.]+$|\.(?:localhost|local|internal|lan|home\.arpa|test)$/;
const PRIVATE_ADDRESSES = [
  /^(?:0|10|127)\./,
  /^100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./,
  /^169\.254\./,
  /^172\.(?:1[6-9]|2\d|3[01])\./,
  /^192\.168\./,
  /^\[::1?\]$/,
  /^\[f[cd]/,
  /^\[fe[89ab]/,
];
const LOOPBACK = /^127(?:\.\d+){3}$|^\[::1\]$|(?:^|\.)localhost$/;

/** Whether a host, in the form of `URL.hostname`, is this machine. */
export const isLoopback = (hostname) => LOOPBACK.test(asIpv4(hostname));

/** Whether only this machine and its local network can reach a host. */
export function isPrivate(hostname) {
  const host = asIpv4(hostname);
  const isAddress = /^\[|^\d+\.\d+\.\d+\.\d+$/.test(host);
  return isAddress ? PRIVATE_ADDRESSES.some((range) => range.test(host)) : PRIVATE_NAMES.test(host);
}

/** An IPv4 address written as IPv6 in its usual form; any other host unchanged. */
function asIpv4(hostname) {
  const halves = /^\[::ffff:([\da-f]{1,4}):([\da-f]{1,4})\]$/.exec(hostname);
  if (!halves) return hostname.replace(/\.$/, "");
  const [high, low] = halves.slice(1).map((half) => Number.parseInt(half, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}
