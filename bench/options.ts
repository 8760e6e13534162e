import { parseArgs } from 'node:util';
import type { StoreName } from './results.ts';
import { SETS, type SetName } from './scenarios/scenario.ts';

export const HELP = `npm run bench -- [options]

  --quick            a small set, one peer each, 1 round, few items: 2 minutes; no figures to publish
  --full             also what takes long: ten times the items, 5,000 stalled readers, more connections
  --scenario NAME    only scenarios whose name begins so; may be repeated
  --store NAME       mongodb or sqlite; without it both
  --rows N           items in the store
  --rounds N         rounds of each candidate
  --seconds N        length of a round that has no end by itself
  --json FILE        write the results
  --publish          write bench/results/, with the plots, docs/benchmarks.md, and the figures of README.md; with
                     --scenario the other figures stay as they were measured on this machine
  --against REV      this sluice against another commit; exit 1 when it is slower beyond the noise
  --micro            what single parts cost: transcoder, cursor, query, limiter
  --list             name the scenarios

MONGODB_URI names a server to use, where the items stay (databases sluice_bench_N) and are found again by the next run;
without it a mongod is started (MONGOD, or the one on PATH).
After Ctrl-C the run ends behind the scenario under way, with what it has by then.
`;

export interface Options {
  readonly set: SetName;
  readonly scenarios: readonly string[];
  readonly stores: readonly StoreName[];
  readonly rows: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly json: string | undefined;
  readonly against: string | undefined;
  readonly publish: boolean;
  readonly mode: 'measure' | 'micro' | 'list' | 'help';
}

/** The sizes by set. A run of the default set takes about an hour on two cores. */
const SIZES: Readonly<Record<SetName, Pick<Options, 'rows' | 'rounds' | 'seconds'>>> = {
  quick: { rows: 10_000, rounds: 1, seconds: 0.3 },
  default: { rows: 1_000_000, rounds: 3, seconds: 3 },
  full: { rows: 1_000_000, rounds: 5, seconds: 5 },
};
/** The number of rounds in a comparison. More rounds distinguish differences from noise. */
const ROUNDS_AGAINST = 5;
/** The faster store comes first. */
const STORES: readonly StoreName[] = ['sqlite', 'mongodb'];

/** Parses the options. Throws an Error for an unknown option or a value out of bounds. */
export function readOptions(argv: readonly string[]): Options {
  const flag = { type: 'boolean', default: false } as const;
  const { values } = parseArgs({
    args: [...argv],
    options: {
      quick: flag,
      full: flag,
      publish: flag,
      micro: flag,
      list: flag,
      help: flag,
      scenario: { type: 'string', multiple: true, default: [] },
      store: { type: 'string' },
      rows: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      json: { type: 'string' },
      against: { type: 'string' },
    },
  });
  const set = values.quick ? 'quick' : values.full ? 'full' : 'default';
  const sizes = SIZES[set];
  const store = STORES.find((name) => name === values.store);
  if (values.store !== undefined && !store)
    throw new Error(`--store is mongodb or sqlite, not ${values.store}`);
  return {
    set,
    scenarios: values.scenario,
    stores: store ? [store] : STORES,
    rows: positive('rows', values.rows, sizes.rows),
    rounds: positive('rounds', values.rounds, values.against === undefined ? sizes.rounds : ROUNDS_AGAINST),
    seconds: positive('seconds', values.seconds, sizes.seconds),
    json: values.json,
    against: values.against,
    publish: values.publish,
    mode: values.help ? 'help' : values.list ? 'list' : values.micro ? 'micro' : 'measure',
  };
}

/** Whether `set` includes a scenario whose smallest set is `smallest`. */
export function holds(set: SetName, smallest: SetName): boolean {
  return SETS.indexOf(set) >= SETS.indexOf(smallest);
}

function positive(name: string, given: string | undefined, fallback: number): number {
  const value = given === undefined ? fallback : Number(given);
  if (!(value > 0)) throw new Error(`--${name} is a number above 0, not ${String(given)}`);
  return value;
}
