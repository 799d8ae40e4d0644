// The tree of queues as the scheduler answers it, and which of its queues are shown: what is folded, found and first.
import { shortened } from "/static/lib/names.js";

const LARGE = 30; // a tree of more queues is folded, and its idle queues take one line together
const NAME_MAX = 34; // characters of a name
const KEPT = "yarnling.open"; // in the browser's session: {path: whether the reader has opened or folded it}

export const SORTS = [["waits", "what waits first"], ["use", "most used first"], ["name", "by name"], ["listed", "as the scheduler lists them"]];

// The tree of queues from the scheduler's answer, in megabytes of the default partition.
export function readScheduler({ scheduler: { schedulerInfo } }) {
  const root = readQueue(schedulerInfo);
  root.share = (mb) => (root.guaranteed ? mb / root.guaranteed : 0);
  return root;
}

function readQueue(info) {
  const of = (entries) => (entries ?? []).find((entry) => entry.partitionName === "") ?? {};
  const capacity = of(info.capacities?.queueCapacitiesByPartition);
  const use = of(info.resources?.resourceUsagesByPartition);
  const children = [].concat(info.queues?.queue ?? []).map(readQueue);
  const short = shortened(children.map((child) => child.name), NAME_MAX);
  for (const child of children) child.short = short.get(child.name);
  const sum = (name) => children.reduce((total, child) => total + child[name], 0);
  const isLeaf = !children.length;
  const reserved = isLeaf ? (use.reserved?.memory ?? 0) : sum("reserved");
  const queue = {
    name: info.queueName,
    short: info.queueName,
    path: info.queuePath,
    state: info.state ?? "RUNNING",
    guaranteed: capacity.effectiveMinResource?.memory ?? 0,
    maximum: capacity.effectiveMaxResource?.memory ?? 0,
    used: isLeaf ? (use.used?.memory ?? 0) - reserved : sum("used"),
    reserved,
    pending: isLeaf ? (use.pending?.memory ?? 0) : sum("pending"),
    running: isLeaf ? info.numActiveApplications : sum("running"),
    waiting: isLeaf ? info.numPendingApplications : sum("waiting"),
    users: [].concat(info.users?.user ?? []),
    amLimit: use.amLimit?.memory,
    amUsed: use.amUsed?.memory,
    settings: isLeaf ? info : null,
    children,
    size: 1 + sum("size"),
  };
  queue.isIdle = ![queue.used, queue.reserved, queue.pending, queue.running, queue.waiting].some((amount) => amount > 0);
  queue.isWaiting = queue.pending > 0 || queue.waiting > 0;
  return queue;
}

// How the tree is shown: `search` and `sort` are part of the address.
export function optionsOf(root, query) {
  const isLarge = root.size > LARGE;
  const sort = SORTS.some(([name]) => name === query.get("sort")) ? query.get("sort") : isLarge ? "waits" : "listed";
  return { isLarge, sort, search: (query.get("search") ?? "").trim().toLowerCase() };
}

const chosen = () => JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");

// Whether a queue shows what is below it; `idle:PATH` stands for the idle queues below a queue.
export function isOpen(key, queue, { isLarge, search }) {
  if (search) return true;
  return chosen()[key] ?? (key.startsWith("idle:") ? false : !isLarge || queue.path === "root" || queue.isWaiting);
}

export function setOpen(keys, value) {
  const now = chosen();
  for (const key of keys) now[key] = value;
  sessionStorage.setItem(KEPT, JSON.stringify(now));
}

export function* withAllBelow(queue) {
  yield queue;
  for (const child of queue.children) yield* withAllBelow(child);
}

const ORDERS = {
  waits: (a, b) => b.pending - a.pending || b.waiting - a.waiting || b.used - a.used,
  use: (a, b) => b.used + b.reserved - a.used - a.reserved || b.pending - a.pending,
  name: (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }),
  listed: () => 0,
};

export const sorted = (queues, sort) => [...queues].sort(ORDERS[sort]);

const matches = (queue, search) => !search || queue.path.toLowerCase().includes(search) || queue.children.some((child) => matches(child, search));

// The rows of the tree from top to bottom: {queue, depth}, or {idle, of, depth} for queues without use.
export function* rowsOf(queue, options, depth = 0) {
  yield { queue, depth };
  if (!queue.children.length || !isOpen(queue.path, queue, options)) return;
  const below = sorted(queue.children.filter((child) => matches(child, options.search)), options.sort);
  const isFolded = (child) => options.isLarge && !options.search && child.isIdle;
  for (const child of below) if (!isFolded(child)) yield* rowsOf(child, options, depth + 1);
  const idle = below.filter(isFolded);
  if (idle.length) yield { idle, of: queue, depth: depth + 1 };
}
