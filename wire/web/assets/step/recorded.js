// The steps of a run that are in the page itself. source.js has the same functions for a server's run.
//
// The element `run` has JSON, compressed and in base64. `objects`: queues, nodes, applications, steps, and lists of the
// numbers of others, each once. A branch has the numbers of its steps from `from` on, and a view after each of them:
// [state of the ResourceManager, queues, nodes, applications]; before that it is the same as the first branch.
const BEFORE = 9, AFTER = 5;
const packed = Uint8Array.from(atob(document.getElementById("run").textContent), (one) => one.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const run = JSON.parse(await new Response(unpacked).text());
const first = run.branches[0];
for (const branch of run.branches.slice(1)) {
  branch.steps = [...first.steps.slice(0, branch.from), ...branch.steps];
  branch.views = [...first.views.slice(0, branch.from + 1), ...branch.views];
}
let current = 0, position = run.opening;

const branch = () => run.branches[current];
const step = (number) => run.objects[branch().steps[number - 1]];
const bounded = (number) => Math.max(0, Math.min(number, branch().steps.length));

function view() {
  const [rm, ...lists] = run.objects[branch().views[position]];
  const [queues, nodes, applications] = lists.map((list) => run.objects[list].map((number) => run.objects[number]));
  return { rm, queues, nodes, applications };
}

function state(said = "") {
  const { steps, moments, isComplete, command } = branch();
  const around = [];
  for (let number = bounded(position - BEFORE); number <= bounded(position + AFTER); number++) if (number) around.push(step(number));
  return { title: run.title, repeated: `${command} --at ${position}`, position, known: steps.length, isComplete, moments, around, said,
    branches: run.branches.map((one) => one.name), forks: run.forks, current, atMs: position ? step(position).atMs : 0,
    step: position ? step(position) : null, view: view() };
}

function move(by) {
  const before = position;
  position = bounded(position + by);
  if (position !== before) return "";
  return by < 0 ? "this is the start of the run" : branch().isComplete ? "this is the end of the run" : "the page ends here; the run goes on";
}

function find(by, isWanted, what) {
  for (let number = position + by; number > 0 && number <= branch().steps.length; number += by)
    if (isWanted(number)) { position = number; return ""; }
  return `there is no ${what} ${by > 0 ? "after" : "before"} this position`;
}

function toTime(text) {
  const ms = 1000 * Number(text.trim().replace(/s$/, ""));
  if (!(ms >= 0)) throw new Error(`"${text}" is not a time in seconds`);
  position = branch().steps.filter((number) => run.objects[number].atMs <= ms).length;
  return "";
}

function toBranch(number) {
  current = number;
  position = number ? Math.max(position, branch().from + 1) : position;
  position = bounded(position);
  return "";
}

function fork(text) {
  const found = run.forks.find((one) => current === 0 && one.step === position && one.text === text);
  if (!found) throw new Error("this page has only the changes in its list; others: yarnling simulate step");
  position = found.step + 1;
  return toBranch(found.branch);
}

const isChange = (number) => step(number).isChange;
const isMoment = (number) => branch().moments.some((moment) => moment.step === number);
const isHeartbeat = (node) => (number) => step(number).node !== "" && (!node || step(number).node === node);
const COMMANDS = {
  next: () => move(1), back: () => move(-1), start: () => move(-position), end: () => move(branch().steps.length), moments: () => "",
  heartbeat: (node) => find(1, isHeartbeat(node), "heartbeat"), "previous heartbeat": (node) => find(-1, isHeartbeat(node), "heartbeat"),
  change: () => find(1, isChange, "change"), "previous change": () => find(-1, isChange, "change"),
  moment: () => find(1, isMoment, "moment"), "previous moment": () => find(-1, isMoment, "moment"),
  step: (number) => { position = bounded(Number(number)); return ""; }, time: toTime, branch: (number) => toBranch(Number(number)), fork,
  "what if": (number) => { const { branch: other, step: at } = run.forks[number]; position = at + 1; return toBranch(other); },
};

export const load = async () => state();
export const command = async (name, argument) => state(COMMANDS[name](argument));
