"""Documents as JSON and XML."""

from __future__ import annotations

import pytest

from wire.web.document import Document, Element, Entries, JavaDouble, Style, json_text, many, xml_text
from yarn.java.binary32 import double_text, f32

CONTENT = Element(
    {
        "name": 'a "b" <c> & d\n\x01é',
        "count": 7,
        "share": 60.000004,
        "cpu": JavaDouble(f32(1.99)),
        "on": True,
        "absent": None,
        "none": many([]),
        "one": many(["x"]),
        "empty": Element({}),
        "map": Entries((("k", "1"), ("l", "2"))),
        "single": Entries((("k", "1"),)),
    },
    type="kind",
)


def test_natural_json_keeps_types_lists_and_the_repeated_name_of_a_maps_entries() -> None:
    assert json_text(Document("root", CONTENT)) == (
        '{"root":{"type":"kind","name":"a \\"b\\" <c> & d\\n\\u0001é","count":7,"share":60.000004,'
        '"cpu":1.9900000095367432,"on":true,"one":["x"],"empty":{},'
        '"map":{"entry":{"key":"k","value":"1"},"entry":{"key":"l","value":"2"}},'
        '"single":{"entry":{"key":"k","value":"1"}}}}'
    )


def test_unwrapped_json_has_no_root() -> None:
    assert json_text(Document("root", Element({"a": 1}), Style.UNWRAPPED)) == '{"a":1}'


def test_mapped_json_writes_numbers_as_texts_and_a_list_of_one_as_its_element() -> None:
    assert json_text(Document("root", CONTENT, Style.MAPPED)) == (
        '{"name":"a \\"b\\" <c> & d\\n\\u0001é","count":"7","share":"60.000004","cpu":"1.9900000095367432",'
        '"on":"true","one":"x","empty":null,"map":{"entry":[{"key":"k","value":"1"},{"key":"l","value":"2"}]},'
        '"single":{"entry":{"key":"k","value":"1"}}}'
    )
    assert json_text(Document("root", Element({"none": many([])}), Style.MAPPED)) == "{}"


def test_xml_declares_types_once_and_writes_no_control_characters() -> None:
    inner = Element({"queue": many([Element({"a": 1}, type="leaf")])}, type="scheduler")
    assert xml_text(Document("info", inner)) == (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
        '<info xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="scheduler">'
        '<queue xsi:type="leaf"><a>1</a></queue></info>'
    )
    text = xml_text(Document("root", CONTENT))
    assert '<name>a "b" &lt;c&gt; &amp; d\n\ufffdé</name>' in text
    assert "<one>x</one><empty/>" in text
    assert "<map><entry><key>k</key><value>1</value></entry><entry><key>l</key>" in text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (1e-4, "1.0E-4"),
        (1.25e7, "1.25E7"),
        (9999999.0, "9999999.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_a_double_is_written_as_java_writes_it(number: float, text: str) -> None:
    assert double_text(number) == text
