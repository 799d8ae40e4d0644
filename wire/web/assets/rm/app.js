// The ResourceManager's pages: which path shows which view.
import { html } from "/static/vendor/lit-html.js";
import { follow, get } from "/static/lib/api.js";
import { moment } from "/static/lib/format.js";
import { footer, site } from "/static/lib/site.js";
import * as overview from "/static/rm/overview.js";
import * as queues from "/static/rm/queues.js";
import * as nodes from "/static/rm/nodes.js";
import * as applications from "/static/rm/applications.js";
import * as application from "/static/rm/application.js";
import * as container from "/static/rm/container.js";
import * as historyView from "/static/rm/history.js";
import * as waiting from "/static/rm/waiting.js";
import * as configuration from "/static/rm/configuration.js";

const ROUTES = [
  [/^\/cluster(?:\/cluster|\/about)?\/?$/, overview, "Cluster"],
  [/^\/cluster\/(?:scheduler|nodelabels)$/, queues, "Queues"],
  [/^\/cluster\/nodes(?:\/(?<state>\w+))?$/, nodes, "Nodes"],
  [/^\/cluster\/apps(?:\/(?<states>[\w,]+))?$/, applications, "Applications"],
  [/^\/cluster\/app\/(?<id>application_\d+_\d+)$/, application, "Applications"],
  [/^\/cluster\/appattempt\/appattempt_(?<number>\d+_\d+)_\d+$/, application, "Applications"],
  [/^\/cluster\/container\/(?<id>container_(?:e\d+_)?\d+_\d+_\d+_\d+)$/, container, "Applications"],
  [/^\/cluster\/waiting$/, waiting, "Waiting"],
  [/^\/cluster\/history$/, historyView, "History"],
  [/^\/cluster\/configuration$/, configuration, "Configuration"],
];
const MENU = [
  ["Cluster", "/cluster"], ["Queues", "/cluster/scheduler"], ["Nodes", "/cluster/nodes"],
  ["Applications", "/cluster/apps"], ["Waiting", "/cluster/waiting"], ["History", "/cluster/history"],
  ["Configuration", "/cluster/configuration"],
];

const { draw, reached } = site({ name: "ResourceManager", routes: ROUTES, menu: MENU });
follow("/ws/yarnling/v1/changes", draw, reached);
get("/ws/v1/cluster/info").then(({ clusterInfo }) =>
  footer(html`yarnling, ResourceManager ${clusterInfo.resourceManagerVersion} · started ${moment(clusterInfo.startedOn)} ·
    <a href="/cluster/paths">REST API</a> · <a href="/jmx">JMX</a> · <a href="/metrics">metrics</a>`)
);
