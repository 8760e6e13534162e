/** The newest edition of a resource in the panel `Get all of it`: what it is, and the commands that read it. */
import { ask, Refusal } from './api.ts';
import { element, run, say } from './dom.ts';
import { editionSnippets, type EditionHead } from './edition-snippets.ts';
import { currentKey } from './key.ts';
import { Programs } from './programs.ts';
import type { Resource } from './resource.ts';
import { agoOf, rowsOf, sizeOf } from './text.ts';

/** How often the page looks for a newer edition while the panel is open. Milliseconds. */
const LOOK_MS = 5000;

const programs = new Programs('edition', 'sluice pull');
let leave = new AbortController();

/** Shows the edition of a resource, and follows it until another is shown. Without one the place is hidden. */
export function showEdition({ links }: Resource): void {
  leaveEdition();
  leave = new AbortController();
  const { signal } = leave;
  const url = links.edition;
  element('take-edition').hidden = url === undefined;
  if (url === undefined) return;
  showWhat('Looking for it.', false);
  const follow = async () => {
    await look(url, signal);
    setTimeout(() => {
      if (!signal.aborted) run(follow, failed);
    }, LOOK_MS);
  };
  const failed = (reason: string) => showWhat(`It could not be read: ${reason}`, false);
  run(follow, failed);
}

export function leaveEdition(): void {
  leave.abort();
}

async function look(url: string, signal: AbortSignal): Promise<void> {
  try {
    const { body, response } = await ask<EditionHead>(url, { cache: 'no-store', signal });
    // The clock of the server, for that of the browser may be wrong.
    const now = Date.parse(response.headers.get('date') ?? '');
    showHead(body, url, Number.isNaN(now) ? Date.now() : now);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    // It says how far the first one has come, or why there is none.
    showWhat(error.message, false);
  }
}

function showHead(head: EditionHead, url: string, now: number): void {
  const { at, rows, bytes } = head;
  showWhat(`Of ${agoOf(Date.parse(at), now)}: ${rowsOf(rows)}, ${sizeOf(bytes)} as NDJSON.`, true);
  element('edition-what').title = `${at}, edition ${head.edition}`;
  const withKey = currentKey() !== null;
  const shown = editionSnippets({ url: location.origin + url, head, withKey });
  if (element('edition-programs').dataset.of === JSON.stringify(shown)) return; // a choice keeps its focus
  element('edition-programs').dataset.of = JSON.stringify(shown);
  programs.show(shown);
}

function showWhat(words: string, isThere: boolean): void {
  say('edition-what', words);
  element('edition-commands').hidden = !isThere;
}
