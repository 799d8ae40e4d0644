"""Start a cluster, submit examples/node_master to it and print the output of its containers.

examples/node_master/build build/node_master
python examples/submit_node_master.py build/node_master 3
"""

import argparse
import shlex
import shutil
import sys
from pathlib import Path

from am.client.launching import TO_LOG_FILES
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext
from yarn.resource import Resource
from yarnling import LocalCluster


def main(built: Path, containers: int) -> None:
    node = shutil.which("node") or sys.exit("node was not found (install Node.js 18 or later)")
    words = [node, str(built.resolve() / "master.js"), str(containers)]
    launch_context = ContainerLaunchContext(commands=(f"exec {shlex.join(words)} {TO_LOG_FILES}",))
    with LocalCluster(nodes=2, memory_mb=4096, vcores=8, fast=True) as cluster:
        application_id = cluster.client.new_application().application_id
        context = ApplicationSubmissionContext(
            application_id, launch_context, Resource(256, 1), "node", max_app_attempts=1
        )
        cluster.client.submit(context)
        report = cluster.client.wait(application_id, timeout_s=60)
        print(report.final_status.name, report.diagnostics)
        for log in cluster.client.logs(application_id):
            is_am = log.path.parent.name.endswith("_000001")
            if log.name == ("stderr" if is_am else "stdout"):
                print(log.text(), end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "built", type=Path, metavar="DIR", help="the directory that examples/node_master/build has made"
    )
    parser.add_argument("containers", type=int, choices=range(1, 1001), metavar="CONTAINERS", help="1 to 1000")
    arguments = parser.parse_args()
    if not (arguments.built / "master.js").is_file():
        parser.error(f"{arguments.built}: has no master.js (make it: examples/node_master/build {arguments.built})")
    main(arguments.built, arguments.containers)
