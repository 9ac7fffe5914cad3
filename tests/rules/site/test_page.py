"""What is read from a built page, as browsers read it."""

import codecs
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardbeat.site.charset import codec_of_meta
from cardbeat.site.page import read_page
from cardbeat.vendor.webencodings.labels import LABELS
from tests.rules.site.standard import (
    OWN,
    is_first_in_head,
    judged,
    with_tags,
)

STARTS = [
    "",
    "<!doctype html>",
    "<html>",
    "<html lang=de><head>",
    "<head><meta charset=utf-8>",
    "x",
    "\ufeff",
]
PIECES = """\
<title>B &amp;amp; C</title>
<TITLE\t>D</TITLE >
<title/>
&copy
x
\t
<svg><g/><title/><style/><title>N</title></svg>
<svg/>
</svg>
<svg><svg></svg><title>N</title></svg>
<div>
<span>
</head>
<body>
</body>
<table>
<tr>
<ul>
<br>
<img>
<h1>
</x>
<style>a</style>
<style>
</style>
<textarea>
</textarea>
<iframe>
</iframe>
<xmp>
</xmp>
<noscript>
</noscript>
<script>'</title>'</script>
<link rel=x>
<base href=/>
< p>
<!-- x -->
<!-- x --!>
<!-->
<!--->
<!-- <!-- x -->
<?php '>' ?>
<!x '>
</>
</ x>
<a b='<title>N</title>'>
<a b="x>">
<a b=x'>
>
<meta name=a content='>'>
""".splitlines()
SOME_PIECES = st.lists(st.sampled_from(PIECES), max_size=4)
"""No `<template>`, which ends the head for some readers."""


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(STARTS), SOME_PIECES, SOME_PIECES)
def test_any_pieces_have_the_title_of_the_standard_and_tags_first_in_its_head(
    start, before, behind
):
    raw = "".join([start, *before, "<title>A</title>", *behind]).encode()
    title = judged(raw, scripting=True)[0]
    assert read_page(raw).name == title
    tagged = with_tags(raw)
    assert is_first_in_head(tagged)
    assert judged(tagged, scripting=True)[0] == title
    assert with_tags(tagged) == tagged


B = "<meta name=description content=b>"
C = "<meta name=description content=c>"
LONG = f"&#{'9' * 5000};"
DESCRIPTIONS = {
    '<meta content="&gt; &eacute; a&copy=b" name="description">': "> é a&copy=b",
    "<meta name=description content=' two\n lines\t'>": "two lines",
    B + C: "b",
    f"<meta name=description content=''>{C}": "c",
    f"<meta property=og:description content=a>{B}": "a",
    f"<template>{C}</template><noscript>{C}</noscript>": "",
    f"<meta name=description content={LONG}>": LONG,
}


@pytest.mark.parametrize("html", DESCRIPTIONS)
def test_contents_are_found_and_their_references_read(html):
    said = read_page(html.encode()).said("og:description", "description")
    assert said == DESCRIPTIONS[html]


@pytest.mark.parametrize(
    ("html", "lang"),
    [
        (
            "<!doctype html><html class=x LANG='zh-Hant'><html lang=de>",
            "zh-Hant",
        ),
        (
            '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="de">',
            "de",
        ),
        ("<html lang=''><p lang=de>", ""),
    ],
)
def test_the_language_is_that_of_the_page(html, lang):
    assert read_page(html.encode()).lang == lang


REDIRECTS = ("0; url=/a/", "0;URL='/a/'", " 5 , /a")


@pytest.mark.parametrize("content", [*REDIRECTS, "300", "0;"])
def test_a_page_that_leads_elsewhere_is_a_redirect(content):
    meta = f'<meta content="{content}" HTTP-EQUIV=Refresh>'
    redirects = content in REDIRECTS
    assert read_page(meta.encode()).is_redirect == redirects
    assert not read_page(
        f"<noscript>{meta}</noscript>".encode()
    ).is_redirect


IMAGE = f"<meta property=og:image content={OWN}>"
OWN_IMAGES = [
    f"</head><body><p>x{IMAGE}",
    f"</head>{IMAGE}<body>",
    f"<svg>{IMAGE}</svg>",
    f"<noscript>{IMAGE}</noscript>",
    f"<meta property=og:image content=''>{IMAGE}",
    f"<meta name=image property='twitter:image OG:image' content='{OWN}'>",
    f"<META data-x='>' content='{OWN}' NAME='og:image' />",
    f"<meta property='og:image:url' content='{OWN}'>",
]


