/** Exports of what is shown: ordered, followed to their end, and offered as files. */
import { ask, Refused } from './api.ts';
import type { Resource } from './resource.ts';
import { downloadLink } from './download.ts';
import { element, make, on, run, say } from './dom.ts';
import { reasonOf, rowsOf, sizeOf } from './text.ts';

const EVERY_MS = 500;
const NUMBER = /^(-?)(\d*)\.?(\d*)((?:[eE][+-]?\d+)?)$/;
const OVER = new Set(['complete', 'failed', 'cancelled']);

interface Export {
  readonly id: string;
  readonly state: string;
  readonly progress: { readonly rows: number; readonly estimatedRows?: number; readonly bytes: number };
  readonly file?: {
    readonly url: string;
    readonly name: string;
    readonly bytes: number;
    readonly sha256: string;
  };
  readonly problem?: { readonly detail?: string };
}

/** Orders an export of a view's query. */
export async function order(
  resource: Resource,
  query: URLSearchParams,
  form: { readonly format: string; readonly compression: string },
): Promise<void> {
  const wanted = { resource: resource.name, ...Object.fromEntries(query), ...form };
  const body = orderText(resource, wanted);
  const headers = { 'content-type': 'application/json' };
  try {
    const answer = await ask<Export>('/exports', { method: 'POST', headers, body });
    say('export-request', `POST /exports ${body} \u2192 ${answer.status}`);
    const url = answer.headers.get('location') ?? `/exports/${answer.body.id}`;
    followExport(url, `${resource.name}, ${form.format}`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say('export-request', `POST /exports ${body} \u2192 ${error.status}: ${error.message}`);
  }
}

/** The order as JSON. Numbers keep all their digits, which a JavaScript number would round. */
function orderText({ aliases = [] }: Resource, wanted: Readonly<Record<string, string>>): string {
  const members = Object.entries(wanted).map(([name, text]) => {
    const isNumber = aliases.some((alias) => alias.name === name && alias.type === 'number');
    const value = isNumber ? jsonNumber(text) : JSON.stringify(text);
    return `${JSON.stringify(name)}:${value}`;
  });
  return `{${members.join(',')}}`;
}

/** Digits in the form of JSON. A query also accepts `.5`, `5.` and `007`. */
function jsonNumber(text: string): string {
  const [, sign, whole = '', fraction, exponent = ''] = NUMBER.exec(text) ?? [];
  if (sign === undefined) return JSON.stringify(text); // the server answers with what it expects
  return `${sign}${whole.replace(/^0+(?=\d)/, '') || '0'}${fraction ? `.${fraction}` : ''}${exponent}`;
}

/** An entry of the list. It updates itself until the export is final. */
function followExport(url: string, title: string): void {
  const progress = make('progress', { 'aria-label': `Export of ${title}` });
  const words = make('span', { role: 'status' });
  const button = make('button', { type: 'button', class: 'small' }, 'Cancel');
  const entry = make('li', {}, make('span', {}, title), progress, words, button);
  element('export-list').prepend(entry);

  const look = async () => {
    const { body } = await ask<Export>(url);
    const { rows, estimatedRows, bytes } = body.progress;
    if (estimatedRows !== undefined) progress.max = Math.max(estimatedRows, rows, 1);
    if (body.state === 'complete') progress.value = progress.max;
    else if (estimatedRows !== undefined) progress.value = rows;
    const reason = body.problem?.detail;
    words.textContent = `${body.state}: ${rowsOf(rows)}, ${sizeOf(bytes)}${reason === undefined ? '' : `. ${reason}`}`;
    if (!OVER.has(body.state)) {
      setTimeout(() => run(look, failed), EVERY_MS);
      return;
    }
    button.textContent = 'Remove';
    if (body.file) {
      const link = downloadLink(`Download, ${sizeOf(body.file.bytes)}`, body.file.url, body.file.name);
      link.title = `SHA-256 ${body.file.sha256}`;
      button.before(link);
    }
  };
  const failed = (reason: string) => (words.textContent = `Failed: ${reason}`);
  on(button, 'click', async () => {
    const wasOver = button.textContent === 'Remove';
    try {
      const { status } = await ask(url, { method: 'DELETE' });
      say('export-request', `DELETE ${url} \u2192 ${status}`);
    } catch (error) {
      say('export-request', `DELETE ${url}: ${reasonOf(error)}`);
    }
    if (wasOver) entry.remove();
  });
  run(look, failed);
}
