// The receivers that get alerts in their own form, and some others with a name. Pure.
//
// The server tells them apart by the same URL patterns, listed in `docs/alerts.md`.

const anyCase = (word) => word.replace(/[a-z]/gi, (letter) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`);
const below = (path) => new RegExp(`^[^/]+(/[^?]*)?${path}$`);

/** Of each its name, an example of its URL, and the pattern of its `host/path?query`. */
export const RECEIVERS = [
  {
    name: "Slack",
    url: "https://hooks.slack.com/services/T…/B…/…",
    shape: /^hooks\.slack(-gov)?\.com\/services(\/\w+){3}\/?(\?.*)?$/,
  },
  {
    name: "Discord",
    url: "https://discord.com/api/webhooks/ID/TOKEN",
    shape: /^(\w+\.)?discord(app)?\.com\/api\/(v\d+\/)?webhooks\/\d+\/[\w-]+\/?(\?.*)?$/,
  },
  {
    name: "Mattermost",
    url: "https://HOST/hooks/ and 26 characters",
    shape: below("/hooks/[a-z0-9]{26}/?(\\?.*)?"),
  },
  {
    name: "ntfy",
    url: "https://ntfy.sh/TOPIC",
    shape: /^ntfy(\.[^/]+)?\/[\w-]{1,64}\/?(\?(?!(.*&)?(x-template|template|tpl)=).*)?$/,
  },
  {
    name: "ntfy on another host",
    url: "https://HOST/TOPIC?template=yes&message=%7B%7B.text%7D%7D",
  },
  {
    name: "Gotify",
    url: "https://HOST/message?token=TOKEN",
    shape: below("/message\\?(.*&)?token=.*"),
  },
  {
    name: "Telegram",
    url: "https://api.telegram.org/botTOKEN/sendMessage?chat_id=ID",
    shape: new RegExp(`^[^/]+/bot\\d+(:|%3[Aa])[\\w-]+/(test/)?${anyCase("sendMessage")}(\\?.*)?$`),
  },
  {
    name: "Google Chat",
    url: "https://chat.googleapis.com/v1/spaces/SPACE/messages?key=KEY&token=TOKEN",
    shape: /^chat\.googleapis\.com\/v1\/spaces\/[\w-]+\/messages(\?.*)?$/,
  },
  {
    name: "Microsoft Teams",
    url: "https://HOST/…/workflows/ID/triggers/manual/paths/invoke?…",
    shape: below("/workflows/[\\w-]+/triggers/manual/paths/invoke(\\?.*)?"),
  },
  {
    name: "Home Assistant",
    url: "https://HOST/api/webhook/ID",
    shape: /^[^/]+\/api\/webhook\/[^/?]+(\?.*)?$/,
  },
  {
    name: "Apprise API",
    heading: "E-mail and more, by an Apprise API",
    url: "https://HOST/notify/KEY",
    shape: below("/notify/[\\w-]{1,128}/?(\\?.*)?"),
  },
  {
    name: "Anything that takes JSON",
    url: "Every other URL",
  },
];

/** The name of the receiver at a webhook URL, or the host if it is none of these. */
export function receiverName(url) {
  if (!URL.canParse(url)) return "";
  const { hostname, host, pathname, search } = new URL(url);
  return RECEIVERS.find(({ shape }) => shape?.test(hostname + pathname + search))?.name ?? host;
}
