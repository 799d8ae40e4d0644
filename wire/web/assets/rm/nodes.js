// The nodes with their containers and reservations, drawn to scale.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get, post } from "/static/lib/api.js";
import { hatch, nodeBar, swatch } from "/static/lib/draw.js";
import { amounts, colour, memory, moment, plural } from "/static/lib/format.js";
import { linked } from "/static/rm/application.js";

const SHOWN_MAX = 500;
const OUT_OF_SERVICE = "LOST,REBOOTED,SHUTDOWN,DECOMMISSIONED";
const BACK = new Set(["resume", "restart", "heal"]); // what can bring back a node that is out of service

export const title = () => "Nodes";

// Of a large cluster only the nodes that are drawn are loaded, and those that are out of service.
export async function load(params) {
  const wanted = new URLSearchParams({ limit: SHOWN_MAX });
  if (params.state) wanted.set("state", params.state.toUpperCase());
  if (params.query.get("node")) wanted.set("node", params.query.get("node"));
  const [live, out, controls] = await Promise.all([
    get(`/ws/yarnling/v1/nodes?${wanted}`), get(`/ws/v1/cluster/nodes?states=${OUT_OF_SERVICE}`), get("/ws/yarnling/v1/controls"),
  ]);
  return { live: live.nodes, count: live.count, scale: Math.max(1, live.largest_mb), verbs: controls.nodes, out: out.nodes?.node ?? [] };
}

let said = null; // what the last command has done

export function view(found, params, draw) {
  const id = params.query.get("node");
  return id ? oneNode(found, id, draw) : allNodes(found, params.state, draw);
}

function allNodes({ live, count, scale, out, verbs }, state, draw) {
  const wanted = state ? state.toUpperCase() : null;
  const gone = out.filter((node) => !wanted || node.state === wanted);
  return html`${hatch}<h2>${plural(count, "node")}${wanted ? ` in state ${wanted}` : ""}</h2>
    <p class="quiet">Each bar is a node's memory, to the same scale; each part is a container, in its application's colour.</p>
    ${legendOf(live)} ${outcome()}
    ${live.map((node) => row(node, scale, controlsOf(node, verbs, draw)))}
    ${count > live.length ? html`<p>The first ${live.length} of ${count} are shown.</p>` : nothing}
    ${gone.length ? html`<h2>Out of service</h2>${goneTable(gone, (node) => controlsOf(node, verbs.filter((verb) => BACK.has(verb)), draw))}` : nothing}`;
}

// One node, with a table of its containers.
function oneNode({ live, out, verbs }, id, draw) {
  const node = live.find((one) => one.id === id);
  const gone = out.find((one) => one.id === id);
  if (!node) return html`<h2>${id}</h2><p>${gone ? `The node is ${gone.state}.` : "There is no such node."}</p>`;
  return html`${hatch}<h2>${id}</h2>${legendOf([node])} ${outcome()}
    ${row(node, Math.max(1, node.total["memory-mb"]), controlsOf(node, verbs, draw))}
    ${node.reserved?.id ? html`<h3>Reserved</h3>${containerTable([node.reserved])}` : nothing}
    <h3>${plural(node.containers.length, "container")}</h3>
    ${node.containers.length ? containerTable(node.containers) : nothing}`;
}

// Containers of other users, which the reader may not view, have no id.
const containerTable = (containers) => html`<div class="scroll"><table class="containers">
  <thead><tr><th>Container</th><th>Application</th><th>User and queue</th><th>State</th><th>Resources</th><th>Since</th></tr></thead>
  <tbody>${containers.map(
    (one) => html`<tr><td>${one.id ? linked(one.id) : "of another user"}${one.isAm ? " (AM)" : ""}</td>
      <td>${one.app ? html`<a href="/cluster/app/${one.app}">${one.app}</a>` : nothing}</td><td>${one.user ? `${one.user} in ${one.queue}` : ""}</td>
      <td>${one.state}</td><td>${amounts(one.resource)}</td><td>${moment(one.startedMs)}</td></tr>`
  )}</tbody></table></div>`;

