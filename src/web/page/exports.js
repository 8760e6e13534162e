import { ask, counted, element, on, say, sizeOf } from './page.js';

const EVERY_MS = 500;
const PRICES = new Set(['min_price', 'max_price']);
const NUMBER = /^(-?)(\d*)\.?(\d*)((?:[eE][+-]?\d+)?)$/;
const OVER = new Set(['complete', 'failed', 'cancelled']);

/** Starts exports of the filter above, follows them, and offers their files. */
export function showExports(filter) {
  const form = element('export');
  on(form, 'submit', 'export-request', async () => {
    const wanted = Object.fromEntries(filter());
    const { format, compression } = form.elements;
    const body = orderText({ ...wanted, format: format.value, compression: compression.value });
    const answer = await ask('/exports', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    say(
      'export-request',
      `POST /exports ${body} \u2192 ${answer.status}${answer.ok ? '' : `: ${answer.body?.detail ?? ''}`}`,
    );
    if (answer.ok) follow(answer.response.headers.get('location'));
  });
}

/** The order as JSON. Prices keep all their digits, which a JavaScript number would round. */
function orderText(wanted) {
  const members = Object.entries(wanted).map(([name, text]) => {
    const value = PRICES.has(name) ? jsonNumber(text) : JSON.stringify(text);
    return `${JSON.stringify(name)}:${value}`;
  });
  return `{${members.join(',')}}`;
}

/** Digits in the form of JSON. A number field also accepts `.5`, `5.` and `007`. */
function jsonNumber(text) {
  const [, sign, whole, fraction, exponent] = NUMBER.exec(text) ?? [];
  if (sign === undefined) return JSON.stringify(text); // the server answers with what it expects
  return `${sign}${whole.replace(/^0+(?=\d)/, '') || '0'}${fraction ? `.${fraction}` : ''}${exponent}`;
}

/** An entry of the list. It updates itself until the export is final. */
function follow(url) {
  const entry = document.createElement('li');
  const name = document.createElement('span');
  const progress = document.createElement('progress');
  const words = document.createElement('span');
  const button = document.createElement('button');
  name.textContent = url.split('/').at(-1).slice(0, 8);
  progress.setAttribute('aria-label', `Export ${name.textContent}`);
  words.setAttribute('role', 'status');
  button.type = 'button';
  button.textContent = 'Cancel';
  entry.append(name, progress, words, button);
  element('export-list').prepend(entry);

  const look = async () => {
    const { ok, body } = await ask(url);
    if (!ok) {
      words.textContent = body?.detail ?? 'deleted';
      button.remove();
      return;
    }
    const { rows, estimatedRows, bytes } = body.progress;
    if (estimatedRows) progress.max = Math.max(estimatedRows, rows, 1);
    progress.value = body.state === 'complete' ? progress.max : rows;
    words.textContent = `${body.state}: ${counted(rows)} rows, ${sizeOf(bytes)}`;
    if (!OVER.has(body.state)) {
      setTimeout(() => look().catch(failed), EVERY_MS);
      return;
    }
    button.textContent = 'Remove';
    if (body.state === 'complete') button.before(download(body.file));
  };
  const failed = (error) => (words.textContent = `Failed: ${error.message}`);
  on(button, 'click', 'export-request', async () => {
    const wasOver = button.textContent === 'Remove';
    const { status } = await ask(url, { method: 'DELETE' });
    say('export-request', `DELETE ${url} \u2192 ${status}`);
    if (wasOver) entry.remove();
  });
  look().catch(failed);
}

function download({ url, bytes, sha256 }) {
  const link = document.createElement('a');
  link.href = url;
  link.download = '';
  link.textContent = `Download, ${sizeOf(bytes)}`;
  link.title = `SHA-256 ${sha256}`;
  return link;
}
