"""Calls every method of yarn-api-client's ResourceManager and NodeManager; prints {method: {"answer": or "error":}}.

Arguments: the endpoints of the RM and of an NM, then an application, its node and one of its containers.
"""

import inspect
import json
import sys

from yarn_api_client import NodeManager, ResourceManager

rm_endpoint, nm_endpoint, app, node, container = sys.argv[1:]
attempt = app.replace("application", "appattempt") + "_000001"
rm, nm = ResourceManager([rm_endpoint]), NodeManager(nm_endpoint)
new = rm.cluster_new_application().data["application-id"]
submission = {
    "application-id": new,
    "application-name": "by REST",
    "am-container-spec": {"commands": {"command": "sleep 60"}},
    "resource": {"memory": 128, "vCores": 1},
    "max-app-attempts": 1,
}
# The last ones change what the others see.
calls = [
    (rm.get_active_endpoint,),
    (rm.cluster_information,),
    (rm.cluster_metrics,),
    (rm.cluster_scheduler,),
    (rm.cluster_applications, None, ["RUNNING"], None, None, "default"),
    (rm.cluster_application_statistics, ["RUNNING"]),
    (rm.cluster_application, app),
    (rm.cluster_application_attempts, app),
    (rm.cluster_application_attempt_info, app, attempt),
    (rm.cluster_application_attempt_containers, app, attempt),
    (rm.cluster_application_attempt_container_info, app, attempt, container),
    (rm.cluster_application_state, app),
    (rm.cluster_nodes, ["RUNNING"]),
    (rm.cluster_node, node),
    (rm.cluster_get_application_queue, app),
    (rm.cluster_change_application_queue, app, "default"),
    (rm.cluster_get_application_priority, app),
    (rm.cluster_change_application_priority, app, 0),
    (rm.cluster_node_container_memory,),
    (rm.cluster_scheduler_queue, "default"),
    (rm.cluster_scheduler_queue_availability, {"absoluteUsedCapacity": 3.0}, 50),
    (rm.cluster_queue_partition, rm.cluster_scheduler_queue("default"), ""),
    (rm.cluster_reservations, "default"),
    (rm.cluster_new_reservation,),
    (rm.cluster_submit_reservation, {}),
    (rm.cluster_update_reservation, {}),
    (rm.cluster_delete_reservation, "reservation_1_1"),
    (rm.cluster_new_delegation_token, "me"),
    (rm.cluster_renew_delegation_token, "token"),
    (rm.cluster_cancel_delegation_token, "token"),
    (rm.cluster_application_timeouts, app),
    (rm.cluster_application_timeout, app, "LIFETIME"),
    (rm.cluster_update_application_timeout, app, "LIFETIME", "2099-01-01T00:00:00.000+0000"),
    (rm.cluster_scheduler_conf_mutation,),
    (rm.cluster_modify_scheduler_conf_mutation, {"global-updates": []}),
    (rm.scheduler_activities, node),
    (rm.application_activities, app),
    (rm.cluster_new_application,),
    (rm.cluster_submit_application, submission),
    (rm.cluster_application_kill, new),
    (nm.node_information,),
    (nm.node_applications, "RUNNING"),
    (nm.node_application, app),
    (nm.node_containers,),
    (nm.node_container, container),
    (nm.auxiliary_services,),
    (nm.auxiliary_services_update, {"services": []}),
    (rm.cluster_container_signal, container, "OUTPUT_THREAD_DUMP"),
    (rm.cluster_node_update_resource, node, {"resource": {"memory": 4096, "vCores": 4}, "overCommitTimeout": -1}),
]
results = {}
for method, *arguments in calls:
    try:
        answer = method(*arguments)
        results[method.__name__] = {"answer": getattr(answer, "data", answer)}
    except Exception as error:
        results[method.__name__] = {"error": f"{type(error).__name__}: {error}"}
public = {
    name
    for kind in (ResourceManager, NodeManager)
    for name, _ in inspect.getmembers(kind, inspect.isfunction)
    if not name.startswith("_") and name not in ("request", "construct_parameters")
}
json.dump({"not called": sorted(public - results.keys()), "results": results}, sys.stdout)
