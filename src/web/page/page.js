/** What the panes share. */

/** The element of this id; the page has it, or it is broken. */
export function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new TypeError(`the page has no element ${id}`);
  return found;
}

export function say(id, text) {
  element(id).textContent = text;
}

/** Counts as a person reads them. */
export function counted(number) {
  return Math.round(number).toLocaleString('en-US');
}

export function sizeOf(bytes) {
  return bytes < 1e6 ? `${counted(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** Asks and times: the answer's JSON, its status, and how long it took to be here. Problems come as they are. */
export async function ask(url, options) {
  const began = performance.now();
  const response = await fetch(url, options);
  const text = await response.text();
  const ms = performance.now() - began;
  return {
    status: response.status,
    ok: response.ok,
    body: text === '' ? null : JSON.parse(text),
    ms,
    response,
  };
}

/** A request as it is shown: what was asked, and what it took. */
export function told(url, { status, ms, body, ok }) {
  const problem = ok ? '' : `: ${body?.detail ?? ''}`;
  return `GET ${url} \u2192 ${status} in ${ms.toFixed(1)} ms${problem}`;
}

/** Runs what an event starts; what goes wrong on the way is told where its requests are. */
export function on(target, event, place, act) {
  target.addEventListener(event, (happened) => {
    happened.preventDefault();
    act(happened).catch((error) => say(place, `That did not work: ${error.message}`));
  });
}
