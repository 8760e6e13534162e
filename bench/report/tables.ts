import { CANDIDATES, type CandidateName } from '../candidates.ts';
import {
  median,
  medianOf,
  perSecond,
  type Results,
  type Round,
  type ScenarioResult,
  type Series,
} from '../results.ts';
import { targetTable } from './targets.ts';

/**
 * The minimum use of a core, as a fraction. A server below it waits for something else, which is then what
 * was measured.
 */
const FULL_CORE = 0.9;

type Column = readonly [heading: string, cell: (series: Series, scenario: ScenarioResult) => string];

const TITLES: Readonly<Record<string, string>> = {
  streams: 'Streams',
  sizes: 'Streams of sets of different sizes',
  pages: 'Pages of 100',
  depth: 'Pages after many rows: cursor against offset',
  connections: 'Pages on different numbers of connections',
  memory: 'A slow reader',
  changes: 'Changes: followers, and streams that follow',
  imports: 'Imports of files into an empty store',
  editions: 'Editions',
  others: 'Users, limits, starts, exports, stalled readers',
};

/** All tables in Markdown: the targets, then a table for each group. */
export function tables(results: Results): string {
  const parts = [`**Targets**\n\n${targetTable(results)}`];
  for (const [group, title] of Object.entries(TITLES)) {
    const scenarios = results.scenarios.filter((scenario) => scenario.group === group);
    if (scenarios.length > 0) parts.push(`**${title}**\n\n${table(scenarios, columnsOf(group))}`);
  }
  return parts.join('\n\n');
}

function columnsOf(group: string): readonly Column[] {
  if (group === 'memory')
    return [
      CANDIDATE,
      ['idle, MB', figure('idleMB')],
      ['peak, MB', figure('peakMB')],
      ['above idle, MB', figure('overIdleMB')],
    ];
  if (group === 'streams' || group === 'sizes') return [CANDIDATE, SPEED, SPREAD, VERSUS, CPU, CORES, PEAK];
  if (group === 'imports') return [CANDIDATE, SPEED, SPREAD, VERSUS, CPU, CORES];
  if (group === 'changes')
    return [
      CANDIDATE,
      SPEED,
      SPREAD,
      VERSUS,
      P99,
      ['p99 alone, ms', figure('aloneP99Ms')],
      ['a change to all followers, ms', figure('allMs')],
      ['KiB per follower', figure('kibPerFollower')],
      ['change streams', figure('changeStreams')],
      ["mongod's CPU, µs a change", figure('mongodMicroseconds')],
      ['of one with checkpoints', figure('ofProved')],
    ];
  if (group === 'editions')
    return [
      CANDIDATE,
      SPEED,
      SPREAD,
      ['the next one, ms', figure('editionMs')],
      CPU,
      ['MB above idle', figure('megabytesOverIdle')],
      ['chunks read', figure('chunksRead')],
      ['chunks', figure('chunks')],
      ["server's CPU of the streams, s", figure('streamsCpu')],
      ["of the edition's readers, s", figure('editionsCpu')],
      ['reads of the server', figure('upstreamReads')],
    ];
  if (group === 'others')
    return [
      CANDIDATE,
      SPEED,
      SPREAD,
      VERSUS,
      MEDIAN_TIME,
      P99,
      ['KiB per reader', figure('kibPerReader')],
      ['cursors', figure('cursors')],
      ['p99 alone, ms', figure('aloneP99Ms')],
      ['MB above idle', figure('megabytesOverIdle')],
    ];
  return [CANDIDATE, SPEED, SPREAD, VERSUS, MEDIAN_TIME, P99, CPU, CORES];
}

const CANDIDATE: Column = [
  'candidate',
  ({ candidate }) => (roleOf(candidate) === 'limit' ? `*${candidate}*` : candidate),
];
const SPEED: Column = ['per second', (series, { kind }) => count(medianOf(series, perSecond), kind)];
const SPREAD: Column = [
  'range',
  ({ rounds }, { kind }) => {
    const speeds = rounds.map(perSecond);
    return `${count(Math.min(...speeds), kind)} - ${count(Math.max(...speeds), kind)}`;
  },
];
const VERSUS: Column = [
  'sluice / candidate',
  (series, scenario) => {
    if (roleOf(series.candidate) === 'own') return '';
    const own = scenario.series.find(({ candidate }) => roleOf(candidate) === 'own');
    return `${(medianOf(own, perSecond) / medianOf(series, perSecond)).toFixed(2)}x`;
  },
];
const MEDIAN_TIME: Column = [
  'median, ms',
  (series) => milliseconds(medianOf(series, ({ latency }) => latency?.p50)),
];
const P99: Column = ['p99, ms', (series) => milliseconds(medianOf(series, ({ latency }) => latency?.p99))];
const COUNTS_ROWS: readonly string[] = ['stream', 'partitions', 'pull', 'imports'];
const CPU: Column = [
  "server's CPU",
  (series, { kind }) =>
    COUNTS_ROWS.includes(kind)
      ? `${medianOf(series, ({ usage, count: rows }) => (usage.server / rows) * 1e6).toFixed(2)} s per million`
      : `${medianOf(series, ({ usage, count: requests }) => (usage.server / requests) * 1000).toFixed(3)} ms`,
];
const CORES: Column = [
  'cores: server, mongod, client',
  (series) => {
    const cores = (['server', 'mongod', 'client'] as const).map((who) =>
      medianOf(series, ({ usage, seconds }) => usage[who] / seconds),
    );
    const mark = (cores[0] ?? 0) < FULL_CORE ? ' †' : '';
    return cores.map((used) => used.toFixed(2)).join(', ') + mark;
  },
];
const PEAK: Column = [
  'peak, MB',
  (series) => (medianOf(series, ({ usage }) => usage.rssPeak) / 1e6).toFixed(0),
];

function table(scenarios: readonly ScenarioResult[], columns: readonly Column[]): string {
  const headings = ['scenario', 'store', ...columns.map(([heading]) => heading)];
  const lines = scenarios.flatMap((scenario) =>
    scenario.series.map((series, index) => {
      const cells = columns.map(([, cell]) => cell(series, scenario));
      const place = index === 0 ? [`\`${scenario.name}\` ${scenario.shows}`, scenario.store] : ['', ''];
      return `| ${[...place, ...cells].join(' | ')} |`;
    }),
  );
  return [`| ${headings.join(' | ')} |`, `|${headings.map(() => '---').join('|')}|`, ...lines].join('\n');
}

function figure(name: string): Column[1] {
  return ({ rounds }) => {
    const values = rounds.map((round: Round) => round.figures?.[name]).filter((value) => value !== undefined);
    if (values.length === 0) return '';
    const middle = median(values);
    return middle.toFixed(Math.abs(middle) < 10 ? 1 : 0);
  };
}

function roleOf(candidate: string): string {
  return CANDIDATES[candidate as CandidateName].role;
}

function milliseconds(value: number): string {
  return Number.isNaN(value) ? '' : value.toFixed(value < 10 ? 2 : 0);
}

function count(value: number, kind: string): string {
  return kind === 'cold-start' || value < 10 ? value.toFixed(2) : Math.round(value).toLocaleString('en-US');
}
