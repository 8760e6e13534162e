/** `Get all of it`: programs that read the rows of the view, downloads, and exports. */
import { hideDetail } from './detail.ts';
import { copyButton, element, make, on, onEscape, say } from './dom.ts';
import { downloadLink } from './download.ts';
import { order } from './exports.ts';
import { currentKey } from './key.ts';
import { file, snippetsFor, withParameter, type Snippet } from './snippets.ts';
import { addressOf, urlOf, viewQuery, wordsOf, type View } from './view.ts';

let chosen = 'curl';
let shown: View | null = null;

/** Fills the panel for a view. A resource without streams has none. */
export function showTake(view: View): void {
  const { name, links } = view.resource;
  const isNothing = links.stream === undefined && links.exports === undefined;
  element('take-button').hidden = isNothing;
  element('take-streams').hidden = links.stream === undefined;
  element('take-exports').hidden = links.exports === undefined;
  shown = view;
  if (isNothing) toggleTake(false);
  const words = wordsOf(view);
  say('take-what', words === '' ? `All rows of ${name}.` : `The rows of ${name} where ${words}.`);
  if (links.stream !== undefined) showStreams(view, urlOf(links.stream, viewQuery(view)));
  element('to-proof').hidden = links.stream === undefined;
  element('to-proof').setAttribute('href', addressOf('proof', view));
}

/** The downloads and programs for the stream at a URL. */
function showStreams({ resource: { name, formats } }: View, url: string): void {
  const downloads = formats.map((format) =>
    downloadLink(format.toUpperCase(), withParameter(url, 'format', format), file(name, format)),
  );
  element('downloads').replaceChildren(...downloads);
  const snippets = snippetsFor({
    url: location.origin + url,
    name,
    withKey: currentKey() !== null,
    version: document.documentElement.dataset.version ?? '',
  });
  element('programs').replaceChildren(...snippets.map(choiceOf));
}

/** A program to choose. The chosen one is shown. */
function choiceOf({ title, code, note }: Snippet): HTMLElement {
  const choose = () => {
    chosen = title;
    say('snippet-code', code);
    say('snippet-note', note);
  };
  if (title === chosen) choose();
  const attributes = { type: 'radio', name: 'program', checked: title === chosen, onchange: choose };
  return make('label', make('input.unseen', attributes), title);
}

/** Sets up what stays: the button that opens the panel, and the form of exports. */
export function setUpTake(): void {
  on(element('take-button'), 'click', () => toggleTake(element('take').hidden !== false));
  const leave = () => {
    toggleTake(false);
    element('take-button').focus();
  };
  on(element('take-close'), 'click', leave);
  onEscape('take', leave);
  element('snippet-note').after(
    ' ',
    copyButton(() => element('snippet-code').textContent),
  );
  const valueOf = (id: string) => element(id, HTMLSelectElement).value;
  on(element('export'), 'submit', async () => {
    if (shown) await order(shown, valueOf('export-format'), valueOf('export-compression'));
  });
}

/** Opens or closes the panel, which shares its place with the row beside the table. */
export function toggleTake(isOpen: boolean): void {
  if (isOpen) hideDetail();
  element('take').hidden = !isOpen;
  element('take-button').setAttribute('aria-expanded', String(isOpen));
  if (isOpen) element('take-title').focus();
}
