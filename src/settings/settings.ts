import { HOSTS_FORM } from '../access/hosts.ts';
import { RATE_LIMIT_FORM, STREAM_LIMIT_FORM, type Policy } from '../access/policy.ts';
import { RESOURCE_NAME } from '../resources/declarations.ts';
import { ID_TYPES, type IdType } from '../resources/query/kinds.ts';
import { DURATION } from '../base/duration.ts';
import { Type } from '../base/schema.ts';

/** A process idles at 105 MiB, and loads the bundled catalogue with 168. Below this it may refuse every request. MiB. */
const LEAST_MEMORY = 192;

/** Names of resources. */
export const RESOURCE_NAMES = `^${RESOURCE_NAME}( *, *${RESOURCE_NAME})*$`;

/** The beginning of a collection's name. */
export const PREFIX_FORM = '^[A-Za-z0-9_-]{1,60}$';

const text = (fallback: string, description: string, pattern = '') =>
  Type.String({ pattern, default: fallback, description });
const optional = (description: string, pattern = '') => Type.Optional(Type.String({ pattern, description }));
/** A text that stands for a value: see `config.ts`. */
const read = <T>(pattern: string, fallback: string, description: string) =>
  Type.Unsafe<T>({ type: 'string', pattern, default: fallback, description });
/** `least` and `most` are durations, too. Absent: any duration is right. */
const duration = (fallback: string, description: string, [least, most]: readonly string[] = []) =>
  Type.Unsafe<number>({ type: 'string', pattern: DURATION, default: fallback, description, least, most });
const integer = (minimum: number, maximum: number, fallback: number, description: string) =>
  Type.Integer({ minimum, maximum, default: fallback, description });
const choice = <const T extends string>(words: readonly T[], fallback: T, description: string) =>
  Type.Unsafe<T>({ type: 'string', enum: words, default: fallback, description });

