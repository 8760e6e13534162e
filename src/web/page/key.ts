/** The API key of this tab, which the page asks for when the server wants one. */
import { button, element } from './dom.ts';

const KEPT_AS = 'sluice-key';

/** The key, or null. It is kept for this tab alone, and never in a URL. */
export function currentKey(): string | null {
  return sessionStorage.getItem(KEPT_AS);
}

let asking: Promise<boolean> | null = null;

/**
 * Asks for a key, once for all requests that need one. `refused`: the key that the server has just refused. Resolves
 * with false when the user gives none.
 */
export function askForKey(refused: string | null): Promise<boolean> {
  // Another request may have got the key meanwhile.
  if (currentKey() !== refused) return Promise.resolve(true);
  asking ??= show(refused !== null).finally(() => (asking = null));
  return asking;
}

function show(wasRefused: boolean): Promise<boolean> {
  const dialog = element('key-dialog', HTMLDialogElement);
  const input = element('key-input', HTMLInputElement);
  element('key-reason').textContent = wasRefused
    ? 'The server does not accept this key.'
    : 'This server needs an API key. It is kept for this tab only.';
  input.value = '';
  dialog.returnValue = '';
  // The policy of the page lets no form send anything, so the dialog is closed by hand.
  element('key-form').onsubmit = (submitted) => {
    submitted.preventDefault();
    dialog.close('use');
  };
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener(
      'close',
      () => {
        const key = input.value.trim();
        const isGiven = dialog.returnValue === 'use' && key !== '';
        if (isGiven) sessionStorage.setItem(KEPT_AS, key);
        input.value = '';
        showForget();
        resolve(isGiven);
      },
      { once: true },
    );
  });
}

/** Shows the button that forgets the key, while there is one. */
export function showForget(): void {
  const place = element('key-place');
  place.replaceChildren();
  if (currentKey() === null) return;
  const forget = () => {
    sessionStorage.removeItem(KEPT_AS);
    location.reload();
  };
  place.append(button({ class: 'small' }, forget, 'Forget the key'));
}
