/** Downloads. The browser saves a link itself; with an API key, which a link cannot send, the page fetches the file. */
import { chunksOf, open } from './api.ts';
import { make, on, say } from './dom.ts';
import { currentKey } from './key.ts';
import { sizeOf } from './text.ts';

/** A link to a file. `name`: what the file is called on disk. */
export function downloadLink(label: string, url: string, name: string): HTMLElement {
  const link = make('a.button', { href: url, download: name }, label);
  on(link, 'click', async (clicked) => {
    if (currentKey() === null) return;
    clicked.preventDefault();
    await fetchFile(url, name);
  });
  return link;
}

/** Fetches a file, shows how much of it has come, and saves it when it is whole. */
async function fetchFile(url: string, name: string): Promise<void> {
  const parts: Blob[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(await open(url))) {
    bytes += chunk.length;
    // Browsers keep large blobs on disk.
    parts.push(new Blob([chunk]));
    say('download-state', `${name}: ${sizeOf(bytes)}`);
  }
  const saved = URL.createObjectURL(new Blob(parts));
  make('a', { href: saved, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(saved), 60_000);
  say('download-state', `${name}: ${sizeOf(bytes)}, whole`);
}
