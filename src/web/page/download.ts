/** Downloads. The browser saves a link itself; with an API key, which a link cannot send, the page fetches the file. */
import { chunksOf, open } from './api.ts';
import { element, make, on } from './dom.ts';
import { currentKey } from './key.ts';
import { sizeOf } from './text.ts';

/** A link to a file. `name`: what the file is called on disk. */
export function downloadLink(label: string, url: string, name: string): HTMLElement {
  const link = make('a', { href: url, download: name, class: 'button' }, label);
  on(link, 'click', async (clicked) => {
    if (currentKey() === null) return;
    clicked.preventDefault();
    await fetchFile(url, name);
  });
  return link;
}

/** Fetches a file, shows how much of it has come, and saves it when it is whole. */
async function fetchFile(url: string, name: string): Promise<void> {
  const state = element('download-state');
  const parts: Blob[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(await open(url))) {
    bytes += chunk.length;
    // Browsers keep large blobs on disk.
    parts.push(new Blob([chunk]));
    state.textContent = `${name}: ${sizeOf(bytes)}`;
  }
  const saved = URL.createObjectURL(new Blob(parts));
  make('a', { href: saved, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(saved), 60_000);
  state.textContent = `${name}: ${sizeOf(bytes)}, whole`;
}
