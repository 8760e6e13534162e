import { LaneBroken } from './message.ts';
import { Pool } from './pool.ts';

/** What the driver's monitors found out about the servers (its TopologyDescription). */
export interface Topology {
  readonly type: string;
  readonly servers: ReadonlyMap<string, { readonly type: string; readonly roundTripTime: number }>;
}

export type ReadMode = 'primary' | 'primaryPreferred' | 'secondary' | 'secondaryPreferred' | 'nearest';

interface Member {
  readonly isPrimary: boolean;
  readonly roundTripMs: number;
  readonly pool: Pool;
}

const PRIMARY: ReadonlySet<string> = new Set(['RSPrimary', 'Standalone']);

/**
 * The members that reads can go to, always as the driver sees them. When it loses sight of one (gone, hanging, no
 * member any more), whatever is under way there ends with LaneBroken.
 */
export class Members {
  readonly #mode: ReadMode;
  readonly #thresholdMs: number;
  readonly #newPool: (address: string) => Pool;
  #type = 'Unknown';
  #byAddress = new Map<string, Member>();

  /** `thresholdMs`: members at most this much farther away than the nearest one are as good (localThresholdMS). */
  constructor(mode: ReadMode, thresholdMs: number, newPool: (address: string) => Pool) {
    this.#mode = mode;
    this.#thresholdMs = thresholdMs;
    this.#newPool = newPool;
  }

  /** Whether there are servers, and reads have to go through their routers, which is the driver's. */
  get areSharded(): boolean {
    return this.#type === 'Sharded';
  }

  update({ type, servers }: Topology): void {
    this.#type = type;
    const before = this.#byAddress;
    const isDirect = type === 'Single';
    this.#byAddress = new Map();
    for (const [address, server] of servers) {
      const isPrimary = PRIMARY.has(server.type) || (isDirect && server.type === 'RSSecondary');
      if (!isPrimary && server.type !== 'RSSecondary') continue;
      const pool = before.get(address)?.pool ?? this.#newPool(address);
      this.#byAddress.set(address, { isPrimary, roundTripMs: server.roundTripTime, pool });
    }
    for (const [address, { pool }] of before)
      if (!this.#byAddress.has(address)) pool.close(new LaneBroken(`${address} cannot be read from now`));
  }

  /** The pool of the member to ask now; null when the driver has to find one. */
  choose(): Pool | null {
    const all = [...this.#byAddress.values()].filter(({ pool }) => !pool.isResting);
    const primary = all.filter(({ isPrimary }) => isPrimary);
    const others = all.filter(({ isPrimary }) => !isPrimary);
    const [first, second] = {
      primary: [primary, []],
      primaryPreferred: [primary, others],
      secondary: [others, []],
      secondaryPreferred: [others, primary],
      nearest: [all, []],
    }[this.#mode] as [Member[], Member[]];
    return this.#leastLoaded(first.length > 0 ? first : second);
  }

  close(): void {
    this.update({ type: 'Unknown', servers: new Map() });
  }

  #leastLoaded(members: readonly Member[]): Pool | null {
    const nearest = Math.min(...members.map(({ roundTripMs }) => roundTripMs));
    const [chosen] = members
      .filter(({ roundTripMs }) => roundTripMs <= nearest + this.#thresholdMs)
      .sort((a, b) => a.pool.load - b.pool.load);
    return chosen?.pool ?? null;
  }
}
