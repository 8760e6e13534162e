/** The text as HTML, in content and in attributes. */
export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** What is shown where nothing was measured. */
const NOTHING = '–';

/** The unit of a figure, which decides how it is written. */
export type Unit = 'number' | 'rate' | 'ms' | 'bytes' | 'bytesPerSecond' | 'share' | 'cores' | 'msPerSecond';

const SUFFIX: Readonly<Record<Unit, string>> = {
  number: '',
  rate: '/s',
  ms: ' ms',
  bytes: '',
  bytesPerSecond: '/s',
  share: '',
  cores: '',
  msPerSecond: '',
};

/** The figure with its unit, with about three digits: `12.4 ms`, `1.2M`, `88 MB`. */
export function shown(value: number | null, unit: Unit): string {
  if (value === null) return NOTHING;
  if (unit === 'bytes' || unit === 'bytesPerSecond') return `${bytes(value)}${SUFFIX[unit]}`;
  if (unit === 'ms' && value >= 1_000) return `${threeDigits(value / 1_000)} s`;
  return `${short(value)}${SUFFIX[unit]}`;
}

/** A count with separators: `12,345`. */
export function counted(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1_000_000) return `${threeDigits(value / 1_000_000)}M`;
  if (size >= 10_000) return `${threeDigits(value / 1_000)}k`;
  return threeDigits(value);
}

function bytes(value: number): string {
  if (value >= 1e9) return `${threeDigits(value / 1e9)} GB`;
  if (value >= 1e6) return `${threeDigits(value / 1e6)} MB`;
  return `${threeDigits(value / 1e3)} kB`;
}

function threeDigits(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return Number(value.toFixed(digits)).toLocaleString('en-US');
}

/** A share as a percentage: `12.3 %`. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** A change as a percentage with its sign: `+12.3 %`. */
export function signed(change: number): string {
  return `${change > 0 ? '+' : ''}${percent(change)}`;
}
