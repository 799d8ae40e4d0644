"""The configuration by REST. The answers to /conf are those of Hadoop 3.4.1's ResourceManager with the same file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rm.shell.web.configuration import ConfigurationService
from tests.wire.web.asgi import NoCheck, ask
from wire.files.hadoop_xml import read_file
from wire.web.application import WebApplication
from yarn.configuration import Configuration

SITE = """<configuration>
<property><name>a.b</name><value>${a.c} &lt;x&gt; &amp; "q"</value></property>
<property><name>a.c</name><value>cc</value><final>true</final></property>
<property><name>my.password</name><value>hunter</value></property>
<property><name>e.mpty</name><value></value></property>
<property><name>round</name><value>${circle}</value></property>
<property><name>circle</name><value>${round}</value></property>
</configuration>"""
JSON, XML = {"accept": "application/json"}, {"accept": "*/*"}


@pytest.fixture
def application(tmp_path: Path) -> WebApplication:
    (tmp_path / "yarn-site.xml").write_text(SITE)
    conf = read_file(tmp_path / "yarn-site.xml").overridden({"yarn.scheduler.capacity.root.queues": "a", "o": "1"})
    return WebApplication(ConfigurationService(conf).rows(), NoCheck())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("a.b", '{"property":{"key":"a.b","value":"cc <x> & \\"q\\"","isFinal":false,"resource":"yarn-site.xml"}}'),
        ("a.c", '{"property":{"key":"a.c","value":"cc","isFinal":true,"resource":"yarn-site.xml"}}'),
        (
            "my.password",
            '{"property":{"key":"my.password","value":"<redacted>","isFinal":false,"resource":"yarn-site.xml"}}',
        ),
        (
            "yarn.scheduler.minimum-allocation-mb",
            '{"property":{"key":"yarn.scheduler.minimum-allocation-mb","value":"1024","isFinal":false,'
            '"resource":"yarn-default.xml"}}',
        ),
        ("o", '{"property":{"key":"o","value":"1","isFinal":false,"resource":"programatically"}}'),
    ],
)
async def test_a_property_in_json(application: WebApplication, name: str, answer: str) -> None:
    reply = await ask(application, f"/conf?name={name}", headers=JSON)
    assert (reply.status, reply.text) == (200, answer)
    assert reply.headers["content-type"] == "application/json;charset=utf-8"


@pytest.mark.parametrize(("name", "value"), [("a.b", '${a.c} &lt;x&gt; &amp; "q"'), ("my.password", "******")])
async def test_a_property_in_xml_as_it_was_written(application: WebApplication, name: str, value: str) -> None:
    reply = await ask(application, f"/conf?name={name}", headers=XML)
    assert reply.headers["content-type"] == "text/xml;charset=utf-8"
    assert reply.text == (
        '<?xml version="1.0" encoding="UTF-8" standalone="no"?><configuration>\n'
        f"<property><name>{name}</name><value>{value}</value><final>false</final><source>yarn-site.xml</source>"
        "</property>\n</configuration>"
    )


@pytest.mark.parametrize("name", ["nope", "e.mpty", "yarn.scheduler.capacity.root.queues"])
async def test_a_property_that_is_not_there(application: WebApplication, name: str) -> None:
    for headers in (JSON, XML):
        reply = await ask(application, f"/conf?name={name}", headers=headers)
        assert (reply.status, reply.text) == (404, f"Property {name} not found")


async def test_all_properties(application: WebApplication) -> None:
    reply = await ask(application, "/conf", headers=JSON)
    found = {each["key"]: each["value"] for each in reply.json["properties"]}
    assert found["a.b"] == 'cc <x> & "q"'
    assert found["round"] == "${circle}"
    assert found["yarn.scheduler.maximum-allocation-mb"] == "8192"
    assert not any(key.startswith("yarn.scheduler.capacity.") for key in found)


def test_nothing_of_a_configuration_is_needed() -> None:
    assert [row.path for row in ConfigurationService(Configuration({})).rows()] == [
        "/conf",
        "/ws/yarnling/v1/configuration",
    ]
