// The last minutes or the last day: use, requests, waits and decisions of the cluster, a queue or a node, as curves.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";
import { curve, panel } from "/static/lib/curve.js";
import { amounts, duration, memory, moment, plural } from "/static/lib/format.js";
import { named, shortened, shortenedPaths } from "/static/lib/names.js";
import { linked } from "/static/rm/application.js";

const RANGES = [[10, "10 minutes"], [60, "1 hour"], [360, "6 hours"], [1440, "24 hours"]];
const DECISIONS_SHOWN = 50;
const QUEUE_MAX = 40; // characters of a path
const NODE_MAX = 28;
const NAMES_MAX = 100; // queues or nodes of one call
const FRESH_MS = 5000; // the time between two samples

let kept = { key: "", at: 0, history: null };

// The history with these queues and nodes, {from, until, cluster, queues, nodes} with rows as objects; the last answer is kept until there is a new sample.
export async function loadHistory({ minutes = 10, queues = [], nodes = [] }) {
  const wanted = new URLSearchParams({ minutes });
  if (queues.length) wanted.set("queue", queues.slice(0, NAMES_MAX).join(","));
  if (nodes.length) wanted.set("node", nodes.slice(0, NAMES_MAX).join(","));
  const key = String(wanted);
  if (kept.key !== key || Date.now() - kept.at >= FRESH_MS) {
    kept = { key, at: Date.now(), history: read(await get(`/ws/yarnling/v1/history?${key}`)) };
  }
  return kept.history;
}

function read({ nowMs, fromMs, sinceMs, stepMs, columns, cluster, queues, nodes }) {
  const objects = (names) => (rows) => (rows ?? []).map((row) => Object.fromEntries(names.map((name, index) => [name, row[index]])));
  const each = (names, lists) => Object.fromEntries(Object.entries(lists).map(([name, rows]) => [name, objects(names)(rows)]));
  return {
    from: Math.max(fromMs, Math.min(sinceMs ?? nowMs, nowMs - stepMs)), until: nowMs, stepMs,
    cluster: objects(columns.cluster)(cluster), queues: each(columns.queues, queues), nodes: each(columns.nodes, nodes),
  };
}

const points = (rows, of) => rows.map((row) => [row.time_ms, of(row)]);
const last = (rows) => rows.at(-1) ?? {};
const largest = (...lists) => Math.max(0, ...lists.flatMap((list) => list.map(([, value]) => value)));

// The use of a queue beside its bar, to the scale of the most that it used or requested in that time.
export function sparkline(rows, { from, until }, path) {
  if (!rows?.length) return nothing;
  const used = points(rows, (row) => row.used_mb);
  const wanted = points(rows, (row) => row.used_mb + row.pending_mb);
  const most = largest(used, wanted);
  const label = `${path}, last ${duration(until - from)}: at most ${memory(largest(used))} used, ${memory(largest(points(rows, (row) => row.pending_mb)))} pending`;
  return curve({ series: [{ points: wanted, kind: "pending" }, { points: used, kind: "used", filled: true }], from, until, most, label, small: true });
}

// The time that the oldest request has waited, as a line that rises: at each change, and now.
function waits(rows, until) {
  const found = [];
  rows.forEach((row, index) => {
    const end = rows[index + 1]?.time_ms ?? until;
    const since = row.waiting_since_ms;
    if (!since) found.push([row.time_ms, 0]);
    else for (const at of [0, 0.25, 0.5, 0.75, 1]) {
      const time = row.time_ms + at * (end - row.time_ms);
      found.push([time, Math.max(0, time - since)]);
    }
  });
  return found;
}

// The containers that were counted in each of the parts of the time.
function counted(rows, name, { from, until }, parts = 60) {
  const width = (until - from) / parts;
  const sums = Array(parts).fill(0);
  rows.forEach((row, index) => {
    if (!index || row.time_ms < from) return;
    const more = row[name] - rows[index - 1][name];
    if (more > 0) sums[Math.min(parts - 1, Math.floor((row.time_ms - from) / width))] += more;
  });
  return sums.map((sum, index) => [from + index * width, sum]);
}

// The four curves of a queue and all below it. `totalMb`: the upper edge of memory, if it is known.
export function queuePanels(rows, time, totalMb = 0) {
  const { from, until } = time;
  const now = last(rows);
  const used = points(rows, (row) => row.used_mb), reserved = points(rows, (row) => row.used_mb + row.reserved_mb);
  const wanted = points(rows, (row) => row.used_mb + row.reserved_mb + row.pending_mb);
  const waiting = points(rows, (row) => row.waiting), waited = waits(rows, until);
  const placed = counted(rows, "placed", time), preempted = counted(rows, "preempted", time);
  const wait = now.waiting_since_ms ? until - now.waiting_since_ms : 0;
  const all = rows.length ? now.placed - rows[0].placed : 0, lost = rows.length ? now.preempted - rows[0].preempted : 0;
  const most = totalMb || largest(wanted);
  return html`<div class="panels">
    ${panel({ name: "Memory", value: `${memory(now.used_mb ?? 0)} used, ${memory(now.pending_mb ?? 0)} pending`, unit: memory, from, until, most,
      label: `memory: at most ${memory(largest(used))} used and ${memory(largest(wanted))} with reservations and requests`,
      series: [{ points: wanted, kind: "pending" }, { points: reserved, kind: "reservedline" }, { points: used, kind: "used", filled: true }] })}
    ${panel({ name: "Waiting", value: plural(now.waiting ?? 0, "application"), unit: String, from, until, most: Math.max(1, largest(waiting)),
      label: `applications that wait: at most ${largest(waiting)}`, series: [{ points: waiting, kind: "over", filled: true }] })}
    ${panel({ name: "Oldest request", value: wait ? `waits for ${duration(wait)}` : "none waits", unit: duration, from, until, most: Math.max(1000, largest(waited)),
      label: `the oldest request waited for at most ${duration(largest(waited))}`, series: [{ points: waited, kind: "over", filled: true }] })}
    ${panel({ name: "Decisions", value: `${plural(all, "container")} placed, ${lost} preempted`, unit: (number) => `${number} in ${duration((until - from) / 60)}`, from, until,
      most: Math.max(1, largest(placed, preempted)), label: `${all} containers placed, ${lost} preempted`,
      series: [{ points: placed, kind: "used", filled: true }, { points: preempted, kind: "over", filled: true }] })}
  </div>`;
}

