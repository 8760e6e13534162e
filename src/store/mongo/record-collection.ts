import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import type { RecordDeclaration } from '../records.ts';
import { documentsOf, findOne, PRIMARY_FIRST } from './commands.ts';
import type { LayoutOptions } from './create-collection.ts';
import type { MongoConnection } from './connection.ts';
import { MongoRefusal } from './errors.ts';

/**
 * How the collection of these records is looked at. Many applications have a collection of this name. Their documents may
 * contain password hashes and must not be shown to anybody. A collection with other documents is refused (MongoRefusal),
 * unless its validator excludes them or it holds none. A missing one is made when `mayMake` says so; otherwise a look
 * rejects with NotMadeYet.
 */
export function ofRecords(
  { name, validator, indexes }: RecordDeclaration,
  mayMake: () => boolean,
): Pick<LayoutOptions, 'indexes' | 'create' | 'isToCome' | 'admit'> {
  return {
    indexes,
    create: { clustered: true, validator },
    isToCome: () => !mayMake(),
    admit: async (connection, existing, options) => {
      await check(connection, existing, { noun: name, wanted: validator }, options);
      if (isDeepStrictEqual((existing.options as Document | undefined)?.validator, validator)) return options;
      const unmanaged = 'the server indexes only collections that it has made';
      return { ...options, create: undefined, manage: false, unmanaged }; // `check` has warned of its validator
    },
  };
}

async function check(
  connection: MongoConnection,
  { type, options = {} }: Document,
  { noun, wanted }: { readonly noun: string; readonly wanted: RecordDeclaration['validator'] },
  { collection, onWarning }: LayoutOptions,
): Promise<void> {
  const { collation, validator } = options as Document;
  if (type !== 'collection') throw refusal(noun, collection, `it is a ${String(type)}, not a collection`);
  if (collation) throw refusal(noun, collection, 'it has a collation, which changes its order');
  if (isDeepStrictEqual(validator, wanted)) return;
  const others = findOne(collection, undefined, { $nor: [wanted] });
  const [stranger] = await documentsOf(connection, others, PRIMARY_FIRST);
  if (stranger) throw refusal(noun, collection, `it has documents that are not ${noun} of this server`);
  onWarning(
    `The collection '${collection}' has no such validator, so clients would see documents that other programs insert. Its validator should be ${JSON.stringify(wanted)}`,
  );
}

function refusal(noun: string, collection: string, reason: string): MongoRefusal {
  const subject = noun.charAt(0).toUpperCase() + noun.slice(1);
  return new MongoRefusal(`${subject} are not served from the collection '${collection}': ${reason}.`);
}
