/** Functions that all panes use. */

/** The element with this id. Throws when the page lacks it. */
export function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new TypeError(`the page has no element ${id}`);
  return found;
}

export function say(id, text) {
  element(id).textContent = text;
}

/** Formats counts for people. */
export function counted(number) {
  return Math.round(number).toLocaleString('en-US');
}

export function sizeOf(bytes) {
  return bytes < 1e6 ? `${counted(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** Sends a request. Resolves with its JSON, status and milliseconds. A problem is returned like any answer. */
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

/** Shows a request and the time that it took. */
export function told(url, { status, ms, body, ok }) {
  const problem = ok ? '' : `: ${body?.detail ?? ''}`;
  return `GET ${url} \u2192 ${status} in ${ms.toFixed(1)} ms${problem}`;
}

/** Runs an event's handler. Shows its failure where the page shows the handler's requests. */
export function on(target, event, place, act) {
  target.addEventListener(event, (happened) => {
    happened.preventDefault();
    act(happened).catch((error) => say(place, `Failed: ${error.message}`));
  });
}
