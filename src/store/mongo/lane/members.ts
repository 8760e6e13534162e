import { LaneBroken } from './message.ts';
import { Pool } from './pool.ts';

/** What the driver's monitors know about the servers (its TopologyDescription). */
interface Topology {
  readonly type: string;
  readonly servers: ReadonlyMap<string, { readonly type: string; readonly roundTripTime: number }>;
}

export type ReadMode = 'primary' | 'primaryPreferred' | 'secondary' | 'secondaryPreferred' | 'nearest';

interface Member {
  readonly isPrimary: boolean;
  readonly roundTripMs: number;
  readonly pool: Pool;
}

/** The members that each mode asks, then those it asks when there are none of the first. */
const PREFERENCES: Readonly<Record<ReadMode, readonly ((member: Member) => boolean)[]>> = {
  primary: [isPrimary],
  primaryPreferred: [isPrimary, isSecondary],
  secondary: [isSecondary],
  secondaryPreferred: [isSecondary, isPrimary],
  nearest: [() => true],
};

function isPrimary(member: Member): boolean {
  return member.isPrimary;
}

function isSecondary(member: Member): boolean {
  return !member.isPrimary;
}

const WRITABLE: ReadonlySet<string> = new Set(['RSPrimary', 'Standalone']);

/**
 * The members that reads can go to, as the driver sees them. When it loses one, the work there ends with LaneBroken.
 */
export class Members {
  readonly #mode: ReadMode;
  readonly #thresholdMs: number;
  readonly #newPool: (address: string) => Pool;
  #type = 'Unknown';
  #byAddress = new Map<string, Member>();
  /** The pools to ask, the best first. */
  #groups: readonly (readonly Pool[])[] = [];
  #several = false;

  /** `thresholdMs` (localThresholdMS): a round trip that is at most this much longer than the nearest is as good. */
  constructor(mode: ReadMode, thresholdMs: number, newPool: (address: string) => Pool) {
    this.#mode = mode;
    this.#thresholdMs = thresholdMs;
    this.#newPool = newPool;
  }

  /** Whether the cluster is sharded. Reads then have to go through its routers, which the driver does. */
  get areSharded(): boolean {
    return this.#type === 'Sharded';
  }

  get areSeveral(): boolean {
    return this.#several;
  }

  update({ type, servers }: Topology): void {
    this.#type = type;
    const before = this.#byAddress;
    const isDirect = type === 'Single';
    this.#byAddress = new Map();
    for (const [address, server] of servers) {
      const isFirst = WRITABLE.has(server.type) || (isDirect && server.type === 'RSSecondary');
      if (!isFirst && server.type !== 'RSSecondary') continue;
      const pool = before.get(address)?.pool ?? this.#newPool(address);
      this.#byAddress.set(address, { isPrimary: isFirst, roundTripMs: server.roundTripTime, pool });
    }
    const members = [...this.#byAddress.values()];
    this.#groups = PREFERENCES[this.#mode].map((wanted) => this.#nearest(members.filter(wanted)));
    this.#several = new Set(this.#groups.flat()).size > 1;
    for (const [address, { pool }] of before)
      if (!this.#byAddress.has(address)) pool.close(new LaneBroken(`${address} cannot be read from now`));
  }

  /** The pool of the member to ask now: the one with the least load. Null when the driver has to find one. */
  choose(): Pool | null {
    for (const group of this.#groups) {
      let chosen: Pool | null = null;
      for (const pool of group)
        if (!pool.isResting && (chosen === null || pool.load < chosen.load)) chosen = pool;
      if (chosen) return chosen;
    }
    return null;
  }

  /** All pools that the mode allows, each once, the best first. A change of their state meanwhile counts. */
  *inTurn(): Generator<Pool, void, undefined> {
    const first = this.choose();
    if (!first) return;
    yield first;
    for (const pool of new Set(this.#groups.flat())) if (pool !== first && !pool.isResting) yield pool;
  }

  close(): void {
    this.update({ type: 'Unknown', servers: new Map() });
  }

  #nearest(members: readonly Member[]): Pool[] {
    const nearest = Math.min(...members.map(({ roundTripMs }) => roundTripMs));
    return members
      .filter(({ roundTripMs }) => roundTripMs <= nearest + this.#thresholdMs)
      .map(({ pool }) => pool);
  }
}
