// Amounts and times as text.

export function memory(mb) {
  if (mb < 1024) return `${mb} MB`;
  const gb = mb / 1024;
  return `${gb >= 100 ? Math.round(gb) : Math.round(gb * 10) / 10} GB`;
}

// A resource of all types that are not zero; memory and vcores always.
export function amounts(resource) {
  const more = Object.entries(resource).filter(([name, amount]) => !["memory-mb", "vcores"].includes(name) && amount > 0);
  return [memory(resource["memory-mb"]), plural(resource.vcores, "vcore"), ...more.map(([name, amount]) => `${amount} ${name}`)].join(", ");
}

export const percent = (share) => `${Math.round(share * 1000) / 10} %`;

export function duration(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export const moment = (ms) => (ms ? new Date(ms).toLocaleString() : "");

// Without seconds, and of today's moments the time alone.
export function briefMoment(ms) {
  if (!ms) return "";
  const then = new Date(ms);
  const isToday = then.toDateString() === new Date().toDateString();
  return isToday ? then.toLocaleTimeString([], { timeStyle: "short" }) : then.toLocaleString([], { dateStyle: "short", timeStyle: "short" });
}

// The class of an application's colour: neighbours in time get different ones.
export const colour = (app) => (app ? `c${Number(app.split("_").pop()) % 8}` : "cx");

export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// The text of a search field as it is now: a page that is drawn meanwhile must not take back what the reader types.
export const typed = (name, query) => (document.activeElement?.name === name ? document.activeElement.value : query.get(name) ?? "");
