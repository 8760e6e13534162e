/** The API key of this tab, which the page asks for when the server wants one. */
import { element, make, say } from './dom.ts';

const KEPT_AS = 'sluice-key';

/** The key, or null. It is kept for this tab alone, and never in a URL. */
export function currentKey(): string | null {
  return sessionStorage.getItem(KEPT_AS);
}

let asking: Promise<boolean> | null = null;

/** Asks once for all requests that need a key. `refused`: the one just refused. Resolves with false when none is given. */
export function askForKey(refused: string | null): Promise<boolean> {
  // Another request may have got the key meanwhile.
  if (currentKey() !== refused) return Promise.resolve(true);
  asking ??= show(refused !== null).finally(() => (asking = null));
  return asking;
}

function show(wasRefused: boolean): Promise<boolean> {
  const dialog = element('key-dialog', HTMLDialogElement);
  const input = element('key-input', HTMLInputElement);
  say(
    'key-reason',
    wasRefused
      ? 'The server does not accept this key.'
      : 'This server needs an API key. It is kept for this tab only.',
  );
  let key = '';
  // The policy of the page lets no form send anything, so the dialog is closed by hand.
  element('key-form').onsubmit = (submitted) => {
    submitted.preventDefault();
    key = input.value.trim();
    dialog.close();
  };
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => {
      if (key !== '') sessionStorage.setItem(KEPT_AS, key);
      input.value = '';
      showForget();
      resolve(key !== '');
    };
  });
}

/** Shows the button that forgets the key, while there is one. */
export function showForget(): void {
  const forget = () => {
    sessionStorage.removeItem(KEPT_AS);
    location.reload();
  };
  element('key-place').replaceChildren(
    ...(currentKey() === null ? [] : [make('button.small', { onclick: forget }, 'Forget the key')]),
  );
}
