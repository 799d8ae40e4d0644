"""The results of a sweep: one SQLite file, which grows by a batch at a time and is valid after each.

The tables `runs`, `queues` and `clusters` have what the runs led to, and are the same for the same sweep wherever it
ran; `costs` has how long each took and where. `inputs` has the digests of the inputs, so that a file never mixes the
results of different ones.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from yarn.errors import YarnException
from yarnling.faults.verdict import RunVerdict
from yarnling.sweep.runs import Inputs, RunResult, Sweep, SweepRun
from yarnling.whatif.figures import GroupFigures, NodeFigures
from yarnling.whatif.waits import Wait

APPLICATION_ID = 0x79_6E_73_77
"""Marks the file as ours in SQLite's header ("ynsw")."""
_KEY = "plan, configuration, workload, load_factor, seed"
_KEY_COLUMNS = "plan TEXT, configuration TEXT, workload TEXT, load_factor REAL, seed INTEGER"
_CLUSTERS = f"""
CREATE TABLE IF NOT EXISTS clusters ({_KEY_COLUMNS}, applications INTEGER, finished INTEGER, mean_run_ms REAL,
  node_ms INTEGER, nodes_least INTEGER, nodes_most INTEGER, lost_containers INTEGER, lost_ms INTEGER,
  PRIMARY KEY ({_KEY})) WITHOUT ROWID
"""
"""Files of earlier versions do not have this table; their runs are not in it."""
_SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"""
CREATE TABLE runs ({_KEY_COLUMNS}, verdict TEXT NOT NULL, reasons TEXT NOT NULL, events INTEGER NOT NULL,
  virtual_s REAL NOT NULL, trace TEXT NOT NULL, PRIMARY KEY ({_KEY})) WITHOUT ROWID
""",
    f"""
CREATE TABLE queues ({_KEY_COLUMNS}, queue TEXT, applications INTEGER, finished INTEGER, missed_deadlines INTEGER,
  containers INTEGER, completed INTEGER, preempted INTEGER, lost_ms INTEGER, wait_p50_ms INTEGER, wait_p95_ms INTEGER,
  wait_p99_ms INTEGER, wait_longest_ms INTEGER, never_allocated INTEGER, PRIMARY KEY ({_KEY}, queue)) WITHOUT ROWID
""",
    f"""
CREATE TABLE costs ({_KEY_COLUMNS}, wall_s REAL NOT NULL, worker TEXT NOT NULL, PRIMARY KEY ({_KEY})) WITHOUT ROWID
""",
    "CREATE TABLE inputs (name TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID",
    _CLUSTERS,
)


class QueueSummary(Struct, frozen=True):
    """The figures of a queue over all seeds: means of the 95th percentile of waits, and so on."""

    configuration: str
    workload: str
    load_factor: float
    queue: str
    runs: int
    wait_p95_ms: float | None
    preempted: float
    missed_deadlines: float


class SweptCluster(Struct, frozen=True):
    """The figures of the whole cluster over all seeds. `node_ms`: how long machines were there, all together, in the
    mean; `nodes_least`, `nodes_most`: of them at any time of any run. `lost_containers`: with nodes, in the mean.
    """

    configuration: str
    workload: str
    load_factor: float
    runs: int
    mean_run_ms: float | None
    node_ms: float
    nodes_least: int
    nodes_most: int
    lost_containers: float

    @property
    def changes(self) -> bool:
        """True if nodes came and went."""
        return self.nodes_least != self.nodes_most


