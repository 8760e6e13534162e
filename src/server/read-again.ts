import { Faults } from '../base/errors.ts';
import type { Config } from '../settings/config.ts';
import { SETTINGS } from '../settings/settings.ts';
import type { Logger } from '../telemetry/log.ts';

/** Settings that a running server takes over. Others are read at a start alone. */
export const TAKEN_OVER: ReadonlySet<string> = new Set([
  'LOG_LEVEL',
  'RATE_LIMIT',
  'STREAM_LIMIT',
  'MAX_STREAMS',
  'MAX_LOOP_DELAY',
  'MAX_WAIT',
  'MAX_MEMORY',
  'EXPORT_LIMIT',
]);

/** Reads the settings again, and says in the log what of them is new now, and what only at the next start. */
export class SettingsReader {
  #now: Config;
  readonly #read: () => Config;
  readonly #log: Logger;
  readonly #takeOver: (config: Config) => void;

  /** `takeOver` gives settings to the parts of the server. */
  constructor(
    config: Config,
    log: Logger,
    { read, takeOver }: { readonly read: () => Config; readonly takeOver: (config: Config) => void },
  ) {
    this.#now = config;
    this.#log = log;
    this.#read = read;
    this.#takeOver = takeOver;
  }

  /** Returns whether the settings were without faults. With faults, those of before stay in force. */
  again(): boolean {
    let next: Config;
    try {
      next = this.#read();
    } catch (error) {
      if (!(error instanceof Faults)) throw error;
      this.#log.error({ faults: error.faults }, 'the settings have faults: those of before stay in force');
      return false;
    }
    const before = this.#now;
    const changed = Object.keys(SETTINGS.properties).filter((name) => differs(before, next, name));
    const taken = changed.filter((name) => TAKEN_OVER.has(name));
    const others = changed.filter((name) => !TAKEN_OVER.has(name));
    this.#now = { ...before, ...pick(next, taken), maxMemoryBytes: next.maxMemoryBytes };
    if (taken.includes('LOG_LEVEL')) this.#log.level = this.#now.LOG_LEVEL;
    if (taken.length > 0) {
      this.#takeOver(this.#now);
      this.#log.info({ settings: taken }, 'settings were read again, and are in force');
    }
    if (others.length > 0)
      this.#log.warn(
        { settings: others },
        'these settings have changed, which counts from the next start on',
      );
    return true;
  }
}

function differs(before: Config, next: Config, name: string): boolean {
  const key = name as keyof Config;
  return JSON.stringify(before[key]) !== JSON.stringify(next[key]);
}

function pick(config: Config, names: readonly string[]): Partial<Config> {
  return Object.fromEntries(Object.entries(config).filter(([name]) => names.includes(name)));
}
