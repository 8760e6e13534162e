import { createHash } from 'node:crypto';
import { REST, scaleOf, type Column } from '../../rows/arrow/columns.ts';

/**
 * The columns of a resource's table. Its first edition fixes them, and the record keeps them. Rows have another column
 * behind them, `_rest`.
 */
export interface TableSchema {
  /** The 16 hexadecimal digits in the names of chunks of Parquet: a hash of the columns. */
  readonly name: string;
  /** Whether the first column has the ids, in whose order chunks are. Ids that are documents stand in `_rest`. */
  readonly hasKey: boolean;
  readonly columns: readonly TableColumn[];
}

interface TableColumn {
  /** A member of rows at the top level. */
  readonly name: string;
  /** As Delta calls it. A decimal has 38 digits. A timestamp has microseconds, in UTC. */
  readonly type: 'string' | 'long' | 'double' | 'boolean' | 'timestamp' | `decimal(38,${number})`;
}

/** Without a mapping of columns, Delta allows no others. A point would lead into a structure in some readers. */
const COLUMN_NAME = /^[\p{L}\p{N}_$-]{1,128}$/u;

/**
 * The schema of a table from columns as a table of Arrow has them, that of ids first. Columns of JSON, of paths into
 * documents and those whose names Delta does not allow are left out: their values stand in `_rest`. So do those of the
 * second of two names that differ only in case, which are one to readers of SQL.
 */
export function tableSchema(columns: readonly Column[]): TableSchema {
  const taken = new Set([REST]);
  const kept = columns.flatMap(({ name, kind }): TableColumn[] => {
    const type = typeOf(kind);
    const folded = name.toLowerCase();
    if (type === undefined || !COLUMN_NAME.test(name) || taken.has(folded)) return [];
    taken.add(folded);
    return [{ name, type }];
  });
  const hasKey = kept[0]?.name === columns[0]?.name;
  const digest = createHash('sha256')
    .update(JSON.stringify([hasKey, kept]))
    .digest('hex');
  return { name: digest.slice(0, 16), hasKey, columns: kept };
}

/** The fields that can be no columns, whatever their kinds. */
export function columnsLeftOut(fields: readonly string[]): readonly string[] {
  const kept = new Set(
    tableSchema(fields.map((name) => ({ name, kind: 'text' }))).columns.map(({ name }) => name),
  );
  return fields.filter((name) => !kept.has(name));
}

/** The schema as Delta writes it: JSON. */
export function deltaSchema({ columns }: TableSchema): string {
  const all = [...columns, { name: REST, type: 'string' }];
  return JSON.stringify({
    type: 'struct',
    fields: all.map(({ name, type }) => ({ name, type, nullable: true, metadata: {} })),
  });
}

function typeOf(kind: Column['kind']): TableColumn['type'] | undefined {
  switch (kind) {
    case 'text':
    case 'objectId':
    case 'uuid':
    case 'binary':
      return 'string';
    case 'integer':
      return 'long';
    case 'double':
    case 'boolean':
      return kind;
    case 'date':
      return 'timestamp';
    case 'decimal': // of no known scale
    case 'json':
      return undefined;
    default:
      return `decimal(38,${scaleOf(kind) ?? 0})`;
  }
}
