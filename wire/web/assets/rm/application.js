// One application: what it is, why it waits, its attempts and their containers.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";
import { amounts, briefMoment, duration, memory, moment, percent } from "/static/lib/format.js";
import { named, shortened } from "/static/lib/names.js";
import { stateOf } from "/static/rm/applications.js";
import { explanation, refusedStart } from "/static/rm/waiting.js";

const NODE_MAX = 28; // characters of a node's name

let tried = null; // {id, found}: what would help, asked for by the reader

const idOf = ({ id, number }) => id ?? `application_${number}`;

export const title = (params) => idOf(params);

export async function load(params) {
  const id = idOf(params);
  const base = `/ws/v1/cluster/apps/${id}`;
  const own = `/ws/yarnling/v1/apps/${id}`;
  const [{ app }, { appAttempts }, explained, others, past] = await Promise.all([
    get(base), get(`${base}/appattempts`), get(`${own}/explain`), get(`${own}/containers`), get(`${own}/history`),
  ]);
  const attempts = await Promise.all(
    [].concat(appAttempts.appAttempt ?? []).map(async (attempt) => {
      const { container } = await get(`${base}/appattempts/${attempt.appAttemptId}/containers`);
      return { ...attempt, containers: [].concat(container ?? []) };
    })
  );
  return { app, attempts: attempts.reverse(), explained, others, past };
}

export function view({ app, attempts, explained, others, past }, params, draw) {
  const isOver = ["FINISHED", "FAILED", "KILLED"].includes(app.state);
  if (tried?.id !== app.id) tried = null;
  return html`<h2>${app.id}</h2>
    <dl class="facts">
      <dt>name</dt><dd>${app.name} (${app.applicationType})</dd>
      <dt>user, queue</dt><dd>${app.user} in <a href="/cluster/apps?queue=${encodeURIComponent(app.queue)}">${app.queue}</a>, priority ${app.priority}</dd>
      <dt>state</dt><dd>${stateOf(app)}</dd>
      <dt>progress</dt><dd>${Math.round(app.progress)} %</dd>
      <dt>started</dt><dd>${moment(app.startedTime)}, ${isOver ? `ended ${moment(app.finishedTime)}, ran` : "runs"} for ${duration(app.elapsedTime)}</dd>
      ${isOver ? nothing : html`<dt>holds</dt><dd>${app.runningContainers} containers, ${memory(Math.max(0, app.allocatedMB))},
        ${percent(Math.max(0, app.clusterUsagePercentage) / 100)} of the cluster</dd>`}
      <dt>used in all</dt><dd>${app.memorySeconds} MB-seconds, ${app.vcoreSeconds} vcore-seconds${app.preemptedResourceMB ? `, ${memory(app.preemptedResourceMB)} preempted` : ""}</dd>
      ${app.diagnostics ? html`<dt>diagnostics</dt><dd>${app.diagnostics}</dd>` : nothing}
    </dl>
    ${refusedStart(explained)}
    ${explained.asks.length || explained.verdicts.length ? whyItWaits(app, explained, draw) : nothing}
    ${past.verdicts.length ? whyItWaited(past) : nothing}
    ${others.reserved.length ? html`<h2>Reserved for it</h2>${otherTable(others.reserved)}` : nothing}
    ${attempts.map(attemptOf)}
    ${others.ended.length ? html`<h2>Containers that ended last</h2>${otherTable(others.ended)}` : nothing}`;
}

function whyItWaits(app, explained, draw) {
  const ask = async (event) => {
    event.currentTarget.disabled = true;
    tried = { id: app.id, found: await get(`/ws/yarnling/v1/apps/${app.id}/explain?what-if=true`) };
    draw();
  };
  return html`<h2>Why it waits</h2>
    ${explanation(tried ? { ...explained, verdicts: tried.found.verdicts } : explained)}
    <button @click=${ask}>${tried ? "Try changes again" : "What would help?"}</button>`;
}

// The reasons of the past, the last first: as the ResourceManager sampled them.
const whyItWaited = ({ verdicts, since_ms: since, now_ms: now }) => html`<h2>Why it waited before</h2>
  <p class="quiet">Of its first request, from samples since ${moment(since)}; the numbers are those of the beginning.</p>
  <div class="scroll"><table class="past"><thead><tr><th>From</th><th>Until</th><th class="number">For</th><th>Reason</th></tr></thead>
  <tbody>${[...verdicts].reverse().map(
    (one) => html`<tr><td title=${moment(one.from_ms)}>${briefMoment(one.from_ms)}</td><td title=${moment(one.until_ms)}>${one.until_ms ? briefMoment(one.until_ms) : "now"}</td>
      <td class="number">${duration((one.until_ms ?? now) - one.from_ms)}</td><td class="free">${one.sentence}</td></tr>`
  )}</tbody></table></div>`;

const attemptOf = (attempt) => html`<h2>Attempt ${attempt.id} <span class="quiet">${attempt.appAttemptState ?? ""}</span></h2>
  <dl class="facts"><dt>AM</dt><dd>${attempt.containerId ? linked(attempt.containerId) : "no container yet"}
    ${attempt.logsLink ? html` on ${attempt.nodeHttpAddress} · <a href=${attempt.logsLink}>logs</a>` : nothing}</dd>
    ${attempt.diagnosticsInfo ? html`<dt>diagnostics</dt><dd>${attempt.diagnosticsInfo}</dd>` : nothing}</dl>
  ${attempt.containers.length ? containerTable(attempt.containers) : html`<p class="quiet">No container runs.</p>`}`;

// A container with a link to its page, which says why it is there.
export const linked = (id) => html`<a href="/cluster/container/${id}">${id}</a>`;

const nodesOf = (ids) => shortened(ids.filter(Boolean), NODE_MAX);

// Containers that are reserved, or have ended.
function otherTable(containers) {
  const nodes = nodesOf(containers.map((one) => one.node));
  return html`<div class="scroll"><table class="containers">
  <thead><tr><th>Container</th><th>Node</th><th>State</th><th>Resources</th><th>Since</th><th>Ended</th></tr></thead>
  <tbody>${containers.map(
    (one) => html`<tr><td>${linked(one.id)}</td><td>${named(one.node, nodes.get(one.node))}</td>
      <td>${one.state}${one.isPreempted ? html`, <span class="bad">preempted</span>` : nothing}${one.exitStatus === null ? "" : `, exit status ${one.exitStatus}`}</td>
      <td>${amounts(one.resource)}</td><td>${moment(one.startedMs)}</td><td>${moment(one.endedMs)}</td></tr>`
  )}</tbody></table></div>`;
}

function containerTable(containers) {
  const nodes = nodesOf(containers.map((one) => one.assignedNodeId));
  return html`<div class="scroll"><table class="containers">
  <thead><tr><th>Container</th><th>Node</th><th>State</th><th class="number">Memory</th><th class="number">Vcores</th><th>Started</th><th></th></tr></thead>
  <tbody>${containers.map(
    (one) => html`<tr><td>${linked(one.containerId)}</td><td>${named(one.assignedNodeId, nodes.get(one.assignedNodeId))}</td><td>${one.containerState ?? ""}</td>
      <td class="number">${memory(Number(one.allocatedMB))}</td><td class="number">${one.allocatedVCores}</td><td>${moment(Number(one.startedTime))}</td>
      <td>${one.logUrl && one.logUrl !== "null" ? html`<a href=${one.logUrl}>logs</a>` : nothing}</td></tr>`
  )}</tbody></table></div>`;
}
