import { documentText } from '../papers/documents.ts';

/** The variables in `NAME=value` lines, as systemd reads its EnvironmentFile. */
export function variablesOf(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

/** The variables of a file in docs/ops. */
export function settingsOf(path: string): Readonly<Record<string, string>> {
  return variablesOf(documentText(path));
}

/** The values of each directive of a unit of systemd, in the order of its lines. */
export function unitOf(text: string): Readonly<Record<string, readonly string[]>> {
  const found: Record<string, string[]> = {};
  for (const [, name = '', value = ''] of text.matchAll(/^(\w+)=(.*)$/gm)) (found[name] ??= []).push(value);
  return found;
}
