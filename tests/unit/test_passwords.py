import pytest

from cardbeat.passwords import without_passwords


@pytest.mark.parametrize(
    "password",
    ["s3cret", "a/b", "a@b", "a:b", "a b", "a'b", 'a"b', "a?b=c&d", "a#b", "a; b", "a\nb", "password=a", "123"],
)
@pytest.mark.parametrize("scheme", ["postgresql://", "postgres:/", "http://", "jdbc:postgresql://"])
def test_a_password_is_hidden_whatever_it_holds(scheme, password):
    url = f"{scheme}me:{password}@host/db"
    for shown in (f"{url}; do this", f"not {url!r} (see --help)", f"argument: {url} --port 80"):
        told = without_passwords(shown)
        assert told.startswith(shown.partition("me:")[0] + "me:***")
        assert password not in told
        assert repr(password)[1:-1] not in told


@pytest.mark.parametrize("name", ["password", "sslpassword", "%70assword", "ssl%50ass%57%6Frd", "PASSWORD"])
@pytest.mark.parametrize("password", ["s3cret", "a@b", "a&b", "a b"])
def test_a_password_in_a_query_is_hidden_by_whatever_name(name, password):
    for before in ("postgresql://me@host/db?", "postgresql://me:s3cret@host/db?port=5432&", "http://host:80/?"):
        told = without_passwords(f"there is no {before}{name}={password}&sslmode=require")
        assert password not in told
        assert "s3cret" not in told
        assert "host" in told


def test_each_of_several_is_hidden_and_so_is_one_whose_url_is_cut_short():
    assert "s3cret" not in without_passwords("https://host:443/ and postgresql://me:s3cret@host postgres://:s3cret@h")
    assert without_passwords("no command 'postgresql://me:s3'; see") == "no command 'postgresql://me:***'; see"


@pytest.mark.parametrize(
    "text",
    [
        "must be a URL such as postgresql://user:password@host/name, where %40 stands for @ in the password",
        "it must be such as postgresql://user:password@host:5432/name?parameter=value, with",
        "must be a URL that starts with http:// or https://, not 'me@example.com'",
        "must be a URL that starts with postgresql://, or a file to read: no",
        "can't use the server at http://127.0.0.1:8080: it takes no connections",
        "unlike 'https://cards.example:8443/?a'",
        "unlike 'https://[::1]:8080/ä'",
        "unlike 'https://cards.example/a:b c'",
        "postgresql://me@host/db?sslmode=disable",
        r"can't use C:\data\a:b@c, nor C:/data/a:b@c",
        "there are 2 checks named 'a:b@c'",
    ],
)
def test_all_else_stays(text):
    assert without_passwords(text) == text


def test_a_long_word_is_looked_through_once():
    word = "x" * 200_000
    assert without_passwords(word) == word
