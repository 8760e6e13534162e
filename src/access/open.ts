import type { Log } from '../base/log.ts';
import { Admissions } from './admission.ts';
import { createHostCheck } from './hosts.ts';
import type { Grant } from './keys-json.ts';
import { createClientReader, type ClientReaderOptions } from './client.ts';
import { createMountReader } from './mount.ts';
import { credentialOf, isCurrent, Keyring, sha256, type Authenticate, type Key } from './keys.ts';
import type { Limiter } from './limiter.ts';
import { createMemoryLimiter } from './limiter-memory.ts';
import { watchKeys } from './keys-file.ts';
import type { RightsCheck } from './rights-check.ts';
import type { Rights } from './rights.ts';
import { Faults } from '../base/errors.ts';
import { OverloadGuard, type OverloadProbe } from './overload.ts';
import type { Policy } from './policy.ts';
import { createStreamSlots } from './stream-slots.ts';
import type { TokenSettings } from './token-settings.ts';
import type { Tokens } from './tokens.ts';

/** The settings of access. See config.ts for their units. */
interface AccessSettings {
  readonly HOST: string;
  readonly ALLOWED_HOSTS?: readonly string[];
  readonly REDIS_URL?: string;
  /** null: no limit. */
  readonly RATE_LIMIT: Policy | null;
  readonly STREAM_LIMIT: number;
  readonly MAX_STREAMS: number;
  readonly MAX_LOOP_DELAY: number;
  readonly MAX_WAIT: number;
  readonly maxMemoryBytes: number;
  readonly trustsProxy: ClientReaderOptions['trusts'];
  readonly API_KEYS_FILE?: string;
  /** null: there is no API_KEYS_FILE. */
  readonly apiKeys: readonly Key[] | null;
  /** null: tokens are off. */
  readonly tokens: TokenSettings | null;
}

/**
 * Opens what decides which requests are let in: keys, rate limits, stream slots, and the guard against overload. Follows
 * the file of keys. `check` says what is wrong with rights on this server.
 * Rejects with Faults for rights in the settings, and when the limiter's database cannot be opened.
 */
export async function openAccess(
  config: AccessSettings,
  log: Log,
  check: RightsCheck,
  probe?: OverloadProbe,
) {
  await assertRights(config, check, log);
  const limits = limitsOf(config);
  const streams = createStreamSlots(limits.streams);
  const guard = new OverloadGuard(limits.overload, probe);
  const limiter = await openLimiter(config, log);
  const keyring = config.apiKeys && new Keyring(config.apiKeys);
  const { API_KEYS_FILE: path } = config;
  const checkKeys = (keys: readonly Key[]) => faultsOfKeys(keys, check, log);
  const watch = keyring && path !== undefined ? watchKeys({ path, keyring, check: checkKeys, log }) : null;
  const opened = config.tokens && (await openTokens(config.tokens, check, log));
  const ofProxies = {
    trusts: config.trustsProxy,
    onWarning: (message: string) => log.warn({}, message),
  };
  const admissions = new Admissions({
    readClient: createClientReader(ofProxies),
    authenticate: authenticateBy(keyring, opened?.tokens ?? null),
    checkHost: createHostCheck([config.HOST, ...(config.ALLOWED_HOSTS ?? [])]),
    allows: (key, right, resource) =>
      key.issuer === undefined ? keyring?.allows(key, right, resource) !== false : isCurrent(key),
    rate: limiter && { policy: () => limits.rate, limiter },
    slots: streams,
    guard,
  });
  return {
    admissions,
    readMount: createMountReader(ofProxies),
    streams,
    /** Takes other rates and limits over. A rate after none at all needs a start. */
    limit: (next: AccessSettings) => {
      const { streams, overload, rate } = limitsOf(next);
      Object.assign(limits.streams, streams);
      Object.assign(limits.overload, overload);
      limits.rate = rate;
      if (limiter === null && rate !== null)
        log.warn({}, 'RATE_LIMIT was off, and counts from the next start on');
    },
    /** Reads API_KEYS_FILE again, as it also is when it changes. Resolves with whether its keys are now valid. */
    reloadKeys: () => watch?.reload() ?? Promise.resolve(true),
    /** The faults of API_KEYS_FILE as it was read last. Null: there is no such file. */
    keysFaults: (): number | null => watch?.faults ?? null,
    /** To be started once the server listens. */
    guard,
    async close(): Promise<void> {
      await watch?.close();
      opened?.close();
      await limiter?.close();
      guard.close();
    },
  };
}

