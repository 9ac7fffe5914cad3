"""Domains as people write them, and the letter of an avatar."""

import pytest

from cardbeat.cards.drawing.page import initial_of, readable_domain


@pytest.mark.parametrize(
    ("domain", "shown"),
    [
        ("example.com", "example.com"),
        ("xn--mnchen-3ya.example", "münchen.example"),
        ("XN--mnchen-3ya.example", "münchen.example"),
        ("www.xn--fiq228c.example", "www.中文.example"),
        ("xn--eckwd4c7c.xn--zckzah", "ドメイン.テスト"),
        ("xn--80ak6aa92e.com", "аррӏе.com"),
        (
            "xn--pple-43d.com",
            "xn--pple-43d.com",
        ),  # a Cyrillic letter among Latin ones
        ("xn--\u00fc.example", "xn--\u00fc.example"),
        ("xn--99999999999.example", "xn--99999999999.example"),
        ("xn--.example", "xn--.example"),
    ],
)
def test_a_domain_of_one_script_is_decoded(domain, shown):
    assert readable_domain(domain) == shown


@pytest.mark.parametrize(
    ("name", "initial"),
    [
        ("ada lovelace", "A"),
        ("“Élise”", "É"),
        ("@fox", "F"),
        ("ßeta", "ß"),
        ("🦊 Fox", "🦊"),
        ("ანა", "ა"),
        ("เอดา", "เอ"),
        ("42", "4"),
        ("…", ""),
        ("--", ""),
    ],
)
def test_an_avatar_has_the_first_letter_of_a_name(name, initial):
    assert initial_of(name) == initial
