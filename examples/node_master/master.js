"use strict";
// A complete ApplicationMaster in JavaScript: requests containers, runs a command in each, and reports the result.
//
// It uses nothing but YARN's protocol: the .proto files, two metadata keys, and the files that a NodeManager provides to
// a container (the token file, the configuration). examples/submit_node_master.py submits it.

const fs = require("fs");
const path = require("path");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const HEARTBEAT_MS = 100;
const COMMAND = "echo hello from $NM_HOST 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr";
const TOKEN_KEY = "yarn-token-bin";

const { yarn } = grpc.loadPackageDefinition(
  loader.loadSync(["applicationmaster_protocol.proto", "containermanagement_protocol.proto"], {
    includeDirs: [path.join(__dirname, "protos"), __dirname],
    keepCase: true, longs: String, enums: String, arrays: true,
  }),
).hadoop;

// Tokens: read from Hadoop's file, shown as a serialised TokenProto beside each call.

function readTokens(file) {
  const data = fs.readFileSync(file);
  let at = 5; // "HDTS" and the version
  const vint = () => {
    const first = data.readInt8(at++);
    if (first >= -112) return first;
    const bytes = -112 - first; // never negative here
    at += bytes;
    return data.readUIntBE(at - bytes, bytes);
  };
  const block = () => { const size = vint(); at += size; return data.subarray(at - size, at); };
  return Array.from({ length: vint() }, () => {
    block(); // the alias
    return { identifier: block(), password: block(), kind: block().toString(), service: block().toString() };
  });
}

function shown(token) {
  const field = (number, value) => {
    const bytes = Buffer.from(value);
    const size = [];
    for (let rest = bytes.length; ; rest >>>= 7) {
      size.push(rest > 127 ? (rest & 127) | 128 : rest);
      if (rest <= 127) return Buffer.concat([Buffer.from([(number << 3) | 2, ...size]), bytes]);
    }
  };
  const metadata = new grpc.Metadata();
  const parts = [token.identifier, token.password, token.kind, token.service];
  metadata.set(TOKEN_KEY, Buffer.concat(parts.map((value, index) => field(index + 1, value))));
  return metadata;
}

// A caller of one service: await call("allocate", {...}).
function caller(Service, target, token) {
  const client = new Service(target, grpc.credentials.createInsecure());
  return (method, request) => new Promise((resolve, reject) => {
    client[method](request, shown(token), (error, reply) => (error ? reject(error) : resolve(reply)));
  });
}

function schedulerAddress() {
  const site = fs.readFileSync(path.join(process.env.HADOOP_CONF_DIR, "yarn-site.xml"), "utf8");
  return /<name>yarn\.resourcemanager\.scheduler\.address<\/name>\s*<value>([^<]+)</.exec(site)[1];
}

async function main(wanted) {
  const tokens = readTokens(process.env.HADOOP_TOKEN_FILE_LOCATION);
  const amrm = tokens.find((token) => token.kind === "YARN_AM_RM_TOKEN");
  const rm = caller(yarn.ApplicationMasterProtocolService, schedulerAddress(), amrm);
  const nmTokens = new Map();
  const nameOf = (node) => `${node.host}:${node.port}`;

  await rm("registerApplicationMaster", { host: process.env.NM_HOST, rpc_port: -1, tracking_url: "" });
  // Sent once: the ResourceManager lowers the count of the request as it allocates containers.
  let ask = [{
    priority: { priority: 0 }, resource_name: "*", capability: { memory: 64, virtual_cores: 1 }, num_containers: wanted,
  }];
  let [responseId, ended, failed] = [0, 0, 0];
  let release = [];
  const running = new Set(); // by the number that a container has within the attempt
  while (ended < wanted) {
    const reply = await rm("allocate", { response_id: responseId, progress: ended / wanted, ask, release });
    [responseId, ask, release] = [reply.response_id, [], []];
    for (const { nodeId, token } of reply.nm_tokens) nmTokens.set(nameOf(nodeId), token);
    for (const container of reply.allocated_containers) {
      if (running.size + ended === wanted) { release.push(container.id); continue; } // one more than requested
      running.add(container.id.id);
      const node = nameOf(container.nodeId);
      const nm = caller(yarn.ContainerManagementProtocolService, node, nmTokens.get(node));
      const answer = await nm("startContainers", {
        start_container_request: [{
          container_launch_context: { command: [COMMAND] }, container_token: container.container_token,
        }],
      });
      if (answer.failed_requests.length) throw new Error(JSON.stringify(answer.failed_requests));
    }
    const ours = reply.completed_container_statuses.filter((status) => running.delete(status.container_id.id));
    ended += ours.length;
    failed += ours.filter((status) => status.exit_status !== 0).length;
    await new Promise((resolve) => setTimeout(resolve, HEARTBEAT_MS));
  }
  const final_application_status = failed ? "APP_FAILED" : "APP_SUCCEEDED";
  const outcome = { final_application_status, diagnostics: `${ended} ended, ${failed} failed`, tracking_url: "" };
  while (!(await rm("finishApplicationMaster", outcome)).isUnregistered) {
    await new Promise((resolve) => setTimeout(resolve, HEARTBEAT_MS));
  }
}

main(Number(process.argv[2])).then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
