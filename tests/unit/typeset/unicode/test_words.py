"""Words of scripts that put no spaces between them."""

import hashlib
import json
from functools import partial
from gzip import decompress
from itertools import pairwise
from time import thread_time
from timeit import repeat

import pytest

from cardbeat.resources import read_bytes, read_text
from cardbeat.typeset.unicode.clusters import clean, clusters
from cardbeat.typeset.unicode.words import SCRIPTS, WordList, encoded, has_words, word_starts


def parted(text: str) -> list[str]:
    graphemes = clusters(clean(text))
    starts = sorted({0, *word_starts(graphemes), len(graphemes)})
    return ["".join(graphemes[a:b]) for a, b in pairwise(starts)]


def listing(*words: str) -> WordList:
    """A list of words of two letters and more, all beginning with the same two."""
    return WordList(b" ".join([encoded(words[0][:2]), *(encoded(word[2:]) for word in words)]))


def test_the_fewest_words_are_found_the_first_ones_the_longest() -> None:
    words = listing("กขค", "กขคง", "กขงง", "กขคกข")
    assert words.starts("กขคงกขค") == [0, 4]
    assert words.starts("กขคกขค") == [0, 3]


def test_letters_in_no_word_stay_with_the_word_before_where_they_are_few() -> None:
    words = listing("กขค", "กขง")
    assert words.starts("กขคจกขง") == [0, 4]
    assert words.starts("กขคจฉชซกขง") == [0, 3, 7]


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
def test_headlines_are_parted_into_words(text: str) -> None:
    assert parted(text.replace(" ", "")) == text.split()


def test_no_word_begins_with_a_letter_that_ends_a_syllable() -> None:
    assert not has_words("a")
    assert all(part[1:2] not in ("\u0e4c", "\u103a") for text in ("ทรัมป์ป์ป์", "ကန်န်န်") for part in parted(text))


def test_a_text_of_two_thousand_letters_takes_no_longer_for_each_than_a_title() -> None:
    long, short = (list("กขคงจฉชซฌญ" * count) for count in (200, 10))
    word_starts(short)
    # Of this thread alone: a busy machine costs it no time.
    taken = [min(repeat(partial(word_starts, text), timer=thread_time, number=1)) for text in (long, short)]
    assert taken[0] < 100 * taken[1]


@pytest.mark.parametrize("script", SCRIPTS.values())
def test_every_list_is_there_and_sorted_by_its_first_letters(script: str) -> None:
    keys = [line.split(b" ")[0] for line in decompress(read_bytes(f"words/{script}.gz")).split(b"\n")]
    assert len(keys) > 500
    assert keys == sorted(set(keys))


def test_the_models_are_those_of_the_package_that_is_recorded() -> None:
    sources = {source["package"]: source for source in json.loads(read_text("words/sources.json"))["sources"]}
    for path, digest in sources["budoux"]["files"].items():
        model = decompress(read_bytes(f"words/{path.rpartition('/')[2]}.gz"))
        assert hashlib.sha256(model).hexdigest() == digest
    assert all(read_text(f"words/{source['licence']}") for source in sources.values())
