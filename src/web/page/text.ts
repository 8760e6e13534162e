/** How numbers, sizes and times read on the page: as the browser's language writes them. */

export { reasonOf } from '../../base/error-reason.ts';

export function counted(number: number): string {
  return Math.round(number).toLocaleString();
}

export function sizeOf(bytes: number): string {
  if (bytes < 1e6) return `${counted(bytes / 1e3)} kB`;
  if (bytes < 1e9) return `${(bytes / 1e6).toFixed(1)} MB`;
  return `${(bytes / 1e9).toFixed(2)} GB`;
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** How long ago a time is: `5 minutes ago`. Milliseconds since 1970. */
export function agoOf(at: number, now: number): string {
  const passed = Math.max(0, now - at);
  const [unit, ms] = UNITS.find(([, one]) => passed >= one) ?? (['second', 1000] as const);
  return new Intl.RelativeTimeFormat(undefined, { numeric: 'always' }).format(-Math.floor(passed / ms), unit);
}

/** `1 row`, `2 rows`. */
export function rowsOf(count: number): string {
  return `${counted(count)} ${count === 1 ? 'row' : 'rows'}`;
}

/** Names as a sentence lists them: `a`, `a and b`, `a, b and c`. */
export function listed(names: readonly string[], last = 'and'): string {
  if (names.length < 2) return names.join('');
  return `${names.slice(0, -1).join(', ')} ${last} ${names.at(-1) ?? ''}`;
}

/** Whether an error is only the end of a request whose result is no longer needed. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}
