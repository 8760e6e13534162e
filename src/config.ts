import envSchema from 'env-schema';
import { homedir, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { readKeysFile, type Key } from './access/keys.ts';
import { parseTrustedProxies, type Trusts } from './access/proxies.ts';
import { ID_TYPES } from './items/id.ts';
import {
  parseRateLimit,
  parseStreamLimit,
  RATE_LIMIT_FORM,
  STREAM_LIMIT_FORM,
  type Policy,
} from './access/policy.ts';
import { redisUrlFaults } from './redis/url.ts';
import { Type, type Static } from './schema.ts';

/** Durations are written as a number and a unit: `20 s`, `5 min`, `24 h`. */
const UNITS = { ms: 1, s: 1000, min: 60_000, h: 3_600_000 } as const;
const DURATION = '^\\d{1,9} ?(ms|s|min|h)$';

const duration = (fallback: string, description: string) =>
  Type.String({ pattern: DURATION, default: fallback, description });
const integer = (minimum: number, maximum: number, fallback: number, description: string) =>
  Type.Integer({ minimum, maximum, default: fallback, description });
const choice = <const T extends string>(words: readonly T[], fallback: T, description: string) =>
  Type.Unsafe<T>({ type: 'string', enum: words, default: fallback, description });

/**
 * Every setting with its name in the environment, form, default and meaning. docs/operations.md and `--help` show
 * this table.
 */
export const SETTINGS = Type.Object({
  PORT: integer(0, 65_535, 3000, 'TCP port to listen on; 0 picks a free port and logs it'),
  HOST: Type.String({
    minLength: 1,
    default: '127.0.0.1',
    description: 'IP address or host name to listen on',
  }),
  MONGODB_URI: Type.Optional(
    Type.String({
      pattern: '^mongodb(\\+srv)?://.',
      description:
        'MongoDB connection string; database `sluice` unless it names one; unset: the embedded store',
    }),
  ),
  MONGODB_MANAGE_INDEXES: Type.Boolean({
    default: true,
    description:
      'true: create the collection, validator and indexes when missing; false: only check them and report what is missing',
  }),
  DATA_DIR: Type.String({
    minLength: 1,
    default: './data',
    description: 'directory of the embedded store and its export files; created if missing',
  }),
  SAMPLE: choice(
    ['auto', 'on', 'off'],
    'auto',
    'load the bundled catalogue at start: auto: into an empty embedded store; on: also into an empty MongoDB; off: never',
  ),
  REDIS_URL: Type.Optional(
    Type.String({
      pattern: '^rediss?://.',
      description:
        'Redis that shares rate limits and the queue of exports between processes; unset: none is used',
    }),
  ),
  WORKERS: integer(1, 256, 1, 'number of server processes that share the port'),
  RATE_LIMIT: Type.String({
    pattern: RATE_LIMIT_FORM,
    default: '60000/min',
    description:
      'requests per client, such as `100/s`; `off`: no limit; counted per process unless REDIS_URL is set',
  }),
  STREAM_LIMIT: Type.String({
    pattern: STREAM_LIMIT_FORM,
    default: '64',
    description: 'open streams per client and process; `off`: no limit',
  }),
  MAX_STREAMS: integer(1, 1_000_000, 5000, 'open streams per process; more are refused with 503'),
  MAX_LOOP_DELAY: duration(
    '200 ms',
    'refuse requests with 503 while the delay of the event loop exceeds this',
  ),
  MAX_WAIT: duration(
    '2 s',
    'refuse a request with 503 while the requests in flight would make it wait longer than this',
  ),
  MAX_MEMORY: Type.Optional(
    Type.Integer({
      minimum: 64,
      description:
        'memory per process in MiB; refuse requests with 503 above it; unset: 85 % of the memory of the machine or container, divided by WORKERS',
    }),
  ),
  MAX_LIMIT: integer(1, 100_000, 1000, 'largest `limit` of a page'),
  MAX_OFFSET: integer(0, 1_000_000_000, 1_000_000, 'largest number of rows that `offset` or `page` may skip'),
  ID_TYPE: Type.Optional(
    Type.Unsafe<(typeof ID_TYPES)[number]>({
      type: 'string',
      enum: ID_TYPES,
      description:
        'the only type that ids in URLs are read as; unset: the type of the first item, then the other types',
    }),
  ),
  API_KEYS_FILE: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'file with one API key per line: its name and SHA-256; every request then needs `Authorization: Bearer`',
    }),
  ),
  TRUSTED_PROXIES: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'proxies whose X-Forwarded-For header is trusted: addresses, ranges, `loopback`, `private`, separated by commas',
    }),
  ),
  CORS_ORIGIN: Type.Optional(
    Type.String({
      pattern: '^(\\*|https?://[^\\s,/]+( *, *https?://[^\\s,/]+)*)$',
      description: 'origins that CORS allows: `*`, or `https://a.example, https://b.example`; unset: none',
    }),
  ),
  CACHE_CONTROL: Type.String({
    pattern: '^[\\x20-\\x7e]+$',
    default: 'private, no-cache',
    description: 'Cache-Control header of pages and items',
  }),
  STALL_TIMEOUT: duration('5 min', 'close the connection of a client that reads nothing for this long'),
  DRAIN_DELAY: duration('0 s', 'at shutdown, keep serving for this long while /readyz answers 503'),
  STREAM_GRACE: duration('20 s', 'at shutdown, let open streams run for this long before they are cut'),
  EXPORT_TTL: duration('24 h', 'keep a finished export and its file for this long'),
  EXPORT_CONCURRENCY: integer(1, 64, 2, 'exports that one process runs at a time'),
  EXPORT_LIMIT: integer(1, 100_000, 20, 'exports per client, including finished ones'),
  HTTP_ENGINE: choice(
    ['auto', 'uws', 'node'],
    'auto',
    'HTTP server: auto: uWebSockets.js, or node:http with a warning where that cannot be loaded',
  ),
  LOG_LEVEL: choice(
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    'info',
    'lowest level that is logged',
  ),
  LOG_FORMAT: choice(
    ['auto', 'json', 'pretty'],
    'auto',
    'auto: text on a terminal, otherwise one JSON object per line',
  ),
});

