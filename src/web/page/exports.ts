/** Exports of what is shown: ordered, followed to their end, and offered as files. */
import { ask, Refusal } from './api.ts';
import { downloadLink } from './download.ts';
import { element, make, run, say } from './dom.ts';
import { rowsOf, sizeOf } from './text.ts';
import { viewQuery, type View } from './view.ts';

const EVERY_MS = 500;
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
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

export async function order(view: View, format: string, compression: string): Promise<void> {
  const body = orderText(view, { format, compression });
  const headers = { 'content-type': 'application/json' };
  const ordered = await askShown(view.resource.links.exports ?? 'exports', { method: 'POST', headers, body });
  if (ordered) followExport(`exports/${ordered.id}`, `${view.resource.name}, ${format}`);
}

/** The order as JSON. Numbers keep all their digits, which a JavaScript number would round. */
function orderText(view: View, form: Readonly<Record<string, string>>): string {
  const { name, aliases = [] } = view.resource;
  const members = Object.entries({ resource: name, ...Object.fromEntries(viewQuery(view, form)) });
  const texts = members.map(([member, text]) => {
    const isNumber = aliases.some((alias) => alias.name === member && alias.type === 'number');
    // A query also accepts `.5` and `007`. The server answers to those with what it expects here.
    return `${JSON.stringify(member)}:${isNumber && JSON_NUMBER.test(text) ? text : JSON.stringify(text)}`;
  });
  return `{${texts.join(',')}}`;
}

/** Sends a request, and shows it with its answer. Null: the server refused it. */
async function askShown(
  url: string,
  options: RequestInit & { readonly body?: string },
): Promise<Export | null> {
  const { method = '', body: sent } = options;
  const shown = `${method} ${new URL(url, document.baseURI).pathname}${sent === undefined ? '' : ` ${sent}`} \u2192`;
  try {
    const { response, body } = await ask<Export>(url, options);
    say('export-request', `${shown} ${response.status}`);
    return body;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    say('export-request', `${shown} ${error.status}: ${error.message}`);
    return null;
  }
}

/** An entry of the list. It updates itself until the export is final. */
function followExport(url: string, title: string): void {
  const progress = make('progress', { 'aria-label': `Export of ${title}` });
  const words = make('span', { role: 'status' });
  let isOver = false;
  const remove = async () => {
    if (isOver) entry.remove();
    await askShown(url, { method: 'DELETE' });
  };
  const button = make('button.small', { onclick: remove }, 'Cancel');
  const entry = make('li', make('span', title), progress, words, button);
  element('export-list').prepend(entry);

  const look = async () => {
    const { body } = await ask<Export>(url);
    const { state, file, problem } = body;
    const { rows, estimatedRows, bytes } = body.progress;
    if (estimatedRows !== undefined) progress.max = Math.max(estimatedRows, rows, 1);
    if (state === 'complete') progress.value = progress.max;
    else if (estimatedRows !== undefined) progress.value = rows;
    const reason = problem?.detail === undefined ? '' : `. ${problem.detail}`;
    words.textContent = `${state}: ${rowsOf(rows)}, ${sizeOf(bytes)}${reason}`;
    isOver = OVER.has(state);
    if (!isOver) {
      setTimeout(() => run(look, failed), EVERY_MS);
      return;
    }
    button.textContent = 'Remove';
    if (!file) return;
    const link = downloadLink(`Download, ${sizeOf(file.bytes)}`, file.url, file.name);
    link.title = `SHA-256 ${file.sha256}`;
    button.before(link);
  };
  const failed = (reason: string) => (words.textContent = `Failed: ${reason}`);
  run(look, failed);
}
