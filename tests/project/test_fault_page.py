"""The page of faults is what the tests say."""

from __future__ import annotations

import importlib.util

import pytest

from tests.support import ROOT

spec = importlib.util.spec_from_file_location("fault_page", ROOT / "scripts" / "fault_page.py")
fault_page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fault_page)


@pytest.fixture(scope="module")
def page():
    """The page as the tests say it: all of them are read for it."""
    return fault_page.page()


def test_the_page_is_what_the_tests_say(page):
    assert fault_page.PAGE.read_text() == page, "run `python scripts/fault_page.py`"


def test_every_section_has_a_row(page):
    assert [section for section in fault_page.SECTIONS if f"\n## {section}\n" not in page] == []


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ('"Steps", "it fails", happens="an error"', "not complete: 'promise'"),
        ('"Steps", happens="an error", promise="none"', "not complete"),
        ('"Nowhere", "it fails", happens="an error", promise="none"', "unknown 'Nowhere'"),
        ('"Steps", "it fails", happens="an error", promise="none", more="1"', r"unknown \['more'\]"),
    ],
)
def test_a_mark_that_says_too_little_or_too_much(tmp_path, mark, message):
    path = tmp_path / "test_it.py"
    path.write_text(f"import pytest\n\n@pytest.mark.fault({mark})\ndef test_one():\n    assert True\n")
    with pytest.raises(ValueError, match=f"test_it.py, test_one: .*{message}"):
        list(fault_page.faults_of(path))
