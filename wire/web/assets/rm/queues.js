// The queues as a tree: use, guarantee, maximum, reservations and pending requests of each; users and their limits.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";
import { hatch, queueBar, swatch } from "/static/lib/draw.js";
import { memory, percent, plural } from "/static/lib/format.js";

export const title = () => "Queues";

export async function load() {
  return readScheduler(await get("/ws/v1/cluster/scheduler"));
}

// The tree of queues from the scheduler's answer, in megabytes of the default partition.
export function readScheduler({ scheduler: { schedulerInfo } }) {
  const root = readQueue(schedulerInfo);
  root.share = (mb) => (root.guaranteed ? mb / root.guaranteed : 0);
  return root;
}

function readQueue(info) {
  const of = (entries) => (entries ?? []).find((entry) => entry.partitionName === "") ?? {};
  const capacity = of(info.capacities?.queueCapacitiesByPartition);
  const use = of(info.resources?.resourceUsagesByPartition);
  const children = [].concat(info.queues?.queue ?? []).map(readQueue);
  const sum = (name) => children.reduce((total, child) => total + child[name], 0);
  const isLeaf = !children.length;
  const reserved = isLeaf ? (use.reserved?.memory ?? 0) : sum("reserved");
  return {
    name: info.queueName,
    path: info.queuePath,
    state: info.state ?? "RUNNING",
    guaranteed: capacity.effectiveMinResource?.memory ?? 0,
    maximum: capacity.effectiveMaxResource?.memory ?? 0,
    used: isLeaf ? (use.used?.memory ?? 0) - reserved : sum("used"),
    reserved,
    pending: isLeaf ? (use.pending?.memory ?? 0) : sum("pending"),
    running: isLeaf ? info.numActiveApplications : sum("running"),
    waiting: isLeaf ? info.numPendingApplications : sum("waiting"),
    users: [].concat(info.users?.user ?? []),
    amLimit: use.amLimit?.memory,
    amUsed: use.amUsed?.memory,
    settings: isLeaf ? info : null,
    children,
  };
}

export const legend = html`<ul class="legend">
  ${swatch("used", "used within the guarantee")} ${swatch("over", "used above it")} ${swatch("reserved", "reserved")}
  ${swatch("pending", "pending")} ${swatch("track", "up to the maximum")}
  <li>the line is the guarantee; amounts are memory</li></ul>`;

// A row for each queue, parents before their children. All bars have the same scale: the cluster.
export function queueTree(root, details = () => nothing) {
  return html`<table class="queues"><tbody>${[...rows(root, root, 0, details)]}</tbody></table>`;
}

function* rows(queue, root, depth, details) {
  const label =
    `${queue.path}: ${memory(queue.used)} used, guarantee ${memory(queue.guaranteed)}, maximum ${memory(queue.maximum)}, ` +
    `${memory(queue.reserved)} reserved, ${memory(queue.pending)} pending`;
  const bar = { label };
  for (const name of ["used", "reserved", "pending", "guaranteed", "maximum"]) bar[name] = root.share(queue[name]);
  const indent = `d${Math.min(depth, 5)}`;
  yield html`<tr>
    <td class="name"><div class=${indent}>${queue.name} ${queue.state === "RUNNING" ? nothing : html`<span class="bad">${queue.state}</span>`}</div></td>
    <td>${queueBar(bar)}</td>
    <td class="figures">${memory(queue.used)} of ${memory(queue.guaranteed)} (max ${memory(queue.maximum)}) ·
      ${queue.pending ? html`${memory(queue.pending)} pending · ` : nothing}${queue.running} running${queue.waiting ? `, ${queue.waiting} waiting` : ""}</td>
  </tr>`;
  const more = details(queue);
  if (more !== nothing) yield html`<tr class="more"><td colspan="3"><div class=${indent}>${more}</div></td></tr>`;
  for (const child of queue.children) yield* rows(child, root, depth + 1, details);
}

export function view(root) {
  return html`${hatch}<h2>Queues</h2>${legend}${queueTree(root, leafDetails)}`;
}

function leafDetails(queue) {
  const info = queue.settings;
  if (!info) return nothing;
  return html`<details><summary>users, limits and settings of ${queue.path}</summary>
    ${queue.users.length ? userTable(queue.users) : html`<p class="quiet">No user has an application here.</p>`}
    <dl class="facts">
      <dt>capacity, maximum</dt><dd>${percent(info.absoluteCapacity / 100)} and ${percent(info.absoluteMaxCapacity / 100)} of the cluster</dd>
      <dt>AMs</dt><dd>${memory(queue.amUsed ?? 0)} of ${memory(queue.amLimit ?? 0)} (maximum-am-resource-percent)</dd>
      <dt>user limit</dt><dd>minimum-user-limit-percent ${info.userLimit}, user-limit-factor ${info.userLimitFactor}</dd>
      <dt>applications</dt><dd>at most ${info.maxApplications}, ${info.maxApplicationsPerUser} of a user</dd>
      <dt>ordering policy</dt><dd>${info.orderingPolicyInfo}</dd>
      <dt>preemption</dt><dd>${info.preemptionDisabled ? "disabled" : "enabled"} between queues, ${info.intraQueuePreemptionDisabled ? "disabled" : "enabled"} within the queue</dd>
      <dt>priority</dt><dd>${info.priority ?? 0}; applications by default ${info.defaultPriority}</dd>
    </dl></details>`;
}

const userTable = (users) => html`<div class="scroll"><table>
  <thead><tr><th>User</th><th class="number">Used</th><th class="number">Limit</th><th class="number">AMs</th><th class="number">Applications</th></tr></thead>
  <tbody>${users.map(
    (user) => html`<tr><td>${user.username}</td><td class="number">${memory(user.resourcesUsed.memory)}</td>
      <td class="number">${memory(user.userResourceLimit.memory)}</td><td class="number">${memory(user.AMResourceUsed.memory)}</td>
      <td class="number">${user.numActiveApplications} running, ${plural(user.numPendingApplications, "pending").replace(/s$/, "")}</td></tr>`
  )}</tbody></table></div>`;
