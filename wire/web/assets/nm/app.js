// A NodeManager's pages: which path shows which view.
import { html } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";
import { moment } from "/static/lib/format.js";
import { footer, site } from "/static/lib/site.js";
import * as node from "/static/nm/node.js";
import * as logs from "/static/nm/logs.js";

const ROUTES = [
  [/^\/node(?:\/node|\/allApplications|\/allContainers)?\/?$/, node, "Node"],
  [/^\/node\/application\/(?<app>application_\d+_\d+)$/, node, "Node"],
  [/^\/node\/container\/(?<id>container_[\w]+)$/, logs, "Logs"],
  [/^\/node\/containerlogs\/(?<id>container_[\w]+)(?:\/(?<user>[^/]+))?(?:\/(?<file>[^/]+))?$/, logs, "Logs"],
];

site({ name: "NodeManager", routes: ROUTES, menu: [["Node", "/node"]] });
get("/ws/v1/node/info").then(({ nodeInfo }) =>
  footer(html`yarnling, NodeManager ${nodeInfo.nodeManagerVersion} ${nodeInfo.id} · started ${moment(nodeInfo.nmStartupTime)} ·
    <a href="/node/paths">REST API</a> · <a href="/jmx">JMX</a> · <a href="/metrics">metrics</a>`)
);
