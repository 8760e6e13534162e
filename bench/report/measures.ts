import { medianOf, perSecond, type Results, type Round, type Series } from '../results.ts';

/** A figure of a run. NaN when its scenario was not in the run. */
export type Measured = (results: Results) => number;

function find({ scenarios }: Results, name: string, candidate: string, store: string): Series | undefined {
  const scenario = scenarios.find((each) => each.name === name && each.store === store);
  return scenario?.series.find((each) => each.candidate === candidate);
}

/** How many times the rate of another candidate sluice reaches. */
export function ratio(name: string, other: string, store = 'mongodb'): Measured {
  return (results) =>
    medianOf(find(results, name, 'sluice', store), perSecond) /
    medianOf(find(results, name, other, store), perSecond);
}

export function pick(name: string, value: (round: Round) => number | undefined, store = 'mongodb'): Measured {
  return (results) => medianOf(find(results, name, 'sluice', store), value);
}

/** How many times the rate of another scenario a scenario reaches. */
export function against(name: string, other: string, store = 'mongodb'): Measured {
  return (results) => pick(name, perSecond, store)(results) / pick(other, perSecond, store)(results);
}

/** A figure on both stores: the worse one, which `worse` picks. Stores without the scenario are left out. */
export function worseOf(of: (store: string) => Measured, worse: (...values: number[]) => number): Measured {
  return (results) => {
    const values = ['mongodb', 'sqlite'].map((store) => of(store)(results));
    const known = values.filter((each) => !Number.isNaN(each));
    return known.length > 0 ? worse(...known) : NaN;
  };
}

/** How many times the rate of another scenario a scenario reaches, on the store where that is less. */
export function worstAgainst(name: string, other: string): Measured {
  return worseOf((store) => against(name, other, store), Math.min);
}

/** The CPU time of the server for a million rows, in seconds. */
export function cpuOfMillion({ usage, count }: Round): number {
  return (usage.server / count) * 1e6;
}

/** The CPU time of the server for a request. Milliseconds. */
export function cpuOfRequest({ usage, count }: Round): number {
  return (usage.server / count) * 1000;
}

export const manyAgainstFew = worseOf((store) => {
  const [many, few] = ['streams-256', 'streams-8'].map((name) => pick(name, cpuOfMillion, store));
  return (results) => (many?.(results) ?? NaN) / (few?.(results) ?? NaN);
}, Math.max);

function p99(results: Results, name: string): number {
  return medianOf(find(results, name, 'sluice', 'mongodb'), ({ latency }) => latency?.p99);
}

export function deepAgainstFirst(results: Results): number {
  return p99(results, 'cursor-900000') / p99(results, 'cursor-0');
}

/** The scenario with the largest number of readers in the run. */
function mostStalled({ scenarios }: Results): string {
  const names = scenarios
    .filter(({ kind, store }) => kind === 'stalled' && store === 'mongodb')
    .map(({ name }) => name);
  return names.at(-1) ?? '';
}

export function stalled(figure: string): Measured {
  return (results) => pick(mostStalled(results), ({ figures }) => figures?.[figure])(results);
}

export function besideStalled(results: Results): number {
  return p99(results, mostStalled(results)) / stalled('aloneP99Ms')(results);
}

export function besideStreams(store: string): Measured {
  return pick('pages-beside-streams', againstAlone, store);
}

export function againstAlone({ latency, figures }: Round): number | undefined {
  return latency && figures?.aloneP99Ms && latency.p99 / figures.aloneP99Ms;
}

/** The worst figure of all exports, or of those in one format or not. */
export function worstOfExports(
  value: (round: Round) => number | undefined,
  isMeant: (name: string) => boolean = () => true,
): Measured {
  return ({ scenarios }) => {
    const all = scenarios
      .filter(({ kind, name }) => kind === 'exports' && isMeant(name))
      .flatMap(({ series }) => series);
    const values = all.map((series) => medianOf(series, value)).filter((middle) => !Number.isNaN(middle));
    return values.length > 0 ? Math.max(...values) : NaN;
  };
}

/** The time of a single change to all followers, of the largest number of idle ones in the run, the worse store. */
export function toAllFollowers(results: Results): number {
  const idle = ['changes-idle-5000', 'changes-idle-2000'];
  const scenarios = results.scenarios.filter(({ name }) => idle.includes(name));
  const most = idle.find((wanted) => scenarios.some(({ name }) => name === wanted)) ?? '';
  return worseOf((store) => pick(most, ({ figures }) => figures?.allMs, store), Math.max)(results);
}

/** mongod's CPU time for a change of a follower of sluice, against a follower of the driver's own change stream. */
export function cpuOfChanges(results: Results): number {
  const of = (candidate: string) =>
    medianOf(
      find(results, 'changes-events', candidate, 'mongodb'),
      ({ figures }) => figures?.mongodMicroseconds,
    );
  return of('sluice') / of('fastify + watch');
}
