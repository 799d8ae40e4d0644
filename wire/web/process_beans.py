"""The beans of a daemon's own process, under the names of a JVM's, as far as a Python process has such figures."""

from __future__ import annotations

import gc
import os
import platform
import threading
import time
from collections.abc import Iterator

import psutil

from wire.web.document import JavaDouble
from wire.web.jmx import Bean


def process_beans(role: str) -> Iterator[Bean]:
    """JvmMetrics of the role (`ResourceManager`), and the java.lang beans that exporters read."""
    process = psutil.Process()
    with process.oneshot():
        memory, started_s, times = process.memory_info(), process.create_time(), process.cpu_times()
        threads, files = process.num_threads(), process.num_fds()
    used_mb = memory.rss / 2**20
    collections = sum(generation["collections"] for generation in gc.get_stats())
    yield Bean(
        f"Hadoop:service={role},name=JvmMetrics",
        "JvmMetrics",
        {
            "tag.Context": "jvm",
            "tag.ProcessName": role,
            "tag.SessionId": None,
            "tag.Hostname": platform.node(),
            "MemNonHeapUsedM": 0.0,
            "MemHeapUsedM": _rounded(used_mb),
            "MemHeapCommittedM": _rounded(used_mb),
            "MemHeapMaxM": _rounded(psutil.virtual_memory().total / 2**20),
            "MemMaxM": _rounded(psutil.virtual_memory().total / 2**20),
            "GcCount": collections,
            "GcTimeMillis": 0,
            "ThreadsRunnable": threading.active_count(),
            "ThreadsWaiting": max(0, threads - threading.active_count()),
            "ThreadsBlocked": 0,
        },
    )
    usage = {"committed": memory.rss, "init": 0, "max": psutil.virtual_memory().total, "used": memory.rss}
    yield Bean("java.lang:type=Memory", "sun.management.MemoryImpl", {"HeapMemoryUsage": usage})
    yield Bean("java.lang:type=Threading", "sun.management.ThreadImpl", {"ThreadCount": threads})
    yield Bean(
        "java.lang:type=Runtime",
        "sun.management.RuntimeImpl",
        {
            "Name": f"{os.getpid()}@{platform.node()}",
            "VmName": platform.python_implementation(),
            "VmVersion": platform.python_version(),
            "StartTime": int(started_s * 1000),
            "Uptime": max(0, int((time.time() - started_s) * 1000)),
        },
    )
    yield Bean(
        "java.lang:type=OperatingSystem",
        "com.sun.management.internal.OperatingSystemImpl",
        {
            "OpenFileDescriptorCount": files,
            "ProcessCpuTime": int((times.user + times.system) * 1e9),
            "AvailableProcessors": psutil.cpu_count() or 1,
            "TotalPhysicalMemorySize": psutil.virtual_memory().total,
            "SystemLoadAverage": JavaDouble(os.getloadavg()[0]),
            "Name": platform.system(),
            "Arch": platform.machine(),
            "Version": platform.release(),
        },
    )


def _rounded(megabytes: float) -> float:
    return round(megabytes, 4)
