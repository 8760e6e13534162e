import type { CandidateName } from '../candidates.ts';
import type { BesideStreamsScenario } from '../kinds/beside-streams.ts';
import type { ClientsScenario } from '../kinds/clients.ts';
import type { PartitionsScenario } from '../kinds/partitions.ts';
import type { PullScenario } from '../kinds/pull.ts';
import type { ExportsScenario } from '../kinds/exports.ts';
import type { RequestsScenario } from '../kinds/requests.ts';
import type { SlowReaderScenario } from '../kinds/slow-reader.ts';
import type { StalledScenario } from '../kinds/stalled.ts';
import type { ColdStartScenario, FirstRowScenario } from '../kinds/starts.ts';
import type { StreamScenario } from '../kinds/stream.ts';
import type { UsersScenario } from '../kinds/users.ts';
import type { StoreName } from '../results.ts';

/** How much is run: each set holds the ones before it. */
export const SETS = ['quick', 'default', 'full'] as const;
export type SetName = (typeof SETS)[number];

export interface Placed {
  readonly name: string;
  readonly shows: string;
  /** What is shown together, in a table or a plot. */
  readonly group: 'streams' | 'pages' | 'depth' | 'connections' | 'sizes' | 'memory' | 'others';
  /** Its place on the plot's axis. */
  readonly x?: number | string;
  /** The smallest set it is in. */
  readonly set: SetName;
  /** Who takes part, with each store it is measured on. */
  readonly on: Partial<Readonly<Record<StoreName, readonly CandidateName[]>>>;
  /** Items in the store, as a multiple of the run's. */
  readonly scale?: number;
  /** Seconds of a round, as a share of the run's. */
  readonly effort?: number;
}

export type Measurement =
  | StreamScenario
  | ClientsScenario
  | PartitionsScenario
  | PullScenario
  | RequestsScenario
  | UsersScenario
  | ExportsScenario
  | StalledScenario
  | BesideStreamsScenario
  | SlowReaderScenario
  | ColdStartScenario
  | FirstRowScenario;

export type Scenario = Placed & Measurement;

/** The requests that scenarios share. */
export const PAGE = '/items?limit=100';
export const PAGE_BY_PRICE = `${PAGE}&sort=price_asc`;
export const STREAM = '/items/stream';

/** Most scenarios of requests and memory are measured against this one peer. */
export const PAIR = ['sluice', 'fastify'] as const;
