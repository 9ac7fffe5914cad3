"""Sites of one page and a front page, made by the programs themselves or, where it says so, by what they escape with.

Each takes a folder, the recipe, and what the page and the site are called; it gives the HTML of the two pages,
of which the front page has no title of its own.
"""

import json
import shutil
import subprocess
from typing import NamedTuple

import pytest


class Texts(NamedTuple):
    """What a page says of itself, or a site, which has neither author nor tag."""

    title: str | None
    description: str
    author: str | None = None
    tag: str | None = None

    def written(self):
        """The texts that there are, by name."""
        return {
            name: text
            for name, text in self._asdict().items()
            if text is not None
        }


HOST = "blog.example"
SITE_URL = f"https://{HOST}"
HEAD = "<!doctype html>\n<html><head>{}</head><body></body></html>\n"


def run(folder, *command, stdin=""):
    program = shutil.which(command[0], path=None)
    if program is None:
        pytest.fail(
            f"These tests run {command[0]}, and there is none: .ci/run installs it"
        )
    ran = subprocess.run(
        [program, *command[1:]],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def hugo(folder, recipe, page, site):
    layout = HEAD.format(recipe.written(behind="put"))
    config = {
        "baseURL": f"{SITE_URL}/",
        "title": site.title or "",
        "params": {"description": site.description},
    }
    head = {
        **page.written(),
        "tags": [page.tag, "another"] if page.tag else [],
    }
    write(
        folder,
        {
            "config.json": json.dumps(config),
            recipe.written(behind="it as"): recipe.text,
            "layouts/_default/single.html": layout,
            "layouts/index.html": layout,
            "content/post.md": json.dumps(head),
        },
    )
    run(
        folder,
        "hugo",
        "--quiet",
        "--disableKinds",
        "taxonomy,term,RSS,sitemap,404",
    )
    return (folder / "public/post/index.html").read_text(), (
        folder / "public/index.html"
    ).read_text()


def eleventy(folder, recipe, page, site):
    """`node_modules` must be in the folder."""
    write(
        folder,
        {
            "_data/site.json": json.dumps(
                {**site.written(), "url": f"{SITE_URL}/"}
            ),
            recipe.written(behind="it as"): recipe.text,
            "_includes/layout.njk": HEAD.format(
                recipe.written(behind="put")
            ),
            "post.md": f"---json\n{json.dumps({**page.written(), 'layout': 'layout.njk'})}\n---\n",
            "index.md": "---\nlayout: layout.njk\n---\n",
        },
    )
    run(folder, "node", "node_modules/@11ty/eleventy/cmd.cjs", "--quiet")
    return (folder / "_site/post/index.html").read_text(), (
        folder / "_site/index.html"
    ).read_text()


LIQUID = """
require "json"
require "liquid"
variables, text = JSON.parse(STDIN.read)
puts Liquid::Template.parse(text, error_mode: :strict).render!(variables)
"""


def jekyll(folder, recipe, page, site):
    """By Liquid, whose filters these are; Jekyll adds none of them."""

    def rendered(page):
        variables = {
            "page": page,
            "site": {**site.written(), "url": SITE_URL},
        }
        return HEAD.format(
            run(
                folder,
                "ruby",
                "-e",
                LIQUID,
                stdin=json.dumps([variables, recipe.text]),
            )
        )

    return rendered(
        {
            **page.written(),
            "tags": [page.tag, "another"] if page.tag else [],
        }
    ), rendered({})


STRICT = "<?php set_error_handler(function ($kind, $text) { throw new ErrorException($text); }) ?>"
"""Makes PHP fail where it would only print a notice."""
PHP = "<?php extract(json_decode(stream_get_contents(STDIN), true)) ?>\n"


def php(folder, recipe, page, site):
    write(folder, {"page.php": STRICT + PHP + HEAD.format(recipe.text)})
    return [
        run(folder, "php", "page.php", stdin=json.dumps(texts.written()))
        for texts in (page, site)
    ]


WORDPRESS = r"""<?php
[$is_page, $page, $site] = json_decode(stream_get_contents(STDIN), true);
function add_action($hook, $action, $priority = 10) {
    assert([$hook, $priority] === ['wp_head', 1]);
    $GLOBALS['action'] = $action;
}
function is_singular() { return $GLOBALS['is_page']; }
function is_single() { return $GLOBALS['is_page']; }
function home_url() { return 'https://blog.example/home'; }
function wp_parse_url($url, $component) { return parse_url($url, $component); }
function get_post_field($field) { assert($field === 'post_author'); return '7'; }
function get_the_author_meta($field, $id) {
    assert([$field, $id] === ['display_name', '7']);
    return $GLOBALS['page']['author'] ?? '';
}
function get_the_tags() {
    $tag = $GLOBALS['page']['tag'] ?? null;
    return $tag === null ? false : [(object) ['name' => htmlspecialchars($tag)], (object) ['name' => 'another']];
}
function get_the_title() {
    $title = $GLOBALS['page']['title'] ?? null;
    return $title === null ? '' : '<em>' . htmlspecialchars($title, ENT_QUOTES) . '</em>';
}
function has_excerpt() { return true; }
function get_the_excerpt() { return htmlspecialchars($GLOBALS['page']['description'], ENT_QUOTES); }
function get_bloginfo($name) { return htmlspecialchars($GLOBALS['site'][$name === 'name' ? 'title' : $name] ?? ''); }
function wp_strip_all_tags($html, $remove_breaks = false) {
    $text = strip_tags($html);
    return trim($remove_breaks ? preg_replace('/[\r\n\t ]+/', ' ', $text) : $text);
}
function esc_attr($text) { return htmlspecialchars($text, ENT_QUOTES, 'UTF-8', false); }
function esc_url($url) {
    $kept = preg_replace('|[^a-z0-9-~+_.?#=!&;,/:%@$*\'()\[\]\x80-\xff]|i', '', $url);
    return str_replace(['&', "'"], ['&#038;', '&#039;'], str_ireplace(['%0d', '%0a'], '', $kept));
}
"""
"""What WordPress documents of the functions that the recipe calls: titles come as HTML, `esc_url` drops what no URL
may hold, and line breaks also where they are percent-encoded, and writes `&` and `'` as numeric references."""


def wordpress(folder, recipe, page, site):
    """By PHP, with stand-ins for WordPress's functions."""
    write(
        folder,
        {
            "functions.php": f"{STRICT}{WORDPRESS}\n{recipe.text}\n$action();\n"
        },
    )

    def rendered(is_page):
        sent = json.dumps([is_page, page.written(), site.written()])
        return HEAD.format(
            run(folder, "php", "functions.php", stdin=sent)
        )

    return rendered(True), rendered(False)


NEXT = """
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { readFileSync } from "node:fs";
import { card } from "./lib/card.js";

const metas = ({ openGraph: { images: [image] } = { images: [] }, twitter }) => !image ? "" : [
  ["property", "og:image", image.url],
  ["property", "og:image:width", image.width],
  ["property", "og:image:height", image.height],
  ["property", "og:image:alt", image.alt],
  ["name", "twitter:card", twitter.card],
  ["name", "twitter:image", twitter.images[0].url],
  ["name", "twitter:image:alt", twitter.images[0].alt],
].map(([kind, name, content]) => renderToStaticMarkup(createElement("meta", { [kind]: name, content }))).join("");

const pages = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(pages.map((texts) => metas(card(texts)))));
"""
"""What Next.js makes of a page's metadata: elements that React writes."""


def next_js(folder, recipe, page, site):
    """By React, with a stand-in for Next.js's list of elements. `node_modules` must be in the folder."""
    files = {
        recipe.written(behind="it as"): recipe.text,
        "page.js": NEXT,
        "package.json": '{"type": "module"}',
    }
    write(folder, files)
    made = run(
        folder,
        "node",
        "page.js",
        stdin=json.dumps([page.written(), site.written()]),
    )
    return [*map(HEAD.format, json.loads(made))]


ASTRO = """
import { readFileSync } from "node:fs";
const pages = JSON.parse(readFileSync(0, "utf8"));
const escaped = (text) => text.replaceAll("&", "&#38;").replaceAll('"', "&#34;");
const attribute = (text) => (/^https?:/.test(text) ? text : escaped(text));
const made = pages.map((props) => {
  const Astro = { props, site: new URL("https://blog.example/home") };
  SCRIPT
  return `MARKUP`;
});
console.log(JSON.stringify(made));
"""
"""What Astro 5 makes of a component whose markup, all under one condition, holds other expressions only as attributes:
it writes `&` and `"` in them as numeric references, and web addresses as they are."""


def astro(folder, recipe, page, site):
    """By the component's script itself, with a stand-in for Astro's escaping."""
    _, script, markup = recipe.text.split("---\n")
    markup = markup.replace("={", '="${attribute(').replace("}>", ')}">')
    markup = markup.replace("{title && <>", "${title ? `").replace(
        "</>}", '` : ""}'
    )
    write(
        folder,
        {
            "page.mjs": ASTRO.replace("SCRIPT", script).replace(
                "MARKUP", markup
            )
        },
    )
    made = run(
        folder,
        "node",
        "page.mjs",
        stdin=json.dumps([page.written(), site.written()]),
    )
    return [*map(HEAD.format, json.loads(made))]


PROGRAMS = {
    "Hugo": hugo,
    "Eleventy": eleventy,
    "Astro": astro,
    "Jekyll": jekyll,
    "WordPress": wordpress,
    "Next.js": next_js,
    "PHP": php,
}
FROM_NPM = {"Eleventy", "Next.js"}
"""Those that need packages of npm in `node_modules`."""
