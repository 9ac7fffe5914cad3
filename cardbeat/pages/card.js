// A card's URL and the HTML that names it. Pure.

export const TEXTS = ["title", "description", "author", "tag", "domain"];
const DEFAULTS = { template: "default", theme: "dark" };
export const FIELDS = [...TEXTS, ...Object.keys(DEFAULTS)];

/** The image's absolute URL. What is empty or the default is left out: the shorter URL draws the same card. */
export function cardUrl(base, card, key) {
  const query = new URLSearchParams();
  for (const name of FIELDS) {
    if (card[name] && card[name] !== DEFAULTS[name]) query.set(name, card[name]);
  }
  query.set("key", key);
  return new URL(`og?${query.toString().replaceAll("+", "%20")}`, base).href;
}

/** The lines that show the image, for the <head> of a page that has its own title. */
export const imageLines = (url, card) =>
  lines([
    ["property", "og:image", url],
    ["property", "og:image:width", "1200"],
    ["property", "og:image:height", "630"],
    ["property", "og:image:alt", card.title],
    ["name", "twitter:card", "summary_large_image"],
  ]);

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
// A line break would tear an attribute's line apart.
const escaped = (text) => text.replace(/[&<>"]/g, (character) => ENTITIES[character]).replace(/\s+/g, " ");
