"""Records survive encoding and decoding; bytes that are not a valid message are refused."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.wire.random_records import PROTOCOLS, random_record, random_value, record_types
from wire.codec import containers as tokens
from wire.codec.basic import read_container_id, read_node_id
from wire.codec.containers import LAUNCH_CONTEXT_LENGTH_MAX, read_url, write_launch_context, write_url
from wire.codec.fields import TEXT_LENGTH_MAX
from wire.codec.message_codec import MessageCodec
from wire.errors import MESSAGE_LENGTH_MAX, read_exception, write_exception
from wire.generated import yarn_protos_pb2 as pb
from wire.generated import yarn_service_protos_pb2 as service_pb
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.pack import PackTrackerProtocol
from wire.rpc import Rpc
from yarn.applications import ApplicationReport, ApplicationResourceUsage
from yarn.containers import (
    AMRMTokenIdentifier,
    ContainerLaunchContext,
    ContainerTokenIdentifier,
    NMTokenIdentifier,
    ResourceRequest,
)
from yarn.errors import InvalidArgumentException, RemoteError, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.protocols.admin import ResourceOption
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    StartContainersResponse,
    StopContainersResponse,
)
from yarn.protocols.master import AllocateRequest
from yarn.queues import QueueInfo
from yarn.resource import INT64_MAX, NONE, Resource
from yarn.states import YarnApplicationState

SEEDS = st.integers(0, (1 << 32) - 1)


RPCS = [rpc for protocol in PROTOCOLS for rpc in protocol.rpcs]


def _codecs() -> list[Any]:
    """(codec, type of its record) of every request and reply."""
    codecs = []
    for rpc in RPCS:
        if rpc in PackTrackerProtocol.rpcs:
            # Its numbers of nodes must be valid, which random ones are not; tests/pack has its messages.
            continue
        request, reply = record_types(rpc)
        codecs.append(pytest.param(rpc.request, request, id=f"{rpc.method}-request"))
        codecs.append(pytest.param(rpc.reply, reply, id=f"{rpc.method}-reply"))
    return codecs


def _comparable(record: Any) -> Any:
    """Errors are equal if their class and message are."""
    if isinstance(record, (StartContainersResponse, StopContainersResponse, GetContainerStatusesResponse)):
        failed = {key: (type(error), error.message) for key, error in record.failed.items()}
        rest = {name: getattr(record, name) for name in record.__slots__ if name != "failed"}
        return {**rest, "failed": failed}
    return record


@pytest.mark.parametrize(("codec", "kind"), _codecs())
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_every_record_survives_the_wire(codec: MessageCodec[Any], kind: Any, seed: int) -> None:
    record = random_value(random.Random(seed), kind)
    assert _comparable(codec.decode(codec.encode(record))) == _comparable(record)


@settings(max_examples=50, deadline=None)
@given(seed=SEEDS)
def test_identifiers_survive_the_wire(seed: int) -> None:
    rng = random.Random(seed)
    amrm = random_record(rng, AMRMTokenIdentifier)
    assert tokens.read_amrm_identifier(tokens.write_amrm_identifier(amrm)) == amrm
    nm = random_record(rng, NMTokenIdentifier)
    assert tokens.read_nm_identifier(tokens.write_nm_identifier(nm)) == nm
    container = random_record(rng, ContainerTokenIdentifier)
    assert tokens.read_container_identifier(tokens.write_container_identifier(container)) == container


@pytest.mark.parametrize(("codec", "kind"), _codecs())
def test_damaged_messages_are_read_or_refused(codec: MessageCodec[Any], kind: Any) -> None:
    """Bytes flipped, cut and joined: nothing but InvalidArgumentException comes of it."""
    rng = random.Random(f"{codec.proto.DESCRIPTOR.name}")
    whole = _example(codec)
    for _ in range(300):
        damaged = bytearray(whole or rng.randbytes(30))
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        cut = bytes(damaged[: rng.randint(0, len(damaged))]) + rng.randbytes(rng.choice([0, 0, 5]))
        with suppress(InvalidArgumentException):
            codec.decode(cut)


def _example(codec: MessageCodec[Any]) -> bytes:
    """A message with something in most of its fields, two levels down."""
    proto: Any = codec.proto()
    _fill(proto, depth=4)
    data: bytes = proto.SerializePartialToString()
    return data


def _fill(proto: Any, depth: int) -> None:
    for field in proto.DESCRIPTOR.fields:
        present = getattr(proto, field.name)
        is_repeated = hasattr(present, "append")  # protobuf 6.30 has no field.is_repeated.
        if field.message_type is not None:
            if depth == 0:
                continue
            _fill(present.add() if is_repeated else present, depth - 1)
            if not is_repeated:
                present.SetInParent()
        elif is_repeated:
            present.append(_scalar(field))
        else:
            setattr(proto, field.name, _scalar(field))


def _scalar(field: Any) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values[0].number
    return {field.CPPTYPE_STRING: b"x" if field.type == field.TYPE_BYTES else "x", field.CPPTYPE_BOOL: True}.get(
        field.cpp_type, 1
    )


# Fields that are left out, and refusals


def test_bytes_that_are_not_a_message_are_refused_with_its_name() -> None:
    with pytest.raises(InvalidArgumentException, match="3 bytes cannot be read as AllocateRequestProto"):
        ApplicationMasterProtocol.allocate.request.decode(b"\xff\xff\xff")


def test_a_required_field_is_named_when_it_is_missing() -> None:
    data = service_pb.SignalContainerRequestProto().SerializePartialToString()
    with pytest.raises(InvalidArgumentException, match="SignalContainerRequestProto lacks container_id, command"):
        ContainerManagementProtocol.signal_to_container.request.decode(data)


def test_an_id_without_its_application_is_refused() -> None:
    with pytest.raises(InvalidArgumentException, match=r"ContainerIdProto[.]app_attempt_id is missing"):
        read_container_id(pb.ContainerIdProto(id=1))


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_node_has_a_port(port: int) -> None:
    with pytest.raises(InvalidArgumentException, match=f"NodeIdProto.port is {port}, must be 0 to 65535"):
        read_node_id(pb.NodeIdProto(host="h", port=port))


def test_text_that_is_not_utf8_is_refused() -> None:
    proto = pb.NodeIdProto.FromString(b"\x0a\x02\xff\xfe\x10\x01")
    with pytest.raises(InvalidArgumentException, match=r"NodeIdProto[.]host is not UTF-8"):
        read_node_id(proto)


def test_a_text_has_a_bound() -> None:
    proto = service_pb.RegisterApplicationMasterRequestProto(host="x" * (TEXT_LENGTH_MAX + 1))
    with pytest.raises(InvalidArgumentException, match=f"at most {TEXT_LENGTH_MAX} are accepted"):
        ApplicationMasterProtocol.register_application_master.request.decode(proto.SerializeToString())


def test_the_number_of_resource_requests_is_limited() -> None:
    proto = service_pb.AllocateRequestProto()
    proto.ask.extend([pb.ResourceRequestProto()] * 100_001)
    with pytest.raises(InvalidArgumentException, match=r"ask has 100001 entries, at most 100000"):
        ApplicationMasterProtocol.allocate.request.decode(proto.SerializeToString())


@pytest.mark.parametrize("field", ["application_types", "users", "queues", "applicationTags"])
def test_a_filter_of_applications_has_a_bound(field: str) -> None:
    proto = service_pb.GetApplicationsRequestProto()
    getattr(proto, field).extend([""] * 1001)
    with pytest.raises(InvalidArgumentException, match=f"{field} has 1001 entries, at most 1000"):
        ApplicationClientProtocol.get_applications.request.decode(proto.SerializeToString())


def test_a_launch_context_has_a_bound() -> None:
    """YARN-8972: the RM keeps every submission."""
    context = ContainerLaunchContext(environment={f"V{n}": "x" * 100_000 for n in range(11)})
    proto = service_pb.StartContainersRequestProto()
    write_launch_context(context, proto.start_container_request.add().container_launch_context)
    with pytest.raises(InvalidArgumentException, match=f"at most {LAUNCH_CONTEXT_LENGTH_MAX} are accepted"):
        ContainerManagementProtocol.start_containers.request.decode(proto.SerializeToString())


def test_a_missing_field_is_read_as_hadoop_reads_it() -> None:
    """Unset numbers are 0; the rest are the defaults of yarn_protos.proto."""
    proto = service_pb.AllocateRequestProto()
    proto.ask.add(resource_name="*").capability.SetInParent()
    request = ApplicationMasterProtocol.allocate.request.decode(proto.SerializeToString())
    assert request == AllocateRequest(0, 0.0, (ResourceRequest(0, "*", NONE, 0),))
    assert request.asks[0].relax_locality
    assert request.asks[0].allocation_request_id == -1
    assert request.asks[0].label is None


def test_an_unknown_enum_number_counts_as_not_sent() -> None:
    proto = service_pb.FinishApplicationMasterRequestProto.FromString(b"\x18\x63")
    with pytest.raises(InvalidArgumentException, match="final_application_status is missing or not one of UNDEFINED"):
        ApplicationMasterProtocol.finish_application_master.request.decode(proto.SerializeToString())


def test_an_attempt_number_of_minus_one_means_no_attempt_yet() -> None:
    attempt_id = ApplicationAttemptId(ApplicationId(1, 1), -1)
    assert (
        ApplicationClientProtocol.fail_application_attempt.request.decode(
            ApplicationClientProtocol.fail_application_attempt.request.encode(attempt_id)
        )
        == attempt_id
    )


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("file:/a b%20#c", ("file", "", -1, "/a b%20#c")),
        ("file:///data/words.txt", ("file", "", -1, "/data/words.txt")),
        ("hdfs://nn:8020/x", ("hdfs", "nn", 8020, "/x")),
        ("/plain", ("", "", -1, "/plain")),
    ],
)
def test_urls_are_split_as_in_hadoop(url: str, parts: tuple[str, str, int, str]) -> None:
    proto = pb.URLProto()
    write_url(url, proto)
    assert (proto.scheme, proto.host, proto.port, proto.file) == parts
    assert read_url(proto) == url.replace("///", "/")


def test_an_error_of_an_unknown_class_keeps_its_name() -> None:
    proto = pb.SerializedExceptionProto(class_name="com.example.Odd", message="no")
    error = read_exception(proto)
    assert type(error) is RemoteError
    assert error.message == "com.example.Odd: no"


def test_a_long_error_loses_its_middle() -> None:
    proto = pb.SerializedExceptionProto()
    write_exception(YarnException("a" * MESSAGE_LENGTH_MAX + "b" * 100), proto)
    assert len(proto.message) < MESSAGE_LENGTH_MAX + 100
    assert "100 characters left out" in proto.message
    assert proto.message.endswith("b" * 100)


# A table for servers and proxies


@pytest.mark.parametrize("rpc", [pytest.param(rpc, id=rpc.path) for rpc in RPCS])
def test_rpcs_are_those_of_the_proto_files(rpc: Rpc[Any, Any]) -> None:
    method = _service(rpc.service).methods_by_name[rpc.name]
    assert method.input_type is rpc.request.proto.DESCRIPTOR
    assert method.output_type is rpc.reply.proto.DESCRIPTOR


def _service(full_name: str) -> Any:
    from wire.generated import (
        applicationclient_protocol_pb2,
        applicationmaster_protocol_pb2,
        containermanagement_protocol_pb2,
        resource_tracker_pb2,
        resourcemanager_administration_protocol_pb2,
        yarnling_pb2,
    )

    for module in (
        applicationclient_protocol_pb2,
        applicationmaster_protocol_pb2,
        containermanagement_protocol_pb2,
        resource_tracker_pb2,
        resourcemanager_administration_protocol_pb2,
        yarnling_pb2,
    ):
        for service in module.DESCRIPTOR.services_by_name.values():
            if service.full_name == full_name:
                return service
    raise AssertionError(f"no service {full_name}")


@pytest.mark.parametrize("timeout_ms", [-1, 0, 30_000])
def test_a_time_to_empty_a_node_that_shrinks_is_sent(timeout_ms: int) -> None:
    codec = ResourceManagerAdministrationProtocol.update_node_resource.request
    sizes = ((NodeId("n1", 1), ResourceOption(Resource(1024, 1), timeout_ms)),)
    assert codec.decode(codec.encode(sizes)) == sizes


def test_a_time_to_empty_a_node_that_is_left_out_is_0() -> None:
    """ResourceOptionPBImpl.getOverCommitTimeout returns the default of protobuf."""
    codec = ResourceManagerAdministrationProtocol.update_node_resource.request
    proto = codec.proto.FromString(codec.encode(((NodeId("n1", 1), ResourceOption(Resource(1024, 1), 30_000)),)))
    proto.node_resource_map[0].resource_option.ClearField("over_commit_timeout")  # type: ignore[attr-defined]
    assert codec.decode(proto.SerializeToString()) == ((NodeId("n1", 1), ResourceOption(Resource(1024, 1), 0)),)


def test_sums_beyond_64_bits_are_sent_as_the_largest_number() -> None:
    """Sizes that are each allowed add up: one application's report must not make the reply to all clients fail."""
    beyond = 3 * INT64_MAX
    usage = ApplicationResourceUsage(
        used=Resource(beyond, 1, (("gpu", -beyond),)), memory_seconds=beyond, vcore_seconds=-beyond
    )
    report = ApplicationReport(
        ApplicationId(1, 1),
        "ann",
        "root.a",
        "n",
        YarnApplicationState.RUNNING,
        ApplicationAttemptId(ApplicationId(1, 1), 1),
    )
    codec = ApplicationClientProtocol.get_application_report.reply
    read = codec.decode(codec.encode(replace(report, usage=usage))).usage
    assert read.used == Resource(INT64_MAX, 1, (("gpu", -INT64_MAX - 1),))
    assert (read.memory_seconds, read.vcore_seconds) == (INT64_MAX, -INT64_MAX - 1)
    queue = random_record(random.Random(1), QueueInfo)
    queue = replace(queue, statistics=replace(queue.statistics, available_memory_mb=beyond))
    info = ApplicationClientProtocol.get_queue_info.reply
    sent = info.decode(info.encode(queue))
    assert sent is not None
    assert sent.statistics.available_memory_mb == INT64_MAX
