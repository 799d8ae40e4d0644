// The queues as a tree: use, guarantee, maximum, reservations and pending requests of each; users and their limits.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";
import { hatch, queueBar, swatch } from "/static/lib/draw.js";
import { memory, percent, plural, typed } from "/static/lib/format.js";
import { named, shortenedPaths } from "/static/lib/names.js";
import { loadHistory, sparkline } from "/static/rm/history.js";
import { isOpen, optionsOf, readScheduler, rowsOf, setOpen, sorted, SORTS, withAllBelow } from "/static/rm/queue_tree.js";

const CURVES_MAX = 100; // queues whose curves are loaded
const TOP_MAX = 12; // queues of a large tree on the cluster's page
const PATH_MAX = 48; // characters of a path there

export const title = () => "Queues";

export async function load({ query }) {
  const root = readScheduler(await get("/ws/v1/cluster/scheduler"));
  const shown = [...rowsOf(root, optionsOf(root, query))].flatMap(({ queue }) => (queue && !queue.isIdle ? [queue.path] : []));
  return { root, history: await loadHistory({ queues: shown.slice(0, CURVES_MAX) }) };
}

export const legend = html`<ul class="legend">
  ${swatch("used", "used within the guarantee")} ${swatch("over", "used above it")} ${swatch("reserved", "reserved")}
  ${swatch("pending", "pending")} ${swatch("track", "up to the maximum")}
  <li>the line is the guarantee; amounts are memory; the curve is the use of the last 10 minutes, dashed with what was pending</li></ul>`;

export function view({ root, history }, { query }, draw) {
  const options = optionsOf(root, query);
  const rows = [...rowsOf(root, options)];
  return html`${hatch}<h2>Queues <span class="quiet">${root.size}</span></h2>${filters(root, options, query, draw)}${legend}
    ${options.search && !rows.some(({ queue }) => queue?.path.toLowerCase().includes(options.search)) ? html`<p>No queue matches.</p>` : nothing}
    <table class="queues"><tbody>${rows.map((row) => (row.queue ? queueRow(row, root, history, options, draw) : idleRow(row, options, draw)))}</tbody></table>`;
}

// What is shown is part of the address, so that a link leads to the same.
function filters(root, options, query, draw) {
  const set = (name) => (event) => {
    const chosen = new URLSearchParams(query);
    chosen.set(name, event.target.value);
    if (!event.target.value) chosen.delete(name);
    window.history.replaceState(null, "", `/cluster/scheduler${chosen.size ? `?${chosen}` : ""}`);
    draw(false);
  };
  const parents = [...withAllBelow(root)].filter((queue) => queue.children.length && queue !== root).map((queue) => queue.path);
  const openAll = (value) => () => {
    setOpen(parents, value);
    draw(false);
  };
  return html`<form class="filter" @submit=${(event) => event.preventDefault()}>
    <label>Path contains <input name="search" type="search" .value=${typed("search", query)} @input=${set("search")} autocomplete="off"></label>
    <label>Order <select name="sort" @change=${set("sort")}>${SORTS.map(([name, text]) => html`<option value=${name} ?selected=${name === options.sort}>${text}</option>`)}</select></label>
    ${parents.length ? html`<span><button type="button" @click=${openAll(true)}>Unfold all</button> <button type="button" @click=${openAll(false)}>Fold all</button></span>` : nothing}</form>`;
}

const indentOf = (depth) => `d${Math.min(depth, 5)}`;

function foldButton(key, open, text, draw) {
  const turn = () => {
    setOpen([key], !open);
    draw(false);
  };
  return html`<button class="fold" aria-expanded=${open ? "true" : "false"} aria-label=${`${open ? "fold" : "unfold"} ${text}`} @click=${turn}>${open ? "▾" : "▸"}</button>`;
}

