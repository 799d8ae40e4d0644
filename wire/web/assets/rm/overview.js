// The cluster at a glance: figures, queues, and what waits.
import { html } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";
import { hatch } from "/static/lib/draw.js";
import { memory } from "/static/lib/format.js";
import { queueTree, legend, readScheduler } from "/static/rm/queues.js";
import { waitingList } from "/static/rm/waiting.js";

export const title = () => "Cluster";

export async function load() {
  const [metrics, scheduler, waiting] = await Promise.all([
    get("/ws/v1/cluster/metrics"), get("/ws/v1/cluster/scheduler"), get("/ws/yarnling/v1/waiting"),
  ]);
  return { metrics: metrics.clusterMetrics, root: readScheduler(scheduler), waiting: waiting.waiting };
}

const tile = (name, value, more = "") => html`<div><dt>${name}</dt><dd>${value} <small>${more}</small></dd></div>`;

export function view({ metrics: m, root, waiting }) {
  const down = m.lostNodes + m.unhealthyNodes + m.rebootedNodes + m.shutdownNodes;
  return html`${hatch}
    <h2>Cluster</h2>
    <dl class="tiles">
      ${tile("Nodes", m.activeNodes, down ? `${down} lost, unhealthy or shut down` : m.decommissionedNodes ? `${m.decommissionedNodes} decommissioned` : "")}
      ${tile("Memory used", memory(m.allocatedMB), `of ${memory(m.totalMB)}${m.reservedMB ? `, ${memory(m.reservedMB)} reserved` : ""}`)}
      ${tile("Vcores used", m.allocatedVirtualCores, `of ${m.totalVirtualCores}`)}
      ${tile("Containers", m.containersAllocated, `${m.containersPending} pending, ${m.containersReserved} reserved`)}
      ${tile("Applications", m.appsRunning, `running, ${m.appsPending} pending`)}
      ${tile("Ended", m.appsCompleted, `succeeded, ${m.appsFailed} failed, ${m.appsKilled} killed`)}
    </dl>
    <h2>Queues</h2>
    ${legend} ${queueTree(root)}
    <h2>What waits</h2>
    ${waitingList(waiting)}`;
}