@pytest.mark.parametrize("html", OWN_IMAGES)
def test_a_page_with_an_image_of_its_own_anywhere_stays(html):
    raw = f"<head><title>A</title>{html}".encode()
    assert read_page(raw).image == OWN
    assert with_tags(raw) == raw


DECLARED = (
    "<meta http-equiv=Content-Type content='text/html; charset={}'>"
)
META = "<meta charset={}>"
CHARSETS = [
    ("windows-1251", DECLARED, "сэмпл текст", "cp1251"),
    ("windows-874", DECLARED, "ข่าวประจำวัน", "cp874"),
    ("x-sjis", DECLARED, "①東京ソ", "cp932"),
    ("euc-jp", META, "東京", "euc_jp"),
    ("iso-2022-jp", META, '、"東京"', "iso2022_jp_ext"),
    ("gb2312", DECLARED, "镕€ 中文", "gb18030"),
    ("big5", META, "香港嘅", "big5hkscs"),
    ("ks_c_5601-1987", META, "똠방각하", "cp949"),
    ("latin1", META, "Größe “x” €", "cp1252"),
    ("utf-16", META, "Größe", "utf-8"),
    ("none", META, "Größe", "utf-8"),
    ("none", META, "Größe", "cp1252"),
    (
        "latin1",
        "<?xml version='1.0' encoding='{}'?>",
        "Größe “x”",
        "cp1252",
    ),
]
KOI8_R = "<meta charset=koi8-r>"
"""Of the declarations below each is in KOI8-R, whatever stands before."""
CHARSETS += [
    ("koi8-r", declaration, "Привет", "koi8-r")
    for declaration in (
        f"<meta charset=none>{KOI8_R}",
        f"<title>long</title><!--{'x' * 40_000}-->{KOI8_R}",
        f"<!-- <meta charset=latin1> -->{KOI8_R}",
        f"<meta name=a content='<meta charset=latin1>'>{KOI8_R}",
        f"<meta name=a content='text/html; charset=latin1'>{KOI8_R}",
        "<meta http-equiv=content-type content=\"a;charset = '{}'\">",
        f"<?xml version='1.0' encoding='latin1'?>{KOI8_R}",
    )
]


@pytest.mark.parametrize(
    ("label", "declaration", "text", "codec"), CHARSETS
)
def test_a_page_is_read_and_written_in_its_charset(
    label, declaration, text, codec
):
    html = f"{declaration.format(label)}<meta name=description content='{text}'><p>x"
    raw = html.encode(codec)
    tagged = with_tags(raw, f"{text} ☃")
    page = read_page(tagged)
    assert page.codec == read_page(raw).codec
    assert page.said("description") == text
    assert page.said("og:title") == f"{text} ☃"
    written = text.replace('"', "&quot;").encode(codec)
    assert written in tagged.partition(b"og:title")[2]


def test_every_label_of_the_standard_has_a_codec_here():
    newer = "ms932 koi8-ru unicode11utf8 ucs-2 unicodefffe".split()
    for label in (*LABELS, *newer):
        assert codecs.lookup(
            codec_of_meta({"charset": f" {label.upper()}\n"})
        )


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_a_byte_order_mark_tells_more_than_a_meta(codec):
    html = "<head><meta charset=latin1><title>Größe 東京 𝄞</title></head>"
    mark = "\ufeff" if codec == "utf-16-be" else ""
    raw = (mark + html).encode(codec)
    assert read_page(raw).name == "Größe 東京 𝄞"
    tagged = with_tags(raw, "Größe")
    assert tagged.startswith(raw[:20])
    assert read_page(tagged).said("og:title") == "Größe"


ENDLESS = {
    '<a b="': 160_000,
    "<": 900_000,
    "<!": 400_000,
    "</": 400_000,
    "<a =": 200_000,
    "<!--": 200_000,
    "<svg>": 30_000,
    "<noscript>": 30_000,
    "<body><noscript></noscript>": 20_000,
    "<template>": 30_000,
    "<meta charset=": 60_000,
    "&": 400_000,
}


@pytest.mark.parametrize("piece", ENDLESS)
def test_a_page_whose_tags_do_not_end_is_read_in_a_moment(piece):
    pieces = piece * ENDLESS[piece]
    end = " author og:image <meta name=author"
    began = time.process_time()
    page = read_page(
        f"<html><head><title>A</title>{pieces}{end}".encode()
    )
    assert page.name == "A"
    assert time.process_time() - began < 5
