/** `Get all of it`: programs that read the rows of the view, downloads, and exports. */
import { urlOf } from './api.ts';
import type { Resource } from './resource.ts';
import { hideDetail } from './detail.ts';
import { copyButton, element, make, on } from './dom.ts';
import { downloadLink } from './download.ts';
import { order } from './exports.ts';
import { currentKey } from './key.ts';
import { file, snippetsFor, withParameter, type Snippet } from './snippets.ts';
import { viewQuery, wordsOf, type View } from './view.ts';

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

let chosen = 'curl';
let shown: { readonly resource: Resource; readonly query: URLSearchParams } | null = null;

/** Fills the panel for a view. A resource without streams has none. */
export function showTake(resource: Resource, view: View, proof: string): void {
  const { stream } = resource.links;
  element('take-button').hidden = stream === undefined;
  if (stream === undefined) {
    toggleTake(false);
    return;
  }
  const query = viewQuery(resource, view);
  shown = { resource, query };
  const words = wordsOf(view);
  element('take-what').textContent =
    words === '' ? `All rows of ${resource.name}.` : `The rows of ${resource.name} where ${words}.`;
  const url = location.origin + urlOf(stream, query);
  const snippets = snippetsFor({
    ...{ url, name: resource.name, withKey: currentKey() !== null },
    version: document.documentElement.dataset.version ?? '',
  });
  const tabs = snippets.map(tabOf);
  const choose = (title: string) => {
    chosen = title;
    for (const [n, tab] of tabs.entries()) {
      const isChosen = snippets[n]?.title === chosen;
      tab.setAttribute('aria-selected', String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
    }
    const snippet = snippets.find((one) => one.title === chosen);
    if (snippet) showSnippet(snippet);
  };
  const list = element('snippet-tabs');
  list.replaceChildren(...tabs);
  for (const [n, tab] of tabs.entries()) {
    on(tab, 'click', () => choose(snippets[n]?.title ?? ''));
    tab.onkeydown = ({ key }) => {
      const step = STEPS[key];
      if (step === undefined) return;
      const next = (n + step + tabs.length) % tabs.length;
      choose(snippets[next]?.title ?? '');
      tabs[next]?.focus();
    };
  }
  choose(snippets.some(({ title }) => title === chosen) ? chosen : 'curl');
  element('downloads').replaceChildren(
    ...resource.formats.map((format) => {
      const url = withParameter(urlOf(stream, query), 'format', format);
      return downloadLink(format.toUpperCase(), url, file(resource.name, format));
    }),
  );
  element('to-proof').setAttribute('href', proof);
}

function tabOf({ title }: Snippet): HTMLElement {
  const id = `tab-${title.replaceAll(' ', '-')}`;
  return make('button', { type: 'button', role: 'tab', id, 'aria-controls': 'snippet' }, title);
}

function showSnippet({ title, code, note }: Snippet): void {
  const place = element('snippet');
  place.setAttribute('aria-labelledby', `tab-${title.replaceAll(' ', '-')}`);
  place.replaceChildren(
    make(
      'pre',
      { tabindex: 0, 'aria-label': `${title} program` },
      make('code', { id: 'snippet-code' }, code),
    ),
    make(
      'p',
      { class: 'hint' },
      note,
      ' ',
      copyButton(() => code),
    ),
  );
}

/** Sets up what stays: the button that opens the panel, and the form of exports. */
export function setUpTake(): void {
  on(element('take-button'), 'click', () => toggleTake(element('take').hidden !== false));
  const leave = () => {
    toggleTake(false);
    element('take-button').focus();
  };
  on(element('take-close'), 'click', leave);
  element('take').onkeydown = ({ key }) => {
    if (key === 'Escape') leave();
  };
  on(element('export'), 'submit', async () => {
    if (!shown) return;
    const format = element('export-format', HTMLSelectElement).value;
    const compression = element('export-compression', HTMLSelectElement).value;
    await order(shown.resource, shown.query, { format, compression });
  });
}

/** Opens or closes the panel, which shares its place with the row beside the table. */
export function toggleTake(isOpen: boolean): void {
  if (isOpen) hideDetail();
  element('take').hidden = !isOpen;
  element('take-button').setAttribute('aria-expanded', String(isOpen));
  if (isOpen) element('take-title').focus();
}
