import { decoded } from '../base/decoded.ts';

interface Login {
  readonly username?: string;
  readonly password?: string;
}

interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** What a REDIS_URL names: one server, a Cluster by some of its nodes, or the master that Sentinels know. */
export type RedisPlace =
  | { readonly kind: 'server'; readonly url: string }
  | {
      readonly kind: 'cluster';
      readonly nodes: readonly RedisNode[];
      readonly login: Login;
      readonly isTls: boolean;
    }
  | {
      readonly kind: 'sentinel';
      readonly nodes: readonly RedisNode[];
      readonly master: string;
      readonly database: number;
      readonly login: Login;
      readonly sentinelLogin: Login;
      readonly isTls: boolean;
    };

const SERVER_PORT = 6379;
const SENTINEL_PORT = 26379;

/** A URL of several hosts, which the URL class does not read: kind, login, hosts, path and query. */
const SEVERAL = /^(rediss?)\+(cluster|sentinel):\/\/(?:([^@/?#]*)@)?([^@/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/;

/** Faults never show the URL, which may contain a password: an error of a client shows all of it. */
const FAULTS = {
  server:
    'REDIS_URL must begin with redis:// or rediss:// and name a host, such as redis://:password@localhost:6379/0; several hosts need redis+cluster:// or redis+sentinel://',
  cluster:
    'REDIS_URL of a Cluster must name hosts and no database, such as redis+cluster://:password@one:6379,two:6379',
  sentinel:
    'REDIS_URL of Sentinels must name them and their master, such as redis+sentinel://:password@one:26379,two:26379/mymaster/0?sentinel_password=other',
};

/** What is wrong with REDIS_URL. */
export function redisUrlFaults(text: string | undefined): readonly string[] {
  if (text === undefined || readRedisUrl(text) !== null) return [];
  const [, kind] = /^rediss?\+(cluster|sentinel):/.exec(text) ?? [];
  return [kind === 'cluster' || kind === 'sentinel' ? FAULTS[kind] : FAULTS.server];
}

/** What a REDIS_URL names. null: it has no such form. */
export function readRedisUrl(text: string): RedisPlace | null {
  if (isServerUrl(text)) return { kind: 'server', url: text };
  const [, scheme, kind, login = '', hosts = '', path = '', query = ''] = SEVERAL.exec(text) ?? [];
  const isTls = scheme === 'rediss';
  const of = readLogin(login);
  if (kind === undefined || of === null) return null;
  const nodes = readNodes(hosts, kind === 'cluster' ? SERVER_PORT : SENTINEL_PORT);
  if (nodes === null) return null;
  if (kind === 'cluster')
    return ['', '0'].includes(path) && query === '' ? { kind, nodes, login: of, isTls } : null;
  const [, encoded = '', database = '0'] = /^([^/]+)(?:\/(\d{1,6}))?\/?$/.exec(path) ?? [];
  const master = decoded(encoded) ?? '';
  const sentinelLogin = readSentinelLogin(query);
  if (master === '' || sentinelLogin === null) return null;
  return { kind: 'sentinel', nodes, master, database: Number(database), login: of, sentinelLogin, isTls };
}

function isServerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  return (
    ['redis:', 'rediss:'].includes(protocol) &&
    hostname !== '' &&
    [username, password].every((part) => decoded(part) !== undefined)
  );
}

/** Reads `user:password`, `:password` or nothing. A text without a colon is a user, as in every URL. */
function readLogin(text: string): Login | null {
  const [, user = '', secret = ''] = /^([^:]*)(?::(.*))?$/.exec(text) ?? [];
  const username = decoded(user);
  const password = decoded(secret);
  if (username === undefined || password === undefined) return null;
  return { ...(username !== '' && { username }), ...(password !== '' && { password }) };
}

function readNodes(text: string, port: number): RedisNode[] | null {
  const nodes: RedisNode[] = [];
  for (const part of text.split(',')) {
    const place = `redis://${part}`;
    if (part === '' || !URL.canParse(place)) return null;
    const { hostname, port: own } = new URL(place);
    if (hostname === '') return null;
    nodes.push({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: own === '' ? port : Number(own) });
  }
  return nodes;
}

/** Sentinels have a login of their own, and none unless it is given. null: the query has something else. */
function readSentinelLogin(query: string): Login | null {
  const given = new URLSearchParams(query.replaceAll('+', '%2B'));
  const known = ['sentinel_username', 'sentinel_password'];
  if ([...given.keys()].some((name) => !known.includes(name))) return null;
  const [username, password] = known.map((name) => given.get(name) ?? '');
  return { ...(username && { username }), ...(password && { password }) };
}
