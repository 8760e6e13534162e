import { homedir, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { HOSTS_FORM, parseHosts } from '../access/hosts.ts';
import { readKeysFile } from '../access/keys-file.ts';
import { parseTrustedProxies } from '../access/proxies.ts';
import { parseRateLimit, parseStreamLimit, RATE_LIMIT_FORM, STREAM_LIMIT_FORM } from '../access/policy.ts';
import { DURATION, DURATION_WORDS, milliseconds } from '../base/duration.ts';
import { Faults } from '../base/errors.ts';
import { readTokenSettings } from '../access/token-settings.ts';
import { redisUrlFaults } from '../redis/url.ts';
import { readDeclarations } from '../resources/declarations.ts';
import { readFilesPlace } from '../store/bucket/place.ts';
import type { Static } from '../base/schema.ts';
import { PREFIX_FORM, RESOURCE_NAMES, SETTINGS } from './settings.ts';
import { readSources } from './sources.ts';

type Settings = Static<typeof SETTINGS>;

/** Settings as the program uses them, with durations in milliseconds. */
export type Config = ReturnType<typeof readConfig>;

/** Reads the settings from an environment. Throws Faults, which has every fault at once. */
export function readConfig(environment: NodeJS.ProcessEnv) {
  const { given, faults: ofSources } = readSources(environment);
  const keys = given.API_KEYS_FILE === undefined ? null : readKeysFile(given.API_KEYS_FILE);
  const tokens = readTokenSettings(given);
  const needsKeys = keys !== null || tokens.settings !== null;
  const proxies = parseTrustedProxies(given.TRUSTED_PROXIES);
  const files = readFilesPlace(given);
  const { settings, faults } = checkForms(given);
  const declared = readDeclarations(given);
  faults.push(
    ...ofSources,
    ...declared.faults,
    ...(keys?.faults ?? []),
    ...tokens.faults,
    ...proxies.faults,
    ...redisUrlFaults(given.REDIS_URL),
    ...files.faults,
    ...(needsKeys && settings ? cacheFaults(settings, keys ? 'API_KEYS_FILE' : 'JWT_ISSUER') : []),
  );
  if (settings === null || faults.length > 0) throw new Faults(faults);
  return {
    ...settings,
    /** The accepted API keys; null: there is no API_KEYS_FILE. */
    apiKeys: keys?.keys ?? null,
    /** How tokens are verified; null: none is accepted. */
    tokens: tokens.settings,
    /** Whether requests need a key or a token. */
    needsKeys,
    trustsProxy: proxies.trusts,
    /** Where files lie; null: in the store. */
    filesPlace: files.place,
    maxMemoryBytes: maxMemoryBytes(settings),
    cacheDirectory: cacheDirectory(environment),
    resources: declared.resources,
    declaresItems: declared.items !== null,
    /** What RESOURCES_FILE declares of the items; null: nothing. */
    itemsMember: declared.items,
    /** As OpenTelemetry reads it, which asks the environment alone. */
    samplesByParent: !/^(always_o|traceidratio)/.test(environment.OTEL_TRACES_SAMPLER ?? ''),
  };
}

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
    const value = given[name] ?? form.default;
    if (value === undefined) continue;
    const text = String(value);
    const fault = faultOf(text, form);
    // Never show the value of a URI: it may contain a password.
    const got = /(_UR[IL]|_ENDPOINT)$/.test(name) ? '' : `; got ${JSON.stringify(text)}`;
    if (fault === null) settings[name] = valueOf(text, form);
    else faults.push(`${name} must be ${fault}${got}`);
  }
  return { settings: faults.length === 0 ? (settings as Settings) : null, faults };
}

interface Form {
  readonly type?: string;
  readonly default?: string | number;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  /** The bounds of a duration. */
  readonly least?: string;
  readonly most?: string;
}

/** Patterns in words, and the values that their texts stand for. */
const PATTERNS: Readonly<Record<string, { readonly words: string; read?(text: string): unknown }>> = {
  [DURATION]: { words: DURATION_WORDS, read: milliseconds },
  [RATE_LIMIT_FORM]: { words: 'a rate such as "60000/min", "100/s", or "off"', read: parseRateLimit },
  [STREAM_LIMIT_FORM]: { words: 'an integer of at least 1, or "off"', read: parseStreamLimit },
  [HOSTS_FORM]: { words: 'names of hosts without ports, separated by commas', read: parseHosts },
  [RESOURCE_NAMES]: { words: 'names of resources, separated by commas', read: namesIn },
  [PREFIX_FORM]: { words: '1 to 60 letters, digits, underscores and hyphens' },
};

/** Patterns in few words, for the table of settings. */
const SHORT_FORMS: Readonly<Record<string, string>> = {
  [DURATION]: 'duration',
  [RATE_LIMIT_FORM]: 'rate, or `off`',
  [STREAM_LIMIT_FORM]: 'integer from 1, or `off`',
  [HOSTS_FORM]: 'list of names',
  [RESOURCE_NAMES]: 'list of names',
  [PREFIX_FORM]: '1 to 60 letters, digits, `_`, `-`',
};

function valueOf(text: string, { type, pattern = '' }: Form): unknown {
  if (type === 'integer') return Number(text);
  return (PATTERNS[pattern]?.read ?? String)(text);
}

/** What a text must be instead. Null: it has the form. */
function faultOf(text: string, { type, pattern = '', ...form }: Form): string | null {
  const { enum: words, minimum = -Infinity, maximum = Infinity } = form;
  if (words && !words.includes(text)) return `one of ${words.join(', ')}`;
  if (type === 'integer') {
    const number = Number(text);
    if (!Number.isInteger(number)) return 'an integer';
    if (number < minimum) return `>= ${minimum}`;
    return number > maximum ? `<= ${maximum}` : null;
  }
  if (new RegExp(pattern, 'u').test(text)) return durationFault(text, form);
  return PATTERNS[pattern]?.words ?? `a text of the pattern "${pattern}"`;
}

function durationFault(text: string, { least, most }: Form): string | null {
  if (least === undefined || most === undefined) return null;
  const ms = milliseconds(text);
  return ms < milliseconds(least) || ms > milliseconds(most) ? `from ${least} to ${most}` : null;
}

/** The form of a setting in words, with its bounds. */
export function formOf(form: Form): string {
  const { type, enum: words, minimum, maximum, pattern = '', least, most } = form;
  if (words) return words.map((word) => `\`${word}\``).join(', ');
  if (type === 'integer')
    return maximum === undefined ? `integer from ${minimum}` : `integer, ${minimum} to ${maximum}`;
  if (least !== undefined) return `duration, ${least} to ${most}`;
  return SHORT_FORMS[pattern] ?? 'text';
}

/** What a value must be instead. null: it is right. */
export function faultOfValue(name: string, text: string): string | null {
  const form: Form | undefined = Object.entries<Form>(SETTINGS.properties).find(([own]) => own === name)?.[1];
  return form === undefined ? 'a setting' : faultOf(text, form);
}

function namesIn(text: string): readonly string[] {
  return text.split(',').map((name) => name.trim());
}

/** The rest is for the kernel, and for memory that a process uses beyond what it requests. */
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
