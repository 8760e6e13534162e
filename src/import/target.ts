import { nameFault } from '../resources/declarations.ts';
import { pathFault } from '../rows/selection.ts';
import { MOST_INDEX_FIELDS } from '../store/indexes.ts';
import { UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';

/** The resource that is declared with the columns of --category and --price. */
export const ITEMS = 'items';

export interface Target {
  readonly name: string;
  /** The fields of its indexes, without the key at their ends. */
  readonly indexes: readonly (readonly string[])[];
  /** Whether they are made when no row has a field of them. */
  readonly isForced?: boolean;
  /** Whether the name is that of the file. */
  readonly isOfFile?: boolean;
}

/** Reads --into, --index and --force. Throws UsageError. */
export function intoOf(name: string, indexes: readonly string[], isForced = false): Target {
  const taken = name === ITEMS ? undefined : nameFault(name);
  if (taken !== undefined) throw new UsageError(`--into: ${taken}`);
  if (name === ITEMS && indexes.length > 0)
    throw new UsageError('--index: the resource items has the indexes of its declaration');
  const fields = indexes.map((text) => fieldsOf('--index', text));
  const names = fields.map((paths) => paths.join());
  const twice = names.find((one, n) => names.indexOf(one) < n);
  if (twice !== undefined) throw new UsageError(`--index ${quoted(twice)} is given twice`);
  return { name, indexes: fields, ...(isForced && { isForced }) };
}

/**
 * Throws UsageError for a field of an index that none of these fields is, is in, or has in it. `rows`: whose fields they are.
 */
export function checkIndexes({ indexes, isForced }: Target, fields: readonly string[], rows: string): void {
  const holds = (one: string, other: string) => one === other || other.startsWith(`${one}.`);
  const missing = indexes
    .flat()
    .find((path) => !fields.some((field) => holds(field, path) || holds(path, field)));
  if (missing === undefined || isForced) return;
  const known = fields.map((field) => quoted(field)).join(', ');
  throw new UsageError(
    `${rows} has the field ${quoted(missing)} of --index. The fields are: ${known}. --force makes the index nevertheless`,
  );
}

/** The fields of an index as an argument names them, without the key at their end. Throws UsageError. */
export function fieldsOf(option: string, text: string): readonly string[] {
  const given = text.split(',').map((path) => path.trim());
  const paths = ['_id', 'id'].includes(given.at(-1) ?? '') ? given.slice(0, -1) : given;
  if (paths.length === 0)
    throw new UsageError(`${option} ${quoted(text)}: every resource has an index of its key`);
  if (paths.length >= MOST_INDEX_FIELDS)
    throw new UsageError(
      `${option}: an index has at most ${MOST_INDEX_FIELDS - 1} fields before the key; got ${paths.length}`,
    );
  for (const [n, path] of paths.entries()) {
    const fault = paths.indexOf(path) < n ? 'is named twice' : faultOf(path);
    if (fault !== undefined)
      throw new UsageError(`${option} ${quoted(text)}: the field ${quoted(path)} ${fault}`);
  }
  return paths;
}

function faultOf(path: string): string | undefined {
  if (path === 'id' || path === '_id') return 'is the key, which ends every index by itself';
  if (/(^|\.)\d+(\.|$)/.test(path)) return 'has a number in its path, which may be a place in an array';
  return /(^|\.)\$/.test(path) ? 'has a name that begins with $' : pathFault(path);
}
