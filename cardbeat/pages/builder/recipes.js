// Templates for static site generators, which give every page of a site its own card. Pure.
//
// A page's texts become percent-encoded values in the card's URL, and the URL the value of an attribute, in which "&"
// is written "&amp;". A recipe leaves out what the generator does by itself. Of what is typed in the builder it holds
// nothing: a page's title, description, author, tag and domain are its own, or missing.

import { cardPairs, escaped, imageMeta } from "./card.js";

const FOR_ALL_PAGES = new Set(["template", "theme", "key"]);

/** A site: the URL of its cards without a query, and the names and values that are the same on all pages. */
export function siteOf(base, card, key) {
  const fixed = cardPairs(card, key).filter(([name]) => FOR_ALL_PAGES.has(name));
  return { address: new URL("og", base).href, fixed };
}

/** Of each generator its name, where its recipe goes (with code between backticks), and the recipe for a site. */
export const RECIPES = {
  hugo: {
    name: "Hugo",
    where: 'Save it as `layouts/partials/card.html`, and put `{{ partial "card.html" . }}` into the layout’s `<head>`.',
    text: (site) => `{{ $title := .Title | default site.Title -}}
{{ $description := .Description | default site.Params.description | default "" -}}
{{ $author := delimit (slice | append (.Params.author | default slice)) ", " -}}
{{ $tag := delimit (first 1 (slice | append (.Params.tags | default slice))) "" -}}
{{ $texts := slice "title" $title "description" $description "author" $author "tag" $tag -}}
{{ $query := querify ($texts | append "domain" (urls.Parse site.BaseURL).Host) -}}
{{ if $title -}}
${imageMeta(inMarkup(site, "{{ $query }}"), '"{{ $title }}"')}
{{ end -}}`,
  },
  eleventy: {
    name: "Eleventy",
    where: 'Save it as `_includes/card.njk`, and put `{% include "card.njk" %}` into the layout’s `<head>`.',
    text: (site) => `{% set cardSite = site or metadata or {} -%}
{% set cardTitle = title or cardSite.title -%}
{% set cardDescription = description or cardSite.description or "" -%}
{% set cardAuthor = author.name or author or "" -%}
{% set cardDomain = (cardSite.url or "") | replace(r/^https?:\\/\\/|\\/.*$/g, "") -%}
{% if cardTitle -%}
${imageMeta(inMarkup(site, querySet("{{ card? | urlencode }}", "Title Description Author Domain")), '"{{ cardTitle }}"')}
{% endif -%}`,
  },
  astro: {
    name: "Astro",
    where: "Save it as `src/components/Card.astro`, and put `<Card {title} {description} />` into the layout’s `<head>`.",
    text: (site) => `---
const { title, description, author, tag } = Astro.props;
const domain = Astro.site?.host;
const card = ${inScript(site)};
---
{title && <>
${indented(imageMeta("{card}", "{title}"), "  ")}
</>}`,
  },
  jekyll: {
    name: "Jekyll",
    where: "Save it as `_includes/card.html`, and put `{% include card.html %}` into the layout’s `<head>`.",
    text: (site) => `{% assign card_title = page.title | default: site.title | strip -%}
{% assign card_description = page.description | default: site.description -%}
{% assign card_author = page.author.name | default: page.author -%}
{% assign card_tag = page.tags | first -%}
{% assign card_domain = site.url | split: "//" | last -%}
{% if card_title != "" -%}
${imageMeta(
  inMarkup(site, querySet("{{ card_? | url_encode }}", "title description author tag domain")),
  '"{{ card_title | escape }}"',
)}
{% endif -%}`,
  },
  wordpress: {
    name: "WordPress",
    where: "Put it at the end of your theme’s `functions.php`.",
    text: (site) => `add_action('wp_head', function () {
    $text = fn ($html) => html_entity_decode(wp_strip_all_tags($html, true), ENT_QUOTES | ENT_HTML5, 'UTF-8');
    $title = wp_strip_all_tags(is_singular() && get_the_title() ? get_the_title() : get_bloginfo('name'), true);
    if ($title === '') return;
    $tags = is_single() ? get_the_tags() : [];
    $card = ${indented(
      inPhp(site, {
        title: "$text($title)",
        description: "$text(is_singular() && has_excerpt() ? get_the_excerpt() : get_bloginfo('description'))",
        author: "is_single() ? get_the_author_meta('display_name', get_post_field('post_author')) : null",
        tag: "is_array($tags) && $tags ? $text($tags[0]->name) : null",
        domain: "wp_parse_url(home_url(), PHP_URL_HOST)",
      }),
    ).trimStart()};
    ?>
${indented(imageMeta('"<?php echo esc_url($card); ?>"', '"<?php echo esc_attr($title); ?>"'))}
    <?php
}, 1);`,
  },
  next: {
    name: "Next.js",
    where:
      "Save it as `lib/card.js`, and return `{ title, description, ...card({ title, description }) }` as a page’s metadata.",
    text: (site) => `export function card({ title, description, author, tag, domain }) {
  if (!title) return {};
  const url = ${inScript(site).replaceAll("\n", "\n  ")};
  return {
    openGraph: { images: [{ url, width: 1200, height: 630, alt: title }] },
    twitter: { card: "summary_large_image", images: [{ url, alt: title }] },
  };
}`,
  },
  php: {
    name: "PHP",
    where: "Put it into the `<head>`, after `$title` has its value, and the others below if the page has them.",
    text: (site) => `<?php if (trim($title ?? '') !== ''):
    $card = ${indented(
      inPhp(site, {
        title: "$title",
        description: "$description ?? null",
        author: "$author ?? null",
        tag: "$tag ?? null",
        domain: "$domain ?? null",
      }),
    ).trimStart()}; ?>
${imageMeta('"<?= htmlspecialchars($card) ?>"', '"<?= htmlspecialchars($title) ?>"')}
<?php endif ?>`,
  },
};

/** The URL as a quoted attribute; `texts` makes the page's part of the query. */
const inMarkup = ({ address, fixed }, texts) => {
  const rest = fixed.map(([name, value]) => `&amp;${name}=${escaped(encodeURIComponent(value))}`);
  return `"${escaped(address)}?${texts}${rest.join("")}"`;
};

/** The page's part of a query: each of `names` with `value`, in which it stands for the question mark. */
const querySet = (value, names) =>
  names
    .split(" ")
    .map((name) => `${name.toLowerCase()}=${value.replace("?", name)}`)
    .join("&amp;");

const inScript = ({ address, fixed }) => {
  const rest = fixed.map(([name, value]) => `  ${name}: ${JSON.stringify(value)},\n`);
  const texts = "  title, description, author, tag, domain,\n";
  const present = `Object.entries({\n${texts}${rest.join("")}}).filter(([, text]) => text)`;
  return `${JSON.stringify(`${address}?`)} + new URLSearchParams(${present})`;
};

const inPhp = ({ address, fixed }, texts) => {
  const rest = fixed.map(([name, value]) => [name, phpText(value)]);
  const lines = [...Object.entries(texts), ...rest].map(([name, value]) => `    '${name}' => ${value},\n`);
  return `${phpText(`${address}?`)} . http_build_query([\n${lines.join("")}], '', '&')`;
};

const phpText = (text) => `'${text.replace(/[\\']/g, "\\$&")}'`;
const indented = (text, by = "    ") => text.replace(/^/gm, by);
