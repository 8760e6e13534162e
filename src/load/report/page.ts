import type { Phase, ServerSide } from '../figures.ts';
import type { LoadResult, PullerRow } from '../result.ts';
import { percentilePlot } from './by-percentile.ts';
import { compare, type Comparison, type Difference } from './compare.ts';
import { plotsOverTime } from './over-time.ts';
import { figureOf } from './plot.ts';
import { STYLE } from './style.ts';
import { tableOf, type Column } from './table.ts';
import { counted, escaped, percent, shown, signed, type Unit } from './text.ts';

const VERDICTS = [
  'Every answer was good',
  'Some answers were refused, cut or faulty',
  'At least one answer was wrong',
];

/**
 * The report of a run as one HTML page without a reference to anything outside. `before`: an earlier run that it is
 * compared with.
 */
export function reportOf(result: LoadResult, before?: LoadResult): string {
  const title = `Load test of ${result.target.url}`;
  const sections = [
    headOf(result),
    verdictOf(result),
    figuresOf(result),
    before ? comparedWith(before, compare(before, result)) : '',
    `<h2>Latency by percentile</h2><div class="plots">${latencyPlots(result, before).join('')}</div>`,
    `<h2>Over time</h2><div class="plots">${plotsOverTime(result).map(figureOf).join('')}</div>`,
    tableOf('Phases', result.phases, PHASES),
    result.target.metrics.reachable ? tableOf("The server's side", result.phases, SERVER) : '',
    tableOf('Pullers', result.pullers, PULLERS),
    tableOf('Slowest requests', result.slowest, SLOWEST),
    tableOf('What was asked', result.options.queries, [
      { name: 'query', of: ({ query }) => query, is: 'q' },
      { name: 'share', of: ({ share }) => percent(share), is: 'n' },
    ]),
    '<p class="quiet">The server writes the id of each request into its log: look for the id of a slow request there.</p>',
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><main><h1>${escaped(title)}</h1>${sections.join('\n')}</main></body></html>
`;
}

function headOf({ startedAt, seconds, version, target, options, interrupted }: LoadResult): string {
  const model = { open: 'open model: arrivals by schedule', closed: 'closed model', none: 'no pages' }[
    options.model
  ];
  const facts = [
    `${startedAt}, ${counted(seconds)} s${interrupted ? ' (ended early)' : ''}`,
    `sluice ${target.version ?? '?'} by sluice load ${version}`,
    model,
    target.rateLimit
      ? `rate limit: ${counted(target.rateLimit.requests)} requests in ${target.rateLimit.windowSeconds} s`
      : 'no rate limit',
    ...target.resources.map(({ name, rows }) => `${name}: ${rows === null ? '?' : counted(rows)} rows`),
    ...(target.metrics.reachable
      ? []
      : [`no figures of the server: ${target.metrics.reason ?? 'no /metrics'}`]),
  ];
  const command = options.command.join(' ');
  return `<p class="quiet">${facts.map(escaped).join(' · ')}</p><p><code>sluice load ${escaped(command)}</code></p>`;
}

function verdictOf({ verdict, target }: LoadResult): string {
  const lines = [
    ...verdict.reasons,
    ...verdict.clientLimits.map((limit) => `This client may have been the limit: ${limit}`),
    ...verdict.notes,
    ...target.ready.reasons.map((reason) => `/readyz: ${reason}`),
  ];
  const list = lines.map((line) => `<li>${escaped(line)}</li>`).join('');
  const said = VERDICTS[verdict.exitCode] ?? '';
  return `<section class="verdict" data-is="${verdict.exitCode}" aria-label="Verdict"><strong>${said}</strong>${list && `<ul>${list}</ul>`}</section>`;
}

function figuresOf({ latencies, phases, found, fairness, followers, pullers }: LoadResult): string {
  const phase = phases.findLast(({ kind, held }) => kind !== 'ramp' && held !== false) ?? phases.at(-1);
  const proved = pullers.reduce((rows, { provedRows }) => rows + provedRows, 0);
  const figures: (readonly [name: string, value: string])[] = [
    ...(found ? [[`capacity (${found.condition})`, shown(found.held, 'rate')] as const] : []),
    ['pages', shown(phase?.pagesPerSecond ?? null, 'rate')],
    ['p50 of pages', shown(latencies.pages.p50, 'ms')],
    ['p99 of pages', shown(latencies.pages.p99, 'ms')],
    ['longest page', shown(latencies.pages.max, 'ms')],
    ...(pullers.length > 0
      ? [
          ['rows of pullers', shown(phase?.rowsPerSecond ?? null, 'rate')] as const,
          ['rows proved', counted(proved)] as const,
          ['p99 of first bytes', shown(latencies.firstByte.p99, 'ms')] as const,
        ]
      : []),
    ...(fairness ? [['fairness (1 is equal)', fairness.index.toFixed(3)] as const] : []),
    ...(followers
      ? [
          ['followers open', `${counted(followers.open)} of ${counted(followers.asked)}`] as const,
          ['p99 of their delay', shown(latencies.delay.p99, 'ms')] as const,
        ]
      : []),
  ];
  const list = figures.map(
    ([name, value]) => `<div><dt>${escaped(name)}</dt><dd>${escaped(value)}</dd></div>`,
  );
  return `<dl class="figures">${list.join('')}</dl>`;
}

function latencyPlots({ latencies, pullers, followers }: LoadResult, before?: LoadResult): string[] {
  const kinds = [
    ['pages', 'Pages, from the intended start', latencies.pages.count > 0],
    ['firstByte', 'First byte of streams', pullers.length > 0],
    ['delay', 'From a write to its line at a follower', followers !== null],
  ] as const;
  return kinds
    .filter(([, , isMeasured]) => isMeasured)
    .map(([kind, title]) =>
      figureOf(
        percentilePlot(title, [
          ...(before ? [{ name: 'before', tone: 'quiet', latencies: before.latencies[kind] } as const] : []),
          { name: 'this run', tone: 'first', latencies: latencies[kind] },
        ]),
      ),
    );
}

function comparedWith({ startedAt }: LoadResult, { differences, otherwise }: Comparison): string {
  const table = tableOf(`Compared with the run of ${startedAt}`, differences, COMPARED);
  const warnings = otherwise.map((line) => `<li>${escaped(line)}</li>`).join('');
  return `${table}${warnings && `<p>Not equal in the two runs, so compare with care:</p><ul>${warnings}</ul>`}`;
}

const COMPARED: readonly Column<Difference>[] = [
  { name: 'figure', of: ({ name }) => name },
  { name: 'verdict', of: ({ is }) => is, is: ({ is }) => is },
  { name: 'before', of: ({ before, unit }) => shown(before, unit), is: 'n' },
  { name: 'now', of: ({ now, unit }) => shown(now, unit), is: 'n' },
  { name: 'change', of: ({ change }) => signed(change), is: 'n' },
  { name: 'noise', of: ({ noise }) => `± ${percent(noise)}`, is: 'n' },
];

const PHASES: readonly Column<Phase>[] = [
  { name: 'phase', of: ({ kind, held }) => (held === null ? kind : `${kind}, ${held ? 'held' : 'broke'}`) },
  { name: 'seconds', of: ({ from, to }) => `${Math.round(from)}-${Math.round(to)}`, is: 'n' },
  { name: 'asked', of: ({ asked }) => shown(asked, 'rate'), is: 'n' },
  { name: 'good pages', of: ({ pagesPerSecond }) => shown(pagesPerSecond, 'rate'), is: 'n' },
  { name: 'p50', of: ({ pages }) => shown(pages.p50, 'ms'), is: 'n' },
  { name: 'p99', of: ({ pages }) => shown(pages.p99, 'ms'), is: 'n' },
  { name: '429', of: ({ counts }) => counted(counts.refused429), is: 'n' },
  { name: '503', of: ({ counts }) => counted(counts.refused503), is: 'n' },
  { name: '4xx, 5xx', of: ({ counts }) => counted(counts.faults4xx + counts.faults5xx), is: 'n' },
  { name: 'cut', of: ({ counts }) => counted(counts.cut), is: 'n' },
  { name: 'wrong', of: ({ counts }) => counted(counts.wrong), is: 'n' },
  { name: 'rows', of: ({ rowsPerSecond }) => shown(rowsPerSecond, 'rate'), is: 'n' },
  { name: 'why it broke', of: ({ broke }) => broke ?? '' },
];

const serverColumn = (name: string, figure: keyof ServerSide, unit: Unit): Column<Phase> => ({
  name,
  of: ({ server }) => shown(server?.[figure] ?? null, unit),
  is: 'n',
});

const SERVER: readonly Column<Phase>[] = [
  ...PHASES.slice(0, 2),
  serverColumn('cores', 'cpu', 'cores'),
  serverColumn('memory', 'memory', 'bytes'),
  serverColumn('delay of its event loop', 'loopDelay', 'ms'),
  serverColumn('store, ms/s', 'store', 'msPerSecond'),
  serverColumn('transcoder, ms/s', 'transcoder', 'msPerSecond'),
  serverColumn('socket, ms/s', 'socket', 'msPerSecond'),
  serverColumn('open streams', 'streams', 'number'),
  serverColumn('stalled', 'stalled', 'number'),
  serverColumn('429', 'refused429', 'rate'),
  serverColumn('503', 'refused503', 'rate'),
];

const PULLERS: readonly Column<PullerRow>[] = [
  { name: 'reader', of: ({ kind }) => kind },
  { name: 'query', of: ({ query }) => query, is: 'q' },
  { name: 'rows', of: ({ rows }) => counted(rows), is: 'n' },
  { name: 'rate', of: ({ rowsPerSecond }) => shown(rowsPerSecond, 'rate'), is: 'n' },
  { name: 'bytes', of: ({ bytes }) => shown(bytes, 'bytes'), is: 'n' },
  { name: 'first byte', of: ({ firstByte }) => shown(firstByte, 'ms'), is: 'n' },
  { name: 'longest gap', of: ({ longestGap }) => shown(longestGap, 'ms'), is: 'n' },
  { name: 'whole', of: ({ whole }) => counted(whole), is: 'n' },
  {
    name: 'cut',
    of: ({ cut, cutByUs }) => (cutByUs > 0 ? `${cut} + ${cutByUs} by us` : String(cut)),
    is: 'n',
  },
  { name: 'proof', of: ({ proof }) => proof, is: ({ proof }) => proof },
  { name: 'reason', of: ({ reason }) => reason ?? '' },
];

const SLOWEST: readonly Column<LoadResult['slowest'][number]>[] = [
  { name: 'latency', of: ({ latency }) => shown(latency, 'ms'), is: 'n' },
  { name: 'of it waiting', of: ({ waited }) => shown(waited, 'ms'), is: 'n' },
  { name: 'at second', of: ({ second }) => String(second), is: 'n' },
  { name: 'status', of: ({ status }) => String(status), is: 'n' },
  { name: 'query', of: ({ query }) => query, is: 'q' },
  { name: 'request id', of: ({ requestId }) => requestId ?? '', is: 'q' },
  { name: 'trace', of: ({ traceId }) => traceId ?? '', is: 'q' },
];
