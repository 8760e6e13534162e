/** Reads the same rows by their number and by cursor, to show what depth costs. */
import { ask, Refused, urlOf } from './api.ts';
import type { Resource } from './resource.ts';
import { jsonText, type Row } from './json.ts';
import { element, on, say } from './dom.ts';
import { counted } from './text.ts';
import { viewQuery, type View } from './view.ts';

/** Each is asked so often; the fastest counts. */
const ROUNDS = 3;

interface PageBody {
  readonly data: readonly Row[];
  readonly page: { readonly nextCursor: string | null };
}

let shown: { readonly resource: Resource; readonly view: View } | null = null;

/** Sets up the form. */
export function setUpDepth(): void {
  on(element('depth'), 'submit', compare, (text) => say('depth-result', text));
}

export function showDepth(resource: Resource, view: View): void {
  shown = { resource, view };
  const rows = resource.rows ?? 0;
  const input = element('depth-row', HTMLInputElement);
  if (input.value === '') input.value = String(Math.min(1_000_000, Math.max(1, Math.floor(rows * 0.9))));
}

async function compare(): Promise<void> {
  if (!shown) return;
  const { resource, view } = shown;
  const row = Math.max(1, Number(element('depth-row', HTMLInputElement).value.replace(/\D/g, '')));
  say('depth-result', 'Reading\u2026');
  const get = (changes: Readonly<Record<string, string>>) => {
    const query = viewQuery(resource, view);
    for (const [name, value] of Object.entries(changes)) query.set(name, value);
    return ask<PageBody>(urlOf(resource.links.page, query), { cache: 'no-store' });
  };
  try {
    const before = await get({ offset: String(row - 1), limit: '1' });
    const cursor = before.body.page.nextCursor;
    if (before.body.data.length === 0 || cursor === null) {
      say('depth-result', `There are fewer than ${counted(row)} rows.`);
      return;
    }
    const byNumber = await fastest(() => get({ offset: String(row), limit: '10' }));
    const byCursor = await fastest(() => get({ cursor, limit: '10' }));
    const same = jsonText(byNumber.rows) === jsonText(byCursor.rows);
    showBars(byNumber.ms, byCursor.ms);
    say(
      'depth-result',
      `after row ${counted(row)}: by number ${byNumber.ms.toFixed(1)} ms, by cursor ${byCursor.ms.toFixed(1)} ms, ` +
        (same ? 'the same rows' : 'different rows: some have changed in between'),
    );
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say('depth-result', error.message);
  }
}

async function fastest(
  get: () => Promise<{ readonly body: PageBody; readonly ms: number }>,
): Promise<{ readonly rows: readonly Row[]; readonly ms: number }> {
  let best = await get();
  for (let round = 1; round < ROUNDS; round++) {
    const next = await get();
    if (next.ms < best.ms) best = next;
  }
  return { rows: best.body.data, ms: best.ms };
}

function showBars(byNumber: number, byCursor: number): void {
  const most = Math.max(byNumber, byCursor, 0.1);
  for (const [name, ms] of [
    ['number', byNumber],
    ['cursor', byCursor],
  ] as const) {
    element(`bar-${name}`).style.width = `${Math.max(1, (ms / most) * 100)}%`;
    say(`bar-${name}-ms`, `${ms.toFixed(1)} ms`);
  }
  element('depth-bars').hidden = false;
}
