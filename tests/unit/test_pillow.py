"""What is said of a Pillow that is missing or too old, on each system."""

import sys

import PIL
import pytest

from cardbeat import pillow

SYSTEMS = {
    "ID=debian\nVERSION_ID=12": "apt install python3-pil",
    "ID=ubuntu\nID_LIKE=debian": "apt install python3-pil",
    'NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"': "apt install python3-pil",
    "ID=fedora": "dnf install python3-pillow",
    'ID="rocky"\nID_LIKE="rhel centos fedora"': "dnf install python3-pillow",
    "ID=alpine": "apk add py3-pillow",
    "ID=arch": "pacman -S python-pillow",
    "ID=plan9": "python -m pip install Pillow",
    "": "python -m pip install Pillow",
}


@pytest.fixture
def no_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)


@pytest.mark.usefixtures("no_pillow")
@pytest.mark.parametrize("content", SYSTEMS)
def test_for_the_systems_own_python_it_comes_from_the_systems_packages(tmp_path, content):
    (tmp_path / "os-release").write_text(content)
    said = pillow.problem(tmp_path / "os-release", prefix="/usr")
    assert said == f"Pillow is missing; install it: {SYSTEMS[content]}"


@pytest.mark.usefixtures("no_pillow")
def test_for_any_other_python_it_comes_from_pip(tmp_path):
    (tmp_path / "os-release").write_text("ID=debian")
    assert pillow.problem(tmp_path / "os-release", prefix="/usr/local").endswith("python -m pip install Pillow")


@pytest.mark.usefixtures("no_pillow")
def test_a_system_that_does_not_say_what_it_is_takes_pip(tmp_path):
    assert pillow.problem(tmp_path / "none", prefix="/usr").endswith("python -m pip install Pillow")


@pytest.mark.parametrize(
    ("prefix", "command"), [("/usr", "python3 -m venv"), ("/opt/venv", "pip install --upgrade Pillow")]
)
def test_one_that_is_too_old_is_named(monkeypatch, prefix, command):
    monkeypatch.setattr(PIL, "__version__", "9.3.0")
    said = pillow.problem(prefix=prefix)
    assert said.startswith("Pillow 9.3.0 is too old, cardbeat needs 9.4 or newer; ")
    assert command in said


@pytest.mark.parametrize("version", ["9.4.0", "10.0.1", "13.0.0.dev0", PIL.__version__])
def test_from_9_4_on_all_is_well(monkeypatch, version):
    monkeypatch.setattr(PIL, "__version__", version)
    assert pillow.problem() is None
