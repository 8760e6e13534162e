import type { Schema } from '../../base/schema.ts';
import { fingerprint } from '../../rows/fingerprint.ts';
import type { Resource } from '../query/resource.ts';
import { rowLook } from './row-look.ts';
import { rowSchema } from './row-schema.ts';
import type { RowShape } from './shape.ts';

/** The schema of the rows of a resource, and a text that is another one where the schema is. */
export interface RowDescription {
  readonly schema: Schema;
  readonly fingerprint: string;
}

/** A look is at what one resource shows of its rows. */
const descriptions = new WeakMap<RowShape, RowDescription>();

/** Describes the rows of a resource by its declared kinds and a look at some rows, which is kept. Rejects as reads do. */
export async function describeRow(
  resource: Pick<Resource, 'name' | 'rows' | 'shown' | 'kinds'>,
  signal: AbortSignal,
): Promise<RowDescription> {
  const look = await rowLook(resource, signal);
  const known = descriptions.get(look);
  if (known) return known;
  const schema = rowSchema(resource, look);
  const made = { schema, fingerprint: fingerprint(Buffer.from(JSON.stringify(schema))) };
  descriptions.set(look, made);
  return made;
}
