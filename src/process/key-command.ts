import { randomBytes } from 'node:crypto';
import { NAME } from '../access/keys-json.ts';
import { sha256 } from '../access/keys.ts';
import { readArguments, UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';

export const KEY_HELP = `Usage: sluice key new --name NAME

Makes a new API key, and prints it once with its line for API_KEYS_FILE. The server keeps only the SHA-256 of the key, so
the key cannot be printed again.

  --name NAME    the name of the client, 1 to 64 characters of A-Z a-z 0-9 . _ -
  --help         show this text
`;

/** The bytes of a key: as many as its SHA-256 has. */
const KEY_BYTES = 32;

/** Reads the arguments of `sluice key`: the name of the client. Throws UsageError. */
export function parseKeyArguments(argv: readonly string[]): string {
  const { values, positionals } = readArguments(argv, { name: { type: 'string' } });
  const [verb, ...more] = positionals;
  if (verb !== 'new' || more.length > 0) throw new UsageError('expected: sluice key new --name NAME');
  const { name } = values;
  if (name === undefined) throw new UsageError('key new needs --name NAME');
  if (!new RegExp(NAME).test(name))
    throw new UsageError(`--name must be 1 to 64 characters of A-Z a-z 0-9 . _ -; got ${quoted(name)}`);
  return name;
}

/** A new key, with its line in a file of lines and its entry in a file of JSON. */
export function newKey(name: string): string {
  const key = randomBytes(KEY_BYTES).toString('base64url');
  const digest = sha256(key);
  const entry = JSON.stringify({ name, sha256: digest });
  return `key, shown only now:   ${key}
line of API_KEYS_FILE: ${name} ${digest}
or, in a JSON file:    ${entry}
`;
}
