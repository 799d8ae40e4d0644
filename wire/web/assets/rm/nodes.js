// The nodes with their containers and reservations, drawn to scale.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get, post } from "/static/lib/api.js";
import { hatch, nodeBar, swatch } from "/static/lib/draw.js";
import { amounts, colour, memory, moment, plural, typed } from "/static/lib/format.js";
import { named, shortened, shortenedPaths } from "/static/lib/names.js";
import { linked } from "/static/rm/application.js";
import { heatMap, ORDERS, orderOf } from "/static/rm/heat_map.js";
import { loadHistory, nodePanels } from "/static/rm/history.js";

const LOADED_MAX = 500;
const BARS_MAX = 40; // nodes that are drawn in detail until the reader asks for all
const LEGEND_MAX = 10; // applications that are named beside their colours
const QUEUE_MAX = 32; // characters of a queue's path
const NAME_MAX = 28; // characters of a node's name
const OUT_OF_SERVICE = "LOST,REBOOTED,SHUTDOWN,DECOMMISSIONED";
const BACK = new Set(["resume", "restart", "heal"]); // what can bring back a node that is out of service

export const title = () => "Nodes";

// Of a large cluster only the nodes that are drawn are loaded, and those that are out of service.
export async function load(params) {
  const wanted = new URLSearchParams({ limit: LOADED_MAX });
  if (params.state) wanted.set("state", params.state.toUpperCase());
  const id = params.query.get("node");
  if (id) wanted.set("node", id);
  const [live, out, controls, history] = await Promise.all([
    get(`/ws/yarnling/v1/nodes?${wanted}`), get(`/ws/v1/cluster/nodes?states=${OUT_OF_SERVICE}`), get("/ws/yarnling/v1/controls"),
    id ? loadHistory({ nodes: [id] }) : null,
  ]);
  return { live: live.nodes, count: live.count, scale: Math.max(1, live.largest_mb), verbs: controls.nodes, out: out.nodes?.node ?? [], history };
}

let said = null; // what the last command has done

export function view(found, params, draw) {
  const id = params.query.get("node");
  return id ? oneNode(found, id, draw) : allNodes(found, params, draw);
}

function allNodes({ live, count, scale, out, verbs }, { state, query }, draw) {
  const wanted = state ? state.toUpperCase() : null;
  const gone = out.filter((node) => !wanted || node.state === wanted);
  const search = (query.get("search") ?? "").trim().toLowerCase();
  const found = live.filter((node) => !search || `${node.id} ${node.rack} ${node.label}`.toLowerCase().includes(search)).sort(orderOf(query.get("sort")));
  const drawn = query.get("all") ? found : found.slice(0, BARS_MAX);
  const names = shortened(live.map((node) => node.id), NAME_MAX);
  return html`${hatch}<h2>${plural(count, "node")}${wanted ? ` in state ${wanted}` : ""}</h2>
    ${outcome()} ${live.length > 1 ? html`${filters(query, draw)} ${heatMap(live, new Set(found))}` : nothing}
    ${count > live.length ? html`<p>The first ${live.length} of ${count} are shown.</p>` : nothing}
    <p class="quiet">Each bar is a node's memory, to the same scale; each part is a container, in its application's colour.</p>
    ${legendOf(drawn)}
    ${drawn.length ? nothing : html`<p>No node matches.</p>`}
    ${drawn.map((node) => row(node, scale, controlsOf(node, verbs, draw), names.get(node.id)))}
    ${drawn.length < found.length ? html`<p>${drawn.length} of ${found.length} are drawn. <a href=${linkWith(query, { all: "1" })}>Draw all</a></p>` : nothing}
    ${gone.length ? html`<h2>Out of service</h2>${goneTable(gone, (node) => controlsOf(node, verbs.filter((verb) => BACK.has(verb)), draw))}` : nothing}`;
}

function linkWith(query, more) {
  const chosen = new URLSearchParams(query);
  for (const [name, value] of Object.entries(more)) if (value) chosen.set(name, value); else chosen.delete(name);
  return `${location.pathname}${chosen.size ? `?${chosen}` : ""}`;
}

function filters(query, draw) {
  const set = (name) => (event) => {
    window.history.replaceState(null, "", linkWith(query, { [name]: event.target.value }));
    draw(false);
  };
  return html`<form class="filter" @submit=${(event) => event.preventDefault()}>
    <label>Name, rack or label contains <input name="search" type="search" .value=${typed("search", query)} @input=${set("search")} autocomplete="off"></label>
    <label>Order <select name="sort" @change=${set("sort")}>${Object.entries(ORDERS).map(([name, [text]]) => html`<option value=${name} ?selected=${name === query.get("sort")}>${text}</option>`)}</select></label></form>`;
}

// One node, with a table of its containers.
function oneNode({ live, out, verbs, history }, id, draw) {
  const node = live.find((one) => one.id === id);
  const gone = out.find((one) => one.id === id);
  if (!node) return html`<h2>${id}</h2><p>${gone ? `The node is ${gone.state}.` : "There is no such node."}</p>`;
  return html`${hatch}<h2>${id}</h2>${legendOf([node])} ${outcome()}
    ${row(node, Math.max(1, node.total["memory-mb"]), controlsOf(node, verbs, draw))}
    ${history?.nodes[id]?.length ? nodePanels(history.nodes[id], history) : nothing}
    ${node.reserved?.id ? html`<h3>Reserved</h3>${containerTable([node.reserved])}` : nothing}
    <h3>${plural(node.containers.length, "container")}</h3>
    ${node.containers.length ? containerTable(node.containers) : nothing}`;
}

// Containers of other users, which the reader may not view, have no id.
function containerTable(containers) {
  const queues = shortenedPaths(containers.map((one) => one.queue).filter(Boolean), QUEUE_MAX);
  return html`<div class="scroll"><table class="containers">
  <thead><tr><th>State</th><th>Container</th><th>Application</th><th>User</th><th>Queue</th><th>Resources</th><th>Since</th></tr></thead>
  <tbody>${containers.map(
    (one) => html`<tr><td>${one.state}</td><td>${one.id ? linked(one.id) : "of another user"}${one.isAm ? " (AM)" : ""}</td>
      <td>${one.app ? html`<a href="/cluster/app/${one.app}">${one.app}</a>` : nothing}</td><td>${one.user ?? ""}</td>
      <td>${one.queue ? named(one.queue, queues.get(one.queue)) : ""}</td><td>${amounts(one.resource)}</td><td>${moment(one.startedMs)}</td></tr>`
  )}</tbody></table></div>`;
}

function legendOf(nodes) {
  const apps = [...new Set(nodes.flatMap((node) => node.containers.map((container) => container.app)))].filter(Boolean);
  return html`<ul class="legend">${apps.slice(0, LEGEND_MAX).map((app) => swatch(colour(app), html`<a href="/cluster/app/${app}">${app}</a>`))}
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

function row(node, scale, controls, short = node.id) {
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
    <span>${address && !address.endsWith(":0") ? html`<a href="http://${address}/node">${named(node.id, short)}</a>` : named(node.id, short)}
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
