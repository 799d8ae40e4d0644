// The cluster at a glance: figures, the last minutes, queues, and what waits.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";
import { hatch } from "/static/lib/draw.js";
import { memory } from "/static/lib/format.js";
import { curveLegend, loadHistory, queuePanels } from "/static/rm/history.js";
import { readScheduler } from "/static/rm/queue_tree.js";
import { legend, overviewTree, shownOnOverview } from "/static/rm/queues.js";
import { waitingList } from "/static/rm/waiting.js";

const WAITING_MAX = 5;

export const title = () => "Cluster";

export async function load() {
  const [metrics, scheduler, waiting] = await Promise.all([
    get("/ws/v1/cluster/metrics"), get("/ws/v1/cluster/scheduler"), get("/ws/yarnling/v1/waiting"),
  ]);
  const root = readScheduler(scheduler);
  const history = await loadHistory({ queues: shownOnOverview(root).map((queue) => queue.path) });
  return { metrics: metrics.clusterMetrics, root, waiting: waiting.waiting, history };
}

const tile = (name, value, more = "") => html`<div><dt>${name}</dt><dd>${value} <small>${more}</small></dd></div>`;

export function view({ metrics: m, root, waiting, history }) {
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
    <h2>The last minutes</h2>
    ${queuePanels(history.queues.root ?? [], history, m.totalMB)} ${curveLegend}
    <p><a href="/cluster/history">History and decisions</a></p>
    <h2>Queues</h2>
    ${legend} ${overviewTree(root, history)}
    <h2>What waits</h2>
    ${waitingList(waiting.slice(0, WAITING_MAX))}
    ${waiting.length > WAITING_MAX ? html`<p><a href="/cluster/waiting">All that waits</a></p>` : nothing}`;
}
