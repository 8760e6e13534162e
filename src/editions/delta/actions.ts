import { createHash } from 'node:crypto';
import type { ChunkEntry } from '../../base/edition/head.ts';
import { chunkFile } from '../../base/edition/names.ts';
import type { TableEdition } from '../face.ts';
import { deltaSchema, type TableSchema } from './schema.ts';
import { statisticsOf } from './statistics.ts';

/**
 * Actions of a Delta log (https://github.com/delta-io/delta/blob/master/PROTOCOL.md). A commit is one a line, as JSON, and a
 * checkpoint has those of the state.
 */
export type Action =
  | { readonly protocol: { readonly minReaderVersion: 1; readonly minWriterVersion: 2 } }
  | { readonly metaData: MetaData }
  | { readonly commitInfo: CommitInfo }
  | { readonly add: Add }
  | { readonly remove: Remove };

interface MetaData {
  readonly id: string;
  readonly name: string;
  readonly format: { readonly provider: 'parquet'; readonly options: Readonly<Record<string, string>> };
  readonly schemaString: string;
  readonly partitionColumns: readonly string[];
  readonly configuration: Readonly<Record<string, string>>;
  readonly createdTime: number;
}

export interface CommitInfo {
  /** When the rows were as they are in this version. Milliseconds. */
  readonly timestamp: number;
  readonly operation: 'WRITE';
  readonly operationParameters: Readonly<Record<string, string>>;
  readonly engineInfo: 'sluice';
  /** The edition's name. */
  readonly edition: string;
}

interface Add {
  readonly path: string;
  readonly partitionValues: Readonly<Record<string, string>>;
  readonly size: number;
  readonly modificationTime: number;
  readonly dataChange: boolean;
  readonly stats: string;
}

export interface Remove {
  readonly path: string;
  readonly deletionTimestamp: number;
  readonly dataChange: boolean;
}

/**
 * The server alone removes files and commits. Another program's VACUUM would take files of kept editions, and those beside
 * the chunks of Parquet, which the log does not name: it finds none that is old enough.
 */
const CONFIGURATION = {
  'delta.checkpointInterval': '100',
  'delta.deletedFileRetentionDuration': 'interval 36500 days',
  'delta.enableExpiredLogCleanup': 'false',
  'delta.logRetentionDuration': 'interval 36500 days',
};

/** The commit of an edition on the version of the one before it. Null: on nothing. */
export function commitOf(edition: TableEdition, previous: TableEdition | null): Action[] {
  const { head, schema } = edition;
  const before = new Set(previous && pathsOf(previous));
  const now = new Set(pathsOf(edition));
  const timestamp = Date.parse(head.at);
  const commitInfo: CommitInfo = {
    timestamp,
    operation: 'WRITE',
    operationParameters: {},
    engineInfo: 'sluice',
    edition: head.edition,
  };
  return [
    { commitInfo },
    ...(previous ? [] : [PROTOCOL]),
    ...(previous?.schema.name === schema.name ? [] : [metaData(edition)]),
    ...[...before]
      .filter((path) => !now.has(path))
      .map((path) => ({ remove: { path, deletionTimestamp: timestamp, dataChange: true } })),
    ...addsOf(edition, true).filter(({ add }) => !before.has(add.path)),
  ];
}

/** All that a reader of a version needs, with tombstones of files that kept versions have. */
export function stateOf(edition: TableEdition, tombstones: readonly Remove[]): Action[] {
  const now = new Set(pathsOf(edition));
  return [
    PROTOCOL,
    metaData(edition),
    ...tombstones
      .filter(({ path }) => !now.has(path))
      .map((remove) => ({ remove: { ...remove, dataChange: false } })),
    ...addsOf(edition, false),
  ];
}

const PROTOCOL = { protocol: { minReaderVersion: 1, minWriterVersion: 2 } } as const;

function metaData({ head, schema }: TableEdition): { readonly metaData: MetaData } {
  return {
    metaData: {
      id: tableId(head.resource),
      name: head.resource,
      format: { provider: 'parquet', options: {} },
      schemaString: deltaSchema(schema),
      partitionColumns: [],
      configuration: CONFIGURATION,
      createdTime: Date.parse(head.at),
    },
  };
}

/** The table's UUID (version 8): the same in each commit, whoever writes it. */
function tableId(resource: string): string {
  const digits = createHash('sha256').update(`sluice table ${resource}`).digest('hex');
  const parts = [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `8${digits.slice(13, 16)}`,
    `8${digits.slice(17, 20)}`,
  ];
  return [...parts, digits.slice(20, 32)].join('-');
}

function pathsOf({ chunks, schema }: TableEdition): string[] {
  return chunks.map((chunk) => pathOf(chunk, schema));
}

/** Relative to the folder of the table. */
function pathOf({ name }: ChunkEntry, schema: TableSchema): string {
  return `chunks/${chunkFile(name, 'parquet', schema.name)}`;
}

function addsOf({ head, chunks, schema }: TableEdition, dataChange: boolean): { readonly add: Add }[] {
  return chunks.map((chunk, at) => ({
    add: {
      path: pathOf(chunk, schema),
      partitionValues: {},
      size: sizeOf(chunk),
      modificationTime: Date.parse(head.at),
      dataChange,
      stats: JSON.stringify(statisticsOf(chunk, chunks[at - 1], schema)),
    },
  }));
}

function sizeOf({ name, sizes }: ChunkEntry): number {
  const { parquet } = sizes;
  if (parquet === undefined) throw new TypeError(`chunk ${name} has no Parquet`);
  return parquet;
}