type Durations =
  'MAX_LOOP_DELAY' | 'MAX_WAIT' | 'STALL_TIMEOUT' | 'DRAIN_DELAY' | 'STREAM_GRACE' | 'EXPORT_TTL';

/** Values derived from the texts of the settings. */
interface Derived {
  /** The accepted API keys; null: no key is needed. */
  readonly apiKeys: readonly Key[] | null;
  readonly trustsProxy: Trusts;
  /** null: no limit. */
  readonly rateLimit: Policy | null;
  /** Infinity: no limit. */
  readonly streamLimit: number;
  readonly maxMemoryBytes: number;
  readonly cacheDirectory: string;
}

/** Settings as the program uses them, with durations in milliseconds. */
export type Config = Omit<Static<typeof SETTINGS>, Durations> & Readonly<Record<Durations, number>> & Derived;

/** All faults of the settings, one per line. */
export class ConfigError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

/** Reads the settings from an environment. Throws a ConfigError that names every fault at once. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  // `NAME= command` and compose files produce empty variables. An empty variable counts as not set.
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const keys = given.API_KEYS_FILE === undefined ? null : readKeysFile(given.API_KEYS_FILE);
  const proxies = parseTrustedProxies(given.TRUSTED_PROXIES);
  const { settings, faults } = checkForms(given);
  faults.push(...(keys?.faults ?? []), ...proxies.faults, ...redisUrlFaults(given.REDIS_URL));
  if (settings === null || faults.length > 0) throw new ConfigError(faults);
  return {
    ...settings,
    apiKeys: keys?.keys ?? null,
    trustsProxy: proxies.trusts,
    rateLimit: parseRateLimit(settings.RATE_LIMIT),
    streamLimit: parseStreamLimit(settings.STREAM_LIMIT),
    MAX_LOOP_DELAY: milliseconds(settings.MAX_LOOP_DELAY),
    MAX_WAIT: milliseconds(settings.MAX_WAIT),
    STALL_TIMEOUT: milliseconds(settings.STALL_TIMEOUT),
    DRAIN_DELAY: milliseconds(settings.DRAIN_DELAY),
    STREAM_GRACE: milliseconds(settings.STREAM_GRACE),
    EXPORT_TTL: milliseconds(settings.EXPORT_TTL),
    maxMemoryBytes: maxMemoryBytes(settings),
    cacheDirectory: cacheDirectory(environment),
  };
}

type Settings = Static<typeof SETTINGS>;

function checkForms(given: NodeJS.ProcessEnv): { settings: Settings | null; faults: string[] } {
  try {
    return { settings: envSchema<Settings>({ schema: SETTINGS, data: given, env: false }), faults: [] };
  } catch (error) {
    return { settings: null, faults: faultsOf(error, given) };
  }
}

/** The meaning of a pattern, in words. */
const FORMS: Readonly<Record<string, string>> = {
  [DURATION]: 'must be a duration such as "20 s", "5 min" or "24 h"',
  [RATE_LIMIT_FORM]: 'must be a rate such as "60000/min", "100/s", or "off"',
  [STREAM_LIMIT_FORM]: 'must be an integer of at least 1, or "off"',
};

