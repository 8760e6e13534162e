import { readFileSync } from 'node:fs';
import { reasonOf } from '../base/error-reason.ts';
import { secretOf, twiceGiven } from '../base/secret-file.ts';
import { SETTINGS } from './settings.ts';

/** Settings as they were given, each as text, and where each came from: `environment`, or `file PATH`. */
interface Sources {
  readonly given: Readonly<Record<string, string>>;
  readonly from: ReadonlyMap<string, string>;
  readonly faults: readonly string[];
}

/** Secrets that are read once. Those of a bucket are read again when it refuses them: see store/bucket/place.ts. */
const SECRETS = ['MONGODB_URI', 'REDIS_URL'] as const;

/** Reads what an environment, SETTINGS_FILE and files of secrets say. The environment goes before the file. */
export function readSources(environment: NodeJS.ProcessEnv): Sources {
  const given: Record<string, string> = {};
  const from = new Map<string, string>();
  const put = (name: string, value: string, source: string): void => {
    given[name] = value;
    from.set(name, source);
  };
  // `NAME= command` and compose files produce empty variables. An empty variable counts as not set.
  for (const [name, value = ''] of Object.entries(environment))
    if (value !== '') put(name, value, 'environment');
  const file = readSettingsFile(given.SETTINGS_FILE);
  for (const [name, value] of file.values)
    if (given[name] === undefined) put(name, value, `file ${given.SETTINGS_FILE}`);
  const faults = [...file.faults];
  for (const name of SECRETS) {
    const twice = twiceGiven(given, name);
    if (twice !== null) faults.push(twice);
    else
      try {
        const value = secretOf(given, name);
        if (value !== undefined && given[name] === undefined)
          put(name, value, `file ${given[`${name}_FILE`]}`);
      } catch (error) {
        faults.push(reasonOf(error));
      }
  }
  return { given, from, faults };
}

const LINE = /^\s*([A-Z][A-Z0-9_]*)\s*=\s*(.*?)\s*$/;

/** Reads lines `NAME=value`. Values may be in quotes, as systemd and shells have them. Faults never show a value. */
function readSettingsFile(path: string | undefined): {
  readonly values: ReadonlyMap<string, string>;
  readonly faults: readonly string[];
} {
  const values = new Map<string, string>();
  if (path === undefined) return { values, faults: [] };
  let text: string;
  try {
    text = readFileSync(path, 'utf8').replace(/^\ufeff/, '');
  } catch (error) {
    return { values, faults: [`SETTINGS_FILE cannot be read: ${reasonOf(error)}`] };
  }
  const faults: string[] = [];
  for (const [at, line] of text.split('\n').entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const [, name, value = ''] = LINE.exec(line) ?? [];
    const place = `SETTINGS_FILE, line ${at + 1}`;
    if (name === undefined) faults.push(`${place} must be NAME=value, or begin with #`);
    else if (name === 'SETTINGS_FILE' || !Object.hasOwn(SETTINGS.properties, name))
      faults.push(`${place}: ${name} is no setting of such a file`);
    else if (values.has(name)) faults.push(`${place}: ${name} is given twice`);
    else values.set(name, value.replace(/^(["'])(.*)\1$/, '$2'));
  }
  for (const [name, value] of values) if (value === '') values.delete(name);
  return { values, faults };
}