function legendOf(nodes) {
  const apps = [...new Set(nodes.flatMap((node) => node.containers.map((container) => container.app)))].filter(Boolean);
  return html`<ul class="legend">${apps.slice(0, 16).map((app) => swatch(colour(app), html`<a href="/cluster/app/${app}">${app}</a>`))}
    ${swatch("reserved", "reserved")}</ul>`;
}

const outcome = () => (said ? html`<p role="status" class=${said.kind}>${said.text}</p>` : nothing);

// A menu of what the cluster's supervisor can do with a node; nothing where it has none.
function controlsOf(node, verbs, draw) {
  if (!verbs.length) return nothing;
  const command = async (event) => {
    const verb = event.currentTarget.dataset.verb;
    event.currentTarget.closest("details").open = false;
    try {
      said = { kind: "good", text: (await post(`/ws/yarnling/v1/nodes/${node.id}/${verb}`)).text };
    } catch (error) {
      said = { kind: "bad", text: error.message };
    }
    draw();
  };
  return html`<details class="controls"><summary>control<span class="hidden"> ${node.id}</span></summary>
    ${verbs.map((verb) => html`<button data-verb=${verb} @click=${command}>${verb}</button> `)}</details>`;
}

function row(node, scale, controls) {
  const used = node.containers.reduce((sum, container) => sum + container.resource["memory-mb"], 0);
  const total = node.total["memory-mb"];
  const label = `${node.id}: ${memory(used)} of ${memory(total)} in ${plural(node.containers.length, "container")}`;
  const parts = node.containers.map((container) => ({
    amount: container.resource["memory-mb"],
    kind: `container ${colour(container.app)}`,
    title: `${container.id ?? "a container of another user"}${container.isAm ? " (AM)" : ""}\n${container.user ?? ""} in ${container.queue ?? ""}\n` +
      `${memory(container.resource["memory-mb"])}, ${plural(container.resource.vcores, "vcore")}, ${container.state}`,
    href: container.id ? `/cluster/container/${container.id}` : null,
  }));
  if (node.reserved) {
    parts.push({
      amount: Math.min(node.reserved.resource["memory-mb"], Math.max(0, total - used)),
      kind: "reserved",
      title: `reserved for ${node.reserved.app ?? "another user"}: ${memory(node.reserved.resource["memory-mb"])}`,
    });
  }
  const address = node.httpAddress;
  return html`<div class="node">
    <span>${address && !address.endsWith(":0") ? html`<a href="http://${address}/node">${node.id}</a>` : node.id}
      <span class="quiet">${node.rack === "/default-rack" ? "" : node.rack} ${node.label}</span>
      ${node.state === "RUNNING" ? nothing : html`<span class="bad">${node.state}</span>`}</span>
    ${nodeBar({ parts, total, scale, label })}
    <span class="quiet">${memory(used)} of ${memory(total)} · ${node.allocated?.vcores ?? 0} of ${node.total.vcores} vcores
      <br><a href="/cluster/nodes?node=${encodeURIComponent(node.id)}">${plural(node.containers.length, "container")}</a>${reservation(node.reserved)} ${controls}</span>
  </div>`;
}

function reservation(reserved) {
  if (!reserved) return nothing;
  return html` · reserved for ${reserved.id ? html`<a href="/cluster/container/${reserved.id}">${reserved.app}</a>` : "another user"}`;
}

const goneTable = (nodes, controls) => html`<div class="scroll"><table>
  <thead><tr><th>Node</th><th>State</th><th></th><th>Rack</th><th>Health report</th></tr></thead>
  <tbody>${nodes.map((node) => html`<tr><td>${node.id}</td><td class="bad">${node.state}</td><td>${controls(node)}</td><td>${node.rack}</td><td>${node.healthReport}</td></tr>`)}</tbody>
</table></div>`;
