import { documentText } from './documents.ts';

/** The variables of a file of `NAME=value` lines, as systemd reads its EnvironmentFile. */
export function settingsOf(path: string): Readonly<Record<string, string>> {
  const lines = documentText(path)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}
