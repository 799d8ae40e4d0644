"""A configuration reads, expands and layers values as org.apache.hadoop.conf.Configuration does."""

import pytest

from yarn.configuration import (
    DEFAULT,
    OVERRIDE,
    Configuration,
    ConfigurationException,
    Entry,
    Origin,
    Severity,
)


def test_a_value_has_its_origin() -> None:
    conf = Configuration({"a": Entry("1", Origin("yarn-site.xml", 4))}).overridden({"b": "2"})
    assert str(conf.origin("a")) == "yarn-site.xml:4"
    assert conf.origin("b") == OVERRIDE
    assert conf.origin("c") == DEFAULT
    assert list(conf) == ["a", "b"]


def test_an_unset_key_gives_the_default() -> None:
    conf = Configuration.of({})
    assert conf.get("k") is None
    assert conf.get_int("k", 7) == 7
    assert conf.get_float("k", 0.1) == 0.1
    assert conf.get_bool("k", True) is True
    assert conf.get_strings("k") == ()


def test_typed_values() -> None:
    conf = Configuration.of({"i": " 5 ", "f": "0.1", "b": "True", "s": "x, y"})
    assert conf.get("i") == " 5 "
    assert conf.get_trimmed("i") == "5"
    assert conf.get_int("i", 0) == conf.get_long("i", 0) == 5
    assert conf.get_float("f", 0) == 0.10000000149011612
    assert conf.get_bool("b", False) is True
    assert conf.get_strings("s") == ("x", "y")


def test_a_text_that_is_not_a_boolean_means_the_default() -> None:
    """Configuration.getBoolean warns and takes the default."""
    conf = Configuration.of({"b": "yes"})
    assert conf.get_bool("b", True) is True
    assert conf.get_bool("b", False) is False


def test_a_value_that_is_not_valid_is_a_fault_with_origin_and_remedy() -> None:
    conf = Configuration({"yarn.x": Entry("ten", Origin("yarn-site.xml", 12))})
    with pytest.raises(ConfigurationException) as refusal:
        conf.get_int("yarn.x", 1)
    (fault,) = refusal.value.faults
    assert fault.key == "yarn.x"
    assert fault.value == "ten"
    assert fault.severity is Severity.ERROR
    assert str(fault) == "yarn-site.xml:12: yarn.x = 'ten': not a whole number (write a whole number)"


def test_keys_with_a_prefix_are_in_the_order_they_were_set() -> None:
    conf = Configuration.of({"q.b": "1", "x": "2", "q.a": "3"})
    assert conf.keys("q.") == ("q.b", "q.a")
    assert conf.values("q.") == {"q.b": "1", "q.a": "3"}


def test_variables_are_replaced() -> None:
    conf = Configuration.of({"host": "rm1", "port": "80${digit}", "digit": "32", "address": "${host}:${port}"})
    assert conf.get("address") == "rm1:8032"


def test_a_variable_of_an_unset_key_stands_for_its_default() -> None:
    conf = Configuration.of({"address": "${host}:1"})
    assert conf.get("address") == "${host}:1"
    with_defaults = conf.with_defaults({"host": "0.0.0.0"})
    assert with_defaults.get("address") == "0.0.0.0:1"
    assert with_defaults.get("host") is None


@pytest.mark.parametrize("text", ["${unbound}", "${}", "$x", "{x}", "${x y}", "${x", "$ {x}", "a$"])
def test_text_that_is_not_a_known_variable_stays(text: str) -> None:
    assert Configuration.of({"x": "1"}).expand(text) == text


def test_a_variable_inside_an_incomplete_one_is_found() -> None:
    assert Configuration.of({"x": "1"}).expand("${a${x}") == "${a1"


def test_a_value_that_refers_to_itself_stays_as_written() -> None:
    conf = Configuration.of({"a": "x${a}", "b": "${c}", "c": "${b}"})
    assert conf.get("a") == "x${a}"
    with pytest.raises(ConfigurationException, match="more than 20 replacements"):
        conf.get("b")


def test_a_later_file_wins_unless_the_key_is_final() -> None:
    lower = Configuration(
        {"a": Entry("1", Origin("core-site.xml", 2), final=True), "b": Entry("1", Origin("core-site.xml", 6))}
    )
    both = lower.overlaid(Configuration.of({"a": "2", "b": "2", "c": "2"}, "yarn-site.xml"))
    assert (both.get("a"), both.get("b"), both.get("c")) == ("1", "2", "2")
    (note,) = both.notes
    assert note.severity is Severity.WARNING
    assert "core-site.xml:2 sets '1' as final" in str(note)
    assert lower.get("b") == "1"


def test_the_program_may_override_a_final_key() -> None:
    """Configuration.set ignores final; only loading a file respects it."""
    conf = Configuration({"a": Entry("1", Origin("x"), final=True)}).overridden({"a": "2"})
    assert conf.get("a") == "2"
    assert conf.notes == ()


def test_equal_by_content() -> None:
    assert Configuration.of({"a": "1"}) == Configuration.of({"a": "1"})
    assert Configuration.of({"a": "1"}) != Configuration.of({"a": "1"}, "file")
