import { COMPRESSIONS, type Compression } from '../pull/proved-rows.ts';
import { FORMATS } from './forms/form.ts';
import { integer, oneOf, readArguments, UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';
import type { Condition, LoadCommand } from './options.ts';
import type { PageQuery } from './queries.ts';

const OPTIONS = {
  pages: { type: 'string' },
  connections: { type: 'string' },
  query: { type: 'string', multiple: true },
  'page-compression': { type: 'string' },
  pullers: { type: 'string' },
  slow: { type: 'string' },
  stalled: { type: 'string' },
  cut: { type: 'string' },
  stream: { type: 'string', multiple: true },
  format: { type: 'string' },
  compression: { type: 'string' },
  followers: { type: 'string' },
  follow: { type: 'string' },
  write: { type: 'string' },
  'write-key-file': { type: 'string' },
  for: { type: 'string' },
  ramp: { type: 'string' },
  find: { type: 'string' },
  'expect-refusals': { type: 'boolean' },
  trace: { type: 'boolean' },
  'key-file': { type: 'string' },
  metrics: { type: 'string' },
  'metrics-key-file': { type: 'string' },
  json: { type: 'string' },
  report: { type: 'string' },
  compare: { type: 'string' },
} as const;

const MOST_READERS = 100_000;
const MOST_PER_SECOND = 1_000_000;
const DAY_SECONDS = 86_400;
const DEFAULT_PAGES = 100;
const FIRST_OF_FIND = 50;
const MIXED = 'mixed';

/** Parses the arguments of `sluice load`. Throws UsageError, which names the first wrong argument. */
export function parseLoadArguments(argv: readonly string[]): LoadCommand {
  const { values, positionals } = readArguments(argv, OPTIONS);
  const [address, second] = positionals;
  if (address === undefined) throw new UsageError('load takes the URL of a server; it got none');
  if (second !== undefined) throw new UsageError(`load takes one URL; it also got ${quoted(second)}`);
  const count = (name: 'pullers' | 'stalled' | 'followers') =>
    integer(`--${name}`, values[name] ?? '0', 0, MOST_READERS);
  const streamReaders = { pullers: count('pullers'), slow: slowOf(values.slow), stalled: count('stalled') };
  if (values['metrics-key-file'] !== undefined && values.metrics === undefined)
    throw new UsageError('--metrics-key-file requires --metrics');
  const followers = count('followers');
  const find = values.find === undefined ? null : conditionOf(values.find);
  const isAlone = streamReaders.pullers + streamReaders.stalled + followers === 0 && !streamReaders.slow;
  const pages = values.pages === undefined ? null : pagesOf(values.pages);
  if (find && pages === 'max') throw new UsageError('--find takes a rate to begin with in --pages, not max');
  const format = oneOf('--format', values.format, FORMATS) ?? 'ndjson';
  const cutsPerMinute = values.cut === undefined ? 0 : cutsOf(values.cut);
  if (cutsPerMinute > 0 && (streamReaders.pullers === 0 || format !== 'ndjson'))
    throw new UsageError('--cut requires --pullers of NDJSON, which resume');
  if (values.write !== undefined && followers === 0) throw new UsageError('--write requires --followers');
  const compressions = [...COMPRESSIONS, MIXED] as const;
  const pageCompression = oneOf('--page-compression', values['page-compression'], compressions) ?? MIXED;
  return {
    url: urlOf(address),
    words: argv.filter((word, i) => !isOfKey(word) && !isOfKey(argv[i - 1])),
    pages: pages ?? (find ? FIRST_OF_FIND : isAlone ? DEFAULT_PAGES : null),
    connections: integer('--connections', values.connections ?? '32', 1, MOST_READERS),
    queries: (values.query ?? []).map(queryOf),
    pageCompression: pageCompression === MIXED ? null : pageCompression,
    ...streamReaders,
    cutsPerMinute,
    streams: (values.stream ?? []).map((path) => pathOf('--stream', path)),
    format,
    compression: oneOf('--compression', values.compression, COMPRESSIONS) ?? ('none' satisfies Compression),
    followers,
    follow: values.follow === undefined ? null : pathOf('--follow', values.follow),
    write: values.write === undefined ? null : writeOf(values.write),
    writeKeyFile: values['write-key-file'] ?? null,
    forSeconds: secondsOf('--for', values.for ?? (find ? '10s' : '30s'), 1),
    rampSeconds: secondsOf('--ramp', values.ramp ?? (find ? '2s' : '5s'), 0),
    find,
    expectRefusals: values['expect-refusals'] ?? false,
    trace: values.trace ?? false,
    keyFile: values['key-file'] ?? null,
    metrics: values.metrics === undefined ? null : metricsOf(values.metrics),
    metricsKeyFile: values['metrics-key-file'] ?? null,
    json: values.json ?? null,
    report: values.report ?? null,
    compare: values.compare ?? null,
  };
}

/** The option before the path of a key. */
function isOfKey(word: string | undefined): boolean {
  return word === '--key-file' || word === '--write-key-file' || word === '--metrics-key-file';
}

function urlOf(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError(
      `load takes the http or https URL of a server, such as http://127.0.0.1:3000; it got ${quoted(address)}`,
    );
  if (url.username !== '' || url.password !== '')
    throw new UsageError('load takes no key in the URL; write the API key to a file and use --key-file FILE');
  if (url.search !== '')
    throw new UsageError(`load takes the URL of a server; use --query ${quoted(url.pathname + url.search)}`);
  return url;
}

/** The URL of metrics: that of a server, or the whole. */
function metricsOf(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw new UsageError(
      `--metrics must be a URL such as http://127.0.0.1:3000/metrics; got ${quoted(address)}`,
    );
  if (url.pathname === '/') url.pathname = '/metrics';
  return url;
}

function pagesOf(value: string): number | 'max' {
  return value === 'max' ? value : perUnit('--pages', value, 's', '500/s, or max');
}

function cutsOf(value: string): number {
  return perUnit('--cut', value, 'min', '10/min');
}

function perUnit(option: string, value: string, unit: string, example: string): number {
  const number = Number(new RegExp(`^(\\d+(?:\\.\\d+)?)/${unit}$`).exec(value)?.[1]);
  if (number > 0 && number <= MOST_PER_SECOND) return number;
  throw new UsageError(`${option} must be a rate such as ${example}; got ${quoted(value)}`);
}

function slowOf(value: string | undefined): LoadCommand['slow'] {
  if (value === undefined) return null;
  const [, readers, number, unit = ''] = /^([1-9]\d{0,5})@(\d+(?:\.\d+)?)([kM]?)B\/s$/.exec(value) ?? [];
  const bytesPerSecond = Number(number) * ({ k: 1e3, M: 1e6 }[unit] ?? 1);
  if (bytesPerSecond >= 1) return { readers: Number(readers), bytesPerSecond };
  throw new UsageError(`--slow must be readers and their speed, such as 50@200kB/s; got ${quoted(value)}`);
}

function secondsOf(option: string, value: string, least: number): number {
  const [, number, unit = 's'] = /^(\d{1,6})(s|min|h)?$/.exec(value) ?? [];
  const seconds = Number(number) * ({ min: 60, h: 3600 }[unit] ?? 1);
  if (seconds >= least && seconds <= DAY_SECONDS) return seconds;
  throw new UsageError(`${option} must be a time such as 60s or 5min, at most 24h; got ${quoted(value)}`);
}

function conditionOf(text: string): Condition {
  const [, name, number, unit] = /^(p50|p90|p99|p99\.9|max) *< *(\d+(?:\.\d+)?)(ms|s)$/.exec(text) ?? [];
  const belowMs = Number(number) * (unit === 's' ? 1000 : 1);
  if (name === undefined || !(belowMs > 0))
    throw new UsageError(`--find must be a condition such as p99<50ms; got ${quoted(text)}`);
  return { quantile: name.replace('.', '') as Condition['quantile'], belowMs, text };
}

/** `[WEIGHT:][walk:]/path?query` */
function queryOf(text: string): PageQuery {
  const [, weight = '1', walk, path] = /^(?:(\d+(?:\.\d+)?):)?(walk:)?(\/.*)$/.exec(text) ?? [];
  if (path === undefined || Number(weight) === 0)
    throw new UsageError(`--query must be a path such as 3:/orders?status=paid; got ${quoted(text)}`);
  return { path: pathOf('--query', path), walks: walk !== undefined, weight: Number(weight) };
}

/** The path of users, or the URL of those of another server. Without a slash at the end. */
function writeOf(text: string): string {
  const isUrl = /^https?:/.test(text) && URL.canParse(text);
  return (isUrl ? new URL(text).href : pathOf('--write', text)).replace(/\/$/, '');
}

/** A path with its query, below the URL of the server, as HTTP sends it. */
function pathOf(option: string, text: string): string {
  const url = URL.canParse(text, 'http://server') ? new URL(text, 'http://server') : null;
  if (url && /^\/(?!\/)|^https?:/.test(text)) return url.pathname + url.search;
  throw new UsageError(`${option} must be a path such as /items; got ${quoted(text)}`);
}
