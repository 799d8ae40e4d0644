"""Errors with YARN's class names. The class states whose fault it is, `definite` whether the call may have had an
effect.

The Java class name is sent with an error (SerializedExceptionProto.class_name); a client gets the same Python class.
"""

from __future__ import annotations

from typing import ClassVar

_YARN = "org.apache.hadoop.yarn.exceptions"


class YarnException(Exception):
    """An error that a daemon returns to a caller: the caller's fault unless a subclass states otherwise.

    `definite`: True if the call surely has no effect, so that it can be tried again. The class has the default; an
    error that was received has the value that its server sent.
    """

    java_class: ClassVar[str] = f"{_YARN}.YarnException"
    definite: bool = True

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __eq__(self, other: object) -> bool:
        """Errors of the same class and message are equal, so that a replayed log has equal refusals."""
        return type(self) is type(other) and isinstance(other, YarnException) and self.args == other.args

    def __hash__(self) -> int:
        return hash((type(self), self.args))


class InternalError(Exception):
    """A bug in yarnling: an invariant does not hold. Never caught by a core."""


class InvalidArgumentException(YarnException):
    """A malformed message or argument (Java: IllegalArgumentException)."""

    java_class = "java.lang.IllegalArgumentException"


class InvalidIdException(InvalidArgumentException):
    """Text or a message is not a valid id (Java: IllegalArgumentException)."""


class ApplicationNotFoundException(YarnException):
    """The RM does not know the application."""

    java_class = f"{_YARN}.ApplicationNotFoundException"


class ApplicationAttemptNotFoundException(YarnException):
    """The RM does not know the attempt. If `allocate` raises it, the AM must exit."""

    java_class = f"{_YARN}.ApplicationAttemptNotFoundException"


class ContainerNotFoundException(YarnException):
    """The RM does not know the container, or no longer knows it."""

    java_class = f"{_YARN}.ContainerNotFoundException"


class ApplicationMasterNotRegisteredException(YarnException):
    """An AM called `allocate` or `finish` before `register`, or after a restart of the RM: register again."""

    java_class = f"{_YARN}.ApplicationMasterNotRegisteredException"


class InvalidApplicationMasterRequestException(YarnException):
    """An AM's call is not valid: a second register, a wrong response id, an unknown attempt."""

    java_class = f"{_YARN}.InvalidApplicationMasterRequestException"


class InvalidResourceRequestException(YarnException):
    """A resource request is not valid; nothing of its call was applied."""

    java_class = f"{_YARN}.InvalidResourceRequestException"


class InvalidLabelResourceRequestException(InvalidResourceRequestException):
    """A resource request has a node label expression that cannot be used."""

    java_class = f"{_YARN}.InvalidLabelResourceRequestException"


class InvalidResourceBlacklistRequestException(YarnException):
    """A change of the blacklist is not valid: it names `*`, or the list would become too long."""

    java_class = f"{_YARN}.InvalidResourceBlacklistRequestException"


class InvalidContainerReleaseException(YarnException):
    """An AM's release is not valid: a container of another attempt, or too many unknown containers."""

    java_class = f"{_YARN}.InvalidContainerReleaseException"


class InvalidContainerException(YarnException):
    """An AM tried to start a container that an earlier RM allocated."""

    java_class = f"{_YARN}.InvalidContainerException"


class NMNotYetReadyException(YarnException):
    """The NM is still recovering the container."""

    java_class = f"{_YARN}.NMNotYetReadyException"


class InvalidAuxServiceException(YarnException):
    """service_data names an auxiliary service that the NM does not have."""

    java_class = f"{_YARN}.InvalidAuxServiceException"


class ResourceNotFoundException(YarnException):
    """A resource has a type that the cluster does not know."""

    java_class = f"{_YARN}.ResourceNotFoundException"


class YARNFeatureNotEnabledException(YarnException):
    """The feature is disabled by the configuration."""

    java_class = f"{_YARN}.YARNFeatureNotEnabledException"


class AccessControlException(YarnException):
    """The caller may not do this, or the queue does not accept applications now."""

    java_class = "org.apache.hadoop.security.AccessControlException"


class InvalidToken(YarnException):
    """A token is missing, expired, wrongly signed or for something else."""

    java_class = "org.apache.hadoop.security.token.SecretManager$InvalidToken"


class StandbyException(YarnException):
    """The RM that was called is not the active one."""

    java_class = "org.apache.hadoop.ipc.StandbyException"


class ServiceFailedException(YarnException):
    """An RM could not become active or standby."""

    java_class = "org.apache.hadoop.ha.ServiceFailedException"


class ServerUnavailable(YarnException):
    """No reply: the server was not reached (`definite`), or did not answer after the call was sent (not definite)."""

    java_class = "java.net.ConnectException"


class CallOutcomeUnknown(ServerUnavailable):
    """The call was sent and no reply came: the call may have had its effect."""

    java_class = "java.net.SocketTimeoutException"
    definite = False


class RemoteError(YarnException):
    """The server failed in a way that has no class of its own here; the effect of the call is unknown."""

    java_class = "java.lang.RuntimeException"
    definite = False


def _all_subclasses(cls: type[YarnException]) -> list[type[YarnException]]:
    direct = cls.__subclasses__()
    return direct + [below for sub in direct for below in _all_subclasses(sub)]


def class_of(java_class: str) -> type[YarnException]:
    """The Python class for a Java class name; RemoteError if there is none.

    If several classes have the same Java name, the general one is returned (InvalidArgumentException for
    IllegalArgumentException).
    """
    if java_class == YarnException.java_class:
        return YarnException
    for candidate in _all_subclasses(YarnException):
        if candidate.java_class == java_class:
            return candidate
    return RemoteError
