// All nodes at a glance: a cell each, the darker the more of its memory is used.
import { html, nothing } from "/static/vendor/lit-html.js";
import { memory, plural } from "/static/lib/format.js";

const STEPS = 10;

export const usedOf = (node) => node.containers.reduce((sum, container) => sum + container.resource["memory-mb"], 0);
const shareOf = (node) => usedOf(node) / Math.max(1, node.total["memory-mb"]);
const byName = (a, b) => a.id.localeCompare(b.id, undefined, { numeric: true });
const isDown = (node) => node.state !== "RUNNING";

// {name: [in words, order]}
export const ORDERS = {
  name: ["by name", byName],
  troubled: ["not running or reserved first", (a, b) => isDown(b) - isDown(a) || Boolean(b.reserved) - Boolean(a.reserved) || byName(a, b)],
  used: ["most used first", (a, b) => shareOf(b) - shareOf(a) || byName(a, b)],
  free: ["most free memory first", (a, b) => b.total["memory-mb"] - usedOf(b) - a.total["memory-mb"] + usedOf(a) || byName(a, b)],
  containers: ["most containers first", (a, b) => b.containers.length - a.containers.length || byName(a, b)],
};

export const orderOf = (name) => (ORDERS[name] ?? ORDERS.name)[1];

// A cell for each node, rack by rack; those that are not in `found` are pale.
export function heatMap(nodes, found) {
  const racks = new Map();
  for (const node of [...nodes].sort(byName)) racks.set(node.rack, [...(racks.get(node.rack) ?? []), node]);
  return html`<section aria-label="heat map of the nodes' memory">
    ${[...racks].map(([rack, members]) => html`${racks.size > 1 ? html`<h3>${rack} <span class="quiet">${plural(members.length, "node")}</span></h3>` : nothing}
      <div class="heatmap">${members.map((node) => cell(node, found.has(node)))}</div>`)}
    <p class="legend scale"><span>free</span>${Array.from({ length: STEPS + 1 }, (_, step) => html`<i class="cell h${step}"></i>`)}<span>full</span>
      <i class="cell h3 kept"></i><span>reserved</span><i class="cell down"></i><span>not running</span></p></section>`;
}

function cell(node, isFound) {
  const share = shareOf(node), text = `${node.id}: ${memory(usedOf(node))} of ${memory(node.total["memory-mb"])} in ${plural(node.containers.length, "container")}` +
    `${isDown(node) ? `, ${node.state}` : ""}${node.reserved ? ", reserved" : ""}`;
  const kind = isDown(node) ? "down" : `h${share > 0 ? Math.max(1, Math.floor(share * STEPS)) : 0}`;
  return html`<a class="cell ${kind} ${node.reserved ? "kept" : ""} ${isFound ? "" : "pale"}" href="/cluster/nodes?node=${encodeURIComponent(node.id)}" title=${text} aria-label=${text} tabindex="-1"></a>`;
}
