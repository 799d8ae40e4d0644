// Asks the daemon that serves this page.

const TIMEOUT_MS = 20000;

export async function get(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (answer.ok) return answer.json();
  throw new Error(`${answer.status}: ${await reason(answer)}`);
}

// `body`: what is sent as JSON, if anything is.
export async function post(path, body) {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const headers = { Accept: "application/json", ...(sent.body && { "Content-Type": "application/json" }) };
  const answer = await fetch(path, { method: "POST", headers, ...sent, signal: AbortSignal.timeout(2 * TIMEOUT_MS) });
  if (answer.ok) return answer.json();
  throw new Error(await reason(answer));
}

async function reason(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).RemoteException.message;
  } catch {
    return text.slice(0, 500);
  }
}

const LOST_MS = 4000;

// Calls `changed` after the daemon has reported a change, and `reached(true | false)` when it is reached or lost.
// A stream ends after a while, and the browser opens the next one: only if that takes long, the daemon is lost.
// A page that is hidden or left closes its stream, because a browser keeps only six connections to a server for all tabs.
export function follow(path, changed, reached) {
  let source, lost, again;

  function open() {
    close();
    if (document.visibilityState !== "visible") return;
    source = new EventSource(path);
    source.addEventListener("changed", () => changed());
    source.addEventListener("open", () => {
      clearTimeout(lost);
      lost = undefined;
      reached(true);
    });
    source.addEventListener("error", () => {
      lost ??= setTimeout(() => reached(false), LOST_MS);
      if (source?.readyState === EventSource.CLOSED) again = setTimeout(open, LOST_MS);
    });
  }

  function close() {
    clearTimeout(lost);
    clearTimeout(again);
    lost = undefined;
    source?.close();
    source = undefined;
  }

  document.addEventListener("visibilitychange", open);
  addEventListener("pageshow", open);
  addEventListener("pagehide", close);
  open();
}

// The text of an answer, such as a log.
export async function getText(path) {
  const answer = await fetch(path, { headers: { Accept: "text/plain" }, signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (answer.ok) return answer.text();
  throw new Error(`${answer.status}: ${await reason(answer)}`);
}
