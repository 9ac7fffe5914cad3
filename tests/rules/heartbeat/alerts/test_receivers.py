"""What each receiver is sent, held against the schema that it documents."""

import html
import json
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from cardbeat.heartbeat.alerts.message import (
    RECEIVERS,
    body_of,
    request_for,
)
from tests.kit.documentation import DOCS
from tests.kit.lists import each
from tests.rules.heartbeat.alerts.test_message import (
    KINDS,
    check_with,
    told_with,
)
from tests.rules.heartbeat.alerts.test_message import URL as LINK

DOCUMENTED = json.loads(
    Path(__file__).with_name("receivers.json").read_text("utf-8")
)
"""By the receiver's name: URLs of it, and the schema of what it takes, written after the page that its comment names.

Without a name: every other one.
"""
URLS = each(DOCUMENTED.values(), "url")
(
    SLACK,
    DISCORD,
    MATTERMOST,
    NTFY,
    GOTIFY,
    TELEGRAM,
    GOOGLE_CHAT,
    TEAMS,
    APPRISE,
    ANY,
) = URLS
OTHERS = DOCUMENTED[""]["other_urls"]


def stored(
    kind="check.overdue", name="nightly backup", link=LINK, **told
):
    return body_of(told_with(kind, **told), check_with(name), link)


def sent_to(url, kind="check.overdue", name="nightly backup", **told):
    return json.loads(request_for(url, stored(kind, name, **told))[1])


def validate(url, sent):
    """Telegram joins the query's parameters with the body's."""
    understood = (
        dict(parse_qsl(urlsplit(url).query)) | sent
        if url == TELEGRAM
        else sent
    )
    (schema,) = (
        receiver["schema"]
        for receiver in DOCUMENTED.values()
        if receiver["url"] == url
    )
    Draft202012Validator(schema).validate(understood)


