"""Node labels by REST, as in the recordings of Hadoop's, on a ResourceManager that is served."""

from __future__ import annotations

from pathlib import Path

from tests.rm.served_cluster import serving
from tests.rm.web.test_writes import send, served

LABELS = {"yarn.node-labels.enabled": "true", "yarn.admin.acl": "yarn"}
GPU = '{"name":"gpu","exclusivity":"true"}'


async def test_labels_are_added_given_to_nodes_listed_and_removed(tmp_path: Path) -> None:
    async with serving(served(tmp_path, **LABELS)) as cluster:
        node_id = str((await cluster.node()).node_id)
        added = {"nodeLabelInfo": [{"name": "gpu", "exclusivity": True}, {"name": "fast", "exclusivity": "false"}]}
        assert (await send(cluster, "POST", "/add-node-labels?user.name=yarn", added)).text == ""
        replaced = {"nodeToLabels": [{"nodeId": node_id, "labels": ["gpu"]}]}
        assert (await send(cluster, "POST", "/replace-node-to-labels?user.name=yarn", replaced)).status == 200
        labels = (await send(cluster, "GET", "/get-node-labels")).json["nodeLabelInfo"]
        assert [(label["name"], label["exclusivity"]) for label in labels] == [("fast", "false"), ("gpu", "true")]
        assert labels[1]["partitionInfo"]["resourceAvailable"]["memory"] == "8192"
        rm_labels = (await send(cluster, "GET", "/get-rm-node-labels")).json["nodeLabelInfo"]
        active = {label["name"]: label["activeNMs"] for label in rm_labels}
        assert active == {"<DEFAULT_PARTITION>": "0", "fast": "0", "gpu": "1"}
        assert (await send(cluster, "GET", "/get-node-to-labels")).text == (
            f'{{"nodeToLabels":{{"entry":{{"key":"{node_id}","value":{{"nodeLabelInfo":{GPU}}}}}}}}}'
        )
        mapped = (await send(cluster, "GET", "/label-mappings?labels=gpu")).json["labelsToNodes"]["entry"]
        assert (mapped["key"]["name"], mapped["value"]["nodes"]) == ("gpu", node_id)
        assert (await send(cluster, "GET", f"/nodes/{node_id}/get-labels")).text == f'{{"nodeLabelInfo":{GPU}}}'
        assert (await send(cluster, "GET", f"/nodes/{node_id}")).json["node"]["nodeLabels"] == ["gpu"]
        path = f"/nodes/{node_id}/replace-labels?labels=&user.name=yarn"
        assert (await send(cluster, "POST", path)).status == 200
        assert (await send(cluster, "GET", f"/nodes/{node_id}/get-labels")).text == "{}"
        assert (await send(cluster, "POST", "/remove-node-labels?labels=gpu&user.name=yarn")).status == 200


async def test_what_is_refused_has_hadoops_class_and_words(tmp_path: Path) -> None:
    async with serving(served(tmp_path, **LABELS)) as cluster:
        unknown = await send(cluster, "POST", "/remove-node-labels?labels=nosuch&user.name=yarn")
        assert (unknown.status, unknown.json["RemoteException"]["message"]) == (
            400,
            "java.io.IOException: Node label=nosuch to be removed doesn't existed in cluster node labels collection.",
        )
        stranger = await send(cluster, "POST", "/add-node-labels?user.name=bob", {"nodeLabelInfo": [{"name": "x"}]})
        assert (stranger.status, stranger.json["RemoteException"]) == (
            401,
            {
                "exception": "AuthorizationException",
                "message": "User bob not authorized for post to .../add-node-labels ",
                "javaClassName": "org.apache.hadoop.security.authorize.AuthorizationException",
            },
        )
