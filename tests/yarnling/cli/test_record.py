"""`yarnling record`, against a server of this process."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from yarnling.cli.app import app
from yarnling.cli.shared.arguments import UsageException

ANSWERS = {
    "/ws/v1/cluster/info": {"clusterInfo": {"startedOn": 5, "resourceManagerVersion": "3.3.6"}},
    "/ws/v1/cluster/apps": {"apps": {"app": [{"id": "application_1_0001", "state": "RUNNING", "queue": "root.etl"}]}},
    "/ws/v1/cluster/nodes": {"nodes": {"node": [{"id": "n1:1", "state": "RUNNING"}]}},
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_allowed = self.headers["Authorization"] == "Bearer abc"
        body = json.dumps(ANSWERS.get(self.path.partition("?")[0], {})).encode()
        self.send_response(200 if is_allowed else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """A ResourceManager behind a gateway."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def record(*words: str | Path) -> str:
    result = CliRunner().invoke(app, ["record", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_a_recording_ends_with_a_summary(tmp_path: Path, address: str) -> None:
    (tmp_path / "header").write_text("Bearer abc\n")
    out = tmp_path / "recording"
    words = [address, "-o", out, "--for", "1ms", "--authorization-file", tmp_path / "header"]
    text = record(*words)
    assert f"{out}: 1 poll in " in text
    assert "1 application began or ran, 0 ended; 1 node at the end" in text
    assert "this release does not report apps.allocatedMB, " in text
    (path,) = out.glob("*.gz")
    assert b"3.3.6" in gzip.decompress(path.read_bytes())
    again = json.loads(record(*words, "--json"))
    assert (again["figures"]["polls"], again["figures"]["failed"]) == (1, 0)


def test_a_refusal_is_in_the_summary(tmp_path: Path, address: str) -> None:
    text = record(address, "-o", tmp_path, "--for", "1ms")
    assert "1 request failed" in text
    assert "HTTP 401 (give a header with --authorization-file)" in text


def test_all_faults_of_the_arguments_are_reported(tmp_path: Path) -> None:
    (tmp_path / "header").write_text("two\nlines")
    words = ["ftp://rm", "-o", tmp_path, "--every", "1ms", "--authorization-file", tmp_path / "header"]
    with pytest.raises(UsageException, match=r"(?s)--every 1ms.*ftp://rm: is not the address"):
        record(*words)
    with pytest.raises(UsageException, match="must have one line"):
        record("http://rm", *words[1:3], *words[5:])
    assert not list(tmp_path.glob("*.gz"))
