"""Our messages are Hadoop's: what one side writes the other reads, field by field."""

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from tests.protos.descriptors import MOVED, Shapes, faults, hadoop_shapes, shapes_of
from wire.generated import security_pb2

PROTOS = Path(__file__).resolve().parents[2] / "protos"
OWN = "yarnling"
"""The package of the messages that Hadoop does not have."""


def our_files() -> list[FileDescriptor]:
    names = sorted(path.stem for path in PROTOS.glob("*.proto"))
    files = [importlib.import_module(f"wire.generated.{name}_pb2").DESCRIPTOR for name in names]
    return [file for file in files if file.package != OWN]


HADOOP = hadoop_shapes()
FILES = our_files()
Change = Callable[[FileDescriptorProto], None]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_message_enum_and_service_is_as_hadoop_has_it(file: FileDescriptor) -> None:
    ours = shapes_of(file)
    assert ours
    assert faults(ours, HADOOP) == []


def test_the_protocols_are_served_under_hadoops_names() -> None:
    services = {name.removeprefix("service ") for file in FILES for name in shapes_of(file) if "service " in name}
    assert services == {"hadoop.common.HAServiceProtocolService"} | {
        f"hadoop.yarn.{protocol}Service"
        for protocol in (
            "ApplicationClientProtocol",
            "ApplicationMasterProtocol",
            "ContainerManagementProtocol",
            "ResourceTracker",
            "ResourceManagerAdministrationProtocol",
        )
    }


@pytest.mark.parametrize(("ours", "theirs"), MOVED.items())
def test_a_moved_enum_would_still_clash_at_hadoops_place(ours: str, theirs: str) -> None:
    """When nothing clashes any more, the exception has lost its reason."""
    values = {value.split()[1] for value in HADOOP[f"enum {theirs}"]}
    taken = {value.name for file in FILES for enum in file.enum_types_by_name.values() for value in enum.values}
    assert values & taken, f"move {ours} back to {theirs}"


def renumber(file: FileDescriptorProto) -> None:
    token(file, "kind").number = 30


def retype(file: FileDescriptorProto) -> None:
    token(file, "kind").type = FieldDescriptorProto.TYPE_BYTES


def relabel(file: FileDescriptorProto) -> None:
    token(file, "kind").label = FieldDescriptorProto.LABEL_OPTIONAL


def rename(file: FileDescriptorProto) -> None:
    token(file, "kind").name = "sort"


def give_default(file: FileDescriptorProto) -> None:
    relabel(file)
    token(file, "kind").default_value = "ContainerToken"


def drop(file: FileDescriptorProto) -> None:
    file.message_type[0].field.remove(token(file, "kind"))


def invent(file: FileDescriptorProto) -> None:
    file.message_type.add(name="TicketProto")


@pytest.mark.parametrize("change", [renumber, retype, relabel, rename, give_default, drop, invent])
def test_a_change_of_any_property_is_a_fault(change: Change) -> None:
    assert faults(changed(change), HADOOP) != []


def changed(change: Change) -> Shapes:
    """Shapes of security.proto after `change`, in a registry of its own."""
    file = FileDescriptorProto()
    security_pb2.DESCRIPTOR.CopyToProto(file)
    change(file)
    pool = DescriptorPool()
    pool.Add(file)
    return shapes_of(pool.FindFileByName(file.name))


def token(file: FileDescriptorProto, field: str) -> FieldDescriptorProto:
    message = file.message_type[0]
    assert message.name == "TokenProto"
    return next(candidate for candidate in message.field if candidate.name == field)
