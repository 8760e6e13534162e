import { parseArgs, type ParseArgsConfig } from 'node:util';
import { quoted } from './text.ts';
import { codeOf, reasonOf } from '../base/error-reason.ts';

/** The command line is wrong. The message says what was expected and what was given. The exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

type Options = NonNullable<ParseArgsConfig['options']>;
type Arguments<T extends Options> = ReturnType<
  typeof parseArgs<{ options: T; allowPositionals: true; tokens: true; args: string[] }>
>;

/** Reads the arguments of a command. Throws UsageError for an option that is unknown, or given twice and not `multiple`. */
export function readArguments<T extends Options>(
  argv: readonly string[],
  options: T,
): Pick<Arguments<T>, 'values' | 'positionals'> {
  try {
    const { values, positionals, tokens } = parseArgs({
      args: [...argv],
      options,
      allowPositionals: true,
      tokens: true,
    });
    const seen = new Set<string>();
    for (const token of tokens) {
      if (token.kind !== 'option') continue;
      if (seen.has(token.name) && !options[token.name]?.multiple)
        throw new UsageError(`--${token.name} is given twice`);
      seen.add(token.name);
    }
    return { values, positionals };
  } catch (error) {
    // parseArgs throws TypeErrors with codes ERR_PARSE_ARGS_... for faults in the user's input.
    if (String(codeOf(error)).startsWith('ERR_PARSE_ARGS_'))
      throw new UsageError(reasonOf(error).replace(/ To specify a positional.*/s, ''));
    throw error;
  }
}

/** Throws UsageError for an option that is given, while something is not that it applies \`only\` to. */
export function checkOnly(
  options: Readonly<Record<string, { readonly only: readonly string[] }>>,
  values: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, boolean>>,
): void {
  for (const [name, { only }] of Object.entries(options)) {
    const missing = values[name] === undefined ? undefined : only.find((one) => !given[one]);
    if (missing !== undefined) throw new UsageError(`--${name} applies only to ${missing}`);
  }
}

/** The value of an option that takes one of a few words. null when it is not given. Throws UsageError for another word. */
export function oneOf<T extends string>(
  option: string,
  value: string | undefined,
  allowed: readonly T[],
): T | null {
  if (value === undefined) return null;
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new UsageError(`${option} must be one of ${allowed.join(', ')}; got ${quoted(value)}`);
}

/** The value of an option that takes an integer in a range. Throws UsageError for anything else. */
export function integer(option: string, value: string, least: number, most: number): number {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : NaN;
  if (number >= least && number <= most) return number;
  throw new UsageError(`${option} must be an integer from ${least} to ${most}; got ${quoted(value)}`);
}
