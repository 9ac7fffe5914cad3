// The receivers of alerts whose webhook URLs are known, as the editor's table shows them. Pure.

/** For each: its name, the shape of its URL, where to get it, and by what part of a URL it is known. */
export const RECEIVERS = [
  {
    name: "Slack",
    shape: "https://hooks.slack.com/services/T…/B…/…",
    where: "Your app's “Incoming Webhooks”",
    host: /^hooks\.slack\.com$/,
  },
  {
    name: "Discord",
    shape: "https://discord.com/api/webhooks/ID/TOKEN",
    where: "Channel settings, “Integrations”, “Webhooks”",
    host: /(^|\.)discord(app)?\.com$/,
    path: /^\/api\/webhooks\//,
  },
  {
    name: "Mattermost",
    shape: "https://CHAT/hooks/26-LETTERS",
    where: "“Integrations”, “Incoming Webhooks”",
    path: /\/hooks\/[a-z0-9]{26}\/?$/,
  },
  {
    name: "Microsoft Teams",
    shape: "https://….logic.azure.com/workflows/…",
    where: "The channel's “Workflows”: “Post to a channel when a webhook request is received”",
    host: /\.(logic\.azure\.com|api\.powerplatform\.com|webhook\.office\.com)$/,
  },
  {
    name: "Google Chat",
    shape: "https://chat.googleapis.com/v1/spaces/SPACE/messages?key=…&token=…",
    where: "The space's “Apps & integrations”, “Webhooks”",
    host: /^chat\.googleapis\.com$/,
  },
  {
    name: "Telegram",
    shape: "https://api.telegram.org/botTOKEN/sendMessage?chat_id=ID",
    where: "The token from @BotFather",
    host: /^api\.telegram\.org$/,
  },
  {
    name: "ntfy",
    shape: "https://ntfy.sh/TOPIC",
    where: "Any topic that you subscribe to",
    host: /^ntfy\./,
  },
  {
    name: "Gotify",
    shape: "https://GOTIFY/message?token=TOKEN",
    where: "“Apps”, “Create application”",
    path: /\/message\?(.*&)?token=/,
  },
  {
    name: "Home Assistant",
    shape: "https://HOME/api/webhook/ID",
    where: "An automation's trigger “Webhook”",
    path: /\/api\/webhook\/[^/]+$/,
  },
  {
    name: "E-mail and more, by Apprise",
    shape: "https://APPRISE/notify/KEY",
    where: "An Apprise API server, which passes it on to e-mail and over a hundred services",
    path: /\/notify\/[^/]+\/?$/,
  },
  {
    name: "Anything that takes JSON",
    shape: "https://…",
    where: "A POST with type, data.check, text and content, signed with your webhook secret",
  },
];

/** The name of the receiver at a webhook URL, or its host where it is none of these. */
export function receiverName(url) {
  if (!URL.canParse(url)) return url;
  const { hostname, host, pathname, search } = new URL(url);
  const fits = (known) =>
    (known.host || known.path) &&
    (!known.host || known.host.test(hostname)) &&
    (!known.path || known.path.test(pathname + search));
  return RECEIVERS.find(fits)?.name ?? host;
}
