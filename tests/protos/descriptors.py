"""Protobuf descriptors as lines of hadoop_messages.txt, so that ours and Hadoop's compare as text."""

import json
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import (
    Descriptor,
    EnumDescriptor,
    FieldDescriptor,
    FileDescriptor,
    ServiceDescriptor,
)
from google.protobuf.descriptor_pb2 import FieldDescriptorProto

HADOOP_MESSAGES = Path(__file__).with_name("hadoop_messages.txt")

# {our full name: Hadoop's}. The registry of protobuf in Python is one for all files, and a value of an enum is
# registered beside the enum: NORMAL of DecommissionTypeProto would be that of NodeActionProto.
MOVED = {"hadoop.yarn.RefreshNodesRequestProto.DecommissionTypeProto": "hadoop.yarn.DecommissionTypeProto"}

Shapes = dict[str, tuple[str, ...]]
"""{"message|enum|service full.name": its fields, values or methods as written in hadoop_messages.txt}."""


def hadoop_shapes() -> Shapes:
    shapes: Shapes = {}
    package = ""
    for line in HADOOP_MESSAGES.read_text(encoding="utf-8").splitlines():
        if line.startswith("file "):
            package = line.split()[2]
        elif line and not line.startswith("#"):
            head, _, members = line.partition(":")
            kind, name = head.split()
            shapes[f"{kind} {package}.{name}"] = tuple(members.strip().split("; ")) if members else ()
    return shapes


def shapes_of(file: FileDescriptor) -> Shapes:
    shapes: Shapes = {}
    for message in all_messages(file):
        shapes[f"message {hadoop_name(message)}"] = tuple(field_text(field) for field in message.fields)
    for enum in all_enums(file):
        shapes[f"enum {hadoop_name(enum)}"] = tuple(f"{value.number} {value.name}" for value in enum.values)
    for service in file.services_by_name.values():
        shapes[f"service {hadoop_name(service)}"] = method_texts(service)
    return shapes


def all_messages(file: FileDescriptor) -> Iterator[Descriptor]:
    """Every message of the file, nested ones after the one they are in."""
    waiting = list(file.message_types_by_name.values())
    while waiting:
        message = waiting.pop(0)
        yield message
        waiting[:0] = message.nested_types


def all_enums(file: FileDescriptor) -> Iterator[EnumDescriptor]:
    yield from file.enum_types_by_name.values()
    for message in all_messages(file):
        yield from message.enum_types


def field_text(field: FieldDescriptor) -> str:
    label = "req " if field.is_required else "rep " if field.is_repeated else ""
    default = f"={default_text(field)}" if field.has_default_value else ""
    packed = " packed" if field.is_packed else ""
    return f"{field.number} {label}{field.name}:{type_text(field)}{packed}{default}"


def type_text(field: FieldDescriptor) -> str:
    if named := field.message_type or field.enum_type:
        return hadoop_name(named).removeprefix("hadoop.yarn.")
    return FieldDescriptorProto.Type.DESCRIPTOR.values_by_number[field.type].name.removeprefix("TYPE_").lower()


def default_text(field: FieldDescriptor) -> str:
    if field.enum_type:
        return field.enum_type.values_by_number[field.default_value].name
    return json.dumps(field.default_value)


def method_texts(service: ServiceDescriptor) -> tuple[str, ...]:
    package = f"{service.file.package}."
    texts = []
    for method in service.methods:
        request, response = (hadoop_name(end).removeprefix(package) for end in (method.input_type, method.output_type))
        streams = " streaming" if method.client_streaming or method.server_streaming else ""
        texts.append(f"{method.name}({request}) -> {response}{streams}")
    return tuple(texts)


def hadoop_name(named: Descriptor | EnumDescriptor | ServiceDescriptor) -> str:
    return MOVED.get(named.full_name, named.full_name)


def faults(ours: Shapes, hadoop: Shapes) -> list[str]:
    """The differences of ours: messages and enums must be the same throughout, services may lack methods."""
    found = []
    for name, members in ours.items():
        if name not in hadoop:
            found.append(f"{name}: Hadoop has none")
            continue
        found += [f"{name}: `{member}` is not Hadoop's" for member in members if member not in hadoop[name]]
        if not name.startswith("service "):
            found += [f"{name}: `{member}` is missing" for member in hadoop[name] if member not in members]
    return found
