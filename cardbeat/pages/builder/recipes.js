// Templates for static site generators, which give every page of a site its own card. Pure.
//
// A page's title and description become percent-encoded values in the card's URL, and the URL the value of an
// attribute, in which "&" is written "&amp;". A recipe leaves out what the generator does by itself.

import { cardPairs, escaped, imageMeta } from "./card.js";

const FROM_THE_PAGE = new Set(["title", "description"]);

/** A site: the URL of its cards without a query, and the names and values that are the same on all pages. */
export function siteOf(base, card, key) {
  const fixed = cardPairs(card, key).filter(([name]) => !FROM_THE_PAGE.has(name));
  return { address: new URL("og", base).href, fixed };
}

/** Of each generator its name, where its recipe goes (with code between backticks), and the recipe for a site. */
export const RECIPES = {
  hugo: {
    name: "Hugo",
    where: 'Save it as `layouts/partials/card.html`, and put `{{ partial "card.html" . }}` into the layout’s `<head>`.',
    text: (site) => `{{ $title := .Title | default site.Title -}}
{{ $description := .Description | default site.Params.description | default "" -}}
${imageMeta(inMarkup(site, '{{ querify "title" $title "description" $description }}'), '"{{ $title }}"')}`,
  },
  eleventy: {
    name: "Eleventy",
    where: 'Save it as `_includes/card.njk`, and put `{% include "card.njk" %}` into the layout’s `<head>`.',
    text: (site) => `{% set cardTitle = title or site.title -%}
{% set cardDescription = description or site.description or "" -%}
${imageMeta(
  inMarkup(site, "title={{ cardTitle | urlencode }}&amp;description={{ cardDescription | urlencode }}"),
  '"{{ cardTitle }}"',
)}`,
  },
  astro: {
    name: "Astro",
    where: "Save it as `src/components/Card.astro`, and put `<Card {title} {description} />` into the layout’s `<head>`.",
    text: (site) => `---
const { title, description } = Astro.props;
const card = ${inScript(site)};
---
{title && <>
${indented(imageMeta("{card}", "{title}"), "  ")}
</>}`,
  },
  jekyll: {
    name: "Jekyll",
    where: "Save it as `_includes/card.html`, and put `{% include card.html %}` into the layout’s `<head>`.",
    text: (site) => `{% assign card_title = page.title | default: site.title -%}
{% assign card_description = page.description | default: site.description -%}
${imageMeta(
  inMarkup(site, "title={{ card_title | url_encode }}&amp;description={{ card_description | url_encode }}"),
  '"{{ card_title | escape }}"',
)}`,
  },
  wordpress: {
    name: "WordPress",
    where: "Put it at the end of your theme’s `functions.php`.",
    text: (site) => `add_action('wp_head', function () {
    $text = fn ($html) => html_entity_decode($html, ENT_QUOTES | ENT_HTML5, 'UTF-8');
    $title = wp_strip_all_tags(is_singular() && get_the_title() ? get_the_title() : get_bloginfo('name'), true);
    $description = wp_strip_all_tags(is_singular() && has_excerpt() ? get_the_excerpt() : get_bloginfo('description'), true);
${indented(`$card = ${inPhp(site, "$text($title)", "$text($description)")};`)}
    ?>
${indented(imageMeta('"<?php echo esc_url($card); ?>"', '"<?php echo esc_attr($title); ?>"'))}
    <?php
});`,
  },
  next: {
    name: "Next.js",
    where: "Save it as `lib/card.js`, and return `{ title, description, ...card(title, description) }` as a page’s metadata.",
    text: (site) => `export function card(title, description) {
  if (!title) return {};
  const url = ${inScript(site).replaceAll("\n", "\n  ")};
  return {
    openGraph: { images: [{ url, width: 1200, height: 630, alt: title }] },
    twitter: { card: "summary_large_image" },
  };
}`,
  },
  php: {
    name: "PHP",
    where: "Put it into the `<head>`, after `$title` and `$description` have their values.",
    text: (site) => `<?php if (($title ?? '') !== ''):
${indented(`$card = ${inPhp(site, "$title", "$description")};`)} ?>
${imageMeta('"<?= htmlspecialchars($card) ?>"', '"<?= htmlspecialchars($title) ?>"')}
<?php endif ?>`,
  },
};

/** The URL as a quoted attribute; `texts` makes the page's part of the query. */
const inMarkup = ({ address, fixed }, texts) => {
  const rest = fixed.map(([name, value]) => `&amp;${name}=${escaped(encodeURIComponent(value))}`);
  return `"${escaped(address)}?${texts}${rest.join("")}"`;
};

const inScript = ({ address, fixed }) => {
  const rest = fixed.map(([name, value]) => `  ${name}: ${JSON.stringify(value)},\n`);
  const texts = '  title,\n  description: description ?? "",\n';
  return `${JSON.stringify(`${address}?`)} + new URLSearchParams({\n${texts}${rest.join("")}})`;
};

const inPhp = ({ address, fixed }, title, description) => {
  const rest = fixed.map(([name, value]) => `    '${name}' => ${phpText(value)},\n`);
  const texts = `    'title' => ${title},\n    'description' => ${description},\n`;
  return `${phpText(`${address}?`)} . http_build_query([\n${texts}${rest.join("")}], '', '&')`;
};

const phpText = (text) => `'${text.replace(/[\\']/g, "\\$&")}'`;
const indented = (text, by = "    ") => text.replace(/^/gm, by);