export function nodePanels(rows, { from, until }) {
  const now = last(rows), used = points(rows, (row) => row.used_mb), containers = points(rows, (row) => row.containers);
  return html`<div class="panels">
    ${panel({ name: "Memory", value: `${memory(now.used_mb ?? 0)} of ${memory(now.total_mb ?? 0)} used`, unit: memory, from, until, most: largest(points(rows, (row) => row.total_mb)),
      label: `memory: at most ${memory(largest(used))} used`,
      series: [{ points: points(rows, (row) => row.used_mb + row.reserved_mb), kind: "reservedline" }, { points: used, kind: "used", filled: true }] })}
    ${panel({ name: "Containers", value: now.containers ?? 0, unit: String, from, until, most: Math.max(1, largest(containers)),
      label: `containers: at most ${largest(containers)}`, series: [{ points: containers, kind: "used", filled: true }] })}
  </div>`;
}

export const curveLegend = html`<p class="quiet curvelegend"><span class="usedmark">filled</span>: used · <span class="pendingmark">dashed</span>: with what is
  requested on top · <span class="overmark">filled</span>: waits and preemption</p>`;

// What has been decided, a line for each container.
export function decisionTable(decisions, names) {
  if (!decisions.length) return html`<p class="quiet">Nothing was decided in this time.</p>`;
  return html`<div class="scroll"><table class="containers decisions"><thead><tr><th>Time</th><th>What</th><th>Container</th><th>Queue</th><th>Node</th><th>Resources</th></tr></thead>
    <tbody>${decisions.map((one) => html`<tr><td>${new Date(one.atMs).toLocaleTimeString()}</td>
      <td class=${one.what === "preempted" ? "bad" : ""}>${one.what}</td>
      <td>${one.container ? linked(one.container) : "of another user"}${one.isAm ? " (AM)" : ""}</td>
      <td>${one.queue ? named(one.queue, names.get(one.queue)) : ""}</td><td>${named(one.node, names.get(one.node))}</td><td>${amounts(one.resource)}</td></tr>`)}</tbody></table></div>`;
}

export const title = () => "History";

export async function load({ query }) {
  const minutes = RANGES.some(([number]) => String(number) === query.get("minutes")) ? query.get("minutes") : "10";
  const queue = query.get("queue") || "root";
  const [history, { decisions, count }] = await Promise.all([
    loadHistory({ minutes, queues: [queue] }), get(`/ws/yarnling/v1/decisions?minutes=${minutes}&limit=${DECISIONS_SHOWN}`),
  ]);
  return { history, decisions, count, minutes, queue };
}

export function view({ history, decisions, count, minutes, queue }, params, draw) {
  const filter = (event) => {
    event.preventDefault();
    const chosen = new URLSearchParams([...new FormData(event.currentTarget.closest("form"))].filter(([, value]) => value));
    window.history.pushState(null, "", `/cluster/history?${chosen}`);
    draw();
  };
  const rows = history.queues[queue] ?? [];
  const names = new Map([...shortenedPaths(decisions.map((one) => one.queue).filter(Boolean), QUEUE_MAX), ...shortened(decisions.map((one) => one.node), NODE_MAX)]);
  return html`<h2>History</h2>
    <form class="filter" @submit=${filter} @change=${filter}>
      <label>Time <select name="minutes">${RANGES.map(([number, name]) => html`<option value=${number} ?selected=${String(number) === minutes}>${name}</option>`)}</select></label>
      <label>Queue <input name="queue" value=${queue} autocomplete="off" size="40"></label><button>Show</button></form>
    ${rows.length ? html`${queuePanels(rows, history, queue === "root" ? last(history.cluster).total_mb : 0)} ${curveLegend}` : html`<p>Nothing is known of queue ${queue} in this time.</p>`}
    <p class="quiet">A sample every ${duration(history.stepMs)}, since ${moment(history.from)}. What waited, and why, is on the page of each application.</p>
    <h2>Decisions</h2>
    <p class="quiet">Of containers that run, are reserved, or are among the last that ended; the last first${count > decisions.length ? `, ${decisions.length} of ${count}` : ""}.</p>
    ${decisionTable(decisions, names)}`;
}
