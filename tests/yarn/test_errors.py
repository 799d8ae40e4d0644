"""Errors have Hadoop's class names, in both directions."""

from yarn import errors
from yarn.errors import RemoteError, YarnException, class_of


def all_error_classes() -> list[type[YarnException]]:
    return [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, YarnException)]


def test_each_class_is_found_by_its_java_name() -> None:
    for cls in all_error_classes():
        assert class_of(cls.java_class).java_class == cls.java_class


def test_a_class_without_a_counterpart_is_a_remote_error_of_unknown_effect() -> None:
    assert class_of("java.io.IOException") is RemoteError
    assert not RemoteError("boom").definite


def test_a_refusal_is_definite_and_has_its_message() -> None:
    error = errors.ApplicationNotFoundException("Application with id 'x' doesn't exist in RM.")
    assert error.definite
    assert error.message == "Application with id 'x' doesn't exist in RM."
    assert YarnException().message == ""