def words(url, sent):
    """The sentence and its link, wherever the receiver looks for them."""
    if url == TEAMS:
        card = sent["attachments"][0]["content"]
        return f"{card['body'][0]['inlines'][0]['text']} {card['actions'][0]['url']}"
    return (
        sent.get("message")
        or sent.get("body")
        or sent.get("content")
        or sent["text"]
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("url", URLS)
def test_each_receiver_gets_what_it_documents(url, kind):
    sent = sent_to(url, kind)
    validate(url, sent)
    assert words(url, sent) == json.loads(stored(kind))["text"]
    assert "title" not in sent or '"nightly backup"' in sent["title"]


@given(
    name=st.text(
        st.characters(exclude_categories=["Cc", "Cs"]),
        min_size=1,
        max_size=100,
    ),
    url=st.sampled_from(URLS),
)
@settings(max_examples=60, deadline=None)
def test_whatever_a_check_is_called_its_receiver_gets_what_it_documents_the_same_each_time(
    name, url
):
    body = stored(name=name)
    address, sent = request_for(url, body)
    validate(url, json.loads(sent))
    assert request_for(url, body) == (address, sent)


def test_ntfy_gets_it_at_its_root_with_the_topic_in_it_and_the_rest_of_the_query():
    address, sent = request_for(
        "http://a:b@ntfy.example:8080/alerts/?auth=QmFzaWM&priority=high",
        stored("check.test"),
    )
    assert (
        address
        == "http://a:b@ntfy.example:8080/?auth=QmFzaWM&priority=high"
    )
    assert json.loads(sent) == {
        "topic": "alerts",
        "title": 'Test alert for "nightly backup"',
        "message": f'This is a test alert for "nightly backup"; its alerts arrive here. {LINK}',
        "click": LINK,
    }


def test_the_other_receivers_get_it_where_their_url_says():
    others = [url for url in URLS if url != NTFY]
    assert [request_for(url, stored())[0] for url in others] == others


@pytest.mark.parametrize("url", OTHERS)
def test_a_url_of_another_shape_gets_the_alert_as_it_is_stored(url):
    assert request_for(url, stored()) == (url, stored())


@pytest.mark.parametrize("name", each(RECEIVERS, "name"))
def test_a_receiver_is_known_in_each_shape_of_its_urls(name):
    documented = DOCUMENTED[name]
    for url in documented["other_urls"]:
        assert sent_to(url) | {"topic": 0} == sent_to(
            documented["url"]
        ) | {"topic": 0}


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(
    "name",
    [
        "@everyone",
        "<!channel>",
        "@here <@U1>",
        "<users/all>",
        "<at>all</at>",
    ],
)
def test_a_name_calls_nobody_anywhere(url, name):
    sent = sent_to(url, name=name)
    for called in ("@e", "@h", "@U", "<", ">"):
        assert called not in words(url, sent) + sent.get("title", "")


MARKUP = r"*/5 **b** _i_ ~~s~~ `c` ||spoiler|| [x](https://evil.example) ![y](https://evil.example/p) \[z] & &lt;"


@pytest.mark.parametrize(
    ("url", "decoded"), [(DISCORD, str), (MATTERMOST, html.unescape)]
)
def test_what_a_name_holds_of_markdown_is_escaped(url, decoded):
    said = words(url, sent_to(url, name=MARKUP))
    assert not set(re.sub(r"\\[\\`*_~|\[\]]", "", said)) & set(
        "\\`*_~|[]"
    )
    assert (
        decoded(re.sub(r"\\(.)", r"\1", said))
        == json.loads(stored(name=MARKUP))["text"]
    )


@pytest.mark.parametrize(
    "name",
    [
        "&#64;channel",
        "&#x40;here",
        "&commat;all",
        "&amp;#64;channel",
        "AT&T",
    ],
)
def test_a_character_reference_in_a_name_stays_as_it_is_written_where_they_are_decoded_and_where_not(
    name,
):
    text = json.loads(stored(name=name))["text"]
    assert (
        html.unescape(words(MATTERMOST, sent_to(MATTERMOST, name=name)))
        == text
    )
    assert words(DISCORD, sent_to(DISCORD, name=name)) == text


def test_what_a_name_holds_of_slacks_and_google_chats_markup_is_text():
    sent = sent_to(SLACK, name=MARKUP)
    assert sent["mrkdwn"] is False
    assert "& &lt;" not in sent["text"]
    assert "&amp; &amp;lt;" in sent["text"]
    assert not set(
        words(GOOGLE_CHAT, sent_to(GOOGLE_CHAT, name=MARKUP))
    ) & set("*_~`")


def test_what_a_name_holds_of_an_adaptive_cards_functions_is_text():
    name = "{{{DATE(2017-02-14T06:08:39Z,SHORT)}}}"
    said = words(TEAMS, sent_to(TEAMS, name=name))
    assert "{{" not in said
    assert name in said.replace("\u200b", "")


@pytest.mark.parametrize("url", [NTFY, GOTIFY, TELEGRAM, APPRISE])
def test_where_text_is_plain_nothing_says_otherwise(url):
    sent = sent_to(url, name=MARKUP)
    assert words(url, sent) == json.loads(stored(name=MARKUP))["text"]
    assert not sent.keys() & {"markdown", "parse_mode", "entities"}
    assert "client::display" not in sent.get("extras", {})
    assert sent.get("format", "text") == "text"


@pytest.mark.parametrize("url", URLS)
def test_a_link_stays_as_it_is_whatever_is_escaped_around_it(url):
    link = "https://my_cards~.example/_a_~b~/dashboard#0123abcd"
    assert words(url, sent_to(url, name=MARKUP, link=link)).endswith(
        f" {link}"
    )


def test_each_kind_of_alert_has_its_title_noise_and_type():
    rows = (
        ('"nightly backup" is overdue', 8, "failure"),
        ('"nightly backup" is still overdue', 8, "failure"),
        ('"nightly backup" has recovered', 5, "success"),
        ('Test alert for "nightly backup"', 5, "info"),
    )
    for kind, (title, priority, noise) in zip(KINDS, rows, strict=True):
        for url in (NTFY, GOTIFY, APPRISE):
            assert sent_to(url, kind)["title"] == title
        assert sent_to(GOTIFY, kind)["priority"] == priority
        assert sent_to(APPRISE, kind)["type"] == noise


@pytest.mark.parametrize("name", each(RECEIVERS, "name"))
def test_the_documentation_has_each_receiver_in_its_table(name):
    table = re.findall(
        r"^\| (.+?) \|.*https?://", DOCS["alerts"], re.MULTILINE
    )
    assert any(name in row for row in table)