function queueRow({ queue, depth }, root, history, options, draw) {
  const fold = queue.children.length ? foldButton(queue.path, isOpen(queue.path, queue, options), queue.path, draw) : nothing;
  const more = queue.settings ? html`<tr class="more"><td colspan="4"><div class=${indentOf(depth)}>${leafDetails(queue)}</div></td></tr>` : nothing;
  return html`<tr class=${queue.isIdle ? "idle" : ""}>
    <td class="name"><div class=${indentOf(depth)}>${fold}${named(queue.name, queue.short)} ${stateOf(queue)}</div></td>
    ${amountCells(queue, root, history)}</tr>${more}`;
}

function amountCells(queue, root, history) {
  const label =
    `${queue.path}: ${memory(queue.used)} used, guarantee ${memory(queue.guaranteed)}, maximum ${memory(queue.maximum)}, ` +
    `${memory(queue.reserved)} reserved, ${memory(queue.pending)} pending`;
  const bar = { label };
  for (const name of ["used", "reserved", "pending", "guaranteed", "maximum"]) bar[name] = root.share(queue[name]);
  return html`<td class="bars">${queueBar(bar)}</td>
    <td class="figures">${memory(queue.used)} of ${memory(queue.guaranteed)} (max ${memory(queue.maximum)}) ·
      ${queue.pending ? html`<strong>${memory(queue.pending)} pending</strong> · ` : nothing}${queue.running} running${queue.waiting ? html`, <strong>${queue.waiting} waiting</strong>` : ""}</td>
    <td class="past"><a href="/cluster/history?queue=${encodeURIComponent(queue.path)}" aria-label="history of ${queue.path}">${sparkline(history?.queues[queue.path], history, queue.path)}</a></td>`;
}

const stateOf = (queue) => (queue.state === "RUNNING" ? nothing : html`<span class="bad">${queue.state}</span>`);

function idleRow({ idle, of, depth }, options, draw) {
  const key = `idle:${of.path}`, open = isOpen(key, of, options);
  return html`<tr class="idle"><td colspan="4"><div class=${indentOf(depth)}>${foldButton(key, open, `the idle queues of ${of.path}`, draw)}
    <span class="quiet">${plural(idle.length, "idle queue")}</span>
    ${open ? html`<ul class="idlelist">${idle.map((queue) => html`<li><a href="/cluster/scheduler?search=${encodeURIComponent(queue.path)}">${named(queue.name, queue.short)}</a>
      <span class="quiet">${memory(queue.guaranteed)}</span> ${stateOf(queue)}</li>`)}</ul>` : nothing}</div></td></tr>`;
}

// The queues of the cluster's page: all of a small tree; of a large one the root and the leaves that wait or use most.
export function shownOnOverview(root) {
  const options = optionsOf(root, new URLSearchParams());
  if (!options.isLarge) return [...withAllBelow(root)];
  const leaves = [...withAllBelow(root)].filter((queue) => !queue.children.length && !queue.isIdle);
  return [root, ...sorted(leaves, "waits").slice(0, TOP_MAX)];
}

export function overviewTree(root, history) {
  const shown = shownOnOverview(root), isLarge = shown.length < root.size;
  const paths = shortenedPaths(shown.map((queue) => queue.path), PATH_MAX);
  const depthOf = (queue) => (isLarge ? 0 : queue.path.split(".").length - 1);
  return html`<table class="queues ${isLarge ? "paths" : ""}"><tbody>${shown.map((queue) => html`<tr>
    <td class="name"><div class=${indentOf(depthOf(queue))}>${isLarge ? named(queue.path, paths.get(queue.path)) : named(queue.name, queue.short)} ${stateOf(queue)}</div></td>
    ${amountCells(queue, root, history)}</tr>`)}</tbody></table>
    ${isLarge ? html`<p><a href="/cluster/scheduler">All ${root.size} queues</a></p>` : nothing}`;
}

function leafDetails(queue) {
  const info = queue.settings;
  if (!info) return nothing;
  return html`<details><summary>users, limits and settings<span class="hidden"> of ${queue.path}</span></summary>
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
