import { conflict, documented, oneOf, type Parameter } from '../../../input/parameter.ts';
import type { Query } from '../../../input/query.ts';
import { arrow } from './arrow.ts';
import { csv } from './csv.ts';
import type { FormatRequest, MakeForm, Format } from './format.ts';
import { json } from './json.ts';
import { ndjson } from './ndjson.ts';
import { parquet } from './parquet.ts';

/** All formats, the default one first. Routes, negotiation, exports, /openapi.json and the explorer page follow it. */
export const FORMATS: readonly [Format, ...Format[]] = [ndjson, json, csv, arrow, parquet];

const STREAMED = FORMATS.filter(({ isFileOnly }) => !isFileOnly);
export const STREAM_FORMATS: readonly string[] = STREAMED.map(({ name }) => name);
export const FILE_FORMATS: readonly string[] = FORMATS.map(({ name }) => name);
/** The media types of streams, the preferred one first. */
export const STREAM_TYPES: readonly string[] = STREAMED.flatMap(({ types }) => types);
export const OPTIONS = [...new Set(FORMATS.flatMap(({ options }) => options))];

export const formatParameter: Parameter<string> = documented(
  oneOf('format', STREAM_FORMATS),
  'The format of the stream. Without it, `Accept` decides; without both, the format is ndjson.',
  { example: 'csv' }, // all of these parameters can be combined with it
);

/** The format of this name or media type. */
export function formatOf(asked: string): Format {
  const format = FORMATS.find(({ name, types }) => name === asked || types.includes(asked));
  if (format) return format;
  throw new TypeError(`no format has the name or type ${asked}`);
}

/** The media type that `format` asks for. It takes precedence over Accept. */
export function typeAsked(query: Query): string | undefined {
  const name = formatParameter.read(query);
  return name === undefined ? undefined : formatOf(name).types[0];
}

/** AppError `conflicting-parameters` for a parameter that does not fit the format: none is silently ignored. */
export function readForm(query: Query, format: Format, asked: FormatRequest): MakeForm {
  for (const option of OPTIONS) {
    const { name } = option.parameter;
    if (format.options.includes(option) || !query.has(name) || query.get(name) === option.neutral) continue;
    const others = STREAMED.filter(({ options }) => options.includes(option)).map((other) => other.name);
    throw conflict(name, `${name} requires format=${others.join(' or ')}; the format is ${asked.type}.`);
  }
  return format.read(query, asked);
}
