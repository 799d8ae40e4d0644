"""A submission as REST clients send it, read into the record that RPCs carry.

The record passes through the codec of the RPC before it is used, so that the limits of the RPC hold here too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

from wire.files.credentials import MAGIC, VERSION, Credentials
from wire.rpc import Rpc
from wire.web.errors import bad_request
from wire.web.records import parse_long
from wire.web.request import Body, entries_of, member, members, text_of
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ANY, ContainerLaunchContext, LocalResource, ResourceRequest, ServiceData, Token
from yarn.errors import InvalidIdException, YarnException
from yarn.ids import ApplicationId
from yarn.resource import Resource
from yarn.states import ApplicationAccessType, LocalResourceType, LocalResourceVisibility

Request = TypeVar("Request")
Member = TypeVar("Member", bound=Enum)


def within_limits(rpc: Rpc[Request, Any], request: Request) -> Request:
    """The request as the RPC would deliver it. Raises WebException for one that it would not carry."""
    try:
        return rpc.request.decode(rpc.request.encode(request))
    except (ValueError, TypeError) as error:
        raise bad_request(f"{error}"[:500], "java.lang.IllegalArgumentException") from None
    except YarnException as error:
        raise bad_request(error.message, error.java_class) from None


def read_submission(
    body: Mapping[str, Body], maximum: Resource, *, lower_case_tags: bool
) -> ApplicationSubmissionContext:
    """The submission of a body. `maximum`: the configured largest container. Raises WebException."""
    text = text_of(body, "application-id") or ""
    try:
        application_id = ApplicationId.parse(text)
    except InvalidIdException:
        raise bad_request(f"Could not parse application id {text[:100]}") from None
    resource = _resource(member(body, "resource"))
    if resource.vcores > maximum.vcores:
        raise bad_request("Requested more cores than configured max")
    if resource.memory_mb > maximum.memory_mb:
        raise bad_request("Requested more memory than configured max")
    tags = map(str, members(member(body, "application-tags"), "tag"))
    am_label = text_of(body, "am-container-node-label-expression")
    return ApplicationSubmissionContext(
        application_id,
        am_container=_launch_context(member(body, "am-container-spec")),
        resource=resource,
        name=text_of(body, "application-name") or "",
        queue=text_of(body, "queue") or "default",
        type=text_of(body, "application-type") or "",
        priority=whole_number(body, "priority", -1),
        unmanaged_am=_flag(body, "unmanaged-AM"),
        max_app_attempts=whole_number(body, "max-app-attempts", 0),
        keep_containers_across_attempts=_flag(body, "keep-containers-across-application-attempts"),
        attempt_failures_validity_interval_ms=whole_number(body, "attempt-failures-validity-interval", -1),
        tags=frozenset(tag.lower() if lower_case_tags else tag for tag in tags),
        node_label_expression=text_of(body, "app-node-label-expression") or None,
        am_requests=(ResourceRequest(0, ANY, resource, 1, label=am_label),) if am_label else (),
    )


def whole_number(body: Mapping[str, Body], name: str, default: int) -> int:
    """A field that is a whole number, or its text. Raises WebException."""
    text = text_of(body, name)
    if text is None:
        return default
    number = parse_long(text)
    if number is None:
        raise bad_request(f'For input string: "{text[:100]}"', "java.lang.NumberFormatException")
    return number


def read_resource(body: Mapping[str, Body]) -> Resource:
    """A ResourceInfo. Raises WebException."""
    return _resource(body)


def _resource(body: Mapping[str, Body]) -> Resource:
    amounts = {"memory-mb": whole_number(body, "memory", 0), "vcores": whole_number(body, "vCores", 0)}
    for information in members(member(body, "resourceInformations"), "resourceInformation"):
        if isinstance(information, dict) and (name := text_of(information, "name")):
            amounts.setdefault(name, whole_number(information, "value", 0))
    return Resource.of(amounts)


def _launch_context(body: Mapping[str, Body]) -> ContainerLaunchContext:
    return ContainerLaunchContext(
        commands=tuple(map(str, members(member(body, "commands"), "command"))),
        environment={key: _text(value) for key, value in entries_of(member(body, "environment")).items()},
        local_resources={
            key: _local_resource(value) for key, value in entries_of(member(body, "local-resources")).items()
        },
        tokens=_credentials(member(body, "credentials")).to_bytes(),
        service_data={
            key: ServiceData(_bytes(_text(value)))
            for key, value in entries_of(member(body, "service-data")).items()
            if value
        },
        application_acls={
            _member(ApplicationAccessType, key): _text(value)
            for key, value in entries_of(member(body, "application-acls")).items()
        },
    )


def _local_resource(body: Body) -> LocalResource:
    fields = body if isinstance(body, dict) else {}
    return LocalResource(
        text_of(fields, "resource") or "",
        whole_number(fields, "size", 0),
        whole_number(fields, "timestamp", 0),
        _member(LocalResourceType, text_of(fields, "type") or "FILE"),
        _member(LocalResourceVisibility, text_of(fields, "visibility") or "APPLICATION"),
        text_of(fields, "pattern"),
    )


def _credentials(body: Mapping[str, Body]) -> Credentials:
    tokens, secrets = entries_of(member(body, "tokens")), entries_of(member(body, "secrets"))
    return Credentials(
        {alias: _token(_text(value)) for alias, value in tokens.items()},
        {alias: _bytes(_text(value)) for alias, value in secrets.items()},
    )


def _token(text: str) -> Token:
    """A token as Token.encodeToUrlString writes it: its part of a credentials file, in base64."""
    one_without_alias, no_secrets = b"\x01\x00", b"\x00"
    try:
        file = MAGIC + bytes([VERSION]) + one_without_alias + _bytes(text) + no_secrets
        (token,) = Credentials.from_bytes(file).tokens.values()
    except (YarnException, ValueError, IndexError) as error:
        raise bad_request(f"Could not parse credentials data; exception message = {error}") from None
    return token


def _bytes(text: str) -> bytes:
    """Base64 in either alphabet, with or without padding."""
    plain = text.strip().replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise bad_request("not valid base64", "java.lang.IllegalArgumentException") from None


def _member(kind: type[Member], name: str) -> Member:
    try:
        return kind[name]
    except KeyError:
        valid = ", ".join(kind.__members__)
        raise bad_request(f"{name[:100]!r} is not one of [{valid}]", "java.lang.IllegalArgumentException") from None


def _flag(body: Mapping[str, Body], name: str) -> bool:
    return (text_of(body, name) or "").lower() == "true"


def _text(value: Body) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None or isinstance(value, dict | list) else str(value)
