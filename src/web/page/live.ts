/** Follows the changes of a resource while its table is shown. */
import { REMOVAL_BEGINNING } from '../../pull/lines.ts';
import { BEGINNING } from '../../pull/proof.ts';
import { provedRows } from '../../pull/proved-rows.ts';
import { CLOCK, getContent, urlOf } from './api.ts';
import type { Resource } from './resource.ts';
import { parseJson, type Row } from './json.ts';
import { filterQuery, type View } from './view.ts';

/** A lost connection is tried again for so long without an answer. Milliseconds. */
const RETRY_MS = 1_000_000_000;

export interface Changes {
  /** Rows as they are now. */
  readonly rows: readonly Row[];
  /** Rows that are gone, or that no longer match: their keys alone. */
  readonly removed: readonly Row[];
}

export interface LiveOptions {
  readonly resource: Resource;
  readonly view: View;
  readonly signal: AbortSignal;
  readonly changed: (changes: Changes) => void;
  /** The server no longer has all changes, so the page must read everything again. */
  readonly lost: () => void;
  readonly state: (words: string) => void;
}

/** Follows from now on, until the signal aborts. A lost connection goes on where it was. */
export async function follow({ resource, view, signal, ...on }: LiveOptions): Promise<void> {
  const url = new URL(urlOf(resource.links.changes ?? '', filterQuery(resource, view)), location.href);
  const steps = provedRows(url, {
    ...{ from: BEGINNING, firstRow: null, follow: true, compression: 'none', key: null, clock: CLOCK },
    ...{ getContent, signal, retryForMs: RETRY_MS, idleMs: 0 },
    onInterrupted: ({ message }) => on.state(`Connecting again: ${message}`),
  });
  let unproved: Uint8Array<ArrayBuffer>[] = [];
  for await (const step of steps) {
    if (step.kind === 'rows') unproved.push(step.bytes.slice());
    else {
      if (step.kind === 'restart') on.lost();
      if (step.kind === 'proof' && step.rows > 0) on.changed(changesIn(await new Blob(unproved).text()));
      unproved = [];
    }
  }
}

function changesIn(lines: string): Changes {
  const [rows, removed]: [Row[], Row[]] = [[], []];
  for (const line of lines.split('\n').slice(0, -1)) {
    const value = parseJson(line) as Row;
    if (line.startsWith(REMOVAL_BEGINNING)) removed.push(value.removed as Row);
    else rows.push(value);
  }
  return { rows, removed };
}
