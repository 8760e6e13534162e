/** `Get all of it`: programs that read the rows of the view, downloads, and exports. */
import { hideDetail } from './detail.ts';
import { copyButton, element, on, onEscape, say } from './dom.ts';
import { downloadLink } from './download.ts';
import { leaveEdition, showEdition } from './edition.ts';
import { order } from './exports.ts';
import { currentKey } from './key.ts';
import { Programs } from './programs.ts';
import { file, snippetsFor, withParameter } from './snippets.ts';
import { addressOf, urlOf, viewQuery, wordsOf, type View } from './view.ts';

const programs = new Programs('snippet', 'curl');
let shown: View | null = null;

/** Fills the panel for a view. A resource without streams has none. */
export function showTake(view: View): void {
  const { name, links } = view.resource;
  const isNothing = [links.stream, links.exports, links.edition].every((link) => link === undefined);
  element('take-button').hidden = isNothing;
  element('take-streams').hidden = links.stream === undefined;
  element('take-exports').hidden = links.exports === undefined;
  shown = view;
  if (isNothing) toggleTake(false);
  else if (!element('take').hidden) showEdition(view.resource);
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
  programs.show(
    snippetsFor({
      url: location.origin + url,
      name,
      withKey: currentKey() !== null,
      version: document.documentElement.dataset.version ?? '',
    }),
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
  onEscape('take', leave);
  for (const id of ['snippet', 'edition'])
    element(`${id}-note`).after(
      ' ',
      copyButton(() => element(`${id}-code`).textContent),
    );
  const valueOf = (id: string) => element(id, HTMLSelectElement).value;
  on(element('export'), 'submit', async () => {
    if (shown) await order(shown, valueOf('export-format'), valueOf('export-compression'));
  });
}

/** Opens or closes the panel, which shares its place with the row beside the table. */
export function toggleTake(isOpen: boolean): void {
  if (isOpen) hideDetail();
  if (isOpen && shown) showEdition(shown.resource);
  else leaveEdition();
  element('take').hidden = !isOpen;
  element('take-button').setAttribute('aria-expanded', String(isOpen));
  if (isOpen) element('take-title').focus();
}
