// The log files of a container. The last part of a file is shown, and follows the file while the page is open.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get, getText } from "/static/lib/api.js";

const SHOWN_BYTES = 65536;
const FIRST = ["stdout", "stderr", "syslog"];

export const title = ({ id, file }) => `${file ?? "logs"} of ${id}`;

export async function load({ id, file }) {
  const base = `/ws/v1/node/containers/${id}/logs`;
  const { containerLogsInfo } = await get(base);
  const files = [].concat(containerLogsInfo.containerLogInfo ?? []);
  const names = files.map((one) => one.fileName);
  const shown = file ? decodeURIComponent(file) : (FIRST.find((name) => names.includes(name)) ?? names[0]);
  const text = shown === undefined ? "" : await getText(`${base}/${encodeURIComponent(shown)}?size=-${SHOWN_BYTES}`);
  return { files, shown, text: contents(text) };
}

// Without the lines that Hadoop writes around a log.
function contents(text) {
  const start = text.indexOf("LogContents:\n");
  const end = text.lastIndexOf("\nEnd of LogType:");
  return start < 0 ? text : text.slice(start + 13, end < 0 ? undefined : end + 1);
}

export function view({ files, shown, text }, { id, user = "user" }) {
  return html`<h2>${id}</h2>
    <ul class="legend">${files.map(
      (file) => html`<li>${file.fileName === shown ? html`<strong aria-current="true">${file.fileName}</strong>` : html`<a href="/node/containerlogs/${id}/${user}/${encodeURIComponent(file.fileName)}">${file.fileName}</a>`}
        <span class="quiet">${file.fileSize} bytes</span></li>`
    )}</ul>
    ${shown === undefined ? html`<p>There is no log file.</p>` : html`<h3>${shown}</h3>`}
    ${Number(files.find((file) => file.fileName === shown)?.fileSize ?? 0) > SHOWN_BYTES ? html`<p class="quiet">The last ${SHOWN_BYTES} bytes; the
      <a href="/ws/v1/node/containers/${id}/logs/${encodeURIComponent(shown)}">whole file</a>.</p>` : nothing}
    <pre tabindex="0" aria-label="contents">${text || "(empty)"}</pre>`;
}
