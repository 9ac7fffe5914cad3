import pytest

from cardbeat.config import FREE, UNLIMITED, Tier
from cardbeat.errors import StartupError
from cardbeat.keys.tiers import tiers_from


def load(tmp_path, text):
    path = tmp_path / "tiers.toml"
    path.write_text(text)
    return tiers_from(path)


def test_the_built_in_tiers_are_there_without_any_table(tmp_path):
    assert load(tmp_path, "") == {"free": FREE, "unlimited": UNLIMITED}


def test_what_a_tier_leaves_out_stays_as_in_the_operators_free(tmp_path):
    tiers = load(
        tmp_path,
        "[plus]\nmax_checks = 500\n[free]\nmin_period_seconds = 60\nrenders_per_minute = 10\n",
    )
    assert tiers["free"] == Tier(100, 60, 10)
    assert tiers["plus"] == Tier(500, 60, 10)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[plus]\nmax_check = 5", "max_check"),
        ("[plus]\nmax_checks = -1", "max_checks"),
        ("[plus]\nmax_checks = true", "max_checks"),
        ("[plus]\nmin_period_seconds = 0", "min_period_seconds"),
        ("[plus]\nmin_period_seconds = 1.5", "min_period_seconds"),
        ('[plus]\nrenders_per_minute = "9"', "renders_per_minute"),
        ("plus = 3", "plus"),
    ],
)
def test_a_bad_file_is_refused_and_the_fault_named(tmp_path, text, named):
    with pytest.raises(StartupError, match=named):
        load(tmp_path, text)
