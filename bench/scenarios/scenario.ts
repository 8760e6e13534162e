import type { CandidateName } from '../candidates.ts';
import type { ChangeEventsScenario } from '../kinds/change-events.ts';
import type { ClickhouseScenario } from '../kinds/clickhouse.ts';
import type { FollowWalkScenario } from '../kinds/follow-walk.ts';
import type { FollowersScenario } from '../kinds/followers.ts';
import type { FramesScenario } from '../kinds/frames.ts';
import type { ImportsScenario } from '../kinds/imports.ts';
import type { BesideStreamsScenario } from '../kinds/beside-streams.ts';
import type { ClientsScenario } from '../kinds/clients.ts';
import type { PartitionsScenario } from '../kinds/partitions.ts';
import type { PullScenario } from '../kinds/pull.ts';
import type { EditionReadersScenario } from '../kinds/edition-readers.ts';
import type { EditionsScenario } from '../kinds/editions.ts';
import type { ExportsScenario } from '../kinds/exports.ts';
import type { OpenPagesScenario } from '../kinds/open-pages.ts';
import type { RequestsScenario } from '../kinds/requests.ts';
import type { SlowReaderScenario } from '../kinds/slow-reader.ts';
import type { StalledScenario } from '../kinds/stalled.ts';
import type { ColdStartScenario, FirstRowScenario } from '../kinds/starts.ts';
import type { StreamScenario } from '../kinds/stream.ts';
import type { UsersScenario } from '../kinds/users.ts';
import type { StoreName } from '../results.ts';

/** The sets of scenarios. Each includes the ones before it. */
export const SETS = ['quick', 'default', 'full'] as const;
export type SetName = (typeof SETS)[number];

export interface Placed {
  readonly name: string;
  readonly shows: string;
  /** The table or plot that shows the scenario. */
  readonly group:
    | 'streams'
    | 'pages'
    | 'depth'
    | 'connections'
    | 'sizes'
    | 'memory'
    | 'changes'
    | 'imports'
    | 'editions'
    | 'others';
  /** The position on the plot's axis. */
  readonly x?: number | string;
  /** The smallest set that includes the scenario. */
  readonly set: SetName;
  /** The candidates, for each store on which it is measured. */
  readonly on: Partial<Readonly<Record<StoreName, readonly CandidateName[]>>>;
  /** The number of items in the store, as a multiple of the run's. */
  readonly scale?: number;
  /** The duration of a round, as a multiple of the run's. */
  readonly effort?: number;
  /** What the store must have beside the items. */
  readonly needs?: 'orders';
}

export type Measurement =
  | StreamScenario
  | ClientsScenario
  | PartitionsScenario
  | PullScenario
  | RequestsScenario
  | OpenPagesScenario
  | UsersScenario
  | FollowersScenario
  | FramesScenario
  | ClickhouseScenario
  | ChangeEventsScenario
  | FollowWalkScenario
  | ImportsScenario
  | ExportsScenario
  | EditionsScenario
  | EditionReadersScenario
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

/** The candidates of most scenarios of requests and memory: sluice and this one peer. */
export const PAIR = ['sluice', 'fastify'] as const;