interface SchemaFault {
  readonly instancePath: string;
  readonly message?: string;
  readonly params?: { readonly allowedValues?: readonly string[]; readonly pattern?: string };
}

function faultsOf(error: unknown, given: NodeJS.ProcessEnv): string[] {
  const faults = (error as { errors?: readonly SchemaFault[] }).errors;
  if (!faults) throw error;
  return faults.map(({ instancePath, message, params }) => {
    const name = instancePath.slice(1);
    const expected = params?.allowedValues
      ? `must be one of ${params.allowedValues.join(', ')}`
      : params?.pattern !== undefined && params.pattern in FORMS
        ? FORMS[params.pattern]
        : (message ?? 'is not valid');
    // Never show the value of a URI: it may contain a password.
    return `${name} ${expected}${/_UR[IL]$/.test(name) ? '' : `; got ${JSON.stringify(given[name])}`}`;
  });
}

function milliseconds(text: string): number {
  const [, number, unit] = /^(\d+) ?(ms|s|min|h)$/.exec(text) ?? [];
  return Number(number) * UNITS[unit as keyof typeof UNITS];
}

/**
 * The share of memory that a process may use. The rest is for the kernel, and for memory that a process uses beyond
 * what it requests.
 */
const MEMORY_SHARE = 0.85;

function maxMemoryBytes({ MAX_MEMORY: mebibytes, WORKERS: workers }: Settings): number {
  if (mebibytes !== undefined) return mebibytes * 2 ** 20;
  const limit = process.constrainedMemory(); // 0 or more than the total without a container's limit
  const available = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  return (MEMORY_SHARE * available) / workers;
}

function cacheDirectory(environment: NodeJS.ProcessEnv): string {
  const base = environment.XDG_CACHE_HOME ?? (homedir() === '' ? tmpdir() : join(homedir(), '.cache'));
  return join(base, 'sluice');
}

/** Formats the settings as a text table, for `sluice serve --help`. */
export function settingsHelp(): string {
  const rows = Object.entries(SETTINGS.properties).map(([name, { default: fallback, description }]) => {
    const shown = fallback === undefined ? '' : ` (default: ${String(fallback)})`;
    return `  ${name.padEnd(24)} ${description ?? ''}${shown}`;
  });
  return rows.join('\n');
}