/** Every setting by its name in the environment. docs/operations.md and `--help` show this table. */
export const SETTINGS = Type.Object({
  SETTINGS_FILE: optional(
    'file of settings, `NAME=value` by line; variables of the environment go before it; LOG_LEVEL, rates and limits of it are read again at SIGHUP',
  ),
  PORT: integer(0, 65_535, 3000, 'TCP port to listen on; 0 picks a free port and logs it'),
  HOST: text('127.0.0.1', 'IP address or host name to listen on'),
  ALLOWED_HOSTS: Type.Optional(
    Type.Unsafe<readonly string[]>({
      type: 'string',
      pattern: HOSTS_FORM,
      description:
        'further names in the Host header under which clients reach a server without API keys, separated by commas; IP addresses, `localhost` and HOST are always allowed',
    }),
  ),
  MONGODB_URI: optional(
    'MongoDB connection string; database `sluice` unless it names one; unset: the embedded store',
    '^mongodb(\\+srv)?://.',
  ),
  MONGODB_URI_FILE: optional('file whose first line is MONGODB_URI'),
  EXPOSE: optional(
    'existing collections of MongoDB to serve, read only, separated by commas: `orders,crm.customers`, or `crm.*,!crm.secrets`; needs MONGODB_URI',
  ),
  RESOURCES_FILE: optional('JSON file that declares resources: see docs/resources.md'),
  MONGODB_MANAGE_INDEXES: choice(
    ['auto', 'true', 'false'],
    'auto',
    'auto: create collection, validator and indexes when missing, but nothing on an `items` that another program made, unless an import, SAMPLE=on or RESOURCES_FILE asks; true: indexes there, too; false: only check and report what is missing',
  ),
  MONGODB_PREFIX: optional(
    'beginning of the names of the collections that the server keeps for itself: `users`, `exports`, `exports.files`, `exports.chunks`, `editions`',
    PREFIX_FORM,
  ),
  DATA_DIR: text('./data', 'directory of the embedded store and its export files; created if missing'),
  FILES: optional(
    'where files of exports and editions lie: `s3://BUCKET/PREFIX?endpoint=URL&region=NAME`, or `file:///FOLDER`; unset: in the store, or beside the embedded one; editions of rows in MongoDB need it',
  ),
  S3_ACCESS_KEY_ID: optional('access key of the bucket in FILES'),
  S3_ACCESS_KEY_ID_FILE: optional('file whose first line is that, read again when the bucket refuses it'),
  S3_SECRET_ACCESS_KEY: optional('secret of that access key'),
  S3_SECRET_ACCESS_KEY_FILE: optional('file whose first line is that'),
  S3_SESSION_TOKEN: optional('session token, where the access key is a temporary one'),
  S3_SESSION_TOKEN_FILE: optional('file whose first line is that'),
  SAMPLE: choice(
    ['auto', 'on', 'off'],
    'auto',
    'load the bundled catalogue at start: auto: when the start makes the embedded store and no resource is declared; on: into any empty `items`; off: never',
  ),
  REDIS_URL: optional(
    'Redis that shares rate limits and the queue of exports between processes: a server, `redis+cluster://` or `redis+sentinel://`; unset: none is used',
    '^rediss?(\\+(cluster|sentinel))?://.',
  ),
  REDIS_URL_FILE: optional('file whose first line is REDIS_URL'),
  WORKERS: integer(1, 256, 1, 'number of server processes that share the port'),
  RATE_LIMIT: read<Policy | null>(
    RATE_LIMIT_FORM,
    '60000/min',
    'requests per client, such as `100/s`; `off`: no limit; counted per process unless REDIS_URL is set',
  ),
  STREAM_LIMIT: read<number>(STREAM_LIMIT_FORM, '64', 'open streams per client and process; `off`: no limit'),
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
      minimum: LEAST_MEMORY,
      description:
        'memory per process in MiB; refuse requests with 503 above it; unset: 85 % of the memory of the machine or container, divided by WORKERS',
    }),
  ),
  MAX_LIMIT: integer(1, 100_000, 1000, 'largest `limit` of a page'),
  MAX_OFFSET: integer(0, 1_000_000_000, 1_000_000, 'largest number of rows that `offset` or `page` may skip'),
  ID_TYPE: Type.Optional(
    Type.Unsafe<IdType>({
      type: 'string',
      enum: Object.keys(ID_TYPES),
      description:
        'the only type that ids in URLs are read as; unset: every type that the text can be, those that ids of the collection have first',
    }),
  ),
  API_KEYS_FILE: optional(
    'file of API keys, by line or as JSON, read again when it changes; every request then needs `Authorization: Bearer`',
  ),
  JWT_JWKS_URL: optional(
    'URL of a JSON Web Key Set; bearer tokens (JWT) signed with its keys are accepted; unset: that of the OpenID configuration of JWT_ISSUER',
    '^https?://.',
  ),
  JWT_ISSUER: optional('the `iss` that a token must have, as it is; turns on tokens; needs JWT_AUDIENCE'),
  JWT_AUDIENCE: optional('the `aud` that a token must have or contain'),
  JWT_CLAIM: text(
    'sluice',
    'path of the claim that has the rights of a token: the members of a key in the JSON form of API_KEYS_FILE, or a list of names in JWT_ROLES: `realm_access.roles`, `https://acme\\.example/roles`',
  ),
  JWT_ROLES: optional('JSON with the rights of roles by name; the first one that a token has counts'),
  JWT_DEFAULT: optional('JSON with the rights of tokens without that claim; unset: they have none'),
  TRUSTED_PROXIES: optional(
    'proxies whose X-Forwarded-For and X-Forwarded-Prefix headers are trusted: addresses, ranges, `loopback`, `private`, separated by commas',
  ),
  CORS_ORIGIN: optional(
    'origins that CORS allows: `*`, or `https://a.example, https://b.example`; unset: none',
    '^(\\*|https?://[^\\s,/]+( *, *https?://[^\\s,/]+)*)$',
  ),
  CACHE_CONTROL: text('private, no-cache', 'Cache-Control header of pages and items', '^[\\x20-\\x7e]+$'),
  KEEP_ALIVE: duration(
    '75 s',
    'keep a connection without a request open at least this long after an answer: longer than the proxy or load balancer in front does; above 15 min node:http serves',
    ['1 s', '1 h'],
  ),
  STALL_TIMEOUT: duration('5 min', 'close the connection of a client that reads nothing for this long'),
  DRAIN_DELAY: duration('0 s', 'at shutdown, keep serving for this long while /readyz answers 503'),
  STREAM_GRACE: duration('20 s', 'at shutdown, let open streams run for this long before they are cut'),
  EXPORT_TTL: duration('24 h', 'keep a finished export and its file for this long'),
  EXPORT_LINK_TTL: duration('15 min', 'how long a link to the file of an export in a bucket is valid', [
    '1 s',
    '168 h',
  ]),
  FILES_PROXY: choice(
    ['false', 'true'],
    'false',
    'true: the server streams files out of a bucket itself and gives no links to it',
  ),
  EXPORT_CONCURRENCY: integer(1, 64, 2, 'exports that one process runs at a time'),
  EXPORT_LIMIT: integer(1, 100_000, 20, 'exports per client, including finished ones'),
  CHANGES_TTL: duration('168 h', 'keep the changes of rows in the embedded store for this long'),
  EDITIONS: Type.Optional(
    Type.Unsafe<readonly string[]>({
      type: 'string',
      pattern: RESOURCE_NAMES,
      description:
        'resources that have editions, separated by commas: every 5 min, of which 3 are kept; RESOURCES_FILE can say otherwise',
    }),
  ),
  EDITIONS_URL: optional(
    'URL under which a CDN, a web server or a bucket serves the files of editions: `URL/RESOURCE/chunks/`; unset: the server does',
    '^https?://[^\\s?#]+$',
  ),
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
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    'collector of OpenTelemetry that gets traces over OTLP/HTTP; unset: none are made',
    '^https?://.',
  ),
});

/** Formats the settings as a text table, for `sluice serve --help`. */
export function settingsHelp(): string {
  const rows = Object.entries(SETTINGS.properties).map(([name, { default: fallback, description }]) => {
    const shown = fallback === undefined ? '' : ` (default: ${String(fallback)})`;
    return `  ${name.padEnd(24)} ${description ?? ''}${shown}`;
  });
  return rows.join('\n');
}
