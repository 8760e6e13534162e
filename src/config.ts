import { homedir, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { readKeysFile } from './access/keys-file.ts';
import type { Key } from './access/keys.ts';
import { parseTrustedProxies, type Trusts } from './access/proxies.ts';
import {
  parseRateLimit,
  parseStreamLimit,
  RATE_LIMIT_FORM,
  STREAM_LIMIT_FORM,
  type Policy,
} from './access/policy.ts';
import { Faults } from './errors.ts';
import { readTokenSettings, type TokenSettings } from './access/token-settings.ts';
import { redisUrlFaults } from './redis/url.ts';
import { readDeclarations, type Declared } from './resources/declarations.ts';
import type { Static } from './schema.ts';
import { DURATION, PREFIX_FORM, SETTINGS, UNITS } from './settings.ts';

const DURATIONS = [
  ...(['MAX_LOOP_DELAY', 'MAX_WAIT', 'STALL_TIMEOUT', 'DRAIN_DELAY'] as const),
  ...(['STREAM_GRACE', 'EXPORT_TTL', 'CHANGES_TTL'] as const),
];
type Durations = (typeof DURATIONS)[number];

/** Values derived from the texts of the settings. */
interface Derived {
  /** The accepted API keys; null: there is no API_KEYS_FILE. */
  readonly apiKeys: readonly Key[] | null;
  /** How tokens are verified; null: none is accepted. */
  readonly tokens: TokenSettings | null;
  /** Whether requests need a key or a token. */
  readonly needsKeys: boolean;
  readonly trustsProxy: Trusts;
  /** null: no limit. */
  readonly rateLimit: Policy | null;
  /** Infinity: no limit. */
  readonly streamLimit: number;
  readonly maxMemoryBytes: number;
  readonly cacheDirectory: string;
  /** The resources that EXPOSE and RESOURCES_FILE declare. */
  readonly resources: readonly Declared[];
  /** Whether RESOURCES_FILE declares the items. */
  readonly declaresItems: boolean;
}

/** Settings as the program uses them, with durations in milliseconds. */
export type Config = Omit<Static<typeof SETTINGS>, Durations> & Readonly<Record<Durations, number>> & Derived;

/** Reads the settings from an environment. Throws Faults, which has every fault at once. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  // `NAME= command` and compose files produce empty variables. An empty variable counts as not set.
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const keys = given.API_KEYS_FILE === undefined ? null : readKeysFile(given.API_KEYS_FILE);
  const tokens = readTokenSettings(given);
  const needsKeys = keys !== null || tokens.settings !== null;
  const proxies = parseTrustedProxies(given.TRUSTED_PROXIES);
  const { settings, faults } = checkForms(given);
  const declared = readDeclarations(given);
  faults.push(
    ...declared.faults,
    ...(keys?.faults ?? []),
    ...tokens.faults,
    ...proxies.faults,
    ...redisUrlFaults(given.REDIS_URL),
    ...(needsKeys && settings ? cacheFaults(settings, keys ? 'API_KEYS_FILE' : 'JWT_JWKS_URL') : []),
  );
  if (settings === null || faults.length > 0) throw new Faults(faults);
  const durations = DURATIONS.map((name) => [name, milliseconds(settings[name])] as const);
  return {
    ...settings,
    ...(Object.fromEntries(durations) as Record<Durations, number>),
    apiKeys: keys?.keys ?? null,
    tokens: tokens.settings,
    needsKeys,
    trustsProxy: proxies.trusts,
    rateLimit: parseRateLimit(settings.RATE_LIMIT),
    streamLimit: parseStreamLimit(settings.STREAM_LIMIT),
    maxMemoryBytes: maxMemoryBytes(settings),
    cacheDirectory: cacheDirectory(environment),
    resources: declared.resources,
    declaresItems: declared.items,
  };
}

type Settings = Static<typeof SETTINGS>;

/**
 * A shared cache would give the answer to one key to others: public, s-maxage and must-revalidate allow it to keep answers
 * to requests with Authorization (RFC 9111, 3.5). private and no-store forbid it again.
 */
function cacheFaults({ CACHE_CONTROL: given }: Settings, setting: string): string[] {
  const words = given.toLowerCase().split(/[\s,]+/);
  const isPrivate = words.includes('private') || words.includes('no-store');
  const shared = words.find(
    (word) => /^(public|s-maxage)(=|$)/.test(word) || (word === 'must-revalidate' && !isPrivate),
  );
  if (shared === undefined) return [];
  const without = shared === 'must-revalidate' ? ' without private' : '';
  return [
    `CACHE_CONTROL must not have ${shared.replace(/=.*/, '')}${without} with ${setting}: answers depend on the key`,
  ];
}

/** The settings by their forms: an absent one has its default. null: one or more do not have their form. */
function checkForms(given: NodeJS.ProcessEnv): { settings: Settings | null; faults: string[] } {
  const faults: string[] = [];
  const settings: Record<string, unknown> = {};
  for (const [name, form] of Object.entries<Form>(SETTINGS.properties)) {
    const text = given[name];
    const value = text === undefined ? form.default : valueOf(text, form);
    if (value !== undefined) settings[name] = value;
    const fault = text === undefined ? null : faultOf(text, form);
    // Never show the value of a URI: it may contain a password.
    if (fault !== null)
      faults.push(`${name} ${fault}${/_UR[IL]$/.test(name) ? '' : `; got ${JSON.stringify(text)}`}`);
  }
  return { settings: faults.length === 0 ? (settings as Settings) : null, faults };
}

/** The meaning of a pattern, in words. */
const FORMS: Readonly<Record<string, string>> = {
  [DURATION]: 'must be a duration such as "20 s", "5 min" or "24 h"',
  [RATE_LIMIT_FORM]: 'must be a rate such as "60000/min", "100/s", or "off"',
  [STREAM_LIMIT_FORM]: 'must be an integer of at least 1, or "off"',
  [PREFIX_FORM]: 'must be 1 to 60 letters, digits, underscores and hyphens',
};

interface Form {
  readonly type?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
}

function valueOf(text: string, { type }: Form): unknown {
  if (type === 'integer') return Number(text);
  return type === 'boolean' ? text === 'true' : text;
}

/** What a text must be instead. Null: it has the form. */
function faultOf(text: string, { type, pattern, ...form }: Form): string | null {
  const { enum: words, minimum = -Infinity, maximum = Infinity } = form;
  if (words && !words.includes(text)) return `must be one of ${words.join(', ')}`;
  if (type === 'boolean' && !['true', 'false'].includes(text)) return 'must be true or false';
  if (type === 'integer' && !Number.isInteger(Number(text))) return 'must be integer';
  if (type === 'integer' && Number(text) < minimum) return `must be >= ${minimum}`;
  if (type === 'integer' && Number(text) > maximum) return `must be <= ${maximum}`;
  if (pattern === undefined || new RegExp(pattern, 'u').test(text)) return null;
  return FORMS[pattern] ?? `must match pattern "${pattern}"`;
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
