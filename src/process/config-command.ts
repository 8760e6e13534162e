import { readConfig } from '../settings/config.ts';
import { masked } from '../settings/masked.ts';
import { SETTINGS } from '../settings/settings.ts';
import { readSources } from '../settings/sources.ts';
import { UsageError } from '../terminal/arguments.ts';
import { printable } from '../terminal/text.ts';

export const CONFIG_HELP = `Usage: sluice config

Prints each setting that a server would have here: its name, its value, and where it comes from: the environment, a file
(SETTINGS_FILE, or the file of a secret) or the default. Secrets, and passwords in URLs, are shown as ***. It opens nothing.

Exit codes: 0 all settings are right, 2 a setting is invalid (the error lists all).
`;

/** The settings in force, as a text table. Throws Faults when they are not right. */
export function configTable(argv: readonly string[], environment: NodeJS.ProcessEnv): string {
  if (argv.length > 0) throw new UsageError(`config takes no arguments; got ${argv.join(' ')}`);
  readConfig(environment);
  const { given, from } = readSources(environment);
  const rows = Object.entries(SETTINGS.properties).map(([name, { default: fallback }]) => {
    const value = given[name];
    const shown = value === undefined ? String(fallback ?? '-') : masked(name, value);
    return [name, printable(shown), printable(from.get(name) ?? 'default')] as const;
  });
  const width = (n: 0 | 1) => Math.min(60, Math.max(...rows.map((row) => row[n].length)));
  return rows
    .map(([name, value, source]) => `${name.padEnd(width(0))}  ${value.padEnd(width(1))}  ${source}\n`)
    .join('');
}
