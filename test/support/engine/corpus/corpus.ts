import { CHUNKS } from './chunks.ts';
import type { Case } from './case.ts';
import { CODINGS } from './codings.ts';
import { FIELDS } from './fields.ts';
import { LENGTHS } from './lengths.ts';
import { REQUEST_LINES } from './lines.ts';
import { TARGETS } from './targets.ts';

/** All cases of bytes that a connection may send. Their outcomes follow RFC 9110 and 9112. */
export const CORPUS: readonly Case[] = [
  ...REQUEST_LINES,
  ...TARGETS,
  ...FIELDS,
  ...LENGTHS,
  ...CODINGS,
  ...CHUNKS,
];
