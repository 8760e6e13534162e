import type { EditionHead } from '../base/edition/head.ts';
import { columnKinds } from '../resources/query/kinds.ts';
import type { Resource } from '../resources/query/resource.ts';
import { sampledColumns } from '../resources/stream/sampled-columns.ts';
import type { Plan } from '../store/plan.ts';
import { tableSchema } from './delta/schema.ts';
import type { EditionFiles } from './edition-files.ts';
import type { TableEdition } from './face.ts';
import type { EditionRecord, EditionTable } from './record.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };

/**
 * The table of the next edition: that of the record, or of a walk under way, so that values that turn up later change no
 * column. The columns of no rows say nothing, so they are fixed by the first ones.
 */
export async function tableFor(
  { tables, head }: EditionRecord,
  ofWork: EditionTable | null,
  resource: Resource,
  signal: AbortSignal,
): Promise<EditionTable> {
  const declared = declaredBy(resource);
  const fixed = head ? tables[0] : ofWork;
  if (fixed?.declared === declared && fixed.isOfRows) return fixed;
  const { columns, rows } = await sampledColumns({ resource, plan: BY_ID, fields: undefined, signal });
  return { schema: tableSchema(columns), declared, isOfRows: rows > 0 };
}

/** The tables of a record with that of its newest edition: an edition is published with the one before. */
export function tablesWith(
  tables: EditionRecord['tables'],
  newest: EditionTable | null,
): EditionRecord['tables'] {
  if (!newest) return tables;
  return [newest, ...tables.filter(({ schema }) => schema.name !== newest.schema.name).slice(0, 1)];
}

/** An edition with all that a face needs of it. Null: it has no chunks of Parquet, or of columns that are no longer known. */
export async function tableEdition(
  head: EditionHead | null,
  { tables }: EditionRecord,
  files: EditionFiles,
): Promise<TableEdition | null> {
  const table = tables.find(({ schema }) => schema.name === head?.schema);
  if (!head || !table) return null;
  const { chunks } = await files.contents(head);
  return { head, chunks, schema: table.schema };
}

function declaredBy(resource: Resource): string {
  return JSON.stringify([[...(columnKinds(resource) ?? [])], resource.shown.policy ?? null]);
}
