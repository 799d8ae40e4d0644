"""Start a cluster, submit examples/minimal_master.py to it and print the output of its containers.

python examples/submit_minimal_master.py 3
"""

import argparse
import shlex
import sys
from pathlib import Path

from am.client.launching import TO_LOG_FILES, local_file, packages_dir
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext
from yarn.resource import Resource
from yarnling import LocalCluster

AM = Path(__file__).with_name("minimal_master.py")


def main(containers: int) -> None:
    launch_context = ContainerLaunchContext(
        commands=(f"{shlex.quote(sys.executable)} {AM.name} {containers} {TO_LOG_FILES}",),
        environment={"PYTHONPATH": packages_dir()},
        local_resources={AM.name: local_file(AM)},
    )
    with LocalCluster(nodes=2, memory_mb=4096, vcores=8, fast=True) as cluster:
        application_id = cluster.client.new_application().application_id
        cluster.client.submit(ApplicationSubmissionContext(application_id, launch_context, Resource(128, 1), "minimal"))
        report = cluster.client.wait(application_id, timeout_s=60)
        print(report.final_status.name, report.diagnostics)
        for log in cluster.client.logs(application_id):
            if log.path.name == "stdout" and not log.path.parent.name.endswith("_000001"):
                print(log.path.read_text(), end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("containers", type=int, choices=range(1, 1001), metavar="CONTAINERS", help="1 to 1000")
    main(parser.parse_args().containers)
