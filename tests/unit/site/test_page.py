"""What is read from the head of a built page, and where tags are added to it."""

import re
import time

import pytest

from cardbeat.site.page import READ_BYTES, image_tags, read_page, with_lines
from tests.documentation import blocks

TAGS = image_tags("https://x.example/cards/a.png", "A title")


def said(html: str | bytes) -> tuple[str, str]:
    """The title of a page's card, as far as the page alone says it, and its description."""
    page = read_page(html if isinstance(html, bytes) else html.encode())
    return page.title or page.name, page.description


def test_the_tags_are_those_of_the_builder() -> None:
    lines = blocks("recipes", "html")[0].splitlines()
    url = re.search('content="(.*?)"', lines[0])[1].replace("&amp;", "&")
    title = re.search('content="(.*?)"', lines[3])[1]
    assert image_tags(url, title) == lines


def test_texts_in_tags_are_escaped_and_on_one_line() -> None:
    assert image_tags("u", 'a "b" <c>\n& d')[3] == (
        '<meta property="og:image:alt" content="a &quot;b&quot; &lt;c&gt; &amp; d">'
    )


@pytest.mark.parametrize(
    ("html", "title", "description"),
    [
        ("<title>A</title>", "A", ""),
        ("<TITLE\n>A</TITLE ><META NAME=Description CONTENT=b>", "A", "b"),
        ("<head><title>A</title><meta content='b' property='og:title'></head>", "b", ""),
        ("<head><meta property=og:title content=''><title>A</title></head>", "A", ""),
        ('<meta content="d &gt; &eacute;" name="description"><title>a &amp; b &lt;i></title>', "a & b <i>", "d > é"),
        ("<title>a <b>bold</b> & more</title>", "a <b>bold</b> & more", ""),
        ("<title>a &amp;lt; b</title>", "a &lt; b", ""),
        ("<title>\n  two\n  lines\t</title>", "two lines", ""),
        ("<title>un\u00a0mot</title>", "un\u00a0mot", ""),
        ("<!-- <title>no</title><meta name=description content=no> --><title>A</title>", "A", ""),
        ("<head><script>'<title>no</title></head>'</script><title>A</title></head>", "A", ""),
        ("<head><style>/*</head>*/</style><title>A</title></head>", "A", ""),
        ("<head><svg><title>no</title></svg><title>A</title></head>", "A", ""),
        ("<head><svg><title>no</title></svg></head><body><title>no</title>", "", ""),
        ("<p>no head</p><svg><title>no</title></svg>", "", ""),
        ("<body><svg><title>no</title></svg><title>no</title>", "", ""),
        ("<head><template><title>no</title></template><title>A</title></head>", "A", ""),
        ("<title>A</title><title>B</title>", "A", ""),
        ("<title>A</title><meta name=description content=b><meta name=description content=c>", "A", "b"),
        ("<title>A</title><meta name=description content='' content=c>", "A", ""),
        ("<title>A</title><meta property=og:description content=c><meta name=description content=b>", "A", "c"),
        ("<title>never closed <meta name=description content=b>", "", ""),
        ("<![if !IE]><title>A</title><![endif]>", "A", ""),
        ("<html><head></html><title>no</title>", "", ""),
        ("", "", ""),
    ],
)
def test_texts_are_found_in_any_form_of_head(html: str, title: str, description: str) -> None:
    assert said(html) == (title, description)


@pytest.mark.parametrize(
    ("raw", "title"),
    [
        ("<title>Größe 東京</title>".encode(), "Größe 東京"),
        ("\ufeff<title>Größe</title>".encode(), "Größe"),
        ("\ufeff<title>Größe</title>".encode("utf-16-le"), "Größe"),
        ("\ufeff<title>Größe</title>".encode("utf-16-be"), "Größe"),
        ("<meta charset=iso-8859-1><title>Größe “x”</title>".encode("cp1252"), "Größe “x”"),
        (
            "<META HTTP-EQUIV=Content-Type CONTENT='text/html; charset=shift_jis'><title>東京</title>".encode("cp932"),
            "東京",
        ),
        ("<meta charset='gb2312'><title>東京</title>".encode("gb18030"), "東京"),
        ("<meta charset=euc-kr><title>똠방각하</title>".encode("cp949"), "똠방각하"),
        ("<meta charset=big5><title>香港嘅</title>".encode("big5hkscs"), "香港嘅"),
        ("<meta charset=iso-8859-9><title>Ğ “x” €</title>".encode("cp1254"), "Ğ “x” €"),
        ("<meta charset=tis-620><title>ไทย “x”</title>".encode("cp874"), "ไทย “x”"),
        ("<meta charset=iso-8859-11><title>ไทย “x”</title>".encode("cp874"), "ไทย “x”"),
        ("<meta charset=none><title>Größe</title>".encode(), "Größe"),
        ("<meta charset=base64><title>Größe</title>".encode(), "Größe"),
        ("<meta charset=utf-16><title>Größe</title>".encode(), "Größe"),
        ("<!-- <meta charset=cp1252> --><title>Größe</title>".encode(), "Größe"),
        (b"<title>Gr\xf6\xdfe</title>", "Gr\ufffd\ufffde"),
        (b"\xff\xfe<\x00\x00\xd8\x00\x00>", ""),
    ],
)
def test_a_page_is_read_in_its_own_charset(raw: bytes, title: str) -> None:
    assert said(raw)[0] == title