class ResultFile:
    """An open file of results."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self._path = path
        self._database = database

    def prepare(self, sweep: Sweep) -> None:
        """Note the sweep's inputs. Raises YarnException if the file has results of other inputs of the same names."""
        noted = dict(self._database.execute("SELECT name, digest FROM inputs"))
        if noted:
            noted.setdefault("release", "")  # Files of earlier versions do not have it.
        wanted = {**sweep.digests, **_options(sweep.inputs)}
        changed = sorted(name for name, digest in wanted.items() if noted.get(name, digest) != digest)
        if changed:
            problem = f"its results are of another {', '.join(changed)} than this sweep's"
            raise YarnException(f"{self._path}: {problem} (write the results to another file)")
        with self._database:
            self._database.executemany("INSERT OR IGNORE INTO inputs VALUES (?, ?)", wanted.items())

    def done(self) -> set[SweepRun]:
        """The runs whose results the file has."""
        return {SweepRun(*key) for key in self._database.execute(f"SELECT {_KEY} FROM runs")}

    def add(self, rows: Iterable[RunResult]) -> None:
        """Add the results of a batch; all of them or, if this process is killed, none."""
        listed = list(rows)
        with self._database:
            self._insert("runs", [(*_key(row.run), *_outcome(row)) for row in listed])
            self._insert("queues", [(*_key(row.run), *_figures(queue)) for row in listed for queue in row.queues])
            wholes = [(*_key(row.run), *_whole(row.cluster, row.nodes)) for row in listed if row.cluster is not None]
            self._insert("clusters", wholes)
            self._insert("costs", [(*_key(row.run), row.wall_s, row.worker) for row in listed])

    def verdicts(self) -> dict[str, Counter[str]]:
        """{plan, or configuration and workload: {verdict: how many runs}}."""
        query = (
            "SELECT CASE plan WHEN '' THEN configuration || ' ' || workload ELSE plan END, verdict, COUNT(*) "
            "FROM runs GROUP BY 1, 2 ORDER BY 1, 2"
        )
        counts: dict[str, Counter[str]] = {}
        for name, verdict, count in self._database.execute(query):
            counts.setdefault(name, Counter())[verdict] = count
        return counts

    def queues(self) -> list[QueueSummary]:
        """The figures of each queue under each configuration, workload and load factor."""
        query = (
            "SELECT configuration, workload, load_factor, queue, COUNT(*), AVG(wait_p95_ms), AVG(preempted), "
            "AVG(missed_deadlines) FROM queues GROUP BY workload, load_factor, queue, configuration "
            "ORDER BY workload, load_factor, queue, configuration"
        )
        return [QueueSummary(*row) for row in self._database.execute(query)]

    def clusters(self) -> list[SweptCluster]:
        """The figures of the cluster under each configuration, workload and load factor."""
        query = (
            "SELECT configuration, workload, load_factor, COUNT(*), AVG(mean_run_ms), AVG(node_ms), MIN(nodes_least), "
            "MAX(nodes_most), AVG(lost_containers) FROM clusters GROUP BY workload, load_factor, configuration "
            "ORDER BY workload, load_factor, configuration"
        )
        return [SweptCluster(*row) for row in self._database.execute(query)]

    def not_passed(self, most: int) -> list[tuple[SweepRun, str, str]]:
        """(run, verdict, reasons) of the first runs that did not pass."""
        query = f"SELECT {_KEY}, verdict, reasons FROM runs WHERE verdict != ? ORDER BY {_KEY} LIMIT ?"
        found = self._database.execute(query, (str(RunVerdict.PASS), most))
        return [(SweepRun(*key), verdict, reasons) for *key, verdict, reasons in found]

    def wall_s(self) -> float:
        """The time that all runs took together."""
        (total,) = self._database.execute("SELECT TOTAL(wall_s) FROM costs").fetchone()
        return float(total)

    def _insert(self, table: str, rows: list[tuple[object, ...]]) -> None:
        if rows:
            places = ", ".join("?" * len(rows[0]))
            self._database.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", rows)


@contextmanager
def open_results(path: Path) -> Iterator[ResultFile]:
    """Open a file of results, which is created if there is none. Raises YarnException if it is something else."""
    try:
        database = sqlite3.connect(path)
    except sqlite3.Error as error:
        raise YarnException(f"{path}: cannot be opened: {error} (name another file)") from None
    try:
        _check(database, path)
        yield ResultFile(path, database)
    finally:
        database.close()


def _check(database: sqlite3.Connection, path: Path) -> None:
    """Create the tables of an empty file; another process may be doing the same."""
    if _is_ours(database, path):
        database.execute(_CLUSTERS)
        return
    with database:
        database.execute("BEGIN IMMEDIATE")
        if not _is_ours(database, path):
            for statement in _SCHEMA:
                database.execute(statement)


def _is_ours(database: sqlite3.Connection, path: Path) -> bool:
    """False for an empty file. Raises YarnException if it is something else."""
    try:
        (tables,) = database.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
        # After the tables: who creates them sets the mark together with them.
        (mark,) = database.execute("PRAGMA application_id").fetchone()
    except sqlite3.DatabaseError as error:
        raise YarnException(f"{path}: is not a file of results: {error} (name another file)") from None
    if tables and mark != APPLICATION_ID:
        raise YarnException(f"{path}: is a database, but not of a sweep (name another file)")
    return bool(mark == APPLICATION_ID)


def _options(inputs: Inputs) -> dict[str, str]:
    return {
        "encode": str(inputs.encode),
        "hash": str(inputs.hashed),
        "until": str(inputs.until_ms),
        "release": inputs.release,
    }


def _key(run: SweepRun) -> tuple[object, ...]:
    return (run.plan, run.configuration, run.workload, run.load_factor, run.seed)


def _outcome(row: RunResult) -> tuple[object, ...]:
    return (str(RunVerdict(row.verdict)), row.reasons, row.events, row.virtual_s, row.trace)


def _figures(queue: GroupFigures) -> tuple[object, ...]:
    waits = queue.waits
    return (
        *(queue.name, queue.applications, queue.finished, queue.missed),
        *(queue.containers, queue.completed, queue.lost.containers, queue.lost.container_ms),
        *(_ms(waits.p50), _ms(waits.p95), _ms(waits.p99), _ms(waits.longest), waits.unfinished),
    )


def _whole(cluster: GroupFigures, nodes: NodeFigures | None) -> tuple[object, ...]:
    lost = cluster.lost_with_nodes
    number = (None, None) if nodes is None else (nodes.least, nodes.most)
    run = (cluster.applications, cluster.finished, cluster.mean_run_ms)
    return (*run, cluster.node_ms, *number, lost.containers, lost.container_ms)


def _ms(wait: Wait | None) -> int | None:
    return None if wait is None else wait.ms
