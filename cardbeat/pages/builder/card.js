// A card's URL and the HTML that holds it. Pure.

export const TEXTS = ["title", "description", "author", "tag", "domain"];
const DEFAULTS = { template: "default", theme: "dark" };
export const FIELDS = [...TEXTS, ...Object.keys(DEFAULTS)];

/** Names and values of the query, without empty and default ones: the shorter URL draws the same card. */
export const cardPairs = (card, key) => [
  ...FIELDS.filter((name) => card[name] && card[name] !== DEFAULTS[name]).map((name) => [name, card[name]]),
  ["key", key],
];

/** The image's absolute URL. */
export function cardUrl(base, card, key) {
  const query = new URLSearchParams(cardPairs(card, key));
  return new URL(`og?${query.toString().replaceAll("+", "%20")}`, base).href;
}

/** The meta tags of an image; `url` and `text` are written behind `content=`. */
export const imageMeta = (url, alt) => `<meta property="og:image" content=${url}>
<meta property="og:image:width" content="1200">
<meta property="og:image:height" content="630">
<meta property="og:image:alt" content=${alt}>
<meta name="twitter:card" content="summary_large_image">
<meta name="twitter:image:alt" content=${alt}>`;

/** These tags for the <head> of a page that has its own title. */
export const imageLines = (url, card) => imageMeta(`"${escaped(url)}"`, `"${escaped(card.title)}"`);

/** A <head> ready to paste. */
export function wholeHead(url, card) {
  const head = [
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escaped(card.title)}</title>`,
    lines([
      ["name", "description", card.description],
      ["name", "author", card.author],
      ["property", "og:type", card.template === "default" ? "website" : "article"],
      ["property", "og:title", card.title],
      ["property", "og:description", card.description],
      ["property", "og:site_name", card.domain],
    ]),
    imageLines(url, card),
  ];
  return `<head>\n${head.join("\n").replace(/^/gm, "  ")}\n</head>`;
}

const lines = (rows) =>
  rows
    .filter(([, , content]) => content)
    .map(([kind, name, content]) => `<meta ${kind}="${name}" content="${escaped(content)}">`)
    .join("\n");

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
// White space becomes one space: a line break would split the attribute.
export const escaped = (text) => text.replace(/[&<>"]/g, (character) => ENTITIES[character]).replace(/\s+/g, " ");
