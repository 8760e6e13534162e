import { UsageError } from '../terminal/arguments.ts';
import { quoted, shellWord } from '../terminal/text.ts';
import { numberOfCell, whyNoNumber } from './numbers.ts';

/** How numbers are written in the cells of a file, where the command says so. */
export interface NumberNotation {
  readonly hasDecimalComma: boolean;
  /** Two examples, for messages. */
  readonly example: string;
  /** The same number with a decimal point, and nothing else between its digits. null: the text is not written so. */
  pointed(text: string): string | null;
}

interface NumberOptions {
  readonly hasDecimalComma?: boolean;
  /** What separates thousands. Absent: points with a decimal comma, otherwise nothing. */
  readonly thousands?: string | undefined;
  /** What may stand before or behind a number. */
  readonly currency?: string | undefined;
}

/** What separates thousands, as the option names it, and as files have it: a blank may be one that breaks no line. */
const THOUSANDS: ReadonlyMap<string, string> = new Map([
  [',', ','],
  ['.', String.raw`\.`],
  ["'", "['\u2019]"],
  [' ', String.raw`[ \u00a0\u2009\u202f]`],
]);

/** Reads --thousands, --currency and --decimal-comma. Throws UsageError. */
export function numberNotationOf(options: NumberOptions): NumberNotation {
  const { hasDecimalComma = false, currency } = options;
  if (currency !== undefined && (currency.trim() !== currency || /^$|[\d.,'()+-]/.test(currency)))
    throw new UsageError(`--currency takes one symbol or code, such as $ or EUR; got ${quoted(currency)}`);
  const thousands = separatorOf(options.thousands) ?? (hasDecimalComma ? '.' : undefined);
  const decimal = hasDecimalComma ? ',' : '.';
  if (thousands === decimal)
    throw new UsageError(
      hasDecimalComma
        ? '--thousands , contradicts --decimal-comma'
        : '--thousands . needs --decimal-comma: a point separates decimals',
    );
  const group = THOUSANDS.get(thousands ?? '');
  const whole = group === undefined ? String.raw`\d*` : String.raw`(?:[1-9]\d{0,2}(?:${group}\d{3})+|\d*)`;
  const form = new RegExp(`^[+-]?${whole}(?:[${decimal}]\\d*)?(?:[eE][+-]?\\d+)?$`);
  const separators = group === undefined ? null : new RegExp(group, 'g');
  return {
    hasDecimalComma,
    example: `${currency ?? ''}1${thousands ?? ''}234${decimal}56 or 1234${decimal}56`,
    pointed: (text) => {
      const number = currency === undefined ? text.trim() : withoutCurrency(text.trim(), currency);
      if (!form.test(number)) return null;
      return number.replaceAll(separators ?? /(?!)/g, '').replace(',', '.');
    },
  };
}

function separatorOf(named: string | undefined): string | undefined {
  if (named === undefined) return undefined;
  const plain = named === 'space' ? ' ' : named;
  const found = [...THOUSANDS].find(([, form]) => new RegExp(`^${form}$`).test(plain));
  if (found) return found[0];
  throw new UsageError(
    `--thousands takes what separates thousands: a comma, a point, an apostrophe, or a blank (space); got ${quoted(named)}`,
  );
}

/** `-$5`, `$-5`, `5 $` and, as books have it, `($5)` without the symbol. Another text as it is. */
function withoutCurrency(text: string, currency: string): string {
  const [, inBrackets] = /^\((.*)\)$/.exec(text) ?? [];
  const isNegative = inBrackets !== undefined || text.startsWith('-');
  const amount = inBrackets ?? text.replace(/^-/, '');
  const bare = amount.startsWith(currency)
    ? amount.slice(currency.length)
    : amount.endsWith(currency)
      ? amount.slice(0, -currency.length)
      : amount;
  return `${isNegative ? '-' : ''}${bare.trim()}`;
}

/** What the command may say of numbers, the plainest first. */
const OPTIONS: readonly NumberOptions[] = [
  {},
  { thousands: ',' },
  { thousands: "'" },
  { thousands: ' ' },
  { hasDecimalComma: true },
  { hasDecimalComma: true, thousands: "'" },
  { hasDecimalComma: true, thousands: ' ' },
];
const PERCENTAGE = /^[+-]?[\d.,'\s]*\d\s*%$/;
const CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'));

/** The options by which a cell that is no number by itself is one, each as the command line has them, and none more than needed. */
export function optionsThatRead(cell: string): readonly string[] {
  const currency = currencyIn(cell);
  const found: NumberOptions[] = [];
  for (const plain of OPTIONS) {
    const one = { ...plain, currency };
    const isMore = found.some(
      ({ hasDecimalComma = one.hasDecimalComma, thousands = one.thousands }) =>
        hasDecimalComma === one.hasDecimalComma && thousands === one.thousands,
    );
    if (!isMore && numberOfCell(numberNotationOf(one).pointed(cell) ?? '') !== null) found.push(one);
  }
  return found.map(asArguments).filter((options) => options !== '');
}

function asArguments({ hasDecimalComma, thousands, currency }: NumberOptions): string {
  const options: string[] = [];
  if (hasDecimalComma) options.push('--decimal-comma');
  if (thousands !== undefined)
    options.push(`--thousands ${thousands === ' ' ? 'space' : shellWord(thousands)}`);
  if (currency !== undefined) options.push(`--currency ${shellWord(currency)}`);
  return options.join(' ');
}

function currencyIn(cell: string): string | undefined {
  const [symbol] = /\p{Sc}/u.exec(cell) ?? [];
  if (symbol !== undefined) return symbol;
  const [code = ''] =
    /^[A-Z]{3}(?![A-Za-z])|(?<![A-Za-z])[A-Z]{3}$/.exec(cell.replace(/^[-(]|\)$/g, '')) ?? [];
  return CURRENCIES.has(code) ? code : undefined;
}

/** Why a cell is no number, and the options by which it is one. */
export function whyText(cell: string): string {
  if (PERCENTAGE.test(cell)) return 'is a percentage, and stays text: a number does not say that it is one';
  const options = optionsThatRead(cell);
  return options.length === 0 ? whyNoNumber(cell) : `is a number with ${options.join(', or ')}`;
}
