"""What is said of a Pillow that is missing or too old, on each system."""

import platform
import sys

import PIL
import pytest

from cardbeat.host import pillow

SYSTEMS = {
    ("debian", ""): "apt install python3-pil",
    ("ubuntu", "debian"): "apt install python3-pil",
    ("linuxmint", "ubuntu debian"): "apt install python3-pil",
    ("fedora", ""): "dnf install python3-pillow",
    ("rocky", "rhel centos fedora"): "dnf install python3-pillow",
    ("alpine", ""): "apk add py3-pillow",
    ("arch", ""): "pacman -S python-pillow",
    ("plan9", ""): "python -m pip install Pillow",
}


@pytest.fixture
def no_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)


@pytest.mark.usefixtures("no_pillow")
@pytest.mark.parametrize("names", SYSTEMS)
def test_for_the_systems_own_python_it_comes_from_the_systems_packages(monkeypatch, names):
    # The standard library leaves ID_LIKE out where the system's file does.
    release = {name: value for name, value in zip(("ID", "ID_LIKE"), names, strict=True) if value}
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    assert pillow.problem(prefix="/usr") == f"Pillow is missing; install it: {SYSTEMS[names]}"


@pytest.mark.usefixtures("no_pillow")
def test_for_any_other_python_it_comes_from_pip(monkeypatch):
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "debian"})
    assert pillow.problem(prefix="/usr/local").endswith("python -m pip install Pillow")


@pytest.mark.usefixtures("no_pillow")
def test_a_system_that_does_not_say_what_it_is_takes_pip(monkeypatch):
    def missing():
        raise FileNotFoundError

    monkeypatch.setattr(platform, "freedesktop_os_release", missing)
    assert pillow.problem(prefix="/usr").endswith("python -m pip install Pillow")


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