def test_author_and_tag_are_found() -> None:
    page = read_page(
        b"<title>A</title><meta name=author content=Ada><meta property=article:section content=b>"
        b"<meta property=article:tag content=c><meta property=article:tag content=d>"
    )
    assert (page.author, page.tag) == ("Ada", "c")


@pytest.mark.parametrize(
    ("meta", "has_image"),
    [
        ("<meta property='og:image' content='/a.png'>", True),
        ("<meta name='og:image' content='/a.png'>", True),
        ("<meta property='twitter:image og:image' content='/a.png'>", True),
        ("<meta property='og:image' content=' '>", False),
        ("<!--<meta property='og:image' content='/a.png'>-->", False),
        ("<noscript><meta property='og:image' content='/a.png'></noscript>", False),
        ("<meta property='og:image:width' content='1'>", False),
    ],
)
def test_whether_a_page_has_an_image(meta: str, has_image: bool) -> None:
    assert (read_page(f"<head>{meta}</head>".encode()).image != "") == has_image


@pytest.mark.parametrize(
    ("content", "redirects"),
    [("0; url=/a/", True), ("0;URL='/a/'", True), (" 5 , /a", True), ("300", False), ("0;", False)],
)
def test_a_page_that_leads_elsewhere_is_a_redirect(content: str, redirects: bool) -> None:
    meta = f'<meta content="{content}" HTTP-EQUIV=Refresh>'
    assert read_page(meta.encode()).is_redirect == redirects
    assert not read_page(f"<noscript>{meta}</noscript>".encode()).is_redirect


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<html><head><title>A</title>\n", "</head><body></body></html>"),
        ("<HTML>\r\n<HEAD>\r\n<title>A</title>\r\n", "</HEAD>\r\n<body>"),
        ("<head><script>'</head>'</script><!-- </head> --><title></head></title>", "</head><p>"),
        ("<head><title>A</title><noframes></head></noframes>", "</head>"),
        ("<head><title>A</title>", "<body class=a>"),
        ("<!doctype html><title>A</title>", "<p>text</p></head>"),
        ("<!doctype html><title>A</title>", "text <p>"),
        ("<title>A</title>\n", ""),
        ("<title>A</title>", "</html>"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lines_are_added_at_the_end_of_the_head_and_no_other_byte_changes(
    before: str, after: str, encoding: str
) -> None:
    raw = (before + after).encode(encoding)
    end = "\r\n" if "\r\n" in before else "\n"
    tagged = with_lines(raw, TAGS)
    assert tagged == (before + "".join(line + end for line in TAGS) + after).encode(encoding)
    assert read_page(tagged).image


def test_a_page_that_another_run_has_just_tagged_stays() -> None:
    tagged = with_lines(b"<head><title>A</title></head>", TAGS)
    assert tagged is not None
    assert with_lines(tagged, TAGS) == tagged


def test_lines_are_written_in_the_charset_of_the_page() -> None:
    raw = "<head><meta charset=latin1>é</head>".encode("cp1252")
    tagged = with_lines(raw, image_tags("u", "é 東"))
    assert tagged is not None
    assert 'content="é &#26481;"'.encode("cp1252") in tagged


def test_bytes_that_are_no_text_stay() -> None:
    raw = b"<head><title>\xff\xfe\x00</title></head>\xf0"
    tagged = with_lines(raw, TAGS)
    assert tagged is not None
    assert tagged.replace("".join(f"{line}\n" for line in TAGS).encode(), b"") == raw


def test_a_page_whose_charset_can_not_write_one_of_its_bytes_is_read_and_stays() -> None:
    raw = b"<head><meta charset=iso-2022-jp><title>A\x1b\xa1 B</title></head>"
    assert read_page(raw).name.startswith("A")
    assert with_lines(raw, TAGS) is None


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<p>",
        "text",
        "<title>A",
        "<title>A</title><!-- ",
        "<head><script>",
        "<head><svg></head>",
        "<title>A</title><![x",
    ],
)
def test_where_the_end_of_the_head_is_not_known_nothing_is_added(html: str) -> None:
    tagged = with_lines(html.encode(), TAGS)
    assert tagged is None or read_page(tagged).image


def test_so_much_is_read_of_a_huge_page() -> None:
    raw = b"<head><title>A</title>" + b"<meta name=a content=b>" * (READ_BYTES // 20) + b"</head>"
    page = read_page(raw[:READ_BYTES])
    assert page.name == "A"
    assert with_lines(raw[:READ_BYTES], TAGS) is None


@pytest.mark.parametrize(
    "end",
    [
        '<a b="' * 16_000,
        "<" * 900_000,
        "<!" * 400_000,
        '<a b="' + "x" * 900_000,
        "<!--" * 200_000,
        "<svg>" * 60_000 + "</math>" * 50_000,
    ],
)
def test_a_page_whose_tags_do_not_end_is_read_in_a_moment(end: str) -> None:
    began = time.process_time()
    page = read_page(f"<html><head><title>A</title>{end}".encode())
    assert page.name == "A"
    assert time.process_time() - began < 5


def test_a_long_script_or_comment_in_the_head_hides_nothing() -> None:
    page = read_page(f"<head><script>{'x' * 200_000}</script><!--{'y' * 200_000}--><title>A</title></head>".encode())
    assert page.name == "A"
    assert page.end_of_head is not None


def test_of_a_title_that_does_not_end_so_much_is_read() -> None:
    page = read_page(b"<title>" + b"a" * 100_000 + b"</title>")
    assert page.name == "a" * 16 * 1024
