"""Which Java interface stands for which of our protocols."""

from __future__ import annotations

JAVA_PROTOCOLS = {
    "hadoop.yarn.ApplicationClientProtocolService": "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB",
    "hadoop.yarn.ApplicationMasterProtocolService": "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB",
    "hadoop.yarn.ContainerManagementProtocolService": "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB",
    "hadoop.yarn.ResourceManagerAdministrationProtocolService": (
        "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
    ),
}
"""{our service: the name that Hadoop's clients send}. A service that is not here is not served to them."""
