// The node, its applications and their containers.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";
import { memory, moment, plural } from "/static/lib/format.js";

export const title = () => "NodeManager";

export async function load() {
  const [info, containers] = await Promise.all([get("/ws/v1/node/info"), get("/ws/v1/node/containers")]);
  return { info: info.nodeInfo, containers: containers.containers.container ?? [] };
}

export function view({ info, containers }, { app }) {
  const wanted = app ? containers.filter((one) => one.id.replace(/^container_(e\d+_)?/, "application_").startsWith(`${app}_`)) : containers;
  return html`<h2>${info.id}</h2>
    <dl class="facts">
      <dt>offers</dt><dd>${memory(info.totalPmemAllocatedContainersMB)}, ${plural(info.totalVCoresAllocatedContainers, "vcore")}</dd>
      <dt>health</dt><dd>${info.nodeHealthy ? html`<span class="good">healthy</span>` : html`<span class="bad">${info.healthReport}</span>`}</dd>
      <dt>memory checks</dt><dd>physical ${info.pmemCheckEnabled ? "on" : "off"}, virtual ${info.vmemCheckEnabled ? "on" : "off"}</dd>
      <dt>started</dt><dd>${moment(info.nmStartupTime)}</dd>
    </dl>
    <h2>${plural(wanted.length, "container")}${app ? ` of ${app}` : ""}</h2>
    ${wanted.length ? table(wanted) : nothing}`;
}

const table = (containers) => html`<div class="scroll"><table>
  <thead><tr><th>Container</th><th>User</th><th>State</th><th class="number">Memory</th><th class="number">Vcores</th><th>Logs</th></tr></thead>
  <tbody>${containers.map(
    (one) => html`<tr><td>${one.id}</td><td>${one.user}</td><td>${one.state}${one.exitCode === -1000 ? "" : `, exit code ${one.exitCode}`}
      ${one.diagnostics ? html`<br><span class="quiet">${one.diagnostics}</span>` : nothing}</td>
      <td class="number">${memory(one.totalMemoryNeededMB)}</td><td class="number">${one.totalVCoresNeeded}</td>
      <td><a href="/node/containerlogs/${one.id}/${encodeURIComponent(one.user)}">logs</a></td></tr>`
  )}</tbody></table></div>`;
