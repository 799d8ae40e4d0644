"""The container_tokens file, against what Hadoop left on disk and its format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.files.credentials import Credentials
from yarn.containers import Token
from yarn.errors import InvalidArgumentException

texts = st.text(max_size=300)
tokens = st.builds(Token, st.binary(max_size=300), st.binary(max_size=300), texts, texts)


def test_a_file_without_entries_has_seven_bytes() -> None:
    """As a task without tokens finds it (env-directories.txt)."""
    assert Credentials().to_bytes() == b"HDTS\x00\x00\x00"


def test_a_file_of_one_token_has_the_length_that_hadoop_writes() -> None:
    """69 bytes, as an AM of the golden runs finds it: identifier 21, HMAC-SHA1 20, no alias and no service."""
    token = Token(b"i" * 21, b"p" * 20, "YARN_AM_RM_TOKEN", "")
    data = Credentials({"": token}).to_bytes()
    assert len(data) == 69
    assert data[:7] == b"HDTS\x00\x01\x00"


@pytest.mark.slow
@given(st.dictionaries(texts, tokens, max_size=3), st.dictionaries(texts, st.binary(max_size=300), max_size=3))
def test_credentials_are_read_as_written(tokens_by_alias: dict[str, Token], secrets: dict[str, bytes]) -> None:
    credentials = Credentials(tokens_by_alias, secrets)
    assert Credentials.from_bytes(credentials.to_bytes()) == credentials


@pytest.mark.parametrize(
    ("length", "prefix"), [(127, b"\x7f"), (128, b"\x8f\x80"), (256, b"\x8e\x01\x00"), (65536, b"\x8d\x01\x00\x00")]
)
def test_lengths_are_written_as_writable_utils_does(length: int, prefix: bytes) -> None:
    data = Credentials(secrets={"": b"x" * length}).to_bytes()
    assert data == b"HDTS\x00\x00\x01\x00" + prefix + b"x" * length


@given(st.binary(max_size=60), st.integers(0, 60))
def test_damaged_files_are_refused_or_read(noise: bytes, cut: int) -> None:
    for data in (noise, b"HDTS\x00" + noise, Credentials({"a": Token(b"i", b"p", "k", "s")}).to_bytes()[:cut]):
        try:
            Credentials.from_bytes(data)
        except InvalidArgumentException:
            continue


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"HDTX\x00\x00\x00", "start with b'HDTX', must be b'HDTS'"),
        (b"HDTS\x01\x00\x00", "format version 1, only 0 is supported"),
        (b"HDTS\x00\x8c\x7f\xff\xff\xff\x00", "claim 2147483647 entries, at most 10000 are accepted"),
        (b"HDTS\x00\x01\x05ab", "end after 9 bytes where 5 more should follow byte 7"),
        (b"HDTS\x00\x01\x02\xff\xfe", "is not UTF-8"),
    ],
)
def test_an_invalid_file_is_refused_with_the_reason(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidArgumentException, match=problem):
        Credentials.from_bytes(data)


def test_an_unset_field_means_no_credentials() -> None:
    assert Credentials.from_bytes(b"") == Credentials()


def test_a_token_is_found_by_its_kind() -> None:
    wanted = Token(b"i", b"p", "YARN_AM_RM_TOKEN", "")
    credentials = Credentials({"other": Token(b"", b"", "X", "")}).with_token("", wanted)
    assert credentials.token_of_kind("YARN_AM_RM_TOKEN") == wanted
    assert credentials.token_of_kind("Y") is None
