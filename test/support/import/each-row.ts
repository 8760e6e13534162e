import type { SourceRows, SourceRow } from '../../../src/import/row.ts';

/** The rows of a source, one by one. */
export async function* eachRow(source: SourceRows): AsyncGenerator<SourceRow, void, undefined> {
  for await (const rows of source) yield* rows;
}
