"""Refusals of the web services: Hadoop's RemoteException bodies and their statuses (GenericExceptionHandler)."""

from __future__ import annotations

from yarn.errors import AccessControlException, InvalidArgumentException, InvalidToken, YarnException

_WEBAPP = "org.apache.hadoop.yarn.webapp"

BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, UNAVAILABLE = 400, 401, 403, 404, 503


class WebException(Exception):
    """An error body: the Java class and its message, None for none; `status` is the HTTP status."""

    def __init__(self, status: int, java_class: str, message: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.java_class = java_class
        self.message = message


class PlainRefusal(Exception):
    """An error whose body is a bare text, under the content type of the request, as some of Hadoop's are."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def bad_request(message: str, cause: str = "java.lang.Exception") -> WebException:
    """A BadRequestException; its message names the class of its cause."""
    return WebException(BAD_REQUEST, f"{_WEBAPP}.BadRequestException", f"{cause}: {message}")


def not_found(message: str, cause: str = "java.lang.Exception") -> WebException:
    """A NotFoundException."""
    return WebException(NOT_FOUND, f"{_WEBAPP}.NotFoundException", f"{cause}: {message}")


def forbidden(message: str) -> WebException:
    """A ForbiddenException."""
    return WebException(FORBIDDEN, f"{_WEBAPP}.ForbiddenException", f"java.lang.Exception: {message}")


def illegal_argument(message: str) -> WebException:
    """An exception of Java's own that reaches the caller as it is."""
    return WebException(BAD_REQUEST, "java.lang.IllegalArgumentException", message)


def number_format(message: str) -> WebException:
    """A parameter that Java cannot read as a number."""
    return WebException(BAD_REQUEST, "java.lang.NumberFormatException", message)


def web_application_exception(message: str | None = None, status: int = UNAVAILABLE) -> WebException:
    """Errors that JAX-RS raises itself: wrong methods and media types without message, unreadable bodies with one."""
    return WebException(status, "javax.ws.rs.WebApplicationException", message)


def undeclared_throwable() -> WebException:
    """A refusal that Hadoop's web layer did not expect from its own client service."""
    return WebException(UNAVAILABLE, "java.lang.reflect.UndeclaredThrowableException", None)


def of_yarn(error: YarnException) -> WebException:
    """The body for an error that a service raised and its handler did not turn into another one."""
    return WebException(_status_of(error), error.java_class, error.message)


def _status_of(error: YarnException) -> int:
    if isinstance(error, AccessControlException | InvalidToken):
        return UNAUTHORIZED
    return BAD_REQUEST if isinstance(error, InvalidArgumentException) else UNAVAILABLE
