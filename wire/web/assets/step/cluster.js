// The cluster after a step: queues, nodes drawn to scale, applications and why they wait.
import { html, nothing } from "/static/vendor/lit-html.js";
import { hatch, nodeBar, queueBar, swatch } from "/static/lib/draw.js";
import { memory, plural } from "/static/lib/format.js";

const NAMED_MAX = 16;
const listed = (names) => names.slice(0, NAMED_MAX).join(" ") + (names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : "");
const colour = (number) => `c${number % 8}`;

export const cluster = (view, command, canFork) => html`${hatch}
  ${view.rm === "running" ? nothing : html`<p class="error">The ResourceManager is ${view.rm}.</p>`}
  <h2>Queues</h2>${queues(view.queues)}
  <h2>Nodes</h2>${view.nodes.map((node) => nodeRow(node, Math.max(...view.nodes.map((other) => other.memory_mb)), command, canFork))}
  <h2>Applications</h2>${view.applications.length ? view.applications.map(application) : html`<p class="quiet">None.</p>`}`;

function queues(all) {
  if (!all.length) return html`<p class="quiet">Only the ResourceManager knows them.</p>`;
  const total = Math.max(1, all[0].guaranteed_mb);
  return html`<table class="queues"><tbody>${all.map((queue) => queueRow(queue, total))}</tbody></table>
    <ul class="legend">${swatch("used", "used")}${swatch("over", "above the guarantee")}${swatch("reserved", "reserved")}${swatch("pending", "waiting")}</ul>`;
}

function queueRow(queue, total) {
  const figures = `${memory(queue.used_mb)} of ${memory(queue.guaranteed_mb)}, at most ${memory(queue.maximum_mb)}`;
  const label = `${queue.path}: ${figures}${queue.pending_mb ? `, ${memory(queue.pending_mb)} waiting` : ""}`;
  const shares = {
    used: (queue.used_mb - queue.reserved_mb) / total, reserved: queue.reserved_mb / total, pending: queue.pending_mb / total,
    guaranteed: queue.guaranteed_mb / total, maximum: queue.maximum_mb / total, label,
  };
  return html`<tr><td class="name d${Math.min(queue.depth, 5)}">${queue.path.split(".").pop()}</td>
      <td>${queueBar(shares)}</td><td class="figures">${figures}</td></tr>
    ${queue.users.length ? html`<tr class="more"><td></td><td colspan="2" class="users">${queue.users.map(
      (user) => html`${user.name} ${memory(user.used_mb)}, limit ${memory(user.limit_mb)}${user.is_active ? "" : ", wants no more"}<br>`)}</td></tr>` : nothing}`;
}

function nodeRow(node, scale, command, canFork) {
  const used = node.containers.reduce((sum, box) => sum + box.memory_mb, 0);
  const parts = node.containers.map((box) => ({
    amount: box.memory_mb, kind: `container ${colour(box.application)}`,
    title: `${box.name}: ${memory(box.memory_mb)}, ${plural(box.vcores, "vcore")}, ${box.state}`,
  }));
  if (node.reserved) {
    const room = Math.max(0, node.memory_mb - used);
    parts.push({ amount: Math.min(node.reserved.memory_mb, room), kind: "reserved", title: `reserved for ${node.reserved.name}` });
  }
  const names = node.containers.map((box) => box.name);
  const label = `${node.name}: ${memory(used)} of ${memory(node.memory_mb)} in ${plural(names.length, "container")}`;
  const verb = node.process === "down" ? "start" : "kill";
  const problems = [node.process === "running" ? "" : `process ${node.process}`, node.state === "RUNNING" ? "" : node.state].filter(Boolean);
  return html`<div class="node"><span>${node.name} <span class="quiet">${node.label}</span>
      ${canFork(`${verb} ${node.name}`) ? html`<span class="controls"><button @click=${() => command("fork", `${verb} ${node.name}`)}>${verb}<span class="hidden"> ${node.name}</span></button></span>` : nothing}</span>
    ${nodeBar({ parts, total: node.memory_mb, scale, label })}
    <span class="quiet">${memory(used)} of ${memory(node.memory_mb)}
      ${node.reserved ? html`<br>reserved for ${node.reserved.name} (${memory(node.reserved.memory_mb)})` : nothing}
      ${problems.length ? html`<br><span class="bad">${problems.join(", ")}</span>` : nothing}</span>
    ${names.length ? html`<p class="names">${listed(names)}</p>` : nothing}</div>`;
}

const application = (app) => html`<div class="app"><ul class="legend">${swatch(colour(app.number), html`<strong>${app.name}</strong>
    ${app.state} · ${app.user} in ${app.queue} · ${plural(app.containers, "container")}, ${memory(app.memory_mb)}${app.pending ? ` · ${app.pending} waiting` : ""}`)}</ul>
  ${app.waits.map((text) => html`<p class="sentence">${text}</p>`)}</div>`;