/** The rates and limits of the settings, which may change while the server runs. */
function limitsOf(config: AccessSettings) {
  return {
    rate: config.RATE_LIMIT,
    streams: { perClient: config.STREAM_LIMIT, total: config.MAX_STREAMS },
    overload: {
      maxLoopDelayMs: config.MAX_LOOP_DELAY,
      maxWaitMs: config.MAX_WAIT,
      maxMemoryBytes: config.maxMemoryBytes,
    },
  };
}

/** Rejects with Faults for rights in the settings. */
async function assertRights(
  { apiKeys, tokens }: AccessSettings,
  check: RightsCheck,
  log: Log,
): Promise<void> {
  const faults = apiKeys ? [...(await faultsOfKeys(apiKeys, check, log))] : [];
  const granted: [place: string, grant: Grant][] = [];
  for (const [role, grant] of tokens?.roles ?? [])
    granted.push([`JWT_ROLES, role ${JSON.stringify(role)}`, grant]);
  if (tokens?.fallback) granted.push(['JWT_DEFAULT', tokens.fallback]);
  for (const [place, { rights }] of granted) {
    const checked = await check(rights);
    faults.push(...checked.faults.map((fault) => `${place}: ${fault.join(': ')}`));
  }
  if (faults.length > 0) throw new Faults(faults);
}

/** What is wrong with the rights of keys. Without faults it logs which changes are refused to them. */
async function faultsOfKeys(keys: readonly Key[], check: RightsCheck, log: Log): Promise<readonly string[]> {
  const faults: string[] = [];
  const warnings: string[] = [];
  for (const { name, rights } of keys) {
    const place = `API_KEYS_FILE, key ${name}`;
    const checked = await check(rights);
    faults.push(...checked.faults.map((fault) => `${place}: ${fault.join(': ')}`));
    if (rights.namesChanges)
      for (const [resource, reason] of checked.refusals)
        warnings.push(
          `${place}: changes of ${resource} are refused, because the key opens a part of it. ${reason}`,
        );
  }
  if (faults.length === 0) for (const warning of warnings) log.warn({}, warning);
  return faults;
}

/** The credentials of requests: keys, then tokens. null: no request needs any. */
export function authenticateBy(keyring: Keyring | null, tokens: Tokens | null): Authenticate | null {
  if (tokens === null) return keyring && ((authorization) => keyring.authenticate(authorization));
  return (authorization) => {
    const credential = credentialOf(authorization);
    const digest = sha256(credential);
    return keyring?.find(digest) ?? tokens.authenticate(credential, digest);
  };
}

/** Opens tokens and fetches the signing keys. A key server that cannot be reached does not stop the start. */
async function openTokens(settings: TokenSettings, checkRights: RightsCheck, log: Log) {
  // Most servers do without these.
  const [{ Tokens }, { TokenCheck }] = await Promise.all([import('./tokens.ts'), import('./token-check.ts')]);
  const check = new TokenCheck(settings, log);
  await check.refresh();
  const faultsOf = async (granted: Rights) => {
    const { faults } = await checkRights(granted);
    const whole = faults.map((fault) => fault.join(': '));
    if (faults.length > 0) log.warn({ faults: whole }, 'the rights of a token have faults');
    return [...new Set(faults.map(([shown]) => shown))];
  };
  return { tokens: new Tokens({ settings, check, faultsOf }), close: () => check.close() };
}

/**
 * Opens the limiter that the settings name. With a Redis URL it loads the Redis adapter; otherwise the limiter is in
 * this process. Resolves with null when RATE_LIMIT is off and there are no keys, which may have limits of their own.
 */
async function openLimiter(
  { REDIS_URL: url, RATE_LIMIT: rateLimit, apiKeys, tokens }: AccessSettings,
  log: Log,
): Promise<Limiter | null> {
  if (rateLimit === null && apiKeys === null && tokens === null) return null;
  if (url === undefined) return createMemoryLimiter();
  const { connectRedisLimiter } = await import('./limiter-redis.ts'); // most servers do without this client
  return connectRedisLimiter({ url, log });
}
