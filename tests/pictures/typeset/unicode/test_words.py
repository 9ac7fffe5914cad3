"""Words of scripts that put no spaces between them."""

import hashlib
import json
from gzip import decompress
from itertools import pairwise

import pytest

from cardbeat.files import read_bytes, read_text
from cardbeat.typeset.unicode.clusters import clean, clusters
from cardbeat.typeset.unicode.words import has_words, word_starts


def parted(text):
    graphemes = clusters(clean(text))
    starts = sorted({0, *word_starts(graphemes), len(graphemes)})
    return ["".join(graphemes[a:b]) for a, b in pairwise(starts)]


@pytest.mark.parametrize(
    "text",
    [
        "โดนัลด์ทรัมป์พบ ปูติน ที่ เฮลซิงกิ",
        "เอกชัย ศรี วิชัย คอนเสิร์ต ใหญ่ ที่ กรุงเทพฯ วัน นี้",
        "ລັດຖະບານ ລາວ ປະກາດ ມາດ ຕະການ ໃໝ່ ເພື່ອ ພັດທະນາ ເສດຖະກິດ",
        "រដ្ឋាភិបាល កម្ពុជា ប្រកាស វិធានការ ថ្មី ដើម្បី ជំរុញ សេដ្ឋកិច្ច",
        "ရန် ကုန် တက္ကသိုလ် မှ နိုင်ငံတကာ ညီလာခံ ကျင်းပ မည်",
    ],
)
def test_headlines_are_parted_into_words(text):
    assert parted(text.replace(" ", "")) == text.split()


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d"])
def test_a_joiner_inside_a_word_changes_no_word(joiner):
    text = "รัฐบาลประกาศ"
    joined = parted(text[:3] + joiner + text[3:])
    assert [part.replace(joiner, "") for part in joined] == parted(text)


def test_no_word_begins_with_a_letter_that_ends_a_syllable():
    assert not has_words("a")
    assert all(
        part[1:2] not in ("\u0e4c", "\u103a")
        for text in ("ทรัมป์ป์ป์", "ကန်န်န်")
        for part in parted(text)
    )


def test_the_models_are_those_of_the_package_that_is_recorded():
    sources = {
        source["package"]: source
        for source in json.loads(read_text("words/sources.json"))[
            "sources"
        ]
    }
    for path, digest in sources["budoux"]["files"].items():
        model = decompress(
            read_bytes(f"words/{path.rpartition('/')[2]}.gz")
        )
        assert hashlib.sha256(model).hexdigest() == digest
    assert all(
        read_text(f"words/{source['licence']}")
        for source in sources.values()
    )
